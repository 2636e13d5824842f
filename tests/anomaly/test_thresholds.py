"""Thresholds: shares, and a budget of alerts that is kept on footage nobody has seen."""

import numpy as np
import pytest

from habitus.anomaly.thresholds import (
    Tail,
    budget_threshold,
    expected_alarms,
    runs,
    share_threshold,
    tail_of,
)
from habitus.errors import InvalidInputError


def test_runs_close_small_gaps():
    flags = np.array([1, 1, 0, 0, 1, 0, 0, 0, 1, 0], dtype=bool)
    assert runs(flags) == [(0, 4), (8, 8)]
    assert runs(flags, join=0) == [(0, 1), (4, 4), (8, 8)]
    assert runs(np.zeros(3, dtype=bool)) == []


def test_a_share_of_the_documents_lies_below():
    scores = np.random.default_rng(0).normal(size=1000)
    assert (scores < share_threshold(scores, 0.02)).sum() == 20
    for share in (0, 1, 2.0, float("nan")):
        with pytest.raises(InvalidInputError, match="share must lie between 0 and 1"):
            share_threshold(scores, share)


def test_the_tail_counts_each_stretch_once_by_its_lowest_score():
    scores = np.zeros(100)
    scores[[10, 11, 12, 50, 80]] = [-1, -5, -2, -3, -4]  # fewer than a tenth: the level is 0
    judged = np.ones(100, dtype=bool)
    judged[80] = False
    tail = tail_of(scores, judged)
    assert tail == Tail(level=0.0, n_peaks=2, mean_excess=4.0, n_documents=99)


def test_the_law_of_the_budget_is_that_of_an_exponential_tail_with_an_unknown_scale():
    """P(excess > y), the scale drawn from its posterior: integrated by drawing instead."""
    tail = Tail(level=-1.0, n_peaks=12, mean_excess=0.7, n_documents=1000)
    threshold = budget_threshold(tail, alerts=3, n_documents=10_000)
    rng = np.random.default_rng(0)
    scale = tail.n_peaks * tail.mean_excess / rng.gamma(tail.n_peaks, 1, 2_000_000)
    chance = np.exp(-(tail.level - threshold) / scale).mean()
    assert chance * 12 / 1000 * 10_000 == pytest.approx(3, rel=0.01)
    expected = expected_alarms(tail, threshold, 10_000)
    assert expected.low <= 3 <= expected.high
    assert expected.mean == pytest.approx(3 * 12.5 / 12, rel=0.05)  # the rate is unknown as well


def test_more_footage_allows_a_nearer_threshold():
    much, little = Tail(0.0, 200, 1.0, 2000), Tail(0.0, 6, 1.0, 60)
    assert budget_threshold(little, 5, 86_400) < 1.5 * budget_threshold(much, 5, 86_400) < 0


def test_a_budget_beyond_the_tail_is_its_level():
    assert budget_threshold(Tail(-2.0, 10, 1.0, 100), alerts=1e9, n_documents=86_400) == -2.0


@pytest.mark.parametrize("budget", [2.0, 20.0])
def test_alarms_on_other_footage_are_within_the_promised_interval(budget):
    """Many scenes, each with 600 normal documents to know from and a day to watch."""
    rng = np.random.default_rng(1)
    held, alarms = 0, []
    n_scenes, day = 200, 86_400
    for _ in range(n_scenes):
        known, new = -rng.exponential(size=600), -rng.exponential(size=day)
        tail = tail_of(known, np.ones(len(known), dtype=bool))
        threshold = budget_threshold(tail, budget, day)
        promised = expected_alarms(tail, threshold, day)
        found = len(runs(new < threshold))
        held += promised.low <= found <= promised.high
        alarms.append(found)
    # 90 % was promised; the binomial's spread over 200 scenes is two points.
    assert held / n_scenes >= 0.86
    assert np.mean(alarms) == pytest.approx(budget, rel=0.4)


def test_too_little_footage_is_said():
    with pytest.raises(InvalidInputError, match="at least 50 documents"):
        tail_of(-np.arange(49.0), np.ones(49, dtype=bool))
    with pytest.raises(InvalidInputError, match="all alike"):
        tail_of(np.zeros(100), np.ones(100, dtype=bool))
    with pytest.raises(InvalidInputError, match="above 0 alerts"):
        budget_threshold(Tail(0.0, 10, 1.0, 100), 0, 86_400)
