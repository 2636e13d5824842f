"""Layout of the junction: arms, lanes, the paths driven along them, and the traffic signals.

Coordinates are metres on the ground: the centre is the origin, x points east and y north. Vehicles
drive on the left. Each path is defined once, for a driver who enters from the south, in
coordinates (right, ahead) relative to the centre, and then rotated to the other arms.

The signals repeat a cycle of four phases: the main road; its right turns alone; the side road;
pedestrians. Drivers who turn right while oncoming traffic has green give way to it.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array

LANE_WIDTH = 3.2
"""Metres; all distances in this module are metres, all speeds m/s."""
HALF_ROAD = 2 * LANE_WIDTH
"""Half the width of a road, which has two lanes in, one lane out and two cycle lanes."""
CYCLE_LANE = 5.6
"""Distance of a cycle lane's centre line from the centre line of the road."""
KERB_RADIUS = 5.0
"""Radius of the kerb at a corner."""
CORNER_START = HALF_ROAD + KERB_RADIUS
"""Distance from the centre at which the kerb of a corner starts to curve."""
PAVEMENT_WIDTH = 4.0
CROSSING_SPAN = (11.9, 14.9)
"""Distances from the centre between which a pedestrian crossing lies."""
STOP_LINE = 16.2
"""Distance of the stop lines from the centre."""
ARM_LENGTH = 85.0
"""Distance from the centre to the end of an arm, where vehicles appear."""
STOP_ALONG_PATH = ARM_LENGTH - STOP_LINE
"""Distance of the stop line along a path without detours."""
POINT_SPACING = 0.5
"""Distance between successive points of a path."""
PATH_CLEARANCE = (3.0, 1.9)
"""Least distance between two paths in use at once: of vehicles; where a cycle is one of them."""
MAX_SIDEWAYS = 2.4
"""Largest lateral acceleration that drivers accept in curves, m/s²."""
AMBER_SECONDS = 3.0
"""Seconds of amber after green."""
READY_SECONDS = 2.0
"""Seconds of red and amber before green."""
WALK_CLEARANCE = 10.5
"""Seconds that pedestrians have to reach the other side after their green ends."""

MOVEMENTS = (
    *("ahead", "left", "right", "cycle-ahead", "cycle-left"),
    *("wrong-way", "wrong-way-cycle", "u-turn", "u-turn-arm", "pavement", "pavement-cycle"),
)
"""Usual movements, then those of anomalies."""
RANKS = {"ahead": 0, "cycle-ahead": 0, "cycle-left": 1, "left": 1, "right": 2, "pavement": 0}
"""Priority where paths cross: the lower rank goes first; all other movements have rank 3."""
STARTS = {
    "right": 0.0,
    "u-turn": 0.0,
    "wrong-way": LANE_WIDTH,
    "wrong-way-cycle": CYCLE_LANE,
    "pavement-cycle": -8.2,
}
"""How far to the right of the middle of the road a movement begins, if not in the left lane."""
TURNS = {"left": -1, "cycle-left": -1, "right": 1, "wrong-way": 1}
"""Arm by which a movement leaves, counted from that by which it enters; 2 for all others."""
RIGHT_TURNS = ("right", "u-turn", "wrong-way")
"""Movements that have the signal of right turns."""
ABNORMAL_SECTIONS = {
    "wrong-way": (0.0, 79.0),
    "wrong-way-cycle": (0.0, 170.0),
    "u-turn": (82.0, 97.0),
    "u-turn-arm": (55.0, 70.0),
    "pavement": (34.0, 65.0),
    "pavement-cycle": (0.0, 170.0),
}
"""Start and end of the section in which a movement is abnormal, in metres along the path."""
STOPS = {
    **dict.fromkeys(("u-turn-arm", "pavement-cycle", "wrong-way-cycle"), -np.inf),
    "pavement": STOP_ALONG_PATH + 1.9,
}
"""Stop lines along paths with detours, in metres; -inf for those that cross none."""
HOLD_POINTS = {"u-turn": 76.5, "u-turn-arm": 52.0}
"""Where a driver waits until the whole turn is free, in metres along the path."""


def path_index(arm: int, movement: str) -> int:
    """Return the index of the path of a movement from an arm (0 east, 1 north, 2 west, 3 south)."""
    return arm % 4 * len(MOVEMENTS) + MOVEMENTS.index(movement)


