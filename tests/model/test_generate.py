"""Generated documents have the frequencies of the parameters they are drawn from."""

import numpy as np
import pytest
from scipy.stats import chisquare

from habitus.model import gibbs
from habitus.model.expected_counts import gather
from habitus.model.generate import draw_parameters, generate
from habitus.model.parameters import PAPER, Parameters, Prior, Sizes
from reference.corpora import random_parameters, sparse_parameters

SIZES = Sizes(n_words=7, n_topics=3, n_behaviours=4)
N_SEQUENCES, LENGTH = 4_000, 5


def drawn(parameters, seed):
    """Many short sequences, so that first behaviours are as well tested as steps."""
    rng = np.random.default_rng(seed)
    n_tokens = rng.integers(0, 6, size=N_SEQUENCES * LENGTH)
    result = generate(parameters, n_tokens, rng, lengths=np.full(N_SEQUENCES, LENGTH))
    return n_tokens, result


def assert_columns_drawn_from(counts, shares):
    """Each column of counts could come from that column of distributions."""
    for observed, share in zip(counts.T, shares.T, strict=True):
        assert observed[share == 0].sum() == 0
        possible = share > 0
        expected = observed.sum() * share[possible]
        assert chisquare(observed[possible], expected).pvalue > 1e-4


@pytest.mark.parametrize("kind", [random_parameters, sparse_parameters])
def test_frequencies_agree_with_the_parameters(kind):
    parameters = kind(SIZES, seed=1)
    _, (corpus, assignments) = drawn(parameters, seed=2)
    tokens = gibbs.tokens_of(gather(corpus))
    prior = Prior().concentrations(SIZES)
    counts = gibbs.init(assignments, tokens, SIZES, prior).counts
    assert_columns_drawn_from(counts.phi, parameters.phi)
    assert_columns_drawn_from(counts.theta, parameters.theta)
    assert_columns_drawn_from(counts.xi, parameters.xi)
    assert_columns_drawn_from(counts.pi[:, None], parameters.pi[:, None])


def test_topics_come_in_the_order_of_the_tokens():
    """Topics that share no word: a token's word tells its topic."""
    phi = np.kron(np.eye(3), np.full((2, 1), 0.5))
    parameters = random_parameters(Sizes(6, 3, 2), seed=3)._replace(phi=phi)
    corpus, assignments = generate(
        parameters, np.array([5, 0, 7, 3]), np.random.default_rng(4), lengths=[2, 2]
    )
    words = gibbs.tokens_of(gather(corpus)).words
    np.testing.assert_array_equal(words // 2, assignments.topics)


def test_documents_have_the_lengths_asked_for():
    parameters = random_parameters(SIZES, seed=5)
    n_tokens, (corpus, assignments) = drawn(parameters, seed=6)
    np.testing.assert_array_equal(corpus.n_tokens, n_tokens)
    np.testing.assert_array_equal(corpus.lengths, np.full(N_SEQUENCES, LENGTH))
    assert len(assignments.topics) == n_tokens.sum()
    assert len(assignments.behaviours) == len(corpus)


def test_the_same_seed_draws_the_same_documents():
    parameters = random_parameters(SIZES, seed=7)
    one, other = (generate(parameters, [40, 50], np.random.default_rng(8)) for _ in range(2))
    np.testing.assert_array_equal(one.corpus.counts.toarray(), other.corpus.counts.toarray())
    np.testing.assert_array_equal(one.assignments.topics, other.assignments.topics)


@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_parameters_have_the_moments_of_their_priors(name):
    prior = PAPER.get(name) or Prior(
        alpha=[0.6, 1.0, 1.5], beta=np.linspace(0.3, 1.2, 7), gamma=[0.9, 0.7, 0.5, 0.4], eta=0.5
    )
    n_draws = 5_000
    rng = np.random.default_rng(9)
    draws = [draw_parameters(prior, SIZES, rng) for _ in range(n_draws)]
    for k, h in enumerate(prior.concentrations(SIZES)):
        block = np.stack([draw[k] for draw in draws])
        np.testing.assert_allclose(block.sum(axis=1), 1, rtol=1e-12)
        concentration = np.broadcast_to(h, block.shape[1:])
        total = concentration.sum(axis=0)
        mean = concentration / total
        variance = mean * (1 - mean) / (total + 1)
        scores = (block.mean(axis=0) - mean) / np.sqrt(variance / n_draws)
        assert np.abs(scores).max() < 4.5
        np.testing.assert_allclose(block.var(axis=0), variance, rtol=0.15)


def test_concentrations_near_zero_put_all_mass_on_one_row():
    """Every gamma of a column underflows: still a distribution, and every row is drawn."""
    prior = Prior(alpha=1e-6, beta=1e-6, gamma=1e-6, eta=1e-6)
    rng = np.random.default_rng(10)
    draws = [draw_parameters(prior, SIZES, rng) for _ in range(500)]
    for k in range(len(Parameters._fields)):
        block = np.stack([draw[k] for draw in draws])
        np.testing.assert_allclose(block.max(axis=1), 1, rtol=1e-9)
        shares = block.reshape(500, block.shape[1], -1).mean(axis=(0, 2))
        np.testing.assert_allclose(shares, 1 / block.shape[1], atol=0.1)


class AlwaysZero:
    """Replacement of a generator whose uniform numbers are all the smallest one."""

    def random(self, size):
        return np.zeros(size)


def test_the_smallest_uniform_number_draws_nothing_impossible():
    phi = np.array([[0.0, 0.0], [0.0, 0.6], [1.0, 0.4]])
    theta = np.array([[0.0], [1.0]])
    parameters = Parameters(phi, theta, np.ones(1), np.ones((1, 1)))
    corpus, assignments = generate(parameters, [3], AlwaysZero())
    assert assignments.topics.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(corpus.counts.toarray(), [[0, 3, 0]])
