"""Backgrounds of cells, a slow and a fast one: what differs between them stands.

The slow background of a cell is its median brightness of the first two minutes, which then follows
it by a small step a document, up or down: a running median that what stands for minutes hardly
moves. The fast one is what the cell shows for some documents, unchanged: road, or the car that
stands on it, also while others pass in front. A change of light that the frame has in common is no
change: the medians of what changed in its darker and in its brighter half say how bright anything
would be in the light of now, and all that is remembered is kept in that light.
"""

from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Image
from habitus.corpus.documents import Condition
from habitus.corpus.stands import StandingCells
from habitus.corpus.vocabulary import Vocabulary
from habitus.ingest.clips import Document

WARM_UP = 120.0
"""Seconds of a sequence from which the background is known."""
DIFFERS, SAME = 8.0, 4.0
"""Grey levels by which a thing differs from the background at least, and from itself at most."""
STEADY = 3
"""Documents for which a cell is unchanged before what it shows is the fast background."""
HIDDEN = 6
"""Documents for which it may be hidden by what passes."""
FOLLOWS = 1 / 8
"""Share of a change within `SAME` by which the fast background follows."""
STEP = 1 / 32
"""Grey levels a second by which the slow background follows."""
RELIT = 0.3
"""Share of the cells from which on a change is one of light or of the view: all begins anew."""
LEAST_SLOPE, MOST_SLOPE = -0.5, 1.0
"""Limits of the change of light per grey level from one document to the next."""


class Backgrounds:
    """What stands in the documents of one camera, one after the other.

    Parameters
    ----------
    vocabulary
        Where the cells are.
    clip
        Seconds of video per document.
    watched
        The cells to watch; all where None.
    """

    def __init__(
        self, vocabulary: Vocabulary, clip: float = 1.0, watched: Flags | None = None
    ) -> None:
        self.grid, self.clip = (vocabulary.rows, vocabulary.columns), clip
        every = np.ones(vocabulary.n_cells, dtype=np.bool_)
        self.watched = every if watched is None else watched.reshape(-1)
        self.new_sequence()

    def new_sequence(self) -> None:
        """Begin anew: the next document does not follow the last one."""
        self._first: list[Array] = []
        """Brightness of the first documents, until there are enough."""
        self._number, self._known = 0, False

    def take(self, document: Document, condition: Condition = Condition.USABLE) -> StandingCells:
        """Return what stands in the next document of the sequence.

        A camera that is not usable begins anew: it may have been moved.
        """
        if condition is not Condition.USABLE:
            self.new_sequence()
            return StandingCells.unknown()
        self._number += 1
        if document.n_frames == 0:  # a gap: nothing is seen, and nothing is forgotten
            return StandingCells.unknown()._replace(known=self._known)
        brightness = cell_means(document.thumbnail, self.grid)
        if self._known:
            return self._compared(brightness)
        self._first.append(brightness)
        if len(self._first) * self.clip >= WARM_UP:
            self._begin(np.median(self._first, axis=0))
        return StandingCells.unknown()

    def _begin(self, slow: Array) -> None:
        """Go on from the median of the first documents."""
        self._first, self._known = [], True
        self.slow, self.former = slow, slow.copy()
        self.fast, self.candidate = np.full((2, slow.size), np.nan)
        self.since, self.came, self.seen, self.appeared = np.zeros((4, slow.size), dtype=np.int64)
        self.standing = np.zeros(slow.size, dtype=np.bool_)

    def _compared(self, brightness: Array) -> StandingCells:
        """Compare a document with both backgrounds, which then follow it."""
        light = Light.between(self.slow, brightness)
        for remembered in (self.slow, self.former, self.fast, self.candidate):
            remembered += light.change(remembered)
        if (np.abs(brightness - self.slow) > DIFFERS).mean() > RELIT:
            self.new_sequence()
            return StandingCells.unknown()
        self._follow(brightness)
        apart = np.minimum(np.abs(self.fast - self.slow), np.abs(self.fast - self.former))
        differs, seen = apart > DIFFERS, self.seen == self._number
        # Where a thing left, the background is as before it came, and no new thing.
        came = seen & differs & (self.since > self.came)
        np.copyto(self.former, self.slow, where=came)
        np.copyto(self.came, self.since, where=came)
        np.copyto(self.standing, differs, where=seen)
        self.slow += np.sign(brightness - self.slow) * STEP * self.clip
        cells = np.flatnonzero(self.standing & self.watched)
        return StandingCells(cells, self._number - self.since[cells] + 1, True)

    def _follow(self, value: Array) -> None:
        """Let the fast background follow what the cells show."""
        now = self._number
        same = np.abs(value - self.fast) <= SAME
        goes_on = np.abs(value - self.candidate) <= SAME
        np.copyto(self.appeared, now, where=~goes_on | same)
        np.copyto(self.candidate, value, where=~goes_on)
        new = ~same & (now - self.appeared + 1 >= STEADY)
        np.add(self.fast, FOLLOWS * (value - self.fast), out=self.fast, where=same)
        np.copyto(self.fast, self.candidate, where=new)
        np.copyto(self.since, self.appeared, where=new)
        np.copyto(self.seen, now, where=same | new)
        lost = now - self.seen > HIDDEN
        np.copyto(self.fast, np.nan, where=lost)
        self.standing &= ~(new | lost)


def cell_means(thumbnail: Image, grid: tuple[int, int]) -> Array:
    """Return the brightness of each cell, row by row, from that of parts of cells."""
    rows, columns = grid
    height, width = thumbnail.shape
    parts = thumbnail.reshape(rows, height // rows, columns, width // columns)
    return np.asarray(parts.mean(axis=(1, 3)).reshape(-1), dtype=np.float64)


class Light(NamedTuple):
    """A change of light that a frame has in common: linear in the brightness before."""

    offset: float
    slope: float
    middle: float
    """Brightness that changes by `offset`."""

    @classmethod
    def between(cls, before: Array, after: Array) -> "Light":
        """Return the change of light from one brightness of cells to another.

        Examples
        --------
        >>> road = np.array([10.0, 20.0, 30.0, 100.0, 110.0, 120.0])
        >>> light = Light.between(road, 1.5 * road + 10)
        >>> (road + light.change(road)).tolist()
        [25.0, 40.0, 55.0, 160.0, 175.0, 190.0]
        """
        changed, bright = after - before, before > np.median(before)
        dark = ~bright
        if not bright.any():
            return cls(float(np.median(changed)), 0.0, 0.0)
        offset, middle = float(np.median(changed[dark])), float(np.median(before[dark]))
        apart = max(float(np.median(before[bright])) - middle, 1.0)
        slope = (float(np.median(changed[bright])) - offset) / apart
        return cls(offset, min(max(slope, LEAST_SLOPE), MOST_SLOPE), middle)

    def change(self, brightness: Array) -> Array:
        """Return by how much brightness changes."""
        return np.asarray(self.offset + self.slope * (brightness - self.middle))
