"""What all tests of cameras share."""

from reference.watched_scene import fork_server, model, turn, video

__all__ = ["fork_server", "model", "turn", "video"]
