import asyncio
import contextlib
import io
import json
import logging
import sqlite3
import threading
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect
from sqlalchemy import select

import habitus
from habitus.site.pipe_messages import JudgedDocument
from habitus.web import server_log, store
from habitus.web.backup import back_up, check, put_in_place, restore, waiting
from habitus.web.database import Base, CameraRow, Database, EventRow, Minute
from habitus.web.server import Console, open_console
from habitus.web.server_log import last_lines
from habitus.web.server_settings import ServerSettings
from habitus.web.uploads import BLOCK
from reference.console_pages import Site
from reference.consoles import START, add_camera, entry
from reference.processes import wait_until
from reference.visitors import HERE, visitors


@pytest.fixture
def filled(any_console: Console) -> Console:
    """A console with something in it."""
    add_camera(any_console, address="rtsp://me:secret@192.0.2.1/main")
    buffer = store.MinuteBuffer()
    buffer.add("north", JudgedDocument(START, -1.0, -9.0, 1, (), 1.0))
    with any_console.database.transaction() as session:
        store.ingest(session, "north", entry("a1", thumbnail="a1.jpg"))
        store.write_audit(session, "me", "camera added", "north")
        buffer.write(session)
    folder = any_console.settings.camera_folder("north")
    (folder / "events").mkdir(parents=True)
    (folder / "events" / "a1.jpg").write_bytes(b"picture")
    (folder / "model-3.habitus").write_bytes(b"model")
    (folder / "documents").mkdir()
    (folder / "documents" / "20250615T15.corpus").write_bytes(b"footage")
    (any_console.settings.data / "cameras.toml").write_text("# none\n")
    return any_console


def other(tmp_path: Path, filled: Console, request: pytest.FixtureRequest) -> ServerSettings:
    """Where to restore to."""
    url = None if filled.database.is_sqlite else request.getfixturevalue("make_database")()
    return ServerSettings(tmp_path / "restored", database=url)


def contents(console: Console) -> dict[str, list[tuple[object, ...]]]:
    with console.database.session() as session:
        return {
            table.name: [tuple(row) for row in session.execute(select(table))]
            for table in Base.metadata.sorted_tables
        }


