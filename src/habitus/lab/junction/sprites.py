"""Moving things as the camera sees them, compiled: shadows, then solids from far to near."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.lab.junction.people import STRIDE
from habitus.lab.junction.raster import Plane, hull, paint, shade, tint

X, Y, HEADING, GONE, LENGTH, WIDTH, HEIGHT, KIND, BASE, COS, SIN, LIT = range(12)
"""Columns of a thing; from `LIT` on it has the brightness of its roles, then their two colours."""
N_ROLES = 7
Floats = NDArray[np.float64]


@compiled
def placed(thing: Floats, quad: Floats, swing: float, out: Floats) -> None:
    """Corners of a side of a solid on the ground, 4 x 3, into `out`."""
    c, s = thing[COS], thing[SIN]
    stride = 0.0
    if swing != 0.0:
        stride = swing * 0.75 * np.sin(np.pi * thing[GONE] / STRIDE)
    for k in range(4):
        x, y, z = (
            quad[k, 0] + stride * (1.0 - 2.0 * quad[k, 2]),
            quad[k, 1] + 0.24 * swing,
            quad[k, 2],
        )
        x, y = x * thing[LENGTH], y * thing[WIDTH]
        out[k, 0] = thing[X] + c * x - s * y
        out[k, 1] = thing[Y] + s * x + c * y
        out[k, 2] = thing[BASE] + z * thing[HEIGHT]


@compiled
def seen(view: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Column, row and depth of a point; `view` is a camera's position, axes, focal and centre."""
    x, y, z = x - view[0], y - view[1], z - view[2]
    depth = view[9] * x + view[10] * y + view[11] * z
    scale = view[12] / max(depth, 0.3)
    across = view[3] * x + view[4] * y + view[5] * z
    down = view[6] * x + view[7] * y + view[8] * z
    return across * scale + view[13], down * scale + view[14], depth


@compiled
def far_to_near(things: Floats, view: Floats) -> NDArray[np.int64]:
    """An order in which nothing covers what is in front of it.

    Of two boxes that do not overlap, some side of one has the other wholly beyond it: the box on
    the camera's side of that line is in front.
    """
    n = len(things)
    away = (things[:, X] - view[0]) ** 2 + (things[:, Y] - view[1]) ** 2
    order = np.argsort(-away)
    for i in range(1, n):
        k = i
        while k > 0 and _in_front(things, order[k - 1], order[k], view):
            order[k - 1], order[k] = order[k], order[k - 1]
            k -= 1
    return order


@compiled
def _in_front(things: Floats, a: int, b: int, view: Floats) -> bool:
    """Whether `a` surely is in front of `b`."""
    reach = 0.5 * (things[a, LENGTH] + things[b, LENGTH]) + 1.5
    if abs(things[a, X] - things[b, X]) > reach or abs(things[a, Y] - things[b, Y]) > reach:
        return False
    return _split(things, a, b, view) > 0 or _split(things, b, a, view) < 0


@compiled
def _split(things: Floats, a: int, b: int, view: Floats) -> int:
    """1 if a side of `a` shows that it is in front of `b`, -1 if behind, 0 if none tells."""
    c, s, bc, bs = things[a, COS], things[a, SIN], things[b, COS], things[b, SIN]
    for axis in range(2):
        nx, ny = (c, s) if axis == 0 else (-s, c)
        half = 0.5 * (things[a, LENGTH] if axis == 0 else things[a, WIDTH])
        other = 0.5 * abs(bc * nx + bs * ny) * things[b, LENGTH]
        other += 0.5 * abs(bc * ny - bs * nx) * things[b, WIDTH]
        offset = (things[b, X] - things[a, X]) * nx + (things[b, Y] - things[a, Y]) * ny
        eye = (view[0] - things[a, X]) * nx + (view[1] - things[a, Y]) * ny
        if abs(offset) - other > half - 0.15:
            if offset * eye < 0 or abs(eye) < half:
                return 1
            return -1
    return 0


