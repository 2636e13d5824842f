"""When models are learnt, and the processes that learn them and answer questions about them."""

import json
import os
import resource
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import psutil
import pytest

import habitus
from habitus.corpus.documents import Condition
from habitus.errors import HabitusError, InvalidInputError
from habitus.ingest.clips import DocumentSettings, documents, vocabulary_of
from habitus.jobs.fork_server import ForkServer
from habitus.scene.events import judge_moment
from habitus.scene.fleet import WORTH, Fleet
from habitus.site.footage import FootageWriter, read_footage
from habitus.site.judging import as_event, recall
from habitus.site.model_work import learn_from_footage
from habitus.site.pipe_messages import FootageExtent
from habitus.site.relearning import (
    FIRST_WAIT,
    LEARNING,
    LONGEST_WAIT,
    LearningFailure,
    LearningJob,
    LearntModel,
    PastLearning,
    describe,
    due,
    learning_reports,
    signature,
    silenced_by,
)
from habitus.site.shard_store import FLEET
from habitus.video import Reader, Source
from reference import two_lanes
from reference.processes import LONG, running, wait_until

SETTINGS = DocumentSettings(still_every=1)
START = datetime(2026, 3, 1, 10, 50, 0, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86_400.0
BERLIN = ZoneInfo("Europe/Berlin")


def learnt(occasion: str, started: float) -> PastLearning:
    return PastLearning(occasion, started, started + 60, True)


def failed(started: float) -> PastLearning:
    return PastLearning("first", started, started + 60, False)


def kept(seconds: float, now: float = START) -> FootageExtent:
    return FootageExtent(seconds, now - seconds, now)


def test_the_first_model_comes_after_five_minutes_and_the_next_after_an_hour():
    assert due(START, None, []) is None
    assert due(START, kept(299), []) is None
    assert due(START, kept(300), []) == "first"
    first = [learnt("first", START)]
    assert due(START + 600, kept(900, START + 600), first) is None
    assert due(START + HOUR, kept(3599, START + HOUR), first) is None
    assert due(START + HOUR, kept(3600, START + HOUR), first) == "hour"


def test_then_each_night_at_a_minute_of_its_own():
    """Local time, from one summer time to the next."""
    history = [learnt("first", START - 30 * DAY), learnt("hour", START - 30 * DAY + HOUR)]
    started = []
    for minute in range(0, 40 * 24 * 60, 5):
        now = START + minute * 60.0
        if due(now, kept(9999, now), history, camera="north", zone=BERLIN) is not None:
            history.append(learnt("night", now))
            started.append(now)
    locally = [datetime.fromtimestamp(at, BERLIN) for at in started[1:]]
    assert [at.hour for at in locally] == [3] * 40
    assert len({at.date() for at in locally}) == 40
    assert len({at.minute for at in locally}) == 1
    minutes = set()
    for camera in "abcdefgh":
        night = datetime(2026, 3, 2, 3, 0, tzinfo=BERLIN).timestamp()
        times = [night + 60 * n for n in range(60)]
        since = [learnt("night", night - DAY + HOUR)]
        minutes.add(
            next(t for t in times if due(t, kept(9999, t), since, camera=camera, zone=BERLIN))
        )
    assert len(minutes) > 4


def test_a_machine_that_is_off_at_night_learns_when_it_is_on():
    history = [learnt("hour", START)]
    morning = START + 3 * DAY
    assert due(morning, kept(9999, morning), history, zone=UTC) == "night"


def test_a_camera_that_has_given_nothing_since_keeps_its_model():
    history = [learnt("night", START)]
    assert due(START + 3 * DAY, kept(9999, START - 10), history, zone=UTC) is None


def test_what_failed_is_tried_again_after_longer_and_longer_waits():
    history: list[PastLearning] = []
    attempts, now = [], START
    while len(attempts) < 12:
        if due(now, kept(9999, now), history) == "first":
            history.append(failed(now))
            attempts.append(now)
        now += 30
    waits = np.diff(attempts) - 60
    assert waits[0] == pytest.approx(FIRST_WAIT, abs=30)
    assert waits[1] == pytest.approx(2 * FIRST_WAIT, abs=30)
    assert waits[-1] == pytest.approx(LONGEST_WAIT, abs=30)
    assert (np.diff(waits) >= -30).all()
    # A success ends it.
    again = [*history, learnt("first", now)]
    assert due(now + 61, kept(9999, now), again) == "hour"


def test_a_clock_that_ran_ahead_delays_nothing():
    ahead = START + 365 * DAY
    history = [learnt("hour", ahead)]
    assert due(START, kept(9999), history, zone=UTC) == "night"
    history.append(learnt("night", START))
    assert due(START + 60, kept(9999, START + 60), history, zone=UTC) is None
    assert due(START + DAY, kept(9999, START + DAY), history, zone=UTC) == "night"
    assert due(START, kept(9999), [failed(ahead)]) == "first"


def test_while_one_runs_no_other_is_due():
    runs = PastLearning("first", START, None, False)
    assert due(START + DAY, kept(9999, START + DAY), [runs]) is None


@pytest.fixture(scope="module")
def lanes(tmp_path_factory):
    """Documents of two lanes that take turns, in which something goes wrong once."""
    video = two_lanes.two_lanes(tmp_path_factory.mktemp("video") / "a.mp4")
    with Reader(Source(str(video))) as reader:
        return list(documents(reader, SETTINGS)), vocabulary_of(reader, SETTINGS)


def watched(folder: Path, lanes, *, turns: int = 5) -> Path:
    """The folder of a camera that has seen the lanes some times, without anything wrong."""
    found, vocabulary = lanes
    normal = [found[n] for n in two_lanes.normal_documents(len(found))[: 2 * two_lanes.TURN * 5]]
    writer = FootageWriter(folder / "documents", SETTINGS)
    for n in range(turns * len(normal)):
        document = normal[n % len(normal)]
        writer.add(document, START + n, Condition.USABLE, vocabulary, follows=n > 0)
    writer.flush()
    return folder


def learn(job: LearningJob, fork_server: ForkServer) -> list:
    """All reports of a learning."""
    process, reports = fork_server.start_process(LEARNING, job), []

    def done() -> bool:
        reports.extend(learning_reports(process))
        return bool(reports) and isinstance(reports[-1], LearntModel | LearningFailure)

    wait_until(done, "a model")
    process.end()
    return reports


@pytest.fixture(scope="module")
def camera(tmp_path_factory, lanes, fork_server):
    """The folder of a camera with its first model, and the reports of the learning."""
    folder = watched(tmp_path_factory.mktemp("camera"), lanes)
    return folder, learn(LearningJob(folder, "first"), fork_server)


@pytest.fixture(scope="module")
def events(camera, lanes, tmp_path_factory):
    """What the first model finds where something goes wrong, as plain values."""
    folder, _ = camera
    found, vocabulary = lanes
    writer = FootageWriter(tmp_path_factory.mktemp("judged"), SETTINGS)
    for n, document in enumerate(found):
        writer.add(document, START + n, Condition.USABLE, vocabulary, follows=n > 0)
    writer.flush()
    corpus = read_footage(writer.folder).corpus
    detection = habitus.detect(corpus, folder / "model-1.habitus", alerts=2000)
    return [event.to_json() for event in detection.events]


def test_a_model_is_learnt_with_progress_pictures_and_a_description(camera, fork_server):
    folder, reports = camera
    *progress, last = reports
    assert isinstance(last, LearntModel), last
    assert last.model == "model-1.habitus"
    assert (last.since, last.until, last.n_documents) == (START, START + 300, 300)
    assert last.summary.startswith("learnt 4 behaviours and 8 topics from 300 documents")
    assert {report.stage for report in progress} >= {"reading", "learning", "calibrating"}
    scene = habitus.SceneModel.load(folder / last.model)
    assert scene.calibration is not None
    assert 299 < scene.habits.counts.n_documents < 300  # older footage has begun to fade
    assert scene.model.picture_ is not None
    for number in range(1, 5):
        assert (folder / "behaviours" / f"{number}.jpg").read_bytes()[:2] == b"\xff\xd8"
    described = describe(folder / last.model, fork_server=fork_server)
    assert sum(one["share"] for one in described) == pytest.approx(1)
    assert [one["picture"] for one in described] == [f"behaviours/{n}.jpg" for n in range(1, 5)]
    (folder / "model-1.json").unlink()
    assert describe(folder / last.model, fork_server=fork_server) == described


def test_a_camera_that_has_seen_little_leans_on_others(tmp_path, lanes, camera, fork_server):
    """On those beside it that have seen more, and have documents of the same kind."""
    alone = camera[1][-1]
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / FLEET).write_bytes(b"no fleet")
    old = watched(tmp_path / "old", lanes, turns=WORTH // 60)
    told = learn(LearningJob(old, "first"), fork_server)[-1]  # of "hour", restarts are more
    assert told.n_documents >= WORTH
    assert Fleet.load(old / FLEET).n_cameras == 1
    young = learn(LearningJob(watched(tmp_path / "young", lanes), "first"), fork_server)[-1]
    assert [n for n in young.notes if "learnt from 1 other camera" in n]
    assert not (tmp_path / "young" / FLEET).exists()
    for report in (alone, told):
        assert not [n for n in report.notes if "other camera" in n]
    scene = habitus.SceneModel.load(tmp_path / "young" / young.model)
    assert scene.habits is not None
    assert scene.habits.leans_on_fleet


def test_footage_of_events_that_were_called_unusual_is_never_learnt_from(
    tmp_path, lanes, fork_server
):
    folder = watched(tmp_path, lanes)
    excluded = ((START + 100, START + 110),)
    job = LearningJob(folder, "first", excluded=excluded, until=START + 200)
    last = learn(job, fork_server)[-1]
    assert (last.n_documents, last.until) == (190, START + 200)


def test_the_last_three_models_are_kept(tmp_path, lanes, fork_server):
    folder = watched(tmp_path, lanes, turns=1)
    for number in (3, 7, 8):
        (folder / f"model-{number}.habitus").write_bytes(b"")
        (folder / f"model-{number}.json").write_text("[]")
    last = learn(LearningJob(folder, "first"), fork_server)[-1]
    assert last.model == "model-9.habitus"
    names = {path.stem for path in folder.iterdir() if path.is_file()}
    assert names == {"model-7", "model-8", "model-9"}


def test_what_cannot_be_learnt_is_told(tmp_path, fork_server):
    (tmp_path / "documents").mkdir()
    assert learn(LearningJob(tmp_path, "first"), fork_server)[-1] == LearningFailure(
        "there is no footage to learn from yet"
    )


def test_a_full_disk_fails_and_leaves_no_half_model(tmp_path, lanes, fork_server):
    folder = watched(tmp_path, lanes, turns=1)
    process = fork_server.start_process(LEARNING, LearningJob(folder, "first"))
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1024, 1024))
    reports = []
    wait_until(
        lambda: (
            reports.extend(learning_reports(process))
            or any(isinstance(report, LearningFailure) for report in reports)
        ),
        "a failure",
    )
    process.end()
    assert "too large" in reports[-1].reason
    assert not list(folder.glob("model-*"))


