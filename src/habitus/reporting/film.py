"""Films of a source: annotated with its events, or with its visual words as a preview.

Films are H.264 in MP4, so that any browser plays them and seeks in them. Under an annotated one
runs a strip: behaviour, event, and normality around the current time.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image, Indices
from habitus.corpus.vocabulary import Vocabulary, moves_in
from habitus.errors import InvalidInputError
from habitus.files import MARK, written_whole
from habitus.ingest.clips import DocumentSettings, compare_frames, vocabulary_of
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.reporting.figures.drawing import (
    EVENT,
    INK,
    PAPER,
    arrows_of,
    behaviour_colour,
    draw_on_picture,
    draw_text,
    draw_unusual,
    ink_on,
    resized,
    rgb,
    shortened,
    text_width,
)
from habitus.reporting.normality_chart import (
    THRESHOLD_HEIGHT,
    NormalityChart,
    equal_runs,
    normality_chart,
)
from habitus.scene.detection import Detection, EventSpan
from habitus.scene.events import clock
from habitus.scene.explanation import heat_map
from habitus.video import Frame, Reader, Source, survey

# Times are rounded by their containers: a frame this much early still opens the next document.
ROUNDING = 1e-4
# Strength of the arrows of a preview.
PREVIEW_STRENGTH = 0.6
# Frames between two reports of progress.
REPORTED = 16


def write_annotated(
    path: str | os.PathLike[str],
    detection: Detection,
    source: Source,
    *,
    progress: ProgressCallback = ignore_progress,
) -> None:
    """Write a video of the source with its events drawn, from the first judged document on.

    Small footage is enlarged. During an event, boxes and arrows show the unusual words of each
    abnormal document and, by habits, colour shows the surprisal of each cell. A strip below the
    footage shows behaviour, event and normality. Progress is in seconds of footage. Raises
    InvalidInputError if the source is live, or the video, a .mp4, cannot be written.
    """
    if source.is_live:
        raise InvalidInputError(
            f"an annotated video needs a file; {source.name} can be read only once"
        )
    start = film_start(detection)
    duration, steady = survey(source)
    with Reader(source, since=start, steady=steady) as reader:
        width, height = film_size(reader.width, reader.height)
        overlay = Overlay(detection, width)
        with film(path, (width, height + overlay.strip.height), reader.fps) as add:
            for n, frame in enumerate(reader):
                if frame.time < start - ROUNDING:
                    continue
                picture = _picture(frame, (width, height))
                add(overlay.annotated(picture, frame.time), frame.time - start)
                if n % REPORTED == 0:
                    progress(Progress("annotating", frame.time, duration))


def film_start(detection: Detection) -> float:
    """Return the time of the source, in seconds, at which its annotated video starts."""
    return float(detection.corpus.times[0]) if len(detection.corpus) else 0.0


def _picture(frame: Frame, size: tuple[int, int]) -> Image:
    """Return a frame at the size of the film; OpenCV enlarges three times as fast as FFmpeg."""
    if size[0] <= frame.width:
        return frame.colours(*size)
    return resized(frame.colours(frame.width, frame.height), *size)


class Overlay:
    """Annotations of frames; whatever is the same within a document is drawn once."""

    def __init__(self, detection: Detection, width: int) -> None:
        self.detection, self.timeline = detection, normality_chart(detection)
        self.strip = Strip(self.timeline, detection.event_spans, width)
        self.document: int | None = None
        self.event: tuple[int, str] | None = None

    def annotated(self, picture: Image, time: float) -> Image:
        """Return a frame with events drawn on it and the strip below; `picture` is drawn on."""
        document = self._document_at(time)
        if document != self.document:
            self.document, self.event = document, self._event_of(document)
            self.strip.move_to(time)
        behaviour = None
        if document is not None:
            behaviour = int(self.detection.behaviours[document])
            self._draw_abnormal_words(picture, document)
        return np.concatenate([picture, self.strip.draw(time, behaviour, self.event)])

    def _event_of(self, document: int | None) -> tuple[int, str] | None:
        """Return rank among the moments, from 1, and explanation of a document's event, if any."""
        for event, span in zip(self.detection.events, self.detection.event_spans, strict=True):
            if document is not None and span.first <= document <= span.last:
                return self.detection.moments.index(event) + 1, event.explanation
        return None

    def _document_at(self, time: float) -> int | None:
        starts = self.timeline.starts
        number = int(np.searchsorted(starts, time + ROUNDING, side="right")) - 1
        inside = number >= 0 and time < starts[number] + self.timeline.clip + ROUNDING
        return number if inside else None

    def _draw_abnormal_words(self, picture: Image, document: int) -> None:
        unusual = self.detection.abnormal_words.get(document)
        v = self.detection.model.vocabulary_
        if unusual is None or v is None:
            return
        heat = None if unusual.finding is None else heat_map(unusual.finding, v)
        draw_unusual(picture, v, unusual.words, unusual.boxes, heat)


