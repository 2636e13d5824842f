"""Words that a model hardly knows: how many of them normal footage brings, and where.

Five minutes of training do not show every word that is normal: lorries turn wide, queues creep. In
footage that was held out, some words are as good as new to the model, more in some places than in
others. Every behaviour gets a share of such novelty; a new word then surprises less where new words
are usual, and more where nothing new ever happens.
"""

from typing import NamedTuple

import numpy as np

from habitus.model.parameters import Array
from habitus.words import Vocabulary

# Share of the words of held-out footage that count as known.
KNOWN = 0.97
# How far around a new word others are expected, in cells: about the size of what moves.
SPREAD = 3.0
# Share of novelty that is expected anywhere.
ANYWHERE = 0.1


class Novelty(NamedTuple):
    """What every behaviour has beside its own words."""

    share: float
    """Of all words."""
    probability: Array
    """p(word | new), words."""

    def mixed(self, probability: Array) -> Array:
        """p(word | behaviour) with its share of novelty; words x any number of columns."""
        return np.asarray((1 - self.share) * probability + self.share * self.probability[:, None])


def novelty_of(counts: Array, vocabulary: Vocabulary | None) -> Novelty:
    """Novelty from how often each word was seen while it was new; any move is as likely."""
    even = np.full(len(counts), 1 / len(counts))
    if vocabulary is None or counts.sum() == 0:
        return Novelty(1 - KNOWN, even)
    from scipy.ndimage import gaussian_filter

    cells = counts.reshape(vocabulary.rows, vocabulary.columns, -1).sum(axis=2)
    near = np.repeat(gaussian_filter(cells, SPREAD, mode="nearest"), vocabulary.per_cell)
    return Novelty(1 - KNOWN, (1 - ANYWHERE) * near / near.sum() + ANYWHERE * even)
