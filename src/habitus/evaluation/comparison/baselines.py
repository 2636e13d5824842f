"""What a user would pick instead, on the same documents, under the same rule for short ones.

Each learns from the training documents that are long enough, and gives the normality of the
documents to be judged: the higher, the more usual.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from habitus.evaluation.comparison.footage import Footage
from habitus.evaluation.comparison.protocol import Protocol
from habitus.evaluation.comparison.scoring import Judged
from habitus.model.messages import filter_forward
from habitus.model.parameters import Array

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
