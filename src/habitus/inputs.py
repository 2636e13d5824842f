"""Inputs of the public functions: sources, documents, detectors, labels, and checks of outputs.

What decodes video or judges is imported where it is used.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from habitus.corpus import Corpus, ShardedCorpus
from habitus.errors import InvalidInputError, VideoError
from habitus.files import check_output, checked_path, kind_of
from habitus.jobs.workers import Workers
from habitus.progress import ProgressCallback
from habitus.settings import OPENING, Address, AlertSettings, ReadingSettings, check_unused

if TYPE_CHECKING:
    from habitus.ingest.chunks import Extraction
    from habitus.ingest.clips import DocumentSettings
    from habitus.model import TopicModel
    from habitus.scene import Detection, Detector, SceneModel
    from habitus.scene.camera_check import CameraCheck
    from habitus.video import Source

KERNELS = "habitus.scene.ahead"
"""What compiles the kernels of learning and judging, by name: it is not imported here."""
EVENTS = ".jsonl"
"""How the name of a file of events ends."""
LARGE = 256_000_000
"""Bytes of corpus files from which on they are learnt from one after the other: joined in memory
they would take about four times as much."""


class JudgedSource(NamedTuple):
    """Documents of a video or a corpus, made as those that the model of a detector learnt from."""

    name: str
    """For messages."""
    corpus: Corpus
    video: Source | None
    """The footage itself, where there is any beside its documents."""
    notes: tuple[str, ...]
    detector: Detector

    @property
    def n_stored(self) -> int | None:
        """Number of frames of a video file; None of other sources."""
        from habitus.video import count_packets

        return None if self.video is None or self.video.is_live else count_packets(self.video)

    def detect(self, share: float | None, skip: float | None) -> Detection:
        """Judge the documents, without those of the first seconds to skip."""
        from habitus.scene import detect_events

        corpus = without_first(self.corpus, skip, self.name)
        detection = detect_events(self.detector, corpus, source=self.name, share=share)
        return replace(detection, notes=(*self.notes, *detection.notes))


def judged_sources(
    sources: Sequence[Address | Corpus],
    judge: Address | SceneModel,
    alerts: AlertSettings,
    reading: ReadingSettings,
    *,
    output: Address | None,
    force: bool,
    progress: ProgressCallback,
) -> list[JudgedSource]:
    """Return all documents of sources, to be judged by one detector."""
    detector = load_detector(judge, alerts)
    camera = camera_check(judge, detector.model, output, force)
    opened = [None if isinstance(item, Corpus) else reading.open(item)[0] for item in sources]
    with reading.workers() as workers:
        # Labels count from the start of the footage: nothing is skipped before it is judged.
        ingestion, judged = Ingestion(replace(reading, skip=None), workers, progress), []
        for item, source in zip(sources, opened, strict=True):
            name = "the corpus" if source is None else source.name
            corpus, notes = ingestion.read_like(detector.model, item, name, camera)
            video = None if source is None or is_corpus_file(source) else source
            judged.append(JudgedSource(name, corpus, video, tuple(notes), detector))
        return judged


def settings_of(model: TopicModel) -> DocumentSettings:
    """Return how documents of new video are made, so that they are like those learnt from.

    Their words are fine: whoever judges them sums them to those of the model.
    """
    from habitus.ingest.clips import DocumentSettings

    settings, vocabulary = model.settings_, model.vocabulary_
    if settings is None:
        raise InvalidInputError(
            "this model does not know how its documents were made from video: learn it from a "
            "video or from an extracted corpus, or judge a corpus"
        )
    scale = settings.get("scale") if vocabulary is None else vocabulary.scale
    return DocumentSettings(**{**settings, "words": "fine", "scale": scale})


def check_geometry(model: TopicModel, source: Source) -> None:
    """Raise if a video has another frame size than the model, before it is decoded."""
    from habitus.video import Reader

    vocabulary = model.vocabulary_
    with Reader(source) as reader:
        width, height = reader.width, reader.height
    if vocabulary is not None and (width, height) != (vocabulary.width, vocabulary.height):
        raise InvalidInputError(
            f"{source.name} has {width}x{height} pixels, the model was learnt at "
            f"{vocabulary.width}x{vocabulary.height}: learn this camera anew, or resize the video"
        )


def load_scene(model: Address | SceneModel) -> SceneModel:
    """Return the model and calibration, read from a file where an address is given."""
    from habitus.scene import SceneModel

    return model if isinstance(model, SceneModel) else SceneModel.load(model)


def load_detector(model: Address | SceneModel, alerts: AlertSettings) -> Detector:
    """Return a detector with the model."""
    return load_scene(model).detector(**vars(alerts))


def camera_check(
    judge: Address | SceneModel, model: TopicModel, output: Address | None, force: bool
) -> CameraCheck | None:
    """Return the check that footage shows the model's scene; None by force, or without a picture.

    Beside the output, both pictures are written if they differ.
    """
    from habitus.scene.camera_check import CameraCheck

    if force:
        return None
    return CameraCheck.of(model, judge_name(judge), None if output is None else Path(output))


def judge_name(judge: Address | SceneModel) -> str:
    """Return how a model or a file of events is called in titles."""
    return Path(judge).name if isinstance(judge, str | os.PathLike) else "the model"


def is_corpus_file(source: Source) -> bool:
    """Return whether a source is a corpus file rather than video."""
    return not source.is_live and kind_of(source.address) == "corpus"


def is_event_file(judge: Address | SceneModel) -> TypeGuard[Address]:
    """Return whether a file holds events rather than a model."""
    if not isinstance(judge, str | os.PathLike) or not checked_path(judge).is_file():
        return False
    if not Path(judge).stat().st_size and Path(judge).suffix != EVENTS:
        raise InvalidInputError(
            f"{judge}: empty, so neither a model nor events: a file without any event ends in "
            f"{EVENTS}"
        )
    return kind_of(judge) is None


class Ingestion(NamedTuple):
    """How footage becomes documents: by which workers, and beside which output chunks are kept."""

    reading: ReadingSettings
    workers: Workers | None
    progress: ProgressCallback
    output: Address | None = None

    def extract(self, sources: list[Source], settings: DocumentSettings | None) -> Extraction:
        """Return the documents of videos; see `extract_corpus`."""
        from habitus.ingest.clips import DocumentSettings
        from habitus.ingest.extraction import extract_corpus
        from habitus.jobs.workers import compile_ahead

        compile_ahead(KERNELS)  # one processor is idle while kernels of motion are compiled
        extraction = extract_corpus(
            sources,
            settings or DocumentSettings(),
            output=None if self.output is None else Path(self.output),
            continued=self.reading.continued,
            duration=self.reading.duration,
            jobs=self.reading.jobs,
            workers=self.workers,
            progress=self.progress,
        )
        corpus = without_first(extraction.corpus, self.reading.skip, "the footage")
        return extraction._replace(corpus=corpus)

    def read(
        self, sources: Address | Corpus | Sequence[Address], settings: DocumentSettings | None
    ) -> Extraction:
        """Return the documents of videos, of corpus files, or of a corpus."""
        from habitus.ingest.chunks import Extraction

        opened = [] if isinstance(sources, Corpus) else self.reading.open(sources)
        corpora = [source for source in opened if is_corpus_file(source)]
        if opened and not corpora:
            return self.extract(opened, settings)
        if len(corpora) < len(opened):
            raise InvalidInputError("give videos or corpora, not both at once")
        loaded = [Corpus.load(source.address) for source in corpora]
        corpus = sources if isinstance(sources, Corpus) else Corpus.joined(loaded)
        if self.reading.duration is not None:
            corpus = corpus.take((corpus.times < self.reading.duration).nonzero()[0])
        return Extraction(without_first(corpus, self.reading.skip, "the footage"), [])

    def read_like(
        self,
        model: TopicModel,
        sources: Address | Corpus | Sequence[Address],
        name: str,
        camera: CameraCheck | None,
    ) -> Extraction:
        """Return documents made as those that a model was learnt from, and of its scene."""
        settings = None
        opened = [] if isinstance(sources, Corpus) else self.reading.open(sources)
        for video in opened:
            if not is_corpus_file(video):
                settings = settings_of(model)
                if not video.is_live:
                    check_geometry(model, video)
        extraction = self.read(sources, settings)
        if not len(extraction.corpus):
            raise InvalidInputError(f"{name}: no document in it")
        if camera is not None:
            camera.check(extraction.corpus, name)
        return extraction


def large_corpora(
    sources: Address | Corpus | Sequence[Address], reading: ReadingSettings
) -> ShardedCorpus | None:
    """Return several corpus files as shards where they are too large to be joined in memory.

    What is learnt from shards is to the bit what is learnt from the joined corpus, so that the
    bound, `LARGE`, decides on memory and time only.
    """
    whole = reading.duration is None and reading.skip is None
    if not whole or isinstance(sources, str | os.PathLike | Corpus):
        return None
    opened = reading.open(sources)
    if len(opened) < 2 or not all(map(is_corpus_file, opened)):
        return None
    size = sum(Path(source.address).stat().st_size for source in opened)
    return ShardedCorpus.open([source.address for source in opened]) if size > LARGE else None


def without_first(corpus: Corpus, skip: float | None, name: str) -> Corpus:
    """Return the documents that start after the first `skip` seconds."""
    if skip is None:
        return corpus
    later = corpus.take((corpus.times >= skip).nonzero()[0])
    if not len(later):
        raise InvalidInputError(f"{name}: shorter than the {skip:g} s to skip", parameter="skip")
    return later


def forget_chunks(output: Address) -> None:
    """Delete what was kept in case the work would be cut short."""
    from habitus.ingest.chunks import ChunkCache

    ChunkCache(Path(output)).clear()


def labelled_footage(source: Address | Corpus, clip: float, reading: ReadingSettings) -> Any:
    """Return when documents and frames of the footage are."""
    from habitus.evaluation.labels import footage_of_corpus, footage_of_video

    if isinstance(source, Corpus):
        return footage_of_corpus(source, "the corpus")
    (video,) = reading.open(source)
    if is_corpus_file(video):
        return footage_of_corpus(Corpus.load(video.address), video.name)
    return footage_of_video(video, clip)


def check_events_alone(
    judge: Address, picture: Address | None, alerts: AlertSettings, reading: ReadingSettings
) -> None:
    """Raise if something is wanted that events alone cannot give."""
    if picture is not None:
        raise InvalidInputError(
            f"{judge}: events have no score for each document, so there is no curve to draw: give "
            "the model",
            parameter="picture",
        )
    if (alerts.alerts_per_day, alerts.share, alerts.threshold) != (None, None, None):
        raise InvalidInputError(
            f"{judge}: these events were found at a threshold of their own: to try another, give "
            "the model",
            parameter="threshold",
        )
    check_unused(reading, "evaluating events", *OPENING, "skip", "jobs", "cluster")


def check_clips(
    sources: Sequence[Address | Corpus],
    of_clips: bool,
    *,
    masks: Address | None,
    smooth: float,
    skip: float | None,
) -> None:
    """Raise if something is wanted that only a model with labels of clips can give, or cannot."""
    form = "a model, and labels with the columns clip,first_frame,last_frame"
    if not sources:
        raise InvalidInputError("there must be at least one source, found none")
    if len(sources) > 1 and not of_clips:
        raise InvalidInputError(
            f"{len(sources)} clips: to evaluate them together, give {form}", parameter="labels"
        )
    if not 0 <= smooth < float("inf"):
        raise InvalidInputError(
            f"smooth must be 0 seconds or more, found {smooth:g}", parameter="smooth"
        )
    for name, wanted in {"masks": masks is not None, "smooth": smooth > 0}.items():
        if wanted and not of_clips:
            raise InvalidInputError(f"{name} needs {form}", parameter=name)
    if masks is not None and not Path(masks).is_dir():
        raise InvalidInputError(
            f"{masks}: not a folder with a folder of masks for each clip", parameter="masks"
        )
    if skip is not None and of_clips:
        raise InvalidInputError(
            "labels of clips count frames from the start of each: nothing can be skipped",
            parameter="skip",
        )


def check_outputs(*inputs: object, force: bool = False, **outputs: Address | None) -> None:
    """Raise if a file must not or cannot be written, before any work is done.

    Inputs are addresses, several addresses, or values, which do no harm; outputs are named by their
    kinds, see `check_output`.
    """
    files = [file for value in inputs for file in _files(value)]
    wanted = {kind: Path(path) for kind, path in outputs.items() if path is not None}
    for kind, path in wanted.items():
        if kind == "film" and path.suffix.lower() != ".mp4":
            raise InvalidInputError(
                f"cannot write {path}: a film's name ends in .mp4, found {path.suffix or 'none'}"
            )
        if kind == "picture":
            from habitus.reporting.figures.drawing import check_picture

            check_picture(path)
        check_output(path, kind, inputs=files, force=force)
        if kind == "events":
            _check_thumbnails(path, files)
    if len({path.resolve() for path in wanted.values()}) < len(wanted):
        names = " and ".join(map(str, wanted.values()))
        raise InvalidInputError(f"cannot write {names}: two outputs would be one file")


def _check_thumbnails(events: Path, files: Sequence[Address]) -> None:
    """Raise if pictures of events would be written among images that are read."""
    folder = events.with_name(f"{events.stem}-thumbnails")
    for file in files if folder.is_dir() else ():
        if os.path.realpath(Path(file).parent) == os.path.realpath(folder):
            raise InvalidInputError(
                f"cannot write {events}: its pictures go to {folder}, and {file} is an input"
            )


def _files(value: object) -> list[Address]:
    """Return the files among addresses that are given, the images of a folder or pattern too."""
    if isinstance(value, list | tuple):
        return [file for one in value for file in _files(one)]
    if not isinstance(value, str | os.PathLike):
        return []
    with suppress(VideoError, OSError, ValueError):  # no images, or no path at all
        if Path(value).is_dir() or glob.has_magic(os.fspath(value)):
            from habitus.video.source import image_paths

            return [value, *image_paths(os.fspath(value))]
    return [value]
