"""Vehicles: their kinds, sizes, temperaments and looks."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CAR, VAN, LORRY, CYCLE, PERSON, LAMP = range(6)
"""Kinds of things, and their solids."""

VEHICLE = np.dtype(
    [
        ("id", np.int64), ("kind", np.int64), ("path", np.int64),
        ("front", np.float64), ("speed", np.float64), ("acceleration", np.float64),
        ("length", np.float64), ("width", np.float64), ("height", np.float64),
        ("pull", np.float64), ("headway", np.float64), ("space", np.float64),
        ("wish", np.float64), ("offset", np.float64), ("shift", np.float64),
        ("target", np.float64), ("wall", np.float64), ("delay", np.float64),
        ("held", np.bool_), ("lawless", np.bool_), ("broken", np.float64),
        ("until", np.float64), ("event", np.int64), ("odd", np.float64, (2,)),
        ("x", np.float64), ("y", np.float64), ("heading", np.float64),
        ("gap", np.float64), ("blocker", np.int64), ("waited", np.float64),
        ("steers", np.bool_),
    ]
)  # fmt: skip
"""One vehicle. `front` is metres along its path; `shift` is how far left of it, of which `offset`
is habit and `target` what it steers for; `wish` is the speed it would like; `wall` is where it
must stop by law; `held` says that it will; `until` is when it will have seen the green; `broken`
is until when it stands; `event` is the number of its anomaly, -1 if none, and `odd` where along its
path that is seen; `gap` and `blocker` are what is ahead of it; `waited` is how long it has
stood inside the junction; `steers` says that there is room beside it to change lanes."""

Fleet = NDArray[Any]
"""Vehicles, as `VEHICLE`."""
Colours = NDArray[np.float64]
"""Roles x (blue, green, red)."""

ROLES = ("paint", "glass", "tyre", "second", "lamp", "tail", "signal")

PAINTS = np.array(
    [
        (205, 205, 205), (170, 172, 172), (120, 122, 124), (92, 94, 96), (48, 46, 45),
        (38, 36, 36), (110, 62, 36), (86, 60, 40), (48, 44, 150), (40, 38, 112),
        (70, 92, 60), (120, 150, 170), (96, 104, 112), (228, 230, 232),
    ],
    dtype=float,
)  # fmt: skip
"""Blue, green, red: mostly white, silver, grey and black, as on the road."""
CLOTHES = np.array(
    [(40, 38, 40), (70, 60, 50), (120, 70, 45), (60, 55, 130), (170, 170, 175), (80, 100, 75)],
    dtype=float,
)


class Kind(NamedTuple):
    """Typical size and temperament: lowest and highest."""

    length: tuple[float, float]
    width: tuple[float, float]
    height: tuple[float, float]
    pull: tuple[float, float]
    wish: tuple[float, float]
    offset: float


KINDS = {
    CAR: Kind((3.7, 4.8), (1.68, 1.88), (1.4, 1.65), (1.4, 2.3), (10.5, 14.5), 0.25),
    VAN: Kind((4.9, 6.2), (1.9, 2.05), (2.0, 2.6), (1.2, 1.8), (10.0, 13.5), 0.2),
    LORRY: Kind((7.2, 10.6), (2.3, 2.5), (3.0, 3.7), (0.8, 1.1), (9.0, 12.0), 0.1),
    CYCLE: Kind((1.7, 1.8), (0.5, 0.6), (1.65, 1.85), (0.8, 1.3), (3.8, 6.8), 0.2),
}


def vehicle(rng: np.random.Generator, kind: int, path: int, number: int) -> Fleet:
    """A new vehicle at the start of its path."""
    made = np.zeros(1, VEHICLE)
    usual = KINDS[kind]
    made["id"], made["kind"], made["path"], made["event"] = number, kind, path, -1
    for field in ("length", "width", "height", "pull", "wish"):
        made[field] = rng.uniform(*getattr(usual, field))
    made["headway"], made["space"] = rng.uniform(0.9, 1.7), rng.uniform(1.5, 2.8)
    made["offset"] = made["shift"] = made["target"] = rng.uniform(-usual.offset, usual.offset)
    made["delay"], made["wall"], made["blocker"] = rng.uniform(0.4, 1.6), np.inf, -1
    made["front"], made["speed"] = made["length"], 0.85 * made["wish"]
    return made


def colours(rng: np.random.Generator, kind: int) -> Colours:
    """Colours of a thing's roles."""
    base = PAINTS if kind in (CAR, VAN, LORRY) else CLOTHES
    paint = base[rng.integers(len(base))] * rng.uniform(0.85, 1.1)
    second = paint
    if kind == LORRY:
        second = PAINTS[rng.choice([0, 1, 6, 8, 11, 13])] * rng.uniform(0.8, 1.0)
    elif kind in (CYCLE, PERSON):
        second = CLOTHES[rng.integers(3)] * rng.uniform(0.7, 1.2)
    glass = np.array([64, 58, 52]) * rng.uniform(0.7, 1.3)
    if kind in (CYCLE, PERSON):  # a face, or hair
        glass = np.array([[130, 150, 190], [50, 60, 80], [90, 110, 150]][rng.integers(3)])
    roles = [paint, glass, (34, 34, 34), second, (225, 232, 235), (40, 36, 120), (60, 120, 170)]
    return np.asarray(np.clip(np.array(roles, dtype=float), 0, 255))
