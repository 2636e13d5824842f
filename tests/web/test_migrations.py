import shutil
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

import habitus
from habitus.site.zones import Zone, check_zones
from habitus.web import queries
from habitus.web.database import Base, CameraRow, Database, Setting
from habitus.web.migrations import FOLDER, revision_of, scripts, upgrade
from habitus.web.queries import EventFilter
from habitus.web.server import Console


def differences(database: Database) -> list[object]:
    with database.engine.connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


def test_a_migrated_database_has_the_tables_of_the_models(any_console: Console) -> None:
    assert differences(any_console.database) == []


def test_a_difference_would_be_found(any_console: Console) -> None:
    with any_console.database.engine.begin() as connection:
        connection.execute(text("DROP INDEX ix_events_start"))
    assert len(differences(any_console.database)) == 1


def test_upgrading_again_changes_nothing(any_console: Console) -> None:
    with any_console.database.transaction() as session:
        session.add(Setting(key="quota", value={"bytes": 1}))
    upgrade(any_console.database)
    with any_console.database.session() as session:
        assert session.get_one(Setting, "quota").value == {"bytes": 1}


def test_a_newer_database_is_refused(any_console: Console) -> None:
    with any_console.database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(habitus.InvalidInputError, match=r"newer habitus .*'9999'.*upgrade") as told:
        upgrade(any_console.database)
    assert "\n" not in str(told.value)


def test_tables_of_another_program_are_refused(tmp_path: Path) -> None:
    with closing(Database.in_folder(tmp_path)) as database:
        with database.engine.begin() as connection:
            connection.execute(text("CREATE TABLE cameras (id INTEGER)"))
        with pytest.raises(habitus.InvalidInputError, match="did not make"):
            upgrade(database)


SECOND = '''"""A step that a later version might have."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("settings", sa.Column("note", sa.String(), server_default="none"))
'''


def test_an_older_database_is_brought_up_to_date(any_console: Console, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "versions", tmp_path / "versions")
    (tmp_path / "versions" / "0005_note.py").write_text(SECOND)
    database = any_console.database
    with database.transaction() as session:
        session.add(Setting(key="quota", value={"bytes": 1}))
    upgrade(database, steps=scripts(tmp_path))
    assert revision_of(database) == "0005"
    with database.engine.connect() as connection:
        row = connection.execute(text("SELECT key, note FROM settings")).one()
    assert tuple(row) == ("quota", "none")
    with pytest.raises(habitus.InvalidInputError, match="newer"):
        upgrade(database)
    if database.is_sqlite:
        before = any_console.settings.data / "habitus.sqlite.before-0005"
        with closing(Database(f"sqlite:///{before}")) as copy:
            assert revision_of(copy) == "0004"
            with copy.session() as session:
                assert session.get_one(Setting, "quota").value == {"bytes": 1}


def test_there_is_one_line_of_steps() -> None:
    assert len(scripts().get_heads()) == 1


def test_events_of_before_are_found_as_new_ones(tmp_path: Path) -> None:
    with closing(Database.in_folder(tmp_path)) as database:
        upgrade(database, "0001")
        with database.engine.begin() as connection:
            for table, values in (("cameras", CAMERA), ("events", EVENT)):
                names, binds = (
                    ", ".join(f'"{k}"' for k in values),
                    ", ".join(f":{k}" for k in values),
                )
                connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({binds})"), values)  # noqa: S608
        upgrade(database)
        assert differences(database) == []
        wanted = EventFilter(words="LEFT", unusual=50)
        (found,) = database.read(queries.events, wanted).events
        assert (found.unusual, found.starred, found.note) == (55, False, "")


def test_masks_and_regions_of_before_are_zones(tmp_path: Path) -> None:
    polygon = "[[0, 0], [8, 0], [8, 8]]"
    camera = CAMERA | {"mask": f"[{polygon}, {polygon}]", "region": f"[{polygon}]"}
    with closing(Database.in_folder(tmp_path)) as database:
        upgrade(database, "0002")
        with database.engine.begin() as connection:
            names = ", ".join(f'"{k}"' for k in camera), ", ".join(f":{k}" for k in camera)
            connection.execute(text("INSERT INTO cameras ({}) VALUES ({})".format(*names)), camera)  # noqa: S608
        upgrade(database)
        with database.session() as session:
            zones = session.get_one(CameraRow, "north").zones
    assert [(zone["name"], zone["kind"]) for zone in zones] == [
        ("Not watched 1", "ignore"),
        ("Not watched 2", "ignore"),
        ("Watched 1", "watch"),
    ]
    check_zones([Zone.of(zone) for zone in zones], (360, 288))


CAMERA = {
    **dict.fromkeys(("id", "name", "kind", "shown_address", "state", "reason"), "north"),
    **dict.fromkeys(("mask", "region", "options"), "[]"),
    **dict.fromkeys(("alerts_per_day", "learn_days", "created", "since", "enabled"), 1),
    "secret_address": b"",
}
EVENT = {
    **dict.fromkeys(("id", "camera_id", "rarity", "cue"), "north"),
    **dict.fromkeys(("start", "peak", "normality", "threshold", "behaviour", "n_bytes"), 1),
    **dict.fromkeys(("alarm", "at_half", "clip_bytes"), True),
    "probability": 1 / 86_400,
    "explanation": "On the Left",
    "details": "{}",
}
