"""Habits of the hour: how much more or less often a cell moves at an hour of the day than at all.

With n the documents in which cells moved at about this hour, and e how many of them would be
expected if the hour made no difference, e = p(moves | cell) * documents at about this hour,

    rate = p(moves | cell, hour) / p(moves | cell)

is estimated as `habitus.habits.contexts` has it. Hours are smooth on the circle of the day: hours
beside an hour count as well, with Gaussian weights.

Once there are weeks, workdays and week-ends are apart: by how much the rate of either differs from
that of all days is found in the same way, with e expected by the rate of all days, and with
concentrations of its own; where that predicts held-out days no better, it is left out.
"""

from collections.abc import Sequence

import numpy as np

from habitus.arrays import Array, Indices
from habitus.corpus.clocks import N_HOURS, N_WEEK_HOURS
from habitus.corpus.vocabulary import N_DIRECTIONS, Vocabulary
from habitus.habits.contexts import (
    N_CONTEXT_LEVELS,
    ContextFit,
    Levels,
    context_levels,
    context_rates,
    fit_contexts,
)
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import DocumentEvidence, document_evidence, gather_statistics
from habitus.habits.predictive import Concentrations, Habits
from habitus.habits.votes import DocumentVotes, Votes

HOUR = "hour"
"""The cue; its concentrations have this name."""
SPREAD, FARTHEST = 1.0, 3
"""Standard deviation of the weights of hours, and the farthest hour that counts."""
HOUR_STATISTICS = ((HOUR, "scan"), (HOUR, "sum"))
NO_LEVEL = np.zeros(1)
"""Any excess counts: the surprisal of an hour is one beyond that of the place already."""


def hour_rates(
    counts: HabitCounts, place: Array, concentrations: Sequence[float], vocabulary: Vocabulary
) -> Array:
    """Return p(moves | cell, hour) / p(moves | cell): 48 x cells.

    `place` is -ln p(moves) of each cell. Concentrations are one per level, from the frame to the
    cell; then as many for workdays and week-ends, where they are apart.

    Examples
    --------
    >>> from dataclasses import replace
    >>> counts = HabitCounts.none(Vocabulary(1, 1))
    >>> counts = replace(counts, hours=np.eye(1, 48), hour_documents=np.repeat([1.0, 0.0], 24))
    >>> rates = hour_rates(counts, -np.log([1 / 24]), (1.0,) * 5, Vocabulary(1, 1))
    >>> bool(rates[0, 0] > rates[23, 0] == rates[1, 0] > rates[12, 0])
    True
    """
    common = _rates(_daily_levels(counts, place, vocabulary), concentrations[:N_CONTEXT_LEVELS])
    if len(concentrations) == N_CONTEXT_LEVELS:
        return common
    levels = _weekly_levels(counts, place, common, vocabulary)
    return common * _rates(levels, concentrations[N_CONTEXT_LEVELS:])


def hour_surprisals(
    counts: HabitCounts, place: Array, concentrations: Sequence[float], vocabulary: Vocabulary
) -> Array:
    """Return ln p(moves | cell) - ln p(moves | cell, hour) where positive: 49 x cells.

    The last row is of documents without a clock, for which it is 0.
    """
    rates = hour_rates(counts, place, concentrations, vocabulary)
    surprisals = np.zeros((N_WEEK_HOURS + 1, rates.shape[1]))
    surprisals[:N_WEEK_HOURS] = np.maximum(-np.log(rates), 0.0)
    return surprisals


def fit_hours(
    days: Sequence[HabitCounts],
    concentrations: Concentrations,
    vocabulary: Vocabulary,
    *,
    weeks: bool = False,
) -> ContextFit:
    """Return the concentrations that predict each day, or group of days, best from all others.

    No part shares a day with another; `concentrations` are those of the place. With `weeks`,
    workdays and week-ends may be apart.
    """
    total = HabitCounts.total(days)
    rest = [total - day for day in days]
    places = [Habits.of(counts, concentrations, vocabulary).place for counts in rest]
    moved = [day.hours.T for day in days]
    expected = [
        day.hour_documents[:, None] * np.exp(-place)
        for day, place in zip(days, places, strict=True)
    ]
    daily = [_daily_levels(*pair, vocabulary) for pair in zip(rest, places, strict=True)]
    best, reached = fit_contexts(daily, moved, expected, _rates)
    if weeks:
        common = [_rates(levels, best) for levels in daily]
        weekly = [
            _weekly_levels(*counts, vocabulary) for counts in zip(rest, places, common, strict=True)
        ]
        beyond = [rates * e for rates, e in zip(common, expected, strict=True)]
        apart, further = fit_contexts(weekly, moved, beyond, _rates)
        if further > 0:
            best, reached = best + apart, reached + further
    return ContextFit(best, reached / max(float(total.hours.sum()), 1.0))


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
        chosen, habits = np.flatnonzero(hours == hour), _as_place(surprisals[hour], vocabulary)
        statistics[chosen] = gather_statistics(votes.take(chosen), habits, NO_LEVEL, vocabulary)
    return statistics


def _as_place(surprisals: Array, vocabulary: Vocabulary) -> Habits:
    """Return habits of the place alone, with the surprisals of an hour."""
    v = vocabulary
    direction, speed = (v.n_cells, v.directions), (v.n_cells, N_DIRECTIONS, v.speeds)
    return Habits(surprisals, np.zeros(direction), np.zeros(speed))


def _rates(levels: Levels, concentrations: Sequence[float]) -> Array:
    """Return the rates of the last level: 48 hours x cells."""
    rates = context_rates(levels, concentrations).T
    return np.tile(rates, (N_WEEK_HOURS // len(rates), 1))


def _daily_levels(counts: HabitCounts, place: Array, vocabulary: Vocabulary) -> Levels:
    """Return the levels of hours of the day, on whatever day."""
    moved, documents = (
        hourly[..., :N_HOURS] + hourly[..., N_HOURS:]
        for hourly in (counts.hours, counts.hour_documents)
    )
    return _levels(moved, np.exp(-place)[:, None] * documents, vocabulary)


def _weekly_levels(
    counts: HabitCounts, place: Array, common: Array, vocabulary: Vocabulary
) -> Levels:
    """Return the levels of hours of workdays and week-ends, given the rates of all days."""
    expected = np.exp(-place)[:, None] * counts.hour_documents * common.T
    return _levels(counts.hours, expected, vocabulary)


def _levels(moved: Array, expected: Array, vocabulary: Vocabulary) -> Levels:
    return context_levels(_about_hours(moved), _about_hours(expected), vocabulary)


def _about_hours(counts: Array) -> Array:
    """Return counts summed over the hours around each, with the weights of a Gaussian (1 at 0)."""
    days = counts.reshape(len(counts), -1, N_HOURS)
    sums = days.copy()
    for hours in range(1, FARTHEST + 1):
        both = np.roll(days, hours, axis=-1) + np.roll(days, -hours, axis=-1)
        sums += np.exp(-0.5 * (hours / SPREAD) ** 2) * both
    return sums.reshape(counts.shape)
