"""The turn as a cue: a road that goes while another has green, however it is computed."""

from dataclasses import replace

import numpy as np
import pytest

from habitus.corpus import Condition, Corpus, ShardedCorpus, Vocabulary
from habitus.errors import FileError
from habitus.habits import HabitCounts, Habits
from habitus.habits.turns import NO_TURN, TurnCounts, gather_turns, turn_habits, turn_surprisals
from habitus.habits.votes import votes_of_corpus
from habitus.scene import SceneModel, detect_events, habit_learning
from habitus.scene.calibration import MOST_BEHAVIOURS
from habitus.scene.events import EventJoiner, judge_moment
from habitus.scene.explanation import find_unusual
from habitus.scene.fusion import FULL_TURN_GAIN, TURN_TRUST, CueColumns, Fusion, ImplantStatistics
from habitus.scene.habit_model import fading_factor
from habitus.scene.scene_model import learn_scene
from habitus.scene.thresholds import Tail
from reference.habits import random_corpus

GRID = Vocabulary(12, 12, directions=12, speeds=16)
UP, LEFT, PHASE = 1, 4, 12
TOPICS = {
    "n_topics": 2,
    "n_behaviours": 2,
    "n_iterations": 30,
    "n_restarts": 2,
    "min_words": 1,
    "random_state": 0,
}


