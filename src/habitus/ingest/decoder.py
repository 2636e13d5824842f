"""A supervised process that decodes one source into documents, and can be ended at any time.

FFmpeg may hang or crash on a damaged stream or a silent camera, so it runs in a process of its own,
forked from a fork server. What waits to be read has a limited size, so decoding waits for whoever
reads it. The process opens its source on request, and again after that ended: only what hangs or
crashes costs a new process.
"""

import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from multiprocessing.connection import Connection
from typing import NamedTuple, Self

import av
import numpy as np

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, VideoError
from habitus.ingest.clips import ROUNDING, Document, DocumentSettings, documents, vocabulary_of
from habitus.jobs.fork_server import Child, ForkServer, interrupts_blocked
from habitus.progress import report_compiling, when_compiling
from habitus.video import Frame, PacketTap, Reader, Source, survey

# Messages that may wait to be read, besides what a socket holds.
QUEUE_SIZE = 8
# Minimum number of seconds between two signs of life.
BEAT = 0.25
# Seconds by which a camera's clock may be ahead of arrival from one frame to the next.
LEAP = 2.0
# Seconds between frames that are timed by their arrival, at least.
SHORTEST_INTERVAL = 1e-3
# Seconds that whoever reads waits for the next message before looking at anything else.
TICK = 0.1
# Seconds that a process may take to end after it was asked to.
ENDING = 10.0
# Seconds by which a file that plays at a speed of its own may be late before it stays late.
MOST_LATE = 1.0


class Order(Enum):
    """What the process is to do."""

    OPEN = 0
    """Open the source."""
    FINISH = 1
    """Stop reading, send what there is, and end."""


class Sign(Enum):
    """A message without contents."""

    READY = 0
    """The process will open the source now."""
    FRAME = 1
    """A frame was decoded."""
    COMPILING = 2
    """Kernels have to be compiled first."""
    GONE = 3
    """The process has ended."""


class TimedDocument(NamedTuple):
    """A document, and when its clip started."""

    document: Document
    arrived: float
    """When its first frame arrived, by the monotonic clock; of a file, in seconds of video after
    its very first frame."""


class EndOfSource(NamedTuple):
    """The source ended by itself, or after the last document that was asked for."""

    notes: list[str]
    """Notes that were not sent yet."""


class Length(NamedTuple):
    """How long a file is."""

    seconds: float


# The vocabulary comes with the first frame; a string is a note; an error is the last message.
Message = Sign | Length | Vocabulary | TimedDocument | str | EndOfSource | HabitusError


class FrameSizeError(VideoError):
    """A source that has another frame size than is expected."""

    @classmethod
    def of(cls, source: Source, size: tuple[int, int], expected: tuple[int, int]) -> Self:
        """Return the error of a source with both sizes, width and height each."""
        return cls(
            f"{source.name}: the picture has {size[0]}x{size[1]} pixels, expected "
            f"{expected[0]}x{expected[1]}: restore the camera's settings, or learn it anew"
        )


@dataclass(frozen=True)
class Job:
    """What a decoder process is to do."""

    source: Source
    settings: DocumentSettings
    prompt: bool | None = None
    """Whether a document is sent with the last frame of its clip, see `documents`; by default,
    those of a live source."""
    expected: Vocabulary | None = None
    """What the vocabulary must refine; by default the first that is found."""
    speed: float | None = None
    """How fast to read, as a multiple of the video's own speed; as fast as possible if None."""
    measured: bool = False
    """Whether to say first how long a file is."""
    tap: PacketTap | None = None
    """Given the packets before they are decoded, such as to record them; must be picklable."""


