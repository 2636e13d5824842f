"""Solid shapes of moving objects, and the compiled kernels that draw them and their shadows.

A shape consists of quadrilaterals in a box of length, width and height one: x runs from the tail
(-0.5) to the front (0.5), y to the left, z up from the ground.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Image
from habitus.compiled import compiled
from habitus.lab.junction.raster import Planes, hull, paint, shade, stencil
from habitus.lab.junction.traffic import STRIDE
from habitus.lab.junction.vehicles import (
    BASE,
    CAR,
    COS,
    CYCLE,
    FENCE,
    HEIGHT,
    KIND,
    LAMP,
    LENGTH,
    LORRY,
    LUMA,
    N_ROLES,
    PERSON,
    ROLES,
    SIN,
    TRAVELLED,
    VAN,
    WIDTH,
    X,
    Y,
)

FENCE_STRIPES = 4
"""Stripes of a fence's board, which have two colours in turn."""

Corners = NDArray[np.float64] | list[tuple[float, float, float]]
"""Corners of a quadrilateral: x, y, z."""
Quad = tuple[str, Corners, float]
"""Role, corners (anticlockwise as seen from outside), and how far its foot swings when walking."""


class Solids(NamedTuple):
    """Quadrilaterals of all kinds of objects."""

    corners: Array
    """Shape (quadrilaterals, 4, 3)."""
    roles: NDArray[np.int64]
    """Index into `ROLES` of each quadrilateral."""
    swings: Array
    """How far the foot of each quadrilateral swings when walking: -1, 0 or 1."""
    ranges: NDArray[np.int64]
    """Shape (kinds, 2): first and last (exclusive) quadrilateral, in the order of drawing."""


@cache
def solids() -> Solids:
    """Return the shapes of all kinds of objects."""
    shapes: dict[int, list[Quad]] = {
        CAR: _car(),
        VAN: _van(),
        LORRY: _lorry(),
        CYCLE: _cycle(),
        PERSON: _person(),
        LAMP: [("paint", [(0.5, -0.5, 0), (0.5, 0.5, 0), (0.5, 0.5, 1), (0.5, -0.5, 1)], 0.0)],
        FENCE: _fence(),
    }
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
    """Return five sides of a prism.

    `tail` and `front` are x at the foot and at the top, `z` the heights, `wide` half the widths.
    """
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
    """Return the windows of a cabin: the sides of its prism, slightly smaller."""
    walls = _prism("glass", tail, front, z, wide)[:4]
    right, ahead, left, behind = (_shrunk(corners) for _, corners, _ in walls)
    panes: list[Quad] = []
    for side in (right, left):
        cut = pillar if side is right else 1 - pillar
        panes += [("glass", _part(side, 0, cut - 0.03), 0.0)]
        panes += [("glass", _part(side, cut + 0.03, 1), 0.0)]
    return [*panes, ("glass", ahead, 0.0), ("glass", behind, 0.0)]


def _shrunk(corners: Corners) -> Corners:
    """Return a smaller quadrilateral within another."""
    a, b, c, d = np.array(corners)
    a, b, c, d = a + 0.06 * (b - a), b + 0.06 * (a - b), c + 0.06 * (d - c), d + 0.06 * (c - d)
    return np.array(
        [a + 0.08 * (d - a), b + 0.08 * (c - b), c + 0.14 * (b - c), d + 0.14 * (a - d)]
    )


def _part(corners: Corners, start: float, end: float) -> Corners:
    """Return the part of a quadrilateral between two shares of its width."""
    a, b, c, d = np.array(corners)
    return np.array(
        [a + start * (b - a), a + end * (b - a), d + end * (c - d), d + start * (c - d)]
    )


