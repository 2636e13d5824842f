"""Collapsed Gibbs sampler, section IV-C of the paper: Eq. (31) to (33).

The parameters are integrated out. A sweep visits the documents in order: first the topic of each
token given everything else, then the document's behaviour given everything else.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags, Indices, WordIds
from habitus.compiled import compiled
from habitus.model.expected_counts import Evidence, ExpectedCounts
from habitus.model.messages import draw, draw_log
from habitus.model.parameters import Assignments, Concentrations, Parameters, Sizes
from habitus.model.special import log_rising


class Tokens(NamedTuple):
    """Documents as one list of tokens."""

    words: WordIds
    """Word of each token: document after document, words ascending within a document."""
    starts: Indices
    """Position of each document's first token; one entry more than documents."""
    first: Flags
    """Whether a document starts a sequence."""


class GibbsState(NamedTuple):
    """State of the sampler after a sweep."""

    assignments: Assignments
    counts: ExpectedCounts
    """Counts of `assignments`: whole numbers."""
    document_topics: Array
    """Tokens of each topic in each document, documents x topics."""
    objective: float
    """ln p(x, y, z), the collapsed log joint."""


def init(
    assignments: Assignments, tokens: Tokens, sizes: Sizes, prior: Concentrations
) -> GibbsState:
    """Return the state at given assignments, which are copied."""
    topics = assignments.topics.astype(np.uint16)  # a copy: sweeps change it in place
    behaviours = assignments.behaviours.astype(np.int64)
    *blocks, document_topics = _count(tokens, topics, behaviours, sizes)
    counts = ExpectedCounts(*blocks)
    copies = Assignments(topics, behaviours)
    return GibbsState(copies, counts, document_topics, log_joint(counts, prior))


def step(
    state: GibbsState, tokens: Tokens, prior: Concentrations, rng: np.random.Generator
) -> GibbsState:
    """Run one sweep over every token and every document.

    The arrays of the previous state are changed in place (copying them would take a tenth of the
    sweep): continue with the state returned.
    """
    full = (  # copies: a view that cannot be written is another type, compiled anew
        np.array(np.broadcast_to(h.reshape(-1), (len(block),)))
        for h, block in zip(prior, state.counts, strict=True)
    )
    arrays = SweepArrays(*state.assignments, *state.counts, state.document_topics, *full)
    gain = _sweep(tokens, arrays, rng.integers(2**64, dtype=np.uint64))
    return state._replace(objective=state.objective + gain)


def tokens_of(evidence: Evidence) -> Tokens:
    """Return the tokens of the evidence, whose counts must be whole numbers."""
    counts = evidence.counts.astype(np.int64)
    starts = np.append(0, np.cumsum(counts))[evidence.indptr]
    return Tokens(np.repeat(evidence.words, counts), starts, evidence.first)


def estimate(counts: ExpectedCounts, prior: Concentrations) -> Parameters:
    """Return `(n + h)` over its column sum of each block: the point estimates of one sample.

    The paper leaves pi out; it follows the same rule.
    """
    blocks = [n + h for n, h in zip(counts, prior, strict=True)]
    for block in blocks:
        block /= block.sum(axis=0)  # Eq. (31) for phi, (32) for theta, (33) for xi
    return Parameters(*blocks)


def log_joint(counts: ExpectedCounts, prior: Concentrations) -> float:
    """Return ln p(x, y, z): Eq. (2) with the parameters integrated out.

    Every column of every block is a Dirichlet-multinomial.
    """
    from scipy.special import gammaln

    total = 0.0
    for block, hyperparameter in zip(counts, prior, strict=True):
        h = np.broadcast_to(hyperparameter.reshape(-1), (len(block),))
        for column in block.reshape(len(block), -1).T:
            used = column > 0
            total += float((gammaln(column[used] + h[used]) - gammaln(h[used])).sum())
            total += float(gammaln(h.sum()) - gammaln(h.sum() + column.sum()))
    return total


class SweepArrays(NamedTuple):
    """Arrays that a sweep changes in place, and the hyperparameters at full length."""

    topics: NDArray[np.integer[Any]]
    behaviours: Indices
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
    tokens: Tokens, topics: NDArray[np.uint16], behaviours: Indices, sizes: Sizes
) -> tuple[Array, Array, Array, Array, Array]:
    """Count the assignments, and the topics in each document."""
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
    """Return the i-th uniform number in [0, 1) of a seed: SplitMix64, which needs no state."""
    x = seed + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) * 2.0**-53


