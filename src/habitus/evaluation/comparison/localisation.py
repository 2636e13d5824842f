"""How well the least likely words of a document say where the abnormal is (the paper's recall)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.evaluation.comparison.footage import Footage, Place
from habitus.evaluation.comparison.protocol import Protocol
from habitus.evaluation.truth import abnormal_documents
from habitus.model.parameters import Array
from habitus.normality.localisation import least_likely

N_TOP = tuple(range(1, 51))
SHARES = tuple(round(0.05 * i, 2) for i in range(1, 21))
"""Of the abnormal words of a document: as many words as that are looked at."""


class Truth(NamedTuple):
    """A document of which it is known where the abnormal is."""

    document: int
    """Its number, training included."""
    abnormal: NDArray[np.bool_]
    """Whether each of its distinct words lies there."""


class Recall(NamedTuple):
    """Mean over documents: hits among the words looked at, over as many as could be hit."""

    by_number: Array
    """For each of N_TOP."""
    by_share: Array
    """For each of SHARES."""


def truths_of(footage: Footage, protocol: Protocol) -> list[Truth]:
    """Documents to be judged, with words in a labelled box: those are the abnormal words."""
    corpus, vocabulary = footage.corpus, footage.corpus.vocabulary
    if vocabulary is None:
        return []
    enough, inside = footage.long_enough(protocol), np.zeros(corpus.counts.nnz, dtype=np.bool_)
    boxes = vocabulary.boxes(corpus.counts.indices)
    middle_x, middle_y = boxes[:, ::2].mean(axis=1), boxes[:, 1::2].mean(axis=1)
    for place in footage.places:
        left, top, right, bottom = place.box
        for t in np.flatnonzero(_during(place, corpus)):
            here = slice(corpus.counts.indptr[t], corpus.counts.indptr[t + 1])
            x, y = middle_x[here], middle_y[here]
            inside[here] |= (left <= x) & (x < right) & (top <= y) & (y < bottom)
    found = []
    for document in range(footage.n_train, len(corpus)):
        abnormal = inside[corpus.counts.indptr[document] : corpus.counts.indptr[document + 1]]
        if enough[document] and abnormal.any():
            found.append(Truth(document, abnormal))
    return found


def _during(place: Place, corpus: Corpus) -> NDArray[np.bool_]:
    return abnormal_documents([place], corpus.times, corpus.clip)


def recall_of(truths: list[Truth], surprises: dict[int, Array], footage: Footage) -> Recall:
    """Recall of the words that surprise most, given the surprises of each document's words."""
    counts = footage.corpus.counts
    by_number, by_share = [], []
    for document, abnormal in truths:
        here = slice(counts.indptr[document], counts.indptr[document + 1])
        order = least_likely(surprises[document], counts.data[here], len(abnormal))
        by_number.append(_recalls(abnormal[order], np.array(N_TOP)))
        by_share.append(_recalls(abnormal[order], looked_at(abnormal.sum())))
    return Recall(np.mean(by_number, axis=0), np.mean(by_share, axis=0))


def looked_at(n_abnormal: int) -> NDArray[np.int64]:
    """Words to look at so that SHARES of the abnormal ones could be found."""
    found: NDArray[np.int64] = np.maximum(np.rint(np.array(SHARES) * n_abnormal), 1).astype(int)
    return found


def chance_of(truths: list[Truth]) -> Recall:
    """What words in any order would give, in expectation."""
    by_number: list[Array] = []
    by_share: list[Array] = []
    for _, abnormal in truths:
        for n_top, found in ((np.array(N_TOP), by_number),
                             (looked_at(abnormal.sum()), by_share)):  # fmt: skip
            seen = np.minimum(n_top, len(abnormal))
            found.append(seen * abnormal.mean() / np.minimum(n_top, abnormal.sum()))
    return Recall(np.mean(by_number, axis=0), np.mean(by_share, axis=0))


def _recalls(hit: NDArray[np.bool_], n_top: NDArray[np.int64]) -> Array:
    """The paper's: hits among the first `n_top` over min(n_top, abnormal words)."""
    hits = np.cumsum(hit)
    return np.asarray(hits[np.minimum(n_top, len(hit)) - 1] / np.minimum(n_top, hits[-1]))
