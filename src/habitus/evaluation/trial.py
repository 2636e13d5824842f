"""Every learner on documents whose true model is known."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from habitus.documents import Corpus
from habitus.evaluation.recovery import compare
from habitus.model import MarkovClusteringTopicModel, Parameters, generate
from habitus.model.learning import LEARNERS, Callback
from habitus.model.parameters import Array
from habitus.words import Vocabulary

N_RESTARTS = 4
BURN_IN, N_SAMPLES, THINNING = 200, 3, 50
N_ITERATIONS = 100


@dataclass(frozen=True)
class Row:
    """How well one learner did."""

    learning: str
    right_share: float
    """Share of documents that are given their true behaviour."""
    behaviour_distance: float
    transition_distance: float


class Trial(NamedTuple):
    """All learners on one corpus."""

    corpus: Corpus
    rows: list[Row]
    models: dict[str, MarkovClusteringTopicModel]
    behaviours: dict[str, Array]
    """p(word | behaviour) of the truth and of each learner, columns in the truth's order."""

    def to_json(self) -> dict[str, Any]:
        """Give the figures as plain values."""
        return {"rows": [asdict(row) for row in self.rows]}


def n_steps() -> int:
    """How often a trial calls back."""
    sweeps = BURN_IN + (N_SAMPLES - 1) * THINNING
    return N_RESTARTS * (2 * N_ITERATIONS + 2 * sweeps)


def run_trial(
    truth: Parameters,
    vocabulary: Vocabulary,
    *,
    n_documents: int,
    words_per_document: int,
    seed: int,
    callback: Callback | None = None,
) -> Trial:
    """Sample documents from `truth`, learn them by every algorithm, and compare."""
    rng = np.random.default_rng(seed)
    n_tokens = rng.poisson(words_per_document, n_documents)
    corpus, assignments = generate(truth, n_tokens, rng, vocabulary=vocabulary)
    rows, models = [], {}
    behaviours = {"truth": truth.word_given_behaviour}
    for learning in LEARNERS:
        model = MarkovClusteringTopicModel(
            truth.sizes.n_topics,
            truth.sizes.n_behaviours,
            learning=learning,
            prior="H+1" if learning == "em" else "H",
            n_iterations=N_ITERATIONS,
            n_restarts=N_RESTARTS,
            n_jobs=-1,
            random_state=seed,
            burn_in=BURN_IN,
            n_samples=N_SAMPLES,
            thinning=THINNING,
        )
        model.fit(corpus, callback=callback)
        found = compare(truth, model.parameters_)
        right = found.behaviours[assignments.behaviours] == model.predict(corpus)
        rows.append(Row(learning, float(right.mean()), *found[1:]))
        models[learning] = model
        behaviours[learning] = model.parameters_.word_given_behaviour[:, found.behaviours]
    rows.append(_told(truth, corpus, assignments.behaviours))
    return Trial(corpus, rows, models, behaviours)


def _told(truth: Parameters, corpus: Corpus, path: Any) -> Row:
    """Plain frequencies, with the true behaviours told: what there is to compare with."""
    n = truth.sizes.n_behaviours
    member = np.eye(n)[path]
    steps = member[1:].T @ member[:-1]
    # One step of each kind is added, so that a behaviour that never came up has a distribution too.
    words = corpus.counts.T @ member + 1 / corpus.n_words
    known = Parameters(
        phi=words / words.sum(axis=0),
        theta=np.eye(n),
        pi=np.full(n, 1 / n),
        xi=(steps + 1 / n) / (steps + 1 / n).sum(axis=0),
    )
    found = compare(truth, known)
    return Row("behaviours told", 1.0, *found[1:])
