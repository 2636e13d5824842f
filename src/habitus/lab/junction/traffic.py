"""Traffic: pedestrians, arrivals of vehicles, and the simulated world that moves them all."""

from dataclasses import dataclass
from math import atan2, hypot
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.lab.junction.camera import Camera
from habitus.lab.junction.layout import (
    ARM_LENGTH,
    CROSSING_SPAN,
    HALF_ROAD,
    LANE_WIDTH,
    MOVEMENTS,
    PAVEMENT_WIDTH,
    STOP_LINE,
    SignalLight,
    Signals,
    path_index,
    paths,
    point_on_arm,
)
from habitus.lab.junction.vehicles import (
    CAR,
    CYCLE,
    LORRY,
    PERSON,
    VAN,
    VEHICLE,
    VEHICLE_KINDS,
    Colours,
    Fleet,
    drive,
    new_vehicle,
    obey_signals,
    random_colours,
    update_pose,
)

WALK_START = 62.0
"""How far out people appear, from the centre."""
PERSON_RADIUS = 0.35
STRIDE = 0.75
"""Metres that one step takes."""
WAITING_OFFSET = HALF_ROAD + 0.7
"""Where people wait for the lights, from the middle of the road."""
STEP = 0.1
"""Seconds between two states of the world."""
WARM_UP = 60.0
"""Seconds of traffic before the first picture."""
LANES = ("left", "right", "cycle")
PASSING_SIDE = {"ahead": -1.0}
"""Who may go round what stands in the lane, and on which side; who turns has no room for it."""
STOP_ALONG_PATH = ARM_LENGTH - STOP_LINE
"""Where the stop line is, along a path."""


@dataclass
class Pedestrian:
    """Somebody who walks from point to point."""

    id: int
    way: list[Array]
    """Array to come."""
    waits: list[int]
    """For each point, the arm that is crossed from there; -1 if none."""
    x: float
    y: float
    pace: float
    """Metres a second."""
    height: float
    heading: float = 0.0
    walked: float = 0.0
    crossing: int = -1
    """The arm whose carriageway is being crossed; -1 if none."""
    anomaly: int = -1
    moving: bool = True

    @property
    def at(self) -> Array:
        """Where the person is."""
        return np.array([self.x, self.y])


def new_pedestrian(rng: np.random.Generator, number: int) -> Pedestrian:
    """Somebody from the end of a pavement to another, over none, one or two crossings."""
    arm, side = int(rng.integers(4)), rng.choice([-1.0, 1.0])
    lane = HALF_ROAD + rng.uniform(1.3, PAVEMENT_WIDTH - 0.4)
    way, waits = [point_on_arm(arm, WALK_START, side * lane)], [-1]
    n_crossings = int(rng.choice(3, p=[0.3, 0.5, 0.2]))
    for _ in range(n_crossings):
        over = rng.uniform(CROSSING_SPAN[0] + 0.3, CROSSING_SPAN[1] - 0.3)
        back = WAITING_OFFSET + rng.exponential(0.5)
        way += [
            point_on_arm(arm, over, side * min(back, HALF_ROAD + 3)),
            point_on_arm(arm, over, -side * WAITING_OFFSET),
        ]
        waits += [arm, -1]
        arm, side = _arm_round_corner(arm, -side)
        way.append(_corner_point(arm, side, rng))
        waits.append(-1)
    if n_crossings == 0:
        arm, side = _arm_round_corner(arm, side)
        way.append(_corner_point(arm, side, rng))
        waits.append(-1)
    way.append(point_on_arm(arm, WALK_START, side * lane))
    waits.append(-1)
    x, y = way[0]
    pace, height = rng.uniform(1.05, 1.65), rng.uniform(1.55, 1.9)
    return Pedestrian(number, way[1:], waits[1:], float(x), float(y), pace, height)


def _arm_round_corner(arm: int, side: float) -> tuple[int, float]:
    """The arm round the corner from a side of an arm, and the side of it that lies there."""
    return ((arm - 1) % 4, -1.0) if side > 0 else ((arm + 1) % 4, 1.0)


def _corner_point(arm: int, side: float, rng: np.random.Generator) -> Array:
    spot = HALF_ROAD + rng.uniform(2.2, 3.6)
    return point_on_arm(arm, spot, side * spot)


def walk(person: Pedestrian, step: float, signals: Signals, time: float, fleet: Fleet) -> bool:
    """Move somebody by one step, in point_on_arm; whether there is more of the way."""
    x, y = person.way[0]
    dx, dy = float(x) - person.x, float(y) - person.y
    left, reach = hypot(dx, dy), person.pace * step
    person.moving = True
    if left > reach:
        person.x += dx * reach / left
        person.y += dy * reach / left
        person.heading = atan2(dy, dx)
        person.walked += reach
        return True
    arm = person.waits[0]
    if arm >= 0 and not (signals.walk(time) and _crossing_is_clear(arm, fleet)):
        person.moving = False
        person.walked = round(person.walked / STRIDE) * STRIDE  # feet together
        return True
    person.crossing = arm
    del person.way[0], person.waits[0]
    return bool(person.way)