def arm_direction(arm: int) -> Array:
    """Return the unit vector along an arm, away from the centre."""
    return np.array([(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][arm % 4])


def on_arm(arm: int, x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return how far points are from the centre along an arm, and left of a driver who enters."""
    u = arm_direction(arm)
    return x * u[0] + y * u[1], x * u[1] - y * u[0]


def point_on_arm(arm: int, distance: float, left: float) -> Array:
    """Return a point `distance` from the centre, and `left` of a driver who enters by the arm."""
    u = arm_direction(arm)
    return distance * u + left * np.array([u[1], -u[0]])


def to_ground(points: Array, arm: int) -> Array:
    """Rotate points (right, ahead) relative to a driver from an arm to ground coordinates."""
    u = arm_direction(arm)
    left = np.array([u[1], -u[0]])
    return np.asarray(-points[:, 1:] * u - points[:, :1] * left)


class Paths(NamedTuple):
    """All paths as arrays, by path index; the points of a path are `POINT_SPACING` apart."""

    points: Array
    """Shape (paths, points, 2); shorter paths repeat their last point."""
    lengths: Array
    """Length of each path in metres."""
    limits: Array
    """Shape (paths, points): speed that curves allow, including braking before them."""
    zones: Array
    """Shape (paths, paths, 2): start and end of the section of the first path that is too near the
    second for both to be used; NaN if there is none."""
    ranks: NDArray[np.int64]
    """Priority of each path; see `RANKS`."""
    holds: Array
    """Where a driver waits before a turn that needs the whole road; infinite if there is none."""
    stops: Array
    """Distance of the stop line along each path; -inf if the path crosses none."""
    exits: NDArray[np.int64]
    """Arm by which each path leaves."""
    signals: NDArray[np.int64]
    """Signal of each path, of which an arm has two: 2 * arm, plus 1 for those who turn right."""


@cache
def paths() -> Paths:
    """Return the paths of all movements from all arms."""
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
        ranks=np.array([RANKS.get(movement, 3) for movement in 4 * MOVEMENTS]),
        holds=np.array([HOLD_POINTS.get(movement, np.inf) for movement in 4 * MOVEMENTS]),
        stops=np.array([STOPS.get(movement, STOP_ALONG_PATH) for movement in 4 * MOVEMENTS]),
        exits=np.array([(arm + TURNS.get(m, 2)) % 4 for arm in range(4) for m in MOVEMENTS]),
        signals=np.array([2 * arm + (m in RIGHT_TURNS) for arm in range(4) for m in MOVEMENTS]),
    )


def _waypoints(movement: str) -> Array:
    """Return the corners of a path as (right, ahead) of a driver from the south."""
    side = -CYCLE_LANE if movement.startswith("cycle") else STARTS.get(movement, -LANE_WIDTH)
    curves, end = list[Array](), (side, ARM_LENGTH)
    match movement:
        case "left" | "cycle-left":
            curves = [_arc(-CORNER_START, -CORNER_START, CORNER_START + side, 0, 90)]
            end = (-ARM_LENGTH, side)
        case "right" | "wrong-way":
            curves, end = [_arc(side + 12, LANE_WIDTH - 12, 12, 180, 90)], (ARM_LENGTH, LANE_WIDTH)
        case "u-turn":
            out, back = ((0, -16), (-0.8, -7)), ((8.6, -5.5), (LANE_WIDTH, -17.5))
            curves = [_lane_change(*out), _arc(3.9, -5.5, 4.7, 180, 0), _lane_change(*back)]
            end = (LANE_WIDTH, -ARM_LENGTH)
        case "u-turn-arm":
            back = (5.6, -33), (LANE_WIDTH, -42)
            curves = [_arc(1.2, -32, 4.4, 180, 0), _lane_change(*back)]
            end = (LANE_WIDTH, -ARM_LENGTH)
        case "pavement":
            up, down = ((side, -53), (-7.7, -43)), ((-7.7, -29), (side, -18.5))
            curves = [_lane_change(*up), _lane_change(*down)]
        case "pavement-cycle":
            curves = [_arc(-CORNER_START, -CORNER_START, 3.2, 0, 90)]
            end = (-ARM_LENGTH, side)
        case "wrong-way-cycle":
            curves = [_arc(CORNER_START, -CORNER_START, CORNER_START - side, 180, 90)]
            end = (ARM_LENGTH, -side)
    return np.concatenate([[(side, -ARM_LENGTH)], *curves, [end]])


def _arc(x: float, y: float, radius: float, start: float, end: float) -> Array:
    """Return points on an arc around (x, y), between two angles in degrees."""
    angles = np.radians(np.linspace(start, end, 40))
    return np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)


def _lane_change(start: tuple[float, float], end: tuple[float, float]) -> Array:
    """Return a smooth sideways shift at constant speed ahead."""
    t = np.linspace(0, 1, 30)
    smooth = t * t * (3 - 2 * t)
    return np.stack(
        [start[0] + (end[0] - start[0]) * smooth, start[1] + (end[1] - start[1]) * t], axis=1
    )


def _resample(corners: Array) -> Array:
    """Return the same path as points `POINT_SPACING` apart."""
    steps = np.hypot(*np.diff(corners, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    at = np.arange(0, along[-1], POINT_SPACING)
    return np.stack([np.interp(at, along, corners[:, i]) for i in (0, 1)], axis=1)


def _speed_limits(points: Array) -> Array:
    """Return speeds that the curvature allows, with braking of at most 1.6 m/s² before curves."""
    k = 4
    chords = points[2 * k :] - points[k:-k], points[k:-k] - points[: -2 * k]
    headings = [np.arctan2(c[:, 1], c[:, 0]) for c in chords]
    bend = np.abs((headings[0] - headings[1] + np.pi) % (2 * np.pi) - np.pi) / (k * POINT_SPACING)
    speeds = np.pad(np.sqrt(MAX_SIDEWAYS / np.maximum(bend, 0.005)), (k, k), mode="edge")
    for i in range(len(speeds) - 2, -1, -1):
        speeds[i] = min(speeds[i], np.sqrt(speeds[i + 1] ** 2 + 2 * 1.6 * POINT_SPACING))
    return speeds


def _conflict_zones(sampled: list[Array]) -> Array:
    """Return, for each pair of paths, the section of the first that is too near the second."""
    n = len(sampled)
    zones = np.full((n, n, 2), np.nan)
    for p in range(len(MOVEMENTS)):
        for q in range(n):
            cycle = "cycle" in MOVEMENTS[p] + MOVEMENTS[q % len(MOVEMENTS)]
            zone = _conflict_zone(sampled[p], sampled[q], PATH_CLEARANCE[cycle]) if p != q else None
            for quarter in range(4) if zone else ():  # the layout is the same from all arms
                turn = quarter * len(MOVEMENTS)
                zones[(p + turn) % n, (q + turn) % n] = zone
    return zones


def _conflict_zone(path: Array, other: Array, clearance: float) -> tuple[float, float] | None:
    """Return None for paths that never meet or that start in the same lane."""
    apart = np.hypot(*(path[::2, None] - other[None, ::2]).transpose(2, 0, 1))
    near = np.flatnonzero(apart.min(axis=1) < clearance) * 2 * POINT_SPACING
    if not near.size or apart[0, 0] < clearance:
        return None
    end = (
        near[-1] if apart[-1, -1] > 2.0 else near[0] + 8.0
    )  # merged: drivers follow each other there
    return float(near[0]), float(end)


class SignalLight(IntEnum):
    """Light that a signal shows."""

    RED = 0
    READY = 1
    """Red and amber, before green."""
    GREEN = 2
    AMBER = 3


@dataclass(frozen=True)
class Signals:
    """Timing of the traffic signals."""

    main: int
    """An arm of the main road, 0 or 1; the opposite arm belongs to it as well."""
    greens: tuple[float, float, float, float]
    """Seconds of green in each of the four phases."""
    all_red: float
    """Seconds in which all signals are red between two phases."""
    offset: float
    """Position in the cycle at time 0, in seconds."""

    @classmethod
    def random(cls, rng: np.random.Generator) -> "Signals":
        """Return a plausible random timing."""
        greens = rng.uniform([15, 6, 12, 5], [22, 8, 17, 7])
        ahead, right, side, walk = (float(seconds) for seconds in greens.round(1))
        all_red = float(rng.uniform(1.8, 2.6))
        return cls(int(rng.integers(2)), (ahead, right, side, walk), all_red, rng.uniform(0, 60))

    def at_another_time(self, rng: np.random.Generator) -> "Signals":
        """Return the same timing at a random position in its cycle."""
        return replace(self, offset=rng.uniform(0, self.cycle))

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """Start of each phase within the cycle, then the length of the cycle."""
        times = [0.0]
        for green in self.greens[:3]:
            times.append(times[-1] + green + AMBER_SECONDS + self.all_red)
        times.append(times[-1] + self.greens[3] + WALK_CLEARANCE)
        return tuple(times)

    @property
    def cycle(self) -> float:
        """Length of a cycle in seconds."""
        return self.starts[4]

    def phase(self, time: float) -> int:
        """Return the phase that has, or last had, green."""
        return int(np.searchsorted(self.starts, self._since(time), side="right")) - 1

    def light(self, arm: int, movement: str, time: float) -> SignalLight:
        """Return the light shown to a movement from an arm."""
        start, end = self._green(arm, movement)
        since = (self._since(time) - start) % self.cycle
        if since < end - start:
            return SignalLight.GREEN
        if since < end - start + AMBER_SECONDS:
            return SignalLight.AMBER
        return SignalLight.READY if since > self.cycle - READY_SECONDS else SignalLight.RED

    def left_of_green(self, arm: int, movement: str, time: float) -> float:
        """Return the seconds of green that remain; 0 if the light is not green."""
        start, end = self._green(arm, movement)
        return max(0.0, end - start - (self._since(time) - start) % self.cycle)

    def left_of_amber(self, arm: int, movement: str, time: float) -> float:
        """Return the seconds until red; 0 if the light is red."""
        start, end = self._green(arm, movement)
        return max(0.0, end - start + AMBER_SECONDS - (self._since(time) - start) % self.cycle)

    def walk(self, time: float) -> bool:
        """Return whether pedestrians may start to cross."""
        since = self._since(time) - self.starts[3]
        return 1.0 <= since < self.greens[3]

    def _since(self, time: float) -> float:
        """Return the position within the cycle."""
        return (time + self.offset) % self.cycle

    def _green(self, arm: int, movement: str) -> tuple[float, float]:
        """Return start and end of a movement's green within the cycle."""
        starts, greens = self.starts, self.greens
        if arm % 2 != self.main:
            return starts[2], starts[2] + greens[2]
        if movement in RIGHT_TURNS:
            return 0.0, starts[1] + greens[1]
        return 0.0, greens[0]
