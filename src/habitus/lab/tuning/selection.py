"""How well a way of learning predicts documents that it has not learnt from.

Neighbouring documents are too much alike, so whole stretches are held out: the footage is cut into
stretches, every fourth is left out at a time, and each is predicted as a sequence of its own, one
document ahead: ln p(x_t | x_{1:t-1}).

A word that was never seen must not decide everything, nor may a model be rewarded for the bare
amount of smoothing that its size brings. So p(word | behaviour) has its share of novelty, as the
detector's has (`normality/novelty.py`), and that share is the same for every model: it is spread
around all words of the documents that were learnt from.

The size of a model, chosen by what it predicts: no labels needed.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from habitus.anomaly.calibration import CalibrationSettings
from habitus.anomaly.measures import novelty_background
from habitus.arrays import Array
from habitus.corpus import Corpus, Vocabulary
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.model import MarkovClusteringTopicModel, Parameters, Prior
from habitus.model.expected_counts import gather, log_likelihoods
from habitus.model.hyperparameters import fit_hyperparameters
from habitus.model.messages import filter_forward
from habitus.model.online import Background

N_FOLDS = 4
N_STRETCHES = 20
FEWEST = 60
"""Documents long enough to learn from, so that a stretch has three of them or so."""
ITERATIONS, TOLERANCE = 100, 1e-5
FITTED = "fitted"
"""Stands for the prior that type-II maximum likelihood finds."""

Callback = Callable[[int, float], None]


@dataclass(frozen=True)
class Candidate:
    """A way of learning."""

    n_topics: int
    n_behaviours: int
    learning: str = "em"
    prior: str | Prior = "H+1"
    """One of the paper's, an own one, or "fitted" (for "vb")."""

    def n_parameters(self, n_words: int) -> int:
        """Free parameters of phi, theta, pi and xi: the fewer, the simpler."""
        topics, z = self.n_topics, self.n_behaviours
        return topics * (n_words - 1) + z * (topics - 1) + (z - 1) + z * (z - 1)


class Prediction(NamedTuple):
    """What held-out stretches were predicted with."""

    log_likelihood: Array
    """Of each stretch, in nats."""
    n_tokens: Array
    """Words of each, repeats counted."""

    @property
    def mean(self) -> float:
        """Mean log-probability of a word."""
        return float(self.log_likelihood.sum() / self.n_tokens.sum())

    @property
    def standard_error(self) -> float:
        """Of the mean, from how stretches differ (that of a ratio of sums)."""
        rest = self.log_likelihood - self.mean * self.n_tokens
        n = len(rest)
        return float(np.sqrt(n / (n - 1) * (rest**2).sum()) / self.n_tokens.sum())

    def less(self, other: "Prediction") -> "Prediction":
        """What this predicts better, stretch by stretch: much of the spread is in both."""
        return Prediction(self.log_likelihood - other.log_likelihood, self.n_tokens)


class Fold(NamedTuple):
    """Documents to learn from, and stretches that are held out."""

    rest: Corpus
    stretches: list[Corpus]
    novelty: Background


def folds_of(corpus: Corpus, min_words: float = 20) -> list[Fold]:
    """Every fourth of twenty stretches at a time, with all other documents."""
    check_enough(corpus, min_words)
    stretches = np.array_split(np.arange(len(corpus)), N_STRETCHES)
    return [_fold(corpus, stretches[k::N_FOLDS], min_words) for k in range(N_FOLDS)]


def _fold(corpus: Corpus, stretches: list[NDArray[np.int64]], min_words: float) -> Fold:
    rest = corpus.take(np.setdiff1d(np.arange(len(corpus)), np.concatenate(stretches)))
    evidence = gather(rest, min_words=min_words)
    seen = np.zeros(corpus.n_words)
    np.add.at(seen, evidence.words, evidence.counts)
    return Fold(rest, [corpus.take(each) for each in stretches], _novelty(seen, corpus.vocabulary))


def _novelty(counts: Array, vocabulary: Vocabulary | None) -> Background:
    """Return the background around all words of the documents that were learnt from."""
    constants = CalibrationSettings()
    return novelty_background(
        counts,
        vocabulary,
        share=1 - constants.known_share,
        spread=constants.novelty_spread,
        uniform_share=constants.least_uniform_share,
    )


def check_enough(corpus: Corpus, min_words: float) -> None:
    """Refuse footage that is too short, or too empty, to hold any of it out."""
    long = (corpus.n_tokens >= min_words) & (corpus.conditions == 0)
    if long.sum() < FEWEST:
        raise InvalidInputError(
            f"tuning needs at least {FEWEST} documents of {min_words:g} words or more, found "
            f"{long.sum()} of {len(corpus)}: give more footage"
        )
    filled = sum(bool(part.any()) for part in np.array_split(long, N_STRETCHES))
    if filled < N_STRETCHES // 2:
        raise InvalidInputError(
            f"tuning needs documents of {min_words:g} words or more all along the footage, found "
            f"them in {filled} of {N_STRETCHES} stretches: give footage in which something moves"
        )


def log_predictions(
    parameters: Parameters, novelty: Background, corpus: Corpus, min_words: float = 20
) -> Array:
    """ln p(x_t | x_{1:t-1}) of each document; 0 for those too short to judge."""
    evidence = gather(corpus, min_words=min_words)
    share = np.full((1, len(parameters.pi)), novelty.share)
    # Background is one more topic, of the same share in every behaviour.
    phi = np.column_stack([parameters.phi, novelty.probability])
    theta = np.vstack([(1 - novelty.share) * parameters.theta, share])
    log_like = log_likelihoods(evidence, phi, theta)
    found = filter_forward(log_like, evidence.first, parameters.pi, parameters.xi).log_evidence
    return np.where(np.diff(evidence.indptr) > 0, found, 0.0)


