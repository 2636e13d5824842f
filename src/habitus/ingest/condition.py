"""Whether the camera still shows its scene, or is moved, covered or frozen."""

from collections import Counter, deque
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Image
from habitus.corpus.documents import Condition
from habitus.corpus.looks import compared, edges_of, median_picture
from habitus.ingest.clips import Document

# Number of usable documents that the usual picture is the median of, and the least number of them.
PICTURES_REMEMBERED, PICTURES_NEEDED = 30, 5
# Seconds of identical frames after which a camera is frozen, where its noise was seen before.
FROZEN_AFTER = 5.0
# The same where it was not: codecs leave out the noise of a picture that hardly changes. And by
# which factor that is longer than the longest time of identical frames that ended by itself.
FROZEN_STILL, FROZEN_FACTOR = 60.0, 4.0
# Grey levels of change that are noise which codecs keep, and from which on it is no stillness.
NOISE_ABOVE, STILL_BELOW = 0.05, 1.0
# Documents for which noise is remembered.
NOISE_REMEMBERED = 60
# The lens is covered, or the light is gone, if contrast falls below this share of the usual.
COVERED_BELOW = 0.3
# Grey levels of contrast below which a picture shows nothing at all.
PLAIN_BELOW = 1.0
# The light is gone, or blinds, if a picture without contrast is darker or brighter than this.
DARK_BELOW, BLINDING_ABOVE = 40.0, 215.0
# Seconds until that is a fault: the time in which a camera turns to infrared, or its exposure.
DARK_AFTER = 8.0
# The camera was moved if the correlation of local detail with the usual picture is below this,
MOVED_BELOW = 0.35
# and the directions of edges do not fit best without a shift, by so many standard deviations.
SAME_VIEW = 3.0
# The camera was rolled about its lens if the detail fits the usual picture, turned by so many
# degrees to either side, better than as it is, by this much.
ROLL, ROLLED_ABOVE = 4.0, 0.1
# Seconds for which another view must be seen before it becomes the usual one.
STEADY_AFTER = 60.0
# Number of views that are remembered: a camera that returns to one of them is usable at once.
VIEWS_REMEMBERED = 32
# Cells by which two views of one scene may be shifted, each way.
SHIFT = 2
# Width in cells of the square that a local mean is taken over.
WINDOW = 5


class Look(NamedTuple):
    """A picture of cells, and what it is compared by."""

    picture: Image | Array
    """Mean brightness of each cell."""
    detail: Array
    """Its local detail."""
    contrast: float

    @classmethod
    def of(cls, picture: Image | Array) -> Self:
        """Return a picture with its detail and contrast."""
        return cls(picture, _local_detail(picture), float(picture.std()))

    @property
    def is_plain(self) -> bool:
        """Whether it shows nothing: it is black, white or grey all over."""
        return self.contrast < PLAIN_BELOW

    @property
    def is_blind(self) -> bool:
        """Whether light is lacking, or there is too much of it."""
        return not DARK_BELOW <= float(self.picture.mean()) <= BLINDING_ABOVE

    def is_fainter_than(self, other: "Look") -> bool:
        """Return whether most of the contrast of another picture is lacking."""
        return self.contrast < COVERED_BELOW * other.contrast

    def resembles(self, other: "Look") -> bool:
        """Return whether the local detail is that of another picture."""
        alike = _correlation(self.detail, other.detail) >= MOVED_BELOW
        return alike and not self.is_fainter_than(other)

    def shows_view_of(self, other: "Look") -> bool:
        """Return whether the edges show the same view, whatever the light."""
        alike = compared(edges_of(self.picture), edges_of(other.picture), reach=0)
        return alike >= SAME_VIEW  # NaN is not


