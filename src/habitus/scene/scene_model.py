"""A scene's model with its calibration: what is learnt once, saved in one file, judged with."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple, NotRequired

import numpy as np

from habitus.arrays import Indices
from habitus.corpus import Corpus, ShardedCorpus, Vocabulary
from habitus.corpus.stands import StandingCells
from habitus.errors import DegenerateWarning, InvalidInputError
from habitus.habits.votes import Votes
from habitus.jobs.workers import Workers, compile_ahead
from habitus.model import TopicModel
from habitus.model.inspection import expected_durations, long_run_shares
from habitus.model.learning import n_threads_of
from habitus.model.model_file import FORMAT as MODEL_FORMAT
from habitus.model.model_file import LAYOUTS as MODEL_LAYOUTS
from habitus.model.model_file import (
    ModelHeader,
    model_contents,
    restore_model,
    sizes_of,
    understood,
)
from habitus.progress import ProgressCallback
from habitus.rarity import counted
from habitus.scene.calibration import LAYOUTS as CALIBRATION_LAYOUTS
from habitus.scene.calibration import Calibration, CalibrationSettings, IterationCounter, calibrate
from habitus.scene.detector import Detector
from habitus.scene.events import Event, TrackPoint, judge_moment, standing_of
from habitus.scene.fleet import Fleet
from habitus.scene.habit_learning import learn_habits
from habitus.scene.habit_model import LAYOUTS as HABIT_LAYOUTS
from habitus.scene.habit_model import HabitHeader, HabitModel

KERNELS = "habitus.scene.ahead"
"""What compiles the kernels of learning and judging, in another process."""
MOST_LEARNT = 21_600
"""Documents that topics and behaviours are learnt from at most: six hours of one-second ones.

