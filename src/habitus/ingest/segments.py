"""Video files decoded in segments: by processes of this machine, or by workers of a cluster.

Processes are joblib's loky ones, which can be ended and never import the user's script. They write
finished chunks straight into the cache, and show in a small shared file how far they are. So do the
workers of a cluster on this machine, but for the shared file. Workers elsewhere send the chunks of
a segment back, and whoever asked for them puts them into the cache.
"""

import os
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
from numpy.typing import NDArray

from habitus.corpus.documents import smallest
from habitus.errors import InvalidInputError, VideoError
from habitus.files import work_folder
from habitus.ingest.chunks import CHUNK, Chunk, ChunkPlace, ChunkWriter, SourceChunks
from habitus.ingest.clips import DocumentSettings, documents, reader_from
from habitus.ingest.decoder import warm_up
from habitus.progress import tell_compiling, when_compiling
from habitus.video import Frame, Reader, Source
from habitus.video.mask import is_file
from habitus.workers import (
    Workers,
    end_pool,
    end_with_parent,
    interrupts_blocked,
    number_of_workers,
    start_resource_tracker,
)

# Seconds without a decoded frame after which the workers are ended.
PATIENCE = 60.0
# Seconds between two looks at the workers.
LOOK = 0.2
# Frames from one sign of life to the next.
FRAMES_PER_SIGN = 16
# Chunks of one task of a cluster at most: what is lost with a worker, and told as progress.
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
    starts = range(0, plan.n_documents, CHUNK)
    missing = [start for start in starts if not plan.chunks.has(start)]
    for start, stop in neighbouring(missing, n_workers, most):
        yield Segment(plan, start, end if stop > starts[-1] else stop)


