"""One chain from start to end: learn, and score for every method that it serves.

The folder of a comparison: one safe file a chain, and what they all are of.

All chains, in several processes; what is finished is not done again.
"""

import json
import multiprocessing as mp
import os
import queue
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from threading import Thread
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count

from habitus.anomaly.scene_model import learn_scene
from habitus.corpus.documents import Corpus
from habitus.errors import (
    DegenerateWarning,
    FileError,
    HabitusError,
    InvalidInputError,
    LearningError,
)
from habitus.files import read_tensors, write_tensors, written_whole
from habitus.lab.comparison.baselines import (
    BASELINES,
    Judged,
    Recall,
    Truth,
    score,
    score_by,
    truths_of,
)
from habitus.lab.comparison.protocol import Chain, Footage, Protocol, Samples
from habitus.model import MarkovClusteringTopicModel, Parameters


class Finished(NamedTuple):
    """What one chain gave."""

    judged: dict[str, Judged]
    """Of each method, by its name; without those that could not be."""
    notes: list[str]
    """Why some could not be."""


def run_chain(
    chain: Chain, run: int, footage: Footage, protocol: Protocol, truths: list[Truth]
) -> Finished:
    """Learn from the training documents, judge the others."""
    seed = protocol.seed_of(chain.name, run)
    if chain.group == "baselines":
        (method,) = chain.methods
        return Finished({method.name: BASELINES[chain.name](footage, protocol, seed)}, [])
    if chain.name == "ours":
        return _ours(chain, footage, protocol, seed, truths)
    return _paper(chain, footage, protocol, seed, truths)


class _Learnt(NamedTuple):
    sets: list[Parameters]
    seconds: float
    """Until the last of them was there."""


def _paper(
    chain: Chain,
    footage: Footage,
    protocol: Protocol,
    seed: np.random.SeedSequence,
    truths: list[Truth],
) -> Finished:
    learnt = _learn(chain, footage, protocol, seed)
    judged = {}
    for method in chain.methods:
        sets, seconds = learnt[method.samples]
        scores = score(sets, footage, protocol, truths)
        judged[method.name] = Judged(scores.normality, seconds, scores.seconds, scores.recall)
    return Finished(judged, [])


def _learn(
    chain: Chain, footage: Footage, protocol: Protocol, seed: np.random.SeedSequence
) -> dict[Samples, _Learnt]:
    """Sets of parameters to score with: a point estimate, a few samples, many samples."""
    rng, model = np.random.default_rng(seed), _model(chain, protocol)
    model.random_state = rng
    times: list[float] = []
    began = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model.fit(footage.train, callback=lambda *_: times.append(process_time() - began))
    if model.samples_:
        return _sampled(model, times, protocol.few)
    one = _Learnt([model.parameters_], process_time() - began)
    if model.posterior_ is None:
        return {"one": one}
    drawn, after = [], []
    for _ in range(protocol.many):
        drawn.append(model.posterior_.sample(rng))
        after.append(process_time() - began)
    few = protocol.few
    return {
        "one": one,
        "few": _Learnt(drawn[:few], after[few - 1]),
        "many": _Learnt(drawn, after[-1]),
    }


def _model(chain: Chain, protocol: Protocol) -> MarkovClusteringTopicModel:
    needed = {method.samples for method in chain.methods}
    return MarkovClusteringTopicModel(
        protocol.n_topics, protocol.n_behaviours, learning=chain.learning, prior=chain.prior,
        n_iterations=protocol.n_iterations, min_words=protocol.min_words,
        burn_in=protocol.burn_in, thinning=protocol.thinning,
        n_samples=protocol.many if "many" in needed else protocol.few,
    )  # fmt: skip


def _sampled(
    model: MarkovClusteringTopicModel, times: list[float], few: int
) -> dict[Samples, _Learnt]:
    """A sampler's sets, each with the time of the sweep that gave the last of them.

    Any one sample is a point estimate; the first is there when the burn-in ends, at no further
    cost.
    """
    ready = times[model.burn_in - 1 :: model.thinning]
    sizes: dict[Samples, int] = {"one": 1, "few": few, "many": len(model.samples_)}
    return {name: _Learnt(list(model.samples_[:n]), ready[n - 1]) for name, n in sizes.items()}


