"""Measures of normality, and the background distribution of words new to a model.

Five minutes of training do not show every word that is normal: lorries turn wide, queues creep. In
held-out footage some words are as good as new to the model, more in some cells than in others.
Every behaviour gets a share of such novelty; a new word then has a lower surprisal where new words
are usual, and a higher one where nothing new ever happens. How far to trust the cells is estimated
from the same footage: in a quiet scene the new words of one segment say little about another.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np

from habitus.arrays import Array
from habitus.compiled import compiled
from habitus.corpus.vocabulary import Vocabulary
from habitus.model.online import Background, FilterStep

# Share of the words of held-out footage that count as known.
KNOWN = 0.97
# How far around a new word others are expected, in cells: about the size of what moves.
SPREAD = 3.0
# Share of novelty that is expected anywhere, at least.
ANYWHERE = 0.1
# Iterations of EM for that share.
ITERATIONS = 100


def novelty_of(
    counts: Array, vocabulary: Vocabulary | None, anywhere: float = ANYWHERE
) -> Background:
    """Background from how often each word was seen while it was new; any move is as likely."""
    near, even = _around(counts, vocabulary), 1 / len(counts)
    return Background(1 - KNOWN, (1 - anywhere) * near + anywhere * even)


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


def mean(seen: FilterStep, counts: Array, level: float) -> float:
    """The paper's: (1 / N) ln p(x_t | x_{1:t-1}), the mean log-probability of a word."""
    return seen.log_evidence / seen.n_tokens


def tail(seen: FilterStep, counts: Array, level: float) -> float:
    """What single words surprise beyond the level, over sqrt(N): small things in busy scenes.

    Rare words of N usual ones add up to something that spreads like sqrt(N).
    """
    return -excess(counts, seen.surprisals, level) / sqrt(seen.n_tokens)


@compiled
def excess(counts: Array, surprisals: Array, level: float) -> float:
    """`counts @ np.maximum(surprisals - level, 0)`."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * max(surprisals[i] - level, 0.0)
    return total


Measure = Callable[[FilterStep, Array, float], float]
MEASURES: dict[str, Measure] = {"tail": tail, "mean": mean}
"""Of what a document said, how often it has each word, and the surprise of a word, in nats, that
few words of normal footage exceed."""
