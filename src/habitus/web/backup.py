"""A backup of a console as one file, made while it runs, and what is restored from it.

The file is a ZIP archive: a description, the database, the key of its secrets, cameras.toml and
the models; clips, pictures and uploads if asked for. SQLite is copied by its own means. Tables of
PostgreSQL are written as lines of JSON, which any version of PostgreSQL takes.
"""

import base64
import json
import os
import re
import shutil
import tempfile
import time
import zipfile
from contextlib import closing
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from sqlalchemy import Connection, LargeBinary, MetaData, Table, func, inspect, select, text, update
from typing_extensions import TypedDict

from habitus.errors import FileError, HabitusError, InvalidInputError
from habitus.files import checked_path, written_whole
from habitus.schema import Count, Time, decoded
from habitus.web.database import Base, CameraRow, Database, EventRow, database_errors
from habitus.web.migrations import copy_database, newest, revision_of, upgrade
from habitus.web.server_settings import ServerSettings
from habitus.web.vault import Vault

VERSION = 1
DESCRIPTION = "backup.json"
SQLITE = "habitus.sqlite"
# What a backup may hold, by the names in the data folder.
NAMES = re.compile(
    r"habitus\.sqlite|secret\.key|cameras\.toml|tables/[a-z_]+\.jsonl"
    r"|cameras/[a-z0-9-]+/(model-[0-9]+\.(habitus|json)|(events|behaviours)/[A-Za-z0-9][A-Za-z0-9._-]*)"
    r"|uploads/[A-Za-z0-9][A-Za-z0-9._-]*"
)
SMALL = ("secret.key", "cameras.toml", "cameras/*/model-*.*", "cameras/*/behaviours/*.jpg")
LARGE = ("cameras/*/events/*", "uploads/*")
# Rows that are written together.
TOGETHER = 1000
SPARE = 500_000_000
"""Bytes that a restore leaves free on the disk."""
BEFORE = "before-restore"
"""Folder of what a restored backup replaced."""


class Description(TypedDict):
    """What a backup says of itself."""

    habitus: Literal["backup"]
    version: Count
    made: Time
    database: Literal["sqlite", "tables"]
    revision: str
    """Version of the database."""


def back_up(
    data: str | os.PathLike[str],
    file: str | os.PathLike[str],
    *,
    database: str | None = None,
    clips: bool = False,
) -> None:
    """Write a backup of a console, which may be running, to one file.

    Only its owner may read the file: it holds the key of all passwords.

    Parameters
    ----------
    data
        Folder of the console.
    file
        File to write, whole or not at all.
    database
        As of `serve`.
    clips
        Whether it holds clips, pictures and uploads too, beside the database, keys and models.

    Raises
    ------
    HabitusError
        If there is no console, or the file cannot be written.
    """
    settings = ServerSettings(Path(data), database=database)
    if not settings.secret_key.is_file():
        raise InvalidInputError(f"{settings.data}: no data of a console here", parameter="data")
    with (
        database_errors(),
        written_whole(Path(file)) as temporary,
        closing(Database.of(settings)) as opened,
    ):
        temporary.chmod(0o600)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            _write_database(archive, opened, settings)
            for pattern in SMALL + LARGE if clips else SMALL:
                for path in sorted(settings.data.glob(pattern)):
                    _add(archive, path, path.relative_to(settings.data).as_posix())


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> None:
    # Pictures, clips and models do not get smaller.
    kind = zipfile.ZIP_DEFLATED if path.suffix in (".toml", ".sqlite") else zipfile.ZIP_STORED
    if NAMES.fullmatch(name) and path.is_file():
        try:
            archive.write(path, name, kind)
        except FileNotFoundError:  # deleted meanwhile, as an old clip is
            return


def _write_database(archive: zipfile.ZipFile, database: Database, settings: ServerSettings) -> None:
    description = {
        "habitus": "backup",
        "version": VERSION,
        "made": time.time(),
        "database": "sqlite" if database.is_sqlite else "tables",
        "revision": revision_of(database) or "",
    }
    archive.writestr(DESCRIPTION, json.dumps(description))
    if database.is_sqlite:
        source = Path(database.engine.url.database or "")
        with tempfile.TemporaryDirectory(dir=settings.data) as folder:
            copy = Path(folder, SQLITE)
            copy_database(source, copy)
            _add(archive, copy, SQLITE)
        return
    engine = database.engine.execution_options(isolation_level="REPEATABLE READ")
    with engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            with archive.open(f"tables/{table.name}.jsonl", "w", force_zip64=True) as lines:
                for row in connection.execution_options(yield_per=TOGETHER).execute(select(table)):
                    lines.write(_line(table, row) + b"\n")


