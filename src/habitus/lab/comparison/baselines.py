"""Baselines that a user could choose instead, on the same documents.

Each learns from the training documents that are long enough, and returns a function that gives the
normality of the test documents: the higher, the more normal. Each has the words and features in
which it was best over the development footage: see docs/results/real.md.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

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

Scorer = Callable[[], Array]


class _TrainTest:
    """Counts of the training documents that are long enough, and of all test documents."""

    def __init__(self, footage: SplitFootage, protocol: ComparisonProtocol) -> None:
        counts, enough = footage.corpus.counts, footage.long_enough(protocol)
        self.footage = footage
        is_train = np.arange(len(enough)) < footage.n_train
        self.train, self.test = counts[is_train & enough], counts[~is_train]
        self.judged = enough[~is_train]

    def moves(self, counts: sp.csr_array) -> Array:
        """Return how often each direction and speed occurs, wherever; words without a place."""
        v = self.footage.corpus.vocabulary
        if v is None:
            return np.asarray(counts.toarray(), dtype=np.float64)
        shape = (counts.shape[1], v.per_cell)
        words = np.arange(shape[0])
        move = sp.csr_array((np.ones(shape[0]), (words, v.moves(words))), shape=shape)
        return np.asarray((counts @ move).toarray(), dtype=np.float64)


def lda(split: _TrainTest, protocol: ComparisonProtocol, seed: int) -> Scorer:
    """Learn latent Dirichlet allocation; score by the mean log-probability of a word.

    Each document has its own inferred mixture of topics.
    """
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        protocol.n_topics,
        learning_method="batch",
        max_iter=protocol.lda_iterations,
        random_state=seed,
    ).fit(split.train)

    def score() -> Array:
        phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
        theta, n_tokens = model.transform(split.test), split.test.sum(axis=1)
        rows, words = split.test.nonzero()
        probability = np.einsum("ik,ki->i", theta[rows], phi[:, words])
        total = np.bincount(rows, split.test.data * np.log(probability), len(theta))
        return np.asarray(total / np.maximum(n_tokens, 1))

    return score


def hmm(split: _TrainTest, protocol: ComparisonProtocol, seed: int) -> Scorer:
    """Learn a hidden Markov model of counts; score by (1 / N) ln p(x_t | x_{1:t-1}).

    Documents too short to judge are empty in learning: they keep their place in time. Its library
    takes dense counts, so its words are coarse.
    """
    from hmmlearn.hmm import MultinomialHMM

    footage = split.footage.coarse
    enough = footage.long_enough(protocol)
    counts = sp.diags_array(enough.astype(np.float64)) @ footage.corpus.counts
    with _quiet("hmmlearn"):
        model = MultinomialHMM(
            protocol.n_behaviours, n_iter=protocol.hmm_iterations, random_state=seed
        ).fit(counts[: footage.n_train].toarray().astype(np.int64), footage.train.lengths)

    def score() -> Array:
        blocks = (model.emissionprob_, model.transmat_, model.startprob_)
        emission, xi, pi = map(_smoothed, blocks)
        log_likelihoods = np.asarray(counts @ np.log(emission.T))
        moves = np.ascontiguousarray(xi.T)
        filtered = filter_forward(log_likelihoods, footage.corpus.first, pi, moves)
        mean = filtered.log_evidence / np.maximum(counts.sum(axis=1), 1)
        return np.asarray(mean[footage.n_train :])

    return score


def forest(split: _TrainTest, protocol: ComparisonProtocol, seed: int) -> Scorer:
    """Learn an isolation forest of ln(1 + n) of each direction and speed; score by it."""
    from sklearn.ensemble import IsolationForest

    model = IsolationForest(n_estimators=protocol.n_trees, random_state=seed, n_jobs=1)
    model.fit(np.log1p(split.moves(split.train)))
    return lambda: np.asarray(model.score_samples(np.log1p(split.moves(split.test))))


def neighbours(split: _TrainTest, protocol: ComparisonProtocol, seed: int) -> Scorer:
    """Keep the training documents; score by minus the mean distance to the nearest ones.

    A document is the square roots of the frequencies of directions and speeds, whose distance is
    Hellinger's times sqrt 2, beside its amount of motion.
    """
    from sklearn.neighbors import NearestNeighbors

    n = min(N_NEIGHBOURS, split.train.shape[0])
    model = NearestNeighbors(n_neighbors=n, algorithm="brute")
    model.fit(_with_amount(split.moves(split.train)))
    return lambda: -model.kneighbors(_with_amount(split.moves(split.test)))[0].mean(axis=1)


def amount(split: _TrainTest, protocol: ComparisonProtocol, seed: int) -> Scorer:
    """Score by minus the number of words."""
    return lambda: -split.test.sum(axis=1).astype(np.float64)


def odd_amount(split: _TrainTest, protocol: ComparisonProtocol, seed: int) -> Scorer:
    """Score by minus the distance of ln(1 + words) from its median in training."""
    usual = np.median(np.log1p(split.train.sum(axis=1)))
    return lambda: -np.abs(np.log1p(split.test.sum(axis=1)) - usual)


BASELINES: dict[str, Callable[[_TrainTest, ComparisonProtocol, int], Scorer]] = {
    "lda": lda,
    "hmm": hmm,
    "forest": forest,
    "neighbours": neighbours,
    "amount": amount,
    "odd-amount": odd_amount,
}


def run_baseline(
    name: str, footage: SplitFootage, protocol: ComparisonProtocol, seed: np.random.SeedSequence
) -> MethodResult:
    """Learn and score by a baseline; short documents are not judged."""
    split, number = _TrainTest(footage, protocol), int(seed.generate_state(1)[0])
    began = process_time()
    score = BASELINES[name](split, protocol, number)
    learnt = process_time()
    normality = np.where(split.judged, score(), 0.0)
    seconds = (process_time() - learnt) / max(len(normality), 1)
    return MethodResult(normality, learnt - began, seconds)


def _with_amount(counts: Array) -> Array:
    """Return square roots of frequencies, and the weighted logarithm of the number of words."""
    n = counts.sum(axis=1, keepdims=True)
    return np.hstack([np.sqrt(counts / np.maximum(n, 1)), AMOUNT_WEIGHT * np.log1p(n)])


def _smoothed(block: Array) -> Array:
    """Return rows that are distributions without a zero; a row of zeros becomes uniform."""
    added = np.nan_to_num(np.asarray(block, dtype=np.float64)) + SMOOTHING
    return np.asarray(added / added.sum(axis=-1, keepdims=True))


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a library from logging below CRITICAL."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
