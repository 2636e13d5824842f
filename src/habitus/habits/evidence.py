"""Evidence of the unusual: surprisal beyond its level, gathered over windows and over the frame.

Each cue has a surprisal for every vote: place, direction, speed, and all three together. What
exceeds the level, the median of held-out footage, is summed over every window of 5 x 5 cells (scan:
one small thing) and over the frame (sum: a whole crowd). A sum of n votes is divided by
(n + votes) ** 0.75: between the mean, which forgets how many agree, and the total, which rewards
crowds for being crowds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Indices
from habitus.compiled import compiled
from habitus.corpus.vocabulary import Vocabulary
from habitus.habits.predictive import Habits
from habitus.habits.votes import DocumentVotes, Votes

CUES = ("place", "direction", "speed", "together")
TOGETHER = CUES.index("together")
GATHERINGS = ("scan", "sum")
STATISTICS = tuple((cue, gathering) for cue in CUES for gathering in GATHERINGS)
"""What a document is judged by, in the order of the columns."""
REACH = 2
"""Cells on each side of the middle of a window."""
WINDOW_VOTES, FRAME_VOTES = 20.0, 80.0
"""Votes without any excess that are added to those of a window, and of the frame."""
POWER = 0.75
LEVEL_QUANTILE = 0.5
"""Share of normal votes with a surprisal under the level of a cue."""
RESOLUTION, HIGHEST = 0.005, 40.0
"""Steps and end of the histogram that levels are read from, in nats."""

_SIDE = 2 * REACH + 1
_WINDOW_WEIGHTS: Array = np.asarray(
    (np.arange(_SIDE * _SIDE + 1) + WINDOW_VOTES) ** -POWER, dtype=np.float64
)


class DocumentEvidence(NamedTuple):
    """Evidence of one document."""

    statistics: Array
    """One value for each of `STATISTICS`."""
    windows: Indices
    """Middle of the heaviest window of each cue, as the number of a cell."""
    excesses: Array
    """Surprisal of each vote beyond the level, by cue: votes x cues."""

    def beside(self, other: "DocumentEvidence") -> "DocumentEvidence":
        """Return the evidence of these cues and of further ones."""
        joined = (np.concatenate(pair, axis=-1) for pair in zip(self, other, strict=True))
        return DocumentEvidence(*joined)


def document_evidence(
    votes: Votes, habits: Habits, levels: Array, vocabulary: Vocabulary
) -> DocumentEvidence:
    """Return the evidence of one document; cues beyond the last of `levels` are left out."""
    indptr, n_cues = np.array([0, len(votes.cells)]), len(levels)
    grid = vocabulary.rows, vocabulary.columns
    excesses = np.empty((len(votes.cells), n_cues))
    statistics = np.empty((1, n_cues * len(GATHERINGS)))
    windows = np.empty((1, n_cues), dtype=np.int64)
    _gather(indptr, *votes, *habits, levels, grid, excesses, statistics, windows)
    return DocumentEvidence(statistics[0], windows[0], excesses)


def gather_statistics(
    votes: DocumentVotes, habits: Habits, levels: Array, vocabulary: Vocabulary
) -> Array:
    """Return the statistics of many documents: documents x `STATISTICS`; as `document_evidence`."""
    longest, n_cues = int(np.diff(votes.indptr).max(initial=0)), len(levels)
    excesses = np.empty((longest, n_cues))
    statistics = np.empty((votes.n_documents, n_cues * len(GATHERINGS)))
    windows = np.empty((votes.n_documents, n_cues), dtype=np.int64)
    grid = vocabulary.rows, vocabulary.columns
    _gather(*votes, *habits, levels, grid, excesses, statistics, windows)
    return statistics


def surprisal_histograms(votes: DocumentVotes, habits: Habits) -> NDArray[np.int64]:
    """Return how often each cue had which surprisal: cues x steps of `RESOLUTION` nats."""
    histograms = np.zeros((len(CUES), round(HIGHEST / RESOLUTION)), dtype=np.int64)
    _count_surprisals(*votes[1:], *habits, histograms)
    return histograms


def levels_of(histograms: NDArray[np.int64]) -> Array:
    """Return the level of each cue, read from histograms of normal footage."""
    below = np.cumsum(histograms, axis=1)
    reached = below >= LEVEL_QUANTILE * below[:, -1:]
    return np.asarray((reached.argmax(axis=1) + 1) * RESOLUTION, dtype=np.float64)


@compiled
def _count_surprisals(
    cells: Indices,
    directions: Indices,
    speeds: Indices,
    place: Array,
    direction: Array,
    speed: Array,
    histograms: NDArray[np.int64],
) -> None:
    """Add the surprisals of all votes to the histograms."""
    thirds, last = direction.shape[1] // 4, histograms.shape[1] - 1
    for i in range(len(cells)):
        cell, way = cells[i], directions[i]
        one, two = place[cell], direction[cell, way]
        three = speed[cell, way // thirds, speeds[i]]
        for cue, value in enumerate((one, two, three, one + two + three)):
            histograms[cue, min(int(value / RESOLUTION), last)] += 1


@compiled
def _sum_of_five(a: Array, b: Array, c: Array, d: Array, e: Array, out: Array) -> None:
    """`out[:] = a + b + c + d + e`, in this order: the cells of a window along one axis."""
    for x in range(len(out)):
        out[x] = a[x] + b[x] + c[x] + d[x] + e[x]


@compiled
def _draw(
    votes: Votes, habits: Habits, levels: Array, picture: Array, excesses: Array, total: Array
) -> tuple[int, int, int, int]:
    """Draw the excesses of a document's votes; return first and last row and column that have any.

    `picture` is cues and one x rows x columns, all 0; the last of them gets the number of votes.
    `excesses` are of each vote, `total` are their sums.
    """
    columns, n_cues = picture.shape[2] - 2 * REACH, len(total)
    thirds = habits.direction.shape[1] // 4
    top, bottom, left, right = picture.shape[1] - REACH, -1, picture.shape[2] - REACH, -1
    total[:] = 0.0
    for i in range(len(votes.cells)):
        cell, way = votes.cells[i], votes.directions[i]
        row = cell // columns
        y, x = row + REACH, cell - row * columns + REACH
        top, bottom, left, right = min(top, y), max(bottom, y), min(left, x), max(right, x)
        one, two = habits.place[cell], habits.direction[cell, way]
        three = habits.speed[cell, way // thirds, votes.speeds[i]]
        values = (one, two, three, one + two + three)
        for cue in range(n_cues):
            excess = max(values[cue] - levels[cue], 0.0)
            excesses[i, cue] = excess
            picture[cue, y, x] = excess
            total[cue] += excess
        picture[n_cues, y, x] = 1.0
    return top, bottom, left, right


@compiled
def _gather(
    indptr: Indices,
    cells: Indices,
    directions: Indices,
    speeds: Indices,
    place: Array,
    direction: Array,
    speed: Array,
    levels: Array,
    grid: tuple[int, int],
    excesses: Array,
    statistics: Array,
    windows: Indices,
) -> None:
    """Assign the statistics and the heaviest windows of each document, and the last excesses.

    With `e` the excesses of a cue and `n` the votes as pictures with a margin of REACH cells, the
    scan is the largest value of `window_sum(e) / (window_sum(n) + WINDOW_VOTES) ** POWER`, and the
    sum is `e.sum() / (n.sum() + FRAME_VOTES) ** POWER`.
    """
    habits, side, n_cues = Habits(place, direction, speed), 2 * REACH + 1, len(levels)
    rows, columns = grid
    # Pictures with a margin, rows x columns; the last of them holds the number of votes.
    picture = np.zeros((n_cues + 1, rows + 2 * REACH, columns + 2 * REACH))
    across = np.empty((rows + 2 * REACH, columns))
    weights, down = np.empty((rows, columns)), np.empty(columns)
    total = np.zeros(n_cues)
    for t in range(len(indptr) - 1):
        start, end = indptr[t], indptr[t + 1]
        # Rows and columns of the pictures that have votes.
        votes = Votes(cells[start:end], directions[start:end], speeds[start:end])
        top, bottom, left, right = _draw(votes, habits, levels, picture, excesses, total)
        for cue in range(n_cues):
            statistics[t, 2 * cue] = 0.0
            statistics[t, 2 * cue + 1] = total[cue] / (end - start + FRAME_VOTES) ** POWER
            windows[t, cue] = cells[start] if end > start else 0
        # Windows that have votes. In the pictures, their cells follow their number: r to r + 4.
        first = max(left - 2 * REACH, 0)
        n = max(min(right, columns - 1) + 1 - first, 0)
        above, below = max(top - 2 * REACH, 0), min(bottom, rows - 1)
        across[above:top], across[bottom + 1 : below + side] = 0.0, 0.0
        for plane in range(n_cues, -1, -1):  # the number of votes first
            for y in range(top, bottom + 1):
                line = picture[plane, y, first:]
                _sum_of_five(line, line[1:], line[2:], line[3:], line[4:], across[y, :n])
            for r in range(above, below + 1):
                lines, weight = across[r:], weights[r, :n]
                _sum_of_five(lines[0], lines[1], lines[2], lines[3], lines[4], down[:n])
                if plane == n_cues:
                    for x in range(n):
                        weight[x] = _WINDOW_WEIGHTS[int(down[x])]
                    continue
                heaviest = statistics[t, 2 * plane]
                for x in range(n):
                    value = down[x] * weight[x]
                    if value > heaviest:
                        heaviest = value
                        windows[t, plane] = r * columns + first + x
                statistics[t, 2 * plane] = heaviest
        for plane in range(n_cues + 1):
            for y in range(top, bottom + 1):
                picture[plane, y, left : right + 1] = 0.0
