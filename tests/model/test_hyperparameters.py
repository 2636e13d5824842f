"""Type-II maximum likelihood: scipy's optimum, finite differences, an ELBO that never falls."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from habitus import MarkovClusteringTopicModel, Prior
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model import vb
from habitus.model.expected_counts import gather
from habitus.model.hyperparameters import (
    LEAST,
    MOST,
    BlockStatistics,
    best_hyperparameter,
    expected_log_prior,
    fit_hyperparameters,
    gradient,
    summarise_block,
    update_prior,
)
from habitus.model.parameters import PAPER, Sizes
from reference.corpora import TINY, random_posterior

EPS = np.finfo(float).eps


def drawn_corpus(seed, beta, n_words=30):
    """Documents of three behaviours whose words are drawn from symmetric Dirichlets."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(n_words, beta), 3)
    behaviours = np.repeat(rng.integers(3, size=30), 4)
    counts = np.stack([rng.multinomial(80, words[z]) for z in behaviours])
    return Corpus(counts, lengths=[60, 1, 59])


def learnt(corpus, prior="H", **options):
    return MarkovClusteringTopicModel(
        3, 3, learning="vb", prior=prior, n_iterations=20, random_state=0, **options
    ).fit(corpus)


def test_the_sum_of_expected_logs_is_that_of_draws():
    concentration = np.array([[2.0, 0.7], [3.0, 5.0], [1.5, 4.0]])
    rng = np.random.default_rng(0)
    draws = [rng.dirichlet(column, 400_000) for column in concentration.T]
    expected = sum(np.log(draw).mean(axis=0).sum() for draw in draws)
    found = summarise_block(concentration)
    assert found[:2] == (3, 2)
    np.testing.assert_allclose(found.log_sum, expected, rtol=2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_hyperparameter_is_the_one_that_scipy_finds(seed):
    rng = np.random.default_rng(seed)
    block = summarise_block(rng.gamma(0.5, 4, (20, 3)) + 0.1)
    found = best_hyperparameter(3.0, block)
    sought = minimize_scalar(
        lambda x: -expected_log_prior(np.exp(x), block),
        bounds=(-6, 6),
        method="bounded",
        options={"xatol": 1e-10},
    )
    np.testing.assert_allclose(found, np.exp(sought.x), rtol=1e-5)
    assert expected_log_prior(found, block) >= -sought.fun - 1e-9
    assert gradient(found, block) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("h", [0.02, 0.3, 1.0, 7.0])
def test_the_gradient_equals_finite_differences(h):
    block = summarise_block(np.random.default_rng(1).gamma(1, 3, (15, 4)) + 0.05)
    step = 1e-6 * h
    ahead, behind = (expected_log_prior(h + s, block) for s in (step, -step))
    np.testing.assert_allclose(gradient(h, block), (ahead - behind) / (2 * step), rtol=1e-6)


def test_limits_are_kept_and_never_lower_the_objective():
    certain = BlockStatistics(rows=5, columns=2, log_sum=-5 * 2 * (np.log(5) + 1e-7))
    assert best_hyperparameter(1.0, certain) == MOST
    sparse = BlockStatistics(rows=5, columns=2, log_sum=-1e6)
    assert best_hyperparameter(1.0, sparse) == LEAST
    assert best_hyperparameter(LEAST / 2, sparse) == LEAST / 2
    assert best_hyperparameter(3.0, BlockStatistics(rows=1, columns=1, log_sum=0.0)) == 3.0


@pytest.mark.parametrize("name", TINY)
def test_the_gain_is_that_of_the_whole_bound(name):
    """Against the bound with all its terms, computed anew under the new prior."""
    tiny = TINY[name]
    prior = PAPER["H"].concentrations(tiny.sizes)
    posterior = random_posterior(tiny.sizes, seed=3)
    after, gain = update_prior(posterior, prior)
    before, there = (vb.init([posterior], tiny.evidence, p)[0].objective for p in (prior, after))
    np.testing.assert_allclose(gain, there - before, rtol=1e-9, atol=1e-9)
    assert gain >= 0


@pytest.mark.parametrize("prior", ["1", "H", "H+1", "alpha=0.1,beta=30,gamma=0.2,eta=5"])
@pytest.mark.parametrize("seed", range(2))
def test_the_bound_never_falls_at_any_step(prior, seed):
    corpus = drawn_corpus(seed, beta=0.2)
    model = learnt(corpus, prior)
    fit = fit_hyperparameters(model, corpus, tolerance=0, n_iterations=60)
    bounds = np.concatenate([model.objective_[-1:], fit.objective.reshape(-1)])
    assert np.diff(bounds).min() >= -100 * EPS * np.abs(bounds).max()
    assert bounds[-1] > bounds[0] + 1
    assert fit.model.objective_[-1] >= bounds[-1] - 100 * EPS * np.abs(bounds).max()


def test_at_the_end_no_single_hyperparameter_can_be_improved():
    corpus = drawn_corpus(5, beta=0.3)
    fit = fit_hyperparameters(learnt(corpus), corpus, tolerance=1e-12, n_iterations=2000)
    evidence, q = gather(corpus, min_words=20), fit.model.posterior_
    values = fit.prior.to_json()

    def bound(prior):
        return vb.init([q], evidence, prior.concentrations(Sizes(30, 3, 3)))[0].objective

    for name, value in values.items():
        for factor in (0.99, 1.01):
            assert bound(Prior(**values | {name: value * factor})) < bound(fit.prior)


def test_the_hyperparameter_that_made_the_words_is_found():
    for beta in (0.1, 1.0):
        corpus = drawn_corpus(6, beta, n_words=200)
        found = fit_hyperparameters(learnt(corpus), corpus).prior.beta
        assert beta / 1.7 < found < beta * 1.7


def test_priors_in_words_are_read_and_written():
    prior = Prior.of("alpha=8, beta=0.05")
    assert prior == Prior(alpha=8, beta=0.05)
    assert Prior.of(str(prior)) == prior
    for words in ("alpha", "alpha=x", "delta=1", "alpha=-1", ""):
        with pytest.raises(InvalidInputError, match=r"prior must be|alpha must be"):
            Prior.of(words)


def test_what_cannot_be_fitted_raises_an_error():
    corpus = drawn_corpus(7, beta=0.3)
    em = MarkovClusteringTopicModel(3, 3, n_iterations=2, random_state=0).fit(corpus)
    with pytest.raises(InvalidInputError, match='learning="vb", found "em"'):
        fit_hyperparameters(em, corpus)
    uneven = learnt(corpus, Prior(alpha=[1, 2, 3]))
    with pytest.raises(InvalidInputError, match="symmetric prior"):
        fit_hyperparameters(uneven, corpus)
    with pytest.raises(InvalidInputError, match="at least 1, found 0"):
        fit_hyperparameters(learnt(corpus), corpus, n_iterations=0)
