"""Judged documents of one video, as all measures take them.

Which of the true events were found, and which alarms were false.

True events found, how late, and at how many false alarms an hour.

How well normality tells abnormal documents and events from the rest.

Scores are normalities: the lower, the more abnormal. Documents that were not judged are called
normal, so they come last.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from habitus.anomaly.thresholds import runs
from habitus.arrays import Array, Flags
from habitus.errors import InvalidInputError


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

    @property
    def seconds(self) -> float:
        """Of footage."""
        return len(self.times) * self.clip

    def below(self, threshold: float) -> Flags:
        """Documents that are abnormal at a threshold."""
        return np.asarray(self.judged & (self.normality < threshold))

    def shifted(self, n: int) -> "Scored":
        """The same scores, each `n` documents later and the last ones first."""
        return self._replace(normality=np.roll(self.normality, n), judged=np.roll(self.judged, n))


# Seconds that an alarm may lie beside the truth: a document is judged as a whole.
SLACK = 1.0


class Stretch(Protocol):
    """Anything that starts and ends, in seconds."""

    @property
    def start(self) -> float:
        """When it starts."""
        ...

    @property
    def end(self) -> float:
        """When it ends."""
        ...


class Match(NamedTuple):
    """True events and alarms, set against each other."""

    found_by: list[int | None]
    """For each true event: the first alarm that overlaps it, or None."""
    false_alarms: list[int]
    """Alarms that overlap no true event."""

    @property
    def n_found(self) -> int:
        """True events with an alarm."""
        return sum(alarm is not None for alarm in self.found_by)


def match(alarms: Sequence[Stretch], truth: Sequence[Stretch], *, slack: float = SLACK) -> Match:
    """Set alarms against the truth; they match where they overlap, give or take `slack`."""

    def overlap(alarm: Stretch, event: Stretch) -> bool:
        return alarm.start < event.end + slack and event.start - slack < alarm.end

    found_by = [
        next((k for k, alarm in enumerate(alarms) if overlap(alarm, event)), None)
        for event in truth
    ]
    false_alarms = [
        k for k, alarm in enumerate(alarms) if not any(overlap(alarm, event) for event in truth)
    ]
    return Match(found_by, false_alarms)


HOUR = 3600.0
RATES = (1.0, 2.0, 6.0, 30.0)
"""False alarms an hour that an operator may put up with."""
N_SHIFTS = 39
"""Shifts of the scores in time that the chance level is a mean of."""


class FoundAt(NamedTuple):
    """True events found when false alarms may be this frequent."""

    rate: float
    """False alarms an hour that were allowed."""
    threshold: float
    """Documents of lower normality are abnormal."""
    found: Flags
    """Whether each true event was found."""
    delays: Array
    """Seconds from the start of each event that was found to the alarm; NaN for the others."""
    n_false: int

    @property
    def share(self) -> float:
        """Of all events."""
        return float(self.found.mean()) if len(self.found) else float("nan")

    @property
    def delay(self) -> float:
        """Median over the events that were found, in seconds; NaN if none was."""
        return float(np.median(self.delays[self.found])) if self.found.any() else float("nan")


class Alarm(NamedTuple):
    """From the first to the end of the last document of an alarm, in seconds."""

    start: float
    end: float


def events_found(
    scored: Scored, truth: Sequence[Stretch], rates: Sequence[float] = RATES
) -> list[FoundAt]:
    """For each rate, the events found before false alarms become more frequent than that.

    The threshold is raised from where nothing is abnormal, and stops before false alarms exceed the
    rate for the first time: further on, alarms only become fewer by growing into each other.
    Alarms are as `habitus detect` joins them, and match a true event as in `matching`. False
    alarms are counted per hour of the footage.
    """
    allowed = [int(rate * scored.seconds / HOUR + 1e-9) for rate in rates]
    best: dict[int, _Step] = {}
    for step in _steps(scored, truth, max(allowed, default=0)):
        for i, limit in enumerate(allowed):
            if step.n_false > limit:
                allowed[i] = -1
            elif i not in best or step.found.sum() > best[i].found.sum():
                best[i] = step
    return [
        found_at(scored, truth, best[i].threshold)._replace(rate=rate)
        for i, rate in enumerate(rates)
    ]


class _Step(NamedTuple):
    threshold: float
    found: Flags
    n_false: int


def _steps(scored: Scored, truth: Sequence[Stretch], most: int) -> Iterator[_Step]:
    """What is found as the threshold rises, until false alarms are more than `most`."""
    levels = np.unique(scored.normality[scored.judged])
    for level in [float("-inf"), *np.nextafter(levels, np.inf)]:
        step = _Step(float(level), *_matched(scored.below(level), scored, truth))
        if step.n_false > most:
            return
        yield step


def _matched(below: Flags, scored: Scored, truth: Sequence[Stretch]) -> tuple[Flags, int]:
    """Whether each event was found, and the number of false alarms: as `match`, at once."""
    alarms = np.array(alarms_of(below, scored)).reshape(-1, 2)
    events = np.array([(event.start, event.end) for event in truth]).reshape(-1, 2)
    overlap = alarms[:, :1] < events[:, 1] + SLACK
    overlap &= events[:, 0] - SLACK < alarms[:, 1:]
    return np.asarray(overlap.any(axis=0)), int((~overlap.any(axis=1)).sum())


def found_at(scored: Scored, truth: Sequence[Stretch], threshold: float) -> FoundAt:
    """What is found at a threshold; the rate is that of the false alarms there."""
    return found_by(scored.below(threshold), scored, truth, threshold)


def found_by(below: Flags, scored: Scored, truth: Sequence[Stretch], threshold: float) -> FoundAt:
    """What is found where just these documents are called abnormal."""
    found, n_false = _matched(below, scored, truth)
    delays = _delays(below, scored, truth)
    # A short event may lie between two documents of an alarm that goes on: nobody has to wait.
    delays[found & np.isnan(delays)] = 0.0
    return FoundAt(n_false * HOUR / scored.seconds, threshold, found, delays, n_false)


def chance_of_events(
    scored: Scored, truth: Sequence[Stretch], rates: Sequence[float], threshold: float | None
) -> tuple[list[float], float]:
    """Share of events that scores find which know nothing of them, at each rate and a threshold.

    The scores themselves, shifted in time against the truth by equal parts of the video: as many
    alarms, as long and as close together as they are, in the wrong places.
    """
    n = len(scored.times)
    shifts = sorted({round(n * k / (N_SHIFTS + 1)) for k in range(1, N_SHIFTS + 1)} - {0, n})
    at_rates = [[f.share for f in events_found(scored.shifted(k), truth, rates)] for k in shifts]
    level = float("-inf") if threshold is None else threshold
    at_threshold = [found_at(scored.shifted(k), truth, level).share for k in shifts]
    return np.mean(at_rates, axis=0).tolist(), float(np.mean(at_threshold))


def alarms_of(below: Flags, scored: Scored) -> list[Alarm]:
    """Abnormal documents that follow each other, joined; what is lost between them parts them."""
    times, clip = scored.times, scored.clip
    starts = np.flatnonzero(np.diff(times, prepend=-np.inf) > 1.5 * clip)
    alarms = []
    for first, end in zip(starts, [*starts[1:], len(times)], strict=True):
        for a, b in runs(below[first:end]):
            alarms.append(Alarm(float(times[first + a]), float(times[first + b] + clip)))
    return alarms


def _delays(below: Flags, scored: Scored, truth: Sequence[Stretch]) -> Array:
    """From each event's start to the end of the first abnormal document that overlaps it."""
    ends = scored.times[below] + scored.clip
    delays = np.full(len(truth), np.nan)
    for i, event in enumerate(truth):
        here = ends[(ends > event.start - SLACK) & (ends - scored.clip < event.end + SLACK)]
        if len(here):
            delays[i] = max(here[0] - event.start, 0.0)
    return delays


