"""The world in motion: who arrives, who drives, who has left."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.lab.junction.camera import Camera
from habitus.lab.junction.driving import drive, obey, pose
from habitus.lab.junction.fleet import (
    CAR,
    CYCLE,
    KINDS,
    LORRY,
    PERSON,
    VAN,
    VEHICLE,
    Colours,
    Fleet,
    colours,
    vehicle,
)  # fmt: skip
from habitus.lab.junction.layout import (
    LANE,
    MOVEMENTS,
    REACH,
    STOP,
    Points,
    number,
    paths,
)  # fmt: skip
from habitus.lab.junction.people import RADIUS, Person, on_road, step_aside, walk, walker
from habitus.lab.junction.signals import Light, Signals

STEP = 0.1
"""Seconds between two states of the world."""
WARM_UP = 60.0
"""Seconds of traffic before the first picture."""
LANES = ("left", "right", "cycle")
SIDES = {"ahead": -1.0}
"""Who may go round what stands in the lane, and on which side; who turns has no room for it."""
STOPS = REACH - STOP
"""Where the stop line is, along a path."""


class Flows(NamedTuple):
    """How much traffic there is."""

    rates: Points
    """Arms x lanes: vehicles a second."""
    turns: Points
    """Arms: share of the left lane, and of cycles, that turns left."""
    kinds: Points
    """Shares of cars, vans and lorries."""
    people: float
    """Persons a second."""
    swing: Points
    """Arms x 2: period and phase of the waves in which traffic comes from the last lights."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, density: float, main: int) -> "Flows":
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


class State(NamedTuple):
    """Where everything is at one moment."""

    time: float
    ids: NDArray[np.int64]
    """In ascending order."""
    kinds: NDArray[np.int64]
    poses: Points
    """Things x 4: x, y, heading, and how far it has gone."""
    sizes: Points
    """Things x 3: length, width, height."""
    lamps: NDArray[np.int64]
    """Bits: 1 brakes, 2 flashing, 4 turns left, 8 turns right."""
    events: NDArray[np.int64]
    """Number of the anomaly that a thing is part of just now; -1 if none."""


