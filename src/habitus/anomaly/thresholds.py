"""Thresholds: a fixed value, a share of the documents, or a budget of alerts per day.

The budget is met by the theory of rare events. Of normal footage that the model has not learnt
from, the least usual documents are taken and joined where they follow each other, as events are;
the excess of each joined run's strongest document over the level is modelled as exponential. With
k runs of mean excess m, the scale being unknown, the probability that the next excess is above y is

    P(excess > y) = (1 + y / (k m)) ** -k,

which predicts more rare alarms the less footage there was to estimate from.
"""

from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags
from habitus.errors import InvalidInputError

FEWEST_DOCUMENTS = 50
"""The fewest judged documents to estimate a tail from."""
JOIN = 2
"""Usual documents between two unusual ones that still belong to one event."""
DAY = 86_400.0
N_DRAWS = 20_000


class Tail(NamedTuple):
    """The least usual part of the scores of normal footage."""

    level: float
    """Scores below it are in the tail."""
    n_peaks: int
    """Runs of consecutive documents in the tail."""
    mean_excess: float
    """Mean distance of the runs' lowest scores below the level."""
    n_documents: int
    """All documents that were judged."""


class ExpectedAlarms(NamedTuple):
    """Expected false alarms: alarms that normal footage of a given length raises."""

    low: float
    """Lower end of the 90 % interval."""
    mean: float
    high: float
    """Upper end of the 90 % interval."""


def runs(flags: Flags, join: int = JOIN) -> list[tuple[int, int]]:
    """Return first and last index of each run of flagged documents.

    Gaps of up to `join` documents are closed.

    Examples
    --------
    >>> runs(np.array([1, 0, 1, 0, 0, 0, 1], dtype=bool), join=2)
    [(0, 2), (6, 6)]
    """
    flagged = np.flatnonzero(flags)
    if not len(flagged):
        return []
    breaks = np.flatnonzero(np.diff(flagged) > join + 1)
    starts = flagged[np.concatenate([[0], breaks + 1])]
    ends = flagged[np.concatenate([breaks, [len(flagged) - 1]])]
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]


def tail_of(scores: Array, judged: Flags, join: int = JOIN) -> Tail:
    """Return the tail of the scores of normal documents in time order.

    The tail holds the sqrt(n) lowest of n scores: ever more to estimate from, ever further out.

    Raises
    ------
    InvalidInputError
        Where fewer than `FEWEST_DOCUMENTS` documents were judged, or all scores are alike.
    """
    n = int(judged.sum())
    if n < FEWEST_DOCUMENTS:
        raise InvalidInputError(
            f"a budget of alerts needs at least {FEWEST_DOCUMENTS} documents of normal footage "
            f"that are long enough to judge, found {n}: learn from more video, or set a threshold",
            parameter="threshold",
        )
    level = float(np.quantile(scores[judged], 1 / np.sqrt(n)))
    below = judged & (scores < level)
    peaks = [level - scores[a : b + 1][below[a : b + 1]].min() for a, b in runs(below, join)]
    if not peaks:
        raise InvalidInputError(
            "a budget of alerts needs documents of different normality, found all alike: "
            "set a threshold",
            parameter="threshold",
        )
    return Tail(level, len(peaks), float(np.mean(peaks)), n)


def share_threshold(scores: Array, share: float) -> float:
    """Return the score below which this share of the documents lies; the paper uses 0.02."""
    if not 0 < share < 1:
        raise InvalidInputError(
            f"share must lie between 0 and 1, found {share:g}", parameter="share"
        )
    return float(np.quantile(scores, share))


def budget_threshold(tail: Tail, alerts: float, n_documents: float) -> float:
    """Return the score below which `alerts` runs of documents are expected in `n_documents`."""
    if not alerts > 0:
        raise InvalidInputError(
            f"a budget must be above 0 alerts per day, found {alerts:g}",
            parameter="alerts_per_day",
        )
    wanted = alerts / (tail.n_peaks / tail.n_documents * n_documents)
    if wanted >= 1:
        return tail.level
    k = tail.n_peaks
    return float(tail.level - k * tail.mean_excess * (wanted ** (-1 / k) - 1))


def expected_alarms(
    tail: Tail, threshold: float, n_documents: float, *, coverage: float = 0.9
) -> ExpectedAlarms:
    """Return the mean number of false alarms in `n_documents`, and an interval that holds it.

    Rate and scale of the tail are drawn from their posteriors, then the number of alarms.
    """
    rng = np.random.default_rng(0)
    rate = rng.gamma(tail.n_peaks + 0.5, 1 / tail.n_documents, N_DRAWS)
    scale = tail.n_peaks * tail.mean_excess / rng.gamma(tail.n_peaks, 1, N_DRAWS)
    mean = rate * n_documents * np.exp(-max(tail.level - threshold, 0.0) / scale)
    drawn = rng.poisson(np.minimum(mean, 1e9))
    low, high = np.quantile(drawn, [(1 - coverage) / 2, (1 + coverage) / 2])
    return ExpectedAlarms(float(low), float(mean.mean()), float(high))
