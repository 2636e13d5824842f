"""Layout of the junction: arms, lanes, the paths driven along them, and the traffic signals.

Coordinates are metres on the ground: the centre is the origin, x points east and y north. Vehicles
drive on the left. Each path is defined once, for a driver who enters from the south, in
coordinates (right, ahead) relative to the centre, and then rotated to the other arms.

The signals repeat a cycle of four phases: the main road; its right turns alone; the side road;
pedestrians. Drivers who turn right while oncoming traffic has green give way to it.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array

# == layout
LANE_WIDTH = 3.2
HALF_ROAD = 2 * LANE_WIDTH
"""Half of a carriageway: a cycle lane, two lanes in, one lane out, a cycle lane."""
CYCLE_LANE = 5.6
"""A cycle lane's middle, from the middle of the road."""
KERB_RADIUS = 5.0
"""Radius of a corner's kerb."""
CORNER_START = HALF_ROAD + KERB_RADIUS
"""Where the corners' curves begin, from the centre."""
PAVEMENT_WIDTH = 4.0
CROSSING_SPAN = (11.9, 14.9)
STOP_LINE = 16.2
"""Stop lines, from the centre."""
ARM_LENGTH = 85.0
"""How far an arm leads."""
POINT_SPACING = 0.5
"""Between the points of a path."""
PATH_CLEARANCE = (3.0, 1.9)
"""Middles of two paths that are nearer than this cannot be used at once; with a cycle's."""
MAX_SIDEWAYS = 2.4
"""Sideways acceleration in curves that drivers put up with, m/s²."""
AMBER_SECONDS = 3.0
READY_SECONDS = 2.0
"""Seconds of red and amber before green."""
WALK_CLEARANCE = 10.5
"""Seconds that people have to reach the other side."""

MOVEMENTS = (
    "ahead",
    "left",
    "right",
    "cycle-ahead",
    "cycle-left",
    "wrong-way",
    "wrong-way-cycle",
    "u-turn",
    "u-turn-arm",
    "pavement",
    "pavement-cycle",
)
RANKS = {"ahead": 0, "cycle-ahead": 0, "cycle-left": 1, "left": 1, "right": 2, "pavement": 0}
"""Who goes first where paths cross: the lower; 3 for all others."""


class PathSection(NamedTuple):
    """Where on a path a behaviour is abnormal, in metres along it."""

    start: float
    end: float


ABNORMAL_SECTIONS = {
    "wrong-way": PathSection(0.0, 79.0),
    "wrong-way-cycle": PathSection(0.0, 170.0),
    "u-turn": PathSection(82.0, 97.0),
    "u-turn-arm": PathSection(55.0, 70.0),
    "pavement": PathSection(34.0, 65.0),
    "pavement-cycle": PathSection(0.0, 170.0),
}


HOLD_POINTS = {"u-turn": 76.5, "u-turn-arm": 52.0}
"""Where on a path one waits until the whole of a turn can be made, in metres along it."""


def path_index(arm: int, movement: str) -> int:
    """Of the path of a movement that starts in an arm (0 east, 1 north, 2 west, 3 south)."""
    return arm % 4 * len(MOVEMENTS) + MOVEMENTS.index(movement)


