"""Whether the camera still shows its scene, or is moved, covered or frozen."""

from collections import deque

import numpy as np

from habitus.arrays import Array
from habitus.corpus.documents import Condition
from habitus.ingest.clips import Document

# Number of usable documents that the usual picture is the median of, and the least number of them.
PICTURES_REMEMBERED, PICTURES_NEEDED = 30, 5
# Seconds of identical frames after which a camera is frozen: a working sensor always has noise.
FROZEN_AFTER = 5.0
# The lens is covered, or the light is gone, if contrast falls below this share of the usual.
COVERED_BELOW = 0.3
# The camera was moved if the correlation of local detail with the usual picture is below this.
MOVED_BELOW = 0.35


class ConditionMonitor:
    """Judges the condition of a camera document by document, from the documents before.

    Parameters
    ----------
    clip
        Seconds of video per document.
    """

    def __init__(self, clip: float = 1.0) -> None:
        self.clip = clip
        self.pictures: deque[Array] = deque(maxlen=PICTURES_REMEMBERED)
        self.unchanged = 0.0
        self.usual: Array | None = None
        self.usual_detail = np.empty((0, 0))
        self.n_usable = 0

    def judge(self, document: Document) -> Condition:
        """Return the condition of the camera during the next document.

        The camera is frozen only if the frames of `FROZEN_AFTER` seconds are exactly identical: a
        quiet scene at night changes little, but not by exactly 0.
        """
        if document.n_frames == 0:
            return Condition.USABLE  # a gap: there is no picture to judge, and no word either
        self.unchanged = self.unchanged + self.clip if document.change == 0 else 0.0
        if self.unchanged >= FROZEN_AFTER:
            return Condition.FROZEN
        picture = document.thumbnail.astype(np.float64)
        condition = self._compare(picture)
        if condition is Condition.USABLE:
            self._remember(picture)
        return condition

    def _compare(self, picture: Array) -> Condition:
        """Return the condition by the contrast and the local detail of a picture."""
        if self.usual is None:
            return Condition.USABLE
        if picture.std() < COVERED_BELOW * self.usual.std():
            return Condition.COVERED
        one, other = _local_detail(picture), self.usual_detail
        correlation = (one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum() + 1e-9)
        return Condition.MOVED if correlation < MOVED_BELOW else Condition.USABLE

    def _remember(self, picture: Array) -> None:
        """Add a usable picture; update the usual picture every `PICTURES_NEEDED` documents."""
        self.pictures.append(picture)
        self.n_usable += 1
        if self.n_usable % PICTURES_NEEDED == 0:
            self.usual = np.median(np.stack(self.pictures), axis=0)
            self.usual_detail = _local_detail(self.usual)


def _local_detail(picture: Array) -> Array:
    """Return the difference from the local mean: edges and markings, independent of light."""
    padded = np.pad(picture, 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    return np.asarray(picture - windows.mean(axis=(2, 3)))