def test_a_learning_is_niced(tmp_path, lanes):
    with ForkServer("habitus.site.model_work") as fork_server:
        process = fork_server.start_process(
            LEARNING, LearningJob(watched(tmp_path, lanes), "night")
        )
        wait_until(lambda: psutil.Process(process.pid).nice() >= 10, "low priority")
        process.end()


def test_a_learning_that_is_killed_fails(tmp_path, lanes, fork_server):
    folder = watched(tmp_path, lanes)
    process = fork_server.start_process(LEARNING, LearningJob(folder, "night"))
    psutil.Process(process.pid).kill()
    reports = []
    wait_until(
        lambda: (
            reports.extend(learning_reports(process))
            or any(isinstance(report, LearningFailure) for report in reports)
        ),
        "a failure",
    )
    assert "exit code -9" in reports[-1].reason
    assert list(learning_reports(process)) == []
    assert not list(folder.glob("model-*"))
    process.end()


def test_a_learning_ends_with_the_server(tmp_path, lanes, fork_server):
    folder = watched(tmp_path, lanes)
    process = fork_server.start_process(LEARNING, LearningJob(folder, "night"))
    assert running(process.pid)
    process.connection.close()  # as the end of the server does
    wait_until(lambda: not running(process.pid), "its end")


def test_calling_an_event_normal_silences_the_like_of_it(camera, events, fork_server):
    folder, _ = camera
    assert events
    strongest = min(events, key=lambda event: event["normality"])
    model = folder / "model-1.habitus"
    scene, event = habitus.SceneModel.load(model), _event(strongest)
    before, after = (
        min(judge_moment(event, habits, point).normality for point in event.track)
        for habits in (scene.habits, scene.accept(event).scene.habits)
    )
    # So large a thing is no alarm any more only where the threshold is lower.
    events = [*events, {**strongest, "threshold": (before + after) / 2}]
    silences = partial(silenced_by, fork_server=fork_server, within=LONG)
    found = silences(model, [], strongest, events)
    assert found == _silenced(scene, [], strongest, events)
    assert len(events) - 1 in found
    # What was accepted before is not told again.
    again = silences(model, [strongest] * 3, strongest, events)
    assert again == _silenced(scene, [strongest] * 3, strongest, events)
    assert silences(model, [strongest] * 5, strongest, events) == []


