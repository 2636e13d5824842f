"""Each compiled kernel equals its NumPy twin in `reference.numpy_lines`."""

import numpy as np
import pytest
from scipy.special import psi

from habitus.corpus import Corpus
from habitus.model import em, gibbs, messages, online, starts, vb
from habitus.model.expected_counts import gather
from habitus.model.parameters import Sizes
from reference import numpy_lines
from reference.corpora import random_parameters

SIZES = Sizes(13, 3, 5)


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.fixture
def evidence(rng):
    """Nine documents in two sequences, one of them empty."""
    counts = rng.poisson(0.8, (9, SIZES.n_words))
    counts[4] = 0
    return gather(Corpus(counts, lengths=[6, 3]))


@pytest.mark.parametrize("scale", [1.0, 800.0])
def test_log_predict(rng, scale):
    """In plain numbers for near beliefs, in logarithms for beliefs hundreds of nats apart."""
    xi = rng.dirichlet(np.ones(4), 4).T.copy()
    xi[0, 1:] = 0
    log_filtered = -scale * np.arange(4.0)
    log_filtered = log_filtered[::-1].copy()
    expected = numpy_lines.log_predict(xi, log_filtered)
    with np.errstate(divide="ignore"):
        log_xi = np.log(xi)
    found = [
        messages.log_predict(z, xi, log_xi, np.exp(log_filtered), log_filtered) for z in range(4)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_draw_and_draw_log(rng):
    for _ in range(200):
        weights = rng.random(5) * (rng.random(5) < 0.7)
        weights[rng.integers(5)] = 0.3
        uniform = rng.random()
        assert messages.draw(weights, uniform) == numpy_lines.draw(weights, uniform)
        log_weights = rng.normal(0, 3, 5) - 1000
        assert messages.draw_log(log_weights, uniform) == numpy_lines.draw_log(log_weights, uniform)


@pytest.mark.parametrize("hyperparameter", [0.3, 1.0, 1.5])
@pytest.mark.parametrize("smoothing", [0.0, 1e-3])
def test_mode_of_a_block(rng, hyperparameter, smoothing):
    counts = rng.gamma(0.5, 2, (6, 4))
    counts[:, 2] = 0
    h = np.full(6, hyperparameter)
    expected, dead = numpy_lines.to_mode(counts, h, smoothing)
    assert np.array_equal(em._to_mode(counts, h, smoothing), dead)
    np.testing.assert_allclose(counts, expected, rtol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e-60])
@pytest.mark.parametrize("even", [True, False])
def test_logarithms_of_the_prior(rng, scale, even):
    """Products of eight probabilities where they are large enough, else one logarithm each."""
    block = rng.random((11, 3)) * scale
    h = np.array([1.7]) if even else rng.choice([0.4, 1.0, 2.5], 11)
    if not even:
        h[3], block[3] = 1.0, 0.0
    full = np.full(11, h[0]) if even else h
    np.testing.assert_allclose(
        em._log_powers(block, h), numpy_lines.log_powers(block, full), rtol=1e-13
    )


def test_divergence_of_a_block(rng):
    concentration, h = np.exp(rng.uniform(-2, 4, (7, 3))), rng.random(7) + 0.2
    log_gamma, digamma = vb.log_gamma_and_digamma(concentration)
    psi_total = psi(concentration.sum(axis=0))
    found = vb._finish(concentration, h, log_gamma, digamma, psi_total)
    np.testing.assert_allclose(found, numpy_lines.divergence(concentration, h), rtol=1e-12)


def test_tokens_and_their_counts(rng, evidence):
    tokens = gibbs.tokens_of(evidence)
    words, starts = numpy_lines.spell(evidence)
    assert np.array_equal(tokens.words, words)
    assert np.array_equal(tokens.starts, starts)
    topics = rng.integers(SIZES.n_topics, size=len(words)).astype(np.uint16)
    behaviours = rng.integers(SIZES.n_behaviours, size=evidence.n_documents)
    expected = numpy_lines.count(words, starts, evidence.first, topics, behaviours, SIZES)
    for found, block in zip(gibbs._count(tokens, topics, behaviours, SIZES), expected, strict=True):
        assert np.array_equal(found, block)


def test_uniform_numbers_and_topics_drawn_with_them(rng, evidence):
    seed = rng.integers(2**64, dtype=np.uint64)
    found = [gibbs._uniform(seed, i) for i in range(300)]
    assert found == [numpy_lines.uniform(seed, i) for i in range(300)]
    phi, theta, _, _ = random_parameters(SIZES, 3)
    path = rng.integers(SIZES.n_behaviours, size=evidence.n_documents)
    words, starts = numpy_lines.spell(evidence)
    document = np.repeat(np.arange(evidence.n_documents), np.diff(starts))
    topics = gibbs.draw_topics(*evidence[:3], path, phi, theta, seed)
    expected = numpy_lines.draw_topics(words, document, path, phi, theta, seed)
    assert np.array_equal(topics, expected)


@pytest.mark.parametrize("n_sets", [1, 3])
@pytest.mark.parametrize("n_behaviours", [1, 3, 4, 6])
def test_filter_kernels(rng, n_sets, n_behaviours):
    sizes = Sizes(13, 3, n_behaviours)
    tables = online.filter_tables([random_parameters(sizes, seed) for seed in range(n_sets)])
    words = np.sort(rng.choice(13, 7, replace=False)).astype(np.int32)
    counts = rng.integers(1, 9, 7).astype(float)
    np.testing.assert_allclose(
        online._log_likelihoods(words, counts, tables.log_probability),
        numpy_lines.log_likelihoods(words, counts, tables.log_probability),
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        online.word_surprisals(tables.log_pi, words, tables),
        numpy_lines.word_surprisals(tables.log_pi, words, tables.probability),
        rtol=1e-14,
    )
    log_joint = rng.normal(0, 20, (n_sets, n_behaviours))
    np.testing.assert_allclose(
        online._predictions(log_joint, tables.log_pi, tables.xi, tables.log_xi),
        numpy_lines.predictions(log_joint, tables.xi),
        rtol=1e-13,
        atol=1e-14,
    )


@pytest.mark.parametrize("words", [[0, 5, 12], [0, 13], [-1, 4], []])
def test_examine(words):
    words, counts = np.array(words, dtype=np.int32), np.arange(1.0, len(words) + 1)
    assert online.examine(words, counts, 13) == numpy_lines.examine(words, counts, 13)


def test_likeness_of_documents(rng, evidence):
    seeds = np.array([0, 4, 7])
    np.testing.assert_allclose(
        starts._likeness(evidence, seeds),
        numpy_lines.cosines(evidence, seeds),
        rtol=1e-13,
        atol=1e-15,
    )
