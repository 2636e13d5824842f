"""Calibration: scores of normal footage that a model has not learnt from.

A document that was learnt from fits better than any document to come, so each fold of the footage
is scored by a model of all other documents. Folds are segments of consecutive documents, because
neighbouring documents are too much alike. The model of a fold starts from the model of all
documents and forgets the fold: after a few iterations nothing is left of words that only the fold
had.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.corpus import Corpus, ShardedCorpus
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.files import Contents, Tensors
from habitus.habits.turns import Turns, turns_of
from habitus.jobs.workers import Workers
from habitus.model import Parameters, TopicModel
from habitus.model.expected_counts import Evidence, gather
from habitus.model.online import (
    Background,
    FilteredDocuments,
    FilterTables,
    filter_documents,
    filter_tables,
)
from habitus.model.starts import assignments_under
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.scene.habit_model import MOST_REMEMBERED
from habitus.scene.measures import (
    MEASURES,
    estimate_novelty_share,
    estimate_uniform_share,
    novelty_background,
    score_documents,
)
from habitus.scene.thresholds import JOIN, join_of
from habitus.schema import BYTE, MOST_NATS, REAL, AtLeastOne, Count, Layout, Positive, Share

PLUG_IN, MONTE_CARLO = "plug-in", "monte-carlo"
PREFIX = "calibration."
AT_ONCE = 10_000
"""Documents that are filtered at once."""
MOST_BEHAVIOURS = 8
"""Behaviours up to which their turns are counted, by cell: the counts grow with their square."""


@dataclass(frozen=True)
class CalibrationSettings:
    """Constants that a calibration rests on.

    They are stored with it: another default in a later release does not change what a stored model
    calls abnormal.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    n_folds: AtLeastOne = 20
    """Folds that are held out in turn: each model has nearly all of the footage."""
    n_iterations: AtLeastOne = 30
    """Iterations, or sweeps of a sampler, in which a model forgets a fold."""
    n_samples: AtLeastOne = 20
    """Posterior samples that Monte Carlo scores are calibrated with, at most."""
    level_quantile: Share = 0.95
    """Share of normal tokens with a surprisal under the level of `tail`.

    Words that five minutes of training do not show at all, a few per cent, must be above it.
    """
    known_share: Share = 0.97
    """Share of the tokens of held-out footage that say nothing about where new words occur."""
    novelty_spread: Positive = 3.0
    """Standard deviation of the blur around new words, in cells: about the size of an object."""
    least_uniform_share: Share = 0.1
    """Lower bound of the share of novelty that may occur in any cell."""
    join: Count = JOIN
    """Usual documents between two unusual ones that still belong to one event."""


class HeldOutScores(NamedTuple):
    """Scores of held-out documents in time order, by one approximation."""

    level: float
    """Surprisal of a word, in nats, that few tokens of normal footage exceed."""
    background: Background
    """Distribution of words that are new to the model."""
    scores: dict[str, Array]
    """Normality of each document, by the name of the measure."""
    judged: Flags
    """Whether each document was long enough to judge, and the camera usable."""
    n_tokens: float
    """Median number of tokens of a judged document."""


