"""Ready-made states of the learners on a corpus: what the benchmarks time an iteration of."""

from collections.abc import Callable

import numpy as np

from corpora import N_BEHAVIOURS, N_TOPICS
from habitus import Corpus
from habitus.model import blocked_gibbs, em, gibbs, vb
from habitus.model.expected_counts import gather, log_likelihoods
from habitus.model.messages import most_probable_path
from habitus.model.parameters import Concentrations, Parameters, Prior, Sizes
from habitus.model.starts import assignments_under, documents_starts, posterior_around

SMOOTHING = 5e-6


def concentrations(corpus: Corpus, prior: str) -> Concentrations:
    """The prior spelt out for the paper's sizes."""
    return Prior.of(prior).concentrations(Sizes(corpus.n_words, N_TOPICS, N_BEHAVIOURS))


def start(corpus: Corpus, seed: int = 0) -> Parameters:
    """The estimator's own default start."""
    sizes = Sizes(corpus.n_words, N_TOPICS, N_BEHAVIOURS)
    return documents_starts(gather(corpus), sizes, [np.random.default_rng(seed)])[0]


def em_step(corpus: Corpus, prior: str, n_before: int) -> Callable[[], em.EMState]:
    """An EM iteration, all in; every call goes on from the last."""
    evidence, blocks = gather(corpus), concentrations(corpus, prior)
    state = em.init([start(corpus)], evidence, blocks)[0]

    def step() -> em.EMState:
        nonlocal state
        state = em.step([state], evidence, blocks, SMOOTHING)[0]
        return state

    for _ in range(n_before):
        step()
    return step


def vb_step(corpus: Corpus, prior: str, n_before: int) -> Callable[[], vb.VBState]:
    """A VB iteration with its bound; every call goes on from the last."""
    evidence, blocks = gather(corpus), concentrations(corpus, prior)
    state = vb.init([posterior_around(start(corpus), evidence, blocks)], evidence, blocks)[0]

    def step() -> vb.VBState:
        nonlocal state
        before, state = state.objective, vb.step([state], evidence, blocks)[0]
        assert state.objective >= before - 1e-9 * abs(before)
        return state

    for _ in range(n_before):
        step()
    return step


class CollapsedChain:
    """The collapsed sampler on its way; calling it makes one sweep."""

    def __init__(self, corpus: Corpus, prior: str, parameters: Parameters, seed: int = 0) -> None:
        evidence = gather(corpus)
        self.rng = np.random.default_rng(seed)
        self.prior = concentrations(corpus, prior)
        self.tokens = gibbs.tokens_of(evidence)
        self.sizes = parameters.sizes
        phi, theta, pi, xi = parameters
        path = most_probable_path(log_likelihoods(evidence, phi, theta), evidence.first, pi, xi)
        drawn = assignments_under(parameters, path, evidence, self.rng)
        self.state = gibbs.init(drawn, self.tokens, self.sizes, self.prior)

    def __call__(self) -> float:
        """One sweep; the log joint after it."""
        self.state = gibbs.step(self.state, self.tokens, self.prior, self.rng)
        return self.state.objective

    def check(self) -> None:
        """Counts and log joint, kept up to date sweep by sweep, are those of the assignments."""
        afresh = gibbs.init(self.state.assignments, self.tokens, self.sizes, self.prior)
        np.testing.assert_allclose(self.state.objective, afresh.objective, rtol=1e-9)
        for kept, counted in zip(self.state.counts, afresh.counts, strict=True):
            np.testing.assert_array_equal(kept, counted)


class BlockedChain:
    """The blocked sampler on its way; calling it makes one sweep."""

    def __init__(self, corpus: Corpus, prior: str, parameters: Parameters, seed: int = 0) -> None:
        self.evidence = gather(corpus)
        self.rng = np.random.default_rng(seed)
        self.prior = concentrations(corpus, prior)
        self.state = blocked_gibbs.init(parameters, self.evidence, self.prior, self.rng)

    def __call__(self) -> float:
        """One sweep; the log joint after it."""
        self.state = blocked_gibbs.step(self.state, self.evidence, self.prior, self.rng)
        return self.state.objective

    def check(self) -> None:
        """Every token is counted once, and the log joint is the one of these counts."""
        assert self.state.counts.phi.sum() == self.evidence.counts.sum()
        assert self.state.counts.theta.sum() == self.evidence.counts.sum()
        joint = gibbs.log_joint(self.state.counts, self.prior)
        np.testing.assert_allclose(self.state.objective, joint, rtol=1e-9)
