"""Stretches of documents on their way into a corpus, kept on disk: nothing is done twice.

Parts of all sources -> one corpus, with the camera's condition and a picture of the scene.
"""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, InvalidInputError, VideoError
from habitus.files import read_tensors, write_tensors
from habitus.ingest.clips import Document, Settings
from habitus.ingest.condition import Condition, Watch
from habitus.video import Source
from habitus.video.mask import is_file

VERSION = 1


class Part(NamedTuple):
    """Some documents one after the other, as arrays."""

    numbers: NDArray[np.int64]
    n_frames: NDArray[np.int64]
    changes: NDArray[np.float64]
    indptr: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    thumbnails: Image
    stills: Image
    """Stills x height x width x 3."""

    @property
    def documents(self) -> list[Document]:
        """The same documents, without their stills."""
        return [
            Document(
                int(self.numbers[i]), 0.0,
                self.words[self.indptr[i] : self.indptr[i + 1]].astype(np.int64),
                self.counts[self.indptr[i] : self.indptr[i + 1]].astype(np.int64),
                int(self.n_frames[i]), float(self.changes[i]), self.thumbnails[i], None,
            )
            for i in range(len(self.numbers))
        ]  # fmt: skip


def part_of(documents: Iterable[Document]) -> Part:
    """Documents as arrays."""
    found = list(documents)
    stills = [document.still for document in found if document.still is not None]
    return Part(
        np.array([d.number for d in found], dtype=np.int64),
        np.array([d.n_frames for d in found], dtype=np.int64),
        np.array([d.change for d in found], dtype=np.float64),
        np.cumsum([0, *(len(d.words) for d in found)]).astype(np.int64),
        np.concatenate([np.empty(0), *(d.words for d in found)]).astype(np.int32),
        np.concatenate([np.empty(0), *(d.counts for d in found)]).astype(np.int32),
        np.array([d.thumbnail for d in found], dtype=np.uint8),
        np.array(stills, dtype=np.uint8),
    )


