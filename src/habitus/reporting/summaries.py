"""Summaries of models and corpora in numbers."""

from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from habitus.corpus import Corpus

if TYPE_CHECKING:
    from habitus.model import TopicModel

SHORT = 20
"""Documents with fewer words are short; by default, they are not judged."""


@dataclass(frozen=True)
class CorpusSummary:
    """Summary of a corpus."""

    documents: int
    """Number of documents."""
    sequences: int
    """Number of sequences: videos, or parts of one with a gap between them."""
    words: float
    """Number of tokens in all documents."""
    vocabulary: int
    """Number of words in the vocabulary."""
    median_words: float
    """Median number of tokens per document."""
    short: float
    """Share of documents with fewer than SHORT tokens."""
    faults: int
    """Number of documents with the camera moved, covered or frozen."""

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)


def summarise_corpus(corpus: Corpus) -> CorpusSummary:
    """Return a summary of a corpus.

    >>> summary = summarise_corpus(Corpus([[30, 0], [5, 5]]))
    >>> summary.documents, summary.words, summary.short
    (2, 40.0, 0.5)
    """
    n_tokens = corpus.n_tokens
    return CorpusSummary(
        documents=len(corpus),
        sequences=len(corpus.lengths),
        words=float(n_tokens.sum()),
        vocabulary=corpus.n_words,
        median_words=float(median(n_tokens.tolist())) if len(n_tokens) else 0.0,
        short=float((n_tokens < SHORT).mean()) if len(n_tokens) else 0.0,
        faults=int((corpus.conditions != 0).sum()),
    )


@dataclass(frozen=True)
class Likely:
    """A behaviour or topic, by its number from 1, with a probability."""

    number: int
    probability: float


@dataclass(frozen=True)
class Behaviour:
    """Summary of one behaviour of a model."""

    number: int
    """Counted from 1."""
    share: float
    """Long-run share of documents."""
    duration: float | None
    """Mean number of consecutive documents; None if the behaviour never ends."""
    successors: list[Likely]
    """p(next behaviour | this one ends), most probable first."""
    topics: list[Likely]
    """p(topic | behaviour), most probable first."""


@dataclass(frozen=True)
class ModelSummary:
    """Summary of a fitted model."""

    learning: str
    """Learning algorithm: "em", "vb" or "gibbs"."""
    prior: str
    """Name or values of the prior."""
    n_words: int
    n_topics: int
    n_behaviours: int
    objective: float
    """Final value of the objective of the best run."""
    restarts: list[float]
    """Final value of the objective of each run."""
    clip: float
    """Seconds of video per document."""
    degenerate: list[str]
    """Notes about behaviours or topics that are empty or equal."""
    behaviours: list[Behaviour]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)


def summarise_model(model: "TopicModel") -> ModelSummary:
    """Return a summary of a fitted model."""
    n_words, n_topics, n_behaviours = model.sizes
    return ModelSummary(
        learning=model.learning,
        prior=model.prior if isinstance(model.prior, str) else repr(model.prior),
        n_words=n_words,
        n_topics=n_topics,
        n_behaviours=n_behaviours,
        objective=float(model.objective_[-1]),
        restarts=[float(objective) for objective in model.restarts_],
        clip=model.clip_,
        degenerate=list(model.degenerate_),
        behaviours=_behaviours(model),
    )


def _behaviours(model: "TopicModel") -> list[Behaviour]:
    from habitus.model.inspection import expected_durations, long_run_shares, successors

    _, theta, _, xi = model.parameters_
    shares, durations = long_run_shares(xi), expected_durations(xi)
    order = np.argsort(-theta, axis=0, kind="stable")
    return [
        Behaviour(
            number=z + 1,
            share=float(shares[z]),
            duration=float(durations[z]) if np.isfinite(durations[z]) else None,
            successors=[Likely(z_next + 1, p) for z_next, p in successors(xi, z)],
            topics=[Likely(int(y) + 1, float(theta[y, z])) for y in order[:, z]],
        )
        for z in range(len(xi))
    ]
