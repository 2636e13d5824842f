"""Words that a model hardly knows: how many of them normal footage brings, and where.

Five minutes of training do not show every word that is normal: lorries turn wide, queues creep. In
footage that was held out, some words are as good as new to the model, more in some places than in
others. Every behaviour gets a share of such novelty; a new word then surprises less where new words
are usual, and more where nothing new ever happens. How far to trust the places is told by the same
footage: in a quiet scene the new words of one stretch say little about those of another.
"""

from typing import NamedTuple

import numpy as np

from habitus.model.parameters import Array
from habitus.words import Vocabulary

# Share of the words of held-out footage that count as known.
KNOWN = 0.97
# How far around a new word others are expected, in cells: about the size of what moves.
SPREAD = 3.0
# Share of novelty that is expected anywhere, at least.
ANYWHERE = 0.1
# Iterations of EM for that share.
ITERATIONS = 100


class Novelty(NamedTuple):
    """What every behaviour has beside its own words."""

    share: float
    """Of all words."""
    probability: Array
    """p(word | new), words."""

    def mixed(self, probability: Array) -> Array:
        """p(word | behaviour) with its share of novelty; words x any number of columns."""
        return np.asarray((1 - self.share) * probability + self.share * self.probability[:, None])


def novelty_of(counts: Array, vocabulary: Vocabulary | None, anywhere: float = ANYWHERE) -> Novelty:
    """Novelty from how often each word was seen while it was new; any move is as likely."""
    near, even = _around(counts, vocabulary), 1 / len(counts)
    return Novelty(1 - KNOWN, (1 - anywhere) * near + anywhere * even)


def anywhere_of(new: list[Array], vocabulary: Vocabulary | None) -> float:
    """The share of novelty that is expected anywhere, from the new words of several stretches.

    The one under which those of each stretch are most probable, given the places of all others'.
    """
    total, even = np.sum(new, axis=0), 1 / len(new[0])
    seen = [np.flatnonzero(own) for own in new]
    counts = np.concatenate([own[words] for own, words in zip(new, seen, strict=True)])
    near = np.concatenate(
        [_around(total - own, vocabulary)[words] for own, words in zip(new, seen, strict=True)]
    )
    share = 0.5
    for _ in range(ITERATIONS if len(counts) else 0):
        share = float(counts @ (share * even / (share * even + (1 - share) * near)) / counts.sum())
    return max(share, ANYWHERE)


def _around(counts: Array, vocabulary: Vocabulary | None) -> Array:
    """Where new words are expected: around those that were; p(word), all moves alike."""
    if vocabulary is None or counts.sum() == 0:
        return np.full(len(counts), 1 / len(counts))
    from scipy.ndimage import gaussian_filter

    cells = counts.reshape(vocabulary.rows, vocabulary.columns, -1).sum(axis=2)
    near = np.repeat(gaussian_filter(cells, SPREAD, mode="nearest"), vocabulary.per_cell)
    return np.asarray(near / near.sum())