def _silenced(scene, accepted, event, recent) -> list[int]:
    """The same, step by step."""
    as_events = [_event(told) for told in recent]
    for one in accepted:
        scene = scene.accept(_event(one)).scene
    before = scene.silenced(as_events)
    after = scene.accept(_event(event)).scene.silenced(as_events)
    return [n for n, one in enumerate(as_events) if one in after and one not in before]


def _event(told: dict) -> habitus.Event:
    return as_event(json.loads(json.dumps(told)))


def test_questions_that_have_no_answer_are_errors(camera, events, fork_server, tmp_path):
    folder, _ = camera
    model = folder / "model-1.habitus"
    without = events[0] | {"moment": []}
    with pytest.raises(InvalidInputError, match="no moment"):
        silenced_by(model, [], without, events, fork_server=fork_server)
    with pytest.raises(HabitusError, match="found nothing"):
        describe(tmp_path / "model-5.habitus", fork_server=fork_server)
    with pytest.raises(HabitusError, match="no answer within 0 s"):
        silenced_by(model, [], events[0], events, fork_server=fork_server, within=0)


def test_events_that_do_not_fit_a_new_model_are_noted(tmp_path, lanes, events, fork_server):
    folder = watched(tmp_path, lanes, turns=1)
    stranger = events[0] | {"moment": [10**7]}
    job = LearningJob(folder, "first", accepted=(events[0], stranger))
    last = learn(job, fork_server)[-1]
    assert [note for note in last.notes if "called normal" in note] == [
        "1 event called normal, but seen with another frame size or mask: not counted any more"
    ]
    often, none = recall(folder / last.model, job.accepted)
    assert often > none == 0  # found out while it was learnt


