"""Video files decoded in segments: by processes of this machine, or by workers of a cluster.

Processes write finished chunks straight into the cache, and report how far they are. So do the
workers of a cluster on this machine, but for the reports. Workers elsewhere send the chunks of a
segment back, and whoever asked for them puts them into the cache.
"""

import math
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

from habitus.errors import VideoError, WorkerError
from habitus.ingest.chunks import CHUNK, Chunk, ChunkPlace, ChunkWriter, SourceChunks
from habitus.ingest.clips import DocumentSettings, documents, reader_from
from habitus.ingest.decoder import warm_up
from habitus.jobs.workers import LocalWorkers, Workers, report
from habitus.video import Frame, Reader, Source
from habitus.video.mask import is_file

# Seconds without a decoded frame after which the workers are ended.
PATIENCE = 60.0
# Seconds between two looks at the workers.
LOOK = 0.2
# Seconds from one sign of life to the next, and frames between two looks at the clock.
BEAT = 0.2
FRAMES_PER_LOOK = 8
# Documents of a segment at the least: finding its start costs as much as several of them.
LEAST_SEGMENT = 45
# Chunks of one task of a cluster at most: what is lost with a worker, and reported as progress.
CHUNKS_PER_TASK = 5


class FilePlan(NamedTuple):
    """A file to decode, and its place in the cache."""

    source: Source
    settings: DocumentSettings
    chunks: SourceChunks
    n_documents: int | None
    """Number of documents to expect at most; None if unknown or if reading cannot be resumed."""


class Segment(NamedTuple):
    """Consecutive documents of a file, for one worker."""

    plan: FilePlan
    start: int
    stop: int | None

    @property
    def name(self) -> str:
        """How the segment is called in messages."""
        return f"{self.plan.source.name} from {self.start * self.plan.settings.clip:g} s"


def cached_documents(plan: FilePlan, segments: Sequence[Segment]) -> int:
    """Return the number of documents of a file that are in none of the segments to decode."""
    own = [segment for segment in segments if segment.plan is plan]
    if plan.n_documents is None:
        return 0
    missing = sum((plan.n_documents if s.stop is None else s.stop) - s.start for s in own)
    return max(0, plan.n_documents - missing)


def missing_segments(plan: FilePlan, n_workers: int, most: int | None = None) -> Iterator[Segment]:
    """Yield the segments of a file whose chunks are not in the cache, of `most` chunks each."""
    end = plan.chunks.end
    if plan.n_documents is None:
        yield Segment(plan, 0, end)
        return
    starts = range(0, plan.n_documents, plan.chunks.size)
    missing = [start for start in starts if not plan.chunks.has(start)]
    for start, stop in neighbouring(missing, n_workers, plan.chunks.size, most):
        yield Segment(plan, start, end if stop > starts[-1] else stop)


