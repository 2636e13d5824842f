"""Kinds of anomalies, how each is started in the simulated world, and when.

Each starter looks for an opportunity. If there is one, it starts the anomaly with the given number
and returns a function that returns whether the anomaly is over; otherwise it returns None.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.lab.junction.layout import (
    ABNORMAL_SECTIONS,
    CROSSING_SPAN,
    CYCLE_LANE,
    HALF_ROAD,
    HOLD_POINTS,
    LANE_WIDTH,
    MOVEMENTS,
    STOP_ALONG_PATH,
    STOP_LINE,
    SignalLight,
    on_arm,
    path_index,
    point_on_arm,
)
from habitus.lab.junction.traffic import WALK_START, Pedestrian, World
from habitus.lab.junction.vehicles import CAR, CYCLE, VAN, Fleet

KINDS = ("wrong-way", "red-light", "jaywalker", "pavement", "u-turn", "breakdown")
"""Kinds of anomalies that a `Junction` can contain.

- ``wrong-way``: a vehicle drives into an arm's exit lane, or a cycle against its lane;
- ``red-light``: a vehicle passes a red light while crossing traffic has green;
- ``jaywalker``: a pedestrian crosses away from a crossing, or at red;
- ``pavement``: a vehicle or a cycle uses the pavement;
- ``u-turn``: a car turns back, in the junction or in an arm;
- ``breakdown``: a vehicle stops at green with nothing ahead of it, and stands there.
"""
BREAKDOWN_SECONDS = (15.0, 60.0)
"""Range of seconds for which a broken-down vehicle stands."""
U_TURN_PATIENCE = 40.0
"""Seconds after which a driver who finds no gap for a U-turn gives up."""
NORMAL_MOVEMENTS = ("ahead", "left", "right")
"""Movements of vehicles that may break down."""

MIN_SPACING = 8.0
"""Least seconds between the starts of two anomalies."""
PATIENCE = 60.0
"""Seconds to wait for an opportunity before other kinds are tried again."""
RETRY_SECONDS = 0.3
"""Seconds between two attempts to start an anomaly."""

IsOver = Callable[[], bool]
"""Function that returns whether an anomaly is over."""
Starter = Callable[[World, Generator, int], IsOver | None]
"""Function of the world, a random generator and a number, which tries to start an anomaly."""


def _visible_arms(world: World, distance: float, left: float) -> list[int]:
    """Return the arms of which the camera sees a given point."""
    spots = [point_on_arm(arm, distance, left) for arm in range(4)]
    return [arm for arm in range(4) if world.camera.sees(*spots[arm], margin=0.04)]


def _label(vehicle: Fleet, anomaly: int, start: float, end: float) -> None:
    """Attach an anomaly to a vehicle, abnormal from `start` to `end` along its path."""
    vehicle["anomaly"], vehicle["abnormal"] = anomaly, (start, end)


def _has_passed(world: World, vehicle_id: int) -> bool:
    """Return whether a vehicle has passed the abnormal section of its path, or has left."""
    vehicle = world.fleet[world.fleet["id"] == vehicle_id]
    return not len(vehicle) or bool(
        vehicle["front"][0] - vehicle["length"][0] > vehicle["abnormal"][0, 1] + 1
    )


def _send_vehicle(
    world: World, anomaly: int, kind: int, arm: int, movement: str, speed: float | None = None
) -> IsOver | None:
    """Add a vehicle on an abnormal path, at a usual or a given speed."""
    vehicle = world.add(kind, path_index(arm, movement))
    if vehicle is None:
        return None
    if speed is not None:
        vehicle["desired_speed"] = vehicle["speed"] = speed
    _label(vehicle, anomaly, *ABNORMAL_SECTIONS[movement])
    return partial(_has_passed, world, int(vehicle["id"][0]))


def wrong_way(world: World, rng: Generator, anomaly: int) -> IsOver | None:
    """Start a vehicle that enters by an exit lane and turns right at green, or a cycle."""
    arms = _visible_arms(world, 30.0, -LANE_WIDTH)
    # cars find opportunities less often: after a while, try a cycle
    if (anomaly + int(world.time // 30)) % 3 == 2 or not arms:
        return _wrong_way_cycle(world, rng, anomaly)
    for arm in rng.permutation(arms).tolist():
        arrival = world.time + STOP_ALONG_PATH / 9.0
        if world.signals.left_of_green(arm, "wrong-way", arrival) < 5.0 or _exit_in_use(world, arm):
            continue
        kind = int(rng.choice([CAR, CAR, VAN]))
        is_over = _send_vehicle(world, anomaly, kind, arm, "wrong-way", 9.5)
        if is_over is not None:
            world.closed_exits.add(arm)
            return is_over
    return None


def _wrong_way_cycle(world: World, rng: Generator, anomaly: int) -> IsOver | None:
    """Start a cycle that rides against the cycle lanes of two arms."""
    arms = [a for a in range(4) if world.camera.sees(*point_on_arm(a, 14.0, -CYCLE_LANE))]
    for arm in rng.permutation(arms).tolist():
        lanes = _cycles_on_arm(world, arm) | _cycles_on_arm(world, arm + 1)
        if not lanes.any():
            world.paused_lanes.update((a, "cycle") for a in range(4))
            return _send_vehicle(world, anomaly, CYCLE, arm, "wrong-way-cycle", 5.2)
    return None


def _cycles_on_arm(world: World, arm: int) -> NDArray[np.bool_]:
    """Return which vehicles are cycles on an arm or on their way to it."""
    fleet = world.fleet
    along, _ = on_arm(arm, fleet["x"], fleet["y"])
    return np.asarray((fleet["kind"] == CYCLE) & ((along > 8) | world.leaves_by(arm)))


def _exit_in_use(world: World, arm: int) -> bool:
    """Return whether any vehicle is on an arm's exit lane, or about to be."""
    fleet = world.fleet
    along, left = on_arm(arm, fleet["x"], fleet["y"])
    out = (along > 5) & (np.abs(left + LANE_WIDTH) < 1.7)
    # drivers who can still stop at their line will do so
    stands = fleet["front"] + fleet["speed"] ** 2 / (2 * 3.0) + 1.0
    inside = (stands > world.paths.stops[fleet["path"]]) & (along < 8)
    return bool((out | (world.leaves_by(arm) & inside)).any())


