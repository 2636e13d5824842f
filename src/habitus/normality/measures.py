"""Measures of normality: one number a document, the higher the more usual."""

from collections.abc import Callable
from math import log, sqrt
from typing import NamedTuple

from habitus.compiled import compiled
from habitus.model.parameters import Array
from habitus.normality.filter import Seen

# Of the alarms that normal footage causes, `either` lets one in so many come from `upheaval`.
SELDOM = 10


class Scale(NamedTuple):
    """What normal footage scores, to measure new documents by."""

    level: float = 0.0
    """Surprise of a word, in nats, that few words of normal footage exceed."""
    typical: float = 0.0
    """Mean log-probability of a word of normal footage."""
    tail: tuple[float, float] = (0.0, 1.0)
    """Where the lowest scores of `tail` begin in normal footage, and their mean excess."""
    upheaval: tuple[float, float] = (0.0, 1.0)
    """The same of `upheaval`."""


def mean(seen: Seen, counts: Array, scale: Scale) -> float:
    """The paper's: (1 / N) ln p(x_t | x_{1:t-1}), the mean log-probability of a word."""
    return seen.log_evidence / seen.n_tokens


def tail(seen: Seen, counts: Array, scale: Scale) -> float:
    """What single words surprise beyond the level, over sqrt(N): small things in busy scenes.

    Rare words of N usual ones add up to something that spreads like sqrt(N).
    """
    return -excess(counts, seen.surprises, scale.level) / sqrt(seen.n_tokens)


def upheaval(seen: Seen, counts: Array, scale: Scale) -> float:
    """`mean`, less what is typical, times sqrt(N): the whole scene behaves as it never does.

    A mean of N usual words spreads like 1 / sqrt(N): short documents are not called odd for that.
    """
    return (seen.log_evidence / seen.n_tokens - scale.typical) * sqrt(seen.n_tokens)


def either(seen: Seen, counts: Array, scale: Scale) -> float:
    """The worse of `tail` and `upheaval`, each in units of its own lowest scores.

    A unit down means e times fewer normal documents; `upheaval` has to be SELDOM times rarer.
    """
    return min(
        _in_units(tail(seen, counts, scale), scale.tail),
        _in_units(upheaval(seen, counts, scale), scale.upheaval) + log(SELDOM),
    )


def _in_units(score: float, unit: tuple[float, float]) -> float:
    return (score - unit[0]) / unit[1]


@compiled
def excess(counts: Array, surprises: Array, level: float) -> float:
    """`counts @ np.maximum(surprises - level, 0)`."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * max(surprises[i] - level, 0.0)
    return total


Measure = Callable[[Seen, Array, Scale], float]
MEASURES: dict[str, Measure] = {"mean": mean, "tail": tail, "upheaval": upheaval, "either": either}
