"""Measures of normality: one number a document, the higher the more usual."""

from collections.abc import Callable
from typing import NamedTuple

from habitus.compiled import compiled
from habitus.model.parameters import Array
from habitus.normality.filter import Seen


class Scale(NamedTuple):
    """What normal footage scores, to measure new documents by."""

    level: float = 0.0
    """Surprise of a word, in nats, that hardly any word of normal footage exceeds."""
    mean: tuple[float, float] = (0.0, 1.0)
    """Where the tail of `mean` begins in normal footage, and the mean excess there."""
    tail: tuple[float, float] = (0.0, 1.0)
    """The same of `tail`."""


def mean(seen: Seen, counts: Array, scale: Scale) -> float:
    """The paper's: (1 / N) ln p(x_t | x_{1:t-1}), the mean log-probability of a word."""
    return float(seen.log_evidence / counts.sum())


def tail(seen: Seen, counts: Array, scale: Scale) -> float:
    """What single words surprise beyond the level, added up: small things in busy scenes."""
    return -excess(counts, seen.surprises, scale.level)


def either(seen: Seen, counts: Array, scale: Scale) -> float:
    """The worse of `mean` and `tail`, each in units of its own tail in normal footage.

    Small things and upheavals of the whole scene alike.
    """
    return min(
        (mean(seen, counts, scale) - scale.mean[0]) / scale.mean[1],
        (tail(seen, counts, scale) - scale.tail[0]) / scale.tail[1],
    )


@compiled
def excess(counts: Array, surprises: Array, level: float) -> float:
    """`counts @ np.maximum(surprises - level, 0)`."""
    total = 0.0
    for i in range(len(counts)):
        total += counts[i] * max(surprises[i] - level, 0.0)
    return total


Measure = Callable[[Seen, Array, Scale], float]
MEASURES: dict[str, Measure] = {"mean": mean, "tail": tail, "either": either}
