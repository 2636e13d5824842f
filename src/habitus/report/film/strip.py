"""Normality over time, laid out for a strip: where on it each document, event and line is.

Letters on pictures: matplotlib's own font, smooth, in any script it has.

The strip under an annotated video: what is going on, and normality around the moment.
"""

from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray

from habitus.anomaly.detection import Detection, EventSpan
from habitus.anomaly.events import clock
from habitus.arrays import Array, Image
from habitus.report.figures.drawing import EVENT, INK, PAPER, behaviour_colour, ink_on, rgb

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


def timeline_of(detection: Detection) -> Timeline:
    """The strip of a detection. Times that start anew, as in further videos, are counted on."""
    times: Array = detection.corpus.times
    clip = detection.corpus.clip
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


FAMILY = "DejaVu Sans"  # comes with matplotlib


@lru_cache(maxsize=256)
def lettering(text: str, size: float, bold: bool = False) -> NDArray[np.float32]:
    """How much each pixel is covered by the text, from 0 to 1; `size` is the font's, in pixels.

    All texts of a size have the same height and base line.
    """
    font = get_font(findfont(FontProperties(family=FAMILY, weight="bold" if bold else "normal")))
    font.set_size(size, 72)
    font.set_text(text or " ", 0.0)
    font.draw_glyphs_to_bitmap(antialiased=True)
    glyphs = np.asarray(font.get_image(), dtype=np.float32) / 255
    above, below = round(0.95 * size), round(0.3 * size)
    top = above - (len(glyphs) - round(font.get_descent() / 64))
    line = np.zeros((above + below, glyphs.shape[1]), dtype=np.float32)
    seen = glyphs[max(-top, 0) :][: len(line) - max(top, 0)]
    line[max(top, 0) : max(top, 0) + len(seen)] = seen
    return line


def write(
    picture: Image, text: str, place: tuple[int, int], size: float,
    *, colour: str = PAPER, bold: bool = False,
) -> int:  # fmt: skip
    """Write a text with its upper left corner at (x, y), cut off at the edge; gives its width."""
    cover = lettering(text, size, bold)
    x, y = place
    part = picture[y : y + cover.shape[0], x : x + cover.shape[1]]
    share = cover[: part.shape[0], : part.shape[1], None]
    part[:] = np.round(part + share * (np.array(rgb(colour)) - part)).astype(np.uint8)
    return int(cover.shape[1])


def fitted(text: str, size: float, width: int, *, bold: bool = False) -> str:
    """The text, its end left out for dots where it is wider than `width` pixels.

    >>> fitted("a fairly long explanation", 16, 120)
    'a fairly long…'
    """
    if lettering(text, size, bold).shape[1] <= width:
        return text
    shorter = text
    while shorter and lettering(f"{shorter}…", size, bold).shape[1] > width:
        shorter = shorter[:-1].rstrip()
    return f"{shorter}…"


WINDOW = 240.0
"""Seconds that the strip shows, at most; this share of them past."""
PAST = 0.6
GROUND, GRID, CURVE = "#17191E", "#5A606B", "#D9DCE1"
# Size of the letters where a line holds two, as a share of that where it holds one.
TWO_LINES = 0.74
# What is still to come is dimmed to this share.
TO_COME = 0.5


class Strip(NamedTuple):
    """Sizes of the strip, in pixels: a line of letters, a chart, a band of behaviours."""

    width: int
    letters: int
    chart: int
    band: int

    @property
    def height(self) -> int:
        """Of all three and the margins between them; even, as H.264 wants it."""
        return (self.letters * 2 + self.chart + self.band + self.letters) // 2 * 2

    @property
    def top(self) -> int:
        """Where the chart begins."""
        return self.letters * 2 + self.letters // 4


def strip_for(width: int) -> Strip:
    """The strip under a video of a width."""
    return Strip(width, max(11, round(width / 52)), round(width / 14), round(width / 50))


def window_at(time: float, timeline: Timeline) -> tuple[float, float]:
    """The seconds that the strip shows at a time: all, or those around it."""
    if timeline.end - timeline.begin <= WINDOW:
        return timeline.begin, timeline.end
    start = min(max(time - PAST * WINDOW, timeline.begin), timeline.end - WINDOW)
    return start, start + WINDOW


