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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import VideoError, WorkerError
from habitus.ingest.chunks import CHUNK, Chunk, ChunkWriter, SourceChunks
from habitus.ingest.clips import DocumentSettings, documents, reader_from, vocabulary_of
from habitus.ingest.decoder import warm_up
from habitus.jobs.workers import LocalTasks, LocalWorkers, Workers, report
from habitus.video import Frame, Reader, Source
from habitus.video.mask import is_file

DECODING = "habitus.ingest.preloaded"
"""What processes that decode files have loaded."""
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
MOST_CHUNKS = 5


@dataclass(eq=False)
class SourcePlan:
    """What is known of a source before it is decoded, and its place in the cache."""

    source: Source
    settings: DocumentSettings
    chunks: SourceChunks
    n_documents: int | None = None
    """Number of documents to expect at most; None if unknown or if reading cannot be resumed."""
    vocabulary: Vocabulary | None = None
    """None for a live source: it is opened only once, by the process that decodes it."""
    duration: float | None = None
    fps: float = 25.0
    surveyed: bool = True
    """Whether the packets of a file have been read, not its header alone."""


class Segment(NamedTuple):
    """Consecutive documents of a file, for one worker."""

    plan: SourcePlan
    start: int
    stop: int | None

    @property
    def name(self) -> str:
        """How the segment is called in messages."""
        return f"{self.plan.source.name} from {self.start * self.plan.settings.clip:g} s"


def cached_documents(plan: SourcePlan, segments: Sequence[Segment]) -> int:
    """Return the number of documents of a file that are in none of the segments to decode."""
    of_plan = [segment for segment in segments if segment.plan is plan]
    if plan.n_documents is None:
        return 0
    missing = sum((plan.n_documents if s.stop is None else s.stop) - s.start for s in of_plan)
    return max(0, plan.n_documents - missing)


def missing_segments(
    plan: SourcePlan, n_workers: int, most: int | None = None
) -> Iterator[Segment]:
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


class DecodedSegment(NamedTuple):
    """How far the decoding of a segment is: a sign of life, and at its end the result."""

    n_frames: int = 0
    """Number of frames decoded."""
    written: int = 0
    """Number of the first document that may not be in the cache yet."""
    notes: Sequence[str] = ()
    files: Sequence[tuple[int, bytes]] = ()
    """Chunks that a worker elsewhere sends: the number of their first document, and what their file
    holds, compressed."""


