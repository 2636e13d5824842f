"""How well the least likely words of a document say where the abnormal is (the paper's recall)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.evaluation.comparison.footage import Footage
from habitus.evaluation.comparison.protocol import Protocol
from habitus.evaluation.truth import abnormal_words
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
    counts, enough = footage.corpus.counts, footage.long_enough(protocol)
    inside = abnormal_words(footage.corpus, footage.places)
    found = []
    for document in range(footage.n_train, len(footage.corpus)):
        abnormal = inside[counts.indptr[document] : counts.indptr[document + 1]]
        if enough[document] and abnormal.any():
            found.append(Truth(document, abnormal))
    return found


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
