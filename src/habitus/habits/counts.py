"""Counts of habits: in how many documents a cell moved, which way, how fast, at which hour."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from habitus.arrays import Array, Indices
from habitus.corpus.clocks import N_WEEK_HOURS, NO_HOUR
from habitus.corpus.tree_sum import Additive
from habitus.corpus.vocabulary import N_DIRECTIONS, Vocabulary
from habitus.habits.votes import DocumentVotes, Votes


@dataclass(frozen=True, eq=False)
class HabitCounts(Additive):
    """How often each cell voted, and for what: all that is remembered of footage.

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
    hours: Array
    """Documents in which each cell moved at each hour of the day on workdays, then on week-ends,
    where that is known: cells x 48."""
    hour_documents: Array
    """Documents at each of these hours, with and without motion."""

    @classmethod
    def none(cls, vocabulary: Vocabulary) -> "HabitCounts":
        """Return the counts of no footage."""
        v = vocabulary
        return cls(
            0.0,
            np.zeros((v.n_cells, v.directions)),
            np.zeros((v.n_cells, N_DIRECTIONS, v.speeds)),
            np.zeros((v.n_cells, N_WEEK_HOURS)),
            np.zeros(N_WEEK_HOURS),
        )

    @classmethod
    def of(
        cls,
        votes: DocumentVotes,
        vocabulary: Vocabulary,
        n_documents: float,
        hours: Indices | None = None,
    ) -> "HabitCounts":
        """Return the counts of documents, `n_documents` of which were usable.

        `hours` (see `hours_of`) are `NO_HOUR` where not known or the document is not usable.
        """
        counts = cls.none(vocabulary)._tallied(Votes(*votes[1:]), 1.0)
        counts = replace(counts, n_documents=float(n_documents))
        if hours is None:
            return counts
        return counts._at_hours(votes.cells, np.repeat(hours, np.diff(votes.indptr)), hours, 1.0)

    @classmethod
    def total(cls, parts: Sequence["HabitCounts"]) -> "HabitCounts":
        """Return the counts of all parts of footage, at least one."""
        return reduce(add, parts)

    @property
    def moving(self) -> Array:
        """Number of documents in which each cell moved."""
        return np.asarray(self.direction.sum(axis=1))

    def adding(self, votes: Votes, times: float = 1.0, hour: int = NO_HOUR) -> "HabitCounts":
        """Return the counts with one more document, counted several times or, below 0, not."""
        return self.adding_all([(votes, times, hour)])

    def adding_all(self, documents: Iterable[tuple[Votes, float, int]]) -> "HabitCounts":
        """Return the counts with documents added one after the other, as `adding` takes them."""
        n, kept = self.n_documents, (self.direction, self.speed, self.hours, self.hour_documents)
        direction, speed, hours, hour_documents = (counted.copy() for counted in kept)
        thirds = direction.shape[1] // N_DIRECTIONS
        for (cells, directions, speeds), times, hour in documents:
            n += times
            np.add.at(direction, (cells, directions), times)
            np.add.at(speed, (cells, directions // thirds, speeds), times)
            if hour != NO_HOUR:
                np.add.at(hours[:, hour], cells, times)
                hour_documents[hour] += times
        return HabitCounts(n, direction, speed, hours, hour_documents)

    def _at_hours(
        self, cells: Indices, hours: Indices, of_documents: Indices, times: float
    ) -> "HabitCounts":
        """Return the counts with the hour of each vote, and of each document."""
        n_cells, n = len(self.hours), N_WEEK_HOURS + 1  # the last is NO_HOUR, which is not counted
        moved = np.bincount(cells * n + hours, minlength=n_cells * n).reshape(n_cells, n)
        documents = np.bincount(of_documents, minlength=n)
        return replace(
            self,
            hours=self.hours + times * moved[:, :N_WEEK_HOURS],
            hour_documents=self.hour_documents + times * documents[:N_WEEK_HOURS],
        )

    def _tallied(self, votes: Votes, times: float) -> "HabitCounts":
        """Return the counts with further votes."""
        cells, directions, speeds = votes
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
        return replace(self, direction=direction, speed=speed)