class SegmentPool:
    """Segments of files decoded by workers, while the `with` block runs.

    Processes of this machine say how far they are, those of a cluster only when a segment is
    finished; the latter read the files where they lie.

    Parameters
    ----------
    plans
        The files.
    workers
        What decodes them.
    report
        Called at every look at the workers.
    """

    def __init__(
        self,
        plans: Sequence[SourcePlan],
        workers: Workers,
        report: Callable[[], None] = lambda: None,
    ) -> None:
        local = isinstance(workers, LocalWorkers)
        n, most = (workers.n_workers, None) if local else (max(2, workers.n_workers), MOST_CHUNKS)
        self.workers, self.report = workers, report
        self.segments = [part for plan in plans for part in missing_segments(plan, n, most)]
        self.notes: list[str] = []
        self.signs: dict[int, DecodedSegment] = {}
        """The latest sign of each segment, by its number."""
        self.finished: set[int] = set()
        self.last_sign = math.inf
        """When a sign came last; kernels are compiled before the first, which is no silence."""
        self._tasks: LocalTasks[Segment, DecodedSegment] | None = None
        if isinstance(workers, LocalWorkers):
            self._tasks = workers.started(
                decode_segment, self.segments, heard=self._hear, attempts=1
            )

    def __enter__(self) -> Self:
        with ExitStack() as stack:  # an interrupt may come while workers start
            if self._tasks is not None:
                stack.enter_context(self._tasks)
                self.watch(within=0.0)
            else:
                decode = stored_segment if self.workers.here else sent_segment
                self._results = self.workers.as_completed(decode, map(_elsewhere, self.segments))
                if isinstance(self._results, Generator):
                    stack.callback(self._results.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _hear(self, number: int, sign: DecodedSegment) -> None:
        self.signs[number] = sign
        self.last_sign = time.monotonic()

    @property
    def n_frames(self) -> int:
        """Number of frames decoded so far."""
        return sum(sign.n_frames for sign in self.signs.values())

    def watch(self, *, within: float = LOOK) -> None:
        """Take what is finished `within` seconds; raise if a worker failed, crashed or hangs.

        For a cluster, wait until a segment is finished.
        """
        for number, decoded in self._completed(within):
            for start, file in decoded.files:
                self.segments[number].plan.chunks.put_file(start, zlib.decompress(file))
            self.signs[number] = decoded
            self.finished.add(number)
            self.notes += [note for note in decoded.notes if note not in self.notes]
        self.report()

    def _completed(self, within: float) -> Iterator[tuple[int, DecodedSegment]]:
        if self._tasks is None:
            yield next(self._results)
            return
        try:
            yield from self._tasks.poll(within)
        except WorkerError as error:
            raise VideoError(
                "the decoder crashed: a video is damaged beyond repair, or memory ran out"
            ) from error
        if self._tasks.pending and time.monotonic() - self.last_sign > PATIENCE:
            raise VideoError(f"the decoder gave no frame for {PATIENCE:g} s and was ended")

    def chunks(self, plan: SourcePlan) -> Iterator[Chunk]:
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
                written = self.signs.get(number, DecodedSegment()).written
                yield from plan.chunks.available(position, written)
                position = max(position, written)
                if not done:
                    self.watch()
        yield from plan.chunks.available(position, plan.n_documents or 0)


def decode_segment(segment: Segment) -> DecodedSegment:
    """Write the chunks of a segment into the cache; run by a process of this machine."""
    try:
        return _decode(segment, segment.plan.chunks.put, report)
    except OSError as error:  # for instance a compiled kernel that does not fit on a full disk
        raise VideoError(f"{segment.plan.source.name}: decoding failed: {error}") from error


def stored_segment(segment: Segment) -> DecodedSegment:
    """Write the chunks of a segment into the cache; run by a worker of a cluster, here."""
    return decode_watched(segment, segment.plan.chunks.put)


def sent_segment(segment: Segment) -> DecodedSegment:
    """Return the chunks of a segment; run by a worker elsewhere."""
    held: dict[int, Chunk] = {}
    decoded = decode_watched(segment, held.__setitem__)
    files = ((n, zlib.compress(chunk.to_bytes(), level=1)) for n, chunk in held.items())
    return decoded._replace(files=tuple(files))


def decode_watched(segment: Segment, put: Callable[[int, Chunk], None]) -> DecodedSegment:
    """Decode a segment in a thread of this process; `put` takes its chunks.

    Raises
    ------
    VideoError
        Also where FFmpeg gives no frame for `PATIENCE` seconds: it is left to itself then.
    """
    decoded: Future[DecodedSegment] = Future()
    last_sign = math.inf

    def report(sign: DecodedSegment) -> None:
        nonlocal last_sign
        last_sign = time.monotonic()

    def decode() -> None:
        try:
            decoded.set_result(_decode(segment, put, report))
        except BaseException as error:
            decoded.set_exception(error)

    threading.Thread(target=decode, daemon=True).start()
    while not wait([decoded], timeout=LOOK).done:
        if time.monotonic() - last_sign > PATIENCE:
            name = segment.plan.source.name
            raise VideoError(f"{name}: the decoder gave no frame for {PATIENCE:g} s")
    return decoded.result()


def _decode(
    segment: Segment,
    put: Callable[[int, Chunk], None],
    report: Callable[[DecodedSegment], None],
) -> DecodedSegment:
    """Put the chunks of a segment where they belong, and report signs of life."""
    plan = segment.plan
    warm_up(plan.settings)
    report(DecodedSegment())
    writer = ChunkWriter(put, plan.chunks.size, plan.settings.clip)
    steady = plan.n_documents is not None
    with reader_from(segment.start, plan.source, plan.settings, steady=steady) as reader:
        vocabulary = vocabulary_of(reader, plan.settings)
        frames = _CountedFrames(reader, writer, report)
        for document in documents(frames, plan.settings, start=segment.start, stop=segment.stop):
            writer.add(document, vocabulary)
        writer.flush()
        notes = [f"{plan.source.name}: {note}" for note in reader.notes]
        return frames.sign()._replace(notes=notes)


def _elsewhere(segment: Segment) -> Segment:
    """Return a segment whose files are named as any worker finds them."""
    plan = segment.plan
    source = replace(plan.source, address=str(Path(plan.source.address).absolute()))
    chunks = replace(plan.chunks, folder=plan.chunks.folder.absolute())
    mask, region = map(_absolute, (plan.settings.mask, plan.settings.region))
    settings = replace(plan.settings, mask=mask, region=region)
    return segment._replace(plan=replace(plan, source=source, settings=settings, chunks=chunks))


def _absolute(given: str | None) -> str | None:
    """Return the absolute path of a file; anything else as it is."""
    return str(Path(given).absolute()) if given and is_file(given) else given


class _CountedFrames:
    """Frames of a reader, counted and reported as signs of life while they are read."""

    def __init__(
        self, reader: Reader, writer: ChunkWriter, report: Callable[[DecodedSegment], None]
    ) -> None:
        self.reader, self.writer, self.report = reader, writer, report
        self.fps, self.width, self.height = reader.fps, reader.width, reader.height
        self.n_frames = 0

    def __iter__(self) -> Iterator[Frame]:
        due = time.monotonic() + BEAT
        for frame in self.reader:
            self.n_frames += 1
            if self.n_frames % FRAMES_PER_LOOK == 0 and time.monotonic() > due:
                self.report(self.sign())
                due = time.monotonic() + BEAT
            yield frame

    def sign(self) -> DecodedSegment:
        """Return how far reading and writing are."""
        return DecodedSegment(self.n_frames, self.writer.written)