@dataclass(frozen=True)
class Calibration:
    """What normal footage scores, with every constant that this rests on.

    Returned by `calibrate`; a `Detector` needs it for the measure `tail`, and to set a threshold by
    a share of documents or a budget of alerts.
    """

    settings: CalibrationSettings
    plug_in: HeldOutScores
    monte_carlo: HeldOutScores | None = None
    """None for a model learnt by EM, which has no posterior to sample from."""

    def held_out(self, approximation: str) -> HeldOutScores:
        """Return the scores by an approximation, "plug-in" or "monte-carlo"."""
        scores = self.monte_carlo if approximation == MONTE_CARLO else self.plug_in
        if scores is None:
            raise InvalidInputError(
                "this calibration has no monte-carlo scores: calibrate a model learnt by vb or "
                "gibbs",
                parameter="approximation",
            )
        return scores

    def updated(
        self, model: TopicModel, corpus: Corpus, tail: Array | None = None, *, seed: int = 0
    ) -> "Calibration":
        """Return the calibration with the scores of further normal footage.

        Parameters
        ----------
        model
            The model that is calibrated, which has not learnt from that footage.
        corpus
            The footage. Of all scores the latest `MOST_REMEMBERED` are kept; level and novelty
            stay.
        tail
            What `behaviours_of` says of it, where that is known already.
        seed
            Seed of posterior samples.
        """
        evidence = gather(model.in_own_words(corpus), min_words=model.min_words)
        plug_in = _with_further(self.plug_in, evidence, [model.parameters_], tail)
        if self.monte_carlo is None:
            return replace(self, plug_in=plug_in)
        sets = parameter_sets(model, MONTE_CARLO, _n_samples(model, self.settings), seed)
        return replace(
            self, plug_in=plug_in, monte_carlo=_with_further(self.monte_carlo, evidence, sets)
        )

    def behaviours_of(
        self, model: TopicModel, corpus: Corpus | ShardedCorpus
    ) -> "DocumentBehaviours":
        """Return what a detector with this model, the calibrated one, has of documents' behaviours.

        Words may be finer than the model's. Documents are taken in parts of `AT_ONCE`, so that a
        day of them needs little memory.
        """
        tables = filter_tables([model.parameters_], self.plug_in.background)
        judge = partial(_behaviours_of_shard, model, tables, self.plug_in.level)
        shards = [judge(corpus)] if isinstance(corpus, Corpus) else corpus.map(judge)
        tail, turns = (np.concatenate(column) for column in zip(*shards, strict=True))
        n = len(model.parameters_.pi)
        return DocumentBehaviours(tail, Turns(turns, n**2) if n <= MOST_BEHAVIOURS else None)

    def contents(self) -> Contents:
        """Return header and arrays for a file; names start with `calibration.`."""
        tensors = {
            f"{PREFIX}{approximation}.{name}": tensor
            for approximation, scores in ((PLUG_IN, self.plug_in), (MONTE_CARLO, self.monte_carlo))
            if scores is not None
            for name, tensor in _tensors(scores).items()
        }
        return Contents({"calibration": asdict(self.settings)}, tensors)

    @classmethod
    def from_contents(cls, contents: Contents) -> "Calibration | None":
        """Return the calibration of a file; None where the file has none."""
        header, tensors = contents
        plug_in = _held_out(tensors, PLUG_IN)
        if plug_in is None:
            return None
        return cls(header["calibration"], plug_in, _held_out(tensors, MONTE_CARLO))


class DocumentBehaviours(NamedTuple):
    """What the topic model says of documents."""

    tail: Array
    """Normality of each by the measure `tail`; 0 where it is too short."""
    turns: Turns | None
    """None where there are more than `MOST_BEHAVIOURS`."""


def _behaviours_of_shard(
    model: TopicModel, tables: FilterTables, level: float, corpus: Corpus
) -> tuple[Array, Indices]:
    """Return `tail` and the turn of each document in memory; `AT_ONCE` are filtered at a time."""
    belief, first = tables.log_pi, corpus.first
    tail, behaviours = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for start in range(0, len(corpus), AT_ONCE):
        part = corpus.take(np.arange(start, min(start + AT_ONCE, len(corpus))))
        evidence = gather(model.in_own_words(part), min_words=model.min_words)
        filtered = filter_documents(evidence, tables, tables.log_pi if first[start] else belief)
        belief = filtered.log_next
        tail.append(score_documents("tail", evidence, filtered, level))
        behaviours.append(filtered.posterior.argmax(axis=1))
    turns = turns_of(np.concatenate(behaviours), len(model.parameters_.pi), first)
    return np.concatenate(tail), turns


def _layouts(approximation: str) -> dict[str, Layout]:
    documents = (f"documents of {approximation}",)
    layouts = {
        **{name: Layout(REAL, documents, False, -MOST_NATS, MOST_NATS) for name in MEASURES},
        "judged": Layout(BYTE, documents, False, 0, 1),
        "novelty": Layout(REAL, ("words",), False, 0.0, 1.0 + 1e-6),
        "novelty_share": Layout(REAL, (1,), False, 0.0, 1.0),
        "level": Layout(REAL, (1,), False, -MOST_NATS, MOST_NATS),
        "n_tokens": Layout(REAL, (1,), False, 0.0),
    }
    return {f"{PREFIX}{approximation}.{name}": layout for name, layout in layouts.items()}


LAYOUTS = _layouts(PLUG_IN) | _layouts(MONTE_CARLO)
"""Arrays of a calibration in a file."""


