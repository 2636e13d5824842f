"""A blocked Gibbs sampler of the same posterior, for corpora of millions of tokens.

It alternates between the parameters given the hidden variables, from their Dirichlets, and the
hidden variables given the parameters: the whole path of behaviours at once (forward filtering,
backward sampling, topics summed out), then the topics. Tokens of one word under one behaviour have
the same distribution over topics, so a multinomial splits them between the topics: the cost of a
sweep does not grow with the number of tokens. This sampler is not in the paper.
"""

from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Indices
from habitus.model.expected_counts import Evidence, ExpectedCounts, log_likelihoods, padded, scatter
from habitus.model.gibbs import log_joint
from habitus.model.messages import filter_forward, sample_backward
from habitus.model.parameters import Concentrations, Parameters, sample_dirichlet


class BlockedGibbsState(NamedTuple):
    """State of the sampler after a sweep."""

    behaviours: Indices
    """Behaviour of each document."""
    counts: ExpectedCounts
    """Counts of the hidden variables: whole numbers."""
    objective: float
    """ln p(x, y, z), the collapsed log joint, as in the collapsed sampler."""


def init(
    parameters: Parameters, evidence: Evidence, prior: Concentrations, rng: np.random.Generator
) -> BlockedGibbsState:
    """Draw the hidden variables from p(y, z | x, Omega)."""
    phi, theta, pi, xi = parameters
    log_like = log_likelihoods(evidence, phi, theta)
    messages = filter_forward(log_like, evidence.first, pi, xi)
    path = sample_backward(messages, evidence.first, xi, rng.random(evidence.n_documents))
    counts = _split(path, evidence, parameters, rng)
    return BlockedGibbsState(path, counts, log_joint(counts, prior))


def step(
    state: BlockedGibbsState, evidence: Evidence, prior: Concentrations, rng: np.random.Generator
) -> BlockedGibbsState:
    """Run one sweep: draw the parameters given the hidden variables, then these given those."""
    return init(posterior_draw(state.counts, prior, rng), evidence, prior, rng)


def posterior_draw(
    counts: ExpectedCounts, prior: Concentrations, rng: np.random.Generator
) -> Parameters:
    """Return one draw from p(Omega | x, y, z): every column from its Dirichlet."""
    blocks = zip(counts, prior, strict=True)
    return Parameters(*(sample_dirichlet(n + h, rng) for n, h in blocks))


def _split(
    path: Indices, evidence: Evidence, parameters: Parameters, rng: np.random.Generator
) -> ExpectedCounts:
    """Draw the counts given the path: all tokens of a word under a behaviour in one draw."""
    _, n_topics, n_behaviours = parameters.sizes
    one_hot = np.eye(n_behaviours)[path]
    tokens = scatter(
        evidence.indptr, evidence.words, evidence.counts, padded(one_hot), evidence.n_words
    )
    word_topic = np.zeros((evidence.n_words, n_topics))
    topic_behaviour = np.zeros((n_topics, n_behaviours))
    for z in range(n_behaviours):
        seen = np.flatnonzero(tokens[:, z])
        weights: Array = parameters.phi[seen] * parameters.theta[:, z]
        weights /= weights.sum(axis=1, keepdims=True)
        split = rng.multinomial(tokens[seen, z].astype(np.int64), weights)
        word_topic[seen] += split
        topic_behaviour[:, z] = split.sum(axis=0)
    opening, steps = np.flatnonzero(evidence.first), np.flatnonzero(~evidence.first)
    transitions = np.zeros((n_behaviours, n_behaviours))
    np.add.at(transitions, (path[steps], path[steps - 1]), 1)
    return ExpectedCounts(word_topic, topic_behaviour, one_hot[opening].sum(axis=0), transitions)
