import os
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import select

from habitus.jobs.fork_server import ForkServer
from habitus.site.pipe_messages import CameraState, JudgedDocument, StateChanged
from habitus.web import queries, retention, store
from habitus.web.administration import remove_camera
from habitus.web.answers import Preferences
from habitus.web.database import CameraRow, Channel, EventRow, Minute, OutboxEntry, TroubleRow
from habitus.web.preferences import write_preferences
from habitus.web.retention import keep_quota, sweep
from habitus.web.server import Console
from habitus.web.vault import Vault
from reference.consoles import START, add_camera, entry

MB = 10**6
DAY = 86_400.0


@pytest.fixture
def cameras(any_console: Console) -> Console:
    """A console with a camera and 100 MB of footage: no quota can be less than that."""
    add_camera(any_console)
    documents = any_console.settings.camera_folder("north") / "documents"
    documents.mkdir(parents=True)
    with (documents / "20250615T14.corpus").open("wb") as file:
        file.truncate(100 * MB)
    return any_console


def put(console: Console, event_id: str, start: float, review: str | None = None) -> None:
    """Add an event with a picture of 1 MB and a clip of 10 MB: so the rows say."""
    folder = console.settings.camera_folder("north") / "events"
    folder.mkdir(parents=True, exist_ok=True)
    files = {"thumbnail": f"{event_id}.jpg", "clip": f"{event_id}.mp4"}
    for name in files.values():
        (folder / name).write_bytes(b"x")
    times: dict[str, Any] = {"start": start, "end": start + 1, "peak": start}
    with console.database.transaction() as session:
        picture = entry(event_id, thumbnail=files["thumbnail"], n_bytes=MB, **times)
        clip = entry(event_id, clip=files["clip"], n_bytes=10 * MB, **times)
        store.ingest(session, "north", picture)
        store.ingest(session, "north", clip)
        session.get_one(EventRow, event_id).review = review


def left(console: Console) -> dict[str, str]:
    """What is left of each event: P for its picture, C for its clip, in rows and on disk."""
    folder = console.settings.camera_folder("north") / "events"
    found = {}
    with console.database.session() as session:
        for row in session.scalars(select(EventRow).order_by(EventRow.id)):
            names = {"P": row.thumbnail, "C": row.clip}
            for letter, suffix in {"P": "jpg", "C": "mp4"}.items():
                assert (folder / f"{row.id}.{suffix}").exists() == (names[letter] is not None)
            found[row.id] = "".join(letter for letter, name in names.items() if name)
    assert {path.name.partition(".")[0] for path in folder.iterdir()} <= set(found)
    return found