def test_everything_comes_back(
    filled: Console, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "console.zip"
    back_up(filled.settings.data, file, database=filled.settings.database)
    assert file.stat().st_mode & 0o777 == 0o600
    settings = other(tmp_path, filled, request)
    restore(file, settings.data, database=settings.database)
    restored = open_console(settings)
    with filled.database.transaction() as session:  # pictures are not there: none is named
        event = session.scalars(select(EventRow)).one()
        event.thumbnail, event.n_bytes, event.clip_bytes = None, 0, 0
    with closing(restored.database):
        assert contents(restored) == contents(filled)
        with restored.database.session() as session:
            camera = session.scalars(select(CameraRow)).one()
            assert restored.vault.open(camera.secret_address) == "rtsp://me:secret@192.0.2.1/main"
            assert len(session.scalars(select(EventRow)).one().details) > 5
            assert len(session.scalars(select(Minute)).one().seconds) == 300
        with restored.database.transaction() as session:  # numbers go on where they were
            store.write_audit(session, "me", "restored", "")
    names = {path.name for path in settings.data.rglob("*") if path.is_file()}
    assert {"model-3.habitus", "cameras.toml", "secret.key"} <= names
    assert not {"a1.jpg", "20250615T15.corpus"} & names
    assert settings.secret_key.stat().st_mode & 0o777 == 0o600
    assert not (settings.data / "cameras").stat().st_mode & 0o077
    assert not settings.data.stat().st_mode & 0o077


def test_clips_are_there_if_asked_for(filled: Console, tmp_path: Path) -> None:
    back_up(
        filled.settings.data, tmp_path / "all.zip", database=filled.settings.database, clips=True
    )
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.read("cameras/north/events/a1.jpg") == b"picture"


def test_a_backup_is_made_amid_a_transaction(console: Console, tmp_path: Path) -> None:
    add_camera(console)
    with console.database.transaction() as session:
        store.ingest(session, "north", entry("a1"))
        back_up(console.settings.data, tmp_path / "a.zip", database=console.settings.database)
    restore(tmp_path / "a.zip", tmp_path / "restored")
    restored = open_console(ServerSettings(tmp_path / "restored"))
    with closing(restored.database), restored.database.session() as session:
        assert session.scalars(select(CameraRow.id)).all() == ["north"]
        assert session.scalars(select(EventRow)).all() == []


def test_no_console_no_backup(tmp_path: Path) -> None:
    with pytest.raises(habitus.InvalidInputError, match="no data of a console"):
        back_up(tmp_path, tmp_path / "a.zip")
    assert list(tmp_path.iterdir()) == []


def test_only_an_empty_folder_is_restored_to(console: Console, tmp_path: Path) -> None:
    back_up(console.settings.data, tmp_path / "a.zip", database=console.settings.database)
    with pytest.raises(habitus.InvalidInputError, match="not empty"):
        restore(tmp_path / "a.zip", console.settings.data)


def archive_of(**files: str) -> bytes:
    described = {"habitus": "backup", "version": 1, "made": 1.0}
    description = json.dumps({**described, "database": "sqlite", "revision": "0001"})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in {"backup.json": description, **files}.items():
            archive.writestr(name, text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"no archive", "not a complete backup"),
        (archive_of()[:-30], "not a complete backup"),
        (archive_of(**{"../a": "x"}), "no backup has"),
        (archive_of(**{"/etc/a": "x"}), "no backup has"),
        (archive_of(**{"cameras/../a/model-1.habitus": "x"}), "no backup has"),
        (archive_of(**{"cameras/a/events/..": "x"}), "no backup has"),
        (archive_of(**{"backup.json": "{}"}), "field required"),
        (archive_of(**{"backup.json": "x"}), "nvalid JSON"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_no_backup_is_refused(tmp_path: Path, contents: bytes, reason: str) -> None:
    (tmp_path / "a.zip").write_bytes(contents)
    with pytest.raises(habitus.FileError, match=reason):
        restore(tmp_path / "a.zip", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def served(folder: Path, during: Callable[[str], None] = lambda address: None) -> list[str]:
    """Start a console and end it; return what its log says."""
    stop = threading.Event()

    def started(address: str) -> None:
        during(address)
        stop.set()

    habitus.serve(folder, port=0, started=started, stop=stop)
    return last_lines(folder)


@pytest.fixture
def given(console: Console, tmp_path: Path) -> Path:
    """A backup of a console with one camera; the console has another one since."""
    add_camera(console, address="rtsp://me:secret@192.0.2.1/main", enabled=False)
    file = tmp_path / "given.backup"
    back_up(console.settings.data, file)
    add_camera(console, "later", enabled=False)
    console.database.close()
    return file


def cameras(folder: Path) -> set[str]:
    with closing(Database.in_folder(folder)) as database, database.session() as session:
        return set(session.scalars(select(CameraRow.id)))


def test_a_backup_that_waits_is_put_in_place_at_the_next_start(
    console: Console, given: Path
) -> None:
    data = console.settings.data
    check(given, console.settings)
    assert cameras(data) == {"north", "later"}
    waiting(console.settings).write_bytes(given.read_bytes())
    lines = served(data)
    assert cameras(data) == {"north"}
    assert cameras(data / "before-restore") == {"north", "later"}
    assert any("the backup is restored" in line for line in lines)
    assert not list(data.glob("restore*"))
    served(data)
    assert cameras(data) == {"north"}


@pytest.mark.parametrize("damage", ["cut", "no zip", "no database"])
def test_a_damaged_backup_changes_nothing(console: Console, given: Path, damage: str) -> None:
    data = console.settings.data
    if damage == "cut":
        given.write_bytes(given.read_bytes()[:-500])
    elif damage == "no zip":
        given.write_bytes(b"nothing")
    else:
        with zipfile.ZipFile(given, "w") as archive:
            archive.writestr("habitus.sqlite", b"nothing")
    with pytest.raises(habitus.HabitusError):
        check(given, console.settings)
    waiting(console.settings).write_bytes(given.read_bytes())
    lines = served(data)
    assert cameras(data) == {"north", "later"}
    assert any("nothing was changed" in line for line in lines)
    assert not (data / "before-restore").exists()


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE events SET clip = '/etc/passwd'",
        "UPDATE events SET heat = '../../../secret.key'",
        "UPDATE events SET camera_id = '../../..'",
        "UPDATE cameras SET model = '/etc/passwd'",
        "UPDATE cameras SET id = '../../..'",
    ],
)
def test_a_forged_backup_names_no_other_files(
    console: Console, tmp_path: Path, forgery: str
) -> None:
    """They would be shown to viewers, or deleted as what is too old."""
    add_camera(console)
    with console.database.transaction() as session:
        store.ingest(session, "north", entry("a1", thumbnail="a1.jpg"))
    with closing(sqlite3.connect(console.settings.data / "habitus.sqlite")) as database, database:
        database.execute(forgery)
    back_up(console.settings.data, tmp_path / "forged.backup")
    with pytest.raises(habitus.FileError, match="names a file that no backup has"):
        check(tmp_path / "forged.backup", console.settings)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ("DROP TABLE troubles", "troubles of its database has no camera_id"),
        ("ALTER TABLE channels DROP COLUMN quiet_from", "channels .* has no quiet_from"),
        (
            "UPDATE alembic_version SET version_num = '0003'; DROP TABLE troubles;"
            "DROP INDEX ix_events_named; CREATE INDEX ix_events_unusual ON events (alarm)",
            "troubles of its database has no camera_id",
        ),
    ],
)
def test_a_backup_whose_database_is_not_whole_is_refused(
    console: Console, tmp_path: Path, change: str, missing: str
) -> None:
    """Pages would answer with an error of the server."""
    with closing(sqlite3.connect(console.settings.data / "habitus.sqlite")) as database:
        database.executescript(change)
    back_up(console.settings.data, tmp_path / "a.backup")
    with pytest.raises(habitus.FileError, match=missing):
        check(tmp_path / "a.backup", console.settings)
    if "0003" not in change:  # an older one is brought up to date first
        with pytest.raises(habitus.FileError, match=missing):
            restore(tmp_path / "a.backup", tmp_path / "restored")