@compiled
def draw_topics(
    indptr: Indices,
    words: WordIds,
    counts: Array,
    path: Indices,
    phi: Array,
    theta: Array,
    seed: np.uint64,
) -> NDArray[np.uint16]:
    """Draw `draw(phi[word] * theta[:, path[t]], uniform)` for each token: p(y | x, z).

    `path` is the behaviour of each document; there is one uniform number of the seed per token.
    """
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
def _sweep(tokens: Tokens, arrays: SweepArrays, seed: np.uint64) -> float:
    """Draw every topic and behaviour anew, in place; return the gain in log joint."""
    n_topics, n_behaviours = arrays.theta.shape
    topic_totals = np.zeros(n_topics)
    for w in range(len(arrays.phi)):
        for k in range(n_topics):
            topic_totals[k] += arrays.phi[w, k]
    behaviour_totals = np.zeros(n_behaviours)
    for k in range(n_topics):
        for z in range(n_behaviours):
            behaviour_totals[z] += arrays.theta[k, z]
    sum_of_beta = arrays.beta.sum()
    gain = 0.0
    for t in range(len(tokens.first)):
        gain += _sample_topics(t, tokens, arrays, topic_totals, sum_of_beta, seed)
        uniform = _uniform(seed, len(arrays.topics) + t)
        gain += _sample_behaviour(t, tokens.first, arrays, behaviour_totals, uniform)
    return gain


@compiled
def _sample_topics(
    t: int, tokens: Tokens, arrays: SweepArrays, totals: Array, sum_of_beta: float, seed: np.uint64
) -> float:
    """Draw the topic of each token of a document, in place; return the gain in log joint.

    p(y | rest) is proportional to (n_xy + beta_x) (n_yz + alpha_y) / (n_y + sum beta), the product
    of Eq. (31) and (32) with counts that leave out the token itself. `own` are n_yz, `totals` n_y,
    and `scale` is the factor that does not depend on the word. Whether a token keeps its topic is
    decided first, from the sum of all weights alone; only a token that changes its topic reads each
    weight and writes counts. One is subtracted from a count before a hyperparameter is added, so
    that the smallest hyperparameter keeps its digits.
    """
    z = arrays.behaviours[t]
    n_topics = len(totals)
    words, topics, alpha, beta = tokens.words, arrays.topics, arrays.alpha, arrays.beta
    in_document = arrays.document_topics[t]
    # One flat table of counts: the compiler then keeps its address in a register.
    table, width = arrays.phi.reshape(-1), np.uint64(n_topics)
    own, scale = np.empty(n_topics), np.empty(n_topics)
    sum_of_scale, gain, odds = 0.0, 0.0, 1.0
    for k in range(n_topics):
        own[k] = arrays.theta[k, z]
        scale[k] = (own[k] + alpha[k]) / (totals[k] + sum_of_beta)
        sum_of_scale += scale[k]
        arrays.theta[k, z] -= in_document[k]
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
            # The log joint gains ln(weight / stay): one logarithm for many tokens, taken before
            # the product of their odds overflows or underflows.
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
        arrays.theta[k, z] += in_document[k]
    return float(gain + np.log(odds))


@compiled
def _sample_behaviour(
    t: int, first: Flags, arrays: SweepArrays, totals: Array, uniform: float
) -> float:
    """Draw the behaviour of a document from p(z_t | rest); return the gain in log joint.

    The probability has three factors: the document's topics, the transition into the document and
    the transition out of it. `totals` are the tokens of each behaviour.
    """
    theta, alpha, in_document = arrays.theta, arrays.alpha, arrays.document_topics[t]
    n_topics, n_behaviours = theta.shape
    n_tokens, sum_of_alpha = in_document.sum(), alpha.sum()
    old = arrays.behaviours[t]
    before = -1 if first[t] else arrays.behaviours[t - 1]
    after = -1 if t == len(first) - 1 or first[t + 1] else arrays.behaviours[t + 1]
    _move(before, old, after, -1.0, theta, arrays.pi, arrays.xi, in_document)
    totals[old] -= n_tokens
    log_weights = _chain_weights(before, after, arrays.pi, arrays.xi, arrays.eta, arrays.gamma)
    for z in range(n_behaviours):
        log_weight = np.log(log_weights[z]) - log_rising(totals[z] + sum_of_alpha, n_tokens)
        for k in range(n_topics):
            log_weight += log_rising(theta[k, z] + alpha[k], in_document[k])
        log_weights[z] = log_weight
    new = draw_log(log_weights, uniform)
    arrays.behaviours[t] = new
    totals[new] += n_tokens
    _move(before, new, after, 1.0, theta, arrays.pi, arrays.xi, in_document)
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
    """Add (sign 1) or remove (sign -1) the counts of a document; a neighbour of -1 is none."""
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
    """Return p(z_t = z, z_{t+1} | z_{t-1}, other transitions) of each z, up to a common factor."""
    n = len(pi)
    weights = np.empty(n)
    sum_of_gamma = gamma.sum()
    for z in range(n):
        weights[z] = pi[z] + eta[z] if before < 0 else xi[z, before] + gamma[z]
        if after >= 0:
            steps = sum_of_gamma
            for z_next in range(n):
                steps += xi[z_next, z]
            # Where before = z the transition into t leaves from z too; with z = after, both
            # transitions are the same one.
            into = xi[after, z] + gamma[after] + (before == z and z == after)
            weights[z] *= into / (steps + (before == z))
    return weights
