"""The documents of a corpus in shards as the learners see them, one shard at a time."""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import numpy as np

from habitus.arrays import Indices
from habitus.corpus.documents import Bag
from habitus.corpus.shards import ShardedCorpus, go_on
from habitus.corpus.tree_sum import tree_sum
from habitus.model.expected_counts import Counted, Evidence, gather

R = TypeVar("R")


class ShardFigures(NamedTuple):
    """Sizes of a shard once gathered."""

    n_tokens: float
    n_sequences: int
    n_filled: int


class ShardedEvidence:
    """Evidence of a corpus in shards, with all that `Evidence` has for learners.

    Shards are loaded when a pass needs them, and gathered as `gather` does, once as far as the
    corpus allows to keep them: see `ShardCache`. `n_threads` of them are worked on at a time, and
    are in memory beside those that are kept; that never changes a result.
    """

    def __init__(self, corpus: ShardedCorpus, *, min_words: float = 0, n_threads: int = 1) -> None:
        self.corpus, self.min_words, self.n_threads = corpus, min_words, n_threads
        self._check: Callable[[], None] = go_on
        self._gathered = corpus.kept(partial(gather, min_words=min_words))

    @property
    def shard_lengths(self) -> tuple[int, ...]:
        """Number of documents of each shard."""
        return tuple(shard.n_documents for shard in self.corpus.shards)

    @property
    def n_documents(self) -> int:
        """Number of documents of all shards."""
        return self.corpus.n_documents

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return self.corpus.n_words

    @property
    def n_sequences(self) -> int:
        """Number of sequences of all shards."""
        return sum(each.n_sequences for each in self.figures)

    @property
    def n_filled(self) -> int:
        """Number of documents with words."""
        return sum(each.n_filled for each in self.figures)

    @property
    def n_tokens(self) -> float:
        """Number of tokens of all shards."""
        return tree_sum(each.n_tokens for each in self.figures)

    @cached_property
    def figures(self) -> tuple[ShardFigures, ...]:
        """Sizes of each shard; the first use reads all of them."""
        return tuple(self.map(_figures))

    def map(
        self, function: Callable[[Evidence], R], numbers: Iterable[int] | None = None
    ) -> Iterator[R]:
        """Call a pure function with shards, all or some, and yield the results in order."""
        chosen = range(self.corpus.n_shards) if numbers is None else numbers
        return self._gathered.map(
            partial(_without_number, function),
            chosen,
            n_threads=self.n_threads,
            check=self._check,
        )

    def map_reduce(self, function: Callable[[Evidence], Counted]) -> Counted:
        """Return the sum of a pure function over all shards, added as `TreeSum` does."""
        return self._gathered.sum(
            partial(_without_number, function), n_threads=self.n_threads, check=self._check
        )

    def pick(self, documents: Indices) -> list[Bag]:
        """Return documents by their numbers, in that order; other shards are not read."""
        starts = self.corpus.starts
        shard_of = np.searchsorted(starts, documents, side="right") - 1
        found: dict[int, Bag] = {}
        for number in np.unique(shard_of):
            own = np.unique(documents[shard_of == number])
            (bags,) = self.map(partial(_copies, own - starts[number]), [int(number)])
            found |= dict(zip(own.tolist(), bags, strict=True))
        return [found[t] for t in documents.tolist()]

    def interruptible(self, check: Callable[[], None]) -> "ShardedEvidence":
        """Return the same documents; `check`, called between shards, may raise to end a pass."""
        same = copy(self)
        same._check = check
        return same


def _without_number(function: Callable[[Evidence], R], shard: Evidence, number: int) -> R:
    return function(shard)


def _figures(shard: Evidence) -> ShardFigures:
    return ShardFigures(shard.n_tokens, shard.n_sequences, shard.n_filled)


def _copies(documents: Indices, shard: Evidence) -> list[Bag]:
    """Return documents that do not keep the shard in memory."""
    return [Bag(bag.words.copy(), bag.counts.copy()) for bag in shard.pick(documents)]
