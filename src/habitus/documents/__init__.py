"""Documents: the visual words of one clip each, in time order."""

from habitus.documents.corpus import Corpus

__all__ = ["Corpus"]
