"""How well normality tells abnormal documents and events from the rest.

Scores are normalities: the lower, the more abnormal. Documents that were not judged are called
normal, so they come last.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.errors import InvalidInputError
from habitus.evaluation.matching import SLACK, Stretch, match
from habitus.model.parameters import Array
from habitus.normality.threshold import runs

HOUR = 3600.0
RATES = (1.0, 2.0, 6.0, 30.0)
"""False alarms an hour that an operator may put up with."""

Flags = NDArray[np.bool_]


class Scored(NamedTuple):
    """Documents of one video in time order, judged."""

    normality: Array
    judged: Flags
    times: Array
    """Start of each, in seconds."""
    clip: float
    """Seconds to a document."""

    @property
    def abnormality(self) -> Array:
        """The higher the more abnormal; documents that were not judged lie below all others."""
        if not self.judged.any():
            return np.zeros(len(self.normality))
        return -np.where(self.judged, self.normality, self.normality[self.judged].max())


class Curve(NamedTuple):
    """Precision and recall, or true and false positives, over all thresholds."""

    x: Array
    y: Array


class FoundAt(NamedTuple):
    """True events found when false alarms may be this frequent."""

    rate: float
    """False alarms an hour that were allowed."""
    threshold: float
    """Documents of lower normality are abnormal."""
    found: NDArray[np.bool_]
    """Whether each true event was found."""
    delays: Array
    """Seconds from the start of each event that was found to the alarm; NaN for the others."""
    n_false: int

    @property
    def share(self) -> float:
        """Of all events."""
        return float(self.found.mean()) if len(self.found) else float("nan")


def check_both(abnormal: Flags) -> None:
    """Refuse a truth that nothing can be told from."""
    if not abnormal.any():
        raise InvalidInputError(
            "the labels call no document abnormal: there is nothing to find, and no curve"
        )
    if abnormal.all():
        raise InvalidInputError(
            "the labels call every document abnormal: there is nothing to tell them from"
        )


def area(abnormality: Array, abnormal: Flags) -> float:
    """Area under the precision-recall curve, by `sklearn.metrics.average_precision_score`."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(abnormal, abnormality))


def roc_area(abnormality: Array, abnormal: Flags) -> float:
    """Area under the ROC curve: how often an abnormal document scores worse than a normal one."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(abnormal, abnormality))


def best_accuracy(abnormality: Array, abnormal: Flags) -> float:
    """Share of documents classified rightly, at the best of all thresholds."""
    order = np.argsort(-abnormality, kind="stable")
    gained = np.cumsum(np.where(abnormal[order], 1, -1))
    whole = np.append(np.diff(abnormality[order]) != 0, True)  # ties are called alike
    return float(((~abnormal).sum() + max(gained[whole].max(initial=0), 0)) / len(abnormal))


def precision_recall(abnormality: Array, abnormal: Flags) -> Curve:
    """The curve, recall on x."""
    from sklearn.metrics import precision_recall_curve

    precision, recall, _ = precision_recall_curve(abnormal, abnormality)
    return Curve(recall, precision)


def roc(abnormality: Array, abnormal: Flags) -> Curve:
    """The curve, false positive rate on x."""
    from sklearn.metrics import roc_curve

    false, true, _ = roc_curve(abnormal, abnormality)
    return Curve(false, true)


class _Alarm(NamedTuple):
    start: float
    end: float


def events_found(
    scored: Scored, truth: Sequence[Stretch], rates: Sequence[float] = RATES
) -> list[FoundAt]:
    """For each rate, the threshold that finds most events without more false alarms than that.

    Alarms are as `habitus detect` joins them, and match a true event as in `matching`. False
    alarms are counted per hour of the footage.
    """
    hours = len(scored.times) * scored.clip / HOUR
    allowed = [int(rate * hours + 1e-9) for rate in rates]
    best: list[FoundAt | None] = [None] * len(rates)
    levels = np.unique(scored.normality[scored.judged])
    for level in [float("-inf"), *np.nextafter(levels, np.inf)]:
        alarms = _alarms(scored, level)
        matched = match(alarms, truth)
        n_false = len(matched.false_alarms)
        for i, (rate, limit) in enumerate(zip(rates, allowed, strict=True)):
            known = best[i]
            if n_false <= limit and (known is None or matched.n_found > known.found.sum()):
                found = np.array([by is not None for by in matched.found_by], dtype=np.bool_)
                delays = _delays(scored, level, truth)
                best[i] = FoundAt(rate, level, found, delays, n_false)
        if n_false > 2 * max(allowed) + 2:  # joining may lower it again, but not by half
            break
    return [found for found in best if found is not None]


def _alarms(scored: Scored, level: float) -> list[_Alarm]:
    times = scored.times
    stretches = runs(scored.judged & (scored.normality < level))
    return [_Alarm(times[a], times[b] + scored.clip) for a, b in stretches]


def _delays(scored: Scored, level: float, truth: Sequence[Stretch]) -> Array:
    """From each event's start to the end of the first abnormal document that overlaps it."""
    below = scored.judged & (scored.normality < level)
    ends = scored.times[below] + scored.clip
    delays = np.full(len(truth), np.nan)
    for i, event in enumerate(truth):
        here = ends[(ends > event.start - SLACK) & (ends - scored.clip < event.end + SLACK)]
        if len(here):
            delays[i] = max(here[0] - event.start, 0.0)
    return delays


class Estimate(NamedTuple):
    """A figure, its chance level, and an interval that holds it nine times out of ten."""

    value: float
    chance: float
    low: float
    high: float


def bootstrap(
    figure: Callable[[Array, Flags], float],
    abnormality: Array,
    abnormal: Flags,
    *,
    block: int = 30,
    n_draws: int = 500,
    seed: int = 0,
) -> tuple[float, float]:
    """Interval of a figure: documents drawn anew in blocks, as neighbours are alike; 5 to 95 %."""
    rng = np.random.default_rng(seed)
    n = len(abnormal)
    block = max(1, min(block, n // 4))
    steps, values = np.arange(block), []
    for _ in range(n_draws):
        starts = rng.integers(0, n, -(-n // block))
        drawn = ((starts[:, None] + steps) % n).reshape(-1)[:n]
        if 0 < abnormal[drawn].sum() < n:
            values.append(figure(abnormality[drawn], abnormal[drawn]))
    low, high = np.quantile(values, [0.05, 0.95]) if values else (np.nan, np.nan)
    return float(low), float(high)
