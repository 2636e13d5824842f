"""Counts of habits: in how many documents a cell moved, which way, how fast."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from habitus.arrays import Array, Indices
from habitus.corpus.vocabulary import N_DIRECTIONS, Vocabulary
from habitus.habits.votes import DocumentVotes, Votes


@dataclass(frozen=True, eq=False)
class HabitCounts:
    """How often each cell voted, and for what: all that is remembered of footage.

    Counts are whole numbers until they fade, so that adding and taking back are exact.

    Examples
    --------
    >>> vocabulary = Vocabulary(1, 2, directions=12, speeds=16)
    >>> one = HabitCounts.none(vocabulary).adding(Votes.of_codes(np.array([208]), vocabulary), 3)
    >>> one.n_documents, one.moving.tolist(), one.direction[1].argmax()
    (3.0, [0.0, 3.0], np.int64(1))
    >>> (one - one).moving.tolist()
    [0.0, 0.0]
    """

    n_documents: float
    """Documents in all, with and without motion."""
    direction: Array
    """Votes of each cell for each direction: cells x directions."""
    speed: Array
    """Votes of each cell, given one of the four directions, for each speed: cells x 4 x speeds."""

    @classmethod
    def none(cls, vocabulary: Vocabulary) -> "HabitCounts":
        """Return the counts of no footage."""
        v = vocabulary
        return cls(
            0.0,
            np.zeros((v.n_cells, v.directions)),
            np.zeros((v.n_cells, N_DIRECTIONS, v.speeds)),
        )

    @classmethod
    def of(cls, votes: DocumentVotes, vocabulary: Vocabulary, n_documents: float) -> "HabitCounts":
        """Return the counts of documents, of which `n_documents` were usable."""
        counts = cls.none(vocabulary)._tallied(votes.cells, votes.directions, votes.speeds, 1.0)
        return replace(counts, n_documents=float(n_documents))

    @classmethod
    def total(cls, parts: Sequence["HabitCounts"]) -> "HabitCounts":
        """Return the counts of all parts of footage, at least one."""
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part
        return whole

    @property
    def moving(self) -> Array:
        """Number of documents in which each cell moved."""
        return np.asarray(self.direction.sum(axis=1))

    def adding(self, votes: Votes, times: float = 1.0) -> "HabitCounts":
        """Return the counts with one more document, counted several times or, below 0, not."""
        counts = self._tallied(votes.cells, votes.directions, votes.speeds, times)
        return replace(counts, n_documents=self.n_documents + times)

    def faded(self, factor: float) -> "HabitCounts":
        """Return the counts times a factor: old footage counts less."""
        return HabitCounts(factor * self.n_documents, factor * self.direction, factor * self.speed)

    def __add__(self, other: "HabitCounts") -> "HabitCounts":
        """Return the counts of both footages."""
        return HabitCounts(
            self.n_documents + other.n_documents,
            self.direction + other.direction,
            self.speed + other.speed,
        )

    def __sub__(self, other: "HabitCounts") -> "HabitCounts":
        """Return the counts without those of a part of the footage."""
        return HabitCounts(
            self.n_documents - other.n_documents,
            self.direction - other.direction,
            self.speed - other.speed,
        )

    def _tallied(
        self, cells: Indices, directions: Indices, speeds: Indices, times: float
    ) -> "HabitCounts":
        """Return the counts with further votes."""
        direction, speed = self.direction.copy(), self.speed.copy()
        n_cells, n_directions = direction.shape
        n_speeds, thirds = speed.shape[2], n_directions // N_DIRECTIONS
        direction += times * np.bincount(
            cells * n_directions + directions, minlength=n_cells * n_directions
        ).reshape(direction.shape)
        contexts = cells * N_DIRECTIONS + directions // thirds
        speed += times * np.bincount(
            contexts * n_speeds + speeds, minlength=n_cells * N_DIRECTIONS * n_speeds
        ).reshape(speed.shape)
        return HabitCounts(self.n_documents, direction, speed)
