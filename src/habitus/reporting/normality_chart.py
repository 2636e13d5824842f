"""Normality over time, laid out for the chart of a page and for the strip under a film."""

from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.scene.detection import Detection

THRESHOLD_HEIGHT = 0.42
"""Height of the threshold in a chart of height 1; above it, normality is drawn to scale."""


class NormalityChart(NamedTuple):
    """Documents in a chart of height 1, with 0 at the bottom."""

    starts: Array
    """Seconds at which each document starts; increasing, also across sequences."""
    clip: float
    """Duration of each document in seconds."""
    heights: Array
    """Height of each document's normality; NaN where it was not judged."""
    behaviours: Indices
    """Behaviour of each document, counted from 0."""
    first: Flags
    """Whether each document is the first of a sequence."""

    @property
    def begin(self) -> float:
        """Start of the first document."""
        return float(self.starts[0]) if len(self.starts) else 0.0

    @property
    def end(self) -> float:
        """End of the last document."""
        return float(self.starts[-1]) + self.clip if len(self.starts) else 1.0


def normality_chart(detection: Detection) -> NormalityChart:
    """Return the timeline of a detection.

    Where times start again, as with several videos, documents are counted on from the first.
    """
    times: Array = detection.corpus.times
    clip = detection.corpus.clip
    if len(times) > 1 and (np.diff(times) <= 0).any():
        times = np.arange(len(times), dtype=np.float64) * clip
    heights = chart_heights(detection.normality, detection.threshold, detection.judged)
    return NormalityChart(times, clip, heights, detection.behaviours, detection.corpus.first)


def chart_heights(normality: Array, threshold: float, judged: Flags) -> Array:
    """Return heights from 0 to 1, to scale above the threshold, compressed below it; or NaN.

    The most abnormal documents lie hundreds of times further below the threshold than normal ones
    vary; to scale, nothing else would be visible.

    >>> chart_heights(np.array([0.0, -1.0, -3.0]), -1.0, np.array([True, True, True])).round(3)
    array([1.   , 0.42 , 0.027])
    """
    line = THRESHOLD_HEIGHT
    top = max(float(normality[judged].max(initial=threshold)), threshold + 1e-9)
    above = (normality - threshold) / (top - threshold)
    # Same slope on both sides of the threshold.
    compressed = line * np.exp(np.minimum(above, 0) * (1 - line) / line)
    heights = np.where(above >= 0, line + (1 - line) * above, compressed)
    return np.where(judged, np.minimum(heights, 1.0), np.nan)


def equal_runs(values: Indices, breaks: Flags) -> list[tuple[int, int, int]]:
    """Return first index, last index and value of each run of equal values, cut at `breaks`.

    >>> equal_runs(np.array([2, 2, 2, 5]), np.array([True, False, True, False]))
    [(0, 1, 2), (2, 2, 2), (3, 3, 5)]
    """
    if not len(values):
        return []
    opens = breaks | (np.diff(values, prepend=values[0] - 1) != 0)
    opens[0] = True
    starts = np.flatnonzero(opens)
    ends = np.append(starts[1:], len(values)) - 1
    return [(int(a), int(b), int(values[a])) for a, b in zip(starts, ends, strict=True)]