def _ours(
    chain: Chain,
    footage: Footage,
    protocol: Protocol,
    seed: np.random.SeedSequence,
    truths: list[Truth],
) -> Finished:
    """What `habitus learn` does by default: the best of several starts, then held-out scores."""
    began = process_time()
    scene = learn_scene(
        footage.train, n_topics=protocol.n_topics, n_behaviours=protocol.n_behaviours,
        learning=chain.learning, prior=chain.prior, n_iterations=protocol.n_iterations,
        n_restarts=protocol.n_restarts, min_words=protocol.min_words,
        random_state=np.random.default_rng(seed),
    )  # fmt: skip
    model, seconds = scene.model, process_time() - began
    judged = {}
    for method in chain.methods:
        if method.measure == "mean":
            scores = score([model.parameters_], footage, protocol, truths)
        elif scene.calibration is not None:
            detector = scene.detector(measure=method.measure, start="continued")
            scores = score_by(detector, footage, truths)
        else:
            continue
        judged[method.name] = Judged(scores.normality, seconds, scores.seconds, scores.recall)
    return Finished(judged, [] if scene.calibration is not None else list(scene.notes))


VERSION = 1
MANIFEST = "comparison.json"
OTHERS = {
    "documents": "of other documents",
    "labels": "with other labels",
    "training": "with another --train",
    "settings": "with other settings (topics, behaviours, seed or an older habitus)",
}


class Run(NamedTuple):
    """One chain to be run, or that was."""

    chain: Chain
    number: int


class Store:
    """Results on disk; those of other data are refused.

    Parameters
    ----------
    folder
        Made if it is not there.
    identity
        What the comparison is of, as `identity_of` gives it.
    """

    def __init__(self, folder: Path, identity: dict[str, str]) -> None:
        self.folder, self.chains = folder, folder / "chains"
        try:
            self.chains.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot make the folder {folder}: {error.strerror}") from error
        if (folder / MANIFEST).exists():
            self._check(identity)
        else:
            self._claim(identity)
        for left_over in self.chains.glob(".*"):  # of a run that was killed while it wrote
            left_over.unlink(missing_ok=True)

    def path(self, run: Run) -> Path:
        """Where the results of a chain are, once it is finished."""
        return self.chains / f"{run.chain.name}-{run.number + 1:03d}.safetensors"

    def has(self, run: Run) -> bool:
        """Whether a chain is finished; a damaged file is as good as none."""
        if not self.path(run).exists():
            return False
        try:
            self.get(run)
        except FileError:
            return False
        return True

    def put(self, run: Run, finished: Finished) -> None:
        """Keep the results of a chain, whole or not at all."""
        tensors, times = {}, {}
        for name, judged in finished.judged.items():
            tensors[f"{name}.normality"] = judged.normality
            times[name] = [judged.learning, judged.deciding]
            if judged.recall is not None:
                tensors[f"{name}.by_number"] = judged.recall.by_number
                tensors[f"{name}.by_share"] = judged.recall.by_share
        write_tensors(
            self.path(run), kind="chain", version=VERSION,
            header={"times": times, "notes": finished.notes}, tensors=tensors,
        )  # fmt: skip

    def get(self, run: Run) -> Finished:
        """The results of a finished chain."""
        path = self.path(run)
        header, tensors = read_tensors(path, kind="chain", version=VERSION)
        judged = {}
        try:
            for method in run.chain.methods:
                if (name := method.name) in header["times"]:
                    recall = None
                    if f"{name}.by_number" in tensors:
                        recall = Recall(tensors[f"{name}.by_number"], tensors[f"{name}.by_share"])
                    normality = tensors[f"{name}.normality"].astype(np.float64)
                    learning, deciding = header["times"][name]
                    judged[name] = Judged(normality, learning, deciding, recall)
            return Finished(judged, list(header["notes"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path}: not results this habitus understands: {error}") from error

    def _claim(self, identity: dict[str, str]) -> None:
        if any(self.chains.glob("*.safetensors")):
            raise InvalidInputError(
                f"{self.folder} holds results and does not say of what ({MANIFEST} is missing): "
                "name another --output, or delete it"
            )
        with written_whole(self.folder / MANIFEST) as temporary:
            temporary.write_text(json.dumps({"version": VERSION, **identity}, indent=1) + "\n")

    def _check(self, identity: dict[str, str]) -> None:
        path = self.folder / MANIFEST
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            differs = [OTHERS[name] for name in identity if found[name] != identity[name]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(
                f"{path}: not the beginning of a comparison: name another --output, or delete it"
            ) from error
        if differs:
            raise InvalidInputError(
                f"{self.folder} holds a comparison {' and '.join(differs)}: name another "
                "--output, or delete it"
            )


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
