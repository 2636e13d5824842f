"""Calibration: scores of normal footage that a model has not learnt from.

A document that was learnt from fits better than any document to come, so each fold of the footage
is scored by a model of all other documents. Folds are segments of consecutive documents, because
neighbouring documents are too much alike. The model of a fold starts from the model of all
documents and forgets the fold: after a few iterations nothing is left of words that only the fold
had.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
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
from habitus.schema import (
    BYTE,
    MOST_NATS,
    REAL,
    AtLeastOne,
    Count,
    Layout,
    Positive,
    Share,
)

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
    """Share of the tokens of held-out footage that tell nothing about where new words occur.
    """
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
        found = self.monte_carlo if approximation == MONTE_CARLO else self.plug_in
        if found is None:
            raise InvalidInputError(
                "this calibration has no monte-carlo scores: calibrate a model learnt by vb or "
                "gibbs",
                parameter="approximation",
            )
        return found

    def updated(self, model: TopicModel, corpus: Corpus, *, seed: int = 0) -> "Calibration":
        """Return the calibration with the scores of further normal footage.

        Parameters
        ----------
        model
            The model that is calibrated, which has not learnt from that footage.
        corpus
            The footage. Of all scores the latest `MOST_REMEMBERED` are kept; level and novelty
            stay.
        seed
            Seed of posterior samples.
        """
        evidence = gather(model.in_own_words(corpus), min_words=model.min_words)
        plug_in = _with_further(self.plug_in, evidence, [model.parameters_])
        if self.monte_carlo is None:
            return replace(self, plug_in=plug_in)
        n_samples = min(self.settings.n_samples, len(model.samples_) or self.settings.n_samples)
        sets = parameter_sets(model, MONTE_CARLO, n_samples, seed)
        return replace(
            self, plug_in=plug_in, monte_carlo=_with_further(self.monte_carlo, evidence, sets)
        )

    def tail_of(self, model: TopicModel, corpus: Corpus | ShardedCorpus) -> Array:
        """Return `tail` of documents, as a detector with this model scores them.

        Parameters
        ----------
        model
            The model that is calibrated.
        corpus
            The documents, in the model's words or finer ones; they are taken in parts of
            `AT_ONCE`, so that a day of them needs little memory.
        """
        tables = filter_tables([model.parameters_], self.plug_in.background)
        tail = partial(self._tail_of_shard, model, tables)
        return tail(corpus) if isinstance(corpus, Corpus) else corpus.column(tail)

    def turns_of(self, model: TopicModel, corpus: Corpus | ShardedCorpus) -> Turns | None:
        """Return the turns of documents, as a detector with this model has them.

        Parameters
        ----------
        model, corpus
            As of `tail_of`.

        Returns
        -------
        Turns or None
            None where there are too many behaviours: see `MOST_BEHAVIOURS`.
        """
        if len(model.parameters_.pi) > MOST_BEHAVIOURS:
            return None
        tables = filter_tables([model.parameters_], self.plug_in.background)
        turns = partial(_turns_of_shard, model, tables)
        found = turns(corpus) if isinstance(corpus, Corpus) else corpus.column(turns)
        return Turns(found, len(model.parameters_.pi) ** 2)

    def _tail_of_shard(self, model: TopicModel, tables: FilterTables, corpus: Corpus) -> Array:
        """Return `tail` of documents in memory."""
        found = [
            score_documents("tail", evidence, filtered, self.plug_in.level)
            for evidence, filtered in _filtered_parts(model, tables, corpus)
        ]
        return np.concatenate([np.empty(0), *found])

    def contents(self) -> Contents:
        """Return header and arrays for a file; names start with `calibration.`."""
        found = {PLUG_IN: self.plug_in, MONTE_CARLO: self.monte_carlo}
        tensors: Tensors = {}
        for approximation, scores in found.items():
            if scores is not None:
                named = _tensors(scores)
                tensors |= {f"{PREFIX}{approximation}.{n}": v for n, v in named.items()}
        return Contents({"calibration": asdict(self.settings)}, tensors)

    @classmethod
    def from_contents(cls, contents: Contents) -> "Calibration | None":
        """Return the calibration of a file; None where the file has none."""
        header, tensors = contents
        plug_in = _held_out(tensors, PLUG_IN)
        if plug_in is None:
            return None
        return cls(header["calibration"], plug_in, _held_out(tensors, MONTE_CARLO))


def _filtered_parts(
    model: TopicModel, tables: FilterTables, corpus: Corpus
) -> Iterator[tuple[Evidence, FilteredDocuments]]:
    """Yield documents in memory and what the filter says of them, `AT_ONCE` at a time."""
    belief, first = tables.log_pi, corpus.first
    for start in range(0, len(corpus), AT_ONCE):
        part = corpus.take(np.arange(start, min(start + AT_ONCE, len(corpus))))
        evidence = gather(model.in_own_words(part), min_words=model.min_words)
        filtered = filter_documents(evidence, tables, tables.log_pi if first[start] else belief)
        belief = filtered.log_next
        yield evidence, filtered


def _turns_of_shard(model: TopicModel, tables: FilterTables, corpus: Corpus) -> Indices:
    """Return the turns of documents in memory."""
    found = [
        filtered.posterior.argmax(axis=1) for _, filtered in _filtered_parts(model, tables, corpus)
    ]
    behaviours = np.concatenate([np.empty(0, dtype=np.int64), *found])
    return turns_of(behaviours, len(model.parameters_.pi), corpus.first)


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
    found = {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
    if not found:
        return None
    return HeldOutScores(
        level=float(found["level"][0]),
        background=Background(float(found["novelty_share"][0]), found["novelty"]),
        scores={name: found[name] for name in MEASURES},
        judged=found["judged"].astype(np.bool_),
        n_tokens=float(found["n_tokens"][0]),
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
        Told of every iteration.

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
    folds = list(_folds(model, model.in_own_words(corpus), settings, seed, progress, workers))
    plug_in = _held_out_scores(folds, [[fold.model.parameters_] for fold in folds], settings)
    if model.posterior_ is None and not model.samples_:
        return Calibration(settings, plug_in)
    n_samples = min(settings.n_samples, len(model.samples_) or settings.n_samples)
    sets = [parameter_sets(fold.model, MONTE_CARLO, n_samples, seed) for fold in folds]
    return Calibration(settings, plug_in, _held_out_scores(folds, sets, settings))


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
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> list[CalibratedFold]:
    """Return folds of the footage, each with a model that has not learnt from it.

    Each fold is calibrated as the model of all documents is, but its novelty is estimated from the
    other folds: what a detector with that model says of the fold is what it says of new footage.
    """
    settings = calibration.settings
    folds = list(_folds(model, model.in_own_words(corpus), settings, seed, progress))
    bare = [_filtered(fold, [fold.model.parameters_]) for fold in folds]
    novelty = _novelty(folds, bare, settings)
    return [
        CalibratedFold(
            fold.model,
            replace(calibration, plug_in=calibration.plug_in._replace(background=background)),
            fold.held_out,
        )
        for fold, background in zip(folds, novelty.of_others, strict=True)
    ]


class _Fold(NamedTuple):
    """Held-out documents, and a model of all others."""

    model: TopicModel
    held_out: Corpus


def _folds(
    model: TopicModel,
    corpus: Corpus,
    settings: CalibrationSettings,
    seed: int,
    progress: ProgressCallback | None,
    workers: Workers | None = None,
) -> Iterator[_Fold]:
    """Yield each fold with a model of all other documents."""
    parts = np.array_split(np.arange(len(corpus)), min(settings.n_folds, len(corpus)))
    report = _IterationCounter(_n_iterations(model, settings) * len(parts), progress)
    learn = partial(_model_without, model, corpus, settings, seed, parts)
    # A generator is used up from fold to fold: others cannot go on with it.
    if workers is None or isinstance(model.random_state, np.random.Generator):
        for number, part in enumerate(parts):
            yield _Fold(learn(number, report), corpus.take(part))
        return
    learnt: dict[int, TopicModel] = {}
    for number, found in workers.as_completed(learn, range(len(parts))):
        learnt[number] = found
        for iteration, objective in enumerate(found.objective_.tolist()):
            report(iteration, objective)
    for number, part in enumerate(parts):
        yield _Fold(learnt[number], corpus.take(part))


def _model_without(
    model: TopicModel,
    corpus: Corpus,
    settings: CalibrationSettings,
    seed: int,
    parts: Sequence[Indices],
    number: int,
    report: Callable[[int, float], None] | None = None,
) -> TopicModel:
    """Return a model of all documents but those of one part."""
    rest = corpus.take(np.setdiff1d(np.arange(len(corpus)), parts[number]))
    forgetful = _forgetful(model, rest, settings, np.random.default_rng([seed, number]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        return forgetful.fit(rest, callback=report)


def _forgetful(
    model: TopicModel,
    rest: Corpus,
    settings: CalibrationSettings,
    rng: np.random.Generator,
) -> TopicModel:
    """Return an unfitted model that starts where `model` is and forgets all but `rest`."""
    if model.samples_:
        return replace(
            model,
            n_restarts=1,
            burn_in=min(settings.n_iterations, model.burn_in),
            n_samples=min(settings.n_samples, model.n_samples),
            init=_kept_state(model, rest, rng),
        )
    return replace(
        model,
        n_restarts=1,
        n_iterations=min(settings.n_iterations, model.n_iterations),
        init=model.posterior_ or model.parameters_,
    )


def _kept_state(model: TopicModel, rest: Corpus, rng: np.random.Generator) -> Any:
    """Return hidden variables of `rest` under the last sample that the sampler kept."""
    evidence = gather(rest, min_words=model.min_words)
    return assignments_under(model.samples_[-1], model.predict(rest), evidence, rng)


def _n_iterations(model: TopicModel, settings: CalibrationSettings) -> int:
    """Return the iterations that one fold takes."""
    if model.samples_:
        kept = min(settings.n_samples, model.n_samples)
        return min(settings.n_iterations, model.burn_in) + (kept - 1) * model.thinning
    return min(settings.n_iterations, model.n_iterations)


class _IterationCounter:
    """A callback of `fit` that reports the iterations of all folds together."""

    def __init__(self, total: int, progress: ProgressCallback | None) -> None:
        self.done, self.total, self.progress = 0, total, progress or ignore_progress

    def __call__(self, iteration: int, objective: float) -> None:
        self.done += 1
        self.progress(Progress("calibrating", self.done, self.total))


class _Filtered(NamedTuple):
    """Held-out documents as seen by a model that has not learnt from them."""

    evidence: Evidence
    documents: FilteredDocuments


def _filtered(
    fold: _Fold, sets: list[Parameters], background: Background | None = None
) -> _Filtered:
    evidence = gather(fold.held_out, min_words=fold.model.min_words)
    return _Filtered(evidence, filter_documents(evidence, filter_tables(sets, background)))


class _Novelty(NamedTuple):
    """Background distributions of new words."""

    whole: Background
    """From the new words of all folds."""
    of_others: list[Background]
    """For each fold from all other folds: its own new words are not known beforehand."""


def _novelty(folds: list[_Fold], bare: list[_Filtered], settings: CalibrationSettings) -> _Novelty:
    """Estimate novelty from folds that were filtered without it."""
    known = _level(bare, settings.known_share)
    new = [_new_words(filtered, known) for filtered in bare]
    vocabulary, spread = folds[0].held_out.vocabulary, settings.novelty_spread
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
    of_others = [background(everything - own) for own in new]
    share = _novelty_share(bare, of_others)
    return _Novelty(
        background(everything)._replace(share=share),
        [each._replace(share=share) for each in of_others],
    )


def _novelty_share(bare: list[_Filtered], of_others: list[Background]) -> float:
    """Return the share of new tokens, each judged by what the other folds know."""
    return estimate_novelty_share(
        np.concatenate([evidence.counts for evidence, _ in bare]),
        np.exp(-np.concatenate([documents.surprisals for _, documents in bare])),
        np.concatenate(
            [
                background.probability[evidence.words]
                for (evidence, _), background in zip(bare, of_others, strict=True)
            ]
        ),
    )


def _held_out_scores(
    folds: list[_Fold], sets: list[list[Parameters]], settings: CalibrationSettings
) -> HeldOutScores:
    """Score all folds: `mean` by the bare models, as in the paper, `tail` with novelty."""
    bare = [_filtered(fold, own) for fold, own in zip(folds, sets, strict=True)]
    novelty = _novelty(folds, bare, settings)
    filtered = [_filtered(*each) for each in zip(folds, sets, novelty.of_others, strict=True)]
    level = _level(filtered, settings.level_quantile)
    judged = np.concatenate([np.diff(evidence.indptr) > 0 for evidence, _ in filtered])
    scores = {"mean": _scores("mean", bare, level), "tail": _scores("tail", filtered, level)}
    if not judged.any():
        raise InvalidInputError("found no document that is long enough to judge")
    n_tokens = np.concatenate([documents.n_tokens for _, documents in filtered])[judged]
    return HeldOutScores(level, novelty.whole, scores, judged, float(np.median(n_tokens)))


def _with_further(
    known: HeldOutScores, evidence: Evidence, sets: list[Parameters]
) -> HeldOutScores:
    """Return held-out scores with those of further documents, as a detector would score them."""
    kept, scores = slice(-MOST_REMEMBERED, None), {}
    for measure, background in (("mean", None), ("tail", known.background)):
        filtered = filter_documents(evidence, filter_tables(sets, background))
        further = score_documents(measure, evidence, filtered, known.level)
        scores[measure] = np.concatenate([known.scores[measure], further])[kept]
    judged = np.concatenate([known.judged, np.diff(evidence.indptr) > 0])[kept]
    return known._replace(scores=scores, judged=judged)


def _scores(measure: str, filtered: list[_Filtered], level: float) -> Array:
    return np.concatenate([score_documents(measure, *each, level) for each in filtered])


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
