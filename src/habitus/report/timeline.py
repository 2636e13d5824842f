"""Normality over time, laid out for a strip: where on it each document, event and line is."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.events import Detection
from habitus.model.parameters import Array

LINE = 0.42
"""Height of the threshold; what is above it is to scale."""


class Timeline(NamedTuple):
    """Documents on a strip of height 1, 0 at its foot."""

    starts: Array
    """Seconds at which each document starts; rising, whatever sequences there are."""
    clip: float
    """Seconds that each lasts."""
    heights: Array
    """NaN where a document was not judged."""
    behaviours: NDArray[np.int64]
    first: NDArray[np.bool_]
    """Whether each opens a sequence."""

    @property
    def begin(self) -> float:
        """When the first document starts."""
        return float(self.starts[0]) if len(self.starts) else 0.0

    @property
    def end(self) -> float:
        """When the last document ends."""
        return float(self.starts[-1]) + self.clip if len(self.starts) else 1.0


def timeline_of(detection: Detection, clip: float) -> Timeline:
    """The strip of a detection. Times that start anew, as in further videos, are counted on."""
    times: Array = detection.corpus.times
    if len(times) > 1 and (np.diff(times) <= 0).any():
        times = np.arange(len(times), dtype=np.float64) * clip
    heights = heights_of(detection.normality, detection.threshold, detection.judged)
    return Timeline(times, clip, heights, detection.behaviours, detection.corpus.first)


def heights_of(normality: Array, threshold: float, judged: NDArray[np.bool_]) -> Array:
    """Heights from 0 to 1: to scale above the threshold; below it ever closer to 0.

    The least usual documents are hundreds of times as far down as usual ones vary: to scale, there
    would be nothing else to see.

    >>> heights_of(np.array([0.0, -1.0, -3.0]), -1.0, np.array([True, True, True])).round(3)
    array([1.   , 0.42 , 0.027])
    """
    top = max(float(normality[judged].max(initial=threshold)), threshold + 1e-9)
    above = (normality - threshold) / (top - threshold)
    # The slope goes on through the threshold.
    squashed = LINE * np.exp(np.minimum(above, 0) * (1 - LINE) / LINE)
    heights = np.where(above >= 0, LINE + (1 - LINE) * above, squashed)
    return np.where(judged, np.minimum(heights, 1.0), np.nan)


def stretches(values: NDArray[np.int64], breaks: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """First, last and value of each stretch of equal values that no break cuts.

    >>> stretches(np.array([2, 2, 2, 5]), np.array([True, False, True, False]))
    [(0, 1, 2), (2, 2, 2), (3, 3, 5)]
    """
    if not len(values):
        return []
    opens = breaks | (np.diff(values, prepend=values[0] - 1) != 0)
    opens[0] = True
    starts = np.flatnonzero(opens)
    ends = np.append(starts[1:], len(values)) - 1
    return [(int(a), int(b), int(values[a])) for a, b in zip(starts, ends, strict=True)]
