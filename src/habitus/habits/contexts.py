"""Rates of motion in a context, such as an hour of the day: how much more often than at all.

With n the documents of a context in which cells moved, and e how many of them would be expected if
the context made no difference,

    rate = (n + concentration * rate') / (e + concentration)

is the mean of a gamma posterior of p(moves | cell, context) / p(moves | cell). The prior is the
rate' of the next wider level: of cells within 1, 2 and 4 cells, of the whole frame, and 1 beyond.
The concentrations, one per level, are those under which each held-out part of the footage is most
probable given the others.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array
from habitus.corpus.vocabulary import Vocabulary
from habitus.habits.predictive import SPREADS, best_concentrations, neighbourhoods

N_CONTEXT_LEVELS = len(SPREADS) + 2
"""Levels: frame, three neighbourhoods, cell."""

Levels = list[tuple[Array, Array]]
"""What moved and what was expected to, from the frame to the cell: cells x contexts."""


class ContextFit(NamedTuple):
    """How well contexts predict footage that was held out."""

    concentrations: tuple[float, ...]
    gain: float
    """Nats per moving cell by which they predict it better than the place alone."""


def context_levels(moved: Array, expected: Array, vocabulary: Vocabulary) -> Levels:
    """Return the levels of what moved and what was expected to: cells x contexts each."""
    cells = (neighbourhoods(counts, vocabulary) for counts in (moved, expected))
    return [(moved.sum(axis=0), expected.sum(axis=0)), *zip(*cells, strict=True)]


def context_rates(levels: Levels, concentrations: Sequence[float]) -> Array:
    """Return the rates of the last level: cells x contexts.

    Examples
    --------
    >>> frame, cells = (np.array([6.0]), np.array([2.0])), (np.array([[0.0]]), np.array([[1.0]]))
    >>> context_rates([frame, cells], [1.0, 1.0])  # 7 / 3, then (0 + 7 / 3) / (1 + 1)
    array([[1.16666667]])
    """
    rate: Array = np.ones(1)
    for (moved, expected), concentration in zip(levels, concentrations, strict=True):
        rate = (moved + concentration * rate) / (expected + concentration)
    return rate


def context_gain(rates: Array, moved: Array, expected: Array) -> float:
    """Return the log-likelihood of Poisson counts by these rates, less that by a rate of 1."""
    return float((moved * np.log(rates) - expected * (rates - 1.0)).sum())


def fit_contexts(
    levels: Sequence[Levels],
    moved: Sequence[Array],
    expected: Sequence[Array],
    rates: Callable[[Levels, Sequence[float]], Array] = context_rates,
) -> tuple[tuple[float, ...], float]:
    """Return the concentrations that predict held-out parts best, and the gain in nats.

    Of each part, `levels` are those of all others; `moved` and `expected` are its own, in the shape
    that `rates` returns.
    """
    parts = list(zip(levels, moved, expected, strict=True))

    def likelihood(tried: Sequence[float], level: int = 0) -> float:
        return sum(context_gain(rates(part_levels, tried), n, e) for part_levels, n, e in parts)

    best = best_concentrations(likelihood, N_CONTEXT_LEVELS)
    return best, likelihood(best)
