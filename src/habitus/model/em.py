"""EM for maximum a posteriori estimates, section IV-A of the paper: Eq. (3) to (16)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags
from habitus.compiled import compiled
from habitus.model.expected_counts import (
    EStep,
    Evidence,
    EvidenceShards,
    ExpectedCounts,
    expect,
)
from habitus.model.messages import SAFE
from habitus.model.parameters import Concentrations, Parameters

EmptyColumns = tuple[Flags, Flags, Flags, Flags]
"""Columns of phi, theta, pi and xi that had no mass in an M-step, and are uniform now."""


class EMState(NamedTuple):
    """State of EM after an iteration."""

    parameters: Parameters
    e_step: EStep
    """Expected counts under `parameters`."""
    objective: float
    """ln p(x | Omega) + ln p(Omega) of `parameters`, the prior up to a constant."""
    empty: EmptyColumns | None
    """Columns that the last M-step found without mass; None before the first one."""


def init(
    starts: Sequence[Parameters], evidence: EvidenceShards, prior: Concentrations
) -> list[EMState]:
    """Return the state of each run at its parameters, which are copied.

    One pass over the documents serves all runs.
    """
    copies = [Parameters(*(block.copy() for block in start)) for start in starts]
    e_steps = expect(evidence, copies)
    return [
        EMState(parameters, e_step, e_step.log_likelihood + log_prior(parameters, prior), None)
        for parameters, e_step in zip(copies, e_steps, strict=True)
    ]


def step(
    states: Sequence[EMState], evidence: EvidenceShards, prior: Concentrations, smoothing: float
) -> list[EMState]:
    """Run one iteration of each run: an M-step on the last expected counts, then an E-step.

    The arrays of the previous states are reused, so that learning needs two copies of phi in all:
    continue with the states returned. One pass over the documents serves all runs.
    """
    maximised = [maximise(state.e_step.counts, prior, smoothing) for state in states]
    e_steps = expect(
        evidence, [estimates for estimates, _ in maximised], [s.parameters.phi for s in states]
    )
    return [
        EMState(estimates, e_step, e_step.log_likelihood + log_prior(estimates, prior), empty)
        for (estimates, empty), e_step in zip(maximised, e_steps, strict=True)
    ]


DECAY = 0.7
"""Of k batches alike, the last weighs k ** -DECAY: above 1/2 it converges, below 1 the first ones,
counted under early estimates, are forgotten."""


class BatchMean(NamedTuple):
    """What on-line EM knows of all documents so far."""

    counts: ExpectedCounts
    """Expected counts per document, a mean in which later batches weigh more."""
    n_documents: float

    @classmethod
    def of(cls, parameters: Parameters, transitions: Array, n_tokens: float) -> "BatchMean":
        """Return what a model knows that was learnt otherwise, from documents of `n_tokens`."""
        phi, theta, pi, _ = parameters
        n = 1 + float(transitions.sum())
        # The first document has no transition to it; the last has none from it.
        behaviours = (transitions.sum(axis=1) + pi) / n
        topics = n_tokens * theta * behaviours
        counts = ExpectedCounts(phi * topics.sum(axis=1), topics, pi / n, transitions / n)
        return cls(counts, n)


def next_batch(
    before: BatchMean,
    evidence: Evidence,
    parameters: Parameters,
    prior: Concentrations,
    smoothing: float,
) -> tuple[BatchMean, Parameters]:
    """Run on-line EM for one more batch (O. Cappe and E. Moulines, J. R. Stat. Soc. B, 2009).

    Expected counts per document of the batch, under the parameters so far, are averaged with those
    of the batches before. The M-step takes the mean as that of all documents so far, beside which
    the prior weighs ever less.
    """
    n = before.n_documents + evidence.n_documents
    weight = (evidence.n_documents / n) ** DECAY
    (e_step,) = expect(evidence, [parameters])
    mean = ExpectedCounts(
        *(
            (1 - weight) * old + weight / evidence.n_documents * new
            for old, new in zip(before.counts, e_step.counts, strict=True)
        )
    )
    estimates, _ = maximise(ExpectedCounts(*(n * block for block in mean)), prior, smoothing)
    return BatchMean(mean, n), estimates


def maximise(
    counts: ExpectedCounts, prior: Concentrations, smoothing: float
) -> tuple[Parameters, EmptyColumns]:
    """Run the M-step, in place of the counts; return the estimates and the columns without mass.

    `smoothing` is added to the estimates, which are then renormalised, where the prior allows a
    probability of zero. A column without any mass becomes uniform: nothing is known about it.
    """
    empty = (
        _to_mode(counts.phi, prior.phi.reshape(-1), smoothing),  # Eq. (6)
        _to_mode(counts.theta, prior.theta.reshape(-1), smoothing),  # Eq. (7)
        _to_mode(counts.pi.reshape(-1, 1), prior.pi, smoothing),  # Eq. (9)
        _to_mode(counts.xi, prior.xi.reshape(-1), smoothing),  # Eq. (8)
    )
    return Parameters(*counts), empty


@compiled
def _to_mode(counts: Array, hyperparameter: Array, smoothing: float) -> Flags:
    """`(h + n - 1)_+` over its column sum, then `+ smoothing` over its column sum, in place."""
    rows, columns = counts.shape
    total, empty = np.zeros(columns), np.zeros(columns, dtype=np.bool_)
    least = np.inf
    for i in range(len(hyperparameter)):
        least = min(least, hyperparameter[i])
    for i in range(rows):
        # First h - 1, then n: a count of 1e-20 keeps its digits where h is 1.
        extra = hyperparameter[i if len(hyperparameter) > 1 else 0] - 1
        for j in range(columns):
            counts[i, j] = max(counts[i, j] + extra, 0.0)
            total[j] += counts[i, j]
    for j in range(columns):
        if total[j] == 0:
            empty[j], total[j] = True, rows
            for i in range(rows):
                counts[i, j] = 1
    added = smoothing if least <= 1 else 0.0
    spread = 1 + added * rows
    for i in range(rows):
        for j in range(columns):
            counts[i, j] = (counts[i, j] / total[j] + added) / spread
    return empty


def log_prior(parameters: Parameters, prior: Concentrations) -> float:
    """Return ln p(Omega) of Eq. (5), the sum over all columns, without its constants."""
    return (
        _log_powers(parameters.phi, prior.phi.reshape(-1))
        + _log_powers(parameters.theta, prior.theta.reshape(-1))
        + _log_powers(parameters.pi.reshape(-1, 1), prior.pi)
        + _log_powers(parameters.xi, prior.xi.reshape(-1))
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
