"""Judgements become events: joined, localised, explained."""

import json
from copy import copy

import numpy as np
import pytest

import habitus
from habitus.corpus.vocabulary import Direction
from habitus.lab.crossing import EAST, crossing, crossing_vocabulary
from habitus.scene import SceneModel, calibrate, detect_events
from habitus.scene.detection import MOST_MOMENTS
from habitus.scene.events import SCHEMA, Event, EventJoiner, clock
from habitus.scene.localisation import OUT_OF_TURN
from habitus.scene.thresholds import CORRELATED, JOIN

GRID = crossing_vocabulary()


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    drawn = habitus.generate(crossing(), [200] * 300, rng, vocabulary=GRID).corpus
    model = habitus.MarkovClusteringTopicModel(random_state=0, n_iterations=40).fit(drawn)
    return SceneModel(model, calibrate(model, drawn))


def footage(wrong_way, *, n=80, lengths=None, times=None):
    """Normal documents, in some of which someone drives west on the lane that leads east."""
    rng = np.random.default_rng(1)
    counts = habitus.generate(crossing(), [200] * n, rng).corpus.counts.toarray()
    lane = GRID.words(np.full(6, EAST), np.arange(8, 14), Direction.LEFT)
    for t in wrong_way:
        counts[t, lane] += 15
    return habitus.Corpus(counts, vocabulary=GRID, lengths=lengths, times=times)


def found(scene, corpus, **options):
    return detect_events(scene.detector(**options), corpus, source="scene.mp4")


def test_a_wrong_way_driver_is_one_event_in_its_place_with_its_reason(scene):
    events = found(scene, footage([40, 41, 43])).events
    assert [(event.start, event.end) for event in events] == [(40.0, 44.0)]
    (event,) = events
    assert event.peak in (40, 41, 43)
    assert event.normality < event.threshold
    left, top, right, bottom = event.boxes[0]
    assert top <= EAST * 8 < EAST * 8 + 8 <= bottom <= top + 24
    assert 7 * 8 <= left < right <= 15 * 8
    assert "leftward motion where the scene moves right" in event.explanation
    assert event.surprise == pytest.approx(event.misfit + event.shift, rel=1e-12)
    assert len(event.words) == len(event.surprisals) == 10
    assert (event.first_document, event.last_document) == (40, 43)
    assert event.peak_document == event.peak
    assert sum(event.expected) == pytest.approx(1, rel=1e-12)


def test_events_apart_are_two_and_sequences_cut_them(scene):
    assert len(found(scene, footage([20, 20 + JOIN + 2])).events) == 2
    assert len(found(scene, footage([20, 20 + JOIN + 1])).events) == 1
    assert len(found(scene, footage([20, 21], lengths=[21, 59])).events) == 2


def test_an_event_at_the_very_end_is_not_lost(scene):
    (event,) = found(scene, footage([79])).events
    assert event.end == 80


def test_times_are_those_of_the_documents(scene):
    (event,) = found(scene, footage([10], times=1000.5 + np.arange(80))).events
    assert (event.start, event.end) == (1010.5, 1011.5)


def test_a_share_of_these_very_documents(scene):
    detection = detect_events(scene.detector(share=0.05), footage([5, 30]), share=0.05)
    assert detection.abnormal.sum() == 4
    assert {5, 30} <= set(np.flatnonzero(detection.abnormal))


def test_a_behaviour_out_of_its_turn_is_said_so(scene):
    rng = np.random.default_rng(2)
    words = crossing().word_given_behaviour
    order = [0] * 10 + [2]  # the third phase never follows the first
    corpus = habitus.Corpus(
        np.stack([rng.multinomial(400, words[:, z]) for z in order]), vocabulary=GRID
    )
    detector = scene.detector()
    *before, last = list(detector.judge(corpus))
    assert last.shift > 3 > max(judgement.shift for judgement in before[1:])
    joiner = EventJoiner(scene.detector(measure="tail"))
    *_, (time, document) = enumerate(corpus.bags())
    joiner.add(9, document, before[-1], 0.0)
    joiner.add(time, document, last._replace(abnormal=True), 0.0)
    one, other = before[-1].behaviour + 1, last.behaviour + 1
    assert joiner.open.explanation.startswith(
        f"behaviour {other} right after behaviour {one}: never seen in training; "
    )


def test_nothing_comes_before_a_moment_that_starts_a_sequence(scene):
    rng, model = np.random.default_rng(2), copy(scene.model)
    rare = np.array([0.01, 0.33, 0.33, 0.33])  # sequences hardly ever start with the first
    model.parameters_ = model.parameters_._replace(pi=rare)
    words = crossing().word_given_behaviour
    counts = np.stack([rng.multinomial(400, words[:, z]) for z in [0] * 10 + [2]])
    counts[10, GRID.words(np.full(6, EAST), np.arange(8, 14), Direction.LEFT)] += 15
    for lengths, follows in (([11], True), ([10, 1], False)):
        corpus = habitus.Corpus(counts, vocabulary=GRID, lengths=lengths)
        detector = SceneModel(model, scene.calibration).detector(threshold=-99)
        most = detect_events(detector, corpus).moments[0]
        assert (most.peak_document, most.behaviour) == (10, 1)
        assert most.shift > OUT_OF_TURN
        assert ("right after" in most.explanation) == follows


