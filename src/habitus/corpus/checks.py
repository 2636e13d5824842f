"""Validation of what a corpus is made of: each value as an array, or an error that explains it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Image
from habitus.corpus.clocks import LAST_MINUTE, NO_CLOCK
from habitus.corpus.looks import GRID, MOST_LOOKS, look_of
from habitus.corpus.sparse import SparseCounts
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError
from habitus.schema import MOST_FRAMES, MOST_PIXELS


def checked_counts(counts: Any) -> SparseCounts:
    """Return counts of float64 in canonical form, without stored zeros; the input is not changed.

    `counts` are documents x words: dense, a matrix of `scipy.sparse`, or `SparseCounts`.
    """
    entries = counts if isinstance(counts, SparseCounts) else _sparse(counts)
    _check_structure(entries, entries.n_documents, entries.n_words)
    used = slice(entries.indptr[-1])
    data = entries.data[used].astype(np.float64, copy=False)
    if not np.isfinite(data).all():
        kind = "NaN" if np.isnan(data).any() else "inf"
        raise InvalidInputError(f"counts must be finite numbers, found {kind}")
    if data.size and data.min() < 0:
        # scikit-learn's estimator checks look for the first words.
        raise InvalidInputError(
            f"Negative values in data: counts must be at least 0, found {data.min():.6g}"
        )
    return replace(entries, data=data, indices=entries.indices[used]).canonical().compact()


def _sparse(counts: Any) -> SparseCounts:
    """Return a dense or sparse matrix as `SparseCounts`."""
    if getattr(counts, "format", "") in ("csr", "csc", "bsr") and counts.ndim == 2:
        sides = np.array(counts.shape) // getattr(counts, "blocksize", (1, 1))
        _check_structure(counts, *(sides[::-1] if counts.format == "csc" else sides))
    sparse = hasattr(counts, "tocsr")
    try:
        # Entries that stand for the same count are summed as they are converted: in float64.
        matrix: Any = (
            counts.astype(np.float64, copy=False).tocsr()
            if sparse
            else np.asarray(counts, dtype=np.float64)
        )
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"counts must be a documents x words matrix: {error}") from error
    if matrix.ndim != 2:
        raise InvalidInputError(f"counts must be documents x words, found {matrix.ndim} dimensions")
    if not sparse:
        return SparseCounts.of_dense(matrix)
    return SparseCounts(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])


def _check_structure(counts: Any, n_lists: int, n_indices: int) -> None:
    """Raise unless the indices of compressed rows, columns or blocks lie within their matrix.

    Neither SciPy, as it converts one to another, nor a kernel looks at them again.
    """
    indptr, indices = np.asarray(counts.indptr), np.asarray(counts.indices)
    if {indptr.dtype.kind, indices.dtype.kind} - {"i", "u"}:
        raise InvalidInputError(
            f"indices and indptr of counts must be integers, found {indices.dtype} and "
            f"{indptr.dtype}"
        )
    steps = np.diff(indptr.astype(np.int64))
    if not indptr.size or indptr.shape != (n_lists + 1,) or indptr[0] != 0 or (steps < 0).any():
        raise InvalidInputError(
            f"indptr of counts must be {n_lists + 1} integers that start with 0 and never fall, "
            f"found {indptr.size} from {indptr.min(initial=0)} to {indptr.max(initial=0)}"
        )
    n_entries = indptr[-1]
    if indices.ndim != 1 or len(counts.data) != len(indices) or len(indices) < n_entries:
        raise InvalidInputError(
            f"counts must have {n_entries} entries, as indptr says, found {indices.size} indices "
            f"and {len(counts.data)} values"
        )
    used = indices[:n_entries]
    if used.size and (used.min() < 0 or used.max() >= n_indices):
        raise InvalidInputError(
            f"indices of counts must run from 0 to {n_indices - 1}, found {used.min()} to "
            f"{used.max()}"
        )


def checked_lengths(lengths: ArrayLike | None, n_documents: int) -> NDArray[np.int64]:
    """Return the lengths of sequences, at least 1 each and `n_documents` in all; one by default."""
    if lengths is None:
        return np.array([n_documents] if n_documents else [], dtype=np.int64)
    values = np.atleast_1d(np.asarray(lengths))
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.number) or (values % 1 != 0).any():
        raise InvalidInputError(f"lengths must be a list of integers, found {lengths!r}")
    if (values < 1).any():
        raise InvalidInputError(f"each length must be at least 1, found {values.min()}")
    if values.sum() != n_documents:
        raise InvalidInputError(
            f"lengths must add up to the {n_documents} documents, found {values.sum()}"
        )
    return values.astype(np.int64)


def checked_times(times: ArrayLike | None, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return one time per document; within a sequence of these lengths they do not fall."""
    n_documents = int(lengths.sum())
    if times is None:
        return np.arange(n_documents, dtype=np.float64)
    try:
        values = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.shape != (n_documents,) or not np.isfinite(values).all():
        raise InvalidInputError(
            f"times must be {n_documents} finite numbers, one per document, found an array of "
            f"shape {values.shape}"
        )
    falls = np.diff(values) < 0
    falls[np.cumsum(lengths)[:-1] - 1] = False
    if falls.any():
        k = int(falls.argmax())
        raise InvalidInputError(
            f"times must not fall within a sequence, found {values[k + 1]:g} after {values[k]:g} s"
        )
    return values


