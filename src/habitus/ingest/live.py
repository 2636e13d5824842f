"""Documents of a live source without end: a source that is lost is opened again."""

import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import NamedTuple

from habitus.corpus.documents import Condition
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, VideoError
from habitus.ingest.clips import Document, DocumentSettings
from habitus.ingest.condition import ConditionMonitor
from habitus.ingest.decoder import (
    SILENCE,
    TICK,
    Decoder,
    EndOfSource,
    Message,
    Sign,
    TimedDocument,
)
from habitus.video import Source

# Seconds to the first new attempt; the wait doubles after each failed attempt.
FIRST_WAIT = 1.0
# Seconds that a decoder may take to start: its kernels may have to be compiled.
STARTING = 120.0
# Steps to the first frame, each of which may take `patience` seconds: connect, probe, decode.
STEPS = 3
# Seconds more for the decoder to give up by itself: it knows the reason.
MARGIN = 0.5


class Notice(NamedTuple):
    """A message about a source for a person."""

    text: str
    """One line."""
    time: float
    """Seconds since the epoch."""


class Arrived(NamedTuple):
    """A document that was completed just now."""

    document: Document
    """Numbered from 0 after each reconnection; with a still if it has frames."""
    condition: Condition
    follows: bool
    """Whether it follows the document before; if not, a sequence starts."""
    time: float
    """Start of its clip in seconds since the epoch, estimated from arrival times."""
    vocabulary: Vocabulary


def live_documents(
    source: Source,
    settings: DocumentSettings,
    *,
    stop: threading.Event,
    patience: float = 10.0,
    longest_wait: float = 60.0,
    first_must_work: bool = False,
) -> Iterator[Arrived | Notice]:
    """Yield the documents of a source as they are completed, until `stop` is set.

    A file or standard input ends at its end. A stream never does: if it refuses the connection,
    ends, or sends nothing for `patience` seconds, it is opened again after 1, 2, 4, ... seconds,
    with a notice each time. Close the generator, or set `stop` and exhaust it, to end the decoder
    process.

    Parameters
    ----------
    source
        A stream, a camera, a file, or standard input.
    settings
        How documents are extracted; each document gets a still.
    stop
        Ends the generator when set.
    patience
        Seconds of silence after which a source counts as lost.
    longest_wait
        Largest number of seconds between two attempts to open a stream.
    first_must_work
        Whether a stream that never sent a frame is an error.

    Yields
    ------
    Arrived or Notice
        Documents, and messages about lost and recovered connections.

    Raises
    ------
    VideoError
        If a file cannot be decoded, or the frame size of a stream changes.
    """
    connection = _Reconnection(source, settings, stop, patience)
    wait, next_wait = 0.0, FIRST_WAIT
    while not stop.is_set():
        reason = yield from connection.open(wait)
        if reason is None or stop.is_set():
            return
        if has_end(source) or (first_must_work and connection.vocabulary is None):
            raise VideoError(reason)
        wait = min(next_wait if connection.before is None else FIRST_WAIT, longest_wait)
        next_wait = 2 * wait
        yield Notice(f"{reason}; trying again in {wait:g} s", time.time())


def has_end(source: Source) -> bool:
    """Return whether a source may end by itself: a file or a pipe, not a camera."""
    return not source.is_live or source.address == "-"


class _Reconnection:
    """What is known of a source from one connection to the next."""

    def __init__(
        self, source: Source, settings: DocumentSettings, stop: threading.Event, patience: float
    ) -> None:
        self.source = replace(source, timeout=min(source.timeout, patience))
        self.settings = replace(settings, still_every=1)
        self.stop, self.patience = stop, patience
        self.monitor = ConditionMonitor(settings.clip)
        self.vocabulary: Vocabulary | None = None
        self.before: int | None = None
        """Number of the document before, within this connection."""
        self.heard = time.monotonic()
        self.lost_at: float | None = None
        """Time of the last message before the source was lost."""

    def open(self, wait: float) -> Generator[Arrived | Notice, None, str | None]:
        """Yield documents and notices of a new connection, opened after `wait` seconds.

        Returns why the connection was lost, or None if it ended as it should.
        """
        self.before = None
        prompt = self.source.is_live
        with Decoder(self.source, self.settings, prompt=prompt, wait=wait) as decoder:
            reason = yield from self._listen(decoder, STARTING + wait)
        self.lost_at = self.lost_at or self.heard
        return reason

    def _listen(
        self, decoder: Decoder, patience: float
    ) -> Generator[Arrived | Notice, None, str | None]:
        """Yield documents and notices until the decoder ends or is silent for too long."""
        since = time.monotonic()
        while not self.stop.is_set():
            message = decoder.next_message(within=TICK)
            if message is SILENCE:
                if time.monotonic() - since > patience:
                    return f"{self.source.name}: no data for {self.patience:g} s"
                continue
            if message is None:
                return self._crashed(decoder)
            if isinstance(message, VideoError):
                return str(message)
            if isinstance(message, EndOfSource):
                return (yield from self._ended(message))
            yield from self._take(message)
            # The time that our consumer took is no silence of the source.
            since = time.monotonic()
            patience = (STEPS if message is Sign.READY else 1) * self.patience + MARGIN
        return None

    def _crashed(self, decoder: Decoder) -> str:
        """Return what to say of a decoder that ended without saying why."""
        code = decoder.exit_code()
        # Who ends us by a signal may send it to the decoder too, and to the decoder first.
        self.stop.wait(MARGIN)
        return f"{self.source.name}: the decoder crashed (exit code {code})"

    def _ended(self, end: EndOfSource) -> Generator[Notice, None, str | None]:
        """Yield the last notes of a source that may end; else return them as the reason."""
        if not has_end(self.source):
            because = f" ({'; '.join(end.notes)})" if end.notes else ""
            return f"{self.source.name}: the stream ended{because}"
        for note in end.notes:
            yield Notice(f"{self.source.name}: {note}", time.time())
        return None

    def _take(self, message: Message) -> Iterator[Arrived | Notice]:
        """Yield what a message says."""
        if message is Sign.READY:
            return
        self.heard = time.monotonic()
        if isinstance(message, HabitusError):
            raise message
        if isinstance(message, str):
            yield Notice(f"{self.source.name}: {message}", time.time())
        elif isinstance(message, Vocabulary):
            self._check(message)
        elif isinstance(message, TimedDocument) and self.vocabulary is not None:
            yield from self._recovered()
            yield self._arrived(message, self.vocabulary)

    def _check(self, found: Vocabulary) -> None:
        """Raise if the frame size is not that of the first connection."""
        usual = self.vocabulary = self.vocabulary or found
        if found != usual:
            raise VideoError(
                f"{self.source.name}: the picture has {found.width}x{found.height} pixels now, "
                f"it had {usual.width}x{usual.height}: restore the camera's settings, or start anew"
            )

    def _recovered(self) -> Iterator[Notice]:
        """Yield a notice with the first document after a loss."""
        if self.lost_at is not None:
            seconds = self.heard - self.lost_at
            yield Notice(f"{self.source.name}: is back after {seconds:.0f} s", time.time())
        self.lost_at = None

    def _arrived(self, made: TimedDocument, vocabulary: Vocabulary) -> Arrived:
        """Return a document with the condition of the camera."""
        document = made.document
        follows = self.before is not None and document.number == self.before + 1
        self.before = document.number
        condition = self.monitor.judge(document)
        return Arrived(document, condition, follows, made.time, vocabulary)
