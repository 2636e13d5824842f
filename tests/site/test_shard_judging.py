"""What is unusual in an archive: one budget for all cameras, each recording judged once."""

import json
import pickle
import shutil
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

import habitus
from habitus.corpus.looks import GRID
from habitus.errors import FileError, InvalidInputError
from habitus.files import write_file
from habitus.schema import decoded
from habitus.site.operations import detect_archive, learn_archive, report_archive
from habitus.site.shard_judging import (
    ArchiveDetection,
    JudgingTask,
    _unjudged,
    judge_shards,
    rank_moments,
)
from habitus.site.shard_store import ArchiveFolder, CameraFolder
from reference.archives import DAY, LENGTH, PATTERN, WRONG, copied, put, recorded, settled
from reference.footage import encode, moving_square
from reference.made_once import made_once
from reference.two_lanes import FPS

OPTIONS = {
    "learning": habitus.LearningSettings(4, 2, n_restarts=1),
    "reading": habitus.ReadingSettings(jobs=1),
    "timezone": "UTC",
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Two cameras; in the last recording of one, something goes wrong after it was learnt."""
    masters = recorded(tmp_path_factory)

    def make(folder):
        for camera in ("north", "south"):
            for minute in range(6):
                put(folder / "recordings", camera, minute, masters / f"{minute % 2}.mp4")
        learn_archive(f"{folder}/recordings/{PATTERN}", output=folder / "site", **OPTIONS)
        shutil.copyfile(masters / "wrong.mp4", folder / "wrong.mp4")
        put(folder / "recordings", "south", 6, folder / "wrong.mp4")
        found = detect_archive(folder / "site", alerts_per_day=400, jobs=1)
        (folder / "found").write_bytes(pickle.dumps(found))

    folder = made_once(tmp_path_factory, "judged", make)
    return folder, pickle.loads((folder / "found").read_bytes())  # noqa: S301 - our own


@pytest.fixture
def site(judged, tmp_path):
    """A copy of the recordings and of the archive, to be changed."""
    return copied(judged[0], tmp_path / "copy")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_went_wrong_is_the_most_unusual_moment_of_all(judged):
    _, found = judged
    assert found.n_judged == 13
    assert found.n_cameras == 2
    assert found.seconds == 13 * LENGTH
    first = found.moments[0]
    assert first.camera == "south"
    second = 60 * 6 + WRONG
    assert first.clock == f"{DAY}T12:06:{second % 60:02.0f}+00:00"
    assert first.source.endswith("120600.mp4")
    assert [m.false_alarms_per_day for m in found.moments] == sorted(
        m.false_alarms_per_day for m in found.moments
    )


def test_alarms_are_those_that_the_budget_of_all_cameras_allows(judged):
    _, found = judged
    share = 400 / 2
    assert [m.alarm for m in found.moments] == [
        m.false_alarms_per_day <= share for m in found.moments
    ]
    assert found.moments[0].alarm
    assert not found.moments[-1].alarm
    assert found.expected_false_alarms == pytest.approx(share * 13 * LENGTH / 86_400, rel=1e-9)
    assert "budget 400 per day for all cameras" in found.summary()


@pytest.mark.parametrize("budget", [5.0, 2000.0])
def test_every_command_raises_the_same_alarms(judged, tmp_path, budget):
    folder, _ = judged
    model, wrong = folder / "site/south/model.habitus", folder / "wrong.mp4"
    whole = shutil.copytree(folder / "site", tmp_path / "site")
    found = detect_archive(whole, alerts_per_day=2 * budget, jobs=1).alarms
    start = datetime.fromisoformat(f"{DAY}T12:06:00+00:00").timestamp()
    peaks = sorted(each.peak - start for each in found if each.start >= start)
    detected = habitus.detect(wrong, model, alerts=budget)
    shown = habitus.report(wrong, model, tmp_path / "report.html", alerts=budget)
    watched = habitus.watch(wrong, model, alerts=budget)
    seen = [each.event for each in watched if isinstance(each, habitus.EventEnded)]
    for events in (detected.events, shown.events, seen):
        assert sorted(event.peak for event in events) == peaks
    assert peaks


def as_found(detection):
    """What a detection shows, without pictures."""
    return [replace(moment, thumbnail=None) for moment in detection.moments]


@pytest.mark.parametrize("budget", [10.0, 400.0, 2000.0])
def test_alarms_are_the_same_whatever_budgets_came_before(site, budget):
    folder, found = site / "site", []
    for before in ((), (1e6,), (0.1, 5000.0)):
        for each in (*before, budget):
            detected = detect_archive(folder, alerts_per_day=each, again=not found, jobs=1)
        found.append(detected)
    assert found[0].alarms
    for other in found[1:]:
        assert as_found(other) == as_found(found[0])
        assert other.notes == found[0].notes


def test_a_new_camera_moves_no_alarm_but_by_its_share(site):
    """Two cameras that share 800 a day are as four that share 1600."""
    before = detect_archive(site / "site", alerts_per_day=800, jobs=1)
    for name in ("east", "west"):
        shutil.copytree(site / "site/north", site / "site" / name)
    camera = detect_archive(site / "site", alerts_per_day=10, jobs=1)
    assert camera.share == 2.5
    found = detect_archive(site / "site", alerts_per_day=1600, jobs=1)
    known = [moment for moment in as_found(found) if moment.camera == "south" and moment.alarm]
    assert known == [m for m in as_found(before) if m.camera == "south" and m.alarm]
    assert known


def test_alarms_are_joined_by_their_own_threshold_not_by_that_of_what_is_kept(judged, tmp_path):
    folder, _ = judged
    site = shutil.copytree(folder / "site", tmp_path / "site")
    model, wrong = site / "south/model.habitus", folder / "wrong.mp4"
    documents = habitus.extract(wrong).corpus
    odd = int(habitus.detect(documents, model).normality[:24].argmin())
    order = [*range(24), 26, *range(8), odd, *range(8), 26, *range(24)]
    for lengths in ([len(order)], [28, len(order) - 28]):
        corpus = habitus.Corpus(
            documents.counts[order], lengths=lengths, vocabulary=documents.vocabulary
        )
        corpus.save(tmp_path / "wrong.corpus")
        budget = 2000.0
        wanted = habitus.detect(corpus, model, alerts=budget).events
        shard = ("", str(tmp_path / "wrong.corpus"), "wrong.mp4")
        shutil.rmtree(site / "south/judged")
        camera = CameraFolder(site / "south")
        for rate in (budget, 1e6):  # at which all is one event
            (found,) = judge_shards(JudgingTask("south", str(model), "", (shard,), rate))
            write_file(camera.judged_path(f"{DAY}T12-06-00"), found.lines.encode())
            ranked = rank_moments([camera], ArchiveDetection(alerts_per_day=budget))
            for event in wanted:
                alarm = next(each for each in ranked.alarms if each.peak == event.peak)
                same = "start", "end", "normality", "track", "words", "explanation"
                for name in same:
                    assert getattr(alarm, name) == getattr(event, name)
                assert alarm.threshold == pytest.approx(event.threshold, rel=0.05)
            assert len(ranked.alarms) == len(wanted) > 1


def test_events_are_written_in_order_of_time_and_read_as_events(judged):
    folder, found = judged
    written = lines(folder / "site/events.jsonl")
    assert [each["start"] for each in written] == sorted(each["start"] for each in written)
    assert {each["camera"] for each in written} == {"north", "south"}
    events = habitus.scene.read_events(folder / "site/events.jsonl")
    assert sorted(e.start for e in events) == sorted(m.start for m in found.moments)
    for each in written:
        assert (folder / "site" / each["thumbnail"]).read_bytes()[:2] == b"\xff\xd8"


def test_pictures_are_cut_from_the_recording(judged):
    import cv2

    folder, found = judged
    event = found.moments[0]
    drawn = cv2.imread(str(folder / "site" / event.thumbnail))
    scene = cv2.resize(
        habitus.SceneModel.load(folder / "site/south/model.habitus").model.picture_,
        drawn.shape[1::-1],
    )
    left, top, right, bottom = (int(edge * drawn.shape[1] / 192) for edge in event.boxes[0])
    inner = slice(top + 8, bottom - 8), slice(left + 8, right - 8)
    # What is in the box is not in the picture of the scene.
    assert abs(drawn[inner].astype(float) - scene[inner]).mean() > 15


def test_a_second_run_judges_nothing_and_changes_nothing(site):
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (site / "site").rglob("*")
        if path.is_file() and path.name != "events.jsonl"
    }
    events = (site / "site/events.jsonl").read_bytes()
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1)
    assert (found.n_judged, found.n_known) == (0, 13)
    assert (site / "site/events.jsonl").read_bytes() == events
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


def test_a_smaller_budget_needs_no_judging(site):
    found = detect_archive(site / "site", alerts_per_day=1e-3, jobs=1)
    assert found.n_judged == 0
    assert found.alarms == []
    assert found.moments


def n_unjudged(camera, share):
    """How many recordings of a camera would be judged for its share of a budget."""
    tasks = _unjudged(camera, share, again=False, detection=ArchiveDetection(alerts_per_day=share))
    return sum(len(task.shards) for task in tasks)


def test_a_larger_budget_is_judged_again(judged):
    south = CameraFolder(judged[0] / "site/south")
    assert [n_unjudged(south, share) for share in (1.0, 200.0, 200.1)] == [0, 0, 7]


def test_only_what_is_new_or_lost_is_judged(site):
    camera = CameraFolder(site / "site/north")
    camera.judged_path(f"{DAY}T12-02-00").unlink()
    damaged = camera.shard_path(f"{DAY}T12-03-00")
    damaged.write_bytes(damaged.read_bytes()[:-20] + bytes(20))
    camera.judged_path(f"{DAY}T12-03-00").unlink()
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1)
    assert found.n_judged == 2
    assert habitus.Corpus.load(damaged)


def test_a_recording_that_was_replaced_is_judged_again(site):
    put(site / "recordings", "north", 2, site / "wrong.mp4")
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1)
    assert found.n_judged == 1
    assert {moment.camera for moment in found.moments[:2]} == {"north", "south"}


def test_events_that_cannot_be_read_are_told_with_the_remedy(site):
    events = site / "site/events.jsonl"
    for found in (b'{"camera": "\xff"}\n', b"not an event\n"):
        events.write_bytes(found)
        with pytest.raises(FileError, match=r"events.jsonl.*: delete the file"):
            report_archive(site / "site", output=site / "page.html")
    kept = CameraFolder(site / "site/north").judged_path(f"{DAY}T12-02-00")
    kept.write_bytes(kept.read_bytes() + found)
    with pytest.raises(FileError, match=r"12-02-00.*: delete the file"):
        detect_archive(site / "site", alerts_per_day=400, jobs=1)


def test_a_camera_without_a_model_is_named(site):
    (site / "site/north/model.habitus").unlink()
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1, again=True)
    assert "north: no model yet: learn it first" in map(str, found.troubles)
    assert found.n_judged == 7


def test_footage_of_another_scene_is_not_judged(site):
    other = site / "recordings/north" / DAY / "120700.mp4"
    encode(other, moving_square(200, width=192, height=144, seed=9), rate=FPS)
    settled(other)
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1)
    (trouble,) = [each for each in found.troubles if each.startswith("north: ")]
    assert trouble.startswith(f"north: {DAY}T12-07-00: ")
    assert "does not show the scene" in trouble
    overview = report_archive(site / "site")
    assert [camera.camera for camera in overview.in_trouble] == ["north"]


def test_one_look_of_many_that_shows_the_scene_is_enough(judged, tmp_path):
    folder, _ = judged
    camera, path = CameraFolder(folder / "site/north"), tmp_path / "one.corpus"
    corpus = habitus.Corpus.load(camera.shards()[0].path)
    unlike = np.random.default_rng(0).integers(0, 256, (1, *GRID), np.uint8)
    task = JudgingTask("north", str(camera.model), "", (("one", str(path), "one.mp4"),), 400)
    for looks, reason in (([unlike, corpus.looks], ""), ([unlike], "does not show the scene")):
        replace(corpus, looks=np.concatenate(looks)).save(path)
        (found,) = judge_shards(task)
        told = json.loads(found.lines.splitlines()[0])["reason"]
        assert reason in told
        assert bool(reason) == bool(told)


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf")])
def test_a_budget_that_there_cannot_be_is_refused(judged, budget):
    with pytest.raises(InvalidInputError, match="a budget must be above 0"):
        detect_archive(judged[0] / "site", alerts_per_day=budget)


def test_a_line_is_the_event_again(judged):
    _, found = judged
    assert decoded(found.moments[0].line(), habitus.Event) == found.moments[0]


def test_cameras_share_the_budget_whoever_has_the_moments(judged):
    folder, _ = judged
    cameras = ArchiveFolder(folder / "site").cameras()
    one = rank_moments(cameras[1:], ArchiveDetection(alerts_per_day=200), timezone="UTC")
    both = rank_moments(cameras, ArchiveDetection(alerts_per_day=400), timezone="UTC")
    alarms = {moment.start for moment in one.alarms}
    assert alarms == {m.start for m in both.alarms if m.camera == "south"}


def test_all_alarms_are_shown_and_at_least_some_moments(site, monkeypatch):
    monkeypatch.setattr("habitus.site.shard_judging.MOST_MOMENTS", 3)
    none, every = (
        detect_archive(site / "site", alerts_per_day=budget, jobs=1) for budget in (1e-9, 1e6)
    )
    assert (len(none.moments), none.alarms) == (3, [])
    assert len(every.moments) == len(every.alarms) > 3


def with_five_alarms_each(folder, tmp_path):
    """Return the south camera, and its judged files, the last alarm of each above all before."""
    site = shutil.copytree(folder / "site", tmp_path / "site")
    paths = sorted((site / "south/judged").glob("[0-9]*.jsonl"))
    for number, path in enumerate(paths):
        header, line, *_ = path.read_text().splitlines()
        changed, kept = {**json.loads(header), "join": 0, "starts": []}, json.loads(line)
        lines = [json.dumps(changed)]
        for n in range(5):
            event = {**kept, "false_alarms_per_day": 1.0, "alarm": True, "normality": -20.0}
            if n == 4:
                event["normality"] = -30.0 - number
            place = dict.fromkeys(("first_document", "last_document", "peak_document"), 2 * n)
            lines.append(json.dumps({**event, **place}))
        path.write_text("\n".join([*lines, ""]))
    return CameraFolder(site / "south"), paths


def test_no_stretch_of_the_footage_has_more_than_twice_the_budget(judged, tmp_path):
    camera, paths = with_five_alarms_each(judged[0], tmp_path)
    seconds = len(paths) * LENGTH
    for budget, n_least in ((5, 10), (10, 20)):  # in all of the footage
        detection = ArchiveDetection(alerts_per_day=budget * 86_400 / seconds)
        found = rank_moments([camera], detection, timezone="UTC")
        assert n_least <= len(found.alarms) < 5 * len(paths)
        # Whatever is stronger than all before is one.
        assert sum(moment.normality < -25 for moment in found.alarms) == len(paths)
        held = 5 * len(paths) - len(found.alarms)
        (note,) = found.notes
        assert note.startswith(f"south: {held} more documents are below the threshold: after 10")


def test_footage_in_which_nothing_could_be_judged_counts_to_a_stretch(judged, tmp_path):
    """As it does where all is judged at once: a camera that is in the dark for hours."""
    camera, paths = with_five_alarms_each(judged[0], tmp_path)
    header = json.loads(paths[0].read_text().splitlines()[0])
    dark = json.dumps({**header, "seconds": 10 * len(paths) * LENGTH})
    half = paths[len(paths) // 2]
    n_alarms = []
    for clock in ("2000-01-01T00-00-00", half.stem.replace("-00", "-30")):
        path = half.with_stem(clock)
        path.write_text(f"{dark}\n")
        detection = ArchiveDetection(alerts_per_day=5 * 86_400 / (len(paths) * LENGTH))
        n_alarms.append(len(rank_moments([camera], detection, timezone="UTC").alarms))
        path.unlink()
    assert n_alarms[0] < n_alarms[1]


def test_what_to_expect_of_the_budget_is_said_as_detect_says_it(judged):
    folder, found = judged
    wanted = []
    for name in ("north", "south"):
        model = habitus.SceneModel.load(folder / "site" / name / "model.habitus")
        wanted.append(f"{name}: {'; '.join(model.detector(alerts_per_day=200).notes)}")
    assert found.notes == wanted
    assert "of footage cannot tell what happens 200 times a day: expect " in wanted[0]


def test_what_could_not_be_judged_is_judged_again_by_another_model(site):
    header = CameraFolder(site / "site/north").judged_path(f"{DAY}T12-02-00")
    known = json.loads(header.read_text().splitlines()[0])
    for model, reason, n in ((known["model"], "moved", 0), ("old", "moved", 1), ("old", "", 0)):
        header.write_text(json.dumps({**known, "model": model, "reason": reason}) + "\n")
        assert n_unjudged(CameraFolder(site / "site/north"), 200.0) == n


def test_one_camera_alone_has_its_share_of_the_budget(site):
    for path in (site / "site/north/judged").iterdir():
        path.unlink()
    found = detect_archive(site / "site", alerts_per_day=400, cameras=["south"], jobs=1)
    assert found.n_cameras == 1
    assert found.share == 200
    assert [m.alarm for m in found.moments] == [
        m.false_alarms_per_day <= 200 for m in found.moments
    ]
