"""Sources of video to one corpus: files in parallel and resumable, live sources as they play."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError, InvalidInputError, VideoError
from habitus.files import work_folder
from habitus.ingest.chunks import (
    Chunk,
    ChunkCache,
    ChunkWriter,
    CorpusBuilder,
    Extraction,
    SourceChunks,
)
from habitus.ingest.clips import DocumentSettings, vocabulary_of
from habitus.ingest.decoder import (
    SILENCE,
    TICK,
    Decoder,
    EndOfSource,
    Message,
    Sign,
    Silence,
    TimedDocument,
)
from habitus.ingest.segments import PATIENCE, FilePlan, SegmentPool
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.video import Reader, Source, survey, watched_cells

# Number of stills, about, that the picture of the scene is the median of.
STILLS = 24
# Seconds that a live source may take to send its last document after an interrupt.
LAST_DOCUMENT = 2.0


def extract_corpus(
    sources: Sequence[Source],
    settings: DocumentSettings | None = None,
    *,
    output: Path | None = None,
    continued: bool = False,
    jobs: int = 1,
    duration: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Extraction:
    """Extract the documents of videos into one corpus.

    Files are decoded by worker processes, each live source by a process of its own; a process that
    hangs is ended. The result does not depend on `jobs`. An interrupt (Ctrl-C) ends live sources,
    and what they gave so far is the result; a second one, or one without live sources, is raised.

    Parameters
    ----------
    sources
        Videos of one frame size: several sequences.
    settings
        How documents are extracted.
    output
        Path of the corpus to be, if an interrupted run shall be resumable: finished chunks are
        kept beside it until `ChunkCache.clear`. Writing the corpus is up to the caller.
    continued
        Whether the sources are one sequence, each the continuation of the one before.
    jobs
        Number of processes; below 1, one per available processor.
    duration
        Number of seconds of video to read from each source; all if None.
    progress
        Called with the number of seconds of video that are done.

    Returns
    -------
    Extraction
        The corpus, and notes about damaged frames and faults of the camera.

    Raises
    ------
    VideoError
        If a source cannot be opened or decoded, or is too short for a document.
    InvalidInputError
        If the settings do not fit the video, or sources have different frame sizes.
    """
    if not sources:
        raise InvalidInputError("no video was given: name at least one", parameter="sources")
    settings = settings or DocumentSettings()
    with _chunk_cache(output) as cache:
        end = None if duration is None else math.ceil(duration / settings.clip)
        plans = [_plan(source, settings, cache, end) for source in sources]
        _check_same_grid(plans)
        builder = CorpusBuilder(settings, continued=continued)
        with _Decoding(plans, jobs, _Meter(plans, duration, progress)) as decoding:
            for number in range(len(plans)):
                builder.add_source(decoding.chunks(number))
        _check_same_grid(plans)
        try:
            corpus, faults = builder.finish(plans[0].vocabulary)
        except VideoError as error:
            raise VideoError(f"{', '.join(s.name for s in sources)}: {error}") from None
        return Extraction(corpus, decoding.notes + faults)


@contextmanager
def _chunk_cache(output: Path | None) -> Iterator[ChunkCache]:
    """Give a cache beside the corpus, or a temporary one."""
    if output is not None:
        yield ChunkCache(output)
        return
    with work_folder() as folder:
        yield ChunkCache(folder / "corpus")


@dataclass
class _SourcePlan:
    """What is known of a source before it is decoded."""

    source: Source
    settings: DocumentSettings
    chunks: SourceChunks
    vocabulary: Vocabulary | None = None
    """None for a live source: it is opened only once, by the process that decodes it."""
    duration: float | None = None
    fps: float = 25.0
    file: FilePlan | None = None
    """None for a live source."""


def _plan(
    source: Source, settings: DocumentSettings, cache: ChunkCache, end: int | None
) -> _SourcePlan:
    """Open a file, and check that the settings fit it; a live source is not opened."""
    if source.is_live:
        return _SourcePlan(source, settings, cache.of_source(source, settings, end=end))
    with Reader(source) as reader:
        vocabulary = vocabulary_of(reader, settings)
        watched_cells(vocabulary, mask=settings.mask, region=settings.region)
        duration, steady = survey(source, until=math.inf if end is None else end * settings.clip)
        every = max(1, int(duration / settings.clip / STILLS))
        settings = replace(settings, still_every=every)
        last = int(duration / settings.clip) + 2  # times are rounded
        chunks = cache.of_source(source, settings, end=end)
        file = FilePlan(source, settings, chunks, min(last, end or last) if steady else None)
        return _SourcePlan(source, settings, chunks, vocabulary, duration, reader.fps, file)


def _check_same_grid(plans: Sequence[_SourcePlan]) -> None:
    """Raise if the sources have different vocabularies."""
    known = [(plan.source.name, plan.vocabulary) for plan in plans if plan.vocabulary]
    for name, grid in known:
        first, usual = known[0]
        if grid != usual:
            raise InvalidInputError(
                f"{name} has {grid.width}x{grid.height} pixels, {first} {usual.width}x"
                f"{usual.height}: extract them into separate corpora"
            )


class _Meter:
    """Reports how many seconds of video are done, and how fast."""

    def __init__(
        self, plans: Sequence[_SourcePlan], duration: float | None, report: ProgressCallback
    ) -> None:
        limits = [min(plan.duration or math.inf, duration or math.inf) for plan in plans]
        self.total = None if math.inf in limits else sum(limits)
        self.fps, self.report = plans[0].fps, report
        self.cached, self.started = 0.0, time.monotonic()
        """Seconds of video that were in the cache; when decoding started."""

    def show(self, n_frames: int, live: float = 0.0) -> None:
        """Report the frames decoded from files, and the seconds recorded of live sources."""
        passed = max(time.monotonic() - self.started, 1e-3)
        decoded = n_frames / self.fps + live
        rate = (n_frames + live * self.fps) / passed
        note = f"{rate:.0f} frames/s, {decoded / passed:.0f} x real time"
        done = min(self.cached + decoded, self.total or math.inf)
        self.report(Progress("extracting", done, self.total, note))


class _Decoding:
    """All processes that decode: a pool for files, a recorder per live source."""

    def __init__(self, plans: Sequence[_SourcePlan], jobs: int, meter: _Meter) -> None:
        files = [plan.file for plan in plans if plan.file]
        self.plans, self.meter = plans, meter
        self.pool = SegmentPool(files, jobs, self.report)
        self.recorders = {
            number: _Recorder(plan) for number, plan in enumerate(plans) if plan.file is None
        }
        meter.cached = sum(self.pool.cached_documents(f) * f.settings.clip for f in files)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.pool)
            if self.recorders:
                self._record()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def report(self) -> None:
        """Report progress."""
        recorded = sum(recorder.seconds for recorder in self.recorders.values())
        self.meter.show(self.pool.n_frames, recorded)

    def chunks(self, number: int) -> Iterator[Chunk]:
        """Yield the chunks of a source in order."""
        file = self.plans[number].file
        return self.pool.chunks(file) if file else self.recorders[number].writer.finished()

    @property
    def notes(self) -> list[str]:
        """What was noted while decoding, each note once."""
        recorded = [note for recorder in self.recorders.values() for note in recorder.notes]
        return list(dict.fromkeys(self.pool.notes + recorded))

    def _record(self) -> None:
        """Record live sources until all have ended; an interrupt ends them with what they gave."""
        recorders = self.recorders.values()
        interrupted = math.inf
        with ExitStack() as stack:
            for recorder in recorders:
                stack.enter_context(recorder.decoder).open()
            while not all(recorder.ended for recorder in recorders):
                try:
                    for recorder in recorders:
                        recorder.listen()
                    self.pool.watch(within=0.0)
                    if time.monotonic() - interrupted > LAST_DOCUMENT:
                        break
                except KeyboardInterrupt:
                    if interrupted < math.inf:
                        raise
                    interrupted = time.monotonic()
                    for recorder in recorders:
                        recorder.decoder.finish()
        for recorder in recorders:
            recorder.writer.flush()


class _Recorder:
    """Writes the documents of a live source into the cache as they come."""

    def __init__(self, plan: _SourcePlan) -> None:
        self.plan, self.name = plan, plan.source.name
        self.decoder = Decoder(plan.source, plan.settings, stop=plan.chunks.end)
        self.writer = ChunkWriter(plan.chunks)
        self.notes: list[str] = []
        self.ended, self.ready = False, False
        self.seconds, self.last_sign = 0.0, time.monotonic()
        """Seconds of video so far; when the last message came."""

    def listen(self) -> None:
        """Take the next message, if one comes in a moment; raise if the decoder failed."""
        if self.ended:
            return
        message = self.decoder.next_message(within=TICK)
        if message is SILENCE:
            # Compiling kernels is no silence.
            if self.ready and time.monotonic() - self.last_sign > PATIENCE:
                raise VideoError(
                    f"{self.name}: the decoder gave no frame for {PATIENCE:g} s and was ended"
                )
        elif message is None:
            raise VideoError(
                f"{self.name}: the decoder crashed (exit code {self.decoder.exit_code()})"
            )
        else:
            self.last_sign = time.monotonic()
            self._take(message)

    def _take(self, message: Message | Silence) -> None:
        if isinstance(message, HabitusError):
            raise message
        if message is Sign.READY:
            self.ready = True
        elif isinstance(message, Vocabulary):
            self.plan.vocabulary = message
        elif isinstance(message, TimedDocument):
            self.writer.add(message.document)
            self.seconds = (message.document.number + 1) * self.plan.settings.clip
        elif isinstance(message, str):
            self.notes.append(f"{self.name}: {message}")
        elif isinstance(message, EndOfSource):
            self.notes += [f"{self.name}: {note}" for note in message.notes]
            self.ended = True
