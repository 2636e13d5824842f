"""Selection of a model without labels: sizes, hyperparameters, and an estimate of its recall."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from habitus.corpus import Corpus
from habitus.errors import InvalidInputError
from habitus.lab.tuning.recall import BUDGETS, N_TRIALS, FoundShare, RecallEstimate, estimate_recall
from habitus.lab.tuning.selection import (
    BEHAVIOURS,
    FITTED,
    TOPICS,
    Candidate,
    Choice,
    Prediction,
    SelectionRuns,
    grid,
    predict_held_out,
    select_size,
)
from habitus.model.hyperparameters import HyperparameterFit, fit_hyperparameters
from habitus.scene.scene_model import learn_scene
from habitus.settings import LearningSettings


class Hyperparameters(NamedTuple):
    """Prior found by type-II maximum likelihood, and its gain over the chosen candidate."""

    fit: HyperparameterFit
    """Fit to all footage."""
    prediction: Prediction
    """Prediction of held-out segments by VB, its hyperparameters fitted to the rest each time."""
    gain: float
    """Gain in held-out log-likelihood over the chosen candidate, in nats per word."""
    error: float
    """Standard error of the gain, paired by segment."""

    @property
    def worth_it(self) -> bool:
        """Whether VB with this prior predicts better by more than one standard error."""
        return self.gain > self.error


class Tuning(NamedTuple):
    """Recommended model, and the evidence for it."""

    choice: Choice
    hyperparameters: Hyperparameters | None
    """None if they were not fitted."""
    recall: RecallEstimate | None
    """None if it was not, or could not be, estimated."""
    notes: list[str]
    n_documents: int = 0
    """Number of documents of the footage."""

    @property
    def recommended(self) -> Candidate:
        """Candidate to learn."""
        fitted = self.hyperparameters
        if fitted is not None and fitted.worth_it:
            return replace(self.choice.candidate, learning="vb", prior=str(fitted.fit.prior))
        return self.choice.candidate

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        advice, best = self.recommended, self.choice.candidates[self.choice.best]
        recall = self.recall
        return {
            "recommended": {
                "behaviours": advice.n_behaviours,
                "topics": advice.n_topics,
                "learning": advice.learning,
                "prior": str(advice.prior),
            },
            "best": {"behaviours": best.n_behaviours, "topics": best.n_topics},
            "sizes": [
                {
                    "behaviours": candidate.n_behaviours,
                    "topics": candidate.n_topics,
                    "log_likelihood_per_word": prediction.mean,
                    "standard_error": prediction.standard_error,
                    "shortfall_per_word": shortfall.mean,
                    "shortfall_standard_error": shortfall.standard_error,
                }
                for candidate, prediction, shortfall in self.choice.rows()
            ],
            "hyperparameters": _hyperparameters_json(self.hyperparameters),
            "recall": recall
            and {
                "tracks": recall.n_tracks,
                "typical_words": recall.typical,
                "shares": [_share_json(share) for share in recall.shares],
            },
            "notes": self.notes,
        }


def tune_model(
    corpus: Corpus,
    runs: SelectionRuns,
    *,
    topics: Sequence[int] = TOPICS,
    behaviours: Sequence[int] = BEHAVIOURS,
    prior: str = "H+1",
    hyperparameters: bool = True,
    alerts_per_day: float = BUDGETS[0],
    measure: str = "tail",
    n_trials: int = N_TRIALS,
) -> Tuning:
    """Choose a model from normal footage without labels, and estimate its recall.

    Parameters are those of `habitus.tune`. The budget is one beside one and twenty alerts per
    hour; a note says why there is no estimate of the recall, where there should be one. Raises
    InvalidInputError if there is too little footage, or a parameter is out of range.
    """
    check_tuning(alerts_per_day, n_trials, runs.n_restarts)
    corpus = corpus.coarse
    choice = select_size(corpus, grid(topics, behaviours, prior=prior), runs)
    fitted = tune_hyperparameters(corpus, choice, runs) if hyperparameters else None
    note = edge_note(choice)
    tuning = Tuning(choice, fitted, None, [note] if note else [], len(corpus))
    if not n_trials:
        return tuning
    learnt = learn_scene(
        corpus,
        **vars(tuning.recommended),
        n_restarts=LearningSettings.n_restarts,
        n_jobs=runs.jobs,
        min_words=runs.min_words,
        random_state=runs.seed,
        workers=runs.workers,
        progress=runs.progress,
    )
    notes = [*tuning.notes, *learnt.notes]
    try:
        recall = estimate_recall(
            learnt,
            corpus,
            alerts_per_day=sorted({alerts_per_day, *BUDGETS[1:]}),
            n_trials=n_trials,
            measure=measure,
            seed=runs.seed,
            progress=lambda report: runs.progress(report._replace(stage="estimating recall")),
        )
    except InvalidInputError as error:
        return tuning._replace(notes=[*notes, f"no recall: {error}"])
    return tuning._replace(recall=recall, notes=notes)


def check_tuning(alerts_per_day: float, n_trials: int, n_restarts: int) -> None:
    """Raise InvalidInputError for an argument that is out of range, by its name."""
    for name, value in {"alerts_per_day": alerts_per_day, "n_restarts": n_restarts}.items():
        if not value > 0:
            raise InvalidInputError(f"{name} must be above 0, found {value:g}", parameter=name)
    if n_trials < 0:
        raise InvalidInputError(
            f"n_trials must be 0 or more, found {n_trials}", parameter="n_trials"
        )


def tune_hyperparameters(corpus: Corpus, choice: Choice, runs: SelectionRuns) -> Hyperparameters:
    """Fit the hyperparameters of VB for the chosen size, and compare its held-out likelihood."""
    candidate = replace(choice.candidate, learning="vb", prior=FITTED)
    model = runs.model(candidate, runs.seed, runs.jobs).fit(corpus, workers=runs.workers)
    (prediction,) = predict_held_out(corpus, [candidate], runs, stage="fitting hyperparameters")
    gained = prediction.less(choice.predictions[choice.chosen])
    fit = fit_hyperparameters(model, corpus)
    return Hyperparameters(fit, prediction, gained.mean, gained.standard_error)


def edge_note(choice: Choice) -> str | None:
    """Return a note if larger models than those tried might predict even better."""
    most = max(candidate.n_behaviours for candidate in choice.candidates)
    if len(choice.candidates) == 1 or choice.candidates[choice.best].n_behaviours < most:
        return None
    return (
        f"the best model has the largest number of behaviours tried: more may predict even "
        f"better; try {most}, {most + 2} and {most + 4} behaviours"
    )


NAMES_OF_KINDS = {
    "wrong way": "wrong-way drivers",
    "out of place": "objects out of place",
    "foreign path": "objects on a path that nothing takes",
    "out of turn": "objects out of turn",
    "out of order": "times that the whole scene is out of order",
}


def recall_in_words(recall: RecallEstimate, alerts_per_day: float) -> str:
    """Return a sentence about the anomalies of usual size that would be found at a budget."""
    parts = [
        f"{round(10 * share.share)} of 10 {NAMES_OF_KINDS[share.kind]}"
        for share in recall.shares
        if share.alerts_per_day == alerts_per_day
        and share.strength in (None, 1.0)
        and share.n_trials
    ]
    if not parts:
        return "no synthetic anomaly could be made from this footage"
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"at {alerts_per_day:g} alerts per day this camera would find {listed}"


def _hyperparameters_json(fitted: Hyperparameters | None) -> dict[str, Any] | None:
    if fitted is None:
        return None
    return {
        **fitted.fit.prior.to_json(),
        "bound": fitted.fit.objective.reshape(-1).tolist(),
        "log_likelihood_per_word": fitted.prediction.mean,
        "gain_per_word": fitted.gain,
        "gain_standard_error": fitted.error,
    }


def _share_json(share: FoundShare) -> dict[str, Any]:
    low, high = share.interval
    return {
        **share._asdict(),
        "share": share.share if share.n_trials else None,
        "low": low,
        "high": high,
    }
