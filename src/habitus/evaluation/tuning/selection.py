"""The size of a model, chosen by what it predicts: no labels needed."""

from collections.abc import Sequence
from typing import NamedTuple

from habitus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.evaluation.tuning.held_out import Callback, Candidate, Prediction, predict_held_out

TOPICS = (4, 8, 12, 20)
BEHAVIOURS = (2, 3, 4, 5, 6, 8)


class Choice(NamedTuple):
    """Candidates, what each predicts, and which of them to take."""

    candidates: list[Candidate]
    predictions: list[Prediction]
    best: int
    """The one that predicts best."""
    chosen: int
    """The simplest that predicts no worse than that by more than one standard error."""

    @property
    def candidate(self) -> Candidate:
        """The one to take."""
        return self.candidates[self.chosen]

    def shortfall(self, k: int) -> float:
        """What a candidate predicts worse than the best, a word."""
        return self.predictions[self.best].mean - self.predictions[k].mean


def grid(
    topics: Sequence[int] = TOPICS,
    behaviours: Sequence[int] = BEHAVIOURS,
    *,
    learning: str = "em",
    prior: str = "H+1",
) -> list[Candidate]:
    """All pairs of these numbers, ascending."""
    for name, values in (("topics", topics), ("behaviours", behaviours)):
        if not values or min(values) < 1:
            raise InvalidInputError(
                f"{name} to try must be whole numbers of at least 1, found {list(values)}"
            )
    return [
        Candidate(y, z, learning, prior)
        for z in sorted(set(behaviours))
        for y in sorted(set(topics))
    ]


def choose(
    candidates: Sequence[Candidate], predictions: Sequence[Prediction], n_words: int
) -> Choice:
    """The simplest within one standard error, that of the best, of the best."""
    numbers = range(len(candidates))
    best = max(numbers, key=lambda k: predictions[k].mean)
    choice = Choice(list(candidates), list(predictions), best, best)
    error = predictions[best].standard_error
    near = [k for k in numbers if choice.shortfall(k) <= error]
    simplest = min(near, key=lambda k: (candidates[k].n_parameters(n_words), -predictions[k].mean))
    return choice._replace(chosen=simplest)


def select_size(
    corpus: Corpus,
    candidates: Sequence[Candidate] | None = None,
    *,
    n_restarts: int = 3,
    min_words: float = 20,
    jobs: int = 1,
    seed: int = 0,
    callback: Callback | None = None,
) -> Choice:
    """Numbers of topics and behaviours by the likelihood of held-out stretches."""
    tried = grid() if candidates is None else list(candidates)
    predictions = predict_held_out(
        corpus, tried, n_restarts=n_restarts, min_words=min_words, jobs=jobs, seed=seed,
        callback=callback,
    )  # fmt: skip
    return choose(tried, predictions, corpus.n_words)