def checked_column(
    name: str, values: ArrayLike, n_documents: int, *, most: int = MOST_FRAMES
) -> NDArray[np.int64]:
    """Return one integer from 0 to `most` per document."""
    column = np.asarray(values)
    whole = np.issubdtype(column.dtype, np.number) and not (column % 1 != 0).any()
    if column.shape != (n_documents,) or not whole or (column < 0).any() or (column > most).any():
        raise InvalidInputError(
            f"{name} must be {n_documents} integers from 0 to {most}, one per document"
        )
    return column.astype(np.int64)


def checked_clocks(clocks: ArrayLike | None, n_documents: int) -> NDArray[np.int32]:
    """Return one minute per document, -1 where nobody knows it: by default everywhere."""
    if clocks is None:
        return np.full(n_documents, NO_CLOCK, dtype=np.int32)
    minutes = np.asarray(clocks)
    whole = np.issubdtype(minutes.dtype, np.integer) or not minutes.size
    within = whole and (minutes >= NO_CLOCK).all() and (minutes <= LAST_MINUTE).all()
    if minutes.shape != (n_documents,) or not within:
        raise InvalidInputError(
            f"clocks must be {n_documents} integers from -1 to {LAST_MINUTE}, one per document: "
            "local minutes since the beginning of 1970"
        )
    return minutes.astype(np.int32)


def picture_sizes(vocabulary: Vocabulary | None) -> dict[str, range]:
    """Return the heights and widths that a picture may have, those of the frame, and of looks."""
    largest = (MOST_PIXELS,) * 2 if vocabulary is None else (vocabulary.height, vocabulary.width)
    sizes = zip(("height", "width", "looks"), (*largest, MOST_LOOKS), strict=True)
    return {side: range(1, n + 1) for side, n in sizes}


def checked_picture(picture: ArrayLike, vocabulary: Vocabulary | None) -> NDArray[np.uint8]:
    """Return a colour picture that is not larger than the frame."""
    pixels = np.asarray(picture)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise InvalidInputError(
            f"picture must be height x width x 3 of uint8, found {pixels.dtype} of {pixels.shape}"
        )
    sizes = picture_sizes(vocabulary)
    for n, side in zip(pixels.shape, ("height", "width"), strict=False):
        allowed = sizes[side]
        if n not in allowed:
            raise InvalidInputError(
                f"picture must have a {side} of 1 to {allowed[-1]} pixels, found {n}"
            )
    return pixels


def checked_looks(looks: ArrayLike | None, picture: Image | None) -> NDArray[np.uint8]:
    """Return the looks of a scene; by default its picture is the only one."""
    if looks is None:
        return np.array([] if picture is None else [look_of(picture)], np.uint8).reshape(-1, *GRID)
    stack = np.asarray(looks)
    if stack.dtype != np.uint8 or stack.shape[1:] != GRID or len(stack) > MOST_LOOKS:
        raise InvalidInputError(
            f"looks must be at most {MOST_LOOKS} x {GRID[0]} x {GRID[1]} of uint8, found "
            f"{stack.dtype} of {stack.shape}"
        )
    return stack


def checked_ids(ids: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the word ids of one document."""
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInputError(
            f"a document must be a list of word ids (integers), found {array.dtype} values "
            f"of shape {array.shape}"
        )
    return array.astype(np.int64)
