"""Variational Bayes: the published updates, and the ELBO as an explicit expectation."""

import math

import numpy as np
import pytest
from scipy.special import gammaln, psi

from habitus.corpus.documents import Corpus
from habitus.errors import LearningError
from habitus.model import vb
from habitus.model.expected_counts import gather
from habitus.model.parameters import PAPER, DirichletPosterior, Parameters, Prior, Sizes
from habitus.model.special import log_gamma_and_digamma, log_rising
from reference import enumeration
from reference.corpora import TINY, random_parameters, random_posterior, uneven_prior

EPS = np.finfo(float).eps
cases = pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
priors = pytest.mark.parametrize("name", [*PAPER, "uneven"])


def prior_of(name, sizes):
    return uneven_prior(sizes) if name == "uneven" else PAPER[name].concentrations(sizes)


def tilde(posterior):
    """Return the tilde parameters, Eq. (23) to (26)."""
    return Parameters(*(np.exp(psi(block) - psi(block.sum(axis=0))) for block in posterior))


@cases
@priors
def test_bound_equals_the_enumerated_expectation(tiny, name):
    prior = prior_of(name, tiny.sizes)
    for seed in range(3):
        posterior = random_posterior(tiny.sizes, seed)
        found = vb.init([posterior], tiny.evidence, prior)[0].objective
        expected = enumeration.evidence_lower_bound(tiny, posterior, prior)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "case", ["repeats, an empty document, two sequences", "one behaviour", "one document"]
)
@priors
def test_bound_is_under_the_log_evidence_and_comes_near_it(case, name):
    tiny = TINY[case]
    prior = prior_of(name, tiny.sizes)
    log_evidence = np.log(enumeration.enumerate_collapsed(tiny, prior).evidence)
    state = vb.init([random_posterior(tiny.sizes, seed=4)], tiny.evidence, prior)[0]
    for _ in range(100):
        assert state.objective <= log_evidence
        state = vb.step([state], tiny.evidence, prior)[0]
    assert log_evidence - 4 < state.objective <= log_evidence


@cases
@priors
def test_updates_equal_the_printed_equations(tiny, name):
    """Eq. (19) to (22), with expected counts by enumeration under the tilde parameters."""
    prior = prior_of(name, tiny.sizes)
    posterior = random_posterior(tiny.sizes, seed=5)
    found = vb.step(vb.init([posterior], tiny.evidence, prior), tiny.evidence, prior)[0].posterior
    hidden = enumeration.enumerate_hidden(tiny, tilde(posterior))
    expected = enumeration.expected_counts(tiny, hidden)
    for block, h, n in zip(found, prior, expected, strict=True):
        np.testing.assert_allclose(block, np.broadcast_to(h, n.shape) + n, rtol=1e-12)


def test_point_estimates_are_the_expected_values():
    posterior = random_posterior(Sizes(6, 3, 2), seed=6)
    for estimate, block in zip(posterior.mean(), posterior, strict=True):
        np.testing.assert_allclose(estimate, block / block.sum(axis=0), rtol=1e-14)