def write_preview(
    path: str | os.PathLike[str],
    source: Source,
    settings: DocumentSettings,
    *,
    progress: ProgressCallback = ignore_progress,
) -> None:
    """Write a video of the source, a .mp4, with its visual words as arrows, to check extraction.

    Arrows stay until the next frame that is compared. Progress is in seconds of footage.
    """
    duration = survey(source).duration
    with Reader(source) as reader:
        vocabulary = vocabulary_of(reader, settings)
        size = film_size(vocabulary.width, vocabulary.height, enlarge=False)
        moves: NDArray[np.int16] | None = None
        with film(path, size, reader.fps) as add:
            for k, compared in enumerate(compare_frames(reader, settings)):
                if compared.moves is not None:
                    moves = compared.moves
                picture = compared.frame.colours(*size)
                if moves is not None:
                    draw_words(picture, moves, vocabulary)
                n = 0 if moves is None else int((moves >= 0).sum())
                label = f"{compared.frame.time:.2f} s   document {compared.number}   {n} words"
                picture[-26:, :360] //= 3
                draw_text(picture, label, (8, len(picture) - 24), 14)
                add(picture, compared.frame.time)
                if k % REPORTED == 0:
                    progress(Progress("preview", compared.frame.time, duration))


def draw_words(picture: Image, moves: NDArray[np.int16], v: Vocabulary) -> None:
    """Draw an arrow in each cell that moved, in the colour of its direction, in place."""
    rows, columns = np.nonzero(moves >= 0)
    words = v.paper.words(rows, columns, moves_in(v.finest, v.paper)[moves[rows, columns]])
    strengths = np.full(len(words), PREVIEW_STRENGTH)
    draw_on_picture(picture, arrows_of(words, strengths, v.paper), v)


LARGEST, SMALLEST = 1280, 640
"""Widths of a film; small frames are enlarged."""
MILLISECOND = Fraction(1, 1000)
# Seconds between keyframes: a seek decodes at most as much.
KEYFRAMES = 2
# Pictures that may wait to be encoded.
AHEAD = 16


def film_size(width: int, height: int, *, enlarge: bool = True) -> tuple[int, int]:
    """Return width and height of a film: even, as H.264 needs it, and legible.

    >>> film_size(360, 288), film_size(1920, 1080), film_size(721, 577)
    ((640, 512), (1280, 720), (720, 576))
    """
    wanted = min(max(width, SMALLEST) if enlarge else width, LARGEST)
    return wanted // 2 * 2, round(height * wanted / width) // 2 * 2


