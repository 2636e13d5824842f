"""Figures of a scene, its behaviours, its events, and the curves of an evaluation."""
