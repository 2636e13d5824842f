"""Habits of standing: for how long anything stands at a place.

A document in which something has stood in a cell for t documents is one of a class of t, half an
octave wide. How often each class is seen in a cell, or none, is predicted as other habits are: by
the cell, the cells around it and the frame. The surprisal of standing for t is -ln P(something has
stood here for as long as t or longer), by the survival of what stands there: a queue at its light
is usual, the same in the middle of the junction is not, nor is a queue that outlasts its green.
What has stood for some seconds only surprises nowhere.

Cells beside each other that came to stand at about the same time are one thing. Its evidence is the
*least* surprisal of its cells: a lorry hides places where nothing stands, but its wheels are where
vehicles stop; of a bag, or of a car that broke down, every part is where nothing stands as long.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags, Indices
from habitus.compiled import compiled
from habitus.corpus.stands import StandingCells, StandingWords
from habitus.corpus.tree_sum import Additive
from habitus.corpus.vocabulary import Vocabulary
from habitus.habits.predictive import class_probabilities, fit_classes

EDGES: Indices = np.unique(np.round(3 * 2 ** (np.arange(24) / 2))).astype(np.int64)
"""Least age of each class in documents: 3, 4, 6, 8, 12 ... to an hour and a half of seconds."""
N_CLASSES = len(EDGES)
LEAST_AGE = 17
"""Documents for which something has stood before that surprises anybody, an edge: people stop for
some seconds anywhere, also where nobody stood before."""
LEAST_CELLS = 3
"""Cells of a thing: fewer are noise, or a marking that the light changed."""
SMALL = 2.0
"""A thing of n cells has n / (n + SMALL) of its evidence."""
AT_ONCE = 2
"""Documents between the onsets of neighbouring cells of one thing, at most."""
LARGEST = 1 / 8
"""Share of the frame from which on something is no thing, but light."""


@dataclass(frozen=True, eq=False)
class StandingCounts(Additive):
    """In how many documents something stood in each cell, and for how long it had by then."""

    stood: Array
    """Documents: cells x classes of age."""
    documents: float
    """With a known background, whether anything stood or not."""

    @classmethod
    def of(cls, words: StandingWords, usable: Flags, vocabulary: Vocabulary) -> "StandingCounts":
        """Return the counts of those documents that are usable."""
        counted = words.known & usable
        entries = np.repeat(counted, words.entries.lengths)
        codes = words.entries.indices[entries].astype(np.int64) * N_CLASSES
        codes += classes_of(words.entries.data[entries])
        shape = vocabulary.n_cells, N_CLASSES
        stood = np.bincount(codes, minlength=int(np.prod(shape))).reshape(shape)
        return cls(stood.astype(np.float64), float(counted.sum()))

    def adding(self, standing: StandingCells, times: float = 1.0) -> "StandingCounts":
        """Return the counts with one more document, counted several times or, below 0, not."""
        stood = self.stood.copy()
        stood[standing.cells, classes_of(standing.ages)] += times
        return StandingCounts(stood, self.documents + times)

    def longest(self, cells: Indices) -> int:
        """Return the least age that nothing reached in any of these cells, in documents.

        That is the end of the longest class that was seen; 0 where nothing ever stood.
        """
        seen = np.flatnonzero(np.round(self.stood[cells].sum(axis=0)))
        return int(EDGES[min(seen[-1] + 1, N_CLASSES - 1)]) if len(seen) else 0


class StandingEvidence(NamedTuple):
    """The thing that stands longest for its place."""

    statistic: float
    cells: Indices
    """Its cells; none where nothing stands."""
    surprisals: Array
    """Of each of them."""
    age: int
    """Documents since it came."""


def classes_of(ages: NDArray[np.generic]) -> Indices:
    """Return the class of each age."""
    return np.maximum(np.searchsorted(EDGES, ages, side="right") - 1, 0)


def standing_surprisals(
    counts: StandingCounts, concentrations: Sequence[float], vocabulary: Vocabulary
) -> Array:
    """Return -ln P(something has stood as long or longer | cell): cells x classes of age.

    Below `LEAST_AGE` it is 0.
    """
    classes = class_probabilities(_of_cells(counts), concentrations, vocabulary)
    as_long = np.cumsum(classes[:, :0:-1], axis=1)[:, ::-1]
    return np.where(EDGES < LEAST_AGE, 0.0, -np.log(as_long))


def fit_standing(parts: Sequence[StandingCounts], vocabulary: Vocabulary) -> tuple[float, ...]:
    """Return the concentrations that predict each part best from all others."""
    total = reduce(add, parts)
    pairs = [(_of_cells(total - part), _of_cells(part)) for part in parts]
    return fit_classes(pairs, vocabulary)


def standing_evidence(
    standing: StandingCells, surprisals: Array, vocabulary: Vocabulary
) -> StandingEvidence:
    """Return the evidence of one document."""
    words = StandingWords.of([standing], vocabulary.n_cells)
    statistics, members = _gathered(words, surprisals, vocabulary)
    cells, ages = words.entries.indices[members].astype(np.int64), words.entries.data[members]
    own, age = surprisals[cells, classes_of(ages)], int(ages.max(initial=0))
    return StandingEvidence(float(statistics[0]), cells, own, age)


def gather_standing(words: StandingWords, surprisals: Array, vocabulary: Vocabulary) -> Array:
    """Return the statistic of many documents; 0 where nothing stands."""
    return _gathered(words, surprisals, vocabulary)[0]


def implant_statistic(surprisals: Array, middle: int, age: float, columns: int) -> float:
    """Return the statistic of a thing of 3 x 3 cells around a cell that is not at the border."""
    across = np.arange(-1, 2)
    block = (middle + columns * across[:, None] + across).ravel()
    least = surprisals[block, classes_of(np.array(age))].min()
    return float(least * len(block) / (len(block) + SMALL))


def _gathered(
    words: StandingWords, surprisals: Array, vocabulary: Vocabulary
) -> tuple[Array, Flags]:
    """Return the statistic of each document, and which entries are of its thing."""
    entries = words.entries
    cells = entries.indices.astype(np.int64)
    values = surprisals[cells, classes_of(entries.data)]
    statistics = np.zeros(entries.n_documents)
    members = np.zeros(len(cells), dtype=np.bool_)
    largest = int(LARGEST * vocabulary.n_cells)
    grid = vocabulary.rows, vocabulary.columns
    indptr, ages = entries.indptr.astype(np.int64), entries.data.astype(np.int64)
    _gather_things(indptr, cells, ages, values, grid, largest, statistics, members)
    return statistics, members


def _of_cells(counts: StandingCounts) -> Array:
    """Return the documents in which nothing stood in a cell, then those of each class."""
    none = counts.documents - counts.stood.sum(axis=1)
    return np.concatenate([none[:, None], counts.stood], axis=1)


@compiled
def _gather_things(
    indptr: Indices,
    cells: Indices,
    ages: Indices,
    values: Array,
    grid: tuple[int, int],
    largest: int,
    statistics: Array,
    members: Flags,
) -> None:
    """Assign the evidence of the heaviest thing of each document, and its entries.

    Of neighbouring cells whose ages differ by at most `AT_ONCE`, one thing is made; of n cells with
    the values v it weighs `v.min() * n / (n + SMALL)`, and 0 where n is small or large.
    """
    rows, columns = grid
    entry_at = np.full((rows + 2, columns + 2), -1)
    thing = np.full(len(cells), -1)
    stack = np.empty(len(cells), dtype=np.int64)
    for t in range(len(indptr) - 1):
        start, end = indptr[t], indptr[t + 1]
        for i in range(start, end):
            entry_at[cells[i] // columns + 1, cells[i] % columns + 1] = i
        best = -1
        for first in range(start, end):
            if thing[first] >= 0:
                continue
            thing[first], stack[0], waiting = first, first, 1
            n, least = 0, np.inf
            while waiting:
                waiting -= 1
                i = stack[waiting]
                n, least = n + 1, min(least, values[i])
                r, c = cells[i] // columns, cells[i] % columns
                for y in range(r, r + 3):
                    for x in range(c, c + 3):
                        k = entry_at[y, x]
                        if k >= 0 and thing[k] < 0 and abs(ages[k] - ages[i]) <= AT_ONCE:
                            thing[k], stack[waiting] = first, k
                            waiting += 1
            weight = least * n / (n + SMALL)
            if LEAST_CELLS <= n <= largest and weight > statistics[t]:
                statistics[t], best = weight, first
        for i in range(start, end):
            entry_at[cells[i] // columns + 1, cells[i] % columns + 1] = -1
            members[i] = best >= 0 and thing[i] == best
