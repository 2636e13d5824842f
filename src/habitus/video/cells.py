"""Smaller copies of a picture, each pixel the mean of four.

Motion per cell: a gate, then Lucas and Kanade's least squares, helped by block matching.

All at half the resolution of the analysed frame, where a cell of 8x8 pixels has 4x4. A cell is
looked at only where the picture changes more than it does elsewhere in the frame. Its motion is
the shift that explains the change best; a change that no shift explains is not motion.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.compiled import compiled
from habitus.video.vectors import SIDE, block_difference, window_sums


class Pyramid(NamedTuple):
    """The analysed frame at half and at quarter resolution."""

    half: Image
    quarter: Image


def pyramid(luma: Image, width: int, height: int, scale: int) -> Pyramid:
    """Half and quarter of the analysed frame, which is the camera's frame over `scale`."""
    return Pyramid(*_pyramid(luma, width, height, scale))


@compiled
def halve(image: Image, width: int, height: int) -> Image:
    """Means of 2x2 pixels, rounded; columns of `image` beyond `width` are padding."""
    half = np.empty((height // 2, width // 2), dtype=np.uint8)
    two, one = np.uint64(2), np.uint64(1)
    for y in range(half.shape[0]):
        upper, lower, out = image[2 * y], image[2 * y + 1], half[y]
        for x in range(np.uint64(half.shape[1])):
            i = two * x
            total = (
                np.uint16(upper[i]) + np.uint16(upper[i + one])
                + np.uint16(lower[i]) + np.uint16(lower[i + one])
            )  # fmt: skip
            out[x] = np.uint8((total + np.uint16(2)) >> np.uint16(2))
    return half


@compiled
def _pyramid(luma: Image, width: int, height: int, scale: int) -> tuple[Image, Image]:
    half = halve(luma, width, height)
    while scale > 1:
        half = halve(half, half.shape[1], half.shape[0])
        scale //= 2
    return half, halve(half, half.shape[1], half.shape[0])


# A cell may be moving if its mean change exceeds this many grey levels, and this many times the
# change of the frame's median cell, which is noise, flicker and the codec's own doing.
LEAST_CHANGE = 1.4
ABOVE_MEDIAN = 1.4
# Side of the square around a cell's middle that its motion is told from, at half resolution.
WINDOW = SIDE
# Share of the change that a shift must explain to be motion; and to need no search for another.
EXPLAINED, WELL_EXPLAINED = 0.45, 0.75
# Motion, in pixels of the analysed frame between the two frames.
LEAST_MOTION = 0.6
# What a fast move has beyond its direction.
FAST_MOVE = 4
# How far block matching looks, in pixels of the quarter resolution.
REACH = 8
# Variance of the noise in a pixel's gradient: flat cells are held back by it.
NOISE = 1.0


# Columns of the table of fits: structure tensor, motion, energy left by it and before it.
XX, XY, YY, DX, DY, LEFT, ENERGY = 0, 1, 2, 3, 4, 5, 6
# Side of the square that block matching compares, at quarter resolution.
BLOCK = SIDE

Fits = NDArray[np.float64]
Flat = NDArray[np.uint8]

F = TypeVar("F", bound=Callable[..., Any])


def inlined(kernel: F) -> F:
    """As `compiled`, but always put into the kernel that calls it.

    For what is called hundreds of times a frame: handing over many arguments has its price too.
    """
    compiler = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"contract"}, forceinline=True
    )
    return cast(F, compiler(kernel))


def cell_motion(
    before: Pyramid,
    after: Pyramid,
    watched: NDArray[np.bool_],
    side: int,
    least_motion: float,
    fast: float = np.inf,
) -> tuple[NDArray[np.int8], float]:
    """Move of each watched cell, -1 where it did not move, and the frame's mean change.

    A move is a Direction, and 4 more where it is fast. `watched` is rows x columns; `side` is that
    of a cell at half resolution; motion under `least_motion` pixels of the analysed frame is none,
    from `fast` pixels on it is fast.
    """
    return moving_cells(*before, *after, watched, side, least_motion, fast)


