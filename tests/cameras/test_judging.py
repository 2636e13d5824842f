"""The alert budget of a camera whose model knows little."""

import numpy as np
import pytest

from habitus.cameras.judging import DAY, HEAD_START, Ration


def alarms(normalities, times, alerts_per_day) -> int:
    """Return how many of these events a ration makes alarms."""
    ration, n_alarms = Ration(), 0
    for time, normality in zip(times, normalities, strict=True):
        ration.watch(time)
        n_alarms += normality < ration.threshold(alerts_per_day)
        ration.add(time, normality)
    return n_alarms


@pytest.mark.parametrize("seed", range(5))
def test_first_hour_has_few_alarms(seed):
    normalities = -np.random.default_rng(seed).exponential(size=90) - 3
    found = alarms(normalities, np.arange(90) * 40.0, 5)
    # Records among so many: HEAD_START times the sum of 1 / n, about 9.
    assert HEAD_START <= found <= 20


def test_most_unusual_is_always_an_alarm():
    normalities = -np.random.default_rng(1).exponential(size=500) - 3
    normalities[400] = -50
    assert alarms(normalities[:401], np.arange(401.0), 5) > alarms(normalities[:400], range(400), 5)


def test_days_hold_about_the_budget():
    per_day, days = 500, 10
    normalities = -np.random.default_rng(2).exponential(size=per_day * days) - 3
    times = np.arange(per_day * days) * DAY / per_day
    later = times > 2 * DAY
    ration, n_alarms = Ration(), 0
    for time, normality, counts in zip(times, normalities, later, strict=True):
        ration.watch(time)
        n_alarms += counts and normality < ration.threshold(5)
        ration.add(time, normality)
    assert 0.5 * 5 * 8 <= n_alarms <= 2 * 7 * 8


def test_clock_set_back_takes_nothing_away():
    ration = Ration()
    ration.add(2 * DAY, -9.0)
    ration.add(2 * DAY - 3600, -8.0)
    ration.watch(DAY)
    assert len(ration.peaks) == 2
    assert ration.threshold(5) == -8.0
