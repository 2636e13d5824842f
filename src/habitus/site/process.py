"""Processes as the server sees them: of a camera, and of a junction that plays as one.

They are started, given orders, listened to, and ended.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from habitus.backlog import Backlog
from habitus.errors import HabitusError
from habitus.jobs.fork_server import ForkServer
from habitus.progress import Progress
from habitus.site.pipe_messages import AlertOrder, Order, Report, Stop

# What the fork server of cameras loads: all that they, their decoders and learning need.
PRELOAD = "habitus.site.camera_preload"
# Seconds that the thread which sends orders has to end, once the process has.
SENDING = 1.0
# How much the process that renders steps back behind cameras.
NICENESS = 5
# Seconds between two reports of progress.
PROGRESS_EVERY = 0.25

CameraKind = Literal["stream", "playback", "recording"]


@dataclass(frozen=True)
class CameraJob:
    """What a camera's process is to do.

    A "stream" is watched; a file plays at its own speed, again and again ("playback"), or is judged
    once, as fast as possible ("recording"). `address` has credentials. `accepted` are events, as
    `Event.to_json` gives them, that were called normal since the `model`, a file in the folder, was
    learnt.

    Options of reading are "fps", "fast", "other_hosts", "local" (a stream may be of this machine),
    "patience" (seconds of silence until it is opened again), "learn_days" and "timezone" (by which
    zones have their hours, by default the machine's); of a playback
    "speed", as a multiple of its own; of a recording "starts", the time of its first frame, by
    default such that it ends when its file was written.
    """

    camera: str
    folder: Path
    address: str = field(repr=False)
    kind: CameraKind = "stream"
    alerts: AlertOrder = field(default_factory=AlertOrder)
    options: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    accepted: tuple[dict[str, Any], ...] = ()
    raised: tuple[tuple[float, float, str], ...] = ()
    """The latest alarms: when, in seconds since the epoch, their normality and their zone."""


class ProgressSender:
    """Sends progress over a connection, but not too often."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.stage, self.sent = connection, "", 0.0

    def __call__(self, progress: Progress) -> None:
        """Send it, if it is time for that, or of another stage."""
        now = time.monotonic()
        if progress.stage != self.stage or now - self.sent >= PROGRESS_EVERY:
            self.stage, self.sent = progress.stage, now
            self.connection.send(progress)


class CameraProcess:
    """A process that watches one camera from now on; HabitusError if it cannot be started.

    `last_heard` is when the last report came, or it was started, by the monotonic clock.
    """

    def __init__(self, job: CameraJob, fork_server: ForkServer) -> None:
        self.job, self.fork_server = job, fork_server
        self.child = fork_server.start_process("habitus.site.watcher:watch_camera", job)
        self.last_heard = time.monotonic()
        self._orders: Backlog[Order] = Backlog(self.child.connection.send)

    def reports(self) -> Iterator[Report]:
        """Yield the reports that came, without waiting for more; none after the end."""
        try:
            while self.child.connection.poll():
                report: Report = self.child.connection.recv()
                self.last_heard = time.monotonic()
                yield report
        except (EOFError, OSError):
            return

    def order(self, order: Order) -> bool:
        """Have an order sent, without waiting for it; return False if the process has ended."""
        self._orders.add(order)
        return self.child.is_alive

    def end(self, within: float = 5.0) -> list[Report]:
        """Have the process end with every event written, or kill it; return its last reports."""
        self.order(Stop())
        reports, until = list[Report](), time.monotonic() + within
        while self.child.is_alive and time.monotonic() < until:
            reports += self.reports()  # else it might wait for room in the pipe
            self.child.wait(0.05)
        reports += self.reports()
        self.kill()
        return reports

    def kill(self) -> None:
        """End the process at once, and close the connection."""
        self.child.kill()
        self._orders.close(within=SENDING)
        if not self.child.is_alive:  # else an order may be on its way by this file's number
            self.child.connection.close()


class RenderingProcess:
    """A process that renders a junction to a file, from now on.

    `scene` has the parameters of `habitus.lab.junction.Junction`, which the server does not load.
    """

    def __init__(self, path: Path, scene: dict[str, float], fork_server: ForkServer) -> None:
        self.path, self.progress = path, 0.0
        self.child = fork_server.start_process(f"{__name__}:render_scene", (path, scene))

    def step(self, within: float) -> bool:
        """Wait a little; return whether the file is there. HabitusError if it cannot be written."""
        try:
            while self.child.connection.poll(within):
                report = self.child.connection.recv()
                if isinstance(report, HabitusError):
                    raise report
                self.progress, within = report.done / (report.total or report.done), 0.0
        except (EOFError, OSError):
            if self.path.exists():
                return True
            raise HabitusError(f"rendering ended with code {self.child.wait(1.0)}") from None
        return False


def render_scene(job: tuple[Path, dict[str, Any]], connection: Connection) -> None:
    """Render a scene, and send how much of it is done."""
    from habitus.lab import Junction, render

    os.nice(NICENESS)
    path, scene = job
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        render(Junction(**scene), path, progress=ProgressSender(connection))
    except HabitusError as error:
        connection.send(error)
    except OSError as error:
        connection.send(HabitusError(f"cannot write {path}: {error.strerror}"))
