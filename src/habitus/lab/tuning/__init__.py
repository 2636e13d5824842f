"""Choosing a model without labels, and what it would find."""
