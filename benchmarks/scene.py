"""The built-in junction: frames a second, rendered alone and as H.264.

The first minute of a busy scene, simulation included, the still picture not. On one core, by
processor time, so that others on the machine do not count; on all cores, where rendering and
encoding overlap, by the clock.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from habitus.lab import Junction, render
from report import Row, Target, main, progress
from timing import n_cores

Clock = Callable[[], float]
SIZES = {"360x288": (360, 288), "720x576": (720, 576)}


def measure(quick: bool) -> Iterator[Row]:
    """Rows: each size alone and encoded, on one core; then on all."""
    cores = os.sched_getaffinity(0)
    rounds, seconds = (1, 10.0) if quick else (3, 60.0)
    for name, (width, height) in SIZES.items():
        scene = Junction(seed=3, seconds=seconds, width=width, height=height)
        small = name == "360x288"
        os.sched_setaffinity(0, {max(cores)})
        progress(f"{name}: rendering")
        alone = median(rendering(scene, time.process_time) for _ in range(rounds))
        yield row(f"{name}: frames rendered, one core", alone, 400 if small else None)
        progress(f"{name}: rendering and encoding")
        both = median(encoding(scene, time.process_time) for _ in range(rounds))
        yield row(f"{name}: frames rendered and encoded, one core", both, 250 if small else None)
        os.sched_setaffinity(0, cores)
        if n_cores() > 1:
            both = median(encoding(scene, time.perf_counter) for _ in range(rounds))
            yield row(f"{name}: frames rendered and encoded, all cores", both, None)


def row(what: str, rate: float, least: float | None) -> Row:
    """A rate, and the least that it should be."""
    target = Target("at least", least, of="ours") if least else None
    return Row(what=what, ours=rate, unit="/s", target=target, note=f"{rate / 25:.0f} x real time")


def rendering(scene: Junction, clock: Clock) -> float:
    """Frames a second without encoding."""
    frames = scene.frames()
    next(frames)
    start = clock()
    n_frames = sum(1 for _ in frames)
    return n_frames / (clock() - start)


def encoding(scene: Junction, clock: Clock) -> float:
    """Frames a second as a file; the time counts from the first frame done."""
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scene.mp4")
        render(scene, path, progress=lambda progress: times.append(clock()))
    return (len(times) - 1) / (times[-1] - times[0])


if __name__ == "__main__":
    main(measure)
