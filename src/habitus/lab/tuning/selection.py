"""Selection of the size of a model by the likelihood of held-out documents; no labels needed.

Neighbouring documents are alike, so whole segments are held out: the footage is cut into segments,
every fourth is held out at a time, and each is predicted as a sequence of its own, one document
ahead: ln p(x_t | x_{1:t-1}).

A word that was never seen must not decide everything, and a model must not be rewarded for the
amount of smoothing that its size brings. So p(word | behaviour) contains a background
distribution, as in the detector, and it is the same for every model: spread around all words of
the documents that were learnt from.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from threading import Event as ThreadEvent
from typing import Any, NamedTuple

import numpy as np

from habitus.arrays import Array
from habitus.corpus import Corpus
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.jobs.workers import Workers
from habitus.model import Parameters, Prior, TopicModel
from habitus.model.expected_counts import gather
from habitus.model.hyperparameters import fit_hyperparameters
from habitus.model.learning import IterationCallback, n_threads_of
from habitus.model.online import Background, filter_documents, filter_tables
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.scene.calibration import CalibrationSettings
from habitus.scene.measures import novelty_background

N_FOLDS = 4
N_SEGMENTS = 20
FEWEST_DOCUMENTS = 60
"""Documents long enough to learn from: about three per segment."""
ITERATIONS, TOLERANCE = 100, 1e-5
FITTED = "fitted"
"""Stands for the prior found by type-II maximum likelihood."""
TOPICS = (4, 8, 12, 20)
BEHAVIOURS = (2, 3, 4, 5, 6, 8)


@dataclass(frozen=True)
class Candidate:
    """Size, learning algorithm and prior of a model."""

    n_topics: int
    n_behaviours: int
    learning: str = "em"
    prior: str | Prior = "H+1"
    """One of the paper's priors, another one, or "fitted" (for "vb")."""

    def n_parameters(self, n_words: int) -> int:
        """Return the number of free parameters of phi, theta, pi and xi."""
        topics, z = self.n_topics, self.n_behaviours
        return topics * (n_words - 1) + z * (topics - 1) + (z - 1) + z * (z - 1)


