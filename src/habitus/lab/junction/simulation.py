"""Simulation of a junction from a seed: when anomalies start, and the world in time steps."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from habitus.arrays import Array
from habitus.lab.junction.anomalies import STARTERS, IsOver
from habitus.lab.junction.camera import Camera, Daylight
from habitus.lab.junction.solids import COS, SIN
from habitus.lab.junction.traffic import STEP, Snapshot, World
from habitus.lab.junction.vehicles import Colours

MIN_SPACING = 8.0
"""Least seconds between the starts of two anomalies."""
PATIENCE = 60.0
"""Seconds to wait for an occasion, before another kind gets its turn."""
RETRY_SECONDS = 0.3
"""Seconds between two looks for an occasion."""


class AnomalyScheduler:
    """Brings anomalies about, one at a time, where the camera sees them."""

    def __init__(
        self, rng: np.random.Generator, kinds: tuple[str, ...], per_hour: float, start: float
    ) -> None:
        self.rng, self.kinds = rng, kinds
        self.started: list[str] = []
        """Kinds of all anomalies so far, by number."""
        self._mean = 3600 / per_hour if per_hour > 0 and kinds else np.inf
        self._due = start + rng.exponential(0.5 * self._mean) if self._mean < np.inf else np.inf
        self._bag: list[str] = []
        self._since, self._again = self._due, 0.0
        self._is_over: IsOver | None = None

    def update(self, world: World) -> None:
        """Look after the anomaly that is on, or start one that is due."""
        if self._is_over is not None:
            if self._is_over():
                self._is_over = None
                world.closed_exits.clear()
                world.paused_lanes.clear()
                self._since = max(self._due, world.time + 3)
        elif world.time >= max(self._due, self._since, self._again):
            self._again = world.time + RETRY_SECONDS
            self._start(world)

    def _start(self, world: World) -> None:
        """Any kind that has not had its turn yet and finds an occasion."""
        if not self._bag or world.time > self._since + PATIENCE:
            self._bag = [str(kind) for kind in self.rng.permutation(self.kinds)] + self._bag[-1:]
            self._since = max(self._since, world.time)
        for kind in reversed(self._bag):
            is_over = STARTERS[kind](world, self.rng, len(self.started))
            if is_over is not None:
                self._bag.remove(kind)
                self.started.append(kind)
                self._is_over = is_over
                self._due += MIN_SPACING + self.rng.exponential(max(self._mean - MIN_SPACING, 1.0))
                return


@dataclass(frozen=True)
class SnapshotPair:
    """The world between two states, of those objects only that are in both."""

    before: Snapshot
    after: Snapshot
    looks: dict[int, Colours]

    def at(self, time: float, rows: Array) -> Array:
        """Rows for `sprites` with the objects' places at a time; those of lamps stay."""
        share = min(max((time - self.before.time) / STEP, 0.0), 1.0)
        start, end = self.before.poses, self.after.poses
        change = end - start
        change[:, 2] = (change[:, 2] + np.pi) % (2 * np.pi) - np.pi
        placed = rows.copy()
        poses = start + share * change
        placed[: len(start), :4] = poses  # X, Y, HEADING, TRAVELLED
        placed[: len(start), COS] = np.cos(poses[:, 2])
        placed[: len(start), SIN] = np.sin(poses[:, 2])
        return placed


@dataclass(frozen=True)
class Simulation:
    """All that a seed decides, before anything is drawn."""

    camera: Camera
    light: Daylight
    world: World
    scheduler: AnomalyScheduler

    @classmethod
    def start(
        cls,
        seed: int,
        size: tuple[int, int],
        density: float,
        kinds: tuple[str, ...],
        per_hour: float,
        normal_for: float,
    ) -> "Simulation":
        """A world that has run for a while."""
        streams = [np.random.default_rng([seed, k]) for k in range(3)]
        camera, light = Camera.random(streams[0], *size), Daylight.random(streams[0])
        world = World(streams[1], density, camera)
        scheduler = AnomalyScheduler(streams[2], kinds, per_hour, normal_for)
        while world.time < -STEP / 2:
            world.advance()
        return cls(camera, light, world, scheduler)

    def intervals(self) -> Iterator[SnapshotPair]:
        """The world from time 0 on, without end."""
        before = self.world.state()
        while True:
            self.scheduler.update(self.world)
            self.world.advance()
            after = self.world.state()
            yield _paired(before, after, self.world.looks)
            before = after


def _paired(before: Snapshot, after: Snapshot, looks: dict[int, Colours]) -> SnapshotPair:
    _, i, j = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
    return SnapshotPair(_select(before, i), _select(after, j), looks)


def _select(state: Snapshot, which: np.ndarray) -> Snapshot:
    return Snapshot(state.time, *(field[which] for field in state[1:]))