Habits are learnt from all documents, in one pass."""
SEGMENT = 100
"""Consecutive documents that are taken together where there are more."""


class SceneHeader(ModelHeader):
    """Header of a model file with calibration and habits."""

    calibration: NotRequired[CalibrationSettings]
    habits: NotRequired[HabitHeader]


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
    >>> scene
    SceneModel(4 behaviours, 8 topics)
    >>> detector = scene.detector(alerts_per_day=24)
    >>> sum(judgement.abnormal for judgement in detector.judge(corpus))
    0
    """

    model: TopicModel
    calibration: Calibration | None = None
    """None where no document was long enough to judge."""
    habits: HabitModel | None = None
    """Habits of places; None where the corpus has no vocabulary."""
    notes: tuple[str, ...] = ()
    """What there is to say about the learning, one line each."""
    corpus: Corpus | ShardedCorpus | None = None
    """The documents it was learnt from; not saved."""

    def __repr__(self) -> str:
        _, n_topics, n_behaviours = self.model.sizes
        sizes = f"{counted(n_behaviours, 'behaviour')}, {counted(n_topics, 'topic')}"
        return f"SceneModel({sizes}{(self.habits and f', {self._habits_of()}') or ''})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the sizes, and how long each behaviour lasts."""
        xi, clip = self.model.parameters_.xi, self.model.clip_
        behaviours = zip(long_run_shares(xi), expected_durations(xi) * clip, strict=True)
        rows = "".join(
            f"<tr><td>{number}</td><td>{share:.0%}</td><td>{seconds:.3g} s</td></tr>"
            for number, (share, seconds) in enumerate(behaviours, start=1)
        )
        head = "<tr><th>behaviour</th><th>share of the time</th><th>lasts</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>"

    def _habits_of(self) -> str:
        n_documents = 0.0 if self.habits is None else self.habits.all_counts.n_documents
        return f"habits of {counted(round(n_documents), 'document')}"

    def summary(self) -> str:
        """Return sizes of the model, and of the footage it was learnt from, in one line."""
        _, n_topics, n_behaviours = self.model.sizes
        learnt = f"learnt {counted(n_behaviours, 'behaviour')} and {counted(n_topics, 'topic')}"
        if self.corpus is None:
            return f"{learnt}; {self._habits_of()}" if self.habits is not None else learnt
        documents = counted(len(self.corpus), "document")
        return (
            f"{learnt} from {documents} ({self.corpus.n_tokens.sum():.10g} "
            f"words): {self.model.score(spread_evenly(self.corpus)):.4f} nats per word"
        )

    def detector(self, **options: Any) -> Detector:
        """Return a detector with this model; `options` are those of `Detector`."""
        return Detector(self.model, self.calibration, habits=self.habits, **options)

    def updated(self, corpus: Corpus, *, half_life: float | None = None) -> "SceneModel":
        """Return the model with further normal footage; the earlier footage is not needed.

        The new documents are judged before they are learnt from, and their scores join those of
        held-out footage. Habits then count them, and their looks join those of the scene. Topics
        and behaviours stay as they are.

        Parameters
        ----------
        corpus
            Further footage of the same camera, in the words that the habits were learnt from.
        half_life
            Seconds of further footage after which older footage counts half; see
            `HabitModel.updated`.
        """
        habits = self._known_habits("updated", "update")
        if corpus.clip != self.model.clip_:
            raise InvalidInputError(
                f"the model has documents of {self.model.clip_:g} s, this footage has documents of "
                f"{corpus.clip:g} s: extract it with clip={self.model.clip_:g}",
                parameter="clip",
            )
        calibration, behaviours, turns = self.calibration, None, None
        if calibration is not None:
            behaviours, turns = calibration.behaviours_of(self.model, corpus)
            calibration = calibration.updated(self.model, corpus, behaviours)
        return SceneModel(
            self.model.with_looks(corpus.looks),
            calibration,
            habits.updated(
                corpus,
                half_life=half_life,
                behaviours=behaviours,
                turns=None if turns is None else turns.of,
            ),
            ("topics and behaviours are those of the first footage; habits were updated",),
        )

    def accept(
        self, event: Event, *, recent: Sequence[Event] = (), times: float | None = None
    ) -> "Acceptance":
        """Count all documents of an event as normal; `withdraw` takes that back.

        They are counted once, or as many of `TIMES` as it takes until none is an alarm again. What
        two in a row show together is counted as they are: the same footage in documents that begin
        half a second later shows parts of both.

        Parameters
        ----------
        event
            An event by the measure "habits".
        recent
            Alarms to judge again.
        times
            How often they are counted, where that is known.

        Returns
        -------
        Acceptance
            The new model, and which of the recent alarms it would not raise. Of an event of 0.4,
            its strongest document is counted once: it may take several to silence an alarm.
        """
        before = self._known_habits("told what is normal", "model")
        moments = self._moments(event, before)
        if times is not None:
            habits = before.accept_all(moments, clock=event.minute, times=times)
            scene = replace(self, habits=habits)
            return Acceptance(scene, scene.silenced(recent))
        most = max(before.all_counts.n_documents / len(moments), MANY_TIMES)
        tried = [times for times in TIMES if times <= most] if event.track else TIMES[:1]
        for times in tried:
            habits = before.accept_all(moments, clock=event.minute, times=times)
            if _is_quiet(event, habits, MARGIN):
                break
        scene = replace(self, habits=habits)
        return Acceptance(scene, scene.silenced(recent))

    def withdraw(self, event: Event) -> "SceneModel":
        """Return the model without an event that was accepted, to the bit as if it never was."""
        habits = self._known_habits("told what is normal", "model")
        moments = self._moments(event, habits)
        return replace(self, habits=habits.withdraw_all(moments, clock=event.minute))

    def _moments(self, event: Event, habits: HabitModel) -> list[tuple[Votes, StandingCells]]:
        """Return what is counted where an event is normal: see `accept`."""
        v, track = habits.vocabulary, [point for point in event.track if point.moment]
        in_a_row = (
            (one, other)
            for one, other in pairwise(track)
            if other.time - one.time < 1.5 * self.model.clip_
        )
        together = (
            _together(votes.moment, others.moment, v)
            for one, other in in_a_row
            for votes, others in ((one, other), (other, one))
        )
        between = [(votes, StandingCells.unknown()) for votes in together]
        return _moments(event, habits) + between

    def silenced(self, recent: Sequence[Event]) -> list[Event]:
        """Return the alarms none of whose documents is below their threshold any more."""
        habits = self._known_habits("told what is normal", "model")
        return [
            event
            for event in recent
            if event.alarm and _documents(event) and _moments(event, habits)
            if _is_quiet(event, habits)
        ]

    def _known_habits(self, done: str, parameter: str) -> HabitModel:
        if self.habits is None:
            raise InvalidInputError(
                f"this model has no habits, so it cannot be {done}: learn it anew from its "
                "footage with this version of habitus",
                parameter=parameter,
            )
        return self.habits

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model and calibration to one safe file, whole or not at all."""
        header, tensors = model_contents(self.model)
        for part in (self.calibration, self.habits):
            if part is not None:
                contents = part.contents()
                header, tensors = header | contents.header, tensors | contents.tensors
        FORMAT.write(path, header, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SceneModel":
        """Read a file that `save` wrote; nothing in it is executed."""
        contents = FORMAT.read(path)
        with understood(path):
            return cls(
                restore_model(contents, TopicModel),
                Calibration.from_contents(contents),
                HabitModel.from_contents(contents),
            )


def _sizes(header: SceneHeader) -> dict[str, int | range]:
    """Return the sizes of arrays that the header of a scene model states."""
    sizes = dict(sizes_of(header))
    if (habits := header.get("habits")) is not None:
        v = habits["vocabulary"]
        sizes |= {"cells": v.n_cells, "directions": v.directions, "speeds": v.speeds}
        sizes["turns"] = header["settings"]["n_behaviours"] ** 2
    return sizes


FORMAT = MODEL_FORMAT._replace(
    schema=SceneHeader,
    layouts=MODEL_LAYOUTS | CALIBRATION_LAYOUTS | HABIT_LAYOUTS,
    sizes=_sizes,
)


class Acceptance(NamedTuple):
    """What accepting an event did."""

    scene: SceneModel
    """The model in which the event is normal."""
    silenced: list[Event]
    """Those of the recent alarms that this model would not raise."""


TIMES, MANY_TIMES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0), 100.0
"""How often the documents of an accepted event are counted: the least that silences it, and more
than `MANY_TIMES` only where they stay fewer than those that were learnt from."""
MARGIN = 1.0
"""Nats above its threshold from which on it is silenced: no two recordings are quite the same."""


def _documents(event: Event) -> list[Event | TrackPoint]:
    """Return the documents of an event that can be judged anew, its strongest one first."""
    if not event.moment and not event.standing:
        return []
    documents: list[Event | TrackPoint] = [event, *event.track]
    return [document for document in documents if document.moment or document.standing]


def _moments(event: Event, habits: HabitModel) -> list[tuple[Votes, StandingCells]]:
    """Return the votes of all documents of an event, and what stands in them, each once."""
    documents = _documents(event)
    if not documents:
        raise InvalidInputError(
            "this event has no moment that can be counted: detect it anew by the measure habits",
            parameter="events",
        )
    unlike = {(one.moment, one.standing, one.ages): one for one in documents}
    return [_moment(document, habits.vocabulary) for document in unlike.values()]


def _together(codes: Sequence[int], others: Sequence[int], v: Vocabulary) -> Votes:
    """Return the votes of two documents as one: where both have one, the first does."""
    by_cell = {code // v.per_cell: code for code in (*others, *codes)}
    return Votes.of_codes(np.array([by_cell[cell] for cell in sorted(by_cell)]), v)


def _moment(document: Event | TrackPoint, v: Vocabulary) -> tuple[Votes, StandingCells]:
    codes, standing = np.array(document.moment, dtype=np.int64), standing_of(document)
    votes = Votes.of_codes(codes, v)
    fits = codes.min(initial=0) >= 0 and codes.max(initial=-1) < v.n_words
    stands = standing.cells.max(initial=-1) < v.n_cells
    stands &= len(standing.cells) == len(standing.ages)
    if not fits or not stands or (np.diff(votes.cells) < 1).any():
        raise InvalidInputError(
            "this event was not found with this model: its moment does not fit the grid of "
            f"{v.rows} x {v.columns} cells",
            parameter="events",
        )
    return votes, standing


def _is_quiet(event: Event, habits: HabitModel, margin: float = 0.0) -> bool:
    """Return whether no document of an event would be an alarm by these habits."""
    judged = (judge_moment(event, habits, document) for document in _documents(event))
    return all(judgement.normality >= event.threshold + margin for judgement in judged)


def learn_scene(
    corpus: Corpus | ShardedCorpus,
    *,
    fleet: Fleet | None = None,
    half_life: float | None = None,
    workers: Workers | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> SceneModel:
    """Learn a model of a scene from its normal footage, and calibrate it.

    Parameters
    ----------
    corpus
        Normal footage. What little is unusual in it does no harm. Shards are read one after the
        other, and the result is to the bit that of the same documents in one corpus.
    fleet
        What other cameras have in common, for a camera with a few minutes of footage: habits take
        what they cannot know yet from there. Topics and behaviours do not.
    half_life
        Seconds of further footage after which older footage counts half in habits: see
        `learn_habits`. Topics and behaviours do not fade.
    workers
        What carries out restarts and folds, a task each, and, where it can, passes over shards;
        threads of this process where None. It never changes the result.
    progress
        Called after every iteration: first of the stage "learning", then of "calibrating", then of
        "learning habits".
    options
        Parameters of `TopicModel`.

    Returns
    -------
    SceneModel
        Its calibration is None, with a note, where no document can be held out.

    Notes
    -----
    Of more than `MOST_LEARNT` documents the topic model is learnt, and calibrated, from segments
    that are spread evenly over the footage. Habits are learnt from all documents.
    """
    compile_ahead(KERNELS)
    if fleet is not None and corpus.vocabulary is not None:
        fleet.check_fits(corpus.vocabulary, corpus.clip)
    if isinstance(corpus, ShardedCorpus):
        corpus = corpus.with_workers(workers)
    model, spread = TopicModel(**options), spread_evenly(corpus)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        n_tokens = max(spread.n_tokens.sum(), 1.0)
        report = progress and IterationCounter("learning", model, progress, n_tokens=n_tokens)
        model.fit(spread, callback=report, workers=workers)
        notes = [f"{note}; left uniform" for note in model.degenerate_]
        if len(spread) < len(corpus):
            notes.append(
                f"topics and behaviours were learnt from {len(spread)} of the {len(corpus)} "
                "documents, spread evenly over the footage; habits from all"
            )
        calibration, behaviours, turns = None, None, None
        try:
            calibration = calibrate(model, spread, workers=workers, progress=progress)
            behaviours, turns = calibration.behaviours_of(model, corpus)
            # Of those that the model has learnt from, by models that have not.
            learnt = spread_numbers(len(corpus)) if len(spread) < len(corpus) else slice(None)
            behaviours[learnt] = calibration.plug_in.scores["tail"]
        except InvalidInputError as error:
            notes.append(f"not calibrated: {error}")
    n_threads = n_threads_of(model.n_jobs)
    habits = _learnt_habits(
        corpus,
        notes,
        behaviours=behaviours,
        turns=turns,
        fleet=fleet,
        half_life=half_life,
        n_threads=n_threads,
        progress=progress,
    )
    if isinstance(corpus, ShardedCorpus):
        corpus = corpus.with_workers(None)
    return SceneModel(model, calibration, habits, tuple(notes), corpus)


def spread_evenly(corpus: Corpus | ShardedCorpus, most: int = MOST_LEARNT) -> Corpus:
    """Return at most so many documents: segments spread evenly, from the first to the last.

    Of shards, only those that hold such documents are read, one after the other.

    Examples
    --------
    >>> part = spread_evenly(Corpus(np.ones((1000, 1))), most=300)
    >>> len(part), part.lengths.tolist(), part.times[[0, -1]].tolist()
    (300, [100, 100, 100], [0.0, 999.0])
    """
    if len(corpus) > most:
        return corpus.take(spread_numbers(len(corpus), most))
    return corpus if isinstance(corpus, Corpus) else corpus.joined()


def spread_numbers(n_documents: int, most: int = MOST_LEARNT) -> Indices:
    """Return the numbers of the documents that `spread_evenly` takes of more than `most`."""
    starts = np.linspace(0, n_documents - SEGMENT, most // SEGMENT).astype(np.int64)
    return np.asarray((starts[:, None] + np.arange(SEGMENT)).ravel())


def _learnt_habits(
    corpus: Corpus | ShardedCorpus, notes: list[str], *, fleet: Fleet | None, **options: Any
) -> HabitModel | None:
    """Return the habits of a corpus with a vocabulary; None, and a note, where nothing moves."""
    if corpus.vocabulary is None:
        return None
    try:
        habits = learn_habits(corpus, fleet=fleet, **options)
    except InvalidInputError as error:
        notes.append(f"no habits: {error}")
        return None
    if fleet is not None and not habits.leans_on_fleet:
        notes.append("the fleet was not used: its cameras are unlike this one")
    return habits