def neighbouring(
    missing: Sequence[int], n_workers: int, most: int | None = None
) -> Iterator[tuple[int, int]]:
    """Yield start and stop of segments of neighbouring chunks, long ones first.

    Each segment costs a search for its start, so there should be few; short ones at the end let
    all workers finish together.
    """
    i = 0
    while i < len(missing):
        left = len(missing) - i
        n = left if n_workers == 1 else max(1, left // (2 * n_workers))
        n = min(n, most or n)
        while missing[i + n - 1] != missing[i] + (n - 1) * CHUNK:  # not across cached chunks
            n -= 1
        yield missing[i], missing[i] + n * CHUNK
        i += n


class SegmentPool:
    """Worker processes that decode the segments of files; they run while the `with` block does.

    Parameters
    ----------
    plans
        The files.
    jobs
        Number of processes; below 1, one per available processor.
    report
        Called at every look at the workers.
    """

    def __init__(
        self, plans: Sequence[FilePlan], jobs: int, report: Callable[[], None] = lambda: None
    ) -> None:
        n = number_of_workers(jobs)
        self.report = report
        self.segments = [segment for plan in plans for segment in missing_segments(plan, n)]
        self.n_workers = min(n, len(self.segments))
        self.notes: list[str] = []
        self.last_sign = time.monotonic()

    def __enter__(self) -> Self:
        self.futures: list[Future[list[str]]] = []
        with ExitStack() as stack:  # an interrupt may come while workers start
            if self.segments:
                folder = stack.enter_context(work_folder())
                self.status = StatusFile.create(folder, len(self.segments))
                stack.callback(self.status.close)
                self.signs = self.status.table[:, :COMPILING].copy()
                self._start_workers(stack)
            self.pending = set(self.futures)
            self._stack = stack.pop_all()
        return self

    def _start_workers(self, stack: ExitStack) -> None:
        executor = ProcessPoolExecutor(
            self.n_workers, initializer=end_with_parent, initargs=(os.getpid(),)
        )
        stack.callback(end_pool, executor)
        start_resource_tracker()
        with interrupts_blocked():
            for row, segment in enumerate(self.segments):
                task = executor.submit(decode_segment, segment, self.status.path, row)
                self.futures.append(task)

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    @property
    def n_frames(self) -> int:
        """Number of frames decoded so far."""
        return int(self.status.table[:, FRAMES].sum()) if self.segments else 0

    def watch(self, *, within: float = LOOK) -> None:
        """Wait `within` seconds for the workers, and raise if one failed, crashed or hangs."""
        done, self.pending = wait(self.pending, timeout=within, return_when=FIRST_COMPLETED)
        for future in done:
            try:
                self.notes += [note for note in future.result() if note not in self.notes]
            except BrokenProcessPool as error:
                raise VideoError(
                    "the decoder crashed: a video is damaged beyond repair, or memory ran out"
                ) from error
        if self.segments and self.status.table[:, COMPILING].any():
            tell_compiling()
        self._check_signs()
        self.report()

    def _check_signs(self) -> None:
        """Raise if no worker showed a sign of life for too long."""
        if not self.pending:
            return
        signs = self.status.table[:, :COMPILING].copy()
        # Compiling kernels is no silence: workers show their first sign after it.
        if not signs.any() or not np.array_equal(signs, self.signs):
            self.signs, self.last_sign = signs, time.monotonic()
        elif time.monotonic() - self.last_sign > PATIENCE:
            raise VideoError(f"the decoder gave no frame for {PATIENCE:g} s and was ended")

    def chunks(self, plan: FilePlan) -> Iterator[Chunk]:
        """Yield the chunks of a file in order, each when it is in the cache."""
        position = 0
        for row, segment in enumerate(self.segments):
            if segment.plan is not plan:
                continue
            yield from plan.chunks.available(position, segment.start)
            position = segment.start
            done = False
            while not done:
                done = self.futures[row].done() and self.futures[row] not in self.pending
                written = int(self.status.table[row, WRITTEN])
                yield from plan.chunks.available(position, written)
                position = max(position, written)
                if not done:
                    self.watch()
        yield from plan.chunks.available(position, plan.n_documents or 0)


# Columns of the status file: whether decoding has started, the number of frames decoded, the
# number of the first document that may not be in the cache yet, and whether kernels are compiled.
STARTED, FRAMES, WRITTEN, COMPILING = range(4)
N_COLUMNS = 4


@dataclass
class StatusFile:
    """A small file that all processes map: one row per segment."""

    path: Path
    table: NDArray[np.int64]

    @classmethod
    def create(cls, folder: Path, n_rows: int) -> Self:
        """Make a file of zeros in a folder."""
        path = folder / "status"
        try:
            table = np.memmap(path, dtype=np.int64, mode="w+", shape=(n_rows, N_COLUMNS))
        except OSError as error:
            raise InvalidInputError(f"cannot write a temporary file: {error.strerror}") from error
        return cls(path, table)

    def close(self) -> None:
        """Unmap the file."""
        self.table = np.array(self.table)


def decode_segment(segment: Segment, status: Path, row: int) -> list[str]:
    """Write the chunks of a segment into the cache; run by a process, returns notes."""
    try:
        own = np.memmap(status, dtype=np.int64, mode="r+").reshape(-1, N_COLUMNS)[row]
        when_compiling(lambda: own.__setitem__(COMPILING, 1))
        notes = _decode(segment, segment.plan.chunks, own)
        return [f"{segment.plan.source.name}: {note}" for note in notes]
    except OSError as error:  # for instance a compiled kernel that does not fit on a full disk
        raise VideoError(f"{segment.plan.source.name}: decoding failed: {error}") from error


def _decode(segment: Segment, chunks: ChunkPlace, own: NDArray[np.int64]) -> list[str]:
    """Put the chunks of a segment where they belong, and signs of life into a row; return notes."""
    source, settings = segment.plan.source, segment.plan.settings
    warm_up(settings)
    own[STARTED] = 1
    writer = ChunkWriter(chunks)
    steady = segment.plan.n_documents is not None
    with reader_from(segment.start, source, settings, steady=steady) as reader:
        frames = _CountedFrames(reader, own)
        for document in documents(frames, settings, start=segment.start, stop=segment.stop):
            writer.add(document)
            own[WRITTEN] = writer.written
        writer.flush()
        own[WRITTEN] = writer.written
        return list(reader.notes)


class PackedArray(NamedTuple):
    """An array in a small type, compressed."""

    contents: bytes
    shape: tuple[int, ...]
    small: str
    dtype: str
    """Types that it is packed in, and was given in."""

    @classmethod
    def of(cls, array: NDArray[Any]) -> "PackedArray":
        """Pack an array."""
        small = smallest(array)
        contents = zlib.compress(np.ascontiguousarray(small).tobytes(), level=1)
        return cls(contents, array.shape, small.dtype.str, array.dtype.str)

    def unpacked(self) -> NDArray[Any]:
        """Return the array as it was given."""
        small = np.frombuffer(zlib.decompress(self.contents), self.small)
        return small.reshape(self.shape).astype(self.dtype)


class _HeldChunks:
    """Chunks that are kept in memory."""

    def __init__(self) -> None:
        self.chunks: dict[int, Chunk] = {}

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
    held = _HeldChunks()
    status, notes = _decode_watched(segment, held)
    return ReadSegment(held.chunks, int(status[FRAMES]), notes)


def _decode_watched(segment: Segment, chunks: ChunkPlace) -> tuple[NDArray[np.int64], list[str]]:
    """Put the chunks of a segment where they belong; return the row of the status, and notes."""
    own = np.zeros(N_COLUMNS, dtype=np.int64)
    found: Future[list[str]] = Future()

    def decode() -> None:
        try:
            found.set_result(_decode(segment, chunks, own))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=decode, daemon=True).start()
    signs, last_sign = own.copy(), time.monotonic()
    while not wait([found], timeout=LOOK).done:
        if not own.any() or not np.array_equal(own, signs):
            signs, last_sign = own.copy(), time.monotonic()
        elif time.monotonic() - last_sign > PATIENCE:
            name = segment.plan.source.name
            raise VideoError(f"{name}: the decoder gave no frame for {PATIENCE:g} s")
    return own, found.result()


