"""Corpora: counts of words in documents, in time order, in one or more sequences."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypedDict

from habitus.arrays import Image
from habitus.compiled import compiled
from habitus.corpus.checks import (
    checked_clocks,
    checked_column,
    checked_counts,
    checked_ids,
    checked_lengths,
    checked_looks,
    checked_picture,
    checked_times,
    picture_sizes,
)
from habitus.corpus.clocks import LAST_MINUTE, NO_CLOCK
from habitus.corpus.looks import GRID, joined_looks
from habitus.corpus.sparse import Packing, SparseCounts
from habitus.corpus.stands import STANDING, StandingWords
from habitus.corpus.vocabulary import Vocabulary, WordKind, moves_in
from habitus.errors import FileError, InvalidInputError, optional_package
from habitus.files import Contents, FileFormat, Tensors
from habitus.rarity import counted
from habitus.schema import (
    BYTE,
    INDEX,
    LATEST,
    MOST_FRAMES,
    REAL,
    WHOLE,
    ClipSeconds,
    Layout,
    Pixels,
    Text,
    WordCount,
)

if TYPE_CHECKING:
    import scipy.sparse as sp

VERSION = 4
"""Latest version of corpus files that is understood."""
PLAIN = 3
"""Version of files whose counts are not packed."""


class ExtractionSettings(TypedDict, total=False):
    """How documents were extracted from video; other entries are kept as they are."""

    __pydantic_config__ = {"extra": "allow"}  # type: ignore[misc]  # noqa: RUF012

    clip: ClipSeconds
    cell: Pixels
    motion: Text
    words: WordKind | None
    scale: int | float | None
    mask: Text | None
    region: Text | None


class StandingHeader(TypedDict):
    """What a file's header says of what stands; see `habitus.corpus.stands`."""

    packing: Packing
    n_cells: WordCount
    first: int


class CorpusHeader(TypedDict):
    """Header of a corpus file."""

    n_words: WordCount
    vocabulary: Vocabulary | None
    settings: NotRequired[ExtractionSettings | None]
    packing: NotRequired[Packing]
    standing: NotRequired[StandingHeader]


LARGEST_COUNT = 2.0**53
"""Whole numbers are exact up to this."""
LAYOUTS = {
    "data": Layout((*REAL, *WHOLE), ("entries",), required=False, least=0, most=LARGEST_COUNT),
    "indices": Layout(INDEX, ("entries",), required=False),
    "packed": Layout(BYTE, ("bytes",), required=False),
    "indptr": Layout(INDEX, ("documents and one",)),
    "lengths": Layout(WHOLE, ("sequences",)),
    "times": Layout(REAL, ("documents",), least=-LATEST, most=LATEST),
    "conditions": Layout(WHOLE, ("documents",), required=False),
    "n_frames": Layout(WHOLE, ("documents",), required=False, most=MOST_FRAMES),
    "clocks": Layout(INDEX, ("documents",), required=False, least=NO_CLOCK, most=LAST_MINUTE),
    "picture": Layout(BYTE, ("height", "width", 3), required=False),
    "pictures": Layout(BYTE, ("looks", *GRID), required=False),
    STANDING: Layout(BYTE, ("bytes of what stands",), required=False),
    f"{STANDING}_indptr": Layout(INDEX, ("documents and one",), required=False),
    f"{STANDING}_known": Layout(BYTE, ("documents",), required=False, most=1),
}
"""Arrays of a corpus file: `data` and `indices`, or both of them `packed`."""


class Condition(IntEnum):
    """Condition of the camera during a document; models use only documents that are USABLE."""

    USABLE = 0
    MOVED = 1
    COVERED = 2
    FROZEN = 3


class Bag(NamedTuple):
    """One document as a bag of words."""

    words: NDArray[np.integer[Any]]
    """Ids of the distinct words, ascending."""
    counts: NDArray[Any]
    """Number of occurrences of each of these words."""


