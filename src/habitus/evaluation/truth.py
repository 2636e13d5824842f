"""Which documents the labels call abnormal."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from habitus.evaluation.matching import Stretch
from habitus.model.parameters import Array

# Share of a document that labels must cover; a label too short for that marks the document that
# its middle lies in, so that none is lost.
COVERED = 0.5


def abnormal_documents(labels: Sequence[Stretch], times: Array, clip: float) -> NDArray[np.bool_]:
    """Documents of which labels cover at least half, or that hold the middle of a short label.

    `times` are the starts of the documents in seconds, `clip` the length of each.
    """
    covered = np.zeros(len(times))
    abnormal = np.zeros(len(times), dtype=np.bool_)
    for start, end in _united(labels):
        covered += np.clip(np.minimum(end, times + clip) - np.maximum(start, times), 0, None)
    for label in labels:
        middle = (label.start + label.end) / 2
        abnormal |= (times <= middle) & (middle < times + clip) & (label.end - label.start < clip)
    return abnormal | (covered >= COVERED * clip * (1 - 1e-9))


def _united(labels: Sequence[Stretch]) -> list[tuple[float, float]]:
    """Intervals that do not overlap, of ones that may."""
    united: list[tuple[float, float]] = []
    for start, end in sorted((label.start, label.end) for label in labels):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united
