"""Vehicles: their properties, and the compiled kernels that drive them.

A driver follows the vehicle ahead (the Intelligent Driver Model), slows down for curves, stops at
red signals and gives way where paths cross.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.compiled import compiled
from habitus.lab.junction.layout import POINT_SPACING, Paths, SignalLight

AXLE = 0.9
"""Distance from an end of a vehicle to the nearer axle, in metres."""
COMFORTABLE_BRAKING = 2.2
"""Comfortable deceleration of the driver model, m/s²."""
MAX_BRAKING = 8.0
"""Largest deceleration, m/s²."""
LATERAL_SLOPE = 0.28
"""Metres sideways per metre ahead in a lane change."""
AMBER_BRAKING = 3.0
"""Deceleration that drivers accept in order to stop at amber, m/s²."""
RED, GREEN, AMBER = int(SignalLight.RED), int(SignalLight.GREEN), int(SignalLight.AMBER)
SIDE_MARGIN = 0.15
"""Free width that drivers want on each side, in metres."""

CAR, VAN, LORRY, CYCLE, PERSON, LAMP, FENCE = range(7)
"""Kinds of moving objects (and of lamps and fences, which are drawn in the same way)."""

VEHICLE = np.dtype(
    [
        ("id", np.int64),
        ("kind", np.int64),  # CAR, VAN, LORRY or CYCLE
        ("path", np.int64),  # index into `Paths`
        ("front", np.float64),  # position of the front along the path, m
        ("speed", np.float64),
        ("acceleration", np.float64),
        ("length", np.float64),
        ("width", np.float64),
        ("height", np.float64),
        ("max_acceleration", np.float64),  # m/s²
        ("headway", np.float64),  # desired time gap to the vehicle ahead, s
        ("min_gap", np.float64),  # desired distance when standing, m
        ("desired_speed", np.float64),  # on a free road, m/s
        ("usual_lateral", np.float64),  # usual offset to the left of the path, m
        ("lateral", np.float64),  # current offset to the left of the path, m
        ("target_lateral", np.float64),  # offset that the driver steers for, m
        ("stop_at", np.float64),  # stop required by the signal, m along the path; or inf
        ("reaction_time", np.float64),  # delay after the signal turns green, s
        ("will_stop", np.bool_),  # whether the driver is stopping for the signal
        ("ignores_signals", np.bool_),
        ("broken_until", np.float64),  # time until which a broken-down vehicle stands; 0 if none
        ("reacts_at", np.float64),  # time at which the driver has reacted to green
        ("anomaly", np.int64),  # number of the anomaly that it causes; -1 if none
        ("abnormal", np.float64, (2,)),  # where along the path that is abnormal: start and end, m
        ("x", np.float64),  # of its middle, m
        ("y", np.float64),
        ("heading", np.float64),  # rad, anticlockwise from east
        ("gap", np.float64),  # distance to the nearest obstruction ahead, m
        ("blocker", np.int64),  # index of that obstruction; -1 if none
        ("waited", np.float64),  # seconds that it has stood inside the junction
        ("can_steer", np.bool_),  # whether there is room beside it to change lanes
    ]
)
"""Data type of one vehicle."""

Fleet = NDArray[Any]
"""Vehicles, an array of `VEHICLE`."""
Colours = NDArray[np.float64]
"""Shape (roles, 3): blue, green, red."""

ROLES = ("paint", "glass", "tyre", "second", "lamp", "tail", "signal")
"""Parts of a shape that have a colour of their own."""
N_ROLES = len(ROLES)

X, Y, HEADING, TRAVELLED, LENGTH, WIDTH, HEIGHT, KIND, BASE, COS, SIN, LUMA = range(12)
"""Columns of a row that describes an object.

