"""Standing as a cue: a breakdown away from the queue, however it is computed and stored."""

from dataclasses import replace

import numpy as np
import pytest

from habitus.corpus import Condition, Corpus, ShardedCorpus, Vocabulary
from habitus.corpus.stands import STANDING, StandingCells, StandingWords
from habitus.habits.standing import StandingCounts
from habitus.ingest.backgrounds import WARM_UP, Backgrounds
from habitus.ingest.clips import Document
from habitus.ingest.live import LiveDocument
from habitus.scene import SceneModel, detect_events
from habitus.scene.camera_monitor import SceneMonitor
from habitus.scene.events import Event, judge_moment
from habitus.scene.habit_learning import LEAST_KNOWN, learn_habits
from habitus.scene.scene_model import learn_scene
from habitus.schema import decoded
from habitus.site.watching import EventStarted, Observer
from reference.footage import texture

GRID = Vocabulary(12, 12, directions=12, speeds=16)
QUEUE = np.array([12 * row + column for row in (2, 3) for column in (1, 2, 3)])
BROKEN = np.array([12 * row + column for row in (7, 8) for column in (6, 7, 8)])
CAME, LEFT = 100, 160
WARM = int(WARM_UP)
TOPICS = {
    "n_topics": 2,
    "n_behaviours": 2,
    "n_iterations": 10,
    "n_restarts": 1,
    "min_words": 1,
    "random_state": 0,
}


