"""Sources of video to one corpus: files in parallel and resumable, live sources as they play."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from habitus.errors import InvalidInputError, VideoError
from habitus.files import work_folder
from habitus.ingest.chunks import (
    Chunk,
    ChunkCache,
    ChunkWriter,
    CorpusBuilder,
    Extraction,
)
from habitus.ingest.clips import ROUNDING, DocumentSettings, vocabulary_of
from habitus.ingest.decoder import Job
from habitus.ingest.live import LiveDocument, LiveSource
from habitus.ingest.segments import (
    DECODING,
    Segment,
    SegmentPool,
    SourcePlan,
    cached_documents,
    decode_watched,
)
from habitus.jobs.workers import LocalWorkers, Workers
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.video import Reader, Source, Survey, survey, watched_cells

# Number of stills, about, that the picture of the scene is the median of.
STILLS = 24
# Seconds that the header of a recording may declare to be believed until its packets are read.
LONGEST_DECLARED = 86_400.0
# Protocols of streams that are never files.
ENDLESS = frozenset(["rtmp", "rtmps", "rtp", "rtsp", "rtsps", "srt", "udp"])
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
    workers: Workers | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Extraction:
    """Extract the documents of videos into one corpus.

    Files are decoded by worker processes, each live source by a process of its own; a process that
    hangs is ended. A live source that is lost is waited for; what is missing is a gap, and a note.
    Without a `duration` it ends where its stream does, unless that is a camera's. The result does
    not depend on `jobs`. An interrupt (Ctrl-C) ends live sources, and what they gave so far is the
    result; a second one, or one without live sources, is raised.

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
    workers
        What decodes files instead of processes of this machine; they find them at the same paths.
        It never changes the result. Where there are live sources it is not used.
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
    with ExitStack() as stack:
        if workers is None or any(source.is_live for source in sources):
            any_file = not all(source.is_live for source in sources)
            preload = DECODING if any_file else None  # while the files are looked at
            workers = stack.enter_context(LocalWorkers(jobs, preload=preload))
        cache = ChunkCache(output or stack.enter_context(work_folder()) / "corpus")
        stack.enter_context(cache.held())
        end = None if duration is None else math.ceil(duration / settings.clip)
        plans = [_plan(source, settings, cache, end) for source in sources]
        _check_same_grid(plans)
        if any(source.is_live for source in sources):  # it can be read only once
            plans = [_surveyed(plan, cache, end) for plan in plans]
        builder = CorpusBuilder(settings, continued=continued)
        with ExitStack() as running:
            decode = partial(_Decoding, workers=workers, duration=duration, progress=progress)
            decoding = running.enter_context(decode(plans))
            surveyed = [_surveyed(plan, cache, end) for plan in plans]
            if any(one is not other for one, other in zip(plans, surveyed, strict=True)):
                running.close()
                plans = surveyed
                decoding = running.enter_context(decode(plans))
            for number in range(len(plans)):
                builder.add_source(decoding.chunks(number))
        _check_same_grid(plans)
        try:
            corpus, faults = builder.finish()
        except VideoError as error:
            raise VideoError(f"{', '.join(s.name for s in sources)}: {error}") from None
        return Extraction(corpus, decoding.notes + faults)


def extract_file(source: Source, settings: DocumentSettings | None = None) -> Extraction:
    """Extract the documents of one file in this process: what `extract_corpus` would return.

    For whoever has many files, and processes of its own for them. Nothing is kept of a run that is
    cut short.

    Raises
    ------
    VideoError
        If the file cannot be opened or decoded, or is too short for a document.
    InvalidInputError
        If the settings do not fit the video.
    """
    settings = settings or DocumentSettings()
    cache = ChunkCache(Path("corpus"))  # nothing is written to it
    plan = _surveyed(_plan(source, settings, cache, None), cache, None)
    if source.is_live:
        raise InvalidInputError(f"{source.name} is no file: it can be read only once")
    builder, chunks = CorpusBuilder(settings), dict[int, Chunk]()
    try:
        decoded = decode_watched(Segment(plan, 0, None), chunks.__setitem__)
        builder.add_source(chunks.values())
        corpus, faults = builder.finish()
    except VideoError as error:
        raise VideoError(f"{source.name}: {str(error).removeprefix(f'{source.name}: ')}") from None
    return Extraction(corpus, [*decoded.notes, *faults])


