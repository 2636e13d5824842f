"""Recall without labels: the share of made anomalies that would be found, at a budget of alerts.

Anomalies are injected into stretches that the model at hand has not learnt from, the stretch is
judged on-line from its start, and what comes out is set against the truth as with real anomalies.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from habitus.anomaly.calibration import CalibratedFold, Calibration, held_out_folds
from habitus.anomaly.detector import Detector
from habitus.anomaly.scene_model import SceneModel
from habitus.anomaly.thresholds import runs
from habitus.arrays import Array
from habitus.corpus.documents import Bag, Corpus
from habitus.errors import InvalidInputError
from habitus.evaluation.matching import match
from habitus.evaluation.metrics import ScoredDocuments
from habitus.lab.tuning.synthetic import (
    KINDS,
    WHOLE,
    Injection,
    Scene,
    Stretch,
    injected,
    scene_of,
    stretch_of,
    weighed,
)
from habitus.progress import ProgressCallback

STRENGTHS = (0.5, 1.0, 2.0)
"""Words of a made thing, relative to the thing of the footage that it is made from."""
BUDGETS = (5.0, 24.0, 480.0)
"""Alerts a day: the default; one an hour; twenty an hour."""
N_TRIALS = 60
FEWEST_TRACKS = 10
LONGEST = 60
"""Documents of a held-out stretch that are used: enough for an anomaly, and soon judged."""


class Share(NamedTuple):
    """Made anomalies of one kind and strength that were found at a budget."""

    kind: str
    strength: float | None
    """None for what has no size of its own."""
    alerts_per_day: float
    n_found: int
    n_trials: int
    """0 if the footage gives no occasion to make any."""
    n_by_chance: int
    """Times that there was an alarm without the anomaly."""

    @property
    def share(self) -> float:
        """Found of those tried."""
        return self.n_found / self.n_trials if self.n_trials else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Nine times out of ten it holds the share of ever more trials (Jeffreys)."""
        return jeffreys(self.n_found, self.n_trials)


class Recall(NamedTuple):
    """What would be found."""

    shares: list[Share]
    n_tracks: int
    typical: float
    """Words a document of a typical thing."""


class Event(NamedTuple):
    """When something happened, in seconds."""

    start: float
    end: float


def jeffreys(n_found: int, n_trials: int, coverage: float = 0.9) -> tuple[float, float]:
    """Interval of a share: quantiles of Beta(found + 1/2, missed + 1/2); 0 and 1 at the ends."""
    tails = ((1 - coverage) / 2, (1 + coverage) / 2)
    low, high = (float(beta.ppf(q, n_found + 0.5, n_trials - n_found + 0.5)) for q in tails)
    return (0.0 if n_found == 0 else low, 1.0 if n_found == n_trials else high)


def estimate_recall(
    learnt: SceneModel,
    corpus: Corpus,
    *,
    alerts_per_day: Sequence[float] = BUDGETS,
    strengths: Sequence[float] = STRENGTHS,
    n_trials: int = N_TRIALS,
    measure: str = "tail",
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Recall:
    """The share of made anomalies that a calibrated model finds, by kind, strength and budget.

    `corpus` is the footage that the model was learnt from; `progress` is told of every iteration
    of the models that have not learnt a stretch.
    """
    calibration = _calibration(learnt)
    thresholds = [
        learnt.detector(measure=measure, alerts_per_day=budget).threshold
        for budget in alerts_per_day
    ]
    scene = _checked(scene_of(corpus))
    folds = held_out_folds(learnt.model, calibration, corpus, progress=progress)
    judges = [_Judge(_cut(fold), measure, thresholds) for fold in folds]
    shares: list[Share] = []
    for number, kind in enumerate(KINDS):
        rng = np.random.default_rng([seed, number])
        trials = _trials(kind, scene, [judge.stretch for judge in judges], n_trials, rng)
        for strength in [None] if kind == WHOLE else strengths:
            found, chance = np.zeros((2, len(thresholds)), dtype=np.int64)
            for trial in trials:
                words = trial.words
                if strength is not None:
                    words = weighed(words, strength, rng)
                found += judges[trial.stretch].found(trial, words)
                chance += judges[trial.stretch].by_chance(trial)
            shares += [
                Share(kind, strength, budget, int(n), len(trials), int(m))
                for budget, n, m in zip(alerts_per_day, found, chance, strict=True)
            ]
    return Recall(shares, len(scene.tracks), scene.typical)


def _trials(
    kind: str, scene: Scene, stretches: list[Stretch], n: int, rng: np.random.Generator
) -> list[Injection]:
    """So many anomalies of a kind, or none if the footage gives no occasion."""
    made = []
    for _ in range(n):
        trial = KINDS[kind](scene, stretches, rng)
        if trial is None:
            break
        made.append(trial)
    return made


class _Judge:
    """Judges a held-out stretch, as it is or with an anomaly in it."""

    def __init__(self, fold: CalibratedFold, measure: str, thresholds: list[float]) -> None:
        self.stretch, self.times, self.clip = (
            stretch_of(fold), fold.held_out.times, fold.held_out.clip,
        )  # fmt: skip
        self.first, self.fine = fold.held_out.first, fold.held_out.conditions == 0
        self.detector = Detector(
            fold.model, fold.calibration, measure=measure, threshold=thresholds[0]
        )
        self.thresholds = thresholds
        self.plain = self.judged(self.stretch.counts)

    def found(self, trial: Injection, words: Array) -> list[bool]:
        """Whether each threshold finds an anomaly."""
        return self._matched(self.judged(injected(self.stretch, trial, words)), trial)

    def by_chance(self, trial: Injection) -> list[bool]:
        """Whether there is an alarm at that time anyway."""
        return self._matched(self.plain, trial)

    def judged(self, counts: Array) -> ScoredDocuments:
        """Normality of each document, on-line from the start of the stretch."""
        judgements = []
        for t, document in enumerate(counts.reshape(len(counts), -1)):
            if self.first[t]:
                self.detector.new_sequence()
            words = np.flatnonzero(document)
            judgements.append(
                self.detector.step(Bag(words, document[words]), usable=bool(self.fine[t]))
            )
        normality = np.array([judgement.normality for judgement in judgements])
        judged = np.array([judgement.judged for judgement in judgements], dtype=np.bool_)
        return ScoredDocuments(normality, judged, self.times, self.clip)

    def _matched(self, scored: ScoredDocuments, trial: Injection) -> list[bool]:
        last = min(trial.start + len(trial.words), len(self.times)) - 1
        event = Event(self.times[trial.start], self.times[last] + self.clip)
        return [match(_alarms(scored, level), [event]).n_found == 1 for level in self.thresholds]


def _cut(fold: CalibratedFold) -> CalibratedFold:
    n = min(len(fold.held_out), LONGEST)
    return fold._replace(held_out=fold.held_out.take(np.arange(n)))


def _alarms(scored: ScoredDocuments, level: float) -> list[Event]:
    stretches = runs(scored.judged & (scored.normality < level))
    return [Event(scored.times[a], scored.times[b] + scored.clip) for a, b in stretches]


def _calibration(learnt: SceneModel) -> Calibration:
    if learnt.calibration is None:
        raise InvalidInputError(
            "recall is estimated for a calibrated model: learn from more footage"
        )
    return learnt.calibration


def _checked(scene: Scene) -> Scene:
    if len(scene.tracks) < FEWEST_TRACKS:
        raise InvalidInputError(
            f"anomalies are made from things that move through the footage: {FEWEST_TRACKS} or "
            f"more are needed, found {len(scene.tracks)}: give more footage"
        )
    return scene
