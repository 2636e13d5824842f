"""What an observer makes of the documents of a live camera, one after the other."""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

import habitus
from habitus.corpus.clocks import NO_CLOCK, minute_of
from habitus.ingest.clips import Document, DocumentSettings
from habitus.ingest.decoder import Job
from habitus.ingest.live import LiveDocument, LiveSource, Notice
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.scene import SceneModel, calibrate, learn_scene
from habitus.scene.camera_monitor import SceneMonitor
from habitus.scene.habit_learning import learn_habits
from habitus.scene.thresholds import JOIN, AlarmLimit, RaisedAlarm
from habitus.site.watching import EventEnded, Observer, happenings, latest_alarms, watch_events
from habitus.video import Source
from reference.consoles import event_json
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
    still, words = np.full((2, 2, 3), number % 256, dtype=np.uint8), np.flatnonzero(counts)
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


class Numbers:
    """A store of the numbers of documents; what a camera gives may stay unsaid."""

    def __init__(self):
        self.numbers = []

    def take(self, arrival):
        self.numbers.append(arrival.document.number)
        return None if arrival.document.number % 2 else [Notice("even", arrival.time)]

    def miss(self, live):
        raise AssertionError(live.reason)


def test_the_loop_of_every_camera_hands_all_that_comes_to_its_store(video):
    store, job = Numbers(), Job(Source(str(video)), DocumentSettings())
    with LiveSource(job) as live:
        found = list(happenings(live, store))
    assert store.numbers == list(range(len(store.numbers)))
    assert len(store.numbers) > 2
    assert [one.text for one in found if one] == ["even"] * (len(store.numbers) + 1 >> 1)
    assert found.count(None) > len(store.numbers)


NOW = 1.79e9


def raised_at(ago, **fields):
    """Line of an alarm so many seconds before now."""
    clock = datetime.fromtimestamp(NOW - ago, UTC).isoformat(timespec="milliseconds")
    event = {**event_json(start=7.0, peak=8.0, end=9.0, source="camera"), "clock": clock}
    return json.dumps({**event, "alarm": True, "normality": -ago, "track": [], **fields})


def test_the_latest_alarms_are_read_from_a_file_of_events(tmp_path):
    path, fault = tmp_path / "events.jsonl", '{"habitus": "fault", "version": 1}'
    point = {"time": 40.0, "normality": -60.0, "boxes": []}
    standing = raised_at(60, start=0.0, peak=40.0, end=41.0, track=[point])
    text = [raised_at(900), "x", raised_at(500), raised_at(400, source="other"), fault, "\xff"]
    text += [
        raised_at(300, alarm=False),
        standing,
        raised_at(-50),
        raised_at(10),
        raised_at(5)[:-9],
    ]
    path.write_bytes("\n".join(text).encode("latin-1"))
    assert latest_alarms(path, "camera", 600.0, NOW) == [
        RaisedAlarm(10.0, -10.0),
        RaisedAlarm(20.0, -60.0),
        RaisedAlarm(500.0, -500.0),
    ]
    assert latest_alarms(tmp_path / "none", "camera", 600.0, NOW) == []


def test_what_the_limit_holds_back_is_told_at_once_and_then_by_the_hour(usual, observer):
    first = usual.counts.toarray()[0]
    new = np.flatnonzero(usual.counts.sum(axis=0) == 0)[:10]
    observer.joiner.limit = AlarmLimit(5.0, [RaisedAlarm(1.0, -1e9)] * 10)
    told = []
    for number in range(3700):
        counts = first.copy()
        counts[new] += 90 * (number % 100 == 50)
        arrival = arrived(number, counts)
        told += [(number, each.text) for each in observer.take(arrival) if isinstance(each, Notice)]
    assert [number for number, _ in told] == [50, 3650]
    assert told[0][1].startswith("camera: 1 more document is below the threshold: after 10 alarms")
    assert told[1][1].startswith("camera: 37 more documents are below")
    assert not list(observer.held(0.0, every=0.0))


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


def test_faults_of_a_file_have_the_time_in_it(usual, scene):
    observer, counts = Observer(scene.detector(), "f", SceneMonitor(None, "f"), live=False), []
    for number in range(30):
        counts += observer.take(arrived(number, usual.counts.toarray()[0], n_frames=1))
    (fault,) = counts
    assert isinstance(fault, habitus.CameraFault)
    assert (fault.clock, fault.condition) == (None, "slow")
    assert fault.start == 4.0  # from the fifth slow document on


def test_one_document_with_enough_frames_shows_that_a_camera_is_not_slow(usual, observer):
    first, slow = usual.counts.toarray()[0], []
    for number, n_frames in enumerate([1, 0, 1, 2, 1, 1, 25]):
        list(observer.take(arrived(number, first, n_frames)))
        slow.append(observer.faults.n_slow)
    assert slow == [1, 2, 3, 0, 1, 2, 0]


@pytest.mark.parametrize(("clip", "join"), [(0.5, 20), (1.0, 10), (4.0, 2)])
def test_ten_seconds_of_usual_documents_end_an_event(usual, clip, join):
    scene = learn_scene(replace(usual, settings={"clip": clip}), n_restarts=1, random_state=0)
    assert scene.calibration.settings.join == scene.habits.fusion.join == join
    assert scene.detector().join == join
    assert habitus.Detector(scene.model, measure="mean", threshold=-9.0).join == join