class DecodedSegment(NamedTuple):
    """What a worker of a cluster tells of a segment."""

    written: int
    """Number of the first document that may be missing; 0 if there is none at all."""
    n_frames: int
    notes: list[str]
    packed: dict[int, dict[str, PackedArray]] | None = None
    """Chunks, by the number of their first document; None where they are in the cache."""

    def put_into(self, place: ChunkPlace) -> None:
        """Put the chunks that were sent where they belong."""
        for start, fields in (self.packed or {}).items():
            place.put(start, Chunk(**{name: one.unpacked() for name, one in fields.items()}))


def stored_segment(segment: Segment) -> DecodedSegment:
    """Write the chunks of a segment into the cache; run by a worker on this machine."""
    status, notes = _decode_watched(segment, segment.plan.chunks)
    return DecodedSegment(int(status[WRITTEN]), int(status[FRAMES]), notes)


def sent_segment(segment: Segment) -> DecodedSegment:
    """Return the chunks of a segment, packed; run by a worker elsewhere."""
    held = _HeldChunks()
    status, notes = _decode_watched(segment, held)
    packed = {
        start: {name: PackedArray.of(array) for name, array in chunk._asdict().items()}
        for start, chunk in held.chunks.items()
    }
    return DecodedSegment(int(status[WRITTEN]), int(status[FRAMES]), notes, packed)


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
        decoded.put_into(segment.plan.chunks)
        self._ends[row] = decoded.written or segment.start + CHUNK
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
    """Frames of a reader, counted in the status file as signs of life."""

    def __init__(self, reader: Reader, status: NDArray[np.int64]) -> None:
        self.reader, self.status = reader, status
        self.fps, self.width, self.height = reader.fps, reader.width, reader.height

    def __iter__(self) -> Iterator[Frame]:
        for n, frame in enumerate(self.reader):
            if n % FRAMES_PER_SIGN == 0:
                self.status[FRAMES] += FRAMES_PER_SIGN
            yield frame
