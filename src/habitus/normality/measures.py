"""Measures of normality: one number a document, the higher the more usual."""

from collections.abc import Callable
from math import sqrt

from habitus.compiled import compiled
from habitus.model.parameters import Array
from habitus.normality.filter import Seen


def mean(seen: Seen, counts: Array, level: float) -> float:
    """The paper's: (1 / N) ln p(x_t | x_{1:t-1}), the mean log-probability of a word."""
    return seen.log_evidence / seen.n_tokens


def tail(seen: Seen, counts: Array, level: float) -> float:
    """What single words surprise beyond the level, over sqrt(N): small things in busy scenes.

    Rare words of N usual ones add up to something that spreads like sqrt(N).
    """
    return -excess(counts, seen.surprises, level) / sqrt(seen.n_tokens)


@compiled
def excess(counts: Array, surprises: Array, level: float) -> float:
    """`counts @ np.maximum(surprises - level, 0)`."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * max(surprises[i] - level, 0.0)
    return total


Measure = Callable[[Seen, Array, float], float]
MEASURES: dict[str, Measure] = {"tail": tail, "mean": mean}
"""Of what a document said, how often it has each word, and the surprise of a word, in nats, that
few words of normal footage exceed."""
