"""What normal footage scores that the model has not learnt from.

A document that was learnt from fits better than any to come, so each stretch of the footage is
scored by a model of all the others (blocked in time: neighbouring documents are too much alike).
Such a model starts from the one of all documents and forgets the stretch: after a few iterations
nothing is left of words that only the stretch had.
"""

import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.measures import KNOWN, MEASURES, anywhere_of, novelty_of
from habitus.anomaly.thresholds import tail_of
from habitus.arrays import Array
from habitus.corpus.documents import Corpus
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.model import MarkovClusteringTopicModel, Parameters
from habitus.model.expected_counts import gather
from habitus.model.online import Background, FilterStep, filter_document, filter_tables

# Stretches that are left out in turn: each model has nearly all of the footage.
N_FOLDS = 20
# Iterations in which a model forgets a stretch.
ITERATIONS = 30
# Share of the words of normal footage that surprise less than the level of `tail`: words that five
# minutes of training do not show at all, a few in a hundred, must be above it.
QUANTILE = 0.95
# Posterior samples that Monte Carlo scores are calibrated with.
N_SAMPLES = 20

Callback = Callable[[int, float], None]


class Record(NamedTuple):
    """A held-out document as a model saw it that had not learnt from it."""

    seen: FilterStep
    words: NDArray[np.int32]
    counts: Array


class Fold(NamedTuple):
    """A stretch of documents, and a model that has not learnt from it."""

    model: MarkovClusteringTopicModel
    held_out: Corpus


class Calibration(NamedTuple):
    """Scores of held-out documents in time order."""

    level: float
    """Surprise of a word, in nats, that few words of normal footage exceed."""
    novelty: Background
    scores: dict[str, Array]
    """Of each measure, by its name."""
    judged: NDArray[np.bool_]
    """Whether each was long enough, of a camera in order."""


def parameter_sets(
    model: MarkovClusteringTopicModel, approximation: str, n_samples: int | None, seed: int
) -> list[Parameters]:
    """Parameters to score with: one set (plug-in), or samples of the posterior (Monte Carlo)."""
    if approximation == "plug-in":
        return [model.parameters_]
    if approximation != "monte-carlo":
        raise InvalidInputError(
            f"approximation must be plug-in or monte-carlo, found {approximation!r}"
        )
    if n_samples is not None and n_samples < 1:
        raise InvalidInputError(f"samples must be at least 1, found {n_samples}")
    if model.posterior_ is not None:
        rng = np.random.default_rng(seed)
        return [model.posterior_.sample(rng) for _ in range(n_samples or 100)]
    if not model.samples_:
        raise InvalidInputError(
            "monte-carlo needs samples of the posterior, which em does not give: "
            "learn with --learning vb or gibbs, or use plug-in"
        )
    if n_samples is not None and n_samples > len(model.samples_):
        raise InvalidInputError(
            f"this model keeps {len(model.samples_)} Gibbs samples, {n_samples} were asked for: "
            f"learn with --samples {n_samples}, or ask for fewer"
        )
    return list(model.samples_[-(n_samples or len(model.samples_)) :])


def calibrate(
    model: MarkovClusteringTopicModel,
    corpus: Corpus,
    *,
    n_folds: int = N_FOLDS,
    seed: int = 0,
    callback: Callback | None = None,
) -> None:
    """Find out what normal footage scores, and keep it with the model (`calibration_`).

    `corpus` is the footage that the model was learnt from, or other normal footage of the scene.
    """
    kinds = ["plug-in"] + (["monte-carlo"] if model.posterior_ or model.samples_ else [])
    folds = list(_folds(model, corpus, n_folds, callback))
    kept = {}
    for kind in kinds:
        n_samples = min(N_SAMPLES, len(model.samples_) or N_SAMPLES)
        sets = [parameter_sets(fold.model, kind, n_samples, seed) for fold in folds]
        for name, values in _scored(folds, sets).items():
            kept[f"{kind}.{name}"] = values
    model.calibration_ = kept


def calibration_of(model: MarkovClusteringTopicModel, approximation: str) -> Calibration | None:
    """What `calibrate` kept; None if nothing, or not what is needed today."""
    kept = {
        name.removeprefix(f"{approximation}."): values
        for name, values in model.calibration_.items()
        if name.startswith(f"{approximation}.")
    }
    if "level" not in kept:
        return None
    level, judged = float(kept.pop("level")[0]), kept.pop("judged").astype(np.bool_)
    novelty = Background(1 - KNOWN, kept.pop("novelty"))
    return Calibration(level, novelty, kept, judged)


def calibrated_folds(
    model: MarkovClusteringTopicModel,
    corpus: Corpus,
    *,
    n_folds: int = N_FOLDS,
    callback: Callback | None = None,
) -> list[Fold]:
    """Stretches of the footage, each with a model that has not learnt from it.

    Each is calibrated as the model of everything is, only that its novelty is told from the other
    stretches: what a detector with that model says of the stretch is what it says of new footage.
    """
    folds = list(_folds(model, corpus, n_folds, callback))
    for fold, novelty in zip(folds, _novelties(folds).each, strict=True):
        fold.model.calibration_ = model.calibration_ | {"plug-in.novelty": novelty.probability}
    return folds


