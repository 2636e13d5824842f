"""The strip under an annotated video: behaviour, event, and normality around the current time."""

from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np

from habitus.arrays import Image, Indices
from habitus.reporting.figures.drawing import (
    EVENT,
    INK,
    PAPER,
    behaviour_colour,
    draw_text,
    ink_on,
    rgb,
    shortened,
    text_width,
)
from habitus.reporting.normality_chart import THRESHOLD_HEIGHT, NormalityChart, equal_runs
from habitus.scene.detection import Detection, EventSpan
from habitus.scene.events import clock

WINDOW = 240.0
"""Seconds that the strip shows at most."""
PAST = 0.6
"""Share of the window that lies before the current time."""
GROUND, DASHES, CURVE, LABEL = "#17191E", "#5A606B", "#D9DCE1", "#9AA1AD"
# Brightness of the part of the chart that is still to come.
TO_COME = 0.5
# Font sizes of an event's text, as shares of the strip's: the largest that fits on one line; else
# two lines.
ONE_LINE, TWO_LINES = (1.0, 0.9, 0.8), 0.74


class StripSizes(NamedTuple):
    """Sizes of the strip in pixels: a line of text, a chart, a band of behaviours."""

    width: int
    font: int
    chart: int
    band: int

    @property
    def height(self) -> int:
        """Height of all three with the margins between them; even, as H.264 needs it."""
        return (self.font * 2 + self.chart + self.band + self.font) // 2 * 2

    @property
    def chart_top(self) -> int:
        """First row of the chart."""
        return self.font * 2 + self.font // 4

    @property
    def chart_bottom(self) -> int:
        """First row below the chart."""
        return self.chart_top + self.chart


def strip_sizes(width: int) -> StripSizes:
    """Return the sizes of the strip under a video of `width` pixels."""
    return StripSizes(width, max(11, round(width / 52)), round(width / 14), round(width / 50))


class Window(NamedTuple):
    """Seconds of video that the strip shows."""

    start: float
    end: float


def window_at(time: float, timeline: NormalityChart) -> Window:
    """Return the window at a time: the whole timeline if it is short, else the part around it."""
    if timeline.end - timeline.begin <= WINDOW:
        return Window(timeline.begin, timeline.end)
    start = min(max(time - PAST * WINDOW, timeline.begin), timeline.end - WINDOW)
    return Window(start, start + WINDOW)


class _DocumentColumns(NamedTuple):
    """Documents within the window, as columns of pixels."""

    shown: Indices
    """Indices of those that are visible."""
    left: Indices
    """First column of every document, visible or not."""
    width: int
    """Columns per document."""


def draw_chart(
    sizes: StripSizes, timeline: NormalityChart, spans: list[EventSpan], window: Window
) -> Image:
    """Return the strip without text and cursor: the part that is the same within a document."""
    picture = np.full((sizes.height, sizes.width, 3), rgb(GROUND), dtype=np.uint8)
    documents = _columns(sizes, timeline, window)
    for first, last, _ in spans:
        left = max(int(documents.left[first]), 0)
        right = max(int(documents.left[last]) + documents.width, 0)
        picture[sizes.chart_top : sizes.chart_bottom, left:right] = np.array(rgb(EVENT)) * 0.55
    line = sizes.chart_bottom - round(THRESHOLD_HEIGHT * sizes.chart)
    for dash in range(0, sizes.width, 12):
        cv2.line(picture, (dash, line), (dash + 6, line), rgb(DASHES), 1)
    _draw_curve(picture, sizes, timeline, documents)
    _draw_band(picture, sizes, timeline, documents)
    draw_text(picture, "threshold", (6, line + 2), sizes.font * 0.7, colour=LABEL)
    return picture


def _columns(sizes: StripSizes, timeline: NormalityChart, window: Window) -> _DocumentColumns:
    scale = sizes.width / (window.end - window.start)
    left = np.round((timeline.starts - window.start) * scale).astype(np.int64)
    width = max(1, round(timeline.clip * scale))
    return _DocumentColumns(np.flatnonzero((left + width >= 0) & (left < sizes.width)), left, width)


def _draw_curve(
    picture: Image, sizes: StripSizes, timeline: NormalityChart, documents: _DocumentColumns
) -> None:
    """Draw normality, interrupted at unjudged documents and between sequences."""
    shown = documents.shown
    x = documents.left + documents.width // 2
    y = sizes.chart_bottom - 2 - timeline.heights * (sizes.chart - 4)
    judged = ~np.isnan(timeline.heights[shown])
    for first, last, is_judged in equal_runs(judged.astype(np.int64), timeline.first[shown]):
        if is_judged:
            here = shown[first : last + 1]
            points = np.stack([x[here], y[here]], axis=-1).round().astype(np.int32)
            cv2.polylines(picture, [points], False, rgb(CURVE), 2, cv2.LINE_AA)


