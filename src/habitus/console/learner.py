"""Learning the cameras' models, one at a time, in a process of its own."""

import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, NamedTuple

from habitus.cameras.messages import Kept
from habitus.cameras.nursery import Nursery
from habitus.cameras.process import CameraJob

if TYPE_CHECKING:
    from habitus.console.server import Console


class LearningNow(NamedTuple):
    """A model that is being learnt."""

    camera_id: str
    occasion: str
    stage: str
    done: float
    total: float | None
    note: str


class Candidate(NamedTuple):
    """A camera whose model may be learnt."""

    job: CameraJob
    kept: Kept | None


class Learner:
    """Learns models as they become due, and when somebody asks.

    Parameters
    ----------
    console
        Whose cameras.
    nursery
        Where its processes are forked from.
    """

    def __init__(self, console: "Console", nursery: Nursery) -> None:
        self.console, self.nursery = console, nursery
        self.now: LearningNow | None = None
        self._lock = threading.Lock()
        self._asked: set[str] = set()

    def ask(self, camera_id: str) -> None:
        """Learn a camera's model as soon as no other one is being learnt."""
        with self._lock:
            self._asked.add(camera_id)

    @property
    def connections(self) -> list[Connection]:
        """What to wait on for news of the learning."""
        return []

    def step(self, candidates: Mapping[str, Candidate]) -> bool:
        """Take what is reported, or start what is due; return whether there is a new model."""
        return False

    def stop(self) -> None:
        """End the learning that runs, if any."""
