"""Models and corpora in figures."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from habitus.corpus import Corpus
from habitus.model import MarkovClusteringTopicModel
from habitus.model.inspection import expected_durations, long_run_shares, successors

SHORT = 20
"""Documents with fewer words are short: they are not judged by default."""


@dataclass(frozen=True)
class CorpusSummary:
    """A corpus in figures."""

    documents: int
    sequences: int
    words: float
    """Tokens in all documents."""
    vocabulary: int
    """Distinct words that there may be."""
    median_words: float
    """Median number of tokens per document."""
    short: float
    """Share of documents with fewer than 20 tokens."""
    faults: int
    """Documents with the camera moved, covered or frozen."""

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)


def summarise_corpus(corpus: Corpus) -> CorpusSummary:
    """Return a corpus in figures."""
    n_tokens = corpus.n_tokens
    return CorpusSummary(
        documents=len(corpus),
        sequences=len(corpus.lengths),
        words=float(n_tokens.sum()),
        vocabulary=corpus.n_words,
        median_words=float(np.median(n_tokens)) if len(n_tokens) else 0.0,
        short=float((n_tokens < SHORT).mean()) if len(n_tokens) else 0.0,
        faults=int((corpus.conditions != 0).sum()),
    )


@dataclass(frozen=True)
class Likely:
    """A numbered thing, and how probable it is. Numbers start at 1."""

    number: int
    probability: float


@dataclass(frozen=True)
class Behaviour:
    """One behaviour of a model."""

    number: int
    share: float
    """Share of documents in the long run."""
    duration: float | None
    """Mean number of documents it lasts; None if it never ends."""
    successors: list[Likely]
    """What follows when it ends, most probable first."""
    topics: list[Likely]
    """Its topics, heaviest first."""


@dataclass(frozen=True)
class ModelSummary:
    """A model in words and numbers."""

    learning: str
    prior: str
    n_words: int
    n_topics: int
    n_behaviours: int
    objective: float
    restarts: list[float]
    degenerate: list[str]
    behaviours: list[Behaviour]

    def to_json(self) -> dict[str, Any]:
        """Give the summary as plain values."""
        return asdict(self)


def summarise_model(model: MarkovClusteringTopicModel) -> ModelSummary:
    """Behaviours of a fitted model: how much time, how long, what next, made of what."""
    _, theta, _, xi = model.parameters_
    n_words, n_topics, n_behaviours = model.sizes
    shares, durations = long_run_shares(xi), expected_durations(xi)
    behaviours = [
        Behaviour(
            number=z + 1,
            share=float(shares[z]),
            duration=float(durations[z]) if np.isfinite(durations[z]) else None,
            successors=[Likely(z_next + 1, p) for z_next, p in successors(xi, z)],
            topics=[
                Likely(int(y) + 1, float(theta[y, z]))
                for y in np.argsort(-theta[:, z], kind="stable")
            ],
        )
        for z in range(n_behaviours)
    ]
    return ModelSummary(
        learning=model.learning,
        prior=model.prior if isinstance(model.prior, str) else repr(model.prior),
        n_words=n_words,
        n_topics=n_topics,
        n_behaviours=n_behaviours,
        objective=float(model.objective_[-1]),
        restarts=[float(objective) for objective in model.restarts_],
        degenerate=list(model.degenerate_),
        behaviours=behaviours,
    )