@pytest.mark.parametrize("missing", ["secret.key", "habitus.sqlite"])
def test_a_backup_without_its_database_or_key_is_refused(
    console: Console, given: Path, missing: str
) -> None:
    """Its passwords could not be read, or nothing would be left."""
    with zipfile.ZipFile(given) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name != missing}
    with zipfile.ZipFile(given, "w") as archive:
        for name, held in {**files, "cameras/north/events/a1.jpg": b"x"}.items():
            archive.writestr(name, held)
    with pytest.raises(habitus.FileError, match=f"it has no {missing}"):
        check(given, console.settings)


@pytest.mark.parametrize("n_renames", range(1, 9))
def test_a_restore_that_is_interrupted_goes_on(
    console: Console, given: Path, monkeypatch: pytest.MonkeyPatch, n_renames: int
) -> None:
    data, left = console.settings.data, [n_renames]
    waiting(console.settings).write_bytes(given.read_bytes())
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with contextlib.suppress(KeyboardInterrupt):
        put_in_place(console.settings)
    put_in_place(console.settings)
    assert cameras(data) == {"north"}
    assert cameras(data / "before-restore") == {"north", "later"}
    assert put_in_place(console.settings) == ""


def test_backups_that_are_given_at_once_are_not_mixed(console: Console, given: Path) -> None:
    app, known = visitors(console)
    headers = {"Authorization": known["admin"].headers["Authorization"]}
    whole = given.read_bytes()

    async def give(pieces: AsyncIterator[bytes]) -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            answer = await client.post("/api/restore", content=pieces, headers=headers)
        return answer.status_code

    async def both() -> list[int]:
        begun, over = asyncio.Event(), asyncio.Event()

        async def broken() -> AsyncIterator[bytes]:
            yield b"x" * BLOCK
            begun.set()
            await over.wait()
            yield b"x"

        async def good() -> AsyncIterator[bytes]:
            await begun.wait()
            yield whole
            over.set()

        return await asyncio.gather(give(broken()), give(good()))

    assert asyncio.run(both()) == [422, 202]
    assert waiting(console.settings).read_bytes() == whole
    assert [path.name for path in console.settings.data.glob("restore*")] == ["restore.backup"]


def test_what_interrupted_uploads_leave_is_deleted(console: Console) -> None:
    part = console.settings.data / "restore.0123.part"
    part.write_bytes(b"x")
    assert put_in_place(console.settings) == ""
    assert not part.exists()


def test_the_log_has_no_secrets(console: Console) -> None:
    data = console.settings.data
    console.database.close()

    def during(address: str) -> None:
        logging.getLogger("habitus.web.supervisor").error("rtsp://me:s3cret@camera/1 is away")
        server_log.LOGGER.info("Authorization: Bearer habitus_abcdefghijk password=pa55word")

    text = "\n".join(served(data, during))
    assert "rtsp://camera/1 is away" in text
    assert f"habitus {habitus.__version__} starts" in text
    assert "habitus ends" in text
    for secret in ("s3cret", "abcdefghijk", "pa55word"):
        assert secret not in text
    assert (data / "server.log").stat().st_mode & 0o777 == 0o600


def test_backup_restore_and_log_are_on_the_page(
    site: Site, look: dict[str, Any], tmp_path: Path
) -> None:
    allowed = ("status of 4",)
    visit = site.visit("/settings/backup", allowed=allowed, accept_downloads=True, **look)
    page = visit.page
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download a backup").click()
    file = tmp_path / "given.backup"
    downloaded.value.save_as(file)
    assert downloaded.value.suggested_filename.endswith(".backup")
    assert "secret.key" in zipfile.ZipFile(file).namelist()
    data = site.console.settings.data
    wait_until(lambda: not list(data.glob("tmp*")), "the file that was sent is gone")
    broken = tmp_path / "broken.backup"
    broken.write_bytes(file.read_bytes()[:-100])
    page.get_by_label("File of a backup").set_input_files(broken)
    page.get_by_role("button", name="Restore it").click()
    expect(page.locator("#restore-said")).to_contain_text("not a complete backup")
    page.get_by_label("File of a backup").set_input_files(file)
    page.get_by_role("button", name="Restore it").click()
    expect(page.locator("#restore")).to_contain_text("A backup waits")
    assert waiting(site.console.settings).exists()
    page.get_by_role("button", name="Withdraw it").click()
    expect(page.get_by_role("button", name="Restore it")).to_be_visible()
    assert not waiting(site.console.settings).exists()
    visit.go("/settings/log")
    expect(page.locator("pre")).to_be_visible()
    assert visit.overflow() <= 0
