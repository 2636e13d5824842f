"""How well the least likely words of a document say where the abnormal is (the paper's recall).

Normality of the documents to be judged, by the on-line filter.

What a user would pick instead, on the same documents, under the same rule for short ones.

Each learns from the training documents that are long enough, and gives the normality of the
documents to be judged: the higher, the more usual.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from habitus.anomaly.detector import Detector
from habitus.anomaly.localisation import least_likely
from habitus.anomaly.measures import mean
from habitus.arrays import Array
from habitus.evaluation.labels import abnormal_words
from habitus.lab.comparison.protocol import Footage, Protocol
from habitus.model.expected_counts import gather
from habitus.model.messages import filter_forward
from habitus.model.online import filter_document, filter_tables
from habitus.model.parameters import Parameters

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
    tables = filter_tables(sets)
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
        seen = filter_document(log_predicted, evidence.words[here], counts, tables)
        log_predicted = seen.log_next
        if t >= footage.n_train and len(counts):
            normality[t - footage.n_train] = mean(
                seen.log_evidence, seen.n_tokens, counts, seen.surprisals, 0.0
            )
        if t in wanted:
            surprises[t] = seen.surprisals
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
            surprises[t + footage.n_train] = judgement.surprisals
    seconds = (process_time() - began) / footage.n_test
    return Scores(normality, seconds, recall_of(truths, surprises, footage) if truths else None)


N_COMPONENTS = 32
N_NEIGHBOURS = 5
SMOOTHING = 5e-6
"""Added to the HMM's probabilities, as the paper adds it to EM's: no word is impossible."""

Baseline = Callable[[Footage, Protocol, np.random.SeedSequence], Judged]


class _Parts:
    """Counts of the training documents that are long enough, and of all to be judged."""

    def __init__(self, footage: Footage, protocol: Protocol) -> None:
        counts, enough = footage.corpus.counts, footage.long_enough(protocol)
        is_train = np.arange(len(enough)) < footage.n_train
        self.train, self.test = counts[is_train & enough], counts[~is_train]
        self.judged = enough[~is_train]

    def judgement(self, normality: Array, began: float, learnt: float) -> Judged:
        """Short documents are not judged; times from the three moments."""
        seconds = (process_time() - learnt) / max(len(normality), 1)
        return Judged(np.where(self.judged, normality, 0.0), learnt - began, seconds)


def lda(footage: Footage, protocol: Protocol, seed: np.random.SeedSequence) -> Judged:
    """Latent Dirichlet allocation; a document's words under its own inferred mixture."""
    from sklearn.decomposition import LatentDirichletAllocation

    parts, began = _Parts(footage, protocol), process_time()
    model = LatentDirichletAllocation(
        protocol.n_topics, learning_method="batch", max_iter=protocol.lda_iterations,
        random_state=_whole(seed),
    ).fit(parts.train)  # fmt: skip
    learnt = process_time()
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    theta, n_tokens = model.transform(parts.test), parts.test.sum(axis=1)
    rows, words = parts.test.nonzero()
    probability = np.einsum("ik,ki->i", theta[rows], phi[:, words])
    total = np.bincount(rows, parts.test.data * np.log(probability), len(theta))
    return parts.judgement(total / np.maximum(n_tokens, 1), began, learnt)