def is_on_road(person: Pedestrian) -> bool:
    """Whether somebody is on a carriageway."""
    return min(abs(person.x), abs(person.y)) < HALF_ROAD


def _crossing_is_clear(arm: int, fleet: Fleet) -> bool:
    """Whether nothing drives where people want to cross."""
    u = point_on_arm(arm, 1.0, 0.0)
    along = fleet["x"] * u[0] + fleet["y"] * u[1]
    across = np.abs(fleet["x"] * u[1] - fleet["y"] * u[0])
    band = (np.abs(along - sum(CROSSING_SPAN) / 2) < 0.5 * fleet["length"] + 4) & (
        across < HALF_ROAD
    )
    return not bool((band & (fleet["speed"] > 0.3)).any())


def step_aside(people: list[Pedestrian], fleet: Fleet, step: float) -> None:
    """People get out of the way of what drives on the pavement: away from the road."""
    for rider in fleet:
        forward = np.array([np.cos(rider["heading"]), np.sin(rider["heading"])])
        for person in people:
            away = person.at - (rider["x"], rider["y"])
            if person.crossing < 0 and -2.0 < away @ forward < 10.0:
                outwards = np.sign(person.at) * np.abs(forward)[::-1]
                room = 0.5 * float(rider["width"]) + 0.6 - float(away @ outwards)
                if 0 < room < 3:
                    person.x += min(room, 1.6 * step) * float(outwards[0])
                    person.y += min(room, 1.6 * step) * float(outwards[1])


class Flows(NamedTuple):
    """How much traffic there is."""

    rates: Array
    """Arms x lanes: vehicles a second."""
    turns: Array
    """Arms: share of the left lane, and of cycles, that turns left."""
    kinds: Array
    """Shares of cars, vans and lorries."""
    people: float
    """Persons a second."""
    waves: Array
    """Arms x 2: period and phase of the waves in which traffic comes from the last lights."""

    @classmethod
    def random(cls, rng: np.random.Generator, density: float, main: int) -> "Flows":
        """Plausible flows; the main road has more."""
        arms = np.where(np.arange(4) % 2 == main, 1.0, 0.75) * rng.uniform(0.75, 1.2, 4)
        rates = arms[:, None] * np.array([0.072, 0.025, 0.013])
        return cls(
            density * rates,
            rng.uniform(0.15, 0.4, 4),
            rng.dirichlet([30, 6, 3]),
            density * rng.uniform(0.10, 0.2),
            np.stack([rng.uniform(55, 95, 4), rng.uniform(0, 6.28, 4)], axis=1),
        )


class Snapshot(NamedTuple):
    """Where everything is at one moment."""

    time: float
    ids: NDArray[np.int64]
    """In ascending order."""
    kinds: NDArray[np.int64]
    poses: Array
    """Things x 4: x, y, heading, and how far it has gone."""
    sizes: Array
    """Things x 3: length, width, height."""
    lamps: NDArray[np.int64]
    """Bits: 1 brakes, 2 flashing, 4 turns left, 8 turns right."""
    anomalies: NDArray[np.int64]
    """Number of the anomaly that a thing is part of just now; -1 if none."""