def _plan(
    source: Source, settings: DocumentSettings, cache: ChunkCache, end: int | None
) -> SourcePlan:
    """Open a file, and check that the settings fit it; a live source is not opened.

    What the header of a file declares is believed; see `_surveyed`.
    """
    plan = SourcePlan(source, settings, cache.of_source(source, settings, end=end))
    if source.is_live:
        return plan
    with Reader(source) as reader:
        plan.vocabulary, plan.fps = vocabulary_of(reader, settings), reader.fps
        watched_cells(plan.vocabulary, mask=settings.mask, region=settings.region)
    until, declared = _until(settings, end), reader.declared or 0.0
    plan.surveyed = not 0 < declared <= LONGEST_DECLARED
    packets = Survey(min(declared, until), steady=True)
    return _file_plan(plan, survey(source, until=until) if plan.surveyed else packets, cache, end)


def _surveyed(plan: SourcePlan, cache: ChunkCache, end: int | None) -> SourcePlan:
    """Read the packets of a file; return its plan, or another one where its header was wrong."""
    if plan.surveyed:
        return plan
    settings, until = plan.settings, _until(plan.settings, end)
    packets = survey(plan.source, until=until)
    other = replace(_file_plan(plan, packets, cache, end), surveyed=True)
    near = abs(min(packets.duration, until) - (plan.duration or 0.0)) <= settings.clip / 2
    return plan if packets.steady and near and other.settings == settings else other


def _until(settings: DocumentSettings, end: int | None) -> float:
    return math.inf if end is None else end * settings.clip


def _file_plan(
    opened: SourcePlan, packets: Survey, cache: ChunkCache, end: int | None
) -> SourcePlan:
    """Return the plan of a file that was opened, by what is known of its packets."""
    source, (duration, steady), clip = opened.source, packets, opened.settings.clip
    settings = replace(opened.settings, still_every=max(1, int(duration / clip / STILLS)))
    last = int(duration / clip) + 2  # times are rounded
    n_documents = min(last, end or last) if steady else None
    chunks = cache.of_source(source, settings, end=end, n_documents=n_documents)
    return replace(
        opened, settings=settings, chunks=chunks, duration=duration, n_documents=n_documents
    )


def _check_same_grid(plans: Sequence[SourcePlan]) -> None:
    """Raise if the sources have different vocabularies."""
    grids = [(plan.source.name, plan.vocabulary) for plan in plans if plan.vocabulary]
    for name, grid in grids:
        first, usual = grids[0]
        if grid != usual:
            raise InvalidInputError(
                f"{name} has {grid.width}x{grid.height} pixels, {first} {usual.width}x"
                f"{usual.height}: extract them into separate corpora"
            )


