"""Fleets: sums over cameras, and what they tell a camera that has seen little."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open

import habitus
from habitus.corpus import ShardedCorpus, Vocabulary
from habitus.errors import FileError, InvalidInputError
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import STATISTICS
from habitus.habits.predictive import N_LEVELS, fit_young_concentrations
from habitus.habits.votes import votes_of_corpus
from habitus.scene import Fleet, SceneModel
from habitus.scene.fleet import (
    CONCENTRATION_WORTH,
    EDGES,
    N_STEPS,
    WORTH,
    YOUTH,
    _quantiles,
)
from habitus.scene.fusion import (
    UNLIKE,
    CueColumns,
    Fusion,
    FusionPrior,
    ImplantStatistics,
    median_units,
)
from habitus.scene.habit_learning import learn_habits
from habitus.scene.scene_model import learn_scene
from habitus.scene.thresholds import DAY, bar_of_budget, runs
from reference.habits import VoteProcess

FINE = Vocabulary(6, 7, directions=12, speeds=16)
STEP = EDGES[1] / EDGES[0]
"""Ratio of the bounds of a step."""
TOPICS = {
    "n_topics": 2,
    "n_behaviours": 2,
    "n_iterations": 3,
    "n_restarts": 1,
    "min_words": 1,
    "random_state": 0,
}


def footage(seed, n_documents, vocabulary=FINE, at=0):
    """Normal documents of the camera of this seed; `at` chooses the time."""
    return VoteProcess(vocabulary, seed).corpus(n_documents, np.random.default_rng([seed, at]))


def camera(seed, n_documents=600, vocabulary=FINE):
    """A camera as `learn` returns it, with the habits alone."""
    corpus = footage(seed, n_documents, vocabulary)
    return SimpleNamespace(
        habits=learn_habits(corpus), corpus=corpus, model=SimpleNamespace(clip_=corpus.clip)
    )


@pytest.fixture(scope="module")
def cameras():
    return [camera(seed) for seed in range(1, 5)]


@pytest.fixture(scope="module")
def fleet(cameras):
    return Fleet.of(cameras)


def same(one, other, rtol=0.0):
    assert (one.n_cameras, one.n_young, one.cell, one.clip) == (
        (other.n_cameras, other.n_young, other.cell, other.clip)
    )
    for name in ("shares", "found", "reach"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol)
    for name in N_LEVELS:
        np.testing.assert_allclose(one.young[name], other.young[name], rtol=rtol)


def test_sites_are_added_in_any_order(cameras, fleet):
    first, second = Fleet.of(cameras[:1]), Fleet.of(cameras[1:])
    same(first + second, fleet, rtol=1e-12)
    same(second + first, fleet, rtol=1e-12)
    assert fleet.n_cameras == fleet.n_young == 4


def test_each_camera_counts_once_however_long_its_footage(cameras):
    long = Fleet.of([cameras[0]])
    np.testing.assert_allclose(long.shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose((long + long).shares.sum(axis=1), 2, rtol=1e-12)


def test_a_file_is_the_fleet_and_has_no_picture_no_place_and_no_time(fleet, tmp_path):
    fleet.save(tmp_path / "a.fleet")
    same(Fleet.load(tmp_path / "a.fleet"), fleet)
    with safe_open(tmp_path / "a.fleet", framework="numpy") as file:
        sizes = {name: file.get_tensor(name).size for name in list(file.keys())}
    assert set(sizes) == {"shares", "found", "reach", *(f"young.{name}" for name in N_LEVELS)}
    assert FINE.n_cells not in sizes.values()
    assert (tmp_path / "a.fleet").stat().st_size < 25_000


def test_a_file_that_does_not_fit_is_one_line(fleet, tmp_path):
    replace(fleet, shares=np.zeros_like(fleet.shares)).save(tmp_path / "empty.fleet")
    with pytest.raises(FileError, match=r"the sums do not fit 4 cameras"):
        Fleet.load(tmp_path / "empty.fleet")
    replace(fleet, shares=-fleet.shares).save(tmp_path / "negative.fleet")
    with pytest.raises(FileError, match="the array shares must have values from 0"):
        Fleet.load(tmp_path / "negative.fleet")


def test_quantiles_are_those_of_the_values_within_a_step():
    rng = np.random.default_rng(0)
    values = np.stack([rng.exponential(size=5000), rng.lognormal(sigma=2, size=5000)])
    steps = np.searchsorted(EDGES, values, side="right")
    shares = np.stack([np.bincount(row, minlength=N_STEPS) / 5000 for row in steps])
    found = _quantiles(shares, 5000)
    expected = np.minimum(np.sort(values, axis=1), EDGES[-1])
    # In the first step the value is uniform, which it need not be.
    np.testing.assert_array_less(abs(found - expected), (STEP - 1) * expected + EDGES[0])
    assert (np.diff(found, axis=1) >= 0).all()


def test_quantiles_of_a_single_step_lie_within_it():
    shares = np.zeros((3, N_STEPS))
    shares[0, 0] = shares[1, 100] = shares[2, -1] = 2.0
    first, middle, last = _quantiles(shares, 50)
    assert 0 < first.min() < first.max() < EDGES[0]
    assert EDGES[99] < middle.min() < middle.max() < EDGES[100]
    assert (last == EDGES[-1]).all()


def test_the_prior_of_one_camera_is_its_own_statistics_in_units_of_their_medians(cameras):
    fusion = cameras[0].habits.fusion
    own = fusion.statistics[fusion.judged]
    prior = Fleet.of(cameras[:1]).prior(len(own))
    expected = np.sort(own / median_units(own), axis=0)
    assert (abs(prior.statistics - expected) <= 1.01 * (STEP - 1) * expected + EDGES[0]).all()
    scores = np.sort(fusion.held_out_scores[fusion.judged])
    expected = scores / np.median(scores)
    assert (abs(prior.scores - expected) <= 1.01 * (STEP - 1) * expected + EDGES[0]).all()
    np.testing.assert_allclose(prior.found, fusion.trust**3, rtol=1e-12)
    np.testing.assert_allclose(prior.reach, fusion.reach / np.median(scores), rtol=1e-12)


def test_concentrations_are_geometric_means_of_those_of_two_minutes(cameras, fleet):
    logs = {name: np.zeros(n) for name, n in N_LEVELS.items()}
    for each in cameras:
        parts = [
            HabitCounts.of(votes_of_corpus(each.corpus.take(np.arange(a, a + 120))), FINE, 120)
            for a in (0, 120, 240, 360, 480)
        ]
        found = fit_young_concentrations(parts, each.habits.counts, FINE)
        logs = {name: sums + np.log(found[name]) for name, sums in logs.items()}
    own = {name: (1.0,) * n for name, n in N_LEVELS.items()}
    for n, weight in ((0, 1.0), (CONCENTRATION_WORTH, 0.5), (1e12, 0.0)):
        blended = fleet.concentrations(own, n)
        for name, sums in logs.items():
            np.testing.assert_allclose(blended[name], np.exp(weight * sums / 4), rtol=1e-8)


def test_a_camera_without_its_documents_tells_no_concentrations(cameras):
    short = SimpleNamespace(**vars(cameras[0]) | {"corpus": footage(1, int(3 * YOUTH))})
    for scene in (short, SimpleNamespace(**vars(cameras[0]) | {"corpus": None})):
        found = Fleet.of([scene])
        assert (found.n_cameras, found.n_young) == (1, 0)
        own = cameras[1].habits.concentrations
        assert found.concentrations(own, 120) is own


def test_shards_tell_what_one_corpus_does(cameras):
    corpus = cameras[0].corpus
    parts = [corpus.take(np.arange(a, b)) for a, b in ((0, 130), (130, 420), (420, 600))]
    sharded = SimpleNamespace(**vars(cameras[0]) | {"corpus": ShardedCorpus.of(parts)})
    same(Fleet.of([sharded]), Fleet.of(cameras[:1]))


def test_statistics_of_the_fleet_stand_beside_those_of_the_camera(fleet):
    corpus = footage(9, 60)
    fusion = learn_habits(corpus, fleet=fleet).fusion
    assert fusion.fleet_statistics.shape == (WORTH, len(STATISTICS))
    own = fusion.statistics[fusion.judged]
    for k in range(len(STATISTICS)):
        every = np.concatenate([own[:, k], fusion.fleet_statistics[:, k]])
        tried = np.quantile(every, [0.3, 0.5, 0.8])
        shares = (every >= tried[:, None]).mean(axis=1)
        found = fusion.tails[k].survival(-tried)
        np.testing.assert_allclose(found, shares, rtol=0.02)


def test_own_documents_outweigh_the_fleet_as_they_become_more():
    rng = np.random.default_rng(0)
    quantiles = -np.log1p(-(np.arange(WORTH) + 0.5) / WORTH)
    other = np.repeat(quantiles[:, None] ** 2, 8, axis=1) / np.log(2) ** 2
    prior = FusionPrior(other, quantiles, np.full(8, 0.125), 9.0)
    for n, share in ((20, 20 / 1820), (30_000, 30_000 / 31_800)):
        normal = rng.exponential(size=(n, 8))
        made = ImplantStatistics(np.full((500, 8), 1e6), np.zeros(500, int))
        judged = np.ones(n, dtype=bool)
        own, both = (
            Fusion.of(CueColumns(normal), judged, made, prior=each) for each in (None, prior)
        )
        np.testing.assert_allclose(both.trust**3, share + (1 - share) * 0.125, rtol=1e-12)
        unit, tried = np.median(normal[:, 0]), 4.0
        expected = share * np.exp(-tried) + (1 - share) * np.exp(-np.sqrt(tried / unit) * np.log(2))
        np.testing.assert_allclose(both.tails[0].survival(-tried), expected, rtol=0.15)
        assert own.fleet_scores is None
        assert len(both.fleet_scores) == WORTH


@pytest.mark.parametrize("n_documents", [30, 120])
def test_a_young_camera_holds_its_budget_with_a_fleet(fleet, n_documents):
    rate, wrong = 144.0, {}
    for name, known in (("without", None), ("fleet", fleet)):
        raised = []
        for seed in (11, 12):
            model = learn_habits(footage(seed, n_documents), fleet=known)
            fusion = model.fusion
            held = bar_of_budget(fusion.tail, rate, DAY)
            later = model.judge_all(footage(seed, 1800, at=1))
            alarms = runs(-fusion.scores(CueColumns(later.cues.statistics)) < held.threshold)
            raised.append(len(alarms))
        wrong[name] = np.abs(np.log((np.array(raised) + 1) / (rate / 48 + 1))).mean()
    assert wrong["fleet"] < wrong["without"]


def test_a_model_file_keeps_what_the_fleet_told(fleet, tmp_path):
    scene = learn_scene(footage(9, 60), fleet=fleet, **TOPICS)
    scene.save(tmp_path / "a.model")
    again = SceneModel.load(tmp_path / "a.model")
    later = footage(9, 100, at=1)
    detectors = [each.detector(alerts_per_day=100) for each in (scene, again)]
    assert detectors[0].threshold == detectors[1].threshold
    one, other = (detector.judge_all(later).normality for detector in detectors)
    assert one.tolist() == other.tolist()
    plain = learn_scene(footage(9, 60), **TOPICS)
    assert plain.detector().judge_all(later).normality.tolist() != one.tolist()
    further = again.updated(later).habits.fusion
    assert further.fleet_scores.tolist() == scene.habits.fusion.fleet_scores.tolist()
    assert len(further.statistics) == 160


def test_a_fleet_of_other_scenes_is_not_used_and_a_note_says_so(fleet):
    flat = np.zeros_like(fleet.shares)
    flat[:, 40] = flat[:, 200] = 2.0
    corpus, later = footage(9, 120), footage(9, 100, at=1)
    plain, beside = (learn_scene(corpus, fleet=each, **TOPICS) for each in (None, fleet))
    strange = learn_scene(corpus, fleet=replace(fleet, shares=flat), **TOPICS)
    assert strange.notes == (
        *plain.notes,
        "the fleet was not used: its cameras are unlike this one",
    )
    assert beside.notes == plain.notes
    one, other, third = (
        each.detector().judge_all(later).normality.tolist() for each in (plain, strange, beside)
    )
    assert one == other != third


def test_the_distance_from_a_fleet_is_that_of_kolmogorov_and_smirnov():
    from scipy.stats import ks_1samp

    rng, said = np.random.default_rng(0), []
    quantiles = np.sort(rng.exponential(size=(WORTH, 8)), axis=0)
    for factor in (1.0, 1.3, 1.6, 2.4, 3.0):
        own = rng.exponential(size=(200, 8)) ** factor
        distances = [
            ks_1samp(
                own[:, k] / np.median(own[:, k]),
                lambda x, k=k: np.searchsorted(quantiles[:, k] / np.log(2), x) / WORTH,
            ).statistic
            for k in range(8)
        ]
        mean = np.sqrt(200) * np.mean(distances)
        prior = FusionPrior(quantiles / np.log(2), quantiles[:, 0], np.ones(8), 1.0)
        if abs(mean - UNLIKE) > np.sqrt(200) / 200:  # or a step of the shares decides
            said.append(prior.fits(own))
            assert said[-1] == (mean < UNLIKE)
    assert said[0]
    assert not said[-1]


def test_a_camera_is_like_a_fleet_of_itself_though_a_statistic_is_always_0(cameras):
    paper = camera(1, 400, FINE.paper)
    assert not paper.habits.fusion.statistics[:, 4:6].any()  # one speed surprises nobody
    for each in (paper, *cameras):
        fusion = each.habits.fusion
        assert Fleet.of([each]).prior().fits(fusion.statistics[fusion.judged])


def test_a_note_tells_the_documents_of_the_camera_alone(fleet):
    scene = learn_scene(footage(9, 60), fleet=fleet, **TOPICS)
    n = scene.habits.fusion.judged.sum()
    note = scene.detector(alerts_per_day=1e-3).notes[0]
    assert note.startswith(f"{n} seconds of footage cannot tell what happens 0.001 times a day")


def test_a_model_without_a_fleet_has_nothing_of_one(tmp_path):
    fusion = learn_habits(footage(9, 60)).fusion
    assert fusion.fleet_statistics is fusion.fleet_scores is None
    assert fusion.tail.n_documents == fusion.judged.sum()


@pytest.mark.parametrize(
    ("vocabulary", "clip", "message"),
    [
        (FINE.coarse, 1.0, "words of 12 directions, this one has words of 4 directions"),
        (replace(FINE, speeds=1), 1.0, "words of 16 speeds, this one has words of 1 speed:"),
        (replace(FINE, cell=16, width=0, height=0), 1.0, "cells of 8 pixels, this one has cells"),
        (FINE, 0.5, "documents of 1 s, this one has documents of 0.5 s"),
    ],
)
def test_a_camera_of_another_kind_is_refused(fleet, vocabulary, clip, message):
    corpus = replace(footage(9, 60, vocabulary), settings={"clip": clip})
    with pytest.raises(InvalidInputError, match=message) as error:
        learn_scene(corpus, fleet=fleet, **TOPICS)
    assert error.value.parameter == "fleet"
    other = replace(fleet, cell=vocabulary.cell, clip=clip)
    other = replace(other, directions=vocabulary.directions, speeds=vocabulary.speeds)
    with pytest.raises(InvalidInputError, match=message):
        fleet + other


def test_nothing_to_make_a_fleet_from_is_one_line(cameras):
    none = SimpleNamespace(habits=None)
    still = replace(
        cameras[0].habits, fusion=Fusion(np.zeros((5, 8)), np.ones(5, bool), np.ones(8))
    )
    for scenes in ([], [none], [SimpleNamespace(habits=still)]):
        with pytest.raises(InvalidInputError, match="at least one model with habits"):
            Fleet.of(scenes)


def test_learn_takes_the_file_and_update_does_not(fleet, tmp_path):
    corpus = footage(9, 60)
    fleet.save(tmp_path / "a.fleet")
    options = TOPICS | {"seed": TOPICS["random_state"]}
    del options["random_state"]
    learning = habitus.LearningSettings(**options)
    found = habitus.learn(corpus, fleet=tmp_path / "a.fleet", learning=learning)
    expected = habitus.learn(corpus, fleet=fleet, learning=learning)
    assert found.habits.fusion.reach == expected.habits.fusion.reach
    assert found.habits.fusion.fleet_scores is not None
    with pytest.raises(InvalidInputError, match="leave this one out") as error:
        habitus.learn(corpus, update=found, fleet=fleet)
    assert error.value.parameter == "fleet"
    with pytest.raises(FileError, match="expected a habitus fleet file"):
        habitus.learn(corpus, fleet=tmp_path / "absent.fleet")
