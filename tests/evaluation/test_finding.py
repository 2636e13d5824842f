"""Events found at a rate of false alarms, against trying every threshold with plain loops."""

import numpy as np
import pytest

from habitus.evaluation.labels import Label
from habitus.evaluation.metrics import (
    Scored,
    alarms_of,
    chance_of_events,
    events_found,
    found_at,
    match,
)

RATES = (1.0, 6.0, 30.0, 60.0)


def drawn(seed, n=600):
    """Scores with short documents among them, and events that lower some of them."""
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.choice(np.arange(5, n - 20, 12), 12, replace=False)) + rng.random(12)
    truth = [Label(float(s), float(s + rng.uniform(0.2, 9))) for s in starts]
    normality = -rng.gamma(1.0, 1.0, n)
    for event in truth:
        normality[int(event.start) : int(event.end) + 1] -= rng.uniform(0, 4)
    judged = rng.random(n) < 0.9
    return Scored(np.where(judged, normality, 0.0), judged, np.arange(float(n)), 1.0), truth


def joined(scored, level):
    """Alarms document by document: up to two usual ones between abnormal ones."""
    alarms = []
    for t in range(len(scored.times)):
        if scored.judged[t] and scored.normality[t] < level:
            start = scored.times[t]
            if alarms and start - alarms[-1].end <= 2 * scored.clip:
                alarms[-1] = alarms[-1]._replace(end=start + scored.clip)
            else:
                alarms.append(Label(start, start + scored.clip))
    return alarms


def by_trying(scored, truth, rate):
    """Most events before false alarms exceed the rate."""
    best, hours = 0, len(scored.times) * scored.clip / 3600
    for level in [-np.inf, *(np.sort(scored.normality[scored.judged]) + 1e-9)]:
        found = match(joined(scored, level), truth)
        if len(found.false_alarms) > rate * hours:
            break
        best = max(best, found.n_found)
    return best


@pytest.mark.parametrize("seed", range(4))
def test_events_found_are_those_of_trying_every_threshold(seed):
    scored, truth = drawn(seed)
    for found in events_found(scored, truth, RATES):
        assert found.found.sum() == by_trying(scored, truth, found.rate)
        assert found.n_false <= found.rate / 6  # ten minutes
        again = match(joined(scored, found.threshold), truth)
        assert found.found.tolist() == [k is not None for k in again.found_by]
        assert found.n_false == len(again.false_alarms)
    assert any(found.found.any() for found in events_found(scored, truth, RATES))


def test_delays_run_from_the_start_of_the_event_to_the_end_of_the_document():
    normality = np.zeros(40)
    normality[[12, 13, 30, 33]] = -1.0
    scored = Scored(normality, np.ones(40, dtype=bool), np.arange(40.0), 1.0)
    truth = [Label(10.5, 14.0), Label(14.2, 15.0), Label(28.0, 29.5), Label(20, 22)]
    found = found_at(scored, truth, -0.5)
    assert found.found.tolist() == [True, True, True, False]
    # The second is announced before it starts, the third just after it ended.
    assert found.delays[:3].tolist() == [2.5, 0.0, 3.0]
    assert np.isnan(found.delays[3])
    assert (found.delay, found.share, found.n_false) == (2.5, 0.75, 0)
    assert np.isnan(found_at(scored, truth, -np.inf).delay)


def test_nobody_waits_for_an_event_within_an_alarm_that_goes_on():
    scored = Scored(np.array([-1.0, 0, 0, -1.0]), np.ones(4, dtype=bool), np.arange(4) * 2.0, 2.0)
    found = found_at(scored, [Label(3.5, 4.0)], -0.5)
    assert (found.found.tolist(), found.delays.tolist()) == ([True], [0.0])


def test_false_alarms_that_grow_into_true_ones_stay_false():
    normality = np.zeros(60)
    normality[16], normality[13], normality[40] = -5.0, -4.0, -3.0
    scored = Scored(normality, np.ones(60, dtype=bool), np.arange(60.0), 1.0)
    truth = [Label(10.0, 12.5), Label(40.0, 41.0)]
    counts = [found_at(scored, truth, level).n_false for level in (-4.5, -3.5, -2.5)]
    assert counts == [1, 0, 0]
    strict, loose = events_found(scored, truth, (1.0, 60.0))
    assert (strict.found.sum(), loose.found.sum()) == (0, 2)


def test_one_alarm_over_everything_finds_nothing_for_free():
    """Without the stop, the loosest threshold would find all events by a single alarm."""
    rng = np.random.default_rng(0)
    scored = Scored(-rng.random(600), np.ones(600, dtype=bool), np.arange(600.0), 1.0)
    truth = [Label(100, 102), Label(300, 302), Label(500, 502)]
    assert found_at(scored, truth, 1.0).share == 1.0
    assert events_found(scored, truth, (6.0,))[0].share < 1.0


def test_what_is_lost_between_two_documents_parts_alarms():
    times = np.array([0.0, 1.0, 30.0, 31.0])
    scored = Scored(np.zeros(4), np.ones(4, dtype=bool), times, 1.0)
    assert alarms_of(np.ones(4, dtype=bool), scored) == [(0.0, 2.0), (30.0, 32.0)]


def test_chance_is_what_scores_find_that_know_nothing():
    rng = np.random.default_rng(1)
    shares, chances = [], []
    for seed in range(12):
        scored, truth = drawn(seed)
        scored = scored._replace(normality=-rng.gamma(1.0, 1.0, len(scored.times)))
        (found,) = events_found(scored, truth, (60.0,))
        (chance,), _ = chance_of_events(scored, truth, (60.0,), None)
        shares.append(found.share)
        chances.append(chance)
    assert np.mean(shares) == pytest.approx(np.mean(chances), abs=0.12)
    scored, truth = drawn(0)
    (found,) = events_found(scored, truth, (60.0,))
    (chance,), _ = chance_of_events(scored, truth, (60.0,), None)
    assert chance < found.share