def red_light(world: World, rng: Generator, anomaly: int) -> IsOver | None:
    """Let the first vehicle that approaches a red light pass it while others have green."""
    phase = world.signals.phase(world.time)
    if phase == 3:
        return None  # only pedestrians have green
    for a in world.fleet:
        movement = MOVEMENTS[int(a["path"]) % len(MOVEMENTS)]
        ahead = float(world.paths.stops[a["path"]] - a["front"])
        if movement not in ("ahead", "cycle-ahead") or not 6 < ahead < 60 or a["anomaly"] >= 0:
            continue
        quick = a["speed"] > (3.0 if a["kind"] == CYCLE else 5.0)
        if (
            quick
            and a["gap"] > ahead + 6
            and _runs_red(world, a, ahead)
            and _crosses_safely(world, a)
        ):
            a["ignores_signals"] = True
            stop = float(world.paths.stops[a["path"]])
            _label(a, anomaly, stop, stop + 2 * STOP_LINE - 4)
            return partial(_has_passed, world, int(a["id"]))
    return None


def _runs_red(world: World, a: Fleet, ahead: float) -> bool:
    """Return whether the light will be red on arrival, while crossing traffic has green."""
    arm, movement = divmod(int(a["path"]), len(MOVEMENTS))
    there = world.time + ahead / float(a["speed"])
    lights = [world.signals.light(arm, MOVEMENTS[movement], t) for t in (world.time, there)]
    others = [(arm + 1, "ahead"), (arm + 2, "right")]
    cross = [world.signals.light(*other, t) for other in others for t in (there, there + 2.5)]
    return (
        lights[0] in (SignalLight.AMBER, SignalLight.RED)
        and lights[1] == SignalLight.RED
        and SignalLight.GREEN in cross
    )


