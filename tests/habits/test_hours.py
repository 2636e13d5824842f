"""Hours: rates and gain as they are defined, and what turning the clock must not change."""

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.corpus import Vocabulary
from habitus.corpus.clocks import N_HOURS, N_WEEK_HOURS, NO_HOUR
from habitus.habits import HabitCounts, Habits
from habitus.habits.contexts import N_CONTEXT_LEVELS
from habitus.habits.hours import (
    FARTHEST,
    HOUR_STATISTICS,
    fit_hours,
    gather_hours,
    hour_evidence,
    hour_rates,
    hour_surprisals,
)
from habitus.habits.votes import DocumentVotes
from reference.habits import hour_gain, random_votes

GRID = Vocabulary(3, 5, directions=12, speeds=16)
EVEN = {"place": (1.0,) * 5, "direction": (1.0,) * 5, "speed": (1.0,) * 6}


def seen(seed, *, vocabulary=GRID, busy=None, weekend=False):
    """Counts of a day: 40 documents an hour, in which cells move more or less by the hour."""
    rng = np.random.default_rng(seed)
    busy = np.full((vocabulary.n_cells, N_HOURS), 0.3) if busy is None else busy
    hours = rng.binomial(40, busy).astype(float)
    none = HabitCounts.none(vocabulary)
    direction = np.zeros_like(none.direction)
    direction[:, 0] = hours.sum(axis=1)
    counts = replace(none, n_documents=960.0, direction=direction)
    return replace(counts, **at_hours(hours, np.full(N_HOURS, 40.0), weekend=weekend))


def at_hours(hours, documents, *, weekend=False):
    """What counts have of 24 hours of a workday, or of a day of the week-end."""
    own = slice(24 * weekend, 24 * weekend + 24)
    all_hours, all_documents = np.zeros((len(hours), N_WEEK_HOURS)), np.zeros(N_WEEK_HOURS)
    all_hours[:, own], all_documents[own] = hours, documents
    return {"hours": all_hours, "hour_documents": all_documents}


def place_of(counts):
    return Habits.of(counts, EVEN, GRID).place


def weight(distance, spread):
    return exp(-0.5 * (distance / spread) ** 2) if distance <= 3 * spread + 0.5 else 0.0


