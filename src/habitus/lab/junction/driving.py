"""How one drives: compiled, for all vehicles at once.

A driver follows what is ahead in the way (the Intelligent Driver Model), slows down for curves,
stops at a wall (a stop line at red), and gives way where paths cross.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.lab.junction.fleet import Fleet
from habitus.lab.junction.layout import SPACING, Points
from habitus.lab.junction.signals import Light

AXLE = 0.9
"""Metres from an end of a vehicle to the axle there."""
COMFORT = 2.2
"""Braking that drivers like, m/s²."""
HARDEST = 8.0
SLOPE = 0.28
"""Metres sideways for each metre ahead, when a driver changes lanes."""
SOFT = 3.0
"""Braking that drivers accept to stop at amber, m/s²."""
RED, GREEN, AMBER = int(Light.RED), int(Light.GREEN), int(Light.AMBER)
MARGIN = 0.15
"""Air that drivers want beside them, metres."""


@compiled
def drive(
    fleet: Fleet, obstacles: Points, points: Points, limits: Points, zones: Points,
    ranks: NDArray[np.int64], stops: Points, holds: Points, step: float,
    time: float,
) -> None:  # fmt: skip
    """Move every vehicle by one step, in place; `obstacles` (x, y, radius) are people."""
    n = len(fleet)
    wanted = np.empty(n)
    for i in range(n):
        wanted[i] = _wanted(fleet, i, obstacles, points, limits, zones, ranks, stops, holds, time)
    for i in range(n):
        stop = stops[fleet[i].path]
        inside = stop > 0 and fleet[i].front > stop + 2.0
        _move(fleet, i, wanted[i], points, step, inside)


@compiled
def obey(
    fleet: Fleet, lights: NDArray[np.int64], left: Points, closed: NDArray[np.bool_],
    stops: Points, time: float,
) -> None:  # fmt: skip
    """Set where each driver must stop by law, in place.

    By path: `lights`, seconds `left` until red, and whether its way out is `closed`.
    """
    for i in range(len(fleet)):
        a = fleet[i]
        stop, light = stops[a.path], lights[a.path]
        ahead = stop - a.front
        a.wall, a.held = np.inf, False
        if ahead < 0 or a.lawless:
            continue
        if closed[a.path] and a.event < 0:
            light = RED
        # at amber, who would have to brake hard drives on, if amber lasts that long
        late = a.speed**2 > 2 * SOFT * max(ahead - 0.3, 0.01)
        late = late and ahead < 0.9 * a.speed * left[a.path]
        if light != GREEN and (light != AMBER or not late):
            a.wall, a.held, a.until = stop, True, time + a.delay
        elif time < a.until and a.speed < 0.5:
            a.wall = stop


@compiled
def _wanted(
    fleet: Fleet, i: int, obstacles: Points, points: Points, limits: Points, zones: Points,
    ranks: NDArray[np.int64], stops: Points, holds: Points, time: float,
) -> float:  # fmt: skip
    """Acceleration that a driver wants."""
    a = fleet[i]
    if a.broken > 0 and time < a.broken:
        return -3.2
    along = min(max(int(a.front / SPACING), 0), limits.shape[1] - 1)
    free = min(a.wish, limits[a.path, along])
    best = a.pull * (1.0 - (a.speed / max(free, 0.1)) ** 4)
    best = max(best, -2.5)
    a.steers = abs(a.target - a.shift) < 0.01 or not _beside(fleet, i)
    gap, speed, blocker = _ahead(fleet, i, obstacles, points)
    a.gap, a.blocker = gap, blocker
    best = min(best, _follow(a, gap, speed))
    if a.wall < np.inf:
        best = min(best, _follow(a, a.wall - a.front + a.space - 0.4, 0.0))
    wait = np.inf if a.waited > 5.0 else _gives_way(fleet, i, zones, ranks, stops, holds)
    if wait < np.inf:
        best = min(best, _follow(a, wait - a.front + a.space - 0.8, 0.0))
    return float(max(best, -HARDEST))


@compiled
def _follow(a: Any, gap: float, speed: float) -> float:
    """Intelligent Driver Model behind something `gap` metres ahead that moves with `speed`."""
    if gap > 90.0:
        return np.inf
    reach = a.speed * (a.speed - speed) / (2.0 * np.sqrt(a.pull * COMFORT))
    desired = a.space + max(0.0, a.speed * a.headway + reach)
    return float(a.pull * (1.0 - (a.speed / a.wish) ** 4 - (desired / max(gap, 0.05)) ** 2))


@compiled
def _ahead(fleet: Fleet, i: int, obstacles: Points, points: Points) -> tuple[float, float, int]:
    """Distance to the first thing in the way, its speed along it, and its number."""
    a = fleet[i]
    look = min(70.0, 10.0 + a.speed * 2.0 + a.speed * a.speed / 3.5)
    half = 0.5 * a.width + MARGIN
    nearest, speed, blocker = np.inf, 0.0, -1
    n, m = len(fleet), len(obstacles)
    for j in range(n + m):
        if j == i:
            continue
        if j < n:
            b = fleet[j]
            x, y, long, wide = b.x, b.y, 0.5 * b.length, 0.5 * b.width
            c, s, v = np.cos(b.heading), np.sin(b.heading), b.speed
        else:
            o = j - n
            x, y, long, wide = obstacles[o, 0], obstacles[o, 1], obstacles[o, 2], obstacles[o, 2]
            c, s, v = 1.0, 0.0, 0.0
        reach = look + long + 0.5 * a.length
        if (x - a.x) ** 2 + (y - a.y) ** 2 > reach * reach:
            continue
        k = 0
        while k * SPACING <= min(look, nearest):
            px, py, tx, ty = _at(points, a, a.front + k * SPACING, k * SPACING)
            dx, dy = x - px, y - py
            over = max(abs(dx * c + dy * s) - long, 0.0), max(abs(dy * c - dx * s) - wide, 0.0)
            if over[0] ** 2 + over[1] ** 2 < half * half:
                t = abs(tx * c + ty * s) * long + abs(ty * c - tx * s) * wide
                gap = k * SPACING + min(dx * tx + dy * ty - t, half)
                if gap < nearest and dx * tx + dy * ty > 0:
                    nearest, speed, blocker = gap, v * (tx * c + ty * s), j
                break
            # far from it, the next points can be left out
            k += max(1, int((np.sqrt(over[0] ** 2 + over[1] ** 2) - half) / SPACING))
    return nearest, speed, blocker


@compiled
def _beside(fleet: Fleet, i: int) -> bool:
    """Whether somebody is close beside a vehicle, on the side that it steers for."""
    a = fleet[i]
    side = 1.0 if a.target > a.shift else -1.0
    c, s = np.cos(a.heading), np.sin(a.heading)
    for j in range(len(fleet)):
        b = fleet[j]
        along = abs((b.x - a.x) * c + (b.y - a.y) * s) - 0.5 * (a.length + b.length)
        left = side * ((b.y - a.y) * c - (b.x - a.x) * s) - 0.5 * (a.width + b.width)
        if j != i and along < 1.5 and -1.5 < left < 0.8:
            return True
    return False


@compiled
def _at(points: Points, a: Any, along: float, ahead: float) -> tuple[float, float, float, float]:
    """Place and direction on a vehicle's way, `along` its path, `ahead` of its front."""
    path = points[a.path]
    at = along / SPACING
    k = min(max(int(np.floor(at)), 0), len(path) - 2)
    while k > 0 and path[k + 1, 0] == path[k, 0] and path[k + 1, 1] == path[k, 1]:
        k -= 1  # beyond the end, straight on
    tx, ty = (path[k + 1, 0] - path[k, 0]) / SPACING, (path[k + 1, 1] - path[k, 1]) / SPACING
    size = np.sqrt(tx * tx + ty * ty)
    tx, ty = tx / size, ty / size
    reach = max(0.0, ahead) * SLOPE if a.steers else 0.0
    shift = a.shift + min(max(a.target - a.shift, -reach), reach)
    rest = along - k * SPACING
    return path[k, 0] + rest * tx - shift * ty, path[k, 1] + rest * ty + shift * tx, tx, ty


