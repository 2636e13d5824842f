"""Appearance of the ground: asphalt, markings, kerbs, pavements and verges."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.lab.junction.layout import (
    CORNER_START,
    CROSSING_SPAN,
    CYCLE_LANE,
    HALF_ROAD,
    KERB_RADIUS,
    LANE_WIDTH,
    PAVEMENT_WIDTH,
    STOP_LINE,
    on_arm,
)

Float32Array = NDArray[np.float32]
"""Single-precision values, one per point or pixel."""
TILE = 40.96
"""Metres after which a texture repeats."""
SIDE = 1024
"""Texels along each side of a texture."""


class GroundStyle(NamedTuple):
    """Random choices of the appearance of the ground; colours are blue, green, red."""

    asphalt: Array
    paving: Array
    lots: Array
    """Shape (4, 3): colour of the ground behind the pavements, per quarter."""
    cycle: Array | None
    """Colour of the cycle lanes; None if they are not coloured."""
    box: bool
    """Whether the middle has yellow hatching."""
    wear: float
    """How worn the paint is, from 0 to 1."""

    @classmethod
    def random(cls, rng: Generator) -> "GroundStyle":
        """Return a plausible random style."""
        grey = rng.uniform(88, 118)
        kinds = np.array([(62, 98, 78), (70, 104, 92), (118, 124, 128), (96, 108, 120)])
        tinted = rng.random() < 0.5
        colour = [(62, 68, 112), (78, 104, 70)][int(rng.integers(2))]
        return cls(
            grey * np.array([1.0, 0.99, 0.97]),
            rng.uniform(128, 158) * np.array([0.95, 0.99, 1.0]),
            kinds[rng.integers(4, size=4)] * rng.uniform(0.85, 1.1, (4, 1)),
            np.array(colour, dtype=float) if tinted else None,
            bool(rng.random() < 0.5),
            float(rng.uniform(0.1, 0.45)),
        )


def texture(rng: Generator, sizes: tuple[int, ...], weights: tuple[float, ...]) -> Float32Array:
    """Return a tileable texture of several scales (in texels), with mean 0 and deviation 1."""
    tile = np.zeros((SIDE, SIDE), np.float32)
    for size, weight in zip(sizes, weights, strict=True):
        n = SIDE // size
        grain = np.pad(rng.standard_normal((n, n)).astype(np.float32), 2, mode="wrap")
        whole = (n + 4) * size
        grown = cv2.resize(grain, (whole, whole), interpolation=cv2.INTER_CUBIC)
        cloud = np.asarray(grown, np.float32)[2 * size :, 2 * size :][:SIDE, :SIDE]
        tile += weight * cloud / cloud.std()
    return np.asarray(tile / tile.std(), np.float32)


def sampled(tile: Float32Array, x: Float32Array, y: Float32Array) -> Float32Array:
    """Return the values of a texture at points on the ground."""
    u = (x * (SIDE / TILE)).astype(np.int64) % SIDE
    v = (y * (SIDE / TILE)).astype(np.int64) % SIDE
    return tile[v, u]


def ground(
    x: Float32Array, y: Float32Array, far: Float32Array, style: GroundStyle, rng: Generator
) -> Float32Array:
    """Return colours (n, 3) of points on the ground; `far` is their distance from the camera."""
    fine = texture(rng, (1, 2, 8), (0.6, 0.6, 0.5))
    coarse = texture(rng, (32, 64, 256), (0.5, 0.8, 1.0))
    detail = sampled(fine, x, y) * np.clip(26.0 / far, 0.15, 1.0)
    patches = sampled(coarse, x, y)
    ax, ay = np.abs(x), np.abs(y)
    lots = np.asarray(style.lots[(x > 0).astype(int) + 2 * (y > 0)], np.float32)
    colour = lots * (1 + 0.10 * detail + 0.09 * patches)[:, None]
    paved = _inside(ax, ay, HALF_ROAD + PAVEMENT_WIDTH, max(KERB_RADIUS - PAVEMENT_WIDTH, 0.5))
    slabs = 1 - 0.13 * ((np.minimum(x % 0.9, y % 0.9) < 0.07) & (far < 45))
    pavement = style.paving * (slabs + 0.05 * detail + 0.05 * patches)[:, None]
    colour = np.where(paved[:, None], pavement, colour)
    road = _inside(ax, ay, HALF_ROAD, KERB_RADIUS)
    kerb = _inside(ax, ay, HALF_ROAD + 0.3, KERB_RADIUS - 0.3) & ~road
    colour[kerb] = style.paving * 1.18
    tracks = _tracks(x, y)
    asphalt = style.asphalt * (1 + 0.07 * detail + 0.06 * patches - 0.06 * tracks)[:, None]
    painted, paint = _markings(x, y, style)
    worn = np.clip(1 - style.wear * (0.5 + 0.6 * detail), 0.25, 1)[:, None]
    asphalt += np.where(painted[:, None], (paint - asphalt) * worn, 0)
    return np.asarray(np.where(road[:, None], asphalt, colour), np.float32)


def _inside(ax: Float32Array, ay: Float32Array, half: float, radius: float) -> NDArray[np.bool_]:
    """Return which points are within two crossing strips whose corners are rounded."""
    edge = half + radius
    corner = (ax < edge) & (ay < edge) & ((ax - edge) ** 2 + (ay - edge) ** 2 > radius**2)
    return (ax < half) | (ay < half) | corner


def _tracks(x: Float32Array, y: Float32Array) -> Float32Array:
    """Return how much tyres and oil darken the lanes at each point."""
    worn = np.zeros_like(x)
    for across, along in ((x, y), (y, x)):
        for lane in (-LANE_WIDTH, 0.0, LANE_WIDTH):
            for wheel in (-0.75, 0.75):
                worn += np.exp(-(((across - lane - wheel) / 0.35) ** 2)) * (
                    np.abs(along) > HALF_ROAD
                )
            worn += 0.7 * np.exp(-(((across - lane) / 0.4) ** 2)) * (np.abs(along) > STOP_LINE)
    return worn


def _markings(
    x: Float32Array, y: Float32Array, style: GroundStyle
) -> tuple[NDArray[np.bool_], Float32Array]:
    """Return which points of the road are painted, and their colours."""
    painted = np.zeros(len(x), bool)
    colour = np.full((len(x), 3), 205.0, np.float32)
    for arm in range(4):
        d, c = on_arm(arm, x, y)
        if style.cycle is not None:
            lane = (np.abs(np.abs(c) - CYCLE_LANE) < 0.75) & (d > CORNER_START + 3.5)
            painted |= lane
            colour[lane] = style.cycle
        white = _arm_markings(d, c)
        painted |= white
        colour[white] = 205.0
    if style.box:
        hatched = (np.abs(x) < HALF_ROAD) & (np.abs(y) < HALF_ROAD)
        near = np.minimum((x + y) % 2.6, (x - y) % 2.6) < 0.2
        edge = np.maximum(np.abs(x), np.abs(y)) > HALF_ROAD - 0.2
        yellow = hatched & (near | edge)
        painted |= yellow
        colour[yellow] = (70, 170, 190)
    return painted, colour


def _arm_markings(d: Float32Array, c: Float32Array) -> NDArray[np.bool_]:
    """Return which points of an arm have white paint.

    `d` is the distance from the centre, `c` that to the left of a driver who enters.
    """
    beyond = d > STOP_LINE
    dashes = (d % 6.0 < 2.2) | (d < STOP_LINE + 14)
    white = beyond & (np.abs(c - LANE_WIDTH / 2) < 0.07) & dashes
    white |= beyond & (np.abs(c + LANE_WIDTH / 2) < 0.08) & ((d % 9.0 < 6.5) | (d < STOP_LINE + 20))
    white |= beyond & (np.abs(np.abs(c) - 1.5 * LANE_WIDTH) < 0.06) & (d % 3.0 < 1.8)
    white |= (np.abs(d - STOP_LINE - 0.2) < 0.2) & (c > -LANE_WIDTH / 2) & (c < HALF_ROAD - 0.1)
    bars = (
        (d > CROSSING_SPAN[0])
        & (d < CROSSING_SPAN[1])
        & (np.abs(c) < HALF_ROAD - 0.2)
        & (c % 1.1 < 0.55)
    )
    return np.asarray(white | bars | _arrows(d, c))


def _arrows(d: Float32Array, c: Float32Array) -> NDArray[np.bool_]:
    """Return which points of an arm belong to direction arrows."""
    white = np.zeros(len(d), bool)
    for start in (STOP_LINE + 5, STOP_LINE + 22):
        along = d - start
        for lane in (LANE_WIDTH, 0.0):
            across = c - lane
            shaft = (along > 1.0) & (along < 4.2) & (np.abs(across) < 0.1)
            head = (along > 0) & (along < 1.3) & (np.abs(across) < 0.45 * along / 1.3)
            if lane == 0.0:  # turn right
                bend = (np.abs(along - 1.1) < 0.12) & (across < 0) & (across > -0.7)
                head = (np.abs(along - 1.1) < 0.45 * (across + 1.3) / 0.6) & (across > -1.3)
                head = bend | (head & (across < -0.7))
            white |= shaft | head
    return white
