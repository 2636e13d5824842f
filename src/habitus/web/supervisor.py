"""The thread that runs the cameras' processes, and takes what they report.

It starts a process for each camera, again if one dies or is silent; it writes what they report
through `store`, and learns their models, one at a time. Whatever fails, such as a database that is
away, is a notice, and is tried again: processes go on and keep their events in their journals.
"""

import contextlib
import logging
import math
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sqlalchemy import select
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session

from habitus.backlog import growing_wait
from habitus.errors import FileError, HabitusError
from habitus.jobs.fork_server import ForkServer
from habitus.site.journal import SiteEvent, filed_events
from habitus.site.pipe_messages import (
    AlertOrder,
    CameraPicture,
    CameraState,
    FootageExtent,
    GoOn,
    JudgedDocument,
    ModelWanted,
    NewEntry,
    PictureSize,
    Remark,
    Report,
    StateChanged,
    Stop,
    UseModel,
)
from habitus.site.process import PRELOAD, CameraJob, CameraKind, CameraProcess
from habitus.site.zones import Zone, ignored
from habitus.web import reviews, store
from habitus.web.answers import LearningProgress
from habitus.web.database import CameraRow, first_line
from habitus.web.learner import LearningCandidate, ModelLearner

if TYPE_CHECKING:
    from habitus.web.server import Console

# Seconds of documents that are kept in memory for the pages.
REMEMBERED = 300
# Seconds without a report after which a process is killed.
SILENCE = 30.0
# Seconds that a process has to end by itself.
GRACE = 5.0
# Of those, seconds that each has at the end at least, though others took all of them.
LAST_GRACE = 0.5
# Longest wait, in seconds, before a process that died is started again; it is doubled up to this.
LONGEST_WAIT = 60.0
# Seconds that a process has to live for its earlier deaths to be forgotten.
HEALTHY = 60.0
# Seconds between two looks at a journal, and at the cameras' table, in case news got lost.
NET = 5.0
LOOK_AGAIN = 30.0
# Seconds of documents that are written together.
WRITTEN_AFTER = 10.0
# Seconds between two attempts at a database that is away.
DATABASE_AGAIN = 2.0
# Entries of a journal that are written together.
TOGETHER = 50
# Seconds that the thread waits for reports at most.
TICK = 0.5
# What pages show of a document.
JUDGED = ("time", "normality", "threshold", "behaviour", "expected")

# What SQLAlchemy raises where a database is away.
AWAY = (OperationalError, InterfaceError)

logger = logging.getLogger(__name__)


class LatestReports(NamedTuple):
    """What a camera reported last."""

    seen: CameraPicture | None
    judged: JudgedDocument | None
    recent: list[JudgedDocument]
    """Documents of the last minutes, the oldest first."""
    kept: FootageExtent | None
    pid: int | None
    """Process id, while its process runs."""
    restarts: int
    """Number of times that its process was started again after it died."""
    names: dict[int, str]
    """What people call its behaviours."""


class _WatchedCamera:
    """A camera, what it should be doing, and the process that does it."""

    def __init__(self, job: CameraJob) -> None:
        self.job = job
        self.wanted = True
        self.process: CameraProcess | None = None
        self.running: CameraJob | None = None
        """What the process is to do."""
        self.stopping_since: float | None = None
        self.started = 0.0
        self.start_at = 0.0
        """By the monotonic clock, as the others."""
        self.deaths = self.restarts = 0
        self.ended = False
        """Whether it is a recording that was judged to its end."""
        self.removed = False
        """Whether the camera is not in the database any more."""
        self.has_entries = True
        """Whether there may be something in its journal."""
        self.journal_seen = 0.0
        self.orphaned = True
        """Whether a process before this one may have left events open."""
        self.seen: CameraPicture | None = None
        self.recent: deque[JudgedDocument] = deque(maxlen=REMEMBERED)
        self.kept: FootageExtent | None = None
        self.waits = False
        """Whether it is a recording that goes on only with a model."""

    @property
    def needs_another_process(self) -> bool:
        """Whether the process does something that cannot be changed by an order."""
        return self.running is not None and _fixed(self.running) != _fixed(self.job)


def _fixed(job: CameraJob) -> tuple[object, ...]:
    """Return what cannot be changed while a process runs."""
    return job.folder, job.address, job.kind, ignored(job.alerts.zones), job.options