def road(phase, rng, share=0.35):
    """Words of the road that has green: columns 3 and 4 up, or rows 7 and 8 to the left."""
    cells = np.arange(GRID.n_cells)
    mine = np.isin(cells % 12, (3, 4)) if phase == 0 else np.isin(cells // 12, (7, 8))
    chosen = cells[mine & (rng.random(GRID.n_cells) < share)]
    words = GRID.words(chosen // 12, chosen % 12, UP if phase == 0 else LEFT, 5)
    return np.repeat(words, 3)


def footage(n, seed=0, *, runners=()):
    """A crossing of two roads that have green in turn; at some documents a car of the other."""
    rng = np.random.default_rng(seed)
    made = []
    for t in range(n):
        phase = t // PHASE % 2
        words = road(phase, rng)
        if t in runners:
            other = road(1 - phase, rng, share=1.0)
            across = GRID.cells(other) // 12 < 3 if phase else GRID.cells(other) % 12 > 8
            words = np.concatenate([words, other[across]])
        made.append(words)
    corpus = Corpus.from_word_ids(made, n_words=GRID.n_words, vocabulary=GRID)
    covered = rng.random(n) < 0.03
    return replace(corpus, conditions=np.where(covered, Condition.COVERED, Condition.USABLE))


@pytest.fixture(scope="module")
def scene():
    return learn_scene(footage(600), **TOPICS)


RUNNERS = (40, 103, 160, 223)


@pytest.fixture(scope="module")
def judged(scene):
    corpus = footage(280, 1, runners=RUNNERS)
    return replace(corpus, conditions=np.full(len(corpus), Condition.USABLE))


def test_who_goes_out_of_turn_is_unusual_for_that_alone(scene, judged):
    habits = scene.habits
    assert habits.fusion.turn_gain > FULL_TURN_GAIN
    n = habits.fusion.judged.sum()
    assert habits.fusion.turn_trust == pytest.approx(TURN_TRUST * n / (n + 50))
    found = scene.detector().judge_all(judged).habits
    others = np.setdiff1d(np.arange(280), RUNNERS)
    assert found.cues.turn_scans[list(RUNNERS)].min() > 3 * found.cues.turn_scans[others].max()
    fusion = replace(habits.fusion, turn_scans=None, turn_gain=0.0)
    without = replace(habits, turns=None, fusion=fusion)
    unaware = replace(scene, habits=without).detector().judge_all(judged).habits
    ranks = [np.argsort(np.argsort(each.normality))[list(RUNNERS)] for each in (found, unaware)]
    assert ranks[0].mean() < 20
    assert ranks[1].mean() > 5 * ranks[0].mean()


def events_of(scene, judged, documents=RUNNERS):
    """The moments of some documents."""
    detector = scene.detector()
    joiner, found = EventJoiner(detector), detector.judge_all(judged)
    words = scene.model.in_own_words(judged)
    return [
        joiner.moment(float(t), words.bag(t), found.judgement(t, 0.0), 0.0, number=t)
        for t in documents
    ]


def test_the_sentence_tells_what_the_others_do(scene, judged):
    for event in events_of(scene, judged):
        assert event.cue == "turn, scan"
        side, way, others = (
            ("on the right", "to the left", "up")
            if event.peak_document // PHASE % 2 == 0
            else ("in the upper middle", "up", "to the left")
        )
        assert side in event.explanation
        assert f"moving {way} while others move {others} (in 0 of " in event.explanation
        again = judge_moment(event, scene.habits)
        assert again.normality == event.normality
        assert find_unusual(again, scene.habits).explanation == event.explanation


def same(one, other):
    return one.normality == other.normality and (
        one.habit is None
        or (
            one.habit.turn == other.habit.turn
            and one.habit.turn_rarity == other.habit.turn_rarity
            and one.habit.by_turn == other.habit.by_turn
            and all(map(np.array_equal, one.habit.turn_evidence, other.habit.turn_evidence))
        )
    )


def test_one_at_a_time_equals_all_at_once_bit_for_bit(scene, judged):
    parts = [judged.take(np.arange(200)), judged.take(np.arange(200, 280))]
    corpus = Corpus.joined(parts)
    assert corpus.first.sum() == 2
    at_once, stepped = scene.detector(), scene.detector()
    found = at_once.judge_all(corpus)
    for t, document in enumerate(corpus.bags()):
        if t and corpus.first[t]:
            stepped.new_sequence()
        one = stepped.step(document, vocabulary=GRID)
        assert same(one, found.judgement(t, at_once.threshold, explained=True))
    assert {j.turn for j in map(found.habits.judgement, range(280))} == {0, 1, 2, 3}


def test_a_detector_goes_on_in_the_middle_of_a_turn(scene, judged, tmp_path):
    whole = scene.detector().judge_all(judged).normality
    detector = scene.detector()
    # the runner of document 160 is judged just after a change at 156, and one that is cut off
    cut = 13 * PHASE + 1
    first = detector.judge_all(judged.take(np.arange(cut))).normality
    detector.save_state(tmp_path / "state")
    later = scene.detector()
    later.restore_state(tmp_path / "state")
    rest = later.judge_all(judged.take(np.arange(cut, 280))).normality
    assert np.array_equal(np.concatenate([first, rest]), whole)
    forgotten = scene.detector().judge_all(judged.take(np.arange(cut, 280))).habits
    assert forgotten.turns[0] != later.habits.vocabulary.n_words  # a turn of its own
    assert (
        forgotten.turns[:2].tolist()
        != scene.detector().judge_all(judged).habits.turns[cut : cut + 2].tolist()
    )


def test_a_sequence_of_one_document_has_no_other_before_it(scene, judged):
    cut = 13 * PHASE
    parts = [judged.take(np.arange(cut - 2, cut)), judged.take(np.arange(cut, cut + 1))]
    at_once, stepped = scene.detector(), scene.detector()
    at_once.judge_all(judged.take(np.arange(cut - 4, cut - 2)))
    at_once.judge_all(Corpus.joined(parts))
    for t in range(cut - 4, cut + 1):
        if t == cut:
            stepped.new_sequence()
        stepped.step(judged.bag(t), vocabulary=GRID)
    following = judged.take(np.arange(cut + 1, cut + 4))
    found = at_once.judge_all(following)
    for t, document in enumerate(following.bags()):
        one = stepped.step(document, vocabulary=GRID)
        assert same(one, found.judgement(t, at_once.threshold, explained=True))


def test_a_model_keeps_its_turns_in_a_file(scene, judged, tmp_path):
    scene.save(tmp_path / "model")
    stored = SceneModel.load(tmp_path / "model")
    one, other = scene.detector().judge_all(judged), stored.detector().judge_all(judged)
    assert np.array_equal(one.normality, other.normality)
    assert stored.habits.fusion.turn_gain == scene.habits.fusion.turn_gain
    assert np.array_equal(stored.habits.turns.moved, scene.habits.turns.moved)


def test_turns_of_other_behaviours_are_refused(scene, tmp_path):
    habits = scene.habits
    odd = replace(habits.turns, moved=habits.turns.moved[..., :3])
    replace(scene, habits=replace(habits, turns=odd)).save(tmp_path / "model")
    with pytest.raises(FileError, match="turns"):
        SceneModel.load(tmp_path / "model")


def test_what_an_operator_calls_normal_is_so_whosever_turn_it_is(scene, judged):
    event = replace(events_of(scene, judged)[0], threshold=-2.0, alarm=True)
    assert event.normality < event.threshold
    taught = scene
    for _ in range(30):
        taught = taught.accept(event).scene
    assert (
        judge_moment(event, taught.habits).turn_rarity
        < judge_moment(event, scene.habits).turn_rarity
    )
    assert taught.silenced([event]) == [event]
    for _ in range(30):
        taught = taught.withdraw(event)
    assert np.array_equal(
        taught.detector().judge_all(judged).normality, scene.detector().judge_all(judged).normality
    )


def test_further_footage_is_counted_at_its_turns(scene):
    further = footage(100, 5)
    more = scene.updated(further)
    added = more.habits.turns - scene.habits.turns
    usable = further.conditions == Condition.USABLE
    assert added.documents.sum() == usable.sum()
    assert added.moved.sum() == (more.habits.counts - scene.habits.counts).direction.sum()
    assert len(more.habits.fusion.turn_scans) == 700
    faded = scene.updated(further, half_life=100.0).habits.turns
    assert np.allclose(faded.documents, scene.habits.turns.documents / 2 + added.documents)


@pytest.mark.parametrize("half_life", [None, 300.0])
def test_each_fold_is_judged_by_the_turns_of_the_others(half_life):
    corpus = footage(600, runners=(35, 50))
    scene = learn_scene(corpus, half_life=half_life, **TOPICS)
    habits, turns = scene.habits, scene.calibration.behaviours_of(scene.model, corpus).turns
    assert habits.turns.documents.sum() == pytest.approx(habits.counts.n_documents)
    votes, usable = votes_of_corpus(corpus, habits.least_words), corpus.conditions == 0
    assert 500 < usable.sum() < 600
    own = np.arange(30, 60)  # the second of twenty folds
    fading = fading_factor(18 * 30.0, half_life)
    at = np.where(usable, turns.of, NO_TURN)[own]
    rest = habits.turns - TurnCounts.of(votes.take(own), at, turns.n, GRID).faded(fading)
    counts = HabitCounts.of(votes.take(own), GRID, usable[own].sum()).faded(fading)
    others = Habits.of(habits.counts - counts, habits.concentrations, GRID)
    by_turn = turn_habits(turn_surprisals(rest, others, habits.concentrations["turn"], GRID), GRID)
    expected = gather_turns(votes.take(own), by_turn, turns.of[own], GRID)
    assert np.allclose(habits.fusion.turn_scans[own], expected, rtol=1e-9)
    assert not np.allclose(
        gather_turns(votes.take(own), habits.turn_habits, turns.of[own], GRID), expected, rtol=1e-3
    )


def test_shards_have_the_turns_of_the_whole():
    parts = [footage(n, seed) for n, seed in ((240, 0), (60, 1), (300, 2))]
    whole = learn_scene(Corpus.joined(parts), **TOPICS)
    sharded = learn_scene(ShardedCorpus.of(parts), **TOPICS)
    assert whole.habits.turns is not None
    assert np.array_equal(whole.habits.turns.moved, sharded.habits.turns.moved)
    assert np.array_equal(whole.habits.fusion.turn_scans, sharded.habits.fusion.turn_scans)
    assert whole.habits.fusion.turn_gain == sharded.habits.fusion.turn_gain


def test_where_nobody_takes_turns_they_are_no_cue():
    corpus = random_corpus(GRID, 300, 0)
    scene = learn_scene(corpus, **TOPICS)
    assert scene.habits.turns is None
    assert scene.habits.fusion.turn_trust == 0
    event = detect_events(scene.detector(), corpus, share=0.02).events[0]
    assert event.turn is None
    assert event.cue != "turn, scan"


def test_what_happens_now_and_then_has_no_turn(monkeypatch):
    busy = footage(1500)
    phase = np.arange(1500) // PHASE
    quiet = busy.take(np.flatnonzero((phase % 2 == 1) | (phase % 8 == 0)))
    scene = learn_scene(quiet, **TOPICS)
    turns = scene.calibration.behaviours_of(scene.model, quiet).turns
    assert 0.6 < np.bincount(turns.of).max() / len(quiet) < 0.9
    assert scene.habits.turns is None
    monkeypatch.setattr(habit_learning, "LARGEST_TURN", 1.0)
    assert learn_scene(quiet, **TOPICS).habits.turns is not None  # it is not for want of a gain


@pytest.mark.parametrize(
    ("n", "clip", "known"),
    [(239, 1.0, False), (240, 1.0, True), (239, 60.0, False), (479, 0.5, False)],
)
def test_turns_need_some_minutes_and_documents(n, clip, known):
    corpus = replace(footage(n), times=clip * np.arange(n))
    assert (learn_scene(corpus, **TOPICS).habits.turns is not None) == known


def test_many_behaviours_are_not_counted_in_turns():
    corpus = footage(300)
    options = TOPICS | {"n_behaviours": MOST_BEHAVIOURS + 1, "n_iterations": 3}
    scene = learn_scene(corpus, **options)
    assert scene.calibration is not None
    assert scene.calibration.behaviours_of(scene.model, corpus).turns is None
    assert scene.habits.turns is None


def test_the_turn_is_added_to_the_largest_rarity_as_far_as_it_predicts():
    rng = np.random.default_rng(0)
    statistics, judged = rng.exponential(size=(500, 8)), np.ones(500, dtype=bool)
    scans = rng.exponential(size=500)
    implanted = ImplantStatistics(statistics[:100] + 9.0, np.arange(100))
    fusions = [
        Fusion.of(CueColumns(statistics, None, scans), judged, implanted, turn_gain=gain)
        for gain in (0.0, 0.35, 2.0)
    ]
    assert [round(each.turn_trust * 550 / 500, 9) for each in fusions] == [0.0, 0.075, 0.15]
    trusts = [round(each.behaviour_trust * 550 / 500, 9) for each in fusions]
    assert trusts == [0.1, 0.2, 0.3]
    tried, at = rng.exponential(size=(50, 8)), rng.exponential(size=50)
    full = fusions[2]
    rarity = Tail.of(-scans, judged, full.join).surprisal(-at)
    expected = full.rarities(tried).max(axis=1) + full.turn_trust * rarity
    assert np.allclose(full.scores(CueColumns(tried, None, at)), expected, rtol=1e-12)
    assert np.array_equal(
        fusions[0].scores(CueColumns(tried, None, at)), full.rarities(tried).max(axis=1)
    )
    # an implant stands in a document of its own turn
    alone = Fusion.of(CueColumns(statistics), judged, implanted)
    assert full.reach > alone.reach


def test_a_document_of_no_turn_adds_what_no_evidence_adds(scene, judged):
    found = scene.habits.judge_all(judged)
    assert (found.turns == NO_TURN).all()
    assert not found.cues.turn_scans.any()
    for t in (3, 40):
        assert scene.habits.judge(found.votes.of(t)).normality == found.normality[t]
