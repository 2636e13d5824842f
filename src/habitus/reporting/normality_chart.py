"""Normality over time: laid out for the strip under a film, and as the timeline of the page.

The page has shapes in percent and SVG, so that its timeline fits any width.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.reporting.figures.drawing import behaviour_colour, ink_on
from habitus.scene.detection import Detection
from habitus.scene.events import clock

THRESHOLD_HEIGHT = 0.42
"""Height of the threshold in a chart of height 1; above it, normality is drawn to scale."""
WIDTH, HEIGHT = 1000, 160
"""Size of the drawing, in units of its own."""
MOST_POINTS = 3000
"""Points of the curve; of longer footage, each is the least normal of several documents."""
MOST_QUANTILES = 200
"""Points of the picture of quantiles."""
PILL = 3.4
"""Width of the numbered mark of an event, in percent of the narrowest chart."""
TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
"""Seconds that may lie between two ticks."""

Truth = Sequence[tuple[float, float, str]]
"""Start and end in seconds, and name, of each labelled event."""


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


class Mark(NamedTuple):
    """A mark on the timeline; left and width in percent."""

    left: float
    width: float
    text: str
    colour: str = ""
    ink: str = ""
    lane: int = 0
    """Row of a numbered mark, from the chart upwards."""
    alarm: bool = True


class Chart(NamedTuple):
    """Everything that the template needs to draw the timeline."""

    curve: str
    """Normality, as an SVG path."""
    line: float
    """Distance of the threshold from the top, in units of the drawing."""
    pills: list[Mark]
    """Numbered marks of the moments, in order of their rank."""
    events: list[Mark]
    """Durations of the moments."""
    band: list[Mark]
    """Behaviours."""
    ticks: list[Mark]
    truth: list[Mark]
    """Labelled events."""
    lanes: int
    """Rows of numbered marks."""
    data: dict[str, Any]
    """Values that the script shows under the pointer."""


def chart_of(detection: Detection, timeline: NormalityChart, truth: Truth | None) -> Chart:
    """Return the layout of the timeline of a detection, with labelled events where known."""
    starts = timeline.starts
    events = [
        _mark(
            timeline, starts[span.first], starts[span.last] + timeline.clip, event.explanation
        )._replace(alarm=event.alarm)
        for event, span in zip(detection.moments, detection.moment_spans, strict=True)
    ]
    pills = _pills(events)
    return Chart(
        curve=_curve(timeline),
        line=(1 - THRESHOLD_HEIGHT) * HEIGHT,
        pills=pills,
        events=events,
        band=_band(timeline),
        ticks=_ticks(timeline),
        truth=[_mark(timeline, start, end, text) for start, end, text in truth or ()],
        lanes=max((pill.lane for pill in pills), default=0) + 1,
        data=_data(detection, timeline, events),
    )


def _mark(timeline: NormalityChart, start: float, end: float, text: str) -> Mark:
    """Return a mark from `start` to `end`, in seconds, cut off at the ends of the timeline."""
    whole = timeline.end - timeline.begin
    left = min(max(float(start) - timeline.begin, 0.0), whole)
    right = min(max(float(end) - timeline.begin, left), whole)
    return Mark(round(100 * left / whole, 3), round(100 * (right - left) / whole, 3), text)


def _pills(events: list[Mark]) -> list[Mark]:
    """Return a numbered mark per event, each in the lowest lane with room for it."""
    ends: list[float] = []
    pills = list(events)
    for k in sorted(range(len(events)), key=lambda k: events[k].left):
        event = events[k]
        middle = event.left + event.width / 2
        left = min(max(middle - PILL / 2, 0.0), 100 - PILL)
        free = (lane for lane, end in enumerate(ends) if end <= left)
        lane = next(free, len(ends))
        ends[lane : lane + 1] = [left + PILL]
        pills[k] = event._replace(left=round(left + PILL / 2, 3), lane=lane, text=str(k + 1))
    return pills


def _curve(timeline: NormalityChart) -> str:
    """Return the normality curve, interrupted at unjudged documents and between sequences."""
    whole = timeline.end - timeline.begin
    x = (timeline.starts + timeline.clip / 2 - timeline.begin) / whole * WIDTH
    y = (1 - timeline.heights) * HEIGHT
    step = -(-len(x) // MOST_POINTS)
    parts = []
    judged = ~np.isnan(timeline.heights)
    for first, last, is_judged in equal_runs(judged.astype(np.int64), timeline.first):
        if is_judged:
            groups = (slice(a, min(a + step, last + 1)) for a in range(first, last + 1, step))
            points = [(x[group].mean(), y[group].max()) for group in groups]
            if len(points) == 1:  # a line needs two points to be visible
                points.append((points[0][0] + 0.01, points[0][1]))
            parts.append("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points))
    return "".join(parts)


def _band(timeline: NormalityChart) -> list[Mark]:
    """Return a mark per run of documents of one behaviour."""
    step = -(-len(timeline.starts) // MOST_POINTS)
    starts, behaviours = timeline.starts[::step], timeline.behaviours[::step]
    marks = []
    for first, last, z in equal_runs(behaviours, np.zeros(len(starts), dtype=np.bool_)):
        end = starts[last + 1] if last + 1 < len(starts) else timeline.end
        colour = behaviour_colour(z)
        mark = _mark(timeline, starts[first], end, str(z + 1))
        marks.append(mark._replace(colour=colour, ink=ink_on(colour)))
    return marks


def _ticks(timeline: NormalityChart) -> list[Mark]:
    """Return at most nine round times."""
    whole = timeline.end - timeline.begin
    step = next((s for s in TICKS if whole / s <= 8), TICKS[-1] * -(-int(whole) // TICKS[-1] // 8))
    first = int(np.ceil(timeline.begin / step)) * step
    # A label close to the right edge would not fit.
    times = [t for t in np.arange(first, timeline.end, step) if t <= timeline.end - 0.03 * whole]
    return [_mark(timeline, t, t, clock(t)) for t in times]


class Quantiles(NamedTuple):
    """Rarities of held-out documents against what they should be, in a square of side 100."""

    points: list[tuple[float, float]]
    end: str
    """Nats at the end of both axes."""


def quantiles_of(normality: Array) -> Quantiles:
    """Return the sorted rarities, -normality, against the quantiles of an exponential.

    Normality is ln p of held-out documents: were p uniform, the points would lie on the diagonal.
    """
    n = len(normality)
    expected, seen = -np.log((np.arange(n) + 0.5) / n), np.sort(-normality)[::-1]
    # All of the rarest, and every so many of the others.
    shown = np.unique(np.geomspace(1, n, min(n, MOST_QUANTILES)).astype(np.int64)) - 1
    end = max(float(expected[0]), float(seen[0]))
    return Quantiles(
        [
            (round(100 * x / end, 2), round(100 - 100 * y / end, 2))
            for x, y in zip(expected[shown], seen[shown], strict=True)
        ],
        f"{end:.1f}",
    )


def _data(detection: Detection, timeline: NormalityChart, events: list[Mark]) -> dict[str, Any]:
    """Return the values that the script shows under the pointer."""
    return {
        "begin": timeline.begin,
        "end": timeline.end,
        "clip": timeline.clip,
        "starts": [round(float(t), 2) for t in timeline.starts],
        "normality": [
            float(f"{value:.3g}") if judged else None
            for value, judged in zip(detection.normality, detection.judged, strict=True)
        ],
        "behaviours": (detection.behaviours + 1).tolist(),
        "events": [[event.left, event.left + event.width] for event in events],
    }