def _wheels(places: tuple[float, ...], radius: float, top: float) -> list[Quad]:
    """Return tyres as seen from the side: hexagons of two halves."""
    quads: list[Quad] = []
    for x in places:
        for y in (-0.503, 0.503):
            r = radius if y < 0 else -radius
            for low, high, foot, head in ((0.0, 0.5, 0.5, 1.0), (0.5, 1.0, 1.0, 0.5)):
                ends = [(-foot, low), (foot, low), (head, high), (-head, high)]
                quads.append(("tyre", [(x + r * e, y, top * z) for e, z in ends], 0.0))
    return quads


def _lights(low: float, high: float) -> list[Quad]:
    """Return head lamps and tail lamps."""
    quads: list[Quad] = []
    for y0, y1 in ((-0.47, -0.27), (0.27, 0.47)):
        front = [(0.503, y0, low), (0.503, y1, low), (0.503, y1, high), (0.503, y0, high)]
        tail = [(-0.503, y1, low), (-0.503, y0, low), (-0.503, y0, high), (-0.503, y1, high)]
        quads += [("lamp", front, 0.0), ("tail", tail, 0.0)]
    return quads


def _car() -> list[Quad]:
    """Return the quadrilaterals of a car."""
    cabin = (-0.44, -0.34), (0.27, 0.08), (0.62, 1.0), (0.46, 0.36)
    return [
        *_prism("tyre", (-0.47, -0.47), (0.47, 0.47), (0.08, 0.2), (0.46, 0.46)),
        *_prism("paint", (-0.5, -0.49), (0.5, 0.47), (0.17, 0.56), (0.5, 0.48)),
        *_wheels((-0.31, 0.31), 0.075, 0.42),
        *_lights(0.42, 0.54),
        *_prism("paint", (-0.49, -0.45), (0.47, 0.3), (0.56, 0.63), (0.48, 0.46)),  # the bonnet
        *_prism("paint", *cabin),
        *_panes(*cabin, pillar=0.5),
    ]


def _van() -> list[Quad]:
    """Return the quadrilaterals of a van."""
    top = (-0.5, -0.49), (0.4, 0.24), (0.5, 1.0), (0.5, 0.44)
    _, right, left, _, screen, _ = _panes(*top, pillar=0.72)
    return [
        *_prism("tyre", (-0.47, -0.47), (0.47, 0.47), (0.05, 0.13), (0.46, 0.46)),
        *_prism("paint", (-0.5, -0.5), (0.5, 0.47), (0.11, 0.5), (0.5, 0.5)),
        *_wheels((-0.31, 0.32), 0.062, 0.3),
        *_lights(0.3, 0.4),
        *_prism("paint", *top),
        *(right, left, screen),
    ]


def _lorry() -> list[Quad]:
    """Return the quadrilaterals of a lorry."""
    panes = _panes((0.27, 0.27), (0.503, 0.487), (0.44, 0.76), (0.495, 0.465), pillar=0.9)
    stripe: list[Quad] = [
        ("paint", [(x0, y, 0.5), (x1, y, 0.5), (x1, y, 0.66), (x0, y, 0.66)], 0.0)
        for y, x0, x1 in ((-0.503, -0.42, 0.16), (0.503, 0.16, -0.42))
    ]
    return [
        *_prism("tyre", (-0.48, -0.48), (0.48, 0.48), (0.08, 0.26), (0.42, 0.42)),
        *_prism("paint", (0.26, 0.26), (0.5, 0.48), (0.14, 0.76), (0.49, 0.46)),
        *(panes[0], panes[3], panes[4]),
        *_wheels((-0.36, -0.26, 0.37), 0.052, 0.28),
        *_lights(0.2, 0.27),
        *_prism("second", (-0.5, -0.5), (0.24, 0.24), (0.26, 1.0)),
        *stripe,
    ]