@contextmanager
def film(
    path: str | os.PathLike[str], size: tuple[int, int], fps: float
) -> Iterator[Callable[[Image, float], None]]:
    """Write a film, completely or not at all; yield a function that adds a picture at a time in s.

    Pictures are encoded in another thread and must not be changed afterwards.
    """
    with (
        written_whole(path) as temporary,
        # The index comes first, so that a browser can start before it has the whole file.
        av.open(
            str(temporary), "w", format="mp4", container_options={"movflags": "+faststart"}
        ) as container,
        ThreadPoolExecutor(1) as pool,
    ):
        container.metadata["comment"] = MARK
        stream = container.add_stream("libx264", rate=max(1, round(fps)))
        (stream.width, stream.height), stream.pix_fmt = size, "yuv420p"
        stream.codec_context.time_base = stream.time_base = MILLISECOND
        stream.gop_size = max(1, round(KEYFRAMES * fps))
        stream.options = {"crf": "26", "preset": "superfast"}
        stream.thread_count = 2  # the same film on every machine: it depends on the number
        last, waiting = -1, deque[Future[None]]()

        def encode(picture: Image, time: float) -> None:
            nonlocal last
            last = max(last + 1, round(time * 1000))  # at least a millisecond after the last one
            # OpenCV converts colours five times as fast as FFmpeg.
            planes = np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.time_base, frame.pts = MILLISECOND, last
            container.mux(stream.encode(frame))

        def add(picture: Image, time: float) -> None:
            waiting.append(pool.submit(encode, picture, time))
            if len(waiting) > AHEAD:
                waiting.popleft().result()

        yield add
        for future in waiting:
            future.result()
        container.mux(stream.encode())


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


