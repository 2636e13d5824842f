"""Built-in scenes whose truth is known."""

from habitus.scenes.crossing import crossing, crossing_vocabulary

__all__ = ["crossing", "crossing_vocabulary"]
