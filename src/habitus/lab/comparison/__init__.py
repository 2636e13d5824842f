"""The paper's whole experiment on one labelled video, with what a user would pick instead."""