@compiled
def moving_cells(
    half: Image,
    quarter: Image,
    next_half: Image,
    next_quarter: Image,
    watched: NDArray[np.bool_],
    side: int,
    least_motion: float,
    fast: float,
) -> tuple[NDArray[np.int8], float]:
    """As `cell_motion`, of plain arrays: tuples cost a kernel more than all its other arguments."""
    rows, columns = watched.shape
    changes = cell_changes(half, next_half, rows, columns, side)
    gated, slots = _gated(changes, watched, _gate(changes, LEAST_CHANGE * side * side))
    fits = _fit_all(half, quarter, next_half, next_quarter, gated, slots, side)
    moved = np.zeros(len(gated), dtype=np.bool_)
    for k in range(len(gated)):
        moved[k] = (
            fits[k, LEFT] <= (1 - EXPLAINED) * fits[k, ENERGY]
            and 4 * (fits[k, DX] ** 2 + fits[k, DY] ** 2) >= least_motion**2
        )
    moves = _moves(gated, slots, fits, moved, fast)
    return moves, changes.sum() / (rows * columns * side * side)


@compiled
def cell_changes(
    before: Image, after: Image, rows: int, columns: int, side: int
) -> NDArray[np.int32]:
    """Sum of absolute differences in each cell of `side` x `side` pixels, rows x columns."""
    sums = np.empty((rows, columns), dtype=np.int32)
    one, other = before.reshape(-1), after.reshape(-1)
    stride, width = np.uint64(before.shape[1]), np.uint64(columns * side)
    line = np.empty(columns * side, dtype=np.uint16)
    for r in range(rows):
        line[:] = 0
        for y in range(side):
            i = np.uint64(r * side + y) * stride
            for x in range(width):
                a, b = one[i + x], other[i + x]
                line[x] += np.uint16(max(a, b) - min(a, b))
        _add_up(line, side, sums[r])
    return sums


@compiled
def _add_up(line: NDArray[np.uint16], side: int, sums: NDArray[np.int32]) -> None:
    """Sums of every `side` numbers; of four at a time, the usual ones, as vectors."""
    if side == 4:
        for c in range(np.uint64(len(sums))):
            i = np.uint64(4) * c
            one, two, three = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
            sums[c] = (
                np.int32(line[i]) + np.int32(line[one])
                + np.int32(line[two]) + np.int32(line[three])
            )  # fmt: skip
        return
    for c in range(len(sums)):
        total = np.int32(0)
        for x in range(c * side, (c + 1) * side):
            total += np.int32(line[x])
        sums[c] = total


@compiled
def _gate(changes: NDArray[np.int32], least: float) -> float:
    """max(ABOVE_MEDIAN * median, least); the median is needed only where it decides."""
    flat = changes.reshape(-1)
    quiet, n_quiet = np.int32(least / ABOVE_MEDIAN), np.int32(0)
    for value in flat:
        n_quiet += np.int32(value <= quiet)
    if n_quiet > len(flat) // 2:
        return least
    return max(ABOVE_MEDIAN * _median(changes), least)


@compiled
def _median(sums: NDArray[np.int32]) -> int:
    """The middle of the values, by counting."""
    flat = sums.reshape(-1)
    counts = np.zeros(flat.max() + 1, dtype=np.int32)
    for value in flat:
        counts[value] += 1
    seen, middle = np.int32(0), len(flat) // 2
    for level in range(len(counts)):
        seen += counts[level]
        if seen > middle:
            return level
    return 0


