"""What is not habitual: how each kind of anomaly is brought about.

Each function looks for an occasion and, if there is one, starts the anomaly with a given number; it
gives a function that tells when it is over, or None.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from habitus.lab.junction.fleet import CAR, CYCLE, VAN, Fleet
from habitus.lab.junction.layout import (
    ABNORMAL,
    CROSSING,
    HALF,
    HOLDS,
    LANE,
    MOVEMENTS,
    REACH,
    STOP,
    Points,
    number,
    place,
)  # fmt: skip
from habitus.lab.junction.layout import CYCLE as CYCLE_LANE
from habitus.lab.junction.people import START, Person
from habitus.lab.junction.signals import Light
from habitus.lab.junction.traffic import World

KINDS = ("wrong-way", "red-light", "jaywalker", "pavement", "u-turn", "breakdown")
STANDING = (15.0, 60.0)
"""Seconds that a vehicle which broke down stands."""
GIVES_UP = 40.0
"""Seconds after which one who finds no gap to turn round gives up."""
NORMAL = ("ahead", "left", "right")


Finish = Callable[[], bool]
Launch = Callable[[World, np.random.Generator, int], Finish | None]


def _visible_arms(world: World, distance: float, left: float, *, margin: float = 0.04) -> list[int]:
    spots = [place(arm, distance, left) for arm in range(4)]
    return [arm for arm in range(4) if world.camera.sees(*spots[arm], margin=margin)]


def _mark(vehicle: Fleet, event: int, start: float, end: float) -> None:
    vehicle["event"], vehicle["odd"] = event, (start, end)


def _gone_by(world: World, ident: int) -> Finish:
    """Over once a vehicle has passed the abnormal part of its path, or has left."""

    def finished() -> bool:
        found = world.fleet[world.fleet["id"] == ident]
        return not len(found) or bool(
            found["front"][0] - found["length"][0] > found["odd"][0, 1] + 1
        )

    return finished


def _send(
    world: World, event: int, kind: int, arm: int, movement: str, wish: float | None = None
) -> Finish | None:
    """A vehicle that takes an abnormal path, at a speed of its own or a given one."""
    made = world.add(kind, number(arm, movement))
    if made is None:
        return None
    if wish is not None:
        made["wish"] = made["speed"] = wish
    _mark(made, event, *ABNORMAL[movement])
    return _gone_by(world, int(made["id"][0]))


def wrong_way(world: World, rng: np.random.Generator, event: int) -> Finish | None:
    """Up the lane that leads out, past the queue, and off to the right at green; or by cycle."""
    arms = _visible_arms(world, 30.0, -LANE)
    # a car's occasions are rarer: who waits long lets a cycle try
    if (event + int(world.time // 30)) % 3 == 2 or not arms:
        return _wrong_way_cycle(world, rng, event)
    for arm in rng.permutation(arms).tolist():
        arrival = world.time + (REACH - STOP) / 9.0
        if world.signals.left_of_green(arm, "wrong-way", arrival) < 5.0 or _used(world, arm):
            continue
        kind = int(rng.choice([CAR, CAR, VAN]))
        finish = _send(world, event, kind, arm, "wrong-way", 9.5)
        if finish is not None:
            world.closed.add(arm)
            return finish
    return None


def _wrong_way_cycle(world: World, rng: np.random.Generator, event: int) -> Finish | None:
    """Up a cycle lane that leads out, round the corner, and down one that leads in."""
    arms = [a for a in range(4) if world.camera.sees(*place(a, 14.0, -CYCLE_LANE))]
    for arm in rng.permutation(arms).tolist():
        lanes = _cycles(world, arm) | _cycles(world, arm + 1)
        if not lanes.any():
            world.quiet.update((a, "cycle") for a in range(4))
            return _send(world, event, CYCLE, arm, "wrong-way-cycle", 5.2)
    return None


def _cycles(world: World, arm: int) -> NDArray[np.bool_]:
    """Which vehicles are cycles in an arm, or on their way into it."""
    fleet = world.fleet
    u = place(arm, 1.0, 0.0)
    near = fleet["x"] * u[0] + fleet["y"] * u[1] > 8
    bound = np.array([world.leaves_by(int(path)) == arm % 4 for path in fleet["path"]], dtype=bool)
    return np.asarray((fleet["kind"] == CYCLE) & (near | bound))


def _used(world: World, arm: int) -> bool:
    """Whether anybody is on an arm's way out, or about to be."""
    fleet = world.fleet
    u = place(arm, 1.0, 0.0)
    along, left = fleet["x"] * u[0] + fleet["y"] * u[1], fleet["x"] * u[1] - fleet["y"] * u[0]
    out = (along > 5) & (np.abs(left + LANE) < 1.7)
    bound = np.array([world.leaves_by(int(path)) == arm for path in fleet["path"]], dtype=bool)
    # who can still stop at his line will do so
    stands = fleet["front"] + fleet["speed"] ** 2 / (2 * 3.0) + 1.0
    inside = (stands > world.stops[fleet["path"]]) & (along < 8)
    return bool((out | (bound & inside)).any())


