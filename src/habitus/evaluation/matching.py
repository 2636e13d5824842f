"""Labelled events that a detector finds, their delays, and its false alarms per hour."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from habitus.anomaly.thresholds import runs
from habitus.arrays import Array, Flags
from habitus.evaluation.labels import TimeSpan
from habitus.evaluation.metrics import ScoredDocuments
from habitus.progress import Progress, ProgressCallback, ignore_progress

SLACK = 1.0
"""Seconds that a detected event may lie beside a labelled one: a document is judged as a whole."""
HOUR = 3600.0
RATES = (1.0, 2.0, 6.0, 30.0)
"""False alarms per hour at which found events are reported."""
N_SHIFTS = 39
"""Shifts of the scores in time that the chance level is the mean over."""


class Match(NamedTuple):
    """Labelled and detected events, matched where they overlap."""

    found_by: list[int | None]
    """Index of the first detected event that overlaps each labelled one, or None."""
    false_alarms: list[int]
    """Indices of the detected events that overlap no labelled one."""

    @property
    def n_found(self) -> int:
        """Number of labelled events with a detected one."""
        return sum(detected is not None for detected in self.found_by)


def match(
    detected: Sequence[TimeSpan], labelled: Sequence[TimeSpan], *, slack: float = SLACK
) -> Match:
    """Match detected with labelled events where they overlap within `slack` seconds.

    Parameters
    ----------
    detected
        Events of a detector, in time order.
    labelled
        Labels.
    slack
        Seconds that an event may lie beside a label and still match it.
    """

    def overlap(one: TimeSpan, other: TimeSpan) -> bool:
        return one.start < other.end + slack and other.start - slack < one.end

    found_by = [
        next((k for k, event in enumerate(detected) if overlap(event, label)), None)
        for label in labelled
    ]
    false_alarms = [
        k
        for k, event in enumerate(detected)
        if not any(overlap(event, label) for label in labelled)
    ]
    return Match(found_by, false_alarms)


class FoundEvents(NamedTuple):
    """Labelled events found at one threshold."""

    rate: float
    """False alarms per hour: those allowed, or those at a given threshold."""
    threshold: float
    """Documents of lower normality are abnormal."""
    found: Flags
    """Whether each labelled event was found."""
    delays: Array
    """Seconds from the start of each found event to its detection; NaN for the others."""
    n_false_alarms: int
    chance: float = float("nan")
    """Share of labelled events that the same scores, shifted in time, find, if computed."""

    @property
    def share(self) -> float:
        """Share of labelled events that were found; NaN without any."""
        return float(self.found.mean()) if len(self.found) else float("nan")

    @property
    def median_delay(self) -> float:
        """Median delay of the found events in seconds; NaN without any."""
        return float(np.median(self.delays[self.found])) if self.found.any() else float("nan")


class Span(NamedTuple):
    """Start and end in seconds."""

    start: float
    end: float


def found_at_rates(
    scored: ScoredDocuments, labelled: Sequence[TimeSpan], rates: Sequence[float] = RATES
) -> list[FoundEvents]:
    """Return the labelled events found within each rate of false alarms.

    The threshold rises from minus infinity and stops before false alarms exceed the rate for the
    first time: beyond that, they only become fewer by merging. Abnormal documents are joined to
    events as a detector does, and matched as in `match`.

    Parameters
    ----------
    scored
        Normality of the documents of one video.
    labelled
        Labels.
    rates
        False alarms allowed per hour of footage.
    """
    allowed = [int(rate * scored.seconds / HOUR + 1e-9) for rate in rates]
    best: dict[int, _Step] = {}
    for step in _steps(scored, labelled, max(allowed, default=0)):
        for i, limit in enumerate(allowed):
            if step.n_false_alarms > limit:
                allowed[i] = -1
            elif i not in best or step.found.sum() > best[i].found.sum():
                best[i] = step
    return [
        found_at_threshold(scored, labelled, best[i].threshold)._replace(rate=rate)
        for i, rate in enumerate(rates)
    ]


class _Step(NamedTuple):
    threshold: float
    found: Flags
    n_false_alarms: int


def _steps(scored: ScoredDocuments, labelled: Sequence[TimeSpan], most: int) -> Iterator[_Step]:
    """Yield what each threshold finds, from the lowest, up to `most` false alarms."""
    levels = np.unique(scored.normality[scored.judged])
    for level in [float("-inf"), *np.nextafter(levels, np.inf)]:
        step = _Step(float(level), *_match_at_once(scored.below(level), scored, labelled))
        if step.n_false_alarms > most:
            return
        yield step


def _match_at_once(
    abnormal: Flags, scored: ScoredDocuments, labelled: Sequence[TimeSpan]
) -> tuple[Flags, int]:
    """Return whether each label was found and the number of false alarms, as `match` does."""
    events = np.array(joined_spans(abnormal, scored)).reshape(-1, 2)
    labels = np.array([(label.start, label.end) for label in labelled]).reshape(-1, 2)
    overlap = events[:, :1] < labels[:, 1] + SLACK
    overlap &= labels[:, 0] - SLACK < events[:, 1:]
    return np.asarray(overlap.any(axis=0)), int((~overlap.any(axis=1)).sum())


def found_at_threshold(
    scored: ScoredDocuments, labelled: Sequence[TimeSpan], threshold: float
) -> FoundEvents:
    """Return what is found at a threshold, with the rate of false alarms there."""
    return found_by_decisions(scored.below(threshold), scored, labelled, threshold)


def found_by_decisions(
    abnormal: Flags, scored: ScoredDocuments, labelled: Sequence[TimeSpan], threshold: float
) -> FoundEvents:
    """Return what is found if exactly the documents flagged in `abnormal` are abnormal."""
    found, n_false_alarms = _match_at_once(abnormal, scored, labelled)
    delays = _delays(abnormal, scored, labelled)
    # A short label may lie between two abnormal documents of one event: it has no delay.
    delays[found & np.isnan(delays)] = 0.0
    rate = n_false_alarms * HOUR / scored.seconds
    return FoundEvents(rate, threshold, found, delays, n_false_alarms)


class ChanceShares(NamedTuple):
    """Mean share of labelled events that scores shifted in time find."""

    at_rates: list[float]
    at_threshold: float


def chance_of_finding(
    scored: ScoredDocuments,
    labelled: Sequence[TimeSpan],
    rates: Sequence[float],
    threshold: float,
    progress: ProgressCallback | None = None,
) -> ChanceShares:
    """Return the share of labelled events that uninformed scores find.

    The scores are shifted against the labels by equal parts of the video: as many events, as long
    and as close together, at the wrong times.

    Parameters
    ----------
    scored, labelled, rates
        As in `found_at_rates`.
    threshold
        Threshold of the detector.
    progress
        Called after each shift.
    """
    n = len(scored.times)
    shifts = sorted({round(n * k / (N_SHIFTS + 1)) for k in range(1, N_SHIFTS + 1)} - {0, n})
    tell = progress or ignore_progress
    at_rates, at_threshold = [], []
    for done, shift in enumerate(shifts, start=1):
        moved = scored.shifted(shift)
        at_rates.append([found.share for found in found_at_rates(moved, labelled, rates)])
        at_threshold.append(found_at_threshold(moved, labelled, threshold).share)
        tell(Progress("evaluating", done, len(shifts)))
    return ChanceShares(np.mean(at_rates, axis=0).tolist(), float(np.mean(at_threshold)))


def joined_spans(abnormal: Flags, scored: ScoredDocuments) -> list[Span]:
    """Return abnormal documents joined to events; a gap in the times separates them."""
    times, clip = scored.times, scored.clip
    starts = np.flatnonzero(np.diff(times, prepend=-np.inf) > 1.5 * clip)
    spans = []
    for first, end in zip(starts, [*starts[1:], len(times)], strict=True):
        for a, b in runs(abnormal[first:end]):
            spans.append(Span(float(times[first + a]), float(times[first + b] + clip)))
    return spans


def _delays(abnormal: Flags, scored: ScoredDocuments, labelled: Sequence[TimeSpan]) -> Array:
    """Return the time from each label's start to the end of its first abnormal document."""
    ends = scored.times[abnormal] + scored.clip
    delays = np.full(len(labelled), np.nan)
    for i, label in enumerate(labelled):
        here = ends[(ends > label.start - SLACK) & (ends - scored.clip < label.end + SLACK)]
        if len(here):
            delays[i] = max(here[0] - label.start, 0.0)
    return delays
