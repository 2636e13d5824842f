"""Annotated video: footage with events, visual words and normality drawn on it."""
