"""Variational Bayes, section IV-B of the paper."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, psi

from habitus.arrays import Array
from habitus.compiled import compiled
from habitus.model.expected_counts import EStep, Evidence, ExpectedCounts, expect
from habitus.model.parameters import Concentrations, DirichletPosterior, Parameters
from habitus.model.special import log_gamma_and_digamma

# Rows of a block handled at once: enough to amortise a call, few enough to stay in the cache.
CHUNK = 1024


class State(NamedTuple):
    """Where variational Bayes stands."""

    posterior: DirichletPosterior
    e_step: EStep
    """Expected counts under the tilde parameters of `posterior`."""
    objective: float
    """The evidence lower bound, with all its terms."""


def init(posterior: DirichletPosterior, evidence: Evidence, prior: Concentrations) -> State:
    """E-like step and bound at a given posterior of the parameters, which is copied."""
    return _at(DirichletPosterior(*(block.copy() for block in posterior)), evidence, prior)


def step(state: State, evidence: Evidence, prior: Concentrations) -> State:
    """M-like step on the last expected counts, then the E-like step at what it gave.

    It takes over the arrays of `state`, as in EM: go on with the state returned.
    """
    return _at(update(state.e_step.counts, prior), evidence, prior, room=state.posterior.phi)


def _at(
    posterior: DirichletPosterior,
    evidence: Evidence,
    prior: Concentrations,
    room: Array | None = None,
) -> State:
    """With q(y, z) optimal, (q_yz), the bound is ln K~ - KL(q(Omega) || p(Omega)).

    K~ is the normalisation constant of the E-like step.
    """
    blocks = [expected_logs(q, h) for q, h in zip(posterior, prior, strict=True)]
    e_step = expect(evidence, Parameters(*(block.tilde for block in blocks)), room)
    divergence = sum(block.divergence for block in blocks)
    return State(posterior, e_step, e_step.log_likelihood - divergence)


def update(counts: ExpectedCounts, prior: Concentrations) -> DirichletPosterior:
    """The M-like step, (VB:beta) to (VB:gamma), in place of the counts."""
    for n, h in zip(counts, prior, strict=True):
        n += h
    return DirichletPosterior(*counts)


class ExpectedLogs(NamedTuple):
    """One block of q(Omega), ready for the E-like step."""

    tilde: Array
    """exp E[ln parameter], (VB:introduced_pi) to (VB:introduced_theta)."""
    divergence: float
    """KL of the block's Dirichlets from the prior's."""


def expected_logs(concentration: Array, hyperparameter: Array) -> ExpectedLogs:
    """exp(psi(c) - psi(sum of c's column)), and the block's part of the bound."""
    rows = len(concentration)
    columns = concentration.reshape(rows, -1)
    total = columns.sum(axis=0)
    psi_total = psi(total)
    hyper = np.broadcast_to(hyperparameter.reshape(-1), (rows,))
    copies = rows / hyperparameter.size  # a symmetric hyperparameter stands for all rows
    prior = copies * gammaln(hyperparameter).sum() - gammaln(copies * hyperparameter.sum())
    divergence = float(gammaln(total).sum() + total.size * prior)
    tilde = np.empty_like(columns)
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        log_gamma, digamma = log_gamma_and_digamma(columns[part])
        divergence += _finish(columns[part], hyper[part], log_gamma, digamma, psi_total)
        np.exp(digamma, out=tilde[part])
    return ExpectedLogs(tilde.reshape(concentration.shape), divergence)


@compiled
def _finish(
    concentration: Array, hyper: Array, log_gamma: Array, digamma: Array, psi_total: Array
) -> float:
    """`digamma -= psi_total`, and the sum of `(c - h) * digamma - log_gamma`."""
    divergence = 0.0
    for i in range(concentration.shape[0]):
        for j in range(concentration.shape[1]):
            digamma[i, j] -= psi_total[j]
            added = concentration[i, j] - hyper[i]
            divergence += added * digamma[i, j] - log_gamma[i, j]
    return divergence
