"""Fusion: rarities as the tails have them, and a normality that is a probability."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from habitus.corpus import Vocabulary
from habitus.habits.evidence import STATISTICS
from habitus.scene.fusion import (
    BEHAVIOUR_TRUST,
    FALSE_ALARMS,
    FEW,
    FULL_GAIN,
    HIGHEST,
    MOST_COMPARED,
    UNLIKE,
    CueColumns,
    Fusion,
    FusionPrior,
    ImplantStatistics,
)
from habitus.scene.habit_learning import learn_habits
from habitus.scene.implants import KINDS
from habitus.scene.thresholds import DAY, Tail, bar_of_budget, runs
from reference.habits import VoteProcess

N = len(STATISTICS)


def heavy_and_light(n, seed):
    """Statistics of every kind of tail: bounded, exponential, heavy, with ties, all alike."""
    rng = np.random.default_rng(seed)
    found = rng.exponential(size=(n, N))
    found[:, 1] = rng.beta(2, 3, n)
    found[:, 2] = rng.pareto(3, n)
    found[:, 3] = rng.lognormal(size=n)
    found[:, 4] = np.maximum(found[:, 4] - 1, 0)
    found[:, 5] = np.where(rng.random(n) < 0.01, found[:, 5], 0)
    found[:, 6] = 0
    found[:, 7] *= 1e6
    return found


def some_fusion(n=500, seed=0, trust=None):
    statistics = heavy_and_light(n, seed)
    judged = np.random.default_rng(seed).random(n) < 0.9
    return Fusion(statistics, judged, np.ones(N) if trust is None else trust)


@pytest.mark.parametrize("n", [1, 2, 10, 500])
def test_rarities_are_trust_times_the_surprisal_of_the_tail(n):
    trust = np.linspace(0.1, 1, N)
    # Documents that were not judged would change every tail.
    statistics = np.concatenate([heavy_and_light(n, 0), 100 + heavy_and_light(3, 4)])
    fusion = Fusion(statistics, np.arange(n + 3) < n, trust)
    tried = np.concatenate([fusion.statistics, heavy_and_light(50, 1), np.zeros((1, N))])
    # At the nodes of the table, between and beyond them.
    for factor in (1e-6, 0.5, 1.0, 3.0, 1e3, 1e9, 1e30):
        tried = np.concatenate([tried, factor * (1 + heavy_and_light(3, 2))])
    found = fusion.rarities(tried)
    assert np.isfinite(found).all()
    for k in range(N):
        tail = Tail.of(-statistics[:n, k], np.ones(n, dtype=bool))
        beyond = tried[:, k] > -tail.nodes[0]
        assert beyond.any()
        expected = trust[k] * tail.surprisal(-tried[:, k])
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-12, atol=1e-12)
        between = (tail.nodes[1:] + tail.nodes[:-1]) / 2
        scores = np.concatenate([tail.nodes, between])
        in_column = np.zeros((len(scores), N))
        in_column[:, k] = -scores
        expected = trust[k] * tail.surprisal(scores)
        np.testing.assert_allclose(
            fusion.rarities(in_column)[:, k], expected, rtol=1e-12, atol=1e-12
        )


def test_rarities_never_fall_as_statistics_grow():
    fusion = some_fusion()
    values = np.concatenate([[0.0], np.geomspace(1e-6, 1e12, 3000)])
    for k in range(N):
        tried = np.zeros((len(values), N))
        tried[:, k] = values
        rarities = fusion.rarities(tried)[:, k]
        assert (np.diff(rarities) >= -1e-12 * rarities[1:]).all()
        normality = fusion.normality(CueColumns(tried))
        assert np.isfinite(normality).all()
        assert (normality <= 0).all()
        assert (np.diff(normality) <= 1e-12 * abs(normality[1:])).all()


def test_the_score_is_the_largest_rarity_and_its_tail_the_normality():
    fusion = some_fusion(trust=np.linspace(0, 1, N))
    tried = heavy_and_light(200, 5)
    scores = fusion.scores(CueColumns(tried))
    assert np.array_equal(scores, fusion.rarities(tried).max(axis=1))
    expected = -fusion.tail.surprisal(-scores)
    np.testing.assert_allclose(
        fusion.normality(CueColumns(tried)), expected, rtol=1e-12, atol=1e-12
    )
    assert np.array_equal(fusion.normality(CueColumns(tried)), fusion.normality_of_scores(scores))


def test_held_out_documents_that_were_not_judged_have_no_normality():
    fusion = some_fusion()
    assert (~fusion.judged).any()
    assert (fusion.held_out[~fusion.judged] == 0).all()
    expected = fusion.normality(CueColumns(fusion.statistics[fusion.judged]))
    assert np.array_equal(fusion.held_out[fusion.judged], expected)


def test_one_statistic_that_is_new_to_normal_footage_is_as_rare_as_its_length_can_tell():
    for n in (30, 300, 3000):
        fusion = Fusion(np.zeros((n, N)), np.ones(n, dtype=bool), np.ones(N))
        rare = fusion.rarities(np.full((1, N), 1.0))[0]
        assert (rare > np.log(n / 2)).all()
        assert (fusion.rarities(np.zeros((1, N))) < 0.05).all()


def test_rarities_of_a_statistic_that_is_mostly_0_are_its_shares():
    n = 3000
    statistics = np.zeros((n, N))
    statistics[:20] = np.random.default_rng(0).exponential(size=(20, N)) + 0.5
    fusion = Fusion(statistics, np.ones(n, dtype=bool), np.ones(N))
    median = np.median(statistics[:20], axis=0)
    found = fusion.rarities(median[None])[0]
    np.testing.assert_allclose(found, -np.log(10 / n), atol=0.4)


@pytest.mark.parametrize("n", [1, 3, 40, 2000])
def test_the_score_of_a_normality_is_its_inverse(n):
    fusion = Fusion(heavy_and_light(n, 3), np.ones(n, dtype=bool), np.ones(N))
    for score in (1.0, 2.5, 7.0, 30.0, 1e3):
        normality = float(fusion.normality_of_scores(np.array([score]))[0])
        found = fusion.score_of_normality(normality)
        back = float(fusion.normality_of_scores(np.array([found]))[0])
        np.testing.assert_allclose(back, normality, rtol=1e-9)
        if normality < fusion.normality_of_scores(np.array([0.99 * score]))[0]:
            np.testing.assert_allclose(found, score, rtol=1e-6)
    assert fusion.score_of_normality(0.0) <= fusion.score_of_normality(-1.0)
    assert HIGHEST <= fusion.score_of_normality(-1e9) < np.inf


def test_trust_is_the_cube_root_of_the_share_of_implants_that_are_found():
    rng = np.random.default_rng(0)
    normal = rng.exponential(size=(4000, N))
    implanted = rng.exponential(size=(1000, N))
    implanted[:250, 0] += 50
    implanted[:810, 3] += 50
    made = ImplantStatistics(implanted, np.arange(1000))
    fusion = Fusion.of(CueColumns(normal), np.ones(4000, dtype=bool), made)
    np.testing.assert_allclose(fusion.trust[[0, 3]] ** 3, [0.25, 0.81], atol=0.01)
    by_chance = np.delete(fusion.trust, [0, 3])
    assert by_chance.min() >= np.cbrt(FALSE_ALARMS)
    assert by_chance.max() < np.cbrt(3 * FALSE_ALARMS)
    assert fusion.reach == np.quantile(fusion.scores(CueColumns(implanted)), 0.75)


def with_behaviours(n=500, seed=0):
    """A fusion in which the topic model judged most documents, and its normalities."""
    rng = np.random.default_rng([seed, 1])
    behaviours = -rng.gamma(2, 3, n) * (rng.random(n) < 0.8)
    statistics, judged = heavy_and_light(n, seed), rng.random(n) < 0.9
    return Fusion(statistics, judged, np.ones(N), behaviours=behaviours)


@pytest.mark.parametrize("n", [20, 500])
def test_behaviours_add_a_tenth_of_their_rarity_and_less_with_little_footage(n):
    fusion, tried = with_behaviours(n), heavy_and_light(200, 5)
    behaviours = -np.random.default_rng(2).gamma(2, 6, 200)
    tail = Tail.of(fusion.behaviours, fusion.judged)
    trust = BEHAVIOUR_TRUST * fusion.judged.sum() / (fusion.judged.sum() + FEW)
    expected = fusion.rarities(tried).max(axis=1) + trust * tail.surprisal(behaviours)
    np.testing.assert_allclose(fusion.scores(CueColumns(tried, behaviours)), expected, rtol=1e-12)
    least = fusion.scores(CueColumns(tried, np.zeros(200))) - fusion.scores(CueColumns(tried))
    assert (abs(least) < 0.02).all()  # as usual as can be: nothing is added
    alone = some_fusion()
    assert (
        alone.scores(CueColumns(tried, behaviours)).tolist()
        == alone.scores(CueColumns(tried)).tolist()
    )


def test_held_out_normality_is_a_probability_with_behaviours_too():
    fusion = with_behaviours(4000)
    fresh = with_behaviours(4000, seed=1)
    normality = fusion.normality(CueColumns(fresh.statistics, fresh.behaviours))
    for a in (0.5, 0.1, 0.01):
        assert abs((fusion.held_out[fusion.judged] < np.log(a)).mean() - a) < 0.1 * a + 1e-3
        assert abs((normality < np.log(a)).mean() - a) < 0.15 * a + 0.01


def test_an_implant_is_as_unusual_by_behaviours_as_its_document_was():
    fusion = with_behaviours()
    made = ImplantStatistics(heavy_and_light(100, 3) + 5, np.arange(100, 200))
    built = Fusion.of(fusion.cues, fusion.judged, made)
    scores = built.scores(CueColumns(made.statistics, fusion.behaviours[100:200]))
    assert (
        built.reach
        == np.quantile(scores, 0.75)
        > np.quantile(built.scores(CueColumns(made.statistics)), 0.75)
    )


def test_no_statistic_is_silenced_by_implants_that_it_does_not_find():
    normal = heavy_and_light(30, 0)
    implanted = heavy_and_light(200, 1)
    implanted[0, 0] = 1e3
    made = ImplantStatistics(implanted, np.zeros(200, dtype=int))
    fusion = Fusion.of(CueColumns(normal), np.ones(30, dtype=bool), made)
    assert (fusion.trust > 0).all()
    for k in range(N):
        unheard = np.zeros((1, N))
        unheard[0, k] = 1e9
        assert (
            fusion.normality(CueColumns(unheard))[0]
            < fusion.normality(CueColumns(np.zeros((1, N))))[0]
        )


def test_without_implants_every_statistic_is_trusted_alike():
    normal = heavy_and_light(100, 0)
    judged = np.ones(100, dtype=bool)
    none, unfound = (
        Fusion.of(CueColumns(normal), judged, None),
        Fusion.of(CueColumns(normal), judged, ImplantStatistics(np.zeros((50, N)), np.arange(50))),
    )
    assert none.trust.tolist() == unfound.trust.tolist() == [1.0] * N
    assert none.reach == np.inf
    assert np.isfinite(unfound.reach)


@pytest.fixture(scope="module")
def simulated():
    """Habits learnt from one part of a known process, and fresh footage of the same."""
    vocabulary, found = Vocabulary(8, 9, directions=12, speeds=16), []
    for seed in range(5):
        rng, process = np.random.default_rng([seed, 7]), VoteProcess(vocabulary, seed)
        model = learn_habits(process.corpus(1500, rng), seed=seed)
        fresh = model.judge_all(process.corpus(4000, rng))
        found.append((model, fresh.normality[fresh.judged], fresh.judged))
    return found


@pytest.mark.parametrize("a", [0.5, 0.1, 0.05, 0.01])
def test_normality_is_the_probability_of_fresh_normal_footage(simulated, a):
    n_learnt = 1500
    shares = []
    for _, normality, _ in simulated:
        n, count = len(normality), int((normality < np.log(a)).sum())
        # Both the footage learnt from and the fresh footage are samples.
        spread = 4 * np.sqrt(a * (1 - a) * (1 / n + 1 / n_learnt))
        assert abs(count / n - a) < spread + 0.1 * a
        shares.append(count / n)
    n_all = len(simulated) * 1500
    low, high = binom.ppf([1e-4, 1 - 1e-4], n_all, a) / n_all
    assert 0.9 * low < np.mean(shares) < 1.1 * high


def test_alarms_at_a_budget_are_near_it(simulated):
    expected, raised = 0.0, 0
    for model, normality, judged in simulated:
        n = len(normality)
        bar = bar_of_budget(model.fusion.tail, 20 * DAY / n, DAY)
        threshold = model.fusion.normality_of_scores(np.array([-bar.threshold]))[0]
        expected += bar.expected.mean * n / DAY
        assert judged.mean() > 0.9
        raised += len(runs(normality < threshold, model.fusion.join))
    assert 60 < expected < 100  # kept nine times in ten
    assert 0.7 * expected < raised < 1.4 * expected


@pytest.mark.parametrize("n", [100, MOST_COMPARED, 1200])
def test_a_camera_is_compared_by_no_more_than_the_most_documents(n):
    """A share of its documents is 0, which no other camera has: so far the two are apart."""
    fleet = np.repeat(np.linspace(0.5, 1.5, n)[:, None], N, axis=1)
    prior = FusionPrior(fleet, np.ones(n), np.ones(N), 1.0)
    edge = UNLIKE / np.sqrt(min(n, MOST_COMPARED)) * n
    for n_apart, fits in ((int(edge - 1), True), (int(edge + 2), False)):
        own = fleet.copy()
        own[:n_apart] = 0
        assert prior.fits(own) is fits


def test_the_hour_is_trusted_as_far_as_it_finds_predicts_and_has_days():
    rng = np.random.default_rng(0)
    fusion = some_fusion(trust=np.full(N, 0.3))
    by_hour, implanted = rng.exponential(size=(500, 2)), rng.exponential(size=(400, 2))
    implanted[:100, 0] += 100.0
    full = fusion.beside(by_hour, implanted, FULL_GAIN, 4)
    found = 100 / 400 / (len(KINDS) + 1)
    assert full.trust[N] == pytest.approx(4 / 5 * np.cbrt(found), rel=0.05)
    assert full.trust[N + 1] < full.trust[N] / 2
    for gain, days, factor in ((FULL_GAIN / 2, 4, 0.5), (9.0, 4, 1.0), (9.0, 1, 5 / 8)):
        other = fusion.beside(by_hour, implanted, gain, days)
        assert other.trust[N:] == pytest.approx(factor * full.trust[N:], rel=1e-12)
    # Other cues say what they said, and the score is the largest.
    tried = np.hstack([heavy_and_light(50, 1), rng.exponential(size=(50, 2))])
    assert np.array_equal(full.rarities(tried)[:, :N], fusion.rarities(tried[:, :N]))
    assert np.array_equal(full.scores(CueColumns(tried)), full.rarities(tried).max(axis=1))
    assert (full.scores(CueColumns(tried)) > fusion.scores(CueColumns(tried[:, :N]))).any()


def test_other_cameras_tell_nothing_of_hours():
    """They have no statistics by the hour, and what they have of places is far larger here."""
    rng = np.random.default_rng(0)
    alone = some_fusion()
    with_fleet = replace(alone, fleet_statistics=1e3 * rng.exponential(size=(300, N)))
    by_hour, implanted = rng.exponential(size=(500, 2)), 100 + rng.exponential(size=(400, 2))
    one, other = (each.beside(by_hour, implanted, FULL_GAIN, 4) for each in (alone, with_fleet))
    assert np.array_equal(one.trust, other.trust)
    assert np.array_equal(
        one.rarities(one.statistics)[:, N:], other.rarities(one.statistics)[:, N:]
    )


def test_documents_of_a_fleet_promise_nothing_for_a_camera():
    rng = np.random.default_rng(0)
    statistics, judged = rng.exponential(size=(200, len(STATISTICS))), np.arange(200) % 2 == 0
    fusion = Fusion(
        statistics,
        judged,
        np.ones(len(STATISTICS)),
        fleet_statistics=rng.exponential(size=(300, len(STATISTICS))),
        fleet_scores=rng.exponential(size=300),
    )
    assert (fusion.tail.n_own, fusion.tail.n_documents) == (100, 400)
    in_the_mean, kept = (fusion.tail.threshold(4.0 * n, 100.0 * n) for n in (2, 1))
    assert kept < in_the_mean
    assert fusion.tail.expected_alarms(in_the_mean, 200).mean <= 8
