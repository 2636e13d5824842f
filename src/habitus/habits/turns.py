"""Habits of the turn: how much more or less often a cell moves one way while the scene does so.

The turn of a document is the most probable behaviour of the topic model two documents before it,
and its own: what moves while one road has just got green is not what moves while it has green. The
rate p(moves that way | cell, turn) / p(moves that way | cell), of four ways, is estimated as
`habitus.habits.contexts` has it. A red light is passed in a usual place, in a usual direction and
at a usual speed: only the turn is wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags, Indices
from habitus.corpus.tree_sum import Additive
from habitus.corpus.vocabulary import N_DIRECTIONS, Vocabulary
from habitus.habits.contexts import ContextFit, Levels, context_levels, context_rates, fit_contexts
from habitus.habits.evidence import DocumentEvidence, document_evidence, gather_statistics
from habitus.habits.predictive import Habits
from habitus.habits.votes import DocumentVotes, Votes

TURN = "turn"
BACK = 2
"""Documents before a document whose behaviour is part of its turn: what clears a junction needs
two seconds."""
NO_TURN = -1
"""Where no behaviour is known."""
_LEVELS = np.zeros(2)
"""Any excess counts. Of the cues, the turn takes the place of the direction."""
_OWN = 1
"""Number of that cue."""


class Turns(NamedTuple):
    """Turns of documents."""

    of: Indices
    """The turn of each document."""
    n: int
    """How many turns there are."""


def turns_of(
    behaviours: NDArray[np.integer], n_behaviours: int, first: Flags, before: Sequence[int] = ()
) -> Indices:
    """Return the turn of each document, a number below the square of `n_behaviours`.

    `behaviours` are the most probable ones. The very first document of `first` goes on where
    `before` has the behaviours of those just before it, of the same sequence.

    Examples
    --------
    >>> first = np.array([True, False, False, False])
    >>> turns_of(np.array([0, 1, 1, 1]), 2, first).tolist()  # 0 to 0, 0 to 1, 0 to 1, 1 to 1
    [0, 1, 1, 3]
    """
    labels = np.concatenate([np.array(before[-BACK:], dtype=np.int64), behaviours])
    n_before = len(labels) - len(first)
    starts = np.zeros(len(labels), dtype=np.bool_)
    starts[n_before + 1 :] = first[1:]  # the sequence of the very first one starts at 0
    number = np.arange(len(labels))
    earliest = np.maximum.accumulate(np.where(starts, number, 0))
    turns = n_behaviours * labels[np.maximum(number - BACK, earliest)] + labels
    return np.asarray(turns[n_before:], dtype=np.int64)


def turn_after(recent: Sequence[int], behaviour: int, n_behaviours: int) -> int:
    """Return the turn of one document, given the behaviours of at most `BACK` before it."""
    return n_behaviours * (recent[0] if recent else behaviour) + behaviour


@dataclass(frozen=True, eq=False)
class TurnCounts(Additive):
    """How often cells moved in each of four ways at each turn."""

    moved: Array
    """Documents: cells x 4 x turns."""
    documents: Array
    """With and without motion, at each turn."""

    @classmethod
    def of(
        cls, votes: DocumentVotes, turns: Indices, n_turns: int, vocabulary: Vocabulary
    ) -> "TurnCounts":
        """Return the counts of documents; those of no turn are not counted."""
        ways = votes.directions // (vocabulary.directions // N_DIRECTIONS)
        at = np.repeat(turns, np.diff(votes.indptr))
        counted = at != NO_TURN
        shape = vocabulary.n_cells, N_DIRECTIONS, n_turns
        codes = ((votes.cells * N_DIRECTIONS + ways) * n_turns + at)[counted]
        moved = np.bincount(codes, minlength=int(np.prod(shape))).reshape(shape)
        documents = np.bincount(turns[turns != NO_TURN], minlength=n_turns)
        return cls(moved.astype(np.float64), documents.astype(np.float64))

    def adding(self, votes: Votes, vocabulary: Vocabulary, times: float = 1.0) -> "TurnCounts":
        """Return the counts with one more document at every turn: it is normal at any."""
        return self.adding_all([(votes, times)], vocabulary)

    def adding_all(
        self, documents: Iterable[tuple[Votes, float]], vocabulary: Vocabulary
    ) -> "TurnCounts":
        """Return the counts with documents added one after the other, as `adding` takes them."""
        moved, n_documents = self.moved.copy(), self.documents
        for votes, times in documents:
            ways = votes.directions // (vocabulary.directions // N_DIRECTIONS)
            moved[votes.cells, ways] += times
            n_documents = n_documents + times
        return TurnCounts(moved, n_documents)


def turn_surprisals(
    counts: TurnCounts, habits: Habits, concentrations: Sequence[float], vocabulary: Vocabulary
) -> Array:
    """Return ln p(moves that way | cell) - ln p(moves that way | cell, turn) where positive.

    The result is turns x cells x 4.
    """
    rates = context_rates(_levels(counts, habits, vocabulary), concentrations)
    by_turn = rates.reshape(counts.moved.shape).transpose(2, 0, 1)
    return np.maximum(-np.log(by_turn), 0.0)


def fit_turns(
    parts: Sequence[TurnCounts], habits: Sequence[Habits], vocabulary: Vocabulary
) -> ContextFit:
    """Return the concentrations that predict each part best from all others, with their habits."""
    total = reduce(add, parts)
    pairs = list(zip(parts, habits, strict=True))
    levels = [_levels(total - part, part_habits, vocabulary) for part, part_habits in pairs]
    moved = [_flat(part.moved) for part in parts]
    expected = [_flat(_expected(part, part_habits)) for part, part_habits in pairs]
    best, reached = fit_contexts(levels, moved, expected)
    return ContextFit(best, reached / max(float(total.moved.sum()), 1.0))


def turn_habits(surprisals: Array, vocabulary: Vocabulary) -> tuple[Habits, ...]:
    """Return habits of the direction alone for each turn, with its surprisals."""
    v = vocabulary
    place, speed = np.zeros(v.n_cells), np.zeros((v.n_cells, N_DIRECTIONS, v.speeds))
    ways = np.repeat(surprisals, v.directions // N_DIRECTIONS, axis=2)
    return tuple(Habits(place, direction, speed) for direction in ways)


def turn_evidence(votes: Votes, habits: Habits, vocabulary: Vocabulary) -> DocumentEvidence:
    """Return the evidence of one document by the habits of its turn: one cue, a scan."""
    evidence = document_evidence(votes, habits, _LEVELS, vocabulary)
    return DocumentEvidence(
        evidence.statistics[2 * _OWN : 2 * _OWN + 1],
        evidence.windows[_OWN:],
        evidence.excesses[:, _OWN:],
    )


def gather_turns(
    votes: DocumentVotes, habits: Sequence[Habits], turns: Indices, vocabulary: Vocabulary
) -> Array:
    """Return the scan of many documents by the habits of their turns; 0 where there is none."""
    scans = np.zeros(votes.n_documents)
    for turn in np.unique(turns[turns != NO_TURN]).tolist():
        chosen = np.flatnonzero(turns == turn)
        statistics = gather_statistics(votes.take(chosen), habits[turn], _LEVELS, vocabulary)
        scans[chosen] = statistics[:, 2 * _OWN]
    return scans


def _levels(counts: TurnCounts, habits: Habits, vocabulary: Vocabulary) -> Levels:
    return context_levels(_flat(counts.moved), _flat(_expected(counts, habits)), vocabulary)


def _expected(counts: TurnCounts, habits: Habits) -> Array:
    """Return how often cells would have moved each way if the turn made no difference."""
    ways = np.exp(-habits.direction).reshape(len(habits.place), N_DIRECTIONS, -1).sum(axis=2)
    return np.asarray((np.exp(-habits.place)[:, None] * ways)[..., None] * counts.documents)


def _flat(counts: Array) -> Array:
    """Return counts with one row per cell."""
    return counts.reshape(len(counts), -1)