From `LUMA` on follow the brightness of each role, then both colours of each role.
"""

PAINTS = np.array(
    [
        *((205, 205, 205), (170, 172, 172), (120, 122, 124), (92, 94, 96), (48, 46, 45)),
        *((38, 36, 36), (110, 62, 36), (86, 60, 40), (48, 44, 150), (40, 38, 112)),
        *((70, 92, 60), (120, 150, 170), (96, 104, 112), (228, 230, 232)),
    ],
    dtype=float,
)
"""Colours of vehicles (blue, green, red): mostly white, silver, grey and black."""
CLOTHES = np.array(
    [(40, 38, 40), (70, 60, 50), (120, 70, 45), (60, 55, 130), (170, 170, 175), (80, 100, 75)],
    dtype=float,
)
"""Colours of clothes (blue, green, red)."""


class VehicleKind(NamedTuple):
    """Range of sizes and driving parameters of one kind of vehicle: least and greatest."""

    length: tuple[float, float]
    width: tuple[float, float]
    height: tuple[float, float]
    max_acceleration: tuple[float, float]
    desired_speed: tuple[float, float]
    lateral: float
    """Largest usual offset from the middle of the lane, in metres."""


VEHICLE_KINDS = {
    CAR: VehicleKind((3.7, 4.8), (1.68, 1.88), (1.4, 1.65), (1.4, 2.3), (10.5, 14.5), 0.25),
    VAN: VehicleKind((4.9, 6.2), (1.9, 2.05), (2.0, 2.6), (1.2, 1.8), (10.0, 13.5), 0.2),
    LORRY: VehicleKind((7.2, 10.6), (2.3, 2.5), (3.0, 3.7), (0.8, 1.1), (9.0, 12.0), 0.1),
    CYCLE: VehicleKind((1.7, 1.8), (0.5, 0.6), (1.65, 1.85), (0.8, 1.3), (3.8, 6.8), 0.2),
}


def new_vehicle(rng: np.random.Generator, kind: int, path: int, number: int) -> Fleet:
    """Return a random vehicle of a kind at the start of a path."""
    vehicle = np.zeros(1, VEHICLE)
    usual = VEHICLE_KINDS[kind]
    vehicle["id"], vehicle["kind"], vehicle["path"], vehicle["anomaly"] = number, kind, path, -1
    for field in ("length", "width", "height", "max_acceleration", "desired_speed"):
        vehicle[field] = rng.uniform(*getattr(usual, field))
    vehicle["headway"], vehicle["min_gap"] = rng.uniform(0.9, 1.7), rng.uniform(1.5, 2.8)
    vehicle["usual_lateral"] = vehicle["lateral"] = vehicle["target_lateral"] = rng.uniform(
        -usual.lateral, usual.lateral
    )
    vehicle["reaction_time"], vehicle["stop_at"], vehicle["blocker"] = (
        rng.uniform(0.4, 1.6),
        np.inf,
        -1,
    )
    vehicle["front"], vehicle["speed"] = vehicle["length"], 0.85 * vehicle["desired_speed"]
    return vehicle


def random_colours(rng: np.random.Generator, kind: int) -> Colours:
    """Return random colours for the roles of an object."""
    base = PAINTS if kind in (CAR, VAN, LORRY) else CLOTHES
    paint = base[rng.integers(len(base))] * rng.uniform(0.85, 1.1)
    second = paint
    if kind == LORRY:
        second = PAINTS[rng.choice([0, 1, 6, 8, 11, 13])] * rng.uniform(0.8, 1.0)
    elif kind in (CYCLE, PERSON):
        second = CLOTHES[rng.integers(3)] * rng.uniform(0.7, 1.2)
    glass = np.array([64, 58, 52]) * rng.uniform(0.7, 1.3)
    if kind in (CYCLE, PERSON):  # a face or hair
        glass = np.array([[130, 150, 190], [50, 60, 80], [90, 110, 150]][rng.integers(3)])
    roles = [paint, glass, (34, 34, 34), second, (225, 232, 235), (40, 36, 120), (60, 120, 170)]
    return np.asarray(np.clip(np.array(roles, dtype=float), 0, 255))


@compiled
def drive(fleet: Fleet, obstacles: Array, paths: Paths, step: float, time: float) -> None:
    """Move every vehicle by one time step, in place.

    `obstacles` holds x, y and radius of the pedestrians on the road. Equals, in plain Python,
    ``a = [_desired_acceleration(fleet, i, ...) for i in range(len(fleet))]`` followed by
    ``for i in range(len(fleet)): _advance(fleet, i, a[i], ...)``.
    """
    n = len(fleet)
    wanted = np.empty(n)
    for i in range(n):
        wanted[i] = _desired_acceleration(fleet, i, obstacles, paths, time)
    for i in range(n):
        stop = paths.stops[fleet[i].path]
        inside = stop > 0 and fleet[i].front > stop + 2.0
        _advance(fleet, i, wanted[i], paths.points, step, inside)


@compiled
def obey_signals(
    fleet: Fleet,
    lights: NDArray[np.int64],
    left: Array,
    closed: NDArray[np.bool_],
    paths: Paths,
    time: float,
) -> None:
    """Set where each driver must stop for the signal, in place.

    `lights`, the seconds `left` until red, and whether the exit is `closed` are given per path.
    Equals ``fleet["stop_at"] = np.where(must_wait, paths.stops[fleet["path"]], np.inf)``, where
    `must_wait` is true at red, at amber with room to brake, and while reacting to green.
    """
    for i in range(len(fleet)):
        a = fleet[i]
        stop, light = paths.stops[a.path], lights[a.path]
        ahead = stop - a.front
        a.stop_at, a.will_stop = np.inf, False
        if ahead < 0 or a.ignores_signals:
            continue
        if closed[a.path] and a.anomaly < 0:
            light = RED
        # at amber, a driver who would have to brake hard goes on if amber lasts long enough
        late = a.speed**2 > 2 * AMBER_BRAKING * max(ahead - 0.3, 0.01)
        late = late and ahead < 0.9 * a.speed * left[a.path]
        if light != GREEN and (light != AMBER or not late):
            a.stop_at, a.will_stop, a.reacts_at = stop, True, time + a.reaction_time
        elif time < a.reacts_at and a.speed < 0.5:
            a.stop_at = stop


@compiled
def _desired_acceleration(
    fleet: Fleet, i: int, obstacles: Array, paths: Paths, time: float
) -> float:
    """Return the acceleration that a driver wants: the least of all that constrain it."""
    a = fleet[i]
    if a.broken_until > 0 and time < a.broken_until:
        return -3.2
    along = min(max(int(a.front / POINT_SPACING), 0), paths.limits.shape[1] - 1)
    free = min(a.desired_speed, paths.limits[a.path, along])
    best = a.max_acceleration * (1.0 - (a.speed / max(free, 0.1)) ** 4)
    best = max(best, -2.5)
    a.can_steer = abs(a.target_lateral - a.lateral) < 0.01 or not _is_side_blocked(fleet, i)
    gap, speed, blocker = _obstruction(fleet, i, obstacles, paths.points)
    a.gap, a.blocker = gap, blocker
    best = min(best, _following_acceleration(a, gap, speed))
    if a.stop_at < np.inf:
        best = min(best, _following_acceleration(a, a.stop_at - a.front + a.min_gap - 0.4, 0.0))
    wait = np.inf if a.waited > 5.0 else _yield_point(fleet, i, paths)
    if wait < np.inf:
        best = min(best, _following_acceleration(a, wait - a.front + a.min_gap - 0.8, 0.0))
    return float(max(best, -MAX_BRAKING))


@compiled
def _following_acceleration(a: Any, gap: float, speed: float) -> float:
    """Return the Intelligent Driver Model's acceleration behind an obstruction.

    `gap` is its distance ahead in metres, `speed` its speed in the same direction. Equals
    ``a_max * (1 - (v / v0)**4 - (desired / gap)**2)``.
    """
    if gap > 90.0:
        return np.inf
    reach = a.speed * (a.speed - speed) / (2.0 * np.sqrt(a.max_acceleration * COMFORTABLE_BRAKING))
    desired = a.min_gap + max(0.0, a.speed * a.headway + reach)
    return float(
        a.max_acceleration
        * (1.0 - (a.speed / a.desired_speed) ** 4 - (desired / max(gap, 0.05)) ** 2)
    )


@compiled
def _obstruction(fleet: Fleet, i: int, obstacles: Array, points: Array) -> tuple[float, float, int]:
    """Return distance, speed along the path and index of the nearest obstruction ahead."""
    a = fleet[i]
    look = min(70.0, 10.0 + a.speed * 2.0 + a.speed * a.speed / 3.5)
    half = 0.5 * a.width + SIDE_MARGIN
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
        while k * POINT_SPACING <= min(look, nearest):
            px, py, tx, ty = _point_on_way(
                points, a, a.front + k * POINT_SPACING, k * POINT_SPACING
            )
            dx, dy = x - px, y - py
            over = max(abs(dx * c + dy * s) - long, 0.0), max(abs(dy * c - dx * s) - wide, 0.0)
            if over[0] ** 2 + over[1] ** 2 < half * half:
                t = abs(tx * c + ty * s) * long + abs(ty * c - tx * s) * wide
                gap = k * POINT_SPACING + min(dx * tx + dy * ty - t, half)
                if gap < nearest and dx * tx + dy * ty > 0:
                    nearest, speed, blocker = gap, v * (tx * c + ty * s), j
                break
            # skip the points that are too far away to matter
            k += max(1, int((np.sqrt(over[0] ** 2 + over[1] ** 2) - half) / POINT_SPACING))
    return nearest, speed, blocker


@compiled
def _is_side_blocked(fleet: Fleet, i: int) -> bool:
    """Return whether another vehicle is close beside, on the side that the driver steers for."""
    a = fleet[i]
    side = 1.0 if a.target_lateral > a.lateral else -1.0
    c, s = np.cos(a.heading), np.sin(a.heading)
    for j in range(len(fleet)):
        b = fleet[j]
        along = abs((b.x - a.x) * c + (b.y - a.y) * s) - 0.5 * (a.length + b.length)
        left = side * ((b.y - a.y) * c - (b.x - a.x) * s) - 0.5 * (a.width + b.width)
        if j != i and along < 1.5 and -1.5 < left < 0.8:
            return True
    return False


@compiled
def _point_on_way(
    points: Array, a: Any, along: float, ahead: float
) -> tuple[float, float, float, float]:
    """Return position and direction `along` the path, `ahead` metres before the front."""
    path = points[a.path]
    at = along / POINT_SPACING
    k = min(max(int(np.floor(at)), 0), len(path) - 2)
    while k > 0 and path[k + 1, 0] == path[k, 0] and path[k + 1, 1] == path[k, 1]:
        k -= 1  # beyond the end of the path, go straight on
    tx = (path[k + 1, 0] - path[k, 0]) / POINT_SPACING
    ty = (path[k + 1, 1] - path[k, 1]) / POINT_SPACING
    size = np.sqrt(tx * tx + ty * ty)
    tx, ty = tx / size, ty / size
    reach = max(0.0, ahead) * LATERAL_SLOPE if a.can_steer else 0.0
    shift = a.lateral + min(max(a.target_lateral - a.lateral, -reach), reach)
    rest = along - k * POINT_SPACING
    return path[k, 0] + rest * tx - shift * ty, path[k, 1] + rest * ty + shift * tx, tx, ty


@compiled
def _yield_point(fleet: Fleet, i: int, paths: Paths) -> float:
    """Return where along its path a driver must wait for crossing traffic; inf if nowhere."""
    a, n_movements = fleet[i], len(paths.ranks) // 4
    wait = np.inf
    for j in range(len(fleet)):
        b = fleet[j]
        start, end = paths.zones[a.path, b.path]
        if j == i or not start - 45.0 < a.front < start or start >= wait:
            continue
        b_start, b_end = paths.zones[b.path, a.path]
        if b.front - b.length > b_end or b.front < b_start - 70.0:
            continue
        across = (a.path // n_movements + b.path // n_movements) % 2 == 1
        clears = b.front > max(paths.stops[b.path], b_start - 22.0)
        clears = clears and (paths.stops[b.path] > 0 or b.speed > 0.3)
        if across and a.front < paths.stops[a.path] and clears and not a.ignores_signals:
            wait = min(wait, paths.stops[a.path])  # let others clear the junction first
        elif b.front >= b_start:
            # a vehicle that stands there is handled as an obstruction
            wait = start if b.speed > 0.5 or paths.ranks[a.path] == 3 else wait
        elif b.will_stop or b.broken_until > 0:
            continue
        elif _conflicts(a, b, start, end, b_start, b_end):
            wait = wait if _has_priority(a, b, start, b_start, paths) else start
    if a.front < paths.holds[a.path] < wait < np.inf:
        wait = paths.holds[a.path]  # wait before the turn, not in the middle of it
    return float(wait)


@compiled
def _conflicts(a: Any, b: Any, start: float, end: float, b_start: float, b_end: float) -> bool:
    """Return whether both vehicles would occupy the conflict zone at the same time."""
    clear = _travel_time(a, end - a.front + a.length, 0.8 * a.max_acceleration)
    there = _travel_time(a, start - a.front, a.max_acceleration)
    b_there = _travel_time(b, b_start - b.front, b.max_acceleration)
    b_clear = (b_end - b.front + b.length) / max(b.speed, 1.0)
    return clear + 1.0 > b_there and there < b_clear + 1.0


@compiled
def _travel_time(a: Any, distance: float, acceleration: float) -> float:
    """Return the time to travel a distance with constant acceleration from the current speed."""
    reached = np.sqrt(a.speed**2 + 2.0 * acceleration * max(distance, 0.0))
    return float((reached - a.speed) / acceleration)


@compiled
def _has_priority(a: Any, b: Any, start: float, b_start: float, paths: Paths) -> bool:
    """Return whether `a` goes before `b`.

    First whoever cannot stop any more, then by priority rules, then whoever arrives first.
    """
    late = a.speed**2 > 2.0 * 4.5 * max(start - a.front - 0.5, 0.01)
    b_late = b.speed**2 > 2.0 * 4.5 * max(b_start - b.front - 0.5, 0.01)
    if late != b_late:
        return bool(late)
    inside, b_inside = a.front > paths.stops[a.path], b.front > paths.stops[b.path]
    n_movements = len(paths.ranks) // 4
    across = (a.path // n_movements + b.path // n_movements) % 2 == 1
    if across and inside != b_inside:
        return bool(inside)
    if paths.ranks[a.path] != paths.ranks[b.path]:
        return bool(paths.ranks[a.path] < paths.ranks[b.path])
    there = _travel_time(a, start - a.front, a.max_acceleration)
    b_there = _travel_time(b, b_start - b.front, b.max_acceleration)
    return bool(there < b_there if there != b_there else a.id < b.id)


@compiled
def _advance(fleet: Fleet, i: int, wanted: float, points: Array, step: float, inside: bool) -> None:
    """Apply an acceleration to one vehicle for one time step, in place."""
    a = fleet[i]
    # brakes and engines respond gradually
    change = min(max(wanted - a.acceleration, -12.0 * step), 5.0 * step)
    a.acceleration = max(a.acceleration + change, -MAX_BRAKING)
    if wanted < -4.0:
        a.acceleration = min(a.acceleration, wanted)
    speed = max(0.0, a.speed + a.acceleration * step)
    if speed < 0.05 and wanted <= 0.02:
        speed = 0.0
    ds = 0.5 * (a.speed + speed) * step
    if speed == 0.0:
        a.acceleration = min(a.acceleration, 0.0) * 0.5
    if a.will_stop and a.front <= a.stop_at < a.front + ds and speed < 2.0:
        ds, speed = 0.0, 0.0  # stop in the last centimetres before the line
    a.front += ds
    a.waited = a.waited + step if speed < 0.2 and inside else 0.0
    a.speed = speed
    if a.can_steer:
        a.lateral += min(max(a.target_lateral - a.lateral, -LATERAL_SLOPE * ds), LATERAL_SLOPE * ds)
    update_pose(fleet, i, points)


@compiled
def update_pose(fleet: Fleet, i: int, points: Array) -> None:
    """Set position and heading of a vehicle so that both axles are on its path."""
    a = fleet[i]
    axle = min(AXLE, 0.2 * a.length)
    fx, fy, _, _ = _point_on_way(points, a, a.front - axle, 0.0)
    rx, ry, _, _ = _point_on_way(points, a, a.front - a.length + axle, 0.0)
    a.x, a.y, a.heading = 0.5 * (fx + rx), 0.5 * (fy + ry), np.arctan2(fy - ry, fx - rx)
