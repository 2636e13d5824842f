"""The process of a camera: it watches, keeps documents to learn from, and files events.

Nothing here waits for a disk or for the server: what is written, and what is reported, is handed to
threads. What the server orders is done between two documents.
"""

import hashlib
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from habitus.backlog import Backlog, growing_wait
from habitus.corpus.documents import Condition
from habitus.errors import HabitusError, InvalidInputError, VideoError
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.condition import ConditionMonitor
from habitus.ingest.decoder import FrameSizeError, Job
from habitus.ingest.live import LiveDocument, LiveSource, Notice
from habitus.jobs.fork_server import ForkServer
from habitus.scene.camera_monitor import FAULTS, FaultReports
from habitus.scene.detector import Judgement
from habitus.scene.thresholds import AlarmLimit, RaisedAlarm
from habitus.site.filing import Filing
from habitus.site.footage import LEARN_DAYS, FootageWriter
from habitus.site.judging import Judging, TaughtScene
from habitus.site.live_picture import arrows_in, heat_in, jpeg
from habitus.site.packet_ring import PacketRing
from habitus.site.pipe_messages import (
    AlertOrder,
    CameraPicture,
    CameraState,
    FootageExtent,
    GoOn,
    JudgedDocument,
    ModelWanted,
    Order,
    PictureSize,
    Remark,
    ServerLink,
    StateChanged,
    UseModel,
)
from habitus.site.process import CameraJob
from habitus.site.relearning import FIRST_AFTER
from habitus.site.shard_store import CONSOLE, CameraFolder
from habitus.site.watching import PATIENCE, happenings
from habitus.site.zones import ignored, polygon_text
from habitus.video import Source

# Seconds until a file that could not be read is tried again: at first, and at most.
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
# Largest speed of a file that plays.
MOST_SPEED = 1000.0
# Seconds from one picture to the next, and from one sign of life to the next.
PICTURE_EVERY, BEAT_EVERY = 0.9, 5.0
# Documents that may wait to be kept, and of how many one keeps its still.
MOST_WAITING, STILL_EVERY = 120, 16
# Seconds that ending may take: for what is written, and for what is reported.
WRITING, SENDING = 3.0, 1.0
# Seconds that writing may take at the end of a recording: all of its clips.
LAST_CLIPS = 600.0
# Seconds that it may take until all documents are on disk.
FLUSHING = 60.0


def watch_camera(job: CameraJob, connection: Connection) -> None:
    """Run the process of a camera until it is ordered to end, or the server is gone."""
    link = ServerLink(connection)
    try:
        watcher = Watcher(job, link, ForkServer.inherited())
    except HabitusError as error:  # a frame rate of 0, say: it stays so until the job is another
        link.send(StateChanged(CameraState.REFUSED, time.time(), str(error)))
        while not link.stop.wait(BEAT_EVERY):
            link.send(FootageExtent(0.0, time.time()))
    else:
        try:
            watcher.run()
        finally:
            watcher.close()
    finally:
        link.close(within=SENDING)


