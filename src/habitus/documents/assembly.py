"""Parts of all sources -> one corpus, with the camera's condition and a picture of the scene."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from habitus.documents.clips import Settings
from habitus.documents.condition import Condition, Watch
from habitus.documents.corpus import Corpus
from habitus.documents.parts import Part
from habitus.errors import VideoError
from habitus.video.frames import Image
from habitus.words import Vocabulary


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
