"""A corpus: counts of words in documents, in time order, with the breaks between sequences."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, InvalidInputError
from habitus.files import read_tensors, write_tensors

VERSION = 3


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


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents in time order.

    Parameters
    ----------
    counts
        Documents x words, dense or sparse: how often each word occurs in each document. Whole
        numbers, or weights of any size for EM and VB.
    times
        Start of each document's clip in seconds; 0, 1, 2, ... when not given.
    lengths
        Number of documents in each sequence (a video, a day, a stretch between gaps); one
        sequence when not given.
    vocabulary
        What the word ids mean, where known.
    n_frames
        Frames of video behind each document, where known.
    conditions
        Condition of the camera during each document, as `Condition`; documents whose condition is
        not `Condition.USABLE` are neither learnt from nor scored.
    picture
        The scene itself, height x width x 3: the median of stills of the video.
    settings
        How the documents were extracted from video, as `DocumentSettings` takes it; plain values.
    """

    counts: sp.csr_array
    times: NDArray[np.float64]
    lengths: NDArray[np.int64]
    vocabulary: Vocabulary | None
    n_frames: NDArray[np.int64] | None
    conditions: NDArray[np.uint8]
    picture: NDArray[np.uint8] | None
    settings: dict[str, Any] | None

    def __init__(
        self,
        counts: Any,
        *,
        times: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        vocabulary: Vocabulary | None = None,
        n_frames: ArrayLike | None = None,
        conditions: ArrayLike | None = None,
        picture: ArrayLike | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        checked = checked_counts(counts)
        n_documents, n_words = checked.shape
        if vocabulary is not None and vocabulary.n_words != n_words:
            raise InvalidInputError(
                f"the counts have {n_words} words, the vocabulary {vocabulary.n_words}"
            )
        for name, value in {
            "counts": checked,
            "lengths": checked_lengths(lengths, n_documents),
            "times": _checked_times(times, n_documents),
            "vocabulary": vocabulary,
            "n_frames": None if n_frames is None else _column("n_frames", n_frames, n_documents),
            "conditions": _column(
                "conditions",
                np.zeros(n_documents) if conditions is None else conditions,
                n_documents,
            ).astype(np.uint8),
            "picture": None if picture is None else _checked_picture(picture),
            "settings": settings,
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
        """Build a corpus from the word ids of each document, in any order, repeats counted."""
        arrays = [_checked_ids(ids) for ids in documents]
        ids = np.concatenate([np.empty(0, dtype=np.int64), *arrays])
        if n_words is None:
            n_words = vocabulary.n_words if vocabulary else int(ids.max(initial=-1)) + 1
        if ids.size and (ids.min() < 0 or ids.max() >= n_words):
            raise InvalidInputError(
                f"word ids must run from 0 to {n_words - 1}, found {ids.min()} to {ids.max()}"
            )
        indptr = np.cumsum([0, *(len(array) for array in arrays)])
        counts = sp.csr_array((np.ones(ids.size), ids, indptr), shape=(len(arrays), n_words))
        return cls(counts, times=times, lengths=lengths, vocabulary=vocabulary)

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self.counts.shape[0])

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return int(self.counts.shape[1])

    @property
    def n_tokens(self) -> NDArray[np.float64]:
        """Number of words in each document, repeats counted."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    @property
    def clip(self) -> float:
        """Seconds to a document."""
        if self.settings and "clip" in self.settings:
            return float(self.settings["clip"])
        steps = np.diff(self.times)
        return float(np.median(steps)) if len(steps) and np.median(steps) > 0 else 1.0

    @property
    def first(self) -> NDArray[np.bool_]:
        """Whether each document opens a sequence."""
        first = np.zeros(self.n_documents, dtype=np.bool_)
        first[np.cumsum(self.lengths) - self.lengths] = True
        return first

    def bags(self) -> Iterator[Bag]:
        """Iterate over the documents as bags of words, in order.

        Yields
        ------
        Bag
            Word ids and counts of one document.

        Examples
        --------
        >>> corpus = Corpus([[0, 2, 1], [0, 0, 0]])
        >>> [(bag.words.tolist(), bag.counts.tolist()) for bag in corpus.bags()]
        [([1, 2], [2.0, 1.0]), ([], [])]
        """
        counts = self.counts
        for t in range(len(self)):
            document = slice(counts.indptr[t], counts.indptr[t + 1])
            yield Bag(counts.indices[document], counts.data[document])

    def take(self, documents: ArrayLike) -> Self:
        """Only these documents, by ascending number; where some are left out, a sequence ends."""
        chosen = np.asarray(documents, dtype=np.int64)
        if len(chosen) and (
            chosen.min() < 0 or chosen.max() >= len(self) or (np.diff(chosen) < 1).any()
        ):
            raise InvalidInputError(
                f"documents must be ascending numbers from 0 to {len(self) - 1}"
            )
        opens = self.first[chosen] | (np.diff(chosen, prepend=-2) > 1)
        starts = np.append(np.flatnonzero(opens), len(chosen))
        return type(self)(
            self.counts[chosen],
            times=self.times[chosen], lengths=np.diff(starts), vocabulary=self.vocabulary,
            n_frames=None if self.n_frames is None else self.n_frames[chosen],
            conditions=self.conditions[chosen], picture=self.picture, settings=self.settings,
        )  # fmt: skip

    @property
    def paper(self) -> "Corpus":
        """The same documents in the paper's words, which do not tell slow from fast."""
        v = self.vocabulary
        if v is None or v.speeds == 1:
            return self
        counts = self.counts
        merged = sp.csr_array(
            (counts.data, counts.indices // v.speeds, counts.indptr),
            shape=(len(self), v.paper.n_words),
        )
        settings = self.settings | {"speeds": 1} if self.settings else self.settings
        return replace(self, counts=merged, vocabulary=v.paper, settings=settings)

    @classmethod
    def joined(cls, corpora: Sequence["Corpus"]) -> "Corpus":
        """The documents of several corpora of one camera, as sequences one after the other."""
        first = corpora[0]
        for other in corpora[1:]:
            if (other.vocabulary, other.n_words) != (first.vocabulary, first.n_words):
                raise InvalidInputError(
                    "corpora of different vocabularies do not join: another camera, size or cell"
                )
        if len(corpora) == 1:
            return first
        known = all(corpus.n_frames is not None for corpus in corpora)
        return cls(
            sp.vstack([corpus.counts for corpus in corpora]),
            times=np.concatenate([corpus.times for corpus in corpora]),
            lengths=np.concatenate([corpus.lengths for corpus in corpora]),
            vocabulary=first.vocabulary,
            n_frames=np.concatenate([c.n_frames for c in corpora if c.n_frames is not None])
            if known
            else None,
            conditions=np.concatenate([corpus.conditions for corpus in corpora]),
            picture=first.picture, settings=first.settings,
        )  # fmt: skip

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        return (
            f"Corpus({self.n_documents} documents in {len(self.lengths)} sequence(s), "
            f"{self.n_words} words, {self.n_tokens.sum():.10g} tokens)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the corpus to one safe file, whole or not at all."""
        write_tensors(
            path,
            kind="corpus",
            version=VERSION,
            header={
                "n_words": self.n_words,
                "vocabulary": self.vocabulary.to_json() if self.vocabulary else None,
                "settings": self.settings,
            },
            tensors={
                "data": _smallest(self.counts.data),
                "indices": self.counts.indices,
                "indptr": self.counts.indptr,
                "lengths": self.lengths,
                "times": self.times,
                "conditions": self.conditions,
                **({} if self.n_frames is None else {"n_frames": self.n_frames}),
                **({} if self.picture is None else {"picture": self.picture}),
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a corpus file."""
        header, tensors = read_tensors(path, kind="corpus", version=VERSION)
        try:
            geometry = header["vocabulary"]
            indptr = tensors["indptr"]
            counts = sp.csr_array(
                (tensors["data"], tensors["indices"], indptr),
                shape=(len(indptr) - 1, header["n_words"]),
            )
            counts.check_format(full_check=True)
            return cls(
                counts,
                times=tensors["times"],
                lengths=tensors["lengths"],
                vocabulary=Vocabulary(**geometry) if geometry else None,
                n_frames=tensors.get("n_frames"),
                conditions=tensors.get("conditions"),
                picture=tensors.get("picture"),
                settings=header.get("settings"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path}: not a corpus this habitus understands: {error}") from error


def checked_counts(counts: Any) -> sp.csr_array:
    """Counts as sorted, summed, zero-free rows of float64, or an error that says what is wrong."""
    try:
        matrix = sp.csr_array(counts, dtype=np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"counts must be a documents x words matrix: {error}") from error
    if matrix.ndim != 2:
        raise InvalidInputError(f"counts must be documents x words, found {matrix.ndim} dimensions")
    data = matrix.data
    if not np.isfinite(data).all():
        found = "NaN" if np.isnan(data).any() else "inf"
        raise InvalidInputError(f"counts must be finite numbers, found {found}")
    if data.size and data.min() < 0:
        # The first words are those that scikit-learn's own checks look for.
        raise InvalidInputError(
            f"Negative values in data: counts must be at least 0, found {data.min():.6g}"
        )
    if not matrix.has_canonical_format or (data == 0).any():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def checked_lengths(lengths: ArrayLike | None, n_documents: int) -> NDArray[np.int64]:
    """Lengths of the sequences, which must add up to the number of documents."""
    if lengths is None:
        return np.array([n_documents] if n_documents else [], dtype=np.int64)
    found = np.atleast_1d(np.asarray(lengths))
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.number) or (found % 1 != 0).any():
        raise InvalidInputError(f"lengths must be a list of whole numbers, found {lengths!r}")
    if (found < 1).any():
        raise InvalidInputError(f"each length must be at least 1, found {found.min()}")
    if found.sum() != n_documents:
        raise InvalidInputError(
            f"lengths must add up to the {n_documents} documents, found {found.sum()}"
        )
    return found.astype(np.int64)


def _checked_times(times: ArrayLike | None, n_documents: int) -> NDArray[np.float64]:
    if times is None:
        return np.arange(n_documents, dtype=np.float64)
    try:
        found = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if found.shape != (n_documents,) or not np.isfinite(found).all():
        raise InvalidInputError(
            f"times must be {n_documents} finite numbers, one a document, found shape {found.shape}"
        )
    return found


def _column(name: str, values: ArrayLike, n_documents: int) -> NDArray[np.int64]:
    found = np.asarray(values)
    whole = np.issubdtype(found.dtype, np.number) and not (found % 1 != 0).any()
    if found.shape != (n_documents,) or not whole or (found < 0).any():
        raise InvalidInputError(
            f"{name} must be {n_documents} whole numbers of at least 0, one a document"
        )
    return found.astype(np.int64)


def _checked_picture(picture: ArrayLike) -> NDArray[np.uint8]:
    found = np.asarray(picture)
    if found.dtype != np.uint8 or found.ndim != 3 or found.shape[2] != 3:
        raise InvalidInputError(
            f"picture must be height x width x 3 of uint8, found {found.dtype} of {found.shape}"
        )
    return found


def _checked_ids(ids: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(
            f"a document must be a list of word ids (whole numbers), found {array.dtype} values "
            f"of shape {array.shape}"
        )
    return array.astype(np.int64)


def _smallest(data: NDArray[np.float64]) -> NDArray[Any]:
    """The same counts in the smallest unsigned type that holds them, weights as they are."""
    if (data % 1 != 0).any():
        return data
    return data.astype(np.min_scalar_type(int(data.max(initial=0))))
