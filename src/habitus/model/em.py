"""EM for maximum a posteriori estimates, section IV-A of the paper."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.compiled import compiled
from habitus.model.expected_counts import EStep, Evidence, ExpectedCounts, expect
from habitus.model.messages import SAFE
from habitus.model.parameters import Concentrations, Parameters

Dead = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


class State(NamedTuple):
    """Where EM stands."""

    parameters: Parameters
    e_step: EStep
    """Expected counts under `parameters`."""
    objective: float
    """ln p(x | Omega) + ln p(Omega) of `parameters`, the prior up to a constant."""
    dead: Dead | None
    """Columns of phi, theta, pi and xi without any mass in the M-step, uniform now."""


def init(parameters: Parameters, evidence: Evidence, prior: Concentrations) -> State:
    """E-step and objective at given parameters, which are copied."""
    own = Parameters(*(block.copy() for block in parameters))
    e_step = expect(evidence, own)
    return State(own, e_step, e_step.log_likelihood + log_prior(own, prior), None)


def step(state: State, evidence: Evidence, prior: Concentrations, smoothing: float) -> State:
    """M-step on the last expected counts, then the E-step at what it gave.

    It takes over the arrays of `state`, so that learning needs two copies of phi in all: go on
    with the state returned.
    """
    parameters, dead = maximise(state.e_step.counts, prior, smoothing)
    e_step = expect(evidence, parameters, room=state.parameters.phi)
    return State(parameters, e_step, e_step.log_likelihood + log_prior(parameters, prior), dead)


def maximise(
    counts: ExpectedCounts, prior: Concentrations, smoothing: float
) -> tuple[Parameters, Dead]:
    """The M-step, (M:phi) to (M:pi), in place of the counts; and each block's dead columns.

    Smoothed where the prior allows a probability of zero. A column without any mass is dead and
    becomes uniform: nothing is known about it.
    """
    return Parameters(*counts), _maximise(counts, prior, smoothing)


@compiled
def _maximise(counts: ExpectedCounts, prior: Concentrations, smoothing: float) -> Dead:
    return (
        _to_mode(counts.phi, prior.phi[:, 0], smoothing),
        _to_mode(counts.theta, prior.theta[:, 0], smoothing),
        _to_mode(counts.pi.reshape(-1, 1), prior.pi, smoothing),
        _to_mode(counts.xi, prior.xi[:, 0], smoothing),
    )


@compiled
def _to_mode(counts: Array, hyperparameter: Array, smoothing: float) -> NDArray[np.bool_]:
    """`(h + n - 1)_+` over its column sum, then `+ smoothing` over its column sum, in place."""
    rows, columns = counts.shape
    total = np.zeros(columns)
    for i in range(rows):
        # First h - 1, then n: a count of 1e-20 keeps its digits where h is 1.
        extra = hyperparameter[i if len(hyperparameter) > 1 else 0] - 1
        for j in range(columns):
            counts[i, j] = max(counts[i, j] + extra, 0.0)
            total[j] += counts[i, j]
    dead: NDArray[np.bool_] = total == 0
    for j in range(columns):
        if dead[j]:
            counts[:, j] = 1
            total[j] = rows
    added = smoothing if hyperparameter.min() <= 1 else 0.0
    spread = 1 + added * rows
    for i in range(rows):
        for j in range(columns):
            counts[i, j] = (counts[i, j] / total[j] + added) / spread
    return dead


@compiled
def log_prior(parameters: Parameters, prior: Concentrations) -> float:
    """Logarithm of the Dirichlet densities of all columns, without their constants."""
    return (
        _log_powers(parameters.phi, prior.phi[:, 0])
        + _log_powers(parameters.theta, prior.theta[:, 0])
        + _log_powers(parameters.pi.reshape(-1, 1), prior.pi)
        + _log_powers(parameters.xi, prior.xi[:, 0])
    )


@compiled
def _log_powers(block: Array, hyperparameter: Array) -> float:
    """`sum((h - 1) * log(block))`; an exponent of 0 gives 0 even beside a probability of 0."""
    if len(hyperparameter) == 1:
        exponent = hyperparameter[0] - 1
        return exponent * _log_product(block.reshape(-1)) if exponent != 0 else 0.0
    total = 0.0
    for i in range(len(hyperparameter)):
        if hyperparameter[i] != 1:
            total += (hyperparameter[i] - 1) * _log_product(block[i])
    return total


@compiled
def _log_product(p: Array) -> float:
    """`log(p).sum()`: one logarithm for eight probabilities whose product does not underflow."""
    total = 0.0
    whole = len(p) - len(p) % 8
    for i in range(0, whole, 8):
        product = ((p[i] * p[i + 1]) * (p[i + 2] * p[i + 3])) * (
            (p[i + 4] * p[i + 5]) * (p[i + 6] * p[i + 7])
        )
        if product > SAFE:
            total += np.log(product)
        else:
            for j in range(i, i + 8):
                total += np.log(p[j])
    for i in range(whole, len(p)):
        total += np.log(p[i])
    return total
