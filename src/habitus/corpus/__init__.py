"""Words and documents as values.

- `vocabulary`: the meaning of word ids
- `documents`: word counts of documents in time order, and their file
- `stands`: words of a second kind, cells in which something stands
- `looks`: small pictures of a scene in every light, and whether two show one view
- `sparse`: their counts as arrays, and packed for files
- `shards`: a corpus in several files, which are never all loaded at once, and what is kept of each
- `tree_sum`: sums over them that are the same to the bit, whoever makes the parts
- `checks`: checks of the values that a corpus is made of
"""

from habitus.corpus.documents import Bag, Condition, Corpus, summed_bag
from habitus.corpus.shards import ShardedCorpus
from habitus.corpus.vocabulary import Direction, Vocabulary, WordPlaces

__all__ = [
    "Bag",
    "Condition",
    "Corpus",
    "Direction",
    "ShardedCorpus",
    "Vocabulary",
    "WordPlaces",
    "summed_bag",
]
