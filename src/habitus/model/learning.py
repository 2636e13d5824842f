"""Learning from start to result: one function per learner, and independent restarts of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import Event
from typing import NamedTuple, TypeVar, cast

import numpy as np

from habitus.arrays import Array
from habitus.errors import InvalidInputError
from habitus.jobs.workers import Workers, number_of_workers
from habitus.model import blocked_gibbs, em, gibbs, vb
from habitus.model.blocked_gibbs import BlockedGibbsState
from habitus.model.em import EMState
from habitus.model.expected_counts import Evidence, EvidenceShards
from habitus.model.gibbs import GibbsState
from habitus.model.parameters import (
    Assignments,
    Concentrations,
    DirichletPosterior,
    Parameters,
    SampleChain,
    Sizes,
)
from habitus.model.starts import Init, start_assignments, start_parameters, start_posteriors
from habitus.model.vb import VBState

IterationCallback = Callable[[int, float], None]
"""Function of the iteration, counted from 0, and the objective after it."""

# Entries (words of documents) below which two threads take longer than one.
WORTH_A_THREAD = 20_000


@dataclass(frozen=True)
class LearnerSettings:
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


Learner = Callable[
    [EvidenceShards, LearnerSettings, Sequence[np.random.Generator], IterationCallback],
    list[LearningResult],
]
"""A learning algorithm: learns from documents in one or several runs, each with random numbers.

The runs of EM and VB share every pass over the shards: reading them is what costs where they do not
fit into memory. The callback is called after every iteration of each run. A run alone has the same
result.
"""


def learn_em(
    evidence: EvidenceShards,
    settings: LearnerSettings,
    rngs: Sequence[np.random.Generator],
    callback: IterationCallback,
) -> list[LearningResult]:
    """Compute maximum a posteriori estimates by EM."""
    starts = start_parameters(settings.init, evidence, settings.sizes, rngs)
    states = em.init(starts, evidence, settings.prior)
    steps = partial(em.step, evidence=evidence, prior=settings.prior, smoothing=settings.smoothing)
    return [
        LearningResult(state.parameters, trace, _degenerate(state))
        for state, trace in _climb(states, steps, evidence, settings, callback)
    ]


def learn_vb(
    evidence: EvidenceShards,
    settings: LearnerSettings,
    rngs: Sequence[np.random.Generator],
    callback: IterationCallback,
) -> list[LearningResult]:
    """Compute Dirichlet posteriors by variational Bayes."""
    starts = start_posteriors(settings.init, evidence, settings.sizes, settings.prior, rngs)
    states = vb.init(starts, evidence, settings.prior)
    steps = partial(vb.step, evidence=evidence, prior=settings.prior)
    return [
        LearningResult(state.posterior.mean(), trace, posterior=state.posterior)
        for state, trace in _climb(states, steps, evidence, settings, callback)
    ]


def learn_gibbs(
    evidence: EvidenceShards,
    settings: LearnerSettings,
    rngs: Sequence[np.random.Generator],
    callback: IterationCallback,
) -> list[LearningResult]:
    """Draw posterior samples by the paper's collapsed sampler, of documents in one shard."""
    shard, results = cast(Evidence, evidence), []
    tokens = gibbs.tokens_of(shard)
    for rng in rngs:
        start = start_assignments(settings.init, shard, settings.sizes, rng)
        state = gibbs.init(start, tokens, settings.sizes, settings.prior)
        step = partial(gibbs.step, tokens=tokens, prior=settings.prior, rng=rng)
        state, sampled = _walk(state, step, settings, callback)
        results.append(sampled._replace(assignments=state.assignments))
    return results


def learn_blocked_gibbs(
    evidence: EvidenceShards,
    settings: LearnerSettings,
    rngs: Sequence[np.random.Generator],
    callback: IterationCallback,
) -> list[LearningResult]:
    """Draw posterior samples by the blocked sampler, of documents in one shard."""
    shard, results = cast(Evidence, evidence), []
    for rng in rngs:
        start = _blocked_start(shard, settings, rng)
        state = blocked_gibbs.init(start, shard, settings.prior, rng)
        step = partial(blocked_gibbs.step, evidence=shard, prior=settings.prior, rng=rng)
        results.append(_walk(state, step, settings, callback)[1])
    return results


