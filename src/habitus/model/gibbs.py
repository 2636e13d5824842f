"""The paper's collapsed Gibbs sampler, section IV-C: topics of tokens, behaviours of documents.

The parameters are integrated out. A sweep visits the documents in order: first the topic of each
token given all else, then the document's behaviour given all else.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from habitus.arrays import Array
from habitus.compiled import compiled
from habitus.model.expected_counts import Evidence, ExpectedCounts
from habitus.model.messages import draw, draw_log
from habitus.model.parameters import Assignments, Concentrations, Parameters, Sizes
from habitus.model.special import log_rising


class Tokens(NamedTuple):
    """Documents spelt out, word after word."""

    words: NDArray[np.int32]
    """Word of each token: document after document, words ascending within a document."""
    starts: NDArray[np.int64]
    """Where each document's tokens start; one more than documents."""
    first: NDArray[np.bool_]
    """Whether a document opens a sequence."""


class State(NamedTuple):
    """Where the chain stands."""

    assignments: Assignments
    counts: ExpectedCounts
    """Counts of `assignments`: whole numbers."""
    document_topics: Array
    """Tokens of each topic in each document, documents x topics."""
    objective: float
    """ln p(x, y, z), the collapsed log joint."""


def spell(evidence: Evidence) -> Tokens:
    """Tokens of the evidence, whose counts must be whole numbers."""
    n_tokens = int(evidence.counts.sum())
    words, starts = _spell(evidence.indptr, evidence.words, evidence.counts, n_tokens)
    return Tokens(words, starts, evidence.first)


def init(assignments: Assignments, tokens: Tokens, sizes: Sizes, prior: Concentrations) -> State:
    """Counts and log joint of given assignments."""
    topics = assignments.topics.astype(np.uint16)  # a copy: sweeps change it in place
    behaviours = assignments.behaviours.astype(np.int64)
    *blocks, document_topics = _count(tokens, topics, behaviours, sizes)
    counts = ExpectedCounts(*blocks)
    return State(Assignments(topics, behaviours), counts, document_topics, log_joint(counts, prior))


def step(state: State, tokens: Tokens, prior: Concentrations, rng: np.random.Generator) -> State:
    """One sweep over every token and every document.

    It takes over the arrays of `state` (copying them would cost a tenth of the sweep): go on with
    the state returned.
    """
    full = (
        np.ascontiguousarray(np.broadcast_to(h.reshape(-1), (len(block),)))
        for h, block in zip(prior, state.counts, strict=True)
    )
    chain = Chain(*state.assignments, *state.counts, state.document_topics, *full)
    gain = _sweep(tokens, chain, rng.integers(2**64, dtype=np.uint64))
    return state._replace(objective=state.objective + gain)


def estimate(counts: ExpectedCounts, prior: Concentrations) -> Parameters:
    """Parameters of one sample, (GS:phi) to (GS:xi), and pi by the same rule."""
    blocks = [n + h for n, h in zip(counts, prior, strict=True)]
    for block in blocks:
        block /= block.sum(axis=0)
    return Parameters(*blocks)


def log_joint(counts: ExpectedCounts, prior: Concentrations) -> float:
    """ln p(x, y, z): a Dirichlet-multinomial for every column of every block."""
    total = 0.0
    for block, hyperparameter in zip(counts, prior, strict=True):
        h = np.broadcast_to(hyperparameter.reshape(-1), (len(block),))
        for column in block.reshape(len(block), -1).T:
            used = column > 0
            total += float((gammaln(column[used] + h[used]) - gammaln(h[used])).sum())
            total += float(gammaln(h.sum()) - gammaln(h.sum() + column.sum()))
    return total


