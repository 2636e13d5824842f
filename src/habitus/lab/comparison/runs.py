"""Learning runs of a comparison, in several processes; finished ones are not repeated."""

import os
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from time import process_time

import numpy as np

from habitus.corpus.documents import Corpus
from habitus.errors import DegenerateWarning, HabitusError, InvalidInputError, LearningError
from habitus.evaluation.label_files import Labelling, align
from habitus.evaluation.labels import Label, footage_of_corpus
from habitus.evaluation.spatial_accuracy import LabelledWords
from habitus.ingest.clips import DocumentSettings
from habitus.jobs.workers import LocalWorkers, Workers, number_of_workers
from habitus.lab.comparison.baselines import run_baseline
from habitus.lab.comparison.findings import Comparison, summarise
from habitus.lab.comparison.protocol import (
    ComparisonProtocol,
    LearningRun,
    Samples,
    SplitFootage,
    identity_of,
    select_runs,
    split_footage,
)
from habitus.lab.comparison.run_store import (
    ComparisonStore,
    Repetition,
    RunResult,
    stored_documents,
)
from habitus.lab.comparison.scoring import labelled_words, score_by_detector, score_test
from habitus.model import Parameters, TopicModel
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.scene.detector import HABITS
from habitus.scene.scene_model import learn_scene
from habitus.video import Source


