"""A blocked Gibbs sampler of the same posterior, for corpora of millions of tokens.

It alternates between the parameters given the hidden variables, from their Dirichlets, and the
hidden variables given the parameters: the whole path of behaviours at once (forward filtering,
backward sampling, topics summed out), then the topics. Tokens of one word under one behaviour are
alike, so a multinomial splits them between the topics: a sweep does not grow with the tokens.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.model.expected_counts import Evidence, ExpectedCounts, log_likelihoods, padded, scatter
from habitus.model.gibbs import log_joint
from habitus.model.messages import filter_forward, sample_backward
from habitus.model.parameters import Concentrations, Parameters, sample_dirichlet


class State(NamedTuple):
    """Where the chain stands."""

    behaviours: NDArray[np.int64]
    """Behaviour of each document."""
    counts: ExpectedCounts
    """Counts of the hidden variables: whole numbers."""
    objective: float
    """ln p(x, y, z), the collapsed log joint, as of the collapsed sampler."""


def init(
    parameters: Parameters, evidence: Evidence, prior: Concentrations, rng: np.random.Generator
) -> State:
    """Hidden variables given the parameters."""
    phi, theta, pi, xi = parameters
    log_like = log_likelihoods(evidence, phi, theta)
    messages = filter_forward(log_like, evidence.first, pi, xi)
    path = sample_backward(messages, evidence.first, xi, rng.random(evidence.n_documents))
    counts = _split(path, evidence, parameters, rng)
    return State(path, counts, log_joint(counts, prior))


def step(
    state: State, evidence: Evidence, prior: Concentrations, rng: np.random.Generator
) -> State:
    """One sweep: the parameters given the hidden variables, then these given the parameters."""
    return init(draw_parameters(state.counts, prior, rng), evidence, prior, rng)


def draw_parameters(
    counts: ExpectedCounts, prior: Concentrations, rng: np.random.Generator
) -> Parameters:
    """One draw from p(Omega | x, y, z)."""
    blocks = zip(counts, prior, strict=True)
    return Parameters(*(sample_dirichlet(n + h, rng) for n, h in blocks))


def _split(
    path: NDArray[np.int64], evidence: Evidence, parameters: Parameters, rng: np.random.Generator
) -> ExpectedCounts:
    """Counts given the path: topics drawn for all tokens of a word under a behaviour at once."""
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
