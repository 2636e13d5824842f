"""A scene's model: days of footage, further footage, and moments that an operator accepts."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from habitus import (
    Corpus,
    InvalidInputError,
    MarkovClusteringTopicModel,
    ShardedCorpus,
    Vocabulary,
)
from habitus.corpus.stands import StandingCells
from habitus.habits.standing import N_CLASSES, StandingCounts
from habitus.habits.turns import TurnCounts
from habitus.habits.votes import BLOCK, votes_of, votes_of_corpus
from habitus.scene import SceneModel, detect_events, learn_habits, learn_scene
from habitus.scene.habit_model import MOST_REMEMBERED
from habitus.scene.scene_model import MOST_LEARNT, spread_evenly
from reference.corpora import LoadedShards
from reference.footage import texture

GRID = Vocabulary(12, 16, directions=12, speeds=16)
RIGHT, LEFT = 0, 6
OPTIONS = {"n_topics": 2, "n_behaviours": 2, "n_iterations": 5, "min_words": 2, "random_state": 0}


def words_of(row, columns, direction, speed):
    return np.repeat(GRID.words(row, columns, direction, speed), 3)


def street(n, seed, *, wrong=()):
    """Two lanes and a few strollers; in documents `wrong`, somebody drives against a lane."""
    rng = np.random.default_rng(seed)
    documents = []
    for t in range(n):
        cars = []
        for row, direction in ((4, RIGHT), (7, LEFT)):
            if rng.random() < 0.7:
                first = rng.integers(GRID.columns - 3)
                cars.append(words_of(row, first + np.arange(3), direction, rng.integers(5, 8)))
        if rng.random() < 0.1:
            row, column = rng.integers(GRID.rows), rng.integers(GRID.columns - 1)
            cars.append(words_of(row, column + np.arange(2), rng.integers(12), 3))
        if t in wrong:
            cars += [words_of(row, np.arange(6, 12), LEFT, 9) for row in (3, 4, 5)]
        documents.append(np.concatenate([np.empty(0, dtype=np.int64), *cars]))
    return Corpus.from_word_ids(documents, vocabulary=GRID)


@pytest.fixture(scope="module")
def scene():
    return learn_scene(street(600, 0), **OPTIONS)


def test_short_footage_is_learnt_from_as_a_whole(scene):
    assert scene.notes == ()
    assert len(scene.calibration.plug_in.judged) == 600


@pytest.fixture(scope="module")
def alarms(scene):
    detector = scene.detector(alerts_per_day=200)
    found = detect_events(detector, street(200, 1, wrong={50, 120}), source="later")
    events = [event for event in found.events if event.alarm]
    assert {50, 120} <= {event.peak_document for event in events}
    return events


def contents(scene):
    """Everything that a file of the model holds, in bytes."""
    parts = scene.habits.contents(), scene.calibration.contents()
    return [
        (part.header, {name: (v.dtype, v.shape, v.tobytes()) for name, v in part.tensors.items()})
        for part in parts
    ]


def surprisals(scene):
    return [table.tobytes() for table in scene.habits.habits]


def test_of_many_documents_segments_are_spread_over_all_the_footage():
    corpus = Corpus(np.ones((5000, 1)))
    part = spread_evenly(corpus, most=1000)
    assert len(part) == 1000
    assert part.times[0] == 0
    assert part.times[-1] == 4999
    starts = part.times[part.first]
    assert len(starts) == 10
    assert np.ptp(np.diff(starts)) <= 1
    assert spread_evenly(corpus, most=5000) is corpus
    just_above = spread_evenly(corpus, most=4900)
    assert len(just_above) == 4900  # segments that touch do not overlap


def test_topics_of_long_footage_are_those_of_its_spread_part():
    corpus = street(MOST_LEARNT + 500, 3)
    whole = learn_scene(corpus, **OPTIONS)
    alone = MarkovClusteringTopicModel(**OPTIONS).fit(spread_evenly(corpus))
    assert whole.model.parameters_.phi.tolist() == alone.parameters_.phi.tolist()
    assert len(whole.calibration.plug_in.judged) == MOST_LEARNT
    assert whole.habits.counts.n_documents == MOST_LEARNT + 500
    assert any("21600 of the 22100 documents" in note for note in whole.notes)
    behaviours = whole.habits.fusion.behaviours
    taken = np.isin(corpus.times, spread_evenly(corpus).times)
    assert behaviours[taken].tolist() == whole.calibration.plug_in.scores["tail"].tolist()
    as_judged = whole.detector(measure="tail").judge_all(corpus).normality
    assert behaviours[~taken].tolist() == as_judged[~taken].tolist()


def test_votes_do_not_depend_on_the_blocks_they_are_found_in():
    corpus = street(BLOCK + 50, 4)
    found = votes_of_corpus(corpus)
    for t, bag in enumerate(corpus.bags()):
        for one, other in zip(found.of(t), votes_of(*bag, GRID), strict=True):
            assert one.tolist() == other.tolist()
    assert found.n_documents == len(corpus)


def test_a_notebook_shows_the_behaviours_and_no_arrays(scene):
    shown, n_behaviours = scene._repr_html_(), scene.model.sizes[2]
    assert repr(scene) in shown
    assert shown.count("<tr>") == 1 + n_behaviours
    assert shown.count("%") == n_behaviours
    assert "array" not in shown


def test_further_footage_adds_its_looks(scene):
    look = texture(128, 96, 3)
    found = scene.updated(replace(street(300, 5), looks=look[None]))
    assert np.array_equal(found.model.looks_, [look])
    assert len(scene.model.looks_) == 0


def test_further_footage_is_counted_as_if_it_had_been_there_at_first(scene):
    more = street(300, 5)
    updated = scene.updated(more)
    both = learn_scene(Corpus.joined([street(600, 0), more]), **OPTIONS).habits.counts
    assert updated.habits.counts.n_documents == 900
    assert updated.habits.counts.direction.tolist() == both.direction.tolist()
    assert updated.habits.counts.speed.tolist() == both.speed.tolist()


def test_further_footage_is_judged_before_it_is_learnt_from(scene):
    more = street(300, 5, wrong={7})
    updated = scene.updated(more)
    judged = scene.detector().judge_all(more)
    statistics = updated.habits.fusion.statistics
    assert len(statistics) == 900
    assert statistics[600:].tolist() == judged.habits.cues.statistics.tolist()
    assert statistics[:600].tolist() == scene.habits.fusion.statistics.tolist()
    behaviours = updated.habits.fusion.behaviours
    assert behaviours[600:].tolist() == judged.habits.cues.behaviours.tolist()
    assert behaviours[:600].tolist() == scene.calibration.plug_in.scores["tail"].tolist()
    for measure in ("mean", "tail"):
        scores = updated.calibration.plug_in.scores[measure]
        as_judged = scene.detector(measure=measure).judge_all(more)
        assert scores[600:].tolist() == as_judged.normality.tolist()
        assert scores[:600].tolist() == scene.calibration.plug_in.scores[measure].tolist()
    assert updated.calibration.plug_in.judged[600:].tolist() == as_judged.judged.tolist()


def test_no_more_scores_are_remembered_than_a_week_has(scene):
    fusion = scene.habits.fusion
    full = replace(
        scene.habits,
        fusion=replace(
            fusion,
            statistics=np.zeros((MOST_REMEMBERED - 10, fusion.statistics.shape[1])),
            judged=np.ones(MOST_REMEMBERED - 10, dtype=bool),
            behaviours=np.zeros(MOST_REMEMBERED - 10),
        ),
    )
    more = street(40, 6)
    after = full.updated(more).fusion
    assert len(after.statistics) == len(after.judged) == MOST_REMEMBERED
    assert after.statistics[-40:].tolist() == full.judge_all(more).cues.statistics.tolist()


def test_a_turn_of_traffic_becomes_usual_once_it_is_learnt(scene, alarms):
    """An event alarms the old model, and not one to which an hour of the like was added."""
    event = next(event for event in alarms if event.peak_document == 50)
    updated = scene.updated(street(300, 7, wrong=set(range(0, 300, 3))))
    assert updated.silenced([event]) == [event]
    assert scene.silenced([event]) == []


@pytest.mark.parametrize("half_life", [100.0, 300.0, 86_400.0])
def test_older_counts_fade_by_the_time_that_is_added(scene, half_life):
    more = street(300, 5)
    faded, kept = scene.updated(more, half_life=half_life), scene.updated(more)
    factor = 2 ** (-300 / half_life)
    assert faded.habits.counts.n_documents == pytest.approx(600 * factor + 300, rel=1e-12)
    expected = factor * scene.habits.counts.direction + (
        kept.habits.counts.direction - scene.habits.counts.direction
    )
    assert faded.habits.counts.direction == pytest.approx(expected, rel=1e-12)


def test_two_updates_fade_as_one(scene):
    one, two = street(100, 8), street(200, 9)
    at_once = scene.habits.counts.faded(2 ** (-300 / 500)).direction
    in_turn = scene.updated(one, half_life=500).updated(two, half_life=500)
    added = scene.updated(one).habits.counts.direction - scene.habits.counts.direction
    added = added * 2 ** (-200 / 500)
    added += scene.updated(two).habits.counts.direction - scene.habits.counts.direction
    assert in_turn.habits.counts.direction == pytest.approx(at_once + added, rel=1e-12)


@pytest.mark.parametrize("half_life", [0.0, -5.0, np.nan, np.inf])
def test_a_half_life_is_a_length_of_time(scene, half_life):
    with pytest.raises(InvalidInputError, match="half_life must be") as error:
        scene.updated(street(10, 0), half_life=half_life)
    assert error.value.parameter == "half_life"


def test_footage_that_does_not_fit_is_refused(scene):
    with pytest.raises(InvalidInputError, match="vocabulary"):
        scene.updated(Corpus([[1, 2, 3]]))
    slower = Corpus(street(10, 0).counts, vocabulary=GRID, times=2.0 * np.arange(10))
    with pytest.raises(InvalidInputError, match=r"documents of 1 s, .* documents of 2 s"):
        scene.updated(slower)
    without = SceneModel(scene.model, scene.calibration)
    with pytest.raises(InvalidInputError, match=r"has no habits, .* learn it anew") as error:
        without.updated(street(10, 0))
    assert error.value.parameter == "update"


def test_accepting_an_event_tells_which_alarms_it_silences(scene, alarms):
    fifty, other = (e for e in alarms if e.peak_document in (50, 120))
    found = scene.accept(fifty, recent=alarms)
    votes = found.scene.habits.accepted[0].votes
    before = scene.habits.judge(votes).normality
    after = found.scene.habits.judge(votes).normality
    assert after > before
    for event in alarms:
        (again,) = found.scene.accept(event).scene.habits.accepted[1:]
        silent = found.scene.habits.judge(again.votes).normality >= event.threshold
        assert (event in found.silenced) == silent
    many = found.scene
    for _ in range(20):
        many, silenced = many.accept(fifty, recent=[fifty, other])
    assert silenced == [fifty, other]
    assert many.silenced([replace(fifty, alarm=False), replace(other, moment=())]) == []


def test_what_lies_between_two_documents_of_an_event_is_normal_with_it(scene, alarms):
    """The same footage may be cut into documents half a second later."""
    one, other = (e for e in alarms if e.peak_document in (50, 120))
    (a,), (b,) = one.track, other.track
    strongest = min(one, other, key=lambda event: event.normality)
    points = (replace(a, time=10.0), replace(b, time=11.0))
    event = replace(strongest, start=10.0, peak=10.0, end=12.0, track=points)
    votes = [moment.votes.codes(GRID) for moment in scene.accept(event).scene.habits.accepted]
    cells = [set(GRID.cells(codes).tolist()) for codes in votes]
    assert len(votes) == 4
    assert cells[2] == cells[3] == cells[0] | cells[1]
    for codes, first in zip(votes[2:], (a, b), strict=True):
        assert set(first.moment) <= set(codes.tolist())
    assert scene.accept(event).scene.withdraw(event).habits.accepted == ()
    apart = replace(event, track=(points[0], replace(b, time=12.0)), end=13.0)
    assert len(scene.accept(apart).scene.habits.accepted) == 2


def test_accepting_counts_nothing_anew(scene, alarms):
    """With hundreds of events that were called normal, a camera would be busy for minutes."""
    turns = TurnCounts(np.full((GRID.n_cells, 4, 4), 0.3), np.full(4, 9.0))
    stood = StandingCounts(np.full((GRID.n_cells, N_CLASSES), 0.1), 9.0)
    accepted = replace(scene.habits, turns=turns, stood=stood)
    stands = StandingCells(np.array([5, 6]), np.array([20, 20]), known=True)
    for event, times in zip(alarms, (1.0, 3.0), strict=False):
        (moment,) = scene.accept(event).scene.habits.accepted
        accepted = accepted.accept(moment.votes, clock=60, standing=stands, times=times)
    anew, none = replace(accepted), replace(scene.habits, turns=turns, stood=stood)
    assert none.all_counts is none.counts  # and no second copy is held of them
    assert none.all_turns is none.turns
    for name in ("all_counts", "all_turns", "all_stood"):
        kept = vars(vars(accepted)[name])
        for part, value in vars(getattr(anew, name)).items():
            assert np.array_equal(kept[part], value), (name, part)
    assert (accepted.all_turns.documents == 13).all()


def test_withdrawing_gives_back_the_former_model_to_the_bit(scene, alarms, tmp_path):
    one, other = alarms[0], alarms[-1]
    before = contents(scene), surprisals(scene)
    accepted = scene.accept(one).scene.accept(other).scene
    assert surprisals(accepted) != before[1]
    accepted.save(tmp_path / "a.model")
    loaded = SceneModel.load(tmp_path / "a.model")
    assert contents(loaded) == contents(accepted)
    assert surprisals(loaded) == surprisals(accepted)
    only_other = loaded.withdraw(one)
    assert surprisals(only_other) == surprisals(scene.accept(other).scene)
    only_other.save(tmp_path / "b.model")
    back = SceneModel.load(tmp_path / "b.model").withdraw(other)
    assert (contents(back), surprisals(back)) == before


def test_what_was_accepted_before_an_update_leaves_no_trace_either(scene, alarms, tmp_path):
    more = street(200, 10, wrong={20})
    accepted = scene.accept(alarms[0]).scene.updated(more, half_life=1234.5)
    accepted.save(tmp_path / "a.model")
    back = SceneModel.load(tmp_path / "a.model").withdraw(alarms[0])
    never = scene.updated(more, half_life=1234.5)
    assert contents(back) == contents(never)
    assert surprisals(back) == surprisals(never)
    assert surprisals(accepted) != surprisals(never)


def test_an_event_that_cannot_be_accepted_is_refused(scene, alarms):
    event = alarms[0]
    with pytest.raises(InvalidInputError, match="was not accepted"):
        scene.withdraw(event)
    with pytest.raises(InvalidInputError, match=r"no moment .* measure habits"):
        scene.accept(replace(event, moment=()))
    for moment in ((GRID.n_words,), (-1,), (5, 5), (400, 5)):
        with pytest.raises(InvalidInputError, match="not found with this model"):
            scene.accept(replace(event, moment=moment))
    with pytest.raises(InvalidInputError, match="has no habits"):
        SceneModel(scene.model).accept(event)


def in_shards(corpus, lengths, folder=None):
    """The same documents in shards, in memory or in files of which nothing is kept."""
    edges = np.cumsum([0, *lengths])
    parts = [corpus.take(np.arange(a, b)) for a, b in pairwise(edges)]
    if folder is None:
        return ShardedCorpus.of(parts)
    paths = [folder / f"{i}.corpus" for i in range(len(parts))]
    for part, path in zip(parts, paths, strict=True):
        part.save(path)
    return ShardedCorpus.open(paths, keep_bytes=0, spill_bytes=0)


@pytest.fixture
def saved(tmp_path):
    """A function that returns the bytes of a model's file."""

    def bytes_of(scene):
        scene.save(tmp_path / "a.model")
        return (tmp_path / "a.model").read_bytes()

    return bytes_of


