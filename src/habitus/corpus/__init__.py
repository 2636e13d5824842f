"""Words and documents as values.

- `vocabulary`: the meaning of word ids
- `documents`: word counts of documents in time order, and their file
- `validation`: checks of the values that a corpus is made of
"""

from habitus.corpus.documents import Bag, Condition, Corpus, summed_bag
from habitus.corpus.vocabulary import Direction, Vocabulary, WordPlaces

__all__ = ["Bag", "Condition", "Corpus", "Direction", "Vocabulary", "WordPlaces", "summed_bag"]
