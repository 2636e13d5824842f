"""Twins of the kernels of `habitus.video`, written with NumPy as their docstrings define them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from habitus.video import cells as kernels

Array = np.ndarray
Pair = tuple[Array, Array]
"""Two images of one size."""

# Sizes and thresholds are those of the kernels; everything that is computed is written anew.
WINDOW, BLOCK, REACH = kernels.WINDOW, kernels.BLOCK, kernels.REACH
XX, XY, YY, DX, DY, LEFT, ENERGY = range(7)


def window(image: Array, top: int, left: int, margin: int = 0) -> Array:
    """The 8 x 8 pixels at a place as integers, with a margin around them."""
    rows = slice(top - margin, top + WINDOW + margin)
    return image[rows, left - margin : left + WINDOW + margin].astype(np.int64)


def gradients(pair: Pair, places: tuple[tuple[int, int], tuple[int, int]]) -> tuple[Array, ...]:
    """Central differences along x and y, added over both windows; and the change."""
    a, b = (window(image, *place, margin=1) for image, place in zip(pair, places, strict=True))
    both = a + b
    gx, gy = both[1:-1, 2:] - both[1:-1, :-2], both[2:, 1:-1] - both[:-2, 1:-1]
    return gx, gy, (b - a)[1:-1, 1:-1]


def block_difference(pair: Pair, one: tuple[int, int], other: tuple[int, int]) -> int:
    return int(abs(window(pair[0], *one) - window(pair[1], *other)).sum())


def window_sums(pair: Pair, one: tuple[int, int], other: tuple[int, int]) -> list[int]:
    gx, gy, d = gradients(pair, (one, other))
    terms = (gx, gy, d, gx * gx, gx * gy, gy * gy, gx * d, gy * d, d * d)
    return [int(term.sum()) for term in terms]


def halve(image: Array, width: int, height: int) -> Array:
    h, w = height // 2, width // 2
    sums = image[: 2 * h, : 2 * w].astype(int).reshape(h, 2, w, 2).sum(axis=(1, 3))
    return ((sums + 2) // 4).astype(np.uint8)


def pyramid(luma: Array, width: int, height: int, scale: float) -> Pair:
    half = luma[:height, :width]
    for _ in range(int(np.log2(scale)) + 1):
        half = halve(half, *half.shape[::-1])
    return half, halve(half, *half.shape[::-1])


def likeness(one: Array, other: Array) -> float:
    a, b = one.ravel().astype(float), other.ravel().astype(float)
    if a.var() < 1 and b.var() < 1:
        return 1.0
    spread = np.sqrt(max(a.var(), 1 / a.size) * max(b.var(), 1 / b.size))
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread)


def cell_changes(before: Array, after: Array, rows: int, columns: int, side: int) -> Array:
    apart = abs(after.astype(int) - before)[: rows * side, : columns * side]
    return apart.reshape(rows, side, columns, side).sum(axis=(1, 3))


def median(sums: Array) -> int:
    return int(np.sort(sums, axis=None)[sums.size // 2])


def gate(changes: Array, least: float) -> float:
    return max(kernels.ABOVE_MEDIAN * median(changes), least)


def gated(changes: Array, watched: Array, above: float) -> tuple[Array, Array]:
    found = np.argwhere((changes > above) & watched)
    slots = np.full(np.add(changes.shape, 2), -1)
    slots[tuple(found.T + 1)] = np.arange(len(found))
    return found, slots


def fit(pair: Pair, top: int, left: int, sx: int, sy: int) -> Array:
    """One Lucas-Kanade step by NumPy's linear algebra on the centred windows."""
    gx, gy, d = gradients(pair, ((top, left), (top + sy, left + sx)))
    G = np.stack([gx.ravel(), gy.ravel()], axis=1) / 4
    G, d = G - G.mean(axis=0), d.ravel() - d.mean()
    tensor = G.T @ G
    step = -np.linalg.solve(tensor + kernels.NOISE / 4 * WINDOW**2 * np.eye(2), G.T @ d)
    left_over = ((d + G @ step) ** 2).sum()
    return np.array(
        [tensor[0, 0], tensor[0, 1], tensor[1, 1], sx + step[0], sy + step[1], left_over, d @ d]
    )


