"""Backgrounds of cells, slow and fast: what differs between them stands.

The fast background of a cell is what it shows for some documents, unchanged: road, or the car that
stands on it, also while others pass in front. The slow one is what it shows when nothing stands: at
first, what it showed most often in two minutes; then it follows the fast one as long as that hardly
differs. What differs for ten minutes becomes the slow background, as a parked car does. The one
before is remembered: who leaves uncovers it, and it is no new thing.

A change of light that the frame has in common is no change: the medians of what changed in its
darker and in its brighter half say how bright anything would be in the light of now, and all that
is remembered is kept in that light.
"""

from typing import NamedTuple, Self

import numpy as np

from habitus.arrays import Array, Flags, Image
from habitus.corpus.documents import Condition
from habitus.corpus.stands import StandingCells
from habitus.corpus.vocabulary import Vocabulary
from habitus.ingest.clips import Document, DocumentSettings
from habitus.video import watched_cells

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
STEP = 1 / 8
"""Grey levels a second by which the slow background follows."""
ABSORBED = 600.0
"""Seconds after which what stands is the slow background."""
OFTEN, SOMETIMES = 1 / 3, 1 / 6
"""Shares of the first documents that the slow background, and the one before it, is seen in."""
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

    @classmethod
    def of(cls, vocabulary: Vocabulary, settings: DocumentSettings) -> Self:
        """Return those of a camera whose documents are extracted like that."""
        watched = watched_cells(vocabulary, mask=settings.mask, region=settings.region)
        return cls(vocabulary, settings.clip, watched)

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
            self._begin(np.array(self._first))
        return StandingCells.unknown()

    def _begin(self, first: Array) -> None:
        """Go on from the first documents: documents x cells."""
        self._first, self._known = [], True
        self.remembered = np.full((4, first.shape[1]), np.nan)
        self.slow, self.former, self.fast, self.candidate = self.remembered
        self.remembered[:2] = two_modes(first)
        self.since, self.seen, self.appeared = np.zeros((3, self.slow.size), dtype=np.int64)
        self.standing = np.zeros(self.slow.size, dtype=np.bool_)

    def _compared(self, brightness: Array) -> StandingCells:
        """Compare a document with both backgrounds, which then follow it."""
        self.remembered += Light.between(self.slow, brightness).change(self.remembered)
        relit = np.count_nonzero(np.abs(brightness - self.slow) > DIFFERS) / brightness.size
        if relit > RELIT:
            self.new_sequence()
            return StandingCells.unknown()
        self._follow(brightness)
        seen, ages = self.seen == self._number, self._number - self.since + 1
        differs = np.abs(self.fast - self.slow) > DIFFERS
        uncovered = differs & ~(np.abs(self.fast - self.former) > DIFFERS)
        absorbed = differs & (ages * self.clip > ABSORBED)
        self._exchange(seen & (uncovered | absorbed))
        differs &= ~(uncovered | absorbed)
        np.copyto(self.standing, differs, where=seen)
        most = STEP * self.clip
        step = np.minimum(np.maximum(self.fast - self.slow, -most), most)
        np.add(self.slow, step, out=self.slow, where=seen & ~differs)
        cells = np.flatnonzero(self.standing & self.watched)
        return StandingCells(cells, ages[cells], True)

    def _exchange(self, where: Flags) -> None:
        """Make the fast background of some cells the slow one, and remember that."""
        np.copyto(self.former, self.slow, where=where)
        np.copyto(self.slow, self.fast, where=where)

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
    if (height, width) == grid:
        return thumbnail.reshape(-1).astype(np.float64)
    parts = thumbnail.reshape(rows, height // rows, columns, width // columns)
    return np.asarray(parts.mean(axis=(1, 3)).reshape(-1), dtype=np.float64)


def two_modes(values: Array) -> Array:
    """Return the value that each column has most often, and the one that it has next to that.

    A mode is the middle of the shortest interval that holds `OFTEN`, or `SOMETIMES`, of the values;
    where no other value is as frequent, both are one.

    Examples
    --------
    >>> two_modes(np.array([[3.0], [9.0], [3.5], [40.0], [3.0], [39.0]])).ravel().tolist()
    [3.25, 39.5]
    """
    ordered, n = np.sort(values, axis=0), len(values)
    first = _middle_of_shortest(ordered, max(round(OFTEN * n), 1))
    rest = np.sort(np.where(np.abs(ordered - first) <= SAME, np.nan, ordered), axis=0)
    second = _middle_of_shortest(rest, max(round(SOMETIMES * n), 1))
    return np.stack([first, np.where(np.isnan(second), first, second)])


def _middle_of_shortest(ordered: Array, steps: int) -> Array:
    """Return the middle of the shortest interval of so many steps in each column; NaN if none."""
    widths = ordered[steps:] - ordered[:-steps]
    start = np.where(np.isnan(widths), np.inf, widths).argmin(axis=0)
    columns = np.arange(ordered.shape[1])
    return np.asarray((ordered[start, columns] + ordered[start + steps, columns]) / 2)


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
        changed, ordered = after - before, np.sort(before)
        bright = before > _middle(ordered)
        n_dark = len(before) - np.count_nonzero(bright)
        if n_dark == len(before):
            return cls(_median(changed), 0.0, 0.0)
        offset, middle = _median(changed[~bright]), _middle(ordered[:n_dark])
        apart = max(_middle(ordered[n_dark:]) - middle, 1.0)
        slope = (_median(changed[bright]) - offset) / apart
        return cls(offset, min(max(slope, LEAST_SLOPE), MOST_SLOPE), middle)

    def change(self, brightness: Array) -> Array:
        """Return by how much brightness changes."""
        return np.asarray(self.offset + self.slope * (brightness - self.middle))


def _median(values: Array) -> float:
    """Return `np.median` of numbers in a third of its time; their order changes."""
    middle = len(values) // 2
    values.partition(middle)
    high: float = values.item(middle)
    return high if len(values) % 2 else (float(values[:middle].max()) + high) / 2


def _middle(ordered: Array) -> float:
    """Return the median of numbers in ascending order."""
    n = len(ordered)
    middle: float = (ordered.item((n - 1) // 2) + ordered.item(n // 2)) / 2
    return middle
