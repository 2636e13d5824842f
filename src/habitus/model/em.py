"""EM for maximum a posteriori estimates, section IV-A of the paper."""

from typing import NamedTuple

import numpy as np

from habitus.compiled import compiled
from habitus.model.evidence import Evidence
from habitus.model.expected_counts import EStep, expect
from habitus.model.parameters import Array, Parameters
from habitus.model.prior import Concentrations


class State(NamedTuple):
    """Where EM stands."""

    parameters: Parameters
    e_step: EStep
    """Expected counts under `parameters`."""
    objective: float
    """ln p(x | Omega) + ln p(Omega) of `parameters`, the prior up to a constant."""


def init(parameters: Parameters, evidence: Evidence, prior: Concentrations) -> State:
    """E-step and objective at given parameters."""
    e_step = expect(evidence, parameters)
    return State(parameters, e_step, e_step.log_likelihood + log_prior(parameters, prior))


def step(state: State, evidence: Evidence, prior: Concentrations, smoothing: float) -> State:
    """M-step on the last expected counts, then the E-step at what it gave."""
    return init(maximise(state.e_step, prior, smoothing), evidence, prior)


def maximise(e_step: EStep, prior: Concentrations, smoothing: float) -> Parameters:
    """The M-step, (M:phi) to (M:pi), smoothed where the prior allows a probability of zero."""
    blocks = zip(prior, e_step.counts, strict=True)
    return Parameters(*(_mode(h, n, smoothing if h.min() <= 1 else 0.0) for h, n in blocks))


def _mode(hyperparameter: Array, counts: Array, smoothing: float) -> Array:
    """`(h + n - 1)_+` over its column sum, then `+ smoothing` over its column sum.

    A column without any mass becomes uniform: nothing is known about it.
    """
    rows = len(counts)
    column = np.broadcast_to(hyperparameter.reshape(-1), (rows,))
    return _normalised_mode(column, counts.reshape(rows, -1), smoothing).reshape(counts.shape)


@compiled
def _normalised_mode(hyperparameter: Array, counts: Array, smoothing: float) -> Array:
    rows, columns = counts.shape
    mode = np.empty((rows, columns))
    total = np.zeros(columns)
    for i in range(rows):
        # First h - 1, then n: a count of 1e-20 keeps its digits where h is 1.
        extra = hyperparameter[i] - 1
        for j in range(columns):
            mode[i, j] = max(counts[i, j] + extra, 0.0)
            total[j] += mode[i, j]
    spread = 1 + smoothing * rows
    for j in range(columns):
        if total[j] == 0:
            mode[:, j] = 1
            total[j] = rows
    for i in range(rows):
        for j in range(columns):
            mode[i, j] = (mode[i, j] / total[j] + smoothing) / spread
    return mode


def log_prior(parameters: Parameters, prior: Concentrations) -> float:
    """Logarithm of the Dirichlet densities of all columns, without their constants."""
    total = 0.0
    for block, hyperparameter in zip(parameters, prior, strict=True):
        exponents = hyperparameter - 1
        if not exponents.any():
            continue
        with np.errstate(divide="ignore"):
            logs = np.log(block)
        if exponents.size == 1:
            total += float(exponents.item() * logs.sum())
        else:
            # An exponent of 0 beside a probability of 0: 0 ** 0 = 1, so no term.
            powered = np.flatnonzero(exponents)
            rows = logs.reshape(len(logs), -1)[powered].sum(axis=1)
            total += float(exponents.reshape(-1)[powered] @ rows)
    return total
