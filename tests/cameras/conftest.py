"""What all tests of cameras share."""

from reference.watched_scene import model, nursery, video

__all__ = ["model", "nursery", "video"]