class View:
    """What a camera shows while nobody moves it.

    Parameters
    ----------
    number
        Number of the view, from 0.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.pictures: deque[Image | Array] = deque(maxlen=PICTURES_REMEMBERED)
        self.usual: Look | None = None
        self.rolls: list[Array] = []
        """Local detail of the usual picture, rolled to either side."""
        self.relit: Look | None = None
        """The latest picture that showed the view in another light than the usual one."""
        self.n_pictures = 0
        self.seen = self.missed = 0.0
        """Seconds for which it was seen, or not, while it was not the usual view."""

    def condition(self, seen: Look) -> Condition:
        """Return the condition by the contrast and the local detail of a picture."""
        if self.usual is None:
            return Condition.COVERED if seen.is_plain else Condition.USABLE
        if self._is_rolled(seen, self.usual):
            return Condition.MOVED
        if seen.resembles(self.usual) or (self.relit is not None and seen.resembles(self.relit)):
            return Condition.USABLE
        if seen.shows_view_of(self.usual):
            self.relit = seen
            return Condition.USABLE
        return Condition.COVERED if seen.is_fainter_than(self.usual) else Condition.MOVED

    def add(self, seen: Look) -> None:
        """Add a picture; update the usual picture every `PICTURES_NEEDED` of them."""
        self.pictures.append(seen.picture)
        self.n_pictures += 1
        if self.n_pictures % PICTURES_NEEDED == 0:
            self.usual = Look.of(median_picture(self.pictures))
            rolls = (rolled(self.usual.picture, degrees) for degrees in (-ROLL, ROLL))
            self.rolls = [_local_detail(picture) for picture in rolls]

    def shows_scene_of(self, other: "View") -> bool:
        """Return whether two views are of one scene, apart from a small shift."""
        if self.usual is None or other.usual is None:
            return True
        mine, others = self.usual.detail, other.usual.detail
        rows, columns = mine.shape
        shifts = range(2 * SHIFT + 1)
        centre = mine[SHIFT : rows - SHIFT, SHIFT : columns - SHIFT]
        height, width = centre.shape
        best = max(
            _correlation(centre, others[dy : dy + height, dx : dx + width])
            for dy in shifts
            for dx in shifts
        )
        return best >= MOVED_BELOW or self.usual.shows_view_of(other.usual)

    def _is_rolled(self, seen: Look, usual: Look) -> bool:
        """Return whether a picture shows the view turned about its centre."""
        best = max(_correlation(seen.detail, roll) for roll in self.rolls)
        return best >= max(MOVED_BELOW, _correlation(seen.detail, usual.detail) + ROLLED_ABOVE)


class Stillness:
    """For how long frames have been identical, and for how long they may be."""

    def __init__(self) -> None:
        self.lasts = self.longest = 0.0
        """Seconds of identical frames: until now, and the most that ended with little change."""
        self.changes: deque[float] = deque(maxlen=NOISE_REMEMBERED)

    def is_frozen(self, change: float, clip: float) -> bool:
        """Take the change within the next document; return whether the picture is frozen."""
        if change == 0:
            self.lasts += clip
            return self.lasts >= self.limit
        if self.lasts and change < STILL_BELOW:
            self.longest = max(self.longest, self.lasts)
            self.changes.append(0.0)
        self.changes.append(change)
        self.lasts = 0.0
        return False

    @property
    def from_the_first(self) -> bool:
        """Whether frames were identical from the beginning until now: it may be no live picture."""
        return self.lasts > 0 and not self.changes

    @property
    def limit(self) -> float:
        """Seconds of identical frames that a camera which works does not give."""
        if self.changes and min(self.changes) > NOISE_ABOVE:
            return FROZEN_AFTER
        return max(FROZEN_STILL, FROZEN_FACTOR * self.longest)


class ConditionMonitor:
    """Judges the condition of a camera document by document, from the documents before.

    The usual view renews itself: another view that was seen for `STEADY_AFTER` seconds takes its
    place. Pictures that show nothing, such as black ones, never become usual.

    Parameters
    ----------
    clip
        Seconds of video per document.
    """

    def __init__(self, clip: float = 1.0) -> None:
        self.clip = clip
        self.stillness, self.blind = Stillness(), 0.0
        self.views = [View(0)]
        """The latest usual view is the last."""
        self.n_views = 1
        self.candidate: View | None = None

    @property
    def view(self) -> int:
        """Number of the usual view."""
        return self.views[-1].number

    def judge(self, document: Document) -> Condition:
        """Return the condition of the camera during the next document.

        A view that is seen in another light is the same view. The camera is frozen if its frames
        are exactly identical for longer than they are while it works: see `Stillness`. Light that
        is gone is a fault after `DARK_AFTER` seconds.
        """
        if document.n_frames == 0:
            return Condition.USABLE  # a gap: there is no picture to judge, and no word either
        # A single frame was compared with none.
        frozen = document.n_frames > 1 and self.stillness.is_frozen(document.change, self.clip)
        seen = Look.of(document.thumbnail)
        condition = self.views[-1].condition(seen)
        if frozen:  # a black picture never changes: it is covered all the same
            return condition if condition is Condition.COVERED else Condition.FROZEN
        if self._is_short_of_light(seen, condition):
            return Condition.USABLE
        if condition is Condition.USABLE:
            if not self.stillness.from_the_first:
                self.views[-1].add(seen)
            self.candidate = None
        elif self._returned(seen) or self._is_steady(seen):
            return Condition.USABLE
        return condition

    def renew(self) -> None:
        """Make the view that is seen now the usual one."""
        if self.candidate is not None:
            self.views = [*self.views, self.candidate][-VIEWS_REMEMBERED:]
            self.candidate = None

    def foreign(self, views: Sequence[int]) -> set[int]:
        """Return which views do not show the scene of the most frequent one.

        Parameters
        ----------
        views
            Number of the view of each usable document.
        """
        if not views:
            return set()
        ((most, _),) = Counter(views).most_common(1)
        known = {view.number: view for view in self.views}
        usual = known.get(most)
        if usual is None:
            return set()
        return {
            number
            for number in set(views)
            if number not in known or not known[number].shows_scene_of(usual)
        }

    def _is_short_of_light(self, seen: Look, condition: Condition) -> bool:
        """Return whether the light has gone, or blinds, not for long yet."""
        if condition is not Condition.COVERED or not seen.is_blind:
            self.blind = 0.0
            return False
        self.blind += self.clip
        return self.views[-1].usual is not None and self.blind <= DARK_AFTER

    def _returned(self, seen: Look) -> bool:
        """Return whether the camera shows one of its former views, which is the usual one now."""
        for view in reversed(self.views[:-1]):
            if view.usual is not None and view.condition(seen) is Condition.USABLE:
                self.views.remove(view)
                self.views.append(view)
                self.candidate = None
                return True
        return False

    def _is_steady(self, seen: Look) -> bool:
        """Return whether another view was seen for long enough to be the usual one now."""
        if seen.is_plain:
            return False
        view = self.candidate
        if view is None:
            view = self.candidate = View(self.n_views)
            self.n_views += 1
        if view.condition(seen) is Condition.USABLE:
            view.add(seen)
            view.seen += self.clip
        else:
            view.missed += self.clip
        if view.missed > view.seen:
            self.candidate = None
        elif view.seen >= STEADY_AFTER:
            self.renew()
            return True
        return False


def rolled(picture: Image | Array, degrees: float) -> Array:
    """Return a picture turned to the left about its centre; its border is repeated beyond."""
    rows, columns, down, across = _sources(*picture.shape, degrees)
    upper, lower = (
        (1 - across) * picture[row, columns] + across * picture[row, columns + 1]
        for row in (rows, rows + 1)
    )
    return np.asarray((1 - down) * upper + down * lower)


@lru_cache
def _sources(
    n_rows: int, n_columns: int, degrees: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]:
    """Return row and column before the source of each turned cell, and the rest of each way."""
    middle = (n_rows - 1) / 2, (n_columns - 1) / 2
    y, x = np.mgrid[:n_rows, :n_columns] - np.reshape(middle, (2, 1, 1))
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    row = np.clip(middle[0] + cos * y + sin * x, 0, n_rows - 1)
    column = np.clip(middle[1] - sin * y + cos * x, 0, n_columns - 1)
    rows = np.minimum(row.astype(np.int64), n_rows - 2)
    columns = np.minimum(column.astype(np.int64), n_columns - 2)
    return rows, columns, row - rows, column - columns


def _correlation(one: Array, other: Array) -> float:
    both = np.vdot(one, one) * np.vdot(other, other)
    return float(np.vdot(one, other) / np.sqrt(both + 1e-9))


def _local_detail(picture: Image | Array) -> Array:
    """Return the difference from the local mean: edges and markings, independent of light.

    Beyond the border, the cells at the border are repeated.
    """
    own = picture.astype(np.float64)
    rows, columns = map(_local_sums, picture.shape)
    return np.asarray(own - rows @ own @ columns.T / WINDOW**2)


@lru_cache
def _local_sums(n: int) -> Array:
    """Return what a column of n cells is multiplied by for its local sums."""
    around = np.arange(WINDOW) - WINDOW // 2
    sums = np.zeros((n, n))
    for cell in range(n):
        np.add.at(sums[cell], (cell + around).clip(0, n - 1), 1.0)
    return sums