def arm_direction(arm: int) -> Array:
    """Unit vector along an arm, away from the centre."""
    return np.array([(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][arm % 4])


def point_on_arm(arm: int, distance: float, left: float) -> Array:
    """A point of an arm: metres from the centre, and to the left of those who drive in."""
    u = arm_direction(arm)
    return distance * u + left * np.array([u[1], -u[0]])


def to_ground(points: Array, arm: int) -> Array:
    """Array (right, ahead), as seen by a driver from an arm, on the ground."""
    u = arm_direction(arm)
    left = np.array([u[1], -u[0]])
    return np.asarray(-points[:, 1:] * u - points[:, :1] * left)


@dataclass(frozen=True)
class Paths:
    """All paths, as arrays by number; a path's points lie `POINT_SPACING` apart."""

    points: Array
    """Paths x points x 2; a path's last point is repeated."""
    lengths: Array
    limits: Array
    """Paths x points: the speed that curves allow, m/s, braking before them included."""
    zones: Array
    """Paths x paths x 2: where a path is too near another for both to be used; NaN if nowhere."""
    ranks: NDArray[np.int64]
    holds: Array
    """Where one waits before a turn that needs all of the road; infinite if it does not."""


@cache
def paths() -> Paths:
    """All paths of all arms."""
    sampled = [
        _resample(to_ground(_waypoints(movement), arm))
        for arm in range(4)
        for movement in MOVEMENTS
    ]
    longest = max(len(points) for points in sampled)
    points = np.stack([np.pad(p, ((0, longest - len(p)), (0, 0)), mode="edge") for p in sampled])
    return Paths(
        points=points,
        lengths=np.array([(len(p) - 1) * POINT_SPACING for p in sampled]),
        limits=np.stack(
            [np.pad(_speed_limits(p), (0, longest - len(p)), mode="edge") for p in sampled]
        ),
        zones=_conflict_zones(sampled),
        ranks=np.array([RANKS.get(movement, 3) for _ in range(4) for movement in MOVEMENTS]),
        holds=np.array(
            [HOLD_POINTS.get(movement, np.inf) for _ in range(4) for movement in MOVEMENTS]
        ),
    )


def _waypoints(movement: str) -> Array:
    """Corners of a path (right, ahead), of a driver from the south."""
    lane = {"right": 0.0, "u-turn": 0.0, "wrong-way": LANE_WIDTH, "wrong-way-cycle": CYCLE_LANE}
    side = -CYCLE_LANE if movement.startswith("cycle") else lane.get(movement, -LANE_WIDTH)
    begin = [(side, -ARM_LENGTH)]
    match movement:
        case "left" | "cycle-left":
            curve = _arc(-CORNER_START, -CORNER_START, CORNER_START + side, 0, 90)
            return np.array([*begin, *curve, (-ARM_LENGTH, side)])
        case "right" | "wrong-way":
            curve = _arc(side + 12, LANE_WIDTH - 12, 12, 180, 90)
            return np.array([*begin, *curve, (ARM_LENGTH, LANE_WIDTH)])
        case "u-turn":
            curve = _arc(3.9, -5.5, 4.7, 180, 0)
            back = _lane_change((8.6, -5.5), (LANE_WIDTH, -17.5))
            return np.array(
                [
                    *begin,
                    *_lane_change((0, -16), (-0.8, -7)),
                    *curve,
                    *back,
                    (LANE_WIDTH, -ARM_LENGTH),
                ]
            )
        case "u-turn-arm":
            curve = _arc(1.2, -32, 4.4, 180, 0)
            return np.array(
                [
                    *begin,
                    *curve,
                    *_lane_change((5.6, -33), (LANE_WIDTH, -42)),
                    (LANE_WIDTH, -ARM_LENGTH),
                ]
            )
        case "pavement":
            up, down = (
                _lane_change((side, -53), (-7.7, -43)),
                _lane_change((-7.7, -29), (side, -18.5)),
            )
            return np.array([*begin, *up, *down, (side, ARM_LENGTH)])
        case "pavement-cycle":
            curve = _arc(-CORNER_START, -CORNER_START, 3.2, 0, 90)
            return np.array([(-8.2, -ARM_LENGTH), *curve, (-ARM_LENGTH, -8.2)])
        case "wrong-way-cycle":
            curve = _arc(CORNER_START, -CORNER_START, CORNER_START - CYCLE_LANE, 180, 90)
            return np.array([*begin, *curve, (ARM_LENGTH, -CYCLE_LANE)])
    return np.array([*begin, (side, ARM_LENGTH)])


def _arc(x: float, y: float, radius: float, start: float, end: float) -> Array:
    angles = np.radians(np.linspace(start, end, 40))
    return np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)


def _lane_change(start: tuple[float, float], end: tuple[float, float]) -> Array:
    """A change of lane: sideways smoothly while going ahead evenly."""
    t = np.linspace(0, 1, 30)
    smooth = t * t * (3 - 2 * t)
    return np.stack(
        [start[0] + (end[0] - start[0]) * smooth, start[1] + (end[1] - start[1]) * t], axis=1
    )


