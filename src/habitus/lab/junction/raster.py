"""Pictures as planes, and the compiled kernels that draw polygons, shadows and noise on them.

A picture is planar YUV 4:2:0 (I420), as encoders expect: height * 3 / 2 rows of `width` bytes,
brightness first, then both colour planes at half the size, in limited range (16 to 235).
"""

from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Image
from habitus.compiled import compiled

NOISE_SIDE = 512
"""Side of the square noise field, of which each frame shows a random part."""


class Planes(NamedTuple):
    """The three planes of a picture, as views."""

    luma: Image
    blue: Image
    red: Image


def split_planes(picture: Image) -> Planes:
    """Return the planes of an I420 picture as views."""
    rows, width = picture.shape
    height = rows * 2 // 3
    colours = picture[height:].reshape(2, height // 2, width // 2)
    return Planes(picture[:height], colours[0], colours[1])


def to_yuv(colours: NDArray[np.floating]) -> Array:
    """Convert blue, green, red (0 to 255) to Y, U, V in limited range (BT.601)."""
    blue, green, red = np.moveaxis(np.asarray(colours, float), -1, 0)
    luma = 16 + 0.257 * red + 0.504 * green + 0.098 * blue
    blueness = 128 - 0.148 * red - 0.291 * green + 0.439 * blue
    redness = 128 + 0.439 * red - 0.368 * green - 0.071 * blue
    return np.asarray(np.clip(np.stack([luma, blueness, redness], axis=-1), 0, 255))


def to_i420(yuv: Array) -> Image:
    """Return a picture from (height, width, 3) values of `to_yuv`."""
    height, width, _ = yuv.shape
    picture = np.empty((height * 3 // 2, width), np.uint8)
    parts = split_planes(picture)
    parts.luma[:] = np.round(yuv[..., 0])
    for plane, values in ((parts.blue, yuv[..., 1]), (parts.red, yuv[..., 2])):
        plane[:] = np.round(values.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3)))
    return picture


def noise_field(rng: np.random.Generator, height: int, width: int) -> NDArray[np.int8]:
    """Return sensor noise with standard deviation 16, slightly smoothed.

    It repeats, so that a frame fits in from any place of the first square on.
    """
    grain = rng.standard_normal((NOISE_SIDE, NOISE_SIDE)).astype(np.float32)
    grain += 0.6 * cv2.GaussianBlur(
        rng.standard_normal(grain.shape).astype(np.float32), (0, 0), 0.8
    )
    square = np.asarray(np.clip(grain / grain.std() * 16, -127, 127), np.int8)
    return np.tile(square, (2 + height // NOISE_SIDE, 2 + width // NOISE_SIDE))


@compiled
def darken(picture: Image, shaded: Image, mask: Image) -> None:
    """Blend the luma rows of a picture with a shaded one, in place: wholly where the mask is 255.

    Equals ``(picture * (255 - mask) + shaded * mask + 127) // 255``.
    """
    for y in range(len(mask)):
        for x in range(mask.shape[1]):
            share = np.int32(mask[y, x])
            picture[y, x] = (picture[y, x] * (255 - share) + shaded[y, x] * share + 127) // 255


@compiled
def expose(
    luma: Image, noise: NDArray[np.int8], top: int, left: int, gain: float, deviation: float
) -> None:
    """Apply gain, and the part of the noise from `top` and `left` on, to a luma plane, in place.

    Equals ``floor(clip(gain * luma + deviation / 16 * part + 0.5, 0, 255))`` in single precision.
    """
    scale, share, half = np.float32(gain), np.float32(deviation / 16), np.float32(0.5)
    for y in range(len(luma)):
        row = luma[y]
        grain = noise[y + top, left : left + len(row)]
        for x in range(len(row)):
            value = np.float32(row[x]) * scale + np.float32(grain[x]) * share + half
            row[x] = np.uint8(min(max(value, np.float32(0)), np.float32(255)))


@compiled
def cover(
    rows: NDArray[np.float32], xs: Any, ys: Any, n: int, size: tuple[int, int], n_lines: int
) -> tuple[int, int, int, int]:
    """Write the share of each pixel that a convex polygon covers to `rows`; return its box.

    The box is top, bottom, left, right; bottom and right are exclusive. `rows` starts at the top
    of the box and must be zero. Each row of pixels is sampled on `n_lines` lines (two for a tall
    polygon), whose coverage is exact. `size` is the picture's height and width. Equals the mean
    over the lines of ``clip(right - x, 0, 1) - clip(left - x, 0, 1)``, where `left` and `right` are
    the points in which a line crosses the outline.
    """
    height, width = size
    low, high, slopes = ys[0], ys[0], np.empty(n)
    for i in range(n):
        j = i + 1 if i + 1 < n else 0
        low, high = min(low, ys[i]), max(high, ys[i])
        slopes[i] = (xs[j] - xs[i]) / (ys[j] - ys[i])
    top, bottom = max(int(np.floor(low)), 0), min(int(np.floor(high)) + 1, height)
    n_lines = 2 if high - low > 24.0 else n_lines
    first, last, part = width, -1, np.float32(1.0 / n_lines)
    for row in range(top, bottom):
        shares = rows[row - top]
        for line in range(n_lines):
            y = row + (line + 0.5) / n_lines
            left, right = 1e9, -1e9
            for i in range(n):
                j = i + 1 if i + 1 < n else 0
                if (ys[i] <= y) != (ys[j] <= y):
                    x = xs[i] + (y - ys[i]) * slopes[i]
                    left, right = min(left, x), max(right, x)
            left, right = max(left, 0.0), min(right, float(width))
            if right <= left:
                continue
            a, b = int(left), min(int(right), width - 1)
            first, last = min(first, a), max(last, b)
            if a == b:
                shares[a] += np.float32(right - left) * part
                continue
            shares[a] += np.float32(a + 1 - left) * part
            inner = shares[a + 1 : b]
            for x in range(len(inner)):
                inner[x] += part
            shares[b] += np.float32(right - b) * part
    return top, bottom, first, last + 1


@compiled
def paint(
    plane: Image,
    rows: NDArray[np.float32],
    depths: NDArray[np.float32],
    depth: float,
    xs: Any,
    ys: Any,
    value: float,
    slope: float,
    n_lines: int,
) -> None:
    """Fill a quadrilateral in a plane, in place; `rows` stays zero.

    The colour is `value` at the middle and grows by `slope` per row. Pixels whose `depths` is not
    above `depth` are hidden by a structure and keep their value. Equals
    ``floor(plane + share * (colour - plane) + 0.5)`` with the shares of `cover`.
    """
    top, bottom, first, end = cover(rows, xs, ys, 4, plane.shape, n_lines)
    middle = 0.25 * (ys[0] + ys[1] + ys[2] + ys[3])
    for y in range(top, bottom):
        shares, line = rows[y - top, first:end], plane[y, first:end]
        near = depths[y, first:end]
        colour = np.float32(min(max(value + slope * (y - middle), 0.0), 254.0))
        for x in range(len(shares)):
            share = min(shares[x], np.float32(1)) if near[x] > depth else np.float32(0)
            old = np.float32(line[x])
            line[x] = np.uint8(old + share * (colour - old) + np.float32(0.5))
            shares[x] = 0


@compiled
def shade(mask: Image, rows: NDArray[np.float32], xs: Any, ys: Any, n: int, value: float) -> None:
    """Raise a mask to `value` within a convex polygon, in place; `rows` stays zero.

    Equals ``maximum(mask, floor(minimum(share, 1) * value))`` with the shares of `cover`.
    """
    top, bottom, first, end = cover(rows, xs, ys, n, mask.shape, 2)
    full = np.float32(value)
    for y in range(top, bottom):
        shares, line = rows[y - top, first:end], mask[y, first:end]
        for x in range(len(shares)):
            line[x] = max(line[x], np.uint8(min(shares[x], np.float32(1)) * full))
            shares[x] = 0


@compiled
def stencil(mask: Image, rows: NDArray[np.float32], xs: Any, ys: Any, n: int, value: int) -> None:
    """Set a mask where a convex polygon covers at least half of a pixel; `rows` stays zero.

    Equals ``mask[share >= 0.5] = value`` with the shares of `cover`.
    """
    top, bottom, first, end = cover(rows, xs, ys, n, mask.shape, 4)
    for y in range(top, bottom):
        shares, line = rows[y - top, first:end], mask[y, first:end]
        for x in range(len(shares)):
            if shares[x] >= 0.5:
                line[x] = value
            shares[x] = 0


@compiled
def hull(xs: Any, ys: Any, n: int, out_x: Any, out_y: Any) -> int:
    """Write the convex hull of points (gift wrapping) to `out_x`, `out_y`; return its size.

    Equals ``scipy.spatial.ConvexHull(points).vertices`` up to the first corner and the direction.
    """
    start = 0
    for i in range(1, n):
        if xs[i] < xs[start] or (xs[i] == xs[start] and ys[i] < ys[start]):
            start = i
    at, size = start, 0
    while size < n:
        out_x[size], out_y[size] = xs[at], ys[at]
        size += 1
        follow = 0 if at != 0 else 1
        for i in range(n):
            turn = (xs[follow] - xs[at]) * (ys[i] - ys[at]) - (ys[follow] - ys[at]) * (
                xs[i] - xs[at]
            )
            if turn < 0:
                follow = i
        at = follow
        if at == start:
            break
    return size
