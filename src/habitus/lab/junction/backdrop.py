"""The picture without anything that moves: ground, what stands on it, and its shadows."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.lab.junction.camera import Camera
from habitus.lab.junction.canvas import FINE, INFINITE, Canvas, Floats, clipped
from habitus.lab.junction.ground import Style, ground
from habitus.lab.junction.layout import Points
from habitus.lab.junction.light import Daylight
from habitus.lab.junction.places import standing
from habitus.lab.junction.standing import Block, Pole, Thing

CONTACT = 0.5
"""Share of the light that is missing under a vehicle, whatever the weather."""


class Backdrop(NamedTuple):
    """A scene's still picture."""

    lit: Floats
    """Height x width x 3, blue, green and red, as the sun lights it."""
    shaded: Floats
    """The same where something moving hides all light that such things hide."""
    depths: Floats
    """Height x width: metres to what stands in front of the ground, infinite where nothing does."""


def backdrop(camera: Camera, light: Daylight, seed: int) -> Backdrop:
    """Draw everything that stands."""
    rng = np.random.default_rng([seed, 5])
    canvas = Canvas(camera)
    _ground_and_sky(canvas, Style.drawn(rng), light, rng)
    things = standing(camera, seed)
    sunless = _shadows(camera, things, light)
    shaded = canvas.picture * (1 - max(light.shadow, CONTACT))
    canvas.picture *= 1 - light.shadow * sunless[..., None]
    _draw(things, canvas, light)
    stands = canvas.depths < INFINITE
    shaded[stands] = canvas.picture[stands]
    size, tint = (camera.width, camera.height), (light.gain * light.tint).astype(np.float32)
    lit, dark = (
        cv2.resize(p, size, interpolation=cv2.INTER_AREA) * tint for p in (canvas.picture, shaded)
    )
    return Backdrop(lit, dark, canvas.coarse())


def depths(camera: Camera, light: Daylight, seed: int) -> Floats:
    """Those of the still picture, without drawing the rest of it."""
    canvas = Canvas(camera)
    _draw(standing(camera, seed), canvas, light)
    return canvas.coarse()


def _draw(things: list[Thing], canvas: Canvas, light: Daylight) -> None:
    for thing in sorted(things, key=lambda thing: -thing.distance(canvas.camera)):
        thing.draw(canvas, light)


def _ground_and_sky(
    canvas: Canvas, style: Style, light: Daylight, rng: np.random.Generator
) -> None:
    camera = canvas.camera
    rays = camera.rays(FINE).astype(np.float32)
    down = rays[..., 2] < -1e-3 * camera.focal
    scale = camera.position[2] / -rays[..., 2][down]
    x, y = (camera.position[i] + rays[..., i][down] * scale for i in (0, 1))
    far = np.hypot(np.hypot(x - camera.position[0], y - camera.position[1]), camera.position[2])
    colours = ground(x, y, far.astype(np.float32), style, rng)
    haze = np.clip((far - 60) / 400, 0, 0.75)[:, None]
    sky = np.array([225, 214, 205]) if light.direct > 0.2 else np.array([208, 205, 202])
    canvas.picture[:] = sky
    canvas.picture[down] = colours * (1 - haze) + 0.8 * sky * haze


def _shadows(camera: Camera, standing: list[Thing], light: Daylight) -> NDArray[np.float32]:
    """How far the ground is out of the sun, 0 to 1."""
    mask = np.zeros((camera.height * FINE, camera.width * FINE), np.float32)
    for thing in standing:
        for corners, low, high in _outlines(thing):
            slant = -light.sun[:2] / light.sun[2]
            outline = np.concatenate([corners + slant * low, corners + slant * high])
            outline = outline.astype(np.float32)
            hull = cv2.convexHull(outline)[:, 0].astype(float)
            flat = clipped(np.column_stack([hull, np.zeros(len(hull))]), camera)
            if len(flat) > 2:
                seen = np.round((camera.seen(flat)[:, :2] * FINE - 0.5) * 16)
                seen = np.clip(seen, -(2**20), 2**20).astype(np.int32)
                cv2.fillConvexPoly(mask, seen, 1.0, cv2.LINE_8, 4)
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), 1.2), np.float32)


def _outlines(thing: Thing) -> list[tuple[Points, float, float]]:
    """Parts of a thing that hide the sun: their outlines, from one height to another."""
    if isinstance(thing, Block):
        return [(thing.corners, 0.0, thing.height)]
    if isinstance(thing, Pole):
        return [(_square(thing.at, thing.radius), 0.0, thing.height)]
    crown = [(_square(b[:2], b[3] * 0.8), float(b[2]), float(b[2])) for b in thing.blobs]
    return [(_square(thing.at, 0.16), 0.0, 0.6 * thing.height), *crown]


def _square(at: Points, radius: float) -> Points:
    return at + radius * np.array([(-1.0, -1), (1, -1), (1, 1), (-1, 1)])
