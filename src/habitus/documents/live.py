"""Documents of a live source, for ever: decoded in a process of its own, found again when lost."""

import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import NamedTuple

from habitus.documents.clips import Document, Settings
from habitus.documents.condition import Condition, Watch
from habitus.documents.decoder import Decoder, Made, Message, Sign, has_end
from habitus.errors import HabitusError, VideoError
from habitus.video import Source
from habitus.words import Vocabulary

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
