"""True events found, how late, and at how many false alarms an hour."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from habitus.evaluation.matching import SLACK, Stretch
from habitus.evaluation.scored import Flags, Scored
from habitus.model.parameters import Array
from habitus.normality.threshold import runs

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
