"""Habits of a scene: the same however they are computed, and never without a finite answer."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from habitus.anomaly import Detector, SceneModel
from habitus.anomaly.habit_model import HabitModel, judged_documents, learn_habits
from habitus.anomaly.scene_model import learn_scene
from habitus.corpus import Condition, Corpus, Vocabulary
from habitus.errors import InvalidInputError
from habitus.habits.counts import HabitCounts
from habitus.habits.votes import votes_of_corpus
from habitus.model import MarkovClusteringTopicModel
from reference.habits import VoteProcess, random_corpus

FINE = Vocabulary(6, 7, directions=12, speeds=16)
KINDS = {"fine": FINE, "coarse": FINE.coarse, "paper": FINE.paper}


def footage(vocabulary, n_documents, seed, share=0.15):
    """Normal documents, now and then without motion, with a camera that is covered at times."""
    rng = np.random.default_rng(seed)
    corpus = VoteProcess(vocabulary, 0, share).corpus(n_documents, rng)
    conditions = np.where(rng.random(n_documents) < 0.1, Condition.COVERED, Condition.USABLE)
    return replace(corpus, conditions=conditions) if n_documents > 5 else corpus


def unusual(vocabulary, n_documents, seed):
    """Documents of which some are unlike the footage."""
    normal, other = footage(vocabulary, n_documents, seed), random_corpus(vocabulary, 20, seed)
    return Corpus.joined([normal, other])


TOPICS = {
    "n_topics": 2,
    "n_behaviours": 2,
    "n_iterations": 5,
    "n_restarts": 1,
    "min_words": 1,
    "random_state": 0,
}


def topic_model(corpus):
    return MarkovClusteringTopicModel(**TOPICS).fit(corpus)


@pytest.fixture(scope="module", params=list(KINDS))
def scene(request):
    """A scene model learnt from each kind of words."""
    corpus = footage(KINDS[request.param], 200, seed=1)
    return learn_scene(corpus, **TOPICS)


def stepped(detector, corpus, *, first=0):
    """Judge the documents one at a time, from a document on."""
    for t, document in enumerate(corpus.bags()):
        if t < first:
            continue
        if t and corpus.first[t]:
            detector.new_sequence()
        usable = corpus.conditions[t] == Condition.USABLE
        yield detector.step(document, usable=usable, vocabulary=corpus.vocabulary)


def same(one, other, *, explained=True):
    return (
        one.normality == other.normality
        and (one.judged, one.abnormal) == (other.judged, other.abnormal)
        and one[3:6] == other[3:6]
        and np.array_equal(one.posterior, other.posterior)
        and (not explained or same_habit(one.habit, other.habit))
    )


def same_habit(one, other):
    if one is None or other is None:
        return one is other
    return (
        one.normality == other.normality
        and one[4:] == other[4:]
        and np.array_equal(one.rarities, other.rarities)
        and all(map(np.array_equal, one.votes, other.votes))
        and all(map(np.array_equal, one.evidence, other.evidence))
    )


def test_one_at_a_time_equals_all_at_once_bit_for_bit(scene):
    corpus = unusual(scene.habits.vocabulary, 60, seed=2)
    all_at_once = scene.detector(share=0.05)
    found = all_at_once.judge_all(corpus)
    assert not found.judged.all()
    n_abnormal = 0
    for t, judgement in enumerate(stepped(scene.detector(share=0.05), corpus)):
        expected = found.judgement(t, all_at_once.threshold, explained=bool(found.judged[t]))
        assert same(judgement, expected)
        n_abnormal += judgement.abnormal
    assert 0 < n_abnormal < found.judged.sum()
    assert found.habits.behaviours.min() < 0  # the topic model has its say


def test_fine_documents_are_judged_by_habits_of_coarser_words(scene):
    corpus = unusual(FINE, 40, seed=3)
    own = corpus.summed(scene.habits.vocabulary)
    fine, coarse = scene.detector(), scene.detector()
    for one, other in zip(stepped(fine, corpus), stepped(coarse, own), strict=True):
        assert same(one, other)
    assert np.array_equal(
        scene.detector().judge_all(corpus).normality,
        [judgement.normality for judgement in stepped(scene.detector(), own)],
    )


def test_words_coarser_than_the_habits_are_refused():
    corpus = footage(FINE, 60, seed=1)
    detector = SceneModel(topic_model(corpus), habits=learn_habits(corpus)).detector()
    assert detector.model.vocabulary_.kind == "coarse"
    document = next(corpus.coarse.bags())
    with pytest.raises(InvalidInputError, match="fine words or finer ones, found coarse words"):
        detector.step(document, vocabulary=corpus.coarse.vocabulary)


def test_documents_are_in_the_words_that_were_learnt_from_unless_told():
    corpus = footage(FINE, 60, seed=1)
    scene = SceneModel(topic_model(corpus), habits=learn_habits(corpus))
    untold, told = scene.detector(), scene.detector()
    for document in corpus.bags():
        assert same(untold.step(document), told.step(document, vocabulary=corpus.vocabulary))


def test_saved_and_restored_mid_stream_it_goes_on_bit_for_bit(scene, tmp_path):
    corpus = unusual(scene.habits.vocabulary, 50, seed=4)
    expected = list(stepped(scene.detector(), corpus))
    detector = scene.detector()
    started = stepped(detector, corpus)
    for judgement in expected[:25]:
        assert same(next(started), judgement)
    scene.save(tmp_path / "model")
    detector.save_state(tmp_path / "state")
    restored = SceneModel.load(tmp_path / "model").detector()
    restored.restore_state(tmp_path / "state")
    assert restored.threshold == detector.threshold
    rest = list(stepped(restored, corpus, first=25))
    assert len(rest) == 45
    for judgement, other in zip(rest, expected[25:], strict=True):
        assert same(judgement, other)


def fingerprint():
    """A digest of all that is learnt and judged."""
    corpus = footage(FINE, 120, seed=1)
    scene = SceneModel(topic_model(corpus), habits=learn_habits(corpus))
    found = scene.detector().judge_all(unusual(FINE, 40, seed=2))
    arrays = [*scene.habits.contents().tensors.values(), found.normality, found.habits.statistics]
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def test_results_do_not_depend_on_the_number_of_threads():
    code = "import test_habit_model; print(test_habit_model.fingerprint())"
    folder = Path(__file__).parent
    found = set()
    for n in ("1", "2"):
        names = ("NUMBA", "OMP", "OPENBLAS", "MKL")
        environment = os.environ | {f"{name}_NUM_THREADS": n for name in names}
        paths = [str(folder), str(folder.parent), *sys.path]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        found.add(done.stdout.strip())
    assert found == {fingerprint()}


def test_a_camera_out_of_order_is_neither_counted_nor_judged():
    corpus = footage(FINE, 100, seed=5)
    usable = corpus.conditions == Condition.USABLE
    assert 0 < (~usable).sum() < 50
    model = learn_habits(corpus)
    votes = votes_of_corpus(corpus.take(np.flatnonzero(usable)))
    expected = HabitCounts.of(votes, FINE, usable.sum())
    assert model.counts.n_documents == expected.n_documents
    assert np.array_equal(model.counts.direction, expected.direction)
    assert np.array_equal(model.counts.speed, expected.speed)
    found = model.judge_all(corpus)
    assert np.array_equal(found.judged, usable & (corpus.n_tokens > 0))
    assert np.array_equal(found.judged, judged_documents(corpus))
    assert (found.normality[~found.judged] == 0).all()
    assert (found.normality[found.judged] < 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_documents", [1, 2, 10, 30])
def test_little_footage_gives_finite_scores_and_a_ranking(kind, n_documents, tmp_path):
    vocabulary = KINDS[kind]
    corpus = footage(vocabulary, n_documents, seed=6, share=0.3)
    habits = learn_habits(corpus)
    assert_finite(habits)
    assert len(habits.fusion.statistics) == n_documents
    scene = SceneModel(topic_model(footage(vocabulary, 30, seed=1)), habits=habits)
    scene.save(tmp_path / "model")
    detector = SceneModel.load(tmp_path / "model").detector()
    assert -np.inf < detector.threshold < 0
    found = detector.judge_all(unusual(vocabulary, 30, seed=7))
    assert np.isfinite(found.normality).all()
    assert len(np.unique(found.normality)) > 20
    expected = detector.expected_alarms(3600.0)
    assert all(np.isfinite(value) and value >= 0 for value in expected)


def assert_finite(habits: HabitModel):
    for name, values in habits.contents().tensors.items():
        assert np.isfinite(values).all() or name == "habits.reach"
    for part in habits.habits:
        assert np.isfinite(part).all()
    assert np.isfinite(habits.fusion.held_out).all()


def test_footage_in_which_nothing_moves_is_refused_with_a_reason():
    still = Corpus(np.zeros((40, FINE.n_words)), vocabulary=FINE)
    with pytest.raises(InvalidInputError, match="something moves, found none"):
        learn_habits(still)
    with pytest.raises(InvalidInputError, match="vocabulary"):
        learn_habits(Corpus([[1, 2]]))


def test_a_scene_without_habits_says_so():
    covered = footage(FINE, 40, seed=1)
    covered = replace(covered, conditions=np.full(40, Condition.COVERED))
    with pytest.raises(InvalidInputError, match="something moves, found none"):
        learn_habits(covered)


def test_motion_that_is_never_a_vote_is_learnt_and_judged():
    word = int(FINE.words(3, 3, 1, 5))
    corpus = Corpus.from_word_ids([[word], []] * 20, vocabulary=FINE)
    habits = learn_habits(corpus)
    assert_finite(habits)
    assert habits.counts.moving.sum() == 0
    found = habits.judge_all(Corpus.from_word_ids([[word], [word] * 4], vocabulary=FINE))
    assert found.normality[1] < found.normality[0] <= 0
    assert np.isfinite(found.normality).all()


def test_without_an_implant_the_reach_is_unlimited_and_everything_works(tmp_path):
    words = FINE.words(3, [1, 2, 3], 1, 5)  # fewer votes than an implant needs
    corpus = Corpus.from_word_ids([np.repeat(words, 2)] * 60, vocabulary=FINE)
    scene = SceneModel(topic_model(corpus), habits=learn_habits(corpus))
    assert scene.habits.fusion.reach == np.inf
    assert scene.habits.fusion.trust.tolist() == [1.0] * 8
    scene.save(tmp_path / "model")
    restored = SceneModel.load(tmp_path / "model")
    assert restored.habits.fusion.reach == np.inf
    for each in (scene, restored):
        detector = each.detector()
        assert np.isfinite(detector.threshold)
        assert np.isfinite(detector.expected_alarms(3600.0).mean)
    new = Corpus.from_word_ids([np.repeat(words + 6 * 16, 2)], vocabulary=FINE)
    (one,), (other,) = (list(each.detector().judge(new)) for each in (scene, restored))
    assert one.normality == other.normality < np.log(0.1)


def test_accepted_moments_are_taken_back_to_the_bit(tmp_path):
    corpus = footage(FINE, 80, seed=8)
    model = learn_habits(corpus)
    unlike = votes_of_corpus(random_corpus(FINE, 40, seed=8))
    odd = [unlike.of(t) for t in np.flatnonzero(np.diff(unlike.indptr) > 5)[:4]]
    before = model.judge(odd[0])
    accepted = model
    for votes in odd[:3]:
        accepted = accepted.accept(votes)
    assert accepted.judge(odd[0]).normality > before.normality
    assert accepted.all_counts.n_documents == model.counts.n_documents + 3
    path = tmp_path / "model"
    SceneModel(topic_model(corpus), habits=accepted).save(path)
    restored = SceneModel.load(path).habits
    assert len(restored.accepted) == 3
    for votes in odd:
        assert same_habit(restored.judge(votes), accepted.judge(votes))
    for k in (1, 2, 0):
        restored = restored.withdraw(odd[k])
    assert restored.accepted == ()
    assert same_habit(restored.judge(odd[0]), before)
    assert np.array_equal(restored.all_counts.direction, model.counts.direction)
    with pytest.raises(InvalidInputError, match="was not accepted"):
        restored.withdraw(odd[0])


def test_the_default_detector_of_a_scene_judges_by_habits():
    corpus = footage(FINE, 60, seed=9)
    scene = learn_scene(corpus, n_topics=2, n_behaviours=2, n_iterations=5, min_words=1)
    detector = scene.detector()
    assert isinstance(detector, Detector)
    assert detector.measure == "habits"
    assert scene.detector(measure="tail").measure == "tail"
