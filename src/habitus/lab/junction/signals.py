"""The lights: four phases in a cycle.

The main road; its turns right alone; the side road; people on foot. On both roads, those who turn
right while the others' light is green give way to them.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

AMBER = 3.0
READY = 2.0
"""Seconds of red and amber before green."""
CLEARANCE = 10.5
"""Seconds that people have to reach the other side."""


class Light(IntEnum):
    """What a signal shows."""

    RED = 0
    READY = 1
    GREEN = 2
    AMBER = 3


@dataclass(frozen=True)
class Signals:
    """Times of the lights."""

    main: int
    """An arm of the main road: 0 or 1; the opposite one belongs to it too."""
    greens: tuple[float, float, float, float]
    """Seconds of green in the four phases."""
    all_red: float
    offset: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "Signals":
        """Plausible times."""
        greens = rng.uniform([15, 6, 12, 5], [22, 8, 17, 7])
        ahead, right, side, walk = (float(seconds) for seconds in greens.round(1))
        all_red = float(rng.uniform(1.8, 2.6))
        return cls(int(rng.integers(2)), (ahead, right, side, walk), all_red, rng.uniform(0, 60))

    @cached_property
    def starts(self) -> tuple[float, float, float, float, float]:
        """When the phases start in the cycle, and its length."""
        times = [0.0]
        for green in self.greens[:3]:
            times.append(times[-1] + green + AMBER + self.all_red)
        return (*times, times[-1] + self.greens[3] + CLEARANCE)  # type: ignore[return-value]

    @property
    def cycle(self) -> float:
        """Seconds of a whole cycle."""
        return self.starts[4]

    def phase(self, time: float) -> int:
        """The phase whose green is on or was last on."""
        return int(np.searchsorted(self.starts, self._since(time), side="right")) - 1

    def light(self, arm: int, movement: str, time: float) -> Light:
        """What those see who come from an arm."""
        start, end = self._green(arm, movement)
        since = (self._since(time) - start) % self.cycle
        if since < end - start:
            return Light.GREEN
        if since < end - start + AMBER:
            return Light.AMBER
        return Light.READY if since > self.cycle - READY else Light.RED

    def left_of_green(self, arm: int, movement: str, time: float) -> float:
        """Seconds of green to come, 0 if it is not green."""
        start, end = self._green(arm, movement)
        return max(0.0, end - start - (self._since(time) - start) % self.cycle)

    def left_of_amber(self, arm: int, movement: str, time: float) -> float:
        """Seconds until red, of a light that is green or amber; 0 if it is red."""
        start, end = self._green(arm, movement)
        return max(0.0, end - start + AMBER - (self._since(time) - start) % self.cycle)

    def walk(self, time: float) -> bool:
        """Whether people may start to cross."""
        since = self._since(time) - self.starts[3]
        return 1.0 <= since < self.greens[3]

    def _since(self, time: float) -> float:
        return (time + self.offset) % self.cycle

    def _green(self, arm: int, movement: str) -> tuple[float, float]:
        starts, greens = self.starts, self.greens
        if arm % 2 != self.main:
            return starts[2], starts[2] + greens[2]
        if movement in ("right", "u-turn", "wrong-way"):
            return 0.0, starts[1] + greens[1]
        return 0.0, greens[0]
