"""Each baseline against a few lines of its own, and properties common to all."""

import numpy as np
import pytest

from habitus.evaluation.metrics import average_precision
from habitus.lab.comparison.baselines import (
    AMOUNT_WEIGHT,
    BASELINES,
    SMOOTHING,
    run_baseline,
)
from reference.labelled import QUICK


@pytest.fixture(scope="module")
def parts(footage):
    counts, enough = footage.corpus.counts.toarray(), footage.long_enough(QUICK)
    n = footage.n_train
    return counts[:n][enough[:n]], counts[n:], enough[n:]


def normality(name, footage, number=0):
    return run_baseline(name, footage, QUICK, QUICK.seed_of(name, number)).normality


def seed(name):
    return int(QUICK.seed_of(name, 0).generate_state(1)[0])


def roots(counts):
    return np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))


def test_lda(footage, parts):
    from sklearn.decomposition import LatentDirichletAllocation

    train, test, judged = parts
    model = LatentDirichletAllocation(8, max_iter=3, random_state=seed("lda")).fit(train)
    phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
    log = np.log(model.transform(test) @ phi)
    expected = [
        (n * row).sum() / n.sum() if yes else 0.0
        for n, row, yes in zip(test, log, judged, strict=True)
    ]
    np.testing.assert_allclose(normality("lda", footage), expected, rtol=1e-9)


def test_hmm_is_filtered_document_by_document(footage, parts):
    import logging

    from hmmlearn.hmm import MultinomialHMM

    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    counts = footage.corpus.counts.toarray() * footage.long_enough(QUICK)[:, None]
    model = MultinomialHMM(4, n_iter=5, random_state=seed("hmm"))
    model.fit(counts[: footage.n_train].astype(int))
    blocks = (model.emissionprob_, model.transmat_, model.startprob_)
    emission, moves, belief = (
        (b + SMOOTHING) / (b + SMOOTHING).sum(axis=-1, keepdims=True) for b in blocks
    )
    expected = []
    for n in counts:
        log = np.log(belief) + np.log(emission) @ n
        total = np.logaddexp.reduce(log)
        expected.append(total / n.sum() if n.sum() else 0.0)
        belief = np.exp(log - total) @ moves
    np.testing.assert_allclose(normality("hmm", footage), expected[footage.n_train :], rtol=1e-9)


def moves(footage, counts):
    """Return how often each direction and speed occurs, document by document."""
    v = footage.corpus.vocabulary
    found = np.zeros((len(counts), v.per_cell))
    for word, move in enumerate(v.moves(np.arange(v.n_words))):
        found[:, move] += counts[:, word]
    return found


def test_isolation_forest(footage, parts):
    from sklearn.ensemble import IsolationForest

    train, test, judged = parts
    forest = IsolationForest(n_estimators=20, random_state=seed("forest"))
    forest.fit(np.log1p(moves(footage, train)))
    expected = forest.score_samples(np.log1p(moves(footage, test)))
    found = normality("forest", footage)
    np.testing.assert_allclose(found, np.where(judged, expected, 0), rtol=1e-9)


def test_nearest_neighbours(footage, parts):
    train, test, judged = parts
    near, far = (moves(footage, part) for part in (train, test))
    distance = np.linalg.norm(roots(far)[:, None] - roots(near)[None], axis=2)
    amount = np.log1p(test.sum(axis=1))[:, None] - np.log1p(train.sum(axis=1))
    distance = np.hypot(distance, AMOUNT_WEIGHT * amount)
    expected = -np.sort(distance, axis=1)[:, :5].mean(axis=1)
    found = normality("neighbours", footage)
    np.testing.assert_allclose(found, np.where(judged, expected, 0), rtol=1e-6)


def test_amounts_of_motion(footage, parts):
    train, test, judged = parts
    n = test.sum(axis=1)
    np.testing.assert_array_equal(normality("amount", footage), np.where(judged, -n, 0))
    odd = -abs(np.log(1 + n) - np.median(np.log(1 + train.sum(axis=1))))
    np.testing.assert_allclose(
        normality("odd-amount", footage), np.where(judged, odd, 0), rtol=1e-12
    )


@pytest.mark.parametrize("name", BASELINES)
def test_all_are_finite_and_call_short_documents_normal(footage, name):
    found = normality(name, footage)
    assert np.isfinite(found).all()
    assert (found[~footage.long_enough(QUICK)[footage.n_train :]] == 0).all()


@pytest.mark.parametrize("name", ["hmm", "neighbours"])
def test_lower_is_more_abnormal(footage, name):
    judged, abnormal = footage.long_enough(QUICK)[footage.n_train :], footage.abnormal
    chance = abnormal[judged].mean()
    assert average_precision(-normality(name, footage)[judged], abnormal[judged]) > 2 * chance
