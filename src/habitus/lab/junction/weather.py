"""Weather and night, drawn over the frames of a scene: what moves and is no object.

Each kind is a function of the time of a frame alone: frames can be drawn in any order, and traffic
and anomalies are the same with and without it. Sizes follow the width of the frame.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Image
from habitus.lab.junction.backdrop import Pole, Structure, Tree, distance, structures
from habitus.lab.junction.camera import Camera, Daylight
from habitus.lab.junction.ground import Float32Array
from habitus.lab.junction.raster import Planes, to_yuv
from habitus.lab.junction.vehicles import (
    BASE,
    COS,
    CYCLE,
    FENCE,
    HEIGHT,
    KIND,
    LAMP,
    LENGTH,
    LUMA,
    PERSON,
    SIN,
    WIDTH,
    X,
    Y,
)

WEATHER = ("clouds", "insects", "leaves", "night", "rain", "shake", "snow")
"""Kinds of weather, in the order of the alphabet.

Shadows of clouds, insects before an infrared lamp, leaves in the wind, night with headlights, rain,
a mast that shakes in the wind, snow.
"""
OVERCAST, SUNNY, NIGHT_DIRECT = 0.06, 0.5, 0.04
"""Share of the light that comes from the sun under rain or snow; between clouds; at night."""
NIGHT_NOISE = 6.0
"""Standard deviation of a pixel's brightness at night."""
LEAST_POST = 5.0
"""Height of a pole, in metres, from which on it is a street lamp."""
COARSE = 4
"""Pixels per sample of light, which changes slowly over the picture."""
USUAL_WIDTH = 360.0
"""Width of the frame, in pixels, that sizes in pixels are meant for."""


class Precipitation(NamedTuple):
    """Rain or snow: drops or flakes that fall before the camera."""

    number: int
    """Drops in the frame when it falls most."""
    speed: float
    """Metres per second downwards."""
    slant: float
    """Metres to the side per metre down in the strongest wind."""
    exposure: float
    """Seconds in which a drop leaves its trace in one frame."""
    size: float
    """Diameter in metres as seen, blur included."""
    brightness: float
    """Grey levels that the nearest add."""
    nearest: float
    farthest: float
    """Distances from the camera, in metres."""
    meander: float
    """Metres by which the path of a flake bends to the sides."""
    haze: float
    """Share of the picture's contrast that is lost."""


RAIN = Precipitation(420, 8.0, 0.25, 0.02, 0.004, 60.0, 1.2, 16.0, 0.0, 0.2)
SNOW = Precipitation(600, 1.3, 0.8, 0.02, 0.018, 110.0, 1.2, 14.0, 0.15, 0.3)


class Shot(NamedTuple):
    """A picture before the noise of the sensor, and what it shows."""

    planes: Planes
    depths: Float32Array
    """Metres to the structure in front of the ground: see `Backdrop`."""
    objects: Array
    """A row per object: see `vehicles`."""
    time: float


Effect = Callable[[Shot], None]
"""Function that draws one kind of weather over a picture, in place."""


def effects(kinds: tuple[str, ...], camera: Camera, seed: int) -> list[Effect]:
    """Return what draws the weather of a scene, in the order of drawing."""
    wind = Wind(np.random.default_rng([seed, 8]))
    rng = np.random.default_rng([seed, 9])
    makers: dict[str, Callable[[], Effect]] = {
        "leaves": lambda: Leaves(camera, structures(camera, seed), wind, rng).draw,
        "clouds": lambda: Clouds(camera, rng).draw,
        "night": lambda: Night(camera, structures(camera, seed), infrared="insects" in kinds).draw,
        "rain": lambda: RainOrSnow(RAIN, camera, wind, rng).draw,
        "snow": lambda: RainOrSnow(SNOW, camera, wind, rng).draw,
        "insects": lambda: Insects(camera, seed).draw,
        "shake": lambda: Shake(camera, wind, rng).draw,
    }
    return [make() for kind, make in makers.items() if kind in kinds]


def daylight(kinds: tuple[str, ...], light: Daylight) -> Daylight:
    """Return the daylight that goes with the weather."""
    if "clouds" in kinds:
        light = light._replace(direct=max(light.direct, SUNNY))
    if "rain" in kinds or "snow" in kinds:
        light = light._replace(direct=OVERCAST)
    if "night" in kinds:
        light = light._replace(direct=NIGHT_DIRECT, noise=max(light.noise, NIGHT_NOISE))
    return light


