"""What normal footage scores that the model has not learnt from.

A document that was learnt from fits better than any to come, so each stretch of the footage is
scored by a model of all the others (blocked in time: neighbouring documents are too much alike).
Such a model starts from the one of all documents and forgets the stretch: after a few iterations
nothing is left of words that only the stretch had.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.model import MarkovClusteringTopicModel, Parameters
from habitus.model.evidence import gather
from habitus.model.parameters import Array
from habitus.normality.filter import Seen, advance, tables_of
from habitus.normality.measures import MEASURES, Scale
from habitus.normality.threshold import tail_of

# Stretches that are left out in turn: each model has nearly all of the footage.
N_FOLDS = 20
# Iterations in which a model forgets a stretch.
ITERATIONS = 30
# Share of the words of normal footage that surprise less than the level of `tail`: just below those
# that five minutes of training have never shown.
QUANTILE = 0.97
# Units of a measure that hardly varies in normal footage.
LEAST_UNIT = 1e-9
# Posterior samples that Monte Carlo scores are calibrated with.
N_SAMPLES = 20

Callback = Callable[[int, float], None]


class Record(NamedTuple):
    """A held-out document as a model saw it that had not learnt from it."""

    seen: Seen
    counts: Array


class Calibration(NamedTuple):
    """Scores of held-out documents in time order."""

    scale: Scale
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
    records: dict[str, list[Record]] = {kind: [] for kind in kinds}
    for fitted, held_out in _folds(model, corpus, n_folds, callback):
        for kind in kinds:
            sets = parameter_sets(fitted, kind, min(N_SAMPLES, _most(fitted)), seed)
            records[kind] += _records(fitted, held_out, sets)
    model.calibration_ = {}
    for kind in kinds:
        for name, values in _scored(records[kind]).items():
            model.calibration_[f"{kind}.{name}"] = values


def calibration_of(model: MarkovClusteringTopicModel, approximation: str) -> Calibration | None:
    """What `calibrate` kept, or None."""
    kept = {
        name.removeprefix(f"{approximation}."): values
        for name, values in model.calibration_.items()
        if name.startswith(f"{approximation}.")
    }
    if not kept:
        return None
    level, typical, *units = kept.pop("scale").tolist()
    judged = kept.pop("judged").astype(np.bool_)
    scale = Scale(level, typical, (units[0], units[1]), (units[2], units[3]))
    return Calibration(scale, kept, judged)


def _most(model: MarkovClusteringTopicModel) -> int:
    return len(model.samples_) or N_SAMPLES


def _folds(
    model: MarkovClusteringTopicModel, corpus: Corpus, n_folds: int, callback: Callback | None
) -> Iterator[tuple[MarkovClusteringTopicModel, Corpus]]:
    """For each stretch: a model of the other documents, and the documents of the stretch."""
    everything = np.arange(len(corpus))
    settings = model.get_params() | {"n_restarts": 1, "init": None}
    if not model.samples_:  # a sampler walks anew: its assignments are those of other documents
        settings |= {"n_iterations": min(ITERATIONS, model.n_iterations)}
        settings |= {"init": model.posterior_ or model.parameters_}
    for part in np.array_split(everything, min(n_folds, len(corpus))):
        rest = corpus.take(np.setdiff1d(everything, part))
        fitted = MarkovClusteringTopicModel(**settings).fit(rest, callback=callback)
        yield fitted, corpus.take(part)


def n_steps(model: MarkovClusteringTopicModel, n_folds: int = N_FOLDS) -> int:
    """Iterations that `calibrate` runs, for a bar."""
    if model.learning.endswith("gibbs"):
        return n_folds * (model.burn_in + (model.n_samples - 1) * model.thinning)
    return n_folds * min(ITERATIONS, model.n_iterations)


def _records(
    model: MarkovClusteringTopicModel, corpus: Corpus, sets: list[Parameters]
) -> Iterator[Record]:
    evidence, tables = gather(corpus, min_words=model.min_words), tables_of(sets)
    log_predicted = tables.log_pi
    for t in range(evidence.n_documents):
        if evidence.first[t]:
            log_predicted = tables.log_pi
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        words, counts = evidence.words[here], evidence.counts[here]
        seen = advance(log_predicted, words, counts, tables)
        yield Record(seen, counts)
        log_predicted = seen.log_next


def _scored(records: list[Record]) -> dict[str, Array]:
    judged = np.array([len(record.counts) > 0 for record in records])
    scale = Scale(_level(records), _typical(records))

    def scores(name: str) -> Array:
        found = [MEASURES[name](*r, scale) if len(r.counts) else 0.0 for r in records]
        return np.array(found)

    ends = {name: tail_of(scores(name), judged) for name in ("tail", "upheaval")}
    units = {name: (end.level, max(end.mean_excess, LEAST_UNIT)) for name, end in ends.items()}
    scale = scale._replace(tail=units["tail"], upheaval=units["upheaval"])
    return {
        **{name: scores(name) for name in MEASURES},
        "judged": judged.astype(np.uint8),
        "scale": np.array([scale.level, scale.typical, *scale.tail, *scale.upheaval]),
    }


def _typical(records: list[Record]) -> float:
    """Mean log-probability of a word."""
    n_tokens = sum(record.counts.sum() for record in records)
    return float(sum(record.seen.log_evidence for record in records) / n_tokens)


def _level(records: list[Record]) -> float:
    """The surprise that QUANTILE of all words stay under."""
    surprises = np.concatenate([record.seen.surprises for record in records])
    counts = np.concatenate([record.counts for record in records])
    order = np.argsort(surprises, kind="stable")
    below = np.cumsum(counts[order])
    return float(surprises[order][np.searchsorted(below, QUANTILE * below[-1])])
