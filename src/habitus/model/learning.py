"""Learning from start to result: one function per learner, and independent restarts of it."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from joblib import effective_n_jobs

from habitus.arrays import Array
from habitus.errors import InvalidInputError
from habitus.model import blocked_gibbs, em, gibbs, vb
from habitus.model.blocked_gibbs import BlockedGibbsState
from habitus.model.convergence import SampleChain
from habitus.model.em import EMState
from habitus.model.expected_counts import Evidence
from habitus.model.gibbs import GibbsState
from habitus.model.parameters import (
    Assignments,
    Concentrations,
    DirichletPosterior,
    Parameters,
    Sizes,
)
from habitus.model.starts import Init, start_assignments, start_parameters, start_posterior
from habitus.model.vb import VBState

IterationCallback = Callable[[int, float], None]
"""Function of the iteration, counted from 0, and the objective after it."""

# Entries (words of documents) below which two threads take longer than one.
WORTH_A_THREAD = 20_000


@dataclass(frozen=True)
class LearningSettings:
    """Everything a learner needs beside the documents."""

    sizes: Sizes
    prior: Concentrations
    n_iterations: int
    tolerance: float | None
    smoothing: float
    burn_in: int
    n_samples: int
    thinning: int
    init: Init


class LearningResult(NamedTuple):
    """Result of one run of a learner."""

    parameters: Parameters
    """Point estimates; for the samplers those of the last sample, the farthest from the start."""
    objective: Array
    """Objective after each iteration."""
    degenerate: tuple[str, ...] = ()
    """Topics and behaviours that ended without data of their own, in words."""
    posterior: DirichletPosterior | None = None
    chain: SampleChain | None = None
    """Posterior samples of a sampler."""
    assignments: Assignments | None = None


class Learner(Protocol):
    """A learning algorithm."""

    def __call__(
        self,
        evidence: Evidence,
        settings: LearningSettings,
        rng: np.random.Generator,
        callback: IterationCallback,
    ) -> LearningResult:
        """Learn from documents.

        Parameters
        ----------
        evidence
            Documents to learn from.
        settings
            Sizes, prior, start and number of iterations.
        rng
            Source of random numbers.
        callback
            Called after every iteration.

        Returns
        -------
        LearningResult
            Parameters, and what else the algorithm yields.
        """
        ...


def learn_em(
    evidence: Evidence,
    settings: LearningSettings,
    rng: np.random.Generator,
    callback: IterationCallback,
) -> LearningResult:
    """Compute maximum a posteriori estimates by EM."""
    start = start_parameters(settings.init, evidence, settings.sizes, rng)

    def step(state: EMState) -> EMState:
        return em.step(state, evidence, settings.prior, settings.smoothing)

    state, trace = _climb(
        em.init(start, evidence, settings.prior), step, evidence, settings, callback
    )
    return LearningResult(state.parameters, trace, _degenerate(state))


def learn_vb(
    evidence: Evidence,
    settings: LearningSettings,
    rng: np.random.Generator,
    callback: IterationCallback,
) -> LearningResult:
    """Compute Dirichlet posteriors by variational Bayes."""
    start = start_posterior(settings.init, evidence, settings.sizes, settings.prior, rng)

    def step(state: VBState) -> VBState:
        return vb.step(state, evidence, settings.prior)

    state, trace = _climb(
        vb.init(start, evidence, settings.prior), step, evidence, settings, callback
    )
    return LearningResult(state.posterior.mean(), trace, posterior=state.posterior)


def learn_gibbs(
    evidence: Evidence,
    settings: LearningSettings,
    rng: np.random.Generator,
    callback: IterationCallback,
) -> LearningResult:
    """Draw posterior samples by the paper's collapsed sampler."""
    tokens = gibbs.tokens_of(evidence)
    start = start_assignments(settings.init, evidence, settings.sizes, rng)

    def step(state: GibbsState) -> GibbsState:
        return gibbs.step(state, tokens, settings.prior, rng)

    state, trace, chain = _walk(
        gibbs.init(start, tokens, settings.sizes, settings.prior), step, settings, callback
    )
    return LearningResult(chain.samples[-1], trace, chain=chain, assignments=state.assignments)


def learn_blocked_gibbs(
    evidence: Evidence,
    settings: LearningSettings,
    rng: np.random.Generator,
    callback: IterationCallback,
) -> LearningResult:
    """Draw posterior samples by the blocked sampler."""
    start = _blocked_start(evidence, settings, rng)

    def step(state: BlockedGibbsState) -> BlockedGibbsState:
        return blocked_gibbs.step(state, evidence, settings.prior, rng)

    _, trace, chain = _walk(
        blocked_gibbs.init(start, evidence, settings.prior, rng), step, settings, callback
    )
    return LearningResult(chain.samples[-1], trace, chain=chain)