class Shelf:
    """A folder beside the corpus to be, with the parts that are done."""

    def __init__(self, output: Path) -> None:
        self.folder = output.with_name(f".{output.name}.parts")

    def path(self, source: Source, settings: Settings, start: int, stop: int | None) -> Path:
        """Where a part of a source is kept; another video, another place.

        `stop` is given where the part was asked to end early.
        """
        identity = [source.address, source.fps, source.fast, asdict(settings), version("habitus")]
        file = Path(source.address)
        if file.exists():
            identity += [file.stat().st_size, file.stat().st_mtime_ns]
        for given in (settings.mask, settings.region):
            if given and is_file(given):
                identity.append(Path(given).stat().st_mtime_ns)
        digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=8).hexdigest()
        end = "" if stop is None else f"-{stop}"
        return self.folder / f"{digest}-{start:09d}{end}.safetensors"

    def put(self, path: Path, part: Part) -> None:
        """Keep a part, whole or not at all: a disk may be full."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot write {self.folder}: {error.strerror}") from error
        try:
            write_tensors(path, kind="part", version=VERSION, header={}, tensors=part._asdict())
        except InvalidInputError:
            with suppress(OSError):  # others are in it
                self.folder.rmdir()
            raise

    def has(self, path: Path) -> bool:
        """Whether a part was kept, whole; one that is damaged is thrown away."""
        try:
            self.get(path)
        except FileError:
            path.unlink(missing_ok=True)
            return False
        return True

    def get(self, path: Path) -> Part:
        """A part that was kept."""
        return Part(**read_tensors(path, kind="part", version=VERSION).tensors)

    def clear(self) -> None:
        """Forget all parts."""
        if self.folder.is_dir():
            for path in self.folder.glob("*.safetensors"):
                path.unlink()
            self.folder.rmdir()


class Extraction(NamedTuple):
    """A corpus, and what there is to say about it."""

    corpus: Corpus
    notes: list[str]


class Assembly:
    """Parts of sources on their way into a corpus."""

    def __init__(self, settings: Settings, *, continued: bool = False) -> None:
        self.settings, self.continued = settings, continued
        self.rows = _Rows(settings.clip)
        self.stills: list[Image] = []

    def add(self, parts: Iterable[Part]) -> None:
        """Take in all parts of the next source, in order."""
        if not self.continued:
            self.rows.new_source()
        for part in parts:
            self.rows.add(part)
            self.stills += list(part.stills)
        self.rows.end_of_source()

    def finished(self, vocabulary: Vocabulary | None) -> Extraction:
        """The corpus; `vocabulary` is None if no source told it."""
        rows, stills = self.rows, self.stills
        if vocabulary is None or rows.n_documents == 0:
            raise VideoError(f"shorter than half a clip of {rows.clip:g} s: no document")
        picture = np.median(np.stack(stills), axis=0).astype(np.uint8) if stills else None
        corpus = Corpus(
            rows.matrix(vocabulary.n_words),
            times=rows.times, lengths=rows.lengths, vocabulary=vocabulary,
            n_frames=rows.n_frames, conditions=rows.conditions, picture=picture,
            settings=self.settings.kept(vocabulary),
        )  # fmt: skip
        return Extraction(corpus, rows.remarks())


class _Rows:
    """Documents of all sources, being put together."""

    def __init__(self, clip: float) -> None:
        self.clip = clip
        self.words: list[Any] = []
        self.counts: list[Any] = []
        self.sizes: list[int] = []
        self.times: list[float] = []
        self.n_frames: list[int] = []
        self.conditions: list[Condition] = []
        self.lengths: list[int] = []
        self.before: int | None = None
        self.offset = 0.0
        self.watch = Watch(clip)

    @property
    def n_documents(self) -> int:
        return len(self.times)

    def new_source(self) -> None:
        """The next document opens a sequence, and its times start from 0 again."""
        self.before, self.offset, self.watch = None, 0.0, Watch(self.clip)

    def end_of_source(self) -> None:
        """What follows, if it follows at all, starts where this ended."""
        if self.times:
            self.offset = self.times[-1] + self.clip
        if self.before is not None:
            self.before = -1

    def add(self, part: Part) -> None:
        """Take in the next part of a source."""
        for document in part.documents:
            follows = self.before is not None and document.number == self.before + 1
            if follows:
                self.lengths[-1] += 1
            else:
                self.lengths.append(1)
            self.before = document.number
            self.times.append(self.offset + document.number * self.clip)
            self.n_frames.append(document.n_frames)
            self.conditions.append(self.watch.judge(document))
            self.sizes.append(len(document.words))
            self.words.append(document.words.astype(np.int32))
            self.counts.append(document.counts.astype(np.int32))

    def matrix(self, n_words: int) -> sp.csr_array:
        """Documents x words."""
        indptr = np.cumsum([0, *self.sizes])
        words = np.concatenate(self.words).astype(np.int32)
        counts = np.concatenate(self.counts).astype(np.float64)
        return sp.csr_array((counts, words, indptr), shape=(self.n_documents, n_words))

    def remarks(self) -> list[str]:
        """What was wrong with the camera, stretch by stretch."""
        said = {
            Condition.MOVED: "the camera was moved",
            Condition.COVERED: "the lens was covered or the light gone",
            Condition.FROZEN: "the picture was frozen",
        }
        found, start = [], 0
        for i in range(1, self.n_documents + 1):
            if i == self.n_documents or self.conditions[i] != self.conditions[start]:
                if self.conditions[start] is not Condition.FINE:
                    found.append(
                        f"{said[self.conditions[start]]} from {self.times[start]:g} s to "
                        f"{self.times[i - 1] + self.clip:g} s: these documents neither teach nor "
                        "alarm"
                    )
                start = i
        return found