@compiled
def _gated(
    changes: NDArray[np.int32], watched: NDArray[np.bool_], gate: float
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Row and column of the cells that changed, in order, and each cell's slot among them or -1.

    The slots have a margin of one cell all around, so that every cell has neighbours.
    """
    rows, columns = changes.shape
    slots = np.full((rows + 2, columns + 2), -1, dtype=np.int32)
    gated = np.empty((rows * columns, 2), dtype=np.int32)
    n = 0
    for r in range(rows):
        for c in range(columns):
            if changes[r, c] > gate and watched[r, c]:
                gated[n, 0], gated[n, 1] = r, c
                slots[r + 1, c + 1] = n
                n += 1
    return gated[:n], slots


@inlined
def _fit(
    b: Flat, a: Flat, width: int, top: int, left: int, sx: int, sy: int
) -> tuple[float, float, float, float, float, float, float]:
    """Lucas and Kanade's step between a window and the one shifted by (sx, sy): a row of fits.

    Means are removed: a change of brightness is no motion.
    """
    x1, y1, t1, xx, xy, yy, xt, yt, tt = window_sums(
        b, np.uint64(top * width + left),
        a, np.uint64((top + sy) * width + left + sx), np.uint64(width),
    )  # fmt: skip
    n = WINDOW * WINDOW
    # Gradients are four times too large: two differences over two pixels, added.
    cxx, cxy, cyy = (
        (n * xx - x1 * x1) / (16 * n), (n * xy - x1 * y1) / (16 * n), (n * yy - y1 * y1) / (16 * n)
    )  # fmt: skip
    cxt, cyt, ctt = (
        (n * xt - x1 * t1) / (4 * n), (n * yt - y1 * t1) / (4 * n), (n * tt - t1 * t1) / n
    )  # fmt: skip
    held = NOISE * WINDOW * WINDOW / 4
    scale = 1 / ((cxx + held) * (cyy + held) - cxy * cxy)
    dx = (cxy * cyt - (cyy + held) * cxt) * scale
    dy = (cxy * cxt - (cxx + held) * cyt) * scale
    left_over = ctt + 2 * (dx * cxt + dy * cyt) + dx * dx * cxx + 2 * dx * dy * cxy + dy * dy * cyy
    return cxx, cxy, cyy, sx + dx, sy + dy, max(left_over, 0.0), ctt


@inlined
def _refine(
    b: Flat, a: Flat, width: int, height: int, top: int, left: int, sx: int, sy: int,
    fits: Fits, k: int,
) -> None:  # fmt: skip
    """Least squares from a shift on, up to three steps; kept where it explains more."""
    for _ in range(3):
        sx = min(max(sx, 1 - left), width - WINDOW - 1 - left)
        sy = min(max(sy, 1 - top), height - WINDOW - 1 - top)
        xx, xy, yy, dx, dy, left_over, _ = _fit(b, a, width, top, left, sx, sy)
        if left_over < fits[k, LEFT]:
            fits[k, XX], fits[k, XY], fits[k, YY] = xx, xy, yy
            fits[k, DX], fits[k, DY], fits[k, LEFT] = dx, dy, left_over
        nx, ny = _nearest(dx), _nearest(dy)
        if (nx == sx and ny == sy) or abs(nx - sx) > 3 or abs(ny - sy) > 3:
            return
        sx, sy = nx, ny


@inlined
def _nearest(value: float) -> int:
    return int(np.floor(value + 0.5))


@inlined
def _follow(
    b: Flat, a: Flat, width: int, height: int, top: int, left: int,
    around: tuple[int, ...], fits: Fits, k: int,
) -> None:  # fmt: skip
    """Refine from the motions of neighbouring cells (-1: none) that explain the change there."""
    own_x, own_y = _nearest(fits[k, DX]), _nearest(fits[k, DY])
    last_x, last_y = own_x, own_y
    for s in around:
        if s < 0 or fits[s, LEFT] > (1 - EXPLAINED) * fits[s, ENERGY]:
            continue
        sx, sy = _nearest(fits[s, DX]), _nearest(fits[s, DY])
        known = max(abs(sx - own_x), abs(sy - own_y)) <= 1
        if not known and not (sx == last_x and sy == last_y):
            _refine(b, a, width, height, top, left, sx, sy, fits, k)
            last_x, last_y = sx, sy


@compiled
def _fit_all(
    half: Image, quarter: Image, next_half: Image, next_quarter: Image,
    gated: NDArray[np.int32], slots: NDArray[np.int32], side: int,
) -> Fits:  # fmt: skip
    """Each changed cell's motion: from rest; else from a neighbour's; else from the best match.

    Then the motions of neighbours that moved otherwise are tried: objects are larger than cells.
    """
    height, width = half.shape
    b, a = half.reshape(-1), next_half.reshape(-1)
    height4, width4 = quarter.shape
    b4, a4 = quarter.reshape(-1), next_quarter.reshape(-1)
    fits = np.empty((len(gated), 7))
    middle = (side - WINDOW) // 2
    for again in (False, True):
        for k in range(len(gated)):
            r, c = gated[k, 0], gated[k, 1]
            top = min(max(r * side + middle, 1), height - WINDOW - 1)
            left = min(max(c * side + middle, 1), width - WINDOW - 1)
            up, before_it, after_it = slots[r, c + 1], slots[r + 1, c], slots[r + 1, c + 2]
            if again:
                if fits[k, LEFT] <= (1 - WELL_EXPLAINED) * fits[k, ENERGY]:
                    continue
                around = (up, before_it, after_it, slots[r + 2, c + 1])
                _follow(b, a, width, height, top, left, around, fits, k)
                continue
            first = _fit(b, a, width, top, left, 0, 0)
            for i in range(7):
                fits[k, i] = first[i]
            well = fits[k, LEFT] <= (1 - WELL_EXPLAINED) * fits[k, ENERGY]
            if well and max(abs(fits[k, DX]), abs(fits[k, DY])) <= 1:
                continue
            seen = (before_it, up, slots[r, c + 2], slots[r, c])
            _follow(b, a, width, height, top, left, seen, fits, k)
            if fits[k, LEFT] > (1 - EXPLAINED) * fits[k, ENERGY]:
                y, x = (r * side + side // 2) // 2, (c * side + side // 2) // 2
                sx, sy = _match(b4, a4, width4, height4, y, x)
                _refine(b, a, width, height, top, left, 2 * sx, 2 * sy, fits, k)
    return fits


@inlined
def _match(b: Flat, a: Flat, width: int, height: int, y: int, x: int) -> tuple[int, int]:
    """The shift of least absolute difference of the block around a pixel, at most REACH."""
    top = min(max(y - BLOCK // 2, 0), height - BLOCK)
    left = min(max(x - BLOCK // 2, 0), width - BLOCK)
    start, line = np.uint64(top * width + left), np.uint64(width)
    best, bx, by = block_difference(b, start, a, start, line), 0, 0
    for step in (2, 1):  # every second shift, then those around the best
        cx, cy, reach = bx, by, REACH if step == 2 else 1
        for sy in range(max(cy - reach, -top), min(cy + reach, height - BLOCK - top) + 1, step):
            for sx in range(
                max(cx - reach, -left), min(cx + reach, width - BLOCK - left) + 1, step
            ):
                shifted = np.uint64((top + sy) * width + left + sx)
                total = block_difference(b, start, a, shifted, line)
                if total < best:
                    best, bx, by = total, sx, sy
    return bx, by


@compiled
def _moves(
    gated: NDArray[np.int32], slots: NDArray[np.int32], fits: Fits, moved: NDArray[np.bool_],
    fast: float,
) -> NDArray[np.int8]:  # fmt: skip
    """Each moving cell's move, from its own structure tensor and those of its neighbours."""
    rows, columns = slots.shape[0] - 2, slots.shape[1] - 2
    moves = np.full((rows, columns), -1, dtype=np.int8)
    for k in range(len(gated)):
        if not moved[k]:
            continue
        r, c = gated[k, 0], gated[k, 1]
        xx = xy = yy = x = y = 0.0
        for i in range(r, r + 3):
            for j in range(c, c + 3):
                s = slots[i, j]
                if s >= 0 and moved[s]:
                    # The less a motion leaves unexplained, the more it counts.
                    weight = 1 / (fits[s, LEFT] + 1)
                    xx += weight * fits[s, XX]
                    xy += weight * fits[s, XY]
                    yy += weight * fits[s, YY]
                    x += weight * (fits[s, XX] * fits[s, DX] + fits[s, XY] * fits[s, DY])
                    y += weight * (fits[s, XY] * fits[s, DX] + fits[s, YY] * fits[s, DY])
        held = 1e-3 * (xx + yy) + 1e-9
        dx = (yy + held) * x - xy * y
        dy = (xx + held) * y - xy * x
        # Of the paper's four: up, left, down, right; rows grow downwards.
        sideways, upright = 3 if dx > 0 else 1, 2 if dy > 0 else 0
        move = sideways if abs(dx) >= abs(dy) else upright
        # Both are the motion at half resolution times this.
        scale = (xx + held) * (yy + held) - xy * xy
        if 4 * (dx * dx + dy * dy) >= (fast * scale) ** 2:
            move += FAST_MOVE
        moves[r, c] = move
    return moves