def set_quota(console: Console, quota: int) -> None:
    """Leave so many bytes for events, and half a MB for what the database takes meanwhile."""
    with console.database.transaction() as session:
        used = queries.disk_use(session, console.settings)
        others = used.bounded - used.clips - used.pictures
        write_preferences(session, Preferences(quota_bytes=others + quota + MB // 2))


def test_clips_go_first_and_what_is_unusual_last(cameras: Console) -> None:
    put(cameras, "a", START, "unusual")
    put(cameras, "b", START + 1)
    put(cameras, "c", START + 2, "normal")
    put(cameras, "d", START + 3)
    set_quota(cameras, 44 * MB)
    export = cameras.settings.data / "export-1.zip"
    with export.open("wb") as file:
        file.truncate(100 * MB)
    assert keep_quota(cameras) == retention.SweepCounts()
    export.unlink()
    set_quota(cameras, 43 * MB)
    keep_quota(cameras)
    assert left(cameras) == {"a": "PC", "b": "P", "c": "PC", "d": "PC"}
    set_quota(cameras, 24 * MB)
    keep_quota(cameras)
    assert left(cameras) == {"a": "PC", "b": "P", "c": "P", "d": "PC"}
    set_quota(cameras, 13 * MB)
    keep_quota(cameras)
    assert left(cameras) == {"a": "PC", "c": "P", "d": "P"}
    set_quota(cameras, 11 * MB)  # events have a tenth at least: a bit more than that
    keep_quota(cameras)
    assert left(cameras) == {"a": "PC", "c": ""}  # what was learnt stays
    put(cameras, "e", START + 4, "unusual")
    set_quota(cameras, 12 * MB)
    keep_quota(cameras)
    assert left(cameras) == {"a": "P", "c": "", "e": "PC"}
    put(cameras, "f", START + 5, "unusual")
    put(cameras, "g", START + 5, "unusual")
    set_quota(cameras, 12 * MB)
    keep_quota(cameras)
    assert left(cameras) == {"a": "P", "c": "", "e": "P", "f": "P", "g": "P"}


def test_the_last_minutes_of_many_cameras_share_the_quota(cameras: Console) -> None:
    with cameras.database.transaction() as session:
        write_preferences(session, Preferences(quota_bytes=400 * MB))
    folders = [cameras.settings.camera_folder(f"camera-{k}") / "recent" for k in range(2)]
    for folder in folders:
        folder.mkdir(parents=True)
        for minute in range(4):
            with (folder / f"{int(1000 * START) + 60_000 * minute}.mkv").open("wb") as file:
                file.truncate(20 * MB)
    keep_quota(cameras)  # a quarter of it, for both
    for folder in folders:
        oldest = min(int(path.stem) for path in folder.iterdir())
        assert (len(list(folder.iterdir())), oldest) == (2, int(1000 * START) + 120_000)


def test_the_quota_is_never_taken_by_footage_alone(cameras: Console) -> None:
    put(cameras, "a", START)
    documents = cameras.settings.camera_folder("north") / "documents"
    with (documents / "20250615T15.corpus").open("wb") as file:
        file.truncate(300 * MB)
    with cameras.database.transaction() as session:
        write_preferences(session, Preferences(quota_bytes=200 * MB))
    keep_quota(cameras)
    assert left(cameras) == {"a": "PC"}


def test_documents_are_thinned_before_a_clip_goes(
    cameras: Console, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they are plenty; otherwise clips go first, and documents at the end."""
    asked: list[tuple[Path, float, float]] = []
    monkeypatch.setattr(fork_server, "ask", lambda target, *thin, within: asked.append(thin))
    cameras.supervisor = Mock(fork_server=fork_server, learner=Mock(now=None))
    documents = cameras.settings.camera_folder("north") / "documents"
    put(cameras, "a", START)
    with (documents / "20250615T15.corpus").open("wb") as file:
        file.truncate(200 * MB)
    with cameras.database.transaction() as session:
        write_preferences(session, Preferences(quota_bytes=250 * MB))
    keep_quota(cameras)
    assert asked[0][0] == documents
    assert asked[0][1] == pytest.approx(1 - 61 / 300, abs=0.01)

    (documents / "20250615T15.corpus").unlink()
    asked.clear()
    with cameras.database.transaction() as session:
        write_preferences(session, Preferences(quota_bytes=100 * MB))
    retention.thin_documents(cameras, 0, retention.PLENTY)
    assert asked == [], "100 MB are not plenty"
    keep_quota(cameras)
    assert len(asked) == 1


def test_old_events_and_rows_are_deleted(cameras: Console) -> None:
    now = START + 31 * DAY
    for event_id, start in {"old": START, "new": now - DAY}.items():
        put(cameras, event_id, start)
        put(cameras, f"{event_id}-normal", start, "normal")
        put(cameras, f"{event_id}-unusual", start, "unusual")
    buffer = store.MinuteBuffer()
    for start in (START, now - DAY):
        buffer.add("north", JudgedDocument(start, -1.0, -9.0, 1, (), 1.0))
    with cameras.database.transaction() as session:
        buffer.write(session)
        store.set_state(session, "north", StateChanged(CameraState.LOST, START))
        store.set_state(session, "north", StateChanged(CameraState.WATCHING, START + 1))
    sweep(cameras, now)
    assert left(cameras) == {
        "old-normal": "",
        "old-unusual": "PC",
        "new": "PC",
        "new-normal": "PC",
        "new-unusual": "PC",
    }
    with cameras.database.session() as session:
        assert len(session.scalars(select(Minute)).all()) == 1
        assert session.scalars(select(TroubleRow)).all() == []
        assert session.scalars(select(OutboxEntry)).all() == []


def test_what_is_still_to_be_told_is_kept_however_old_it_is(cameras: Console) -> None:
    fields = {"secret_settings": b"", "shown_settings": {}, "cameras": [], "enabled": True}
    with cameras.database.transaction() as session:
        channel = Channel(name="Hook", kind="webhook", **fields)
        session.add(channel)
        session.flush()
        for outcome in ("waiting", "held", "in digest", "sent", "given up"):
            row = {"subject": outcome, "outcome": outcome, "kind": "started", "body": {}}
            once = {"created": START, "sent": None, "attempts": 0, "error": ""}
            session.add(OutboxEntry(channel_id=channel.id, **row, **once))
    sweep(cameras, START + 31 * DAY)
    with cameras.database.session() as session:
        assert set(session.scalars(select(OutboxEntry.outcome))) == {"waiting", "held"}


def aged(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    written = time.time() - days * DAY
    os.utime(path, (written, written))
    return path


def test_files_that_nobody_knows_are_swept(cameras: Console) -> None:
    put(cameras, "known", time.time())
    folder = cameras.settings.camera_folder("north")
    used = aged(cameras.settings.uploads / "used.mp4", 40)
    add_camera(cameras, "played", address=str(used), kind="playback")
    old = [
        aged(folder / "events" / "gone.jpg", 1),
        aged(folder / "events" / "known.heat.jpg", 1),
        aged(folder / "documents" / "20250615T15.corpus", 9),
        aged(cameras.settings.uploads / "unused.mp4", 2),
        aged(folder / "journal" / "1.damaged", 31),
    ]
    kept = [
        used,
        aged(folder / "events" / "known.jpg", 1),
        aged(folder / "events" / "fresh.jpg", 0),
        aged(folder / "documents" / "20250615T16.corpus", 7.5),  # a day more than is learnt from
        aged(cameras.settings.uploads / "fresh.mp4", 0.1),
        aged(folder / "journal" / "1.json", 31),
    ]
    assert sweep(cameras).files == len(old)
    assert [path for path in old if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []


def test_a_disk_that_others_fill_costs_clips_and_nothing_that_was_called_unusual(
    cameras: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cameras, "a", START, "unusual")
    put(cameras, "b", START + 1)
    put(cameras, "c", START + 2)
    disk = retention.shutil.disk_usage("/")

    def leave(free: int) -> None:
        usage = disk._replace(total=100_000 * MB, free=free)
        monkeypatch.setattr(retention.shutil, "disk_usage", lambda folder: usage)

    leave(retention.LEAST_FREE)
    assert keep_quota(cameras) == retention.SweepCounts()
    assert cameras.bulletin.notices() == []
    leave(retention.LEAST_FREE - 5 * MB)
    keep_quota(cameras)
    assert left(cameras) == {"a": "PC", "b": "P", "c": "PC"}
    leave(0)
    keep_quota(cameras)
    assert left(cameras) == {"a": "PC"}
    assert "nearly full" in cameras.bulletin.notices()[0].text


def test_a_full_disk_costs_no_clip_where_thinner_documents_make_room(
    cameras: Console, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cameras, "a", START)
    documents = cameras.settings.camera_folder("north") / "documents"
    with (documents / "20250615T15.corpus").open("wb") as file:
        file.truncate(100 * MB)
    disk, free = retention.shutil.disk_usage("/"), [retention.LEAST_FREE - 50 * MB]

    def thin(target: str, folder: Path, share: float, now: float, *, within: float) -> None:
        free[0] += round((1 - share) * 200 * MB)

    def usage(folder: Path) -> Any:
        return disk._replace(total=100_000 * MB, free=free[0])

    monkeypatch.setattr(fork_server, "ask", thin)
    monkeypatch.setattr(retention.shutil, "disk_usage", usage)
    cameras.supervisor = Mock(fork_server=fork_server, learner=Mock(now=None))
    keep_quota(cameras)
    assert free == [retention.LEAST_FREE]
    assert left(cameras) == {"a": "PC"}


def test_uploads_move_with_the_data_folder(cameras: Console) -> None:
    used = aged(cameras.settings.uploads / "used.mp4", 40)
    address = "/before/uploads/used.mp4"
    add_camera(cameras, "played", address=address, kind="playback")
    sweep(cameras)
    assert cameras.settings.located(address) == str(used.resolve())
    for other in ("/before/elsewhere/used.mp4", "rtsp://192.0.2.1/uploads/used.mp4"):
        assert cameras.settings.located(other) == other


def test_where_the_key_is_another_no_upload_is_deleted(cameras: Console) -> None:
    upload = aged(cameras.settings.uploads / "of-whom.mp4", 40)
    sealed = Vault(Fernet.generate_key()).seal(str(upload))
    with cameras.database.transaction() as session:
        session.get_one(CameraRow, "north").secret_address = sealed
    sweep(cameras)
    assert upload.exists()


def test_a_removed_camera_is_swept_though_the_console_was_killed(cameras: Console) -> None:
    put(cameras, "a", time.time())
    folder = cameras.settings.camera_folder("north")
    other = aged(cameras.settings.camera_folder("of-another-database") / "model-1.habitus", 9)
    remove_camera(cameras, "me", "north")
    assert folder.is_dir()
    sweep(cameras)
    assert not folder.exists()
    assert other.exists(), "it was not removed by anybody"


def test_a_recording_of_long_ago_is_kept_as_long_as_others(cameras: Console) -> None:
    added = time.time()
    with cameras.database.transaction() as session:
        session.get_one(CameraRow, "north").created = added
    put(cameras, "a", added - 60 * DAY)
    sweep(cameras, added + 29 * DAY)
    assert left(cameras) == {"a": "PC"}
    sweep(cameras, added + 31 * DAY)
    assert left(cameras) == {}