def _folds(
    model: MarkovClusteringTopicModel, corpus: Corpus, n_folds: int, callback: Callback | None
) -> Iterator[Fold]:
    """Each stretch of documents with a model of all the others."""
    everything = np.arange(len(corpus))
    settings = model.get_params() | {"n_restarts": 1, "init": None}
    if not model.samples_:  # a sampler walks anew: its assignments are those of other documents
        settings |= {"n_iterations": min(ITERATIONS, model.n_iterations)}
        settings |= {"init": model.posterior_ or model.parameters_}
    for part in np.array_split(everything, min(n_folds, len(corpus))):
        rest = corpus.take(np.setdiff1d(everything, part))
        fitted = MarkovClusteringTopicModel(**settings).fit(rest, callback=callback)
        yield Fold(fitted, corpus.take(part))


def n_steps(model: MarkovClusteringTopicModel, n_folds: int = N_FOLDS) -> int:
    """Iterations that `calibrate` runs, for a bar."""
    if model.learning.endswith("gibbs"):
        return n_folds * (model.burn_in + (model.n_samples - 1) * model.thinning)
    return n_folds * min(ITERATIONS, model.n_iterations)


def _records(fold: Fold, sets: list[Parameters], novelty: Background | None = None) -> list[Record]:
    """The documents of a stretch as a model saw them that had not learnt from them."""
    evidence = gather(fold.held_out, min_words=fold.model.min_words)
    tables, records = filter_tables(sets, novelty), []
    log_predicted = tables.log_pi
    for t in range(evidence.n_documents):
        if evidence.first[t]:
            log_predicted = tables.log_pi
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        words, counts = evidence.words[here], evidence.counts[here]
        seen = filter_document(log_predicted, words, counts, tables)
        records.append(Record(seen, words, counts))
        log_predicted = seen.log_next
    return records


class Novelties(NamedTuple):
    """Background as it is known of held-out footage."""

    bare: list[Record]
    """All documents as models saw them that know of none."""
    whole: Background
    each: list[Background]
    """For each stretch: its own new words are not known beforehand."""


def _novelties(folds: list[Fold], sets: list[list[Parameters]] | None = None) -> Novelties:
    sets = sets or [[fold.model.parameters_] for fold in folds]
    bare = [_records(fold, own) for fold, own in zip(folds, sets, strict=True)]
    all_bare = list(chain.from_iterable(bare))
    known = _level(all_bare, KNOWN)
    new = [_new_words(records, known, folds[0]) for records in bare]
    vocabulary, everything = folds[0].held_out.vocabulary, np.sum(new, axis=0)
    anywhere = anywhere_of(new, vocabulary)
    each = [novelty_of(everything - its, vocabulary, anywhere) for its in new]
    return Novelties(all_bare, novelty_of(everything, vocabulary, anywhere), each)


def _scored(folds: list[Fold], sets: list[list[Parameters]]) -> dict[str, Array]:
    """Scores by every measure: the paper's by the bare model, the others with novelty."""
    all_bare, novelty, each = _novelties(folds, sets)
    records = []
    for fold, own, its in zip(folds, sets, each, strict=True):
        records += _records(fold, own, its)
    judged, level = np.array([len(record.counts) > 0 for record in records]), _level(records)
    tail = _scores("tail", records, level)
    tail_of(tail, judged)  # refuses footage that is too short to tell anything from
    return {
        "mean": _scores("mean", all_bare, level),
        "tail": tail,
        "judged": judged.astype(np.uint8),
        "novelty": novelty.probability,
        "level": np.array([level]),
    }


def _scores(name: str, records: list[Record], level: float) -> Array:
    measure = MEASURES[name]
    return np.array([measure(r.seen, r.counts, level) if len(r.counts) else 0.0 for r in records])


def _new_words(records: list[Record], level: float, fold: Fold) -> Array:
    """How often each word was seen while its surprise was beyond the level."""
    counts = np.zeros(fold.held_out.n_words)
    for seen, words, n in records:
        new = seen.surprisals > level
        np.add.at(counts, words[new], n[new])
    return counts


def _level(records: list[Record], quantile: float = QUANTILE) -> float:
    """The surprise that this share of all words stay under."""
    surprises = np.concatenate([record.seen.surprisals for record in records])
    counts = np.concatenate([record.counts for record in records])
    if not len(counts):
        return 0.0
    order = np.argsort(surprises, kind="stable")
    below = np.cumsum(counts[order])
    return float(surprises[order][np.searchsorted(below, quantile * below[-1])])


class Learnt(NamedTuple):
    """A model, and what there is to say about it."""

    model: MarkovClusteringTopicModel
    notes: list[str]


def learn(corpus: Corpus, *, callback: Callback | None = None, **options: Any) -> Learnt:
    """A model of a scene, which knows what normal footage scores if there is enough of it.

    `options` are those of `MarkovClusteringTopicModel`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model = MarkovClusteringTopicModel(**options).fit(corpus, callback=callback)
        notes = [f"{note}; left uniform" for note in model.degenerate_]
        try:
            calibrate(model, corpus, callback=callback)
        except InvalidInputError as error:
            notes.append(f"not calibrated: {error}")
    return Learnt(model, notes)
