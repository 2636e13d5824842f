"""Which documents the labels call abnormal, and which of their words."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.evaluation.labels.label import Label
from habitus.evaluation.matching import Stretch
from habitus.model.parameters import Array
from habitus.normality.localisation import Box

# Share of a document that labels must cover; a label too short for that marks the document that
# its middle lies in, so that none is lost.
COVERED = 0.5
# Seconds that a sighting stands for: it marks the document that it lies in.
MOMENT = 1e-3


class Place(NamedTuple):
    """Where something abnormal is while it is."""

    start: float
    end: float
    box: Box


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


def places_of(labels: Iterable[Label]) -> list[Place]:
    """Where labels are: moment by moment if that is known, else in their box all the time."""
    places: list[Place] = []
    for label in labels:
        if label.track:
            places += (Place(seen.time, seen.time + MOMENT, seen.box) for seen in label.track)
        elif label.box:
            places.append(Place(label.start, label.end, label.box))
    return places


def abnormal_words(corpus: Corpus, places: Sequence[Place]) -> NDArray[np.bool_]:
    """Words of documents the middle of whose cell lies in a place, in documents of its time.

    One flag for each entry of `corpus.counts`, in its order; a place's documents are those that it
    alone would make abnormal. None is abnormal where the corpus does not say what its words mean.
    """
    counts, inside = corpus.counts, np.zeros(corpus.counts.nnz, dtype=np.bool_)
    if corpus.vocabulary is None:
        return inside
    boxes = corpus.vocabulary.boxes(counts.indices)
    middle_x, middle_y = boxes[:, ::2].mean(axis=1), boxes[:, 1::2].mean(axis=1)
    for place in places:
        left, top, right, bottom = place.box
        for t in np.flatnonzero(abnormal_documents([place], corpus.times, corpus.clip)):
            here = slice(counts.indptr[t], counts.indptr[t + 1])
            x, y = middle_x[here], middle_y[here]
            inside[here] |= (left <= x) & (x < right) & (top <= y) & (y < bottom)
    return inside
