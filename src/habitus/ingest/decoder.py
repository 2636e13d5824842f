"""A supervised process that decodes one source into documents, and can be ended at any time.

FFmpeg may hang or crash on a damaged stream or a silent camera, so it runs in a process of its own.
The process is started as a plain command and needs no `__main__` guard, unless whoever wants it has
another way to launch it. It sends pickled messages over its standard output; the pipe has a limited
size, so decoding waits for whoever reads them. It opens its source when it is told to, and again
after that ended: only what hangs or crashes costs a new process.
"""

import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, Protocol, Self

import av
import numpy as np

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, InvalidInputError, VideoError
from habitus.files import work_folder
from habitus.ingest.clips import ROUNDING, Document, DocumentSettings, documents, vocabulary_of
from habitus.jobs.fork_server import end_with_parent, interrupts_blocked
from habitus.progress import tell_compiling, when_compiling
from habitus.video import Frame, PacketTap, Reader, Source, survey

# Bytes of messages that may wait to be read, where the size of a pipe can be set.
PIPE_SIZE = 1 << 20
# Messages that may wait within this process besides.
QUEUE_SIZE = 2
# Minimum number of seconds between two signs of life.
BEAT = 0.25
# Seconds by which a camera's clock may be ahead of arrival from one frame to the next.
LEAP = 2.0
# Seconds between frames that are timed by their arrival, at least.
SHORTEST_INTERVAL = 1e-3
# Seconds that whoever reads waits for the next message before looking at anything else.
TICK = 0.1
# Seconds that a process may take to end after it was told to.
ENDING = 10.0
# Seconds by which a file that plays at a speed of its own may be late before it stays late.
MOST_LATE = 1.0
# What the process runs.
COMMAND = "from habitus.ingest.decoder import main; main()"
# The order to open the source.
OPEN = b"o"
# Precedes the messages: what Python prints while it starts is skipped.
START = b"habitus: messages\n"
# Precedes each message: its length in bytes.
HEADER = struct.Struct("<Q")


class Sign(Enum):
    """A message without contents."""

    READY = 0
    """The process will open the source now."""
    FRAME = 1
    """A frame was decoded."""
    COMPILING = 2
    """Kernels have to be compiled first."""


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
    def of(cls, source: Source, found: tuple[int, int], expected: tuple[int, int]) -> Self:
        """Return the error of a source with both sizes, width and height each."""
        return cls(
            f"{source.name}: the picture has {found[0]}x{found[1]} pixels, expected "
            f"{expected[0]}x{expected[1]}: restore the camera's settings, or learn it anew"
        )


class Silence(Enum):
    """No message came in time."""

    SILENCE = 0


SILENCE = Silence.SILENCE


@dataclass(frozen=True)
class Job:
    """What a decoder process is to do."""

    source: Source
    settings: DocumentSettings
    stop: int | None = None
    """Number of the first document that is not wanted."""
    prompt: bool = False
    """Whether a document is sent with the last frame of its clip; see `documents`."""
    expected: Vocabulary | None = None
    """What the vocabulary must refine; by default the first that is found."""
    parent: int = 0
    """Process id of the parent."""
    speed: float | None = None
    """How fast to read, as a multiple of the video's own speed; as fast as possible if None."""
    measured: bool = False
    """Whether to tell first how long a file is."""
    tap: PacketTap | None = None
    """Given the packets before they are decoded; pickled."""


