"""A console on SQLite, and one on PostgreSQL, for the tests of its parts."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from habitus.console.database import Camera
from habitus.console.server import Console, open_console
from habitus.console.settings import ServerSettings
from reference.processes import wait_until

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
START = 1_750_000_000.0
"""A moment in June 2025, in seconds since the epoch; a whole minute and a bit."""

AddCamera = Callable[..., Camera]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    opened = open_console(ServerSettings(tmp_path / "data"))
    yield opened
    opened.database.close()


@pytest.fixture
def postgres_console(tmp_path: Path, postgres: str) -> Iterator[Console]:
    opened = open_console(ServerSettings(tmp_path / "data", database=postgres))
    yield opened
    opened.database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def any_console(request: pytest.FixtureRequest) -> Console:
    """A console on either database."""
    name = "console" if request.param == "sqlite" else "postgres_console"
    found: Console = request.getfixturevalue(name)
    return found


@pytest.fixture
def add_camera() -> AddCamera:
    """A function that adds a camera to a console."""

    def add(console: Console, camera_id: str = "north", **fields: object) -> Camera:
        address = fields.pop("address", "rtsp://192.0.2.1/main")
        camera = Camera(
            **{
                "id": camera_id,
                "name": camera_id.capitalize(),
                "kind": "stream",
                "secret_address": console.vault.seal(address),
                "shown_address": address,
                "alerts_per_day": 5.0,
                "learn_days": 7,
                "mask": [],
                "region": [],
                "options": {},
                "enabled": True,
                "created": START,
                "state": "connecting",
                "since": START,
                "reason": "",
                **fields,
            }
        )
        with console.database.transaction() as session:
            session.add(camera)
        return camera

    return add


class PostgresServer:
    """A server of Debian's PostgreSQL on a free port of this machine."""

    def __init__(self, folder: Path) -> None:
        if not POSTGRES:
            pytest.skip("PostgreSQL is not installed")
        self.folder, self.bin = folder / "data", POSTGRES[-1]
        # It refuses to be run by root.
        self.user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self.user:
            shutil.chown(folder, "postgres")
        self.port = _free_port()
        self._run("initdb", "-U", "habitus", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        self.start()

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            [*self.user, self.bin / program, "-D", self.folder, *options],
            check=True,
            capture_output=True,
            cwd="/",
        )

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-w", "-t", "60", "-l", str(log), "-o", options, "start")

    def stop(self) -> None:
        """Stop at once, as a machine that is switched off."""
        self._run("pg_ctl", "-w", "-t", "60", "-m", "immediate", "stop")

    def url(self, name: str = "postgres") -> str:
        return f"postgresql+psycopg://habitus@127.0.0.1:{self.port}/{name}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of PostgreSQL for all tests."""
    # Outside of pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="habitus-postgres-") as folder:
        server = PostgresServer(Path(folder))
        yield server
        with contextlib.suppress(subprocess.CalledProcessError):
            server.stop()


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> str:
    """Address of a new, empty database of PostgreSQL."""
    name = f"test_{os.urandom(6).hex()}"
    engine = create_engine(postgres_server.url(), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return postgres_server.url(name)


__all__ = ["START", "AddCamera", "PostgresServer", "wait_until"]
