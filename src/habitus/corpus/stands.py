"""Words of a second kind: cells that show something other than their background and do not move."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Flags
from habitus.corpus.sparse import SparseCounts
from habitus.errors import InvalidInputError
from habitus.files import Contents, Tensors

STANDING = "standing"
"""The cue, and what the arrays of a file start with."""


class StandingCells(NamedTuple):
    """What stands in one document."""

    cells: NDArray[np.integer[Any]]
    """Numbers of the cells, ascending."""
    ages: NDArray[Any]
    """Documents since each came to stand as it does, itself included."""
    known: bool
    """False while the background is not known: then there are none, whatever stands."""

    @classmethod
    def unknown(cls) -> "StandingCells":
        """Return what is known of a document before there is a background."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, False)

    def of(self, cells: NDArray[np.integer[Any]]) -> "StandingCells":
        """Return what stands in some of the cells."""
        own = np.isin(self.cells, cells)
        return StandingCells(self.cells[own], self.ages[own], self.known)


@dataclass(frozen=True, eq=False)
class StandingWords:
    """What stands in each document of a corpus.

    Examples
    --------
    >>> bag = StandingCells(np.array([3, 4]), np.array([7, 8]), True)
    >>> words = StandingWords.of([StandingCells.unknown(), bag], n_cells=9)
    >>> words.known.tolist(), words.cells(1).ages.tolist()
    ([False, True], [7.0, 8.0])
    """

    entries: SparseCounts
    """Documents x cells: the ages."""
    known: Flags
    """Whether the background of each document is known."""

    @classmethod
    def none(cls, n_documents: int) -> "StandingWords":
        """Return what is known of documents without pictures."""
        return cls.of([StandingCells.unknown()] * n_documents, n_cells=0)

    @classmethod
    def of(cls, documents: Sequence[StandingCells], n_cells: int) -> "StandingWords":
        """Return the words of documents."""
        rows = [(document.cells, document.ages) for document in documents]
        entries = SparseCounts.of_rows(rows, n_cells)
        return cls(entries, np.array([document.known for document in documents], dtype=np.bool_))

    @classmethod
    def joined(cls, parts: Sequence["StandingWords"]) -> "StandingWords":
        """Return the documents of several, one after the other."""
        n_cells = max(part.entries.n_words for part in parts)
        sized = [replace(part.entries, n_words=n_cells) for part in parts]
        return cls(
            SparseCounts.joined(sized).compact(), np.concatenate([part.known for part in parts])
        )

    def take(self, documents: NDArray[np.int64]) -> "StandingWords":
        """Return those of some of the documents."""
        return StandingWords(self.entries.take(documents).compact(), self.known[documents])

    def cells(self, t: int) -> StandingCells:
        """Return what stands in one document."""
        own = slice(*self.entries.indptr[t : t + 2])
        return StandingCells(self.entries.indices[own], self.entries.data[own], bool(self.known[t]))

    def checked(self, n_documents: int, n_cells: int | None) -> Self:
        """Return the words, or raise unless they fit so many documents and cells."""
        entries, cells = self.entries, self.entries.indices
        fits = len(self.known) == entries.n_documents == n_documents
        within = not cells.size or (n_cells is not None and cells.max() < n_cells)
        if not fits or not within or (cells.size and (cells.min() < 0 or entries.data.min() < 1)):
            raise InvalidInputError(
                f"standing must have a row for each of {n_documents} documents, with cells below "
                f"{n_cells or 0} and ages from 1 on"
            )
        return self

    def contents(self) -> Contents:
        """Return header and arrays for a file, packed; nothing where nothing is known.

        What stands on came to stand in one document, whose number is the same in every document:
        it takes less room than the age.
        """
        if not self.known.any():
            return Contents({}, {})
        onsets = self.entries.documents - self.entries.data.astype(np.int64)
        first = int(onsets.min(initial=0))
        packed, packing = replace(self.entries, data=onsets - first).packed()
        header = {"packing": packing, "n_cells": self.entries.n_words, "first": first}
        return Contents(
            {STANDING: header},
            {
                STANDING: packed,
                f"{STANDING}_indptr": self.entries.indptr,
                f"{STANDING}_known": self.known.astype(np.uint8),
            },
        )

    @classmethod
    def from_contents(cls, header: dict[str, Any] | None, tensors: Tensors) -> Self | None:
        """Return the words of a file; None where it has none."""
        if header is None or STANDING not in tensors:
            return None
        packed = tensors[STANDING], header["packing"], tensors[f"{STANDING}_indptr"]
        entries = SparseCounts.unpacked(*packed, header["n_cells"]).compact()
        ages = entries.documents - (entries.data + header["first"])
        return cls(replace(entries, data=ages), tensors[f"{STANDING}_known"] != 0)
