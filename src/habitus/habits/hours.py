"""Habits of the hour: how much more or less often a cell moves at an hour of the day than at all.

With n the documents in which cells moved at about this hour, and e how many of them would be
expected if the hour made no difference, e = p(moves | cell) * documents at about this hour,

    rate = (n + concentration * rate') / (e + concentration)

is the mean of a gamma posterior of p(moves | cell, hour) / p(moves | cell). The prior is the rate'
of the next wider level: of cells within 1, 2 and 4 cells, of the whole frame, and 1 beyond. Hours
are smooth on the circle of the day: hours beside an hour count as well, with Gaussian weights. The
concentrations, one per level, are those under which each held-out day is most probable given the
others.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Indices
from habitus.corpus.clocks import N_HOURS
from habitus.corpus.vocabulary import N_DIRECTIONS, Vocabulary
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import DocumentEvidence, document_evidence, gather_statistics
from habitus.habits.predictive import (
    SPREADS,
    Concentrations,
    Habits,
    best_concentrations,
    neighbourhoods,
)
from habitus.habits.votes import DocumentVotes, Votes

HOUR = "hour"
"""The cue; its concentrations have this name."""
N_HOUR_LEVELS = len(SPREADS) + 2
"""Levels: frame, three neighbourhoods, cell."""
SPREAD, FARTHEST = 1.0, 3
"""Standard deviation of the weights of hours, and the farthest hour that counts."""
HOUR_STATISTICS = ((HOUR, "scan"), (HOUR, "sum"))
NO_LEVEL = np.zeros(1)
"""Any excess counts: the surprisal of an hour is one beyond that of the place already."""


class HourFit(NamedTuple):
    """How well the hour predicts days that were held out."""

    concentrations: tuple[float, ...]
    gain: float
    """Nats per moving cell by which the hour predicts them better than the place alone."""


def hour_rates(
    counts: HabitCounts, place: Array, concentrations: Sequence[float], vocabulary: Vocabulary
) -> Array:
    """Return p(moves | cell, hour) / p(moves | cell): 24 x cells.

    Parameters
    ----------
    counts
        What was seen.
    place
        -ln p(moves) of each cell: `Habits.place`.
    concentrations
        One per level, from the frame to the cell.
    vocabulary
        The grid.

    Examples
    --------
    >>> from dataclasses import replace
    >>> counts = HabitCounts.none(Vocabulary(1, 1))
    >>> counts = replace(counts, hours=np.eye(1, 24), hour_documents=np.ones(24))
    >>> rates = hour_rates(counts, -np.log([1 / 24]), (1.0,) * 5, Vocabulary(1, 1))
    >>> bool(rates[0, 0] > rates[23, 0] == rates[1, 0] > rates[12, 0])
    True
    """
    return _rates(list(_hour_levels(counts, place, vocabulary)), concentrations)


def hour_surprisals(
    counts: HabitCounts, place: Array, concentrations: Sequence[float], vocabulary: Vocabulary
) -> Array:
    """Return ln p(moves | cell) - ln p(moves | cell, hour) where positive: 25 x cells.

    The last row is of documents without a clock, for which it is 0.
    """
    rates = hour_rates(counts, place, concentrations, vocabulary)
    found = np.zeros((N_HOURS + 1, rates.shape[1]))
    found[:N_HOURS] = np.maximum(-np.log(rates), 0.0)
    return found


def fit_hours(
    days: Sequence[HabitCounts], concentrations: Concentrations, vocabulary: Vocabulary
) -> HourFit:
    """Return the concentrations that predict each day, or group of days, best from all others.

    Parameters
    ----------
    days
        Counts of parts of the footage, none of which shares a day with another.
    concentrations
        Those of the place.
    vocabulary
        The grid.
    """
    total = HabitCounts.total(days)
    parts = []
    for day in days:
        place = Habits.of(total - day, concentrations, vocabulary).place
        levels = list(_hour_levels(total - day, place, vocabulary))
        parts.append((levels, day.hours.T, day.hour_documents[:, None] * np.exp(-place)))

    def likelihood(tried: Sequence[float], level: int = 0) -> float:
        return sum(_gain(_rates(levels, tried), n, e) for levels, n, e in parts)

    found = best_concentrations(likelihood, N_HOUR_LEVELS)
    return HourFit(found, likelihood(found) / max(float(total.hours.sum()), 1.0))


def hour_gain(
    counts: HabitCounts,
    further: HabitCounts,
    place: Array,
    concentrations: Sequence[float],
    vocabulary: Vocabulary,
) -> float:
    """Return the nats per moving cell by which the hour predicts further footage better.

    Parameters
    ----------
    counts
        What was seen before.
    further
        What is predicted.
    place, concentrations, vocabulary
        As of `hour_rates`.
    """
    rates = hour_rates(counts, place, concentrations, vocabulary)
    expected = further.hour_documents[:, None] * np.exp(-place)
    return _gain(rates, further.hours.T, expected) / max(float(further.hours.sum()), 1.0)


def hour_evidence(
    votes: Votes, surprisals: Array, hour: int, vocabulary: Vocabulary
) -> DocumentEvidence:
    """Return the evidence of one document by its hour, gathered as that of other cues."""
    return document_evidence(votes, _as_place(surprisals[hour], vocabulary), NO_LEVEL, vocabulary)


def gather_hours(
    votes: DocumentVotes, surprisals: Array, hours: Indices, vocabulary: Vocabulary
) -> Array:
    """Return the statistics of many documents by their hours: documents x `HOUR_STATISTICS`."""
    statistics = np.zeros((votes.n_documents, len(HOUR_STATISTICS)))
    for hour in np.unique(hours):
        own, habits = np.flatnonzero(hours == hour), _as_place(surprisals[hour], vocabulary)
        statistics[own] = gather_statistics(votes.take(own), habits, NO_LEVEL, vocabulary)
    return statistics


def _as_place(surprisals: Array, vocabulary: Vocabulary) -> Habits:
    """Return habits of the place alone, with the surprisals of an hour."""
    v = vocabulary
    direction, speed = (v.n_cells, v.directions), (v.n_cells, N_DIRECTIONS, v.speeds)
    return Habits(surprisals, np.zeros(direction), np.zeros(speed))


def _gain(rates: Array, moved: Array, expected: Array) -> float:
    """Return the log-likelihood of Poisson counts by these rates, less that by a rate of 1."""
    return float((moved * np.log(rates) - expected * (rates - 1.0)).sum())


def _rates(levels: Sequence[tuple[Array, Array]], concentrations: Sequence[float]) -> Array:
    """Return the rates of the last level: hours x cells."""
    rate: Array = np.ones((1, N_HOURS))
    for (moved, expected), concentration in zip(levels, concentrations, strict=True):
        rate = (moved + concentration * rate) / (expected + concentration)
    return np.asarray(rate.T)


def _hour_levels(
    counts: HabitCounts, place: Array, vocabulary: Vocabulary
) -> Iterator[tuple[Array, Array]]:
    """Yield what moved and what was expected to, from the frame to the cell: cells x hours."""
    moved = _about_hours(counts.hours)
    expected = np.exp(-place)[:, None] * _about_hours(counts.hour_documents)
    yield moved.sum(axis=0), expected.sum(axis=0)
    yield from zip(
        neighbourhoods(moved, vocabulary), neighbourhoods(expected, vocabulary), strict=True
    )


def _about_hours(counts: Array) -> Array:
    """Return counts summed over the hours around each, with the weights of a Gaussian (1 at 0)."""
    found = counts.copy()
    for hours in range(1, FARTHEST + 1):
        both = np.roll(counts, hours, axis=-1) + np.roll(counts, -hours, axis=-1)
        found += np.exp(-0.5 * (hours / SPREAD) ** 2) * both
    return found