def draw_chart(
    strip: Strip, timeline: Timeline, spans: list[EventSpan], window: tuple[float, float]
) -> Image:
    """The strip without its letters: everything that does not change within a document."""
    picture = np.full((strip.height, strip.width, 3), rgb(GROUND), dtype=np.uint8)
    scale = strip.width / (window[1] - window[0])
    x = np.round((timeline.starts - window[0]) * scale).astype(np.int64)
    wide = max(1, round(timeline.clip * scale))
    shown = np.flatnonzero((x + wide >= 0) & (x < strip.width))
    foot = strip.top + strip.chart
    for first, last, _ in spans:
        left, right = max(int(x[first]), 0), max(int(x[last]) + wide, 0)
        picture[strip.top : foot, left:right] = np.array(rgb(EVENT)) * 0.55
    line = foot - round(LINE * strip.chart)
    for dash in range(0, strip.width, 12):
        cv2.line(picture, (dash, line), (dash + 6, line), rgb(GRID), 1)
    _curve(picture, timeline, shown, x + wide // 2, strip)
    _band(picture, timeline, shown, x, wide, strip)
    write(picture, "threshold", (6, line + 2), strip.letters * 0.7, colour="#9AA1AD")
    return picture


def _curve(
    picture: Image, timeline: Timeline, shown: np.ndarray, x: np.ndarray, strip: Strip
) -> None:
    foot = strip.top + strip.chart
    y = foot - 2 - timeline.heights * (strip.chart - 4)
    judged = ~np.isnan(timeline.heights[shown])
    for first, last, yes in stretches(judged.astype(np.int64), timeline.first[shown]):
        if yes:
            here = shown[first : last + 1]
            points = np.stack([x[here], y[here]], axis=-1).round().astype(np.int32)
            cv2.polylines(picture, [points], False, rgb(CURVE), 2, cv2.LINE_AA)


def _band(
    picture: Image, timeline: Timeline, shown: np.ndarray, x: np.ndarray, wide: int, strip: Strip
) -> None:
    """Behaviours along the foot, each in its colour and with its number where that has room."""
    top = strip.top + strip.chart + 3
    letters = strip.band * 0.72
    for first, last, z in stretches(timeline.behaviours[shown], timeline.first[shown]):
        left, right = max(int(x[shown[first]]), 0), int(x[shown[last]]) + wide
        colour = behaviour_colour(z)
        picture[top : top + strip.band, left:right] = rgb(colour)
        text = lettering(str(z + 1), letters, True).shape[1]
        if right - left > text + 4:
            place = ((left + min(right, strip.width) - text) // 2, top + 1)
            write(picture, str(z + 1), place, letters, colour=ink_on(colour), bold=True)


def draw_strip(
    chart: Image,
    strip: Strip,
    time: float,
    window: tuple[float, float],
    behaviour: int | None,
    event: tuple[int, str] | None,
) -> Image:
    """The chart with its cursor at a time, and the line of letters above it."""
    picture = chart.copy()
    cursor = round((time - window[0]) / (window[1] - window[0]) * strip.width)
    if 0 <= cursor < strip.width:
        rest = picture[strip.top :, cursor:]
        rest[:] = (rest * TO_COME).astype(np.uint8)
        cv2.line(picture, (cursor, strip.top - 2), (cursor, strip.height - 1), rgb(PAPER), 2)
    size, row = float(strip.letters), strip.letters * 2
    x = 8 + write(picture, clock(int(time)), (8, strip.letters // 3), size) + strip.letters
    x = max(x, strip.letters * 5)
    if behaviour is not None:
        x += _chip(picture, f"behaviour {behaviour + 1}", x, strip, behaviour_colour(behaviour))
    if event is not None:
        picture[:row, x:] = rgb(EVENT)
        _announce(picture, f"event {event[0]}: {event[1]}", x + strip.letters, strip)
    return picture


def _chip(picture: Image, text: str, x: int, strip: Strip, colour: str) -> int:
    """A text on a ground of its own; gives how much room it took."""
    width = int(lettering(text, strip.letters, True).shape[1]) + 2 * strip.letters
    picture[: strip.letters * 2, x : x + width] = rgb(colour)
    place = (x + strip.letters, strip.letters // 3)
    write(picture, text, place, strip.letters, colour=ink_on(colour), bold=True)
    return width


def _announce(picture: Image, text: str, x: int, strip: Strip) -> None:
    """An event's text: in one line, smaller where it is long; in two where it is longer still."""
    room = strip.width - x - strip.letters // 2
    for size in (strip.letters * share for share in (1.0, 0.9, 0.8)):
        if lettering(text, size, True).shape[1] <= room:
            place = (x, round(strip.letters - 0.64 * size))
            write(picture, text, place, size, colour=INK, bold=True)
            return
    size = strip.letters * TWO_LINES
    for n, line in enumerate(_two_lines(text, size, room)):
        place = (x, round(1 + n * 0.97 * strip.letters))
        write(picture, fitted(line, size, room, bold=True), place, size, colour=INK, bold=True)


def _two_lines(text: str, size: float, room: int) -> tuple[str, str]:
    """As many words as there is room for, and the others."""
    words = text.split(" ")
    fit = (
        n for n in range(len(words), 0, -1)
        if lettering(" ".join(words[:n]), size, True).shape[1] <= room
    )  # fmt: skip
    n = next(fit, 1)
    return " ".join(words[:n]), " ".join(words[n:])


def event_at(document: int, detection: Detection) -> tuple[int, str] | None:
    """Return number, from 1, and explanation of the event that a document belongs to."""
    for k, span in enumerate(detection.event_spans):
        if span.first <= document <= span.last:
            return k + 1, detection.events[k].explanation
    return None