def _blocked_start(
    evidence: Evidence, settings: LearnerSettings, rng: np.random.Generator
) -> Parameters:
    """Return parameters to start from; given assignments have theirs drawn."""
    if not isinstance(settings.init, Assignments):
        (start,) = start_parameters(settings.init, evidence, settings.sizes, [rng])
        return start
    tokens = gibbs.tokens_of(evidence)
    state = gibbs.init(settings.init, tokens, settings.sizes, settings.prior)
    return blocked_gibbs.posterior_draw(state.counts, settings.prior, rng)


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
    states: Sequence[Climber],
    steps: Callable[[Sequence[Climber]], list[Climber]],
    evidence: EvidenceShards,
    settings: LearnerSettings,
    callback: IterationCallback,
) -> list[tuple[Climber, Array]]:
    """Iterate runs side by side.

    A run stops once an iteration changes its objective by less than `tolerance` per token. Return
    the last state and the objective after each iteration, of each run.
    """
    last, traces = list(states), [[state.objective] for state in states]
    threshold = -np.inf
    if settings.tolerance is not None:
        threshold = settings.tolerance * evidence.n_tokens
    climbing = list(range(len(last)))
    for iteration in range(settings.n_iterations):
        for i, state in zip(climbing, steps([last[i] for i in climbing]), strict=True):
            last[i] = state
            traces[i].append(state.objective)
            callback(iteration, state.objective)
        climbing = [i for i in climbing if not abs(traces[i][-1] - traces[i][-2]) < threshold]
        if not climbing:
            break
    return [(state, np.array(trace[1:])) for state, trace in zip(last, traces, strict=True)]


def _walk(
    state: Walker,
    step: Callable[[Walker], Walker],
    settings: LearnerSettings,
    callback: IterationCallback,
) -> tuple[Walker, LearningResult]:
    """Sweep; keep a sample at the end of the burn-in, then one every `thinning` sweeps.

    Return the last state and the samples in order.
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
    chain = SampleChain(tuple(samples), np.array(log_joint))
    return state, LearningResult(samples[-1], np.array(trace), chain=chain)


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


def n_threads_of(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` stands for: None for one, -1 for one per processor.

    Examples
    --------
    >>> n_threads_of(None), n_threads_of(3), n_threads_of(-1) == number_of_workers(-1)
    (1, 3, True)
    """
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    return max(number_of_workers(-1) + 1 + n_jobs, 1)


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
    evidence: EvidenceShards,
    settings: LearnerSettings,
    callback: IterationCallback,
    *,
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None,
    keep_chains: bool = False,
    workers: Workers | None = None,
) -> Restarts:
    """Run a learner once per seed.

    The runs share threads, as the kernels run without the interpreter's lock; a corpus so small
    that threads would mostly wait for that lock gets one thread. With several shards all runs go
    side by side, and it is the shards that threads share. Kernels never run in the main thread:
    Ctrl-C would reach it inside a kernel, where Numba does not expect an exception. Of one shard
    `n_jobs` runs go at a time, or `workers` carry out a run each. `keep_chains` keeps the samples
    of all runs, not of the best one alone.
    """
    if workers is not None and isinstance(evidence, Evidence):
        task = partial(_run_alone, learner, evidence, settings)
        return _best(_runs_elsewhere(workers, task, seeds, callback), keep_chains)
    stopped = Event()

    def check() -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    def checked_callback(iteration: int, objective: float) -> None:
        check()
        callback(iteration, objective)

    watched = evidence.interruptible(check)

    def run(rngs: Sequence[np.random.Generator]) -> list[LearningResult]:
        return learner(watched, settings, rngs, checked_callback)

    rngs = [np.random.default_rng(seed) for seed in seeds]
    n_threads, batches = 1, [rngs]
    if isinstance(evidence, Evidence):
        batches = [[rng] for rng in rngs]
        n_threads = n_threads_of(n_jobs) if len(evidence.words) > WORTH_A_THREAD else 1
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return _best(chain.from_iterable(pool.map(run, batches)), keep_chains)
        finally:
            stopped.set()


def _run_alone(
    learner: Learner, evidence: Evidence, settings: LearnerSettings, seed: np.random.SeedSequence
) -> LearningResult:
    """Run a learner once."""
    (result,) = learner(evidence, settings, [np.random.default_rng(seed)], ignore_iteration)
    return result


def _runs_elsewhere(
    workers: Workers,
    task: Callable[[np.random.SeedSequence], LearningResult],
    seeds: Sequence[np.random.SeedSequence],
    callback: IterationCallback,
) -> Iterator[LearningResult]:
    """Yield the result of each run in order; the callback hears of its iterations at its end."""
    results: dict[int, LearningResult] = {}
    position = 0
    for number, result in workers.as_completed(task, seeds):
        for iteration, objective in enumerate(result.objective.tolist()):
            callback(iteration, objective)
        results[number] = result
        while position in results:
            yield results.pop(position)
            position += 1


def ignore_iteration(iteration: int, objective: float) -> None:
    """Do nothing."""


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