class Supervisor:
    """Runs the cameras of a console, by a fork server of its own unless one is given.

    A process that reports nothing for `silence` seconds is killed.
    """

    def __init__(
        self, console: "Console", fork_server: ForkServer | None = None, *, silence: float = SILENCE
    ) -> None:
        self.console, self.silence = console, silence
        self.fork_server = fork_server or ForkServer(PRELOAD)
        self._owns_fork_server = fork_server is None
        self.learner = ModelLearner(console, self.fork_server)
        self._lock = threading.Lock()
        self._watched: dict[str, _WatchedCamera] = {}
        self._removed: set[str] = set()
        """Cameras whose folders are to be deleted, once nothing works there any more."""
        self._accepted: dict[str, tuple[object, tuple[dict[str, Any], ...]]] = {}
        """By camera what was called normal, after its state as of `reviews.accepted_states`."""
        self._reports: list[tuple[str, StateChanged | PictureSize]] = []
        """What is not written yet, in order."""
        self._minutes = store.MinuteBuffer()
        self._minutes_written = 0.0
        self._looked = self._database_again = -NET
        self._refresh = self._is_new = True
        self._stopping = threading.Event()
        self._waking, self._woken = Pipe()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def start(self) -> None:
        """Start to watch all cameras."""
        self.fork_server.start()
        self._thread.start()

    def stop(self) -> None:
        """End all processes, with what they found written, and the thread."""
        self._stopping.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join()
        if self._owns_fork_server:
            self.fork_server.close()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def refresh(self) -> None:
        """Look at the cameras' table soon: something was changed there."""
        self._refresh = True
        self._wake()

    def remove(self, camera_id: str) -> None:
        """End the process of a camera that is not in the database any more; delete its folder."""
        with self._lock:
            self._removed.add(camera_id)
        self.refresh()

    def learn_now(self, camera_id: str) -> None:
        """Learn a camera's model as soon as no other one is being learnt."""
        self.learner.ask(camera_id)
        self._wake()

    def learning(self, camera_id: str) -> LearningProgress | None:
        """Return how far the learning of a camera's model is, if it is being learnt."""
        now = self.learner.now
        return now if now is not None and now.camera_id == camera_id else None

    def latest(self, camera_id: str) -> LatestReports:
        """Return what a camera reported last."""
        with self._lock:
            watched = self._watched.get(camera_id)
            if watched is None:
                return LatestReports(None, None, [], None, None, 0, {})
            recent = list(watched.recent)
            process = watched.process
        pid = process.child.pid if process is not None else None
        judged = recent[-1] if recent else None
        names = dict(watched.job.alerts.behaviour_names)
        return LatestReports(
            watched.seen, judged, recent, watched.kept, pid, watched.restarts, names
        )

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._waking.send_bytes(b"!")

    def _run(self) -> None:
        while not self._stopping.is_set():
            for step in (self._look, self._listen, self._watch_over, self._write, self._learn):
                self._attempt(step)
        self._attempt(self._end)

    def _attempt(self, step: Callable[[], None]) -> None:
        """Do something; a notice where it fails, as where the database or the disk is away."""
        in_database = step in (self._look, self._write, self._learn)
        if in_database and time.monotonic() < self._database_again:
            return
        try:
            step()
        except AWAY as error:
            self._database_again = time.monotonic() + DATABASE_AGAIN
            self._post(f"the database cannot be used: {first_line(error)}; it is tried again")
        except OSError as error:
            self._post(f"the disk cannot be used: {error.strerror or error}; it is tried again")
        except HabitusError as error:
            self._post(str(error))
        except Exception as error:
            # The thread lives on whatever happens: it is what keeps cameras watched.
            logger.exception("in the supervisor")
            self._post(f"unexpected: {type(error).__name__}: {first_line(error)}")
            self._stopping.wait(TICK)

    def _post(self, text: str, camera: str | None = None) -> None:
        self.console.bulletin.post(text, camera)

    # What should be running.

    def _look(self) -> None:
        """Compare the cameras' table with what runs."""
        now = time.monotonic()
        if not self._refresh and now - self._looked < LOOK_AGAIN:
            return
        self._refresh, self._looked = False, now
        if self._is_new:  # what was reported before the console was started does not hold any more
            with self.console.database.transaction() as session:
                store.forget_states(session, time.time())
            self._is_new = False
        with self.console.database.session() as session:
            cameras = {camera.id: camera for camera in session.scalars(select(CameraRow))}
            with self._lock:
                self._removed -= cameras.keys()
            self._read_accepted(session, cameras)
            names = {key: store.behaviour_names(session, row) for key, row in cameras.items()}
            raised = {key: store.latest_alarms(session, row) for key, row in cameras.items()}
            jobs = {
                key: self._job(camera, self._accepted[key][1], names[key], raised[key])
                for key, camera in cameras.items()
            }
        for camera_id, job in jobs.items():
            camera = cameras[camera_id]
            wanted = camera.enabled and not camera.options.get("preparing", False)
            folder = self.console.settings.camera_folder(camera_id)
            has_entries = any((folder / "journal").glob("[0-9]*.json"))
            if job is not None and (wanted or camera_id in self._watched or has_entries):
                self._want(job, wanted=wanted, ended=camera.state == CameraState.ENDED)
        for camera_id, watched in self._watched.items():
            watched.wanted &= jobs.get(camera_id) is not None
            watched.removed = camera_id not in cameras
        for camera in cameras.values():
            if not camera.enabled and camera.state != CameraState.OFF:
                self._reports.append((camera.id, StateChanged(CameraState.OFF, time.time())))

    def _read_accepted(self, session: Session, cameras: Collection[str]) -> None:
        """Read what was called normal of the cameras of which that has changed."""
        states = reviews.accepted_states(session)
        before, self._accepted = self._accepted, {}
        for camera_id in cameras:
            state, latest = states.get(camera_id), before.get(camera_id)
            if latest is None or latest[0] != state:
                latest = state, tuple(reviews.accepted(session, camera_id) if state else ())
            self._accepted[camera_id] = latest

    def _job(
        self,
        camera: CameraRow,
        accepted: tuple[dict[str, Any], ...],
        names: dict[int, str],
        raised: tuple[tuple[float, float, str], ...],
    ) -> CameraJob | None:
        try:
            sealed = self.console.vault.open(camera.secret_address)
        except FileError as error:
            refused = StateChanged(CameraState.REFUSED, time.time(), str(error))
            self._reports.append((camera.id, refused))
            return None
        return CameraJob(
            camera=camera.id,
            folder=self.console.settings.camera_folder(camera.id).resolve(),
            address=self.console.settings.located(sealed),
            kind=cast(CameraKind, camera.kind),
            alerts=AlertOrder(
                camera.alerts_per_day, tuple(map(Zone.of, camera.zones)), tuple(names.items())
            ),
            options={**camera.options, "learn_days": camera.learn_days},
            model=camera.model,
            accepted=accepted,
            raised=raised,
        )

    def _want(self, job: CameraJob, *, wanted: bool, ended: bool) -> None:
        """Have a camera watched as a job says; by orders, if its process runs already."""
        with self._lock:
            watched = self._watched.setdefault(job.camera, _WatchedCamera(job))
        watched.wanted = wanted
        if _fixed(watched.job) != _fixed(job):
            watched.ended, watched.deaths, watched.start_at = False, 0, 0.0
        elif watched.process is None and job.kind == "recording":
            watched.ended = ended
        watched.job = job
        process, before = watched.process, watched.running
        if process is None or before is None or watched.needs_another_process:
            return
        if (before.model, before.accepted) != (job.model, job.accepted) and job.model:
            process.order(UseModel(str(job.folder / job.model), job.accepted))
        if before.alerts != job.alerts:
            process.order(job.alerts)
        watched.running = job

    # Processes.

    def _listen(self) -> None:
        """Take what processes report; wait a little for that."""
        processes = {
            watched.process.child.connection: (camera_id, watched)
            for camera_id, watched in self._watched.items()
            if watched.process is not None
        }
        awaited: list[Connection] = [*processes, self._woken, *self.learner.connections]
        for ready in wait(awaited, TICK):
            if ready is self._woken:
                while self._woken.poll():
                    self._woken.recv_bytes()
            elif (found := processes.get(cast(Connection, ready))) is not None:
                camera_id, watched = found
                for report in watched.process.reports() if watched.process else ():
                    self._take(camera_id, watched, report)

    def _take(self, camera_id: str, watched: _WatchedCamera, report: Report) -> None:
        publish = partial(self.console.bulletin.publish, camera=camera_id)
        if isinstance(report, CameraPicture):
            watched.seen = report
            publish("picture", time=report.time)
        elif isinstance(report, JudgedDocument):
            with self._lock:
                watched.recent.append(report)
            self._minutes.add(camera_id, report)
            news = {name: getattr(report, name) for name in JUDGED}
            publish("judged", **news, names=dict(watched.job.alerts.behaviour_names))
        elif isinstance(report, StateChanged | PictureSize):
            if watched.wanted or isinstance(report, PictureSize):  # not of one that is switched off
                self._reports.append((camera_id, report))
            if isinstance(report, StateChanged) and report.state is CameraState.ENDED:
                watched.ended = True
        elif isinstance(report, NewEntry):
            watched.has_entries = True
        elif isinstance(report, FootageExtent):
            watched.kept = report
        elif isinstance(report, ModelWanted):
            watched.waits = True
        elif isinstance(report, Remark):
            self._post(report.text, camera_id)

    def _watch_over(self) -> None:
        """Start, stop and restart processes."""
        now = time.monotonic()
        for camera_id, watched in list(self._watched.items()):
            process = watched.process
            if process is None:
                self._start_if_due(camera_id, watched, now)
            elif not process.child.is_alive:
                self._bury(camera_id, watched, process, now)
            elif watched.stopping_since is not None:
                if now - watched.stopping_since > GRACE:
                    self._bury(camera_id, watched, process, now)
            elif not watched.wanted or watched.needs_another_process:
                process.order(Stop())
                watched.stopping_since = now
            elif now - process.last_heard > self.silence:
                self._bury(camera_id, watched, process, now)
        self._delete_removed()

    def _start_if_due(self, camera_id: str, watched: _WatchedCamera, now: float) -> None:
        if not watched.wanted:
            if watched.removed or not watched.orphaned:
                self._forget(camera_id, watched)
            return
        # What the process before it left is written first, unless the database is away.
        if watched.ended or now < watched.start_at:
            return
        if watched.orphaned and now >= self._database_again:
            return
        try:
            watched.job.folder.mkdir(parents=True, exist_ok=True)
            process = CameraProcess(watched.job, self.fork_server)
        except (HabitusError, OSError) as error:
            self._delay(camera_id, watched, f"cannot be started: {error}", now)
            return
        watched.process, watched.running = process, watched.job
        watched.started, watched.stopping_since = now, None

    def _bury(
        self, camera_id: str, watched: _WatchedCamera, process: CameraProcess, now: float
    ) -> None:
        """Take the last reports of a process, end it, and start it again later if it failed."""
        for report in process.reports():
            self._take(camera_id, watched, report)
        code = process.child.exit_code
        process.kill()
        watched.process = watched.running = None
        watched.waits = False
        watched.orphaned = watched.has_entries = True
        if watched.stopping_since is None and not watched.ended:
            watched.restarts += 1
            if now - watched.started > HEALTHY:
                watched.deaths = 0
            self._delay(camera_id, watched, f"its process {_end_in_words(code)}", now)
        watched.stopping_since = None

    def _delay(self, camera_id: str, watched: _WatchedCamera, reason: str, now: float) -> None:
        """Start a process again later, each time after a longer wait."""
        watched.deaths += 1
        pause = growing_wait(watched.deaths, 1.0, LONGEST_WAIT)
        watched.start_at = now + pause
        text = f"{reason}; started again in {pause:.0f} s"
        self._reports.append((camera_id, StateChanged(CameraState.LOST, time.time(), text)))
        self._post(f"{reason}, and is started again", camera_id)

    def _forget(self, camera_id: str, watched: _WatchedCamera) -> None:
        with self._lock:
            del self._watched[camera_id]
            if watched.removed:
                self._removed.add(camera_id)

    def _delete_removed(self) -> None:
        """Delete the folders of cameras that were removed, and that nothing works in."""
        with self._lock:
            removed = self._removed - self._watched.keys()
        for camera_id in removed:
            self._minutes.forget(camera_id)
            self.learner.forget(camera_id)
            shutil.rmtree(self.console.settings.camera_folder(camera_id), ignore_errors=True)
        with self._lock:
            self._removed -= removed

    # What was reported.

    def _write(self) -> None:
        """Write states, documents and events that are not written yet."""
        now = time.monotonic()
        if self._reports:
            self._write_reports()
        if now - self._minutes_written >= WRITTEN_AFTER:
            with self.console.database.transaction() as session:
                store.notify_troubles(session, time.time())
            self._write_minutes()
        for camera_id, watched in list(self._watched.items()):
            if watched.has_entries or watched.orphaned or now - watched.journal_seen >= NET:
                self._take_journal(camera_id, watched)

    def _write_reports(self) -> None:
        while self._reports:
            camera_id, report = self._reports[0]
            try:
                with self.console.database.transaction() as session:
                    changed = _write_report(session, camera_id, report)
            except (*AWAY, OSError):
                raise
            except Exception as error:
                changed = False
                self._post(f"its state cannot be written: {first_line(error)}", camera_id)
            del self._reports[0]
            if changed:
                self.console.bulletin.publish("camera", camera=camera_id, **report._asdict())

    def _write_minutes(self) -> None:
        """Write the documents of the last seconds; those that cannot be are left out."""
        try:
            with self.console.database.transaction() as session:
                self._minutes.write(session)
        except AWAY:
            raise
        except Exception as error:
            self._post(f"some minutes cannot be written: {first_line(error)}")
        self._minutes.clear()
        self._minutes_written = time.monotonic()

    def _take_journal(self, camera_id: str, watched: _WatchedCamera) -> None:
        """Write the entries of a camera's journal, and delete them once they are committed."""
        watched.has_entries, watched.journal_seen = False, time.monotonic()
        filed = filed_events(watched.job.folder / "journal")
        while batch := list(islice(filed, TOGETHER)):
            entries: list[tuple[Path, SiteEvent]] = []
            for path, entry in batch:
                if isinstance(entry, FileError):
                    self._put_aside(path, str(entry), camera_id)
                else:
                    entries.append((path, entry))

            try:
                self._ingest(camera_id, entries)
            except (*AWAY, OSError):
                watched.has_entries = True
                raise
        if watched.orphaned and watched.process is None:
            with self.console.database.transaction() as session:
                closed = store.close_events(session, camera_id)
            for event_id in closed:
                self._publish_event(camera_id, event_id, "ended")
            watched.orphaned = False

    def _ingest(self, camera_id: str, entries: list[tuple[Path, SiteEvent]]) -> None:
        """Write events together; where one of them cannot be written, find it and put it aside."""
        try:
            with self.console.database.transaction() as session:
                changed = [event for _, event in entries if store.ingest(session, camera_id, event)]
        except (*AWAY, OSError):
            raise
        except Exception as error:
            if len(entries) == 1:
                path = entries[0][0]
                self._put_aside(path, f"{path.name}: {first_line(error)}", camera_id)
            else:
                for entry in entries:
                    self._ingest(camera_id, [entry])
            return
        for path, _ in entries:
            path.unlink(missing_ok=True)
        for event in changed:
            self._publish_event(camera_id, event.id, event.kind, event.alarm)

    def _publish_event(self, camera_id: str, event_id: str, kind: str, alarm: bool = True) -> None:
        self.console.bulletin.publish(
            "event", camera=camera_id, event=event_id, kind=kind, alarm=alarm
        )

    def _put_aside(self, path: Path, reason: str, camera_id: str) -> None:
        """Keep a file that cannot be read or written out of the way."""
        path.replace(path.with_suffix(".damaged"))
        self._post(f"an entry of the journal was put aside: {reason}", camera_id)

    # Learning.

    def _learn(self) -> None:
        with self._lock:
            candidates = {
                camera_id: LearningCandidate(watched.job, watched.kept, watched.waits)
                for camera_id, watched in self._watched.items()
                if watched.wanted
            }
        result = self.learner.step(candidates)
        if result is None:
            return
        self._refresh = True  # it judges by the new model from then on
        watched = self._watched.get(result.camera_id)
        if watched is not None:
            watched.waits = False
            if result.model is None and watched.process is not None:
                watched.process.order(GoOn(result.summary))
        if result.model is None:
            self._post(f"no model was learnt: {result.summary}", result.camera_id)

    def _end(self) -> None:
        """End all processes and write what they said last."""
        self.learner.stop()
        running = {
            camera_id: watched.process
            for camera_id, watched in self._watched.items()
            if watched.process is not None
        }
        for process in running.values():
            process.order(Stop())
        until = time.monotonic() + GRACE
        for camera_id, process in running.items():
            watched = self._watched[camera_id]
            # All have the same time, but each some to have its last reports read.
            for report in process.end(max(until - time.monotonic(), LAST_GRACE)):
                self._take(camera_id, watched, report)
            watched.process, watched.has_entries = None, True
        self._database_again = self._minutes_written = -math.inf
        self._attempt(self._write)


def _end_in_words(code: int | None) -> str:
    if code is None:
        return "said nothing for too long"
    return f"ended by signal {-code}" if code < 0 else f"ended with code {code}"


def _write_report(session: Session, camera_id: str, report: StateChanged | PictureSize) -> bool:
    if isinstance(report, PictureSize):
        return store.set_size(session, camera_id, report)
    return store.set_state(session, camera_id, report)
