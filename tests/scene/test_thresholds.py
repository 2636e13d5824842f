"""Thresholds: shares, and a budget of alerts that is kept on footage nobody has seen."""

import numpy as np
import pytest
from scipy.special import gammainc
from scipy.stats import genpareto, norm

from habitus.errors import InvalidInputError
from habitus.scene.thresholds import (
    BURSTS,
    CONFIDENCE,
    CORRELATED,
    ENOUGH,
    JOIN,
    N_STRETCHES,
    SHAPE_PRIOR,
    SHAPES,
    ExcessPosterior,
    Tail,
    bar_of_budget,
    runs,
    share_threshold,
)

DAY = 86_400


def all_judged(scores):
    return Tail.of(scores, np.ones(len(scores), dtype=bool))


def test_runs_close_small_gaps():
    flags = np.array([1, 1, 0, 0, 1, 0, 0, 0, 1, 0], dtype=bool)
    assert runs(flags, join=2) == [(0, 4), (8, 8)]
    assert runs(flags, join=0) == [(0, 1), (4, 4), (8, 8)]
    apart = np.zeros(40, dtype=bool)
    apart[[3, 3 + JOIN + 1, 3 + 2 * (JOIN + 1) + 1]] = True
    assert runs(apart) == [(3, 3 + JOIN + 1), (3 + 2 * (JOIN + 1) + 1,) * 2]
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
    tail = Tail.of(scores, judged)
    assert (tail.level, tail.n_runs[0], tail.unit, tail.n_documents) == (0.0, 2, 4.0, 99)


def test_how_documents_join_to_alarms_changes_no_score():
    rng = np.random.default_rng(3)
    scores = np.convolve(-rng.exponential(size=402), np.ones(3) / 3, "valid")  # runs
    judged, tried = np.ones(400, dtype=bool), np.linspace(-9, 0, 50)
    one, other = (Tail.of(scores, judged, join) for join in (CORRELATED, 30))
    assert one.surprisal(tried).tolist() == other.surprisal(tried).tolist()
    assert one.n_runs[0] > other.n_runs[0]


@pytest.mark.parametrize("join", [0, 1, 2, 5])
def test_alarms_above_the_level_are_counted(join):
    rng = np.random.default_rng(join)
    scores = np.round(np.convolve(rng.normal(size=302), np.ones(3), "valid"), 1)  # runs, and ties
    judged = rng.random(300) < 0.8
    tail = Tail.of(scores, judged, join)
    assert len(tail.thresholds) > 20
    for threshold in [*tail.thresholds, *(tail.thresholds + 0.05)]:
        found = len(runs(judged & (scores < threshold), join))
        expected = tail.expected_alarms(threshold, judged.sum())
        assert expected.mean == pytest.approx(found + 0.5)
        assert expected.low <= found <= expected.high


def test_the_posterior_is_that_of_a_fine_grid():
    """Prior times likelihood by scipy on 400 x 600 points, and the mean survival under it."""
    excesses = genpareto.rvs(0.3, scale=2.0, size=25, random_state=0)
    shape = np.linspace(*SHAPES, 400)[:, None, None]
    scale = np.exp(np.linspace(-3, 5, 600))[None, :, None]
    log_likelihood = genpareto.logpdf(excesses, shape, scale=scale).sum(axis=2)
    log_posterior = log_likelihood + norm.logpdf(shape[..., 0], *SHAPE_PRIOR)
    weight = np.exp(log_posterior - log_posterior.max())
    posterior = ExcessPosterior.of(excesses)
    for y in (0.1, 1.0, 10.0, 100.0):
        survival = genpareto.sf(y, shape[..., 0], scale=scale[..., 0])
        expected = (weight * survival).sum() / weight.sum()
        assert posterior.survival(y) == pytest.approx(expected, rel=1e-3)


def test_excesses_that_are_repeated_count_once():
    excesses = np.random.default_rng(0).exponential(size=15)
    once = ExcessPosterior.of(excesses)
    twice = ExcessPosterior.of(np.repeat(excesses, 2), n_independent=15)
    np.testing.assert_allclose(twice.weight, once.weight, rtol=1e-9)


@pytest.mark.parametrize("n", [10, 300, 5000])
def test_survival_falls_with_the_score_and_never_reaches_0(n):
    tail = all_judged(np.random.default_rng(n).normal(size=n))
    reach = np.concatenate([-np.logspace(12, 0, 500), np.linspace(-0.99, 3, 2000)])
    survival = tail.survival(reach)
    assert (survival > 0).all()
    assert (np.diff(tail.surprisal(reach)) <= 0).all()
    assert (np.diff(tail.surprisal(reach[:500])) < 0).all()
    at_level = tail.level + np.array([-1e-9, 0, 1e-9])
    np.testing.assert_allclose(tail.survival(at_level), tail.survival(tail.level), rtol=1e-6)
    assert float(tail.survival(-1.5)) == tail.survival(np.array([-1.5]))[0]