def footage(n, seed=0, *, breakdown=False, known=None):
    """Everything moves to the left; for 30 of 60 documents a queue stands at its light."""
    rng = np.random.default_rng(seed)
    documents, stands = [], []
    for t in range(n):
        moving = np.flatnonzero(rng.random(GRID.n_cells) < 0.2)
        documents.append(np.repeat(GRID.words(moving // 12, moving % 12, 4, 5), 3))
        ages = {}
        since = t % 60 - rng.integers(0, 3)
        if 3 <= since < 30:
            ages |= dict.fromkeys(QUEUE.tolist(), since)
        if breakdown and CAME + 2 <= t < LEFT:
            ages |= dict.fromkeys(BROKEN.tolist(), t - CAME + 1)
        cells = np.array(sorted(ages), dtype=np.int64)
        stands.append(StandingCells(cells, np.array([ages[cell] for cell in cells.tolist()]), True))
    if known is not None:
        unknown = StandingCells.unknown()
        stands = [each if known[t] else unknown for t, each in enumerate(stands)]
    corpus = Corpus.from_word_ids(documents, n_words=GRID.n_words, vocabulary=GRID)
    return replace(corpus, standing=StandingWords.of(stands, GRID.n_cells))


def without(corpus):
    return replace(corpus, standing=StandingWords.none(len(corpus)))


@pytest.fixture(scope="module")
def scene():
    return learn_scene(footage(900), **TOPICS)


@pytest.fixture(scope="module")
def judged():
    return footage(300, 1, breakdown=True)


def test_what_stands_where_nothing_does_is_found_and_a_queue_is_not(scene, judged):
    assert scene.habits.fusion.standing_trust > 0.9
    found = scene.detector().judge_all(judged)
    broken = found.habits.cues.standing[CAME + 40 : LEFT]
    others = np.delete(found.habits.cues.standing, np.arange(CAME, LEFT))
    assert broken.min() > 2 * others.max()
    assert (
        found.normality[CAME + 40 : LEFT].max()
        < np.delete(found.normality, np.arange(CAME, LEFT)).min()
    )


def test_an_event_starts_when_the_thing_came_and_says_for_how_long_it_stands(scene, judged):
    found = detect_events(scene.detector(alerts_per_day=100), judged)
    (event,) = (each for each in found.events if each.cue == STANDING)
    assert (event.start, event.first_document) == (CAME, CAME)
    assert CAME + 40 <= event.peak < LEFT <= event.end <= LEFT + 1
    assert event.standing == tuple(BROKEN.tolist())
    assert "in the middle: something has stood for" in event.explanation
    assert "here nothing stood before (in 900 seconds)" in event.explanation
    (box,) = event.boxes
    assert tuple(box) == (48, 56, 72, 72)
    assert decoded(event.line(), Event) == event
    again = judge_moment(event, scene.habits)
    assert again.by_standing
    assert again.normality == pytest.approx(event.normality)


def test_one_at_a_time_equals_all_at_once_bit_for_bit(scene, judged):
    whole, detector = scene.detector().judge_all(judged), scene.detector()
    for t, bag in enumerate(judged.bags()):
        step = detector.step(bag, vocabulary=GRID, standing=judged.standing.cells(t))
        assert step.normality == whole.normality[t]
        same = whole.habits.judgement(t)
        assert step.habit.standing_rarity == same.standing_rarity


def test_shards_and_threads_do_not_matter(scene):
    corpus = footage(900)
    shards = ShardedCorpus.of([corpus.take(np.arange(*ends)) for ends in ((0, 333), (333, 900))])
    whole, parts = learn_habits(corpus), learn_habits(shards, n_threads=2)
    assert np.array_equal(whole.stood.stood, parts.stood.stood)
    assert np.array_equal(whole.fusion.standing, parts.fusion.standing)
    assert whole.fusion.standing_trust == parts.fusion.standing_trust


def test_a_file_keeps_it_to_the_bit(scene, judged, tmp_path):
    (event,) = (
        each
        for each in detect_events(scene.detector(alerts_per_day=100), judged).events
        if each.cue == STANDING
    )
    accepted = scene.accept(event).scene
    for number, model in enumerate((scene, accepted)):
        model.save(tmp_path / f"{number}.model")
        again = SceneModel.load(tmp_path / f"{number}.model")
        one, other = (each.detector().judge_all(judged) for each in (model, again))
        assert np.array_equal(one.normality, other.normality)
    usual = judge_moment(event, accepted.habits)
    assert usual.normality > event.normality
    withdrawn = accepted.withdraw(event)
    assert judge_moment(event, withdrawn.habits).normality == event.normality
    assert withdrawn.habits.accepted == ()


def test_footage_without_it_is_learnt_and_judged_as_before(scene, judged):
    plain = learn_habits(without(footage(900)))
    assert plain.stood is None
    assert plain.fusion.standing is None
    assert STANDING not in plain.concentrations
    one = scene.detector().judge_all(without(judged))
    assert (one.habits.cues.standing == 0).all()
    short = np.arange(900) < LEAST_KNOWN - 1
    assert learn_habits(footage(900, known=short)).stood is None


def test_footage_that_is_added_counts_and_older_footage_fades(scene):
    further = footage(200, 5)
    conditions = np.where(np.arange(200) < 20, Condition.COVERED, Condition.USABLE)
    further = replace(further, conditions=conditions)
    habits = scene.habits.updated(further, half_life=400.0)
    own = StandingCounts.of(further.standing, conditions == Condition.USABLE, GRID)
    expected = scene.habits.stood.faded(0.5 ** (200 / 400)) + own
    assert np.array_equal(habits.stood.stood, expected.stood)
    assert habits.stood.documents == expected.documents
    assert len(habits.fusion.standing) == 1100


def test_what_stays_for_days_becomes_usual(scene, judged):
    parked = footage(900, 7)
    cells = np.concatenate([QUEUE, BROKEN])
    stands = [
        StandingCells(np.sort(cells), np.full(len(cells), min(t + 3, 600)), True)
        for t in range(900)
    ]
    parked = replace(parked, standing=StandingWords.of(stands, GRID.n_cells))
    before, after = (
        habits.judge_all(judged).cues.standing[CAME + 40 : LEFT].min()
        for habits in (scene.habits, scene.habits.updated(parked, half_life=450.0))
    )
    assert after < before / 4


def test_a_live_camera_keeps_its_backgrounds_and_its_events_start_when_the_thing_came(scene):
    rng = np.random.default_rng(0)
    pictures = texture(24, 24, 1, 0.7) + rng.normal(0, 0.5, (WARM + 80, 24, 24))
    pictures[WARM + 10 : WARM + 75, 14:18, 12:18] = 250
    moving = footage(len(pictures), 3)
    observer = Observer(scene.detector(alerts_per_day=100), "", SceneMonitor(None, ""))
    backgrounds, happenings = Backgrounds(GRID), []
    for t, picture in enumerate(pictures.astype(np.uint8)):
        document = Document(t, float(t), *moving.bag(t), 25, 3.0, picture, None)
        happenings += observer.take(LiveDocument(document, t > 0, 1000.0 + t, float(t), GRID))
        expected, found = backgrounds.take(document), observer.judgement.habit.standing
        assert found.known == expected.known
        assert np.array_equal(found.cells, expected.cells)
        assert np.array_equal(found.ages, expected.ages)
    started = [each.event for each in happenings if isinstance(each, EventStarted)]
    (event,) = (each for each in started if each.cue == STANDING)
    assert event.start == WARM + 10
    assert event.clock == "1970-01-01T00:18:50.000+00:00"


def test_what_stands_grows_rarer_with_every_nat_beyond_normal_footage(scene):
    surprisals = np.random.default_rng(0).exponential(size=900)  # the largest is 8.2
    fusion = replace(scene.habits.fusion, standing=surprisals, standing_trust=1.0)
    near, far = fusion.standing_rarities(np.array([9.0, 18.0]))
    assert far > near + 3  # a heavy tail: 2.1
