"""Which sweeps of a sampler are kept, and that their objective stays finite."""

import numpy as np
import pytest

from habitus import Corpus, MarkovClusteringTopicModel, Prior, generate
from habitus.model import Sizes, draw_parameters, gibbs
from habitus.model.expected_counts import gather
from habitus.model.parameters import PAPER, Assignments

SAMPLERS = ("gibbs", "blocked-gibbs")


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(1)
    parameters = draw_parameters(Prior(alpha=0.3, beta=0.2), Sizes(20, 3, 2), rng)
    return generate(parameters, np.full(20, 30), rng).corpus


def fitted(corpus, learning, **settings):
    return MarkovClusteringTopicModel(
        3, 2, learning=learning, random_state=0, thinning=3, **settings
    ).fit(corpus)


@pytest.mark.parametrize("learning", SAMPLERS)
def test_samples_are_those_after_the_burn_in_and_then_one_per_thinning(corpus, learning):
    """Sample i equals the only sample of a run whose burn-in ends at that sweep."""
    model = fitted(corpus, learning, burn_in=4, n_samples=4)
    assert len(model.samples_) == 4
    for i, sample in enumerate(model.samples_):
        alone = fitted(corpus, learning, burn_in=4 + 3 * i, n_samples=1)
        assert alone.n_iter_ == 4 + 3 * i
        assert all(map(np.array_equal, sample, alone.samples_[0]))
    assert all(map(np.array_equal, model.samples_[-1], model.parameters_))
    assert not np.array_equal(model.samples_[0].phi, model.samples_[1].phi)


def test_objective_stays_finite_in_a_document_of_twenty_thousand_tokens():
    """A sweep multiplies the odds of its moves: the product of one document would overflow."""
    sizes = Sizes(n_words=40, n_topics=4, n_behaviours=2)
    counts = np.zeros((2, 40))
    counts[0, :20], counts[1, 20:] = 1000, 1000
    evidence, prior = gather(Corpus(counts)), PAPER["H"].concentrations(sizes)
    tokens, rng = gibbs.tokens_of(evidence), np.random.default_rng(0)
    topics = rng.integers(4, size=len(tokens.words))
    state = gibbs.init(Assignments(topics, np.array([0, 1])), tokens, sizes, prior)
    for _ in range(12):
        state = gibbs.step(state, tokens, prior, rng)
    assert np.isfinite(state.objective)
    np.testing.assert_allclose(state.objective, gibbs.log_joint(state.counts, prior), rtol=1e-9)