def hmm(footage: Footage, protocol: Protocol, seed: np.random.SeedSequence) -> Judged:
    """A hidden Markov model of counts: (1 / N) ln p(x_t | x_{1:t-1}), as ours is scored.

    Documents too short to judge are learnt from as empty: they keep their place in time.
    """
    from hmmlearn.hmm import MultinomialHMM

    enough = footage.long_enough(protocol)
    counts = sp.diags_array(enough.astype(np.float64)) @ footage.corpus.counts
    began = process_time()
    with _quiet("hmmlearn"):
        model = MultinomialHMM(
            protocol.n_behaviours, n_iter=protocol.hmm_iterations, random_state=_whole(seed)
        ).fit(
            counts[: footage.n_train].toarray().astype(np.int64),
            footage.train.lengths,
        )
    learnt = process_time()
    emission, xi, pi = (
        _smoothed(block) for block in (model.emissionprob_, model.transmat_, model.startprob_)
    )
    filtered = filter_forward(
        np.asarray(counts @ np.log(emission.T)), footage.corpus.first, pi,
        np.ascontiguousarray(xi.T),
    )  # fmt: skip
    mean = filtered.log_evidence / np.maximum(counts.sum(axis=1), 1)
    return _Parts(footage, protocol).judgement(mean[footage.n_train :], began, learnt)


def forest(footage: Footage, protocol: Protocol, seed: np.random.SeedSequence) -> Judged:
    """An isolation forest on principal components of the square roots of word frequencies."""
    from sklearn.decomposition import PCA
    from sklearn.ensemble import IsolationForest

    parts, began = _Parts(footage, protocol), process_time()
    train = _roots(parts.train).toarray()
    components = PCA(min(N_COMPONENTS, *train.shape), svd_solver="full").fit(train)
    model = IsolationForest(n_estimators=protocol.n_trees, random_state=_whole(seed), n_jobs=1).fit(
        components.transform(train)
    )
    learnt = process_time()
    test = components.transform(_roots(parts.test).toarray())
    return parts.judgement(model.score_samples(test), began, learnt)


def neighbours(footage: Footage, protocol: Protocol, seed: np.random.SeedSequence) -> Judged:
    """Minus the mean Hellinger distance (times sqrt 2) to the nearest training documents."""
    from sklearn.neighbors import NearestNeighbors

    parts, began = _Parts(footage, protocol), process_time()
    n = min(N_NEIGHBOURS, parts.train.shape[0])
    model = NearestNeighbors(n_neighbors=n, algorithm="brute").fit(_roots(parts.train))
    learnt = process_time()
    distances, _ = model.kneighbors(_roots(parts.test))
    return parts.judgement(-distances.mean(axis=1), began, learnt)


def amount(footage: Footage, protocol: Protocol, seed: np.random.SeedSequence) -> Judged:
    """The more words, the more abnormal."""
    parts, now = _Parts(footage, protocol), process_time()
    return parts.judgement(-parts.test.sum(axis=1).astype(np.float64), now, now)


def odd_amount(footage: Footage, protocol: Protocol, seed: np.random.SeedSequence) -> Judged:
    """How far ln(1 + words) is from its median in training, either way."""
    parts, began = _Parts(footage, protocol), process_time()
    usual = np.median(np.log1p(parts.train.sum(axis=1)))
    learnt = process_time()
    return parts.judgement(-np.abs(np.log1p(parts.test.sum(axis=1)) - usual), began, learnt)


BASELINES: dict[str, Baseline] = {
    "lda": lda,
    "hmm": hmm,
    "forest": forest,
    "neighbours": neighbours,
    "amount": amount,
    "odd-amount": odd_amount,
}


def _roots(counts: sp.csr_array) -> sp.csr_array:
    """Square roots of word frequencies: Euclidean distance is Hellinger's, but for a factor."""
    frequencies = sp.diags_array(1 / np.maximum(counts.sum(axis=1), 1)) @ counts
    return sp.csr_array(frequencies).sqrt()


def _smoothed(block: Array) -> Array:
    """Rows that are distributions without a zero; a row of zeros becomes uniform."""
    added = np.nan_to_num(np.asarray(block, dtype=np.float64)) + SMOOTHING
    return np.asarray(added / added.sum(axis=-1, keepdims=True))


def _whole(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0])


@contextmanager
def _quiet(name: str) -> Iterator[Any]:
    """Keep a library from writing on the terminal."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield logger
    finally:
        logger.setLevel(before)
