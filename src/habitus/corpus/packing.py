"""Whole numbers packed: steps of word ids and counts, byte by byte, compressed.

Bytes of one significance stand together, as they are alike: fine words take a small part of what
their arrays take (benchmarks/storage.py).
"""

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.errors import FileError

LEVEL = 3
"""How hard zlib tries: the next levels take longer than they save."""
WIDEST = 7
"""Bytes of a number, at most: whole numbers are exact up to 2^53."""


class PackedCounts(NamedTuple):
    """Words and counts of documents, packed."""

    contents: NDArray[np.uint8]
    step_bytes: int
    """Bytes of each step from one word to the next."""
    count_bytes: int
    """Bytes of each count."""


def pack_counts(
    words: NDArray[np.integer[Any]], counts: NDArray[Any], indptr: NDArray[np.integer[Any]]
) -> PackedCounts:
    """Return the words of documents, ascending in each, and their counts, packed.

    They are those of a matrix of documents x words in compressed rows; counts are whole and not
    negative.

    Examples
    --------
    >>> packed = pack_counts(np.array([3, 700, 5]), np.array([1.0, 2.0, 1.0]), np.array([0, 2, 3]))
    >>> unpack_counts(packed, np.array([0, 2, 3]))
    (array([  3, 700,   5]), array([1., 2., 1.]))
    """
    steps = words.astype(np.int64)
    steps[1:] -= words[:-1]
    firsts = indptr[:-1][np.diff(indptr) > 0]
    steps[firsts] = words[firsts]
    whole = counts.astype(np.int64)
    widths = _width(steps), _width(whole)
    plain = b"".join([*_planes(steps, widths[0]), *_planes(whole, widths[1])])
    return PackedCounts(np.frombuffer(zlib.compress(plain, LEVEL), np.uint8), *widths)


def unpack_counts(
    packed: PackedCounts, indptr: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the words and counts that `pack_counts` packed of documents of these sizes."""
    n, widths = int(indptr[-1]), (packed.step_bytes, packed.count_bytes)
    size, reader = n * sum(widths), zlib.decompressobj()
    try:
        plain = reader.decompress(packed.contents.tobytes(), size + 1)
    except zlib.error as error:
        raise FileError(f"the array packed cannot be unpacked: {error}") from error
    if len(plain) != size or not reader.eof:
        raise FileError(f"the array packed must hold {size} bytes, found others")
    planes = np.frombuffer(plain, np.uint8).reshape(sum(widths), n)
    steps, counts = _whole(planes[: widths[0]]), _whole(planes[widths[0] :])
    sums = np.cumsum(steps)
    sizes = np.diff(indptr)
    before = np.concatenate([[0], sums])[indptr[:-1]]
    return sums - np.repeat(before, sizes), counts.astype(np.float64)


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