def test_names_of_behaviours_survive_learning_anew(tmp_path, lanes, fork_server):
    folder = watched(tmp_path, lanes, turns=2)
    assert learn(LearningJob(folder, "first"), fork_server)[-1].names == ()
    words = habitus.SceneModel.load(
        folder / "model-1.habitus"
    ).model.parameters_.word_given_behaviour
    names = ((1, "rightwards"), (2, "downwards"))
    job = LearningJob(folder, "first", seed=7, before="model-1.habitus", names=names)
    again = learn(job, fork_server)[-1]
    new = habitus.SceneModel.load(folder / again.model).model.parameters_.word_given_behaviour
    kept = {name: int(number) for number, name in again.names}
    for number, name in names:
        likest = int((np.sqrt(words[:, [number - 1]]) * np.sqrt(new)).sum(axis=0).argmax()) + 1
        noted = f"no behaviour is like the one called {name!r} any more" in again.notes
        assert kept.get(name) == likest or noted, "kept where it is, or said that it is not"
    assert kept, "one at least is there again"


def test_names_of_a_model_that_is_gone_are_dropped_and_that_is_said(tmp_path, lanes, fork_server):
    folder = watched(tmp_path, lanes, turns=1)
    job = LearningJob(folder, "first", before="model-9.habitus", names=((1, "green"),))
    last = learn(job, fork_server)[-1]
    assert last.names == ()
    assert "no behaviour is like the one called 'green' any more" in last.notes


def likeness(one: dict, other: dict) -> float:
    pair = [np.frombuffer(signature(event, 192, 144), np.float32) for event in (one, other)]
    return float(pair[0] @ pair[1])


def test_alike_events_have_alike_signatures(events):
    event = {"boxes": [[20, 20, 60, 60]], "words": [10, 8], "surprisals": [4.0, 1.0]}
    event["cue"] = "direction, scan"
    near = event | {"boxes": [[26, 20, 66, 62]]}
    far = event | {"boxes": [[140, 90, 190, 140]]}
    other_way = event | {"words": [14, 12]}
    other_cue = event | {"cue": "speed, sum"}
    assert likeness(event, event) == pytest.approx(1, abs=1e-6)
    assert 0.9 < likeness(event, near) < 1
    for different in (far, other_way, other_cue):
        assert likeness(event, different) < likeness(event, near)
    assert likeness(event, far) < 0.6
    found = signature(events[0], 192, 144)
    assert len(found) == len(signature(event, 192, 144)) == len(signature({}, 192, 144))
    assert np.isfinite(np.frombuffer(found, np.float32)).all()


def test_the_server_loads_none_of_the_code_of_models():
    code = (
        "import sys; import habitus.site.relearning; "
        "print([m for m in ('numba', 'sklearn', 'scipy', 'av', 'cv2') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=LONG,
    )
    assert told.stdout.strip() == "[]"


def test_a_learning_whose_server_was_killed_ends_quietly(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("os.nice", lambda niceness: 0)
    ours, theirs = Pipe()
    theirs.close()
    learn_from_footage(LearningJob(tmp_path, "asked"), ours)
