"""The HTML page about a video."""
