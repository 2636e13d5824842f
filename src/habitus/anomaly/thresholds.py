"""Thresholds: a fixed value, a share of the documents, or a budget of alerts a day.

The budget is met by a law of rare events. Of normal footage that the model was not learnt from, the
least usual documents are taken, joined where they follow each other, as events are; the excess of
each joined stretch's strongest document over the level is taken as exponential. With k of them, of
mean excess m, the chance that the next one exceeds y is, the scale being unknown,

    P(excess > y) = (1 + y / (k m)) ** -k,

which tells of more rare alarms the less footage there was to know from.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.errors import InvalidInputError

# The fewest documents to tell a tail from.
FEWEST = 50
# Usual documents between two unusual ones that still are one event.
JOIN = 2
DAY = 86_400.0


class Tail(NamedTuple):
    """The least usual part of normal footage."""

    level: float
    """Scores below it are in the tail."""
    n_peaks: int
    """Stretches of documents in the tail."""
    mean_excess: float
    """Of their lowest scores below the level."""
    n_documents: int
    """All documents that were judged."""


class Interval(NamedTuple):
    """Alarms to expect."""

    low: float
    mean: float
    high: float


def runs(flags: NDArray[np.bool_], join: int = JOIN) -> list[tuple[int, int]]:
    """First and last of each stretch of flagged documents, gaps of up to `join` closed."""
    places = np.flatnonzero(flags)
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) > join + 1)
    starts = places[np.concatenate([[0], breaks + 1])]
    ends = places[np.concatenate([breaks, [len(places) - 1]])]
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]


def tail_of(scores: Array, judged: NDArray[np.bool_]) -> Tail:
    """The tail of the scores of normal documents in time order.

    Of n documents the sqrt(n) lowest: ever more to know the tail from, ever further out.
    """
    n = int(judged.sum())
    if n < FEWEST:
        raise InvalidInputError(
            f"a budget of alerts needs at least {FEWEST} documents of normal footage that are long "
            f"enough to judge, found {n}: learn from more video, or set a threshold"
        )
    level = float(np.quantile(scores[judged], 1 / np.sqrt(n)))
    below = judged & (scores < level)
    peaks = [level - scores[a : b + 1][below[a : b + 1]].min() for a, b in runs(below)]
    if not peaks:
        raise InvalidInputError(
            "a budget of alerts needs documents of different normality, found all alike: "
            "set a threshold"
        )
    return Tail(level, len(peaks), float(np.mean(peaks)), n)


def share_threshold(scores: Array, share: float) -> float:
    """The score below which this share of the documents lies; the paper's example is 0.02."""
    if not 0 < share < 1:
        raise InvalidInputError(f"share must lie between 0 and 1, found {share:g}")
    return float(np.quantile(scores, share))


def budget_threshold(tail: Tail, alerts: float, n_documents: float) -> float:
    """The score below which `alerts` stretches of `n_documents` are expected to lie."""
    if not alerts > 0:
        raise InvalidInputError(f"a budget must be above 0 alerts a day, found {alerts:g}")
    wanted = alerts / (tail.n_peaks / tail.n_documents * n_documents)
    if wanted >= 1:
        return tail.level
    k = tail.n_peaks
    return float(tail.level - k * tail.mean_excess * (wanted ** (-1 / k) - 1))


def alarms_expected(
    tail: Tail, threshold: float, n_documents: float, *, coverage: float = 0.9
) -> Interval:
    """Alarms in so many documents: their mean, and an interval that holds them that often.

    Rate and scale of the tail are drawn from their posteriors, then the alarms themselves.
    """
    rng = np.random.default_rng(0)
    size = 20_000
    rate = rng.gamma(tail.n_peaks + 0.5, 1 / tail.n_documents, size)
    scale = tail.n_peaks * tail.mean_excess / rng.gamma(tail.n_peaks, 1, size)
    mean = rate * n_documents * np.exp(-max(tail.level - threshold, 0.0) / scale)
    drawn = rng.poisson(np.minimum(mean, 1e9))
    low, high = np.quantile(drawn, [(1 - coverage) / 2, (1 + coverage) / 2])
    return Interval(float(low), float(mean.mean()), float(high))
