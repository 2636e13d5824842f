"""Learning the cameras' models, one at a time, in a process of its own."""

import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from habitus.errors import HabitusError
from habitus.jobs.fork_server import Child, ForkServer
from habitus.progress import Progress
from habitus.site.pipe_messages import FootageExtent
from habitus.site.process import CameraJob
from habitus.site.relearning import (
    LEARNING,
    LearningFailure,
    LearningJob,
    LearntModel,
    Occasion,
    PastLearning,
    due,
    learning_reports,
)
from habitus.web import reviews, store
from habitus.web.answers import LearningProgress
from habitus.web.database import CameraRow, LearningRow

if TYPE_CHECKING:
    from habitus.web.server import Console

# Seconds between two looks at what is due, and between two reports of progress to the pages.
LOOK_EVERY, REPORT_EVERY = 2.0, 0.5
DAY = 86_400.0


class LearningCandidate(NamedTuple):
    """A camera whose model may be learnt."""

    job: CameraJob
    kept: FootageExtent | None
    waits: bool
    """Whether it is a recording that goes on only with a model."""


class _RunningLearning(NamedTuple):
    """The learning that runs."""

    camera_id: str
    occasion: str
    number: int
    child: Child


class ModelLearner:
    """Learns models as they become due, and when somebody asks; `now` is how far it is."""

    def __init__(self, console: "Console", fork_server: ForkServer) -> None:
        self.console, self.fork_server = console, fork_server
        self.now: LearningProgress | None = None
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        self._running: _RunningLearning | None = None
        self._over: LearntModel | LearningFailure | None = None
        """Its outcome, until that is written."""
        self._past: dict[str, list[PastLearning]] | None = None
        self._looked = self._reported = -LOOK_EVERY

    def ask(self, camera_id: str) -> None:
        """Learn a camera's model as soon as no other one is being learnt."""
        with self._lock:
            self._asked.add(camera_id)

    @property
    def connections(self) -> list[Connection]:
        """What to wait on for news of the learning."""
        return [self._running.child.connection] if self._running and not self._over else []

    def step(self, candidates: Mapping[str, LearningCandidate]) -> LearningRow | None:
        """Take what is reported, or start what is due; return a learning that is over."""
        if self._running is not None:
            return self._follow(self._running)
        if time.monotonic() - self._looked >= LOOK_EVERY:
            self._looked = time.monotonic()
            self._start_next(candidates)
        return None

    def forget(self, camera_id: str) -> None:
        """End the learning of a camera that was removed."""
        with self._lock:
            self._asked.discard(camera_id)
        if self._running is not None and self._running.camera_id == camera_id:
            self.stop()

    def stop(self) -> None:
        """End the learning that runs, if any; it is done again when it is due."""
        if self._running is not None:
            self._running.child.end()
            self._running = self._over = self.now = None

    def _follow(self, running: _RunningLearning) -> LearningRow | None:
        """Take the reports of the learning that runs."""
        if self._over is None:
            for report in learning_reports(running.child):
                if isinstance(report, Progress):
                    self._report(running, report)
                else:
                    self._over = report
        if self._over is None:
            return None
        with self.console.database.transaction() as session:
            learning = store.end_learning(session, running.number, self._over, time.time())
        running.child.end()
        self._running = self._over = self.now = self._past = None
        if learning is not None:
            self.console.bulletin.publish(
                "learning",
                camera=learning.camera_id,
                occasion=learning.occasion,
                stage="ended",
                model=learning.model,
                summary=learning.summary,
            )
        return learning

    def _report(self, running: _RunningLearning, progress: Progress) -> None:
        news = {"occasion": running.occasion, **progress._asdict()}
        self.now = LearningProgress(camera_id=running.camera_id, **news)
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self._reported = time.monotonic()
            self.console.bulletin.publish("learning", camera=running.camera_id, **news)

    def _start_next(self, candidates: Mapping[str, LearningCandidate]) -> None:
        if self._past is None:
            self._past = self._read_past()
        for camera_id, candidate in candidates.items():
            occasion = self._occasion(camera_id, candidate, self._past.get(camera_id, []))
            if occasion is not None:
                self._start(camera_id, candidate, occasion)
                return

    def _read_past(self) -> dict[str, list[PastLearning]]:
        """Return what was learnt; what the server's end interrupted begins anew."""
        with self.console.database.transaction() as session:
            store.forget_interrupted(session)
        past: dict[str, list[PastLearning]] = {}
        with self.console.database.session() as session:
            for row in session.scalars(select(LearningRow)):
                learning = PastLearning(row.occasion, row.started, row.ended, row.model is not None)
                past.setdefault(row.camera_id, []).append(learning)
        return past

    def _occasion(
        self, camera_id: str, candidate: LearningCandidate, past: list[PastLearning]
    ) -> Occasion | None:
        with self._lock:
            asked = camera_id in self._asked
        if asked:
            return "asked"
        if candidate.job.kind == "recording":
            return "first" if candidate.waits else None
        return due(time.time(), candidate.kept, past, camera=camera_id)

    def _start(self, camera_id: str, candidate: LearningCandidate, occasion: Occasion) -> None:
        now = time.time()
        with self.console.database.transaction() as session:
            camera = session.get(CameraRow, camera_id)
            if camera is None:
                return
            # The times of a recording are its own.
            since = now - camera.learn_days * DAY if camera.kind != "recording" else -float("inf")
            job = LearningJob(
                candidate.job.folder,
                occasion,
                since=since,
                excluded=tuple(reviews.never_learnt(session, camera_id)),
                accepted=tuple(reviews.accepted(session, camera_id)),
                before=camera.model,
                names=tuple(store.behaviour_names(session, camera).items()),
            )
            number = store.begin_learning(session, camera_id, occasion, now)
        with self._lock:
            self._asked.discard(camera_id)
        try:
            child = self.fork_server.start_process(LEARNING, job)
        except HabitusError as error:
            with self.console.database.transaction() as session:
                store.end_learning(session, number, LearningFailure(str(error)), now)
            self._past = None
            raise
        self._running = _RunningLearning(camera_id, occasion, number, child)
        self._report(self._running, Progress("starting", 0.0, None))
