"""A rendered junction as a file that plays as a camera, made in a process of its own."""

import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from habitus.errors import HabitusError
from habitus.progress import Progress
from habitus.site.process import ForkedProcess

# Seconds between two reports, and how much the process steps back behind cameras.
TELL_EVERY, NICENESS = 0.5, 5


class SceneJob(NamedTuple):
    """A junction to render; see `habitus.lab.junction.Junction`."""

    path: Path
    """File to write."""
    seed: int
    seconds: float
    normal_for: float
    anomalies_per_hour: float
    width: int = 360
    height: int = 288
    fps: float = 12.5


class RenderingProcess(ForkedProcess[SceneJob]):
    """A process that renders a scene."""

    target = "habitus.site.rendered_scene:render_scene"
    progress = 0.0
    """Share that is done."""

    def step(self, within: float) -> bool:
        """Wait a little; return whether the file is there.

        Raises
        ------
        HabitusError
            If it cannot be written.
        """
        try:
            while self.connection.poll(within):
                report = self.connection.recv()
                if isinstance(report, HabitusError):
                    raise report
                self.progress, within = report, 0.0
        except (EOFError, OSError):
            if self.job.path.exists():
                return True
            raise HabitusError(f"rendering ended with code {self.wait(1.0)}") from None
        return False


def render_scene(job: SceneJob, connection: Connection) -> None:
    """Render a scene, and send how much of it is done."""
    from habitus.lab.junction import Junction, render

    os.nice(NICENESS)
    told = 0.0

    def tell(progress: Progress) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_EVERY:
            told = time.monotonic()
            connection.send(progress.done / (progress.total or progress.done))

    scene = Junction(
        seed=job.seed,
        seconds=job.seconds,
        width=job.width,
        height=job.height,
        fps=job.fps,
        normal_for=job.normal_for,
        anomalies_per_hour=job.anomalies_per_hour,
    )
    try:
        job.path.parent.mkdir(parents=True, exist_ok=True)
        render(scene, job.path, progress=tell)
    except HabitusError as error:
        connection.send(error)
    except OSError as error:
        connection.send(HabitusError(f"cannot write {job.path}: {error.strerror}"))
