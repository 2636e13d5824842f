"""The HTML page: what was found in a video, in one file."""
