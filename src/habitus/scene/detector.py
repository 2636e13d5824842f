"""Detector: documents in, one at a time or a corpus at once, judgements out."""

import hashlib
import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags, Indices
from habitus.corpus import Bag, Corpus, Vocabulary, summed_bag
from habitus.corpus.clocks import NO_CLOCK
from habitus.corpus.stands import StandingCells
from habitus.errors import FileError, InvalidInputError
from habitus.files import FileFormat
from habitus.habits.turns import BACK, turn_after, turns_of
from habitus.habits.votes import Votes
from habitus.model import TopicModel
from habitus.model.expected_counts import Evidence, gather
from habitus.model.online import (
    LEAST_PROBABILITY,
    FilteredDocuments,
    FilterStep,
    OpeningBelief,
    examine,
    filter_document,
    filter_documents,
    filter_tables,
    log_opening,
    predicted_behaviours,
)
from habitus.rarity import NormalFootage, rarity_in_words
from habitus.scene.calibration import Calibration, parameter_sets
from habitus.scene.habit_model import HabitJudgement, HabitModel, JudgedHabits
from habitus.scene.measures import MEASURES, score_documents
from habitus.scene.thresholds import (
    DAY,
    Bar,
    ExpectedAlarms,
    Tail,
    bar_of_budget,
    join_of,
    share_threshold,
)
from habitus.schema import INDEX, REAL, Layout
from habitus.settings import AlertSettings

FORMAT = FileFormat("detector", 1)
HABITS = "habits"
MEASURE_NAMES = (HABITS, *MEASURES)
POSSIBLE = {
    "mean": (np.log(LEAST_PROBABILITY), 0.0),
    "tail": (-np.inf, 0.0),
    HABITS: (-np.inf, 0.0),
}
"""Lowest and highest score that a measure can give."""

Approximation = Literal["plug-in", "monte-carlo"]


class BagLike(Protocol):
    """What can be judged: a `Bag`, or a document of a live source."""

    @property
    def words(self) -> NDArray[np.integer[Any]]:
        """Ids of the distinct words, ascending."""
        ...

    @property
    def counts(self) -> NDArray[Any]:
        """How often each of them occurs."""
        ...


class Judgement(NamedTuple):
    """Judgement of one document."""

    normality: float
    """By the measure in use: the higher, the more usual; 0 if not judged."""
    abnormal: bool
    judged: bool
    """False for a document too short, or of a camera that was not usable: normal by default."""
    log_evidence: float
    """ln p(x_t | x_{1:t-1})."""
    misfit: float
    """Nats of the surprisal that fit no behaviour."""
    shift: float
    """Nats of the surprisal that are a behaviour out of its turn; the rest of -log_evidence."""
    predicted: Array
    """p(z_t | x_{1:t-1}), behaviours: what was expected before the document was seen."""
    posterior: Array
    """p(z_t | x_{1:t}), behaviours."""
    surprisals: Array
    """-ln p(word | x_{1:t-1}) of each word; empty if not judged."""
    habit: HabitJudgement | None = None
    """What habits say, by the measure "habits"; of a corpus, only where asked for or abnormal."""

    @property
    def behaviour(self) -> int:
        """The most probable behaviour, counted from 0."""
        return int(self.posterior.argmax())


class JudgedCorpus(NamedTuple):
    """Judgements of all documents of a corpus, as arrays."""

    normality: Array
    """Of each document, by the measure in use; 0 where it was not judged."""
    judged: Flags
    evidence: Evidence
    """The words that were judged: documents that were not judged have none."""
    filtered: FilteredDocuments
    habits: JudgedHabits | None = None
    """What habits say, by the measure "habits"."""

    def judgement(self, t: int, threshold: float, *, explained: bool = False) -> Judgement:
        """Return the judgement of one document at a threshold.

        What habits say is part of it where the document is abnormal, or where `explained`.
        """
        f, judged, normality = self.filtered, bool(self.judged[t]), float(self.normality[t])
        start, end = self.evidence.indptr[t : t + 2]
        abnormal = judged and normality < threshold
        return Judgement(
            normality,
            abnormal,
            judged,
            float(f.log_evidence[t]),
            float(f.misfit[t]),
            float(f.shift[t]),
            f.predicted[t],
            f.posterior[t],
            f.surprisals[start:end],
            self.habits.judgement(t) if self.habits and (abnormal or explained) else None,
        )


