"""Counts of words in documents as three arrays, without a library of sparse matrices.

For files they are packed: steps of word ids and counts, byte by byte, compressed. Bytes of one
significance stand together, as they are alike: fine words take a small part of what their arrays
take (benchmarks/storage.py).
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray
from typing_extensions import TypedDict

from habitus.errors import FileError

LEVEL = 3
"""How hard zlib tries: the next levels take longer than they save."""
WIDEST = 7
"""Bytes of a number, at most: whole numbers are exact up to 2^53."""
Width = Annotated[int, Interval(ge=1, le=WIDEST)]


class Packing(TypedDict):
    """Bytes of each step from one word to the next, and of each count, in what is packed."""

    step_bytes: Width
    count_bytes: Width


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Counts in compressed rows, a document each: the arrays of `scipy.sparse.csr_array`.

    Examples
    --------
    >>> counts = SparseCounts.of_dense(np.array([[0, 2, 1], [0, 0, 0], [4, 0, 0]]))
    >>> counts.data.tolist(), counts.indices.tolist(), counts.indptr.tolist()
    ([2, 1, 4], [1, 2, 0], [0, 2, 2, 3])
    """

    data: NDArray[Any]
    """Count of each entry, documents one after the other."""
    indices: NDArray[np.integer[Any]]
    """Word of each entry."""
    indptr: NDArray[np.integer[Any]]
    """Number of the first entry of each document; at the end, the number of entries."""
    n_words: int
    """Size of the vocabulary."""

    @classmethod
    def of_dense(cls, counts: NDArray[Any]) -> Self:
        """Return the counts of a matrix, documents x words."""
        documents, words = np.nonzero(counts)
        indptr = np.append(0, np.bincount(documents, minlength=len(counts)).cumsum())
        return cls(counts[documents, words], words, indptr, counts.shape[1])

    @classmethod
    def of_rows(
        cls, rows: Sequence[tuple[NDArray[np.integer[Any]], NDArray[Any]]], n_words: int
    ) -> "SparseCounts":
        """Return documents that are given as the words of each, ascending, and their counts."""
        return cls(
            np.concatenate([np.empty(0), *(counts for _, counts in rows)]),
            np.concatenate([np.empty(0, dtype=np.int32), *(words for words, _ in rows)]),
            np.cumsum([0, *(len(words) for words, _ in rows)]),
            n_words,
        ).compact()

    @classmethod
    def joined(cls, parts: Sequence["SparseCounts"]) -> Self:
        """Return the documents of several, of the same vocabulary, one after the other."""
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(
            np.concatenate([part.data for part in parts]),
            np.concatenate([part.indices for part in parts]),
            np.append(0, lengths.cumsum()),
            parts[0].n_words,
        )

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of entries of each document."""
        return np.diff(self.indptr).astype(np.int64)

    @property
    def documents(self) -> NDArray[np.int64]:
        """Document of each entry."""
        return np.repeat(np.arange(self.n_documents), self.lengths)

    def take(self, documents: NDArray[np.int64]) -> "SparseCounts":
        """Return the counts of some of the documents."""
        lengths = self.lengths[documents]
        indptr = np.append(0, lengths.cumsum())
        entries = np.repeat(self.indptr[documents] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseCounts(self.data[entries], self.indices[entries], indptr, self.n_words)

    def compact(self) -> "SparseCounts":
        """Return the same with indices of 32 bits, where they suffice."""
        largest = max(len(self.data), self.n_words, self.n_documents)
        kind: Any = np.int32 if largest <= np.iinfo(np.int32).max else np.int64
        return replace(
            self,
            indices=self.indices.astype(kind, copy=False),
            indptr=self.indptr.astype(kind, copy=False),
        )

    def canonical(self) -> "SparseCounts":
        """Return the same counts: words ascend, each once in a document, and none is zero.

        Examples
        --------
        >>> entries = np.array([1, 2, 0, 4]), np.array([3, 1, 2, 3]), np.array([0, 4])
        >>> found = SparseCounts(*entries, n_words=5).canonical()
        >>> found.data.tolist(), found.indices.tolist()
        ([2, 5], [1, 3])
        """
        documents = self.documents
        ascends = (np.diff(self.indices) > 0) | (np.diff(documents) > 0)
        if ascends.all() and self.data.all():
            return self
        used = np.flatnonzero(self.data)
        order = used[np.lexsort((self.indices[used], documents[used]))]
        documents, indices = documents[order], self.indices[order]
        opens = np.append(True, (np.diff(indices) != 0) | (np.diff(documents) != 0))[: len(order)]
        sums = np.bincount(np.cumsum(opens) - 1, weights=self.data[order])
        lengths = np.bincount(documents[opens], minlength=self.n_documents)
        return SparseCounts(
            sums.astype(self.data.dtype, copy=False),
            indices[opens],
            np.append(0, lengths.cumsum()),
            self.n_words,
        )

    def packed(self) -> tuple[NDArray[np.uint8], Packing]:
        """Return counts that are whole and not negative, and words that ascend, packed.

        Examples
        --------
        >>> counts = SparseCounts.of_dense(np.array([[0, 2, 1], [0, 0, 0], [4, 0, 0]]))
        >>> packed, packing = counts.packed()
        >>> SparseCounts.unpacked(packed, packing, counts.indptr, 3).data
        array([2., 1., 4.])
        """
        steps = self.indices.astype(np.int64)
        steps[1:] -= self.indices[:-1]
        firsts = self.indptr[:-1][np.diff(self.indptr) > 0]
        steps[firsts] = self.indices[firsts]
        whole = self.data.astype(np.int64)
        widths = _width(steps), _width(whole)
        plain = b"".join([*_planes(steps, widths[0]), *_planes(whole, widths[1])])
        packing = Packing(step_bytes=widths[0], count_bytes=widths[1])
        return np.frombuffer(zlib.compress(plain, LEVEL), np.uint8), packing

    @classmethod
    def unpacked(
        cls,
        contents: NDArray[np.uint8],
        packing: Packing,
        indptr: NDArray[np.integer[Any]],
        n_words: int,
    ) -> Self:
        """Return what `packed` packed, of documents of these sizes."""
        if not len(indptr) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
            raise FileError("the array indptr must start with 0 and never fall")
        n, widths = int(indptr[-1]), (packing["step_bytes"], packing["count_bytes"])
        size, reader = n * sum(widths), zlib.decompressobj()
        try:
            plain = reader.decompress(contents.tobytes(), size + 1)
        except zlib.error as error:
            raise FileError(f"the array packed cannot be unpacked: {error}") from error
        if len(plain) != size or not reader.eof:
            raise FileError(f"the array packed must hold {size} bytes, found others")
        planes = np.frombuffer(plain, np.uint8).reshape(sum(widths), n)
        steps, counts = _whole(planes[: widths[0]]), _whole(planes[widths[0] :])
        sums = np.cumsum(steps)
        before = np.concatenate([[0], sums])[indptr[:-1]]
        words = sums - np.repeat(before, np.diff(indptr))
        return cls(counts.astype(np.float64), words, indptr, n_words)


def _width(numbers: NDArray[np.int64]) -> int:
    """Return the bytes that the largest number needs."""
    return max(1, -(-int(numbers.max(initial=0)).bit_length() // 8))


def _planes(numbers: NDArray[np.int64], width: int) -> Iterator[bytes]:
    """Yield the bytes of numbers by significance, the lowest first."""
    for place in range(width):
        yield (numbers >> 8 * place & 255).astype(np.uint8).tobytes()


def _whole(planes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the numbers whose bytes these are."""
    numbers = np.zeros((planes.shape[1], 8), dtype=np.uint8)
    numbers[:, : len(planes)] = planes.T
    return numbers.view("<i8").ravel()
