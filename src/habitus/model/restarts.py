"""Independent runs of a learner, of which the best is kept."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
from joblib import effective_n_jobs

from habitus.errors import InvalidInputError
from habitus.model.evidence import Evidence
from habitus.model.learning import Callback, Learner, Learnt, Settings
from habitus.model.parameters import Array

# Entries (words of documents) under which two threads take longer than one.
WORTH_A_THREAD = 20_000


def best_of_restarts(
    learner: Learner,
    evidence: Evidence,
    settings: Settings,
    callback: Callback,
    *,
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None,
) -> tuple[Learnt, Array]:
    """The best of one run a seed, and the objective of each.

    They run in threads, as the kernels run without the interpreter's lock; a corpus so small
    that threads would mostly wait for that lock has one. Never in the main thread: Ctrl-C
    would reach it inside a kernel, where Numba does not expect an exception.
    """
    stopped = Event()

    def tell(iteration: int, objective: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        callback(iteration, objective)

    def run(rng: np.random.Generator) -> Learnt:
        return learner(evidence, settings, rng, tell)

    n_threads = effective_n_jobs(n_jobs) if len(evidence.words) > WORTH_A_THREAD else 1
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return _best(pool.map(run, map(np.random.default_rng, seeds)))
        finally:
            stopped.set()


def _best(runs: Iterable[Learnt]) -> tuple[Learnt, Array]:
    """The first run of the highest objective, and the objective of each; the rest is let go."""
    best, objectives = None, []
    for run in runs:
        objectives.append(run.objective[-1])
        if best is None or run.objective[-1] > best.objective[-1]:
            best = run
    if best is None:
        raise InvalidInputError("n_restarts must be at least 1")
    return best, np.array(objectives)
