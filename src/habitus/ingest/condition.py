"""Whether the camera still sees its scene: moved, covered and frozen pictures."""

from collections import deque
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from habitus.ingest.clips import Document

# Documents in good condition that the scene is known from, and those needed to judge.
REMEMBERED, NEEDED = 30, 5
# Seconds without any change at all that no living camera shows.
FROZEN_AFTER = 5.0
# Contrast under this share of the usual: the lens is covered, or the light is gone.
COVERED_BELOW = 0.3
# Correlation of fine structure with the usual picture, below which the view is another one.
MOVED_BELOW = 0.35


class Condition(IntEnum):
    """Of the camera during a document; all but FINE neither teach nor alarm."""

    FINE = 0
    MOVED = 1
    COVERED = 2
    FROZEN = 3


class Watch:
    """Judges document after document, from those before it."""

    def __init__(self, clip: float = 1.0) -> None:
        self.clip = clip
        self.pictures: deque[NDArray[np.float64]] = deque(maxlen=REMEMBERED)
        self.unchanged = 0.0
        self.usual: NDArray[np.float64] | None = None
        self.usual_fine = np.empty((0, 0))
        self.n_fine = 0

    def judge(self, document: Document) -> Condition:
        """The camera's condition during this document."""
        if document.n_frames == 0:
            return Condition.FINE  # nothing was seen: it is empty already
        self.unchanged = self.unchanged + self.clip if document.change == 0 else 0.0
        picture = document.thumbnail.astype(np.float64)
        if self.unchanged >= FROZEN_AFTER:
            return Condition.FROZEN
        condition = self._compare(picture)
        if condition is Condition.FINE:
            self.pictures.append(picture)
            self.n_fine += 1
            if self.n_fine >= NEEDED and self.n_fine % NEEDED == 0:
                self.usual = np.median(np.stack(self.pictures), axis=0)
                self.usual_fine = _fine(self.usual)
        return condition

    def _compare(self, picture: NDArray[np.float64]) -> Condition:
        if self.usual is None:
            return Condition.FINE
        if picture.std() < COVERED_BELOW * self.usual.std():
            return Condition.COVERED
        one, other = _fine(picture), self.usual_fine
        alike = (one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum() + 1e-9)
        return Condition.MOVED if alike < MOVED_BELOW else Condition.FINE


def _fine(picture: NDArray[np.float64]) -> NDArray[np.float64]:
    """What differs from the neighbourhood: edges and marks, not light."""
    padded = np.pad(picture, 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    return np.asarray(picture - windows.mean(axis=(2, 3)))
