"""Footage with its visual words drawn as arrows, to see at once whether extraction works."""

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.documents.clips import Seen, Settings, see, vocabulary_of
from habitus.documents.extraction import Progress
from habitus.files import written_whole
from habitus.report.behaviours import COLOURS, STEPS
from habitus.video import Reader, Source
from habitus.words import Direction, Vocabulary

MILLISECOND = Fraction(1, 1000)
LARGEST = 1280
"""Width of a preview, at most."""


def write_preview(
    path: str | os.PathLike[str],
    source: Source,
    settings: Settings,
    *,
    progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Write an H.264 video of the source; arrows stay until the next frame that is compared."""
    with Reader(source) as reader, written_whole(path) as temporary:
        vocabulary = vocabulary_of(reader, settings)
        with av.open(str(temporary), "w", format="mp4") as container:
            _write(container, reader, vocabulary, settings, progress)


def _write(
    container: Any,
    reader: Reader,
    vocabulary: Vocabulary,
    settings: Settings,
    progress: Callable[[Progress], None],
) -> None:
    scale = min(1.0, LARGEST / vocabulary.width)
    width, height = (int(side * scale) // 2 * 2 for side in (vocabulary.width, vocabulary.height))
    stream = container.add_stream("libx264", rate=round(reader.fps))
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    stream.codec_context.time_base = stream.time_base = MILLISECOND
    stream.options = {"crf": "23", "preset": "veryfast"}
    directions: NDArray[np.int8] | None = None
    last = -1
    for n, seen in enumerate(see(reader, settings)):
        if seen.directions is not None:
            directions = seen.directions
        picture = seen.frame.colours(width, height)
        if directions is not None:
            draw_words(picture, directions, vocabulary)
        _label(picture, seen, directions)
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
        frame.time_base, frame.pts = MILLISECOND, max(last + 1, round(seen.frame.time * 1000))
        last = frame.pts
        container.mux(stream.encode(frame))
        if n % 16 == 0:
            progress(Progress(seen.frame.time, reader.duration, n, seen.frame.time))
    container.mux(stream.encode())


def draw_words(picture: NDArray[np.uint8], directions: NDArray[np.int8], v: Vocabulary) -> None:
    """Draw an arrow in each cell that moved, in the colour of its direction."""
    side = v.cell * v.scale * picture.shape[1] / v.width
    thickness = max(1, round(side / 7))
    for row, column in zip(*np.nonzero(directions >= 0), strict=True):
        direction = Direction(int(directions[row, column]))
        middle = np.array([column + 0.5, row + 0.5]) * side
        reach = np.array(STEPS[direction]) * side * 0.42
        tail, tip = (tuple(round(float(c)) for c in middle + s * reach) for s in (-1, 1))
        colour = tuple(int(COLOURS[direction][i : i + 2], 16) for i in (1, 3, 5))
        cv2.arrowedLine(picture, tail, tip, colour, thickness, cv2.LINE_AA, tipLength=0.45)


def _label(picture: NDArray[np.uint8], seen: Seen, directions: NDArray[np.int8] | None) -> None:
    n = 0 if directions is None else int((directions >= 0).sum())
    text = f"{seen.frame.time:8.2f} s   document {seen.number}   {n} words"
    height = picture.shape[0]
    picture[height - 24 :, :360] //= 3
    cv2.putText(picture, text, (8, height - 8), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 255), 1,
                cv2.LINE_AA)  # fmt: skip