@compiled
def cast(
    mask: Plane, rows: Any, things: Floats, view: Floats, sun: Floats, strength: float
) -> None:
    """Shadows on the ground: under each thing, and where it hides the sun."""
    xs, ys, hx, hy = np.empty(8), np.empty(8), np.empty(9), np.empty(9)
    for i in range(len(things)):
        thing = things[i]
        tall = 0.85 * thing[HEIGHT]
        dx, dy = -sun[0] / sun[2] * tall, -sun[1] / sun[2] * tall
        visible = thing[BASE] == 0.0 and in_view(thing, view)
        for k in range(4) if visible else range(0):
            along = (0.5 if k < 2 else -0.5) * thing[LENGTH]
            left = (0.5 if k in (1, 2) else -0.5) * thing[WIDTH]
            x = thing[X] + thing[COS] * along - thing[SIN] * left
            y = thing[Y] + thing[SIN] * along + thing[COS] * left
            xs[k], ys[k], depth = seen(view, x, y, 0.0)
            xs[k + 4], ys[k + 4], other = seen(view, x + dx, y + dy, 0.0)
            visible = visible and min(depth, other) > 1.0
        if visible:
            shade(mask, rows, xs[:4], ys[:4], 4, 255.0)
            if strength > 0.1:
                shade(mask, rows, hx, hy, hull(xs, ys, 8, hx, hy), 255.0 * strength)


@compiled
def in_view(thing: Floats, view: Floats) -> bool:
    """Whether any of a thing, or of its shadow, can be in the frame."""
    across, down, depth = seen(view, thing[X], thing[Y], 0.0)
    size = view[12] / max(depth, 1.0) * (thing[LENGTH] + 2.0 * thing[HEIGHT])
    beside = abs(across - view[13]) > view[13] + size
    return depth > 2.0 and not beside and down - size < 2 * view[14] and down + size > 0


@compiled
def draw(
    luma: Plane, blue: Plane, red: Plane, rows: Any, depths: Any, coarse: Any, things: Floats,
    order: Any, view: Floats, sun: Floats, quads: Floats, roles: Any, swings: Floats, ranges: Any,
) -> None:  # fmt: skip
    """Solids onto the planes of a picture, far to near; `sun` is its direction and its share."""
    xs, ys, at = np.empty(4), np.empty(4), np.empty((4, 3))
    for i in order:
        thing = things[i]
        if not in_view(thing, view):
            continue
        _, _, depth = seen(view, thing[X], thing[Y], 0.0)
        tall = max(view[12] / depth * thing[HEIGHT], 8.0)
        first, last = ranges[int(thing[KIND])]
        for q in range(first, last):
            placed(thing, quads[q], swings[q], at)
            facing, light = _facing(at, view, sun)
            if facing <= 0:
                continue
            for k in range(4):
                xs[k], ys[k], _ = seen(view, at[k, 0], at[k, 1], at[k, 2])
            role = roles[q]
            value = thing[LIT + role] * light
            gloss = -0.4 * value / tall if role < 2 else 0.0
            paint(luma, rows, depths, depth - 1.0, xs, ys, value, gloss)
            for k in range(4):
                xs[k], ys[k] = 0.5 * xs[k], 0.5 * ys[k]
            blueness, redness = thing[LIT + N_ROLES + role], thing[LIT + 2 * N_ROLES + role]
            tint(blue, red, rows, coarse, depth - 1.0, xs, ys, blueness, redness)


@compiled
def _facing(at: Floats, view: Floats, sun: Floats) -> tuple[float, float]:
    """How far a side faces the camera, and how bright it is."""
    ax, ay, az = at[1, 0] - at[0, 0], at[1, 1] - at[0, 1], at[1, 2] - at[0, 2]
    bx, by, bz = at[3, 0] - at[0, 0], at[3, 1] - at[0, 1], at[3, 2] - at[0, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    facing = nx * (view[0] - at[0, 0]) + ny * (view[1] - at[0, 1]) + nz * (view[2] - at[0, 2])
    if facing <= 0:
        return facing, 0.0
    size = np.sqrt(nx * nx + ny * ny + nz * nz) + 1e-12
    direct = max(0.0, (nx * sun[0] + ny * sun[1] + nz * sun[2]) / size)
    return facing, (1.0 - sun[3]) * (0.75 + 0.25 * nz / size) + sun[3] * direct * 1.15
