"""Evaluation of a detector against labels."""