def _tensors(scores: HeldOutScores) -> Tensors:
    return {
        **scores.scores,
        "n_tokens": np.array([scores.n_tokens]),
        "judged": scores.judged.astype(np.uint8),
        "novelty": scores.background.probability,
        "novelty_share": np.array([scores.background.share]),
        "level": np.array([scores.level]),
    }


def _held_out(tensors: Tensors, approximation: str) -> HeldOutScores | None:
    prefix = f"{PREFIX}{approximation}."
    stored = {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
    if not stored:
        return None
    return HeldOutScores(
        level=float(stored["level"][0]),
        background=Background(float(stored["novelty_share"][0]), stored["novelty"]),
        scores={name: stored[name] for name in MEASURES},
        judged=stored["judged"].astype(np.bool_),
        n_tokens=float(stored["n_tokens"][0]),
    )


def parameter_sets(
    model: TopicModel, approximation: str, n_samples: int | None, seed: int
) -> list[Parameters]:
    """Return the parameters to score with: one set for plug-in, samples for Monte Carlo.

    Where `n_samples` is None, these are 100 drawn from VB's posterior, or all that Gibbs kept. Of
    Gibbs' samples the last ones are taken, furthest from the start of the chain.
    """
    if approximation == PLUG_IN:
        return [model.parameters_]
    if approximation != MONTE_CARLO:
        raise InvalidInputError(
            f"approximation must be plug-in or monte-carlo, found {approximation!r}",
            parameter="approximation",
        )
    if n_samples is not None and n_samples < 1:
        raise InvalidInputError(
            f"n_samples must be at least 1, found {n_samples}", parameter="n_samples"
        )
    if model.posterior_ is not None:
        rng = np.random.default_rng(seed)
        return [model.posterior_.sample(rng) for _ in range(n_samples or 100)]
    if not model.samples_:
        raise InvalidInputError(
            "monte-carlo needs samples of the posterior, which em does not give: learn by vb or "
            "gibbs, or use plug-in",
            parameter="learning",
        )
    if n_samples is not None and n_samples > len(model.samples_):
        raise InvalidInputError(
            f"this model keeps {len(model.samples_)} Gibbs samples, {n_samples} were asked for: "
            f"learn with n_samples={n_samples}, or ask for fewer",
            parameter="n_samples",
        )
    return list(model.samples_[-(n_samples or len(model.samples_)) :])


def calibrate(
    model: TopicModel,
    corpus: Corpus,
    *,
    settings: CalibrationSettings | None = None,
    seed: int = 0,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
) -> Calibration:
    """Find out what normal footage scores.

    Parameters
    ----------
    model
        A fitted model; it is not changed.
    corpus
        Footage that the model was learnt from, or other normal footage of the scene.
    settings
        Constants; the defaults, at the length of the model's documents, where None.
    seed
        Seed of posterior samples, and of samplers that forget a fold.
    workers
        What learns from all but one fold, a task each; this process where None.
    progress
        Called after every iteration.

    Returns
    -------
    Calibration
        Scores of held-out documents, by every measure and approximation that the model allows.

    Raises
    ------
    InvalidInputError
        Where no document can be held out, or none is long enough to judge.

    Examples
    --------
    >>> import habitus
    >>> from habitus.lab import crossing
    >>> corpus = habitus.generate(crossing(), [60] * 200, np.random.default_rng(0)).corpus
    >>> model = habitus.MarkovClusteringTopicModel(8, 4, random_state=0).fit(corpus)
    >>> calibration = calibrate(model, corpus)
    >>> len(calibration.plug_in.scores["mean"])
    200
    """
    settings = settings or CalibrationSettings(join=join_of(model.clip_))
    folds = _folds(model, model.in_own_words(corpus), settings, seed, progress, workers)
    plug_in = _held_out_scores(folds, [[fold.parameters_] for fold, _ in folds], settings)
    if model.posterior_ is None and not model.samples_:
        return Calibration(settings, plug_in)
    n_samples = _n_samples(model, settings)
    sets = [parameter_sets(fold, MONTE_CARLO, n_samples, seed) for fold, _ in folds]
    return Calibration(settings, plug_in, _held_out_scores(folds, sets, settings))


def _n_samples(model: TopicModel, settings: CalibrationSettings) -> int:
    """Return the posterior samples to calibrate with: no more than a sampler kept."""
    return min(settings.n_samples, len(model.samples_) or settings.n_samples)


class CalibratedFold(NamedTuple):
    """A fold, with a model and a calibration that have not learnt from it."""

    model: TopicModel
    calibration: Calibration
    held_out: Corpus


def held_out_folds(
    model: TopicModel,
    calibration: Calibration,
    corpus: Corpus,
    *,
    progress: ProgressCallback | None = None,
) -> list[CalibratedFold]:
    """Return folds of the footage, each with a model that has not learnt from it.

    Each fold is calibrated as the model of all documents is, but its novelty is estimated from the
    other folds: what a detector with that model says of the fold is what it says of new footage.
    """
    settings = calibration.settings
    folds = _folds(model, model.in_own_words(corpus), settings, 0, progress)
    bare = [_filtered(fold, [fold[0].parameters_]) for fold in folds]
    _, of_others = _novelty(folds, bare, settings)
    return [
        CalibratedFold(
            fold_model,
            replace(calibration, plug_in=calibration.plug_in._replace(background=background)),
            held_out,
        )
        for (fold_model, held_out), background in zip(folds, of_others, strict=True)
    ]


_Fold = tuple[TopicModel, Corpus]
"""Held-out documents, and before them a model of all others."""
_Filtered = tuple[Evidence, FilteredDocuments]
"""Held-out documents as seen by a model that has not learnt from them."""


def _folds(
    model: TopicModel,
    corpus: Corpus,
    settings: CalibrationSettings,
    seed: int,
    progress: ProgressCallback | None,
    workers: Workers | None = None,
) -> list[_Fold]:
    """Return each fold with a model of all other documents."""
    parts = np.array_split(np.arange(len(corpus)), min(settings.n_folds, len(corpus)))
    shorter = replace(
        model,
        n_restarts=1,
        n_iterations=min(settings.n_iterations, model.n_iterations),
        burn_in=min(settings.n_iterations, model.burn_in),
        n_samples=min(settings.n_samples, model.n_samples),
    )
    listener = progress or ignore_progress
    report = IterationCounter("calibrating", shorter, listener, times=len(parts))
    learn = partial(_model_without, model, shorter, corpus, seed, parts)
    learnt: dict[int, TopicModel] = {}
    # A generator is used up from fold to fold: others cannot go on with it.
    if workers is None or isinstance(model.random_state, np.random.Generator):
        learnt = {number: learn(number, report) for number in range(len(parts))}
    else:
        for number, fold_model in workers.as_completed(learn, range(len(parts))):
            learnt[number] = fold_model
            for iteration, objective in enumerate(fold_model.objective_.tolist()):
                report(iteration, objective)
    return [(learnt[number], corpus.take(part)) for number, part in enumerate(parts)]


def _model_without(
    model: TopicModel,
    shorter: TopicModel,
    corpus: Corpus,
    seed: int,
    parts: Sequence[Indices],
    number: int,
    report: Callable[[int, float], None] | None = None,
) -> TopicModel:
    """Return a model of all documents but one part, which starts where the whole model is."""
    rest = corpus.take(np.setdiff1d(np.arange(len(corpus)), parts[number]))
    init: Any = model.posterior_ or model.parameters_
    if model.samples_:  # hidden variables under the last sample that was kept
        evidence, rng = (
            gather(rest, min_words=model.min_words),
            np.random.default_rng([seed, number]),
        )
        init = assignments_under(model.samples_[-1], model.predict(rest), evidence, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        return replace(shorter, init=init).fit(rest, callback=report)


class IterationCounter:
    """A callback of `fit` that reports the iterations of all runs together."""

    def __init__(
        self,
        stage: str,
        model: TopicModel,
        progress: ProgressCallback,
        *,
        times: int = 1,
        n_tokens: float = 0.0,
    ) -> None:
        self.stage, self.model, self.progress = stage, model, progress
        self.times, self.n_tokens, self.done = times, n_tokens, 0

    def __call__(self, iteration: int, objective: float) -> None:
        """Report one more iteration."""
        self.done += 1
        note = f"{objective / self.n_tokens:.4f} nats per word" if self.n_tokens else ""
        self.progress(Progress(self.stage, self.done, self.times * self.model.n_steps, note))


def _filtered(
    fold: _Fold, sets: list[Parameters], background: Background | None = None
) -> _Filtered:
    model, held_out = fold
    evidence = gather(held_out, min_words=model.min_words)
    return evidence, filter_documents(evidence, filter_tables(sets, background))


def _novelty(
    folds: list[_Fold], bare: list[_Filtered], settings: CalibrationSettings
) -> tuple[Background, list[Background]]:
    """Estimate the background of new words from folds that were filtered without it.

    That of all folds comes first, then for each fold that of all others: its own new words are not
    known beforehand.
    """
    level = _level(bare, settings.known_share)
    new = [_new_words(filtered, level) for filtered in bare]
    vocabulary, spread = folds[0][1].vocabulary, settings.novelty_spread
    uniform = estimate_uniform_share(
        new, vocabulary, spread=spread, least=settings.least_uniform_share
    )
    background = partial(
        novelty_background,
        vocabulary=vocabulary,
        share=1 - settings.known_share,
        spread=spread,
        uniform_share=uniform,
    )
    everything = np.sum(new, axis=0)
    of_others = [background(everything - counts) for counts in new]
    # The share of new tokens, each judged by what the other folds know.
    pairs = list(zip(bare, of_others, strict=True))
    share = estimate_novelty_share(
        np.concatenate([evidence.counts for evidence, _ in bare]),
        np.exp(-np.concatenate([documents.surprisals for _, documents in bare])),
        np.concatenate([other.probability[evidence.words] for (evidence, _), other in pairs]),
    )
    whole = background(everything)._replace(share=share)
    return whole, [other._replace(share=share) for other in of_others]


def _held_out_scores(
    folds: list[_Fold], sets: list[list[Parameters]], settings: CalibrationSettings
) -> HeldOutScores:
    """Score all folds: `mean` by the bare models, as in the paper, `tail` with novelty."""
    bare = [_filtered(*pair) for pair in zip(folds, sets, strict=True)]
    whole, of_others = _novelty(folds, bare, settings)
    filtered = [_filtered(*triple) for triple in zip(folds, sets, of_others, strict=True)]
    level = _level(filtered, settings.level_quantile)
    judged = np.concatenate([np.diff(evidence.indptr) > 0 for evidence, _ in filtered])
    scores = {
        measure: np.concatenate([score_documents(measure, *fold, level) for fold in seen])
        for measure, seen in (("mean", bare), ("tail", filtered))
    }
    if not judged.any():
        raise InvalidInputError("found no document that is long enough to judge")
    n_tokens = np.concatenate([documents.n_tokens for _, documents in filtered])[judged]
    return HeldOutScores(level, whole, scores, judged, float(np.median(n_tokens)))


def _with_further(
    before: HeldOutScores, evidence: Evidence, sets: list[Parameters], tail: Array | None = None
) -> HeldOutScores:
    """Return held-out scores with those of further documents, as a detector would score them."""
    kept, scores = slice(-MOST_REMEMBERED, None), {}
    for measure, background in (("mean", None), ("tail", before.background)):
        further = tail if measure == "tail" else None
        if further is None:
            filtered = filter_documents(evidence, filter_tables(sets, background))
            further = score_documents(measure, evidence, filtered, before.level)
        scores[measure] = np.concatenate([before.scores[measure], further])[kept]
    judged = np.concatenate([before.judged, np.diff(evidence.indptr) > 0])[kept]
    return before._replace(scores=scores, judged=judged)


def _new_words(filtered: _Filtered, level: float) -> Array:
    """Return how often each word occurred with a surprisal above the level."""
    evidence, documents = filtered
    new = documents.surprisals > level
    return np.bincount(
        evidence.words[new], evidence.counts[new], minlength=evidence.n_words
    ).astype(np.float64)


def _level(filtered: list[_Filtered], quantile: float) -> float:
    """Return the surprisal that this share of all tokens stays under."""
    surprisals = np.concatenate([documents.surprisals for _, documents in filtered])
    counts = np.concatenate([evidence.counts for evidence, _ in filtered])
    if not len(counts):
        return 0.0
    order = np.argsort(surprisals, kind="stable")
    below = np.cumsum(counts[order])
    return float(surprisals[order][np.searchsorted(below, quantile * below[-1])])
