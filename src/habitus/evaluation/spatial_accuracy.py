"""Spatial accuracy: whether the least likely words and the boxes of events lie where labels do."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags
from habitus.corpus.documents import Corpus
from habitus.evaluation.labels import Label, abnormal_places, abnormal_words
from habitus.evaluation.matching import match
from habitus.scene.events import Event
from habitus.scene.localisation import Box, least_likely, localisation_recall, random_recall

N_TOPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300)
"""Numbers of least likely words that localisation recall is computed for."""
# Pixels between the random places of a box that the chance of a hit is computed from.
STRIDE = 4

Boxes = NDArray[np.int64]


class Localisation(NamedTuple):
    """The paper's localisation recall against N_top, mean over documents."""

    n_tops: tuple[int, ...]
    recall: Array
    """Abnormal words among the N_top least likely ones, over min(N_top, abnormal words)."""
    reach: Array
    """Largest share of all abnormal words that N_top words can hold."""
    chance: Array
    """Expected recall of words in random order."""
    n_documents: int


class BoxHits(NamedTuple):
    """Found events with a labelled box, and those with a detected box that overlaps it."""

    n_events: int
    n_hits: int
    chance: float
    """Expected share of hits of boxes of the same sizes at random places."""


class LabelledWords(NamedTuple):
    """A document with words in a labelled box."""

    document: int
    """Its number."""
    abnormal: Flags
    """Whether each of its distinct words lies in the box."""


def words_in_boxes(
    corpus: Corpus, labels: Sequence[Label], documents: Flags
) -> list[LabelledWords]:
    """Return those of the documents that count which have words in a labelled box."""
    indptr, inside = corpus.entries.indptr, abnormal_words(corpus, abnormal_places(labels))
    words = ((t, inside[indptr[t] : indptr[t + 1]]) for t in np.flatnonzero(documents).tolist())
    return [LabelledWords(t, abnormal) for t, abnormal in words if abnormal.any()]


def localise(
    corpus: Corpus, surprisals: Array, documents: Flags, labels: Sequence[Label]
) -> Localisation | None:
    """Return localisation recall against N_top, mean over the documents that count.

    `surprisals` are -ln p(word | x_{1:t-1}), one per entry of `corpus.entries`. A word is abnormal
    if the centre of its cell lies in a labelled box while the label lasts. None if no document that
    counts has an abnormal word.
    """
    counts, rows = corpus.entries, []
    for t, abnormal in words_in_boxes(corpus, labels, documents):
        here = slice(counts.indptr[t], counts.indptr[t + 1])
        n_abnormal, n_words = int(abnormal.sum()), len(abnormal)
        order = least_likely(surprisals[here], counts.data[here], n_words)
        recall = localisation_recall(abnormal[order], N_TOPS)
        reach = np.minimum(N_TOPS, n_abnormal) / n_abnormal
        rows.append([recall, reach, random_recall(n_abnormal, n_words, N_TOPS)])
    if not rows:
        return None
    recall, reach, chance = np.mean(rows, axis=0)
    return Localisation(N_TOPS, recall, reach, chance, len(rows))


def box_hits(
    events: Sequence[Event],
    labels: Sequence[Label],
    clip: float,
    size: tuple[int, int] | None,
) -> BoxHits | None:
    """Count the found events of which a detected box overlaps the labelled one.

    The boxes compared are those of the first event that finds a label; labels without a box do not
    count. None if no found event has a labelled box, or the size of the frame is not known.
    """
    if size is None:
        return None
    hits, chances = [], []
    for label, k in zip(labels, match(events, labels).found_by, strict=True):
        if k is None or label.box is None:
            continue
        time = events[k].peak
        labelled = _as_array(label.boxes(time, time + clip) or [label.box])
        left, top, right, bottom = _as_array(events[k].boxes).T
        meets = _meets(left, right, labelled[:, ::2]) & _meets(top, bottom, labelled[:, 1::2])
        hits.append(bool(meets.any()))
        chances.append(chance_of_hit(events[k].boxes, labelled, size))
    if not hits:
        return None
    return BoxHits(len(hits), sum(hits), float(np.mean(chances)))


def chance_of_hit(boxes: Sequence[Box], labelled: Boxes, size: tuple[int, int]) -> float:
    """Return the probability that a box, each at a random place, overlaps a labelled one."""
    missed = 1.0
    for box in boxes:
        width, height = box.right - box.left, box.bottom - box.top
        left, top = (
            np.arange(0, max(whole - part, 0) + 1, STRIDE)
            for whole, part in zip(size, (width, height), strict=True)
        )
        across = _meets(left, left + width, labelled[:, ::2])
        down = _meets(top, top + height, labelled[:, 1::2])
        if len(labelled) == 1:
            missed *= 1 - float(across.mean() * down.mean())
        else:
            missed *= 1 - float((across[:, None] & down).any(axis=-1).mean())
    return 1 - missed


def _meets(starts: Boxes, ends: Boxes, labelled: Boxes) -> Flags:
    """Return whether each interval overlaps each side of labelled boxes: intervals x boxes."""
    meets = np.minimum(ends[:, None], labelled[:, 1]) > np.maximum(starts[:, None], labelled[:, 0])
    return np.asarray(meets)


def _as_array(boxes: Sequence[Box]) -> Boxes:
    return np.array(boxes, dtype=np.int64).reshape(-1, 4)