def nearest(value: float) -> int:
    return int(np.floor(value + 0.5))


def refine(pair: Pair, top: int, left: int, sx: int, sy: int, fits: Array, k: int) -> None:
    height, width = pair[0].shape
    for _ in range(3):
        sx = int(np.clip(sx, 1 - left, width - WINDOW - 1 - left))
        sy = int(np.clip(sy, 1 - top, height - WINDOW - 1 - top))
        found = fit(pair, top, left, sx, sy)
        if found[LEFT] < fits[k, LEFT]:
            fits[k, :ENERGY] = found[:ENERGY]
        following = nearest(found[DX]), nearest(found[DY])
        if following == (sx, sy) or np.abs(np.subtract(following, (sx, sy))).max() > 3:
            return
        sx, sy = following


def is_explained(row: Array, fraction: float) -> bool:
    return bool(row[LEFT] <= (1 - fraction) * row[ENERGY])


def follow(pair: Pair, top: int, left: int, neighbours: Sequence[int], fits: Array, k: int) -> None:
    own = last = nearest(fits[k, DX]), nearest(fits[k, DY])
    for s in neighbours:
        if s < 0 or not is_explained(fits[s], kernels.EXPLAINED):
            continue
        shift = nearest(fits[s, DX]), nearest(fits[s, DY])
        if np.abs(np.subtract(shift, own)).max() > 1 and shift != last:
            refine(pair, top, left, *shift, fits, k)
            last = shift


