"""Integer sums over windows of 8 x 8 pixels: the inner loops of motion estimation.

The functions below define the sums, and run as plain Python. Inside compiled kernels they become
the vector instructions of `habitus.video.vectors`; where these cannot be built, or plain kernels
are asked for (`habitus.compiled.PLAIN_KERNELS`), Numba compiles the definitions themselves. All are
sums of integers, so the results are the same to the bit.
"""

from functools import cache, partial
from typing import Any

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from habitus.compiled import PLAIN_KERNELS

SIDE = 8
"""Pixels along each side of a window."""

FlatImage = NDArray[np.uint8]
"""Pixels of an image in one dimension, row after row."""
Index = int | np.uint64
Sums = tuple[int, int, int, int, int, int, int, int, int]


def block_difference(one: FlatImage, i: Index, other: FlatImage, j: Index, width: Index) -> int:
    """Return the sum of absolute differences of two windows.

    Equals `abs(a - b).sum()` for the windows `a` and `b` as integers.

    Parameters
    ----------
    one, other
        Images of one width, as flat arrays.
    i, j
        Index of the upper left pixel of the window in each.
    width
        Pixels per row of both images.

    Returns
    -------
    int
        The sum.

    Examples
    --------
    >>> dark, bright = np.full(100, 50, np.uint8), np.full(100, 53, np.uint8)
    >>> int(block_difference(dark, 0, bright, 11, 10))
    192
    """
    corner, other_corner, line = np.uint64(i), np.uint64(j), np.uint64(width)
    total: Any = 0
    for y in range(np.uint64(SIDE)):
        for x in range(np.uint64(SIDE)):
            step = np.uint64(y) * line + np.uint64(x)
            total += abs(np.int32(one[corner + step]) - np.int32(other[other_corner + step]))
    return int(total)


def window_sums(before: FlatImage, i: Index, after: FlatImage, j: Index, width: Index) -> Sums:
    """Return the sums over two windows that least squares need.

    With `gx` and `gy` the central differences (right minus left, lower minus upper pixel) added
    over both windows, and `d` the difference `after - before`, the sums are those of gx, gy, d,
    gx gx, gx gy, gy gy, gx d, gy d and d d. The pixels around the windows are read as well.

    Parameters
    ----------
    before, after
        Images of one width, as flat arrays.
    i, j
        Index of the upper left pixel of the window in each.
    width
        Pixels per row of both images.

    Returns
    -------
    tuple of nine int
        The sums in the order above.

    Examples
    --------
    >>> ramp = np.tile(np.arange(10, dtype=np.uint8), 10)
    >>> [int(sum_) for sum_ in window_sums(ramp, 11, ramp, 11, 10)]
    [256, 0, 0, 1024, 0, 0, 0, 0, 0]
    """
    corner, other_corner, line, one = np.uint64(i), np.uint64(j), np.uint64(width), np.uint64(1)
    zero: Any = 0
    x1 = y1 = t1 = xx = xy = yy = xt = yt = tt = zero
    for y in range(np.uint64(SIDE)):
        for x in range(np.uint64(SIDE)):
            step = np.uint64(y) * line + np.uint64(x)
            p, q = corner + step, other_corner + step
            gx = np.int32(before[p + one]) - np.int32(before[p - one])
            gx += np.int32(after[q + one]) - np.int32(after[q - one])
            gy = np.int32(before[p + line]) - np.int32(before[p - line])
            gy += np.int32(after[q + line]) - np.int32(after[q - line])
            d = np.int32(after[q]) - np.int32(before[p])
            x1 += gx
            y1 += gy
            t1 += d
            xx += gx * gx
            xy += gx * gy
            yy += gy * gy
            xt += gx * d
            yt += gy * d
            tt += d * d
    return x1, y1, t1, xx, xy, yy, xt, yt, tt


@cache
def vectors_work() -> bool:
    """Return whether the vector instructions can be built here and give the right sums."""
    image = np.random.default_rng(0).integers(0, 256, 400).astype(np.uint8)
    windows = image, np.uint64(21), image, np.uint64(64), np.uint64(20)
    try:
        from habitus.video import vectors

        difference = _called(vectors.block_difference)(*windows)
        sums = _called(vectors.window_sums)(*windows)
        return bool(difference == block_difference(*windows) and sums == window_sums(*windows))
    except Exception:  # raw LLVM may fail in any way on another processor or another Numba
        return False


def _called(intrinsic: Any) -> Any:
    """Return a compiled function that calls an intrinsic and nothing else."""
    return numba.njit(lambda one, i, other, j, width: intrinsic(one, i, other, j, width))


# Not strict: annotations are part of the signatures that Numba would compare.
_overloaded = partial(overload, jit_options={"forceinline": True}, strict=False)


@_overloaded(block_difference)
def _compiled_block_difference(one: Any, i: Any, other: Any, j: Any, width: Any) -> Any:
    if PLAIN_KERNELS or not vectors_work():
        return block_difference
    from habitus.video import vectors

    vector = vectors.block_difference
    return lambda one, i, other, j, width: vector(one, i, other, j, width)


@_overloaded(window_sums)
def _compiled_window_sums(before: Any, i: Any, after: Any, j: Any, width: Any) -> Any:
    if PLAIN_KERNELS or not vectors_work():
        return window_sums
    from habitus.video import vectors

    vector = vectors.window_sums
    return lambda before, i, after, j, width: vector(before, i, after, j, width)