class KnownScores(NamedTuple):
    """Scores of held-out documents in time order, by the measure in use.

    By habits, minus the score of the fusion; normality is a function of it.
    """

    scores: Array
    judged: Flags


class Detector:
    """Judge documents one after the other, in constant memory.

    Parameters
    ----------
    model
        A fitted model.
    calibration
        What normal footage scores, from `habitus.scene.calibrate`. The measure "habits", and
        "mean" with a fixed threshold, do without.
    habits
        Habits of the scene, from `habitus.scene.learn_habits`.
    measure
        "habits", the default where they are given: ln of the probability that normal documents are
        as unusual, by the habits of places; "tail", the default otherwise, or "mean", the paper's:
        see `habitus.scene.measures`.
    approximation
        "plug-in", or "monte-carlo" for a model learnt by vb or gibbs.
    n_samples
        Posterior samples of the Monte Carlo approximation: 100 drawn from VB's posterior, or all
        that Gibbs kept, where None.
    threshold, share, alerts_per_day
        When a document is abnormal, one of: its normality is below a fixed value; it would be
        among this share of normal documents; or a day of normal footage may raise this many
        alerts, the default (5).
    start
        Belief before the first document: pi ("new"), the prediction after the last training
        document ("continued") or "uniform". Further sequences start from pi.
    seed
        Seed of the samples drawn from VB's posterior.

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
        model: TopicModel,
        calibration: Calibration | None = None,
        *,
        habits: HabitModel | None = None,
        measure: str | None = None,
        approximation: Approximation = "plug-in",
        n_samples: int | None = None,
        threshold: float | None = None,
        share: float | None = None,
        alerts_per_day: float | None = None,
        start: OpeningBelief = "new",
        seed: int = 0,
    ) -> None:
        measure = measure or (HABITS if habits is not None else "tail")
        if measure not in MEASURE_NAMES:
            raise InvalidInputError(
                f"measure must be one of {', '.join(MEASURE_NAMES)}, found {measure!r}",
                parameter="measure",
            )
        if measure == HABITS and habits is None:
            raise InvalidInputError(
                "this model has no habits, which a corpus without a vocabulary does not give: "
                "learn it anew from video, or use the measure tail",
                parameter="measure",
            )
        self.model, self.measure, self.approximation = model, measure, approximation
        self.habits = habits if measure == HABITS else None
        sets = parameter_sets(model, approximation, n_samples, seed)
        calibrated = calibration.held_out(approximation) if calibration else None
        if calibrated is None and measure == "tail":
            raise _uncalibrated("the measure tail")
        self.held_out: KnownScores | None = None
        """None without a calibration."""
        if self.habits is not None:
            fusion = self.habits.fusion
            self.held_out = KnownScores(-fusion.held_out_scores, fusion.judged)
        elif calibrated is not None:
            self.held_out = KnownScores(calibrated.scores[measure], calibrated.judged)
        self.join = calibration.settings.join if calibration else join_of(model.clip_)
        self.n_usual = calibrated.n_tokens if calibrated else None
        background = calibrated.background if calibrated and measure != "mean" else None
        self.tables = filter_tables(sets, background)
        self.level = calibrated.level if calibrated else 0.0
        self.behaviours_count = calibrated is not None
        """By habits, whether the normality by the topic model is part of the score."""
        self.notes: tuple[str, ...] = ()
        """What there is to say about the threshold, one line each."""
        self.alerts_per_day: float | None = None
        """The budget, where there is one."""
        self.threshold = self._threshold(threshold, share, alerts_per_day)
        self.log_predicted = log_opening(self.tables, start, self.model.belief_)
        self._recent: list[int] = []
        """Behaviours of the latest documents of the sequence."""
        self.n_words = len(self.tables.probability)

    def step(
        self,
        document: BagLike,
        *,
        usable: bool = True,
        vocabulary: Vocabulary | None = None,
        clock: int = NO_CLOCK,
        standing: StandingCells | None = None,
    ) -> Judgement:
        """Judge the next document of the sequence.

        Parameters
        ----------
        document
            Anything with `words` and `counts`.
        usable
            Whether the camera was in order; a document of another is not judged.
        vocabulary
            Meaning of the document's words; where None, the words that were learnt from: by habits
            those of the corpus, otherwise the model's own.
        clock
            Its local time, as `Corpus.clocks` has it; -1 where that is not known.
        standing
            What stands in it, as `Corpus.standing` has it; None where that is not known.
        """
        vocabulary = vocabulary or (self.habits.vocabulary if self.habits else None)
        words, counts, n_tokens = self._checked(self.in_model_words(document, vocabulary))
        judged = usable and n_tokens > 0 and n_tokens >= self.model.min_words
        if not judged:
            words, counts = words[:0], counts[:0]
        expected = self.log_predicted
        step = filter_document(expected, words, counts, self.tables)
        self.log_predicted = step.log_next
        posterior = np.asarray(step.posterior.sum(axis=0))
        behaviour = int(posterior.argmax())
        turn = turn_after(self._recent, behaviour, len(posterior))
        self._recent = [*self._recent, behaviour][-BACK:]
        normality, habit = 0.0, None
        if self.habits is not None:
            judged = usable and n_tokens > 0
            if judged:
                behaviours = self._score("tail", step, counts) if self.behaviours_count else 0.0
                votes = self._votes(self.habits, document, vocabulary)
                habit = self.habits.judge(
                    votes, behaviours, clock=clock, turn=turn, standing=standing
                )
                normality = habit.normality
        elif judged:
            normality = self._score(self.measure, step, counts)
        abnormal, predicted = judged and normality < self.threshold, predicted_behaviours(expected)
        return Judgement(
            normality, abnormal, judged, *step[:3], predicted, posterior, step.surprisals, habit
        )

    def _turns(self, behaviours: Indices, first: Flags) -> Indices:
        """Return the turns of the next documents, the very first of which goes on as before."""
        turns = turns_of(behaviours, self.tables.log_pi.shape[1], first, self._recent)
        starts = 1 + np.flatnonzero(first[1:])
        if len(starts):
            self._recent, behaviours = [], behaviours[starts[-1] :]
        self._recent = [*self._recent, *behaviours[-BACK:].tolist()][-BACK:]
        return turns

    def _score(self, measure: str, step: FilterStep, counts: Array) -> float:
        """Return the normality of a filtered document by the topic model; 0 of an empty one."""
        if not len(counts):
            return 0.0
        return MEASURES[measure](
            step.log_evidence, step.n_tokens, counts, step.surprisals, self.level
        )

    def _votes(self, habits: HabitModel, document: BagLike, vocabulary: Vocabulary | None) -> Votes:
        """Return the votes of a document, in the words of the habits."""
        bag = Bag(document.words, document.counts)
        if vocabulary is not None and vocabulary != habits.vocabulary:
            if not vocabulary.refines(habits.vocabulary):
                raise InvalidInputError(
                    f"habits need documents in {habits.vocabulary.kind} words or finer ones, found "
                    f"{vocabulary.kind} words: use the measure tail",
                    parameter="vocabulary",
                )
            bag = summed_bag(bag, vocabulary, habits.vocabulary)
        return habits.votes(bag.words, bag.counts)

    def in_model_words(self, document: BagLike, vocabulary: Vocabulary | None) -> BagLike:
        """Return a document in the model's words, sums of finer ones where need be."""
        coarser = self.model.vocabulary_
        if vocabulary is None or coarser is None or vocabulary == coarser:
            return document
        return summed_bag(Bag(document.words, document.counts), vocabulary, coarser)

    def new_sequence(self) -> None:
        """Start a new sequence: the next document does not follow the last one."""
        self.log_predicted, self._recent = self.tables.log_pi, []

    def judge(self, corpus: Corpus) -> Iterator[Judgement]:
        """Judge every document of a corpus, in order; the same as `step` for each."""
        judged = self.judge_all(corpus)
        for t in range(len(corpus)):
            yield judged.judgement(t, self.threshold)

    def judge_all(self, corpus: Corpus) -> JudgedCorpus:
        """Judge every document of a corpus at once."""
        words = self.model.in_own_words(corpus)
        evidence = gather(words, min_words=self.model.min_words)
        filtered = filter_documents(evidence, self.tables, self.log_predicted)
        self.log_predicted = filtered.log_next
        turns = self._turns(filtered.posterior.argmax(axis=1), corpus.first)
        if self.habits is not None:
            behaviours = None
            if self.behaviours_count:
                behaviours = score_documents("tail", evidence, filtered, self.level)
            by_habits = self.habits.judge_all(corpus, behaviours, turns)
            return JudgedCorpus(
                by_habits.normality, by_habits.judged, evidence, filtered, by_habits
            )
        normality = score_documents(self.measure, evidence, filtered, self.level)
        return JudgedCorpus(normality, np.diff(evidence.indptr) > 0, evidence, filtered)

    def expected_alarms(
        self, seconds: float, *, n_judged: int | None = None, threshold: float | None = None
    ) -> ExpectedAlarms | None:
        """Return the expected false alarms in normal footage; None if not calibrated.

        Where `n_judged` is None, as large a share of the documents is judged as of the footage
        that was learnt from. `threshold` may be another than the detector's.
        """
        if self.held_out is None:
            return None
        n = self._n_judged(seconds) if n_judged is None else n_judged
        at = self._as_score(self.threshold if threshold is None else threshold)
        return self.tail.expected_alarms(at, n)

    def probability(self, normality: float) -> float | None:
        """Return how probable so low a normality is in normal footage; None if not calibrated."""
        if self.held_out is None or not self.held_out.judged.any():
            return None
        if self.habits is not None:
            return float(np.exp(normality))
        return float(self.tail.survival(normality))

    @cached_property
    def normal_footage(self) -> NormalFootage | None:
        """What is known of normal footage; None if not calibrated."""
        if self.held_out is None or not self.held_out.judged.any():
            return None
        scores, judged = self.held_out
        clip, most_unusual = self.model.clip_, float(scores[judged].min())
        return NormalFootage(
            len(judged) * clip, float(judged.mean()) / clip, self._as_normality(most_unusual)
        )

    def rarity(self, normality: float) -> str:
        """Say how rare so low a normality is in normal footage; nothing if not calibrated."""
        normal, probability = self.normal_footage, self.probability(normality)
        if normal is None or probability is None:
            return ""
        return rarity_in_words(normality, probability, normal)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the belief about the sequence so far to a file, whole or not at all."""
        recent = np.array(self._recent, dtype=np.int64)
        tensors = {"log_predicted": self.log_predicted, "recent": recent}
        FORMAT.write(path, {"tables": self._identity()}, tensors)

    def restore_state(self, path: str | os.PathLike[str]) -> None:
        """Go on where a detector with the same model and approximation stopped."""
        n_sets, n_behaviours = self.log_predicted.shape
        layouts = {
            "log_predicted": Layout(REAL, (n_sets, n_behaviours), least=-np.inf, most=1e-6),
            "recent": Layout(INDEX, ("recent",), False, 0, n_behaviours - 1),
        }
        header, tensors = FORMAT._replace(layouts=layouts).read(path)
        if header.get("tables") != self._identity():
            raise FileError(f"{path}: the state of a detector with another model or approximation")
        self.log_predicted = tensors["log_predicted"]
        self._recent = tensors.get("recent", np.empty(0, dtype=np.int64))[-BACK:].tolist()

    def _checked(self, document: BagLike) -> tuple[NDArray[np.int32], Array, float]:
        """Return words, counts and the number of tokens of a document that fits the model."""
        words = np.asarray(document.words, dtype=np.int32)
        counts = np.asarray(document.counts, dtype=np.float64)
        if words.ndim != 1 or words.shape != counts.shape:
            raise InvalidInputError(
                f"a document needs a count for each word, found {words.shape} words and "
                f"{counts.shape} counts"
            )
        n_tokens, within = examine(words, counts, self.n_words)
        if not within:
            raise InvalidInputError(
                f"word ids must run from 0 to {self.n_words - 1}, found {words.min()} to "
                f"{words.max()}"
            )
        return words, counts, n_tokens

    def _identity(self) -> str:
        return hashlib.blake2b(self.tables.probability.data, digest_size=16).hexdigest()

    def _threshold(
        self, threshold: float | None, share: float | None, alerts_per_day: float | None
    ) -> float:
        values = [value for value in (threshold, share, alerts_per_day) if value is not None]
        if len(values) > 1:
            raise InvalidInputError(
                "give one of threshold, share and alerts_per_day, found several"
            )
        if threshold is not None:
            return _possible(float(threshold), self.measure)
        scores, judged = self._normal("a threshold other than a fixed value")
        if share is not None:
            return self._as_normality(share_threshold(scores[judged], share))
        self.alerts_per_day = AlertSettings.BUDGET if alerts_per_day is None else alerts_per_day
        bar = self.bar(self.alerts_per_day)
        self.notes = bar.notes
        return bar.threshold

    def bar(self, alerts_per_day: float) -> Bar:
        """Return the threshold of an alert budget, and what to expect of it.

        It depends on the model and the budget alone: every command, and a camera after a restart,
        has the same.
        """
        n_learnt = int(self._normal().judged.sum())
        bar = bar_of_budget(
            self.tail, alerts_per_day, self._n_judged(DAY), reach=self._reach(), n_learnt=n_learnt
        )
        return bar._replace(threshold=self._as_normality(bar.threshold))

    def false_alarms_per_day(self, normality: float) -> float:
        """Return the least alert budget at which a document of this normality is an alarm."""
        self._normal()
        return self.tail.least_alerts(self._as_score(normality), self._n_judged(DAY))

    def _normal(self, what: str = "an alert budget") -> KnownScores:
        """Return what normal footage scores by the measure in use; raise unless that is known."""
        if self.held_out is None:
            raise _uncalibrated(what)
        return self.held_out

    def _as_score(self, normality: float) -> float:
        """Return the known score of a normality: the inverse of `_as_normality`."""
        if self.habits is None:
            return normality
        return -self.habits.fusion.score_of_normality(normality)

    def _as_normality(self, score: float) -> float:
        """Return the normality of a known score; by habits, scores are not normalities."""
        if self.habits is None:
            return score
        return float(self.habits.fusion.normality_of_scores(np.array([-score]))[0])

    @cached_property
    def tail(self) -> Tail:
        """The tail of the held-out scores."""
        return self.habits.fusion.tail if self.habits else Tail.of(*self._normal(), self.join)

    def _n_judged(self, seconds: float) -> float:
        """Return how many documents of this time are judged, as of the footage learnt from."""
        return seconds / self.model.clip_ * float(self._normal().judged.mean())

    def _reach(self) -> float:
        """Return the score that anomalies can be expected to reach.

        By habits, what one in four synthetic anomalies is below; otherwise that of a document of
        one word, the least likely. For `tail`, whose scores fall with the number of tokens, it has
        as many as usual.
        """
        if self.habits is not None:
            return -self.habits.fusion.reach
        highest = -float(self.tables.log_probability.max(axis=1).min())
        lowest = -highest
        if self.measure == "tail" and self.n_usual is not None:
            lowest = -max(highest - self.level, 0.0) * np.sqrt(self.n_usual)
        scores, judged = self._normal()
        return min(lowest, float(scores[judged].min()))


def _uncalibrated(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what} needs a calibration, the scores of normal footage: learn from enough footage, or "
        "pass what habitus.scene.calibrate(model, corpus) returns"
    )


def _possible(threshold: float, measure: str) -> float:
    """Return a fixed threshold; raise if no score, or every score, is below it."""
    low, high = POSSIBLE[measure]
    if not np.isfinite(threshold):
        raise InvalidInputError(
            f"threshold must be a finite number, found {threshold}", parameter="threshold"
        )
    if not low < threshold <= high:
        which = "every" if threshold > high else "no"
        raise InvalidInputError(
            f"{which} document's {measure} is below {threshold:g}: it lies between {low:.4g} and "
            f"{high:g}",
            parameter="threshold",
        )
    return threshold
