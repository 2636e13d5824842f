"""A visual word is a cell of the frame and one of four directions of motion."""

from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.errors import InvalidInputError


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


@dataclass(frozen=True)
class Vocabulary:
    """Words of a grid of cells, numbered (row, column, direction) with the direction fastest."""

    rows: int
    columns: int

    def __post_init__(self) -> None:
        """Refuse a grid without cells."""
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidInputError(
                    f"a vocabulary needs a whole number of {name} above 0, found {value!r}"
                )

    @property
    def n_words(self) -> int:
        """Cells times directions: 6480 at the paper's 36 x 45 cells."""
        return self.rows * self.columns * len(Direction)

    def words(
        self, rows: ArrayLike, columns: ArrayLike, directions: ArrayLike
    ) -> NDArray[np.int64]:
        """Word ids of cells and directions."""
        shape = (self.rows, self.columns, len(Direction))
        multi_index = tuple(np.asarray(axis) for axis in (rows, columns, directions))
        try:
            return np.asarray(np.ravel_multi_index(multi_index, shape), dtype=np.int64)
        except ValueError as error:
            raise InvalidInputError(f"a place outside the {shape} vocabulary: {error}") from error

    def places(self, words: ArrayLike) -> Places:
        """Cells and directions of word ids."""
        shape = (self.rows, self.columns, len(Direction))
        ids = np.asarray(words, dtype=np.int64)
        if ids.size and (ids.min() < 0 or ids.max() >= self.n_words):
            raise InvalidInputError(
                f"word ids run from 0 to {self.n_words - 1}, found {ids.min()} to {ids.max()}"
            )
        return Places(*np.unravel_index(ids, shape))

    def to_json(self) -> dict[str, Any]:
        """Give the geometry as plain values, for a file's header."""
        return asdict(self)
