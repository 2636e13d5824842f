"""Traffic: pedestrians, arrivals of vehicles, and the simulated world that moves them all."""

from dataclasses import dataclass
from math import atan2, hypot
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from habitus.arrays import Array, Flags
from habitus.lab.junction.camera import Camera
from habitus.lab.junction.layout import (
    CROSSING_SPAN,
    HALF_ROAD,
    LANE_WIDTH,
    MOVEMENTS,
    PAVEMENT_WIDTH,
    STOP_ALONG_PATH,
    Signals,
    on_arm,
    path_index,
    paths,
    point_on_arm,
)
from habitus.lab.junction.vehicles import (
    CAR,
    COS,
    CYCLE,
    HEADING,
    LORRY,
    LUMA,
    PERSON,
    SIN,
    TRAVELLED,
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
"""Distance from the centre at which pedestrians appear, in metres."""
PERSON_RADIUS = 0.35
"""Radius of a pedestrian as an obstacle, in metres."""
STRIDE = 0.75
"""Length of one step in metres."""
WAITING_OFFSET = HALF_ROAD + 0.7
"""Distance from the centre line of the road at which pedestrians wait to cross."""
STEP = 0.1
"""Time step of the simulation in seconds."""
WARM_UP = 60.0
"""Seconds of traffic before the first frame."""
LANES = ("left", "right", "cycle")
"""Lanes of an arm: for ahead and left, for right turns, and the cycle lane."""
ARMS = ("east", "north", "west", "south")
"""Names of the arms, by number."""
LANE_NAMES = tuple(f"{arm} {lane}" for arm in ARMS for lane in LANES)
"""Names of all incoming lanes, such as "east right"."""
ON_PAVEMENT = [path_index(arm, m) for arm in range(4) for m in ("pavement", "pavement-cycle")]
"""Paths on pavements."""
BODY = ("x", "y", "heading", "front", "length", "width", "height", "kind")
"""Fields of a vehicle that are the first columns of an object's row, from `X` to `KIND`."""


def random_stream(seed: int, *part: int, traffic: int | None = None) -> Generator:
    """Return the random stream of a part of a scene, or of that part at another time."""
    # numpy ignores a 0 at the end: traffic 0 would be the scene's own
    when = () if traffic is None else (traffic + 1,)
    return np.random.default_rng([seed, *part, *when])


class Lane(NamedTuple):
    """An incoming lane: the number of its arm, and one of `LANES`."""

    arm: int
    name: str

    @classmethod
    def named(cls, name: str) -> "Lane":
        """Return the lane that has one of `LANE_NAMES`."""
        arm, lane = name.split()
        return cls(ARMS.index(arm), lane)


@dataclass
class Pedestrian:
    """A pedestrian who walks from point to point."""

    id: int
    way: list[tuple[Array, int]]
    """Points still to be reached, and the arm that is crossed from there; -1 if none."""
    x: float
    y: float
    pace: float
    """Walking speed in metres per second."""
    height: float
    heading: float = 0.0
    walked: float = 0.0
    """Distance walked so far, in metres."""
    crossing: int = -1
    """Arm whose road is being crossed; -1 if none."""
    anomaly: int = -1
    """Number of the anomaly that the pedestrian causes; -1 if none."""
    moving: bool = True

    @property
    def at(self) -> Array:
        """Position as an array (x, y)."""
        return np.array([self.x, self.y])


def new_pedestrian(rng: Generator, number: int) -> Pedestrian:
    """Return a pedestrian with a random way between two arms, over none, one or two crossings."""
    arm, side = int(rng.integers(4)), rng.choice([-1.0, 1.0])
    lane = HALF_ROAD + rng.uniform(1.3, PAVEMENT_WIDTH - 0.4)
    x, y = point_on_arm(arm, WALK_START, side * lane)
    way: list[tuple[Array, int]] = []
    n_crossings = int(rng.choice(3, p=[0.3, 0.5, 0.2]))
    for _ in range(n_crossings):
        over = rng.uniform(CROSSING_SPAN[0] + 0.3, CROSSING_SPAN[1] - 0.3)
        back = WAITING_OFFSET + rng.exponential(0.5)
        way += [
            (point_on_arm(arm, over, side * min(back, HALF_ROAD + 3)), arm),
            (point_on_arm(arm, over, -side * WAITING_OFFSET), -1),
        ]
        arm, side = _arm_round_corner(arm, -side)
        way.append((_corner_point(arm, side, rng), -1))
    if n_crossings == 0:
        arm, side = _arm_round_corner(arm, side)
        way.append((_corner_point(arm, side, rng), -1))
    way.append((point_on_arm(arm, WALK_START, side * lane), -1))
    pace, height = rng.uniform(1.05, 1.65), rng.uniform(1.55, 1.9)
    return Pedestrian(number, way, float(x), float(y), pace, height)


def _arm_round_corner(arm: int, side: float) -> tuple[int, float]:
    """Return the arm round the corner from one side of an arm, and the side of it that is there."""
    return ((arm - 1) % 4, -1.0) if side > 0 else ((arm + 1) % 4, 1.0)


def _corner_point(arm: int, side: float, rng: Generator) -> Array:
    """Return a random point on the pavement of a corner."""
    spot = HALF_ROAD + rng.uniform(2.2, 3.6)
    return point_on_arm(arm, spot, side * spot)


def walk(person: Pedestrian, step: float, signals: Signals, time: float, fleet: Fleet) -> bool:
    """Move a pedestrian by one time step, in place; return whether any of the way remains."""
    (x, y), arm = person.way[0]
    dx, dy = float(x) - person.x, float(y) - person.y
    left, reach = hypot(dx, dy), person.pace * step
    person.moving = True
    if left > reach:
        person.x += dx * reach / left
        person.y += dy * reach / left
        person.heading = atan2(dy, dx)
        person.walked += reach
        return True
    if arm >= 0 and not (signals.walk(time) and _crossing_is_clear(arm, fleet)):
        person.moving = False
        person.walked = round(person.walked / STRIDE) * STRIDE  # feet together
        return True
    person.crossing = arm
    del person.way[0]
    return bool(person.way)


def is_on_road(person: Pedestrian) -> bool:
    """Return whether a pedestrian is on a road."""
    return min(abs(person.x), abs(person.y)) < HALF_ROAD


def _crossing_is_clear(arm: int, fleet: Fleet) -> bool:
    """Return whether no moving vehicle is on or near a crossing."""
    along, left = on_arm(arm, fleet["x"], fleet["y"])
    near = np.abs(along - sum(CROSSING_SPAN) / 2) < 0.5 * fleet["length"] + 4
    band = near & (np.abs(left) < HALF_ROAD)
    return not bool((band & (fleet["speed"] > 0.3)).any())


def step_aside(people: list[Pedestrian], fleet: Fleet, step: float) -> None:
    """Move pedestrians out of the way of vehicles on the pavement, away from the road."""
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
    """Amount of traffic."""

    rates: Array
    """Shape (arms, lanes): vehicles per second."""
    turns: Array
    """Per arm: share of vehicles in the left lane, and of cycles, that turn left."""
    kinds: Array
    """Shares of cars, vans and lorries."""
    people: float
    """Pedestrians per second."""
    waves: Array
    """Shape (arms, 2): period and phase of the waves in which upstream signals release traffic."""

    @classmethod
    def random(cls, rng: Generator, density: float, main: int) -> "Flows":
        """Return plausible random flows; the main road has more traffic."""
        arms = np.where(np.arange(4) % 2 == main, 1.0, 0.75) * rng.uniform(0.75, 1.2, 4)
        rates = arms[:, None] * np.array([0.072, 0.025, 0.013])
        return cls(
            density * rates,
            rng.uniform(0.15, 0.4, 4),
            rng.dirichlet([30, 6, 3]),
            density * rng.uniform(0.10, 0.2),
            np.stack([rng.uniform(55, 95, 4), rng.uniform(0, 6.28, 4)], axis=1),
        )

    def at_another_time(self, rng: Generator) -> "Flows":
        """Return the same flows at random phases of their waves."""
        return self._replace(waves=np.stack([self.waves[:, 0], rng.uniform(0, 6.28, 4)], axis=1))


class Snapshot(NamedTuple):
    """Positions and properties of all moving objects at one time."""

    time: float
    ids: NDArray[np.int64]
    """Identifiers in ascending order."""
    rows: Array
    """A row per object, without colours: see `X`."""
    lamps: NDArray[np.int64]
    """Bits: 1 brake lights, 2 hazard lights, 4 turning left, 8 turning right."""
    anomalies: NDArray[np.int64]
    """Number of the anomaly that each object currently causes; -1 if none."""


@dataclass(frozen=True)
class SnapshotPair:
    """Two successive snapshots, reduced to the objects that are in both."""

    before: Snapshot
    after: Snapshot
    colours: dict[int, Colours]
    """Colours of each object, by identifier."""

    def at(self, time: float, rows: Array) -> Array:
        """Return `rows` of these objects, with or without colours, as they are at a time.

        Rows beyond the objects of the snapshots (signal lamps, fences) keep their places.
        """
        share = min(max((time - self.before.time) / STEP, 0.0), 1.0)
        start = self.before.rows[:, : TRAVELLED + 1]
        change = self.after.rows[:, : TRAVELLED + 1] - start
        change[:, HEADING] = (change[:, HEADING] + np.pi) % (2 * np.pi) - np.pi
        placed, poses = rows.copy(), start + share * change
        placed[: len(start), : TRAVELLED + 1] = poses
        placed[: len(start), COS] = np.cos(poses[:, HEADING])
        placed[: len(start), SIN] = np.sin(poses[:, HEADING])
        return placed


def paired(before: Snapshot, after: Snapshot, colours: dict[int, Colours]) -> SnapshotPair:
    """Return the pair of snapshots of the objects that are in both."""
    _, *places = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
    pair = []
    for (time, *fields), which in zip((before, after), places, strict=True):
        chosen: Any = (field[which] for field in fields)
        pair.append(Snapshot(time, *chosen))
    return SnapshotPair(pair[0], pair[1], colours)


class World:
    """The simulated junction; `advance` moves it by one time step.

    `rng` is the stream of signals and flows, and of the traffic unless that has its own, as of a
    junction seen at another time. Anomalies happen in the view of the camera; in lanes that are
    `closed` nobody arrives.
    """

    def __init__(
        self,
        rng: Generator,
        density: float,
        camera: Camera,
        *,
        traffic: Generator | None = None,
        closed: frozenset[Lane] = frozenset(),
    ) -> None:
        self.signals = Signals.random(rng)
        self.flows = Flows.random(rng, density, self.signals.main)
        if traffic is not None:
            rng = traffic
            self.signals = self.signals.at_another_time(rng)
            self.flows = self.flows.at_another_time(rng)
        self.rng, self.camera = rng, camera
        self.paths = paths()
        self.fleet: Fleet = np.zeros(0, VEHICLE)
        self.people: list[Pedestrian] = []
        self.colours: dict[int, Colours] = {}
        """Colours of every object so far, by identifier."""
        self.time = -WARM_UP
        self._n_steps = 0
        self.closed_exits: set[int] = set()
        """Arms whose exit is closed to normal traffic while a vehicle comes the wrong way."""
        self.paused_lanes: set[tuple[int, str]] = set()
        """Arms and lanes in which no new vehicles arrive for now."""
        self.closed_lanes = closed
        """Lanes in which no vehicles ever arrive."""
        self._last = 0
        self._due = rng.exponential(1 / np.maximum(self.flows.rates, 1e-9))
        for arm, lane in closed:
            self._due[arm, LANES.index(lane)] = np.inf
        self._backlog = np.zeros((4, 3), dtype=int)

    def new_id(self, kind: int) -> int:
        """Return an identifier for a new object and draw its colours."""
        self._last += 1
        self.colours[self._last] = random_colours(self.rng, kind)
        return self._last

    def advance(self) -> None:
        """Simulate one time step."""
        self._arrivals()
        self._show_lights()
        broken = [a for a in self.fleet if a["broken_until"] > 0]
        if broken:
            self._leave_lanes()
        self._return_to_lanes(broken)
        crossing = [p for p in self.people if p.crossing >= 0]
        obstacles = np.array([(p.x, p.y, PERSON_RADIUS) for p in crossing]).reshape(-1, 3)
        drive(self.fleet, obstacles, self.paths, STEP, self.time)
        self.people = [p for p in self.people if walk(p, STEP, self.signals, self.time, self.fleet)]
        riders = (self.fleet["anomaly"] >= 0) & np.isin(self.fleet["path"], ON_PAVEMENT)
        step_aside(self.people, self.fleet[riders], STEP)
        ends = self.paths.lengths[self.fleet["path"]]
        gone = self.fleet["front"] - self.fleet["length"] > ends - 1
        self.fleet = self.fleet[~gone]
        self._n_steps += 1
        self.time = self._n_steps * STEP - WARM_UP

    def add(self, kind: int, path: int) -> Fleet | None:
        """Add a vehicle at the start of a path; return None if there is no room."""
        starts = self.paths.points[:, 0]
        same = np.hypot(*(starts[self.fleet["path"]] - starts[path]).T) < 1.0
        rears = (self.fleet["front"] - self.fleet["length"])[same]
        length = VEHICLE_KINDS[kind].length[1]
        if (rears < length + 3).any():
            return None
        vehicle = new_vehicle(self.rng, kind, path, self.new_id(kind))
        update_pose(vehicle, 0, self.paths.points)
        if (rears < length + 18).any():
            slowest = float(self.fleet["speed"][same][rears < length + 18].min())
            vehicle["speed"] = min(float(vehicle["speed"][0]), slowest + 1.0)
        self.fleet = np.concatenate([self.fleet, vehicle])
        return self.fleet[-1:]

    def _arrivals(self) -> None:
        """Let vehicles and pedestrians arrive at random times, in waves."""
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
        """Try to add a vehicle to a lane; return whether there was room."""
        turns = self.rng.random() < self.flows.turns[arm]
        movement = lane if lane == "right" else "left" if turns else "ahead"
        if lane == "cycle":
            return self.add(CYCLE, path_index(arm, f"cycle-{movement}")) is not None
        kind = int(self.rng.choice([CAR, VAN, LORRY], p=self.flows.kinds))
        return self.add(kind, path_index(arm, movement)) is not None

    def _show_lights(self) -> None:
        """Show drivers their signals."""
        shown = [(arm, movement, self.time) for arm in range(4) for movement in ("ahead", "right")]
        lights = np.array([self.signals.light(*light) for light in shown])[self.paths.signals]
        left = np.array([self.signals.left_of_amber(*light) for light in shown])[self.paths.signals]
        closed = np.isin(self.paths.exits, list(self.closed_exits))
        obey_signals(self.fleet, lights, left, closed, self.paths, self.time)

    def leaves_by(self, arm: int) -> Flags:
        """Return which vehicles leave by an arm."""
        return np.asarray(self.paths.exits[self.fleet["path"]] == arm % 4)

    def _leave_lanes(self) -> None:
        """Steer those who go ahead, behind a broken-down vehicle, to the lane on their right."""
        for a in self.fleet:
            ahead = self.fleet[a["blocker"]] if 0 <= a["blocker"] < len(self.fleet) else a
            goes_ahead = MOVEMENTS[int(a["path"]) % len(MOVEMENTS)] == "ahead"
            in_lane = a["target_lateral"] == a["usual_lateral"]
            open_lane = (int(a["path"]) // len(MOVEMENTS), "right") not in self.closed_lanes
            if ahead["broken_until"] > 0 and a["gap"] < 14 and goes_ahead and in_lane and open_lane:
                past = ahead["front"] - a["front"] + ahead["length"] + 8
                # there must be room to return before the stop line
                back = ahead["front"] < STOP_ALONG_PATH - 16
                if back and self._has_room(a, -LANE_WIDTH, 12.0, past):
                    a["target_lateral"] = a["usual_lateral"] - LANE_WIDTH

    def _return_to_lanes(self, broken: list[Fleet]) -> None:
        """Steer vehicles that have passed all broken-down ones of their arm back to their lane."""
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
        """Return whether the lane `left` metres to the left is free from `behind` to `ahead`."""
        fleet = self.fleet
        forward = np.array([np.cos(a["heading"]), np.sin(a["heading"])])
        x: NDArray[np.float64] = fleet["x"] - a["x"]
        y: NDArray[np.float64] = fleet["y"] - a["y"]
        away = np.stack([x, y], axis=1)
        along, aside = away @ forward, away @ np.array([-forward[1], forward[0]])
        reach = 0.5 * (fleet["length"] + a["length"])
        beside = (np.abs(aside - left) < 2.2) & (along > -reach - behind) & (along < reach + ahead)
        return not bool((beside & (fleet["id"] != a["id"])).any())

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the current state."""
        fleet, people = self.fleet, self.people
        walkers = [(p.x, p.y, p.heading, p.walked, 0.45, 0.5, p.height, PERSON) for p in people]
        ids = np.concatenate([fleet["id"], [p.id for p in people]]).astype(np.int64)
        order = np.argsort(ids)
        rows = np.zeros((len(ids), LUMA))
        rows[: len(fleet), : len(BODY)] = np.stack([fleet[name] for name in BODY], axis=1)
        rows[len(fleet) :, : len(BODY)] = np.array(walkers).reshape(-1, len(BODY))
        on_foot = [p.anomaly if p.anomaly >= 0 and is_on_road(p) else -1 for p in people]
        anomalies = np.concatenate([self._anomalies(), on_foot]).astype(np.int64)
        lamps = np.concatenate([self._lamps(), np.zeros(len(people), dtype=np.int64)])
        return Snapshot(self.time, ids[order], rows[order], lamps[order], anomalies[order])

    def _lamps(self) -> NDArray[np.int64]:
        """Return the lamp bits of each vehicle; see `Snapshot.lamps`."""
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
        """Return the anomaly that each vehicle currently causes; -1 if none."""
        fleet = self.fleet
        start, end = fleet["abnormal"].T
        odd = (fleet["front"] > start) & (fleet["front"] - fleet["length"] < end)
        return np.where(odd, fleet["anomaly"], -1)
