"""Motion of each cell between two frames: a change gate, then Lucas-Kanade and block matching.

Everything works at half the resolution of the analysed frame, where a cell of 8 x 8 pixels has
4 x 4. A cell is examined only where the image changes more than it does elsewhere in the frame (the
gate). Its motion is the shift that explains the change best (Lucas and Kanade's least squares, from
rest, from the motions of neighbouring cells, or from the best match of a block search); a change
that no shift explains is not motion, nor is one in a flat window, where any shift would do, unless
more than that moves around it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Flags, Image
from habitus.compiled import compiled, compiled_inline
from habitus.corpus.vocabulary import N_SPEEDS
from habitus.video.windows import SIDE, FlatImage, block_difference, window_sums

# Correlation of two frames below which they do not show one view: a cut, a covered lens, frames
# lost in between.
LEAST_ALIKE = 0.5
# Pixels whose products are summed as 32-bit integers, without overflow.
SUMMED = 4096
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
# Columns of the table of fits: structure tensor, motion, energy of the change left over by that
# motion, and energy of the change itself.
XX, XY, YY, DX, DY, LEFT, ENERGY = range(7)

Fits = NDArray[np.float64]
"""One row per gated cell, with the columns above."""
NO_BOUNDS = np.empty(0)


class Pyramid(NamedTuple):
    """The analysed frame at half and at quarter resolution."""

    half: Image
    quarter: Image


class _ImagePair(NamedTuple):
    """Two images of one size, as flat arrays."""

    before: FlatImage
    after: FlatImage
    width: int
    height: int


def pyramid(luma: Image, width: int, height: int, scale: float) -> Pyramid:
    """Return half and quarter resolution of the analysed frame.

    Half of a frame that is doubled (scale 0.5) is the camera's frame itself.

    Parameters
    ----------
    luma
        Brightness of the camera's frame: height x at least `width`; further columns are padding.
    width, height
        Size of the camera's frame in pixels.
    scale
        Pixels of the camera's frame per pixel of the analysed frame, a power of two from 0.5 on.

    Returns
    -------
    Pyramid
        The two images.

    Examples
    --------
    >>> half, quarter = pyramid(np.zeros((72, 96), np.uint8), 96, 72, 1)
    >>> half.shape, quarter.shape
    ((36, 48), (18, 24))
    """
    return Pyramid(*_pyramid(luma, width, height, round(2 * scale)))


@compiled
def _pyramid(luma: Image, width: int, height: int, pixels: int) -> tuple[Image, Image]:
    """Halve the frame `log2(pixels)` times, and once more."""
    half = halve(luma, width, height) if pixels > 1 else luma[:height, :width].copy()
    while pixels > 2:
        half = halve(half, half.shape[1], half.shape[0])
        pixels //= 2
    return half, halve(half, half.shape[1], half.shape[0])


@compiled
def halve(image: Image, width: int, height: int) -> Image:
    """Return the rounded means of 2 x 2 pixels; columns beyond `width` are padding.

    Equals `(image[:2 * h, :2 * w].reshape(h, 2, w, 2).sum(axis=(1, 3)) + 2) // 4` for
    `h, w = height // 2, width // 2`.
    """
    half = np.empty((height // 2, width // 2), dtype=np.uint8)
    two, one = np.uint64(2), np.uint64(1)
    for y in range(half.shape[0]):
        upper, lower, out = image[2 * y], image[2 * y + 1], half[y]
        for x in range(np.uint64(half.shape[1])):
            i = two * x
            above = np.uint16(upper[i]) + np.uint16(upper[i + one])
            below = np.uint16(lower[i]) + np.uint16(lower[i + one])
            out[x] = np.uint8((above + below + np.uint16(2)) >> np.uint16(2))
    return half


def cell_motion(
    before: Pyramid,
    after: Pyramid,
    watched: Flags,
    side: int,
    least_motion: float,
    bounds: NDArray[np.float64] = NO_BOUNDS,
    flat: float = FLAT,
) -> tuple[NDArray[np.int16], float]:
    """Return the move of each cell between two frames, and the mean change of the frame.

    Parameters
    ----------
    before, after
        The two frames.
    watched
        Rows x columns: the cells to examine.
    side
        Side of a cell in pixels at half resolution.
    least_motion
        Pixels of the analysed frame below which motion is ignored.
    bounds
        Pixels of the analysed frame from which motion is of the next speed, ascending.
    flat
        Mean squared gradient plus mean squared change below which a window is flat: its cell does
        not move unless textured cells nearby do. 0 for none.

    Returns
    -------
    moves
        Rows x columns: a fine direction times N_SPEEDS, plus the speed; -1 where a cell did not
        move. No cell moves between frames of different views.
    change
        Mean absolute difference of the frames in grey levels; 255 between different views.

    Examples
    --------
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    >>> frame = pyramid(image, 64, 64, 1)
    >>> moves, change = cell_motion(frame, frame, np.ones((8, 8), dtype=bool), 4, LEAST_MOTION)
    >>> (moves == -1).all(), change
    (np.True_, 0.0)
    """
    return _cell_motion(*before, *after, watched, side, least_motion, bounds, flat)


@compiled
def _cell_motion(
    half: Image,
    quarter: Image,
    next_half: Image,
    next_quarter: Image,
    watched: Flags,
    side: int,
    least_motion: float,
    bounds: NDArray[np.float64],
    flat: float,
) -> tuple[NDArray[np.int16], float]:
    """Return what `cell_motion` does; a call with plain arrays costs less than one with tuples."""
    if likeness(quarter, next_quarter) < LEAST_ALIKE:
        return np.full(watched.shape, np.int16(-1)), 255.0
    levels = (half, quarter, next_half, next_quarter)
    return moving_cells(*levels, watched, side, least_motion, bounds, flat)


@compiled
def likeness(one: Image, other: Image) -> float:
    """Return the correlation of two images; 1 where both are flat.

    Equals `np.corrcoef(one.ravel(), other.ravel())[0, 1]` where both variances are at least 1.
    """
    n = one.size
    a, b = one.reshape(-1), other.reshape(-1)
    sa, sb, saa, sbb, sab = 0.0, 0.0, 0.0, 0.0, 0.0
    for start in range(0, n, SUMMED):
        zero = np.uint32(0)
        ta, tb, taa, tbb, tab = zero, zero, zero, zero, zero
        for i in range(np.uint64(start), np.uint64(min(start + SUMMED, n))):
            x, y = np.uint32(a[i]), np.uint32(b[i])
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
    return float((sab - sa * sb / n) / np.sqrt(max(va, 1.0) * max(vb, 1.0)))


@compiled
def moving_cells(
    half: Image,
    quarter: Image,
    next_half: Image,
    next_quarter: Image,
    watched: Flags,
    side: int,
    least_motion: float,
    bounds: NDArray[np.float64],
    flat: float,
) -> tuple[NDArray[np.int16], float]:
    """Return the moves and the change of two frames of one view, as `cell_motion` does."""
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
    moves = _moves(gated, slots, fits, moved, bounds)
    for k in range(len(gated)):
        if moved[k] and _texture(fits, k) < flat and _is_apart(gated[k], slots, fits, moved):
            moves[gated[k, 0], gated[k, 1]] = -1
    return moves, changes.sum() / (rows * columns * side * side)


@compiled
def cell_changes(
    before: Image, after: Image, rows: int, columns: int, side: int
) -> NDArray[np.int32]:
    """Return the sum of absolute differences in each cell of `side` x `side` pixels.

    Equals `abs(after - before)[: rows * side, : columns * side]`, as integers, reshaped to
    (rows, side, columns, side) and summed over the axes 1 and 3.
    """
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
    """Assign `line.reshape(-1, side).sum(axis=1)` to `sums`; the usual side of 4 as vectors."""
    if side == 4:
        for c in range(np.uint64(len(sums))):
            i = np.uint64(4) * c
            one, two, three = i + np.uint64(1), i + np.uint64(2), i + np.uint64(3)
            left = np.int32(line[i]) + np.int32(line[one])
            sums[c] = left + np.int32(line[two]) + np.int32(line[three])
        return
    for c in range(len(sums)):
        total = np.int32(0)
        for x in range(c * side, (c + 1) * side):
            total += np.int32(line[x])
        sums[c] = total


@compiled
def _gate(changes: NDArray[np.int32], least: float) -> float:
    """Return `max(ABOVE_MEDIAN * median, least)`; the median is computed only where it decides."""
    flat = changes.reshape(-1)
    quiet, n_quiet = np.int32(least / ABOVE_MEDIAN), np.int32(0)
    for value in flat:
        n_quiet += np.int32(value <= quiet)
    if n_quiet > len(flat) // 2:
        return least
    return max(ABOVE_MEDIAN * _median(changes), least)


@compiled
def _median(sums: NDArray[np.int32]) -> int:
    """Return `np.sort(sums, axis=None)[sums.size // 2]`, by counting."""
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
    changes: NDArray[np.int32], watched: Flags, gate: float
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return `np.argwhere((changes > gate) & watched)`, and each cell's row in it or -1.

    The second array has a margin of one cell on every side, so that every cell has neighbours.
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


@compiled
def _fit_all(
    half: Image,
    quarter: Image,
    next_half: Image,
    next_quarter: Image,
    gated: NDArray[np.int32],
    slots: NDArray[np.int32],
    side: int,
) -> Fits:
    """Return the fit of every gated cell.

    The first pass starts from rest, then from the motions of the neighbours fitted before, then
    from the best matching block. The second pass tries the motions of all four neighbours, because
    objects are larger than cells.
    """
    height, width = half.shape
    height4, width4 = quarter.shape
    pair = _ImagePair(half.reshape(-1), next_half.reshape(-1), width, height)
    pair4 = _ImagePair(quarter.reshape(-1), next_quarter.reshape(-1), width4, height4)
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
                _follow(pair, top, left, around, fits, k)
                continue
            first = _fit(pair, top, left, 0, 0)
            for i in range(7):
                fits[k, i] = first[i]
            well = fits[k, LEFT] <= (1 - WELL_EXPLAINED) * fits[k, ENERGY]
            if well and max(abs(fits[k, DX]), abs(fits[k, DY])) <= 1:
                continue
            fitted = (before_it, up, slots[r, c + 2], slots[r, c])
            _follow(pair, top, left, fitted, fits, k)
            if fits[k, LEFT] > (1 - EXPLAINED) * fits[k, ENERGY]:
                y, x = (r * side + side // 2) // 2, (c * side + side // 2) // 2
                sx, sy = _match(pair4, y, x)
                _refine(pair, top, left, 2 * sx, 2 * sy, fits, k)
    return fits


@compiled_inline
def _fit(
    pair: _ImagePair, top: int, left: int, sx: int, sy: int
) -> tuple[float, float, float, float, float, float, float]:
    """Return one row of fits: a Lucas-Kanade step between a window and one shifted by (sx, sy).

    With G the gradients (WINDOW**2 x 2) and d the change, both centred, so that a change of
    brightness is not motion: `step = -solve(G.T @ G + NOISE / 4 * WINDOW**2 * eye(2), G.T @ d)`,
    and the energy left over is `((d + G @ step) ** 2).sum()`.
    """
    before, after, width, _ = pair
    i, j = np.uint64(top * width + left), np.uint64((top + sy) * width + left + sx)
    sums = window_sums(before, i, after, j, np.uint64(width))
    x1, y1, t1, xx, xy, yy, xt, yt, tt = sums
    n = WINDOW * WINDOW
    # The gradients are four times too large: two differences over two pixels each, added.
    cxx = (n * xx - x1 * x1) / (16 * n)
    cxy = (n * xy - x1 * y1) / (16 * n)
    cyy = (n * yy - y1 * y1) / (16 * n)
    cxt = (n * xt - x1 * t1) / (4 * n)
    cyt = (n * yt - y1 * t1) / (4 * n)
    ctt = (n * tt - t1 * t1) / n
    held = NOISE * WINDOW * WINDOW / 4
    scale = 1 / ((cxx + held) * (cyy + held) - cxy * cxy)
    dx = (cxy * cyt - (cyy + held) * cxt) * scale
    dy = (cxy * cxt - (cxx + held) * cyt) * scale
    left_over = ctt + 2 * (dx * cxt + dy * cyt) + dx * dx * cxx + 2 * dx * dy * cxy + dy * dy * cyy
    return cxx, cxy, cyy, sx + dx, sy + dy, max(left_over, 0.0), ctt


@compiled_inline
def _refine(pair: _ImagePair, top: int, left: int, sx: int, sy: int, fits: Fits, k: int) -> None:
    """Take up to three steps from a shift on; keep in row `k` what explains more than before."""
    for _ in range(3):
        sx = min(max(sx, 1 - left), pair.width - WINDOW - 1 - left)
        sy = min(max(sy, 1 - top), pair.height - WINDOW - 1 - top)
        xx, xy, yy, dx, dy, left_over, _ = _fit(pair, top, left, sx, sy)
        if left_over < fits[k, LEFT]:
            fits[k, XX], fits[k, XY], fits[k, YY] = xx, xy, yy
            fits[k, DX], fits[k, DY], fits[k, LEFT] = dx, dy, left_over
        nx, ny = _nearest(dx), _nearest(dy)
        if (nx == sx and ny == sy) or abs(nx - sx) > 3 or abs(ny - sy) > 3:
            return
        sx, sy = nx, ny


@compiled_inline
def _nearest(value: float) -> int:
    """Return the nearest integer, halves rounded up."""
    return int(np.floor(value + 0.5))


@compiled_inline
def _follow(
    pair: _ImagePair, top: int, left: int, neighbours: tuple[int, ...], fits: Fits, k: int
) -> None:
    """Refine row `k` from the motions of neighbours (-1: none) that explain their own change."""
    own_x, own_y = _nearest(fits[k, DX]), _nearest(fits[k, DY])
    last_x, last_y = own_x, own_y
    for s in neighbours:
        if s < 0 or fits[s, LEFT] > (1 - EXPLAINED) * fits[s, ENERGY]:
            continue
        sx, sy = _nearest(fits[s, DX]), _nearest(fits[s, DY])
        known = max(abs(sx - own_x), abs(sy - own_y)) <= 1
        if not known and not (sx == last_x and sy == last_y):
            _refine(pair, top, left, sx, sy, fits, k)
            last_x, last_y = sx, sy


@compiled_inline
def _match(pair: _ImagePair, y: int, x: int) -> tuple[int, int]:
    """Return the shift (x, y) of the best match of the block around a pixel, at most REACH.

    Every second shift is compared, then those around the best; the first of equals wins.
    """
    before, after, width, height = pair
    top = min(max(y - BLOCK // 2, 0), height - BLOCK)
    left = min(max(x - BLOCK // 2, 0), width - BLOCK)
    start, line = np.uint64(top * width + left), np.uint64(width)
    best, bx, by = block_difference(before, start, after, start, line), 0, 0
    for step in (2, 1):
        cx, cy, reach = bx, by, REACH if step == 2 else 1
        first, last = max(cx - reach, -left), min(cx + reach, width - BLOCK - left)
        for sy in range(max(cy - reach, -top), min(cy + reach, height - BLOCK - top) + 1, step):
            for sx in range(first, last + 1, step):
                shifted = np.uint64((top + sy) * width + left + sx)
                total = block_difference(before, start, after, shifted, line)
                if total < best:
                    best, bx, by = total, sx, sy
    return bx, by


@compiled
def _moves(
    gated: NDArray[np.int32],
    slots: NDArray[np.int32],
    fits: Fits,
    moved: Flags,
    bounds: NDArray[np.float64],
) -> NDArray[np.int16]:
    """Return the move of every cell: least squares over its own fit and those of its neighbours.

    A fit with structure tensor T and motion v counts with the weight 1 / (left over + 1). The
    motion is `solve(sum(weight * T) + held * eye(2), sum(weight * T @ v))`, here times the
    determinant.
    """
    rows, columns = slots.shape[0] - 2, slots.shape[1] - 2
    moves = np.full((rows, columns), -1, dtype=np.int16)
    for k in range(len(gated)):
        if not moved[k]:
            continue
        r, c = gated[k, 0], gated[k, 1]
        xx = xy = yy = x = y = 0.0
        for i in range(r, r + 3):
            for j in range(c, c + 3):
                s = slots[i, j]
                if s >= 0 and moved[s]:
                    weight = 1 / (fits[s, LEFT] + 1)
                    xx += weight * fits[s, XX]
                    xy += weight * fits[s, XY]
                    yy += weight * fits[s, YY]
                    x += weight * (fits[s, XX] * fits[s, DX] + fits[s, XY] * fits[s, DY])
                    y += weight * (fits[s, XY] * fits[s, DX] + fits[s, YY] * fits[s, DY])
        held = 1e-3 * (xx + yy) + 1e-9
        dx = (yy + held) * x - xy * y
        dy = (xx + held) * y - xy * x
        determinant = (xx + held) * (yy + held) - xy * xy
        # Pixels of the analysed frame are half those of half resolution.
        squared, speed = 4 * (dx * dx + dy * dy), 0
        while speed < len(bounds) and squared >= (bounds[speed] * determinant) ** 2:
            speed += 1
        moves[r, c] = N_SPEEDS * fine_direction(dx, dy) + speed
    return moves


@compiled_inline
def _texture(fits: Fits, k: int) -> float:
    """Return the mean squared gradient plus the mean squared change of a window."""
    return float((fits[k, XX] + fits[k, YY] + fits[k, ENERGY]) / (WINDOW * WINDOW))


@compiled
def _is_apart(cell: NDArray[np.int32], slots: NDArray[np.int32], fits: Fits, moved: Flags) -> bool:
    """Return whether fewer than LEAST_TEXTURED textured cells move around a cell."""
    rows, columns = slots.shape
    r, c, n = cell[0] + 1, cell[1] + 1, 0
    for i in range(max(r - NEARBY, 0), min(r + NEARBY + 1, rows)):
        for j in range(max(c - NEARBY, 0), min(c + NEARBY + 1, columns)):
            s = slots[i, j]
            if s >= 0 and moved[s] and _texture(fits, s) >= TEXTURED:
                n += 1
    return n < LEAST_TEXTURED


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