def _line(table: Table, row: Any) -> bytes:
    values = {
        column.name: base64.b64encode(value).decode()
        if isinstance(column.type, LargeBinary) and value is not None
        else value
        for column, value in zip(table.columns, row, strict=True)
    }
    return json.dumps(values).encode()


def restore(
    file: str | os.PathLike[str], data: str | os.PathLike[str], *, database: str | None = None
) -> None:
    """Put a backup into an empty folder, and, if it is of PostgreSQL, an empty database.

    Parameters
    ----------
    file
        What `back_up` wrote.
    data
        Folder that is empty, or not there.
    database
        As of `serve`.

    Raises
    ------
    HabitusError
        If the file is no backup, or the folder or the database is not empty.
    """
    settings = ServerSettings(Path(data), database=database)
    if settings.data.exists() and any(settings.data.iterdir()):
        raise InvalidInputError(
            f"{settings.data} is not empty: a backup is restored into an empty folder",
            parameter="data",
        )
    made = not settings.data.exists()
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with database_errors(), zipfile.ZipFile(checked_path(Path(file))) as archive:
            description = _described(archive)
            _extract(archive, settings.data)
            if description["database"] == "tables":
                _restore_tables(settings, description["revision"])
            elif settings.database is not None:
                raise InvalidInputError(
                    "the backup is of a console with SQLite: restore it without a database",
                    parameter="database",
                )
            _check_rows(settings)
            _forget_pictures(settings)
    except BaseException as error:
        for path in settings.data.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if made:
            settings.data.rmdir()
        if isinstance(error, zipfile.BadZipFile | OSError | EOFError | RuntimeError):
            raise FileError(f"{file}: not a complete backup of habitus: {error}") from error
        raise


def waiting(settings: ServerSettings) -> Path:
    """Return the file of a backup that is put in place when the console starts next."""
    return settings.data / "restore.backup"


def check(file: Path, settings: ServerSettings) -> None:
    """Raise `FileError` unless a backup can be restored, by doing so in a folder of its own."""
    try:
        with zipfile.ZipFile(file) as archive:
            n_bytes = sum(info.file_size for info in archive.infolist())
    except zipfile.BadZipFile as error:
        raise FileError(f"not a complete backup of habitus: {error}") from error
    if n_bytes > shutil.disk_usage(settings.data).free - SPARE:
        raise FileError(f"the disk has no room for what it holds ({n_bytes / 1e6:.0f} MB)")
    with tempfile.TemporaryDirectory(prefix="restore-", dir=settings.data) as folder:
        restore(file, Path(folder, "data"))
        with database_errors(), closing(Database.in_folder(Path(folder, "data"))) as database:
            upgrade(database)
            _check_columns(database)
        Vault.of_file(Path(folder, "data", "secret.key"))


def put_in_place(settings: ServerSettings) -> str:
    """Restore the backup that waits, if one does; return a line for a person, if there is one.

    What was there before is moved into a folder of its own. Wherever it is interrupted, the next
    start goes on: a folder that is still being filled is filled anew, and each step after that is
    one rename.
    """
    data, file = settings.data, waiting(settings)
    for part in data.glob("restore.*.part"):  # of an upload that was interrupted
        part.unlink(missing_ok=True)
    filling, filled, arriving = (data / f"restore.{word}" for word in ("new", "old", "now"))
    shutil.rmtree(filling, ignore_errors=True)
    if not (filled.exists() or arriving.exists()):
        if not file.exists():
            return ""
        try:
            restore(file, filling)
        except HabitusError as error:
            file.replace(file.with_suffix(".damaged"))
            return f"the backup was not restored, and nothing was changed: {error}"
        filling.rename(filled)
    file.unlink(missing_ok=True)
    aside = data / BEFORE
    if filled.exists():
        if aside.exists() and not (data / "restore.aside").exists():
            aside.rename(data / f"{BEFORE}-{int(aside.stat().st_mtime)}")
        (data / "restore.aside").touch()
        aside.mkdir(mode=0o700, exist_ok=True)
        for path in data.iterdir():
            if path.name != "lock" and not path.name.startswith((BEFORE, "restore.", "server.log")):
                path.rename(aside / path.name)
        filled.rename(arriving)
    for path in arriving.iterdir():
        path.rename(data / path.name)
    arriving.rmdir()
    (data / "restore.aside").unlink(missing_ok=True)
    return f"the backup is restored; what was there before is in {aside}"


