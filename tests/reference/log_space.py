"""E-step in logarithms and extended precision, for corpora of any size.

The paper's two messages, Eq. (10) and (11), each brought back to a sum of one at every
document. NumPy's longdouble has 64 bits of mantissa on x86; where it is a plain double, the
renormalisation still keeps the errors well under 1e-9 at the paper's size.
"""

from typing import NamedTuple

import numpy as np

from habitus.model.expected_counts import Evidence
from habitus.model.parameters import Parameters

Wide = np.longdouble


class ForwardBackward(NamedTuple):
    """Posteriors of the behaviours."""

    posterior: np.ndarray
    """p(z_t | x_{1:T}), documents x behaviours."""
    log_filtered: np.ndarray
    """ln p(z_t | x_{1:t}), documents x behaviours."""
    first: np.ndarray
    transitions: np.ndarray
    log_evidence: np.ndarray
    """ln p(x_t | x_{1:t-1}), documents."""


class LogSpace(NamedTuple):
    """Expected counts and what they rest on."""

    chain: ForwardBackward
    phi: np.ndarray
    theta: np.ndarray
    log_likelihood: np.longdouble


def log_sum(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    best = values.max(axis=axis, keepdims=True)
    safe = np.where(np.isfinite(best), best, 0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - safe).sum(axis=axis, keepdims=True)) + safe
    return np.squeeze(total, axis=axis)


def log_likelihoods(evidence: Evidence, parameters: Parameters) -> np.ndarray:
    """ln p(x_t | z_t), documents x behaviours."""
    mixed = np.asarray(parameters.phi, Wide) @ np.asarray(parameters.theta, Wide)
    with np.errstate(divide="ignore"):
        logs = np.log(mixed)
    sums = np.zeros((evidence.n_documents, mixed.shape[1]), Wide)
    for t in range(evidence.n_documents):
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        weights = np.asarray(evidence.counts[here], Wide)
        sums[t] = (weights[:, None] * logs[evidence.words[here]]).sum(axis=0)
    return sums


def forward_backward(
    log_like: np.ndarray, first: np.ndarray, pi: np.ndarray, xi: np.ndarray
) -> ForwardBackward:
    """Posteriors of every sequence; each must be possible."""
    log_like = np.asarray(log_like, Wide)
    with np.errstate(divide="ignore"):
        log_pi, log_xi = np.log(np.asarray(pi, Wide)), np.log(np.asarray(xi, Wide))
    n_documents, n = log_like.shape
    forward, log_evidence = np.empty_like(log_like), np.empty(n_documents, Wide)
    for t in range(n_documents):
        arrived = log_pi if first[t] else log_sum(log_xi + forward[t - 1], axis=1)
        log_evidence[t] = log_sum(arrived + log_like[t])
        forward[t] = arrived + log_like[t] - log_evidence[t]
    last = np.append(first[1:], True)
    backward = np.zeros_like(log_like)
    for t in range(n_documents - 2, -1, -1):
        if not last[t]:
            onward = (log_xi.T + log_like[t + 1]) + backward[t + 1]
            backward[t] = log_sum(onward, axis=1) - log_evidence[t + 1]
    posterior = np.exp(forward + backward)
    transitions = np.zeros((n, n), Wide)
    for t in np.flatnonzero(~first):
        into = (log_like[t] + backward[t] - log_evidence[t])[:, None]
        transitions += np.exp(log_xi + forward[t - 1] + into)
    return ForwardBackward(
        posterior, forward, posterior[first].sum(axis=0), transitions, log_evidence
    )


def e_step(evidence: Evidence, parameters: Parameters) -> LogSpace:
    """Expected counts, document by document and word by word."""
    phi, theta, pi, xi = (np.asarray(block, Wide) for block in parameters)
    chain = forward_backward(log_likelihoods(evidence, parameters), evidence.first, pi, xi)
    n_phi, n_theta = np.zeros_like(phi), np.zeros_like(theta)
    for t in range(evidence.n_documents):
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        words = evidence.words[here]
        weights = np.asarray(evidence.counts[here], Wide)
        joint = phi[words][:, :, None] * theta  # words x topics x behaviours
        total = joint.sum(axis=1, keepdims=True)
        share = joint / np.where(total > 0, total, 1) * chain.posterior[t]
        share *= weights[:, None, None]
        n_phi[words] += share.sum(axis=2)
        n_theta += share.sum(axis=0)
    return LogSpace(chain, n_phi, n_theta, chain.log_evidence.sum())
