"""Counts of words in documents as three arrays, without a library of sparse matrices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


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
