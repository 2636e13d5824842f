"""Motion of cells between two frames that are given whole, one pair at a time."""

from typing import Any

import numpy as np

from habitus.video.cells import FLAT, PairMotion, Pyramid, PyramidBuffer


def pyramid(luma: Any, width: int, height: int, scale: float) -> Pyramid:
    """Return half and quarter resolution of one frame."""
    return PyramidBuffer(width, height, scale).fill(luma)


def cell_motion(
    before: Pyramid,
    after: Pyramid,
    watched: Any,
    side: int,
    least_motion: float,
    bounds: Any = np.empty(0),  # noqa: B008
    flat: float = FLAT,
) -> tuple[Any, float]:
    """Return the move of each cell in a second, and the mean change of the frame."""
    return PairMotion((before, after), watched, side, bounds, flat).found(1, least_motion, 1.0)
