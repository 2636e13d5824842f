import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

import habitus
from habitus.console.database import Base, Database, Setting
from habitus.console.migrations import FOLDER, scripts, upgrade
from habitus.console.server import Console

SCRIPT = Path(__file__).parents[2] / "scripts" / "console_migration.py"


def differences(database: Database) -> list[object]:
    with database.engine.connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


def test_a_migrated_database_has_the_tables_of_the_models(any_console: Console) -> None:
    assert differences(any_console.database) == []


def test_a_difference_would_be_found(any_console: Console) -> None:
    with any_console.database.engine.begin() as connection:
        connection.execute(text("DROP INDEX ix_events_start"))
    assert len(differences(any_console.database)) == 1


def test_the_first_migration_is_what_the_script_writes(tmp_path: Path) -> None:
    written = tmp_path / "0001_first.py"
    subprocess.run([sys.executable, SCRIPT, written], check=True)
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", written], check=True)
    assert written.read_text() == (FOLDER / "versions" / "0001_first.py").read_text()


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


def test_there_is_one_line_of_steps() -> None:
    assert len(scripts().get_heads()) == 1