def summed_bag(bag: Bag, vocabulary: Vocabulary, coarser: Vocabulary) -> Bag:
    """Return a document in the words of a coarser vocabulary, ascending, with the sums of counts.

    Examples
    --------
    >>> both = Vocabulary(1, 1, speeds=2)
    >>> summed_bag(Bag(np.array([2, 3, 6]), np.array([1, 4, 2])), both, both.paper)
    Bag(words=array([1, 3]), counts=array([5, 2]))
    """
    words, counts = np.asarray(bag.words, dtype=np.int64), np.asarray(bag.counts)
    indptr, moves = np.array([0, len(words)]), moves_in(vocabulary, coarser)
    return Bag(*_summed(indptr, words, counts, moves, coarser.per_cell)[1:])


def _summed(
    indptr: NDArray[np.int64],
    words: NDArray[np.int64],
    counts: NDArray[Any],
    moves: NDArray[np.int64],
    n_moves: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Sum words of a document with the same cell and, by `moves`, the same move; words ascend."""
    starts, found, sums = np.zeros_like(indptr), np.empty_like(words), np.empty_like(counts)
    by_move = np.zeros(n_moves, dtype=counts.dtype)
    n = _sum_words(indptr, words, counts, moves, by_move, starts, found, sums)
    return starts, found[:n].copy(), sums[:n].copy()


@compiled
def _sum_words(
    indptr: NDArray[np.int64],
    words: NDArray[np.int64],
    counts: NDArray[Any],
    moves: NDArray[np.int64],
    by_move: NDArray[Any],
    starts: NDArray[np.int64],
    found: NDArray[np.int64],
    sums: NDArray[Any],
) -> int:
    """Fill in the sums of `_summed`; return the number of words. `by_move` is all zeros."""
    n_moves, n_found, i = len(by_move), 0, 0
    for t in range(len(indptr) - 1):
        end = indptr[t + 1]
        while i < end:
            cell = words[i] // len(moves)
            start = cell * len(moves)
            while i < end and 0 <= words[i] - start < len(moves):
                by_move[moves[words[i] - start]] += counts[i]
                i += 1
            for move in range(n_moves):
                if by_move[move]:
                    found[n_found], sums[n_found] = cell * n_moves + move, by_move[move]
                    by_move[move] = 0
                    n_found += 1
        starts[t + 1] = n_found
    return n_found


@dataclass(frozen=True, eq=False)
class Corpus:
    """Word counts of documents in time order.

    Parameters
    ----------
    counts
        Documents x words, dense or sparse: the number of occurrences of each word in each
        document. Integers, or non-negative weights for EM and VB.
    times
        Start of each document in seconds; 0, 1, 2, ... by default.
    lengths
        Number of documents in each sequence (a video, a day, a recording without gaps); one
        sequence by default.
    vocabulary
        Meaning of the word ids, where known.
    n_frames
        Number of video frames in each document, where known.
    conditions
        Condition of the camera during each document, as `Condition`; documents whose condition is
        not `Condition.USABLE` are neither learnt from nor scored.
    clocks
        Local time of each document, in whole minutes since the beginning of 1970 as the clock on
        the wall counts them, and -1 where nobody knows it; by default nobody does. See
        `habitus.corpus.clocks`.
    picture
        Picture of the scene, height x width x 3, not larger than the camera's frame: the median of
        frames of the video.
    looks
        Looks of the scene, as many x rows x columns: see `habitus.corpus.looks`. By default the
        picture is the only one.
    settings
        How the documents were extracted from video, as `DocumentSettings` takes it; plain values.
    standing
        What stands in each document; by default nobody knows.
    entries
        The counts as `SparseCounts`, instead of `counts`.

    Raises
    ------
    InvalidInputError
        If the counts are not a finite, non-negative matrix, or the other values do not fit them.

    Examples
    --------
    >>> corpus = Corpus([[0, 2, 1], [1, 0, 0], [0, 0, 3]], lengths=[2, 1])
    >>> corpus
    Corpus(3 documents in 2 sequences, 3 words, 7 tokens)
    >>> corpus.n_tokens
    array([3., 1., 3.])
    """

    entries: SparseCounts
    times: NDArray[np.float64]
    lengths: NDArray[np.int64]
    vocabulary: Vocabulary | None
    n_frames: NDArray[np.int64] | None
    conditions: NDArray[np.uint8]
    clocks: NDArray[np.int32]
    picture: NDArray[np.uint8] | None
    looks: NDArray[np.uint8]
    settings: dict[str, Any] | None
    standing: StandingWords

    def __init__(
        self,
        counts: Any = None,
        *,
        times: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        vocabulary: Vocabulary | None = None,
        n_frames: ArrayLike | None = None,
        conditions: ArrayLike | None = None,
        clocks: ArrayLike | None = None,
        picture: ArrayLike | None = None,
        looks: ArrayLike | None = None,
        settings: dict[str, Any] | None = None,
        standing: StandingWords | None = None,
        entries: SparseCounts | None = None,
    ) -> None:
        checked = checked_counts(entries if counts is None else counts)
        n_documents, n_words = checked.n_documents, checked.n_words
        if vocabulary is not None and vocabulary.n_words != n_words:
            raise InvalidInputError(
                f"the counts have {n_words} words, the vocabulary {vocabulary.n_words}"
            )
        known_lengths = checked_lengths(lengths, n_documents)
        known_picture = None if picture is None else checked_picture(picture, vocabulary)
        n_cells = None if vocabulary is None else vocabulary.n_cells
        if standing is None:
            standing = StandingWords.none(n_documents)
        for name, value in {
            "entries": checked,
            "lengths": known_lengths,
            "times": checked_times(times, known_lengths),
            "vocabulary": vocabulary,
            "n_frames": None
            if n_frames is None
            else checked_column("n_frames", n_frames, n_documents),
            "conditions": checked_column(
                "conditions",
                np.zeros(n_documents) if conditions is None else conditions,
                n_documents,
                most=max(Condition),
            ).astype(np.uint8),
            "clocks": checked_clocks(clocks, n_documents),
            "picture": known_picture,
            "looks": checked_looks(looks, known_picture),
            "settings": settings,
            "standing": standing.checked(n_documents, n_cells),
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_word_ids(
        cls,
        documents: Iterable[Sequence[int] | NDArray[Any]],
        *,
        n_words: int | None = None,
        times: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> Self:
        """Return the corpus of documents that are given as lists of word ids.

        Parameters
        ----------
        documents
            Word ids of each document, in any order, with repetitions.
        n_words
            Size of the vocabulary; by default that of `vocabulary`, or the largest id plus one.
        times, lengths, vocabulary
            As for `Corpus`.

        Examples
        --------
        >>> Corpus.from_word_ids([[1, 2, 1], [0]]).counts.toarray()
        array([[0., 2., 1.],
               [1., 0., 0.]])
        """
        arrays = [checked_ids(ids) for ids in documents]
        ids = np.concatenate([np.empty(0, dtype=np.int64), *arrays])
        if n_words is None:
            n_words = vocabulary.n_words if vocabulary else int(ids.max(initial=-1)) + 1
        if ids.size and (ids.min() < 0 or ids.max() >= n_words):
            raise InvalidInputError(
                f"word ids must run from 0 to {n_words - 1}, found {ids.min()} to {ids.max()}"
            )
        indptr = np.cumsum([0, *(len(array) for array in arrays)])
        entries = SparseCounts(np.ones(ids.size), ids, indptr, n_words)
        return cls(entries=entries, times=times, lengths=lengths, vocabulary=vocabulary)

    @property
    def counts(self) -> "sp.csr_array":
        """Documents x words as a matrix of SciPy, which shares the arrays of `entries`."""
        import scipy.sparse as sp

        data, indices, indptr = self.entries.data, self.entries.indices, self.entries.indptr
        return sp.csr_array((data, indices, indptr), shape=(self.n_documents, self.n_words))

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.entries.n_documents

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return self.entries.n_words

    @property
    def n_tokens(self) -> NDArray[np.float64]:
        """Number of tokens (words with repetitions) in each document."""
        sums, used = np.zeros(self.n_documents), self.entries.lengths > 0
        starts = self.entries.indptr[:-1][used]
        sums[used] = np.add.reduceat(self.entries.data, starts, dtype=np.float64)
        return sums

    @property
    def clip(self) -> float:
        """Seconds per document: as extracted, else the median difference of the times."""
        if self.settings and "clip" in self.settings:
            return float(self.settings["clip"])
        steps = np.diff(self.times)
        return float(np.median(steps)) if len(steps) and np.median(steps) > 0 else 1.0

    @property
    def first(self) -> NDArray[np.bool_]:
        """Whether each document is the first of a sequence.

        Examples
        --------
        >>> Corpus([[1], [2], [3]], lengths=[2, 1]).first
        array([ True, False,  True])
        """
        first = np.zeros(self.n_documents, dtype=np.bool_)
        first[np.cumsum(self.lengths) - self.lengths] = True
        return first

    def bags(self) -> Iterator[Bag]:
        """Iterate over the documents as bags of words, in order.

        Examples
        --------
        >>> corpus = Corpus([[0, 2, 1], [0, 0, 0]])
        >>> [(bag.words.tolist(), bag.counts.tolist()) for bag in corpus.bags()]
        [([1, 2], [2.0, 1.0]), ([], [])]
        """
        return map(self.bag, range(len(self)))

    def bag(self, number: int) -> Bag:
        """Return one document as a bag of words."""
        start, end = self.entries.indptr[number : number + 2]
        return Bag(self.entries.indices[start:end], self.entries.data[start:end])

    def take(self, documents: ArrayLike) -> Self:
        """Return a corpus of some of the documents, given their numbers, ascending.

        Where documents in between are missing, a sequence ends and another begins.

        Examples
        --------
        >>> corpus = Corpus([[1], [2], [3], [4]])
        >>> part = corpus.take([0, 1, 3])
        >>> part.times, part.lengths
        (array([0., 1., 3.]), array([2, 1]))
        """
        chosen = np.asarray(documents, dtype=np.int64)
        if len(chosen) and (
            chosen.min() < 0 or chosen.max() >= len(self) or (np.diff(chosen) < 1).any()
        ):
            raise InvalidInputError(
                f"documents must be ascending indices from 0 to {len(self) - 1}"
            )
        opens = self.first[chosen] | (np.diff(chosen, prepend=-2) > 1)
        starts = np.append(np.flatnonzero(opens), len(chosen))
        return replace(
            self,
            entries=self.entries.take(chosen),
            times=self.times[chosen],
            lengths=np.diff(starts),
            n_frames=None if self.n_frames is None else self.n_frames[chosen],
            conditions=self.conditions[chosen],
            clocks=self.clocks[chosen],
            standing=self.standing.take(chosen),
        )

    @property
    def coarse(self) -> "Corpus":
        """The same documents in coarse words: 4 directions, and slow or fast.

        Words that are not fine stay as they are.
        """
        return self if self.vocabulary is None else self.summed(self.vocabulary.coarse)

    @property
    def paper(self) -> "Corpus":
        """The same documents in the paper's words, which do not distinguish slow and fast motion.

        Examples
        --------
        >>> slow_and_fast = Vocabulary(1, 1, speeds=2)
        >>> Corpus([[1, 2, 0, 0, 0, 0, 0, 4]], vocabulary=slow_and_fast).paper.counts.toarray()
        array([[3., 0., 0., 4.]])
        """
        return self if self.vocabulary is None else self.summed(self.vocabulary.paper)

    def summed(self, vocabulary: Vocabulary) -> "Corpus":
        """Return the same documents in the words of a vocabulary that the corpus' own refines.

        Each word counts as often as the words that are part of it. Any other vocabulary is an
        `InvalidInputError`.
        """
        if vocabulary == self.vocabulary:
            return self
        if self.vocabulary is None:
            raise InvalidInputError("the words of a corpus without a vocabulary cannot be summed")
        indptr, words, data = _summed(
            self.entries.indptr.astype(np.int64),
            self.entries.indices.astype(np.int64),
            self.entries.data,
            moves_in(self.vocabulary, vocabulary),
            vocabulary.per_cell,
        )
        merged = SparseCounts(data, words, indptr, vocabulary.n_words)
        settings = self.settings
        if settings:
            settings = {**settings, "words": vocabulary.kind}
        return replace(self, entries=merged, vocabulary=vocabulary, settings=settings)

    @classmethod
    def joined(cls, corpora: Sequence["Corpus"]) -> "Corpus":
        """Return the documents of several corpora of one camera, as sequences one after the other.

        All must have the same vocabulary. Picture and settings are those of the first; looks are
        those of all.

        Examples
        --------
        >>> Corpus.joined([Corpus([[1, 0]]), Corpus([[0, 2], [3, 0]])])
        Corpus(3 documents in 2 sequences, 2 words, 6 tokens)
        """
        first = corpora[0]
        for other in corpora[1:]:
            if (other.vocabulary, other.n_words) != (first.vocabulary, first.n_words):
                raise InvalidInputError(
                    "corpora to join must have the same vocabulary (camera, frame size, cell and "
                    f"words), found {other.vocabulary or other.n_words} after "
                    f"{first.vocabulary or first.n_words}"
                )
        if len(corpora) == 1:
            return first
        n_frames = [corpus.n_frames for corpus in corpora if corpus.n_frames is not None]
        return replace(
            first,
            entries=SparseCounts.joined([corpus.entries for corpus in corpora]),
            times=np.concatenate([corpus.times for corpus in corpora]),
            lengths=np.concatenate([corpus.lengths for corpus in corpora]),
            n_frames=np.concatenate(n_frames) if len(n_frames) == len(corpora) else None,
            conditions=np.concatenate([corpus.conditions for corpus in corpora]),
            clocks=np.concatenate([corpus.clocks for corpus in corpora]),
            looks=joined_looks(look for corpus in corpora for look in corpus.looks),
            standing=StandingWords.joined([corpus.standing for corpus in corpora]),
        )

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        return (
            f"Corpus({counted(self.n_documents, 'document')} in "
            f"{counted(len(self.lengths), 'sequence')}, {counted(self.n_words, 'word')}, "
            f"{self.n_tokens.sum():.10g} tokens)"
        )

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        n_tokens, v = self.n_tokens.sum(), self.vocabulary
        n_unusable = int(np.count_nonzero(self.conditions != Condition.USABLE))
        rows = {
            "documents": f"{self.n_documents} of {self.clip:g} s",
            "sequences": f"{len(self.lengths)}",
            "tokens": f"{n_tokens:.10g}, {n_tokens / max(len(self), 1):.4g} per document",
            "words": f"{self.n_words}"
            + (f" ({v.rows} x {v.columns} cells of {v.cell_side} pixels)" if v else ""),
            "camera not usable": counted(n_unusable, "document"),
        }
        cells = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in rows.items())
        return f"<table><caption>Corpus</caption>{cells}</table>"

    def to_dataframe(self) -> Any:
        """Return a pandas table with one row per document.

        Columns are `time` (start in seconds), `sequence` (0, 1, ...), `tokens`, `distinct_words`,
        `frames` (missing where not known) and `condition` ("usable", "moved", "covered" or
        "frozen"); the index is the document.

        Examples
        --------
        >>> table = Corpus([[0, 2], [1, 0]], times=[0.0, 0.5]).to_dataframe()
        >>> table["tokens"].tolist()
        [2.0, 1.0]
        """
        pandas = optional_package("pandas", "A corpus as a table")
        frames = self.n_frames if self.n_frames is not None else [None] * len(self)
        return pandas.DataFrame(
            {
                "time": self.times,
                "sequence": np.repeat(np.arange(len(self.lengths)), self.lengths),
                "tokens": self.n_tokens,
                "distinct_words": self.entries.lengths,
                "frames": pandas.array(frames, dtype="Int64"),
                "condition": [Condition(value).name.lower() for value in self.conditions],
            },
            index=pandas.RangeIndex(len(self), name="document"),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the corpus to a file, completely or not at all; an existing one is replaced."""
        header, tensors = self.contents()
        FORMAT._replace(version=PLAIN).write(path, header, tensors)

    def contents(self) -> Contents:
        """Return what a file of the corpus holds, of the version `PLAIN`."""
        standing = self.standing.contents()
        header = {
            "n_words": self.n_words,
            "vocabulary": self.vocabulary.to_json() if self.vocabulary else None,
            "settings": self.settings,
            **standing.header,
        }
        tensors = {
            "data": smallest(self.entries.data),
            "indices": self.entries.indices,
            "indptr": self.entries.indptr,
            "lengths": self.lengths,
            "times": self.times,
            "conditions": self.conditions,
            **({} if self.n_frames is None else {"n_frames": self.n_frames}),
            **({"clocks": self.clocks} if (self.clocks != NO_CLOCK).any() else {}),
            **stored_pictures(self.picture, self.looks),
            **standing.tensors,
        }
        return Contents(header, tensors)

    def packed_contents(self) -> Contents:
        """Return what a small file of the corpus holds, of the version `VERSION`.

        Counts must be whole numbers.
        """
        header, tensors = self.contents()
        packed, packing = self.entries.packed()
        kept = {name: array for name, array in tensors.items() if name not in ("data", "indices")}
        return Contents(header | {"packing": packing}, kept | {"packed": packed})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a corpus that `save` wrote, with this or an earlier version of habitus.

        A `FileError` says why a file is no corpus, damaged, or of a newer version.
        """
        return cls.from_contents(path, FORMAT.read(path))

    @classmethod
    def from_contents(cls, path: str | os.PathLike[str], contents: Contents) -> Self:
        """Return the corpus of a file, given what the file holds."""
        header, tensors = contents
        try:
            return cls(
                entries=_entries(header, tensors),
                times=tensors["times"],
                lengths=tensors["lengths"],
                vocabulary=header["vocabulary"],
                n_frames=tensors.get("n_frames"),
                conditions=tensors.get("conditions"),
                clocks=tensors.get("clocks"),
                picture=tensors.get("picture"),
                looks=tensors.get("pictures"),
                settings=header.get("settings"),
                standing=StandingWords.from_contents(header.get(STANDING), tensors),
            )
        except ValueError as error:
            raise FileError(f"{path}: not a corpus that can be used: {error}") from error


def stored_pictures(picture: Image | None, looks: Image) -> Tensors:
    """Return the arrays that a file keeps of a scene: of a picture that is its only look, one."""
    alone = np.array_equal(looks, checked_looks(None, picture))
    return {
        **({} if picture is None else {"picture": picture}),
        **({} if alone else {"pictures": looks}),
    }


def sizes_of(header: CorpusHeader) -> Mapping[str, int | range]:
    """Return the sizes of arrays that the header of a corpus states."""
    return picture_sizes(header["vocabulary"])


FORMAT = FileFormat("corpus", VERSION, CorpusHeader, LAYOUTS, sizes_of)


def shard_bytes(
    corpus: Corpus, header: Mapping[str, Any] = {}, tensors: Mapping[str, NDArray[Any]] = {}
) -> bytes:
    """Return what the file of a shard holds: a packed corpus, and what else its owner keeps."""
    contents = corpus.packed_contents()
    return FORMAT.to_bytes({**contents.header, **header}, {**contents.tensors, **tensors})


def _entries(header: Mapping[str, Any], tensors: Tensors) -> SparseCounts:
    """Return the counts of a file, packed or not."""
    indptr, packing, n_words = tensors["indptr"], header.get("packing"), header["n_words"]
    if packing is not None and "packed" in tensors:
        return SparseCounts.unpacked(tensors["packed"], packing, indptr, n_words)
    for name in ("data", "indices"):
        if name not in tensors:
            raise FileError(f"the array {name} is missing")
    return SparseCounts(tensors["data"], tensors["indices"], indptr, n_words)


def smallest(data: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the smallest unsigned type that holds them, all else unchanged."""
    if data.dtype == np.bool_ or data.min(initial=0) < 0 or data.max(initial=0) > LARGEST_COUNT:
        return data
    if np.issubdtype(data.dtype, np.floating) and (data % 1 != 0).any():
        return data
    return data.astype(np.min_scalar_type(int(data.max(initial=0))))
