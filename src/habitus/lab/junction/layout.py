"""The junction on the ground, in metres: four arms, their lanes, and the paths driven along them.

The centre is the origin, x leads east and y north. One drives on the left. A path is drawn once,
as seen by a driver who comes from the south (`right`, `ahead` of the centre), and then turned.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

LANE = 3.2
HALF = 2 * LANE
"""Half of a carriageway: a cycle lane, two lanes in, one lane out, a cycle lane."""
CYCLE = 5.6
"""A cycle lane's middle, from the middle of the road."""
KERB = 5.0
"""Radius of a corner's kerb."""
CORNER = HALF + KERB
"""Where the corners' curves begin, from the centre."""
PAVEMENT = 4.0
CROSSING = (11.9, 14.9)
STOP = 16.2
"""Stop lines, from the centre."""
REACH = 85.0
"""How far an arm leads."""
SPACING = 0.5
"""Between the points of a path."""
CLEARANCE = (3.0, 1.9)
"""Middles of two paths that are nearer than this cannot be used at once; with a cycle's."""
GRIP = 2.4
"""Sideways acceleration in curves that drivers put up with, m/s²."""

MOVEMENTS = (
    "ahead", "left", "right", "cycle-ahead", "cycle-left",
    "wrong-way", "wrong-way-cycle", "u-turn", "u-turn-arm", "pavement", "pavement-cycle",
)  # fmt: skip
RANKS = {"ahead": 0, "cycle-ahead": 0, "cycle-left": 1, "left": 1, "right": 2, "pavement": 0}
"""Who goes first where paths cross: the lower; 3 for all others."""


class Stretch(NamedTuple):
    """Where on a path a behaviour is abnormal, in metres along it."""

    start: float
    end: float


ABNORMAL = {
    "wrong-way": Stretch(0.0, 79.0),
    "wrong-way-cycle": Stretch(0.0, 170.0),
    "u-turn": Stretch(82.0, 97.0),
    "u-turn-arm": Stretch(55.0, 70.0),
    "pavement": Stretch(34.0, 65.0),
    "pavement-cycle": Stretch(0.0, 170.0),
}


HOLDS = {"u-turn": 76.5, "u-turn-arm": 52.0}
"""Where on a path one waits until the whole of a turn can be made, in metres along it."""


def number(arm: int, movement: str) -> int:
    """Of the path of a movement that starts in an arm (0 east, 1 north, 2 west, 3 south)."""
    return arm % 4 * len(MOVEMENTS) + MOVEMENTS.index(movement)


def outward(arm: int) -> Points:
    """Unit vector along an arm, away from the centre."""
    return np.array([(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][arm % 4])


def place(arm: int, distance: float, left: float) -> Points:
    """A point of an arm: metres from the centre, and to the left of those who drive in."""
    u = outward(arm)
    return distance * u + left * np.array([u[1], -u[0]])


def turned(points: Points, arm: int) -> Points:
    """Points (right, ahead), as seen by a driver from an arm, on the ground."""
    u = outward(arm)
    left = np.array([u[1], -u[0]])
    return np.asarray(-points[:, 1:] * u - points[:, :1] * left)


@dataclass(frozen=True)
class Paths:
    """All paths, as arrays by number; a path's points lie `SPACING` apart."""

    points: Points
    """Paths x points x 2; a path's last point is repeated."""
    lengths: Points
    limits: Points
    """Paths x points: the speed that curves allow, m/s, braking before them included."""
    zones: Points
    """Paths x paths x 2: where a path is too near another for both to be used; NaN if nowhere."""
    ranks: NDArray[np.int64]
    holds: Points
    """Where one waits before a turn that needs all of the road; infinite if it does not."""


@cache
def paths() -> Paths:
    """All paths of all arms."""
    drawn = [_even(turned(_drawn(movement), arm)) for arm in range(4) for movement in MOVEMENTS]
    longest = max(len(points) for points in drawn)
    points = np.stack([np.pad(p, ((0, longest - len(p)), (0, 0)), mode="edge") for p in drawn])
    return Paths(
        points=points,
        lengths=np.array([(len(p) - 1) * SPACING for p in drawn]),
        limits=np.stack([np.pad(_limits(p), (0, longest - len(p)), mode="edge") for p in drawn]),
        zones=_zones(drawn),
        ranks=np.array([RANKS.get(movement, 3) for _ in range(4) for movement in MOVEMENTS]),
        holds=np.array([HOLDS.get(movement, np.inf) for _ in range(4) for movement in MOVEMENTS]),
    )


def _drawn(movement: str) -> Points:
    """Corners of a path (right, ahead), of a driver from the south."""
    lane = {"right": 0.0, "u-turn": 0.0, "wrong-way": LANE, "wrong-way-cycle": CYCLE}
    side = -CYCLE if movement.startswith("cycle") else lane.get(movement, -LANE)
    begin = [(side, -REACH)]
    match movement:
        case "left" | "cycle-left":
            curve = _arc(-CORNER, -CORNER, CORNER + side, 0, 90)
            return np.array([*begin, *curve, (-REACH, side)])
        case "right" | "wrong-way":
            curve = _arc(side + 12, LANE - 12, 12, 180, 90)
            return np.array([*begin, *curve, (REACH, LANE)])
        case "u-turn":
            curve = _arc(3.9, -5.5, 4.7, 180, 0)
            back = _eased((8.6, -5.5), (LANE, -17.5))
            return np.array([*begin, *_eased((0, -16), (-0.8, -7)), *curve, *back, (LANE, -REACH)])
        case "u-turn-arm":
            curve = _arc(1.2, -32, 4.4, 180, 0)
            return np.array([*begin, *curve, *_eased((5.6, -33), (LANE, -42)), (LANE, -REACH)])
        case "pavement":
            up, down = _eased((side, -53), (-7.7, -43)), _eased((-7.7, -29), (side, -18.5))
            return np.array([*begin, *up, *down, (side, REACH)])
        case "pavement-cycle":
            curve = _arc(-CORNER, -CORNER, 3.2, 0, 90)
            return np.array([(-8.2, -REACH), *curve, (-REACH, -8.2)])
        case "wrong-way-cycle":
            curve = _arc(CORNER, -CORNER, CORNER - CYCLE, 180, 90)
            return np.array([*begin, *curve, (REACH, -CYCLE)])
    return np.array([*begin, (side, REACH)])


def _arc(x: float, y: float, radius: float, start: float, end: float) -> Points:
    angles = np.radians(np.linspace(start, end, 40))
    return np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)


