"""Integer sums over windows of 8 x 8 pixels: the inner loops of motion estimation.

The functions below define the sums, and run as plain Python. Inside compiled kernels they become
the vector instructions of `habitus.video.vectors`; where these cannot be built, or plain kernels
are asked for (`habitus.compiled.PLAIN_KERNELS`), Numba compiles the definitions themselves. All are
sums of integers, so the results are the same to the bit.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from habitus.arrays import Image
from habitus.compiled import PLAIN_KERNELS, before_compiling

SIDE = 8
"""Pixels along each side of a window."""

Sums = tuple[int, int, int, int, int, int, int, int, int]


def block_difference(one: Image, y: int, x: int, other: Image, v: int, u: int) -> int:
    """Return the sum of absolute differences of two windows.

    Equals `abs(a - b).sum()` for the windows `a` and `b` as integers.

    Parameters
    ----------
    one, other
        The images.
    y, x, v, u
        Row and column of the upper left pixel of the window in each.

    Returns
    -------
    int
        The sum.

    Examples
    --------
    >>> dark, bright = np.full((10, 10), 50, np.uint8), np.full((10, 10), 53, np.uint8)
    >>> int(block_difference(dark, 0, 0, bright, 1, 1))
    192
    """
    total: Any = 0
    for r in range(SIDE):
        for c in range(SIDE):
            total += abs(np.int32(one[y + r, x + c]) - np.int32(other[v + r, u + c]))
    return int(total)


def window_sums(before: Image, y: int, x: int, after: Image, v: int, u: int) -> Sums:
    """Return the sums over two windows that least squares need.

    With `gx` and `gy` the central differences (right minus left, lower minus upper pixel) added
    over both windows, and `d` the difference `after - before`, the sums are those of gx, gy, d,
    gx gx, gx gy, gy gy, gx d, gy d and d d. The pixels around the windows are read as well.

    Parameters
    ----------
    before, after
        The images.
    y, x, v, u
        Row and column of the upper left pixel of the window in each.

    Returns
    -------
    tuple of nine int
        The sums in the order above.

    Examples
    --------
    >>> ramp = np.tile(np.arange(10, dtype=np.uint8), (10, 1))
    >>> [int(sum_) for sum_ in window_sums(ramp, 1, 1, ramp, 1, 1)]
    [256, 0, 0, 1024, 0, 0, 0, 0, 0]
    """
    zero: Any = 0
    x1 = y1 = t1 = xx = xy = yy = xt = yt = tt = zero
    for r in range(SIDE):
        for c in range(SIDE):
            i, j, k, m = y + r, x + c, v + r, u + c
            gx = np.int32(before[i, j + 1]) - np.int32(before[i, j - 1])
            gx += np.int32(after[k, m + 1]) - np.int32(after[k, m - 1])
            gy = np.int32(before[i + 1, j]) - np.int32(before[i - 1, j])
            gy += np.int32(after[k + 1, m]) - np.int32(after[k - 1, m])
            d = np.int32(after[k, m]) - np.int32(before[i, j])
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
    image = np.random.default_rng(0).integers(0, 256, (20, 20)).astype(np.uint8)
    windows = image, 1, 2, image, 3, 5
    try:
        from habitus.video import vectors

        difference = _called(vectors.block_difference)(*windows)
        sums = _called(vectors.window_sums)(*windows)
        return bool(difference == block_difference(*windows) and sums == window_sums(*windows))
    except Exception:  # raw LLVM may fail in any way on another processor or another Numba
        return False


def _called(intrinsic: Any) -> Any:
    """Return a compiled function that calls an intrinsic and nothing else."""
    import numba

    return numba.njit(lambda one, y, x, other, v, u: intrinsic(one, y, x, other, v, u))


@before_compiling
def _overload() -> None:
    """Have Numba use the vector instructions where a kernel calls the definitions."""
    from numba.extending import overload

    # Not strict: annotations are part of the signatures that Numba would compare.
    overloaded: Any = partial(overload, jit_options={"forceinline": True}, strict=False)
    overloaded(block_difference)(_compiled_block_difference)
    overloaded(window_sums)(_compiled_window_sums)


def _compiled_block_difference(one: Any, y: Any, x: Any, other: Any, v: Any, u: Any) -> Any:
    if PLAIN_KERNELS or not vectors_work():
        return block_difference
    from habitus.video import vectors

    vector = vectors.block_difference
    return lambda one, y, x, other, v, u: vector(one, y, x, other, v, u)


def _compiled_window_sums(before: Any, y: Any, x: Any, after: Any, v: Any, u: Any) -> Any:
    if PLAIN_KERNELS or not vectors_work():
        return window_sums
    from habitus.video import vectors

    vector = vectors.window_sums
    return lambda before, y, x, after, v, u: vector(before, y, x, after, v, u)
