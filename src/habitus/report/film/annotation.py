"""Pictures -> an H.264 video that any browser plays, and jumps about in.

Footage with what was found in it: boxes, the least likely words, behaviour and normality.

Footage with its visual words drawn as arrows, to see at once whether extraction works.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.detection import Detection
from habitus.arrays import Image
from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError
from habitus.files import written_whole
from habitus.ingest.clips import ComparedFrame, DocumentSettings, compare_frames, vocabulary_of
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.report.figures.drawing import EVENT, arrows_of, draw_boxes, draw_on_picture, resized
from habitus.report.film.strip import (
    draw_chart,
    draw_strip,
    event_at,
    strip_for,
    timeline_of,
    window_at,
    write,
)
from habitus.video import Frame, Reader, Source

MILLISECOND = Fraction(1, 1000)
LARGEST, SMALLEST, ENLARGED = 1280, 640, 720
"""Widths: the largest; those below the smallest are enlarged."""
# Seconds between keyframes: what a jump may have to decode.
KEYFRAMES = 2
# Pictures that may be drawn before they are encoded.
AHEAD = 16


def film_size(width: int, height: int, *, enlarge: bool = True) -> tuple[int, int]:
    """Size of a film of frames of a size: even, as H.264 wants it, and legible.

    >>> film_size(360, 288), film_size(1920, 1080), film_size(721, 577)
    ((720, 576), (1280, 720), (720, 576))
    """
    small = enlarge and width < SMALLEST
    wanted = ENLARGED if small else min(width, LARGEST)
    return wanted // 2 * 2, round(height * wanted / width) // 2 * 2


@contextmanager
def film(
    path: str | os.PathLike[str], size: tuple[int, int], fps: float
) -> Iterator[Callable[[Image, float], None]]:
    """Give a function that adds a picture (of `size`, width and height) at a time in seconds.

    The film is whole when the block ends without error, or is not there at all.
    """
    with (
        written_whole(path) as temporary,
        # The index comes first: a browser need not fetch the end to begin.
        av.open(
            str(temporary), "w", format="mp4", container_options={"movflags": "+faststart"}
        ) as container,
    ):
        stream = container.add_stream("libx264", rate=max(1, round(fps)))
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = stream.time_base = MILLISECOND
        stream.gop_size = max(1, round(KEYFRAMES * fps))
        stream.options = {"crf": "26", "preset": "superfast"}
        stream.thread_count = 1  # the same film on every machine
        last = -1

        def encode(picture: Image, pts: int) -> None:
            # OpenCV makes brightness and colours of it five times as fast as FFmpeg.
            planes = np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.time_base, frame.pts = MILLISECOND, pts
            container.mux(stream.encode(frame))

        # One thread encodes while another draws.
        with ThreadPoolExecutor(1) as pool:
            waiting: deque[Future[None]] = deque()

            def add(picture: Image, time: float) -> None:
                nonlocal last
                last = max(last + 1, round(time * 1000))
                waiting.append(pool.submit(encode, picture, last))
                if len(waiting) > AHEAD:
                    waiting.popleft().result()

            yield add
            for future in waiting:
                future.result()
        container.mux(stream.encode())


# Times are rounded by their containers: a frame this much early still opens the next document.
ROUNDING = 1e-4
# Strength of the arrows of the least likely words.
STRENGTH = 0.25


def write_annotated(
    path: str | os.PathLike[str],
    source: Source,
    detection: Detection,
    *,
    progress: ProgressCallback = ignore_progress,
) -> None:
    """Write an H.264 video of the source, from the first document that was judged on.

    Small footage is enlarged. During an event, boxes and arrows show the least likely words of each
    abnormal document; the strip below is never over the footage.
    """
    if source.is_live:
        raise InvalidInputError(
            f"an annotated video needs a file; {source.name} can be read only once"
        )
    start = film_start(detection)
    with Reader(source, since=start) as reader:
        size = film_size(reader.width, reader.height)
        overlay = Overlay(detection, size[0])
        whole = (size[0], size[1] + overlay.strip.height)
        with film(path, whole, reader.fps) as add:
            for n, frame in enumerate(reader):
                if frame.time < start - ROUNDING:
                    continue
                add(overlay.over(_picture(frame, size), frame.time), frame.time - start)
                if n % 16 == 0:
                    progress(Progress("annotating", frame.time, reader.duration))


def film_start(detection: Detection) -> float:
    """Seconds of the source at which its annotated video starts."""
    return float(detection.corpus.times[0]) if len(detection.corpus) else 0.0


def _picture(frame: Frame, size: tuple[int, int]) -> Image:
    """A frame at the film's size; OpenCV enlarges three times as fast as FFmpeg."""
    if size[0] <= frame.width:
        return frame.colours(*size)
    return resized(frame.colours(frame.width, frame.height), *size)


