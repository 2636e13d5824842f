"""Simulation of a junction from a seed: when anomalies start, and the world in time steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.lab.junction.anomalies import STARTERS, IsOver
from habitus.lab.junction.camera import Camera, Daylight
from habitus.lab.junction.solids import COS, SIN
from habitus.lab.junction.traffic import STEP, Lane, Snapshot, World
from habitus.lab.junction.vehicles import Colours

MIN_SPACING = 8.0
"""Least seconds between the starts of two anomalies."""
PATIENCE = 60.0
"""Seconds to wait for an opportunity before other kinds are tried again."""
RETRY_SECONDS = 0.3
"""Seconds between two attempts to start an anomaly."""


def random_stream(seed: int, *part: int, traffic: int | None = None) -> np.random.Generator:
    """Return the random stream of a part of a scene, or of that part at another time."""
    # numpy ignores a 0 at the end: traffic 0 would be the scene's own
    when = () if traffic is None else (traffic + 1,)
    return np.random.default_rng([seed, *part, *when])


class AnomalyScheduler:
    """Starts anomalies at random times, one at a time, where the camera sees them."""

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
        """Check the anomaly in progress, or start one that is due."""
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
        """Start a kind that has not had its turn and finds an opportunity."""
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
    """Two successive snapshots, reduced to the objects that are in both."""

    before: Snapshot
    after: Snapshot
    colours: dict[int, Colours]
    """Colours of each object, by identifier."""

    def at(self, time: float, rows: Array) -> Array:
        """Return `rows` of objects (see `solids`) with poses interpolated at a time.

        Rows beyond the objects of the snapshots (signal lamps, fences) keep their places.
        """
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
    """Everything that a seed decides, before any drawing."""

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
        *,
        traffic: int | None = None,
        closed: frozenset[Lane] = frozenset(),
    ) -> "Simulation":
        """Return a simulation whose traffic has warmed up.

        `traffic` is the seed of the traffic, if the scene is to be seen at another time; in lanes
        that are closed nobody arrives.
        """
        rng = random_stream(seed, 0)
        camera, light = Camera.random(rng, *size), Daylight.random(rng)
        own = None if traffic is None else random_stream(seed, 1, traffic=traffic)
        world = World(random_stream(seed, 1), density, camera, traffic=own, closed=closed)
        chance = random_stream(seed, 2, traffic=traffic)
        scheduler = AnomalyScheduler(chance, kinds, per_hour, normal_for)
        while world.time < -STEP / 2:
            world.advance()
        return cls(camera, light, world, scheduler)

    def pairs(self) -> Iterator[SnapshotPair]:
        """Yield pairs of successive snapshots from time 0 on, without end."""
        before = self.world.snapshot()
        while True:
            self.scheduler.update(self.world)
            self.world.advance()
            after = self.world.snapshot()
            yield _paired(before, after, self.world.colours)
            before = after


def _paired(before: Snapshot, after: Snapshot, colours: dict[int, Colours]) -> SnapshotPair:
    """Return the pair of snapshots of the objects that are in both."""
    _, i, j = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
    return SnapshotPair(_select(before, i), _select(after, j), colours)


def _select(snapshot: Snapshot, which: NDArray[Any]) -> Snapshot:
    """Return a snapshot of some of its objects."""
    return Snapshot(snapshot.time, *(field[which] for field in snapshot[1:]))
