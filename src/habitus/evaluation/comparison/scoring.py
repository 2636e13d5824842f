"""Normality of the documents to be judged, by the on-line filter."""

from collections.abc import Sequence
from time import process_time
from typing import NamedTuple

import numpy as np

from habitus.evaluation.comparison.footage import Footage
from habitus.evaluation.comparison.localisation import Recall, Truth, recall_of
from habitus.evaluation.comparison.protocol import Protocol
from habitus.model.evidence import gather
from habitus.model.parameters import Array, Parameters
from habitus.normality.filter import advance, tables_of
from habitus.normality.measures import MEASURES, Scale
from habitus.normality.novelty import Novelty


class Judged(NamedTuple):
    """What one run of one method says."""

    normality: Array
    """Of each document to be judged; 0 where it is too short."""
    learning: float
    """Seconds of one core that learning took."""
    deciding: float
    """Seconds of one core a document."""
    recall: Recall | None = None
    """Of localisation, where the method says where, and boxes are labelled."""


class Scores(NamedTuple):
    """Of the documents to be judged, by each measure."""

    normality: dict[str, Array]
    seconds: float
    """A document."""
    recall: Recall | None


def score(
    sets: Sequence[Parameters],
    footage: Footage,
    protocol: Protocol,
    truths: list[Truth],
    *,
    measures: Sequence[str] = ("mean",),
    novelty: Novelty | None = None,
    scale: Scale | None = None,
) -> Scores:
    """Filter the training documents, then judge those after them.

    Each set of parameters so goes on from its own belief about the last training document, as
    `Detector(start="continued")` does for one set.
    """
    evidence = gather(footage.corpus, min_words=protocol.min_words)
    tables, scale = tables_of(sets, novelty), scale or Scale()
    wanted = {truth.document for truth in truths}
    scores, surprises = {name: np.zeros(footage.n_test) for name in measures}, {}
    log_predicted, began = tables.log_pi, 0.0
    for t in range(evidence.n_documents):
        if t == footage.n_train:
            began = process_time()
        if evidence.first[t]:
            log_predicted = tables.log_pi
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        counts = evidence.counts[here]
        seen = advance(log_predicted, evidence.words[here], counts, tables)
        log_predicted = seen.log_next
        if t >= footage.n_train and len(counts):
            for name in measures:
                scores[name][t - footage.n_train] = MEASURES[name](seen, counts, scale)
        if t in wanted:
            surprises[t] = seen.surprises
    seconds = (process_time() - began) / footage.n_test
    return Scores(scores, seconds, recall_of(truths, surprises, footage) if truths else None)