def _resample(corners: Array) -> Array:
    """The same path as points `POINT_SPACING` apart."""
    steps = np.hypot(*np.diff(corners, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    at = np.arange(0, along[-1], POINT_SPACING)
    return np.stack([np.interp(at, along, corners[:, i]) for i in (0, 1)], axis=1)


def _speed_limits(points: Array) -> Array:
    """Speed along a path: what its curvature allows, and no harder braking than 1.6 m/s²."""
    k = 4
    chords = points[2 * k :] - points[k:-k], points[k:-k] - points[: -2 * k]
    headings = [np.arctan2(c[:, 1], c[:, 0]) for c in chords]
    bend = np.abs((headings[0] - headings[1] + np.pi) % (2 * np.pi) - np.pi) / (k * POINT_SPACING)
    speeds = np.pad(np.sqrt(MAX_SIDEWAYS / np.maximum(bend, 0.005)), (k, k), mode="edge")
    for i in range(len(speeds) - 2, -1, -1):
        speeds[i] = min(speeds[i], np.sqrt(speeds[i + 1] ** 2 + 2 * 1.6 * POINT_SPACING))
    return speeds


def _conflict_zones(sampled: list[Array]) -> Array:
    """For each pair of paths, the stretch of the first that is too near the second."""
    n = len(sampled)
    zones = np.full((n, n, 2), np.nan)
    for p in range(len(MOVEMENTS)):
        for q in range(n):
            cycle = "cycle" in MOVEMENTS[p] + MOVEMENTS[q % len(MOVEMENTS)]
            found = (
                _conflict_zone(sampled[p], sampled[q], PATH_CLEARANCE[cycle]) if p != q else None
            )
            for quarter in range(4) if found else ():  # the junction looks alike from all arms
                turn = quarter * len(MOVEMENTS)
                zones[(p + turn) % n, (q + turn) % n] = found
    return zones


def _conflict_zone(path: Array, other: Array, clearance: float) -> tuple[float, float] | None:
    """None for paths that never meet, or that start in one lane: there, one follows."""
    apart = np.hypot(*(path[::2, None] - other[None, ::2]).transpose(2, 0, 1))
    near = np.flatnonzero(apart.min(axis=1) < clearance) * 2 * POINT_SPACING
    if not near.size or apart[0, 0] < clearance:
        return None
    end = near[-1] if apart[-1, -1] > 2.0 else near[0] + 8.0  # merged: one follows from there
    return float(near[0]), float(end)


class SignalLight(IntEnum):
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
    def random(cls, rng: np.random.Generator) -> "Signals":
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
            times.append(times[-1] + green + AMBER_SECONDS + self.all_red)
        return (*times, times[-1] + self.greens[3] + WALK_CLEARANCE)  # type: ignore[return-value]

    @property
    def cycle(self) -> float:
        """Seconds of a whole cycle."""
        return self.starts[4]

    def phase(self, time: float) -> int:
        """The phase whose green is on or was last on."""
        return int(np.searchsorted(self.starts, self._since(time), side="right")) - 1

    def light(self, arm: int, movement: str, time: float) -> SignalLight:
        """What those see who come from an arm."""
        start, end = self._green(arm, movement)
        since = (self._since(time) - start) % self.cycle
        if since < end - start:
            return SignalLight.GREEN
        if since < end - start + AMBER_SECONDS:
            return SignalLight.AMBER
        return SignalLight.READY if since > self.cycle - READY_SECONDS else SignalLight.RED

    def left_of_green(self, arm: int, movement: str, time: float) -> float:
        """Seconds of green to come, 0 if it is not green."""
        start, end = self._green(arm, movement)
        return max(0.0, end - start - (self._since(time) - start) % self.cycle)

    def left_of_amber(self, arm: int, movement: str, time: float) -> float:
        """Seconds until red, of a light that is green or amber; 0 if it is red."""
        start, end = self._green(arm, movement)
        return max(0.0, end - start + AMBER_SECONDS - (self._since(time) - start) % self.cycle)

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
