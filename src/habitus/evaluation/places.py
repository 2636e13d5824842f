"""Which documents the labels call abnormal, and which of their words.

Whether the place that is shown is the place where it happened.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.detector import Detector
from habitus.anomaly.localisation import Box, least_likely, localisation_recall
from habitus.arrays import Array, Flags
from habitus.corpus.documents import Corpus
from habitus.evaluation.labels import Label
from habitus.evaluation.metrics import Stretch, match

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


N_TOPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300)
"""Numbers of least likely words that a place is told from."""
# Pixels from one place of a box to the next, when places are drawn by chance.
STRIDE = 4

Boxes = NDArray[np.int64]


class Localisation(NamedTuple):
    """How well the least likely words tell where: the paper's recall, mean over documents."""

    n_tops: tuple[int, ...]
    recall: Array
    """Abnormal words among the N_top least likely, over as many as could be: min(N_top, all)."""
    reach: Array
    """Share of all abnormal words that N_top words can hold."""
    chance: Array
    """The recall of words drawn at random from the document."""
    n_documents: int


class BoxHits(NamedTuple):
    """Found events with a labelled place, and those of which one of our boxes overlaps it."""

    n_events: int
    n_hits: int
    chance: float
    """Share that boxes of the same size at random places would hit."""


class Placed(Protocol):
    """An alarm with boxes, such as an Event."""

    @property
    def start(self) -> float: ...  # noqa: D102
    @property
    def end(self) -> float: ...  # noqa: D102
    @property
    def peak(self) -> float: ...  # noqa: D102
    @property
    def boxes(self) -> tuple[Box, ...]: ...  # noqa: D102


def localise(
    detector: Detector, corpus: Corpus, labels: Sequence[Label], abnormal: Flags
) -> Localisation | None:
    """Recall against N_top, over abnormal documents with abnormal words; None if there are none.

    An abnormal word is one the middle of whose cell lies in a labelled box while the label lasts.
    `detector` is as it was before the first document of the corpus.
    """
    inside, indptr = abnormal_words(corpus, places_of(labels)), corpus.counts.indptr
    if not inside.any():
        return None
    rows = []
    judgements = detector.judge(corpus)
    for t, (document, judgement) in enumerate(zip(corpus.bags(), judgements, strict=True)):
        here = inside[indptr[t] : indptr[t + 1]]
        if abnormal[t] and judgement.judged and here.any():
            words = np.asarray(document.words, dtype=np.int64)
            order = least_likely(judgement.surprisals, np.asarray(document.counts), len(words))
            rows.append([_recall(words[order], words[here], n_top) for n_top in N_TOPS])
    if not rows:
        return None
    recall, reach, chance = np.mean(rows, axis=0).T
    return Localisation(N_TOPS, recall, reach, chance, len(rows))


def _recall(
    ordered: NDArray[np.int64], truth: NDArray[np.int64], n_top: int
) -> tuple[float, float, float]:
    """Recall, reach and chance of one document."""
    possible = min(n_top, len(truth))
    drawn = min(n_top, len(ordered)) * len(truth) / len(ordered)
    recall = localisation_recall(ordered, truth, n_top)
    return recall, possible / len(truth), drawn / possible


def box_hits(
    alarms: Sequence[Placed], labels: Sequence[Label], clip: float, size: tuple[int, int] | None
) -> BoxHits | None:
    """Which found events were shown in the right place; None if no label tells where.

    The boxes are those of the first alarm that found the event, as an operator sees it.
    """
    if size is None:
        return None
    hits, chances = [], []
    for label, k in zip(labels, match(alarms, labels).found_by, strict=True):
        if k is None or label.box is None:
            continue
        at = alarms[k].peak
        truth = _array(label.places(at, at + clip) or [label.box])
        hits.append(bool(_meet(_array(alarms[k].boxes), truth).any()))
        chances.append(chance_of_a_hit(alarms[k].boxes, truth, size))
    if not hits:
        return None
    return BoxHits(len(hits), sum(hits), float(np.mean(chances)))


def chance_of_a_hit(boxes: Sequence[Box], truth: Boxes, size: tuple[int, int]) -> float:
    """Chance that one at least of these boxes, each at a random place, overlaps the truth."""
    missed = 1.0
    for box in boxes:
        width, height = box.right - box.left, box.bottom - box.top
        left, top = (
            np.arange(0, max(whole - part, 0) + 1, STRIDE)
            for whole, part in zip(size, (width, height), strict=True)
        )
        x, y = (grid.reshape(-1) for grid in np.meshgrid(left, top))
        moved = np.stack([x, y, x + width, y + height], axis=1)
        missed *= 1 - float(_meet(moved, truth).any(axis=1).mean())
    return 1 - missed


def _array(boxes: Sequence[Box]) -> Boxes:
    return np.array(boxes, dtype=np.int64).reshape(-1, 4)


def _meet(one: Boxes, other: Boxes) -> Flags:
    """Whether each box of one overlaps each of the other."""
    a, b = one[:, None], other[None]
    below = np.minimum(a[..., 2:], b[..., 2:]) > np.maximum(a[..., :2], b[..., :2])
    return np.asarray(below.all(axis=-1))
