"""Archives end to end: what is new is read, learnt and judged, once, whatever happens meanwhile."""

import json
import os
import pickle
import resource
import shutil
import signal
import sys
from pathlib import Path

import pytest

import habitus
from habitus.corpus import Corpus
from habitus.corpus.clocks import clock_text
from habitus.corpus.documents import shard_bytes
from habitus.errors import FileError, InvalidInputError
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_file
from habitus.jobs.workers import Task
from habitus.scene import SceneModel
from habitus.scene.habit_model import HALF_LIFE
from habitus.site.camera_models import learnt_of
from habitus.site.operations import detect_archive, learn_archive, report_archive
from habitus.site.pattern import Pattern, Recording, find_recordings
from habitus.site.places import FoundFile, look_at
from habitus.site.shard_judging import ArchiveDetection
from habitus.site.shard_reading import ReadingTask, read_new, read_recording
from habitus.site.shard_store import ArchiveFolder, CameraFolder, set_aside
from habitus.video import Source
from reference.archives import (
    DAY,
    LENGTH,
    PATTERN,
    HereWorkers,
    clock,
    copied,
    put,
    record,
    recorded,
    settled,
)
from reference.made_once import made_once
from reference.processes import wait_until

OPTIONS = {
    "learning": habitus.LearningSettings(4, 2, n_restarts=1),
    "reading": habitus.ReadingSettings(jobs=1),
    "timezone": "UTC",
}
"""Small models, one process."""
AS_USUAL = {"patterns": [], "timezone": None, "documents": {}, "fast": False}
"""How an archive reads its recordings."""


@pytest.fixture(scope="module")
def masters(tmp_path_factory):
    """Recordings to copy: two normal ones, one in which something goes wrong, one larger."""
    return recorded(tmp_path_factory)


@pytest.fixture(scope="module")
def learnt(masters, tmp_path_factory):
    """Recordings of two cameras, and the archive that was learnt from them; not to be changed."""

    def make(folder):
        for camera in ("north", "south"):
            for minute in range(3):
                put(folder / "recordings", camera, minute, masters / f"{minute % 2}.mp4")
        (folder / "result").write_bytes(pickle.dumps(learn(folder)))

    folder = made_once(tmp_path_factory, "learnt", make)
    return folder, pickle.loads((folder / "result").read_bytes())  # noqa: S301 - our own


@pytest.fixture
def site(learnt, tmp_path):
    """A copy of the recordings and of the archive, to be changed."""
    return copied(learnt[0], tmp_path / "copy")


def learn(folder, **options):
    pattern = f"{folder}/recordings/{PATTERN}"
    return learn_archive(pattern, output=folder / "site", **{**OPTIONS, **options})


def shards_of(folder, camera):
    return CameraFolder(folder / "site" / camera).shards()


