"""Drawing of quadrilaterals, compiled: with soft edges, behind what stands in front of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled

Plane = NDArray[np.uint8]


@compiled
def cover(
    rows: NDArray[np.float32], xs: Any, ys: Any, n: int, size: tuple[int, int], fine: int
) -> tuple[int, int, int, int]:
    """Share of each pixel that a convex polygon covers, into `rows`; gives their box.

    The box is top, bottom, left, right, the bottom and the right exclusive. `rows` holds the lines
    from the top on, and must be zero. Each row of pixels is cut into `fine` lines (a tall polygon's
    into two); a line's share is exact. `size` is the picture's height and width.
    """
    height, width = size
    low, high, slopes = ys[0], ys[0], np.empty(n)
    for i in range(n):
        j = i + 1 if i + 1 < n else 0
        low, high = min(low, ys[i]), max(high, ys[i])
        slopes[i] = (xs[j] - xs[i]) / (ys[j] - ys[i])
    top, bottom = max(int(np.floor(low)), 0), min(int(np.floor(high)) + 1, height)
    fine = 2 if high - low > 24.0 else fine
    first, last, part = width, -1, np.float32(1.0 / fine)
    for row in range(top, bottom):
        shares = rows[row - top]
        for line in range(fine):
            y = row + (line + 0.5) / fine
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
    plane: Plane, rows: NDArray[np.float32], depths: NDArray[np.float32], depth: float, xs: Any,
    ys: Any, value: float, slope: float,
) -> None:  # fmt: skip
    """Fill a quadrilateral; `value` becomes brighter by `slope` a row; `rows` stays zero.

    Pixels where `depths` is less than `depth` are behind something that stands, and stay.
    """
    top, bottom, first, end = cover(rows, xs, ys, 4, plane.shape, 4)
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
def tint(
    blue: Plane, red: Plane, rows: NDArray[np.float32], depths: NDArray[np.float32], depth: float,
    xs: Any, ys: Any, blueness: float, redness: float,
) -> None:  # fmt: skip
    """The same for both colours at once, in planes of half the size."""
    top, bottom, first, end = cover(rows, xs, ys, 4, blue.shape, 2)
    half, b, r = np.float32(0.5), np.float32(blueness), np.float32(redness)
    for y in range(top, bottom):
        shares, near = rows[y - top, first:end], depths[y, first:end]
        blues, reds = blue[y, first:end], red[y, first:end]
        for x in range(len(shares)):
            share = min(shares[x], np.float32(1)) if near[x] > depth else np.float32(0)
            old, other = np.float32(blues[x]), np.float32(reds[x])
            blues[x] = np.uint8(old + share * (b - old) + half)
            reds[x] = np.uint8(other + share * (r - other) + half)
            shares[x] = 0


@compiled
def shade(mask: Plane, rows: NDArray[np.float32], xs: Any, ys: Any, n: int, value: float) -> None:
    """Raise a mask to `value` within a convex polygon; `rows` stays zero."""
    top, bottom, first, end = cover(rows, xs, ys, n, mask.shape, 2)
    full = np.float32(value)
    for y in range(top, bottom):
        shares, line = rows[y - top, first:end], mask[y, first:end]
        for x in range(len(shares)):
            line[x] = max(line[x], np.uint8(min(shares[x], np.float32(1)) * full))
            shares[x] = 0


@compiled
def stencil(mask: Plane, rows: NDArray[np.float32], xs: Any, ys: Any, n: int, value: int) -> None:
    """Set a mask where a convex polygon covers half of a pixel or more; `rows` stays zero."""
    top, bottom, first, end = cover(rows, xs, ys, n, mask.shape, 4)
    for y in range(top, bottom):
        shares, line = rows[y - top, first:end], mask[y, first:end]
        for x in range(len(shares)):
            if shares[x] >= 0.5:
                line[x] = value
            shares[x] = 0


@compiled
def hull(xs: Any, ys: Any, n: int, out_x: Any, out_y: Any) -> int:
    """Convex hull of points (gift wrapping) into `out_x`, `out_y`; gives the number of corners."""
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
