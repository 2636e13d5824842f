"""Documents of a live source without end: a source that is lost is opened again."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Self

from habitus.backlog import growing_wait
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, VideoError
from habitus.ingest.clips import Document
from habitus.ingest.decoder import (
    TICK,
    Decoder,
    EndOfSource,
    Job,
    Length,
    Message,
    Order,
    Sign,
    TimedDocument,
    has_end,
)
from habitus.ingest.segments import DECODING
from habitus.jobs.fork_server import ForkServer
from habitus.jobs.workers import fork_server_of

# Seconds to the first new attempt; the time between attempts doubles with each that failed.
FIRST_WAIT = 1.0
# Largest number of seconds between two attempts.
LONGEST_WAIT = 8.0
# Seconds between two notices of one absence, at most; they double up to it.
LONGEST_QUIET = 3600.0
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
    is_loss: bool = False
    """Whether it is about a connection that was lost, or is there again."""


class LiveDocument(NamedTuple):
    """A document that was completed just now."""

    document: Document
    """Numbered from 0 after each reconnection."""
    follows: bool
    """Whether it follows the document before; if not, a sequence starts."""
    time: float
    """When its clip began to arrive, in seconds since the epoch."""
    seconds: float
    """Start of its clip in seconds since the first document: within a connection by the camera's
    clock as far as that can be believed, from one connection to the next by arrival. It only
    increases."""
    vocabulary: Vocabulary


class LiveSource:
    """A source whose documents are taken as they are completed: iterated, or in a `with` block.

    A file or standard input ends at its end. A stream never does: if it refuses the connection,
    ends, sends nothing for `patience` seconds, or is not as expected, it is opened again after 1,
    2, 4, 8, 8, ... seconds. Reasons that can pass are notices, at doubling intervals.

    Parameters
    ----------
    job
        What to decode: a stream, a camera, a file, or standard input.
    patience
        Seconds of silence after which a source counts as lost.
    longest_wait
        Largest number of seconds between two attempts to open a stream.
    stop
        Set when the source is not wanted any more: then a decoder that ended is no fault.
    may_end
        Whether the end of a stream is its end, and not a loss.
    must_start
        Whether it is an error if a stream gives no document when it is opened first.
    repeats
        Whether a file starts again at its end; each turn is a sequence.
    fork_server
        Forks the decoder process; by default, one of its own.

    Attributes
    ----------
    ended
        Whether the source came to its end.
    finishing
        Whether it was asked to end.
    reason
        Why the source was lost last.
    error
        The same as an error, where it is one.
    length
        Seconds of a file, where they were measured.
    lost_at
        When the source was heard last, by the monotonic clock, if it is lost; None otherwise.
    """

    def __init__(
        self,
        job: Job,
        *,
        patience: float = 10.0,
        longest_wait: float = LONGEST_WAIT,
        stop: threading.Event | None = None,
        may_end: bool = False,
        must_start: bool = False,
        repeats: bool = False,
        fork_server: ForkServer | None = None,
    ) -> None:
        self.source = replace(job.source, timeout=min(job.source.timeout, patience))
        self.job = replace(job, source=self.source)
        self.stop = stop or threading.Event()
        self.may_end, self.must_start, self.repeats = (
            may_end or has_end(job.source),
            must_start,
            repeats,
        )
        self.patience, self.longest_wait = patience, longest_wait
        self._fork_server, self._own_fork_server = fork_server, fork_server is None
        self.ended, self.reason = False, ""
        self.error: HabitusError | None = None
        self.length: float | None = None
        self.finishing = False
        self.vocabulary: Vocabulary | None = None
        """Of the connection, with its first frame."""
        self.before: int | None = None
        """Number of the document before, within this connection."""
        self.first_arrival: float | None = None
        self.latest_arrival = self.seconds_after = self.offset = 0.0
        """By the monotonic clock; end of the latest document; start of the connection."""
        now = time.monotonic()
        self.heard = now
        self.lost_at: float | None = None
        self._first_noticed, self._last_noticed = now, now
        """When notices of an absence were given."""
        self._decoder: Decoder | None = None
        self._opens_at, self._n_failed, self._attempted = now, 0, now
        """When to open the source; attempts in a row that failed; when it was opened."""
        self._open, self._started = False, False
        self._since, self._within = now, STARTING
        """Since when nothing came, and how long that may last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end_decoder()
        if self._own_fork_server and self._fork_server is not None:
            self._fork_server.kill()
            self._fork_server = None

    def __iter__(self) -> Iterator[LiveDocument | Notice]:
        """Yield what comes until the source has ended or `stop` is set; then end the decoder."""
        with self:
            while not (self.stop.is_set() or self.ended):
                yield from self.poll()

    def poll(self) -> Iterator[LiveDocument | Notice]:
        """Yield what came within a moment.

        Raises
        ------
        HabitusError
            If a file cannot be decoded, or is not as expected.
        """
        try:
            decoder = self._running_decoder()
        except HabitusError as error:  # a full disk, or no room for a process
            time.sleep(TICK)
            yield from self._lose(str(error), error)
            return
        if not self._open:
            self._open_in_time(decoder)
            return
        message = decoder.next_message(within=TICK)
        if message is None:
            if time.monotonic() - self._since > self._within:
                self._end_decoder()
                yield from self._lose(f"{self.source.name}: no data for {self.patience:g} s")
        elif message is Sign.GONE:
            code = decoder.process.wait(1.0)
            self._end_decoder()
            # Who ends us by a signal may send it to the decoder too, and to the decoder first.
            if not self.stop.wait(MARGIN):
                yield from self._lose(f"{self.source.name}: the decoder crashed (exit code {code})")
        else:
            yield from self._take(message)
            # The time that our consumer took is no silence of the source.
            self._since = time.monotonic()

    def finish(self) -> None:
        """Have the source end with what it has."""
        self.finishing = True
        if self._decoder is not None and self._open:
            self._decoder.order(Order.FINISH)
        else:
            self.ended = True

    def _running_decoder(self) -> Decoder:
        """Return the decoder process; it starts while there is still time to wait."""
        if self._decoder is None:
            self._fork_server = self._fork_server or fork_server_of(DECODING)
            self._decoder = Decoder(self.job, self._fork_server).__enter__()
            self._started = False
        return self._decoder

    def _end_decoder(self) -> None:
        if self._decoder is not None:
            self._decoder.__exit__()
        self._decoder = None

    def _open_in_time(self, decoder: Decoder) -> None:
        """Open the source when it is time; otherwise, wait for a moment."""
        now = time.monotonic()
        if now < self._opens_at:
            time.sleep(min(TICK, self._opens_at - now))
            return
        decoder.order(Order.OPEN)
        self._open, self._attempted, self._since = True, now, now
        self._within = self.patience + MARGIN if self._started else STARTING
        self.before = self.vocabulary = None

    def _take(self, message: Message) -> Iterator[LiveDocument | Notice]:
        """Yield what a message says."""
        if message is Sign.READY:
            self._started, self._attempted = True, time.monotonic()
            self._within = STEPS * self.patience + MARGIN
            return
        if isinstance(message, HabitusError):
            yield from self._lose(str(message), message)
            return
        if isinstance(message, EndOfSource):
            yield from self._end(message)
            return
        self.heard, self._within = time.monotonic(), self.patience + MARGIN
        if isinstance(message, Length):
            self.length = message.seconds
        elif isinstance(message, str):
            yield Notice(f"{self.source.name}: {message}", time.time())
        elif isinstance(message, Vocabulary):
            self.vocabulary = message
            self.job = replace(self.job, expected=self.job.expected or message)
        elif isinstance(message, TimedDocument) and self.vocabulary is not None:
            yield from self._recovered()
            yield self._arrived(message, self.vocabulary)

    def _end(self, end: EndOfSource) -> Iterator[Notice]:
        """Yield the last notes of a source that may end; another one is lost."""
        if self.repeats and not self.finishing and self.before is not None:
            self._open, self._opens_at = False, time.monotonic()
            return
        if self.may_end or self.finishing:
            self.ended = True
            for note in end.notes:
                yield Notice(f"{self.source.name}: {note}", time.time())
            return
        because = f" ({'; '.join(end.notes)})" if end.notes else ""
        yield from self._lose(f"{self.source.name}: the stream ended{because}")

    def _lose(self, reason: str, error: HabitusError | None = None) -> Iterator[Notice]:
        """Have the source opened again, and yield a notice where one is due."""
        self._open, self.reason, self.error = False, reason, error
        if self.finishing:
            self.ended = True
            return
        starting = self.must_start and self.first_arrival is None
        refused = self.may_end and error is not None and error.parameter is not None
        if has_end(self.source) or starting or refused:
            raise error or VideoError(reason)
        now = time.monotonic()
        if self.before is not None:  # it did give documents
            self._n_failed = 0
        self._n_failed += 1
        wait = growing_wait(self._n_failed, FIRST_WAIT, self.longest_wait)
        # An attempt that took long has waited already; a stream that ended has not.
        self._opens_at = max(now, self.heard + FIRST_WAIT, self._attempted + wait)
        if self.lost_at is None:
            self.lost_at, self._first_noticed, self._last_noticed = self.heard, now, -LONGEST_QUIET
        if now - self._last_noticed >= min((now - self._first_noticed) / 2, LONGEST_QUIET):
            self._last_noticed = now
            again = f"trying again in {self._opens_at - now:.0f} s"
            yield Notice(f"{reason}; {again}", time.time(), is_loss=True)

    def _recovered(self) -> Iterator[Notice]:
        """Yield a notice with the first document after a loss."""
        if self.lost_at is not None:
            seconds = self.heard - self.lost_at
            text = f"{self.source.name}: is back after {seconds:.0f} s"
            yield Notice(text, time.time(), is_loss=True)
        self.lost_at = None

    def _arrived(self, made: TimedDocument, vocabulary: Vocabulary) -> LiveDocument:
        """Return a document with its times."""
        document, clip = made.document, self.job.settings.clip
        arrival = self.latest_arrival = max(made.arrived, self.latest_arrival)
        if self.first_arrival is None:
            self.first_arrival = arrival
        if self.before is None:
            self.offset = max(arrival - self.first_arrival, self.seconds_after) - document.time
        follows = self.before is not None and document.number == self.before + 1
        self.before, seconds = document.number, self.offset + document.time
        self.seconds_after = seconds + clip
        epoch = arrival + time.time() - time.monotonic()
        return LiveDocument(document, follows, epoch, seconds, vocabulary)