def _cycle() -> list[Quad]:
    """Return the quadrilaterals of a cycle with its rider."""
    wheels = ((x - 0.19, 0.0, x + 0.19, 0.0, x + 0.19, 0.4, x - 0.19, 0.4) for x in (-0.3, 0.3))
    frame = (-0.3, 0.2, 0.3, 0.24, 0.2, 0.56, -0.1, 0.5)
    thin = [("tyre", wheel) for wheel in wheels] + [("tail", frame)]
    quads: list[Quad] = []
    for role, ends in thin:  # both faces
        face = np.insert(np.reshape(ends, (4, 2)), 1, 0.0, axis=1)
        quads += [(role, face, 0.0), (role, face[::-1], 0.0)]
    return [
        *quads,
        *_prism("second", (-0.1, -0.16), (0.1, 0.06), (0.16, 0.56), (0.2, 0.28)),
        *_prism("paint", (-0.2, -0.04), (0.06, 0.2), (0.54, 0.86), (0.32, 0.42)),
        *_prism("glass", (0.06, 0.08), (0.2, 0.2), (0.86, 1.0), (0.17, 0.15)),
    ]


def _person() -> list[Quad]:
    """Return the quadrilaterals of a pedestrian."""
    return [
        *_prism("second", (-0.2, -0.22), (0.15, 0.2), (0.0, 0.48), (0.2, 0.24), swing=1.0),
        *_prism("second", (-0.2, -0.22), (0.15, 0.2), (0.0, 0.48), (0.2, 0.24), swing=-1.0),
        *_prism("paint", (-0.26, -0.28), (0.26, 0.24), (0.46, 0.84), (0.4, 0.48)),
        *_prism("glass", (-0.22, -0.2), (0.22, 0.2), (0.86, 1.0), (0.2, 0.18)),
    ]


def _fence() -> list[Quad]:
    """Return the quadrilaterals of a fence's board, with stripes of two colours."""
    quads: list[Quad] = []
    for k in range(FENCE_STRIPES):
        start, end = k / FENCE_STRIPES - 0.5, (k + 1) / FENCE_STRIPES - 0.5
        role = ("paint", "second")[k % 2]
        right, ahead, left, behind, top = _prism(role, (start, start), (end, end), (0.0, 1.0))
        quads += [right, left, top]
        if k == 0:
            quads.append(behind)
        if k == FENCE_STRIPES - 1:
            quads.append(ahead)
    return quads


@compiled
def place_quad(obj: Array, quad: Array, swing: float, out: Array) -> None:
    """Write the four corners of a quadrilateral of an object on the ground to `out`, (4, 3).

    Equals ``position + rotation @ (quad * size)``, with the foot moved by the swing of a step.
    """
    c, s = obj[COS], obj[SIN]
    stride = 0.0
    if swing != 0.0:
        stride = swing * 0.75 * np.sin(np.pi * obj[TRAVELLED] / STRIDE)
    for k in range(4):
        x, y, z = (
            quad[k, 0] + stride * (1.0 - 2.0 * quad[k, 2]),
            quad[k, 1] + 0.24 * swing,
            quad[k, 2],
        )
        x, y = x * obj[LENGTH], y * obj[WIDTH]
        out[k, 0] = obj[X] + c * x - s * y
        out[k, 1] = obj[Y] + s * x + c * y
        out[k, 2] = obj[BASE] + z * obj[HEIGHT]


