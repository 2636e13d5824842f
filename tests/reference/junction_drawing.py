"""NumPy twins of the kernels that draw the junction: whole arrays, no loops over pixels."""

import numpy as np

from habitus.lab.junction.traffic import STRIDE
from habitus.lab.junction.vehicles import (
    BASE,
    COS,
    HEIGHT,
    KIND,
    LENGTH,
    LUMA,
    N_ROLES,
    SIN,
    TRAVELLED,
    WIDTH,
    X,
    Y,
)

FOOT = np.array([(0.5, -0.5, 0.0), (0.5, 0.5, 0.0), (-0.5, 0.5, 0.0), (-0.5, -0.5, 0.0)])
"""Base of an object of length and width one."""


def covered(xs, ys, shape, n_lines):
    """Return the share of each pixel that a convex polygon covers."""
    height, width = shape
    n_lines = 2 if np.ptp(ys) > 24.0 else n_lines
    y = (np.arange(height)[:, None] + (np.arange(n_lines) + 0.5) / n_lines).ravel()[:, None]
    x1, y1 = np.roll(xs, -1), np.roll(ys, -1)
    crosses = (ys <= y) != (y1 <= y)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = xs + (y - ys) * ((x1 - xs) / (y1 - ys))
    left = np.where(crosses, at, np.inf).min(axis=1)[:, None]
    right = np.where(crosses, at, -np.inf).max(axis=1)[:, None]
    pixel = np.arange(width)
    share = np.clip(right - pixel, 0, 1) - np.clip(left - pixel, 0, 1)
    return np.maximum(share, 0).reshape(height, n_lines, width).mean(axis=1)


def painted(plane, depths, depth, xs, ys, value, slope, n_lines=4):
    """Return a plane with a filled quadrilateral."""
    share = covered(xs, ys, plane.shape, n_lines) * (depths > depth)
    rows = np.arange(len(plane))[:, None]
    colour = np.clip(value + slope * (rows - np.mean(ys)), 0, 254)
    return np.floor(plane + share * (colour - plane) + 0.5).astype(np.uint8)


def shaded(mask, xs, ys, value):
    """Return a mask raised to `value` within a polygon."""
    share = np.minimum(covered(xs, ys, mask.shape, 2), 1)
    return np.maximum(mask, np.floor(share * value)).astype(np.uint8)


def stencilled(mask, xs, ys, value):
    """Return a mask set where a polygon covers at least half of a pixel."""
    return np.where(covered(xs, ys, mask.shape, 4) >= 0.5, value, mask).astype(np.uint8)


def exposed(luma, noise, top, left, gain, deviation):
    """Return a luma plane with gain and noise."""
    rows, columns = (
        (np.arange(n) + start) % len(noise)
        for n, start in zip(luma.shape, (top, left), strict=True)
    )
    value = gain * luma + deviation / 16 * noise[np.ix_(rows, columns)] + 0.5
    return np.floor(np.clip(value, 0, 255)).astype(np.uint8)


def corners_of(obj, quad, swing):
    """Return the corners of a quadrilateral of an object on the ground, (4, 3)."""
    stride = swing * 0.75 * np.sin(np.pi * obj[TRAVELLED] / STRIDE)
    local = quad + np.stack(
        [stride * (1 - 2 * quad[:, 2]), np.full(4, 0.24 * swing), np.zeros(4)], axis=1
    )
    local = local * obj[[LENGTH, WIDTH, HEIGHT]]
    turn = np.array([[obj[COS], -obj[SIN], 0], [obj[SIN], obj[COS], 0], [0, 0, 1]])
    return local @ turn.T + [obj[X], obj[Y], obj[BASE]]


def brightness(corners, camera, sun):
    """Return whether a quadrilateral faces the camera, and its brightness."""
    normal = np.cross(corners[1] - corners[0], corners[3] - corners[0])
    unit = normal / (np.linalg.norm(normal) + 1e-12)
    direct = max(0.0, float(unit @ sun[:3]))
    light = (1 - sun[3]) * (0.75 + 0.25 * unit[2]) + sun[3] * direct * 1.15
    return bool(normal @ (camera.position - corners[0]) > 0), light


def drawn(planes, depths, coarse, objects, order, camera, sun, shapes):
    """Return the luma, blue and red planes with all objects, from far to near."""
    luma, blue, red = planes
    for i in order:
        obj = objects[i]
        depth = camera.project(np.array([[obj[X], obj[Y], 0.0]]))[0, 2]
        tall = max(camera.focal / depth * obj[HEIGHT], 8.0)
        for q in range(*shapes.ranges[int(obj[KIND])]):
            corners = corners_of(obj, shapes.corners[q], shapes.swings[q])
            facing, light = brightness(corners, camera, sun)
            if not facing:
                continue
            xs, ys, _ = camera.project(corners).T
            role = shapes.roles[q]
            value = obj[LUMA + role] * light
            slope = -0.4 * value / tall if role < 2 else 0.0
            luma = painted(luma, depths, depth - 1, xs, ys, value, slope)
            blueness, redness = obj[LUMA + N_ROLES + role], obj[LUMA + 2 * N_ROLES + role]
            half = coarse, depth - 1, xs / 2, ys / 2
            blue = painted(blue, *half, blueness, 0.0, n_lines=2)
            red = painted(red, *half, redness, 0.0, n_lines=2)
    return luma, blue, red


def cast(shape, objects, camera, sun, strength, hull):
    """Return the mask of all shadows; `hull` gives the corners of a convex hull, in order."""
    mask = np.zeros(shape, np.uint8)
    for obj in objects:
        base = corners_of(obj, FOOT, 0.0)
        away = np.append(-sun[:2] / sun[2] * 0.85 * obj[HEIGHT], 0.0)
        foot, tip = camera.project(base)[:, :2], camera.project(base + away)[:, :2]
        mask = shaded(mask, *foot.T, 255.0)
        if strength > 0.1:
            mask = shaded(mask, *hull(np.concatenate([foot, tip])).T, 255.0 * strength)
    return mask
