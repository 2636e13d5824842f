"""A scene's model with its calibration: what is learnt once, saved in one file, judged with."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from habitus.anomaly.calibration import Calibration, calibrate
from habitus.anomaly.detector import Detector
from habitus.anomaly.habit_model import HabitModel, learn_habits
from habitus.corpus import Corpus
from habitus.errors import DegenerateWarning, FileError, HabitusError, InvalidInputError
from habitus.files import read_tensors, write_tensors
from habitus.model import MarkovClusteringTopicModel
from habitus.model.model_file import KIND, VERSION, model_contents, restore_model
from habitus.progress import Progress, ProgressCallback


@dataclass(frozen=True)
class SceneModel:
    """A fitted model of a scene, and what normal footage of that scene scores.

    Examples
    --------
    >>> import numpy as np
    >>> import habitus
    >>> from habitus.lab import crossing
    >>> corpus = habitus.generate(crossing(), [60] * 200, np.random.default_rng(0)).corpus
    >>> scene = learn_scene(corpus, n_topics=8, n_behaviours=4, random_state=0)
    >>> detector = scene.detector(alerts_per_day=24)
    >>> sum(judgement.abnormal for judgement in detector.judge(corpus))
    0
    """

    model: MarkovClusteringTopicModel
    calibration: Calibration | None = None
    """None where no document was long enough to judge."""
    habits: HabitModel | None = None
    """Habits of places; None where the corpus has no vocabulary, and in files before 0.3."""
    notes: tuple[str, ...] = ()
    """What there is to say about the learning, one line each."""
    corpus: Corpus | None = None
    """The documents it was learnt from; not saved."""

    def summary(self) -> str:
        """Return sizes of the model, and of the footage it was learnt from, in one line."""
        _, n_topics, n_behaviours = self.model.sizes
        learnt = f"learnt {n_behaviours} behaviours and {n_topics} topics"
        if self.corpus is None:
            return learnt
        return (
            f"{learnt} from {len(self.corpus)} documents ({self.corpus.n_tokens.sum():.10g} "
            f"words): {self.model.score(self.corpus):.4f} nats per word"
        )

    def detector(self, **options: Any) -> Detector:
        """Return a detector with this model; `options` are those of `Detector`."""
        return Detector(self.model, self.calibration, habits=self.habits, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model and calibration to one safe file, whole or not at all."""
        header, tensors = model_contents(self.model)
        for part in (self.calibration, self.habits):
            if part is not None:
                own = part.contents()
                header, tensors = header | own.header, tensors | own.tensors
        write_tensors(path, kind=KIND, version=VERSION, header=header, tensors=tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SceneModel":
        """Read a file that `save` wrote, or that habitus 0.1 wrote; nothing in it is executed."""
        contents = read_tensors(path, kind=KIND, version=VERSION)
        try:
            return cls(
                restore_model(contents),
                Calibration.from_contents(contents),
                HabitModel.from_contents(contents),
            )
        except (HabitusError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(
                f"{Path(path)}: not a model this habitus understands: {error}"
            ) from error


def learn_scene(
    corpus: Corpus, *, progress: ProgressCallback | None = None, **options: Any
) -> SceneModel:
    """Learn a model of a scene from its normal footage, and calibrate it.

    Parameters
    ----------
    corpus
        Normal footage. What little is unusual in it does no harm.
    progress
        Told of every iteration: first of the stage "learning", then of "calibrating", then of
        "learning habits".
    options
        Parameters of `MarkovClusteringTopicModel`.

    Returns
    -------
    SceneModel
        Its calibration is None, with a note, where no document can be held out.
    """
    model = MarkovClusteringTopicModel(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model.fit(corpus, callback=_learning_callback(model, corpus, progress))
        notes = [f"{note}; left uniform" for note in model.degenerate_]
        calibration = None
        try:
            calibration = calibrate(model, corpus, progress=progress)
        except InvalidInputError as error:
            notes.append(f"not calibrated: {error}")
    habits = _learnt_habits(corpus, notes, progress)
    return SceneModel(model, calibration, habits, tuple(notes), corpus)


def _learnt_habits(
    corpus: Corpus, notes: list[str], progress: ProgressCallback | None
) -> HabitModel | None:
    """Return the habits of a corpus with a vocabulary; None, and a note, where nothing moves."""
    if corpus.vocabulary is None:
        return None
    try:
        return learn_habits(corpus, progress=progress)
    except InvalidInputError as error:
        notes.append(f"no habits: {error}")
        return None


def _learning_callback(
    model: MarkovClusteringTopicModel, corpus: Corpus, progress: ProgressCallback | None
) -> Callable[[int, float], None] | None:
    """Return a callback of `fit` that counts the iterations of all restarts."""
    if progress is None:
        return None
    n_tokens, done = max(corpus.n_tokens.sum(), 1.0), 0

    def report(iteration: int, objective: float) -> None:
        nonlocal done
        done += 1
        note = f"{objective / n_tokens:.4f} nats per word"
        progress(Progress("learning", done, model.n_steps, note))

    return report