def _eased(start: tuple[float, float], end: tuple[float, float]) -> Points:
    """A change of lane: sideways smoothly while going ahead evenly."""
    t = np.linspace(0, 1, 30)
    smooth = t * t * (3 - 2 * t)
    return np.stack(
        [start[0] + (end[0] - start[0]) * smooth, start[1] + (end[1] - start[1]) * t], axis=1
    )


def _even(corners: Points) -> Points:
    """The same path as points `SPACING` apart."""
    steps = np.hypot(*np.diff(corners, axis=0).T)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    at = np.arange(0, along[-1], SPACING)
    return np.stack([np.interp(at, along, corners[:, i]) for i in (0, 1)], axis=1)


def _limits(points: Points) -> Points:
    """Speed along a path: what its curvature allows, and no harder braking than 1.6 m/s²."""
    k = 4
    chords = points[2 * k :] - points[k:-k], points[k:-k] - points[: -2 * k]
    headings = [np.arctan2(c[:, 1], c[:, 0]) for c in chords]
    bend = np.abs((headings[0] - headings[1] + np.pi) % (2 * np.pi) - np.pi) / (k * SPACING)
    speeds = np.pad(np.sqrt(GRIP / np.maximum(bend, 0.005)), (k, k), mode="edge")
    for i in range(len(speeds) - 2, -1, -1):
        speeds[i] = min(speeds[i], np.sqrt(speeds[i + 1] ** 2 + 2 * 1.6 * SPACING))
    return speeds


def _zones(drawn: list[Points]) -> Points:
    """For each pair of paths, the stretch of the first that is too near the second."""
    n = len(drawn)
    zones = np.full((n, n, 2), np.nan)
    for p in range(len(MOVEMENTS)):
        for q in range(n):
            cycle = "cycle" in MOVEMENTS[p] + MOVEMENTS[q % len(MOVEMENTS)]
            found = _zone(drawn[p], drawn[q], CLEARANCE[cycle]) if p != q else None
            for quarter in range(4) if found else ():  # the junction looks alike from all arms
                turn = quarter * len(MOVEMENTS)
                zones[(p + turn) % n, (q + turn) % n] = found
    return zones


def _zone(path: Points, other: Points, clearance: float) -> tuple[float, float] | None:
    """None for paths that never meet, or that start in one lane: there, one follows."""
    apart = np.hypot(*(path[::2, None] - other[None, ::2]).transpose(2, 0, 1))
    near = np.flatnonzero(apart.min(axis=1) < clearance) * 2 * SPACING
    if not near.size or apart[0, 0] < clearance:
        return None
    end = near[-1] if apart[-1, -1] > 2.0 else near[0] + 8.0  # merged: one follows from there
    return float(near[0]), float(end)
