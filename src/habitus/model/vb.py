"""Variational Bayes, section IV-B of the paper."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, psi

from habitus.model.evidence import Evidence
from habitus.model.expected_counts import EStep, expect
from habitus.model.parameters import Array, DirichletPosterior, Parameters
from habitus.model.prior import Concentrations
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
    """E-like step and bound at a given posterior of the parameters.

    With q(y, z) optimal, (q_yz), the bound is ln K~ - KL(q(Omega) || p(Omega)): K~ is the
    normalisation constant of the E-like step.
    """
    blocks = [_tilde(q, h) for q, h in zip(posterior, prior, strict=True)]
    e_step = expect(evidence, Parameters(*(block.tilde for block in blocks)))
    divergence = sum(block.divergence for block in blocks)
    return State(posterior, e_step, e_step.log_likelihood - divergence)


def step(state: State, evidence: Evidence, prior: Concentrations) -> State:
    """M-like step on the last expected counts, then the E-like step at what it gave."""
    return init(update(state.e_step, prior), evidence, prior)


def update(e_step: EStep, prior: Concentrations) -> DirichletPosterior:
    """The M-like step, (VB:beta) to (VB:gamma)."""
    return DirichletPosterior(*(h + n for h, n in zip(prior, e_step.counts, strict=True)))


class Tilde(NamedTuple):
    """One block of q(Omega), ready for the E-like step."""

    tilde: Array
    """exp E[ln parameter], (VB:introduced_pi) to (VB:introduced_theta)."""
    divergence: float
    """KL of the block's Dirichlets from the prior's."""


def _tilde(concentration: Array, hyperparameter: Array) -> Tilde:
    rows = len(concentration)
    total = concentration.sum(axis=0)
    psi_total = psi(total)
    tilde = np.empty_like(concentration)
    hyper = np.broadcast_to(hyperparameter, (rows, *hyperparameter.shape[1:]))
    n_columns = total.size
    divergence = float(gammaln(total).sum())
    divergence += n_columns * float(gammaln(hyper).sum() - gammaln(hyper.sum()))
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        log_gamma, expected_log = log_gamma_and_digamma(concentration[part])
        expected_log -= psi_total
        added = concentration[part] - hyper[part]
        divergence += float((added * expected_log).sum() - log_gamma.sum())
        np.exp(expected_log, out=tilde[part])
    return Tilde(tilde, divergence)
