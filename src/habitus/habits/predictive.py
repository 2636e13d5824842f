"""Predictive probabilities of votes: hierarchical Dirichlet counts, cell to frame.

Three questions are asked of a vote, each apart: does anything move in this cell (place)? Given
that it does, this way (direction)? Given that too, this fast (speed)? What a cell has shown so far
is completed by what the cells around it have shown, within 1, 2 and 4 cells, and by the whole
frame. With n the counts of a level and p' the probabilities of the next wider one,

    p = (n + concentration * p') / (n.sum() + concentration):

the mean of a Dirichlet posterior with p' as its prior. The concentrations, one per level, are those
that predict held-out footage best.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, inner_product
from habitus.corpus.vocabulary import Vocabulary
from habitus.habits.counts import HabitCounts

SPREADS = (4.0, 2.0, 1.0)
"""Standard deviations of the neighbourhoods in cells, the widest first."""
CONCENTRATIONS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10_000.0)
"""Values that are tried; each level starts with 10."""
START = 10.0
ROUNDS = 2
N_LEVELS = {"place": 5, "direction": 5, "speed": 6}
"""Levels of each question: frame, three neighbourhoods, cell; speeds have two of the frame, of all
directions and of each."""

Concentrations = dict[str, tuple[float, ...]]
"""One concentration per level, from the frame to the cell, for each question."""


class Habits(NamedTuple):
    """Surprisals of votes, in nats."""

    place: Array
    """-ln p(moves) of each cell."""
    direction: Array
    """-ln p(direction | cell, moves): cells x directions."""
    speed: Array
    """-ln p(speed | cell, one of four directions): cells x 4 x speeds."""

    @classmethod
    def of(
        cls, counts: HabitCounts, concentrations: Concentrations, vocabulary: Vocabulary
    ) -> "Habits":
        """Return the habits that counts amount to.

        Examples
        --------
        >>> from habitus.habits.votes import Votes
        >>> vocabulary = Vocabulary(1, 1)
        >>> counts = HabitCounts.none(vocabulary)
        >>> for codes, times in (([1], 2), ([], 6)):
        ...     counts = counts.adding(Votes.of_codes(np.array(codes), vocabulary), times)
        >>> strong_cell = {"place": (1e-9,) * 5, "direction": (1e-9,) * 5, "speed": (1e-9,) * 6}
        >>> habits = Habits.of(counts, strong_cell, vocabulary)
        >>> np.exp(-habits.place).round(6), np.exp(-habits.direction[0]).round(6)
        (array([0.25]), array([0., 1., 0., 0.]))
        """
        probabilities = (
            _predicted(list(_levels(question, counts, vocabulary)), concentrations[question])
            for question in N_LEVELS
        )
        place, direction, speed = (-np.log(probability) for probability in probabilities)
        return cls(place[:, 1].copy(), direction, speed)


def fit_concentrations(folds: Sequence[HabitCounts], vocabulary: Vocabulary) -> Concentrations:
    """Return the concentrations that predict each fold best from all others.

    One concentration after the other is set to the best of `CONCENTRATIONS`, twice over all levels.
    """
    total = HabitCounts.total(folds)
    return _fitted([(total - fold, fold) for fold in folds], vocabulary)


def fit_young_concentrations(
    parts: Sequence[HabitCounts], total: HabitCounts, vocabulary: Vocabulary
) -> Concentrations:
    """Return the concentrations that predict all other footage best from each short part alone.

    What a camera knows after the length of a part is so little that the parts before and after a
    held-out one, which show the same things, would be mistaken for habits.
    """
    return _fitted([(part, total - part) for part in parts], vocabulary)


def fit_classes(pairs: Sequence[tuple[Array, Array]], vocabulary: Vocabulary) -> tuple[float, ...]:
    """Return the concentrations that predict the second of each pair best from the first.

    Each is a count of classes by cell: cells x classes.
    """
    parts = [_seen_levels(_cell_levels(rest, vocabulary), seen) for rest, seen in pairs]
    return _best(*_beside(parts), pairs[0][1].shape[-1])


def class_probabilities(
    counts: Array, concentrations: Sequence[float], vocabulary: Vocabulary
) -> Array:
    """Return the predictive probabilities of classes, given their counts: cells x classes."""
    return _predicted(list(_cell_levels(counts, vocabulary)), concentrations)


def _fitted(
    pairs: Sequence[tuple[HabitCounts, HabitCounts]], vocabulary: Vocabulary
) -> Concentrations:
    """Return the concentrations that predict the second of each pair best from the first."""
    best: Concentrations = {}
    for question in N_LEVELS:
        parts = [
            _seen_levels(_levels(question, rest, vocabulary), _of_cells(question, seen))
            for rest, seen in pairs
        ]
        best[question] = _best(*_beside(parts), _n_classes(question, pairs[0][0]))
    return best


def _beside(parts: Sequence[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    """Return counts, totals and weights of all parts, beside each other."""
    counts, totals, weights = (np.concatenate(columns, -1) for columns in zip(*parts, strict=True))
    return counts, totals, weights


def _n_classes(question: str, counts: HabitCounts) -> int:
    """Return the number of answers to a question."""
    if question == "place":
        return 2
    return int((counts.direction if question == "direction" else counts.speed).shape[-1])


def _best(counts: Array, totals: Array, weights: Array, n_classes: int) -> tuple[float, ...]:
    """Return the concentrations of the highest likelihood of the classes that were seen.

    Of each level, `counts` are those of the class that was seen, `totals` of all classes; levels x
    seen. `weights` say how often it was seen.
    """
    probability, divisor = np.empty((2, counts.shape[1]))

    def go_down(wider: Array | float, concentrations: Sequence[float], first: int) -> Array:
        """Set `probability` to that of the last level, from that of the level before the first."""
        for level in range(first, len(concentrations)):
            np.multiply(wider, concentrations[level], out=probability)
            np.add(probability, counts[level], out=probability)
            np.add(totals[level], concentrations[level], out=divisor)
            wider = np.divide(probability, divisor, out=probability)
        return probability

    @lru_cache(maxsize=len(counts))
    def settled(concentrations: tuple[float, ...]) -> Array | float:
        """Return the probability of the last of some levels."""
        if not concentrations:
            return 1 / n_classes
        *wider, _ = concentrations
        return go_down(settled(tuple(wider)), concentrations, len(wider)).copy()

    def likelihood(concentrations: list[float], level: int) -> float:
        wider = settled(tuple(concentrations[:level]))
        np.log(go_down(wider, concentrations, level), out=probability)
        return inner_product(weights, probability)

    return best_concentrations(likelihood, len(counts))


def best_concentrations(
    likelihood: Callable[[list[float], int], float], n_levels: int
) -> tuple[float, ...]:
    """Return the concentrations of the highest likelihood, found level after level.

    `likelihood` is given the concentrations of all levels, and the level of which values are tried:
    those before it stay as they are from call to call.
    """
    best = [START] * n_levels
    highest = likelihood(best, 0)
    for _ in range(ROUNDS):
        for level in range(n_levels):
            for value in CONCENTRATIONS:
                tried = [*best[:level], value, *best[level + 1 :]]
                reached = likelihood(tried, level)
                if reached > highest:
                    highest, best = reached, tried
    return tuple(best)


def _seen_levels(levels: Iterable[Array], seen: Array) -> tuple[Array, Array, Array]:
    """Return what `_best` needs of one part that was seen, given the levels of all others."""
    at = np.nonzero(seen)
    counts, totals = [], []
    for level in levels:
        whole = np.broadcast_to(level, seen.shape)
        counts.append(whole[at])
        totals.append(np.broadcast_to(level.sum(axis=-1), seen.shape[:-1])[at[:-1]])
    return np.stack(counts), np.stack(totals), seen[at]


def _predicted(levels: list[Array], concentrations: Sequence[float]) -> Array:
    """Return the predictive probabilities of the last level."""
    probability = np.full(levels[-1].shape[-1], 1 / levels[-1].shape[-1])
    for counts, concentration in zip(levels, concentrations, strict=True):
        total = counts.sum(axis=-1, keepdims=True)
        probability = (counts + concentration * probability) / (total + concentration)
    return probability


def _levels(question: str, counts: HabitCounts, vocabulary: Vocabulary) -> Iterator[Array]:
    """Yield the counts of each level of a question, from the frame to the cell."""
    cell = _of_cells(question, counts)
    if question == "speed":
        yield cell.sum(axis=(0, 1))
    yield from _cell_levels(cell, vocabulary)


def _cell_levels(cell: Array, vocabulary: Vocabulary) -> Iterator[Array]:
    """Yield the counts of the frame, then those around each cell."""
    yield cell.sum(axis=0)
    yield from neighbourhoods(cell, vocabulary)


def neighbourhoods(cell: Array, vocabulary: Vocabulary) -> Iterator[Array]:
    """Yield counts of the cells around each cell, from the widest to the cell alone."""
    for spread in SPREADS:
        yield _around(cell, spread, vocabulary)
    yield cell


def _of_cells(question: str, counts: HabitCounts) -> Array:
    """Return the counts of a question's answers, by cell."""
    if question == "place":
        return np.stack([counts.n_documents - counts.moving, counts.moving], axis=-1)
    return counts.direction if question == "direction" else counts.speed


def _around(counts: Array, spread: float, vocabulary: Vocabulary) -> Array:
    """Return counts summed over the cells around each, with the weights of a Gaussian (1 at 0)."""
    from scipy.ndimage import gaussian_filter1d

    whole = counts.reshape(vocabulary.rows, vocabulary.columns, -1)
    seen = whole.any(axis=(0, 1))  # the others, often most, stay 0
    grid = whole[..., seen]
    for axis in (0, 1):
        grid = gaussian_filter1d(grid, spread, axis=axis, mode="constant", truncate=3.0)
    around = np.zeros(whole.shape)
    around[..., seen] = 2 * np.pi * spread**2 * np.maximum(grid, 0.0)
    return around.reshape(counts.shape)