class Wind:
    """Wind that comes in gusts."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._phases = rng.uniform(0, 2 * np.pi, 3)
        self.side = float(rng.choice([-1.0, 1.0]))

    def at(self, time: float) -> float:
        """Return the strength of the wind, 0 to 1."""
        long, middle, short = np.sin(2 * np.pi * time / np.array([97.0, 23.0, 6.1]) + self._phases)
        return float(np.clip(0.45 + 0.25 * long + 0.25 * middle + 0.15 * short, 0.05, 1.0))


class RainOrSnow:
    """Rain or snow."""

    N_LAYERS = 4

    def __init__(
        self, style: Precipitation, camera: Camera, wind: Wind, rng: np.random.Generator
    ) -> None:
        self.style, self.camera, self.wind = style, camera, wind
        n = style.number
        self._away = np.sort(rng.uniform(style.nearest, style.farthest, n))
        self._start, self._phase = rng.uniform(0, 1, n), rng.uniform(0, 2 * np.pi, n)
        self._pace = rng.uniform(0.8, 1.2, n)
        self._columns = rng.uniform(0, 1, 4096)
        self._swing = rng.uniform(0, 2 * np.pi)

    def draw(self, shot: Shot) -> None:
        """Draw a veil and the traces of all drops of one exposure."""
        luma, time = shot.planes.luma, shot.time
        cv2.addWeighted(luma, 1 - self.style.haze, luma, 0, 150 * self.style.haze, dst=luma)
        overlay = np.zeros_like(luma)
        ends = np.stack([self._places(time - self.style.exposure, time), self._places(time, time)])
        falls = 0.65 + 0.35 * np.sin(2 * np.pi * time / 140 + self._swing)
        shown = np.arange(len(self._away)) % 16 < 16 * falls
        for layer in np.array_split(np.arange(len(self._away)), self.N_LAYERS):
            near = float(self._away[layer].mean())
            wide = max(1, round(self.style.size * self.camera.focal / near))
            bright = self.style.brightness * (0.35 + 0.65 * self.style.nearest / near)
            lines = np.round(ends[:, layer[shown[layer]]].swapaxes(0, 1) * 16).astype(np.int32)
            cv2.polylines(overlay, list(lines), False, bright, wide, cv2.LINE_AA, 4)
        cv2.add(luma, cv2.blur(overlay, (2, 2)), dst=luma)

    def _places(self, time: float, now: float) -> Array:
        """Return column and row of each drop; `now` decides which drop it is."""
        style, width, height = self.style, self.camera.width, self.camera.height
        scale, margin = self.camera.focal / self._away, 0.15 * height
        per_second = style.speed * self._pace * scale / (height + 2 * margin)
        cycle = np.floor(self._start + per_second * now)
        fallen = (self._start + per_second * time - cycle) * (height + 2 * margin)
        pick = (np.arange(len(cycle)) * 37 + cycle.astype(np.int64)) % len(self._columns)
        # Drops that the wind carries out of the frame were above it on the other side.
        slant = style.slant * self.wind.side * self.wind.at(0.0)
        column = self._columns[pick] * (width + height) - 0.5 * height + slant * fallen
        column += style.meander * scale * np.sin(2.2 * time * self._pace + self._phase)
        return np.stack([column, fallen - margin], axis=1)


class Leaves:
    """Crowns of trees that sway, and a branch that hangs into an upper corner of the picture."""

    def __init__(
        self, camera: Camera, structures: list[Structure], wind: Wind, rng: np.random.Generator
    ) -> None:
        self.wind = wind
        shape = camera.height, camera.width
        self._grid = np.meshgrid(*(np.arange(n, dtype=np.float32) for n in shape[::-1]))
        self._reach = _crowns(camera, [each for each in structures if isinstance(each, Tree)])
        self._colour, self._alpha, self._bend = _branch(camera, rng)
        grain = cv2.GaussianBlur(rng.standard_normal(shape).astype(np.float32), (0, 0), 5)
        self._turns = (2 * np.pi * grain / grain.std()).astype(np.float32)
        self._green = to_yuv(np.array([45.0, 80, 55]))

    def draw(self, shot: Shot) -> None:
        """Move the crowns, then draw the branch."""
        planes, time = shot.planes, shot.time
        x, y = self._grid
        strength = self.wind.at(time)
        lean = np.float32(np.sin(2 * np.pi * 0.55 * time) + 0.4 * np.sin(2 * np.pi * 0.83 * time))
        flutter = np.sin(self._turns + np.float32(2 * np.pi * 1.9 * time))
        across = np.float32(strength) * (np.float32(0.6) * lean + np.float32(0.45) * flutter)
        down = np.float32(0.5) * across
        moved = (x + self._reach * across, y + self._reach * down)
        planes.luma[:] = cv2.remap(planes.luma, *moved, cv2.INTER_LINEAR)
        moved = (x + self._bend * across, y + self._bend * down)
        alpha, colour = (
            cv2.remap(p, *moved, cv2.INTER_LINEAR) for p in (self._alpha, self._colour)
        )
        planes.luma[:] = planes.luma * (1 - alpha) + colour * alpha
        small = np.ascontiguousarray(alpha[::2, ::2])
        for plane, value in ((planes.blue, self._green[1]), (planes.red, self._green[2])):
            plane[:] = plane * (1 - small) + np.float32(value) * small


def _crowns(camera: Camera, trees: list[Tree]) -> Float32Array:
    """Return how many pixels a strong wind moves each pixel of a crown; 0 outside crowns."""
    reach = np.zeros((camera.height, camera.width), np.float32)
    for tree in sorted(trees, key=lambda tree: -distance(tree, camera)):
        for column, row, depth in camera.project(tree.leaves[:, :3]):
            if depth > 2:
                scale = camera.focal / depth
                centre = round(float(column)), round(float(row))
                cv2.circle(reach, centre, round(0.6 * scale), float(0.3 * scale), -1)
    return np.asarray(cv2.GaussianBlur(reach, (0, 0), camera.width / 200), np.float32)


def _branch(
    camera: Camera, rng: np.random.Generator, n_leaves: int = 90
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Return brightness and opacity of a branch near the camera, and how far wind moves it."""
    height, width = camera.height, camera.width
    scale, left = width / USUAL_WIDTH, rng.random() < 0.5
    colour = np.full((height, width), 60, np.float32)
    alpha = np.zeros((height, width), np.float32)
    for _ in range(n_leaves):
        along = rng.uniform(0.05, 1)
        column = along * 0.36 * width
        row = (0.02 + 0.16 * along + rng.normal(0, 0.05)) * height
        at = round(column if left else width - 1 - column), round(row)
        axes = round(rng.uniform(6, 10) * scale), round(rng.uniform(2, 4) * scale)
        turn = rng.uniform(20, 80) * (1 if left else -1)
        cv2.ellipse(colour, at, axes, turn, 0, 360, rng.uniform(35, 95), -1, cv2.LINE_AA)
        cv2.ellipse(alpha, at, axes, turn, 0, 360, 1.0, -1)
    columns = np.arange(width, dtype=np.float32)
    along = np.clip((columns if left else width - 1 - columns) / (0.36 * width), 0, 1)
    bend = np.tile(np.asarray(1 + 6 * along, np.float32) * np.float32(scale), (height, 1))
    soft = [
        np.asarray(cv2.GaussianBlur(p, (0, 0), 0.8 * scale), np.float32) for p in (colour, alpha)
    ]
    return soft[0], soft[1], bend


