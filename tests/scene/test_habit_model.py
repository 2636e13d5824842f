"""Habits of a scene: the same however they are computed, and never without a finite answer."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from habitus.corpus import Condition, Corpus, ShardedCorpus, Vocabulary
from habitus.corpus.clocks import NO_CLOCK, clock_text, hours_of
from habitus.errors import FileError, InvalidInputError
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import STATISTICS
from habitus.habits.hours import HOUR, HOUR_STATISTICS
from habitus.habits.votes import votes_of_corpus
from habitus.model import MarkovClusteringTopicModel
from habitus.scene import Detector, SceneModel, detect_events
from habitus.scene.explanation import find_unusual
from habitus.scene.habit_learning import learn_habits
from habitus.scene.habit_model import (
    HabitModel,
    counted_hours,
    judged_documents,
)
from habitus.scene.scene_model import learn_scene
from reference.habits import VoteProcess, random_corpus, random_votes

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
        clock = int(corpus.clocks[t])
        yield detector.step(document, usable=usable, vocabulary=corpus.vocabulary, clock=clock)


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
    assert found.habits.cues.behaviours.min() < 0  # the topic model has its say


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
    arrays = [
        *scene.habits.contents().tensors.values(),
        found.normality,
        found.habits.cues.statistics,
    ]
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def test_results_do_not_depend_on_the_number_of_threads():
    code = "import test_habit_model; print(test_habit_model.fingerprint())"
    folder = Path(__file__).parent
    names = ("NUMBA", "OMP", "OPENBLAS", "MKL")
    environment = os.environ | {f"{name}_NUM_THREADS": "2" for name in names}
    paths = [str(folder), str(folder.parent), *sys.path]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    with threadpool_limits(1):
        assert done.stdout.strip() == fingerprint()


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
    often = accepted.accept(odd[3], times=30.0)
    SceneModel(topic_model(corpus), habits=often).save(path)
    assert same_habit(SceneModel.load(path).habits.judge(odd[3]), often.judge(odd[3]))
    assert often.judge(odd[3]).normality > accepted.accept(odd[3]).judge(odd[3]).normality
    for k in (1, 2, 0):
        restored = restored.withdraw(odd[k])
    assert restored.accepted == ()
    assert same_habit(restored.judge(odd[0]), before)
    assert np.array_equal(restored.all_counts.direction, model.counts.direction)
    with pytest.raises(InvalidInputError, match="was not accepted"):
        restored.withdraw(odd[0])


def test_what_events_share_is_taken_back_of_the_event_that_is_meant(tmp_path):
    corpus = footage(FINE, 80, seed=8)
    model = learn_habits(corpus)
    unlike = votes_of_corpus(random_corpus(FINE, 40, seed=8))
    a, b, c = [(unlike.of(t), None) for t in np.flatnonzero(np.diff(unlike.indptr) > 5)[:3]]
    events = {"short": ([a], 1.0), "long": ([a, b], 30.0), "later": ([c, a], 3.0)}
    for order in permutations(events):
        accepted = model
        for name in order:
            accepted = accepted.accept_all(events[name][0], times=events[name][1])
        path = tmp_path / "model"
        SceneModel(topic_model(corpus), habits=accepted).save(path)
        accepted = SceneModel.load(path).habits
        for name in order:
            left = accepted.withdraw_all(events[name][0])
            wanted = model
            for other in order:
                if other != name:
                    wanted = wanted.accept_all(events[other][0], times=events[other][1])
            assert np.array_equal(left.all_counts.direction, wanted.all_counts.direction)
            assert [m.times for m in left.accepted] == [m.times for m in wanted.accepted]
    apart = replace(accepted, accepted=tuple(m._replace(after=False) for m in accepted.accepted))
    assert len(apart.withdraw_all([a, b]).accepted) == 3  # of a file that does not say it
    assert [m.after for m in accepted.withdraw(c[0]).accepted].count(True) == 1


def test_the_default_detector_of_a_scene_judges_by_habits():
    corpus = footage(FINE, 60, seed=9)
    scene = learn_scene(corpus, n_topics=2, n_behaviours=2, n_iterations=5, min_words=1)
    detector = scene.detector()
    assert isinstance(detector, Detector)
    assert detector.measure == "habits"
    assert scene.detector(measure="tail").measure == "tail"


def by_day(n_days, seed, *, first_day=0, vocabulary=FINE, per_hour=6):
    """Days in which little moves from midnight to eight, with clocks."""
    n = 24 * per_hour * n_days
    corpus = footage(vocabulary, n, seed)
    clocks = 1440 * first_day + np.arange(n) * (60 // per_hour)
    night = (clocks // 60 % 24 < 8) & (np.random.default_rng(seed).random(n) < 0.99)
    gone = np.repeat(night, corpus.entries.lengths)
    entries = replace(corpus.entries, data=np.where(gone, 0.0, corpus.entries.data))
    return replace(corpus, entries=entries, clocks=clocks)


@pytest.fixture(scope="module")
def nightly():
    """Habits of a week in which nights are quiet."""
    return learn_habits(by_day(7, seed=3))


def test_motion_by_night_is_unusual_where_nights_are_quiet(nightly):
    assert nightly.concentrations[HOUR]
    assert len(nightly.fusion.trust) == len(STATISTICS) + len(HOUR_STATISTICS)
    votes = votes_of_corpus(by_day(1, seed=4), nightly.least_words)
    odd = votes.of(int(np.diff(votes.indptr).argmax()))
    by_day_, by_night, unknown = (nightly.judge(odd, clock=c) for c in (720, 180, NO_CLOCK))
    assert by_night.normality < by_day_.normality == unknown.normality
    assert by_night.rarities[len(STATISTICS) :].max() > 1
    assert by_night.rarities[: len(STATISTICS)].tolist() == unknown.rarities[:-2].tolist()


def test_without_clocks_or_with_one_day_nothing_changes_to_the_bit():
    corpus = by_day(2, seed=3)
    plain = learn_habits(replace(corpus, clocks=None))
    one_day = np.arange(len(corpus))
    midnight = 1440 - 7 * len(corpus) // 10 + one_day  # seven tenths are of the first day
    for clocks in (one_day, midnight):
        model = learn_habits(replace(corpus, clocks=clocks))
        assert HOUR not in model.concentrations
        assert np.array_equal(model.fusion.statistics, plain.fusion.statistics)
        assert np.array_equal(model.fusion.trust, plain.fusion.trust)
        found, wanted = model.judge_all(corpus), plain.judge_all(corpus)
        assert np.array_equal(found.normality, wanted.normality)


def test_an_hour_that_predicts_nothing_is_no_cue():
    corpus = by_day(2, seed=3)
    at_random = np.random.default_rng(0).permutation(corpus.clocks)
    assert HOUR not in learn_habits(replace(corpus, clocks=at_random)).concentrations


def test_a_day_is_held_out_whole():
    days = [by_day(1, seed=3 + day, first_day=day) for day in range(3)]
    model = learn_habits(Corpus.joined(days))
    for number, day in enumerate(days):
        others = Corpus.joined([other for other in days if other is not day])
        votes = votes_of_corpus(others, model.least_words)
        usable = int((others.conditions == Condition.USABLE).sum())
        counts = HabitCounts.of(votes, FINE, usable, counted_hours(others))
        without = replace(model, counts=counts).judge_all(day).cues.statistics
        own = slice(number * len(day), (number + 1) * len(day))
        np.testing.assert_array_equal(model.fusion.statistics[own], without)


def test_hours_of_shards_are_those_of_one_corpus(nightly):
    corpus = by_day(7, seed=3)
    edges = [0, 1, 150, 700, len(corpus)]
    parts = [corpus.take(np.arange(*edge)) for edge in pairwise(edges)]
    found = learn_habits(ShardedCorpus.of(parts, keep_bytes=0), n_threads=2)
    assert found.concentrations == nightly.concentrations
    assert np.array_equal(found.counts.hours, nightly.counts.hours)
    assert np.array_equal(found.fusion.statistics, nightly.fusion.statistics)
    assert np.array_equal(found.fusion.trust, nightly.fusion.trust)


def test_a_clock_that_jumps_back_counts_by_document():
    days = [by_day(1, seed=3 + day, first_day=day) for day in range(4)]
    order = [2, 0, 3, 1]
    model = learn_habits(Corpus.joined([days[day] for day in order]))
    assert np.array_equal(model.counts.hours, learn_habits(Corpus.joined(days)).counts.hours)
    assert HOUR in model.concentrations


def test_an_hour_that_comes_twice_counts_twice_and_undated_footage_at_no_hour():
    days, undated = by_day(4, seed=3), replace(by_day(1, seed=8), clocks=None)
    again = days.take(np.flatnonzero(days.clocks // 60 == 36))  # noon of the second day
    dated = learn_habits(days)
    votes = votes_of_corpus(again, dated.least_words)
    noon = HabitCounts.of(votes, FINE, len(again), counted_hours(again))
    found = learn_habits(Corpus.joined([undated, days, again]))
    assert noon.hours.sum() > 0
    assert np.array_equal(found.counts.hours, dated.counts.hours + noon.hours)
    assert found.counts.direction.sum() > (dated.counts.direction + noon.direction).sum()
    assert HOUR in found.concentrations


def test_documents_of_the_night_one_at_a_time_are_as_all_at_once(nightly):
    corpus = by_day(1, seed=9)
    turned = replace(corpus, clocks=(corpus.clocks + 12 * 60) % 1440)  # busy by night
    corpus = Corpus.joined([replace(corpus, clocks=None).take(np.arange(40)), turned])
    found = nightly.judge_all(corpus)
    assert (found.cues.statistics[:, len(STATISTICS) :] > 0).any()
    assert not found.cues.statistics[:40, len(STATISTICS) :].any()
    for t in np.flatnonzero(found.judged):
        alone = nightly.judge(found.votes.of(t), clock=int(corpus.clocks[t]))
        assert alone.normality == found.normality[t]
        assert same_habit(alone, found.judgement(t))


def test_events_have_a_local_time_that_accepting_them_goes_by(nightly):
    corpus = by_day(1, seed=9)
    corpus = replace(corpus, clocks=(corpus.clocks + 12 * 60) % 1440)
    scene = SceneModel(topic_model(corpus), habits=nightly)
    detector = scene.detector(threshold=-2.0)
    found = detect_events(detector, corpus)
    steps = list(stepped(scene.detector(threshold=-2.0), corpus))
    assert [step.normality for step in steps] == found.normality.tolist()
    by_hour = next(event for event in found.events if event.cue.startswith(HOUR))
    assert by_hour.minute == corpus.clocks[by_hour.peak_document]
    assert by_hour.local_time == clock_text(by_hour.minute)
    moments = scene.accept(by_hour).scene.habits.accepted
    assert len(moments) == len({point.moment for point in by_hour.track})
    assert {moment.hour for moment in moments} == {by_hour.minute // 60 % 24}
    assert scene.accept(by_hour).scene.withdraw(by_hour).habits.accepted == ()
    assert scene.silenced([by_hour]) == []  # judged again at its hour, it is as unusual


def test_hours_are_saved_and_files_without_are_as_they_were(nightly, tmp_path):
    corpus = by_day(1, seed=5)
    topics = topic_model(corpus)
    path, plain = tmp_path / "model", tmp_path / "plain"
    SceneModel(topics, habits=nightly).save(path)
    restored = SceneModel.load(path).habits
    assert restored.concentrations == nightly.concentrations
    assert np.array_equal(restored.judge_all(corpus).normality, nightly.judge_all(corpus).normality)
    SceneModel(topics, habits=learn_habits(replace(corpus, clocks=None))).save(plain)
    assert b"hour" in path.read_bytes()
    assert b"hour" not in plain.read_bytes()


def test_a_file_whose_statistics_do_not_fit_its_cues_is_refused(nightly, tmp_path):
    one_less = {name: own for name, own in nightly.concentrations.items() if name != HOUR}
    model = SceneModel(topic_model(by_day(1, seed=5)), habits=nightly)
    replace(model, habits=replace(nightly, concentrations=one_less)).save(tmp_path / "model")
    with pytest.raises(FileError, match="must have 8 statistics, found 10"):
        SceneModel.load(tmp_path / "model")
    one_more = nightly.concentrations | {HOUR: (1.0,) * 6}
    replace(model, habits=replace(nightly, concentrations=one_more)).save(tmp_path / "model")
    with pytest.raises(FileError, match="hours have 5 or 10 concentrations"):
        SceneModel.load(tmp_path / "model")


def test_a_moment_is_accepted_at_its_hour_and_taken_back_to_the_bit(nightly, tmp_path):
    votes = votes_of_corpus(by_day(1, seed=4), nightly.least_words)
    odd = votes.of(int(np.diff(votes.indptr).argmax()))
    before = nightly.judge(odd, clock=180)
    accepted = nightly
    for _ in range(20):
        accepted = accepted.accept(odd, clock=180)
    assert accepted.all_counts.hour_documents[3] == nightly.counts.hour_documents[3] + 20
    excess = accepted.judge(odd, clock=180).evidence.statistics[-1]
    assert excess < before.evidence.statistics[-1]
    SceneModel(topic_model(by_day(1, seed=5)), habits=accepted).save(tmp_path / "model")
    restored = SceneModel.load(tmp_path / "model").habits
    with pytest.raises(InvalidInputError, match="was not accepted"):
        restored.withdraw(odd, clock=720)
    for _ in range(20):
        restored = restored.withdraw(odd, clock=180)
    assert same_habit(restored.judge(odd, clock=180), before)


def test_week_ends_are_apart_once_there_are_weeks_and_are_told(tmp_path):
    def weeks(n_days, seed):
        corpus = by_day(n_days, seed, first_day=4)  # from a Monday on
        quiet = np.random.default_rng(seed).random(len(corpus)) < 0.97
        free = (hours_of(corpus.clocks) >= 24) & quiet
        gone = np.repeat(free, corpus.entries.lengths)
        entries = replace(corpus.entries, data=np.where(gone, 0.0, corpus.entries.data))
        return replace(corpus, entries=entries)

    assert not learn_habits(weeks(7, seed=0)).weeks_apart
    model = learn_habits(weeks(14, seed=0))
    assert model.weeks_apart
    odd = random_votes(FINE, 12, np.random.default_rng(1))
    monday, saturday = (1440 * day + 12 * 60 for day in (18, 23))
    on_workdays, at_week_ends = (model.judge(odd, clock=clock) for clock in (monday, saturday))
    n = len(STATISTICS)
    assert at_week_ends.rarities[n:].max() > 1 > on_workdays.rarities[n:].max()
    strongest = np.append(np.zeros(n), [0.0, 9.0])
    found = find_unusual(at_week_ends._replace(rarities=strongest), model)
    assert "at week-ends" in found.explanation
    SceneModel(topic_model(weeks(1, seed=1)), habits=model).save(tmp_path / "model")
    restored = SceneModel.load(tmp_path / "model").habits
    assert same_habit(restored.judge(odd, clock=saturday), at_week_ends)


def test_learning_anew_fades_as_adding_day_by_day_does():
    days = [by_day(1, seed=seed, first_day=seed) for seed in range(4)]
    half_life = 2.5 * len(days[0]) * days[0].clip
    anew = learn_habits(Corpus.joined(days), half_life=half_life).counts
    added = learn_habits(days[0])
    for day in days[1:]:
        added = added.updated(day, half_life=half_life)
    for part in ("n_documents", "direction", "speed", "hours", "hour_documents"):
        assert_allclose(getattr(anew, part), getattr(added.counts, part), rtol=1e-12)
    assert anew.n_documents < len(Corpus.joined(days))


def test_fading_is_the_same_for_shards():
    days = [by_day(1, seed=seed, first_day=seed) for seed in range(4)]
    whole = learn_habits(Corpus.joined(days), half_life=300.0)
    parts = [whole_day.take(np.arange(n, n + 36)) for whole_day in days for n in range(0, 144, 36)]
    shards = learn_habits(ShardedCorpus.of(parts, keep_bytes=0), half_life=300.0, n_threads=2)
    assert np.array_equal(shards.counts.direction, whole.counts.direction)
    assert np.array_equal(shards.fusion.statistics, whole.fusion.statistics)
    rest = learn_habits(Corpus.joined(days[:3]), half_life=300.0).counts
    last = learn_habits(days[3]).counts
    factor = 0.5 ** (len(days[3]) * days[3].clip / 300.0)
    assert_allclose(whole.counts.direction, factor * rest.direction + last.direction, rtol=1e-12)
    with pytest.raises(InvalidInputError, match="half_life"):
        learn_habits(days[0], half_life=0.0)


def test_documents_of_half_a_second_fade_by_their_time():
    corpus = footage(FINE, 80, seed=8)
    model, halves = learn_habits(corpus), replace(corpus, times=corpus.times / 2)
    found = model.updated(halves, half_life=40.0)
    assert found.counts.n_documents == 1.5 * model.counts.n_documents


def test_hours_are_added_to_and_fade(nightly):
    further = by_day(1, seed=6, first_day=9)
    found = nightly.updated(further, half_life=86_400.0)
    factor = 0.5 ** (len(further) * further.clip / 86_400.0)
    own = learn_habits(further).counts
    assert np.array_equal(found.counts.hours, factor * nightly.counts.hours + own.hours)
    n = len(nightly.fusion.statistics)
    judged = nightly.judge_all(further).cues.statistics
    assert np.array_equal(found.fusion.statistics[n:], judged)
