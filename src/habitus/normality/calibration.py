"""What normal footage scores that the model has not learnt from.

A document that was learnt from fits better than any to come, so each stretch of the footage is
scored by a model of all the others (blocked in time: neighbouring documents are too much alike).
Such a model starts from the one of all documents and forgets the stretch: after a few iterations
nothing is left of words that only the stretch had.
"""

from collections.abc import Callable, Iterator
from copy import copy
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model import MarkovClusteringTopicModel, Parameters
from habitus.model.evidence import gather
from habitus.model.parameters import Array
from habitus.normality.filter import Seen, advance, advance_by, tables_of
from habitus.normality.habits import Counts, Habits
from habitus.normality.measures import MEASURES, Scale
from habitus.normality.novelty import KNOWN, novelty_of
from habitus.normality.threshold import tail_of

# Stretches that are left out in turn: each model has nearly all of the footage.
N_FOLDS = 20
# Iterations in which a model forgets a stretch.
ITERATIONS = 30
# Share of the words of normal footage that surprise less than the level of `tail`.
QUANTILE = 0.98
# Units of a measure that hardly varies in normal footage.
LEAST_UNIT = 1e-9
# Posterior samples that Monte Carlo scores are calibrated with.
N_SAMPLES = 20

Callback = Callable[[int, float], None]


class Record(NamedTuple):
    """A held-out document as a model saw it that had not learnt from it."""

    seen: Seen
    words: NDArray[np.int32]
    counts: Array


class Fold(NamedTuple):
    """A stretch of documents, and a model that has not learnt from it."""

    model: MarkovClusteringTopicModel
    held_out: Corpus


class Calibration(NamedTuple):
    """Scores of held-out documents in time order."""

    scale: Scale
    counts: Counts
    """Words of all the footage, by behaviour of the model at hand, and while they were new."""
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
    known = _known_words(model, folds)
    kept = {}
    for kind in kinds:
        n_samples = min(N_SAMPLES, len(model.samples_) or N_SAMPLES)
        sets = [parameter_sets(fold.model, kind, n_samples, seed) for fold in folds]
        found = _novel_words(folds, sets)
        if kind == "plug-in":
            records = _habitual_records(model, folds, known, found.new)
        else:
            records = _novel_records(folds, sets, found.new)
        for name, values in _scored(found.bare, records).items():
            kept[f"{kind}.{name}"] = values
        kept[f"{kind}.new"] = np.sum(found.new, axis=0)
        kept[f"{kind}.known"] = np.sum(known, axis=0)
    model.calibration_ = kept


def calibrated_folds(
    model: MarkovClusteringTopicModel,
    corpus: Corpus,
    *,
    n_folds: int = N_FOLDS,
    callback: Callback | None = None,
) -> list[Fold]:
    """Stretches of the footage, each with a model that has not learnt from it.

    Each is calibrated as the model of everything is, only that its words are told from the other
    stretches: what a detector with that model says of the stretch is what it says of new footage.
    """
    folds = list(_folds(model, corpus, n_folds, callback))
    known = _known_words(model, folds)
    new = _novel_words(folds, [[fold.model.parameters_] for fold in folds]).new
    found = []
    for fold, own, its in zip(folds, known, new, strict=True):
        judge = copy(_alike(model, fold))
        judge.calibration_ = model.calibration_ | {
            "plug-in.known": np.maximum(np.sum(known, axis=0) - own, 0),
            "plug-in.new": np.maximum(np.sum(new, axis=0) - its, 0),
        }
        found.append(Fold(judge, fold.held_out))
    return found


def calibration_of(model: MarkovClusteringTopicModel, approximation: str) -> Calibration | None:
    """What `calibrate` kept, or None."""
    kept = {
        name.removeprefix(f"{approximation}."): values
        for name, values in model.calibration_.items()
        if name.startswith(f"{approximation}.")
    }
    if "known" not in kept:
        return None
    level, typical, *units = kept.pop("scale").tolist()
    judged = kept.pop("judged").astype(np.bool_)
    scale = Scale(level, typical, (units[0], units[1]), (units[2], units[3]))
    counts = Counts(kept.pop("known"), kept.pop("new"))
    return Calibration(scale, counts, kept, judged)


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


def _records(fold: Fold, sets: list[Parameters], novelty: Array | None = None) -> list[Record]:
    """The documents of a stretch as a model saw them that had not learnt from them."""
    evidence = gather(fold.held_out, min_words=fold.model.min_words)
    tables, records = tables_of(sets, novelty), []
    log_predicted = tables.log_pi
    for t in range(evidence.n_documents):
        if evidence.first[t]:
            log_predicted = tables.log_pi
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        words, counts = evidence.words[here], evidence.counts[here]
        seen = advance(log_predicted, words, counts, tables)
        records.append(Record(seen, words, counts))
        log_predicted = seen.log_next
    return records


class _Novel(NamedTuple):
    """Held-out footage, and what in it was new."""

    bare: list[Record]
    """All documents as models saw them that expect nothing new."""
    new: list[Array]
    """Of each stretch, how often each word was seen while it was as good as new."""