def predict_held_out(
    corpus: Corpus,
    candidates: Sequence[Candidate],
    *,
    n_restarts: int = 3,
    min_words: float = 20,
    jobs: int = 1,
    seed: int = 0,
    callback: Callback | None = None,
) -> list[Prediction]:
    """The prediction of every stretch by each candidate; the same bits for any number of jobs.

    `callback(done, mean)` is told of every candidate and fold.
    """
    folds, stopped = folds_of(corpus, min_words), Event()

    def tell(iteration: int, objective: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    def work(task: tuple[Candidate, int]) -> list[tuple[float, float]]:
        candidate, k = task
        options = {"n_restarts": n_restarts, "min_words": min_words}
        parameters = _learnt(candidate, folds[k].rest, (seed, k), tell, options)
        return [_predicted(parameters, folds[k], part, min_words) for part in folds[k].stretches]

    with warnings.catch_warnings(), ThreadPoolExecutor(effective_n_jobs(jobs)) as pool:
        warnings.simplefilter("ignore", DegenerateWarning)
        try:
            results = pool.map(work, product(candidates, range(N_FOLDS)))
            return list(_gathered(results, callback))
        finally:
            stopped.set()


def _learnt(
    candidate: Candidate,
    corpus: Corpus,
    seeds: tuple[int, int],
    tell: Callback,
    options: dict[str, Any],
) -> Parameters:
    rng = np.random.default_rng([*seeds, candidate.n_topics, candidate.n_behaviours])
    prior = candidate.prior
    model = MarkovClusteringTopicModel(
        candidate.n_topics, candidate.n_behaviours, learning=candidate.learning,
        prior="H" if prior == FITTED else prior, n_iterations=ITERATIONS, tolerance=TOLERANCE,
        random_state=rng, **options,
    ).fit(corpus, callback=tell)  # fmt: skip
    if prior == FITTED:
        return fit_hyperparameters(model, corpus, callback=tell).model.parameters_
    return model.parameters_


def _predicted(
    parameters: Parameters, fold: Fold, stretch: Corpus, min_words: float
) -> tuple[float, float]:
    """Log-likelihood of a stretch, and its number of words."""
    evidence = gather(stretch, min_words=min_words)
    predicted = log_predictions(parameters, fold.novelty, stretch, min_words)
    return float(predicted.sum()), float(evidence.counts.sum())


def _gathered(
    results: Iterator[list[tuple[float, float]]], callback: Callback | None
) -> Iterator[Prediction]:
    """The folds of each candidate, put together in the order of the stretches."""
    parts: list[list[tuple[float, float]]] = []
    for done, result in enumerate(results):
        parts.append(result)
        if callback is not None:
            sums = np.array(result).sum(axis=0)
            callback(done, float(sums[0] / max(sums[1], 1.0)))
        if len(parts) == N_FOLDS:
            whole = np.array([pair for row in zip(*parts, strict=True) for pair in row])
            filled = whole[:, 1] > 0
            yield Prediction(whole[filled, 0], whole[filled, 1])
            parts = []


TOPICS = (4, 8, 12, 20)
BEHAVIOURS = (2, 3, 4, 5, 6, 8)


class Choice(NamedTuple):
    """Candidates, what each predicts, and which of them to take."""

    candidates: list[Candidate]
    predictions: list[Prediction]
    best: int
    """The one that predicts best."""
    chosen: int
    """The simplest that predicts no worse than that by more than one standard error."""

    @property
    def candidate(self) -> Candidate:
        """The one to take."""
        return self.candidates[self.chosen]

    def shortfall(self, k: int) -> float:
        """What a candidate predicts worse than the best, a word."""
        return self.predictions[self.best].mean - self.predictions[k].mean


def grid(
    topics: Sequence[int] = TOPICS,
    behaviours: Sequence[int] = BEHAVIOURS,
    *,
    learning: str = "em",
    prior: str = "H+1",
) -> list[Candidate]:
    """All pairs of these numbers, ascending."""
    for name, values in (("topics", topics), ("behaviours", behaviours)):
        if not values or min(values) < 1:
            raise InvalidInputError(
                f"{name} to try must be whole numbers of at least 1, found {list(values)}"
            )
    return [
        Candidate(y, z, learning, prior)
        for z in sorted(set(behaviours))
        for y in sorted(set(topics))
    ]


def choose(
    candidates: Sequence[Candidate], predictions: Sequence[Prediction], n_words: int
) -> Choice:
    """The simplest within one standard error, that of the best, of the best."""
    numbers = range(len(candidates))
    best = max(numbers, key=lambda k: predictions[k].mean)
    choice = Choice(list(candidates), list(predictions), best, best)
    error = predictions[best].standard_error
    near = [k for k in numbers if choice.shortfall(k) <= error]
    simplest = min(near, key=lambda k: (candidates[k].n_parameters(n_words), -predictions[k].mean))
    return choice._replace(chosen=simplest)


def select_size(
    corpus: Corpus,
    candidates: Sequence[Candidate] | None = None,
    *,
    n_restarts: int = 3,
    min_words: float = 20,
    jobs: int = 1,
    seed: int = 0,
    callback: Callback | None = None,
) -> Choice:
    """Numbers of topics and behaviours by the likelihood of held-out stretches."""
    tried = grid() if candidates is None else list(candidates)
    predictions = predict_held_out(
        corpus, tried, n_restarts=n_restarts, min_words=min_words, jobs=jobs, seed=seed,
        callback=callback,
    )  # fmt: skip
    return choose(tried, predictions, corpus.n_words)
