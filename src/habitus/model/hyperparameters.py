"""Hyperparameters by type-II maximum likelihood: those that maximise the ELBO of VB.

Given q(Omega), the ELBO depends on a symmetric hyperparameter h of a block (R rows, C columns) only
through the expected log prior,

    C (ln Gamma(R h) - R ln Gamma(h)) + h S,   S = the sum of E_q[ln p] over the block,

which is concave in h. Iterations of VB alternate with a maximisation over each h: both raise the
ELBO, so it never falls. This is not in the paper.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, psi

from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model import vb
from habitus.model.expected_counts import gather
from habitus.model.learning import IterationCallback
from habitus.model.parameters import HYPERPARAMETERS, Concentrations, DirichletPosterior, Prior
from habitus.model.topic_model import TopicModel

LEAST, MOST = 1e-3, 1e4
"""Range of a hyperparameter: below, exp(psi(h)) underflows; above, the prior allows no doubt."""


class BlockStatistics(NamedTuple):
    """Sufficient statistics of a block of q(Omega) for its hyperparameter."""

    rows: int
    columns: int
    log_sum: float
    """Sum of E_q[ln p] over the block."""


class HyperparameterFit(NamedTuple):
    """Result of fitting the hyperparameters."""

    prior: Prior
    """Hyperparameters of the highest ELBO."""
    model: TopicModel
    """Model learnt by VB under `prior`."""
    objective: Array
    """ELBO, iterations x 2: after the step of VB, and after that of the hyperparameters."""
    course: dict[str, Array]
    """alpha, beta, gamma and eta after each iteration."""


def summarise_block(concentration: Array) -> BlockStatistics:
    """Return the statistics of a block of Dirichlets, one per column."""
    columns = concentration.reshape(len(concentration), -1)
    rows, n = columns.shape
    log_sum = float(psi(columns).sum() - rows * psi(columns.sum(axis=0)).sum())
    return BlockStatistics(rows, n, log_sum)


def expected_log_prior(h: float, block: BlockStatistics) -> float:
    """Return the part of the ELBO that depends on h, up to a constant."""
    constant = gammaln(block.rows * h) - block.rows * gammaln(h)
    return float(block.columns * constant + h * block.log_sum)


def gradient(h: float, block: BlockStatistics) -> float:
    """Return the derivative of `expected_log_prior` with respect to h."""
    slope = psi(block.rows * h) - psi(h)
    return float(block.columns * block.rows * slope + block.log_sum)


def best_hyperparameter(h: float, block: BlockStatistics) -> float:
    """Return the h of the highest expected log prior in the range; the given one if no worse."""
    if block.rows == 1:  # a distribution over one outcome does not depend on h
        return h

    def slope(log_h: float) -> float:
        return gradient(float(np.exp(log_h)), block)

    low, high = np.log(LEAST), np.log(MOST)
    if slope(low) <= 0:
        best = LEAST
    elif slope(high) >= 0:
        best = MOST
    else:
        best = float(np.exp(brentq(slope, low, high, xtol=1e-13, rtol=1e-13)))
    return best if expected_log_prior(best, block) >= expected_log_prior(h, block) else h


def update_prior(
    posterior: DirichletPosterior, prior: Concentrations
) -> tuple[Concentrations, float]:
    """Return the symmetric prior of the highest ELBO for a given q(Omega), and the gain in ELBO."""
    columns, gain = [], 0.0
    for concentration, hyperparameter in zip(posterior, prior, strict=True):
        block, h = summarise_block(concentration), float(hyperparameter.item())
        best = best_hyperparameter(h, block)
        gain += expected_log_prior(best, block) - expected_log_prior(h, block)
        columns.append(np.full_like(hyperparameter, best))
    return Concentrations(*columns), gain


def fit_hyperparameters(
    model: TopicModel,
    corpus: Corpus,
    *,
    n_iterations: int = 200,
    tolerance: float = 1e-6,
    callback: IterationCallback | None = None,
) -> HyperparameterFit:
    """Continue learning by VB, and fit the hyperparameters after each iteration.

    eta hardly changes where the corpus has one sequence only: there is no information about it.

    Parameters
    ----------
    model
        Model learnt by VB under a symmetric prior: the start; any other is refused.
    corpus
        Documents that it was learnt from.
    n_iterations, tolerance
        Most iterations, and the gain in ELBO per token under which they stop.
    callback
        Function of the iteration and the ELBO after it.
    """
    start = _checked(model, n_iterations)
    evidence = gather(model.in_own_words(corpus), min_words=model.min_words)
    prior = Prior.of(model.prior).concentrations(model.sizes)
    (state,) = vb.init([start], evidence, prior)
    bounds, values, enough = [], [], tolerance * evidence.counts.sum()
    for iteration in range(n_iterations):
        before = state.objective
        (state,) = vb.step([state], evidence, prior)
        reached = state.objective
        prior, gain = update_prior(state.posterior, prior)
        state = state._replace(objective=reached + gain)
        bounds.append((reached, state.objective))
        values.append([float(h.item()) for h in prior])
        if callback is not None:
            callback(iteration, state.objective)
        if state.objective - before < enough:
            break
    course = dict(zip(HYPERPARAMETERS, np.array(values).T, strict=True))
    fitted = Prior(**{name: float(series[-1]) for name, series in course.items()})
    learnt = _learn_under(fitted, state.posterior, model, corpus)
    return HyperparameterFit(fitted, learnt, np.array(bounds), course)


def _checked(model: TopicModel, n_iterations: int) -> DirichletPosterior:
    """Return the posterior to start from, if hyperparameters can be fitted to the model."""
    if model.learning != "vb" or model.posterior_ is None:
        raise InvalidInputError(
            f'hyperparameters are fitted to a model of learning="vb", found "{model.learning}"',
            parameter="learning",
        )
    values = Prior.of(model.prior).to_json()
    if any(isinstance(value, list) for value in values.values()):
        raise InvalidInputError(
            "hyperparameters are fitted from a symmetric prior, found one value per component: "
            'start from prior="H"',
            parameter="prior",
        )
    if n_iterations < 1:
        raise InvalidInputError(
            f"n_iterations must be at least 1, found {n_iterations}", parameter="n_iterations"
        )
    return model.posterior_


def _learn_under(
    prior: Prior, posterior: DirichletPosterior, model: TopicModel, corpus: Corpus
) -> TopicModel:
    """Return a model with this prior, after one more iteration."""
    one_more = replace(model, prior=prior, init=posterior, n_restarts=1, n_iterations=1)
    fitted = one_more.fit(corpus)
    fitted.init, fitted.n_iterations = None, model.n_iterations
    return fitted