@pytest.mark.parametrize(
    ("learning", "lengths"),
    [
        ("em", [600]),
        ("em", [100, 1, 300, 199]),
        ("em", [0, 290, 310, 0]),
        ("vb", [290, 310]),
        ("gibbs", [290, 310]),
    ],
)
def test_a_scene_of_shards_is_that_of_the_joined_corpus_to_the_bit(
    learning, lengths, saved, tmp_path
):
    footage = street(600, 0)
    n_frames, conditions = np.full(600, 25), (np.arange(600) % 97 == 3).astype(int)
    kept = [n for n in lengths if n]
    corpus = replace(footage, lengths=np.array(kept), n_frames=n_frames, conditions=conditions)
    options = OPTIONS | {"learning": learning, "burn_in": 3, "n_samples": 1}
    whole = learn_scene(corpus, **options)
    assert whole.habits is not None
    assert whole.calibration is not None
    for same, n_jobs in (
        (in_shards(corpus, lengths), 1),
        (in_shards(corpus, lengths, tmp_path), 3),
    ):
        found = learn_scene(same, **options, n_jobs=n_jobs)
        assert saved(found) == saved(whole)
        assert (found.notes, found.summary()) == (whole.notes, whole.summary())


def test_of_many_documents_in_shards_the_same_are_learnt_from(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("habitus.scene.scene_model.spread_evenly.__defaults__", (400,))
    monkeypatch.setattr("habitus.scene.scene_model.spread_numbers.__defaults__", (400,))
    monkeypatch.setattr("habitus.scene.calibration.AT_ONCE", 64)
    lengths = [128, 72, 500, 1, 199]  # a sequence that starts where documents are filtered anew
    corpus = replace(street(900, 0), lengths=np.array(lengths))
    whole = learn_scene(corpus, **OPTIONS)
    assert any("400 of the 900 documents" in note for note in whole.notes)
    for same in (in_shards(corpus, lengths), in_shards(corpus, lengths, tmp_path)):
        found = learn_scene(same, **OPTIONS)
        assert saved(found) == saved(whole)
        assert (found.notes, found.summary()) == (whole.notes, whole.summary())


def test_frames_are_known_where_all_shards_know_them(saved):
    """Few frames let one word vote; without them, two are needed."""
    few = replace(street(200, 0), n_frames=np.full(200, 3), lengths=np.array([100, 100]))
    unknown = replace(few, n_frames=None)
    first, second = (few.take(np.arange(a, a + 100)) for a in (0, 100))
    not_known = unknown.take(np.arange(100, 200))
    assert saved(learn_scene(ShardedCorpus.of([first, second]), **OPTIONS)) == saved(
        learn_scene(few, **OPTIONS)
    )
    assert saved(learn_scene(ShardedCorpus.of([first, not_known]), **OPTIONS)) == saved(
        learn_scene(unknown, **OPTIONS)
    )


def test_folds_are_reported_once_each():
    told = []
    learn_habits(in_shards(street(300, 0), [100, 200]), progress=told.append)
    assert [each.done for each in told] == list(range(1, 21))
    assert {each.total for each in told} == {20}


def test_shards_of_a_scene_are_loaded_one_at_a_time(tmp_path, monkeypatch):
    loaded = LoadedShards(monkeypatch)
    corpus = in_shards(street(600, 0), [100] * 6, tmp_path)
    learn_habits(corpus)
    assert loaded.most == 1
    assert len(loaded) <= 6 * 5  # columns, counts, levels, statistics, implants
