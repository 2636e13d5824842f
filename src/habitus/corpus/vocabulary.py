"""Visual words: a cell of the frame, a direction of motion and a class of speed.

Video is extracted as fine words, of 12 directions and 16 speeds. Coarse words (4 directions, slow
or fast) and the paper's words (4 directions) are sums of them.
"""

from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.errors import InvalidInputError
from habitus.schema import MOST_PIXELS, MOST_WORDS, Pixels

# Frames are halved while their smaller side stays at least this, and doubled where it is less; the
# paper's frames have 288.
SMALLEST_SIDE = 240
# Least side of an analysed frame: motion is estimated from windows of up to 32 pixels.
LEAST_SIDE = 32


class Direction(IntEnum):
    """The four directions of motion, in the paper's order; rows of a frame grow downwards."""

    UP = 0
    LEFT = 1
    DOWN = 2
    RIGHT = 3


N_DIRECTIONS = len(Direction)
# Directions of fine words, of 30 degrees each. Number f points (f - 1) * 30 degrees
# counter-clockwise from up, so that f // 3 is its Direction.
N_FINE_DIRECTIONS = 12
# Pixels per second of the analysed frame from which motion is fast: between walking and driving in
# frames of this size. The exact value hardly matters, because each cell learns its own habits.
FAST = 31.0
# Each speed of fine words is this much faster than the one before it.
SPEED_RATIO = 1.25
# Lower bounds of the speeds of fine words from the second on: logarithmic, FAST among them.
SPEED_BOUNDS = tuple(FAST * SPEED_RATIO**k for k in range(-6, 9))
N_SPEEDS = len(SPEED_BOUNDS) + 1
# The first speed of fine words that is fast.
FIRST_FAST = SPEED_BOUNDS.index(FAST) + 1

WordKind = Literal["fine", "coarse", "paper"]
"""Which words a vocabulary has: 12 directions and 16 speeds, 4 and 2, or 4 and 1."""
KINDS: dict[WordKind, tuple[int, int]] = {
    "fine": (N_FINE_DIRECTIONS, N_SPEEDS),
    "coarse": (N_DIRECTIONS, 2),
    "paper": (N_DIRECTIONS, 1),
}
"""Directions and speeds of each kind of words."""