class Decoder:
    """The process as seen by its parent; it runs while the `with` block does.

    Parameters
    ----------
    job
        What to decode; the source `-` is the standard input of this process.
    fork_server
        Forks the process. The address with its password goes through a socket: no command line and
        no file has it.
    """

    def __init__(self, job: Job, fork_server: ForkServer) -> None:
        self.job, self.fork_server = job, fork_server
        self.messages: queue.Queue[Message] = queue.Queue(QUEUE_SIZE)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        try:
            with contextlib.ExitStack() as stack, interrupts_blocked():
                stack.callback(self._end)  # an interrupt may come while the process starts
                self.process = self.fork_server.start_process(
                    "habitus.ingest.decoder:decode",
                    self.job,
                    self.job.source.descriptors,
                    grace=0.0,
                )
                self._thread = threading.Thread(
                    target=self._receive, args=(self.process,), daemon=True
                )
                self._thread.start()
                stack.pop_all()
        except OSError as error:
            raise VideoError(f"cannot start a decoder: {error.strerror}") from error
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def _end(self) -> None:
        """Kill the process and take what it sent, if it was started."""
        if self._thread is None:
            return
        self.process.kill()
        while self._thread.is_alive():  # it may wait for room in the queue
            self.next_message(within=0.05)
        self.process.connection.close()

    def _receive(self, process: Child) -> None:
        """Move messages to the queue, and say at their end that the process is gone."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = process.connection.recv()
                if message is Sign.COMPILING:
                    report_compiling()
                else:
                    self.messages.put(message)
        self.messages.put(Sign.GONE)

    def next_message(self, *, within: float) -> Message | None:
        """Return the next message, or None after `within` seconds."""
        try:
            return self.messages.get(timeout=within)
        except queue.Empty:
            return None

    def order(self, order: Order) -> None:
        """Have the source opened, whose last message is an `EndOfSource` or an error; or finish."""
        with contextlib.suppress(OSError):  # it has ended, which the messages show
            self.process.connection.send(order)


def decode(job: Job, connection: Connection, *opened: int) -> None:
    """Do a job, and end this process; `opened` are the source's open files of the parent."""
    for number, descriptor in zip(job.source.descriptors, opened, strict=True):
        if connection.fileno() == number:
            connection = Connection(os.dup(number))
        os.dup2(descriptor, number)
    orders = _Orders(connection)
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        when_compiling(lambda: connection.send(Sign.COMPILING))
        try:
            warm_up(job.settings)
            while orders.wait():
                connection.send(Sign.READY)
                job = _send_connection(job, connection, orders.stop)
        except HabitusError as error:
            connection.send(error)
        connection.close()
    os._exit(0)  # no thread and no library delays the end


class _Orders:
    """What the parent wants: the source opened, or an end."""

    def __init__(self, connection: Connection) -> None:
        self.stop = threading.Event()
        self._given = threading.Semaphore(0)
        threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def wait(self) -> bool:
        """Return True when the source is to be opened, False at the end."""
        self._given.acquire()
        return not self.stop.is_set()

    def _listen(self, connection: Connection) -> None:
        with contextlib.suppress(EOFError, OSError):
            while connection.recv() is Order.OPEN:
                self._given.release()
        self.stop.set()
        self._given.release()
        time.sleep(ENDING)  # FFmpeg may never return
        os._exit(1)


def _send_connection(job: Job, parent: Connection, stop: threading.Event) -> Job:
    """Send all of a source, from its opening to its end or an error; return the job as it goes on.

    What is expected of later connections is what the first one gave.
    """
    try:
        if job.measured:
            parent.send(Length(survey(job.source).duration))
        with Reader(job.source, tap=job.tap) as reader:
            vocabulary = vocabulary_of(reader, job.settings)
            usual = job.expected or vocabulary
            job = replace(job, expected=usual)
            if not vocabulary.refines(usual):
                sizes = (vocabulary.width, vocabulary.height), (usual.width, usual.height)
                raise FrameSizeError.of(job.source, *sizes)
            parent.send(vocabulary)
            prompt = job.source.is_live if job.prompt is None else job.prompt
            frames = _ArrivingFrames(reader, parent, stop, job.speed)
            for document in documents(frames, job.settings, prompt=prompt):
                parent.send(TimedDocument(document, frames.arrival(document.time)))
            parent.send(EndOfSource(reader.notes))
    except HabitusError as error:
        parent.send(error)
    return job


def has_end(source: Source) -> bool:
    """Return whether a source may end by itself: a file or a pipe, not a camera."""
    return not source.is_live or source.is_pipe


# Change of the ratio of a frame's sides from which on a camera was turned, or shows something else.
OTHER_SHAPE = 0.05


