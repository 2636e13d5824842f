"""A process that makes documents of a source as it plays, and can be ended whatever it does.

Documents of a live source, for ever: decoded in a process of its own, found again when lost.
"""

import contextlib
import fcntl
import multiprocessing as mp
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from enum import Enum
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, NamedTuple, Self

import av
import numpy as np

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, VideoError
from habitus.ingest.clips import Document, Settings, documents, vocabulary_of
from habitus.ingest.condition import Condition, Watch
from habitus.video import Frame, Reader, Source

# Bytes of documents that may wait for their reader; then decoding waits, and in time the camera.
WAITING = 1 << 20
# Seconds from one sign of life to the next, at least.
BEAT = 0.25
# Frames that the delay of a stream is known from: clocks drift, so older ones are forgotten.
REMEMBERED = 1000


def has_end(source: Source) -> bool:
    """Whether a source may end as it should: a file, a pipe; not a camera."""
    return not source.is_live or source.address == "-"


class Sign(Enum):
    """A message without contents."""

    READY = 0
    """The process has started; the source will be opened now."""
    FRAME = 1
    """A frame came."""


class Made(NamedTuple):
    """A document, and when its clip started."""

    document: Document
    time: float
    """Seconds since the epoch."""


# The grid comes with the first frame; a text is something to be said; an error is the last message.
Message = Sign | Vocabulary | Made | str | HabitusError


class Decoder:
    """The process, seen from outside; it lives inside `with`.

    It opens the source `wait` seconds from now, having started in the meantime.
    """

    def __init__(self, source: Source, settings: Settings, wait: float = 0.0) -> None:
        context = mp.get_context("spawn")
        self.pipe, self._other = context.Pipe(duplex=False)
        _widen(self._other)
        # A process of this kind has no standard input unless it is handed ours.
        self._stdin = Connection(os.dup(0), writable=False) if source.address == "-" else None
        arguments = (source, settings, time.monotonic() + wait, self._other, self._stdin)
        self.process = context.Process(target=_decode, args=arguments, daemon=True)

    def __enter__(self) -> Self:
        self.process.start()
        for ours in (self._other, self._stdin):  # else its end would not be the end of the pipe
            if ours is not None:
                ours.close()
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()

    def says_something(self, *, within: float) -> bool:
        """Whether there is a message, or the end, within so many seconds."""
        return self.pipe.poll(within)

    def message(self) -> Message | None:
        """The next message; None at the end."""
        try:
            message: Message = self.pipe.recv()
        except (EOFError, OSError):  # the latter if it was ended in the middle of a message
            return None
        return message

    def exit_code(self) -> int | None:
        """Of a process that is at its end."""
        self.process.join(1)
        return self.process.exitcode


def _widen(pipe: "Connection[Any, Any]") -> None:
    with contextlib.suppress(AttributeError, OSError):  # elsewhere than on Linux it stays narrow
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, WAITING)