class WordPlaces(NamedTuple):
    """Cells, directions and speeds of words."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    directions: NDArray[np.int64]
    """A `Direction` in a vocabulary of four; of twelve, its third is a `Direction`."""
    speeds: NDArray[np.int64]
    """0 for slow, 1 for fast; 0 to 15 in fine words; always 0 in a vocabulary of one speed."""


@dataclass(frozen=True)
class Vocabulary:
    """The meaning of word ids: cells of a grid, directions and speeds.

    Words are numbered by (row, column, direction, speed), the last varying fastest. The grid lies
    on the analysed frame: the camera's frame, halved or doubled until its size is near the paper's.
    Pixels left over at the right and lower edge, fewer than a cell has, belong to no cell.

    Parameters
    ----------
    rows, columns
        Number of cells in each direction.
    cell
        Side of a cell in pixels of the analysed frame.
    scale
        Pixels of the camera's frame per pixel of the analysed frame, in each direction: 1, 2, ...,
        or 0.5 for a frame that is doubled.
    width, height
        Size of the camera's frame in pixels; 0 stands for exactly what the cells cover.
    speeds
        1 for the paper's words, which do not distinguish speeds; 2 for slow and fast; 16 for fine
        words.
    directions
        4, or 12 for fine words.

    Raises
    ------
    InvalidInputError
        If the grid has no cells, or does not fit the frame.

    Examples
    --------
    >>> vocabulary = Vocabulary.of_frame(360, 288)
    >>> vocabulary.shape, vocabulary.n_words
    ((36, 45, 4, 1), 6480)
    >>> word = vocabulary.words(row := 2, column := 7, Direction.LEFT)
    >>> int(word), int(vocabulary.cells(word)), int(vocabulary.moves(word))
    (389, 97, 1)
    """

    rows: Pixels
    columns: Pixels
    cell: Pixels = 8
    scale: int | float = 1
    width: Pixels = 0
    height: Pixels = 0
    speeds: int = 1
    directions: int = N_DIRECTIONS

    def __post_init__(self) -> None:
        """Check the values, and fill in the size of the frame."""
        for name, value in asdict(self).items():
            least = 0 if name in ("width", "height") else 1
            if name == "scale" and value == 0.5:
                continue
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or not least <= value <= MOST_PIXELS:
                raise InvalidInputError(
                    f"{name} of a vocabulary must be an integer from {least} to {MOST_PIXELS}, "
                    f"found {value!r}"
                )
        if self.speeds not in (1, 2, N_SPEEDS):
            raise InvalidInputError(f"speeds must be 1, 2 or {N_SPEEDS}, found {self.speeds}")
        if self.directions not in (N_DIRECTIONS, N_FINE_DIRECTIONS):
            raise InvalidInputError(
                f"directions must be {N_DIRECTIONS} or {N_FINE_DIRECTIONS}, found {self.directions}"
            )
        if self.cell * self.scale % 1:
            raise InvalidInputError(f"cell must be even in a doubled frame, found {self.cell}")
        for name, n in (("width", self.columns), ("height", self.rows)):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, n * self.cell_side)
            elif getattr(self, name) // self.cell_side != n:
                raise InvalidInputError(
                    f"a grid of {n} cells of {self.cell_side} pixels does not fit a {name} of "
                    f"{getattr(self, name)} pixels"
                )
        if self.n_words > MOST_WORDS:
            raise InvalidInputError(
                f"a vocabulary has at most {MOST_WORDS} words, found {self.n_words}"
            )

    @classmethod
    def of_frame(
        cls,
        width: int,
        height: int,
        *,
        cell: int = 8,
        scale: float | None = None,
        words: WordKind = "paper",
    ) -> Self:
        """Return the grid of a camera's frame: as many cells as fit it.

        Parameters
        ----------
        width, height
            Size of the camera's frame in pixels.
        cell
            Side of a cell in pixels of the analysed frame, a multiple of 4.
        scale
            Pixels of the camera's frame per pixel of the analysed frame; by default the largest
            power of two that leaves the smaller side at least 240 pixels, and 0.5 for a frame that
            has less.
        words
            "paper", "coarse" or "fine": which directions and speeds are distinguished.

        Examples
        --------
        >>> Vocabulary.of_frame(1280, 720)
        Vocabulary(rows=45, columns=80, cell=8, scale=2, width=1280, height=720, speeds=1, \
directions=4)
        >>> Vocabulary.of_frame(160, 120, words="fine").shape
        (30, 40, 12, 16)
        """
        scale = scale_of(width, height) if scale is None else scale
        if min(width, height) / scale < LEAST_SIDE:
            raise InvalidInputError(
                f"a frame needs at least {LEAST_SIDE * scale:g} pixels in each direction, found "
                f"{width}x{height}"
            )
        if cell < 1 or cell % 4 or min(width, height) < cell * scale:
            raise InvalidInputError(
                f"cell must be a multiple of 4 and at most {int(min(width, height) / scale)} "
                f"pixels for a frame of {width}x{height}, found {cell}",
                parameter="cell",
            )
        if words not in KINDS:
            raise InvalidInputError(
                f"words must be one of {', '.join(get_args(WordKind))}, found {words!r}",
                parameter="words",
            )
        directions, speeds = KINDS[words]
        side = int(cell * scale)
        return cls(height // side, width // side, cell, scale, width, height, speeds, directions)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Rows, columns, directions and speeds: the shape of an array with one value per word."""
        return self.rows, self.columns, self.directions, self.speeds

    @property
    def n_words(self) -> int:
        """Number of words: cells times directions times speeds."""
        return self.n_cells * self.per_cell

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.rows * self.columns

    @property
    def per_cell(self) -> int:
        """Number of words per cell: directions times speeds."""
        return self.directions * self.speeds

    @property
    def cell_side(self) -> int:
        """Side of a cell in pixels of the camera's frame."""
        return int(self.cell * self.scale)

    @property
    def kind(self) -> WordKind | None:
        """Which words these are, where they have a name."""
        named = {sizes: kind for kind, sizes in KINDS.items()}
        return named.get((self.directions, self.speeds))

    @property
    def finest(self) -> Self:
        """The same grid with fine words."""
        return replace(self, directions=N_FINE_DIRECTIONS, speeds=N_SPEEDS)

    @property
    def coarse(self) -> Self:
        """The same grid with coarse words: 4 directions, and slow or fast where speeds differ."""
        return replace(self, directions=N_DIRECTIONS, speeds=min(self.speeds, 2))

    @property
    def paper(self) -> Self:
        """The same grid with the paper's words, which do not distinguish speeds."""
        return replace(self, directions=N_DIRECTIONS, speeds=1)

    def refines(self, other: "Vocabulary") -> bool:
        """Return whether each word of another vocabulary is a sum of words of this one.

        Examples
        --------
        >>> grid = Vocabulary.of_frame(360, 288, words="coarse")
        >>> grid.refines(grid), grid.refines(grid.paper), grid.paper.refines(grid)
        (True, True, False)
        """
        same_grid = replace(other, directions=self.directions, speeds=self.speeds) == self
        return same_grid and self.directions >= other.directions and self.speeds >= other.speeds

    def words(
        self, rows: ArrayLike, columns: ArrayLike, directions: ArrayLike, speeds: ArrayLike = 0
    ) -> NDArray[np.int64]:
        """Return the ids of words, given cells, directions and speeds that broadcast to one shape.

        A place outside the vocabulary is an `InvalidInputError`.
        """
        shape = self.shape
        multi_index = tuple(
            np.asarray(axis) for axis in np.broadcast_arrays(rows, columns, directions, speeds)
        )
        try:
            return np.asarray(np.ravel_multi_index(multi_index, shape), dtype=np.int64)
        except ValueError as error:
            raise InvalidInputError(f"a place outside the {shape} vocabulary: {error}") from error

    def places(self, words: ArrayLike) -> WordPlaces:
        """Return the rows, columns, directions and speeds of words, in the shape of `words`.

        Examples
        --------
        >>> [int(part) for part in Vocabulary(36, 45).places(389)]
        [2, 7, 1, 0]
        """
        ids = np.asarray(words, dtype=np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= self.n_words):
            raise InvalidInputError(
                f"word ids run from 0 to {self.n_words - 1}, found {ids.min()} to {ids.max()}"
            )
        return WordPlaces(*np.unravel_index(ids, self.shape))

    def cells(self, words: ArrayLike) -> NDArray[np.int64]:
        """Return the cell of each word, numbered row by row from 0 to `n_cells - 1`."""
        return np.asarray(words, dtype=np.int64) // self.per_cell

    def moves(self, words: ArrayLike) -> NDArray[np.int64]:
        """Return the number of each word within its cell: direction times speeds, plus speed."""
        return np.asarray(words, dtype=np.int64) % self.per_cell

    def words_in(self, coarser: "Vocabulary", words: ArrayLike) -> NDArray[np.int64]:
        """Return the words of a coarser vocabulary that words of this one are part of.

        Examples
        --------
        >>> fine = Vocabulary(1, 1, speeds=16, directions=12)
        >>> fast_left = fine.words(0, 0, [5], 15)
        >>> fine.words_in(fine.coarse, fast_left), fine.words_in(fine.paper, fast_left)
        (array([3]), array([1]))
        """
        ids = np.asarray(words, dtype=np.int64)
        moves = moves_in(self, coarser)[ids % self.per_cell]
        return ids // self.per_cell * coarser.per_cell + moves

    def boxes(self, words: ArrayLike) -> NDArray[np.int64]:
        """Return left, top, right and bottom of the cells of words, in pixels of the camera.

        Examples
        --------
        >>> Vocabulary.of_frame(1280, 720).boxes([5])
        array([[16,  0, 32, 16]])
        """
        rows, columns, *_ = self.places(words)
        side = self.cell_side
        corners = (columns * side, rows * side, (columns + 1) * side, (rows + 1) * side)
        return np.stack(corners, axis=-1)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain values, for the header of a file."""
        return asdict(self)


@cache
def moves_in(vocabulary: Vocabulary, coarser: Vocabulary) -> NDArray[np.int64]:
    """Return the number within a cell, in a coarser vocabulary, of each move of the other."""
    if not vocabulary.refines(coarser):
        raise InvalidInputError(f"words of {vocabulary} cannot be summed to words of {coarser}")
    directions, speeds = np.divmod(np.arange(vocabulary.per_cell), vocabulary.speeds)
    if coarser.speeds < vocabulary.speeds:
        speeds = (speeds >= FIRST_FAST).astype(np.int64) * (coarser.speeds - 1)
    directions = directions * coarser.directions // vocabulary.directions
    return np.asarray(directions * coarser.speeds + speeds)


def scale_of(width: int, height: int) -> float:
    """Return the pixels of the camera's frame per pixel of the analysed frame, by default.

    Examples
    --------
    >>> scale_of(1920, 1080), scale_of(360, 288), scale_of(320, 180)
    (4, 1, 0.5)
    """
    if min(width, height) < SMALLEST_SIDE:
        return 0.5
    scale = 1
    while min(width, height) // (2 * scale) >= SMALLEST_SIDE:
        scale *= 2
    return scale


def count_words(
    moves: NDArray[np.int16], vocabulary: Vocabulary
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the words of all moving cells, ascending, and how often each occurs.

    This is the step from motion to words: `moves` are pairs of frames x rows x columns of cells,
    with the number of each cell's move among its fine words, or -1 where nothing moved.

    Examples
    --------
    >>> left_and_fast = np.full((3, 1, 2), 4 * N_SPEEDS + 15, dtype=np.int16)
    >>> count_words(left_and_fast, Vocabulary(1, 2, speeds=2))
    (array([ 3, 11]), array([3, 3]))
    """
    flat = moves.reshape(-1)
    moving = np.flatnonzero(flat >= 0)
    numbers: NDArray[Any] = flat[moving]
    if (vocabulary.directions, vocabulary.speeds) != (N_FINE_DIRECTIONS, N_SPEEDS):
        numbers = moves_in(vocabulary.finest, vocabulary)[numbers]
    words = np.sort(moving % vocabulary.n_cells * vocabulary.per_cell + numbers)
    # As `np.unique(words, return_counts=True)`, in half the time.
    is_first = np.ones(len(words) + 1, dtype=np.bool_)
    np.not_equal(words[1:], words[:-1], out=is_first[1:-1])
    first = np.flatnonzero(is_first)
    return words[first[:-1]], first[1:] - first[:-1]
