"""The static background: ground, buildings, trees, poles and their shadows."""

from functools import cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.random import Generator

from habitus.arrays import Array
from habitus.lab.junction.camera import NEAR, Camera, Daylight
from habitus.lab.junction.ground import Float32Array, GroundStyle, ground
from habitus.lab.junction.layout import HALF_ROAD, PAVEMENT_WIDTH, STOP_LINE, point_on_arm

SUBPIXELS = 2
"""Each pixel is drawn as the mean of `SUBPIXELS` x `SUBPIXELS` samples."""
NO_DEPTH = 1e9
"""Depth where no structure stands in front of the ground."""
CONTACT_SHADOW = 0.5
"""Share of the light that is missing under a vehicle in any weather."""


class Canvas:
    """A supersampled picture with depths, on which structures are drawn from far to near."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        shape = camera.height * SUBPIXELS, camera.width * SUBPIXELS
        self.picture = np.zeros((*shape, 3), np.float32)
        self.depths = np.full(shape, NO_DEPTH, np.float32)

    def polygon(self, points: Array, colour: Array, light: float = 1.0) -> None:
        """Draw a flat polygon, given its corners in metres."""
        inside = clip_to_camera(points, self.camera)
        if len(inside) < 3:
            return
        seen = self.camera.project(inside)
        corners = np.round((seen[:, :2] * SUBPIXELS - 0.5) * 16).astype(np.int32)
        fill = tuple(float(v) for v in colour * light)
        cv2.fillConvexPoly(self.picture, corners, fill, cv2.LINE_8, 4)
        cv2.fillConvexPoly(self.depths, corners, float(seen[:, 2].mean()), cv2.LINE_8, 4)

    def pixel_depths(self) -> Float32Array:
        """Return the depth of each whole pixel: the greatest of its samples."""
        height, width = self.camera.height, self.camera.width
        parts = self.depths.reshape(height, SUBPIXELS, width, SUBPIXELS)
        return np.ascontiguousarray(parts.max(axis=(1, 3)))


def clip_to_camera(points: Array, camera: Camera) -> Array:
    """Return the part of a polygon that is in front of the camera."""
    depth = (points - camera.position) @ camera.axes[2] - NEAR
    kept = []
    for i in range(len(points)):
        j = (i + 1) % len(points)
        if depth[i] > 0:
            kept.append(points[i])
        if (depth[i] > 0) != (depth[j] > 0):
            share = depth[i] / (depth[i] - depth[j])
            kept.append(points[i] + share * (points[j] - points[i]))
    return np.array(kept).reshape(-1, 3)


class Building(NamedTuple):
    """A building: a box with windows."""

    low: Array
    high: Array
    """Opposite corners on the ground."""
    height: float
    colour: Array
    floor: float
    """Height of a storey in metres."""

    @property
    def at(self) -> Array:
        """Its middle."""
        return (self.low + self.high) / 2

    @property
    def corners(self) -> Array:
        """Corners on the ground, anticlockwise."""
        (x0, y0), (x1, y1) = self.low, self.high
        return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])

    def draw(self, canvas: Canvas, light: Daylight) -> None:
        """Draw the walls that face the camera, with windows and a cornice."""
        for i in range(4):
            a, b = self.corners[i], self.corners[(i + 1) % 4]
            normal = np.array([(b - a)[1], -(b - a)[0]]) / np.hypot(*(b - a))
            if (canvas.camera.position[:2] - a) @ normal <= 0:
                continue
            direct = max(0.0, float(normal @ light.sun[:2]))
            self._wall(canvas, a, b, 0.95 - light.direct * 0.75 + light.direct * direct)

    def _wall(self, canvas: Canvas, a: Array, b: Array, light: float) -> None:
        """Draw one wall between two corners."""
        canvas.polygon(_upright(a, b, 0, self.height), self.colour, light)
        canvas.polygon(_upright(a, b, self.height - 0.5, self.height), self.colour * 1.15, light)
        n = max(1, int(np.hypot(*(b - a)) / 3.0))
        glass = np.array([92.0, 84, 76])
        for storey in range(int(self.height / self.floor)):
            low = storey * self.floor + (0.4 if storey == 0 else 0.9)
            for k in range(n):
                wide = 0.12 if storey == 0 else 0.27
                start, end = a + (b - a) * (k + wide) / n, a + (b - a) * (k + 1 - wide) / n
                shade = 0.75 + 0.5 * ((k * 7 + storey * 5) % 8) / 8
                pane = _upright(start, end, low, (storey + 1) * self.floor - 0.6)
                canvas.polygon(pane, glass * shade, light)


class Tree(NamedTuple):
    """A trunk and a crown of leaves."""

    at: Array
    height: float
    leaves: Array
    """Shape (leaves, 5): x, y, z, radius, brightness."""

    def draw(self, canvas: Canvas, light: Daylight) -> None:
        """Draw the trunk, then the leaves from far to near."""
        pole = Pole(self.at, 0.5 * self.height, 0.16, np.array([52.0, 60, 70]))
        pole.draw(canvas, light)
        away = np.hypot(*(self.leaves[:, :2] - canvas.camera.position[:2]).T)
        for x, y, z, radius, bright in self.leaves[np.argsort(-away)]:
            column, row, depth = canvas.camera.project(np.array([[x, y, z]]))[0]
            if depth < 2:
                continue
            centre = round(float(column * SUBPIXELS) * 16), round(float(row * SUBPIXELS) * 16)
            size = round(radius * canvas.camera.focal / depth * SUBPIXELS * 16)
            colour = np.array([52.0, 92, 66]) * bright
            cv2.circle(canvas.picture, centre, size, tuple(colour.tolist()), -1, cv2.LINE_8, 4)
            cv2.circle(canvas.depths, centre, size, float(depth), -1, cv2.LINE_8, 4)


class Pole(NamedTuple):
    """A lamp post or signal pole."""

    at: Array
    height: float
    radius: float
    colour: Array

    def draw(self, canvas: Canvas, light: Daylight) -> None:
        """Draw a strip that faces the camera."""
        across = canvas.camera.axes[0][:2] * self.radius
        shade = 1.0 - 0.4 * light.direct
        canvas.polygon(
            _upright(self.at - across, self.at + across, 0, self.height), self.colour, shade
        )


def _upright(a: Array, b: Array, low: float, high: float) -> Array:
    """Return the corners of an upright rectangle above the line from `a` to `b`."""
    return np.array([(*a, low), (*b, low), (*b, high), (*a, high)])


Structure = Building | Tree | Pole
"""What stands beside the road and casts shadows."""


def distance(structure: Structure, camera: Camera) -> float:
    """Return the distance of a structure from the camera, over the ground."""
    return float(np.hypot(*(structure.at - camera.position[:2])))


def structures(camera: Camera, seed: int) -> list[Structure]:
    """Return buildings and trees that do not hide the road, signal poles and lamp posts."""
    rng = np.random.default_rng([seed, 6])
    scenery: list[Structure] = []
    for arm in range(4):
        for side in (-1.0, 1.0):
            scenery += [b for b in _buildings(arm, side, rng) if not _hides_road(b, camera)]
            scenery += [t for t in _trees(arm, side, rng) if not _tree_hides(t, camera)]
    for at in signal_poles():
        scenery.append(Pole(at, 3.4, 0.08, np.array([70.0, 70, 70])))
    for arm in range(4):
        at = point_on_arm(arm, STOP_LINE + rng.uniform(6, 12), -(HALF_ROAD + 0.8))
        if np.hypot(*(at - camera.position[:2])) > 9:
            scenery.append(Pole(at, rng.uniform(7, 9), 0.09, np.array([110.0, 112, 112])))
    return scenery


def signal_poles() -> list[Array]:
    """Return the positions of the signal poles: on both sides of each stop line."""
    return [
        point_on_arm(arm, STOP_LINE - 0.6, side)
        for arm in range(4)
        for side in (HALF_ROAD + 0.6, -HALF_ROAD - 0.6)
    ]


def _buildings(arm: int, side: float, rng: Generator) -> list[Building]:
    """Return random buildings along one side of an arm."""
    buildings, d = [], HALF_ROAD + PAVEMENT_WIDTH + rng.uniform(1, 5)
    while d < 110:
        length, depth = rng.uniform(9, 20), rng.uniform(9, 14)
        start = HALF_ROAD + PAVEMENT_WIDTH + rng.uniform(0.6, 2.5)
        a = point_on_arm(arm, d, side * start)
        b = point_on_arm(arm, d + length, side * (start + depth))
        tone = np.array([[98, 112, 140], [128, 140, 152], [150, 156, 160], [86, 98, 128]])
        colour = tone[rng.integers(4)] * rng.uniform(0.75, 1.1)
        height = 3.2 * rng.integers(2, 6) + 0.8
        buildings.append(Building(np.minimum(a, b), np.maximum(a, b), height, colour, 3.2))
        d += length + (rng.uniform(0, 7) if rng.random() < 0.4 else 0.0)
    return buildings


def _trees(arm: int, side: float, rng: Generator) -> list[Tree]:
    """Return random trees along one side of an arm."""
    trees = []
    for d in np.arange(24, 80, 13.0):
        if rng.random() < 0.45:
            at = point_on_arm(
                arm,
                d + rng.uniform(-3, 3),
                side * (HALF_ROAD + PAVEMENT_WIDTH + rng.uniform(-0.6, 1.5)),
            )
            trees.append(_tree(at, rng))
    return trees


def _tree(at: Array, rng: Generator, n_leaves: int = 70) -> Tree:
    """Return a tree of random height, whose crown is a cloud of leaves."""
    height = rng.uniform(5, 9)
    turn, up = rng.uniform(0, 2 * np.pi, n_leaves), rng.uniform(-1, 1, n_leaves)
    wide = 0.26 * height * np.sqrt(1 - up**2) * rng.uniform(0.3, 1, n_leaves) ** 0.5
    x, y = at[0] + wide * np.cos(turn), at[1] + wide * np.sin(turn)
    z = height * (0.68 + 0.3 * up)
    bright = np.clip(0.85 + 0.3 * up + rng.normal(0, 0.13, n_leaves), 0.4, 1.5)
    radius = rng.uniform(0.35, 0.8, n_leaves)
    return Tree(at, height, np.stack([x, y, z, radius, bright], axis=1))


@cache
def _road_points() -> Array:
    """Return points of the roads and crossings that must stay in view."""
    spots = [
        point_on_arm(arm, d, c)
        for arm in range(4)
        for d in np.arange(0, 62, 4.0)
        for c in (-8.0, 0.0, 8.0)
    ]
    return np.array(spots)


def _hides_road(building: Building, camera: Camera) -> bool:
    """Return whether a building is between the camera and the road, or around the camera."""
    share = np.linspace(0, 1, 60)[:, None, None]
    low, high = building.low - 1.5, building.high + 1.5
    way = camera.position[:2] + share * (_road_points() - camera.position[:2])
    drop = camera.position[2] * (1 - share[..., 0])
    within = ((way > low) & (way < high)).all(axis=2) & (drop < building.height + 1)
    return bool(within.any())


def _tree_hides(tree: Tree, camera: Camera) -> bool:
    """Return whether a tree is between the camera and the road."""
    radius = 0.34 * tree.height
    box = Building(tree.at - radius, tree.at + radius, tree.height, tree.at, 1.0)
    return _hides_road(box, camera)


class Backdrop(NamedTuple):
    """The static picture of a scene."""

    lit: Float32Array
    """Shape (height, width, 3): blue, green, red, as the sun lights it."""
    shaded: Float32Array
    """The same in the full shadow of a moving object."""
    depths: Float32Array
    """Shape (height, width): metres to the structure in front of the ground; `NO_DEPTH` if none."""


def backdrop(camera: Camera, light: Daylight, seed: int) -> Backdrop:
    """Draw the ground, the sky, all structures and their shadows."""
    rng = np.random.default_rng([seed, 5])
    canvas = Canvas(camera)
    _ground_and_sky(canvas, GroundStyle.random(rng), light, rng)
    scenery = structures(camera, seed)
    sunless = _static_shadows(camera, scenery, light)
    shaded = canvas.picture * (1 - max(light.shadow, CONTACT_SHADOW))
    canvas.picture *= 1 - light.shadow * sunless[..., None]
    _draw(scenery, canvas, light)
    stands = canvas.depths < NO_DEPTH
    shaded[stands] = canvas.picture[stands]
    size, tint = (camera.width, camera.height), (light.gain * light.tint).astype(np.float32)
    lit, dark = (
        cv2.resize(p, size, interpolation=cv2.INTER_AREA) * tint for p in (canvas.picture, shaded)
    )
    return Backdrop(lit, dark, canvas.pixel_depths())


def structure_depths(camera: Camera, light: Daylight, seed: int) -> Float32Array:
    """Return `Backdrop.depths` without drawing the rest of the picture."""
    canvas = Canvas(camera)
    _draw(structures(camera, seed), canvas, light)
    return canvas.pixel_depths()


def _draw(structures: list[Structure], canvas: Canvas, light: Daylight) -> None:
    """Draw structures from far to near."""
    for structure in sorted(structures, key=lambda structure: -distance(structure, canvas.camera)):
        structure.draw(canvas, light)


def _ground_and_sky(canvas: Canvas, style: GroundStyle, light: Daylight, rng: Generator) -> None:
    """Fill the canvas with ground, haze and sky."""
    camera = canvas.camera
    rays = camera.rays(SUBPIXELS).astype(np.float32)
    down = rays[..., 2] < -1e-3 * camera.focal
    scale = camera.position[2] / -rays[..., 2][down]
    x, y = (camera.position[i] + rays[..., i][down] * scale for i in (0, 1))
    far = np.hypot(np.hypot(x - camera.position[0], y - camera.position[1]), camera.position[2])
    colours = ground(x, y, far.astype(np.float32), style, rng)
    haze = np.clip((far - 60) / 400, 0, 0.75)[:, None]
    sky = np.array([225, 214, 205]) if light.direct > 0.2 else np.array([208, 205, 202])
    canvas.picture[:] = sky
    canvas.picture[down] = colours * (1 - haze) + 0.8 * sky * haze


def _static_shadows(camera: Camera, structures: list[Structure], light: Daylight) -> Float32Array:
    """Return how much of the sun structures hide from the ground, 0 to 1."""
    mask = np.zeros((camera.height * SUBPIXELS, camera.width * SUBPIXELS), np.float32)
    for structure in structures:
        for corners, low, high in _outlines(structure):
            slant = -light.sun[:2] / light.sun[2]
            outline = np.concatenate([corners + slant * low, corners + slant * high])
            outline = outline.astype(np.float32)
            hull = cv2.convexHull(outline)[:, 0].astype(float)
            flat = clip_to_camera(np.column_stack([hull, np.zeros(len(hull))]), camera)
            if len(flat) > 2:
                seen = np.round((camera.project(flat)[:, :2] * SUBPIXELS - 0.5) * 16)
                seen = np.clip(seen, -(2**20), 2**20).astype(np.int32)
                cv2.fillConvexPoly(mask, seen, 1.0, cv2.LINE_8, 4)
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), 1.2), np.float32)


def _outlines(structure: Structure) -> list[tuple[Array, float, float]]:
    """Return the parts of a structure that cast shadows: outline, lowest and highest point."""
    if isinstance(structure, Building):
        return [(structure.corners, 0.0, structure.height)]
    if isinstance(structure, Pole):
        return [(_square(structure.at, structure.radius), 0.0, structure.height)]
    crown = [(_square(b[:2], b[3] * 0.8), float(b[2]), float(b[2])) for b in structure.leaves]
    return [(_square(structure.at, 0.16), 0.0, 0.6 * structure.height), *crown]


def _square(at: Array, radius: float) -> Array:
    """Return the corners of a square around a point."""
    return at + radius * np.array([(-1.0, -1), (1, -1), (1, 1), (-1, 1)])
