"""Motion between two frames, per cell of a grid, by one of two methods behind one Protocol."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import compiled
from habitus.errors import InvalidInputError
from habitus.video.cells import ABOVE_MEDIAN, LEAST_CHANGE, LEAST_MOTION, cell_changes, cell_motion
from habitus.video.frames import Frame, Image
from habitus.video.pyramid import Pyramid, pyramid
from habitus.words import Vocabulary

# Two frames this little alike are not of one view: a cut, a covered lens, a lost stretch.
LEAST_ALIKE = 0.5
# Seconds between frames that LEAST_MOTION is meant for: two frames at 25 a second.
USUAL_LAG = 0.08


class Moved(NamedTuple):
    """What moved between two frames."""

    directions: NDArray[np.int8]
    """Rows x columns of cells: a Direction, or -1 where nothing moved."""
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
        if likeness(before.quarter, after.quarter) < LEAST_ALIKE:
            return Moved(np.full(self.watched.shape, -1, dtype=np.int8), 255.0)
        least = least_motion(seconds)
        return Moved(*cell_motion(before, after, self.watched, self.side, least))


class DisMotion:
    """OpenCV's dense inverse search, mean flow of each cell, with the same gate: the reference."""

    def __init__(
        self, vocabulary: Vocabulary, watched: NDArray[np.bool_], preset: str = "medium"
    ) -> None:
        import cv2

        presets = {"ultrafast": cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST,
                   "medium": cv2.DISOPTICAL_FLOW_PRESET_MEDIUM}  # fmt: skip
        self.vocabulary, self.watched = vocabulary, watched
        self.flow = cv2.DISOpticalFlow.create(presets[preset])
        self.resize = cv2.resize
        self.area = cv2.INTER_AREA

    def prepare(self, frame: Frame) -> Image:
        """The analysed frame."""
        v = self.vocabulary
        luma = np.ascontiguousarray(frame.luma()[:, : frame.width])
        size = (frame.width // v.scale, frame.height // v.scale)
        return luma if v.scale == 1 else self.resize(luma, size, interpolation=self.area)

    def between(self, before: Image, after: Image, seconds: float) -> Moved:
        """Motion per cell; none across a cut."""
        v = self.vocabulary
        height, width = v.rows * v.cell, v.columns * v.cell
        quarter, half = (width // 4, height // 4), (width // 2, height // 2)
        small = [
            self.resize(i[:height, :width], quarter, interpolation=self.area)
            for i in (before, after)
        ]
        if likeness(*small) < LEAST_ALIKE:
            return Moved(np.full((v.rows, v.columns), -1, dtype=np.int8), 255.0)
        flow = self.flow.calc(before, after, None)[:height, :width]
        mean = flow.reshape(v.rows, v.cell, v.columns, v.cell, 2).mean(axis=(1, 3))
        halves = [
            self.resize(i[:height, :width], half, interpolation=self.area) for i in (before, after)
        ]
        changes = cell_changes(*halves, v.rows, v.columns, v.cell // 2)
        gate = max(ABOVE_MEDIAN * np.median(changes), LEAST_CHANGE * (v.cell // 2) ** 2)
        moved = (
            (changes > gate)
            & self.watched
            & (np.hypot(*np.moveaxis(mean, 2, 0)) >= least_motion(seconds))
        )
        return Moved(
            np.where(moved, directions_of(mean), -1).astype(np.int8),
            float(changes.mean() / (v.cell // 2) ** 2),
        )


METHODS = {"cells": CellMotion, "dis": DisMotion}


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
    sa = sb = saa = sbb = sab = 0
    for i in range(n):
        x, y = np.int64(a[i]), np.int64(b[i])
        sa += x
        sb += y
        saa += x * x
        sbb += y * y
        sab += x * y
    va, vb = saa - sa * sa / n, sbb - sb * sb / n
    if va < n and vb < n:  # under one grey level each
        return 1.0
    return (sab - sa * sb / n) / np.sqrt(max(va, 1.0) * max(vb, 1.0))
