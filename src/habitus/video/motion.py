"""Methods of motion estimation between two frames, per cell of a grid, behind one Protocol."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Flags, Image
from habitus.corpus.vocabulary import N_SPEEDS, SPEED_BOUNDS, Vocabulary
from habitus.errors import InvalidInputError
from habitus.video.cells import (
    HALF_ANGLE,
    LEAST_ALIKE,
    LEAST_MOTION,
    PairMotion,
    PyramidBuffer,
    Scratch,
    cell_changes,
    likeness,
)
from habitus.video.reader import Frame

# Seconds between two frames that LEAST_MOTION is meant for: every second frame at 25 per second.
USUAL_LAG = 0.08
BOUNDS = np.array(SPEED_BOUNDS)


class CellMoves(NamedTuple):
    """Motion between two frames."""

    moves: NDArray[np.int16]
    """Rows x columns of cells: a fine direction times N_SPEEDS, plus the speed; -1 where nothing
    moved."""
    change: float
    """Mean absolute difference of the frames in grey levels; exactly 0 for a frozen picture."""


class MotionMethod(Protocol):
    """A method of motion estimation. Each frame is prepared once and compared twice.

    What is kept of a frame is valid until the next but one is prepared.
    """

    def prepare(self, frame: Frame) -> Any:
        """Return what is kept of a frame."""
        ...

    def between(self, before: Any, after: Any, seconds: float) -> CellMoves:
        """Return the motion from one prepared frame to another that is `seconds` later."""
        ...


class CellMotion:
    """The default method: a change gate, Lucas-Kanade and block matching in compiled kernels.

    Parameters
    ----------
    vocabulary
        The grid of cells.
    watched
        Rows x columns: the cells to examine.
    """

    def __init__(self, vocabulary: Vocabulary, watched: Flags) -> None:
        v = vocabulary
        self.frames = [PyramidBuffer(v.width, v.height, v.scale) for _ in range(2)]
        one, other = (frame.pyramid for frame in self.frames)
        self.motion = PairMotion((one, other), watched, v.cell // 2, BOUNDS)
        self.latest = 0

    def prepare(self, frame: Frame) -> int:
        """Keep half and quarter resolution of the analysed frame, and return where: 0 or 1."""
        self.latest = 1 - self.latest
        pyramid = self.frames[self.latest]
        memory = None if pyramid.copied else frame.luma_memory()
        if memory is None:
            pyramid.fill(frame.luma())
        else:
            pyramid.fill_from(memory[0], (frame.height, memory[1]))
        return self.latest

    def between(self, before: int, after: int, seconds: float) -> CellMoves:
        """Return the motion of each cell; none across a cut."""
        return CellMoves(*self.motion.found(after, least_motion(seconds), seconds))


class DisMotion:
    """Mean optical flow of each cell by OpenCV's dense inverse search (DIS): the reference method.

    Parameters
    ----------
    vocabulary
        The grid of cells.
    watched
        Rows x columns: the cells to examine.

    Notes
    -----
    There is no change gate, as in `CellMotion`: this is the plain optical flow of the paper, noise
    included.
    """

    def __init__(self, vocabulary: Vocabulary, watched: Flags) -> None:
        import cv2

        self.vocabulary, self.watched = vocabulary, watched
        self.scratch = Scratch.of(vocabulary.rows, vocabulary.columns, vocabulary.cell // 2)
        self.cv2: Any = cv2
        self.flow: Any = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)

    def prepare(self, frame: Frame) -> Image:
        """Return the part of the analysed frame that the cells cover."""
        v = self.vocabulary
        luma = frame.luma()[: v.rows * v.cell_side, : v.columns * v.cell_side]
        return self._resized(np.ascontiguousarray(luma), 1 / v.scale)

    def between(self, before: Image, after: Image, seconds: float) -> CellMoves:
        """Return the motion of each cell; none across a cut."""
        v, side = self.vocabulary, self.vocabulary.cell // 2
        if likeness(self._resized(before, 1 / 4), self._resized(after, 1 / 4)) < LEAST_ALIKE:
            return CellMoves(np.full((v.rows, v.columns), -1, dtype=np.int16), 255.0)
        flow = self.flow.calc(before, after, None)
        mean = flow.reshape(v.rows, v.cell, v.columns, v.cell, 2).mean(axis=(1, 3))
        halves = self._resized(before, 1 / 2), self._resized(after, 1 / 2)
        changes = self.scratch.changes
        cell_changes(*halves, side, self.scratch.line, changes)
        speed = np.hypot(mean[..., 0], mean[..., 1])
        moving = (speed >= least_motion(seconds)) & self.watched
        # One bound after the other: compared as the single-precision numbers that speeds are.
        speeds = sum((speed >= bound * seconds).astype(np.int16) for bound in SPEED_BOUNDS)
        moves = N_SPEEDS * directions_of(mean) + speeds
        found = np.where(moving, moves, -1).astype(np.int16)
        return CellMoves(found, float(changes.mean() / (side * side)))

    def _resized(self, image: Image, by: float) -> Image:
        """Return the image at a multiple or a fraction of its size."""
        if by == 1:
            return image
        size = (int(image.shape[1] * by), int(image.shape[0] * by))
        how = self.cv2.INTER_AREA if by < 1 else self.cv2.INTER_LINEAR
        resized: Image = self.cv2.resize(image, size, interpolation=how)
        return resized


METHODS: dict[str, Callable[[Vocabulary, Flags], MotionMethod]] = {
    "cells": CellMotion,
    "flow": DisMotion,
}


def motion_by(name: str, vocabulary: Vocabulary, watched: Flags) -> MotionMethod:
    """Return a method of motion estimation by its name.

    Parameters
    ----------
    name
        "cells" (the default elsewhere) or "flow" (OpenCV's dense flow, as in the paper).
    vocabulary
        The grid of cells.
    watched
        Rows x columns: the cells to examine.

    Returns
    -------
    MotionMethod
        The method, ready for the frames of one video.

    Raises
    ------
    InvalidInputError
        If there is no such method.

    Examples
    --------
    >>> grid = Vocabulary.of_frame(360, 288)
    >>> type(motion_by("cells", grid, np.ones((36, 45), dtype=bool))).__name__
    'CellMotion'
    """
    if name not in METHODS:
        raise InvalidInputError(
            f"motion must be one of {', '.join(METHODS)}, found {name!r}", parameter="motion"
        )
    return METHODS[name](vocabulary, watched)


def least_motion(seconds: float) -> float:
    """Return the least pixels of motion between frames `seconds` apart.

    A constant speed up to the usual lag, but at least half of LEAST_MOTION.

    Examples
    --------
    >>> least_motion(1.0), least_motion(0.08), least_motion(0.01)
    (0.6, 0.6, 0.3)
    """
    return LEAST_MOTION * min(max(seconds / USUAL_LAG, 0.5), 1.0)


def directions_of(flow: NDArray[np.float32]) -> NDArray[np.int16]:
    """Return the fine direction of each flow vector (last axis: x, y; rows grow downwards).

    The same as `habitus.video.cells.fine_direction` of each.

    Examples
    --------
    >>> directions_of(np.array([[0.0, -1.0], [-2.0, 1.0], [0.5, 3.0], [1.0, 1.0]])).tolist()
    [1, 5, 7, 9]
    """
    dx, dy = flow[..., 0], flow[..., 1]
    sideways = abs(dx) >= abs(dy)
    direction = np.where(sideways, np.where(dx > 0, 3, 1), np.where(dy > 0, 2, 0))
    turned = np.choose(direction, [-dx, dy, dx, -dy])
    third = np.where(turned > 0, 2, 0)
    third[abs(turned) <= HALF_ANGLE * np.where(sideways, abs(dx), abs(dy))] = 1
    return (3 * direction + third).astype(np.int16)