class Overlay:
    """What is drawn over and under frames; most of it once a document."""

    def __init__(self, detection: Detection, width: int) -> None:
        self.detection, self.vocabulary = detection, detection.model.vocabulary_
        self.spans = detection.event_spans
        self.timeline = timeline_of(detection)
        self.strip = strip_for(width)
        self.document: int | None = -1
        self.window = window_at(0.0, self.timeline)
        self.chart = draw_chart(self.strip, self.timeline, self.spans, self.window)

    def over(self, picture: Image, time: float) -> Image:
        """A frame with everything drawn on it, and the strip below."""
        document = self._document_at(time)
        if document != self.document:
            self.document, self.window = document, window_at(time, self.timeline)
            self.chart = draw_chart(self.strip, self.timeline, self.spans, self.window)
        behaviour = event = None
        if document is not None:
            behaviour = int(self.detection.behaviours[document])
            event = event_at(document, self.detection)
            self._mark(picture, document)
        strip = draw_strip(self.chart, self.strip, time, self.window, behaviour, event)
        return np.concatenate([picture, strip])

    def _document_at(self, time: float) -> int | None:
        starts = self.timeline.starts
        found = int(np.searchsorted(starts, time + ROUNDING, side="right")) - 1
        inside = found >= 0 and time < starts[found] + self.timeline.clip + ROUNDING
        return found if inside else None

    def _mark(self, picture: Image, document: int) -> None:
        moment, v = self.detection.abnormal_words.get(document), self.vocabulary
        if moment is None or v is None:
            return
        draw_boxes(picture, moment.boxes, v, EVENT)
        strengths = np.full(len(moment.words), STRENGTH)
        draw_on_picture(picture, arrows_of(moment.words, strengths, v), v)


LETTERS = 14
"""Size of the letters, in pixels."""


def write_preview(
    path: str | os.PathLike[str],
    source: Source,
    settings: DocumentSettings,
    *,
    progress: ProgressCallback = ignore_progress,
) -> None:
    """Write an H.264 video of the source; arrows stay until the next frame that is compared."""
    with Reader(source) as reader:
        vocabulary = vocabulary_of(reader, settings)
        size = film_size(vocabulary.width, vocabulary.height, enlarge=False)
        moves: NDArray[np.int8] | None = None
        with film(path, size, reader.fps) as add:
            for n, seen in enumerate(compare_frames(reader, settings)):
                if seen.moves is not None:
                    moves = seen.moves
                picture = seen.frame.colours(*size)
                if moves is not None:
                    draw_words(picture, moves, vocabulary)
                _label(picture, seen, moves)
                add(picture, seen.frame.time)
                if n % 16 == 0:
                    progress(Progress("preview", seen.frame.time, reader.duration))


def draw_words(picture: Image, moves: NDArray[np.int8], v: Vocabulary) -> None:
    """Draw an arrow in each cell that moved, in the colour of its direction."""
    rows, columns = np.nonzero(moves >= 0)
    words = v.words(rows, columns, moves[rows, columns].astype(np.int64) % len(Direction))
    draw_on_picture(picture, arrows_of(words, np.full(len(words), 0.6), v), v)


def _label(picture: Image, seen: ComparedFrame, moves: NDArray[np.int8] | None) -> None:
    n = 0 if moves is None else int((moves >= 0).sum())
    text = f"{seen.frame.time:.2f} s   document {seen.number}   {n} words"
    picture[-26:, :360] //= 3
    write(picture, text, (8, len(picture) - 24), LETTERS)
