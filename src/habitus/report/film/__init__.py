"""Annotated video."""
