"""Hyperparameters by type-II maximum likelihood: those under which VB's bound is highest.

Given q(Omega), the bound depends on a symmetric hyperparameter h of a block (R rows, C columns)
only through the expected log prior,

    C (ln Gamma(R h) - R ln Gamma(h)) + h S,   S = the sum of E_q[ln p] over the block,

which is concave in h. Iterations of VB and maximisation over each h take turns: both raise the same
bound, so it never falls.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, psi

from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model import vb
from habitus.model.estimator import MarkovClusteringTopicModel
from habitus.model.expected_counts import gather
from habitus.model.parameters import Concentrations, DirichletPosterior, Prior

NAMES = ("beta", "alpha", "eta", "gamma")
"""Of the hyperparameters, in the order of the blocks phi, theta, pi, xi."""
LEAST, MOST = 1e-3, 1e4
"""Where a hyperparameter may lie: below, exp(psi(h)) underflows; beyond, a prior is certain."""


class Block(NamedTuple):
    """What a block of q(Omega) says about its hyperparameter."""

    rows: int
    columns: int
    log_sum: float
    """The sum of E_q[ln p] over the block."""


class Fit(NamedTuple):
    """Hyperparameters at which the bound is highest, and the way there."""

    prior: Prior
    model: MarkovClusteringTopicModel
    """Learnt by VB under this prior."""
    objective: Array
    """The bound: iterations x 2, after the step of VB and after that of the hyperparameters."""
    course: dict[str, Array]
    """alpha, beta, gamma and eta after each iteration."""


def summarise_block(concentration: Array) -> Block:
    """Rows, columns and expected logarithms of Dirichlets, a column each."""
    columns = concentration.reshape(len(concentration), -1)
    rows, n = columns.shape
    return Block(rows, n, float(psi(columns).sum() - rows * psi(columns.sum(axis=0)).sum()))


def expected_log_prior(h: float, block: Block) -> float:
    """The part of the bound that depends on h, up to a constant."""
    constant = gammaln(block.rows * h) - block.rows * gammaln(h)
    return float(block.columns * constant + h * block.log_sum)


def gradient(h: float, block: Block) -> float:
    """Its derivative."""
    slope = psi(block.rows * h) - psi(h)
    return float(block.columns * block.rows * slope + block.log_sum)


def best_hyperparameter(h: float, block: Block) -> float:
    """The h of the highest expected log prior within limits; the one given if that is no worse."""
    if block.rows == 1:  # a distribution over one thing has no prior to speak of
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
    """The symmetric prior of the highest bound for a given q(Omega), and what the bound gains."""
    found, gain = [], 0.0
    for concentration, given in zip(posterior, prior, strict=True):
        block, h = summarise_block(concentration), float(given.item())
        best = best_hyperparameter(h, block)
        gain += expected_log_prior(best, block) - expected_log_prior(h, block)
        found.append(np.full_like(given, best))
    return Concentrations(*found), gain


def fit_hyperparameters(
    model: MarkovClusteringTopicModel,
    corpus: Corpus,
    *,
    n_iterations: int = 200,
    tolerance: float = 1e-6,
    callback: Callable[[int, float], None] | None = None,
) -> Fit:
    """Go on from a model learnt by VB, with a step of the hyperparameters after each of VB.

    It ends once an iteration gains less than `tolerance` a word. eta says nothing where there is
    one sequence only, and hardly moves.
    """
    start = _checked(model, n_iterations)
    evidence = gather(corpus, min_words=model.min_words)
    prior = Prior.of(model.prior).concentrations(model.sizes)
    state = vb.init(start, evidence, prior)
    bounds, values, enough = [], [], tolerance * evidence.counts.sum()
    for iteration in range(n_iterations):
        before = state.objective
        state = vb.step(state, evidence, prior)
        reached = state.objective
        prior, gain = update_prior(state.posterior, prior)
        state = state._replace(objective=reached + gain)
        bounds.append((reached, state.objective))
        values.append([float(h.item()) for h in prior])
        if callback is not None:
            callback(iteration, state.objective)
        if state.objective - before < enough:
            break
    course = dict(zip(NAMES, np.array(values).T, strict=True))
    found = Prior(**{name: float(series[-1]) for name, series in course.items()})
    return Fit(found, _under(found, state.posterior, model, corpus), np.array(bounds), course)


def _checked(model: MarkovClusteringTopicModel, n_iterations: int) -> DirichletPosterior:
    if model.learning != "vb" or model.posterior_ is None:
        raise InvalidInputError(
            f'hyperparameters are fitted to a model learnt by "vb", found "{model.learning}"'
        )
    values = Prior.of(model.prior).to_json()
    if any(isinstance(value, list) for value in values.values()):
        raise InvalidInputError(
            "hyperparameters are fitted from a symmetric prior, found one value a component: "
            'start from prior="H"'
        )
    if n_iterations < 1:
        raise InvalidInputError(f"n_iterations must be at least 1, found {n_iterations}")
    return model.posterior_


def _under(
    prior: Prior, posterior: DirichletPosterior, model: MarkovClusteringTopicModel, corpus: Corpus
) -> MarkovClusteringTopicModel:
    """A model with this prior, one iteration on."""
    settings = model.get_params() | {"prior": prior, "init": posterior}
    settings |= {"n_restarts": 1, "n_iterations": 1}
    fitted = MarkovClusteringTopicModel(**settings).fit(corpus)
    return fitted.set_params(init=None, n_iterations=model.n_iterations)