@compiled
def _spell(
    indptr: NDArray[np.int64], words: NDArray[np.int32], counts: Array, n_tokens: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """`np.repeat(words, counts)`, and where each document starts in it."""
    spelt, starts = np.empty(n_tokens, dtype=np.int32), np.zeros(len(indptr), dtype=np.int64)
    token = 0
    for t in range(len(indptr) - 1):
        for j in range(indptr[t], indptr[t + 1]):
            for _ in range(int(counts[j])):
                spelt[token] = words[j]
                token += 1
        starts[t + 1] = token
    return spelt, starts


class Chain(NamedTuple):
    """What a sweep changes in place, and the hyperparameters at full length."""

    topics: NDArray[np.integer[Any]]
    behaviours: NDArray[np.int64]
    phi: Array
    theta: Array
    pi: Array
    xi: Array
    document_topics: Array
    beta: Array
    alpha: Array
    eta: Array
    gamma: Array


@compiled
def _count(
    tokens: Tokens, topics: NDArray[np.uint16], behaviours: NDArray[np.int64], sizes: Sizes
) -> tuple[Array, Array, Array, Array, Array]:
    """Counts of the assignments, and of topics in documents."""
    n_words, n_topics, n_behaviours = sizes
    phi = np.zeros((n_words, n_topics))
    theta = np.zeros((n_topics, n_behaviours))
    pi = np.zeros(n_behaviours)
    xi = np.zeros((n_behaviours, n_behaviours))
    document_topics = np.zeros((len(behaviours), n_topics))
    for t in range(len(behaviours)):
        z = behaviours[t]
        if tokens.first[t]:
            pi[z] += 1
        else:
            xi[z, behaviours[t - 1]] += 1
        for i in range(tokens.starts[t], tokens.starts[t + 1]):
            phi[tokens.words[i], topics[i]] += 1
            theta[topics[i], z] += 1
            document_topics[t, topics[i]] += 1
    return phi, theta, pi, xi, document_topics


@compiled
def _uniform(seed: np.uint64, i: int) -> float:
    """The i-th of a stream of uniform numbers in [0, 1): SplitMix64, which needs no state."""
    x = seed + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) * 2.0**-53


@compiled
def draw_topics(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Array,
    path: NDArray[np.int64],
    phi: Array,
    theta: Array,
    seed: np.uint64,
) -> NDArray[np.uint16]:
    """A topic for each token from p(y | x, z), parameters and path given."""
    n_topics = len(theta)
    topics = np.empty(int(counts.sum()), dtype=np.uint16)
    weights = np.empty(n_topics)
    token = 0
    for t in range(len(path)):
        for j in range(indptr[t], indptr[t + 1]):
            for k in range(n_topics):
                weights[k] = phi[words[j], k] * theta[k, path[t]]
            for _ in range(int(counts[j])):
                topics[token] = draw(weights, _uniform(seed, token))
                token += 1
    return topics


@compiled
def _sweep(tokens: Tokens, chain: Chain, seed: np.uint64) -> float:
    """Resample every topic and behaviour in place; return the gain in log joint."""
    n_topics, n_behaviours = chain.theta.shape
    topic_totals = np.zeros(n_topics)
    for w in range(len(chain.phi)):
        for k in range(n_topics):
            topic_totals[k] += chain.phi[w, k]
    behaviour_totals = np.zeros(n_behaviours)
    for k in range(n_topics):
        for z in range(n_behaviours):
            behaviour_totals[z] += chain.theta[k, z]
    sum_of_beta = chain.beta.sum()
    gain = 0.0
    for t in range(len(tokens.first)):
        gain += _sample_topics(t, tokens, chain, topic_totals, sum_of_beta, seed)
        uniform = _uniform(seed, len(chain.topics) + t)
        gain += _sample_behaviour(t, tokens.first, chain, behaviour_totals, uniform)
    return gain


