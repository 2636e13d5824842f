"""Whether the place that is shown is the place where it happened."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.evaluation.labels.label import Label
from habitus.evaluation.matching import match
from habitus.evaluation.scored import Flags
from habitus.evaluation.truth import abnormal_words, places_of
from habitus.model.parameters import Array
from habitus.normality import Detector
from habitus.normality.detector import bags
from habitus.normality.localisation import Box, least_likely, localisation_recall

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
    for t, (document, judgement) in enumerate(zip(bags(corpus), judgements, strict=True)):
        here = inside[indptr[t] : indptr[t + 1]]
        if abnormal[t] and judgement.judged and here.any():
            words = np.asarray(document.words, dtype=np.int64)
            order = least_likely(judgement.surprises, np.asarray(document.counts), len(words))
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
