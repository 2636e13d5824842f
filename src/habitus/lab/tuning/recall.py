"""Estimate of recall without labels: the share of synthetic anomalies found at a budget of alerts.

Synthetic anomalies are injected into held-out segments, each is judged on-line from its start by a
model that has not learnt from it, and alarms are matched with the injection as with labels.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array
from habitus.corpus import Corpus
from habitus.errors import InvalidInputError
from habitus.evaluation.matching import Span, joined_spans, match
from habitus.evaluation.metrics import ScoredDocuments
from habitus.lab.tuning.synthetic import (
    KINDS,
    WHOLE_SCENE,
    HeldOutSegment,
    Injection,
    Scene,
    held_out_segment,
    inject,
    observe_scene,
    scale_words,
)
from habitus.progress import ProgressCallback
from habitus.scene.calibration import CalibratedFold, held_out_folds
from habitus.scene.detector import Detector
from habitus.scene.scene_model import SceneModel
from habitus.settings import AlertSettings

STRENGTHS = (0.5, 1.0, 2.0)
"""Words of a synthetic anomaly, relative to the object of the footage that it is made from."""
BUDGETS = (AlertSettings.BUDGET, 24.0, 480.0)
"""Alerts per day: the default, one per hour, twenty per hour."""
N_TRIALS = 60
FEWEST_TRACKS = 10
LONGEST = 60
"""Documents of a fold that are used: enough for an anomaly, and judged in little time."""


class FoundShare(NamedTuple):
    """Synthetic anomalies of one kind and strength found at one budget."""

    kind: str
    strength: float | None
    """None for a kind without a size."""
    alerts_per_day: float
    n_found: int
    n_trials: int
    """0 if the footage has no occasion for this kind."""
    n_by_chance: int
    """Trials with an alarm at the same time without the anomaly."""

    @property
    def share(self) -> float:
        """Share of trials that were found; NaN without trials."""
        return self.n_found / self.n_trials if self.n_trials else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """90 % interval of the share (Jeffreys)."""
        return jeffreys(self.n_found, self.n_trials)


class RecallEstimate(NamedTuple):
    """Shares of synthetic anomalies that a model finds."""

    shares: list[FoundShare]
    n_tracks: int
    """Number of tracks of the footage that anomalies are made from."""
    typical: float
    """Median number of words per document of a track."""


def jeffreys(n_found: int, n_trials: int, coverage: float = 0.9) -> tuple[float, float]:
    """Return the Jeffreys interval of a share; it includes 0 or 1 if none or all were found.

    >>> low, high = jeffreys(5, 10)
    >>> round(low, 3), round(high, 3)
    (0.262, 0.738)
    """
    from scipy.special import betaincinv

    tails = ((1 - coverage) / 2, (1 + coverage) / 2)
    low, high = (float(betaincinv(n_found + 0.5, n_trials - n_found + 0.5, q)) for q in tails)
    return (0.0 if n_found == 0 else low, 1.0 if n_found == n_trials else high)


def estimate_recall(
    scene_model: SceneModel,
    corpus: Corpus,
    *,
    alerts_per_day: Sequence[float] = BUDGETS,
    strengths: Sequence[float] = STRENGTHS,
    n_trials: int = N_TRIALS,
    measure: str = "tail",
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> RecallEstimate:
    """Estimate the share of synthetic anomalies found, by kind, strength and budget.

    The corpus is the footage that the model was learnt from; `n_trials` anomalies of each kind are
    made. Raises InvalidInputError if the model is not calibrated, or the footage has few tracks.
    """
    if scene_model.calibration is None:
        raise InvalidInputError(
            "recall is estimated for a calibrated model: learn from more footage"
        )
    thresholds = [
        scene_model.detector(measure=measure, alerts_per_day=budget).threshold
        for budget in alerts_per_day
    ]
    corpus = scene_model.model.in_own_words(corpus)
    scene = observe_scene(corpus)
    if len(scene.tracks) < FEWEST_TRACKS:
        raise InvalidInputError(
            f"synthetic anomalies are made from objects that move through the footage: "
            f"{FEWEST_TRACKS} or more are needed, found {len(scene.tracks)}: give more footage"
        )
    folds = held_out_folds(scene_model.model, scene_model.calibration, corpus, progress=progress)
    judges = [_SegmentJudge(fold, measure, thresholds) for fold in folds]
    shares: list[FoundShare] = []
    for number, kind in enumerate(KINDS):
        rng = np.random.default_rng([seed, number])
        trials = _injections(kind, scene, [judge.segment for judge in judges], n_trials, rng)
        for strength in [None] if kind == WHOLE_SCENE else strengths:
            n_found, by_chance = _count_found(trials, strength, judges, rng)
            shares += [
                FoundShare(kind, strength, budget, int(n), len(trials), int(m))
                for budget, n, m in zip(alerts_per_day, n_found, by_chance, strict=True)
            ]
    return RecallEstimate(shares, len(scene.tracks), scene.typical)


def _count_found(
    trials: list[Injection],
    strength: float | None,
    judges: "list[_SegmentJudge]",
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return how many trials each threshold finds, with and without the anomaly."""
    n_found, by_chance = np.zeros((2, len(judges[0].thresholds)))
    for trial in trials:
        words = trial.words if strength is None else scale_words(trial.words, strength, rng)
        judge = judges[trial.segment]
        n_found += judge.finds(trial, words)
        by_chance += judge.finds(trial, None)
    return n_found, by_chance


def _injections(
    kind: str, scene: Scene, segments: list[HeldOutSegment], n: int, rng: np.random.Generator
) -> list[Injection]:
    """Return `n` anomalies of a kind, or none if the footage has no occasion for it."""
    made = []
    for _ in range(n):
        injection = KINDS[kind](scene, segments, rng)
        if injection is None:
            break
        made.append(injection)
    return made


class _SegmentJudge:
    """Detector of a held-out segment, with or without an injected anomaly."""

    def __init__(self, fold: CalibratedFold, measure: str, thresholds: list[float]) -> None:
        self.corpus = fold.held_out.take(np.arange(min(len(fold.held_out), LONGEST)))
        self.segment = held_out_segment(fold.model, self.corpus)
        self.thresholds = thresholds
        self.detector = Detector(
            fold.model, fold.calibration, measure=measure, threshold=thresholds[0]
        )
        self.unchanged = self.scores(self.segment.counts)

    def finds(self, injection: Injection, words: Array | None) -> list[bool]:
        """Return whether each threshold has an alarm at a time, with these words or with none."""
        if words is None:
            return self._matched(self.unchanged, injection)
        return self._matched(self.scores(inject(self.segment, injection, words)), injection)

    def scores(self, counts: Array) -> ScoredDocuments:
        """Return the normality of each document, on-line from the start of the segment."""
        changed = Corpus(
            counts.reshape(len(counts), -1),
            times=self.corpus.times,
            lengths=self.corpus.lengths,
            conditions=self.corpus.conditions,
            clocks=self.corpus.clocks,
        )
        self.detector.new_sequence()
        judged = self.detector.judge_all(changed)
        return ScoredDocuments(judged.normality, judged.judged, self.corpus.times, self.corpus.clip)

    def _matched(self, scored: ScoredDocuments, injection: Injection) -> list[bool]:
        times, clip = scored.times, scored.clip
        last = min(injection.start + len(injection.words), len(times)) - 1
        event = Span(times[injection.start], times[last] + clip)
        alarms = (joined_spans(scored.below(level), scored) for level in self.thresholds)
        return [match(each, [event]).n_found == 1 for each in alarms]
