"""What an observer makes of the documents of a live camera, one after the other."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import habitus
from habitus.corpus.clocks import NO_CLOCK, minute_of
from habitus.ingest.clips import Document, DocumentSettings
from habitus.ingest.live import LiveDocument
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.scene import SceneModel, calibrate, learn_scene
from habitus.scene.camera_monitor import SceneMonitor
from habitus.scene.habit_learning import learn_habits
from habitus.scene.thresholds import JOIN
from habitus.site.watching import EventEnded, Observer, watch_events
from habitus.video import Source
from reference.footage import texture

GRID = crossing_vocabulary()
CELLS = texture(GRID.columns, GRID.rows, 0).astype(np.uint8)


@pytest.fixture(scope="module")
def usual():
    rng = np.random.default_rng(0)
    return habitus.generate(crossing(), [200] * 100, rng, vocabulary=GRID).corpus


@pytest.fixture(scope="module")
def scene(usual):
    model = habitus.MarkovClusteringTopicModel(random_state=0, n_iterations=10).fit(usual)
    return SceneModel(model, calibrate(model, usual))


@pytest.fixture
def observer(scene):
    return Observer(scene.detector(), "camera", SceneMonitor(None, "camera"))


def arrived(number, counts, n_frames=25):
    """A document whose still has its number as its colour."""
    still, words = np.full((2, 2, 3), number, dtype=np.uint8), np.flatnonzero(counts)
    given = number, float(number), words, counts[words], n_frames, 3.0, CELLS, still
    return LiveDocument(Document(*given), number > 0, float(number), float(number), GRID)


def test_the_still_of_an_event_shows_its_strongest_moment(usual, observer):
    first = usual.counts.toarray()[0]
    new = np.flatnonzero(usual.counts.sum(axis=0) == 0)[:10]
    happenings = []
    for number, times in enumerate([0, 40, 90, 40, *[0] * (JOIN + 1)]):
        counts = first.copy()
        counts[new] += times
        happenings += observer.take(arrived(number, counts))
    (ended,) = (each for each in happenings if isinstance(each, EventEnded))
    assert (ended.event.start, ended.event.peak, ended.event.end) == (1, 2, 4)
    assert ended.still.max() == 2
    assert observer.still is None


def test_a_camera_with_minutes_of_training_says_how_many_alarms_to_expect(scene):
    detector = scene.detector(alerts_per_day=5)
    said = next(watch_events(detector, Source("x"), DocumentSettings(), stop=threading.Event()))
    assert "cannot tell what happens 5 times a day: expect 0 to" in said.text


def test_a_live_document_is_judged_at_the_hour_of_this_machine(usual, scene):
    detector = replace(scene, habits=learn_habits(usual)).detector(threshold=-5.0)
    observer = Observer(detector, "camera", SceneMonitor(None, "camera"))
    arrival = arrived(0, usual.counts.toarray()[0])._replace(time=1.79e9)
    list(observer.take(arrival))
    assert observer.judgement.habit.clock == minute_of(1.79e9)


def test_nobody_knows_the_hour_of_a_file(usual, scene):
    detector = replace(scene, habits=learn_habits(usual)).detector(threshold=-5.0)
    observer = Observer(detector, "file", SceneMonitor(None, "file"), live=False)
    list(observer.take(arrived(0, usual.counts.toarray()[0])._replace(time=1.79e9)))
    assert observer.judgement.habit.clock == NO_CLOCK


def test_one_document_with_enough_frames_shows_that_a_camera_is_not_slow(usual, observer):
    first, slow = usual.counts.toarray()[0], []
    for number, n_frames in enumerate([1, 0, 1, 2, 1, 1, 25]):
        list(observer.take(arrived(number, first, n_frames)))
        slow.append(observer.n_slow)
    assert slow == [1, 2, 3, 0, 1, 2, 0]


@pytest.mark.parametrize(("clip", "join"), [(0.5, 20), (1.0, 10), (4.0, 2)])
def test_ten_seconds_of_usual_documents_end_an_event(usual, clip, join):
    scene = learn_scene(replace(usual, settings={"clip": clip}), n_restarts=1, random_state=0)
    assert scene.calibration.settings.join == scene.habits.fusion.join == join
    assert scene.detector().join == join
    assert habitus.Detector(scene.model, measure="mean", threshold=-9.0).join == join