def _decode(
    source: Source,
    settings: Settings,
    opened_at: float,
    pipe: "Connection[Message, Any]",
    stdin: "Connection[Any, Any] | None",
) -> None:
    """The process itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
    Thread(target=_end_with_parent, daemon=True).start()
    if stdin is not None:
        os.dup2(stdin.fileno(), 0)
    with contextlib.suppress(BrokenPipeError):  # the parent has gone
        try:
            warm_up(settings)
            time.sleep(max(0.0, opened_at - time.monotonic()))
            pipe.send(Sign.READY)
            _send_documents(source, settings, pipe)
        except HabitusError as error:
            pipe.send(error)


def _end_with_parent() -> None:
    """End this process once its parent has gone, however that went and whatever FFmpeg does."""
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _send_documents(source: Source, settings: Settings, pipe: "Connection[Message, Any]") -> None:
    with Reader(source) as reader:
        pipe.send(vocabulary_of(reader, settings))
        frames = _Arriving(reader, pipe)
        for document in documents(frames, settings, prompt=source.is_live):
            pipe.send(Made(document, frames.wall_clock(document.time)))
        if has_end(source):
            frames.send_notes()
        else:
            because = f" ({'; '.join(reader.notes)})" if reader.notes else ""
            raise VideoError(f"{source.name}: the stream ended{because}")


class _Arriving:
    """A reader that shows signs of life, and knows when its frames came."""

    def __init__(self, reader: Reader, pipe: "Connection[Message, Any]") -> None:
        self.reader, self.pipe = reader, pipe
        self.fps, self.width, self.height = reader.fps, reader.width, reader.height
        self.beat, self.n = 0.0, 0
        self.delay = self.delay_before = float("inf")

    def __iter__(self) -> Iterator[Frame]:
        for frame in self.reader:
            now = time.monotonic()
            self._note_delay(now - frame.time)
            if now - self.beat > BEAT:
                self.beat = now
                self.pipe.send(Sign.FRAME)
                self.send_notes()
            yield frame

    def _note_delay(self, delay: float) -> None:
        if self.n and not self.reader.source.is_live:
            return  # a file comes faster than it plays: its first frame came now, so to speak
        if self.n % REMEMBERED == 0:
            self.delay_before, self.delay = self.delay, delay
        self.delay = min(self.delay, delay)
        self.n += 1

    def send_notes(self) -> None:
        """Say what the reader noted, once."""
        while self.reader.notes:
            self.pipe.send(self.reader.notes.pop(0))

    def wall_clock(self, at: float) -> float:
        """A time of the stream, by our clock: as if its quickest frames had come at once."""
        return at + min(self.delay, self.delay_before) + time.time() - time.monotonic()


def warm_up(settings: Settings) -> None:
    """Compile the kernels before the stream flows: later, that would look like its silence."""
    plain = replace(settings, clip=1.0, mask=None, region=None)
    for _ in documents(_Blank(max(64, 4 * settings.cell)), plain):
        pass


class _Blank:
    """Some frames without anything to see."""

    fps = 4.0

    def __init__(self, side: int) -> None:
        self.width = self.height = side

    def __iter__(self) -> Iterator[Frame]:
        nothing = np.zeros((self.height, self.width), dtype=np.uint8)
        for n in range(4):
            picture = av.VideoFrame.from_ndarray(nothing, format="gray")
            yield Frame(n / self.fps, self.width, self.height, True, picture)


# Seconds to the first new attempt; twice as long to each that follows in vain.
FIRST_WAIT = 1.0
# Seconds that a decoder may take to start: its kernels may have to be compiled.
PATIENCE_AT_START = 120.0
# Seconds from one look at `stop` to the next.
TICK = 0.1
# Steps to the first frame, each of which may take that long: to connect, to probe, to decode.
STEPS = 3
# Seconds more for the decoder to give up by itself, which tells more of the reason.
GRACE = 0.5


class Notice(NamedTuple):
    """Something to say about a source."""

    text: str
    """One line for a person."""
    time: float
    """Seconds since the epoch."""


class Arrived(NamedTuple):
    """A document, as soon as its clip is over."""

    document: Document
    """Numbered anew after each reconnection, with a still picture if it has frames."""
    condition: Condition
    follows: bool
    """Whether it follows the one before; where not, a sequence starts."""
    time: float
    """When its clip started, in seconds since the epoch, as far as arrival tells."""
    vocabulary: Vocabulary


def live_documents(
    source: Source,
    settings: Settings,
    *,
    stop: threading.Event,
    patience: float = 10.0,
    longest_wait: float = 60.0,
    first_must_work: bool = False,
) -> Iterator[Arrived | Notice]:
    """The documents of a source as they come, until `stop` is set.

    A file or standard input ends at its end. An address never does: when it refuses, ends or gives
    nothing for `patience` seconds, it is tried again after 1, 2, 4 ... `longest_wait` seconds, with
    a notice each time; if `first_must_work`, one that never gave a frame is an error instead. Close
    the generator, or set `stop` and exhaust it: then no process is left.
    """
    lookout = _Lookout(source, settings, stop, patience)
    wait, next_wait = 0.0, FIRST_WAIT
    while not stop.is_set():
        reason = yield from lookout.connection(wait)
        if reason is None or stop.is_set():
            return
        if has_end(source) or (first_must_work and lookout.vocabulary is None):
            raise VideoError(reason)
        wait = min(next_wait if lookout.before is None else FIRST_WAIT, longest_wait)
        next_wait = 2 * wait
        yield Notice(f"{reason}; trying again in {wait:g} s", time.time())


class _Lookout:
    """What is known of a source from one connection to the next."""

    def __init__(
        self, source: Source, settings: Settings, stop: threading.Event, patience: float
    ) -> None:
        self.source = replace(source, timeout=min(source.timeout, patience))
        self.settings = replace(settings, still_every=1)
        self.stop, self.patience = stop, patience
        self.watch = Watch(settings.clip)
        self.vocabulary: Vocabulary | None = None
        self.before: int | None = None
        """The document before, of the same connection."""
        self.heard = time.monotonic()
        self.gone: float | None = None
        """Since when there are no documents, if something went wrong."""

    def connection(self, wait: float) -> Generator[Arrived | Notice, None, str | None]:
        """Documents and notices of a new connection, until it ends.

        Made `wait` seconds from now. Returns why it ended, or None if that was due.
        """
        self.before = None
        with Decoder(self.source, self.settings, wait) as decoder:
            reason = yield from self._listen(decoder, PATIENCE_AT_START + wait)
        self.gone = self.gone or self.heard
        return reason

    def _listen(
        self, decoder: Decoder, patience: float
    ) -> Generator[Arrived | Notice, None, str | None]:
        since = time.monotonic()
        while not self.stop.is_set():
            if decoder.says_something(within=TICK):
                message = decoder.message()
                if message is None:
                    return self._end(decoder)
                if isinstance(message, VideoError):
                    return str(message)
                yield from self._take(message)
                # The time that our consumer took is no silence of the source.
                since = time.monotonic()
                patience = (STEPS if message is Sign.READY else 1) * self.patience + GRACE
            elif time.monotonic() - since > patience:
                return f"{self.source.name}: nothing came for {self.patience:g} s"
        return None

    def _end(self, decoder: Decoder) -> str | None:
        code = decoder.exit_code()
        if code == 0:
            return None
        # Whoever ends us by a signal may send it to the decoder too, and to it first.
        self.stop.wait(GRACE)
        return f"{self.source.name}: the decoder crashed (exit code {code})"

    def _take(self, message: Message) -> Iterator[Arrived | Notice]:
        if message is Sign.READY:
            return
        self.heard = time.monotonic()
        if isinstance(message, HabitusError):
            raise message
        if isinstance(message, str):
            yield Notice(f"{self.source.name}: {message}", time.time())
        elif isinstance(message, Vocabulary):
            self._check(message)
        elif isinstance(message, Made) and self.vocabulary is not None:
            yield from self._back()
            yield self._arrived(message, self.vocabulary)

    def _check(self, found: Vocabulary) -> None:
        usual = self.vocabulary = self.vocabulary or found
        if found != usual:
            raise VideoError(
                f"{self.source.name}: the picture has {found.width}x{found.height} pixels now, "
                f"it had {usual.width}x{usual.height}: set the camera back, or start anew"
            )

    def _back(self) -> Iterator[Notice]:
        if self.gone is not None:
            yield Notice(
                f"{self.source.name}: is back after {self.heard - self.gone:.0f} s", time.time()
            )
        self.gone = None

    def _arrived(self, made: Made, vocabulary: Vocabulary) -> Arrived:
        document = made.document
        follows = self.before is not None and document.number == self.before + 1
        self.before = document.number
        condition = self.watch.judge(document)
        return Arrived(document, condition, follows, made.time, vocabulary)