class Watcher:
    """Watches one camera, and does as the server orders."""

    def __init__(self, job: CameraJob, link: ServerLink, fork_server: ForkServer) -> None:
        self.job, self.link, self.fork_server, options = job, link, fork_server, job.options
        self.patience = float(options.get("patience", PATIENCE))
        self.source = Source(
            job.address,
            fps=options.get("fps"),
            fast=bool(options.get("fast", False)),
            other_hosts=bool(options.get("other_hosts", False)),
            timeout=self.patience,
            elsewhere=job.kind == "stream" and not options.get("local", False),
        )
        self.settings = DocumentSettings(
            mask=polygon_text(ignored(job.alerts.zones)), still_every=1
        )
        self.speed = float(options.get("speed", 1.0)) if job.kind == "playback" else None
        if self.speed is not None and not 0 < self.speed <= MOST_SPEED:
            raise InvalidInputError(
                f"speed must be above 0 and at most {MOST_SPEED:g}, found {self.speed:g}",
                parameter="speed",
            )
        self.alerts = job.alerts
        now, speed = time.time(), self.speed or 1.0
        raised = () if job.kind == "recording" else job.raised
        self.limit = AlarmLimit(
            job.alerts.alerts_per_day,
            [RaisedAlarm((now - start) * speed, lowest, zone) for start, lowest, zone in raised],
        )
        self.state: StateChanged | None = None
        self.size: tuple[int, int] | None = None
        self.judging: Judging | None = None
        self.taught = TaughtScene()
        self.conditions = ConditionMonitor(self.settings.clip)
        self.faults = FaultReports(self.source.name)
        self.pictured, self.beaten, self.n_documents = 0.0, 0.0, 0
        self.recording = (
            RecordingProgress(options.get("starts")) if job.kind == "recording" else None
        )
        self.footage = FootageThread(job, self.settings, link)
        if self.recording is not None and job.model is None:
            # What an earlier run has kept would be there twice.
            shutil.rmtree(self.footage.folder, ignore_errors=True)
        self.filing = Filing(job.folder, link.send, fork_server)
        self._say(CameraState.CONNECTING)
        if job.model is not None:
            self._use(job.model, job.accepted)

    def run(self) -> None:
        """Watch until the end is ordered, or until a recording was judged."""
        n_failed = 1
        while not self.link.stop.is_set():
            n_before = self.n_documents
            try:
                if self._read():
                    return
            except HabitusError as error:
                went_well = self.n_documents > n_before
                self._say(CameraState.LOST if went_well else CameraState.REFUSED, str(error))
                n_failed = 1 if went_well else n_failed + 1
                self._wait(growing_wait(n_failed, FIRST_WAIT, LONGEST_WAIT))

    def close(self) -> None:
        """Write what is known."""
        if self.judging is not None:
            self.judging.end_event()
        self.filing.close(within=WRITING)
        self.footage.close(within=WRITING)

    def _read(self) -> bool:
        """Take documents until the end; return whether there is nothing left to do."""
        self._attend()
        with self._live() as self.live:
            for happening in happenings(self.live, self):
                if happening is None:
                    self._attend()
                elif isinstance(happening, Notice) and not happening.is_loss:  # that is a state
                    self._remark(happening.text)
        if self.link.stop.is_set():
            return True
        if self.recording is None:
            raise VideoError(f"{self.source.name}: too short: no document in it")
        return self._end_recording(self.recording)

    def _live(self) -> LiveSource:
        """Return the source, to be opened."""
        recorded = self.recording is not None
        ring = PacketRing(self.job.folder / "recent", speed=self.speed or 1.0)
        job = Job(
            self.source,
            self.settings,
            expected=None if self.judging is None else self.judging.vocabulary,
            speed=self.speed,
            measured=recorded,
            tap=None if recorded else ring,
        )
        return LiveSource(
            job,
            patience=self.patience,
            stop=self.link.stop,
            repeats=self.job.kind == "playback",
            fork_server=self.fork_server,
        )

    def _attend(self) -> None:
        """Do as is ordered, cut clips that are due, and give a sign of life now and then."""
        while (order := self.link.next_order()) is not None:
            self._obey(order)
        self.filing.tick()
        self._beat()

    def _beat(self) -> None:
        """Give a sign of life now and then."""
        if time.monotonic() - self.beaten >= BEAT_EVERY:
            self.beaten = time.monotonic()
            self.link.send(self.footage.extent)

    def _wait(self, seconds: float) -> None:
        """Wait, with an ear for orders."""
        until = time.monotonic() + seconds
        self._attend()
        while not self.link.stop.wait(min(seconds, 0.1)) and time.monotonic() < until:
            self._attend()

    def _obey(self, order: Order) -> None:
        if isinstance(order, UseModel):
            self._use(order.path, order.accepted)
        elif isinstance(order, AlertOrder):
            try:
                if self.judging is not None:
                    self.judging.adjust(order)
                self.alerts = order
            except HabitusError as error:
                self._remark(f"budget and zones stay as they were: {error}")
        elif isinstance(order, GoOn) and self.recording is not None:
            self.recording.go_on(order.reason)

    def _use(self, path: str, accepted: Sequence[dict[str, Any]]) -> None:
        """Judge by a model from the next document on; as before, if it cannot be used."""
        try:
            judging = Judging(
                self.taught.scene(self.job.folder / path, accepted, self._beat),
                self.alerts,
                name=self.source.name,
                filing=self.filing,
                new_id=self._new_id,
                speed=self.speed or 1.0,
                clock=self._clock(),
                limit=self.limit,
            )
        except HabitusError as error:
            self._remark(f"the model cannot be used: {error}")
            if self.recording is not None:
                self.recording.go_on(str(error))
            return
        if self.judging is not None:
            self.judging.end_event()
        self.judging = judging

    def _clock(self) -> Callable[[float], datetime] | None:
        """Return the clock by which zones have their hours; that of a recording may be unknown."""
        options = self.job.options
        if self.job.kind == "recording" and options.get("starts") is None:
            return None
        name = options.get("timezone")
        return partial(datetime.fromtimestamp, tz=ZoneInfo(name) if name else None)

    def _new_id(self, start: float) -> str:
        """Return the id of an event; a recording that is judged again has the same ones again."""
        if self.recording is None:
            return uuid.uuid4().hex[:16]
        text = f"{self.job.camera} {start:.3f}"
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _dated(self, arrival: LiveDocument) -> LiveDocument:
        """Return a document with its time of day: in a recording, that of the recording."""
        if self.recording is None:
            return arrival
        path = Path(self.source.address)
        self.recording.begin(path, self.live.length)
        self.filing.recording = path, self.recording.starts
        return arrival._replace(time=self.recording.starts + arrival.document.time)

    def take(self, arrival: LiveDocument) -> None:
        """Keep a document, judge it, and report what is seen."""
        arrival = self._dated(arrival)
        document, vocabulary, recording = arrival.document, arrival.vocabulary, self.recording
        if self.size != (vocabulary.width, vocabulary.height):
            self.size = vocabulary.width, vocabulary.height
            self.link.send(PictureSize(*self.size))
        self.n_documents += 1
        condition, judgement = self.conditions.judge(document), None
        if recording is None or self.judging is None:
            self.footage.add(arrival, condition)
        if self.judging is not None and (recording is None or document.time >= recording.learnt):
            judgement = self.judging.take(arrival)
            condition = self.judging.observer.condition
        self._say(*self._state(self.faults.named(condition, document.n_frames)))
        self._show(arrival, judgement)
        if recording is not None:
            recording.read = document.time + self.settings.clip
            if self.judging is None and recording.read >= recording.wanted:
                self._ask_for_model(recording)

    def _state(self, fault: str | None) -> tuple[CameraState, str]:
        if fault is not None:
            return CameraState(fault), FAULTS[fault]
        if self.judging is None:
            return CameraState.LEARNING, ""
        return CameraState.WATCHING, "; ".join(self.judging.notes)

    def _show(self, arrival: LiveDocument, judgement: Judgement | None) -> None:
        """Report how a document was judged, and what it shows."""
        document, judging = arrival.document, self.judging
        n_tokens = float(document.counts.sum())
        judged = JudgedDocument(arrival.time, None, None, 0, (), n_tokens)
        if judging is not None:
            judged = judged._replace(threshold=judging.threshold)
            if judgement is not None and judgement.judged:
                judged = judged._replace(
                    normality=judgement.normality,
                    behaviour=judgement.behaviour + 1,
                    expected=judging.expected,
                )
        self.link.send(judged)
        unusual = judgement is not None and judgement.abnormal
        is_due = unusual or time.monotonic() - self.pictured >= PICTURE_EVERY
        if document.still is None or not is_due:
            return
        self.pictured, v = time.monotonic(), arrival.vocabulary
        habits = judging.habits if judging is not None else None
        heat = []
        if unusual and judgement is not None and habits is not None:
            heat = heat_in(judgement, habits)
        picture, arrows = jpeg(document.still), arrows_in(document, v)
        self.link.send(CameraPicture(arrival.time, picture, v.width, v.height, arrows, heat))

    def miss(self, live: LiveSource) -> None:
        """Say that a source is lost."""
        if self.judging is not None:
            self.judging.end_event()
        state = CameraState.CONNECTING if self.size is None else CameraState.LOST
        error = live.error
        if isinstance(error, FrameSizeError) or (error is not None and error.parameter is not None):
            state = CameraState.REFUSED
        self._say(state, live.reason, time.time() - time.monotonic() + (live.lost_at or 0.0))

    def _ask_for_model(self, recording: "RecordingProgress") -> bool:
        """Wait until there is a model, or cannot be one yet; return whether there is.

        Nothing is read meanwhile.
        """
        self.footage.flush()
        self.link.send(self.footage.extent)
        self.link.send(ModelWanted(self.footage.extent.seconds))
        recording.waits, recording.asked = True, recording.read
        while recording.waits and self.judging is None and not self.link.stop.is_set():
            self._wait(0.1)
        return self.judging is not None

    def _end_recording(self, recording: "RecordingProgress") -> bool:
        """Say that a recording is over; return False if it is to be read again to be judged."""
        if self.judging is None and recording.read > recording.asked:
            return not self._ask_for_model(recording) and self._end_recording(recording)
        reason = f"not judged: {recording.reason}"
        if self.judging is not None:
            self.judging.end_event()
            reason = ""
        until = time.monotonic() + LAST_CLIPS
        while self.filing.is_busy and time.monotonic() < until and not self.link.stop.is_set():
            self._wait(0.1)
        self._say(CameraState.ENDED, reason)
        return True

    def _say(self, state: CameraState, reason: str = "", since: float | None = None) -> None:
        """Report the state, if it is another one, or for another reason."""
        before = self.state
        if before is not None and (before.state, before.reason) == (state, reason):
            return
        if before is not None and before.state is state:
            since = before.since
        self.state = StateChanged(state, time.time() if since is None else since, reason)
        self.link.send(self.state)

    def _remark(self, text: str) -> None:
        self.link.send(Remark(text, time.time()))


