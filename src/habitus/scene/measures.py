"""Measures of normality, and the background distribution of words new to a model.

Five minutes of training do not show every word that is normal: lorries turn wide, queues creep. In
held-out footage some words are as good as new to the model, more in some cells than in others.
Every behaviour gets a share of such novelty; a new word then has a lower surprisal where new words
are usual, and a higher one where nothing new ever happens. How far to trust the cells is estimated
from the same footage: in a quiet scene the new words of one segment say little about another.
"""

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from habitus.arrays import Array, inner_product
from habitus.compiled import compiled
from habitus.corpus.vocabulary import Vocabulary
from habitus.model.expected_counts import Evidence
from habitus.model.online import Background, FilteredDocuments

# Iterations of EM for a single weight: it converges in far fewer.
EM_ITERATIONS = 100


def mean(
    log_evidence: float, n_tokens: float, counts: Array, surprisals: Array, level: float
) -> float:
    """Return the paper's measure, (1 / N) ln p(x_t | x_{1:t-1}): mean log-probability per token."""
    return log_evidence / n_tokens


def tail(
    log_evidence: float, n_tokens: float, counts: Array, surprisals: Array, level: float
) -> float:
    """Return minus the sum of word surprisals above `level`, divided by sqrt(N).

    It responds to a small object in a busy scene: rare words among N usual ones add up to a sum
    that spreads like sqrt(N).
    """
    return -excess(counts, surprisals, level) / sqrt(n_tokens)


@compiled
def excess(counts: Array, surprisals: Array, level: float) -> float:
    """Return `counts @ np.maximum(surprisals - level, 0)`."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * max(surprisals[i] - level, 0.0)
    return total


MEASURES: dict[str, Callable[[float, float, Array, Array, float], float]] = {
    "tail": tail,
    "mean": mean,
}
"""Normality of a document with at least one word, by the name of the measure."""


def score_documents(
    measure: str, evidence: Evidence, filtered: FilteredDocuments, level: float
) -> Array:
    """Return the normality of each filtered document; 0 for a document without evidence."""
    score, indptr = MEASURES[measure], evidence.indptr
    normality = np.zeros(evidence.n_documents)
    for t in np.flatnonzero(np.diff(indptr)):
        entries = slice(indptr[t], indptr[t + 1])
        normality[t] = score(
            filtered.log_evidence[t],
            filtered.n_tokens[t],
            evidence.counts[entries],
            filtered.surprisals[entries],
            level,
        )
    return normality


def novelty_background(
    counts: Array,
    vocabulary: Vocabulary | None,
    *,
    share: float,
    spread: float,
    uniform_share: float,
) -> Background:
    """Return the distribution of words that are new to a model, a `share` of all tokens.

    `counts` say how often each word was seen in held-out footage while it was new to the model.
    Around its cells it is blurred by `spread` cells (standard deviation); a `uniform_share` may
    occur in any cell. All directions and speeds of a cell are equally likely in it.
    """
    near, even = _blurred(counts, vocabulary, spread), 1 / len(counts)
    return Background(share, (1 - uniform_share) * near + uniform_share * even)


def estimate_uniform_share(
    new: Sequence[Array], vocabulary: Vocabulary | None, *, spread: float, least: float
) -> float:
    """Return the share of novelty that may occur in any cell, by EM for one mixture weight.

    It maximises the likelihood of each held-out fold's new words given the cells of all other
    folds' new words, and is at least `least`.
    """
    total, even = np.sum(new, axis=0), 1 / len(new[0])
    occurring = [np.flatnonzero(fold) for fold in new]
    folds = list(zip(new, occurring, strict=True))
    counts = np.concatenate([fold[words] for fold, words in folds])
    near = np.concatenate(
        [_blurred(total - fold, vocabulary, spread)[words] for fold, words in folds]
    )
    return max(_mixture_weight(counts, np.full(len(counts), even), near), least)


def estimate_novelty_share(counts: Array, known: Array, new: Array) -> float:
    """Return the share of tokens that are new to a model, by EM for one mixture weight.

    Of each word of each held-out document, `known` is the probability given the documents before
    it, by a model that was not learnt from it; `new` is that of `novelty_background` of other
    documents. The share is above 0 and below 1: half a token more is new, and half one is known.
    """
    n_tokens = counts.sum()
    return float((_mixture_weight(counts, new, known) * n_tokens + 0.5) / (n_tokens + 1))


def _mixture_weight(counts: Array, one: Array, other: Array) -> float:
    """Return the weight of `one` that maximises counts @ ln(weight one + (1 - weight) other)."""
    weight, n_tokens = 0.5, float(counts.sum())
    share, both = np.empty((2, len(counts)))
    for _ in range(EM_ITERATIONS if len(counts) else 0):
        before = weight
        np.multiply(one, weight, out=share)
        np.multiply(other, 1 - weight, out=both)
        both += share
        share /= both
        weight = inner_product(counts, share) / n_tokens
        if weight == before:  # and so for ever
            break
    return weight


def _blurred(counts: Array, vocabulary: Vocabulary | None, spread: float) -> Array:
    """Return p(word) around the cells of the counted words; all words of a cell are alike."""
    if vocabulary is None or counts.sum() == 0:
        return np.full(len(counts), 1 / len(counts))
    from scipy.ndimage import gaussian_filter

    cells = counts.reshape(vocabulary.rows, vocabulary.columns, -1).sum(axis=2)
    near = np.repeat(gaussian_filter(cells, spread, mode="nearest"), vocabulary.per_cell)
    return np.asarray(near / near.sum())