class _ArrivingFrames:
    """Frames of a reader that sends signs of life, and knows when its frames arrived."""

    def __init__(
        self, reader: Reader, parent: Connection, stop: threading.Event, speed: float | None = None
    ) -> None:
        self.reader, self.parent, self.stop, self.speed = reader, parent, stop, speed
        self.starts: float | None = None
        """When the first frame was or would have been due, of a file that plays at a speed."""
        self.fps, self.width, self.height = reader.fps, reader.width, reader.height
        self.beat = 0.0
        self.clock = None if has_end(reader.source) else ArrivalClock(reader.fps, reader.timed)
        self.arrived: deque[tuple[float, float]] = deque()
        """Times and arrivals of frames from the latest document on; of a file, of its first."""

    def _check_shape(self, frame: Frame) -> None:
        """Raise if a camera's picture is no longer of the shape that it had at first."""
        if frame.decoded is None:
            return
        sides = frame.decoded.width, frame.decoded.height
        shown = sides[::-1] if frame.turns % 2 else sides
        if abs(shown[0] * self.height / (shown[1] * self.width) - 1) > OTHER_SHAPE:
            raise FrameSizeError.of(self.reader.source, shown, (self.width, self.height))

    def __iter__(self) -> Iterator[Frame]:
        for frame in self.reader:
            if self.speed is not None:
                self._hold_back(frame.time / self.speed)
            if self.stop.is_set():
                return
            now = time.monotonic()
            if self.clock is not None:
                self._check_shape(frame)
                frame = self.clock.timed(frame, now)
            if self.speed is not None or self.reader.source.is_live or not self.arrived:
                self.arrived.append((frame.time, now))
            if now - self.beat > BEAT:
                self.beat = now
                self.parent.send(Sign.FRAME)
                self._send_notes()
            yield frame

    def _hold_back(self, after: float) -> None:
        """Wait until a frame is due that comes so many seconds after the start."""
        now = time.monotonic()
        if self.starts is None:
            self.starts = now - after
        late = now - (self.starts + after)
        if late > MOST_LATE:
            self.starts += late
        self.stop.wait(max(-late, 0.0))

    def _send_notes(self) -> None:
        notes = self.reader.notes
        if self.clock is not None:
            notes += self.clock.notes
            self.clock.notes.clear()
        while notes:
            self.parent.send(notes.pop(0))

    def arrival(self, start: float) -> float:
        """Return when a document that starts at a time began to arrive; call it in their order."""
        while len(self.arrived) > 1 and self.arrived[0][0] < start - ROUNDING:
            self.arrived.popleft()
        at, arrived = self.arrived[0]
        return arrived + start - at


class ArrivalClock:
    """Times of a camera's frames: its own clock orders them, arrival says whether to believe it.

    Frames may come in bursts, late, or not at all for a while. But time that did not pass here did
    not pass there: where the camera's clock leaps ahead of arrival, only the time between arrivals
    is counted. Frames without times of their own are timed by arrival.

    Parameters
    ----------
    fps
        Nominal frames per second.
    believed
        Whether frames have times of their own.
    """

    def __init__(self, fps: float, believed: bool = True) -> None:
        self.least, self.believed = 1 / fps, believed
        self.notes: list[str] = []
        self.before: tuple[float, float] | None = None
        """Camera's time and arrival of the frame before."""
        self.time, self.n_leaps = 0.0, 0

    def timed(self, frame: Frame, now: float) -> Frame:
        """Return the next frame, which arrived now, with the time that is to be used."""
        if self.before is None:
            self.before, self.time = (frame.time, now), frame.time
            return frame
        passed, waited = frame.time - self.before[0], now - self.before[1]
        self.before = (frame.time, now)
        intact = frame.intact
        if not self.believed:
            passed = max(waited, SHORTEST_INTERVAL)
        elif passed > waited + LEAP:
            self._note(passed)
            passed, intact = max(waited, self.least), False
        self.time += passed
        return frame._replace(time=self.time, intact=intact)

    def _note(self, passed: float) -> None:
        """Note the first leap, the tenth, the hundredth and so on."""
        self.n_leaps += 1
        if str(self.n_leaps).strip("0") == "1":
            times = f", for the {self.n_leaps}th time" if self.n_leaps > 1 else ""
            self.notes.append(f"the camera's clock leapt by {passed:.7g} s{times}")


def warm_up(settings: DocumentSettings) -> None:
    """Compile the kernels before a stream is opened: later it would look like its silence."""
    plain = replace(settings, clip=1.0, scale=1, mask=None, region=None)
    for _ in documents(_MovingFrames(max(64, 4 * settings.cell)), plain):
        pass


class _MovingFrames:
    """Four frames of noise that moves: without motion, some kernels are not called."""

    fps = 4.0

    def __init__(self, side: int) -> None:
        self.width = self.height = side

    def __iter__(self) -> Iterator[Frame]:
        noise = np.random.default_rng(0).integers(0, 256, (self.height, self.width), np.uint8)
        for n in range(4):
            moved = np.roll(noise, 2 * n, axis=1)
            picture = av.VideoFrame.from_ndarray(moved, format="gray")
            yield Frame(n / self.fps, self.width, self.height, True, picture)