class DecoderProcess(Protocol):
    """A process that runs a job, as `subprocess.Popen` is one."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """Takes orders; None where the process reads its own standard input."""
        ...

    @property
    def stdout(self) -> IO[bytes] | None:
        """Gives messages."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit code, if it has ended and was waited for."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it has ended."""
        ...


Launch = Callable[[Job, contextlib.ExitStack], DecoderProcess]
"""Starts the process of a job; what is to be undone after its end goes to the stack."""


class Decoder:
    """The process as seen by its parent; it runs while the `with` block does.

    Parameters
    ----------
    source
        The video; `-` is the standard input of this process, which the decoder inherits.
    settings
        How documents are extracted.
    stop
        Number of the first document that is not wanted.
    prompt
        Whether a document is sent with the last frame of its clip; see `documents`.
    expected
        Vocabulary that the source must refine; by default that of its first connection.
    speed, measured
        As of `Job`.
    tap
        Given the packets in the decoder process, such as to record them; must be picklable.
    launch
        Starts the process; by default, as a command.
    """

    def __init__(
        self,
        source: Source,
        settings: DocumentSettings,
        *,
        stop: int | None = None,
        prompt: bool = False,
        expected: Vocabulary | None = None,
        speed: float | None = None,
        measured: bool = False,
        tap: PacketTap | None = None,
        launch: Launch | None = None,
    ) -> None:
        self.job = Job(source, settings, stop, prompt, expected, os.getpid(), speed, measured, tap)
        self.launch = launch or start_command
        self.messages: queue.Queue[Message | None] = queue.Queue(QUEUE_SIZE)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except OSError as error:
            raise VideoError(f"cannot start a decoder: {error.strerror}") from error
        return self

    def _start(self) -> None:
        with contextlib.ExitStack() as stack:  # an interrupt may come while the process starts
            with interrupts_blocked():
                self.process = self.launch(self.job, stack)
                stack.callback(self._end)
                self._thread = threading.Thread(target=self._receive, daemon=True)
                self._thread.start()
            self._stack = stack.pop_all()

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _end(self) -> None:
        """Kill the process and take what it sent, if it was started."""
        if self._thread is None:
            return
        self.process.kill()
        self.process.wait()
        while self._thread.is_alive():  # it may wait for room in the queue
            self.next_message(within=0.05)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _receive(self) -> None:
        """Move messages from the pipe to the queue, then None at the end of the pipe."""
        pipe: Any = self.process.stdout
        _widen(pipe)
        while (line := pipe.readline()) and not line.endswith(START):
            continue
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                message = read_message(pipe)
                if message is Sign.COMPILING:
                    tell_compiling()
                else:
                    self.messages.put(message)
        self.messages.put(None)

    def next_message(self, *, within: float) -> Message | Silence | None:
        """Return the next message, None at the end, or `SILENCE` after `within` seconds."""
        try:
            return self.messages.get(timeout=within)
        except queue.Empty:
            return SILENCE

    def open(self) -> None:
        """Have the source opened; its last message is an `EndOfSource` or an error."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended, which the messages tell
                self.process.stdin.write(OPEN)
                self.process.stdin.flush()

    def finish(self) -> None:
        """Ask the process to stop reading and to send what it has; standard input just ends."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def exit_code(self) -> int | None:
        """Return the exit code of a process that is at its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        return self.process.returncode


def start_command(job: Job, stack: contextlib.ExitStack) -> "subprocess.Popen[bytes]":
    """Start a decoder as a command of its own."""
    job_file = _write_job(stack.enter_context(work_folder()), job)
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-c", COMMAND, str(job_file)],
        stdin=None if job.source.address == "-" else subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        pass_fds=job.source.descriptors,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _write_job(folder: Path, job: Job) -> Path:
    """Write a job to a private file: a command line would show passwords to others."""
    path = folder / "job"
    try:
        path.write_bytes(pickle.dumps(job))
    except OSError as error:
        raise InvalidInputError(f"cannot write a temporary file: {error.strerror}") from error
    return path


def _widen(pipe: BinaryIO) -> None:
    """Let more documents wait in a pipe, where the system allows it."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def write_message(pipe: BinaryIO, message: Message) -> None:
    """Send a message through a pipe."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(HEADER.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def read_message(pipe: BinaryIO) -> Message:
    """Return the next message from a pipe; EOFError at its end, also within a message."""
    (size,) = HEADER.unpack(_read_exactly(pipe, HEADER.size))
    message: Message = pickle.loads(_read_exactly(pipe, size))  # noqa: S301 - from our own process
    return message