def compare_methods(
    source: Source | Corpus,
    labels: Sequence[Label] | Labelling,
    folder: str | os.PathLike[str],
    *,
    protocol: ComparisonProtocol = ComparisonProtocol(),
    settings: DocumentSettings | None = None,
    train: float = 300.0,
    methods: Sequence[str] = (),
    n_runs: int = 20,
    jobs: int = -1,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Run the paper's experiment, the default model of habitus and baselines on labelled footage.

    The folder keeps the documents and the results of each run: a second call with the same
    arguments continues an interrupted one. Results depend on neither `jobs` nor `workers`.
    Parameters are those of `habitus.compare`; raises InvalidInputError if one is out of range, or
    the folder holds a comparison of something else.
    """
    if n_runs < 1:
        raise InvalidInputError(f"runs must be at least 1, found {n_runs}", parameter="n_runs")
    runs, notes = select_runs(methods)
    if isinstance(source, Source):
        extraction = stored_documents(
            source, Path(folder), settings, jobs=jobs, workers=workers, progress=progress
        )
        corpus, name, notes = extraction.corpus, source.name, [*notes, *extraction.notes]
    else:
        corpus, name = source, "the corpus"
    aligned = align(labels, footage_of_corpus(corpus, name))
    footage = split_footage(corpus, aligned, train)
    store = ComparisonStore(Path(folder), identity_of(footage, protocol))
    repetitions = repetitions_of(runs, n_runs)
    run_all(store, footage, protocol, repetitions, jobs=jobs, workers=workers, progress=progress)
    comparison = summarise(store, footage, protocol, repetitions)
    return comparison._replace(notes=[*notes, *comparison.notes])


def repetitions_of(runs: Sequence[LearningRun], n_runs: int) -> list[Repetition]:
    """Return every repetition of the learning runs; one of a run without randomness."""
    return [
        Repetition(run, number) for run in runs for number in range(n_runs if run.random else 1)
    ]


def carry_out(
    repetition: Repetition,
    footage: SplitFootage,
    protocol: ComparisonProtocol,
    labelled: Sequence[LabelledWords],
) -> RunResult:
    """Learn from the training documents and score the test documents by each method of a run."""
    run, seed = repetition.run, protocol.seed_of(repetition.run.name, repetition.number)
    if run.group == "baselines":
        (method,) = run.methods
        return RunResult({method.name: run_baseline(run.name, footage, protocol, seed)}, [])
    if run.name == "ours":
        return _default_model(run, footage, protocol, seed, labelled)
    learnt = _learn(run, footage, protocol, seed)
    results = {}
    for method in run.methods:
        sets, seconds = learnt[method.samples]
        scored = score_test(sets, footage, protocol, labelled)
        results[method.name] = scored._replace(learning=seconds)
    return RunResult(results, [])


_LearntSets = tuple[list[Parameters], float]
"""Sets of parameters, and the seconds until the last of them was learnt."""


def _learn(
    run: LearningRun,
    footage: SplitFootage,
    protocol: ComparisonProtocol,
    seed: np.random.SeedSequence,
) -> dict[Samples, _LearntSets]:
    """Learn one of the paper's models.

    Returns a point estimate, a few samples and many samples, as far as the learner has them.
    """
    rng, needed = np.random.default_rng(seed), {method.samples for method in run.methods}
    model = TopicModel(
        **protocol.model_options(run),
        burn_in=protocol.burn_in,
        thinning=protocol.thinning,
        n_samples=protocol.many if "many" in needed else protocol.few,
        random_state=rng,
    )
    times: list[float] = []
    began = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model.fit(footage.train, callback=lambda *_: times.append(process_time() - began))
    if model.samples_:
        return _gibbs_sets(model, times, protocol.few)
    one = [model.parameters_], process_time() - began
    if model.posterior_ is None:
        return {"one": one}
    drawn, after = [], []
    for _ in range(protocol.many):
        drawn.append(model.posterior_.sample(rng))
        after.append(process_time() - began)
    few = protocol.few
    return {
        "one": one,
        "few": (drawn[:few], after[few - 1]),
        "many": (drawn, after[-1]),
    }


def _gibbs_sets(model: TopicModel, times: list[float], few: int) -> dict[Samples, _LearntSets]:
    """Return the first, the first few and all samples, with the times of their last sweeps.

    Any one sample is a point estimate; the first exists when the burn-in ends, at no further cost.
    """
    ready = times[model.burn_in - 1 :: model.thinning]
    sizes: dict[Samples, int] = {"one": 1, "few": few, "many": len(model.samples_)}
    return {name: (list(model.samples_[:n]), ready[n - 1]) for name, n in sizes.items()}


def _default_model(
    run: LearningRun,
    footage: SplitFootage,
    protocol: ComparisonProtocol,
    seed: np.random.SeedSequence,
    labelled: Sequence[LabelledWords],
) -> RunResult:
    """Learn and calibrate the default model of habitus, and score by each of its measures."""
    began = process_time()
    scene = learn_scene(
        footage.train,
        **protocol.model_options(run),
        n_restarts=protocol.n_restarts,
        random_state=np.random.default_rng(seed),
    )
    seconds = process_time() - began
    results = {}
    for method in run.methods:
        if method.measure == "mean":
            scored = score_test([scene.model.parameters_], footage, protocol, labelled)
        elif (scene.habits if method.measure == HABITS else scene.calibration) is not None:
            detector = scene.detector(measure=method.measure, start="continued")
            scored = score_by_detector(detector, footage, labelled)
        else:
            continue
        results[method.name] = scored._replace(learning=seconds)
    return RunResult(results, [] if scene.calibration is not None else list(scene.notes))


def run_all(
    store: ComparisonStore,
    footage: SplitFootage,
    protocol: ComparisonProtocol,
    repetitions: Sequence[Repetition],
    *,
    jobs: int = -1,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
) -> None:
    """Carry out the repetitions that have no results in the store yet.

    Progress is reported before the first run and after each.
    """
    runs = dict.fromkeys(repetition.run for repetition in repetitions)
    guess = {run.name: expected_seconds(run, footage, protocol) for run in runs}
    missing = [repetition for repetition in repetitions if not store.has(repetition)]
    missing.sort(key=lambda repetition: -guess[repetition.run.name])  # the long ones first
    n_workers = min(len(missing), workers.n_workers if workers else number_of_workers(jobs))
    clock = _Clock(guess, missing, len(repetitions), n_workers)
    report = progress or ignore_progress
    report(clock.progress())
    if not missing:
        return
    missing_runs = tuple(dict.fromkeys(repetition.run for repetition in missing))
    task = partial(_timed_result, _Work(footage, protocol, missing_runs))
    with nullcontext(workers) if workers else LocalWorkers(n_workers) as carrying_out:
        for number, (result, seconds) in carrying_out.as_completed(task, missing):
            store.put(missing[number], result)
            clock.finish(missing[number], seconds)
            report(clock.progress())


def expected_seconds(
    run: LearningRun, footage: SplitFootage, protocol: ComparisonProtocol
) -> float:
    """Return a rough duration of a learning run, to start long ones first."""
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
        "baselines": {"lda": 15.0, "hmm": 10.0, "forest": 3.0}.get(run.name, 1.0),
    }[run.group]


class _Clock:
    """Estimate of the time left, from the durations of finished runs of each name."""

    def __init__(
        self, guess: dict[str, float], missing: Sequence[Repetition], total: int, n_workers: int
    ) -> None:
        self.guess, self.n_workers, self.total = guess, n_workers, total
        self.left = [repetition.run.name for repetition in missing]
        self.took: dict[str, list[float]] = {}
        self.latest = ""

    def finish(self, repetition: Repetition, seconds: float) -> None:
        self.left.remove(repetition.run.name)
        self.took.setdefault(repetition.run.name, []).append(seconds)
        self.latest = repetition.name

    def progress(self) -> Progress:
        seconds = sum(map(self._expected, self.left)) / max(self.n_workers, 1)
        minutes = f"{seconds / 60:.0f} min" if seconds >= 90 else "a minute"
        notes = [f"about {minutes} left"] if self.left else []
        note = "; ".join([*notes, *filter(None, [self.latest])])
        return Progress("comparing", self.total - len(self.left), self.total, note)

    def _expected(self, name: str) -> float:
        if name in self.took:
            return fmean(self.took[name])
        guessed = sum(self.guess[run] * len(took) for run, took in self.took.items())
        measured = sum(map(sum, self.took.values()))
        return self.guess[name] * (measured / guessed if guessed else 1.0)


class _Work:
    """What a worker needs for every repetition; prepared once by each."""

    def __init__(
        self, footage: SplitFootage, protocol: ComparisonProtocol, runs: tuple[LearningRun, ...]
    ) -> None:
        self.footage, self.protocol, self.runs = footage, protocol, runs

    @cached_property
    def documents(self) -> dict[str, tuple[SplitFootage, list[LabelledWords]]]:
        """Footage by the kind of its words, and its labelled words; kernels are compiled then."""
        fine = self.footage
        warm_up(self.runs)
        return {
            words: (footage, labelled_words(footage, self.protocol))
            for words, footage in (("paper", fine.paper), ("coarse", fine.coarse), ("fine", fine))
        }


def _timed_result(work: _Work, repetition: Repetition) -> tuple[RunResult, float]:
    """Carry out a repetition; run by a worker, returns the result and the seconds."""
    footage, labelled = work.documents[repetition.run.words]
    began = time.monotonic()
    try:
        result = carry_out(repetition, footage, work.protocol, labelled)
    except HabitusError:
        raise
    except Exception as error:  # of a library: one line, whatever it is
        where = traceback.extract_tb(error.__traceback__)[-1]
        message = f"{repetition.run.name}: {type(error).__name__}: {error} ({where.name})"
        raise LearningError(" ".join(message.split())) from None
    return result, time.monotonic() - began


def warm_up(runs: Sequence[LearningRun]) -> None:
    """Compile or load the kernels of these runs, so that learning times contain learning alone."""
    rng = np.random.default_rng(0)
    tiny = SplitFootage(Corpus(rng.poisson(1.0, (80, 8))), 70, [])
    protocol = ComparisonProtocol(
        2, 2, min_words=1, n_iterations=1, burn_in=1, thinning=1, few=1, many=2, n_restarts=1
    )
    for run in runs:
        if run.learning:
            carry_out(Repetition(run, 0), tiny, protocol, [])
