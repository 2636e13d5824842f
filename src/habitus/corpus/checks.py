"""Validation of what a corpus is made of: each value as an array, or an error that explains it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from habitus.errors import InvalidInputError
from habitus.schema import MOST_FRAMES


def checked_counts(counts: Any) -> sp.csr_array:
    """Return counts as a sparse matrix of float64 in canonical form, without stored zeros.

    Parameters
    ----------
    counts
        Documents x words, dense or sparse.

    Returns
    -------
    scipy.sparse.csr_array
        The same counts; the input is not changed.

    Raises
    ------
    InvalidInputError
        If they are not a matrix of finite, non-negative numbers.
    """
    try:
        # Entries that stand for the same count are summed as they are converted: in float64.
        wide = counts.astype(np.float64) if getattr(counts, "format", "") == "coo" else counts
        matrix = sp.csr_array(wide, dtype=np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"counts must be a documents x words matrix: {error}") from error
    if matrix.ndim != 2:
        raise InvalidInputError(f"counts must be documents x words, found {matrix.ndim} dimensions")
    data = matrix.data
    if not np.isfinite(data).all():
        found = "NaN" if np.isnan(data).any() else "inf"
        raise InvalidInputError(f"counts must be finite numbers, found {found}")
    if data.size and data.min() < 0:
        # scikit-learn's estimator checks look for the first words.
        raise InvalidInputError(
            f"Negative values in data: counts must be at least 0, found {data.min():.6g}"
        )
    if not matrix.has_canonical_format or (data == 0).any():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def checked_lengths(lengths: ArrayLike | None, n_documents: int) -> NDArray[np.int64]:
    """Return the lengths of sequences, checked; one sequence by default.

    Parameters
    ----------
    lengths
        Number of documents in each sequence, or None.
    n_documents
        Number of documents in all.

    Returns
    -------
    array of int
        At least 1 each, with the sum `n_documents`.

    Raises
    ------
    InvalidInputError
        If they are not.
    """
    if lengths is None:
        return np.array([n_documents] if n_documents else [], dtype=np.int64)
    found = np.atleast_1d(np.asarray(lengths))
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.number) or (found % 1 != 0).any():
        raise InvalidInputError(f"lengths must be a list of integers, found {lengths!r}")
    if (found < 1).any():
        raise InvalidInputError(f"each length must be at least 1, found {found.min()}")
    if found.sum() != n_documents:
        raise InvalidInputError(
            f"lengths must add up to the {n_documents} documents, found {found.sum()}"
        )
    return found.astype(np.int64)


def checked_times(times: ArrayLike | None, n_documents: int) -> NDArray[np.float64]:
    """Return one time per document."""
    if times is None:
        return np.arange(n_documents, dtype=np.float64)
    try:
        found = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if found.shape != (n_documents,) or not np.isfinite(found).all():
        raise InvalidInputError(
            f"times must be {n_documents} finite numbers, one per document, found an array of "
            f"shape {found.shape}"
        )
    return found


def checked_column(
    name: str, values: ArrayLike, n_documents: int, *, most: int = MOST_FRAMES
) -> NDArray[np.int64]:
    """Return one integer from 0 to `most` per document."""
    found = np.asarray(values)
    whole = np.issubdtype(found.dtype, np.number) and not (found % 1 != 0).any()
    if found.shape != (n_documents,) or not whole or (found < 0).any() or (found > most).any():
        raise InvalidInputError(
            f"{name} must be {n_documents} integers from 0 to {most}, one per document"
        )
    return found.astype(np.int64)


def checked_picture(picture: ArrayLike) -> NDArray[np.uint8]:
    """Return a colour picture."""
    found = np.asarray(picture)
    if found.dtype != np.uint8 or found.ndim != 3 or found.shape[2] != 3:
        raise InvalidInputError(
            f"picture must be height x width x 3 of uint8, found {found.dtype} of {found.shape}"
        )
    return found


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
