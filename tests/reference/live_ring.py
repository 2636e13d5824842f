"""A camera whose packets arrive in a ring in real time, with some of the past in it already."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from habitus.site.packet_ring import PacketRing
from habitus.video import Reader, Source
from reference.footage import FPS, encode, texture

SECONDS = 10
"""Of the video, which repeats."""


def clock_video(path: Path, *, width: int = 320, height: int = 240, **codec: Any) -> Path:
    """A video in which a bar goes once through the picture; the same again joins without a seam."""
    ground = texture(width, height, 0) // 2

    def pictures() -> Iterator[Any]:
        for n in range(SECONDS * FPS):
            picture = np.array(ground)
            x = n * width // (SECONDS * FPS)
            picture[:, x : x + 16] = 235
            yield picture

    options = {"codec": "libx264", "pix_fmt": "yuv420p", "options": {"g": str(FPS), "bf": "2"}}
    return encode(path, pictures(), **(options | codec))


class Clock:
    """Time that passes as frames do."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def recorded(
    video: Path,
    folder: Path,
    *,
    at: float,
    late: Callable[[int], float] = lambda number: 0.0,
    meanwhile: Callable[[float], object] = lambda seconds: None,
) -> None:
    """Record a video as if its frames arrived in real time, or late; files are as old as they."""
    clock = Clock(at)
    ring = PacketRing(folder, clock=clock)
    known: set[Path] = set(folder.glob("*"))
    with Reader(Source(str(video)), tap=ring) as reader:
        for number, frame in enumerate(reader):
            clock.now = at + frame.time + late(number)
            meanwhile(clock.now)
            for path in set(folder.glob("*")) - known:
                os.utime(path, (clock.now, clock.now))
    for path in sorted(set(folder.glob("*")) - known)[-1:]:
        os.utime(path, (clock.now, clock.now))


@contextlib.contextmanager
def arriving(video: Path, folder: Path, *, past: float = 0.0) -> Iterator[None]:
    """Let a video arrive in a ring, again and again, until the end of the block."""
    stop = threading.Event()

    clock = Clock(time.time() - past)

    def arrive() -> None:
        ring, before = PacketRing(folder, clock=clock), 0.0
        begun = clock.now
        while not stop.is_set():
            with Reader(Source(str(video)), tap=ring) as reader:
                for frame in reader:
                    clock.now = begun + before + frame.time
                    stop.wait(max(0.0, clock.now - time.time()))
                    if stop.is_set():
                        break
            before += SECONDS

    thread = threading.Thread(target=arrive)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