def contents(folder):
    """Every file of a folder, and when it was written."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_each_recording_is_a_shard_with_the_documents_of_extract(learnt, masters):
    folder, result = learnt
    assert result.reading.n_read == 6
    assert result.reading.seconds == 6 * LENGTH
    shard = shards_of(folder, "north")[1]
    assert shard.path.name == f"{DAY}T12-01-00.corpus"
    corpus, expected = (
        Corpus.load(shard.path),
        habitus.extract(masters / "1.mp4", reading=habitus.ReadingSettings(jobs=1)).corpus,
    )
    assert (corpus.counts != expected.counts).nnz == 0
    assert corpus.times.tolist() == (expected.times + shard.start).tolist()
    # As the name of the recording says, whatever the clock of this machine.
    assert {clock_text(minute)[:-1] for minute in corpus.clocks} == {f"{DAY}T12:0"}
    assert corpus.clocks[0] % 60 == 1
    assert corpus.settings == expected.settings
    assert (corpus.picture == expected.picture).all()


def test_extracting_here_is_what_processes_extract(masters):
    here, elsewhere = (
        extract_file(Source(str(masters / "0.mp4"))),
        habitus.extract(masters / "0.mp4"),
    )
    assert (here.corpus.counts != elsewhere.corpus.counts).nnz == 0
    assert (here.corpus.picture == elsewhere.corpus.picture).all()
    assert here.notes == elsewhere.notes


def test_a_model_is_to_the_byte_what_learn_makes_of_the_shards(learnt, tmp_path):
    folder, result = learnt
    assert result.learning.learnt == ["north", "south"]
    paths = [shard.path for shard in shards_of(folder, "north")]
    options = {name: value for name, value in OPTIONS.items() if name != "timezone"}
    habitus.learn(paths, output=tmp_path / "model", half_life=HALF_LIFE, **options)
    assert (tmp_path / "model").read_bytes() == (folder / "site/north/model.habitus").read_bytes()


def test_a_second_run_reads_nothing_and_writes_nothing(site):
    before = contents(site / "site")
    result = learn(site)
    assert (result.reading.n_read, result.reading.n_known) == (0, 6)
    assert (result.learning.learnt, result.learning.known) == ([], ["north", "south"])
    assert contents(site / "site") == before


def test_patterns_and_time_zone_are_remembered(site):
    options = {name: value for name, value in OPTIONS.items() if name != "timezone"}
    result = learn_archive(output=site / "site", **options)
    assert (result.reading.n_read, result.learning.known) == (0, ["north", "south"])


def test_several_processes_make_the_same_files(learnt, tmp_path):
    folder, _ = learnt
    pattern = f"{folder}/recordings/{PATTERN}"
    learn_archive(
        pattern, output=tmp_path / "site", **{**OPTIONS, "reading": habitus.ReadingSettings(jobs=2)}
    )
    wanted = {name: found for name, (found, _) in contents(folder / "site").items()}
    assert {name: found for name, (found, _) in contents(tmp_path / "site").items()} == wanted


def test_late_and_replaced_recordings_are_read_alone(site, masters):
    late = put(site / "recordings", "south", 3, masters / "1.mp4")
    replaced = put(site / "recordings", "north", 2, masters / "1.mp4")
    result = learn(site)
    assert (result.reading.n_read, result.reading.n_known) == (2, 5)
    assert result.learning.learnt == ["north", "south"]
    assert [shard.name for shard in shards_of(site, "south")][-1] == str(late)
    new = shards_of(site, "north")[2]
    assert new.origin["size"] == replaced.stat().st_size
    assert (Corpus.load(new.path).counts != extracted(masters / "1.mp4").counts).nnz == 0


def extracted(path):
    return extract_file(Source(str(path))).corpus


def test_documents_outlive_their_recording(site):
    before = (site / "site/north/model.habitus").read_bytes()
    (site / f"recordings/north/{DAY}/{clock(1)}.mp4").unlink()
    result = learn(site)
    assert result.reading.n_read == 0
    assert "north" in result.learning.known
    assert (site / "site/north/model.habitus").read_bytes() == before


def test_a_recording_that_is_being_written_waits(site, masters):
    path = put(site / "recordings", "north", 3, masters / "1.mp4")
    os.utime(path)  # changed just now
    result = learn(site)
    (waiting,) = result.reading.waiting
    assert str(path) in waiting
    assert "changed less than 30 s ago; left for the next run" in waiting
    assert len(shards_of(site, "north")) == 3
    settled(path)
    assert learn(site).reading.n_read == 1


def read_here(site, **options):
    recordings = find_recordings([Pattern(f"{site}/recordings/{PATTERN}")], timezone="UTC")
    return read_new(ArchiveFolder(site / "site"), recordings, AS_USUAL, HereWorkers(), **options)


def without_index(path):
    """Cut an MP4 before its index, as long as it is being written."""
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"moov") - 4])
    return path


def test_a_recording_without_its_index_waits_for_a_day(site, masters):
    path = without_index(put(site / "recordings", "north", 3, masters / "1.mp4"))
    settled(path, 3600)
    (waiting,) = read_here(site).waiting
    assert "it has no index: still being written; left for the next run" in waiting
    settled(path, 2 * 86_400)
    assert read_here(site).waiting == []
    (unread,) = CameraFolder(site / "site/north").unread().values()
    assert unread["reason"] == "it has no index: it was cut short"


def test_a_recording_that_changes_while_it_is_read_waits(masters, tmp_path):
    put(tmp_path / "recordings", "north", 0, masters / "0.mp4")
    (recording,) = find_recordings([Pattern(f"{tmp_path}/recordings/{PATTERN}")])
    tasks = []

    class Growing(HereWorkers):
        def as_completed(self, function, items):
            for number, task in enumerate(items):
                tasks.append(task)
                with Path(recording.file.address).open("ab") as file:
                    file.write(b"more")
                yield number, function(task)

    found = read_new(ArchiveFolder(tmp_path / "site"), [recording], AS_USUAL, Growing(), settled=0)
    (waiting,) = found.waiting
    assert "it changed while it was read" in waiting
    assert CameraFolder(tmp_path / "site/north").shards() == []
    again = tasks[0]._replace(recording=recording._replace(file=look_at(recording.file.address)))
    assert read_recording(again).contents


def test_a_recording_that_cannot_be_read_is_named_and_the_rest_goes_on(site, masters):
    bad = put(site / "recordings", "north", 3, masters / "1.mp4")
    bad.write_bytes(b"no video at all" * 100)
    settled(bad, 3 * 86_400)
    put(site / "recordings", "south", 3, masters / "1.mp4")
    result = learn(site)
    assert result.reading.n_read == 1
    assert result.learning.learnt == ["south"]
    (note,) = [note for note in result.notes if note.startswith("north: ")]
    assert str(bad) in note
    before = contents(site / "site")
    assert read_here(site).n_known == 8  # remembered, not tried again
    assert contents(site / "site") == before
    shutil.copyfile(masters / "1.mp4", bad)
    settled(bad)
    assert read_here(site).n_read == 1
    assert CameraFolder(site / "site/north").unread() == {}


def test_a_recording_whose_worker_dies_each_time_is_named_and_the_rest_goes_on(masters, tmp_path):
    for minute in range(3):
        put(tmp_path / "recordings", "north", minute, masters / "0.mp4")
    site, started = ArchiveFolder(tmp_path / "site"), []

    class Dying(HereWorkers):
        def as_completed(self, function, items):
            for number, item in enumerate(items):
                started.append(item.name)
                task = Task(number, item)
                while item.name.endswith(f"{clock(1)}.mp4"):
                    task.died()
                yield number, function(item)

    recordings = find_recordings([Pattern(f"{tmp_path}/recordings/{PATTERN}")])
    assert read_new(site, recordings, AS_USUAL, Dying()).n_read == 2
    assert len(started) == 3
    (unread,) = site.camera("north").unread().values()
    assert unread["reason"].startswith("the process that worked on it died 3 times")


def test_a_recording_that_cannot_be_read_is_forgotten_once_it_is_gone(site, masters):
    bad = put(site / "recordings", "north", 3, masters / "1.mp4")
    bad.write_bytes(b"no video at all")
    settled(bad, 3 * 86_400)
    read_here(site)
    assert len(CameraFolder(site / "site/north").unread()) == 1
    bad.unlink()
    read_here(site)
    assert CameraFolder(site / "site/north").unread() == {}


def test_a_damaged_shard_is_read_again(site):
    wanted = (site / "site/north/model.habitus").read_bytes()
    shards = [shard.path for shard in shards_of(site, "north")]
    kept, documents = shards[0].read_bytes(), Corpus.load(shards[0])
    shards[0].write_bytes(kept[:-20] + bytes(20))  # the header is whole
    shards[1].write_bytes(b"")
    (site / "site/north/learnt.json").unlink()
    result = learn(site)
    assert result.reading.n_read == 2
    assert result.learning.learnt == ["north"]
    assert (Corpus.load(shards[0]).counts != documents.counts).nnz == 0
    assert (site / "site/north/model.habitus").read_bytes() == wanted
    assert not list((site / "site/north/shards").glob("*.damaged"))
    assert not result.notes


def test_a_shard_that_the_disk_does_not_give_is_not_set_aside(tmp_path):
    """A folder in its place: permission does not keep root from reading."""
    path = tmp_path / "2026-11-16T12-00-00.corpus"
    assert not set_aside(path)
    path.mkdir()
    assert not set_aside(path)
    assert path.is_dir()


def test_a_damaged_shard_whose_recording_is_gone_is_named(site):
    shards = [shard.path for shard in shards_of(site, "north")]
    shards[0].write_bytes(shards[0].read_bytes()[:-20] + bytes(20))
    shards[1].write_bytes(b"")
    for path in (site / "recordings/north").rglob("*.mp4"):
        path.unlink()
    (site / "site/north/learnt.json").unlink()
    for _ in range(2):
        result = learn(site)
        for path in shards[:2]:
            assert any(f"{path.stem}: the documents are damaged" in note for note in result.notes)
    assert learnt_of(CameraFolder(site / "site/north"))["documents"] == LENGTH


def test_a_new_model_begins_where_the_frame_size_changes(site, masters):
    for minute in (3, 4):
        put(site / "recordings", "north", minute, masters / "large.mp4")
    result = learn(site)
    text = f"frames of 192x144 until {DAY}T12-02-00, of 256x192 since {DAY}T12-03-00"
    assert f"north: {text}: a new model begins there" in result.notes
    (north, south) = result.overview.cameras
    assert [era["frames"] for era in north.eras] == ["192x144", "256x192"]
    assert [era["frames"] for era in south.eras] == ["192x144"]
    assert north.learnt["documents"] == 2 * LENGTH
    model = habitus.SceneModel.load(site / "site/north/model.habitus").model
    assert (model.vocabulary_.width, model.vocabulary_.height) == (256, 192)


def test_times_that_overlap_are_named_and_not_learnt(site, masters):
    long = record(site / "long.mp4", seconds=122)
    put(site / "recordings", "north", 0, long)
    result = learn(site)
    (trouble,) = result.learning.troubles
    assert str(trouble).startswith("north: times overlap: ")
    assert "lasts 2:02, but" in trouble
    assert "begins 1:00 after it" in trouble
    assert result.learning.known == ["south"]


def test_the_last_days_alone_can_be_learnt_from(site, masters):
    old = site / "recordings/north/2026-11-01/120000.mp4"
    old.parent.mkdir()
    shutil.copyfile(masters / "0.mp4", old)
    settled(old)
    result = learn(site, days=2)
    (north, _) = result.overview.cameras
    assert (north.recordings, north.learnt["documents"]) == (4, 3 * LENGTH)
    assert north.learnt["first"] == f"{DAY}T12-00-00"
    with pytest.raises(InvalidInputError, match="days must be above 0"):
        learn(site, days=0)


def test_older_recordings_count_less_unless_nothing_is_to_fade(site):
    def n_documents(**options):
        learn(site, cameras=["north"], **options)
        return SceneModel.load(site / "site/north/model.habitus").habits.counts.n_documents

    assert n_documents(half_life=None) == 3 * LENGTH
    assert n_documents(half_life=float(LENGTH)) < n_documents() < 3 * LENGTH
    with pytest.raises(InvalidInputError, match="half_life must be above 0"):
        learn(site, half_life=0.0)


def test_other_settings_read_everything_anew(site):
    result = learn(site, documents=habitus.DocumentSettings(cell=16))
    assert (result.reading.n_read, result.learning.learnt) == (6, ["north", "south"])


def test_one_camera_can_be_done_alone(masters, tmp_path):
    for camera in ("north", "south"):
        put(tmp_path / "recordings", camera, 0, masters / "0.mp4")
    result = learn(tmp_path, cameras=["south"])
    assert [camera.camera for camera in result.overview.cameras] == ["south"]
    os.utime(put(tmp_path / "recordings", "west", 0, masters / "0.mp4"))
    later = learn(tmp_path, cameras=["west"], learning=habitus.LearningSettings(3))
    assert len(later.reading.waiting) == 1
    assert later.learning.learnt == []


def test_two_runs_at_a_time_are_refused(site):
    with (
        ArchiveFolder(site / "site").alone(),
        pytest.raises(InvalidInputError, match="another habitus works on"),
    ):
        learn(site)


def test_a_full_disk_leaves_nothing_half_written(masters, tmp_path):
    put(tmp_path / "recordings", "north", 0, masters / "0.mp4")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(InvalidInputError, match="cannot write"):
            read_here(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert read_here(tmp_path).n_read == 1


def test_a_run_that_was_killed_goes_on(learnt, masters, tmp_path, start):
    for minute in range(3):
        put(tmp_path / "recordings", "north", minute, masters / f"{minute % 2}.mp4")
    pattern = f"{tmp_path}/recordings/{PATTERN}"
    command = [sys.executable, "-m", "habitus", "archive", "learn", pattern]
    command += ["-o", tmp_path / "site", "--jobs", 1, "--timezone", "UTC"]
    process = start(command)
    shards = tmp_path / "site/north/shards"
    wait_until(lambda: list(shards.glob("[0-9]*.corpus")), "a shard is written")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    n_kept = len(list(shards.glob("[0-9]*.corpus")))
    result = learn(tmp_path)
    assert result.reading.n_known == n_kept
    assert result.reading.n_read == 3 - n_kept
    wanted = CameraFolder(learnt[0] / "site/north")
    for shard in CameraFolder(tmp_path / "site/north").shards():
        known = Corpus.load(wanted.shard_path(shard.clock))
        assert (Corpus.load(shard.path).counts != known.counts).nnz == 0


def test_a_folder_that_is_no_archive_is_refused(tmp_path):
    for function in (detect_archive, report_archive):
        with pytest.raises(InvalidInputError, match="found nothing"):
            function(tmp_path / "absent")
        with pytest.raises(InvalidInputError, match="found another folder"):
            function(tmp_path)
        (tmp_path / "recording.mp4").touch()
        with pytest.raises(InvalidInputError, match="found a file"):
            function(tmp_path / "recording.mp4")
    with pytest.raises(InvalidInputError, match="say where the recordings are"):
        learn_archive(output=tmp_path)


def test_the_overview_is_plain_values(learnt):
    folder, result = learnt
    found = json.loads(json.dumps(report_archive(folder / "site").to_json()))
    assert found["hours"] == pytest.approx(6 * LENGTH / 3600, rel=1e-9)
    assert [camera["camera"] for camera in found["cameras"]] == ["north", "south"]
    assert found["cameras"][0]["covered"] == {
        f"{DAY}T12": pytest.approx(3 * LENGTH / 3600, abs=1e-3)
    }
    assert result.overview.in_trouble == []
    assert found["cameras"][0]["until"] == f"{DAY}T12-02-{LENGTH}"


def test_a_frame_size_that_changes_stops_no_other_camera(site, masters):
    """The night's first command is `detect`, before anything is learnt of the new frames."""
    put(site / "recordings", "north", 3, masters / "large.mp4")
    put(site / "recordings", "south", 3, masters / "wrong.mp4")
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1)
    text = "frames of 256x192, those of the model are of 192x144: learn the camera again"
    assert any(trouble.endswith(text) for trouble in found.troubles)
    assert {moment.camera for moment in found.moments} == {"south"}
    learn(site)
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1)
    assert not [trouble for trouble in found.troubles if trouble.endswith(text)]


