"""Motion of each cell between two frames: a change gate, then Lucas-Kanade and block matching.

Everything works at half the resolution of the analysed frame, where a cell of 8 x 8 pixels has
4 x 4. A cell is examined only where the image changes more than it does elsewhere in the frame (the
gate). Its motion is the shift that explains the change best (Lucas and Kanade's least squares, from
rest, from the motions of neighbouring cells, or from the best match of a block search); a change
that no shift explains is not motion, nor is one that a change of light explains better, nor one in
a flat window, where any shift would do, unless more than that moves around it.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Flags, Image
from habitus.compiled import compiled
from habitus.corpus.vocabulary import N_SPEEDS
from habitus.standalone import standalone
from habitus.video.windows import SIDE, block_difference, window_sums

# Correlation of two frames below which they do not show one view: a cut, a covered lens, frames
# lost in between.
LEAST_ALIKE = 0.5
# A cell passes the gate if its mean change exceeds LEAST_CHANGE grey levels, and ABOVE_MEDIAN times
# the change of the frame's median cell, which is due to noise, flicker and the codec.
LEAST_CHANGE = 1.4
ABOVE_MEDIAN = 1.4
# Side of the window around a cell's centre for least squares, in pixels at half resolution.
WINDOW = SIDE
# Side of the block that block matching compares, in pixels at quarter resolution.
BLOCK = SIDE
# Largest shift of block matching, in pixels at quarter resolution.
REACH = 8
# Fraction of the change that a shift must explain to be motion; and to need no further search.
EXPLAINED, WELL_EXPLAINED = 0.45, 0.75
# Least motion between two frames, in pixels of the analysed frame.
LEAST_MOTION = 0.6
# Variance of the noise in a pixel's gradient: regularises the least squares of flat cells.
NOISE = 1.0
# Tangent of half the angle of a fine direction, 15 degrees.
HALF_ANGLE = 2 - 3**0.5
# Mean squared gradient plus mean squared change, in grey levels, below which a window is flat: it
# holds nothing but noise, such as the codec's in a bright sky.
FLAT = 2.0
# A flat cell still moves, as the inside of a vehicle does, where as many cells as LEAST_TEXTURED of
# this mean or more move at most NEARBY cells away.
TEXTURED = 32.0
LEAST_TEXTURED = 2
NEARBY = 2
# A change is light, not motion, where gain, offset and a slope of brightness leave no more of it
# than this share of what a shift leaves. To windows that show different things a smaller gain than
# LEAST_GAIN fits best.
LIGHT = 0.8
LEAST_GAIN = 0.4
# The light changed where that is so in at least LEAST_LIT cells, and in this share of all cells
# whose change a shift explains: in a few it is chance.
LEAST_LIT, COMMON = 6, 0.4
# Rows of the table of fits: structure tensor, motion, energy of the change left over by that
# motion, and energy of the change itself.
XX, XY, YY, DX, DY, LEFT, ENERGY = range(7)

Fits = NDArray[np.float64]
"""One column per gated cell, with the rows above."""
# Row and column, in `slots` from a cell's own on, of the neighbours whose motion is tried: those
# fitted before it, then all four.
NEIGHBOURS = np.array([[[1, 0], [0, 1], [0, 2], [0, 0]], [[0, 1], [1, 0], [1, 2], [2, 1]]])


class Scratch(NamedTuple):
    """Arrays to work in: what is found out about the cells of two frames on the way."""

    line: NDArray[np.uint16]
    """Sums over each column of pixels of a row of cells."""
    changes: NDArray[np.int32]
    """Rows x columns: sum of absolute differences of each cell."""
    slots: NDArray[np.int32]
    """Row of each cell in the tables below, or -1; with a margin of one cell on every side."""
    gated: NDArray[np.int32]
    """Row and column of each cell that passed the gate."""
    fits: Fits
    moved: Flags

    @classmethod
    def of(cls, rows: int, columns: int, side: int) -> "Scratch":
        """Return arrays for a grid of cells of `side` pixels at half resolution."""
        return cls(
            np.empty(columns * side, dtype=np.uint16),
            np.empty((rows, columns), dtype=np.int32),
            np.empty((rows + 2, columns + 2), dtype=np.int32),
            np.empty((rows * columns, 2), dtype=np.int32),
            np.empty((7, rows * columns)),
            np.empty(rows * columns, dtype=np.bool_),
        )


class Pyramid(NamedTuple):
    """The analysed frame at half and at quarter resolution."""

    half: Image
    quarter: Image


class PyramidBuffer:
    """Half and quarter resolution of the analysed frame, one frame after the other.

    Half of a frame that is doubled (scale 0.5) is the camera's frame itself.

    Parameters
    ----------
    width, height
        Size of the camera's frame in pixels.
    scale
        Pixels of the camera's frame per pixel of the analysed frame, a power of two from 0.5 on.
    """

    def __init__(self, width: int, height: int, scale: float) -> None:
        self.copied = scale < 1
        levels: list[Image] = [np.empty((height, width) if self.copied else (0, 0), np.uint8)]
        for _ in range(1 if self.copied else int(scale).bit_length() + 1):
            height, width = height // 2, width // 2
            levels.append(np.empty((height, width), dtype=np.uint8))
        self.steps = [halve.bound(*pair) for pair in pairwise(levels)]
        self.pyramid = Pyramid(*levels[-2:])

    def fill(self, luma: Image) -> Pyramid:
        """Take the next frame: its height x at least its width; further columns are padding."""
        if self.copied:
            height, width = self.pyramid.half.shape
            np.copyto(self.pyramid.half, luma[:height, :width])
            self.steps[0]()
            return self.pyramid
        luma = np.ascontiguousarray(luma, dtype=np.uint8)
        return self.fill_from(luma.ctypes.data, luma.shape)

    def fill_from(self, address: int, shape: tuple[int, ...]) -> Pyramid:
        """Take the next frame from memory, where its scale is at least 1; see `fill`."""
        self.steps[0].place(0, address, shape)
        for step in self.steps:
            step()
        return self.pyramid


@standalone
def halve(image: Image, half: Image) -> None:
    """Fill `half` with the rounded means of 2 x 2 pixels; further ones of the image are padding.

    Equals `(image[: 2 * h, : 2 * w].reshape(h, 2, w, 2).sum(axis=(1, 3)) + 2) // 4` for
    `h, w = half.shape`.
    """
    height, width = np.uint64(half.shape[0]), np.uint64(half.shape[1])
    two, one = np.uint64(2), np.uint64(1)
    for y in range(height):
        upper, lower = two * y, two * y + one
        for x in range(width):
            left, right = two * x, two * x + one
            above = np.uint16(image[upper, left]) + np.uint16(image[upper, right])
            below = np.uint16(image[lower, left]) + np.uint16(image[lower, right])
            half[y, x] = np.uint8((above + below + np.uint16(2)) >> np.uint16(2))


class PairMotion:
    """Motion between two frames, each of which is replaced by the next but one.

    Parameters
    ----------
    frames
        The two frames.
    watched
        Rows x columns: the cells to examine.
    side
        Side of a cell in pixels at half resolution.
    bounds
        Pixels of the analysed frame per second from which motion is of the next speed, ascending.
    flat
        Mean squared gradient plus mean squared change below which a window is flat: its cell does
        not move unless textured cells nearby do. 0 for none.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    >>> frame = PyramidBuffer(64, 64, 1).fill(image)
    >>> motion = PairMotion((frame, frame), np.ones((8, 8), dtype=bool), 4, np.empty(0))
    >>> moves, change = motion.found(1, LEAST_MOTION, 1.0)
    >>> (moves == -1).all(), change
    (np.True_, 0.0)
    """

    def __init__(
        self,
        frames: tuple[Pyramid, Pyramid],
        watched: Flags,
        side: int,
        bounds: NDArray[np.float64],
        flat: float = FLAT,
    ) -> None:
        self.limits = np.array([0.0, 0.0, flat])
        self.moves = np.empty(watched.shape, dtype=np.int16)
        self.change = np.empty(1)
        rows, columns = watched.shape
        given = np.ascontiguousarray(watched), self.limits, bounds
        shared = *given, Scratch.of(rows, columns, side), self.moves, self.change
        one, other = frames
        self._to = fill_moves.bound(other, one, *shared), fill_moves.bound(one, other, *shared)

    def found(
        self, after: int, least_motion: float, seconds: float
    ) -> tuple[NDArray[np.int16], float]:
        """Return moves and change until frame number 0 or 1, `seconds` later than the other.

        Moves are a fine direction times N_SPEEDS, plus the speed; -1 where a cell did not move, or
        by less than `least_motion` pixels of the analysed frame. No cell moves between frames of
        different views, whose change is 255; else that is the mean absolute difference of the
        frames in grey levels.
        """
        self.limits[0], self.limits[1] = least_motion, seconds
        self._to[after]()
        return self.moves.copy(), self.change.item()


@standalone
def fill_moves(
    frame: Pyramid,
    following: Pyramid,
    watched: Flags,
    limits: NDArray[np.float64],
    bounds: NDArray[np.float64],
    scratch: Scratch,
    moves: NDArray[np.int16],
    change: NDArray[np.float64],
) -> None:
    """Fill in what `PairMotion` finds: one call for all kernels."""
    half, quarter = frame
    next_half, next_quarter = following
    line, changes, slots, gated, fits, moved = scratch
    rows, columns = changes.shape
    for r in range(rows):
        for c in range(columns):
            moves[r, c] = -1
    change[0] = 255.0
    if likeness(quarter, next_quarter) < LEAST_ALIKE:
        return
    side = len(line) // columns
    total = cell_changes(half, next_half, side, line, changes)
    n = gated_cells(changes, watched, LEAST_CHANGE * side * side, slots, gated)
    if n:
        fit_all(half, quarter, next_half, next_quarter, side, n, gated, slots, fits)
        move_all(n, gated, slots, fits, limits, bounds, moved, moves)
    change[0] = total / (changes.size * side * side)


@compiled
def likeness(one: Image, other: Image) -> float:
    """Return the correlation of two images; 1 where both are flat.

    Equals `np.corrcoef(one.ravel(), other.ravel())[0, 1]` where both variances are at least 1.
    """
    n = one.size
    sa, sb, saa, sbb, sab = 0.0, 0.0, 0.0, 0.0, 0.0
    for row in range(one.shape[0]):
        zero = np.uint32(0)
        ta, tb, taa, tbb, tab = zero, zero, zero, zero, zero
        for i in range(np.uint64(one.shape[1])):
            x, y = np.uint32(one[row, i]), np.uint32(other[row, i])
            ta += x
            tb += y
            taa += x * x
            tbb += y * y
            tab += x * y
        sa += ta
        sb += tb
        saa += taa
        sbb += tbb
        sab += tab
    va, vb = saa - sa * sa / n, sbb - sb * sb / n
    if va < n and vb < n:  # a standard deviation under one grey level each
        return 1.0
    return (sab - sa * sb / n) / math.sqrt(max(va, 1.0) * max(vb, 1.0))


@compiled
def cell_changes(
    before: Image, after: Image, side: int, line: NDArray[np.uint16], sums: NDArray[np.int32]
) -> int:
    """Fill in the sum of absolute differences in each cell; return the sum over all.

    With rows and columns of `sums`, it equals `abs(after - before)[: rows * side, : columns *
    side]`, as integers, reshaped to (rows, side, columns, side) and summed over the axes 1 and 3.
    """
    total = 0
    for r in range(sums.shape[0]):
        for x in range(np.uint64(len(line))):
            line[x] = 0
        for y in range(r * side, (r + 1) * side):
            for x in range(np.uint64(len(line))):
                a, b = before[y, x], after[y, x]
                line[x] += np.uint16(max(a, b) - min(a, b))
        if side == 4:  # the usual one, as vectors
            for c in range(np.uint64(sums.shape[1])):
                i = np.uint64(4) * c
                one, two, three = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
                left = np.int32(line[i]) + np.int32(line[one])
                sums[r, c] = left + np.int32(line[two]) + np.int32(line[three])
        else:
            for c in range(sums.shape[1]):
                sums[r, c] = 0
                for x in range(c * side, (c + 1) * side):
                    sums[r, c] += np.int32(line[x])
        for c in range(np.uint64(sums.shape[1])):
            total += sums[r, c]
    return total


@compiled
def gated_cells(
    changes: NDArray[np.int32],
    watched: Flags,
    least: float,
    slots: NDArray[np.int32],
    gated: NDArray[np.int32],
) -> int:
    """Fill in `np.argwhere((changes > gate) & watched)` and the slots; return the number of cells.

    The gate is `max(ABOVE_MEDIAN * np.sort(changes, axis=None)[changes.size // 2], least)`.
    """
    rows, columns = changes.shape
    # The median by bisection, from the level on below which it decides nothing.
    low, high = int(least / ABOVE_MEDIAN), 2**31 - 1
    level = low
    while low < high:
        n_below, bound = np.int32(0), np.int32(level)
        for r in range(rows):
            for c in range(np.uint64(columns)):
                n_below += np.int32(changes[r, c] <= bound)
        if n_below > changes.size // 2:
            high = level
        else:
            low = level + 1
        level = (low + high) // 2
    gate, n = max(ABOVE_MEDIAN * low, least), 0
    for r in range(rows + 2):
        for c in range(columns + 2):
            slots[r, c] = -1
    for r in range(rows):
        for c in range(columns):
            if changes[r, c] > gate and watched[r, c]:
                gated[n, 0], gated[n, 1], slots[r + 1, c + 1] = r, c, n
                n += 1
    return n


@compiled
def fit_all(
    half: Image,
    quarter: Image,
    next_half: Image,
    next_quarter: Image,
    side: int,
    n: int,
    gated: NDArray[np.int32],
    slots: NDArray[np.int32],
    fits: Fits,
) -> None:
    """Fill in the fit of every gated cell.

    The first pass starts from rest, then from the motions of the neighbours fitted before, then
    from the best matching block. The second pass tries the motions of all four neighbours, because
    objects are larger than cells. Where the light changed, nothing counts as explained in the cells
    whose change it explains better.
    """
    dx, dy, left_over, energy = fits[DX], fits[DY], fits[LEFT], fits[ENERGY]
    height, width = half.shape
    for again in range(2):
        for k in range(n):
            r, c = gated[k, 0], gated[k, 1]
            top = min(max(r * side + (side - WINDOW) // 2, 1), height - WINDOW - 1)
            left = min(max(c * side + (side - WINDOW) // 2, 1), width - WINDOW - 1)
            if not again:
                left_over[k] = np.inf
                _refine(half, next_half, top, left, 0, 0, fits, k)
            well = left_over[k] <= (1 - WELL_EXPLAINED) * energy[k]
            if well and (again or max(abs(dx[k]), abs(dy[k])) <= 1):
                continue
            own_x, own_y = math.floor(dx[k] + 0.5), math.floor(dy[k] + 0.5)
            last_x, last_y = own_x, own_y
            for i in range(4):
                s = slots[r + NEIGHBOURS[again, i, 0], c + NEIGHBOURS[again, i, 1]]
                if s < 0 or left_over[s] > (1 - EXPLAINED) * energy[s]:
                    continue
                sx, sy = math.floor(dx[s] + 0.5), math.floor(dy[s] + 0.5)
                known = max(abs(sx - own_x), abs(sy - own_y)) <= 1
                if not known and not (sx == last_x and sy == last_y):
                    _refine(half, next_half, top, left, sx, sy, fits, k)
                    last_x, last_y = sx, sy
            if not again and left_over[k] > (1 - EXPLAINED) * energy[k]:
                y, x = (r * side + side // 2) // 2, (c * side + side // 2) // 2
                sx, sy = _match(quarter, next_quarter, y, x)
                _refine(half, next_half, top, left, 2 * sx, 2 * sy, fits, k)
    n_explained, n_lit = 0, 0
    for k in range(n):
        n_explained += left_over[k] <= (1 - EXPLAINED) * energy[k]
    needed = max(LEAST_LIT, COMMON * n_explained)
    for again in range(2):
        for k in range(n):
            if n_lit + n_explained < needed:  # even if all further ones are lit
                return
            if left_over[k] > (1 - EXPLAINED) * energy[k]:
                continue
            top = min(max(gated[k, 0] * side + (side - WINDOW) // 2, 1), height - WINDOW - 1)
            left = min(max(gated[k, 1] * side + (side - WINDOW) // 2, 1), width - WINDOW - 1)
            lit = _left_by_light(half, next_half, top, left) <= LIGHT * left_over[k]
            if again and lit:
                left_over[k] = np.inf
            elif not again:
                n_explained -= 1
                n_lit += lit


@compiled
def _left_by_light(before: Image, after: Image, top: int, left: int) -> float:
    """Return the energy of a window's change that a change of light does not explain.

    With b the window before, d its change, and x and y the columns and rows, all centred: equals
    `((d - A @ lstsq(A, d)[0]) ** 2).sum()` for `A = stack([b, x, y], axis=1)`; infinite where the
    gain, one plus the first of the solution, is less than LEAST_GAIN.
    """
    n = WINDOW * WINDOW
    zero = np.int32(0)
    bx, by, bb, dx, dy, dd, bd, b1, d1 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for r in range(WINDOW):
        row = np.uint64(top + r)
        b_row, d_row = zero, zero
        for c in range(WINDOW):
            x, column = np.int32(2 * c - (WINDOW - 1)), np.uint64(left + c)
            b = np.int32(before[row, column])
            d = np.int32(after[row, column]) - b
            b_row += b
            d_row += d
            bx += b * x
            dx += d * x
            bb += b * b
            dd += d * d
            bd += b * d
        y = np.int32(2 * r - (WINDOW - 1))
        b1 += b_row
        d1 += d_row
        by += b_row * y
        dy += d_row * y
    # x and y are twice the distance from the middle; the sum of the squares of either:
    squares = n * (n - 1) / 3.0
    cbb = bb - float(b1) * b1 / n - (float(bx) * bx + float(by) * by) / squares
    cdd = dd - float(d1) * d1 / n - (float(dx) * dx + float(dy) * dy) / squares
    cbd = bd - float(b1) * d1 / n - (float(bx) * dx + float(by) * dy) / squares
    if cbb < 1:  # nothing for a gain to act on
        return cdd
    return cdd - cbd * cbd / cbb if cbd / cbb >= LEAST_GAIN - 1 else np.inf


@compiled
def _refine(
    before: Image,
    after: Image,
    top: int,
    left: int,
    sx: int,
    sy: int,
    fits: Fits,
    k: int,
) -> None:
    """Take up to three steps from a shift on; keep in column `k` what explains more than before.

    A step is Lucas and Kanade's between a window and one shifted by (sx, sy). With G the gradients
    (WINDOW**2 x 2) and d the change, both centred, so that a change of brightness is not motion:
    `step = -solve(G.T @ G + NOISE / 4 * WINDOW**2 * eye(2), G.T @ d)`, and the energy left over is
    `((d + G @ step) ** 2).sum()`. The first of all is one step: it tells the energy of the change.
    """
    height, width = before.shape
    n, held = WINDOW * WINDOW, NOISE * WINDOW * WINDOW / 4
    for _ in range(1 if fits[LEFT, k] == np.inf else 3):
        sx = min(max(sx, 1 - left), width - WINDOW - 1 - left)
        sy = min(max(sy, 1 - top), height - WINDOW - 1 - top)
        sums = window_sums(before, top, left, after, top + sy, left + sx)
        x1, y1, t1, xx, xy, yy, xt, yt, tt = sums
        # The gradients are four times too large: two differences over two pixels each, added.
        cxx = (n * xx - x1 * x1) / (16 * n)
        cxy = (n * xy - x1 * y1) / (16 * n)
        cyy = (n * yy - y1 * y1) / (16 * n)
        cxt = (n * xt - x1 * t1) / (4 * n)
        cyt = (n * yt - y1 * t1) / (4 * n)
        ctt = (n * tt - t1 * t1) / n
        scale = 1 / ((cxx + held) * (cyy + held) - cxy * cxy)
        dx = (cxy * cyt - (cyy + held) * cxt) * scale
        dy = (cxy * cxt - (cxx + held) * cyt) * scale
        over = ctt + 2 * (dx * cxt + dy * cyt) + dx * dx * cxx + 2 * dx * dy * cxy + dy * dy * cyy
        if fits[LEFT, k] == np.inf:
            fits[ENERGY, k] = ctt
        if max(over, 0.0) < fits[LEFT, k]:
            fits[XX, k], fits[XY, k], fits[YY, k] = cxx, cxy, cyy
            fits[DX, k], fits[DY, k], fits[LEFT, k] = sx + dx, sy + dy, max(over, 0.0)
        nx, ny = math.floor(sx + dx + 0.5), math.floor(sy + dy + 0.5)
        if (nx == sx and ny == sy) or abs(nx - sx) > 3 or abs(ny - sy) > 3:
            return
        sx, sy = nx, ny


@compiled
def _match(before: Image, after: Image, y: int, x: int) -> tuple[int, int]:
    """Return the shift (x, y) of the best match of the block around a pixel, at most REACH.

    The block where it is, then every second shift, then those around the best are compared; the
    first of equals wins.
    """
    height, width = before.shape
    top = min(max(y - BLOCK // 2, 0), height - BLOCK)
    left = min(max(x - BLOCK // 2, 0), width - BLOCK)
    best, bx, by = 255 * BLOCK * BLOCK + 1, 0, 0
    for search in range(3):
        reach = REACH if search == 1 else search // 2
        step = 2 if search == 1 else 1
        cx, cy = bx, by
        first, last = max(cx - reach, -left), min(cx + reach, width - BLOCK - left)
        for sy in range(max(cy - reach, -top), min(cy + reach, height - BLOCK - top) + 1, step):
            for sx in range(first, last + 1, step):
                total = block_difference(before, top, left, after, top + sy, left + sx)
                if total < best:
                    best, bx, by = total, sx, sy
    return bx, by


@compiled
def move_all(
    n: int,
    gated: NDArray[np.int32],
    slots: NDArray[np.int32],
    fits: Fits,
    limits: NDArray[np.float64],
    bounds: NDArray[np.float64],
    moved: Flags,
    moves: NDArray[np.int16],
) -> None:
    """Fill in the moves of cells: least squares over their own fits and those of neighbours.

    A fit with structure tensor T and motion v counts with the weight 1 / (left over + 1). The
    motion is `solve(sum(weight * T) + held * eye(2), sum(weight * T @ v))`, here times the
    determinant. A flat cell does not move where fewer than LEAST_TEXTURED textured cells do.
    """
    rows, columns = slots.shape
    least_motion, seconds, flat = limits[0], limits[1], limits[2]
    xx, xy, yy, dx, dy = fits[XX], fits[XY], fits[YY], fits[DX], fits[DY]
    left_over, energy = fits[LEFT], fits[ENERGY]
    for k in range(n):
        motion = 4 * (dx[k] * dx[k] + dy[k] * dy[k])
        explained = left_over[k] <= (1 - EXPLAINED) * energy[k]
        moved[k] = explained and motion >= least_motion * least_motion
    for k in range(n):
        if not moved[k]:
            continue
        r, c = gated[k, 0] + 1, gated[k, 1] + 1
        if (xx[k] + yy[k] + energy[k]) / (WINDOW * WINDOW) < flat:
            n_textured = 0
            for i in range(max(r - NEARBY, 0), min(r + NEARBY + 1, rows)):
                for j in range(max(c - NEARBY, 0), min(c + NEARBY + 1, columns)):
                    s = slots[i, j]
                    if s >= 0 and moved[s]:
                        texture = (xx[s] + yy[s] + energy[s]) / (WINDOW * WINDOW)
                        n_textured += texture >= TEXTURED
            if n_textured < LEAST_TEXTURED:
                continue
        sxx, sxy, syy, sx, sy = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(r - 1, r + 2):
            for j in range(c - 1, c + 2):
                s = slots[i, j]
                if s < 0 or not moved[s]:
                    continue
                weight = 1 / (left_over[s] + 1)
                sxx += weight * xx[s]
                sxy += weight * xy[s]
                syy += weight * yy[s]
                sx += weight * (xx[s] * dx[s] + xy[s] * dy[s])
                sy += weight * (xy[s] * dx[s] + yy[s] * dy[s])
        held = 1e-3 * (sxx + syy) + 1e-9
        right = (syy + held) * sx - sxy * sy
        down = (sxx + held) * sy - sxy * sx
        determinant = (sxx + held) * (syy + held) - sxy * sxy
        # Pixels of the analysed frame are half those of half resolution.
        squared, speed = 4 * (right * right + down * down), 0
        while speed < len(bounds):
            least = bounds[speed] * seconds * determinant
            if squared < least * least:
                break
            speed += 1
        moves[r - 1, c - 1] = N_SPEEDS * fine_direction(right, down) + speed


@compiled
def fine_direction(dx: float, dy: float) -> int:
    """Return the fine direction of a motion to the right (dx) and down (dy).

    The Direction first (up, left, down, right; rows grow downwards), then its third: the middle
    one where the motion is within 15 degrees of the axis, the last one counter-clockwise of that.
    """
    if abs(dx) >= abs(dy):
        direction, turned = (3, -dy) if dx > 0 else (1, dy)
        along = abs(dx)
    else:
        direction, turned = (2, dx) if dy > 0 else (0, -dx)
        along = abs(dy)
    if abs(turned) <= HALF_ANGLE * along:
        return 3 * direction + 1
    return 3 * direction + (2 if turned > 0 else 0)