class Prediction(NamedTuple):
    """Log-likelihood of held-out segments."""

    log_likelihood: Array
    """ln p of each segment, in nats."""
    n_tokens: Array
    """Number of tokens of each segment."""

    @property
    def mean(self) -> float:
        """Mean log-probability per word."""
        return float(self.log_likelihood.sum() / self.n_tokens.sum())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over segments (of a ratio of sums)."""
        rest = self.log_likelihood - self.mean * self.n_tokens
        n = len(rest)
        return float(np.sqrt(n / (n - 1) * (rest**2).sum()) / self.n_tokens.sum())

    def less(self, other: "Prediction") -> "Prediction":
        """Return the paired difference, segment by segment: most of the spread is common."""
        return Prediction(self.log_likelihood - other.log_likelihood, self.n_tokens)


class Choice(NamedTuple):
    """Candidates, their predictions, and the one to choose."""

    candidates: list[Candidate]
    predictions: list[Prediction]
    best: int
    """Index of the candidate with the highest held-out likelihood."""
    chosen: int
    """Index of the simplest candidate within one standard error of the best.

    The error is that of the paired difference, segment by segment.
    """

    @property
    def candidate(self) -> Candidate:
        """Candidate to choose."""
        return self.candidates[self.chosen]

    def shortfall(self, k: int) -> Prediction:
        """Return how much better the best predicts than candidate `k`, paired by segment."""
        return self.predictions[self.best].less(self.predictions[k])

    def rows(self) -> Iterator[tuple[Candidate, Prediction, Prediction]]:
        """Yield each candidate, its prediction, and how much better the best predicts."""
        for k, candidate in enumerate(self.candidates):
            yield candidate, self.predictions[k], self.shortfall(k)


def grid(
    topics: Sequence[int] = TOPICS,
    behaviours: Sequence[int] = BEHAVIOURS,
    *,
    prior: str = "H+1",
) -> list[Candidate]:
    """Return the candidates of all pairs of sizes, in ascending order.

    >>> [(c.n_topics, c.n_behaviours) for c in grid([8, 4], [2, 3])]
    [(4, 2), (8, 2), (4, 3), (8, 3)]
    """
    for name, values in (("topics", topics), ("behaviours", behaviours)):
        if not values or min(values) < 1:
            raise InvalidInputError(
                f"{name} to try must be whole numbers of at least 1, found {list(values)}",
                parameter=name,
            )
    return [
        Candidate(y, z, prior=prior) for z in sorted(set(behaviours)) for y in sorted(set(topics))
    ]


class SelectionRuns(NamedTuple):
    """How the models of a selection are learnt; results depend on neither jobs nor workers."""

    n_restarts: int = 3
    min_words: float = 20
    """Documents with fewer words carry no evidence."""
    seed: int = 0
    jobs: int = 1
    """Number of threads; below 1, one per processor."""
    workers: Workers | None = None
    """What learns instead of threads of this process."""
    progress: ProgressCallback = ignore_progress
    """Called after each candidate and fold."""

    def model(self, candidate: Candidate, random_state: Any, n_jobs: int = 1) -> TopicModel:
        """Return what learns a candidate; of a fitted prior, the one that is fitted from."""
        return TopicModel(
            candidate.n_topics,
            candidate.n_behaviours,
            learning=candidate.learning,
            prior="H" if candidate.prior == FITTED else candidate.prior,
            n_iterations=ITERATIONS,
            tolerance=TOLERANCE,
            n_restarts=self.n_restarts,
            n_jobs=n_jobs,
            min_words=self.min_words,
            random_state=random_state,
        )


def select_size(corpus: Corpus, candidates: Sequence[Candidate], runs: SelectionRuns) -> Choice:
    """Choose the simplest candidate within one standard error of the best; see `choose`."""
    corpus = corpus.coarse
    return choose(candidates, predict_held_out(corpus, candidates, runs), corpus.n_words)


def choose(
    candidates: Sequence[Candidate], predictions: Sequence[Prediction], n_words: int
) -> Choice:
    """Apply the one-standard-error rule with paired differences.

    The best candidate has the highest held-out likelihood; chosen is the one with the fewest
    parameters among those whose paired difference from the best is at most one standard error of
    that difference. Paired errors are small, about 0.001 nats per word on documents of a known
    model, so the choice may have more behaviours than that model; `Choice.shortfall` says how
    little they gain.
    """
    numbers = range(len(candidates))
    best = max(numbers, key=lambda k: predictions[k].mean)
    choice = Choice(list(candidates), list(predictions), best, best)
    worse = [choice.shortfall(k) for k in numbers]
    near = [k for k in numbers if worse[k].mean <= worse[k].standard_error]
    simplest = min(near, key=lambda k: (candidates[k].n_parameters(n_words), -predictions[k].mean))
    return choice._replace(chosen=simplest)


class SelectionFold(NamedTuple):
    """Documents to learn from, and held-out segments."""

    rest: Corpus
    segments: list[Corpus]
    background: Background


def selection_folds(corpus: Corpus, min_words: float = 20) -> list[SelectionFold]:
    """Return folds of coarse words that hold out every fourth of twenty segments."""
    corpus = corpus.coarse
    check_enough(corpus, min_words)
    segments = np.array_split(np.arange(len(corpus)), N_SEGMENTS)
    folds = []
    for held_out in (segments[k::N_FOLDS] for k in range(N_FOLDS)):
        rest = corpus.take(np.setdiff1d(np.arange(len(corpus)), np.concatenate(held_out)))
        parts = [corpus.take(segment) for segment in held_out]
        folds.append(SelectionFold(rest, parts, training_background(rest, min_words)))
    return folds


def training_background(corpus: Corpus, min_words: float = 20) -> Background:
    """Return the background distribution around all words of documents that were learnt from."""
    evidence, constants = gather(corpus, min_words=min_words), CalibrationSettings()
    counts = np.zeros(corpus.n_words)
    np.add.at(counts, evidence.words, evidence.counts)
    return novelty_background(
        counts,
        corpus.vocabulary,
        share=1 - constants.known_share,
        spread=constants.novelty_spread,
        uniform_share=constants.least_uniform_share,
    )


def check_enough(corpus: Corpus, min_words: float) -> None:
    """Raise InvalidInputError for footage that is too short or too empty to hold out any."""
    long = (corpus.n_tokens >= min_words) & (corpus.conditions == 0)
    if long.sum() < FEWEST_DOCUMENTS:
        raise InvalidInputError(
            f"tuning needs at least {FEWEST_DOCUMENTS} documents of {min_words:g} words or more, "
            f"found {long.sum()} of {len(corpus)}: give more footage"
        )
    filled = sum(bool(part.any()) for part in np.array_split(long, N_SEGMENTS))
    if filled < N_SEGMENTS // 2:
        raise InvalidInputError(
            f"tuning needs documents of {min_words:g} words or more throughout the footage, found "
            f"them in {filled} of {N_SEGMENTS} segments: give footage with more motion"
        )


def log_predictions(
    parameters: Parameters, background: Background, corpus: Corpus, min_words: float = 20
) -> Array:
    """Return ln p(x_t | x_{1:t-1}) of each document; 0 for one too short to judge."""
    evidence = gather(corpus, min_words=min_words)
    log_evidence = filter_documents(evidence, filter_tables([parameters], background)).log_evidence
    return np.where(np.diff(evidence.indptr) > 0, log_evidence, 0.0)


def predict_held_out(
    corpus: Corpus,
    candidates: Sequence[Candidate],
    runs: SelectionRuns,
    *,
    stage: str = "comparing sizes",
) -> list[Prediction]:
    """Predict every segment by a model of each candidate that has not learnt from it.

    Returns one prediction per candidate; `stage` is the name of this work in progress.
    """
    tasks = list(product(candidates, range(N_FOLDS)))
    folds = selection_folds(corpus, runs.min_words)
    predict = partial(
        _fold_prediction, folds, runs._replace(workers=None, progress=ignore_progress)
    )
    finished = (
        _by_threads(predict, tasks, n_threads_of(runs.jobs))
        if runs.workers is None
        else runs.workers.as_completed(partial(_quietly, predict), tasks)
    )
    results: dict[int, _Predicted] = {}
    for number, result in finished:
        results[number] = result
        log_likelihood, n_tokens = np.sum(result, axis=0)
        note = f"{log_likelihood / max(n_tokens, 1.0):.3f} nats per word"
        runs.progress(Progress(stage, len(results), len(tasks), note))
    return list(_predictions([results[number] for number in range(len(tasks))]))


_Task = tuple[Candidate, int]
"""A candidate to learn, and the number of the fold to learn without."""
_Predicted = list[tuple[float, float]]
"""Log-likelihood and tokens of each segment of a fold."""


def _fold_prediction(
    folds: Sequence[SelectionFold],
    runs: SelectionRuns,
    task: _Task,
    callback: IterationCallback = lambda iteration, objective: None,
) -> _Predicted:
    """Predict the segments of a fold that was not learnt from."""
    candidate, k = task
    fold, seeds = folds[k], [runs.seed, k, candidate.n_topics, candidate.n_behaviours]
    model = runs.model(candidate, np.random.default_rng(seeds)).fit(fold.rest, callback=callback)
    if candidate.prior == FITTED:
        model = fit_hyperparameters(model, fold.rest, callback=callback).model
    predicted = []
    for part in fold.segments:
        logs = log_predictions(model.parameters_, fold.background, part, runs.min_words)
        n_tokens = gather(part, min_words=runs.min_words).counts.sum()
        predicted.append((float(logs.sum()), float(n_tokens)))
    return predicted


def _quietly(predict: Callable[[_Task], _Predicted], task: _Task) -> _Predicted:
    """Predict in a process that nothing else uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        return predict(task)


def _by_threads(
    predict: Callable[..., _Predicted], tasks: Sequence[_Task], n_threads: int
) -> Iterator[tuple[int, _Predicted]]:
    """Yield the number and the prediction of each task, in order."""
    stopped = ThreadEvent()

    def check_stopped(iteration: int, objective: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    # Of all threads at once: filters of warnings are those of the process.
    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
        warnings.simplefilter("ignore", DegenerateWarning)
        try:
            yield from enumerate(pool.map(partial(predict, callback=check_stopped), tasks))
        finally:
            stopped.set()


def _predictions(results: list[_Predicted]) -> Iterator[Prediction]:
    """Yield the prediction of each candidate, its folds merged in the order of the segments."""
    for start in range(0, len(results), N_FOLDS):
        folds = results[start : start + N_FOLDS]
        whole = np.array([pair for row in zip(*folds, strict=True) for pair in row])
        filled = whole[:, 1] > 0
        yield Prediction(whole[filled, 0], whole[filled, 1])