def _draw_band(
    picture: Image, sizes: StripSizes, timeline: NormalityChart, documents: _DocumentColumns
) -> None:
    """Draw the behaviours along the bottom, with their numbers where these fit."""
    shown, size = documents.shown, sizes.band * 0.72
    top = sizes.chart_bottom + 3
    for first, last, z in equal_runs(timeline.behaviours[shown], timeline.first[shown]):
        left = max(int(documents.left[shown[first]]), 0)
        right = int(documents.left[shown[last]]) + documents.width
        colour = behaviour_colour(z)
        picture[top : top + sizes.band, left:right] = rgb(colour)
        width = text_width(str(z + 1), size, bold=True)
        if right - left > width + 4:
            place = ((left + min(right, sizes.width) - width) // 2, top + 1)
            draw_text(picture, str(z + 1), place, size, colour=ink_on(colour), bold=True)


def draw_strip(
    chart: Image,
    sizes: StripSizes,
    time: float,
    window: Window,
    behaviour: int | None,
    event: tuple[int, str] | None,
) -> Image:
    """Return the strip at a time: the chart with its cursor, and the line of text above it.

    `behaviour` is counted from 0, None between documents; `event` is rank and explanation.
    """
    picture = chart.copy()
    _draw_cursor(picture, sizes, time, window)
    picture[: 2 * sizes.font] = _text_line(sizes, int(time), behaviour, event)
    return picture


@lru_cache(maxsize=4)
def _text_line(
    sizes: StripSizes, second: int, behaviour: int | None, event: tuple[int, str] | None
) -> Image:
    """Return the line of text above the chart: many frames have the same one."""
    picture = np.full((2 * sizes.font, sizes.width, 3), rgb(GROUND), dtype=np.uint8)
    line_top = sizes.font // 3
    x = 8 + draw_text(picture, clock(second), (8, line_top), sizes.font) + sizes.font
    x = max(x, sizes.font * 5)
    if behaviour is not None:
        colour = behaviour_colour(behaviour)
        x += _draw_chip(picture, f"behaviour {behaviour + 1}", x, sizes, colour)
    if event is not None:
        picture[:, x:] = rgb(EVENT)
        _draw_announcement(picture, f"alarm {event[0]}: {event[1]}", x + sizes.font, sizes)
    return picture


def _draw_cursor(picture: Image, sizes: StripSizes, time: float, window: Window) -> None:
    """Draw a line at the current time, and dim the part of the chart after it."""
    cursor = round((time - window.start) / (window.end - window.start) * sizes.width)
    if 0 <= cursor < sizes.width:
        rest = picture[sizes.chart_top :, cursor:]
        rest[:] = (rest * TO_COME).astype(np.uint8)
        top, bottom = (cursor, sizes.chart_top - 2), (cursor, sizes.height - 1)
        cv2.line(picture, top, bottom, rgb(PAPER), 2)


def _draw_chip(picture: Image, text: str, x: int, sizes: StripSizes, colour: str) -> int:
    """Draw a text on a coloured ground, and return the width of the ground."""
    width = text_width(text, sizes.font, bold=True) + 2 * sizes.font
    picture[: sizes.font * 2, x : x + width] = rgb(colour)
    place = (x + sizes.font, sizes.font // 3)
    draw_text(picture, text, place, sizes.font, colour=ink_on(colour), bold=True)
    return width


def _draw_announcement(picture: Image, text: str, x: int, sizes: StripSizes) -> None:
    """Draw an event's text on one line if it fits, else smaller on two."""
    room = sizes.width - x - sizes.font // 2
    for size in (sizes.font * share for share in ONE_LINE):
        if text_width(text, size, bold=True) <= room:
            place = (x, round(sizes.font - 0.64 * size))
            draw_text(picture, text, place, size, colour=INK, bold=True)
            return
    size = sizes.font * TWO_LINES
    for n, line in enumerate(_two_lines(text, size, room)):
        place = (x, round(1 + n * 0.97 * sizes.font))
        fitting = shortened(line, size, room, bold=True)
        draw_text(picture, fitting, place, size, colour=INK, bold=True)


def _two_lines(text: str, size: float, room: int) -> tuple[str, str]:
    """Return as many words as fit into `room` pixels, and the rest."""
    words = text.split(" ")
    heads = ((n, " ".join(words[:n])) for n in range(len(words), 0, -1))
    n = next((n for n, head in heads if text_width(head, size, bold=True) <= room), 1)
    return " ".join(words[:n]), " ".join(words[n:])


def event_at(document: int, detection: Detection) -> tuple[int, str] | None:
    """Return rank among the moments, from 1, and explanation of a document's event, if any."""
    for k, span in enumerate(detection.event_spans):
        if span.first <= document <= span.last:
            event = detection.events[k]
            return detection.moments.index(event) + 1, event.explanation
    return None