__all__ = [
    "HOUR", "RATES", "Curve", "Estimate", "Flags", "FoundAt", "Scored", "area", "best_accuracy",
    "bootstrap", "check_both", "events_found", "found_at", "precision_recall", "roc", "roc_area",
]  # fmt: skip


class Curve(NamedTuple):
    """Precision and recall, or true and false positives, over all thresholds."""

    x: Array
    y: Array


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


class _Counts(NamedTuple):
    """Abnormal and normal documents at or above each score, the highest first; ties together."""

    true: Array
    false: Array


def _counts(abnormality: Array, abnormal: Flags) -> _Counts:
    check_both(abnormal)
    order = np.argsort(-abnormality, kind="stable")
    last = np.append(np.diff(abnormality[order]) != 0, True)
    true = np.cumsum(abnormal[order], dtype=np.float64)[last]
    return _Counts(true, np.flatnonzero(last) + 1 - true)


def area(abnormality: Array, abnormal: Flags) -> float:
    """Area under the precision-recall curve, as `sklearn.metrics.average_precision_score` has it.

    Precision at each score, weighted by the recall that it adds: no line is drawn between points.
    """
    true, false = _counts(abnormality, abnormal)
    return float((np.diff(true, prepend=0.0) * true / (true + false)).sum() / true[-1])


def roc_area(abnormality: Array, abnormal: Flags) -> float:
    """Area under the ROC curve: how often an abnormal document scores worse than a normal one.

    Ties count half, as in `sklearn.metrics.roc_auc_score`.
    """
    true, false = _counts(abnormality, abnormal)
    gained = np.diff(false, prepend=0.0)
    return float((gained * (true - np.diff(true, prepend=0.0) / 2)).sum() / (true[-1] * false[-1]))


def best_accuracy(abnormality: Array, abnormal: Flags) -> float:
    """Share of documents classified rightly, at the best of all thresholds."""
    true, false = _counts(abnormality, abnormal)
    return float((false[-1] + max((true - false).max(), 0.0)) / len(abnormal))


def precision_recall(abnormality: Array, abnormal: Flags) -> Curve:
    """The curve, recall on x from 1 down to 0, as `sklearn.metrics.precision_recall_curve`."""
    true, false = _counts(abnormality, abnormal)
    recall, precision = true / true[-1], true / (true + false)
    return Curve(np.append(recall[::-1], 0.0), np.append(precision[::-1], 1.0))


def roc(abnormality: Array, abnormal: Flags) -> Curve:
    """The curve, false positive rate on x, as `sklearn.metrics.roc_curve`, every point of it."""
    true, false = _counts(abnormality, abnormal)
    return Curve(np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1]))


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
    """Interval of a figure: documents drawn anew in blocks, as neighbours are alike; 5 to 95 %.

    Draws without both kinds of documents, or of which the figure is NaN, are left out.
    """
    rng = np.random.default_rng(seed)
    n = len(abnormal)
    block = max(1, min(block, n // 4))
    steps, values = np.arange(block), []
    for _ in range(n_draws):
        starts = rng.integers(0, n, -(-n // block))
        drawn = ((starts[:, None] + steps) % n).reshape(-1)[:n]
        if 0 < abnormal[drawn].sum() < n:
            values.append(figure(abnormality[drawn], abnormal[drawn]))
    known = np.array(values)[np.isfinite(values)]
    low, high = np.quantile(known, [0.05, 0.95]) if len(known) else (np.nan, np.nan)
    return float(low), float(high)
