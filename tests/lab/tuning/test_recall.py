"""Recall estimated without labels, on two lanes that take turns."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from habitus import Corpus, Detector
from habitus.corpus.vocabulary import Direction
from habitus.errors import InvalidInputError
from habitus.lab.tuning.recall import _SegmentJudge, estimate_recall, jeffreys
from habitus.lab.tuning.synthetic import (
    KINDS,
    RARE,
    WHOLE_SCENE,
    Injection,
    foreign_path,
    held_out_segment,
    inject,
    observe_scene,
    out_of_order,
    out_of_place,
    out_of_turn,
    usual_rate,
    wrong_way,
)
from habitus.model import MarkovClusteringTopicModel
from habitus.scene import SceneModel, held_out_folds, learn_scene
from reference.traffic import traffic


@pytest.fixture(scope="module")
def footage():
    return traffic(240)


@pytest.fixture(scope="module")
def model(footage):
    return learn_scene(footage, n_topics=2, n_behaviours=2, n_restarts=10, random_state=0)


@pytest.fixture(scope="module")
def folds(model, footage):
    return held_out_folds(model.model, model.calibration, footage)


@pytest.fixture(scope="module")
def scene(footage):
    return observe_scene(footage)


@pytest.fixture(scope="module")
def segments(folds):
    return [held_out_segment(fold.model, fold.held_out) for fold in folds]


@pytest.fixture(scope="module")
def recall(model, footage):
    return estimate_recall(model, footage, strengths=(0.2, 1.0, 20.0), n_trials=25)


def test_detectors_of_held_out_folds_give_the_scores_of_the_calibration(model, folds):
    scores = []
    for fold in folds:
        detector = Detector(fold.model, fold.calibration, threshold=0.0)
        scores += [judgement.normality for judgement in detector.judge(fold.held_out)]
    np.testing.assert_allclose(
        scores, model.calibration.plug_in.scores["tail"], rtol=1e-9, atol=1e-9
    )


def test_a_segment_is_judged_from_its_start_whatever_was_judged_before(folds):
    """The belief about the behaviour that an earlier trial left behind must not matter."""
    other = folds[0].held_out.counts.toarray()[::-1]
    fold = folds[0]._replace(held_out=Corpus(other, vocabulary=folds[0].held_out.vocabulary))
    judge = _SegmentJudge(fold, "mean", [0.0])
    detector = Detector(fold.model, fold.calibration, measure="mean", threshold=0.0)
    expected = [judgement.normality for judgement in detector.judge(fold.held_out)]
    assert judge.unchanged.normality.tolist() == expected
    judge.scores(judge.segment.counts[::-1])
    assert judge.scores(judge.segment.counts).normality.tolist() == expected


def test_documents_of_an_unusable_camera_are_not_judged(folds):
    held_out = folds[0].held_out
    conditions = np.arange(len(held_out)) % 2
    covered = Corpus(held_out.counts, vocabulary=held_out.vocabulary, conditions=conditions)
    judge = _SegmentJudge(folds[0]._replace(held_out=covered), "tail", [0.0])
    assert judge.unchanged.judged.any()
    assert not judge.unchanged.judged[conditions == 1].any()


def test_alarms_are_joined_as_those_of_a_video_are(folds):
    """Ten seconds of usual documents lie within an alarm, not ten documents."""
    held_out = folds[0].held_out
    for clip, n_usual, found in ((1.0, 10, True), (2.0, 5, True), (2.0, 6, False)):
        times = clip * np.arange(len(held_out))
        corpus = Corpus(held_out.counts, vocabulary=held_out.vocabulary, times=times)
        corpus = replace(corpus, settings={"clip": clip})
        judge = _SegmentJudge(folds[0]._replace(held_out=corpus), "mean", [0.0])
        scored = judge.unchanged
        normality = np.ones(len(scored.times))
        normality[[0, n_usual + 1]] = -1.0
        usual = scored._replace(normality=normality, judged=normality < 2)
        middle = Injection(0, 3, np.zeros((1, corpus.n_words)))
        assert judge._matched(usual, middle) == [found]


def test_wrong_way_is_along_a_lane_in_the_other_direction(scene, segments):
    rng = np.random.default_rng(0)
    for _ in range(10):
        made = wrong_way(scene, segments, rng)
        ways = set(np.flatnonzero(made.words.sum(axis=(0, 1, 2))))
        assert ways in ({Direction.LEFT}, {Direction.UP})
        cells = made.words.sum(axis=(0, 3))
        lane = cells[4:6] if ways == {Direction.LEFT} else cells[:, 18:20]
        assert lane.sum() >= 0.9 * cells.sum()


def test_out_of_place_and_foreign_paths_are_where_their_direction_is_rare(scene, segments):
    rng = np.random.default_rng(1)
    most = max(usual_rate(scene.words(k), scene.usual) for k in range(len(scene.tracks)))
    for maker in (out_of_place, foreign_path):
        for _ in range(10):
            made = maker(scene, segments, rng)
            assert usual_rate(made.words, scene.usual) <= RARE * most
    counts = {track.n_words * len(track.patches) for track in scene.tracks}
    assert out_of_place(scene, segments, rng).words.sum() in counts


def test_out_of_turn_is_an_objects_own_path_while_the_other_lane_moves(scene, segments):
    rng = np.random.default_rng(2)
    for _ in range(10):
        made = out_of_turn(scene, segments, rng)
        here = slice(made.start, made.start + len(made.words))
        going = segments[made.segment].counts[here]
        way = int(made.words.sum(axis=(0, 1, 2)).argmax())
        other = Direction.DOWN if way == Direction.RIGHT else Direction.RIGHT
        assert (going[..., other].sum(axis=(1, 2)) > 20).all()
        assert (going[..., way].sum(axis=(1, 2)) < 20).all()


def test_out_of_order_replaces_documents_by_those_of_another_behaviour(scene, segments):
    made = out_of_order(scene, segments, np.random.default_rng(3))
    segment = segments[made.segment]
    changed = inject(segment, made, made.words)
    here = slice(made.start, made.start + len(made.words))
    assert np.array_equal(changed[here], made.words)
    rest = np.ones(len(changed), dtype=bool)
    rest[here] = False
    assert np.array_equal(changed[rest], segment.counts[rest])
    path = segment.model.predict(changed.reshape(len(changed), -1))
    assert (path[here] != segment.path[here]).all()


def test_an_injection_adds_its_words_and_leaves_the_segment_unchanged(scene, segments):
    made = wrong_way(scene, segments, np.random.default_rng(4))
    before = segments[made.segment].counts.copy()
    changed = inject(segments[made.segment], made, made.words)
    added = changed - before
    here = slice(made.start, made.start + len(made.words))
    assert np.array_equal(added[here], made.words)
    assert added.sum() == made.words.sum()
    assert np.array_equal(segments[made.segment].counts, before)


def test_more_words_and_a_larger_budget_find_more_and_large_anomalies_are_always_found(recall):
    shares = {(s.kind, s.alerts_per_day, s.strength): s for s in recall.shares}
    for kind, strength in product(KINDS, (0.2, 1.0, 20.0)):
        if kind != WHOLE_SCENE:
            few, more, most = (shares[kind, b, strength].n_found for b in (5.0, 24.0, 480.0))
            assert few <= more <= most
    # Not "out of turn": many words make a document one of the other behaviour.
    for kind in ("wrong way", "out of place", "foreign path"):
        for budget in (5.0, 24.0, 480.0):
            small, large = (shares[kind, budget, strength].n_found for strength in (0.2, 20.0))
            assert small <= large
        assert shares[kind, 24.0, 20.0].share >= 0.9
        assert shares[kind, 5.0, 0.2].share <= 0.2
    assert all(share.n_by_chance <= 2 for share in recall.shares if share.alerts_per_day == 5)
    assert {s.strength for s in recall.shares if s.kind == WHOLE_SCENE} == {None}


def test_the_same_seed_gives_the_same_recall(model, footage, recall):
    again = estimate_recall(model, footage, strengths=(0.2, 1.0, 20.0), n_trials=25)
    assert again == recall


def test_the_interval_covers_the_true_share_about_nine_times_out_of_ten():
    for share in (0.1, 0.3, 0.5, 0.8):
        found = np.arange(61)
        holds = np.array([low <= share <= high for low, high in (jeffreys(k, 60) for k in found)])
        assert 0.85 <= binom.pmf(found[holds], 60, share).sum() <= 0.96
    assert jeffreys(0, 10)[0] == 0
    assert jeffreys(10, 10)[1] == 1


def test_a_model_or_footage_without_an_estimate_is_refused(model, footage):
    bare = MarkovClusteringTopicModel(2, 2, n_iterations=3, random_state=0).fit(footage)
    with pytest.raises(InvalidInputError, match="a calibrated model"):
        estimate_recall(SceneModel(bare), footage)
    with pytest.raises(InvalidInputError, match=r"10 or more are needed, found \d"):
        estimate_recall(model, footage.take(np.arange(12)))
