"""Geweke's joint-distribution test: two ways to draw from p(x, y, z) that must agree.

The marginal-conditional way draws parameters from their priors and everything else by Algorithm 1.
The successive-conditional way alternates between the sampler under test and new documents. A wrong
conditional gives the second another distribution than the first.
"""

import importlib.util
import inspect
import sys
from functools import cache
from typing import NamedTuple

import numpy as np

from habitus.model.parameters import Concentrations, Prior, Sizes

SIZES = Sizes(n_words=3, n_topics=2, n_behaviours=2)
N_TOKENS = np.array([3, 0, 2, 4, 1, 2])
LENGTHS = np.array([4, 2])
FIRST = np.array([True, False, False, False, True, False])
# Small and uneven: columns differ much from draw to draw, so that every count matters.
PRIOR = Prior(alpha=[0.5, 2.0], beta=[0.2, 1.0, 0.5], gamma=[0.3, 0.8], eta=[2.0, 0.4])


class Draws(NamedTuple):
    """Counts of many draws of (x, y, z), one a row."""

    phi: np.ndarray
    theta: np.ndarray
    pi: np.ndarray
    xi: np.ndarray


def hyperparameters() -> Concentrations:
    return PRIOR.concentrations(SIZES)


def draw_rows(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A category for each row of distributions."""
    uniforms = rng.random((len(shares), 1)) * shares.sum(axis=1, keepdims=True)
    return (shares.cumsum(axis=1) < uniforms).sum(axis=1)


def marginal_conditional(n_draws: int, rng: np.random.Generator) -> Draws:
    """Independent draws of the whole joint by Algorithm 1, all of them at once."""
    n_words, n_topics, n_behaviours = SIZES
    every = np.arange(n_draws)
    # Distributions are rows here: draws x column x row of the paper's matrices.
    phi = rng.dirichlet(PRIOR.beta, (n_draws, n_topics))
    theta = rng.dirichlet(PRIOR.alpha, (n_draws, n_behaviours))
    pi = rng.dirichlet(PRIOR.eta, n_draws)
    xi = rng.dirichlet(PRIOR.gamma, (n_draws, n_behaviours))
    draws = Draws(
        np.zeros((n_draws, n_words, n_topics)),
        np.zeros((n_draws, n_topics, n_behaviours)),
        np.zeros((n_draws, n_behaviours)),
        np.zeros((n_draws, n_behaviours, n_behaviours)),
    )
    z = np.zeros(n_draws, dtype=int)
    for opens, n in zip(FIRST, N_TOKENS, strict=True):
        before, z = z, draw_rows(pi if opens else xi[every, z], rng)
        if opens:
            draws.pi[every, z] += 1
        else:
            draws.xi[every, z, before] += 1
        for _ in range(n):
            y = draw_rows(theta[every, z], rng)
            x = draw_rows(phi[every, y], rng)
            draws.theta[every, y, z] += 1
            draws.phi[every, x, y] += 1
    return draws


def statistics(draws: Draws) -> np.ndarray:
    """Test functions: every count, its square, steps that stay, and how uneven the counts are."""
    counts = np.concatenate([block.reshape(len(block), -1) for block in draws], axis=1)
    stays = np.trace(draws.xi, axis1=1, axis2=2)
    uneven = [(block**2).reshape(len(block), -1).sum(axis=1) for block in draws]
    topic_sizes = (draws.phi.sum(axis=1) ** 2).sum(axis=1)
    extras = np.stack([stays, stays**2, *uneven, topic_sizes], axis=1)
    return np.concatenate([counts, counts**2, extras], axis=1)


def standard_error_of_chain(values: np.ndarray, n_batches: int = 50) -> np.ndarray:
    """Standard error of the mean of correlated rows, by batch means."""
    used = len(values) // n_batches * n_batches
    batches = values[:used].reshape(n_batches, -1, values.shape[1]).mean(axis=1)
    return batches.std(axis=0, ddof=1) / np.sqrt(n_batches)


@cache
def independent_moments() -> tuple[np.ndarray, np.ndarray]:
    """Mean of each test function over independent draws, and the variance of that mean."""
    found = statistics(marginal_conditional(200_000, np.random.default_rng(9)))
    return found.mean(axis=0), found.var(axis=0, ddof=1) / len(found)


def z_scores(chain: Draws) -> np.ndarray:
    """How far the chain's mean of each test function is off, in standard errors."""
    mean, variance = independent_moments()
    found = statistics(chain)
    error = np.sqrt(variance + standard_error_of_chain(found) ** 2)
    return (found.mean(axis=0) - mean) / error


def mutated(module, old: str, new: str, folder, monkeypatch):
    """The same module with one string of its source replaced; what it leaves alone is shared."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{old!r} must be in {module.__name__} exactly once"
    name = f"mutant_of_{module.__name__.rpartition('.')[2]}"
    path = folder / f"{name}.py"
    path.write_text(source.replace(old, new), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    mutant = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, mutant)
    spec.loader.exec_module(mutant)
    changed = _changed(vars(module), vars(mutant))
    for shared in vars(mutant).keys() - changed:
        if not shared.startswith("__"):
            setattr(mutant, shared, getattr(module, shared))
    return mutant


def _changed(module: dict, mutant: dict) -> set[str]:
    """Names of the functions that differ, of those that call them, and so on."""
    codes = {
        name: getattr(value, "py_func", value).__code__
        for name, value in mutant.items()
        if inspect.isfunction(getattr(value, "py_func", value))
    }
    changed: set[str] = set()
    for name, code in codes.items():
        before = getattr(module[name], "py_func", module[name]).__code__
        if (code.co_code, code.co_consts) != (before.co_code, before.co_consts):
            changed.add(name)
    assert changed, "nothing has changed"
    while True:
        callers = {name for name, code in codes.items() if changed & {*code.co_names}}
        if callers <= changed:
            return changed
        changed |= callers
