"""A rendered junction as a file that plays as a camera, made in a process of its own."""

import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from habitus.errors import HabitusError
from habitus.jobs.fork_server import ForkServer
from habitus.site.process import ProgressSender

# How much the process steps back behind cameras.
NICENESS = 5


class SceneJob(NamedTuple):
    """A junction to render."""

    path: Path
    """File to write."""
    scene: dict[str, float]
    """Parameters of `habitus.lab.junction.Junction`, which the server does not load."""


class RenderingProcess:
    """A process that renders a scene, from now on."""

    def __init__(self, job: SceneJob, fork_server: ForkServer) -> None:
        self.job, self.progress = job, 0.0
        self.child = fork_server.start_process("habitus.site.rendered_scene:render_scene", job)

    def step(self, within: float) -> bool:
        """Wait a little; return whether the file is there. HabitusError if it cannot be written."""
        try:
            while self.child.connection.poll(within):
                report = self.child.connection.recv()
                if isinstance(report, HabitusError):
                    raise report
                self.progress, within = report.done / (report.total or report.done), 0.0
        except (EOFError, OSError):
            if self.job.path.exists():
                return True
            raise HabitusError(f"rendering ended with code {self.child.wait(1.0)}") from None
        return False


def render_scene(job: SceneJob, connection: Connection) -> None:
    """Render a scene, and send how much of it is done."""
    from habitus.lab.junction import Junction, render

    os.nice(NICENESS)
    try:
        job.path.parent.mkdir(parents=True, exist_ok=True)
        scene: Any = job.scene
        render(Junction(**scene), job.path, progress=ProgressSender(connection))
    except HabitusError as error:
        connection.send(error)
    except OSError as error:
        connection.send(HabitusError(f"cannot write {job.path}: {error.strerror}"))
