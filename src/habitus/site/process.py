"""A camera's process as the server sees it: started, told what to do, listened to, ended."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Literal, TypeVar

from habitus.errors import HabitusError
from habitus.jobs.fork_server import Child, ForkServer
from habitus.site.pipe_messages import Order, Report, Stop

# What the fork server of cameras loads: all that they, their decoders and learning need.
LOADED = "habitus.site.loaded"
# Seconds that the thread which sends orders has to end, once the process has.
SENDING = 1.0

CameraKind = Literal["stream", "playback", "recording"]
Polygons = tuple[tuple[tuple[float, float], ...], ...]
J = TypeVar("J")


@dataclass(frozen=True)
class CameraJob:
    """What a camera's process is to do.

    Parameters
    ----------
    camera
        Id of the camera.
    folder
        Its folder.
    address
        Where its video comes from, with credentials: a stream, or a file.
    kind
        "stream"; "playback" for a file that plays at its own speed, again and again; "recording"
        for a file that is judged once, as fast as possible.
    alerts_per_day
        Alert budget.
    mask, region
        What not to watch, and what alone to watch (all if empty): polygons in pixels of the
        camera's picture.
    options
        Of reading: "fps", "fast", "other_hosts", "local" (a stream may be of this machine),
        "patience" (seconds of silence until it is opened again), "learn_days". Of a playback:
        "speed", as a multiple of its own. Of a recording: "starts", the time of its first frame;
        by default, such that it ends when its file was written.
    model
        Name of the model file in the folder, if there is one.
    accepted
        Events, as `habitus.Event.to_json()` gives them, that were called normal since it was
        learnt.
    """

    camera: str
    folder: Path
    address: str = field(repr=False)
    kind: CameraKind = "stream"
    alerts_per_day: float = 5.0
    mask: Polygons = ()
    region: Polygons = ()
    options: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    accepted: tuple[dict[str, Any], ...] = ()


class ForkedProcess(Generic[J]):
    """A process that has one job, forked from a fork server.

    Parameters
    ----------
    job
        What it is to do.
    fork_server
        Where it is forked from.
    """

    target: str
    """What it runs, as "module:name"."""

    def __init__(self, job: J, fork_server: ForkServer) -> None:
        self.job, self.fork_server = job, fork_server
        self._child: Child | None = None

    def start(self) -> None:
        """Start the process.

        Raises
        ------
        HabitusError
            If it cannot be started now, as where there is no memory.
        """
        self._child = self.fork_server.start_process(self.target, self.job)

    @property
    def connection(self) -> Connection:
        """What `multiprocessing.connection.wait` can wait on: reports came, or the process ended.

        Raises
        ------
        HabitusError
            If the process was not started.
        """
        if self._child is None:
            raise HabitusError(f"{self.target} was not started")
        return self._child.connection

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.is_alive

    @property
    def pid(self) -> int | None:
        """Its process id."""
        return None if self._child is None else self._child.pid

    def wait(self, within: float = 0.0) -> int | None:
        """Return its exit code, the negative number of the signal that ended it, or None."""
        return None if self._child is None else self._child.wait(within)

    def kill(self) -> None:
        """End the process at once, and close the connection."""
        if self._child is not None:
            self._child.kill()
            self.connection.close()


class CameraProcess(ForkedProcess[CameraJob]):
    """A process that watches one camera.

    Attributes
    ----------
    last_heard
        When the last report came, or the process was started, by the monotonic clock.
    """

    target = "habitus.site.watcher:watch_camera"

    def __init__(self, job: CameraJob, fork_server: ForkServer) -> None:
        super().__init__(job, fork_server)
        self.last_heard = time.monotonic()
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._sender = Thread(target=self._send, name=f"orders of {job.camera}", daemon=True)

    def start(self) -> None:
        """Start the process, and what sends it orders."""
        super().start()
        self.last_heard = time.monotonic()
        self._sender.start()

    def reports(self) -> Iterator[Report]:
        """Yield the reports that came, without waiting for more; none after the end."""
        try:
            while self.connection.poll():
                report: Report = self.connection.recv()
                self.last_heard = time.monotonic()
                yield report
        except (EOFError, OSError):
            return

    def order(self, order: Order) -> bool:
        """Have an order sent, without waiting for it; return False if the process has ended."""
        self._orders.put(order)
        return self.is_alive

    def _send(self) -> None:
        """Send orders, one after the other; a process that hangs takes none."""
        for order in iter(self._orders.get, None):
            try:
                self.connection.send(order)
            except OSError:
                return

    def end(self, within: float = 5.0) -> list[Report]:
        """Have the process end with every event written, or kill it; return its last reports.

        Parameters
        ----------
        within
            Seconds that it may take.
        """
        reports: list[Report] = []
        if self._child is not None:
            self.order(Stop())
            until = time.monotonic() + within
            while self.is_alive and time.monotonic() < until:
                reports += self.reports()  # else it might wait for room in the pipe
                self.wait(0.05)
            reports += self.reports()
            self.kill()
        return reports

    def kill(self) -> None:
        """End the process at once, and close the connection."""
        if self._child is not None:
            self._child.kill()
            self._orders.put(None)
            self._sender.join(SENDING)
            if not self._sender.is_alive():  # else another file may get its number
                self.connection.close()