class World:
    """The junction with all that moves on it; `advance` takes it on by a step."""

    def __init__(self, rng: np.random.Generator, density: float, camera: Camera) -> None:
        self.rng, self.camera = rng, camera
        self.signals = Signals.random(rng)
        self.flows = Flows.random(rng, density, self.signals.main)
        self.paths = paths()
        self.fleet: Fleet = np.zeros(0, VEHICLE)
        self.people: list[Pedestrian] = []
        self.looks: dict[int, Colours] = {}
        """Colours of everything that was ever here."""
        self.time = -WARM_UP
        self._n_steps = 0
        self.stops = np.full(len(self.paths.lengths), STOP_ALONG_PATH)
        pavement = np.array([MOVEMENTS[p % len(MOVEMENTS)] for p in range(len(self.stops))])
        self._unpaved = np.char.startswith(pavement, "pavement")
        # no stop line is on the way of these
        self.stops[np.isin(pavement, ["u-turn-arm", "pavement-cycle", "wrong-way-cycle"])] = -np.inf
        self.stops[pavement == "pavement"] += 1.9  # a path that is longer by its detour
        self.closed_exits: set[int] = set()
        """Arms whose way out is not used just now: somebody comes the wrong way."""
        self.paused_lanes: set[tuple[int, str]] = set()
        """Arms and lanes where nobody arrives just now."""
        self._exits = [self.exit_arm(path) for path in range(len(self.stops))]
        rights = [m in ("right", "u-turn", "wrong-way") for m in MOVEMENTS]
        self._groups = np.array([2 * arm + right for arm in range(4) for right in rights])
        self._last = 0
        self._due = rng.exponential(1 / np.maximum(self.flows.rates, 1e-9))
        self._backlog = np.zeros((4, 3), dtype=int)

    def new_id(self, kind: int) -> int:
        """A number for a new thing, with its random_colours."""
        self._last += 1
        self.looks[self._last] = random_colours(self.rng, kind)
        return self._last

    def advance(self) -> None:
        """One step."""
        self._arrivals()
        self._show_lights()
        self._pass_broken_vehicles()
        crossing = [p for p in self.people if p.crossing >= 0]
        obstacles = np.array([(p.x, p.y, PERSON_RADIUS) for p in crossing]).reshape(-1, 3)
        p = self.paths
        drive(
            self.fleet,
            obstacles,
            p.points,
            p.limits,
            p.zones,
            p.ranks,
            self.stops,
            p.holds,
            STEP,
            self.time,
        )
        self.people = [p for p in self.people if walk(p, STEP, self.signals, self.time, self.fleet)]
        riders = self.fleet["anomaly"] >= 0
        step_aside(self.people, self.fleet[riders & self._unpaved[self.fleet["path"]]], STEP)
        gone = self.fleet["front"] - self.fleet["length"] > p.lengths[self.fleet["path"]] - 1
        self.fleet = self.fleet[~gone]
        self._n_steps += 1
        self.time = self._n_steps * STEP - WARM_UP

    def add(self, kind: int, path: int) -> Fleet | None:
        """Let a new_vehicle arrive at the start of a path, if there is room."""
        starts = self.paths.points[:, 0]
        same = np.hypot(*(starts[self.fleet["path"]] - starts[path]).T) < 1.0
        rears, length = (
            (self.fleet["front"] - self.fleet["length"])[same],
            VEHICLE_KINDS[kind].length[1],
        )
        if (rears < length + 3).any():
            return None
        made = new_vehicle(self.rng, kind, path, self.new_id(kind))
        update_pose(made, 0, self.paths.points)
        if (rears < length + 18).any():
            slowest = float(self.fleet["speed"][same][rears < length + 18].min())
            made["speed"] = min(float(made["speed"][0]), slowest + 1.0)
        self.fleet = np.concatenate([self.fleet, made])
        return self.fleet[-1:]

    def light(self, path: int) -> SignalLight:
        """What the light of a path shows."""
        arm, movement = divmod(path, len(MOVEMENTS))
        return self.signals.light(arm, MOVEMENTS[movement], self.time)

    def _arrivals(self) -> None:
        period, phase = self.flows.waves.T
        wave = 1 + 0.7 * np.sin(2 * np.pi * self.time / period + phase)
        self._due -= STEP * wave[:, None]
        for arm, lane in zip(*np.nonzero(self._due <= 0), strict=True):
            self._due[arm, lane] = self.rng.exponential(1 / self.flows.rates[arm, lane])
            self._backlog[arm, lane] = min(self._backlog[arm, lane] + 1, 4)
        for arm, lane in zip(*np.nonzero(self._backlog), strict=True):
            if (arm, LANES[lane]) not in self.paused_lanes and self._arrive(int(arm), LANES[lane]):
                self._backlog[arm, lane] -= 1
        if self.rng.random() < self.flows.people * STEP:
            self.people.append(new_pedestrian(self.rng, self.new_id(PERSON)))

    def _arrive(self, arm: int, lane: str) -> bool:
        turns = self.rng.random() < self.flows.turns[arm]
        movement = lane if lane == "right" else "left" if turns else "ahead"
        if lane == "cycle":
            return self.add(CYCLE, path_index(arm, f"cycle-{movement}")) is not None
        kind = int(self.rng.choice([CAR, VAN, LORRY], p=self.flows.kinds))
        return self.add(kind, path_index(arm, movement)) is not None

    def _show_lights(self) -> None:
        """Tell drivers what their lights show; only two groups an arm differ."""
        lights, left = np.empty(len(self.stops), np.int64), np.empty(len(self.stops))
        for arm in range(4):
            for group, rights in (("ahead", False), ("right", True)):
                at = self._groups == 2 * arm + rights
                lights[at] = self.signals.light(arm, group, self.time)
                left[at] = self.signals.left_of_amber(arm, group, self.time)
        closed = np.array([arm in self.closed_exits for arm in self._exits])
        obey_signals(self.fleet, lights, left, closed, self.stops, self.time)

    def exit_arm(self, path: int) -> int:
        """Arm by which a path leaves."""
        arm, movement = divmod(path, len(MOVEMENTS))
        turn = {"left": -1, "cycle-left": -1, "right": 1, "wrong-way": 1}
        return (arm + turn.get(MOVEMENTS[movement], 2)) % 4

    def _pass_broken_vehicles(self) -> None:
        """Those behind a new_vehicle that stands change lanes round it, and back, if there is room."""
        broken = [a for a in self.fleet if a["broken_until"] > 0]
        for a in self.fleet if broken else ():
            ahead = self.fleet[a["blocker"]] if 0 <= a["blocker"] < len(self.fleet) else a
            side = PASSING_SIDE.get(MOVEMENTS[int(a["path"]) % len(MOVEMENTS)])
            if (
                ahead["broken_until"] > 0
                and a["gap"] < 14
                and side
                and a["target_lateral"] == a["usual_lateral"]
            ):
                past = ahead["front"] - a["front"] + ahead["length"] + 8
                # there must be room to come back before the line
                back = ahead["front"] < STOP_ALONG_PATH - 16
                if back and self._has_room(a, side * LANE_WIDTH, 12.0, past):
                    a["target_lateral"] = a["usual_lateral"] + side * LANE_WIDTH
        for a in self.fleet[self.fleet["target_lateral"] != self.fleet["usual_lateral"]]:
            arm = a["path"] // len(MOVEMENTS)
            before = [
                b
                for b in broken
                if b["path"] // len(MOVEMENTS) == arm and b["front"] > a["front"] - a["length"] - 2
            ]
            if not before and self._has_room(a, float(a["usual_lateral"] - a["lateral"]), 8.0, 6.0):
                at = self.fleet["id"] == a["id"]
                self.fleet["target_lateral"][at] = a["usual_lateral"]

    def _has_room(self, a: Fleet, left: float, behind: float, ahead: float) -> bool:
        """Whether nobody is beside a new_vehicle, so far to its left, behind and ahead of it."""
        fleet = self.fleet
        forward = np.array([np.cos(a["heading"]), np.sin(a["heading"])])
        away = np.stack([fleet["x"] - a["x"], fleet["y"] - a["y"]], axis=1)
        along, aside = away @ forward, away @ np.array([-forward[1], forward[0]])
        reach = 0.5 * (fleet["length"] + a["length"])
        beside = (np.abs(aside - left) < 2.2) & (along > -reach - behind) & (along < reach + ahead)
        return not bool((beside & (fleet["id"] != a["id"])).any())

    def state(self) -> Snapshot:
        """Where everything is now."""
        fleet, people = self.fleet, self.people
        poses = np.array([(p.x, p.y, p.heading, p.walked) for p in people]).reshape(-1, 4)
        sizes = np.array([(0.45, 0.5, p.height) for p in people]).reshape(-1, 3)
        columns = [fleet[name] for name in ("x", "y", "heading", "front")]
        ids = np.concatenate([fleet["id"], [p.id for p in people]]).astype(np.int64)
        order = np.argsort(ids)
        kinds = np.concatenate([fleet["kind"], np.full(len(people), PERSON)])
        on_foot = [p.anomaly if p.anomaly >= 0 and is_on_road(p) else -1 for p in people]
        lamps = np.concatenate([self._lamps(), np.zeros(len(people), dtype=np.int64)])
        bodies = np.stack([fleet[name] for name in ("length", "width", "height")], axis=1)
        return Snapshot(
            self.time,
            ids[order],
            kinds[order].astype(np.int64),
            np.concatenate([np.stack(columns, axis=1), poses])[order],
            np.concatenate([bodies, sizes])[order],
            lamps[order],
            np.concatenate([self._anomalies(), on_foot]).astype(np.int64)[order],
        )

    def _lamps(self) -> NDArray[np.int64]:
        fleet = self.fleet
        movement = fleet["path"] % len(MOVEMENTS)
        left, right = MOVEMENTS.index("left"), MOVEMENTS.index("right")
        brakes = (fleet["acceleration"] < -0.6) | (fleet["speed"] < 0.2)
        near = np.abs(fleet["front"] - STOP_ALONG_PATH) < 35
        return np.asarray(
            brakes
            + 2 * (fleet["broken_until"] > 0)
            + 4 * (near & (movement == left))
            + 8 * (near & (movement == right)),
            np.int64,
        )

    def _anomalies(self) -> NDArray[np.int64]:
        """Numbers of anomalies, of vehicles whose behaviour is abnormal just now."""
        fleet = self.fleet
        start, end = fleet["abnormal"].T
        odd = (fleet["front"] > start) & (fleet["front"] - fleet["length"] < end)
        return np.where(odd, fleet["anomaly"], -1)
