"""All chains, in several processes; what is finished is not done again."""

import multiprocessing as mp
import os
import queue
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count

from habitus.documents import Corpus
from habitus.errors import HabitusError, LearningError
from habitus.evaluation.comparison.chains import run_chain
from habitus.evaluation.comparison.footage import Footage
from habitus.evaluation.comparison.localisation import truths_of
from habitus.evaluation.comparison.methods import Chain
from habitus.evaluation.comparison.protocol import Protocol
from habitus.evaluation.comparison.store import Run, Store

# Libraries that would use every core in each of the processes.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
           "NUMBA_NUM_THREADS")  # fmt: skip
# Seconds between looks at whether the workers are alive, and for them to end.
LOOK, GRACE = 0.3, 5.0


class Progress(NamedTuple):
    """How far it is."""

    done: int
    """Chains, those of earlier starts included."""
    total: int
    latest: str
    """The chain that was finished last."""
    left: float
    """Seconds, as far as can be told."""


def runs_of(chains: Sequence[Chain], n_runs: int) -> list[Run]:
    """Every chain that is needed; one of those without chance in them."""
    return [
        Run(chain, number) for chain in chains for number in range(n_runs if chain.random else 1)
    ]


def expected_seconds(chain: Chain, footage: Footage, protocol: Protocol) -> float:
    """A first guess at what a chain takes: to run the long ones first, and to tell time left."""
    n_tokens = float(footage.corpus.n_tokens[: footage.n_train].sum())
    sweeps = protocol.burn_in + (protocol.many - 1) * protocol.thinning
    few_sweeps = protocol.burn_in + (protocol.few - 1) * protocol.thinning
    iterations = protocol.n_iterations * n_tokens
    documents = len(footage.corpus)
    return {
        "em": 7e-9 * iterations + 4e-5 * documents,
        "vb": 1e-8 * iterations + 6e-6 * protocol.many * documents,
        "gibbs": 2e-8 * sweeps * n_tokens + 6e-6 * protocol.many * documents,
        "blocked": 3e-8 * few_sweeps * n_tokens,
        "ours": 7e-9 * iterations * (protocol.n_restarts + 6),
        "baselines": {"lda": 15.0, "hmm": 10.0, "forest": 3.0}.get(chain.name, 1.0),
    }[chain.group]


def run_all(
    store: Store,
    footage: Footage,
    protocol: Protocol,
    runs: Sequence[Run],
    *,
    jobs: int = -1,
    progress: Callable[[Progress], None] | None = None,
) -> None:
    """Run what is missing; the results are in the store, and do not depend on `jobs`."""
    guess = {run.chain.name: expected_seconds(run.chain, footage, protocol) for run in runs}
    missing = [run for run in runs if not store.has(run)]
    missing.sort(key=lambda run: -guess[run.chain.name])  # the long ones first
    n_workers = min(len(missing), cpu_count() if jobs < 1 else jobs)
    clock = _Clock(guess, missing, len(runs), n_workers)
    tell = progress or (lambda _: None)
    tell(clock.progress())
    if not missing:
        return
    with _Workers(store, footage, protocol, missing, n_workers) as workers:
        for run, seconds in workers:
            clock.finish(run, seconds)
            tell(clock.progress())


class _Clock:
    """Tells how long the rest will take from how long chains of each name took."""

    def __init__(
        self, guess: dict[str, float], missing: Sequence[Run], total: int, jobs: int
    ) -> None:
        self.guess, self.jobs, self.total = guess, jobs, total
        self.left = [run.chain.name for run in missing]
        self.took: dict[str, list[float]] = {}
        self.latest = ""

    def finish(self, run: Run, seconds: float) -> None:
        self.left.remove(run.chain.name)
        self.took.setdefault(run.chain.name, []).append(seconds)
        self.latest = f"{run.chain.name} {run.number + 1}"

    def progress(self) -> Progress:
        seconds = sum(map(self._expected, self.left)) / max(self.jobs, 1)
        return Progress(self.total - len(self.left), self.total, self.latest, seconds)

    def _expected(self, name: str) -> float:
        if name in self.took:
            return fmean(self.took[name])
        guessed = sum(self.guess[known] * len(took) for known, took in self.took.items())
        measured = sum(map(sum, self.took.values()))
        return self.guess[name] * (measured / guessed if guessed else 1.0)


class _Workers:
    """Processes that take chains from a queue; each writes its own results."""

    def __init__(
        self, store: Store, footage: Footage, protocol: Protocol, runs: Sequence[Run], n: int
    ) -> None:
        context = mp.get_context("spawn")
        self.n_runs = len(runs)
        self.waiting: Any = context.Queue()
        self.results: Any = context.Queue()
        for run in [*runs, *[None] * n]:
            self.waiting.put(run)
        chains = list(dict.fromkeys(run.chain for run in runs))
        arguments = (self.waiting, self.results, chains, store, footage, protocol)
        self.workers = [
            context.Process(target=_work, args=arguments, daemon=True) for _ in range(n)
        ]

    def __enter__(self) -> Iterator[tuple[Run, float]]:
        with _one_thread_each():
            for worker in self.workers:
                worker.start()
        return self._finished()

    def __exit__(self, *_: object) -> None:
        if self.n_runs == 0:
            for worker in self.workers:
                worker.join(GRACE)  # all is done: they end by themselves
        for worker in self.workers:
            worker.kill()
            worker.join()
        for each in (self.waiting, self.results):
            each.cancel_join_thread()

    def _finished(self) -> Iterator[tuple[Run, float]]:
        while self.n_runs:
            try:
                run, seconds, error = self.results.get(timeout=LOOK)
            except queue.Empty:
                self._check_alive()
                continue
            if error is not None:
                raise error
            self.n_runs -= 1
            yield run, seconds

    def _check_alive(self) -> None:
        gone = [worker.exitcode for worker in self.workers if worker.exitcode]
        if gone and self.results.empty():
            raise LearningError(
                f"a process of the comparison was ended (code {gone[0]}), for want of memory "
                "perhaps: start it again with fewer --jobs; it goes on where it was"
            )


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """What processes that start here inherit: the same bits, however many there are."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(
    waiting: Any,
    results: Any,
    chains: list[Chain],
    store: Store,
    footage: Footage,
    protocol: Protocol,
) -> None:
    """A worker process: chains in, files out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    own = [(each, truths_of(each, protocol)) for each in (footage.paper, footage)]
    warm_up(chains)
    while (run := waiting.get()) is not None:
        began = time.monotonic()
        try:
            words, truths = own[run.chain.knows_speed]
            store.put(run, run_chain(run.chain, run.number, words, protocol, truths))
            results.put((run, time.monotonic() - began, None))
        except HabitusError as error:
            results.put((run, 0.0, error))
        except Exception as error:  # a library's: told in one line, whatever it is
            where = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{run.chain.name}: {type(error).__name__}: {error} ({where.name})"
            results.put((run, 0.0, LearningError(" ".join(told.split()))))


def warm_up(chains: Sequence[Chain]) -> None:
    """Compile the kernels of these chains, or load them: learning times are of learning alone."""
    rng = np.random.default_rng(0)
    tiny = Footage(Corpus(rng.poisson(1.0, (80, 8))), 70, [], [])
    protocol = Protocol(
        2, 2, min_words=1, n_iterations=1, burn_in=1, thinning=1, few=1, many=2, n_restarts=1
    )
    for chain in chains:
        if chain.learning:
            run_chain(chain, 0, tiny, protocol, [])


def _end_with(parent: int) -> None:
    """End this process once its parent has gone, however that went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