class World:
    """The junction with all that moves on it; `advance` takes it on by a step."""

    def __init__(self, rng: np.random.Generator, density: float, camera: Camera) -> None:
        self.rng, self.camera = rng, camera
        self.signals = Signals.drawn(rng)
        self.flows = Flows.drawn(rng, density, self.signals.main)
        self.paths = paths()
        self.fleet: Fleet = np.zeros(0, VEHICLE)
        self.people: list[Person] = []
        self.looks: dict[int, Colours] = {}
        """Colours of everything that was ever here."""
        self.time = -WARM_UP
        self._n_steps = 0
        self.stops = np.full(len(self.paths.lengths), STOPS)
        pavement = np.array([MOVEMENTS[p % len(MOVEMENTS)] for p in range(len(self.stops))])
        self._unpaved = np.char.startswith(pavement, "pavement")
        # no stop line is on the way of these
        self.stops[np.isin(pavement, ["u-turn-arm", "pavement-cycle", "wrong-way-cycle"])] = -np.inf
        self.stops[pavement == "pavement"] += 1.9  # a path that is longer by its detour
        self.closed: set[int] = set()
        """Arms whose way out is not used just now: somebody comes the wrong way."""
        self.quiet: set[tuple[int, str]] = set()
        """Arms and lanes where nobody arrives just now."""
        self._exits = [self.leaves_by(path) for path in range(len(self.stops))]
        rights = [m in ("right", "u-turn", "wrong-way") for m in MOVEMENTS]
        self._groups = np.array([2 * arm + right for arm in range(4) for right in rights])
        self._last = 0
        self._due = rng.exponential(1 / np.maximum(self.flows.rates, 1e-9))
        self._backlog = np.zeros((4, 3), dtype=int)

    def new_id(self, kind: int) -> int:
        """A number for a new thing, with its colours."""
        self._last += 1
        self.looks[self._last] = colours(self.rng, kind)
        return self._last

    def advance(self) -> None:
        """One step."""
        self._arrivals()
        self._lights()
        self._go_round()
        walkers = [p for p in self.people if p.crossing >= 0]
        obstacles = np.array([(p.x, p.y, RADIUS) for p in walkers]).reshape(-1, 3)
        p = self.paths
        drive(
            self.fleet, obstacles, p.points, p.limits, p.zones, p.ranks, self.stops, p.holds, STEP,
            self.time,
        )  # fmt: skip
        self.people = [p for p in self.people if walk(p, STEP, self.signals, self.time, self.fleet)]
        riders = self.fleet["event"] >= 0
        step_aside(self.people, self.fleet[riders & self._unpaved[self.fleet["path"]]], STEP)
        gone = self.fleet["front"] - self.fleet["length"] > p.lengths[self.fleet["path"]] - 1
        self.fleet = self.fleet[~gone]
        self._n_steps += 1
        self.time = self._n_steps * STEP - WARM_UP

    def add(self, kind: int, path: int) -> Fleet | None:
        """Let a vehicle arrive at the start of a path, if there is room."""
        starts = self.paths.points[:, 0]
        same = np.hypot(*(starts[self.fleet["path"]] - starts[path]).T) < 1.0
        rears, length = (self.fleet["front"] - self.fleet["length"])[same], KINDS[kind].length[1]
        if (rears < length + 3).any():
            return None
        made = vehicle(self.rng, kind, path, self.new_id(kind))
        pose(made, 0, self.paths.points)
        if (rears < length + 18).any():
            slowest = float(self.fleet["speed"][same][rears < length + 18].min())
            made["speed"] = min(float(made["speed"][0]), slowest + 1.0)
        self.fleet = np.concatenate([self.fleet, made])
        return self.fleet[-1:]

    def light(self, path: int) -> Light:
        """What the light of a path shows."""
        arm, movement = divmod(path, len(MOVEMENTS))
        return self.signals.light(arm, MOVEMENTS[movement], self.time)

    def _arrivals(self) -> None:
        period, phase = self.flows.swing.T
        wave = 1 + 0.7 * np.sin(2 * np.pi * self.time / period + phase)
        self._due -= STEP * wave[:, None]
        for arm, lane in zip(*np.nonzero(self._due <= 0), strict=True):
            self._due[arm, lane] = self.rng.exponential(1 / self.flows.rates[arm, lane])
            self._backlog[arm, lane] = min(self._backlog[arm, lane] + 1, 4)
        for arm, lane in zip(*np.nonzero(self._backlog), strict=True):
            if (arm, LANES[lane]) not in self.quiet and self._arrive(int(arm), LANES[lane]):
                self._backlog[arm, lane] -= 1
        if self.rng.random() < self.flows.people * STEP:
            self.people.append(walker(self.rng, self.new_id(PERSON)))

    def _arrive(self, arm: int, lane: str) -> bool:
        turns = self.rng.random() < self.flows.turns[arm]
        movement = lane if lane == "right" else "left" if turns else "ahead"
        if lane == "cycle":
            return self.add(CYCLE, number(arm, f"cycle-{movement}")) is not None
        kind = int(self.rng.choice([CAR, VAN, LORRY], p=self.flows.kinds))
        return self.add(kind, number(arm, movement)) is not None

    def _lights(self) -> None:
        """Tell drivers what their lights show; only two groups an arm differ."""
        lights, left = np.empty(len(self.stops), np.int64), np.empty(len(self.stops))
        for arm in range(4):
            for group, rights in (("ahead", False), ("right", True)):
                at = self._groups == 2 * arm + rights
                lights[at] = self.signals.light(arm, group, self.time)
                left[at] = self.signals.left_of_amber(arm, group, self.time)
        closed = np.array([arm in self.closed for arm in self._exits])
        obey(self.fleet, lights, left, closed, self.stops, self.time)

    def leaves_by(self, path: int) -> int:
        """Arm by which a path leaves."""
        arm, movement = divmod(path, len(MOVEMENTS))
        turn = {"left": -1, "cycle-left": -1, "right": 1, "wrong-way": 1}
        return (arm + turn.get(MOVEMENTS[movement], 2)) % 4

    def _go_round(self) -> None:
        """Those behind a vehicle that stands change lanes round it, and back, if there is room."""
        broken = [a for a in self.fleet if a["broken"] > 0]
        for a in self.fleet if broken else ():
            ahead = self.fleet[a["blocker"]] if 0 <= a["blocker"] < len(self.fleet) else a
            side = SIDES.get(MOVEMENTS[int(a["path"]) % len(MOVEMENTS)])
            if ahead["broken"] > 0 and a["gap"] < 14 and side and a["target"] == a["offset"]:
                past = ahead["front"] - a["front"] + ahead["length"] + 8
                # there must be room to come back before the line
                back = ahead["front"] < STOPS - 16
                if back and self._room(a, side * LANE, 12.0, past):
                    a["target"] = a["offset"] + side * LANE
        for a in self.fleet[self.fleet["target"] != self.fleet["offset"]]:
            arm = a["path"] // len(MOVEMENTS)
            before = [
                b for b in broken
                if b["path"] // len(MOVEMENTS) == arm and b["front"] > a["front"] - a["length"] - 2
            ]  # fmt: skip
            if not before and self._room(a, float(a["offset"] - a["shift"]), 8.0, 6.0):
                at = self.fleet["id"] == a["id"]
                self.fleet["target"][at] = a["offset"]

    def _room(self, a: Fleet, left: float, behind: float, ahead: float) -> bool:
        """Whether nobody is beside a vehicle, so far to its left, behind and ahead of it."""
        fleet = self.fleet
        forward = np.array([np.cos(a["heading"]), np.sin(a["heading"])])
        away = np.stack([fleet["x"] - a["x"], fleet["y"] - a["y"]], axis=1)
        along, aside = away @ forward, away @ np.array([-forward[1], forward[0]])
        reach = 0.5 * (fleet["length"] + a["length"])
        beside = (np.abs(aside - left) < 2.2) & (along > -reach - behind) & (along < reach + ahead)
        return not bool((beside & (fleet["id"] != a["id"])).any())

    def state(self) -> State:
        """Where everything is now."""
        fleet, people = self.fleet, self.people
        poses = np.array([(p.x, p.y, p.heading, p.walked) for p in people]).reshape(-1, 4)
        sizes = np.array([(0.45, 0.5, p.height) for p in people]).reshape(-1, 3)
        columns = [fleet[name] for name in ("x", "y", "heading", "front")]
        ids = np.concatenate([fleet["id"], [p.id for p in people]]).astype(np.int64)
        order = np.argsort(ids)
        kinds = np.concatenate([fleet["kind"], np.full(len(people), PERSON)])
        on_foot = [p.event if p.event >= 0 and on_road(p) else -1 for p in people]
        lamps = np.concatenate([self._lamps(), np.zeros(len(people), dtype=np.int64)])
        bodies = np.stack([fleet[name] for name in ("length", "width", "height")], axis=1)
        return State(
            self.time,
            ids[order],
            kinds[order].astype(np.int64),
            np.concatenate([np.stack(columns, axis=1), poses])[order],
            np.concatenate([bodies, sizes])[order],
            lamps[order],
            np.concatenate([self._events(), on_foot]).astype(np.int64)[order],
        )

    def _lamps(self) -> NDArray[np.int64]:
        fleet = self.fleet
        movement = fleet["path"] % len(MOVEMENTS)
        left, right = MOVEMENTS.index("left"), MOVEMENTS.index("right")
        brakes = (fleet["acceleration"] < -0.6) | (fleet["speed"] < 0.2)
        near = np.abs(fleet["front"] - STOPS) < 35
        return np.asarray(
            brakes + 2 * (fleet["broken"] > 0) + 4 * (near & (movement == left))
            + 8 * (near & (movement == right)),
            np.int64,
        )  # fmt: skip

    def _events(self) -> NDArray[np.int64]:
        """Numbers of anomalies, of vehicles whose behaviour is abnormal just now."""
        fleet = self.fleet
        start, end = fleet["odd"].T
        odd = (fleet["front"] > start) & (fleet["front"] - fleet["length"] < end)
        return np.where(odd, fleet["event"], -1)