@pytest.mark.parametrize("n_alike", [1, 40])
def test_survival_in_the_tail_is_the_share_below_the_level_times_that_of_the_excess(n_alike):
    lowest = -10.0 - np.arange(8) ** 2
    scores = np.concatenate([lowest, np.full(n_alike, -1.0), np.arange(60 - n_alike)])
    tail = Tail.of(scores, np.ones(68, dtype=bool), join=0)
    assert tail.level == (-1.0 if n_alike > 1 else 0.0)
    n_below = (scores < tail.level).sum()
    excess = ExcessPosterior.of(tail.level - scores[scores < tail.level], 1)
    for score in tail.nodes[tail.nodes < tail.level][::50]:
        expected = (n_below + 1.5) / 69 * excess.survival(tail.level - score)
        assert tail.survival(score) == pytest.approx(expected, rel=1e-9)


def test_survival_of_new_documents_is_uniform():
    """Documents in clusters: each value stays for four documents."""
    rng = np.random.default_rng(0)
    found = np.zeros(4)
    levels = np.array([0.3, 0.1, 0.02, 0.005])
    for _ in range(30):
        scores = np.repeat(-rng.exponential(size=500), 4)
        new = -rng.exponential(size=20_000)
        found += (all_judged(scores).survival(new)[:, None] <= levels).mean(axis=0) / 30
    np.testing.assert_allclose(found, levels, rtol=0.15)


def test_a_budget_is_the_mean_of_the_alarms_it_expects():
    tail = all_judged(-np.random.default_rng(0).exponential(size=2000))
    for budget in (0.01, 5.0, 200.0):
        threshold = tail.threshold(budget, DAY)
        assert threshold < tail.level
        expected = tail.expected_alarms(threshold, DAY)
        assert expected.mean == pytest.approx(budget, rel=1e-9)
        assert expected.low <= np.floor(budget) <= expected.high


def test_the_interval_is_that_of_alarms_drawn_from_the_posterior():
    tail = all_judged(-np.random.default_rng(0).exponential(size=2000))
    threshold = tail.threshold(20, DAY)
    rng, n = np.random.default_rng(0), 400_000
    posterior = tail.peaks
    point = rng.choice(len(posterior.weight), n, p=posterior.weight)
    rate = rng.gamma(tail.n_runs[0] + 0.5, 1 / tail.n_documents, n)
    drawn = rng.poisson(DAY * rate * posterior.survivals(tail.level - threshold)[point])
    expected = tail.expected_alarms(threshold, DAY, coverage=0.8)
    assert [expected.low, expected.high] == list(np.quantile(drawn, [0.1, 0.9]))


def test_a_budget_looser_than_the_tail_is_counted():
    scores = -np.random.default_rng(0).exponential(size=DAY)
    tail = all_judged(scores)
    for budget in (500.0, 1_500.0, 2_500.0):
        threshold = tail.threshold(budget, DAY)
        assert tail.threshold(2 * budget, 2 * DAY) == threshold > tail.level
        n_runs = len(runs(scores < threshold))
        at_most = gammainc(np.array([n_runs, n_runs + 2]) + 0.5, budget)
        assert at_most[0] >= CONFIDENCE > at_most[1]


@pytest.mark.parametrize("budget", [2, 30, 100])
def test_a_budget_for_as_long_as_the_footage_is_kept_nine_times_in_ten(budget):
    rng, n = np.random.default_rng(budget), 4000
    thresholds = [all_judged(-rng.exponential(size=n)).threshold(budget, n) for _ in range(150)]
    below = np.exp(thresholds)  # the share of scores; a run begins after `JOIN` + 1 that are not
    rates = n * below * (1 - below) ** (JOIN + 1)
    assert (rates <= budget).mean() > 0.85
    assert rates.mean() > budget / 5
    tail = all_judged(-rng.exponential(size=n))
    beyond = [tail.threshold(budget * (n + more) / n, n + more) for more in (0, 1)]
    # More is asked than was seen: kept in the mean, unless what was seen has alarms enough.
    assert beyond[0] == pytest.approx(beyond[1]) if budget > ENOUGH else beyond[0] < beyond[1]


def test_a_larger_budget_never_has_a_lower_threshold():
    tail = all_judged(-np.random.default_rng(0).exponential(size=2000))
    in_footage = np.array([1, 4, 4.999, 5, 5.001, 6, 8, 12, 20])
    thresholds = [tail.threshold(budget, DAY) for budget in in_footage * DAY / 2000]
    assert (np.diff(thresholds) >= 0).all()
    kept = tail.threshold(20, 2000)
    assert thresholds[-1] == pytest.approx(kept)
    assert tail.expected_alarms(kept, 2000).mean < 20


