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
from habitus.normality.detector import Detector
from habitus.normality.filter import advance, tables_of
from habitus.normality.measures import mean


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
    """Of the documents to be judged."""

    normality: Array
    seconds: float
    """A document."""
    recall: Recall | None


def score(
    sets: Sequence[Parameters], footage: Footage, protocol: Protocol, truths: list[Truth]
) -> Scores:
    """Filter the training documents, then judge those after them by the paper's measure.

    Each set of parameters so goes on from its own belief about the last training document, as
    `Detector(start="continued")` does for one set.
    """
    evidence = gather(footage.corpus, min_words=protocol.min_words)
    tables = tables_of(sets)
    wanted = {truth.document for truth in truths}
    normality, surprises = np.zeros(footage.n_test), {}
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
            normality[t - footage.n_train] = mean(seen, counts, 0.0)
        if t in wanted:
            surprises[t] = seen.surprises
    seconds = (process_time() - began) / footage.n_test
    return Scores(normality, seconds, recall_of(truths, surprises, footage) if truths else None)


def score_by(detector: Detector, footage: Footage, truths: list[Truth]) -> Scores:
    """Judge the documents after the training ones by a detector that goes on from them."""
    wanted = {truth.document for truth in truths}
    normality, surprises = np.zeros(footage.n_test), {}
    began = process_time()
    for t, judgement in enumerate(detector.judge(footage.test)):
        normality[t] = judgement.normality
        if t + footage.n_train in wanted:
            surprises[t + footage.n_train] = judgement.surprises
    seconds = (process_time() - began) / footage.n_test
    return Scores(normality, seconds, recall_of(truths, surprises, footage) if truths else None)