class Clouds:
    """Shadows of clouds that pass over the ground."""

    DEPTH, SIDE, METRES = 0.45, 512, 4.0
    """Share of the light that is missing; samples of the sky along a side; metres per sample."""

    def __init__(self, camera: Camera, rng: np.random.Generator) -> None:
        angle, speed = rng.uniform(0, 2 * np.pi), rng.uniform(5, 11)
        self._velocity = speed * np.array([np.cos(angle), np.sin(angle)])
        self._places = _ground_places(camera)
        below = camera.rays(1)[COARSE // 2 :: COARSE, COARSE // 2 :: COARSE, 2] < 0
        self._depth = np.float32(self.DEPTH) * below.astype(np.float32)
        self._sky = _wrapped_noise(rng, self.SIDE)

    def draw(self, shot: Shot) -> None:
        """Darken the ground where a cloud hides the sun."""
        x, y = (
            ((p + v * shot.time) / self.METRES % self.SIDE).astype(np.float32)
            for p, v in zip(self._places, self._velocity, strict=True)
        )
        hidden = cv2.remap(self._sky, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
        _light_up(shot.planes.luma, 1 - self._depth * hidden)


def _wrapped_noise(rng: np.random.Generator, side: int) -> Float32Array:
    """Return clouds, 0 to 1, that continue on the opposite side."""
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side)))
    keep = np.exp(-((frequency * 18) ** 2)) + 0.15 * np.exp(-((frequency * 6) ** 2))
    field = np.fft.ifft2(np.fft.fft2(rng.standard_normal((side, side))) * keep).real
    return np.asarray(np.clip(0.5 + 1.6 * field / field.std(), 0, 1), np.float32)


