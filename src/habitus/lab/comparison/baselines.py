"""Baselines that a user could choose instead, on the same documents.

Each learns from the training documents that are long enough, and returns the normality of the test
documents: the higher, the more normal. Each has the words and features in which it was best over
the development footage: see docs/results/real.md.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from habitus.arrays import Array
from habitus.lab.comparison.protocol import ComparisonProtocol, SplitFootage
from habitus.lab.comparison.scoring import MethodResult
from habitus.model.messages import filter_forward

N_NEIGHBOURS = 5
AMOUNT_WEIGHT = 0.3
"""Weight of ln(1 + words) beside square roots of frequencies, for nearest neighbours."""
SMOOTHING = 5e-6
"""Added to the probabilities of the HMM, as the paper does for EM: no word is impossible."""

Baseline = Callable[[SplitFootage, ComparisonProtocol, np.random.SeedSequence], MethodResult]


class _TrainTest:
    """Counts of the training documents that are long enough, and of all test documents."""

    def __init__(self, footage: SplitFootage, protocol: ComparisonProtocol) -> None:
        counts, enough = footage.corpus.counts, footage.long_enough(protocol)
        self.vocabulary = footage.corpus.vocabulary
        is_train = np.arange(len(enough)) < footage.n_train
        self.train, self.test = counts[is_train & enough], counts[~is_train]
        self.judged = enough[~is_train]

    def moves(self, counts: sp.csr_array) -> Array:
        """Return how often each direction and speed occurs, wherever; words without a place."""
        v = self.vocabulary
        if v is None:
            return np.asarray(counts.toarray(), dtype=np.float64)
        shape = (counts.shape[1], v.per_cell)
        words = np.arange(shape[0])
        move = sp.csr_array((np.ones(shape[0]), (words, v.moves(words))), shape=shape)
        return np.asarray((counts @ move).toarray(), dtype=np.float64)

    def result(self, normality: Array, began: float, learnt: float) -> MethodResult:
        """Return the result; short documents are not judged."""
        seconds = (process_time() - learnt) / max(len(normality), 1)
        return MethodResult(np.where(self.judged, normality, 0.0), learnt - began, seconds)


def lda(
    footage: SplitFootage, protocol: ComparisonProtocol, seed: np.random.SeedSequence
) -> MethodResult:
    """Return the mean log-probability of a word under latent Dirichlet allocation.

    Each document has its own inferred mixture of topics.
    """
    from sklearn.decomposition import LatentDirichletAllocation

    split, began = _TrainTest(footage, protocol), process_time()
    model = LatentDirichletAllocation(
        protocol.n_topics,
        learning_method="batch",
        max_iter=protocol.lda_iterations,
        random_state=_integer(seed),
    ).fit(split.train)
    learnt = process_time()
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    theta, n_tokens = model.transform(split.test), split.test.sum(axis=1)
    rows, words = split.test.nonzero()
    probability = np.einsum("ik,ki->i", theta[rows], phi[:, words])
    total = np.bincount(rows, split.test.data * np.log(probability), len(theta))
    return split.result(total / np.maximum(n_tokens, 1), began, learnt)


def hmm(
    footage: SplitFootage, protocol: ComparisonProtocol, seed: np.random.SeedSequence
) -> MethodResult:
    """Return (1 / N) ln p(x_t | x_{1:t-1}) under a hidden Markov model of counts.

    Documents too short to judge are empty in learning: they keep their place in time. Its library
    takes dense counts, so its words are coarse.
    """
    from hmmlearn.hmm import MultinomialHMM

    footage = footage.coarse
    enough = footage.long_enough(protocol)
    counts = sp.diags_array(enough.astype(np.float64)) @ footage.corpus.counts
    began = process_time()
    with _quiet("hmmlearn"):
        model = MultinomialHMM(
            protocol.n_behaviours, n_iter=protocol.hmm_iterations, random_state=_integer(seed)
        ).fit(
            counts[: footage.n_train].toarray().astype(np.int64),
            footage.train.lengths,
        )
    learnt = process_time()
    emission, xi, pi = (
        _smoothed(block) for block in (model.emissionprob_, model.transmat_, model.startprob_)
    )
    filtered = filter_forward(
        np.asarray(counts @ np.log(emission.T)),
        footage.corpus.first,
        pi,
        np.ascontiguousarray(xi.T),
    )
    mean = filtered.log_evidence / np.maximum(counts.sum(axis=1), 1)
    return _TrainTest(footage, protocol).result(mean[footage.n_train :], began, learnt)


def forest(
    footage: SplitFootage, protocol: ComparisonProtocol, seed: np.random.SeedSequence
) -> MethodResult:
    """Return the score of an isolation forest on ln(1 + n) of each direction and speed."""
    from sklearn.ensemble import IsolationForest

    split, began = _TrainTest(footage, protocol), process_time()
    model = IsolationForest(
        n_estimators=protocol.n_trees, random_state=_integer(seed), n_jobs=1
    ).fit(np.log1p(split.moves(split.train)))
    learnt = process_time()
    return split.result(model.score_samples(np.log1p(split.moves(split.test))), began, learnt)


def neighbours(
    footage: SplitFootage, protocol: ComparisonProtocol, seed: np.random.SeedSequence
) -> MethodResult:
    """Return minus the mean distance to the nearest training documents.

    A document is the square roots of the frequencies of directions and speeds, whose distance is
    Hellinger's times sqrt 2, beside its amount of motion.
    """
    from sklearn.neighbors import NearestNeighbors

    split, began = _TrainTest(footage, protocol), process_time()
    n = min(N_NEIGHBOURS, split.train.shape[0])
    train = _with_amount(split.moves(split.train))
    model = NearestNeighbors(n_neighbors=n, algorithm="brute").fit(train)
    learnt = process_time()
    distances, _ = model.kneighbors(_with_amount(split.moves(split.test)))
    return split.result(-distances.mean(axis=1), began, learnt)


def amount(
    footage: SplitFootage, protocol: ComparisonProtocol, seed: np.random.SeedSequence
) -> MethodResult:
    """Return minus the number of words."""
    split, now = _TrainTest(footage, protocol), process_time()
    return split.result(-split.test.sum(axis=1).astype(np.float64), now, now)


def odd_amount(
    footage: SplitFootage, protocol: ComparisonProtocol, seed: np.random.SeedSequence
) -> MethodResult:
    """Return minus the distance of ln(1 + words) from its median in training."""
    split, began = _TrainTest(footage, protocol), process_time()
    usual = np.median(np.log1p(split.train.sum(axis=1)))
    learnt = process_time()
    return split.result(-np.abs(np.log1p(split.test.sum(axis=1)) - usual), began, learnt)


BASELINES: dict[str, Baseline] = {
    "lda": lda,
    "hmm": hmm,
    "forest": forest,
    "neighbours": neighbours,
    "amount": amount,
    "odd-amount": odd_amount,
}


def _with_amount(counts: Array) -> Array:
    """Return square roots of frequencies, and the weighted logarithm of the number of words."""
    n = counts.sum(axis=1, keepdims=True)
    return np.hstack([np.sqrt(counts / np.maximum(n, 1)), AMOUNT_WEIGHT * np.log1p(n)])


def _smoothed(block: Array) -> Array:
    """Return rows that are distributions without a zero; a row of zeros becomes uniform."""
    added = np.nan_to_num(np.asarray(block, dtype=np.float64)) + SMOOTHING
    return np.asarray(added / added.sum(axis=-1, keepdims=True))


def _integer(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1)[0])


@contextmanager
def _quiet(name: str) -> Iterator[Any]:
    """Keep a library from logging below CRITICAL."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield logger
    finally:
        logger.setLevel(before)
