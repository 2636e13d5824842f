"""Where a document is unusual: its least likely words, and boxes around them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.model.parameters import Array
from habitus.words import Vocabulary

# Cells at most this far apart, in cells, belong to one box: a vehicle's windows are still.
REACH = 2
# Boxes of a document, at most, and the share of the strongest's surprise that others need.
MOST_BOXES, WORTH = 3, 0.25


class Box(NamedTuple):
    """A part of the camera's frame, in its pixels."""

    left: int
    top: int
    right: int
    bottom: int


def least_likely(surprises: Array, counts: Array, n_top: int) -> NDArray[np.int64]:
    """Places of the `n_top` most surprising words, most surprising first.

    Words that training never showed surprise alike: of those, the one seen more often comes first.
    """
    return np.lexsort((-counts, -surprises))[:n_top]


def localisation_recall(found: ArrayLike, abnormal: ArrayLike, n_top: int) -> float:
    """The paper's: hits among the `n_top` found words over min(n_top, abnormal words)."""
    truth = np.unique(np.asarray(abnormal))
    possible = min(n_top, len(truth))
    hits = np.isin(np.asarray(found)[:n_top], truth).sum()
    return float(hits / possible) if possible else 1.0


def groups_of(cells: NDArray[np.int64], columns: int, reach: int = REACH) -> list[list[int]]:
    """Places of cells that hang together, each at most `reach` from another of its group."""
    rows, places = cells // columns, cells % columns
    left = list(range(len(cells)))
    groups = []
    while left:
        group, fresh = [], [left.pop(0)]
        while fresh:
            here = fresh.pop()
            group.append(here)
            near = [
                k for k in left
                if max(abs(rows[k] - rows[here]), abs(places[k] - places[here])) <= reach
            ]  # fmt: skip
            left = [k for k in left if k not in near]
            fresh += near
        groups.append(sorted(group))
    return groups


def boxes_of(words: NDArray[np.integer], weights: Array, vocabulary: Vocabulary) -> list[Box]:
    """One or a few boxes around the given words, the heaviest first."""
    cells = np.asarray(words, dtype=np.int64) // vocabulary.per_cell
    groups = groups_of(cells, vocabulary.columns)
    heavy = sorted(groups, key=lambda group: -weights[group].sum())[:MOST_BOXES]
    enough = WORTH * max((weights[group].sum() for group in heavy), default=0.0)
    boxes = vocabulary.boxes(words)
    return [
        Box(*map(int, (*boxes[group, :2].min(axis=0), *boxes[group, 2:].max(axis=0))))
        for group in heavy
        if weights[group].sum() >= enough
    ]
