"""Pictures -> an H.264 video that any browser plays, and jumps about in."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction

import av
import cv2
import numpy as np

from habitus.files import written_whole
from habitus.report.arrows import Picture

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
) -> Iterator[Callable[[Picture, float], None]]:
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

        def encode(picture: Picture, pts: int) -> None:
            # OpenCV makes brightness and colours of it five times as fast as FFmpeg.
            planes = np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420), dtype=np.uint8)
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.time_base, frame.pts = MILLISECOND, pts
            container.mux(stream.encode(frame))

        # One thread encodes while another draws.
        with ThreadPoolExecutor(1) as pool:
            waiting: deque[Future[None]] = deque()

            def add(picture: Picture, time: float) -> None:
                nonlocal last
                last = max(last + 1, round(time * 1000))
                waiting.append(pool.submit(encode, picture, last))
                if len(waiting) > AHEAD:
                    waiting.popleft().result()

            yield add
            for future in waiting:
                future.result()
        container.mux(stream.encode())
