"""The shapes of things: quadrilaterals in a box of length, width and height one.

x runs from the tail (-0.5) to the front (0.5), y to the left, z up from the ground.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.lab.junction.fleet import CAR, CYCLE, LAMP, LORRY, PERSON, ROLES, VAN

Quad = tuple[str, list[tuple[float, float, float]], float]
"""Role, corners (anticlockwise as seen from outside), and how far its foot swings in walking."""


class Solids(NamedTuple):
    """Quadrilaterals of all kinds of things."""

    corners: NDArray[np.float64]
    """Quadrilaterals x 4 x 3."""
    roles: NDArray[np.int64]
    swings: NDArray[np.float64]
    ranges: NDArray[np.int64]
    """Kinds x 2: first quadrilateral, and the one after the last; later ones cover earlier ones."""


@cache
def solids() -> Solids:
    """Of all kinds, by their numbers."""
    shapes: dict[int, list[Quad]] = {
        CAR: _car(), VAN: _van(), LORRY: _lorry(), CYCLE: _cycle(), PERSON: _person(),
        LAMP: [("paint", [(0.5, -0.5, 0), (0.5, 0.5, 0), (0.5, 0.5, 1), (0.5, -0.5, 1)], 0.0)],
    }  # fmt: skip
    quads = [quad for kind in sorted(shapes) for quad in shapes[kind]]
    ends = np.cumsum([len(shapes[kind]) for kind in sorted(shapes)])
    return Solids(
        np.array([corners for _, corners, _ in quads], dtype=float),
        np.array([ROLES.index(role) for role, _, _ in quads], dtype=np.int64),
        np.array([swing for _, _, swing in quads]),
        np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1).astype(np.int64),
    )


def _prism(
    role: str,
    tail: tuple[float, float],
    front: tuple[float, float],
    z: tuple[float, float],
    wide: tuple[float, float] = (0.5, 0.5),
    swing: float = 0.0,
) -> list[Quad]:
    """Five sides: `tail` and `front` are where these are at the foot and at the top."""
    (t0, t1), (f0, f1), (z0, z1), (w0, w1) = tail, front, z, wide
    low = [(t0, -w0, z0), (f0, -w0, z0), (f0, w0, z0), (t0, w0, z0)]
    top = [(t1, -w1, z1), (f1, -w1, z1), (f1, w1, z1), (t1, w1, z1)]
    sides = [(i, (i + 1) % 4) for i in range(4)]
    walls: list[Quad] = [(role, [low[i], low[j], top[j], top[i]], swing) for i, j in sides]
    return [*walls, (role, top, swing)]


def _panes(
    tail: tuple[float, float],
    front: tuple[float, float],
    z: tuple[float, float],
    wide: tuple[float, float],
    *,
    pillar: float = 0.5,
) -> list[Quad]:
    """Windows in the sides of a cabin: the same corners as its prism, drawn in a little."""
    walls = _prism("glass", tail, front, z, wide)[:4]
    right, ahead, left, behind = (_shrunk(corners) for _, corners, _ in walls)
    panes: list[Quad] = []
    for side in (right, left):
        cut = pillar if side is right else 1 - pillar
        panes += [("glass", _part(side, 0, cut - 0.03), 0.0)]
        panes += [("glass", _part(side, cut + 0.03, 1), 0.0)]
    return [*panes, ("glass", ahead, 0.0), ("glass", behind, 0.0)]


def _shrunk(corners: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    points = np.array(corners)
    a, b, c, d = points
    across = [a + 0.06 * (b - a), b + 0.06 * (a - b), c + 0.06 * (d - c), d + 0.06 * (c - d)]
    a, b, c, d = across
    inner = [a + 0.08 * (d - a), b + 0.08 * (c - b), c + 0.14 * (b - c), d + 0.14 * (a - d)]
    return [tuple(float(v) for v in p) for p in inner]  # type: ignore[misc]


def _part(
    corners: list[tuple[float, float, float]], start: float, end: float
) -> list[tuple[float, float, float]]:
    a, b, c, d = np.array(corners)
    found = [a + start * (b - a), a + end * (b - a), d + end * (c - d), d + start * (c - d)]
    return [tuple(float(v) for v in p) for p in found]  # type: ignore[misc]


def _wheels(places: tuple[float, ...], radius: float, top: float) -> list[Quad]:
    """Tyres, as seen from the side: hexagons of two halves."""
    quads: list[Quad] = []
    for x in places:
        for y in (-0.503, 0.503):
            r = radius if y < 0 else -radius
            for low, high, foot, head in ((0.0, 0.5, 0.5, 1.0), (0.5, 1.0, 1.0, 0.5)):
                ends = [(-foot, low), (foot, low), (head, high), (-head, high)]
                quads.append(("tyre", [(x + r * e, y, top * z) for e, z in ends], 0.0))
    return quads


def _lights(low: float, high: float) -> list[Quad]:
    """Head lamps, tail lamps and the flashing ones."""
    quads: list[Quad] = []
    for y0, y1 in ((-0.47, -0.27), (0.27, 0.47)):
        front = [(0.503, y0, low), (0.503, y1, low), (0.503, y1, high), (0.503, y0, high)]
        tail = [(-0.503, y1, low), (-0.503, y0, low), (-0.503, y0, high), (-0.503, y1, high)]
        quads += [("lamp", front, 0.0), ("tail", tail, 0.0)]
    return quads


def _car() -> list[Quad]:
    under = _prism("tyre", (-0.47, -0.47), (0.47, 0.47), (0.08, 0.2), (0.46, 0.46))
    body = _prism("paint", (-0.5, -0.49), (0.5, 0.47), (0.17, 0.56), (0.5, 0.48))
    hood = _prism("paint", (-0.49, -0.45), (0.47, 0.3), (0.56, 0.63), (0.48, 0.46))
    cabin = (-0.44, -0.34), (0.27, 0.08), (0.62, 1.0), (0.46, 0.36)
    panes = _panes(*cabin, pillar=0.5)
    return [
        *under, *body, *_wheels((-0.31, 0.31), 0.075, 0.42), *_lights(0.42, 0.54), *hood,
        *_prism("paint", *cabin), *panes,
    ]  # fmt: skip


def _van() -> list[Quad]:
    under = _prism("tyre", (-0.47, -0.47), (0.47, 0.47), (0.05, 0.13), (0.46, 0.46))
    body = _prism("paint", (-0.5, -0.5), (0.5, 0.47), (0.11, 0.5), (0.5, 0.5))
    top = (-0.5, -0.49), (0.4, 0.24), (0.5, 1.0), (0.5, 0.44)
    _, right, left, _, screen, _ = _panes(*top, pillar=0.72)
    return [
        *under, *body, *_wheels((-0.31, 0.32), 0.062, 0.3), *_lights(0.3, 0.4),
        *_prism("paint", *top), right, left, screen,
    ]  # fmt: skip


def _lorry() -> list[Quad]:
    under = _prism("tyre", (-0.48, -0.48), (0.48, 0.48), (0.08, 0.26), (0.42, 0.42))
    cab = _prism("paint", (0.26, 0.26), (0.5, 0.48), (0.14, 0.76), (0.49, 0.46))
    panes = _panes((0.27, 0.27), (0.503, 0.487), (0.44, 0.76), (0.495, 0.465), pillar=0.9)
    box = _prism("second", (-0.5, -0.5), (0.24, 0.24), (0.26, 1.0))
    stripe: list[Quad] = [
        ("paint", [(x0, y, 0.5), (x1, y, 0.5), (x1, y, 0.66), (x0, y, 0.66)], 0.0)
        for y, x0, x1 in ((-0.503, -0.42, 0.16), (0.503, 0.16, -0.42))
    ]
    wheels = _wheels((-0.36, -0.26, 0.37), 0.052, 0.28)
    return [*under, *cab, panes[0], panes[3], panes[4], *wheels, *_lights(0.2, 0.27), *box, *stripe]


def _cycle() -> list[Quad]:
    quads: list[Quad] = []
    for x in (-0.3, 0.3):  # wheels are thin: both faces
        ends = [(x - 0.19, 0.0), (x + 0.19, 0.0), (x + 0.19, 0.4), (x - 0.19, 0.4)]
        wheel = [(along, 0.0, z) for along, z in ends]
        quads += [("tyre", wheel, 0.0), ("tyre", wheel[::-1], 0.0)]
    frame = [(-0.3, 0.0, 0.2), (0.3, 0.0, 0.24), (0.2, 0.0, 0.56), (-0.1, 0.0, 0.5)]
    quads += [("tail", frame, 0.0), ("tail", frame[::-1], 0.0)]
    legs = _prism("second", (-0.1, -0.16), (0.1, 0.06), (0.16, 0.56), (0.2, 0.28))
    torso = _prism("paint", (-0.2, -0.04), (0.06, 0.2), (0.54, 0.86), (0.32, 0.42))
    head = _prism("glass", (0.06, 0.08), (0.2, 0.2), (0.86, 1.0), (0.17, 0.15))
    return [*quads, *legs, *torso, *head]


def _person() -> list[Quad]:
    legs = [
        *_prism("second", (-0.2, -0.22), (0.15, 0.2), (0.0, 0.48), (0.2, 0.24), swing=1.0),
        *_prism("second", (-0.2, -0.22), (0.15, 0.2), (0.0, 0.48), (0.2, 0.24), swing=-1.0),
    ]
    torso = _prism("paint", (-0.26, -0.28), (0.26, 0.24), (0.46, 0.84), (0.4, 0.48))
    head = _prism("glass", (-0.22, -0.2), (0.22, 0.2), (0.86, 1.0), (0.2, 0.18))
    return [*legs, *torso, *head]