def _described(archive: zipfile.ZipFile) -> Description:
    names = [name for name in archive.namelist() if name != DESCRIPTION]
    if DESCRIPTION not in archive.namelist():
        raise zipfile.BadZipFile("it does not say what it is")
    if foreign := [name for name in names if not NAMES.fullmatch(name)]:
        raise FileError(f"the backup holds a file that no backup has: {foreign[0]!r}")
    description = decoded(archive.read(DESCRIPTION), Description)
    if description["version"] > VERSION:
        raise FileError(
            f"the backup is of version {description['version']}, this habitus reads up to "
            f"{VERSION}: upgrade habitus"
        )
    needed = {"secret.key", SQLITE} if description["database"] == "sqlite" else {"secret.key"}
    if missing := needed - {*names}:
        raise FileError(f"not a complete backup of habitus: it has no {min(missing)}")
    return description


def _extract(archive: zipfile.ZipFile, folder: Path) -> None:
    for info in archive.infolist():
        if info.filename == DESCRIPTION:
            continue
        target = folder / PurePosixPath(info.filename)
        for parent in reversed(target.relative_to(folder).parents):
            (folder / parent).mkdir(mode=0o700, exist_ok=True)
        target.touch(mode=0o600)
        with archive.open(info) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)


def _restore_tables(settings: ServerSettings, revision: str) -> None:
    """Fill an empty database from lines of JSON, and bring it up to date."""
    if settings.database is None:
        raise InvalidInputError(
            "the backup is of a console with PostgreSQL: name an empty database to restore it to",
            parameter="database",
        )
    folder = settings.data / "tables"
    with closing(Database(settings.database)) as database:
        if inspect(database.engine).get_table_names():
            raise InvalidInputError("the database is not empty", parameter="database")
        upgrade(database, revision)
        with database.engine.begin() as connection:
            tables = MetaData()
            tables.reflect(connection)
            for table in tables.sorted_tables:
                _fill(connection, table, folder / f"{table.name}.jsonl")
        upgrade(database)
    shutil.rmtree(folder)


def _check_columns(database: Database) -> None:
    """Raise `FileError` if a table or a column is missing."""
    found = inspect(database.engine)
    present = set(found.get_table_names())
    for table in Base.metadata.sorted_tables:
        has = {c["name"] for c in found.get_columns(table.name)} if table.name in present else set()
        if missing := {column.name for column in table.columns} - has:
            raise FileError(
                f"not a complete backup of habitus: {table.name} of its database has no "
                f"{min(missing)}"
            )


def _check_rows(settings: ServerSettings) -> None:
    """Raise `FileError` if a column is missing, or a row names a file of others."""
    cameras = select(CameraRow.id, func.coalesce(CameraRow.model, "model-1.habitus"))
    files = (EventRow.thumbnail, EventRow.heat, EventRow.clip)
    events = (select(EventRow.camera_id, "events/" + func.coalesce(file, "x")) for file in files)
    with closing(Database.of(settings)) as database, database.session() as session:
        if revision_of(database) == newest():
            _check_columns(database)
        for query in (cameras, *events):
            for camera, file in session.execute(query.distinct()):
                if not NAMES.fullmatch(name := f"cameras/{camera}/{file}"):
                    raise FileError(f"the backup names a file that no backup has: {name[:100]!r}")


def _forget_pictures(settings: ServerSettings) -> None:
    """Have events name no pictures and clips where the backup holds none."""
    if any(settings.data.glob("cameras/*/events/*")):
        return
    with closing(Database.of(settings)) as database, database.transaction() as session:
        none = {"thumbnail": None, "heat": None, "clip": None, "n_bytes": 0, "clip_bytes": 0}
        session.execute(update(EventRow).values(none))


def _fill(connection: Connection, table: Table, file: Path) -> None:
    if not file.is_file():
        return
    packed = [column.name for column in table.columns if isinstance(column.type, LargeBinary)]
    with file.open("rb") as lines:
        while some := [json.loads(line) for line in islice(lines, TOGETHER)]:
            for row in some:
                row |= {name: base64.b64decode(row[name]) for name in packed if row[name]}
            connection.execute(table.insert(), some)
    key = table.columns.get("id")
    if key is not None and key.autoincrement is True:
        sequence = func.pg_get_serial_sequence(table.name, "id")
        highest = select(func.coalesce(func.max(key), 0) + 1).scalar_subquery()
        connection.execute(select(func.setval(sequence, highest, text("false"))))
