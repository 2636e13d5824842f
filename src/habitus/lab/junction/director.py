"""When anomalies happen, and of what kind."""

import numpy as np

from habitus.lab.junction.anomalies import LAUNCHES, Finish
from habitus.lab.junction.traffic import World

APART = 8.0
"""Least seconds between the starts of two anomalies."""
PATIENCE = 60.0
"""Seconds to wait for an occasion, before another kind gets its turn."""
RETRY = 0.3
"""Seconds between two looks for an occasion."""


class Director:
    """Brings anomalies about, one at a time, where the camera sees them."""

    def __init__(
        self, rng: np.random.Generator, kinds: tuple[str, ...], per_hour: float, start: float
    ) -> None:
        self.rng, self.kinds = rng, kinds
        self.happened: list[str] = []
        """Kinds of all anomalies so far, by number."""
        self._mean = 3600 / per_hour if per_hour > 0 and kinds else np.inf
        self._due = start + rng.exponential(0.5 * self._mean) if self._mean < np.inf else np.inf
        self._bag: list[str] = []
        self._since, self._again = self._due, 0.0
        self._finish: Finish | None = None

    def direct(self, world: World) -> None:
        """Look after the anomaly that is on, or start one that is due."""
        if self._finish is not None:
            if self._finish():
                self._finish = None
                world.closed.clear()
                world.quiet.clear()
                self._since = max(self._due, world.time + 3)
        elif world.time >= max(self._due, self._since, self._again):
            self._again = world.time + RETRY
            self._start(world)

    def _start(self, world: World) -> None:
        """Any kind that has not had its turn yet and finds an occasion."""
        if not self._bag or world.time > self._since + PATIENCE:
            self._bag = [str(kind) for kind in self.rng.permutation(self.kinds)] + self._bag[-1:]
            self._since = max(self._since, world.time)
        for kind in reversed(self._bag):
            finish = LAUNCHES[kind](world, self.rng, len(self.happened))
            if finish is not None:
                self._bag.remove(kind)
                self.happened.append(kind)
                self._finish = finish
                self._due += APART + self.rng.exponential(max(self._mean - APART, 1.0))
                return