def climb(sizes, prior, seed, n_steps, n_tokens=50):
    """Return the ELBO at every step on 60 documents in three sequences, one of them empty."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(sizes.n_words, 0.2), sizes.n_topics)
    theta = rng.dirichlet(np.ones(sizes.n_topics), sizes.n_behaviours)
    behaviours = np.repeat(rng.integers(sizes.n_behaviours, size=15), 4)
    counts = np.stack([rng.multinomial(n_tokens, theta[z] @ phi) for z in behaviours])
    counts[7] = 0
    evidence = gather(Corpus(counts, lengths=[30, 1, 29]))
    start = DirichletPosterior(
        *(h + 20 * block for h, block in zip(prior, random_parameters(sizes, seed), strict=True))
    )
    state = vb.init([start], evidence, prior)[0]
    bounds = [state.objective]
    for _ in range(n_steps):
        state = vb.step([state], evidence, prior)[0]
        bounds.append(state.objective)
    return np.array(bounds)


@priors
@pytest.mark.parametrize("seed", range(5))
def test_bound_never_falls(name, seed):
    sizes = Sizes(n_words=40, n_topics=5, n_behaviours=3)
    bounds = climb(sizes, prior_of(name, sizes), seed, n_steps=150)
    gains = np.diff(bounds)
    assert gains.min() >= -100 * EPS * np.abs(bounds).max()
    assert gains[0] > 1


def test_bound_never_falls_with_more_words_than_a_chunk():
    sizes = Sizes(n_words=2 * vb.CHUNK + 5, n_topics=3, n_behaviours=2)
    bounds = climb(sizes, PAPER["H"].concentrations(sizes), seed=7, n_steps=40, n_tokens=500)
    gains = np.diff(bounds)
    assert gains.min() >= -100 * EPS * np.abs(bounds).max()


def test_divergence_of_a_large_block_equals_scipy():
    rng = np.random.default_rng(8)
    concentration = np.exp(rng.uniform(-4, 8, (3 * vb.CHUNK + 1, 4)))
    hyper = rng.uniform(0.05, 2, (len(concentration), 1))
    found = vb.expected_logs(concentration, hyper)
    logs = psi(concentration) - psi(concentration.sum(axis=0))
    h = np.broadcast_to(hyper, concentration.shape)
    expected = (
        gammaln(concentration.sum(axis=0)).sum()
        - gammaln(concentration).sum()
        - gammaln(h.sum(axis=0)).sum()
        + gammaln(h).sum()
        + ((concentration - h) * logs).sum()
    )
    np.testing.assert_allclose(found.divergence, expected, rtol=1e-11)
    np.testing.assert_allclose(found.tilde, np.exp(logs), rtol=1e-12)


def test_tiny_weights_with_a_tiny_beta_raise_an_error_instead_of_nan():
    """exp(psi(beta + n)) of a rare word underflows in every topic when both are under 1e-3."""
    counts = np.array([[1e-4, 2.0, 0.0], [0.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    sizes = Sizes(n_words=3, n_topics=2, n_behaviours=2)
    prior = Prior(beta=1e-3).concentrations(sizes)
    evidence = gather(Corpus(counts))
    state = vb.init([random_posterior(sizes, seed=9)], evidence, prior)[0]
    with pytest.raises(LearningError, match="hyperparameters too small"):
        vb.step([state], evidence, prior)[0]


MAGNITUDES = np.concatenate([np.geomspace(1e-8, 1e8, 20_001), np.linspace(0.5, 20, 10_001)])


def test_log_gamma_and_digamma_equal_scipy():
    log_gamma, digamma = log_gamma_and_digamma(MAGNITUDES)
    # Absolute beside relative: ln Gamma is zero at 1 and 2, psi at 1.46.
    np.testing.assert_allclose(log_gamma, gammaln(MAGNITUDES), rtol=2e-15, atol=2e-14)
    np.testing.assert_allclose(digamma, psi(MAGNITUDES), rtol=2e-15, atol=2e-15)


def test_log_gamma_and_digamma_keep_the_shape():
    x = np.exp(np.random.default_rng(10).normal(size=(7, 3)))
    log_gamma, digamma = log_gamma_and_digamma(x)
    np.testing.assert_allclose(log_gamma, gammaln(x), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(digamma, psi(x), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 30, 500])
def test_log_rising_equals_the_sum_of_its_logarithms(n):
    for x in np.geomspace(1e-8, 1e5, 53):
        expected = math.fsum(math.log(x + i) for i in range(n))
        # Both ends of the range go through x ln x.
        atol = 4 * EPS * (x + n + 8) * math.log(x + n + 8)
        np.testing.assert_allclose(log_rising(x, float(n)), expected, rtol=1e-14, atol=atol)