@compiled
def project_point(view: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return column, row and depth of a point, given the vector of a camera.

    `view` holds position, axes, focal length and centre. Equals `Camera.project` for one point that
    is farther than 0.8 m.
    """
    x, y, z = x - view[0], y - view[1], z - view[2]
    depth = view[9] * x + view[10] * y + view[11] * z
    scale = view[12] / max(depth, 0.3)
    across = view[3] * x + view[4] * y + view[5] * z
    down = view[6] * x + view[7] * y + view[8] * z
    return across * scale + view[13], down * scale + view[14], depth


@compiled
def draw_order(objects: Array, view: Array) -> NDArray[np.int64]:
    """Return an order in which no object covers one that is in front of it.

    For two boxes that do not overlap, a side of one has the other wholly beyond it: the box on the
    camera's side of that line is in front. Sorts by insertion from ``argsort(-distance)``.
    """
    n = len(objects)
    away = (objects[:, X] - view[0]) ** 2 + (objects[:, Y] - view[1]) ** 2
    order = np.argsort(-away)
    for i in range(1, n):
        k = i
        while k > 0 and _in_front(objects, order[k - 1], order[k], view):
            order[k - 1], order[k] = order[k], order[k - 1]
            k -= 1
    return order


@compiled
def _in_front(objects: Array, a: int, b: int, view: Array) -> bool:
    """Return whether `a` certainly is in front of `b`."""
    reach = 0.5 * (objects[a, LENGTH] + objects[b, LENGTH]) + 1.5
    if abs(objects[a, X] - objects[b, X]) > reach or abs(objects[a, Y] - objects[b, Y]) > reach:
        return False
    return _separation(objects, a, b, view) > 0 or _separation(objects, b, a, view) < 0


@compiled
def _separation(objects: Array, a: int, b: int, view: Array) -> int:
    """Return 1 if a side of `a` shows that it is in front of `b`, -1 if behind, else 0."""
    c, s, bc, bs = objects[a, COS], objects[a, SIN], objects[b, COS], objects[b, SIN]
    for axis in range(2):
        nx, ny = (c, s) if axis == 0 else (-s, c)
        half = 0.5 * (objects[a, LENGTH] if axis == 0 else objects[a, WIDTH])
        other = 0.5 * abs(bc * nx + bs * ny) * objects[b, LENGTH]
        other += 0.5 * abs(bc * ny - bs * nx) * objects[b, WIDTH]
        offset = (objects[b, X] - objects[a, X]) * nx + (objects[b, Y] - objects[a, Y]) * ny
        eye = (view[0] - objects[a, X]) * nx + (view[1] - objects[a, Y]) * ny
        if abs(offset) - other > half - 0.15:
            if offset * eye < 0 or abs(eye) < half:
                return 1
            return -1
    return 0


@compiled
def cast_shadows(
    mask: Image, rows: Any, objects: Array, view: Array, sun: Array, strength: float
) -> None:
    """Draw the shadows of all objects on the ground: below each, and where it hides the sun.

    Equals, for each object, `shade` with its base, then with the hull of its base and of its base
    moved away from the sun by ``0.85 * height / tan(elevation)``.
    """
    xs, ys, hx, hy = np.empty(8), np.empty(8), np.empty(9), np.empty(9)
    for i in range(len(objects)):
        obj = objects[i]
        tall = 0.85 * obj[HEIGHT]
        dx, dy = -sun[0] / sun[2] * tall, -sun[1] / sun[2] * tall
        visible = obj[BASE] == 0.0 and in_view(obj, view)
        for k in range(4) if visible else range(0):
            along = (0.5 if k < 2 else -0.5) * obj[LENGTH]
            left = (0.5 if k in (1, 2) else -0.5) * obj[WIDTH]
            x = obj[X] + obj[COS] * along - obj[SIN] * left
            y = obj[Y] + obj[SIN] * along + obj[COS] * left
            xs[k], ys[k], depth = project_point(view, x, y, 0.0)
            xs[k + 4], ys[k + 4], other = project_point(view, x + dx, y + dy, 0.0)
            visible = visible and min(depth, other) > 1.0
        if visible:
            shade(mask, rows, xs[:4], ys[:4], 4, 255.0)
            if strength > 0.1:
                shade(mask, rows, hx, hy, hull(xs, ys, 8, hx, hy), 255.0 * strength)


@compiled
def in_view(obj: Array, view: Array) -> bool:
    """Return whether any part of an object, or of its shadow, can be in the frame."""
    across, down, depth = project_point(view, obj[X], obj[Y], 0.0)
    size = view[12] / max(depth, 1.0) * (obj[LENGTH] + 2.0 * obj[HEIGHT])
    beside = abs(across - view[13]) > view[13] + size
    return depth > 2.0 and not beside and down - size < 2 * view[14] and down + size > 0


@compiled
def draw_objects(
    planes: Planes,
    rows: Any,
    depths: Any,
    coarse: Any,
    objects: Array,
    order: Any,
    view: Array,
    sun: Array,
    shapes: Solids,
) -> None:
    """Draw objects on the planes of a picture, from far to near.

    `sun` holds its direction and its share of the light. Equals, for each object in `order` and
    each of its sides that faces the camera, `place_quad`, `project_point` and `paint`.
    """
    xs, ys, at = np.empty(4), np.empty(4), np.empty((4, 3))
    for i in order:
        obj = objects[i]
        if not in_view(obj, view):
            continue
        _, _, depth = project_point(view, obj[X], obj[Y], 0.0)
        tall = max(view[12] / depth * obj[HEIGHT], 8.0)
        first, last = shapes.ranges[int(obj[KIND])]
        for q in range(first, last):
            place_quad(obj, shapes.corners[q], shapes.swings[q], at)
            facing, light = _facing_and_light(at, view, sun)
            if facing <= 0:
                continue
            for k in range(4):
                xs[k], ys[k], _ = project_point(view, at[k, 0], at[k, 1], at[k, 2])
            role = shapes.roles[q]
            value = obj[LUMA + role] * light
            gloss = -0.4 * value / tall if role < 2 else 0.0
            paint(planes.luma, rows, depths, depth - 1.0, xs, ys, value, gloss, 4)
            for k in range(4):
                xs[k], ys[k] = 0.5 * xs[k], 0.5 * ys[k]
            blue, red = obj[LUMA + N_ROLES + role], obj[LUMA + 2 * N_ROLES + role]
            paint(planes.blue, rows, coarse, depth - 1.0, xs, ys, blue, 0.0, 2)
            paint(planes.red, rows, coarse, depth - 1.0, xs, ys, red, 0.0, 2)


@compiled
def _facing_and_light(at: Array, view: Array, sun: Array) -> tuple[float, float]:
    """Return how far a side faces the camera (positive: visible), and its brightness."""
    ax, ay, az = at[1, 0] - at[0, 0], at[1, 1] - at[0, 1], at[1, 2] - at[0, 2]
    bx, by, bz = at[3, 0] - at[0, 0], at[3, 1] - at[0, 1], at[3, 2] - at[0, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    facing = nx * (view[0] - at[0, 0]) + ny * (view[1] - at[0, 1]) + nz * (view[2] - at[0, 2])
    if facing <= 0:
        return facing, 0.0
    size = np.sqrt(nx * nx + ny * ny + nz * nz) + 1e-12
    direct = max(0.0, (nx * sun[0] + ny * sun[1] + nz * sun[2]) / size)
    return facing, (1.0 - sun[3]) * (0.75 + 0.25 * nz / size) + sun[3] * direct * 1.15


@compiled
def stencil_visible(
    mask: Image,
    rows: Any,
    objects: Array,
    order: Any,
    which: int,
    view: Array,
    shapes: Solids,
) -> None:
    """Mark where an object is, with 1, and all that come later in `order`, with 2, in a mask.

    Equals `place_quad`, `project_point` and `stencil` for each quadrilateral of these objects.
    """
    xs, ys, at = np.empty(4), np.empty(4), np.empty((4, 3))
    found = False
    for i in order:
        found = found or i == which
        obj = objects[i]
        if not found or not in_view(obj, view):
            continue
        first, last = shapes.ranges[int(obj[KIND])]
        for q in range(first, last):
            place_quad(obj, shapes.corners[q], shapes.swings[q], at)
            for k in range(4):
                xs[k], ys[k], _ = project_point(view, at[k, 0], at[k, 1], at[k, 2])
            stencil(mask, rows, xs, ys, 4, 1 if i == which else 2)