class Strip:
    """The strip under a film of a width: a line of text, a chart, a band of behaviours."""

    def __init__(self, timeline: NormalityChart, spans: list[EventSpan], width: int) -> None:
        self.timeline, self.spans, self.width = timeline, spans, width
        self.font, self.band = max(11, round(width / 52)), round(width / 50)
        chart = round(width / 14)
        self.height = (3 * self.font + chart + self.band) // 2 * 2  # even, as H.264 needs it
        self.top = self.font * 2 + self.font // 4
        """First row of the chart."""
        self.bottom = self.top + chart
        """First row below it."""
        self.move_to(timeline.begin)

    def move_to(self, time: float) -> None:
        """Draw the part that is the same within a document: all but text and cursor."""
        self.start, self.end = window_at(time, self.timeline)
        scale = self.width / (self.end - self.start)
        left = np.round((self.timeline.starts - self.start) * scale).astype(np.int64)
        wide = max(1, round(self.timeline.clip * scale))  # columns of pixels of a document
        picture = np.full((self.height, self.width, 3), rgb(GROUND), dtype=np.uint8)
        for first, last, _ in self.spans:
            columns = slice(max(int(left[first]), 0), max(int(left[last]) + wide, 0))
            picture[self.top : self.bottom, columns] = np.array(rgb(EVENT)) * 0.55
        line = self.bottom - round(THRESHOLD_HEIGHT * (self.bottom - self.top))
        for dash in range(0, self.width, 12):
            cv2.line(picture, (dash, line), (dash + 6, line), rgb(DASHES), 1)
        shown = np.flatnonzero((left + wide >= 0) & (left < self.width))
        self._draw_curve(picture, shown, left + wide // 2)
        self._draw_band(picture, shown, left, wide)
        draw_text(picture, "threshold", (6, line + 2), self.font * 0.7, colour=LABEL)
        self.chart = picture

    def _draw_curve(self, picture: Image, shown: Indices, x: Indices) -> None:
        """Draw normality, interrupted at unjudged documents and between sequences."""
        heights, first_ones = self.timeline.heights, self.timeline.first[shown]
        y = self.bottom - 2 - heights * (self.bottom - self.top - 4)
        judged = ~np.isnan(heights[shown])
        for first, last, is_judged in equal_runs(judged.astype(np.int64), first_ones):
            if is_judged:
                here = shown[first : last + 1]
                points = np.stack([x[here], y[here]], axis=-1).round().astype(np.int32)
                cv2.polylines(picture, [points], False, rgb(CURVE), 2, cv2.LINE_AA)

    def _draw_band(self, picture: Image, shown: Indices, lefts: Indices, wide: int) -> None:
        """Draw the behaviours along the bottom, with their numbers where these fit."""
        size, top, timeline = self.band * 0.72, self.bottom + 3, self.timeline
        for first, last, z in equal_runs(timeline.behaviours[shown], timeline.first[shown]):
            left, right = max(int(lefts[shown[first]]), 0), int(lefts[shown[last]]) + wide
            colour = behaviour_colour(z)
            picture[top : top + self.band, left:right] = rgb(colour)
            width = text_width(str(z + 1), size, bold=True)
            if right - left > width + 4:
                place = ((left + min(right, self.width) - width) // 2, top + 1)
                draw_text(picture, str(z + 1), place, size, colour=ink_on(colour), bold=True)

    def draw(self, time: float, behaviour: int | None, event: tuple[int, str] | None) -> Image:
        """Return the strip at a time: the chart with its cursor, and the line of text above it.

        `behaviour` is counted from 0, None between documents; `event` is rank and explanation.
        """
        picture = self.chart.copy()
        cursor = round((time - self.start) / (self.end - self.start) * self.width)
        if 0 <= cursor < self.width:
            rest = picture[self.top :, cursor:]  # still to come
            rest[:] = (rest * TO_COME).astype(np.uint8)
            ends = (cursor, self.top - 2), (cursor, self.height - 1)
            cv2.line(picture, *ends, rgb(PAPER), 2)
        picture[: 2 * self.font] = _text_line(self.width, self.font, int(time), behaviour, event)
        return picture


def window_at(time: float, timeline: NormalityChart) -> tuple[float, float]:
    """Return what the strip shows at a time: the whole timeline, or the part around the time."""
    if timeline.end - timeline.begin <= WINDOW:
        return timeline.begin, timeline.end
    start = min(max(time - PAST * WINDOW, timeline.begin), timeline.end - WINDOW)
    return start, start + WINDOW


@lru_cache(maxsize=4)
def _text_line(
    width: int, font: int, second: int, behaviour: int | None, event: tuple[int, str] | None
) -> Image:
    """Return the line of text above the chart: many frames have the same one."""
    picture = np.full((2 * font, width, 3), rgb(GROUND), dtype=np.uint8)
    x = 8 + draw_text(picture, clock(second), (8, font // 3), font) + font
    x = max(x, font * 5)
    if behaviour is not None:
        text, colour = f"behaviour {behaviour + 1}", behaviour_colour(behaviour)
        end = x + text_width(text, font, bold=True) + 2 * font
        picture[:, x:end] = rgb(colour)
        draw_text(picture, text, (x + font, font // 3), font, colour=ink_on(colour), bold=True)
        x = end
    if event is not None:
        picture[:, x:] = rgb(EVENT)
        _draw_announcement(picture, f"alarm {event[0]}: {event[1]}", x + font, font)
    return picture


def _draw_announcement(picture: Image, text: str, x: int, font: int) -> None:
    """Draw an event's text on one line if it fits, else smaller on two."""
    room = picture.shape[1] - x - font // 2
    for size in (font * share for share in ONE_LINE):
        if text_width(text, size, bold=True) <= room:
            place = (x, round(font - 0.64 * size))
            draw_text(picture, text, place, size, colour=INK, bold=True)
            return
    size, words = font * TWO_LINES, text.split(" ")
    heads = ((n, " ".join(words[:n])) for n in range(len(words), 0, -1))
    n = next((n for n, head in heads if text_width(head, size, bold=True) <= room), 1)
    for k, line in enumerate((" ".join(words[:n]), " ".join(words[n:]))):
        place = (x, round(1 + k * 0.97 * font))
        draw_text(
            picture, shortened(line, size, room, bold=True), place, size, colour=INK, bold=True
        )
