"""Visual words: what a word id means."""

from habitus.words.vocabulary import Direction, Vocabulary

__all__ = ["Direction", "Vocabulary"]
