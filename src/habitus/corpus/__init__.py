"""Words and documents as values: what a word id means, and counts of words in time order."""

from habitus.corpus.documents import Bag, Condition, Corpus
from habitus.corpus.vocabulary import Direction, Vocabulary

__all__ = ["Bag", "Condition", "Corpus", "Direction", "Vocabulary"]
