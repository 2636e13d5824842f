"""Choosing without labels, in one: sizes, hyperparameters, learner, and what would be found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from habitus.corpus.documents import Corpus
from habitus.lab.tuning.recall import Recall, Share
from habitus.lab.tuning.selection import (
    FITTED,
    ITERATIONS,
    TOLERANCE,
    Callback,
    Candidate,
    Choice,
    Prediction,
    predict_held_out,
)
from habitus.model import MarkovClusteringTopicModel
from habitus.model.hyperparameters import HyperparameterFit, fit_hyperparameters


class Hyperparameters(NamedTuple):
    """The prior that type-II maximum likelihood finds, and whether it is worth having."""

    fit: HyperparameterFit
    """On all footage."""
    prediction: Prediction
    """Of held-out stretches by VB, its hyperparameters fitted to the rest each time."""
    gain: float
    """What it predicts better than the chosen candidate, a word."""
    error: float
    """The standard error of that, stretch by stretch."""

    @property
    def worth_it(self) -> bool:
        """Whether VB with this prior predicts better by more than one standard error."""
        return self.gain > self.error


class Tuning(NamedTuple):
    """What there is to recommend."""

    choice: Choice
    hyperparameters: Hyperparameters | None
    recall: Recall | None
    notes: list[str]

    @property
    def recommended(self) -> Candidate:
        """The way of learning to take."""
        found = self.hyperparameters
        if found is not None and found.worth_it:
            return replace(self.choice.candidate, learning="vb", prior=str(found.fit.prior))
        return self.choice.candidate


def tune_hyperparameters(
    corpus: Corpus,
    choice: Choice,
    *,
    n_restarts: int = 3,
    min_words: float = 20,
    jobs: int = 1,
    seed: int = 0,
    callback: Callback | None = None,
) -> Hyperparameters:
    """The best prior for the size chosen, and what VB with such a prior predicts."""
    candidate = replace(choice.candidate, learning="vb", prior=FITTED)
    model = MarkovClusteringTopicModel(
        candidate.n_topics, candidate.n_behaviours, learning="vb", prior="H",
        n_iterations=ITERATIONS, tolerance=TOLERANCE, n_restarts=n_restarts, n_jobs=jobs,
        min_words=min_words, random_state=seed,
    ).fit(corpus)  # fmt: skip
    (prediction,) = predict_held_out(
        corpus, [candidate], n_restarts=n_restarts, min_words=min_words, jobs=jobs, seed=seed,
        callback=callback,
    )  # fmt: skip
    gained = prediction.less(choice.predictions[choice.chosen])
    fit = fit_hyperparameters(model, corpus)
    return Hyperparameters(fit, prediction, gained.mean, gained.standard_error)


def edge_note(choice: Choice) -> str | None:
    """What to say if larger models than those tried might be better still."""
    most = max(candidate.n_behaviours for candidate in choice.candidates)
    if len(choice.candidates) == 1 or choice.candidates[choice.best].n_behaviours < most:
        return None
    return (
        f"the best has the most behaviours tried: more may predict better still; try "
        f"--behaviours {most},{most + 2},{most + 4}"
    )


def command(tuning: Tuning, sources: Sequence[str], further: Sequence[str] = ()) -> str:
    """The command line that learns what is recommended; `further` options follow as they are."""
    import shlex

    found = tuning.recommended
    size = f"--behaviours {found.n_behaviours} --topics {found.n_topics}"
    parts = ["habitus", "learn", *map(shlex.quote, sources), size]
    if (found.learning, found.prior) != ("em", "H+1"):
        parts += ["--learning", found.learning, "--prior", shlex.quote(str(found.prior))]
    return " ".join([*parts, *map(shlex.quote, further), "-o scene.model"])


OF_TEN = {
    "wrong way": "wrong-way drivers",
    "out of place": "things out of place",
    "foreign path": "things on a path that nothing takes",
    "out of turn": "things out of their turn",
    "out of order": "times that the whole scene is out of order",
}


def in_words(recall: Recall, alerts_per_day: float) -> str:
    """What would be caught of things as large as those of the footage."""
    told = [
        f"{round(10 * share.share)} of 10 {OF_TEN[share.kind]}"
        for share in recall.shares
        if share.alerts_per_day == alerts_per_day
        and share.strength in (None, 1.0)
        and share.n_trials
    ]
    if not told:
        return "no anomaly could be made from this footage"
    listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return f"at {alerts_per_day:g} alerts a day this camera would catch {listed}"


def to_json(tuning: Tuning, sources: Sequence[str], further: Sequence[str] = ()) -> dict[str, Any]:
    """Everything as plain values."""
    found, best = tuning.recommended, tuning.choice.candidates[tuning.choice.best]
    return {
        "recommended": {
            "behaviours": found.n_behaviours, "topics": found.n_topics,
            "learning": found.learning, "prior": str(found.prior),
            "command": command(tuning, sources, further),
        },
        "best": {"behaviours": best.n_behaviours, "topics": best.n_topics},
        "sizes": _sizes(tuning.choice),
        "hyperparameters": _hyperparameters(tuning.hyperparameters),
        "recall": tuning.recall and {
            "tracks": tuning.recall.n_tracks,
            "typical_words": tuning.recall.typical,
            "shares": [_share(share) for share in tuning.recall.shares],
        },
        "notes": tuning.notes,
    }  # fmt: skip


def _sizes(choice: Choice) -> list[dict[str, Any]]:
    return [
        {
            "behaviours": candidate.n_behaviours, "topics": candidate.n_topics,
            "log_likelihood_per_word": prediction.mean,
            "standard_error": prediction.standard_error,
        }
        for candidate, prediction in zip(choice.candidates, choice.predictions, strict=True)
    ]  # fmt: skip


def _hyperparameters(found: Hyperparameters | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        **found.fit.prior.to_json(),
        "bound": found.fit.objective.reshape(-1).tolist(),
        "log_likelihood_per_word": found.prediction.mean,
        "gain_per_word": found.gain,
        "gain_standard_error": found.error,
    }


def _share(share: Share) -> dict[str, Any]:
    low, high = share.interval
    return {
        **share._asdict(),
        "share": share.share if share.n_trials else None,
        "low": low,
        "high": high,
    }