def match(pair: Pair, y: int, x: int) -> tuple[int, int]:
    """Coarse search over every second shift, then a fine one; first of the best, row by row."""
    height, width = pair[0].shape
    top = int(np.clip(y - BLOCK // 2, 0, height - BLOCK))
    left = int(np.clip(x - BLOCK // 2, 0, width - BLOCK))
    best = (0, 0)
    for reach, step in ((REACH, 2), (1, 1)):
        cx, cy = best
        rows = range(max(cy - reach, -top), min(cy + reach, height - BLOCK - top) + 1, step)
        columns = range(max(cx - reach, -left), min(cx + reach, width - BLOCK - left) + 1, step)
        shifts = [best, *((sx, sy) for sy in rows for sx in columns)]
        found = [block_difference(pair, (top, left), (top + v, left + u)) for u, v in shifts]
        best = shifts[int(np.argmin(found))]
    return best


def fit_all(halves: Pair, quarters: Pair, found: Array, slots: Array, side: int) -> Array:
    height, width = halves[0].shape
    fits = np.empty((len(found), 7))
    corners = [
        (
            int(np.clip(r * side + (side - WINDOW) // 2, 1, height - WINDOW - 1)),
            int(np.clip(c * side + (side - WINDOW) // 2, 1, width - WINDOW - 1)),
        )
        for r, c in found
    ]
    for k, (r, c) in enumerate(found):
        fits[k] = fit(halves, *corners[k], 0, 0)
        small = abs(fits[k, [DX, DY]]).max() <= 1
        if is_explained(fits[k], kernels.WELL_EXPLAINED) and small:
            continue
        earlier = slots[r + 1, c], slots[r, c + 1], slots[r, c + 2], slots[r, c]
        follow(halves, *corners[k], earlier, fits, k)
        if not is_explained(fits[k], kernels.EXPLAINED):
            centre = (r * side + side // 2) // 2, (c * side + side // 2) // 2
            sx, sy = match(quarters, *centre)
            refine(halves, *corners[k], 2 * sx, 2 * sy, fits, k)
    for k, (r, c) in enumerate(found):
        if not is_explained(fits[k], kernels.WELL_EXPLAINED):
            around = slots[r, c + 1], slots[r + 1, c], slots[r + 1, c + 2], slots[r + 2, c + 1]
            follow(halves, *corners[k], around, fits, k)
    explained = np.array([is_explained(row, kernels.EXPLAINED) for row in fits], dtype=bool)
    left = np.array([left_by_light(halves, *corner) for corner in corners])
    lit = explained & (left <= kernels.LIGHT * fits[:, LEFT])
    if lit.sum() >= max(kernels.LEAST_LIT, kernels.COMMON * explained.sum()):
        fits[lit, LEFT] = np.inf
    return fits


def left_by_light(pair: Pair, top: int, left: int) -> float:
    """Energy of a change that gain, offset and slope of brightness do not explain."""
    before, after = (
        image[top : top + WINDOW, left : left + WINDOW].astype(float).ravel() for image in pair
    )
    y, x = np.indices((WINDOW, WINDOW)).reshape(2, -1)
    light = np.stack([before, x, y, np.ones_like(before)], axis=1)
    d = after - before
    found = np.linalg.lstsq(light, d)[0]
    if found[0] < kernels.LEAST_GAIN - 1:
        return np.inf
    return float(((d - light @ found) ** 2).sum())


def motions(found: Array, slots: Array, fits: Array, moved: Array) -> Array:
    """Motion of every gated cell at half resolution, from its neighbours' fits; NaN where none."""
    tensors = fits[:, [XX, XY, XY, YY]].reshape(-1, 2, 2)
    pulls = np.einsum("kij,kj->ki", tensors, fits[:, [DX, DY]])
    weights = 1 / (fits[:, LEFT] + 1)
    motion = np.full((len(found), 2), np.nan)
    for k in np.flatnonzero(moved):
        r, c = found[k]
        near = slots[r : r + 3, c : c + 3].ravel()
        near = near[near >= 0]
        near = near[moved[near]]
        tensor = np.einsum("k,kij->ij", weights[near], tensors[near])
        held = (1e-3 * np.trace(tensor) + 1e-9) * np.eye(2)
        motion[k] = np.linalg.solve(tensor + held, weights[near] @ pulls[near])
    return motion


def fine_direction(dx: float, dy: float) -> int:
    """The nearest of 12 directions, counter-clockwise; number 1 is up, rows grow downwards."""
    return int(np.floor((np.degrees(np.arctan2(-dx, -dy)) + 45) / 30)) % 12


def moves(found: Array, slots: Array, fits: Array, moved: Array, bounds: Array) -> Array:
    result = np.full(np.subtract(slots.shape, 2), -1)
    motion = 2 * motions(found, slots, fits, moved)
    for (r, c), (dx, dy) in zip(found[moved], motion[moved], strict=True):
        speed = np.searchsorted(bounds, np.hypot(dx, dy), side="right")
        result[r, c] = 16 * fine_direction(dx, dy) + speed
    return result


def moving_cells(
    halves: Pair,
    quarters: Pair,
    watched: Array,
    side: int,
    least_motion: float,
    bounds: Array,
    flat: float,
) -> tuple[Array, float]:
    rows, columns = watched.shape
    changes = cell_changes(*halves, rows, columns, side)
    found, slots = gated(changes, watched, gate(changes, kernels.LEAST_CHANGE * side**2))
    fits = fit_all(halves, quarters, found, slots, side)
    explained = np.array([is_explained(row, kernels.EXPLAINED) for row in fits], dtype=bool)
    moved = explained & (2 * np.hypot(fits[:, DX], fits[:, DY]) >= least_motion)
    result = moves(found, slots, fits, moved, bounds)
    result[tuple(found[flat_and_apart(found, fits, moved, flat)].T)] = -1
    return result, changes.mean() / side**2


def flat_and_apart(found: Array, fits: Array, moved: Array, flat: float) -> Array:
    """Which gated cells are flat, with fewer than two textured cells that move within two cells."""
    texture = fits[:, [XX, YY, ENERGY]].sum(axis=1) / WINDOW**2
    textured = found[moved & (texture >= kernels.TEXTURED)]
    near = (abs(found[:, None] - textured).max(axis=2) <= 2).sum(axis=1)
    return (texture < flat) & (near < 2)


def cell_motion(before: Any, after: Any, watched: Array, *settings: Any) -> tuple[Array, float]:
    if likeness(before.quarter, after.quarter) < kernels.LEAST_ALIKE:
        return np.full(watched.shape, -1), 255.0
    halves, quarters = zip(before, after, strict=True)
    return moving_cells(halves, quarters, watched, *settings)
