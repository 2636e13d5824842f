"""Scores of test documents, and the paper's localisation recall."""

from collections.abc import Sequence
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.evaluation.spatial_accuracy import LabelledWords, words_in_boxes
from habitus.lab.comparison.protocol import ComparisonProtocol, SplitFootage
from habitus.model.expected_counts import Evidence, gather
from habitus.model.online import filter_documents, filter_tables
from habitus.model.parameters import Parameters
from habitus.scene.detector import Detector
from habitus.scene.localisation import least_likely, localisation_recall, random_recall
from habitus.scene.measures import score_documents

N_TOP = tuple(range(1, 51))
"""Numbers of least likely words that localisation recall is computed for."""
SHARES = tuple(round(0.05 * i, 2) for i in range(1, 21))
"""Shares of the abnormal words of a document: recall is computed for as many words."""


class LocalisationRecall(NamedTuple):
    """The paper's localisation recall, mean over documents."""

    by_number: Array
    """Recall for each of N_TOP."""
    by_share: Array
    """Recall for each of SHARES."""


class MethodResult(NamedTuple):
    """Result of one run of one method."""

    normality: Array
    """Normality of each test document; 0 if it is too short to judge."""
    learning: float
    """Seconds of one core for learning; 0 until they are known."""
    deciding: float
    """Seconds of one core per test document."""
    recall: LocalisationRecall | None = None
    """None for a method without localisation, or without labelled boxes."""


def labelled_words(footage: SplitFootage, protocol: ComparisonProtocol) -> list[LabelledWords]:
    """Return the test documents, long enough to judge, with words in a labelled box."""
    judged = footage.long_enough(protocol)
    judged[: footage.n_train] = False
    return words_in_boxes(footage.corpus, footage.labels, judged)


def mean_recall(
    labelled: Sequence[LabelledWords], surprisals: Sequence[Array], footage: SplitFootage
) -> LocalisationRecall:
    """Return the localisation recall of the least likely words, mean over documents.

    `surprisals` are -ln p(word | x_{1:t-1}) of the words of each of the labelled documents.
    """
    counts = footage.corpus.counts
    by_number, by_share = [], []
    for (document, abnormal), surprisal in zip(labelled, surprisals, strict=True):
        here = slice(counts.indptr[document], counts.indptr[document + 1])
        ranked = abnormal[least_likely(surprisal, counts.data[here], len(abnormal))]
        by_number.append(localisation_recall(ranked, N_TOP))
        by_share.append(localisation_recall(ranked, numbers_of_shares(int(abnormal.sum()))))
    return LocalisationRecall(np.mean(by_number, axis=0), np.mean(by_share, axis=0))


def chance_recall(labelled: Sequence[LabelledWords]) -> LocalisationRecall:
    """Return the expected `mean_recall` of words in random order."""
    sizes = [(int(abnormal.sum()), len(abnormal)) for _, abnormal in labelled]
    by_number = [random_recall(*size, N_TOP) for size in sizes]
    by_share = [random_recall(*size, numbers_of_shares(size[0])) for size in sizes]
    return LocalisationRecall(np.mean(by_number, axis=0), np.mean(by_share, axis=0))


def numbers_of_shares(n_abnormal: int) -> NDArray[np.int64]:
    """Return SHARES of the number of abnormal words, rounded, at least 1."""
    return np.asarray(np.maximum(np.rint(np.array(SHARES) * n_abnormal), 1), dtype=np.int64)


def score_test(
    sets: Sequence[Parameters],
    footage: SplitFootage,
    protocol: ComparisonProtocol,
    labelled: Sequence[LabelledWords],
) -> MethodResult:
    """Score the test documents by the paper's measure, (1 / N) ln p(x_t | x_{1:t-1}), Eq. (38).

    One set of parameters is plug-in, several are samples of Monte Carlo. The filter of each runs
    through the training documents first, so that the test documents continue them.
    """
    tables = filter_tables(sets)
    training = gather(footage.train, min_words=protocol.min_words)
    log_opening = filter_documents(training, tables).log_next
    if footage.corpus.first[footage.n_train]:
        log_opening = tables.log_pi
    began = process_time()
    evidence = gather(footage.test, min_words=protocol.min_words)
    filtered = filter_documents(evidence, tables, log_opening)
    normality = score_documents("mean", evidence, filtered, 0.0)
    seconds = (process_time() - began) / footage.n_test
    recall = _recall(labelled, evidence, filtered.surprisals, footage)
    return MethodResult(normality, 0.0, seconds, recall)


def score_by_detector(
    detector: Detector, footage: SplitFootage, labelled: Sequence[LabelledWords]
) -> MethodResult:
    """Score the test documents by a detector that continues the training documents.

    Habits locate things by boxes, not by single words: they have no recall of words.
    """
    began = process_time()
    judged = detector.judge_all(footage.test)
    seconds = (process_time() - began) / footage.n_test
    recall = None
    if detector.habits is None:
        recall = _recall(labelled, judged.evidence, judged.filtered.surprisals, footage)
    return MethodResult(judged.normality, 0.0, seconds, recall)


def _recall(
    labelled: Sequence[LabelledWords], evidence: Evidence, surprisals: Array, footage: SplitFootage
) -> LocalisationRecall | None:
    """Return the recall of labelled documents, whose words are all evidence; None without any."""
    if not labelled:
        return None
    places = [words.document - footage.n_train for words in labelled]
    of_documents = [surprisals[evidence.indptr[t] : evidence.indptr[t + 1]] for t in places]
    return mean_recall(labelled, of_documents, footage)