def _read_exactly(pipe: BinaryIO, size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def main() -> None:
    """Run the decoder process: read the job file that the command line names, send messages."""
    # Whatever prints must not disturb the messages: standard output becomes standard error.
    messages = os.dup(1)
    os.dup2(2, 1)
    file = Path(sys.argv[1])
    job: Job = pickle.loads(file.read_bytes())  # noqa: S301 - written by our parent
    file.unlink()
    end_with_parent(job.parent)
    decode(job, 0, messages)


def decode(job: Job, orders_from: int, messages_to: int) -> None:
    """Do a job, and end this process.

    Parameters
    ----------
    job
        What to do.
    orders_from, messages_to
        Open files: of the parent's orders, and for messages to it.
    """
    pipe = os.fdopen(messages_to, "wb")
    pipe.write(START)
    orders = _Orders(None if job.source.address == "-" else orders_from)
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        when_compiling(lambda: write_message(pipe, Sign.COMPILING))
        try:
            warm_up(job.settings)
            while orders.wait():
                write_message(pipe, Sign.READY)
                job = _send_connection(job, pipe, orders.stop)
        except HabitusError as error:
            write_message(pipe, error)
        pipe.close()
    os._exit(0)  # no thread and no library delays the end


class _Orders:
    """What the parent wants: the source opened, or an end, when it closes the pipe of orders.

    Without a pipe, because standard input is the video, the source is opened once.
    """

    def __init__(self, pipe: int | None) -> None:
        self.stop = threading.Event()
        self._given = threading.Semaphore(1 if pipe is None else 0)
        if pipe is not None:
            threading.Thread(target=self._listen, args=(pipe,), daemon=True).start()

    def wait(self) -> bool:
        """Return True when the source is to be opened, False at the end."""
        self._given.acquire()
        return not self.stop.is_set()

    def _listen(self, pipe: int) -> None:
        while os.read(pipe, 1):
            self._given.release()
        self.stop.set()
        self._given.release()
        time.sleep(ENDING)  # FFmpeg may never return
        os._exit(1)


def _send_connection(job: Job, pipe: BinaryIO, stop: threading.Event) -> Job:
    """Send all of a source, from its opening to its end or an error; return the job as it goes on.

    What is expected of later connections is what the first one gave.
    """
    try:
        if job.measured:
            write_message(pipe, Length(survey(job.source).duration))
        with Reader(job.source, tap=job.tap) as reader:
            found = vocabulary_of(reader, job.settings)
            job = replace(job, expected=job.expected or found)
            _check_expected(found, job)
            write_message(pipe, found)
            send_documents(job, reader, pipe, stop)
    except HabitusError as error:
        write_message(pipe, error)
    return job


def _check_expected(found: Vocabulary, job: Job) -> None:
    """Raise if a source does not have the frame size that is expected."""
    usual = job.expected
    if usual is not None and not found.refines(usual):
        sizes = (found.width, found.height), (usual.width, usual.height)
        raise FrameSizeError.of(job.source, *sizes)


def send_documents(job: Job, reader: Reader, pipe: BinaryIO, stop: threading.Event) -> None:
    """Send the documents and notes of an open source, and that it ended."""
    frames = _ArrivingFrames(reader, pipe, stop, job.speed)
    for document in documents(frames, job.settings, stop=job.stop, prompt=job.prompt):
        write_message(pipe, TimedDocument(document, frames.arrival(document.time)))
    write_message(pipe, EndOfSource(reader.notes))


def has_end(source: Source) -> bool:
    """Return whether a source may end by itself: a file or a pipe, not a camera."""
    return not source.is_live or source.is_pipe


# Change of the ratio of a frame's sides from which on a camera was turned, or shows something else.
OTHER_SHAPE = 0.05


class _ArrivingFrames:
    """Frames of a reader that sends signs of life, and knows when its frames arrived."""

    def __init__(
        self, reader: Reader, pipe: BinaryIO, stop: threading.Event, speed: float | None = None
    ) -> None:
        self.reader, self.pipe, self.stop, self.speed = reader, pipe, stop, speed
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
        found = sides[::-1] if frame.turns % 2 else sides
        if abs(found[0] * self.height / (found[1] * self.width) - 1) > OTHER_SHAPE:
            raise FrameSizeError.of(self.reader.source, found, (self.width, self.height))

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
                write_message(self.pipe, Sign.FRAME)
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
            write_message(self.pipe, notes.pop(0))

    def arrival(self, start: float) -> float:
        """Return when a document that starts at a time began to arrive; call it in their order."""
        while len(self.arrived) > 1 and self.arrived[0][0] < start - ROUNDING:
            self.arrived.popleft()
        at, arrived = self.arrived[0]
        return arrived + start - at


class ArrivalClock:
    """Times of a camera's frames: its own clock orders them, arrival tells whether to believe it.

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