def test_moments_are_alarms_and_the_most_unusual_that_would_join_none(scene):
    near, far = (20 - JOIN, 20 + JOIN), (52 - JOIN - 1, 52 + JOIN + 1)
    counts = footage([20, 52]).counts.toarray() + footage([*near, *far]).counts.toarray() // 2
    corpus = habitus.Corpus(counts, vocabulary=GRID)
    detection = detect_events(scene.detector(measure="mean"), corpus, share=0.025)
    numbers = [moment.peak_document for moment in detection.moments]
    assert {event.peak_document for event in detection.events} == {20, 52}
    assert set(far) <= set(numbers)
    assert not set(near) & set(numbers)
    assert len(numbers) == MOST_MOMENTS
    assert min(np.diff(sorted(numbers))) > CORRELATED
    scores = [moment.normality for moment in detection.moments]
    assert scores == sorted(scores)


def test_a_budget_is_kept_where_nothing_is_as_it_was(scene):
    # Wrong-way drivers all the time; the last but one is the strongest.
    every = range(20, 20 + 36 * (JOIN + 2), JOIN + 2)
    corpus = footage(every, n=every[-1] + 20)
    counts = corpus.counts.toarray()
    counts[every[-2]] += 15 * (counts[every[-2]] - counts[every[-2] + 1] > 10)
    corpus = habitus.Corpus(counts, vocabulary=GRID)
    budget = 5 * 86_400 / len(corpus)
    limited = detect_events(scene.detector(alerts_per_day=budget), corpus)
    # A fixed threshold is no promise.
    all_of_them = detect_events(scene.detector(threshold=limited.threshold), corpus)
    assert len(all_of_them.events) > 30
    lowest, wanted = np.inf, []
    for event in all_of_them.events:
        if len(wanted) < 10 or event.normality < lowest:
            wanted.append(event)
            lowest = min(lowest, event.normality)
    assert limited.events == wanted
    assert len(wanted) < 20
    assert [moment for moment in limited.moments if moment.alarm] == sorted(
        wanted, key=lambda event: event.normality
    )
    note = limited.notes[-1]
    assert "more documents are below the threshold: after 10 alarms in 8 minutes" in note
    assert not all_of_them.notes


def test_lines_are_json_with_a_version(scene):
    (event,) = found(scene, footage([40])).events
    line = event.line()
    assert "\n" not in line
    read = json.loads(line)
    assert (read["habitus"], read["version"]) == ("event", SCHEMA)
    assert set(read) == {"habitus", "version", *Event.__dataclass_fields__}
    assert read["boxes"] == [list(box) for box in event.boxes]


def test_words_for_a_person(scene):
    detection = found(scene, footage([61]))
    assert detection.events[0].in_words().startswith("1:01-1:02  leftward motion")
    assert detection.summary().startswith("1 alarm in 1:20 of video; normal footage ")
    quiet = found(scene, footage([]))
    assert quiet.summary().startswith("no alarm in 1:20 of video (lowest normality")
    empty = found(scene, habitus.Corpus(np.zeros((5, GRID.n_words)), vocabulary=GRID))
    assert "nothing moved enough to be judged" in empty.summary()
    assert clock(7199.6) == "2:00:00"


def test_a_detection_knows_the_surprisal_of_every_word(scene):
    corpus = footage([40], n=60)
    counts = corpus.counts.toarray()
    counts[7] = 0
    counts[7, 3] = 5  # too short to judge
    corpus = habitus.Corpus(counts, vocabulary=GRID)
    detection = found(scene, corpus)
    indptr, detector = corpus.counts.indptr, scene.detector()
    for t, document in enumerate(corpus.bags()):
        judgement = detector.step(document)
        own = detection.surprisals[indptr[t] : indptr[t + 1]]
        expected = judgement.surprisals if judgement.judged else np.zeros(1)
        np.testing.assert_array_equal(own, expected)
    (event,) = detection.events
    own = slice(indptr[40], indptr[41])
    known = dict(
        zip(corpus.counts.indices[own].tolist(), detection.surprisals[own].tolist(), strict=True)
    )
    assert [known[word] for word in event.words] == list(event.surprisals)
    assert detection.abnormal_words[40].words == event.words


def test_a_share_leaves_the_detector_as_it_was(scene):
    detector = scene.detector()
    before = detector.threshold
    detection = detect_events(detector, footage([5]), share=0.2)
    assert detector.threshold == before < detection.threshold


@pytest.fixture
def unusual(scene):
    """A document of the third behaviour that surprises, and what a detector says of it."""
    (document,) = footage([0], n=1).bags()
    judgement = scene.detector().step(document)
    return document, judgement._replace(abnormal=True, shift=9.0, posterior=np.eye(3)[2])


def test_nothing_comes_before_a_new_sequence(scene, unusual):
    document, judgement = unusual
    joiner = EventJoiner(scene.detector())
    joiner.add(0, document, judgement._replace(abnormal=False, posterior=np.eye(3)[0]), 0.0)
    joiner.add(1, document, judgement, 0.0)
    assert joiner.close().explanation.startswith("behaviour 3 right after behaviour 1")
    joiner.add(2, document, judgement._replace(abnormal=False, posterior=np.eye(3)[0]), 0.0)
    joiner.new_sequence()
    joiner.add(3, document, judgement, 0.0)
    assert "right after" not in joiner.close().explanation


def test_of_documents_that_are_as_unusual_the_first_is_the_peak(scene, unusual):
    document, judgement = unusual
    joiner = EventJoiner(scene.detector())
    for number, normality in enumerate([-5.0, -6.0, -6.0, -5.0]):
        joiner.add(number, document, judgement._replace(normality=normality), 0.0, number=number)
    event = joiner.close()
    assert (event.peak, event.peak_document, event.normality) == (1.0, 1, -6.0)
    assert (event.start, event.end, event.last_document) == (0.0, 4.0, 3)
