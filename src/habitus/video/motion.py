"""Motion between two frames, per cell of a grid, by one of two methods behind one Protocol."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.compiled import compiled
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError
from habitus.video.cells import (
    ABOVE_MEDIAN,
    FAST_MOVE,
    LEAST_CHANGE,
    LEAST_MOTION,
    Pyramid,
    cell_changes,
    moving_cells,
    pyramid,
)
from habitus.video.reader import Frame

# Two frames this little alike are not of one view: a cut, a covered lens, a lost stretch.
LEAST_ALIKE = 0.5
# Seconds between frames that LEAST_MOTION is meant for: two frames at 25 a second.
USUAL_LAG = 0.08
# Pixels a second of the analysed frame from which motion is fast: between walking and driving on
# footage of this size; where exactly hardly matters, as every cell has its own habits.
FAST = 31.0
ROW = 4096


class Moved(NamedTuple):
    """What moved between two frames."""

    moves: NDArray[np.int8]
    """Rows x columns of cells: a Direction, 4 more where it is fast, -1 where nothing moved."""
    change: float
    """Mean absolute difference of the two frames in grey levels; exactly 0 for a frozen picture."""


class Motion(Protocol):
    """A way to see motion; frames are prepared once and compared twice."""

    def prepare(self, frame: Frame) -> Any:
        """What is kept of a frame."""
        ...

    def between(self, before: Any, after: Any, seconds: float) -> Moved:
        """Motion from one prepared frame to another that is `seconds` later."""
        ...


class CellMotion:
    """The fused cell kernel: a gate, least squares and block matching."""

    def __init__(self, vocabulary: Vocabulary, watched: NDArray[np.bool_]) -> None:
        self.vocabulary, self.watched = vocabulary, watched
        self.side = vocabulary.cell // 2

    def prepare(self, frame: Frame) -> Pyramid:
        """Half and quarter of the analysed frame."""
        return pyramid(frame.luma(), frame.width, frame.height, self.vocabulary.scale)

    def between(self, before: Pyramid, after: Pyramid, seconds: float) -> Moved:
        """Motion per cell; none across a cut."""
        least = least_motion(seconds)
        return Moved(*_moved(*before, *after, self.watched, self.side, least, FAST * seconds))


class DisMotion:
    """OpenCV's dense inverse search, mean flow of each cell, with the same gate: the reference.

    Without the gate it is the paper's plain optical flow, noise and all.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        watched: NDArray[np.bool_],
        *,
        preset: str = "medium",
        gated: bool = True,
    ) -> None:
        import cv2

        presets = {
            "ultrafast": cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
            "medium": cv2.DISOPTICAL_FLOW_PRESET_MEDIUM,
        }
        self.vocabulary, self.watched, self.gated = vocabulary, watched, gated
        self.cv2: Any = cv2
        self.flow: Any = cv2.DISOpticalFlow.create(presets[preset])

    def prepare(self, frame: Frame) -> Image:
        """The analysed frame, as far as cells cover it."""
        v = self.vocabulary
        luma = frame.luma()[: v.rows * v.cell * v.scale, : v.columns * v.cell * v.scale]
        return self._shrunk(np.ascontiguousarray(luma), v.scale)

    def between(self, before: Image, after: Image, seconds: float) -> Moved:
        """Motion per cell; none across a cut."""
        v, side = self.vocabulary, self.vocabulary.cell // 2
        if likeness(self._shrunk(before, 4), self._shrunk(after, 4)) < LEAST_ALIKE:
            return Moved(np.full((v.rows, v.columns), -1, dtype=np.int8), 255.0)
        flow = self.flow.calc(before, after, None)
        mean = flow.reshape(v.rows, v.cell, v.columns, v.cell, 2).mean(axis=(1, 3))
        changes = cell_changes(
            self._shrunk(before, 2), self._shrunk(after, 2), v.rows, v.columns, side
        )
        gate = max(ABOVE_MEDIAN * np.median(changes), LEAST_CHANGE * side * side)
        motion = np.hypot(mean[..., 0], mean[..., 1])
        moving = (motion >= least_motion(seconds)) & self.watched
        if self.gated:
            moving &= changes > gate
        moves = directions_of(mean) + FAST_MOVE * (motion >= FAST * seconds)
        seen = np.where(moving, moves, -1)
        return Moved(seen.astype(np.int8), float(changes.mean() / (side * side)))

    def _shrunk(self, picture: Image, by: int) -> Image:
        if by == 1:
            return picture
        size = (picture.shape[1] // by, picture.shape[0] // by)
        small: Image = self.cv2.resize(picture, size, interpolation=self.cv2.INTER_AREA)
        return small


METHODS: dict[str, Callable[[Vocabulary, NDArray[np.bool_]], Motion]] = {
    "cells": CellMotion,
    "dis": DisMotion,
    "flow": partial(DisMotion, gated=False),
}


def motion_by(name: str, vocabulary: Vocabulary, watched: NDArray[np.bool_]) -> Motion:
    """The named method for a grid."""
    if name not in METHODS:
        raise InvalidInputError(f"motion must be one of {', '.join(METHODS)}, found {name!r}")
    return METHODS[name](vocabulary, watched)


def least_motion(seconds: float) -> float:
    """Pixels that count as motion between frames so far apart: a speed, but no less than half."""
    return LEAST_MOTION * min(max(seconds / USUAL_LAG, 0.5), 1.0)


def directions_of(flow: NDArray[np.float32]) -> NDArray[np.int8]:
    """Up, left, down, right of flow vectors (last axis x, y); rows grow downwards."""
    dx, dy = flow[..., 0], flow[..., 1]
    sideways = np.where(dx > 0, 3, 1)
    return np.where(abs(dx) >= abs(dy), sideways, np.where(dy > 0, 2, 0)).astype(np.int8)


@compiled
def likeness(one: Image, other: Image) -> float:
    """Correlation of two pictures: 1 for the same view in any light, 1 where both are flat."""
    n = one.size
    a, b = one.reshape(-1), other.reshape(-1)
    sa, sb, saa, sbb, sab = 0.0, 0.0, 0.0, 0.0, 0.0
    for start in range(0, n, ROW):  # sums of a few whole numbers at a time fit 32 bits
        zero = np.uint32(0)
        ta, tb, taa, tbb, tab = zero, zero, zero, zero, zero
        for i in range(np.uint64(start), np.uint64(min(start + ROW, n))):
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
    if va < n and vb < n:  # under one grey level each
        return 1.0
    return float((sab - sa * sb / n) / np.sqrt(max(va, 1.0) * max(vb, 1.0)))


@compiled
def _moved(
    half: Image,
    quarter: Image,
    next_half: Image,
    next_quarter: Image,
    watched: NDArray[np.bool_],
    side: int,
    least: float,
    fast: float,
) -> tuple[NDArray[np.int8], float]:
    """Both in one call: nothing across a cut, else the cells that moved."""
    if likeness(quarter, next_quarter) < LEAST_ALIKE:
        return np.full(watched.shape, np.int8(-1)), 255.0
    return moving_cells(half, quarter, next_half, next_quarter, watched, side, least, fast)