def red_light(world: World, rng: np.random.Generator, event: int) -> Finish | None:
    """One who comes first to a red light while others have green, and drives on."""
    phase = world.signals.phase(world.time)
    if phase == 3:
        return None  # nobody crosses but people
    for a in world.fleet:
        movement = MOVEMENTS[int(a["path"]) % len(MOVEMENTS)]
        ahead = float(world.stops[a["path"]] - a["front"])
        if movement not in ("ahead", "cycle-ahead") or not 6 < ahead < 60 or a["event"] >= 0:
            continue
        quick = a["speed"] > (3.0 if a["kind"] == CYCLE else 5.0)
        if quick and a["gap"] > ahead + 6 and _is_red(world, a, ahead) and _safe(world, a):
            a["lawless"] = True
            stop = float(world.stops[a["path"]])
            _mark(a, event, stop, stop + 2 * STOP - 4)
            return _gone_by(world, int(a["id"]))
    return None


def _is_red(world: World, a: Fleet, ahead: float) -> bool:
    """Red when it gets there, or already, and then green for those who cross."""
    arm, movement = divmod(int(a["path"]), len(MOVEMENTS))
    there = world.time + ahead / float(a["speed"])
    own = [world.signals.light(arm, MOVEMENTS[movement], t) for t in (world.time, there)]
    others = [(arm + 1, "ahead"), (arm + 2, "right")]
    cross = [world.signals.light(*other, t) for other in others for t in (there, there + 2.5)]
    return own[0] in (Light.AMBER, Light.RED) and own[1] == Light.RED and Light.GREEN in cross