def test_a_damaged_model_is_learnt_again_and_stops_no_other_camera(site):
    model = site / "site/north/model.habitus"
    whole = model.read_bytes()
    model.write_bytes(whole[:-20] + bytes(20))
    found = detect_archive(site / "site", alerts_per_day=400, jobs=1)
    (trouble,) = (trouble for trouble in found.troubles if trouble.startswith("north: "))
    assert "model.habitus: the contents do not match their checksum" in str(trouble)
    assert found.n_judged == 3
    assert learn(site).learning.learnt == ["north"]
    assert model.read_bytes() == whole
    assert detect_archive(site / "site", alerts_per_day=400, jobs=1).n_judged == 3


def test_damaged_settings_are_an_error_until_patterns_are_given_again(site):
    """Without its patterns an archive has no recordings, and was judged without a word."""
    settings = site / "site/archive.json"
    whole = settings.read_bytes()
    settings.write_bytes(whole[:1])
    for use in (detect_archive, report_archive, lambda folder: learn_archive(output=folder)):
        with pytest.raises(FileError, match=r"archive\.json: damaged: learn with the patterns"):
            use(site / "site")
    learn(site)
    assert settings.read_bytes() == whole


def test_where_no_camera_has_a_model_nothing_is_said_to_be_judged():
    assert ArchiveDetection().summary() == "no alarms: nothing could be judged"