@compiled
def _gives_way(
    fleet: Fleet, i: int, zones: Points, ranks: NDArray[np.int64], stops: Points, holds: Points
) -> float:
    """Where along its path a driver must wait for others whose paths cross his; inf if nowhere."""
    a, n_movements = fleet[i], len(ranks) // 4
    wait = np.inf
    for j in range(len(fleet)):
        b = fleet[j]
        start, end = zones[a.path, b.path]
        if j == i or not start - 45.0 < a.front < start or start >= wait:
            continue
        b_start, b_end = zones[b.path, a.path]
        if b.front - b.length > b_end or b.front < b_start - 70.0:
            continue
        across = (a.path // n_movements + b.path // n_movements) % 2 == 1
        clears = b.front > max(stops[b.path], b_start - 22.0)
        clears = clears and (stops[b.path] > 0 or b.speed > 0.3)
        if across and a.front < stops[a.path] and clears and not a.lawless:
            wait = min(wait, stops[a.path])  # one lets others clear the junction
        elif b.front >= b_start:
            # were it standing there, one would see whether it is in the way
            wait = start if b.speed > 0.5 or ranks[a.path] == 3 else wait
        elif not (b.held or b.broken > 0) and _clash(a, b, start, end, b_start, b_end):
            wait = wait if _first(a, b, start, b_start, ranks, stops) else start
    if a.front < holds[a.path] < wait < np.inf:
        wait = holds[a.path]  # rather than in the middle of a turn
    return float(wait)


@compiled
def _clash(a: Any, b: Any, start: float, end: float, b_start: float, b_end: float) -> bool:
    """Whether both would be where their paths cross at once."""
    clear = _seconds(a, end - a.front + a.length, 0.8 * a.pull)
    there = _seconds(a, start - a.front, a.pull)
    b_there = _seconds(b, b_start - b.front, b.pull)
    b_clear = (b_end - b.front + b.length) / max(b.speed, 1.0)
    return clear + 1.0 > b_there and there < b_clear + 1.0


@compiled
def _seconds(a: Any, distance: float, pull: float) -> float:
    """Until a vehicle that pulls away has gone so far."""
    return float((np.sqrt(a.speed**2 + 2.0 * pull * max(distance, 0.0)) - a.speed) / pull)


@compiled
def _first(
    a: Any, b: Any, start: float, b_start: float, ranks: NDArray[np.int64], stops: Points
) -> bool:
    """Whether `a` goes before `b`: who cannot stop any more, then the rules, then who is nearer."""
    late = a.speed**2 > 2.0 * 4.5 * max(start - a.front - 0.5, 0.01)
    b_late = b.speed**2 > 2.0 * 4.5 * max(b_start - b.front - 0.5, 0.01)
    if late != b_late:
        return bool(late)
    inside, b_inside = a.front > stops[a.path], b.front > stops[b.path]
    n_movements = len(ranks) // 4
    across = (a.path // n_movements + b.path // n_movements) % 2 == 1
    if across and inside != b_inside:
        return bool(inside)
    if ranks[a.path] != ranks[b.path]:
        return bool(ranks[a.path] < ranks[b.path])
    there, b_there = _seconds(a, start - a.front, a.pull), _seconds(b, b_start - b.front, b.pull)
    return bool(there < b_there if there != b_there else a.id < b.id)


@compiled
def _move(fleet: Fleet, i: int, wanted: float, points: Points, step: float, inside: bool) -> None:
    a = fleet[i]
    # brakes and engines take a moment
    change = min(max(wanted - a.acceleration, -12.0 * step), 5.0 * step)
    a.acceleration = max(a.acceleration + change, -HARDEST)
    if wanted < -4.0:
        a.acceleration = min(a.acceleration, wanted)
    speed = max(0.0, a.speed + a.acceleration * step)
    if speed < 0.05 and wanted <= 0.02:
        speed = 0.0
    ds = 0.5 * (a.speed + speed) * step
    if speed == 0.0:
        a.acceleration = min(a.acceleration, 0.0) * 0.5
    if a.held and a.front <= a.wall < a.front + ds and speed < 2.0:
        ds, speed = 0.0, 0.0  # the last centimetres before the line
    a.front += ds
    a.waited = a.waited + step if speed < 0.2 and inside else 0.0
    a.speed = speed
    if a.steers:
        a.shift += min(max(a.target - a.shift, -SLOPE * ds), SLOPE * ds)
    pose(fleet, i, points)


@compiled
def pose(fleet: Fleet, i: int, points: Points) -> None:
    """Set a vehicle's place and heading from its path: its axles are on it."""
    a = fleet[i]
    axle = min(AXLE, 0.2 * a.length)
    fx, fy, _, _ = _at(points, a, a.front - axle, 0.0)
    rx, ry, _, _ = _at(points, a, a.front - a.length + axle, 0.0)
    a.x, a.y, a.heading = 0.5 * (fx + rx), 0.5 * (fy + ry), np.arctan2(fy - ry, fx - rx)
