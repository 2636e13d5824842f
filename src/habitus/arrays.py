"""Array types that several parts share, and a sum."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real numbers: parameters, scores, times."""
Flags = NDArray[np.bool_]
"""One truth value per document, word or cell."""
Image = NDArray[np.uint8]
"""Pixels: rows x columns of brightness, or rows x columns x 3 of red, green and blue."""
Indices = NDArray[np.int64]
"""Whole numbers: behaviours, topics, positions, offsets."""
WordIds = NDArray[np.int32]
"""Word ids, each from 0 to the number of words of the vocabulary less one."""


def inner_product(one: Array, other: Array) -> float:
    """Return `one @ other` by one thread.

    BLAS has several add up some thousand numbers, which takes longer than adding them, keeps the
    other cores busy, and gives a result that depends on their number.
    """
    return float(np.einsum("i,i->", one, other))