def _blocked_start(
    evidence: Evidence, settings: LearningSettings, rng: np.random.Generator
) -> Parameters:
    """Return parameters to start from; given assignments have theirs drawn."""
    if not isinstance(settings.init, Assignments):
        return start_parameters(settings.init, evidence, settings.sizes, rng)
    tokens = gibbs.tokens_of(evidence)
    given = gibbs.init(settings.init, tokens, settings.sizes, settings.prior)
    return blocked_gibbs.posterior_draw(given.counts, settings.prior, rng)


LEARNERS: dict[str, Learner] = {
    "em": learn_em,
    "vb": learn_vb,
    "gibbs": learn_gibbs,
    "blocked-gibbs": learn_blocked_gibbs,
}
"""Learning algorithms by the name that the estimator takes."""

Climber = TypeVar("Climber", EMState, VBState)
Walker = TypeVar("Walker", GibbsState, BlockedGibbsState)


def _climb(
    state: Climber,
    step: Callable[[Climber], Climber],
    evidence: Evidence,
    settings: LearningSettings,
    callback: IterationCallback,
) -> tuple[Climber, Array]:
    """Iterate; stop once an iteration changes the objective by less than `tolerance` per token.

    Return the last state and the objective after each iteration.
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
    state: Walker,
    step: Callable[[Walker], Walker],
    settings: LearningSettings,
    callback: IterationCallback,
) -> tuple[Walker, Array, SampleChain]:
    """Sweep; keep a sample at the end of the burn-in, then one every `thinning` sweeps.

    Return the last state, the objective after each sweep, and the samples in order.
    """
    trace, samples, log_joint = [], [], []
    for sweep in range(settings.burn_in + (settings.n_samples - 1) * settings.thinning):
        state = step(state)
        trace.append(state.objective)
        callback(sweep, state.objective)
        after = sweep + 1 - settings.burn_in
        if after >= 0 and after % settings.thinning == 0:
            samples.append(gibbs.estimate(state.counts, settings.prior))
            log_joint.append(state.objective)
    return state, np.array(trace), SampleChain(tuple(samples), np.array(log_joint))


def _degenerate(state: EMState) -> tuple[str, ...]:
    """Describe the columns that EM's last M-step found empty."""
    if state.empty is None:
        return ()
    phi, theta, _, xi = map(np.flatnonzero, state.empty)
    return (
        *(f"topic {y + 1} has no words" for y in phi),
        *(f"behaviour {z + 1} has no topics" for z in theta),
        *(f"behaviour {z + 1} is never left" for z in xi),
    )


class Restarts(NamedTuple):
    """Results of several independent runs of a learner."""

    best: LearningResult
    """First run of the highest final objective."""
    objectives: Array
    """Final objective of each run."""
    chains: tuple[SampleChain, ...]
    """Samples of each run of a sampler; of the best run alone unless all are kept."""


def run_restarts(
    learner: Learner,
    evidence: Evidence,
    settings: LearningSettings,
    callback: IterationCallback,
    *,
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None,
    keep_chains: bool = False,
) -> Restarts:
    """Run a learner once per seed.

    The runs share threads, as the kernels run without the interpreter's lock; a corpus so small
    that threads would mostly wait for that lock gets one thread. Kernels never run in the main
    thread: Ctrl-C would reach it inside a kernel, where Numba does not expect an exception.

    Parameters
    ----------
    learner
        One of `LEARNERS`.
    evidence, settings
        What it learns from, and how.
    callback
        Called after every iteration of every run.
    seeds
        One seed per run.
    n_jobs
        Runs at a time, as in joblib.
    keep_chains
        Keep the samples of all runs, not of the best one alone.

    Returns
    -------
    Restarts
        The best run, and the objective of each.
    """
    stopped = Event()

    def checked_callback(iteration: int, objective: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        callback(iteration, objective)

    def run(rng: np.random.Generator) -> LearningResult:
        return learner(evidence, settings, rng, checked_callback)

    n_threads = effective_n_jobs(n_jobs) if len(evidence.words) > WORTH_A_THREAD else 1
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return _best(pool.map(run, map(np.random.default_rng, seeds)), keep_chains)
        finally:
            stopped.set()


def _best(results: Iterable[LearningResult], keep_chains: bool) -> Restarts:
    """Return the best result; the others are freed as they come, their samples unless kept."""
    best, objectives, chains = None, [], []
    for result in results:
        objectives.append(result.objective[-1])
        if keep_chains and result.chain is not None:
            chains.append(result.chain)
        if best is None or result.objective[-1] > best.objective[-1]:
            best = result
    if best is None:
        raise InvalidInputError("n_restarts must be at least 1", parameter="n_restarts")
    if not chains and best.chain is not None:
        chains.append(best.chain)
    return Restarts(best, np.array(objectives), tuple(chains))