def _crosses_safely(world: World, a: Fleet) -> bool:
    """Return whether all crossing traffic will see the vehicle in time, or will be gone."""
    line = float(world.paths.stops[a["path"]] - a["front"]) / float(a["speed"])
    for b in world.fleet:
        start, _ = world.paths.zones[a["path"], b["path"]]
        b_start, b_end = world.paths.zones[b["path"], a["path"]]
        if np.isnan(start) or b["front"] - b["length"] > b_end:
            continue
        arm, movement = divmod(int(b["path"]), len(MOVEMENTS))
        then = world.signals.light(arm, MOVEMENTS[movement], world.time + line - 0.3)
        if b["will_stop"] and then != SignalLight.GREEN:
            continue
        # once it is over the line, others let it pass if they can still stop in time
        across = (arm + int(a["path"]) // len(MOVEMENTS)) % 2 == 1
        must = world.paths.stops[b["path"]] if across else b_start - 1.5
        reach = b["front"] + b["speed"] * line + 0.5 * b["max_acceleration"] * line**2
        speed = b["speed"] + b["max_acceleration"] * line
        gone = (b_end - b["front"] + b["length"]) / max(float(b["speed"]), 0.1)
        away = gone + 1.0 < (start - a["front"]) / a["speed"] and b["speed"] > 4
        if not away and reach + speed**2 / 7.0 > must:
            return False
    return True


def jaywalker(world: World, rng: Generator, anomaly: int) -> IsOver | None:
    """Let a pedestrian cross away from a crossing, or while pedestrians have red."""
    for k in rng.permutation(len(world.people)):
        person = world.people[k]
        arm = int(np.argmax([on_arm(a, *person.at)[0] for a in range(4)]))
        along, left = map(float, on_arm(arm, *person.at))
        beside = HALF_ROAD < abs(left) < HALF_ROAD + 4.2 and person.crossing < 0
        away = 19 < along < 44 or (
            CROSSING_SPAN[0] < along < CROSSING_SPAN[1] and not person.moving
        )
        if beside and away and not world.signals.walk(world.time + 5):
            over = point_on_arm(
                arm, along + rng.uniform(-2, 2.0), -np.sign(left) * (HALF_ROAD + 1.5)
            )
            in_view = world.camera.sees(*person.at) and world.camera.sees(*over)
            if in_view and _road_is_clear(world, arm, along):
                return _start_jaywalking(world, person, arm, over, anomaly, rng)
    return None


def _road_is_clear(world: World, arm: int, along: float) -> bool:
    """Return whether no vehicle is near a place on an arm, or will be before it is crossed."""
    fleet = world.fleet
    spot = point_on_arm(arm, along, 0.0)
    away = np.stack([spot[0] - fleet["x"], spot[1] - fleet["y"]])
    distance = np.hypot(*away) - 0.5 * fleet["length"]
    heading: NDArray[np.float64] = fleet["heading"]
    towards = (away * np.stack([np.cos(heading), np.sin(heading)])).sum(axis=0) > 0
    soon = towards & (distance < 4.0 + fleet["speed"] * 3.6)
    standing = (fleet["speed"] < 0.3) & (distance > 5.0)
    near = distance < 5.0
    return not bool(((soon & ~standing) | near).any())


def _start_jaywalking(
    world: World, person: Pedestrian, arm: int, over: Array, anomaly: int, rng: Generator
) -> IsOver:
    """Send a pedestrian across the road."""
    side = float(np.sign(on_arm(arm, *over)[1]))
    end = point_on_arm(arm, WALK_START, side * (HALF_ROAD + 2.0))
    person.way = [(over, -1), (end, -1)]
    person.crossing, person.anomaly, person.pace = arm, anomaly, float(rng.uniform(1.3, 2.1))
    return lambda: person.crossing < 0 or person not in world.people


def pavement(world: World, rng: Generator, anomaly: int) -> IsOver | None:
    """Start a vehicle or a cycle that uses the pavement."""
    arms = _visible_arms(world, 36.0, HALF_ROAD + 1.3)
    if anomaly % 2 and arms:
        arm = int(rng.choice(arms))
        green = world.signals.left_of_green(arm, "ahead", world.time + 7.0)
        if _queue_length(world, arm, ("ahead", "left")) > 2 or green < 4.0:
            return None
        return _send_vehicle(world, anomaly, int(rng.choice([CAR, CAR, VAN])), arm, "pavement")
    seen = [
        arm
        for arm in range(4)
        if world.camera.sees(*point_on_arm(arm, 20.0, 8.2))
        or world.camera.sees(*point_on_arm(arm - 1, 20, -8.2))
    ]
    if not seen:
        return None
    return _send_vehicle(world, anomaly, CYCLE, int(rng.choice(seen)), "pavement-cycle", 5.5)


def u_turn(world: World, rng: Generator, anomaly: int) -> IsOver | None:
    """Start a car that turns back, in the junction or in an arm."""
    arms = _visible_arms(world, 35.0, 0.0)
    lane: tuple[str, ...]
    if anomaly % 2 and arms:
        arm, movement, lane = int(rng.choice(arms)), "u-turn-arm", ("ahead", "left")
    else:
        arm, movement, lane = int(rng.integers(4)), "u-turn", ("right",)
    if _queue_length(world, arm, lane) > 3:
        return None
    is_over = _send_vehicle(world, anomaly, CAR, arm, movement)
    if is_over is None or movement == "u-turn":
        return is_over
    ahead, late = path_index(arm, "ahead"), world.time + U_TURN_PATIENCE
    return lambda: _gives_up(world, anomaly, ahead, late) or is_over()


def _gives_up(world: World, anomaly: int, path: int, late: float) -> bool:
    """Let a driver who waits too long for a gap go ahead instead: no anomaly happens."""
    waits = world.fleet["anomaly"] == anomaly
    waits &= world.fleet["front"] < HOLD_POINTS["u-turn-arm"]
    if world.time <= late or not waits.any():
        return False
    world.fleet["path"][waits], world.fleet["anomaly"][waits] = path, -1
    return True


def _queue_length(world: World, arm: int, movements: tuple[str, ...]) -> int:
    """Return how many vehicles are approaching the stop line with one of the movements."""
    lane = np.isin(world.fleet["path"], [path_index(arm, movement) for movement in movements])
    return int((lane & (world.fleet["front"] < STOP_ALONG_PATH)).sum())


def breakdown(world: World, rng: Generator, anomaly: int) -> IsOver | None:
    """Let a vehicle stop at green with nothing ahead of it, and stand."""
    for a in world.fleet:
        movement = MOVEMENTS[int(a["path"]) % len(MOVEMENTS)]
        if movement not in NORMAL_MOVEMENTS or a["anomaly"] >= 0 or a["speed"] < 4:
            continue
        stands = float(a["speed"]) ** 2 / (2 * 3.2)
        ahead = float(world.paths.stops[a["path"]] - a["front"]) - stands
        arm = int(a["path"]) // len(MOVEMENTS)
        spot = point_on_arm(arm, STOP_LINE + ahead + 2, LANE_WIDTH * (movement != "right"))
        free = a["gap"] > 8 and 6 < ahead < 45
        green = world.signals.left_of_green(arm, movement, world.time)
        if free and green > 4.0 and world.camera.sees(*spot, margin=0.05, farthest=66.0):
            a["broken_until"] = world.time + stands / 3 + rng.uniform(*BREAKDOWN_SECONDS)
            _label(a, anomaly, -np.inf, np.inf)
            return partial(_is_repaired, world, int(a["id"]))
    return None


def _is_repaired(world: World, vehicle_id: int) -> bool:
    """Return whether a broken-down vehicle goes on, from now on as a usual one, or has left."""
    it = world.fleet["id"] == vehicle_id
    if (world.time < world.fleet["broken_until"][it]).any():
        return False
    world.fleet["broken_until"][it], world.fleet["anomaly"][it] = 0, -1
    return True


STARTERS: dict[str, Starter] = {
    "wrong-way": wrong_way,
    "red-light": red_light,
    "jaywalker": jaywalker,
    "pavement": pavement,
    "u-turn": u_turn,
    "breakdown": breakdown,
}
"""Starter of each kind of anomaly."""


class AnomalyScheduler:
    """Starts anomalies at random times, one at a time, where the camera sees them."""

    def __init__(
        self, rng: Generator, kinds: tuple[str, ...], per_hour: float, start: float
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
