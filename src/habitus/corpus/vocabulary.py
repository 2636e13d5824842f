"""Visual words: a cell of the frame, one of four directions of motion, and slow or fast."""

from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.compiled import compiled
from habitus.errors import InvalidInputError

# Frames are halved while their smaller side stays at least this; the paper's frames have 288.
SMALLEST_SIDE = 240
# Least side of an analysed frame: motion is estimated from windows of up to 32 pixels.
LEAST_SIDE = 32


class Direction(IntEnum):
    """The four directions of motion, in the paper's order; rows of a frame grow downwards."""

    UP = 0
    LEFT = 1
    DOWN = 2
    RIGHT = 3


class WordPlaces(NamedTuple):
    """Cells, directions and speeds of words."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    directions: NDArray[np.int64]
    speeds: NDArray[np.int64]
    """0 for slow, 1 for fast; always 0 in a vocabulary of one speed."""


@dataclass(frozen=True)
class Vocabulary:
    """The meaning of word ids: cells of a grid, directions and speeds.

    Words are numbered by (row, column, direction, speed), the last varying fastest. The grid lies
    on the analysed frame, which is the camera's frame, halved until its size is near the paper's.
    Pixels left over at the right and lower edge belong to no cell.

    Parameters
    ----------
    rows, columns
        Number of cells in each direction.
    cell
        Side of a cell in pixels of the analysed frame.
    scale
        Pixels of the camera's frame per pixel of the analysed frame, in each direction.
    width, height
        Size of the camera's frame in pixels; 0 stands for exactly what the cells cover.
    speeds
        1 for the paper's words, which do not distinguish speeds; 2 for slow and fast.

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

    rows: int
    columns: int
    cell: int = 8
    scale: int = 1
    width: int = 0
    height: int = 0
    speeds: int = 1

    def __post_init__(self) -> None:
        """Check the values, and fill in the size of the frame."""
        for name, value in asdict(self).items():
            least = 0 if name in ("width", "height") else 1
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InvalidInputError(
                    f"{name} of a vocabulary must be an integer of at least {least}, "
                    f"found {value!r}"
                )
        if self.speeds > 2:
            raise InvalidInputError(f"speeds must be 1 or 2, found {self.speeds}")
        for name, n in (("width", self.columns), ("height", self.rows)):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, n * self.cell_side)
            elif getattr(self, name) < n * self.cell_side:
                raise InvalidInputError(
                    f"a grid of {n} cells of {self.cell_side} pixels does not fit a {name} of "
                    f"{getattr(self, name)} pixels"
                )

    @classmethod
    def of_frame(
        cls, width: int, height: int, *, cell: int = 8, scale: int | None = None, speeds: int = 1
    ) -> Self:
        """Return the grid of a camera's frame.

        Parameters
        ----------
        width, height
            Size of the camera's frame in pixels.
        cell
            Side of a cell in pixels of the analysed frame, a multiple of 4.
        scale
            Pixels of the camera's frame per pixel of the analysed frame; by default the largest
            power of two that leaves the smaller side at least 240 pixels.
        speeds
            1 or 2.

        Returns
        -------
        Vocabulary
            As many cells as fit the frame.

        Examples
        --------
        >>> Vocabulary.of_frame(1280, 720)
        Vocabulary(rows=45, columns=80, cell=8, scale=2, width=1280, height=720, speeds=1)
        """
        if scale is None:
            scale = 1
            while min(width, height) // (2 * scale) >= SMALLEST_SIDE:
                scale *= 2
        side = cell * scale
        if min(width, height) // scale < LEAST_SIDE:
            raise InvalidInputError(
                f"a frame needs at least {LEAST_SIDE * scale} pixels in each direction, found "
                f"{width}x{height}"
            )
        if cell < 1 or cell % 4 or min(width, height) < side:
            raise InvalidInputError(
                f"cell must be a multiple of 4 and at most {min(width, height) // scale} pixels "
                f"for a frame of {width}x{height}, found {cell}",
                parameter="cell",
            )
        return cls(height // side, width // side, cell, scale, width, height, speeds)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Rows, columns, directions and speeds: the shape of an array with one value per word."""
        return self.rows, self.columns, len(Direction), self.speeds

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
        return len(Direction) * self.speeds

    @property
    def cell_side(self) -> int:
        """Side of a cell in pixels of the camera's frame."""
        return self.cell * self.scale

    @property
    def paper(self) -> Self:
        """The same grid with the paper's words, which do not distinguish speeds."""
        return replace(self, speeds=1)

    def words(
        self, rows: ArrayLike, columns: ArrayLike, directions: ArrayLike, speeds: ArrayLike = 0
    ) -> NDArray[np.int64]:
        """Return the ids of words, given their cells, directions and speeds.

        Parameters
        ----------
        rows, columns, directions, speeds
            Integers or arrays that broadcast against each other.

        Returns
        -------
        array
            Word ids, in the broadcast shape.

        Raises
        ------
        InvalidInputError
            If a value lies outside the vocabulary.
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
        """Return the rows, columns, directions and speeds of words.

        Parameters
        ----------
        words
            Word ids.

        Returns
        -------
        WordPlaces
            Four arrays in the shape of `words`.

        Raises
        ------
        InvalidInputError
            If an id lies outside the vocabulary.

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

    def paper_words(self, words: ArrayLike) -> NDArray[np.int64]:
        """Return the ids in the vocabulary `paper` of the same cells and directions."""
        return np.asarray(words, dtype=np.int64) // self.speeds

    def by_cell(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values per word (the first axis) as cells x words per cell x further axes."""
        return values.reshape(self.n_cells, self.per_cell, *values.shape[1:])

    def summed_over_speeds(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum over speeds of values per word (the first axis): one per paper's word.

        Examples
        --------
        >>> Vocabulary(1, 1, speeds=2).summed_over_speeds(np.arange(8)).tolist()
        [1, 5, 9, 13]
        """
        split = values.reshape(self.paper.n_words, self.speeds, *values.shape[1:])
        return np.asarray(split.sum(axis=1))

    def boxes(self, words: ArrayLike) -> NDArray[np.int64]:
        """Return the cells of words as boxes of the camera's frame.

        Parameters
        ----------
        words
            Word ids.

        Returns
        -------
        array
            Left, top, right and bottom in pixels, along the last axis.

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


N_DIRECTIONS = len(Direction)


@compiled
def count_moves(moves: NDArray[np.int8], speeds: int, counts: NDArray[np.int64]) -> None:
    """Add the words of all moving cells to `counts`: the step from motion to words.

    With `frame, row, column = np.nonzero(moves >= 0)` and `move` the values there, equal to
    `np.add.at(counts, vocabulary.words(row, column, move % 4, move // 4 * (speeds - 1)), 1)`.

    Parameters
    ----------
    moves
        Pairs of frames x rows x columns of cells: a `Direction`, plus 4 for fast motion, or -1
        where nothing moved.
    speeds
        Number of speeds of the vocabulary; with 1, slow and fast motion are the same word.
    counts
        Count of each word of the vocabulary; changed in place.
    """
    flat = moves.reshape(len(moves), -1)
    for pair in range(len(flat)):
        for cell in range(flat.shape[1]):
            move = flat[pair, cell]
            if move >= 0:
                direction, fast = move % N_DIRECTIONS, move // N_DIRECTIONS
                word = (N_DIRECTIONS * cell + direction) * speeds + fast * (speeds - 1)
                counts[word] += 1