class RecordingProgress:
    """How far a file is that is judged once.

    Its first frame is at `starts`; by default, such that it ends when its file was written. The
    first `learnt` seconds are learnt from and not judged; after `wanted` seconds a model is asked
    for, and it `waits` until an answer comes. `read` seconds were read, and `asked` when a model
    was asked for last; `reason` is why there is none.
    """

    def __init__(self, starts: float | None) -> None:
        self.given, self.starts = starts, 0.0
        self.learnt = self.wanted = FIRST_AFTER
        self.read = self.asked = 0.0
        self.waits = self._begun = False
        self.reason = ""

    def begin(self, path: Path, length: float | None) -> None:
        """Take its length, once that is known: of a short one, half is learnt from."""
        if self._begun or length is None:
            return
        self._begun = True
        self.learnt = self.wanted = min(FIRST_AFTER, length / 2)
        written = path.stat().st_mtime if path.exists() else time.time()
        self.starts = written - length if self.given is None else self.given

    def go_on(self, reason: str) -> None:
        """Read on without a model, and ask again after twice as much."""
        self.reason, self.waits = reason, False
        self.wanted *= 2


class FootageThread:
    """Documents on disk to learn from, written by a thread; `extent` is how much there is."""

    def __init__(self, job: CameraJob, settings: DocumentSettings, link: ServerLink) -> None:
        self.folder = CameraFolder(job.folder, CONSOLE).documents
        self.settings, self.link = settings, link
        recorded = job.kind == "recording"
        self.days = None if recorded else float(job.options.get("learn_days", LEARN_DAYS))
        self.extent = FootageExtent(0.0, time.time())
        self._writer: FootageWriter | None = None
        self._tasks: Backlog[Callable[[FootageWriter], None]] = Backlog(self._do, room=MOST_WAITING)

    def add(self, arrival: LiveDocument, condition: Condition) -> None:
        """Keep a document."""
        document = arrival.document
        if document.number % STILL_EVERY:
            document = document._replace(still=None)
        time, vocabulary, follows = arrival.time, arrival.vocabulary, arrival.follows
        self._tasks.add(
            lambda writer: writer.add(document, time, condition, vocabulary, follows=follows)
        )

    def flush(self) -> None:
        """Have all documents on disk, and wait for that."""
        done = threading.Event()
        self._tasks.add(FootageWriter.flush)
        self._tasks.add(lambda writer: done.set())
        done.wait(FLUSHING)

    def close(self, *, within: float) -> None:
        """Write what is held."""
        self._tasks.add(FootageWriter.flush)
        self._tasks.close(within=within)

    def _do(self, task: Callable[[FootageWriter], None]) -> None:
        if self._writer is None:  # it looks at all files that are there
            self._writer = FootageWriter(self.folder, self.settings, learn_days=self.days)
        task(self._writer)
        self.extent = self._writer.kept or self.extent
        for note in self._writer.notes:
            self.link.send(Remark(note, time.time()))
        self._writer.notes.clear()
