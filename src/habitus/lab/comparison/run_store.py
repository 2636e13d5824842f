"""The folder of a comparison: its documents, one file per learning run, and what they are of."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from typing_extensions import TypedDict

from habitus.corpus.documents import Corpus
from habitus.errors import FileError, InvalidInputError
from habitus.files import FileFormat, kind_of, written_whole
from habitus.ingest.chunks import ChunkCache, Extraction
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_corpus
from habitus.jobs.workers import Workers, compile_ahead
from habitus.lab.comparison.protocol import LearningRun
from habitus.lab.comparison.scoring import LocalisationRecall, MethodResult
from habitus.progress import ProgressCallback, ignore_progress
from habitus.scene.scene_model import KERNELS
from habitus.schema import LARGEST, REAL, Layout, NotNegative, Text, decoded
from habitus.video import Source

MANIFEST = "comparison.json"
RESULTS = "runs"
LAYOUTS = {
    "normality": Layout(REAL, ("documents",), False, -LARGEST, LARGEST),
    "by_number": Layout(REAL, ("numbers",), False, 0.0, 1.0),
    "by_share": Layout(REAL, ("shares",), False, 0.0, 1.0),
}
"""Arrays of the results of one method."""
DIFFERENCES = {
    "documents": "of other documents",
    "labels": "with other labels",
    "training": "with another training part",
    "settings": "with other settings (topics, behaviours, seed or another version of habitus)",
}
REMEDY = "choose another folder, or delete it"


class ResultHeader(TypedDict):
    """Header of the results of a learning run."""

    times: dict[Text, tuple[NotNegative, NotNegative]]
    notes: list[Text]


FORMAT = FileFormat("run", 1, ResultHeader)


class Repetition(NamedTuple):
    """One repetition of a learning run, with a seed of its own."""

    run: LearningRun
    number: int
    """Counted from 0."""

    @property
    def name(self) -> str:
        """Name of the learning run and number, counted from 1."""
        return f"{self.run.name} {self.number + 1}"


class RunResult(NamedTuple):
    """Results of one learning run."""

    results: dict[str, MethodResult]
    """Result of each method by its name, without those that could not be computed."""
    notes: list[str]
    """Why methods could not be computed."""


class ComparisonStore:
    """Results of a comparison in a folder; those of other data (see `identity_of`) are refused."""

    def __init__(self, folder: Path, identity: dict[str, str]) -> None:
        self.folder, self.results = folder, folder / RESULTS
        create_folder(self.results)
        if (folder / MANIFEST).exists():
            self._check(identity)
        else:
            self._claim(identity)
        for left_over in self.results.glob(".*"):  # of a process killed while it wrote
            left_over.unlink(missing_ok=True)

    def path(self, repetition: Repetition) -> Path:
        """Return the path of the results of a learning run."""
        return self.results / f"{repetition.run.name}-{repetition.number + 1:03d}.safetensors"

    def has(self, repetition: Repetition) -> bool:
        """Return whether results exist; a damaged file counts as none."""
        if not self.path(repetition).exists():
            return False
        try:
            self.get(repetition)
        except FileError:
            return False
        return True

    def put(self, repetition: Repetition, result: RunResult) -> None:
        """Write results to a file, whole or not at all."""
        tensors, times = {}, {}
        for name, scores in result.results.items():
            tensors[f"{name}.normality"] = scores.normality
            times[name] = [scores.learning, scores.deciding]
            if scores.recall is not None:
                tensors[f"{name}.by_number"] = scores.recall.by_number
                tensors[f"{name}.by_share"] = scores.recall.by_share
        header = {"times": times, "notes": result.notes}
        FORMAT.write(self.path(repetition), header, tensors)

    def get(self, repetition: Repetition) -> RunResult:
        """Read the results of a learning run."""
        path = self.path(repetition)
        layouts = {
            f"{method.name}.{name}": layout
            for method in repetition.run.methods
            for name, layout in LAYOUTS.items()
        }
        header, tensors = FORMAT._replace(layouts=layouts).read(path)
        results = {}
        try:
            for method in repetition.run.methods:
                if (name := method.name) in header["times"]:
                    recall = None
                    if f"{name}.by_number" in tensors:
                        recall = LocalisationRecall(
                            tensors[f"{name}.by_number"], tensors[f"{name}.by_share"]
                        )
                    normality = tensors[f"{name}.normality"].astype(np.float64)
                    learning, deciding = header["times"][name]
                    results[name] = MethodResult(normality, learning, deciding, recall)
            return RunResult(results, header["notes"])
        except KeyError as error:
            raise FileError(f"{path}: the array {error} is missing") from error

    def _claim(self, identity: dict[str, str]) -> None:
        """Write what the comparison is of; refuse results without it."""
        if any(self.results.glob("*.safetensors")):
            raise InvalidInputError(
                f"{self.folder} holds results without {MANIFEST}, which says what they are of: "
                f"{REMEDY}",
                parameter="output",
            )
        with written_whole(self.folder / MANIFEST) as temporary:
            temporary.write_text(
                json.dumps({"version": FORMAT.version, **identity}, indent=1) + "\n"
            )

    def _check(self, identity: dict[str, str]) -> None:
        """Refuse a folder whose comparison is of something else."""
        path = self.folder / MANIFEST
        try:
            manifest = decoded(path.read_bytes(), dict[str, Text | int])
            differs = [DIFFERENCES[name] for name in identity if manifest[name] != identity[name]]
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"{path}: not a manifest of a comparison: {REMEDY}") from error
        if differs:
            raise InvalidInputError(
                f"{self.folder} holds a comparison {' and '.join(differs)}: {REMEDY}",
                parameter="output",
            )


def create_folder(folder: Path) -> None:
    """Create a folder and its parents, if needed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot create the folder {folder}: {error.strerror}", parameter="output"
        ) from error


def stored_documents(
    source: Source,
    folder: Path,
    settings: DocumentSettings | None = None,
    *,
    jobs: int = -1,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
) -> Extraction:
    """Return the documents of a corpus file, or of a video, extracted once and kept in the folder.

    Raises InvalidInputError if the source is live, or the folder holds documents of another video.
    """
    if source.is_live:
        raise InvalidInputError(f"{source.name} is live: a comparison needs a video with an end")
    if kind_of(source.address) == "corpus":
        return Extraction(Corpus.load(source.address), [])
    create_folder(folder)
    settings = settings or DocumentSettings()
    kept, origin = folder / "documents.corpus", folder / "documents.origin"
    identity = ChunkCache(kept).of_source(source, settings).digest
    if origin.exists():
        if origin.read_text(encoding="utf-8", errors="replace") != identity:
            raise InvalidInputError(
                f"{folder} holds a comparison on another video than {source.name}, or the video or "
                f"the way it is read has changed: {REMEDY}",
                parameter="output",
            )
        try:
            return Extraction(Corpus.load(kept), [])
        except FileError:  # damaged or gone: extract again
            origin.unlink()
    compile_ahead(KERNELS)
    extraction = extract_corpus(
        [source],
        settings,
        output=kept,
        jobs=jobs,
        workers=workers,
        progress=progress or ignore_progress,
    )
    extraction.corpus.save(kept)
    with written_whole(origin) as temporary:
        temporary.write_text(identity, encoding="utf-8")
    ChunkCache(kept).clear()
    return extraction
