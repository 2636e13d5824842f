"""The learning algorithms, each from start to result, behind one signature."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from habitus.errors import InvalidInputError
from habitus.model import blocked_gibbs, em, gibbs, vb
from habitus.model.evidence import Evidence
from habitus.model.expected_counts import log_likelihoods
from habitus.model.messages import most_probable_path
from habitus.model.parameters import Array, Assignments, DirichletPosterior, Parameters, Sizes
from habitus.model.prior import Concentrations
from habitus.model.start import (
    assignments_under,
    documents_start,
    posterior_around,
    random_start,
)

Callback = Callable[[int, float], None]
Init = Parameters | DirichletPosterior | Assignments | str | None


@dataclass(frozen=True)
class Settings:
    """What a learner needs beside the documents."""

    sizes: Sizes
    prior: Concentrations
    n_iterations: int
    tolerance: float | None
    smoothing: float
    burn_in: int
    n_samples: int
    thinning: int
    init: Init


class Learnt(NamedTuple):
    """The outcome of one run."""

    parameters: Parameters
    objective: Array
    """The objective after each iteration."""
    degenerate: tuple[str, ...] = ()
    """What ended without data of its own, in words."""
    posterior: DirichletPosterior | None = None
    samples: tuple[Parameters, ...] = ()
    assignments: Assignments | None = None


class Learner(Protocol):
    """One learning algorithm."""

    def __call__(
        self, evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
    ) -> Learnt:
        """Learn from the evidence, telling the callback of every iteration."""
        ...


def learn_em(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Maximum a posteriori estimates by EM."""
    start = settings.init
    if not isinstance(start, Parameters):
        start = _start(evidence, settings, rng)
    state, trace = _climb(
        em.init(start, evidence, settings.prior),
        lambda state: em.step(state, evidence, settings.prior, settings.smoothing),
        evidence, settings, callback,
    )  # fmt: skip
    return Learnt(state.parameters, trace, _notes(state))


def learn_vb(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Dirichlet posteriors by variational Bayes."""
    start = settings.init
    if not isinstance(start, DirichletPosterior):
        start = posterior_around(_start(evidence, settings, rng), evidence, settings.prior)
    state, trace = _climb(
        vb.init(start, evidence, settings.prior),
        lambda state: vb.step(state, evidence, settings.prior),
        evidence, settings, callback,
    )  # fmt: skip
    return Learnt(state.posterior.mean(), trace, posterior=state.posterior)


def learn_gibbs(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Samples of the hidden variables by the paper's collapsed sampler."""
    tokens = gibbs.spell(evidence)
    state, trace, samples = _walk(
        gibbs.init(
            _start_assignments(evidence, settings, rng), tokens, settings.sizes, settings.prior
        ),
        lambda state: gibbs.step(state, tokens, settings.prior, rng),
        settings, callback,
    )  # fmt: skip
    return Learnt(samples[-1], trace, samples=samples, assignments=state.assignments)


def learn_blocked_gibbs(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Samples of the hidden variables by the blocked sampler."""
    _, trace, samples = _walk(
        blocked_gibbs.init(
            _start_parameters(evidence, settings, rng), evidence, settings.prior, rng
        ),
        lambda state: blocked_gibbs.step(state, evidence, settings.prior, rng),
        settings, callback,
    )  # fmt: skip
    return Learnt(samples[-1], trace, samples=samples)


LEARNERS: dict[str, Learner] = {
    "em": learn_em,
    "vb": learn_vb,
    "gibbs": learn_gibbs,
    "blocked-gibbs": learn_blocked_gibbs,
}


def check_init(init: Init, learning: str, sizes: Sizes, evidence: Evidence) -> Init:
    """The given start as it will be used, or an error that says what the learner takes."""
    if init is None or (isinstance(init, str) and init == "random"):
        return init
    wanted = {"em": Parameters, "vb": DirichletPosterior}.get(learning, Assignments)
    if not isinstance(init, wanted) or isinstance(init, str):
        raise InvalidInputError(
            f'init for learning="{learning}" must be None, "random" or {wanted.__name__}, '
            f"found {init if isinstance(init, str) else type(init).__name__}"
        )
    if isinstance(init, Assignments):
        return init.checked(sizes, int(evidence.counts.sum()), evidence.n_documents)
    return init.checked(sizes)


def _start(evidence: Evidence, settings: Settings, rng: np.random.Generator) -> Parameters:
    if settings.init == "random":
        return random_start(settings.sizes, rng)
    return documents_start(evidence, settings.sizes, rng)


def _start_parameters(
    evidence: Evidence, settings: Settings, rng: np.random.Generator
) -> Parameters:
    if not isinstance(settings.init, Assignments):
        return _start(evidence, settings, rng)
    given = gibbs.init(settings.init, gibbs.spell(evidence), settings.sizes, settings.prior)
    return blocked_gibbs.draw_parameters(given.counts, settings.prior, rng)


def _start_assignments(
    evidence: Evidence, settings: Settings, rng: np.random.Generator
) -> Assignments:
    if isinstance(settings.init, Assignments):
        return settings.init
    if settings.init == "random":
        _, n_topics, n_behaviours = settings.sizes
        return Assignments(
            rng.integers(n_topics, size=int(evidence.counts.sum()), dtype=np.uint16),
            rng.integers(n_behaviours, size=evidence.n_documents),
        )
    start = documents_start(evidence, settings.sizes, rng)
    log_like = log_likelihoods(evidence, start.phi, start.theta)
    path: NDArray[np.int64] = most_probable_path(log_like, evidence.first, start.pi, start.xi)
    return assignments_under(start, path, evidence, rng)


Climber = TypeVar("Climber", em.State, vb.State)
Walker = TypeVar("Walker", gibbs.State, blocked_gibbs.State)


def _climb(
    state: Climber,
    step: Callable[[Climber], Climber],
    evidence: Evidence,
    settings: Settings,
    callback: Callback,
) -> tuple[Climber, Array]:
    """Iterate; stop early once an iteration gains less than `tolerance` a token.

    Gives the last state and the objective after each iteration.
    """
    trace = []
    threshold = -np.inf
    if settings.tolerance is not None:
        threshold = settings.tolerance * evidence.counts.sum()
    for iteration in range(settings.n_iterations):
        before = state.objective
        state = step(state)
        trace.append(state.objective)
        callback(iteration, state.objective)
        if abs(state.objective - before) < threshold:
            break
    return state, np.array(trace)


def _walk(
    state: Walker, step: Callable[[Walker], Walker], settings: Settings, callback: Callback
) -> tuple[Walker, Array, tuple[Parameters, ...]]:
    """Sweep; keep a sample at the end of the burn-in, and one every `thinning` sweeps after it."""
    trace = []
    samples = []
    for sweep in range(settings.burn_in + (settings.n_samples - 1) * settings.thinning):
        state = step(state)
        trace.append(state.objective)
        callback(sweep, state.objective)
        after = sweep + 1 - settings.burn_in
        if after >= 0 and after % settings.thinning == 0:
            samples.append(gibbs.estimate(state.counts, settings.prior))
    return state, np.array(trace), tuple(samples)


def _notes(state: em.State) -> tuple[str, ...]:
    """What the dead columns of EM's last M-step mean."""
    if state.dead is None:
        return ()
    phi, theta, _, xi = map(np.flatnonzero, state.dead)
    return (
        *(f"topic {y + 1} has no words" for y in phi),
        *(f"behaviour {z + 1} has no topics" for z in theta),
        *(f"behaviour {z + 1} is never left" for z in xi),
    )
