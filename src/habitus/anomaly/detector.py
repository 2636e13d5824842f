"""The detector: documents in, one at a time, judgements out."""

import hashlib
import os
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.calibration import calibration_of, parameter_sets
from habitus.anomaly.measures import MEASURES
from habitus.anomaly.thresholds import (
    DAY,
    Interval,
    alarms_expected,
    budget_threshold,
    share_threshold,
    tail_of,
)
from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.errors import FileError, InvalidInputError
from habitus.files import read_tensors, write_tensors
from habitus.model import MarkovClusteringTopicModel
from habitus.model.online import (
    LEAST_PROBABILITY,
    FilterStep,
    examine,
    filter_document,
    filter_tables,
)

VERSION = 1
ALERTS_PER_DAY = 5.0
# Scores that a measure can give at all.
POSSIBLE = {"mean": (np.log(LEAST_PROBABILITY), 0.0), "tail": (-np.inf, 0.0)}
UNCALIBRATED = (
    "needs to know what normal footage scores: learn with `habitus learn`, or call "
    "habitus.anomaly.calibrate(model, corpus)"
)
Approximation = Literal["plug-in", "monte-carlo"]
Start = Literal["new", "continued", "uniform"]


class Document(Protocol):
    """What can be judged: a Bag, or a document of `habitus.corpus`."""

    @property
    def words(self) -> NDArray[np.integer[Any]]:
        """Word ids, ascending."""
        ...

    @property
    def counts(self) -> NDArray[Any]:
        """How often each of them was seen."""
        ...


class Judgement(NamedTuple):
    """What the detector says of a document."""

    normality: float
    """By the measure in use: the higher the more usual; 0 if not judged."""
    abnormal: bool
    judged: bool
    """False for a document too short, or of a camera that was not in order: normal by default."""
    seen: FilterStep
    """Surprise and its parts, the posterior of the behaviour, the surprise of each word."""
    log_predicted: Array
    """ln p(z_t | x_{1:t-1}), sets x behaviours: what was expected before it was seen."""

    @property
    def surprisals(self) -> Array:
        """-ln p(word | x_{1:t-1}) of each word; empty if not judged."""
        return self.seen.surprisals

    @property
    def predicted(self) -> Array:
        """p(z_t | x_{1:t-1}), behaviours."""
        return np.asarray(np.exp(self.log_predicted).mean(axis=0))

    @property
    def posterior(self) -> Array:
        """p(z_t | x_{1:t}), behaviours."""
        return np.asarray(self.seen.posterior.sum(axis=0))

    @property
    def behaviour(self) -> int:
        """The most probable behaviour, from 0 on."""
        return int(self.posterior.argmax())