def _ground_places(camera: Camera, farthest: float = 60.0) -> tuple[Float32Array, Float32Array]:
    """Return x and y in metres of the ground that every `COARSE`-th pixel shows."""
    rays = camera.rays(1)[COARSE // 2 :: COARSE, COARSE // 2 :: COARSE]
    level = np.hypot(rays[..., 0], rays[..., 1])
    scale = camera.position[2] / np.maximum(-rays[..., 2], 1e-6 * camera.focal)
    scale = np.minimum(scale, farthest / level)
    x, y = (camera.position[i] + rays[..., i] * scale for i in (0, 1))
    return x.astype(np.float32), y.astype(np.float32)


def _light_up(luma: Image, light: NDArray[np.floating]) -> None:
    """Multiply brightness above black by light that is given for every `COARSE`-th pixel."""
    size = luma.shape[1], luma.shape[0]
    full = cv2.resize(np.asarray(light, np.float32), size, interpolation=cv2.INTER_LINEAR)
    luma[:] = np.clip((luma.astype(np.float32) - 16) * full + 16, 0, 255)


class Night:
    """A dark scene with street lamps, the beams of vehicles, and their lamps, which dazzle.

    Where an infrared lamp at the camera lights it, its picture has no colours.
    """

    BEAMS = ((20.0, 3.4, 45), (13.0, 2.4, 95), (7.0, 1.5, 170))
    """Length, half of the width at its end (metres) and brightness of the parts of a beam."""
    AMBIENT, STREET, INFRARED = 0.2, 0.35, 0.4
    COLOURS = 0.25
    """Share of colour that is left."""

    def __init__(self, camera: Camera, structures: list[Structure], *, infrared: bool) -> None:
        self.camera, self.infrared = camera, infrared
        x, y = _ground_places(camera)
        self._ambient = np.full(x.shape, self.AMBIENT, np.float32)
        for post in structures:
            if not isinstance(post, Pole) or post.height < LEAST_POST:
                continue
            square = (x - post.at[0]) ** 2 + (y - post.at[1]) ** 2
            self._ambient += np.float32(self.STREET) * np.exp(-square / (2 * 8.0**2))
        if infrared:
            rows, columns = (np.linspace(-1.3, 1.3, n, dtype=np.float32) for n in x.shape)
            spot = np.exp(-(rows[:, None] ** 2 + columns[None, :] ** 2))
            self._ambient += np.float32(self.INFRARED) * spot

    def draw(self, shot: Shot) -> None:
        """Darken a picture and light it by the lamps of its objects."""
        planes, depths, objects, _ = shot
        driving = objects[~np.isin(objects[:, KIND], (PERSON, LAMP, FENCE))]
        beams = self._beams(driving[driving[:, KIND] != CYCLE])
        lamps = np.concatenate([_lamps_of(driving, self.camera), _signals(objects, self.camera)])
        columns, rows, sizes, strengths = self._visible(lamps, depths)
        glow = np.zeros(self._ambient.shape, np.float32)
        np.add.at(glow, (rows.astype(int) // COARSE, columns.astype(int) // COARSE), strengths)
        near, wide = (cv2.GaussianBlur(glow, (0, 0), s * len(glow) / 72) for s in (1.5, 6.0))
        # The exposure follows the light that falls into the lens.
        gain = np.float32(1 - 0.2 * np.tanh(strengths.sum() / 12))
        _light_up(planes.luma, gain * (self._ambient + beams))
        self._add(planes.luma, 700 * near + 900 * wide)
        for column, row, size, strength in zip(columns, rows, sizes, strengths, strict=True):
            centre, level = (int(column * 16), int(row * 16)), min(255.0, 90 + 220 * strength)
            cv2.circle(planes.luma, centre, int(size * 16), level, -1, cv2.LINE_AA, 4)
        left = 0.0 if self.infrared else self.COLOURS
        for plane in (planes.blue, planes.red):
            cv2.addWeighted(plane, left, plane, 0, 128 * (1 - left), dst=plane)

    def _beams(self, vehicles: Array) -> Float32Array:
        """Return the light of headlights on the ground."""
        light = np.zeros(self._ambient.shape, np.uint8)
        c, sine = vehicles[:, COS, None], vehicles[:, SIN, None]
        for length, wide, level in self.BEAMS:
            left = np.array([0.5, -0.5, -wide, wide])
            along = np.array([0.0, 0.0, length, length]) + vehicles[:, LENGTH, None] / 2
            x = vehicles[:, X, None] + c * along - sine * left
            y = vehicles[:, Y, None] + sine * along + c * left
            places = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
            seen = self.camera.project(places).reshape(-1, 4, 3)
            corners = np.clip(seen[..., :2] / COARSE * 16, -(2**16), 2**16).astype(np.int32)
            for corner in corners[seen[..., 2].min(axis=1) > 2]:
                cv2.fillConvexPoly(light, corner, level, cv2.LINE_AA, 4)
        return np.asarray(cv2.GaussianBlur(light, (0, 0), 1.5), np.float32) / np.float32(255)

    def _visible(self, lamps: Array, depths: Float32Array) -> tuple[Array, Array, Array, Array]:
        """Return column, row, radius and strength of lamps that the camera sees."""
        columns, rows, away = self.camera.project(lamps[:, :3]).T
        inside = (columns >= 0) & (columns < self.camera.width) & (away > 2)
        inside &= (rows >= 0) & (rows < self.camera.height) & (lamps[:, 3] > 0.01)
        columns, rows, away, strengths = (
            each[inside] for each in (columns, rows, away, lamps[:, 3])
        )
        free = depths[rows.astype(int), columns.astype(int)] > away - 1
        sizes = np.maximum(0.13 * self.camera.focal / away, 0.6)
        return columns[free], rows[free], sizes[free], strengths[free]

    def _add(self, luma: Image, light: Float32Array) -> None:
        """Add light that is given for every `COARSE`-th pixel."""
        veil = cv2.resize(light, luma.shape[::-1], interpolation=cv2.INTER_LINEAR)
        cv2.add(luma, np.minimum(veil, 255).astype(np.uint8), dst=luma)


def _lamps_of(vehicles: Array, camera: Camera) -> Array:
    """Return x, y, z and strength of headlights and tail lamps, by how they face the camera."""
    lamps = []
    for end, brightness in ((0.5, 1.0), (-0.5, 0.12)):
        for side in (-0.38, 0.38):
            along, left = end * vehicles[:, LENGTH], side * vehicles[:, WIDTH]
            x = vehicles[:, X] + vehicles[:, COS] * along - vehicles[:, SIN] * left
            y = vehicles[:, Y] + vehicles[:, SIN] * along + vehicles[:, COS] * left
            dx, dy = camera.position[0] - x, camera.position[1] - y
            facing = (vehicles[:, COS] * dx + vehicles[:, SIN] * dy) / np.hypot(dx, dy)
            strength = brightness * np.maximum(0, np.sign(end) * facing) ** 3
            strength = np.where(vehicles[:, KIND] == CYCLE, 0.3 * strength, strength)
            height = np.where(vehicles[:, KIND] == CYCLE, 0.5, 0.42) * vehicles[:, HEIGHT]
            lamps.append(np.stack([x, y, np.minimum(height, 0.9), strength], axis=1))
    return np.concatenate(lamps)


def _signals(objects: Array, camera: Camera) -> Array:
    """Return x, y, z and strength of the lit lamps of signals that face the camera."""
    lamps = objects[(objects[:, KIND] == LAMP) & (objects[:, LUMA] > 60)]
    dx, dy = camera.position[0] - lamps[:, X], camera.position[1] - lamps[:, Y]
    facing = np.maximum(0, lamps[:, COS] * dx + lamps[:, SIN] * dy) / np.hypot(dx, dy)
    return np.stack([lamps[:, X], lamps[:, Y], lamps[:, BASE] + 0.17, 0.25 * facing], axis=1)


class Visit(NamedTuple):
    """An insect that crosses the picture: a bent path, a size in pixels and a brightness."""

    start: float
    seconds: float
    path: Array
    """Shape (4, 2): control points of a cubic curve, as shares of the frame."""
    size: float
    brightness: float
    wiggle: float

    def place(self, time: float) -> Array:
        """Return column and row at a time, as shares of the frame."""
        s = (time - self.start) / self.seconds
        weights = np.array([(1 - s) ** 3, 3 * s * (1 - s) ** 2, 3 * s**2 * (1 - s), s**3])
        turn = 2 * np.pi * 5 * time + self.wiggle
        return np.asarray(weights @ self.path + 0.006 * np.array([np.sin(turn), np.cos(turn)]))


class Insects:
    """Insects near the lens, bright before an infrared lamp and out of focus."""

    SLOT, PER_SLOT, LONGEST = 4.0, 1.2, 2.5
    """Seconds of a slot, mean number of insects that come in it, most seconds of a visit."""
    EXPOSURE = 0.03

    def __init__(self, camera: Camera, seed: int) -> None:
        self.camera, self.seed = camera, seed
        self._coming = lru_cache(maxsize=8)(self._visits)

    def draw(self, shot: Shot) -> None:
        """Draw the blurred traces of all insects of one exposure."""
        luma, time = shot.planes.luma, shot.time
        slot = int(time // self.SLOT)
        there = [v for k in (slot - 1, slot) for v in self._coming(k)]
        there = [v for v in there if v.start <= time < v.start + v.seconds]
        if not there:
            return
        size = np.array([self.camera.width // 2, self.camera.height // 2])
        overlay = np.zeros(size[::-1], np.uint8)
        for visit in there:
            trace = [visit.place(time + s) * size * 16 for s in np.linspace(-self.EXPOSURE, 0, 4)]
            wide = max(1, round(visit.size * size[0] / USUAL_WIDTH))
            points = np.round(trace).astype(np.int32)
            cv2.polylines(overlay, [points], False, visit.brightness, wide, cv2.LINE_AA, 4)
        soft = cv2.GaussianBlur(overlay, (0, 0), 1.6 * size[0] / (USUAL_WIDTH / 2))
        grown = cv2.resize(soft, luma.shape[::-1], interpolation=cv2.INTER_LINEAR)
        cv2.add(luma, grown, dst=luma)

    def _visits(self, slot: int) -> list[Visit]:
        """Return the visits that begin in a slot of time; more in some minutes than in others."""
        if slot < 0:
            return []
        rng = np.random.default_rng([self.seed, 10, slot])
        often = self.PER_SLOT * (1 + 0.8 * np.sin(slot * self.SLOT / 60))
        return [self._visit(slot, rng) for _ in range(rng.poisson(often))]

    def _visit(self, slot: int, rng: np.random.Generator) -> Visit:
        """Return a random visit: from outside the frame, past a place in it, and out again."""
        angles = rng.uniform(0, 2 * np.pi) + np.array([0.0, rng.uniform(1.2, 5.0)])
        ends = 0.5 + 0.85 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        middle = rng.uniform(0.1, 0.9, (2, 2))
        path = np.stack([ends[0], middle[0], middle[1], ends[1]])
        start = (slot + rng.uniform()) * self.SLOT
        seconds = rng.uniform(0.4, self.LONGEST)
        size, level = float(rng.uniform(5, 26)), float(rng.uniform(70, 190))
        return Visit(start, seconds, path, size, level, float(rng.uniform(0, 6)))


class Shake:
    """A mast that swings in the wind: the whole picture moves to and fro."""

    FREQUENCIES = (0.9, 2.3, 5.1)
    AMPLITUDES = (0.8, 1.3, 0.35)
    """Cycles per second, and pixels in the strongest wind."""

    def __init__(self, camera: Camera, wind: Wind, rng: np.random.Generator) -> None:
        self.wind, self._scale = wind, camera.width / USUAL_WIDTH
        self._phases = rng.uniform(0, 2 * np.pi, (2, len(self.FREQUENCIES)))

    def shift(self, time: float) -> Array:
        """Return by how many pixels the picture is moved to the right and down."""
        turns = 2 * np.pi * np.array(self.FREQUENCIES) * time + self._phases
        pixels = np.sin(turns) @ np.array(self.AMPLITUDES) * [1.0, 0.6]
        return np.asarray(pixels * self._scale * self.wind.at(time))

    def draw(self, shot: Shot) -> None:
        """Move the picture; its edges are continued."""
        for plane, share in zip(shot.planes, (1.0, 0.5, 0.5), strict=True):
            dx, dy = share * self.shift(shot.time)
            move = np.array([[1.0, 0.0, dx], [0.0, 1.0, dy]])
            size = plane.shape[1], plane.shape[0]
            plane[:] = cv2.warpAffine(
                plane, move, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
            )
