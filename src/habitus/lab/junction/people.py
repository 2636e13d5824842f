"""People on foot: along the pavements, and over the crossings while they may."""

from dataclasses import dataclass
from math import atan2, hypot

import numpy as np

from habitus.lab.junction.fleet import Fleet
from habitus.lab.junction.layout import CROSSING, HALF, PAVEMENT, Points, place
from habitus.lab.junction.signals import Signals

START = 62.0
"""How far out people appear, from the centre."""
RADIUS = 0.35
STRIDE = 0.75
"""Metres that one step takes."""
WAITING = HALF + 0.7
"""Where people wait for the lights, from the middle of the road."""


@dataclass
class Person:
    """Somebody who walks from point to point."""

    id: int
    way: list[Points]
    """Points to come."""
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
    event: int = -1
    moving: bool = True

    @property
    def at(self) -> Points:
        """Where the person is."""
        return np.array([self.x, self.y])


def walker(rng: np.random.Generator, number: int) -> Person:
    """Somebody from the end of a pavement to another, over none, one or two crossings."""
    arm, side = int(rng.integers(4)), rng.choice([-1.0, 1.0])
    lane = HALF + rng.uniform(1.3, PAVEMENT - 0.4)
    way, waits = [place(arm, START, side * lane)], [-1]
    n_crossings = int(rng.choice(3, p=[0.3, 0.5, 0.2]))
    for _ in range(n_crossings):
        over = rng.uniform(CROSSING[0] + 0.3, CROSSING[1] - 0.3)
        back = WAITING + rng.exponential(0.5)
        way += [place(arm, over, side * min(back, HALF + 3)), place(arm, over, -side * WAITING)]
        waits += [arm, -1]
        arm, side = _next_arm(arm, -side)
        way.append(_corner(arm, side, rng))
        waits.append(-1)
    if n_crossings == 0:
        arm, side = _next_arm(arm, side)
        way.append(_corner(arm, side, rng))
        waits.append(-1)
    way.append(place(arm, START, side * lane))
    waits.append(-1)
    x, y = way[0]
    pace, height = rng.uniform(1.05, 1.65), rng.uniform(1.55, 1.9)
    return Person(number, way[1:], waits[1:], float(x), float(y), pace, height)


def _next_arm(arm: int, side: float) -> tuple[int, float]:
    """The arm round the corner from a side of an arm, and the side of it that lies there."""
    return ((arm - 1) % 4, -1.0) if side > 0 else ((arm + 1) % 4, 1.0)


def _corner(arm: int, side: float, rng: np.random.Generator) -> Points:
    spot = HALF + rng.uniform(2.2, 3.6)
    return place(arm, spot, side * spot)


def walk(person: Person, step: float, signals: Signals, time: float, fleet: Fleet) -> bool:
    """Move somebody by one step, in place; whether there is more of the way."""
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
    if arm >= 0 and not (signals.walk(time) and _clear(arm, fleet)):
        person.moving = False
        person.walked = round(person.walked / STRIDE) * STRIDE  # feet together
        return True
    person.crossing = arm
    del person.way[0], person.waits[0]
    return bool(person.way)


def on_road(person: Person) -> bool:
    """Whether somebody is on a carriageway."""
    return min(abs(person.x), abs(person.y)) < HALF


def _clear(arm: int, fleet: Fleet) -> bool:
    """Whether nothing drives where people want to cross."""
    u = place(arm, 1.0, 0.0)
    along = fleet["x"] * u[0] + fleet["y"] * u[1]
    across = np.abs(fleet["x"] * u[1] - fleet["y"] * u[0])
    band = (np.abs(along - sum(CROSSING) / 2) < 0.5 * fleet["length"] + 4) & (across < HALF)
    return not bool((band & (fleet["speed"] > 0.3)).any())


def step_aside(people: list[Person], fleet: Fleet, step: float) -> None:
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