class Detector:
    """Judges documents one after the other, in constant memory.

    Parameters
    ----------
    model
        A fitted model; `habitus.anomaly.calibrate` has told it what normal footage scores.
    measure
        "tail", the default, or "mean", the paper's: see `habitus.anomaly.measures`.
    approximation
        "plug-in", or "monte-carlo" for a model learnt by vb or gibbs.
    n_samples
        Posterior samples of the Monte Carlo approximation: 100 drawn from VB's posterior, all that
        Gibbs kept, unless told.
    threshold, share, alerts_per_day
        When a document is abnormal, one of: its normality is below a fixed value; it would be
        among this share of normal documents; or so that a day brings this many alerts of nothing,
        the default (5).
    start
        A first sequence starts from pi ("new"), goes on from the last training document
        ("continued") or starts "uniform"; further ones start from pi.
    seed
        Of the samples drawn from VB's posterior.

    Examples
    --------
    >>> import habitus
    >>> from habitus.lab import crossing
    >>> corpus = habitus.generate(crossing(), [60] * 200, np.random.default_rng(0)).corpus
    >>> model = habitus.MarkovClusteringTopicModel(8, 4, random_state=0).fit(corpus)
    >>> detector = habitus.Detector(model, measure="mean", threshold=-8.0)
    >>> [detector.step(document).abnormal for document in corpus.bags()].count(True)
    0
    """

    def __init__(
        self,
        model: MarkovClusteringTopicModel,
        *,
        measure: str = "tail",
        approximation: Approximation = "plug-in",
        n_samples: int | None = None,
        threshold: float | None = None,
        share: float | None = None,
        alerts_per_day: float | None = None,
        start: Start = "new",
        seed: int = 0,
    ) -> None:
        if measure not in MEASURES:
            raise InvalidInputError(
                f"measure must be one of {', '.join(MEASURES)}, found {measure!r}"
            )
        self.model, self.measure, self.approximation = model, measure, approximation
        self.calibration = calibration_of(model, approximation)
        sets = parameter_sets(model, approximation, n_samples, seed)
        novelty = self.calibration.novelty if self.calibration and measure != "mean" else None
        self.tables = filter_tables(sets, novelty)
        if self.calibration is None and measure != "mean":
            raise InvalidInputError(f"the measure {measure} {UNCALIBRATED}")
        self.level = self.calibration.level if self.calibration else 0.0
        self.threshold = self._threshold(threshold, share, alerts_per_day)
        self.log_predicted = self._opening(start)
        self.n_words = len(self.tables.probability)

    def step(self, document: Document, *, fine: bool = True) -> Judgement:
        """Judge the next document of the sequence; `fine` is whether the camera was in order."""
        words = np.asarray(document.words, dtype=np.int32)
        counts = np.asarray(document.counts, dtype=np.float64)
        if words.ndim != 1 or words.shape != counts.shape:
            raise InvalidInputError(
                f"a document needs a count for each word, found {words.shape} words and "
                f"{counts.shape} counts"
            )
        n_tokens, known = examine(words, counts, self.n_words)
        if not known:
            raise InvalidInputError(
                f"word ids must run from 0 to {self.n_words - 1}, found {words.min()} to "
                f"{words.max()}"
            )
        expected = self.log_predicted
        if not fine or n_tokens == 0 or n_tokens < self.model.min_words:
            seen = filter_document(expected, words[:0], counts[:0], self.tables)
            self.log_predicted = seen.log_next
            return Judgement(0.0, False, False, seen, expected)
        seen = filter_document(expected, words, counts, self.tables)
        normality = MEASURES[self.measure](seen, counts, self.level)
        self.log_predicted = seen.log_next
        return Judgement(normality, normality < self.threshold, True, seen, expected)

    def new_sequence(self) -> None:
        """What comes next does not follow what came before."""
        self.log_predicted = self.tables.log_pi

    def judge(self, corpus: Corpus) -> Iterator[Judgement]:
        """Judge every document of a corpus, in order."""
        if corpus.n_words != self.n_words:
            raise InvalidInputError(
                f"the corpus has a vocabulary of {corpus.n_words} words, the model was learnt on "
                f"{self.n_words}: another camera, size or cell"
            )
        first, fine = corpus.first, corpus.conditions == 0
        for t, document in enumerate(corpus.bags()):
            if t and first[t]:
                self.new_sequence()
            yield self.step(document, fine=bool(fine[t]))

    def alarms_expected(self, seconds: float) -> Interval | None:
        """How many alarms normal footage of so many seconds brings; None if not calibrated."""
        if self.calibration is None:
            return None
        tail = tail_of(self.calibration.scores[self.measure], self.calibration.judged)
        return alarms_expected(tail, self.threshold, seconds / self.model.clip_)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write what the detector knows of the sequence so far, whole or not at all."""
        write_tensors(
            path, kind="detector", version=VERSION, header={"tables": self._identity()},
            tensors={"log_predicted": self.log_predicted},
        )  # fmt: skip

    def restore_state(self, path: str | os.PathLike[str]) -> None:
        """Go on where a detector with the same model and approximation was."""
        header, tensors = read_tensors(path, kind="detector", version=VERSION)
        state = tensors.get("log_predicted")
        if header.get("tables") != self._identity() or state is None:
            raise FileError(f"{path}: the state of a detector with another model or approximation")
        self.log_predicted = state

    def _identity(self) -> str:
        return hashlib.blake2b(self.tables.probability.data, digest_size=16).hexdigest()

    def _opening(self, start: Start) -> Array:
        """ln p(z) of the first document to come, sets x behaviours."""
        tables = self.tables
        if start == "new":
            return tables.log_pi
        if start == "uniform":
            return np.full_like(tables.log_pi, -np.log(tables.log_pi.shape[1]))
        if start == "continued":
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(tables.xi @ self.model.belief_))
        raise InvalidInputError(f'start must be "new", "continued" or "uniform", found {start!r}')

    def _threshold(
        self, threshold: float | None, share: float | None, alerts_per_day: float | None
    ) -> float:
        given = [value for value in (threshold, share, alerts_per_day) if value is not None]
        if len(given) > 1:
            raise InvalidInputError(
                "give one of threshold, share and alerts_per_day, found several"
            )
        if threshold is not None:
            return _checked(float(threshold), self.measure)
        if self.calibration is None:
            raise InvalidInputError(f"a threshold other than a fixed value {UNCALIBRATED}")
        scores, judged = self.calibration.scores[self.measure], self.calibration.judged
        if share is not None:
            return share_threshold(scores[judged], share)
        alerts = ALERTS_PER_DAY if alerts_per_day is None else alerts_per_day
        return budget_threshold(tail_of(scores, judged), alerts, DAY / self.model.clip_)


def _checked(threshold: float, measure: str) -> float:
    """A fixed threshold, or an error if no score, or every one, is below it."""
    low, high = POSSIBLE.get(measure, (-np.inf, np.inf))
    if not np.isfinite(threshold):
        raise InvalidInputError(f"threshold must be a finite number, found {threshold}")
    if not low < threshold <= high:
        which = "every" if threshold > high else "no"
        raise InvalidInputError(
            f"{which} document's {measure} is below {threshold:g}: it lies between {low:.4g} and "
            f"{high:g}"
        )
    return threshold
