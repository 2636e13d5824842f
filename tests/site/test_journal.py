"""The journal of a camera: whole entries, in their order, and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

from habitus.errors import FileError
from habitus.site.journal import SiteEvent, file_event, filed_events
from reference.consoles import START, entry, event_json
from reference.processes import wait_until

WRITING = """
import sys, time
from pathlib import Path
from habitus.files import written_whole
with written_whole(Path(sys.argv[1], "000001750000000-a1-0-started.json")) as temporary:
    temporary.write_text('{"id": ')
    time.sleep(600)
"""


def test_entries_come_in_their_order(tmp_path: Path):
    later, started = entry("b2", start=START + 5), entry("a1", end=None)
    ended = entry("a1")
    for one in (later, ended, started):
        file_event(tmp_path, one)
    assert [found for _, found in filed_events(tmp_path)] == [started, ended, later]


def test_what_became_an_alarm_does_not_replace_what_is_being_taken(tmp_path: Path):
    before = entry("a1", end=None, alarm=False)
    (taken,) = (file_event(tmp_path, each) for each in [before])
    file_event(tmp_path, entry("a1", end=None, alarm=True))
    file_event(tmp_path, entry("a1"))
    found = [each for _, each in filed_events(tmp_path) if isinstance(each, SiteEvent)]
    assert [(each.kind, each.alarm) for each in found] == [
        ("started", False),
        ("started", True),
        ("ended", True),
    ]
    (tmp_path / taken).unlink()  # once it is committed
    assert len(list(filed_events(tmp_path))) == 2


def test_an_entry_that_is_damaged_is_an_error(tmp_path: Path):
    path = tmp_path / file_event(tmp_path, entry())
    path.write_text('{"id": ')
    ((found, error),) = filed_events(tmp_path)
    assert found == path
    assert isinstance(error, FileError)


def test_an_entry_that_is_being_written_or_never_was_is_none(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", WRITING, str(tmp_path)]) as process:
        try:
            wait_until(lambda: _is_begun(tmp_path), "it is being written")
            assert list(filed_events(tmp_path)) == []
        finally:
            process.kill()
    assert _is_begun(tmp_path), "half of it is left"
    assert list(filed_events(tmp_path)) == []
    file_event(tmp_path, entry())
    ((_, found),) = filed_events(tmp_path)
    assert isinstance(found, SiteEvent)
    assert not _is_begun(tmp_path), "what is left is deleted with the next entry"


def test_what_0_4_left_in_a_journal_is_read(tmp_path: Path):
    folder = tmp_path / "north" / "journal"
    folder.mkdir(parents=True)
    for kind, files in (("ended", {"thumbnail": "a1.jpg"}), ("clip", {"clip": "a1.mp4"})):
        left = {"id": "a1", "kind": kind, "start": START, "end": START + 1.0, "peak": START}
        left |= {"alarm": True, "files": files, "n_bytes": 7, "thresholds": [-11.0, -9.0, -8.0]}
        left |= {"clip_start": None, "event": event_json() if kind == "ended" else {}}
        (folder / f"{START * 1000:015.0f}-a1-{kind}.json").write_text(json.dumps(left))
    clip, ended = (found for _, found in filed_events(folder))
    assert ended == entry("a1", thumbnail="a1.jpg", n_bytes=7)
    assert isinstance(clip, SiteEvent)
    assert (clip.kind, clip.alarm, clip.clip, clip.n_bytes) == ("clip", True, "a1.mp4", 7)


def test_what_an_earlier_build_left_beside_a_clip_is_read(tmp_path: Path):
    clip = entry("a1", clip="a1.mp4", n_bytes=7)
    path = tmp_path / file_event(tmp_path, clip)
    left = json.loads(path.read_text()) | {"details": {}, "normality": -12.0, "review": None}
    path.write_text(json.dumps(left))
    assert [found for _, found in filed_events(tmp_path)] == [clip]


def _is_begun(folder: Path) -> bool:
    return any(path.stat().st_size for path in folder.glob(".habitus-*"))