def busiest(alarms, length):
    """The most alarms, by their first documents, in any stretch of this length."""
    return max((np.sum((alarms >= a) & (alarms < a + length)) for a in alarms), default=0)


@pytest.mark.parametrize("days", [3, 40])
def test_no_stretch_of_the_footage_has_more_than_twice_the_budget(days):
    rng, length = np.random.default_rng(2), 2000
    scores = -rng.exponential(size=days * length)
    scores[length : length + 700 : 30] -= rng.uniform(3, 9, size=24)  # a night with insects
    judged = rng.random(len(scores)) < 0.9
    tail, held = Tail.of(scores, judged), []
    order = np.cumsum(judged) - 1
    for budget in (1, 2, 5, 10, 20, 40):  # for `length` judged documents
        threshold = tail.threshold(budget, length)
        alarms = np.array([order[first] for first, _ in runs((scores < threshold) & judged)])
        stretch = max(ENOUGH * length / budget, judged.sum() / N_STRETCHES)
        most = BURSTS * budget * stretch / length
        assert busiest(alarms, stretch) <= most
        held.append(tail._rate_threshold(budget, length) > threshold)
        least = tail.least_alerts(float(np.nextafter(threshold, -np.inf)), length)
        assert least <= budget * 1.001
    assert any(held)


@pytest.mark.parametrize("length", [1000, 2 * DAY])
def test_the_least_budget_of_a_score_is_that_whose_threshold_it_is(length):
    tail = all_judged(-np.random.default_rng(0).exponential(size=length))
    for budget in (0.1, 5.0, 200.0, 2000.0):
        threshold = tail.threshold(budget, DAY)
        least = tail.least_alerts(float(np.nextafter(threshold, -np.inf)), DAY)
        assert least == pytest.approx(budget, rel=0.05)


def test_a_score_of_the_footage_is_below_the_threshold_of_its_least_budget():
    tail = all_judged(-np.random.default_rng(0).exponential(size=300))
    below = tail.thresholds[: tail.n_runs.argmax()].tolist()  # the threshold of the most alarms
    assert len(below) > 5
    for score in below:
        least = tail.least_alerts(score, DAY)
        assert tail.threshold(0.999 * least, DAY) <= score < tail.threshold(1.001 * least, DAY)


def test_more_alerts_than_runs_can_be_give_the_most():
    scores = -np.random.default_rng(0).exponential(size=3600)
    tail = all_judged(scores)
    most = max(
        len(runs(scores < threshold)) for threshold in np.quantile(scores, np.arange(1, 100) / 100)
    )
    assert tail.most_alarms(3600) == pytest.approx(most, rel=0.02)
    threshold = tail.threshold(3600, 3600)
    assert tail.expected_alarms(threshold, 3600).mean == tail.most_alarms(3600)


def test_more_footage_allows_a_nearer_threshold():
    scores = -np.random.default_rng(0).exponential(size=3600)
    near, far = (all_judged(scores[:n]).threshold(5, DAY) for n in (3600, 60))
    assert far < 1.5 * near < 0


@pytest.mark.parametrize(
    "scores", [[-1.0], [-2.0, -1.0], [0.0] * 100, [-3.0] * 7, [-1.0, 0.0, 0.0]]
)
def test_few_documents_or_equal_ones_give_a_threshold_below_them(scores):
    tail = all_judged(np.array(scores))
    threshold = tail.threshold(5, DAY)
    assert np.isfinite(threshold)
    assert threshold < min(scores)
    assert tail.expected_alarms(threshold, DAY).mean == pytest.approx(5)
    assert np.isfinite(tail.surprisal(np.array([-1e9, threshold, *scores, 1.0]))).all()


@pytest.mark.parametrize("alerts_per_day", [0.1, 5, 144])
def test_a_budget_is_kept_however_little_was_learnt_from(alerts_per_day):
    tail = all_judged(-np.random.default_rng(0).exponential(size=300))
    bar = bar_of_budget(tail, alerts_per_day, DAY, reach=-1.0)
    assert bar.threshold == tail.threshold(alerts_per_day, DAY)
    assert bar.expected == tail.expected_alarms(bar.threshold, DAY)
    assert bar.expected.mean == pytest.approx(alerts_per_day)


def test_what_to_expect_of_a_budget_is_said():
    tail = all_judged(-np.random.default_rng(0).exponential(size=300))
    bar = bar_of_budget(tail, 5, DAY)
    low, _, high = bar.expected
    (note,) = bar.notes
    assert note == (
        "5 minutes of footage cannot tell what happens 5 times a day: expect "
        f"{low:g} to {high:g} alarms in a day (90 %)"
    )
    assert not bar_of_budget(tail, DAY / 300, DAY).notes, "it happened once"
    assert bar_of_budget(tail, DAY / 301, DAY).notes
    (of_camera,) = bar_of_budget(tail, DAY / 300, DAY, n_learnt=60).notes
    assert of_camera.startswith("60 seconds of footage")
    (most,) = bar_of_budget(tail, 50_000, DAY).notes
    assert f"expect {float(f'{tail.most_alarms(DAY):.3g}'):g} per day" in most


