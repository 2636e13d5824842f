"""E-step exactly as published, token by token: Eq. (10) to (16).

One sequence at a time, in plain products: for documents short enough not to underflow. The only
change is the slip in Eq. (10), xi_{z, z~} for xi_{z, z'}.
"""

from typing import NamedTuple

import numpy as np

from habitus.model.parameters import Parameters


class TokenLevel(NamedTuple):
    """The posteriors that the paper's E-step computes, and the counts made of them."""

    first: np.ndarray
    """p(z_1 | x), behaviours."""
    pairs: np.ndarray
    """p(z_t, z_{t-1} | x), (documents - 1) x behaviours x behaviours."""
    tokens: list[np.ndarray]
    """p(y_i, z_t | x) of each document, tokens x topics x behaviours."""
    n_phi: np.ndarray
    n_theta: np.ndarray
    log_likelihood: float
    """ln K."""


def e_step(documents: list[list[int]], parameters: Parameters) -> TokenLevel:
    """Posteriors and expected counts of one sequence of documents."""
    alpha = _alpha(documents, parameters)
    beta = _beta(documents, parameters)
    n = len(parameters.pi)
    normaliser = sum(alpha[0, z] * beta[0, z] for z in range(n))
    first = np.array([alpha[0, z] * beta[0, z] / normaliser for z in range(n)])
    pairs = _pairs(documents, parameters, alpha, beta) / normaliser
    tokens = [
        _tokens(t, documents, parameters, alpha, beta) / normaliser for t in range(len(documents))
    ]
    n_phi, n_theta = np.zeros_like(parameters.phi), np.zeros_like(parameters.theta)
    for document, posterior in zip(documents, tokens, strict=True):
        for i, x in enumerate(document):
            n_phi[x] += posterior[i].sum(axis=1)
            n_theta += posterior[i]
    return TokenLevel(first, pairs, tokens, n_phi, n_theta, float(np.log(normaliser)))


def _mixture(x: int, z: int, parameters: Parameters) -> float:
    """sum_y phi_{x,y} theta_{y,z}."""
    total = 0.0
    for y in range(len(parameters.theta)):
        total += parameters.phi[x, y] * parameters.theta[y, z]
    return total


def _product(document: list[int], z: int, parameters: Parameters, leave_out: int = -1) -> float:
    """Product over the tokens of a document, all or all but one."""
    total = 1.0
    for j, x in enumerate(document):
        if j != leave_out:
            total *= _mixture(x, z, parameters)
    return total


def _alpha(documents: list[list[int]], parameters: Parameters) -> np.ndarray:
    n = len(parameters.pi)
    alpha = np.zeros((len(documents), n))
    for z in range(n):
        alpha[0, z] = parameters.pi[z] * _product(documents[0], z, parameters)
    for t in range(1, len(documents)):
        for z in range(n):
            arrived = sum(alpha[t - 1, z_] * parameters.xi[z, z_] for z_ in range(n))
            alpha[t, z] = _product(documents[t], z, parameters) * arrived
    return alpha


def _beta(documents: list[list[int]], parameters: Parameters) -> np.ndarray:
    n = len(parameters.pi)
    beta = np.ones((len(documents), n))
    for t in range(len(documents) - 2, -1, -1):
        for z in range(n):
            beta[t, z] = sum(
                beta[t + 1, z_] * parameters.xi[z_, z] * _product(documents[t + 1], z_, parameters)
                for z_ in range(n)
            )
    return beta


def _pairs(
    documents: list[list[int]], parameters: Parameters, alpha: np.ndarray, beta: np.ndarray
) -> np.ndarray:
    n = len(parameters.pi)
    pairs = np.zeros((len(documents) - 1, n, n))
    for t in range(1, len(documents)):
        for z in range(n):
            for z_before in range(n):
                pairs[t - 1, z, z_before] = (
                    alpha[t - 1, z_before]
                    * beta[t, z]
                    * parameters.xi[z, z_before]
                    * _product(documents[t], z, parameters)
                )
    return pairs


def _tokens(
    t: int,
    documents: list[list[int]],
    parameters: Parameters,
    alpha: np.ndarray,
    beta: np.ndarray,
) -> np.ndarray:
    phi, theta, pi, xi = parameters
    n_topics, n = theta.shape
    posterior = np.zeros((len(documents[t]), n_topics, n))
    for i, x in enumerate(documents[t]):
        for z in range(n):
            arrived = pi[z] if t == 0 else sum(alpha[t - 1, z_] * xi[z, z_] for z_ in range(n))
            others = _product(documents[t], z, parameters, leave_out=i)
            for y in range(n_topics):
                posterior[i, y, z] = phi[x, y] * theta[y, z] * beta[t, z] * arrived * others
    return posterior