def _novel_words(folds: list[Fold], sets: list[list[Parameters]]) -> _Novel:
    bare = [_records(fold, own) for fold, own in zip(folds, sets, strict=True)]
    everything = list(chain.from_iterable(bare))
    level = _level(everything, KNOWN)
    return _Novel(everything, [_new_words(records, level, folds[0]) for records in bare])


def _known_words(model: MarkovClusteringTopicModel, folds: list[Fold]) -> list[Array]:
    """Of each stretch, how often each word was seen in each of the model's behaviours."""
    known = []
    for fold in folds:
        counts = np.zeros((fold.held_out.n_words, len(model.parameters_.pi)))
        for seen, words, n in _records(Fold(model, fold.held_out), [model.parameters_]):
            counts[words] += n[:, None] * seen.posterior[0]
        known.append(counts)
    return known


def _alike(model: MarkovClusteringTopicModel, fold: Fold) -> MarkovClusteringTopicModel:
    """The fold's model, if its behaviours are those of the model of all; a sampler's are not."""
    return model if model.samples_ else fold.model


def _habitual_records(
    model: MarkovClusteringTopicModel, folds: list[Fold], known: list[Array], new: list[Array]
) -> list[Record]:
    """Held-out documents as a detector sees them that knows all the others, and goes on learning.

    A stretch's own words are not known beforehand, nor which of them are new.
    """
    records = []
    all_known, all_new = np.sum(known, axis=0), np.sum(new, axis=0)
    for fold, own, its in zip(folds, known, new, strict=True):
        counts = Counts(np.maximum(all_known - own, 0), np.maximum(all_new - its, 0))
        habits = Habits(counts, fold.held_out.vocabulary)
        evidence = gather(fold.held_out, min_words=model.min_words)
        tables = tables_of([_alike(model, fold).parameters_])
        log_predicted = tables.log_pi
        for t in range(evidence.n_documents):
            if evidence.first[t]:
                log_predicted = tables.log_pi
            here = slice(evidence.indptr[t], evidence.indptr[t + 1])
            words, n = evidence.words[here], evidence.counts[here]
            rows = habits.rows(words)
            seen = advance_by(log_predicted, n, rows, tables)
            if len(words):
                habits.learn(words, n, rows, seen)
            records.append(Record(seen, words, n))
            log_predicted = seen.log_next
    return records


def _novel_records(
    folds: list[Fold], sets: list[list[Parameters]], new: list[Array]
) -> list[Record]:
    """Held-out documents as Monte Carlo sees them, which expects new words but learns none."""
    records, everything = [], np.sum(new, axis=0)
    for fold, own, its in zip(folds, sets, new, strict=True):
        novelty = novelty_of(np.maximum(everything - its, 0), fold.held_out.vocabulary)
        records += _records(fold, own, novelty)
    return records


def _scored(bare: list[Record], records: list[Record]) -> dict[str, Array]:
    """Scores by every measure: the paper's by the bare model, the others with novelty."""
    judged = np.array([len(record.counts) > 0 for record in records])
    scale = _scale(records, judged)
    return {
        "mean": _scores("mean", bare, scale),
        **{name: _scores(name, records, scale) for name in MEASURES if name != "mean"},
        "judged": judged.astype(np.uint8),
        "scale": np.array([scale.level, scale.typical, *scale.tail, *scale.upheaval]),
    }


def _scale(records: list[Record], judged: NDArray[np.bool_]) -> Scale:
    scale = Scale(_level(records, QUANTILE), _typical(records))
    ends = [tail_of(_scores(name, records, scale), judged) for name in ("tail", "upheaval")]
    units = [(end.level, max(end.mean_excess, LEAST_UNIT)) for end in ends]
    return scale._replace(tail=units[0], upheaval=units[1])


def _scores(name: str, records: list[Record], scale: Scale) -> Array:
    measure = MEASURES[name]
    return np.array([measure(r.seen, r.counts, scale) if len(r.counts) else 0.0 for r in records])


def _new_words(records: list[Record], level: float, fold: Fold) -> Array:
    """How often each word was seen while its surprise was beyond the level."""
    counts = np.zeros(fold.held_out.n_words)
    for seen, words, n in records:
        new = seen.surprises > level
        np.add.at(counts, words[new], n[new])
    return counts


def _typical(records: list[Record]) -> float:
    """Mean log-probability of a word."""
    n_tokens = sum(record.counts.sum() for record in records)
    return float(sum(record.seen.log_evidence for record in records) / max(n_tokens, 1.0))


def _level(records: list[Record], quantile: float) -> float:
    """The surprise that this share of all words stay under."""
    surprises = np.concatenate([record.seen.surprises for record in records])
    counts = np.concatenate([record.counts for record in records])
    if not len(counts):
        return 0.0
    order = np.argsort(surprises, kind="stable")
    below = np.cumsum(counts[order])
    return float(surprises[order][np.searchsorted(below, quantile * below[-1])])
