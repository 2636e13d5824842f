"""Chunks of documents: cached on disk so that a run can resume, then assembled into a corpus."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Image
from habitus.corpus.documents import FORMAT as SHARD_FORMAT
from habitus.corpus.documents import LAYOUTS, Condition, Corpus, shard_bytes
from habitus.corpus.looks import joined_looks, looks_of, median_picture
from habitus.corpus.sparse import SparseCounts
from habitus.corpus.stands import StandingCells, StandingWords
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, InvalidInputError, VideoError
from habitus.files import sole_use_of_folder, write_file
from habitus.ingest.backgrounds import Backgrounds
from habitus.ingest.clips import Document, DocumentSettings
from habitus.ingest.condition import ConditionMonitor
from habitus.schema import BYTE, REAL, Layout
from habitus.version import __version__
from habitus.video import Source
from habitus.video.mask import is_file

# Documents per chunk: two minutes of video at one document per second. A short video has smaller
# ones, so many at the least, for all processors to share it; but none under the least size.
CHUNK = 120
CHUNKS_PER_VIDEO, LEAST_CHUNK = 8, 10
SECTIONS = {
    "changes": Layout(REAL, ("documents",), least=-np.inf, most=np.inf),
    "thumbnails": Layout(BYTE, ("documents", ...)),
    "stills": Layout(BYTE, (...,)),
}
"""What the shard of a chunk has beyond a corpus."""
N_FRAMES = LAYOUTS["n_frames"]._replace(required=True)
FORMAT = SHARD_FORMAT._replace(layouts={**LAYOUTS, "n_frames": N_FRAMES, **SECTIONS})


class Chunk(NamedTuple):
    """Documents of one source in order, and what conditions and looks are found by.

    Sequences and conditions are found once chunks are put together.
    """

    corpus: Corpus
    vocabulary: Vocabulary
    changes: NDArray[np.float64]
    thumbnails: Image
    stills: Image
    """Stills x height x width x 3."""

    @classmethod
    def of(cls, documents: Sequence[Document], vocabulary: Vocabulary, clip: float) -> "Chunk":
        """Return documents as arrays."""
        corpus = Corpus(
            entries=SparseCounts.of_rows([d[2:4] for d in documents], vocabulary.n_words),
            times=[document.number * clip for document in documents],
            vocabulary=vocabulary,
            n_frames=[document.n_frames for document in documents],
            settings={"clip": clip},
        )
        return cls(
            corpus,
            vocabulary,
            np.array([document.change for document in documents]),
            np.array([document.thumbnail for document in documents]),
            np.array([d.still for d in documents if d.still is not None], dtype=np.uint8),
        )

    def to_bytes(self) -> bytes:
        """Return what the file of the chunk holds."""
        return shard_bytes(self.corpus, tensors={name: getattr(self, name) for name in SECTIONS})

    def documents(self) -> Iterator[Document]:
        """Yield the documents, without stills."""
        columns = self.corpus.times, np.asarray(self.corpus.n_frames), self.changes
        values = zip(*(column.tolist() for column in columns), strict=True)
        documents = zip(values, self.corpus.bags(), self.thumbnails, strict=True)
        for (time, n_frames, change), (words, counts), thumbnail in documents:
            number, ids = round(time / self.corpus.clip), words.astype(np.int64)
            yield Document(number, time, ids, counts, n_frames, change, thumbnail, None)


class ChunkCache:
    """Folder beside a corpus that is being extracted, with the chunks that are finished.

    Parameters
    ----------
    output
        Path of the corpus to be.
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = output.with_name(f".{output.name}.chunks")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only one who extracts to this file, in the block.

        Raises
        ------
        InvalidInputError
            If another process does, or the folder cannot be made.
        """
        busy = "another command is extracting to it: wait for that, or name another file"
        refusal = InvalidInputError(f"cannot write {self.output}: {busy}")
        with sole_use_of_folder(self.folder, refusal):  # it stays if there are chunks in it
            yield

    def of_source(
        self,
        source: Source,
        settings: DocumentSettings,
        *,
        end: int | None = None,
        n_documents: int | None = None,
    ) -> "SourceChunks":
        """Return the chunks of one source; another file or other settings have other chunks.

        `end` is the number of the first document that is not wanted, if there is one, and
        `n_documents` that of all documents, if it is known.
        """
        size = chunk_size(n_documents)
        identity = [source.address, source.fps, source.fast, asdict(settings), __version__]
        identity.append(size)
        file = Path(source.address)
        if file.exists():
            identity += [file.stat().st_size, file.stat().st_mtime_ns]
        for given in (settings.mask, settings.region):
            if given and is_file(given):
                identity.append(Path(given).stat().st_mtime_ns)
        digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=8).hexdigest()
        return SourceChunks(self.folder, digest, end, size)

    def clear(self) -> None:
        """Delete all chunks and the folder, unless somebody else goes on with them."""
        if self.folder.is_dir():
            with suppress(InvalidInputError), self.held():
                for path in self.folder.glob("*.safetensors"):
                    path.unlink()


def chunk_size(n_documents: int | None) -> int:
    """Return how many documents a chunk of a source has.

    >>> chunk_size(90), chunk_size(86_400), chunk_size(None)
    (12, 120, 120)
    """
    if n_documents is None:
        return CHUNK
    return max(LEAST_CHUNK, min(CHUNK, math.ceil(n_documents / CHUNKS_PER_VIDEO)))


@dataclass(frozen=True)
class SourceChunks:
    """The cached chunks of one source, each named by the number of its first document."""

    folder: Path
    digest: str
    end: int | None
    size: int = CHUNK
    """Documents per chunk."""

    def path(self, start: int) -> Path:
        """Return the path of a chunk; a chunk that `end` cuts short has another one."""
        cut = self.end is not None and self.end < start + self.size
        return self.folder / f"{self.digest}-{start:09d}{f'-{self.end}' if cut else ''}.safetensors"

    def put(self, start: int, chunk: Chunk) -> None:
        """Write a chunk, whole or not at all; see `put_file`."""
        self.put_file(start, chunk.to_bytes())

    def put_file(self, start: int, contents: bytes) -> None:
        """Write what the file of a chunk holds, whole or not at all.

        One that a crash of the machine damages is read anew.

        Raises
        ------
        InvalidInputError
            If it cannot be written, for instance because the disk is full.
        """
        try:
            write_file(self.path(start), contents, lasting=False)
        except InvalidInputError:
            with suppress(OSError):  # it stays if there are other chunks in it
                self.folder.rmdir()
            raise

    def has(self, start: int) -> bool:
        """Return whether there is a whole chunk; delete one that is damaged."""
        try:
            self.get(start)
        except FileError:
            self.path(start).unlink(missing_ok=True)
            return False
        return True

    def get(self, start: int) -> Chunk:
        """Read a chunk."""
        contents = FORMAT.read(self.path(start))
        corpus = Corpus.from_contents(self.path(start), contents)
        if corpus.vocabulary is None:
            raise FileError(
                f"{self.path(start)}: expected a chunk, found words of no known meaning"
            )
        sections = (contents.tensors[name] for name in SECTIONS)
        return Chunk(corpus, corpus.vocabulary, *sections)

    def available(self, start: int, stop: int) -> Iterator[Chunk]:
        """Yield the chunks from document `start` to before `stop` that were written."""
        for number in range(start, stop, self.size):
            if self.path(number).exists():
                yield self.get(number)


class ChunkWriter:
    """Collects documents in order, and puts each chunk of a size where it belongs.

    All documents have one vocabulary, and clips of so many seconds.
    """

    def __init__(self, put: Callable[[int, Chunk], None], size: int, clip: float) -> None:
        self.put, self.size, self.clip = put, size, clip
        self.documents: list[Document] = []
        self.starts: list[int] = []
        """Chunks that were written."""

    def add(self, document: Document, vocabulary: Vocabulary) -> None:
        """Add the next document."""
        # Empty documents of a gap stay in the chunk of the document before it: it does not matter
        # where reading started or stopped.
        if self.documents and document.n_frames and document.number // self.size != self._chunk():
            self.flush()
        self.documents.append(document)
        self.vocabulary = vocabulary

    def flush(self) -> None:
        """Write the documents that are waiting."""
        if self.documents:
            start = self._chunk() * self.size
            self.put(start, Chunk.of(self.documents, self.vocabulary, self.clip))
            self.documents = []
            self.starts.append(start)

    @property
    def written(self) -> int:
        """Number of the first document that may be missing in the cache."""
        return self.starts[-1] + self.size if self.starts else 0

    def _chunk(self) -> int:
        return self.documents[0].number // self.size


class Extraction(NamedTuple):
    """Result of extracting documents from video."""

    corpus: Corpus
    notes: list[str]
    """Remarks for a person, such as damaged frames and faults of the camera."""


class CorpusBuilder:
    """Assembles chunks into a corpus, and judges the condition of the camera.

    Parameters
    ----------
    settings
        How the documents were extracted.
    continued
        Whether all sources are one sequence, each the continuation of the one before.
    """

    def __init__(self, settings: DocumentSettings, *, continued: bool = False) -> None:
        self.settings, self.clip, self.continued = settings, settings.clip, continued
        self.chunks: list[Chunk] = []
        self.looks: list[Image] = []
        """Of the scene in each source."""
        self.times: list[float] = []
        self.conditions: list[Condition] = []
        self.lengths: list[int] = []
        self.offset = 0.0
        self.before: int | None = None
        self.monitor = ConditionMonitor(self.clip)
        self.views: list[int] = []
        """View that each document shows, of all that the monitor has seen."""
        self.backgrounds: Backgrounds | None = None
        self.standing: list[StandingCells] = []

    def add_source(self, chunks: Iterable[Chunk]) -> None:
        """Add all chunks of the next source, in order."""
        if not self.continued:
            self._settle_views()
            self.before, self.offset, self.monitor = None, 0.0, ConditionMonitor(self.clip)
            self.backgrounds = None
        self.looks.extend(looks_of(self._added(chunks)))
        if self.times:
            self.offset = self.times[-1] + self.clip
        if self.before is not None:
            self.before = -1  # the next source would continue with its document 0

    def _added(self, chunks: Iterable[Chunk]) -> Iterator[Image]:
        """Add chunks, and yield the stills of each as soon as it has come."""
        for chunk in chunks:
            self.chunks.append(chunk._replace(thumbnails=np.empty(0, dtype=np.uint8)))
            backgrounds = self.backgrounds or Backgrounds.of(chunk.vocabulary, self.settings)
            self.backgrounds = backgrounds
            for document in chunk.documents():
                self._add(document, backgrounds)
            yield from chunk.stills

    def _add(self, document: Document, backgrounds: Backgrounds) -> None:
        """Add the time, the condition and the sequence of a document."""
        if self.before is not None and document.number == self.before + 1:
            self.lengths[-1] += 1
        else:
            self.lengths.append(1)
            backgrounds.new_sequence()
        self.before = document.number
        self.times.append(self.offset + document.number * self.clip)
        condition = self.monitor.judge(document)
        self.conditions.append(condition)
        self.views.append(self.monitor.view)
        self.standing.append(backgrounds.take(document, condition))

    def _settle_views(self) -> None:
        """Mark documents of another scene than most: which one is usual is known at the end."""
        first = len(self.conditions) - len(self.views)
        numbered = list(enumerate(self.views, start=first))
        usable = [(n, view) for n, view in numbered if self.conditions[n] is Condition.USABLE]
        foreign = self.monitor.foreign([view for _, view in usable])
        for n, view in usable:
            if view in foreign:
                self.conditions[n] = Condition.MOVED
        self.views = []

    def finish(self) -> Extraction:
        """Return the corpus."""
        self._settle_views()
        if not self.times:
            raise VideoError(f"shorter than half a clip of {self.clip:g} s: no document")
        stills = [still for chunk in self.chunks for still in chunk.stills]
        looks, vocabulary = joined_looks(self.looks), self.chunks[0].vocabulary
        joined = Corpus.joined([chunk.corpus for chunk in self.chunks])
        corpus = Corpus(
            entries=joined.entries,
            times=self.times,
            lengths=self.lengths,
            vocabulary=vocabulary,
            n_frames=joined.n_frames,
            conditions=self.conditions,
            picture=median_picture(stills).astype(np.uint8) if stills else None,
            looks=looks if len(looks) > 1 else None,  # the picture is the only one
            settings=self.settings.to_json(vocabulary),
            standing=StandingWords.of(self.standing, vocabulary.n_cells),
        )
        return Extraction(corpus, list(self._fault_notes()))

    def _fault_notes(self) -> Iterator[str]:
        """Yield one note per segment of documents during which the camera was not usable."""
        faults = {
            Condition.MOVED: "the camera was moved",
            Condition.COVERED: "the lens was covered or the light was gone",
            Condition.FROZEN: "the picture was frozen",
        }
        numbered = enumerate(self.conditions)
        for condition, group in groupby(numbered, key=lambda pair: pair[1]):
            members = [i for i, _ in group]
            if condition in faults:
                start, end = self.times[members[0]], self.times[members[-1]] + self.clip
                yield (
                    f"{faults[condition]} from {start:g} s to {end:g} s: these documents are "
                    "neither learnt from nor scored"
                )