def defined_rate(counts, place, concentrations, cell, hour, *, common=None):
    """The rate of one cell at one hour: sums over all cells and hours, level after level.

    Given the common rates of all days, by how much that of workdays or week-ends differs.
    """
    rate, week = 1.0, range(N_WEEK_HOURS)
    if common is not None:
        week = range(24 * (hour // 24), 24 * (hour // 24) + 24)
    for spread, concentration in zip((None, 4.0, 2.0, 1.0, 0.0), concentrations, strict=True):
        moved = expected = 0.0
        for other in range(GRID.n_cells):
            (y, x), (v, u) = divmod(cell, 5), divmod(other, 5)
            near = 1.0 if spread is None else float(cell == other)
            if spread:
                near = weight(abs(y - v), spread) * weight(abs(x - u), spread)
                near *= normalised(spread)
            for at in week:
                apart = min((at - hour) % 24, (hour - at) % 24)
                w = near * (exp(-0.5 * apart**2) if apart <= FARTHEST else 0.0)
                moved += w * counts.hours[other, at]
                usual = 1.0 if common is None else common[at, other]
                expected += w * exp(-place[other]) * counts.hour_documents[at] * usual
        rate = (moved + concentration * rate) / (expected + concentration)
    return rate


def normalised(spread):
    """What makes the weights of two axes 1 at 0, up to the sum that SciPy divides by."""
    sum_ = sum(weight(abs(d), spread) for d in range(-round(3 * spread), round(3 * spread) + 1))
    return 2 * np.pi * spread**2 / sum_**2


@pytest.mark.parametrize("concentrations", [(1.0, 3.0, 10.0, 0.3, 30.0), (300.0,) * 5])
def test_rates_are_those_of_sums_over_cells_and_hours(concentrations):
    counts = seen(0)
    place = place_of(counts)
    rates = hour_rates(counts, place, concentrations, GRID)
    for cell, hour in ((0, 0), (7, 23), (14, 12)):
        wanted = defined_rate(counts, place, concentrations, cell, hour)
        assert rates[hour, cell] == pytest.approx(wanted, rel=1e-12)


def test_week_ends_differ_from_the_rates_of_all_days():
    counts = seen(0) + seen(1) + seen(2, busy=np.full((15, 24), 0.1), weekend=True)
    place, own = place_of(counts), (1.0, 3.0, 10.0, 0.3, 30.0, 2.0, 0.5, 1.0, 3.0, 5.0)
    common = hour_rates(counts, place, own[:5], GRID)
    assert np.array_equal(common[:24], common[24:])
    rates = hour_rates(counts, place, own, GRID)
    for cell, hour in ((0, 0), (7, 23), (14, 12), (3, 24), (14, 47), (7, 36)):
        wanted = defined_rate(counts, place, own[:5], cell, hour)
        wanted *= defined_rate(counts, place, own[5:], cell, hour, common=common)
        assert rates[hour, cell] == pytest.approx(wanted, rel=1e-12)
    assert rates[24:].mean() < 0.6 < rates[:24].mean()


def test_week_ends_are_apart_only_where_that_predicts_days():
    quiet, busy = np.full((15, N_HOURS), 0.05), np.full((15, N_HOURS), 0.4)
    week = [seen(day, busy=busy) for day in range(4)]
    alike = [seen(4 + day, busy=busy, weekend=True) for day in range(2)]
    other = [seen(4 + day, busy=quiet, weekend=True) for day in range(2)]
    assert len(fit_hours(week + alike, EVEN, GRID, weeks=True).concentrations) == N_CONTEXT_LEVELS
    assert len(fit_hours(week + other, EVEN, GRID).concentrations) == N_CONTEXT_LEVELS
    apart = fit_hours(week + other, EVEN, GRID, weeks=True)
    assert len(apart.concentrations) == 2 * N_CONTEXT_LEVELS
    assert apart.gain > fit_hours(week + other, EVEN, GRID).gain + 0.1


@settings(deadline=None, max_examples=20)
@given(st.integers(0, N_HOURS - 1), st.integers(0, 5))
def test_turning_the_clock_turns_the_rates_to_the_bit(turn, seed):
    counts = seen(seed)
    place, even = place_of(counts), (1.0,) * N_CONTEXT_LEVELS
    hours, documents = counts.hours[:, :24], counts.hour_documents[:24]
    turned = at_hours(np.roll(hours, turn, axis=1), np.roll(documents, turn))
    found = hour_rates(replace(counts, **turned), place, even, GRID)
    before = hour_rates(counts, place, even, GRID)
    assert np.array_equal(found[:24], np.roll(before[:24], turn, axis=0))


def test_without_a_clock_the_hour_makes_no_difference():
    counts = replace(seen(0), **at_hours(np.zeros((15, 24)), np.zeros(24)))
    assert (hour_rates(counts, place_of(counts), (1.0,) * 5, GRID) == 1.0).all()
    assert not hour_surprisals(counts, place_of(counts), (1.0,) * 5, GRID).any()


def test_surprisals_never_reward_and_are_0_without_a_clock():
    busy = np.full((15, N_HOURS), 0.4)
    busy[:, :8] = 0.01
    counts = seen(0, busy=busy)
    place, even = place_of(counts), (1.0,) * 5
    found = hour_surprisals(counts, place, even, GRID)
    rates = hour_rates(counts, place, even, GRID)
    assert found.shape == (N_WEEK_HOURS + 1, 15)
    assert (found[:N_WEEK_HOURS][rates >= 1] == 0).all()
    assert np.array_equal(found[:N_WEEK_HOURS][rates < 1], -np.log(rates[rates < 1]))
    assert found[3].min() > 1.0 > found[12].max()
    assert not found[NO_HOUR].any()


def test_the_gain_is_the_difference_of_two_likelihoods():
    counts, further = seen(0), seen(1)
    place, even = place_of(counts), (1.0,) * 5
    rates, gain = hour_rates(counts, place, even, GRID), 0.0
    for hour in range(N_HOURS):
        for cell in range(GRID.n_cells):
            n, base = further.hours[cell, hour], 40 * exp(-place[cell])
            by_hour, by_place = (n * log(mean) - mean for mean in (base * rates[hour, cell], base))
            gain += by_hour - by_place
    found = hour_gain(counts, further, place, even, GRID)
    assert found == pytest.approx(gain / further.hours.sum(), rel=1e-9)


def test_the_gain_of_weeks_is_that_of_each_day_given_the_others():
    busy = np.full((15, N_HOURS), 0.05)
    busy[:, 8:20] = 0.4
    week = [seen(day, busy=busy) for day in range(4)]
    days = week + [seen(day, busy=busy / 4, weekend=True) for day in (4, 5)]
    fit, total, gain = fit_hours(days, EVEN, GRID, weeks=True), HabitCounts.total(days), 0.0
    assert len(fit.concentrations) == 2 * N_CONTEXT_LEVELS
    for day in days:
        rest = total - day
        own = hour_gain(rest, day, place_of(rest), fit.concentrations, GRID)
        gain += own * day.hours.sum()
    assert fit.gain == pytest.approx(gain / total.hours.sum(), rel=1e-9)


def test_hours_that_come_again_predict_days_and_others_do_not():
    busy = np.full((15, N_HOURS), 0.02)
    busy[:, 8:20] = 0.4
    same = fit_hours([seen(day, busy=busy) for day in range(4)], EVEN, GRID)
    shifted = [seen(day, busy=np.roll(busy, 6 * day, axis=1)) for day in range(4)]
    assert same.gain > 0.3
    assert fit_hours(shifted, EVEN, GRID).gain < 0.01
    assert fit_hours([seen(day) for day in range(4)], EVEN, GRID).gain < 0.01


def test_a_single_day_tells_nothing():
    busy = np.full((15, N_HOURS), 0.02)
    busy[:, 8:20] = 0.4
    assert fit_hours([seen(0, busy=busy)], EVEN, GRID).gain == 0.0


def test_many_documents_have_the_evidence_of_each():
    rng = np.random.default_rng(0)
    documents = [random_votes(GRID, n, rng) for n in (0, 3, 15, 7, 1)]
    hours, surprisals = np.array([4, NO_HOUR, 4, 0, 23]), rng.exponential(size=(49, 15))
    surprisals[NO_HOUR] = 0.0
    found = gather_hours(DocumentVotes.of_documents(documents), surprisals, hours, GRID)
    assert found.shape == (5, len(HOUR_STATISTICS))
    for votes, hour, own in zip(documents, hours, found, strict=True):
        evidence = hour_evidence(votes, surprisals, int(hour), GRID)
        assert np.array_equal(evidence.statistics, own)
        assert np.array_equal(evidence.excesses[:, 0], surprisals[hour, votes.cells])
        total = surprisals[hour, votes.cells].sum()
        assert own[1] == pytest.approx(total / (len(votes.cells) + 80) ** 0.75, rel=1e-12)
    assert found[1].tolist() == [0.0, 0.0]
    assert found[2].min() > 0