class _Decoding:
    """All processes that decode: a pool for files, a recorder per live source."""

    def __init__(
        self,
        plans: Sequence[SourcePlan],
        *,
        workers: Workers,
        duration: float | None,
        progress: ProgressCallback,
    ) -> None:
        files = [plan for plan in plans if not plan.source.is_live]
        limits = [min(plan.duration or math.inf, duration or math.inf) for plan in plans]
        self.total = None if math.inf in limits else sum(limits)
        self.plans, self.progress, self.started = plans, progress, time.monotonic()
        self.pool = SegmentPool(files, workers, self.report)
        self.recorders = {
            number: _Recorder(plan) for number, plan in enumerate(plans) if plan.source.is_live
        }
        segments = self.pool.segments
        self.cached = sum(cached_documents(file, segments) * file.settings.clip for file in files)
        """Seconds of video that were in the cache."""

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
        """Report how many seconds of video are done, how fast, and which sources are lost."""
        recorders, fps, n_frames = self.recorders.values(), self.plans[0].fps, self.pool.n_frames
        recorded = sum(recorder.seconds for recorder in recorders)
        lost = [recorder.name for recorder in recorders if recorder.live.lost_at is not None]
        passed = max(time.monotonic() - self.started, 1e-3)
        decoded = n_frames / fps + recorded
        rate = (n_frames + recorded * fps) / passed
        note = f"{rate:.0f} frames/s, {decoded / passed:.0f} x real time"
        if lost:
            note = f"waiting for {', '.join(lost)}"
        done = min(self.cached + decoded, self.total or math.inf)
        self.progress(Progress("extracting", done, self.total, note))

    def chunks(self, number: int) -> Iterator[Chunk]:
        """Yield the chunks of a source in order."""
        plan, recorder = self.plans[number], self.recorders.get(number)
        return map(plan.chunks.get, recorder.writer.starts) if recorder else self.pool.chunks(plan)

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
                stack.enter_context(recorder.live)
            while not all(recorder.has_ended() for recorder in recorders):
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
                        recorder.live.finish()
        for recorder in recorders:
            recorder.writer.flush()


def _is_endless(source: Source) -> bool:
    """Return whether a stream has no end: a camera's, not a file on another machine."""
    protocol, separator, _ = source.address.partition("://")
    return protocol in ENDLESS if separator else not source.is_pipe


class _Recorder:
    """Writes the documents of a live source into the cache as they come.

    A source that is lost is waited for. Its documents keep their times: what is missing is a gap
    between sequences, and a note.
    """

    def __init__(self, plan: SourcePlan) -> None:
        self.plan, self.name, self.clip = plan, plan.source.name, plan.settings.clip
        self.wanted = plan.chunks.end
        """Number of documents that are wanted; None for all."""
        self.live = LiveSource(
            Job(plan.source, plan.settings, prompt=False),
            patience=plan.source.timeout,
            may_end=self.wanted is None and not _is_endless(plan.source),
            must_start=True,
        )
        self.writer = ChunkWriter(plan.chunks.put, plan.chunks.size, self.clip)
        self.notes: list[str] = []
        self.n_recorded, self.last, self.shift = 0, -2, 0
        """Number of documents; number of the latest; by how much numbers are shifted."""

    def has_ended(self) -> bool:
        """Return whether nothing more will come, or is wanted."""
        return self.live.ended or self.n_recorded == self.wanted

    @property
    def seconds(self) -> float:
        """Seconds of video so far."""
        return self.n_recorded * self.clip

    def listen(self) -> None:
        """Take what comes in a moment; raise if the source cannot be opened at all."""
        if self.has_ended():
            return
        for arrival in self.live.poll():
            if isinstance(arrival, LiveDocument):
                self._add(arrival)
            elif not arrival.is_loss:
                self.notes.append(arrival.text)
            if self.has_ended():
                break
        if self.live.ended and self.wanted is not None and not self.live.finishing:
            self.notes.append(
                f"{self.name}: ended after {self.seconds:g} s, "
                f"{self.wanted * self.clip:g} s were asked for"
            )

    def _add(self, arrival: LiveDocument) -> None:
        self.plan.vocabulary = arrival.vocabulary
        document = arrival.document
        connected = math.ceil((arrival.seconds - document.time) / self.clip - ROUNDING)
        number = connected + document.number + self.shift
        if not arrival.follows and self.n_recorded:
            late = max(0, self.last + 2 - number)  # a sequence starts: it does not follow
            self.shift, number = self.shift + late, number + late
            start, end = (self.last + 1) * self.clip, number * self.clip
            because = self.live.reason or f"{self.name}: frames are missing"
            self.notes.append(f"{because}: no video from {start:g} s to {end:g} s")
        self.last = number
        self.writer.add(document._replace(number=number), arrival.vocabulary)
        self.n_recorded += 1
