"""Labelled events that a detector finds, their delays, and its false alarms per hour."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.evaluation.labels import TimeSpan
from habitus.evaluation.metrics import ScoredDocuments
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.scene.thresholds import join_of, runs

SLACK = 1.0
"""Seconds that a detected event may lie beside a labelled one: a document is judged as a whole."""
HOUR = 3600.0
RATES = (1.0, 2.0, 6.0, 30.0)
"""False alarms per hour at which found events are reported."""
MOST_COVERED = 0.5
"""Share of the time beside labels up to which events cover it, and are counted as found."""
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


def match(detected: Sequence[TimeSpan], labelled: Sequence[TimeSpan]) -> Match:
    """Match detected events, in time order, with labels that they overlap within SLACK seconds."""
    events, labels = _spans(detected), _spans(labelled)
    found_by: list[int | None] = []
    for start, end in labels:
        here = (events[:, 0] < end + SLACK) & (start - SLACK < events[:, 1])
        found_by.append(int(here.argmax()) if here.any() else None)
    false_alarms = np.flatnonzero(~_touched(events, labels))
    return Match(found_by, false_alarms.tolist())


def _spans(spans: Sequence[TimeSpan]) -> Array:
    """Return start and end of each: spans x 2."""
    return np.array([(span.start, span.end) for span in spans], dtype=np.float64).reshape(-1, 2)


def _touched(spans: Array, labels: Array) -> Flags:
    """Return whether each span overlaps a label within SLACK seconds."""
    # Labels that start before the end of a span, less those that end before its start.
    before_end = np.searchsorted(np.sort(labels[:, 0] - SLACK), spans[:, 1], side="left")
    before_start = np.searchsorted(np.sort(labels[:, 1] + SLACK), spans[:, 0], side="right")
    return np.asarray(before_end > before_start)


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
    """Return the labelled events found within each rate of false alarms per hour.

    The threshold rises from minus infinity and stops before false alarms exceed the rate for the
    first time: beyond that, they only become fewer by merging. Nor may events cover more than
    `MOST_COVERED` of the time beside labels: one event over all footage says nothing of when.
    Abnormal documents are joined to events as a detector does, and matched as in `match`.
    """
    labels = _spans(labelled)
    return [
        _found(scored, labels, threshold)._replace(rate=rate)
        for (threshold, _), rate in zip(_best_at_rates(scored, labels, rates), rates, strict=True)
    ]


def _best_at_rates(
    scored: ScoredDocuments, labels: Array, rates: Sequence[float]
) -> Iterator[tuple[float, int]]:
    """Yield the lowest threshold that finds the most labels within each rate, and their number."""
    curve = _at_all_thresholds(scored, labels)
    for rate in rates:
        too_many = curve.n_false_alarms > int(rate * scored.seconds / HOUR + 1e-9)
        too_many |= curve.covered > MOST_COVERED
        end = int(too_many.argmax()) if too_many.any() else len(too_many)
        # The lowest threshold has no alarm at all; a higher one finds no fewer labels.
        most = curve.n_found[end - 1]
        yield float(curve.thresholds[np.searchsorted(curve.n_found, most)]), int(most)


class _Thresholds(NamedTuple):
    """What each threshold finds, from the lowest."""

    thresholds: Array
    n_found: Indices
    n_false_alarms: Indices
    covered: Array
    """Share of the judged time beside labels that events cover."""


def _at_all_thresholds(scored: ScoredDocuments, labels: Array) -> _Thresholds:
    """Return what `match` says of the events at each threshold, without joining them.

    Time is cut into pieces, documents and the gaps between them, each of which is part of an event
    from some level of the threshold on. A label is found where a piece that it overlaps is. Events
    are runs of pieces, so that their number is that of the pieces less that of the neighbours; no
    false alarm is one with a piece that overlaps a label.
    """
    pieces, levels = _pieces(scored)
    scores = np.unique(scored.normality[scored.judged])
    thresholds = np.concatenate([[-np.inf], np.nextafter(scores, np.inf)])

    def below(values: Array) -> Indices:
        return np.searchsorted(np.sort(values), thresholds, side="left")

    first = np.searchsorted(pieces[:, 1], labels[:, 0] - SLACK, side="right")
    end = np.searchsorted(pieces[:, 0], labels[:, 1] + SLACK, side="left")
    found_at = np.where(first < end, _of_ranges(np.minimum, levels, first, end), np.inf)
    false = ~_touched(pieces, labels)
    pairs = np.maximum(levels[1:], levels[:-1])[false[1:] | false[:-1]]
    # A run of such pieces from one label to the next has two neighbours with a label: counted once.
    edges = np.flatnonzero(np.diff(false, prepend=True, append=True))
    inner = edges[1:-1].reshape(-1, 2)
    between = _of_ranges(np.maximum, levels, inner[:, 0] - 1, inner[:, 1] + 1)
    n_false_alarms = below(levels[false]) - below(pairs) + below(between)
    beside = false & np.isfinite(levels)
    seconds = np.diff(pieces[beside], axis=1)[np.argsort(levels[beside]), 0]
    covered = np.append(0.0, np.cumsum(seconds))[below(levels[beside])]
    covered /= max(seconds.sum(), np.finfo(float).tiny)
    return _Thresholds(thresholds, below(found_at), n_false_alarms, covered)


def _pieces(scored: ScoredDocuments) -> tuple[Array, Array]:
    """Return start and end of documents and of the gaps between them, and their levels.

    A piece is part of an event if the threshold is above its level.
    """
    times, ends = scored.times, scored.times + scored.clip
    sequence = np.cumsum(np.diff(times, prepend=-np.inf) > 1.5 * scored.clip)
    scores = np.where(scored.judged, scored.normality, np.inf)
    level, n = scores.copy(), len(scores)
    # Usual documents between two unusual ones.
    for step in range(2, min(join_of(scored.clip) + 1, n - 1) + 1):
        both = np.maximum(scores[:-step], scores[step:])
        both[sequence[:-step] != sequence[step:]] = np.inf
        for k in range(1, step):
            inside = level[k : n - step + k]
            np.minimum(inside, both, out=inside)
    pieces, levels = np.empty((2 * n - 1, 2)), np.empty(2 * n - 1)
    pieces[::2] = np.stack([times, ends], axis=1)
    pieces[1::2, 0] = np.minimum(ends[:-1], times[1:])
    pieces[1::2, 1] = np.maximum(ends[:-1], times[1:])
    levels[::2] = level
    joined = sequence[1:] == sequence[:-1]
    levels[1::2] = np.where(joined, np.maximum(level[1:], level[:-1]), np.inf)
    return pieces, levels


def _of_ranges(function: np.ufunc, values: Array, starts: Indices, ends: Indices) -> Array:
    """Return the minimum or maximum of each range of values; any value where a range is empty."""
    bounds = np.stack([starts, ends], axis=1).reshape(-1)
    if not len(bounds):
        return np.empty(0)
    return np.asarray(function.reduceat(np.append(values, np.inf), bounds)[::2])


def found_at_threshold(
    scored: ScoredDocuments, labelled: Sequence[TimeSpan], threshold: float
) -> FoundEvents:
    """Return what is found at a threshold, with the rate of false alarms there."""
    return _found(scored, _spans(labelled), threshold)


def _found(scored: ScoredDocuments, labels: Array, threshold: float) -> FoundEvents:
    abnormal = scored.below(threshold)
    events = np.array(joined_spans(abnormal, scored)).reshape(-1, 2)
    # The first event that ends after the start of a label finds it, or none does.
    first = np.searchsorted(events[:, 1], labels[:, 0] - SLACK, side="right")
    found = np.append(events[:, 0], np.inf)[first] < labels[:, 1] + SLACK
    n_false_alarms = int((~_touched(events, labels)).sum())
    delays = _delays(abnormal, scored, labels)
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
    """Return the share of labelled events that uninformed scores find at rates and at a threshold.

    The scores are shifted against the labels by equal parts of the video: as many events, as long
    and as close together, at the wrong times.
    """
    n = len(scored.times)
    shifts = sorted({round(n * k / (N_SHIFTS + 1)) for k in range(1, N_SHIFTS + 1)} - {0, n})
    report = progress or ignore_progress
    labels, n_labels = _spans(labelled), max(len(labelled), 1)
    at_rates, at_threshold = [], []
    for done, shift in enumerate(shifts, start=1):
        moved = scored.shifted(shift)
        at_rates.append([n_found / n_labels for _, n_found in _best_at_rates(moved, labels, rates)])
        at_threshold.append(_found(moved, labels, threshold).share)
        report(Progress("evaluating", done, len(shifts)))
    return ChanceShares(np.mean(at_rates, axis=0).tolist(), float(np.mean(at_threshold)))


def joined_spans(abnormal: Flags, scored: ScoredDocuments) -> list[Span]:
    """Return abnormal documents joined to events; a gap in the times separates them."""
    times, clip = scored.times, scored.clip
    starts = np.flatnonzero(np.diff(times, prepend=-np.inf) > 1.5 * clip)
    spans = []
    for first, end in zip(starts, [*starts[1:], len(times)], strict=True):
        for a, b in runs(abnormal[first:end], join_of(clip)):
            spans.append(Span(float(times[first + a]), float(times[first + b] + clip)))
    return spans


def _delays(abnormal: Flags, scored: ScoredDocuments, labels: Array) -> Array:
    """Return the time from each label's start to the end of its first abnormal document."""
    ends = np.append(scored.times[abnormal] + scored.clip, np.inf)
    first = ends[np.searchsorted(ends[:-1], labels[:, 0] - SLACK, side="right")]
    here = first - scored.clip < labels[:, 1] + SLACK
    return np.where(here, np.maximum(first - labels[:, 0], 0.0), np.nan)
