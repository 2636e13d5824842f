"""Side-by-side timing: every side once a round, so that a disturbance strikes all sides alike.

What runs in this process alone is timed by its processor time, which other work disturbs least.
"""

import os
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from report import progress

# Wall time this far above processor time says that somebody else was using the core.
DISTURBED = 1.15

# For processes that are yet to import NumPy; `single_core` does the same for one that has.
ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA", "LOKY_MAX")
}

Side = Callable[[], float]
"""Does its work once and returns the seconds an iteration took."""


def single_core() -> None:
    """Keep this process, and threads it starts, on one core and its libraries to one thread."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    threadpool_limits(limits=1)


def n_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Rounds(NamedTuple):
    """Seconds an iteration of every side, round by round."""

    seconds: dict[str, list[float]]

    def median(self, side: str) -> float:
        """Median over the rounds."""
        return median(self.seconds[side])

    def best(self, side: str) -> float:
        """Quickest round."""
        return min(self.seconds[side])

    def ratio(self, over: str, under: str) -> float:
        """Median over the rounds of one side's time over another's in the same round."""
        pairs = zip(self.seconds[over], self.seconds[under], strict=True)
        return median(a / b for a, b in pairs)

    def spread(self, over: str, under: str, *, unit: str = "ms") -> str:
        """In words: best times and the range of the per-round ratios."""
        pairs = zip(self.seconds[over], self.seconds[under], strict=True)
        ratios = sorted(a / b for a, b in pairs)
        scale = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}[unit]
        return (
            f"best {self.best(under) * scale:.3g} against {self.best(over) * scale:.3g} {unit}, "
            f"ratio over {len(ratios)} rounds {ratios[0]:.3g} to {ratios[-1]:.3g}"
        )


def interleave(sides: dict[str, Side], rounds: int) -> Rounds:
    """Time all sides in turn: one untimed round to warm up, then `rounds` that count."""
    for side in sides.values():
        side()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(rounds):
        for name, side in sides.items():
            seconds[name].append(side())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if wall > DISTURBED * cpu:
        progress(f"the machine was busy: wall time {wall / cpu:.2f} times processor time")
    return Rounds(seconds)


def repeated(
    once: Callable[[], object], times: int, clock: Callable[[], float] = time.process_time
) -> Side:
    """Seconds a call, from `times` calls in a row."""

    def side() -> float:
        start = clock()
        for _ in range(times):
            once()
        return (clock() - start) / times

    return side


def by_difference(run: Callable[[int], object], few: int, many: int) -> Side:
    """Seconds an iteration of something that also has a set-up: `run(many)` less `run(few)`.

    `run(n)` does the set-up and n iterations; in the difference the set-up cancels.
    """

    def side() -> float:
        start = time.process_time()
        run(few)
        middle = time.process_time()
        run(many)
        end = time.process_time()
        return ((end - middle) - (middle - start)) / (many - few)

    return side
