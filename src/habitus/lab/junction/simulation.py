"""A scene's world from its seed: its states, and what is between them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from habitus.lab.junction.camera import Camera
from habitus.lab.junction.director import Director
from habitus.lab.junction.fleet import Colours
from habitus.lab.junction.layout import Points
from habitus.lab.junction.light import Daylight
from habitus.lab.junction.sprites import COS, SIN
from habitus.lab.junction.traffic import STEP, State, World


@dataclass(frozen=True)
class Interval:
    """The world between two states, of those things only that are in both."""

    before: State
    after: State
    looks: dict[int, Colours]

    def at(self, time: float, rows: Points) -> Points:
        """Rows for `sprites` with the things' places at a time; those of lamps stay."""
        share = min(max((time - self.before.time) / STEP, 0.0), 1.0)
        start, end = self.before.poses, self.after.poses
        change = end - start
        change[:, 2] = (change[:, 2] + np.pi) % (2 * np.pi) - np.pi
        placed = rows.copy()
        poses = start + share * change
        placed[: len(start), :4] = poses  # X, Y, HEADING, GONE
        placed[: len(start), COS] = np.cos(poses[:, 2])
        placed[: len(start), SIN] = np.sin(poses[:, 2])
        return placed


@dataclass(frozen=True)
class Simulation:
    """All that a seed decides, before anything is drawn."""

    camera: Camera
    light: Daylight
    world: World
    director: Director

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
        camera, light = Camera.drawn(streams[0], *size), Daylight.drawn(streams[0])
        world = World(streams[1], density, camera)
        director = Director(streams[2], kinds, per_hour, normal_for)
        while world.time < -STEP / 2:
            world.advance()
        return cls(camera, light, world, director)

    def intervals(self) -> Iterator[Interval]:
        """The world from time 0 on, without end."""
        before = self.world.state()
        while True:
            self.director.direct(self.world)
            self.world.advance()
            after = self.world.state()
            yield _common(before, after, self.world.looks)
            before = after


def _common(before: State, after: State, looks: dict[int, Colours]) -> Interval:
    both, i, j = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
    del both
    return Interval(_chosen(before, i), _chosen(after, j), looks)


def _chosen(state: State, which: np.ndarray) -> State:
    return State(state.time, *(field[which] for field in state[1:]))
