"""What is true of a scene: its anomalies, when they are seen and where."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.lab.junction.layout import Points
from habitus.lab.junction.raster import Plane, stencil
from habitus.lab.junction.sprites import KIND, X, Y, in_view, placed, seen

FEWEST = 16
"""Pixels of a thing that must be seen for it to count as seen: a quarter of a cell."""


class Anomaly(NamedTuple):
    """Something abnormal, as long as it is seen to be."""

    kind: str
    start: float
    end: float
    """In seconds: from its first frame to the end of its last."""
    boxes: NDArray[np.int64]
    """Frames in which it is seen x 5: frame number, left, top, right, bottom, in pixels of the part
    that is seen; right and bottom are exclusive."""

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of all its boxes together."""
        left, top = self.boxes[:, 1:3].min(axis=0)
        right, bottom = self.boxes[:, 3:5].max(axis=0)
        return int(left), int(top), int(right), int(bottom)


@compiled
def visible(
    mask: Plane, rows: Any, depths: Any, things: Points, order: Any, which: int, view: Points,
    quads: Points, swings: Points, ranges: Any,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Number of pixels of a thing that nothing hides, and their box; `mask` stays zero."""
    xs, ys, at = np.empty(4), np.empty(4), np.empty((4, 3))
    found, reach = False, 0.0
    for i in order:
        found = found or i == which
        thing = things[i]
        if not found or not in_view(thing, view):
            continue
        if i == which:
            _, _, reach = seen(view, thing[X], thing[Y], 0.0)
        first, last = ranges[int(thing[KIND])]
        for q in range(first, last):
            placed(thing, quads[q], swings[q], at)
            for k in range(4):
                xs[k], ys[k], _ = seen(view, at[k, 0], at[k, 1], at[k, 2])
            # what is nearer sets the mask to 2, which no longer is the thing
            stencil(mask, rows, xs, ys, 4, 1 if i == which else 2)
    return _extent(mask, depths, reach - 1.0)


@compiled
def _extent(mask: Plane, depths: Any, reach: float) -> tuple[int, int, int, int, int]:
    """Count and box of the ones of a mask that nothing standing hides; the mask becomes zero."""
    height, width = mask.shape
    n, left, top, right, bottom = 0, width, height, 0, 0
    for y in range(height):
        for x in range(width):
            if mask[y, x] == 1 and depths[y, x] > reach:
                n += 1
                left, right = min(left, x), max(right, x + 1)
                top, bottom = min(top, y), max(bottom, y + 1)
            mask[y, x] = 0
    return n, left, top, right, bottom
