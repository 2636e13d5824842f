"""A visual word is a cell of the frame, one of four directions of motion, and slow or fast."""

from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.compiled import compiled
from habitus.errors import InvalidInputError

# Frames are halved while their smaller side stays at least this: the paper's has 288.
SMALLEST_SIDE = 240
# Motion is told from squares of this many pixels.
LEAST_SIDE = 32


class Direction(IntEnum):
    """The four directions of the paper, in its order; rows of a frame grow downwards."""

    UP = 0
    LEFT = 1
    DOWN = 2
    RIGHT = 3


class Places(NamedTuple):
    """Where words lie and where they go."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    directions: NDArray[np.int64]
    speeds: NDArray[np.int64]
    """0 for slow, 1 for fast; always 0 where speeds are not told apart."""


@dataclass(frozen=True)
class Vocabulary:
    """Words of a grid of cells, numbered (row, column, direction, speed), the last fastest.

    The grid lies on the analysed frame: the camera's frame, halved until its size is near the
    paper's. What is left over at the right and lower edge belongs to no cell.
    """

    rows: int
    columns: int
    cell: int = 8
    """Side of a cell in pixels of the analysed frame."""
    scale: int = 1
    """Pixels of the camera's frame to a pixel of the analysed one, in each direction."""
    width: int = 0
    """Of the camera's frame, in pixels; 0 stands for just what the cells cover."""
    height: int = 0
    speeds: int = 1
    """1 for the paper's words, which know no speed; 2 to tell slow from fast."""

    def __post_init__(self) -> None:
        """Refuse a grid without cells, or one that does not fit its frame."""
        for name, value in asdict(self).items():
            least = 0 if name in ("width", "height") else 1
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InvalidInputError(
                    f"a vocabulary needs a whole number of {name} of at least {least}, "
                    f"found {value!r}"
                )
        if self.speeds > 2:
            raise InvalidInputError(f"speeds must be 1 or 2, found {self.speeds}")
        side = self.cell * self.scale
        for name, n in (("width", self.columns), ("height", self.rows)):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, n * side)
            elif getattr(self, name) < n * side:
                raise InvalidInputError(
                    f"a grid of {n} cells of {side} pixels does not fit a {name} of "
                    f"{getattr(self, name)} pixels"
                )

    @classmethod
    def of_frame(
        cls, width: int, height: int, *, cell: int = 8, scale: int | None = None, speeds: int = 1
    ) -> Self:
        """The grid of a camera's frame; large frames are halved first."""
        if scale is None:
            scale = 1
            while min(width, height) // (2 * scale) >= SMALLEST_SIDE:
                scale *= 2
        side = cell * scale
        if min(width, height) // scale < LEAST_SIDE:
            raise InvalidInputError(
                f"a frame needs at least {LEAST_SIDE * scale} pixels each way, found "
                f"{width}x{height}"
            )
        if cell < 1 or cell % 4 or min(width, height) < side:
            raise InvalidInputError(
                f"cell must be a multiple of 4 and at most {min(width, height) // scale} pixels "
                f"for a frame of {width}x{height}, found {cell}"
            )
        return cls(height // side, width // side, cell, scale, width, height, speeds)

    @property
    def n_words(self) -> int:
        """Cells times directions times speeds: 6480 at the paper's 36 x 45 cells."""
        return self.rows * self.columns * self.per_cell

    @property
    def per_cell(self) -> int:
        """Words of a cell."""
        return len(Direction) * self.speeds

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Rows, columns, directions and speeds: how an array of words folds up."""
        return self.rows, self.columns, len(Direction), self.speeds

    @property
    def paper(self) -> Self:
        """The same grid with the paper's words, which know no speed."""
        return replace(self, speeds=1)

    def words(
        self, rows: ArrayLike, columns: ArrayLike, directions: ArrayLike, speeds: ArrayLike = 0
    ) -> NDArray[np.int64]:
        """Word ids of cells, directions and speeds."""
        shape = self.shape
        multi_index = tuple(
            np.asarray(axis) for axis in np.broadcast_arrays(rows, columns, directions, speeds)
        )
        try:
            return np.asarray(np.ravel_multi_index(multi_index, shape), dtype=np.int64)
        except ValueError as error:
            raise InvalidInputError(f"a place outside the {shape} vocabulary: {error}") from error

    def places(self, words: ArrayLike) -> Places:
        """Cells, directions and speeds of word ids."""
        ids = np.asarray(words, dtype=np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= self.n_words):
            raise InvalidInputError(
                f"word ids run from 0 to {self.n_words - 1}, found {ids.min()} to {ids.max()}"
            )
        return Places(*np.unravel_index(ids, self.shape))

    def boxes(self, words: ArrayLike) -> NDArray[np.int64]:
        """Pixels of the camera's frame that words lie in: left, top, right, bottom of each.

        >>> Vocabulary.of_frame(1280, 720).boxes([5])
        array([[16,  0, 32, 16]])
        """
        rows, columns, *_ = self.places(words)
        side = self.cell * self.scale
        corners = (columns * side, rows * side, (columns + 1) * side, (rows + 1) * side)
        return np.stack(corners, axis=-1)

    def to_json(self) -> dict[str, Any]:
        """Give the geometry as plain values, for a file's header."""
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