def neighbouring(
    missing: Sequence[int], n_workers: int, size: int = CHUNK, most: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield start and stop of segments of neighbouring chunks of a size, long ones first.

    Each segment costs a search for its start, so there should be few; short ones at the end let
    all workers finish together.
    """
    least = math.ceil(LEAST_SEGMENT / size)
    if len(missing) <= 2 * n_workers * least:  # one for each worker
        least = max(least, math.ceil(len(missing) / n_workers))
    i = 0
    while i < len(missing):
        left = len(missing) - i
        n = left if n_workers == 1 else max(least, 2 * left // (3 * n_workers))
        n = min(n, left, most or n)
        while missing[i + n - 1] != missing[i] + (n - 1) * size:  # not across cached chunks
            n -= 1
        yield missing[i], missing[i] + n * size
        i += n


class SegmentSign(NamedTuple):
    """How far the decoding of a segment is: a sign of life."""

    frames: int = 0
    """Number of frames decoded."""
    written: int = 0
    """Number of the first document that may not be in the cache yet."""


class SegmentPool:
    """Segments of files decoded by processes of this machine, while the `with` block runs.

    Parameters
    ----------
    plans
        The files.
    workers
        The processes.
    report
        Called at every look at the workers.
    """

    def __init__(
        self,
        plans: Sequence[FilePlan],
        workers: LocalWorkers,
        report: Callable[[], None] = lambda: None,
    ) -> None:
        n = workers.n_workers
        self.report = report
        self.segments = [segment for plan in plans for segment in missing_segments(plan, n)]
        self.notes: list[str] = []
        self.signs: dict[int, SegmentSign] = {}
        """The latest sign of each segment, by its number."""
        self.finished: set[int] = set()
        self.last_sign = math.inf
        """When a sign came last; kernels are compiled before the first, which is no silence."""
        self._tasks = workers.started(decode_segment, self.segments, heard=self._hear, attempts=1)

    def __enter__(self) -> Self:
        with ExitStack() as stack:  # an interrupt may come while workers start
            stack.enter_context(self._tasks)
            self.watch(within=0.0)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _hear(self, number: int, sign: SegmentSign) -> None:
        self.signs[number] = sign
        self.last_sign = time.monotonic()

    @property
    def n_frames(self) -> int:
        """Number of frames decoded so far."""
        return sum(sign.frames for sign in self.signs.values())

    def watch(self, *, within: float = LOOK) -> None:
        """Wait `within` seconds for the workers, and raise if one failed, crashed or hangs."""
        try:
            for number, notes in self._tasks.poll(within):
                self.finished.add(number)
                self.notes += [note for note in notes if note not in self.notes]
        except WorkerError as error:
            raise VideoError(
                "the decoder crashed: a video is damaged beyond repair, or memory ran out"
            ) from error
        if self._tasks.pending and time.monotonic() - self.last_sign > PATIENCE:
            raise VideoError(f"the decoder gave no frame for {PATIENCE:g} s and was ended")
        self.report()

    def chunks(self, plan: FilePlan) -> Iterator[Chunk]:
        """Yield the chunks of a file in order, each when it is in the cache."""
        position = 0
        for number, segment in enumerate(self.segments):
            if segment.plan is not plan:
                continue
            yield from plan.chunks.available(position, segment.start)
            position = segment.start
            done = False
            while not done:
                done = number in self.finished
                written = self.signs.get(number, SegmentSign()).written
                yield from plan.chunks.available(position, written)
                position = max(position, written)
                if not done:
                    self.watch()
        yield from plan.chunks.available(position, plan.n_documents or 0)


def decode_segment(segment: Segment) -> list[str]:
    """Write the chunks of a segment into the cache, and report signs of life; return notes."""
    name = segment.plan.source.name
    try:
        return [f"{name}: {note}" for note in _decode(segment, segment.plan.chunks, report)]
    except OSError as error:  # for instance a compiled kernel that does not fit on a full disk
        raise VideoError(f"{name}: decoding failed: {error}") from error


def _decode(
    segment: Segment, chunks: ChunkPlace, report: Callable[[SegmentSign], None]
) -> list[str]:
    """Put the chunks of a segment where they belong, and report signs of life; return notes."""
    source, settings = segment.plan.source, segment.plan.settings
    warm_up(settings)
    report(SegmentSign())
    writer = ChunkWriter(chunks)
    steady = segment.plan.n_documents is not None
    with reader_from(segment.start, source, settings, steady=steady) as reader:
        frames = _CountedFrames(reader, writer, report)
        for document in documents(frames, settings, start=segment.start, stop=segment.stop):
            writer.add(document)
        writer.flush()
        frames.report()
        return list(reader.notes)


class _HeldChunks:
    """Chunks that are kept in memory."""

    def __init__(self, size: int) -> None:
        self.size, self.chunks = size, dict[int, Chunk]()

    def put(self, start: int, chunk: Chunk) -> None:
        """Keep a chunk."""
        self.chunks[start] = chunk

    def get(self, start: int) -> Chunk:
        """Return a chunk."""
        return self.chunks[start]


class ReadSegment(NamedTuple):
    """A segment that was decoded in this process."""

    chunks: dict[int, Chunk]
    """By the number of their first document, in order."""
    n_frames: int
    notes: list[str]


def read_segment(segment: Segment) -> ReadSegment:
    """Decode a segment in a thread of this process.

    Raises
    ------
    VideoError
        Also where FFmpeg gives no frame for `PATIENCE` seconds: it is left to itself then.
    """
    held = _HeldChunks(segment.plan.chunks.size)
    sign, notes = _decode_watched(segment, held)
    return ReadSegment(held.chunks, sign.frames, notes)


def _decode_watched(segment: Segment, chunks: ChunkPlace) -> tuple[SegmentSign, list[str]]:
    """Put the chunks of a segment where they belong; return the last sign of life, and notes."""
    notes_to_come: Future[list[str]] = Future()
    signs: list[tuple[SegmentSign, float]] = []

    def report(sign: SegmentSign) -> None:
        signs[:] = [(sign, time.monotonic())]

    def decode() -> None:
        try:
            notes_to_come.set_result(_decode(segment, chunks, report))
        except BaseException as error:
            notes_to_come.set_exception(error)

    threading.Thread(target=decode, daemon=True).start()
    while not wait([notes_to_come], timeout=LOOK).done:
        if signs and time.monotonic() - signs[0][1] > PATIENCE:
            name = segment.plan.source.name
            raise VideoError(f"{name}: the decoder gave no frame for {PATIENCE:g} s")
    notes = notes_to_come.result()
    return signs[0][0], notes


class DecodedSegment(NamedTuple):
    """What a worker of a cluster reports of a segment."""

    written: int
    """Number of the first document that may be missing; 0 if there is none at all."""
    n_frames: int
    notes: list[str]
    files: tuple[tuple[int, bytes], ...] = ()
    """Chunks that are not in the cache: the number of their first document, and what their file
    holds, compressed."""


def stored_segment(segment: Segment) -> DecodedSegment:
    """Write the chunks of a segment into the cache; run by a worker on this machine."""
    sign, notes = _decode_watched(segment, segment.plan.chunks)
    return DecodedSegment(sign.written, sign.frames, notes)


def sent_segment(segment: Segment) -> DecodedSegment:
    """Return the chunks of a segment; run by a worker elsewhere."""
    held = _HeldChunks(segment.plan.chunks.size)
    sign, notes = _decode_watched(segment, held)
    files = ((n, zlib.compress(chunk.to_bytes(), level=1)) for n, chunk in held.chunks.items())
    return DecodedSegment(sign.written, sign.frames, notes, tuple(files))


class SegmentTasks:
    """Segments of files decoded by the workers of a cluster, which read the files where they lie.

    Parameters
    ----------
    plans
        The files.
    workers
        What decodes them.
    report
        Called whenever a segment is finished.
    """

    def __init__(
        self,
        plans: Sequence[FilePlan],
        workers: Workers,
        report: Callable[[], None] = lambda: None,
    ) -> None:
        n = max(2, workers.n_workers)
        self.workers, self.report = workers, report
        self.segments = [
            segment for plan in plans for segment in missing_segments(plan, n, CHUNKS_PER_TASK)
        ]
        self.notes: list[str] = []
        self.n_frames = 0
        """Number of frames decoded so far."""

    def __enter__(self) -> Self:
        self._ends: dict[int, int] = {}
        """After which document each finished segment ends."""
        decode = stored_segment if self.workers.here else sent_segment
        self._finished = self.workers.as_completed(decode, map(_elsewhere, self.segments))
        return self

    def __exit__(self, *exception: object) -> None:
        if isinstance(self._finished, Generator):
            self._finished.close()

    def watch(self, *, within: float = 0.0) -> None:
        """Do nothing: whoever waits for chunks takes what the workers have finished."""

    def chunks(self, plan: FilePlan) -> Iterator[Chunk]:
        """Yield the chunks of a file in order, each when it is in the cache."""
        position = 0
        for row, segment in enumerate(self.segments):
            if segment.plan is not plan:
                continue
            while row not in self._ends:
                self._take_next()
            stop = self._ends[row]
            yield from plan.chunks.available(position, stop)
            position = max(position, stop)
        yield from plan.chunks.available(position, plan.n_documents or 0)

    def _take_next(self) -> None:
        """Put the next segment that is finished into the cache."""
        row, decoded = next(self._finished)
        segment = self.segments[row]
        for start, file in decoded.files:
            segment.plan.chunks.put_file(start, zlib.decompress(file))
        self._ends[row] = decoded.written or segment.start + segment.plan.chunks.size
        self.n_frames += decoded.n_frames
        notes = [f"{segment.plan.source.name}: {note}" for note in decoded.notes]
        self.notes += [note for note in notes if note not in self.notes]
        self.report()


def _elsewhere(segment: Segment) -> Segment:
    """Return a segment whose files are named as any worker finds them."""
    plan = segment.plan
    source = replace(plan.source, address=str(Path(plan.source.address).absolute()))
    chunks = replace(plan.chunks, folder=plan.chunks.folder.absolute())
    mask, region = map(_absolute, (plan.settings.mask, plan.settings.region))
    settings = replace(plan.settings, mask=mask, region=region)
    return segment._replace(plan=plan._replace(source=source, settings=settings, chunks=chunks))


def _absolute(given: str | None) -> str | None:
    """Return the absolute path of a file; anything else as it is."""
    return str(Path(given).absolute()) if given and is_file(given) else given


class _CountedFrames:
    """Frames of a reader, counted and reported as signs of life while they are read."""

    def __init__(
        self, reader: Reader, writer: ChunkWriter, report: Callable[[SegmentSign], None]
    ) -> None:
        self.reader, self.writer, self._report = reader, writer, report
        self.fps, self.width, self.height = reader.fps, reader.width, reader.height
        self.n_frames = 0

    def __iter__(self) -> Iterator[Frame]:
        due = time.monotonic() + BEAT
        for frame in self.reader:
            self.n_frames += 1
            if self.n_frames % FRAMES_PER_LOOK == 0 and time.monotonic() > due:
                self.report()
                due = time.monotonic() + BEAT
            yield frame

    def report(self) -> None:
        """Report how far reading and writing are."""
        self._report(SegmentSign(self.n_frames, self.writer.written))
