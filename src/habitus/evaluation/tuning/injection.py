"""Anomalies made from the footage's own things.

A thing is an array of words: documents x rows x columns x moves, a move being a direction and,
where that is told apart, a speed, slow and fast side by side. Functions here change where,
when and which way it moves; none of them changes how many words it has, but `weighed`.
"""

import numpy as np
from numpy.typing import NDArray

from habitus.model.parameters import Array
from habitus.words import Direction

OPPOSITE = [Direction.DOWN, Direction.RIGHT, Direction.UP, Direction.LEFT]
"""Of each direction, in their order."""


def reversed_way(thing: Array) -> Array:
    """The same path the other way: last document first, every direction turned round."""
    by_direction = thing[::-1].reshape(*thing.shape[:3], len(Direction), -1)
    return np.asarray(by_direction[..., OPPOSITE, :].reshape(thing.shape))


def moved(thing: Array, rows: int, columns: int) -> Array:
    """The same thing so many cells down and to the right; what leaves the frame is lost."""
    out = np.zeros_like(thing)
    (to_rows, from_rows), (to_columns, from_columns) = (
        (slice(max(by, 0), max(n + min(by, 0), 0)), slice(max(-by, 0), max(n - max(by, 0), 0)))
        for by, n in zip((rows, columns), thing.shape[1:3], strict=True)
    )
    out[:, to_rows, to_columns] = thing[:, from_rows, from_columns]
    return out


def weighed(thing: Array, strength: float, rng: np.random.Generator) -> Array:
    """The same thing with so many times its words, rounded to whole ones by chance."""
    return np.asarray(np.floor(thing * strength + rng.random(thing.shape)))


def straight_path(
    start: Array,
    end: Array,
    *,
    speed: float,
    width: float,
    n_words: float,
    speeds: Array,
    shape: tuple[int, int],
) -> Array:
    """A thing that goes straight from one place to another.

    Places are rows and columns; `speed` is cells a document, `width` cells across, `n_words` those
    of a document, spread evenly over the cells swept; `speeds` are the shares of slow and fast
    words; `shape` is rows and columns of the frame. It takes as many whole documents as the way
    needs.
    """
    way = np.asarray(end, dtype=np.float64) - start
    length = float(np.hypot(*way))
    n = max(round(length / speed), 1)
    marks = start + np.linspace(0, 1, n + 1)[:, None] * way
    cells = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    thing = np.zeros((n, *shape, len(Direction), len(speeds)))
    for k in range(n):
        swept = _distance(cells, marks[k], marks[k + 1]) <= max(width, 1.0) / 2
        thing[k, :, :, heading(way)] = n_words * swept[..., None] / max(swept.sum(), 1) * speeds
    return thing.reshape(n, *shape, -1)


def heading(way: Array) -> Direction:
    """The direction nearest to a way of rows and columns."""
    down, right = float(way[0]), float(way[1])
    if abs(down) >= abs(right):
        return Direction.DOWN if down > 0 else Direction.UP
    return Direction.RIGHT if right > 0 else Direction.LEFT


def _distance(cells: NDArray[np.int64], start: Array, end: Array) -> Array:
    """Of each cell from the line between two places."""
    way = end - start
    along = np.clip((cells - start) @ way / (way @ way), 0, 1)
    return np.asarray(np.hypot(*np.moveaxis(cells - (start + along[..., None] * way), -1, 0)))
