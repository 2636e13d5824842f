"""Variational Bayes, section IV-B of the paper: Eq. (17) to (30)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array
from habitus.compiled import compiled
from habitus.model.expected_counts import EStep, EvidenceShards, ExpectedCounts, expect
from habitus.model.parameters import Concentrations, DirichletPosterior, Parameters
from habitus.model.special import log_gamma_and_digamma

# Rows of a block handled at once: enough to amortise a call, few enough to stay in the cache.
CHUNK = 1024


class VBState(NamedTuple):
    """State of variational Bayes after an iteration."""

    posterior: DirichletPosterior
    e_step: EStep
    """Expected counts under the tilde parameters of `posterior`."""
    objective: float
    """Evidence lower bound (ELBO), with all its terms."""


def init(
    starts: Sequence[DirichletPosterior], evidence: EvidenceShards, prior: Concentrations
) -> list[VBState]:
    """Return the state of each run at its posterior of the parameters, which is copied.

    One pass over the documents serves all runs.
    """
    owns = [DirichletPosterior(*(block.copy() for block in start)) for start in starts]
    return _at_each(owns, evidence, prior)


def step(
    states: Sequence[VBState], evidence: EvidenceShards, prior: Concentrations
) -> list[VBState]:
    """Run one iteration of each run: an M-like step on the last expected counts, then an E-like.

    The arrays of the previous states are reused, as in EM: continue with the states returned.
    """
    posteriors = [update(state.e_step.counts, prior) for state in states]
    return _at_each(posteriors, evidence, prior, [state.posterior.phi for state in states])


def _at_each(
    posteriors: Sequence[DirichletPosterior],
    evidence: EvidenceShards,
    prior: Concentrations,
    outs: Sequence[Array] | None = None,
) -> list[VBState]:
    """Run the E-like step at each posterior.

    With q(y, z) optimal, Eq. (51), the ELBO is ln K~ - KL(q(Omega) || p(Omega)); K~ is the
    normalisation constant of the E-like step.
    """
    blocks = [
        [expected_logs(q, h) for q, h in zip(posterior, prior, strict=True)]
        for posterior in posteriors
    ]
    tildes = [Parameters(*(block.tilde for block in logs)) for logs in blocks]
    e_steps = expect(evidence, tildes, outs)
    return [
        VBState(posterior, e_step, e_step.log_likelihood - sum(block.divergence for block in logs))
        for posterior, e_step, logs in zip(posteriors, e_steps, blocks, strict=True)
    ]


def update(counts: ExpectedCounts, prior: Concentrations) -> DirichletPosterior:
    """Run the M-like step, in place of the counts."""
    for n, h in zip(counts, prior, strict=True):
        n += h  # Eq. (19) for phi, (20) for theta, (21) for pi, (22) for xi
    return DirichletPosterior(*counts)


class ExpectedLogs(NamedTuple):
    """Expected logarithms of one block of q(Omega), ready for the E-like step."""

    tilde: Array
    """exp E[ln parameter]: Eq. (23) for pi, (24) for xi, (25) for phi, (26) for theta."""
    divergence: float
    """KL divergence of the block's Dirichlets from those of the prior."""


def expected_logs(concentration: Array, hyperparameter: Array) -> ExpectedLogs:
    """Return `exp(psi(c) - psi(c.sum(axis=0)))` of a block of q(Omega), and its part of ELBO."""
    from scipy.special import gammaln, psi

    rows = len(concentration)
    columns = concentration.reshape(rows, -1)
    total = columns.sum(axis=0)
    psi_total = psi(total)
    hyper = np.array(np.broadcast_to(hyperparameter.reshape(-1), (rows,)))  # one type for kernels
    copies = rows / hyperparameter.size  # a symmetric hyperparameter stands for all rows
    prior = copies * gammaln(hyperparameter).sum() - gammaln(copies * hyperparameter.sum())
    divergence = float(gammaln(total).sum() + total.size * prior)
    tilde = np.empty_like(columns)
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        log_gamma, digamma = log_gamma_and_digamma(columns[part])
        divergence += _finish(columns[part], hyper[part], log_gamma, digamma, psi_total)
        np.exp(digamma, out=tilde[part])  # Eq. (23) to (26)
    return ExpectedLogs(tilde.reshape(concentration.shape), divergence)


@compiled
def _finish(
    concentration: Array, hyper: Array, log_gamma: Array, digamma: Array, psi_total: Array
) -> float:
    """`digamma -= psi_total`, in place; return `((c - h) * digamma - log_gamma).sum()`."""
    divergence = 0.0
    for i in range(concentration.shape[0]):
        for j in range(concentration.shape[1]):
            digamma[i, j] -= psi_total[j]
            added = concentration[i, j] - hyper[i]
            divergence += added * digamma[i, j] - log_gamma[i, j]
    return divergence
