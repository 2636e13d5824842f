"""The file of events: nothing is lost on a full disk, by a torn line, or by log rotation."""

import contextlib
import itertools
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from habitus.errors import InvalidInputError
from habitus.site.event_log import EventLog, Thumbnail, lines_from_the_end
from reference.processes import wait_until

EVENT = {"habitus": "event", "version": 1}


def line(n, size=0):
    return json.dumps({**EVENT, "n": n, "filler": "x" * size})


def numbers(path):
    return [json.loads(text)["n"] for text in path.read_text().splitlines()]


@contextlib.contextmanager
def opened(path):
    log = EventLog(path)
    try:
        yield log
    finally:
        log.close()


class Notes:
    """All that a log has said so far."""

    def __init__(self, log):
        self.log, self.said = log, []

    def __contains__(self, text):
        self.said += self.log.notes()
        return any(text in note for note in self.said)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KiB; where none can be mounted, a folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["/bin/mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
    yield folder
    if mounted:
        subprocess.run(["/bin/umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def filled(disk):
    """Fill a small disk, or where it is a folder let no file grow."""
    if os.path.ismount(disk):
        other = disk / "other"
        other.write_bytes(bytes(60_000 - 4096))
        yield "No space left on device"
        other.unlink()
    else:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        yield "File too large"
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_events_wait_while_the_disk_is_full(small_disk):
    path = small_disk / "events.jsonl"
    with opened(path) as log:
        notes = Notes(log)
        log.add(line(0))
        wait_until(lambda: path.read_text().count("\n") == 1, "the first line")
        with filled(small_disk) as reason:
            for n in range(1, 4):
                log.add(line(n, size=9000))
            wait_until(lambda: f"{reason}; events wait" in notes, "a note")
            assert numbers(path) == [0]  # nothing of a line that does not fit
        wait_until(lambda: path.read_text().count("\n") == 4, "the other lines")
        wait_until(lambda: "is written again" in notes, "a note")
    assert numbers(path) == [0, 1, 2, 3]
    assert len(notes.said) == 2


def test_a_file_that_may_not_grow(tmp_path):
    """The same without a disk of one's own, and what cannot be written at the end is returned."""
    path = tmp_path / "events.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = EventLog(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        log.add(line(0))
        log.add(line(1, size=9000))
        notes = Notes(log)
        wait_until(lambda: "events wait in memory" in notes, "a note")
        assert numbers(path) == [0]
        assert log.close() == [line(1, size=9000)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("taken", ["folder", "name"])
def test_a_picture_that_cannot_be_written_is_a_note(tmp_path, taken):
    path, folder = tmp_path / "events.jsonl", tmp_path / "thumbnails"
    if taken == "folder":
        folder.write_text("not a folder")
    else:
        (folder / "0.jpg").mkdir(parents=True)
    with opened(path) as log:
        notes = Notes(log)
        log.add(line(0), Thumbnail(folder / "0.jpg", b"picture"))
        log.add(line(1))
        wait_until(lambda: path.read_text().count("\n") == 2, "both lines")
        wait_until(lambda: "no picture" in notes, "a note")
    assert numbers(path) == [0, 1]


def test_the_line_is_written_before_the_picture(tmp_path):
    """A pipe that nobody reads stands for a disk that does not answer: the picture waits."""
    path, folder = tmp_path / "events.jsonl", tmp_path / "thumbnails"
    os.mkfifo(path)
    log = EventLog(path)
    log.add(line(0), Thumbnail(folder / "0.jpg", b"picture"))
    assert not folder.exists()
    assert path.read_text() == f"{line(0)}\n"
    wait_until((folder / "0.jpg").exists, "the picture")
    assert log.close() == []


@pytest.mark.parametrize(
    ("before", "rest"),
    [
        *itertools.product([[], [0, 1]], [line(2)[:-5], '{"hab', line(2, size=200_000)[:-1]]),
        ([0, 1], "\0" * 100),  # as some file systems leave it
    ],
)
def test_a_torn_last_line_is_set_apart(tmp_path, before, rest):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"{line(n)}\n" for n in before) + rest)
    with opened(path) as log:
        (note,) = log.notes()
        assert numbers(path) == before
        log.add(line(7))
    assert numbers(path) == [*before, 7]
    assert Path(f"{path}.torn").read_text() == f"{rest}\n"
    assert f"its {len(rest)} bytes are in {path}.torn" in note


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(line(0))
    with opened(path) as log:
        log.add(line(1))
        assert list(log.notes()) == []
    assert numbers(path) == [0, 1]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_process_that_is_killed_leaves_whole_lines(tmp_path):
    path = tmp_path / "events.jsonl"
    code = (
        "import itertools, json, sys, time\n"
        "from pathlib import Path\n"
        "from habitus.site.event_log import EventLog\n"
        "log = EventLog(Path(sys.argv[1]))\n"
        "for n in itertools.count():\n"
        "    log.add(json.dumps({'habitus': 'event', 'n': n, 'filler': 'x' * 5000}))\n"
        "    time.sleep(0.001)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as process:
        wait_until(lambda: path.exists() and path.stat().st_size > 50_000, "some lines")
        process.kill()
    with opened(path) as log:
        log.add(line(-1))
    found = numbers(path)
    assert found == [*range(len(found) - 1), -1]


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_lines_are_read_from_the_end(tmp_path, monkeypatch, block):
    monkeypatch.setattr("habitus.site.event_log.BLOCK", block)
    path = tmp_path / "events.jsonl"
    for text in ("", "\n", "one", "one\n", "one\n\nthree\nfo", "one\ntwo\n"):
        path.write_text(text)
        found = [line.decode() for line in lines_from_the_end(path)]
        assert found == text.split("\n")[::-1]
    assert list(lines_from_the_end(tmp_path / "none")) == []


def test_a_renamed_file_is_opened_anew(tmp_path):
    path, old = tmp_path / "events.jsonl", tmp_path / "events.jsonl.1"
    with opened(path) as log:
        log.add(line(0))
        wait_until(lambda: path.read_text().count("\n") == 1, "the first line")
        path.rename(old)
        log.add(line(1))
        wait_until(path.exists, "a new file")
    assert (numbers(old), numbers(path)) == ([0], [1])


def test_a_folder_that_is_away_for_a_while(tmp_path):
    folder = tmp_path / "mounted"
    folder.mkdir()
    path = folder / "events.jsonl"
    with opened(path) as log:
        folder.rename(tmp_path / "away")
        log.add(line(0))
        notes = Notes(log)
        wait_until(lambda: "No such file or directory; events wait" in notes, "a note")
        (tmp_path / "away").rename(folder)
        wait_until(lambda: path.read_text().count("\n") == 1, "the line")
    assert numbers(path) == [0]


def test_of_many_events_that_wait_the_later_ones_wait_without_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr("habitus.site.event_log.PICTURES_WAITING", 2)
    folder, away = tmp_path / "mounted", tmp_path / "away"
    folder.mkdir()
    log = EventLog(folder / "events.jsonl")
    folder.rename(away)
    for n in range(4):
        log.add(line(n), Thumbnail(folder / "thumbnails" / f"{n}.jpg", b"picture"))
    away.rename(folder)
    assert log.close() == []
    assert numbers(folder / "events.jsonl") == [0, 1, 2, 3]
    assert sorted(p.name for p in (folder / "thumbnails").iterdir()) == ["0.jpg", "1.jpg"]


@pytest.mark.parametrize(
    "contents", [b"\x89PNG\r\n" * 9, b"a,b\n1,2\n3,4\n5,6\n", b'{"a": 1, "b": 2}\n']
)
def test_a_file_of_something_else_is_left_alone(tmp_path, contents):
    path = tmp_path / "other"
    path.write_bytes(contents)
    with pytest.raises(InvalidInputError, match="it is not a file of events"):
        EventLog(path)
    assert path.read_bytes() == contents


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(InvalidInputError, match="No such file or directory"):
        EventLog(tmp_path / "absent" / "events.jsonl")
