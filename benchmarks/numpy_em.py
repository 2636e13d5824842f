"""The same EM iteration in plain NumPy and SciPy: a peer, and a check on what ours computes.

The formulas are those of the factorised E-step, written as one would on paper: sparse products, a
loop over documents for the messages, and whole-array arithmetic for the rest.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from habitus import Parameters
from habitus.arrays import Array
from habitus.model.parameters import Concentrations


class Iteration(NamedTuple):
    """Parameters after an M-step, and the objective at the parameters before it."""

    parameters: Parameters
    log_likelihood: float
    objective: float


def iterate(
    parameters: Parameters, counts: sp.csr_array, prior: Concentrations, smoothing: float
) -> Iteration:
    """E-step with its objective, then M-step, for one sequence of documents."""
    phi, theta, pi, xi = parameters
    mixed = phi @ theta
    log_mixed = np.log(mixed, out=np.zeros_like(mixed), where=mixed > 0)
    posterior, transitions, log_likelihood = _forward_backward(counts @ log_mixed, pi, xi)
    tokens = counts.T @ posterior
    ratio = np.divide(tokens, mixed, out=np.zeros_like(mixed), where=tokens > 0)
    expected = (
        phi * (ratio @ theta.T),
        theta * (phi.T @ ratio),
        posterior[0],
        transitions,
    )
    pairs = zip(expected, prior, strict=True)
    modes = Parameters(*(_mode(n, h, smoothing if h.min() <= 1 else 0.0) for n, h in pairs))
    return Iteration(modes, log_likelihood, log_likelihood + _log_prior(parameters, prior))


def _forward_backward(log_like: Array, pi: Array, xi: Array) -> tuple[Array, Array, float]:
    """p(z_t | all), expected steps (next x now), and the log-likelihood."""
    best = log_like.max(axis=1, keepdims=True)
    likelihood = np.exp(log_like - best)
    forward, scale = np.empty_like(likelihood), np.empty(len(likelihood))
    predicted = pi
    for t, here in enumerate(likelihood):
        joint = predicted * here
        scale[t] = joint.sum()
        forward[t] = joint / scale[t]
        predicted = xi @ forward[t]
    backward = np.ones_like(likelihood)
    transitions = np.zeros_like(xi)
    for t in range(len(likelihood) - 1, 0, -1):
        message = likelihood[t] * backward[t] / scale[t]
        transitions += xi * np.outer(message, forward[t - 1])
        backward[t - 1] = xi.T @ message
    return forward * backward, transitions, float(best.sum() + np.log(scale).sum())


def _mode(counts: Array, hyperparameter: Array, smoothing: float) -> Array:
    mode = np.maximum(counts + hyperparameter - 1, 0)
    mode = mode / mode.sum(axis=0) + smoothing
    return np.asarray(mode / mode.sum(axis=0))


def _log_prior(parameters: Parameters, prior: Concentrations) -> float:
    total = 0.0
    for block, hyperparameter in zip(parameters, prior, strict=True):
        if np.any(hyperparameter != 1):
            total += float(((hyperparameter - 1) * np.log(block)).sum())
    return total