@compiled
def _sample_topics(
    t: int, tokens: Tokens, chain: Chain, totals: Array, sum_of_beta: float, seed: np.uint64
) -> float:
    """p(y | rest) of each token: (n_xy + beta_x) (n_yz + alpha_y) / (n_y + sum beta).

    Counts are without the token itself. `own` are n_yz, `totals` n_y, and `scale` the part that
    does not depend on the word. Staying is decided first, from the sum of all weights alone; only a
    token that changes its topic looks at each of them and writes any count. One is taken from a
    count before a hyperparameter is added, so that the smallest one keeps its digits.
    """
    z = chain.behaviours[t]
    n_topics = len(totals)
    words, topics, alpha, beta = tokens.words, chain.topics, chain.alpha, chain.beta
    in_document = chain.document_topics[t]
    # One flat table of counts: the compiler then keeps its address in a register.
    table, width = chain.phi.reshape(-1), np.uint64(n_topics)
    own, scale = np.empty(n_topics), np.empty(n_topics)
    sum_of_scale, gain, odds = 0.0, 0.0, 1.0
    for k in range(n_topics):
        own[k] = chain.theta[k, z]
        scale[k] = (own[k] + alpha[k]) / (totals[k] + sum_of_beta)
        sum_of_scale += scale[k]
        chain.theta[k, z] -= in_document[k]
    for i in range(tokens.starts[t], tokens.starts[t + 1]):
        word, old = np.uint64(words[i]), topics[i]
        row, smooth = word * width, beta[word]
        mine = table[row + np.uint64(old)]
        stay = (mine - 1 + smooth) * (own[old] - 1 + alpha[old]) / (totals[old] - 1 + sum_of_beta)
        everything = smooth * sum_of_scale
        for k in range(n_topics):
            everything += table[row + np.uint64(k)] * scale[k]
        move = everything - (mine + smooth) * scale[old]
        left = (stay + move) * _uniform(seed, i) - stay
        if left >= 0 and n_topics > 1:
            new, weight = old, 0.0
            for k in range(n_topics):
                if k != old:
                    new = np.uint16(k)
                    weight = (table[row + np.uint64(k)] + smooth) * scale[k]
                    left -= weight
                    if left < 0:
                        break
            odds *= weight / stay
            if not 1e-100 < odds < 1e100:
                gain += np.log(odds)
                odds = 1.0
            topics[i] = new
            table[row + np.uint64(old)] -= 1
            table[row + np.uint64(new)] += 1
            in_document[old] -= 1
            in_document[new] += 1
            own[old] -= 1
            own[new] += 1
            totals[old] -= 1
            totals[new] += 1
            sum_of_scale -= scale[old] + scale[new]
            scale[old] = (own[old] + alpha[old]) / (totals[old] + sum_of_beta)
            scale[new] = (own[new] + alpha[new]) / (totals[new] + sum_of_beta)
            sum_of_scale += scale[old] + scale[new]
    for k in range(n_topics):
        chain.theta[k, z] += in_document[k]
    return float(gain + np.log(odds))


@compiled
def _sample_behaviour(
    t: int, first: NDArray[np.bool_], chain: Chain, totals: Array, uniform: float
) -> float:
    """p(z_t | rest): the document's topics, the step into it and the step out of it.

    `totals` are the tokens of each behaviour.
    """
    theta, alpha, in_document = chain.theta, chain.alpha, chain.document_topics[t]
    n_topics, n_behaviours = theta.shape
    n_tokens, sum_of_alpha = in_document.sum(), alpha.sum()
    old = chain.behaviours[t]
    before = -1 if first[t] else chain.behaviours[t - 1]
    after = -1 if t == len(first) - 1 or first[t + 1] else chain.behaviours[t + 1]
    _move(before, old, after, -1.0, theta, chain.pi, chain.xi, in_document)
    totals[old] -= n_tokens
    log_weights = _chain_weights(before, after, chain.pi, chain.xi, chain.eta, chain.gamma)
    for z in range(n_behaviours):
        log_weight = np.log(log_weights[z]) - log_rising(totals[z] + sum_of_alpha, n_tokens)
        for k in range(n_topics):
            log_weight += log_rising(theta[k, z] + alpha[k], in_document[k])
        log_weights[z] = log_weight
    new = draw_log(log_weights, uniform)
    chain.behaviours[t] = new
    totals[new] += n_tokens
    _move(before, new, after, 1.0, theta, chain.pi, chain.xi, in_document)
    return float(log_weights[new] - log_weights[old])


@compiled
def _move(
    before: int,
    z: int,
    after: int,
    sign: float,
    theta: Array,
    pi: Array,
    xi: Array,
    in_document: Array,
) -> None:
    """Count (sign 1) or discount (sign -1) a document under behaviour z; -1 is no neighbour."""
    for k in range(len(in_document)):
        theta[k, z] += sign * in_document[k]
    if before < 0:
        pi[z] += sign
    else:
        xi[z, before] += sign
    if after >= 0:
        xi[after, z] += sign


@compiled
def _chain_weights(
    before: int, after: int, pi: Array, xi: Array, eta: Array, gamma: Array
) -> Array:
    """p(z_t = z, after | before, other steps) of each z, up to a factor common to all z."""
    n = len(pi)
    weights = np.empty(n)
    sum_of_gamma = gamma.sum()
    for z in range(n):
        weights[z] = pi[z] + eta[z] if before < 0 else xi[z, before] + gamma[z]
        if after >= 0:
            steps = sum_of_gamma
            for z_next in range(n):
                steps += xi[z_next, z]
            # before = z: the step into t leaves from z too; and z = after: it is the same step.
            into = xi[after, z] + gamma[after] + (before == z and z == after)
            weights[z] *= into / (steps + (before == z))
    return weights
