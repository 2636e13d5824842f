"""Pictures as planes, and what shadows and the sensor do to them.

A picture is planar YUV 4:2:0 (I420), which is what an encoder takes: height * 3 / 2 rows of `width`
bytes, brightness first, then both colours at half the size, in limited range (16 to 235).
"""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.lab.junction.layout import Points
from habitus.lab.junction.raster import Plane

NOISE_SIDE = 512
"""Size of the field of noise, of which each frame shows another part."""


class Planes(NamedTuple):
    """A picture's three planes, as views."""

    luma: Plane
    blue: Plane
    red: Plane


def planes(picture: Plane) -> Planes:
    """Views of an I420 picture."""
    rows, width = picture.shape
    height = rows * 2 // 3
    colours = picture[height:].reshape(2, height // 2, width // 2)
    return Planes(picture[:height], colours[0], colours[1])


def to_yuv(colours: NDArray[np.floating]) -> Points:
    """Blue, green, red (0 to 255) -> brightness, blueness, redness in limited range (BT.601)."""
    blue, green, red = np.moveaxis(np.asarray(colours, float), -1, 0)
    luma = 16 + 0.257 * red + 0.504 * green + 0.098 * blue
    blueness = 128 - 0.148 * red - 0.291 * green + 0.439 * blue
    redness = 128 + 0.439 * red - 0.368 * green - 0.071 * blue
    return np.asarray(np.clip(np.stack([luma, blueness, redness], axis=-1), 0, 255))


def to_bgr(picture: Plane) -> Plane:
    """A picture of a scene as height x width x 3 bytes: blue, green, red."""
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_YUV2BGR_I420), np.uint8)


def i420(yuv: Points) -> Plane:
    """A picture from height x width x 3 values of `to_yuv`."""
    height, width, _ = yuv.shape
    made = np.empty((height * 3 // 2, width), np.uint8)
    parts = planes(made)
    parts.luma[:] = np.round(yuv[..., 0])
    for plane, values in ((parts.blue, yuv[..., 1]), (parts.red, yuv[..., 2])):
        plane[:] = np.round(values.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3)))
    return made


def noise_field(rng: np.random.Generator) -> NDArray[np.int8]:
    """A field of noise with deviation 16, slightly smooth as sensors' is after their filters."""
    grain = rng.standard_normal((NOISE_SIDE, NOISE_SIDE)).astype(np.float32)
    grain += 0.6 * cv2.GaussianBlur(
        rng.standard_normal(grain.shape).astype(np.float32), (0, 0), 0.8
    )
    return np.asarray(np.clip(grain / grain.std() * 16, -127, 127), np.int8)


@compiled
def darken(made: Plane, lit: Plane, shaded: Plane, mask: Plane) -> None:
    """A still picture with moving shadows: `lit` where the mask is 0, `shaded` where it is 255."""
    height, width = mask.shape
    for y in range(height):
        for x in range(width):
            share = np.int32(mask[y, x])
            made[y, x] = (lit[y, x] * (255 - share) + shaded[y, x] * share + 127) // 255
    for y in range(height, len(made)):
        for x in range(width):
            made[y, x] = lit[y, x]


@compiled
def expose(
    luma: Plane, noise: NDArray[np.int8], top: int, left: int, gain: float, deviation: float
) -> None:
    """Add a part of the noise, that wraps around, to a picture in place."""
    height, width = luma.shape
    side = len(noise)
    for y in range(height):
        row, grain = luma[y], noise[(y + top) % side]
        x = 0
        while x < width:
            start = (x + left) % side
            n = min(side - start, width - x)
            _add(row[x : x + n], grain[start : start + n], gain, deviation / 16)
            x += n


@compiled
def _add(row: Plane, grain: NDArray[np.int8], gain: float, much: float) -> None:
    scale, share, half = np.float32(gain), np.float32(much), np.float32(0.5)
    for x in range(len(row)):
        value = np.float32(row[x]) * scale + np.float32(grain[x]) * share + half
        row[x] = np.uint8(min(max(value, np.float32(0)), np.float32(255)))