def test_a_threshold_that_anomalies_do_not_reach_is_said_and_kept():
    tail = all_judged(-np.random.default_rng(0).exponential(size=300))
    asked = tail.threshold(500, DAY)
    out_of_reach, within_reach = (
        bar_of_budget(tail, 500, DAY, reach=reach) for reach in (asked, np.nextafter(asked, -99))
    )
    assert out_of_reach.threshold == within_reach.threshold == asked
    assert not within_reach.notes
    (note,) = out_of_reach.notes
    assert note.endswith("one in four would be an alarm from about 510 alerts per day on")


def budget_named(tail, reach, n_documents, budget=1e-3):
    """The budget that a note names for synthetic anomalies."""
    (note,) = (
        n for n in bar_of_budget(tail, budget, n_documents, reach=reach).notes if "four" in n
    )
    return float(note.split("about ")[1].split(" ")[0])


@pytest.mark.parametrize("n", [300, 7200, 3 * DAY])
def test_at_the_budget_that_is_named_one_synthetic_anomaly_in_four_is_an_alarm(n):
    rng = np.random.default_rng(n)
    scores = -rng.exponential(size=n)
    scores[: n // 50 : 20] -= rng.uniform(3, 9, size=len(scores[: n // 50 : 20]))  # bursts
    tail = all_judged(scores)
    top = tail.thresholds[tail.n_runs.argmax()]  # that of the most alarms
    for reach in top - np.append(rng.uniform(0, 12, size=40), [1e-9, 0.01, 0.1]):
        named = budget_named(tail, reach, DAY)
        assert reach < tail.threshold(named, DAY)
        assert named <= 1.12 * tail.least_alerts(reach, DAY)


def test_that_no_budget_makes_an_anomaly_an_alarm_is_said():
    tail = all_judged(-np.random.default_rng(0).exponential(size=300))
    *_, note = bar_of_budget(tail, 5, DAY, reach=0.0).notes
    assert note == "of synthetic anomalies fewer than one in four would be alarms at any budget"


def test_a_score_is_an_alarm_at_its_least_budget_where_bursts_decide():
    """Also above the `MOST_RANKED` lowest scores, which is as far as bursts are looked for."""
    rng, n = np.random.default_rng(0), 100_000
    scores = -rng.exponential(size=n)
    scores[: n // 5] -= 3.0
    tail = all_judged(scores)
    last, top = tail.lowest[-1], tail.thresholds[tail.n_runs.argmax()]
    assert last < top
    for score in [*rng.uniform(last, top, size=20), *rng.uniform(-14, last, size=20)]:
        least = tail.least_alerts(score, DAY)
        assert tail.threshold(least * 0.999, DAY) <= score < tail.threshold(least * 1.001, DAY)


TRAININGS = 60
TAILS = {
    "exponential": (lambda rng, n: rng.exponential(size=n), lambda y: np.exp(-y)),
    "Gaussian": (lambda rng, n: rng.normal(size=n), norm.sf),
    "log-normal": (lambda rng, n: rng.lognormal(size=n), lambda y: norm.sf(np.log(y))),
    "Pareto 0.4": (
        lambda rng, n: genpareto.rvs(0.4, size=n, random_state=rng),
        lambda y: genpareto.sf(y, 0.4),
    ),
}


@pytest.mark.parametrize("n", [300, 3600])
@pytest.mark.parametrize("name", TAILS)
def test_alarms_on_other_footage_are_within_the_promised_interval(name, n):
    """The whole table is made by benchmarks/alert_budget.py."""
    draw, survival = TAILS[name]
    rng, held, alarms = np.random.default_rng(1), 0, []
    for _ in range(TRAININGS):
        tail = all_judged(-draw(rng, n))
        threshold = tail.threshold(5, DAY)
        promised = tail.expected_alarms(threshold, DAY)
        alarms.append(DAY * survival(-threshold))
        held += promised.low <= rng.poisson(alarms[-1]) <= promised.high
    assert held >= 0.85 * TRAININGS
    assert np.mean(alarms) < 2.5 * 5


def test_what_is_impossible_is_said():
    with pytest.raises(InvalidInputError, match="no document that is long enough"):
        Tail.of(np.zeros(3), np.zeros(3, dtype=bool))
    with pytest.raises(InvalidInputError, match="above 0 alerts"):
        all_judged(np.arange(50.0)).threshold(0, DAY)
