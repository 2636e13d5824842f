import io
import json
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

import habitus
from habitus.site.pipe_messages import Judged
from habitus.web import store
from habitus.web.backup import back_up, restore
from habitus.web.database import Base, CameraRow, EventRow, Minute
from habitus.web.server import Console, open_console
from habitus.web.server_settings import ServerSettings
from reference.consoles import START, add_camera, entry


@pytest.fixture
def filled(any_console: Console) -> Console:
    """A console with something in it."""
    add_camera(any_console, address="rtsp://me:secret@192.0.2.1/main")
    buffer = store.MinuteBuffer()
    buffer.add("north", Judged(START, -1.0, -9.0, 1, (), 1.0))
    with any_console.database.transaction() as session:
        store.ingest(session, "north", entry("a1", files={"thumbnail": "a1.jpg"}))
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