def test_a_recording_that_is_named_otherwise_is_not_counted_twice(site):
    (shard, *_) = shards_of(site, "north")
    file = site / "recordings/north" / DAY / f"{clock(0)}.mp4"
    file.rename(file.with_name(f"{clock(9)}.mp4"))
    result = learn(site)
    assert result.reading.n_read == 1
    assert [each.clock[-8:] for each in shards_of(site, "north")] == [
        "12-01-00",
        "12-02-00",
        "12-09-00",
    ]
    assert not shard.path.exists()


def test_recordings_of_one_size_are_not_taken_for_each_other(site):
    """Where a place tells nothing but the size: documents of one that is gone are kept."""
    camera, (shard, *_) = CameraFolder(site / "site/north"), shards_of(site, "north")
    origin = {**shard.origin, "version": ""}
    camera.put_shard(shard.clock, shard_bytes(Corpus.load(shard.path), {"recording": origin}))
    file = FoundFile("9.mp4", f"{site}/9.mp4", origin["size"], "", None)
    other = Recording("north", f"{DAY}T12-09-00", shard.start + 540, file)
    read_new(ArchiveFolder(site / "site"), [other], AS_USUAL, HereWorkers())
    assert shard.path.exists()


def test_a_clock_that_is_ahead_keeps_no_recording_waiting(site, masters):
    ahead = put(site / "recordings", "north", 3, masters / "0.mp4")
    settled(ahead, -365 * 86_400)
    assert read_here(site).n_read == 1
    settled(put(site / "recordings", "north", 4, masters / "0.mp4"), -5)
    assert read_here(site).n_read == 0


def test_what_could_not_be_read_is_tried_again_after_a_day(site):
    bad = site / "recordings/north" / DAY / f"{clock(3)}.mp4"
    bad.write_bytes(b"no video at all")
    settled(bad, 3 * 86_400)
    read_here(site)
    camera = CameraFolder(site / "site/north")
    (first,) = camera.unread().values()
    read_here(site)
    assert list(camera.unread().values()) == [first]
    camera.put_unread({key: each | {"tried": 0.0} for key, each in camera.unread().items()})
    read_here(site)
    (again,) = camera.unread().values()
    assert again["tried"] > first["tried"]


def test_a_recording_that_this_machine_may_not_read_is_left_for_the_next_run(site, monkeypatch):
    """A folder in its place: permission does not keep root from reading."""
    file = site / "recordings/north" / DAY / f"{clock(0)}.mp4"
    recording = find_recordings([Pattern(f"{site}/recordings/{PATTERN}")])[0]
    file.unlink()
    file.mkdir()
    read = read_recording(ReadingTask(recording, DocumentSettings(), False, ""))
    assert read.later
    assert read.reason == "cannot be read here: Is a directory"
