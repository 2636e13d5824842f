"""A console as it is run: `habitus serve` in a process of its own, and who asks it."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import psutil

from habitus.web.administration import add_camera, add_token
from habitus.web.answers import NewCamera, NewTokenRequest
from habitus.web.database import CameraRow, LearningRow, Role
from habitus.web.server import Console, open_console
from habitus.web.server_settings import ServerSettings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.streams import free_port

STARTING = 60.0
"""Seconds that the server may take to answer."""
ENDING = 60.0


class Served:
    """A running `habitus serve`, which may be ended and started again; use it in a `with` block.

    Parameters
    ----------
    data
        Its folder.
    database
        Address of its database; SQLite in the folder if None.
    """

    def __init__(self, data: Path, *, database: str | None = None) -> None:
        self.data, self.database, self.port = data, database, free_port()
        with self.opened() as console:
            wanted = NewTokenRequest(name="benchmark", role=Role.ADMIN)
            token = add_token(console, "benchmark", wanted).secret
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=STARTING,
        )
        self.process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def opened(self) -> Iterator[Console]:
        """Open its database beside it."""
        console = open_console(ServerSettings(self.data, database=self.database))
        with closing(console.database):
            yield console

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
        self.client.close()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [sys.executable, "-m", "habitus", "serve", "--data", str(self.data)]
        command += ["--port", str(self.port)]
        command += ["--database", self.database] if self.database else []
        with (self.data / "stderr").open("ab") as stderr:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
            )
        until = time.monotonic() + STARTING
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > until:
                said = (self.data / "stderr").read_text().strip().splitlines()[-1:]
                raise RuntimeError(f"the console did not start: {said}")
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether the server answers."""
        with suppress(httpx.HTTPError):
            self.client.get("/healthz")
            return True
        return False

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the server by a signal, and wait for that."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(ENDING)
            self.process = None

    @property
    def pid(self) -> int:
        """Its process id."""
        if self.process is None:
            raise RuntimeError("the console does not run")
        return self.process.pid

    def json(self, path: str, **query: Any) -> Any:
        """Return what the API gives."""
        answer = self.client.get(path, params=query)
        answer.raise_for_status()
        return answer.json()


def pss(pid: int) -> float:
    """Return the megabytes of a process; what it shares with others counts in parts."""
    with suppress(psutil.Error):
        return float(psutil.Process(pid).memory_full_info().pss / 1e6)
    return 0.0


def descendants(pid: int) -> list[psutil.Process]:
    """Return the processes below one."""
    with suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def add_with_model(
    console: Console, name: str, address: str, model: Path | None, **fields: Any
) -> None:
    """Add a camera on this machine; one that has a model is not learnt again."""
    fields = {"options": {"local": True}} | fields
    add_camera(console, "benchmark", NewCamera(name=name, address=address, **fields), trusted=True)
    if model is None:
        return
    place = console.settings.camera_folder(name)
    place.mkdir(parents=True)
    (place / "model-1.habitus").write_bytes(model.read_bytes())
    learning = LearningRow(
        camera_id=name,
        occasion="night",
        started=time.time(),
        ended=time.time(),
        n_documents=0,
        model="model-1.habitus",
        summary="",
        notes=[],
    )
    with console.database.transaction() as session:
        session.get_one(CameraRow, name).model = learning.model
        session.add(learning)