def _safe(world: World, a: Fleet) -> bool:
    """Whether all whose paths cross will see it in time, or will be gone."""
    line = float(world.stops[a["path"]] - a["front"]) / float(a["speed"])
    for b in world.fleet:
        start, _ = world.paths.zones[a["path"], b["path"]]
        b_start, b_end = world.paths.zones[b["path"], a["path"]]
        if np.isnan(start) or b["front"] - b["length"] > b_end:
            continue
        arm, movement = divmod(int(b["path"]), len(MOVEMENTS))
        then = world.signals.light(arm, MOVEMENTS[movement], world.time + line - 0.3)
        if b["held"] and then != Light.GREEN:
            continue
        # once it is over the line, others let it pass if they can still stop where they must
        across = (arm + int(a["path"]) // len(MOVEMENTS)) % 2 == 1
        must = world.stops[b["path"]] if across else b_start - 1.5
        reach = b["front"] + b["speed"] * line + 0.5 * b["pull"] * line**2
        speed = b["speed"] + b["pull"] * line
        gone = (b_end - b["front"] + b["length"]) / max(float(b["speed"]), 0.1)
        away = gone + 1.0 < (start - a["front"]) / a["speed"] and b["speed"] > 4
        if not away and reach + speed**2 / 7.0 > must:
            return False
    return True


def jaywalker(world: World, rng: np.random.Generator, event: int) -> Finish | None:
    """Somebody on foot who crosses where, or when, one must not."""
    for k in rng.permutation(len(world.people)):
        person = world.people[k]
        arm = int(np.argmax([person.at @ place(a, 1.0, 0.0) for a in range(4)]))
        u = place(arm, 1.0, 0.0)
        along, left = float(person.at @ u), float(person.at[0] * u[1] - person.at[1] * u[0])
        beside = HALF < abs(left) < HALF + 4.2 and person.crossing < 0
        away = 19 < along < 44 or (CROSSING[0] < along < CROSSING[1] and not person.moving)
        if beside and away and not world.signals.walk(world.time + 5):
            over = place(arm, along + rng.uniform(-2, 2.0), -np.sign(left) * (HALF + 1.5))
            in_view = world.camera.sees(*person.at) and world.camera.sees(*over)
            if in_view and _gap(world, arm, along):
                return _step_out(world, person, arm, over, event, rng)
    return None


def _gap(world: World, arm: int, along: float) -> bool:
    """Whether no vehicle is near a place of an arm, or will be before one is over it."""
    fleet = world.fleet
    spot = place(arm, along, 0.0)
    away = np.stack([spot[0] - fleet["x"], spot[1] - fleet["y"]])
    distance = np.hypot(*away) - 0.5 * fleet["length"]
    towards = (away * [np.cos(fleet["heading"]), np.sin(fleet["heading"])]).sum(axis=0) > 0
    soon = towards & (distance < 4.0 + fleet["speed"] * 3.6)
    standing = (fleet["speed"] < 0.3) & (distance > 5.0)
    near = distance < 5.0
    return not bool(((soon & ~standing) | near).any())


def _step_out(
    world: World, person: Person, arm: int, over: Points, event: int, rng: np.random.Generator
) -> Finish:
    u = place(arm, 1.0, 0.0)
    side = float(np.sign(over[0] * u[1] - over[1] * u[0]))
    person.way = [over, place(arm, START, side * (HALF + 2.0))]
    person.waits = [-1, -1]
    person.crossing, person.event, person.pace = arm, event, float(rng.uniform(1.3, 2.1))
    return lambda: person.crossing < 0 or person not in world.people


def pavement(world: World, rng: np.random.Generator, event: int) -> Finish | None:
    """A vehicle, or a cycle, on the pavement."""
    arms = _visible_arms(world, 36.0, HALF + 1.3)
    if event % 2 and arms:
        arm = int(rng.choice(arms))
        green = world.signals.left_of_green(arm, "ahead", world.time + 7.0)
        if _queue(world, arm, ("ahead", "left")) > 2 or green < 4.0:
            return None
        return _send(world, event, int(rng.choice([CAR, CAR, VAN])), arm, "pavement")
    seen = [
        arm for arm in range(4)
        if world.camera.sees(*place(arm, 20.0, 8.2)) or world.camera.sees(*place(arm - 1, 20, -8.2))
    ]  # fmt: skip
    if not seen:
        return None
    return _send(world, event, CYCLE, int(rng.choice(seen)), "pavement-cycle", 5.5)


def u_turn(world: World, rng: np.random.Generator, event: int) -> Finish | None:
    """Back where one came from: in the junction, or in an arm."""
    arms = _visible_arms(world, 35.0, 0.0)
    lane: tuple[str, ...]
    if event % 2 and arms:
        arm, movement, lane = int(rng.choice(arms)), "u-turn-arm", ("ahead", "left")
    else:
        arm, movement, lane = int(rng.integers(4)), "u-turn", ("right",)
    if _queue(world, arm, lane) > 3:
        return None
    finish = _send(world, event, CAR, arm, movement)
    if finish is None or movement == "u-turn":
        return finish
    return _or_gives_up(world, finish, event, number(arm, "ahead"))


def _or_gives_up(world: World, finish: Finish, event: int, path: int) -> Finish:
    """The same, but one who waits for a gap for too long drives on ahead: nothing happened."""
    late = world.time + GIVES_UP

    def finished() -> bool:
        at = np.flatnonzero(world.fleet["event"] == event)
        if len(at) and world.time > late and world.fleet["front"][at[0]] < HOLDS["u-turn-arm"]:
            world.fleet["path"][at[0]], world.fleet["event"][at[0]] = path, -1
            return True
        return finish()

    return finished


def _queue(world: World, arm: int, movements: tuple[str, ...]) -> int:
    """How many drive towards the stop line of a lane."""
    lane = np.isin(world.fleet["path"], [number(arm, movement) for movement in movements])
    return int((lane & (world.fleet["front"] < REACH - STOP)).sum())


def breakdown(world: World, rng: np.random.Generator, event: int) -> Finish | None:
    """A vehicle that stops at green with nothing ahead of it, and stands."""
    for a in world.fleet:
        movement = MOVEMENTS[int(a["path"]) % len(MOVEMENTS)]
        if movement not in NORMAL or a["event"] >= 0 or a["speed"] < 4:
            continue
        stands = float(a["speed"]) ** 2 / (2 * 3.2)
        ahead = float(world.stops[a["path"]] - a["front"]) - stands
        arm = int(a["path"]) // len(MOVEMENTS)
        spot = place(arm, STOP + ahead + 2, LANE * (movement != "right"))
        free = a["gap"] > 8 and 6 < ahead < 45
        green = world.signals.left_of_green(arm, movement, world.time)
        if free and green > 4.0 and world.camera.sees(*spot, margin=0.05, farthest=66.0):
            a["broken"] = world.time + stands / 3 + rng.uniform(*STANDING)
            _mark(a, event, -np.inf, np.inf)
            return _repaired(world, int(a["id"]))
    return None


def _repaired(world: World, ident: int) -> Finish:
    def finished() -> bool:
        at = np.flatnonzero(world.fleet["id"] == ident)
        if not len(at) or world.time < world.fleet["broken"][at[0]]:
            return not len(at)
        world.fleet["broken"][at[0]], world.fleet["event"][at[0]] = 0, -1
        return True

    return finished


LAUNCHES: dict[str, Launch] = {
    "wrong-way": wrong_way,
    "red-light": red_light,
    "jaywalker": jaywalker,
    "pavement": pavement,
    "u-turn": u_turn,
    "breakdown": breakdown,
}
