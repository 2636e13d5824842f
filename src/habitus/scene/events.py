"""Events: abnormal documents that follow each other, joined, localised and explained."""

import json
import os
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from habitus.arrays import Array
from habitus.corpus.clocks import NO_CLOCK, clock_text, clocks_since, parse_clock
from habitus.corpus.stands import StandingCells
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, InvalidInputError
from habitus.files import checked_path
from habitus.habits.turns import NO_TURN
from habitus.habits.votes import Votes
from habitus.model.inspection import long_run_shares
from habitus.scene.detector import BagLike, Detector, Judgement
from habitus.scene.explanation import HabitFinding, find_unusual
from habitus.scene.habit_model import HabitJudgement, HabitModel
from habitus.scene.localisation import (
    UNNAMED,
    Box,
    Placement,
    SceneNames,
    boxes_of,
    expectation,
    heaviest,
    least_likely,
    motion_in_words,
    turn_in_words,
)
from habitus.scene.thresholds import AlarmLimit
from habitus.schema import (
    Count,
    Nats,
    NotNegative,
    Number,
    Pixels,
    Text,
    Time,
    WordCount,
    decoded,
)

SCHEMA = 1
FAULT = '{"habitus": "fault", '
"""What a line starts with that is no event: nothing could be judged, see `CameraFault`."""
MOST_POINTS, MOST_HOT = 32, 16
"""Documents of an event that its track has at most, and unusual cells of each."""
N_TOP = 10
"""Least likely words that an event is localised by, as in the paper."""


@dataclass(frozen=True)
class TrackPoint:
    """One document of an event: where it was unusual, and what moved."""

    time: Time
    """Start of the document, in seconds of video."""
    normality: Nats
    boxes: tuple[Box, ...]
    """As of the event."""
    heat: tuple[tuple[Pixels, Pixels, Pixels, Pixels, Nats], ...] = ()
    """By habits, the most unusual cells: left, top, right, bottom, and their excess in nats."""
    moment: tuple[WordCount, ...] = ()
    """By habits, the votes of the document, as of the event; so are `behaviours` and `turn`."""
    behaviours: Nats = 0.0
    turn: Count | None = None
    standing: tuple[Count, ...] = ()
    """As of the event, and so are `ages`."""
    ages: tuple[Count, ...] = ()


@dataclass(frozen=True)
class Event:
    """Something unusual: when, where and why."""

    source: Text
    """The video, stream or corpus it was seen in."""
    start: Time
    """In seconds of video, as `end` and `peak`."""
    end: Time
    peak: Time
    """Start of the strongest document."""
    normality: Nats
    """Of the strongest document, by the measure in use: the lower, the less usual."""
    threshold: Number
    """Documents of lower normality are abnormal."""
    behaviour: Count
    """Of the strongest document, counted from 1."""
    expected: tuple[NotNegative, ...]
    """Probability of each behaviour before the strongest document was seen."""
    boxes: tuple[Box, ...]
    """Where, in pixels of the camera's frame: left, top, right, bottom; the strongest first."""
    words: tuple[WordCount, ...]
    """The least likely words of the strongest document, the least likely first."""
    surprise: Nats
    """Of the strongest document, -ln p(x_t | x_{1:t-1}) in nats: misfit plus shift."""
    misfit: Nats
    """The part of it that fits no behaviour."""
    shift: Nats
    """The part of it that is a behaviour out of its turn."""
    explanation: Text
    clock: Text | None = None
    """Date and time of the start (ISO 8601), for a live source."""
    local_time: Text | None = None
    """Date and time of the strongest document as a clock on the wall shows it, to the minute and
    without a zone, where that is known: "2026-11-16T03:12"."""
    thumbnail: Text | None = None
    """Picture of the strongest moment, beside the file of events."""
    surprisals: tuple[Nats, ...] = ()
    """-ln p(word | x_{1:t-1}) of each of `words`."""
    alarm: bool = True
    """False for a moment that is among the most unusual ones but above the threshold."""
    probability: NotNegative | None = None
    """That a document of normal footage is as unusual as the strongest one, where that is known."""
    rarity: Text = ""
    """The same in words, such as "about once in 3 hours of normal footage"."""
    cue: Text = ""
    """By the measure "habits", the cue that spoke, such as "direction, scan"."""
    moment: tuple[WordCount, ...] = ()
    """By the measure "habits", the votes of the strongest document: see `habitus.habits`."""
    behaviours: Nats = 0.0
    """By the measure "habits", the normality of the strongest document by the topic model."""
    turn: Count | None = None
    """By the measure "habits", the turn of the strongest document, where that is a cue: see
    `habitus.habits.turns`."""
    track: tuple[TrackPoint, ...] = ()
    """Its documents in time order; of a long event, some that are spread over it."""
    standing: tuple[Count, ...] = ()
    """Cells of the thing that stands, where that is the cue: see `habitus.habits.standing`. Then
    the event starts when it came."""
    ages: tuple[Count, ...] = ()
    """For how many documents it had stood in each of them."""
    first_document: Count | None = None
    """Number of its first document in the judged corpus; None for a live source."""
    last_document: Count | None = None
    peak_document: Count | None = None
    camera: Text = ""
    """In an archive, whose recording it is; then times are seconds since the epoch."""
    false_alarms_per_day: NotNegative | None = None
    """In an archive, how many alarms normal footage of the camera raises in a day at a threshold of
    this normality: by it, moments of all cameras are ranked."""

    zone: Text = ""
    """Name of the zone that it is in, where people drew some: see `habitus.site.zones`."""
    behaviour_name: Text = ""
    """What people call the behaviour."""

    def __post_init__(self) -> None:
        """Check the order of the times."""
        if not self.start <= self.peak <= self.end or self.start == self.end:
            raise InvalidInputError(
                "an event must end after it starts and have its peak between, found "
                f"{self.start:g} to {self.end:g} s with its peak at {self.peak:g} s"
            )

    @property
    def minute(self) -> int:
        """The local time in minutes, as `Corpus.clocks` has it; -1 where it is not known."""
        if self.local_time is None:
            return NO_CLOCK
        return int(clocks_since(parse_clock(self.local_time, "events"), 0.0))

    @property
    def quiet(self) -> bool:
        """Whether it would be an alarm, but for its zone or for too many alarms before it."""
        return not self.alarm and self.normality < self.threshold

    def to_json(self) -> dict[str, Any]:
        """Return the event as plain values, with the version of their meaning."""
        return {"habitus": "event", "version": SCHEMA, **asdict(self)}

    def line(self) -> str:
        """Return the event as one line of JSON Lines."""
        return json.dumps(self.to_json(), allow_nan=False)

    def in_words(self) -> str:
        """Return when, why and how rare, in one line for a person; and which camera."""
        reason = "; ".join(part for part in (self.explanation, self.rarity) if part)
        if self.camera:
            return f"{self.camera}  {(self.clock or '').replace('T', ' ')[:19]}  {reason}"
        return f"{clock(self.start)}-{clock(self.end)}  {reason}"


class AbnormalWords(NamedTuple):
    """The least likely words of a document, and where they are."""

    words: tuple[int, ...]
    """Word ids, the least likely first."""
    surprisals: tuple[float, ...]
    """-ln p(word | x_{1:t-1}) of each."""
    weights: tuple[float, ...]
    """Surprisal of each, times its number of occurrences."""
    boxes: tuple[Box, ...]
    """Around groups of them, the heaviest first."""
    finding: HabitFinding | None = None
    """By the measure "habits", where and why."""


class Joiner:
    """Join abnormal documents that follow each other, each an event of its own, to events.

    Nothing but the strongest document of the event under way is remembered. Up to `join` usual
    documents, of `clip` seconds each, may lie within an event; `limit` keeps a budget.
    """

    def __init__(self, join: int, clip: float, limit: AlarmLimit | None) -> None:
        self.join, self.clip, self.limit = join, clip, limit
        self.open: Event | None = None
        """The event under way, if any."""
        self.quiet = 0

    def take(self, document: Event, *, listed: bool = False) -> Event | None:
        """Take the next document, which is abnormal; return the event that it ended, if it did.

        Where it is no alarm, or is held back, it belongs to an event only if it is `listed`.
        """
        self._count(1)
        document = self._limited(document)
        if not (document.alarm or listed):
            return self._wait(1)
        self.quiet = 0
        self.open = document if self.open is None else _joined(self.open, document)
        return None

    def skip(self, n_documents: int = 1) -> Event | None:
        """Take further documents, which are usual; return the event that they ended, if any."""
        self._count(n_documents)
        return self._wait(n_documents)

    def close(self) -> Event | None:
        """End the event under way, if any, and return it."""
        ended, self.open = self.open, None
        self.quiet = 0
        return ended

    def _count(self, n_documents: int) -> None:
        if self.limit is not None:
            self.limit.seconds += n_documents * self.clip

    def _wait(self, n_documents: int) -> Event | None:
        self.quiet += n_documents
        return self.close() if self.quiet > self.join else None

    def _limited(self, document: Event) -> Event:
        """Return a document, which is an alarm as far as the budget goes."""
        if self.limit is None or not document.alarm:
            return document
        if self.open is not None and self.open.alarm:
            self.limit.lower(document.normality)
            return document
        return replace(document, alarm=self.limit.allows(document.normality, document.zone))


class EventJoiner(Joiner):
    """Join abnormal documents that follow each other to events, as they come.

    `source` names the video, stream or corpus; the `N_TOP` least likely words localise, where
    habits do not. Where the detector has a budget, `limit` keeps it.
    """

    def __init__(self, detector: Detector, *, source: str = "") -> None:
        budget = detector.alerts_per_day
        limit = None if budget is None else AlarmLimit(budget)
        super().__init__(detector.join, detector.model.clip_, limit)
        self.detector, self.model = detector, detector.model
        self.source = source
        self.long_run = long_run_shares(self.model.parameters_.xi)
        self.names: SceneNames = UNNAMED
        self.behaviour_before = -1

    @cached_property
    def word_given_behaviour(self) -> Array:
        """p(word | behaviour): only what is unusual by the topic model needs it."""
        return self.model.parameters_.word_given_behaviour

    def add(
        self,
        time: float,
        document: BagLike,
        judgement: Judgement,
        threshold: float,
        *,
        number: int | None = None,
        where: AbnormalWords | None = None,
    ) -> Event | None:
        """Take the next document; return the event that it ended, if it did.

        `time` is its start in seconds, `number` that of the document in its corpus, `where` what
        `localise` returned for it, if that is known already.
        """
        before, self.behaviour_before = self.behaviour_before, judgement.behaviour
        if not judgement.abnormal:
            return self.skip()
        where = where or self.localise(document, judgement)
        placed = self.names.placed(where.boxes)
        event = self._event(float(time), judgement, where, before, threshold, number)
        listed = placed.threshold is not None and event.normality < placed.listed
        return self.take(_as_placed(event, placed), listed=listed)

    def new_sequence(self) -> Event | None:
        """Start a new sequence; return the event that ends with that, if any."""
        self.behaviour_before = -1
        return self.close()

    def localise(self, document: BagLike, judgement: Judgement) -> AbnormalWords:
        """Return where a judged document is unusual."""
        habit = judgement.habit
        if habit is not None and self.detector.habits is not None and not habit.by_behaviours:
            return self._by_habits(habit, self.detector.habits)
        counts = np.asarray(document.counts)
        top = least_likely(judgement.surprisals, counts, N_TOP)
        words, surprisals = np.asarray(document.words)[top], judgement.surprisals[top]
        weights = surprisals * counts[top]
        v = self.model.vocabulary_
        boxes = boxes_of(words, weights, v) if v is not None else []
        return AbnormalWords(
            tuple(words.tolist()), tuple(surprisals.tolist()), tuple(weights.tolist()), tuple(boxes)
        )

    def moment(
        self,
        time: float,
        document: BagLike,
        judgement: Judgement,
        threshold: float,
        *,
        number: int,
        before: int = -1,
    ) -> Event:
        """Return one document as an event of its own, no alarm, whether it is abnormal or not.

        `before` is the behaviour of the document before it, counted from 0; -1 if there is none.
        """
        where = self.localise(document, judgement)
        moment = self._event(time, judgement, where, before, threshold, number)
        return replace(moment, alarm=False)

    def _by_habits(self, judgement: HabitJudgement, habits: HabitModel) -> AbnormalWords:
        """Return where a document is unusual by habits, in the model's words."""
        finding = find_unusual(judgement, habits, self.model.clip_, self.names)
        codes = judgement.votes.codes(habits.vocabulary)[finding.votes]
        coarser = self.model.vocabulary_
        words = codes if coarser is None else habits.vocabulary.words_in(coarser, codes)
        excesses = tuple(finding.excesses.tolist())
        return AbnormalWords(tuple(words.tolist()), excesses, excesses, finding.boxes, finding)

    def _event(
        self,
        time: float,
        judgement: Judgement,
        where: AbnormalWords,
        before: int,
        threshold: float,
        number: int | None,
    ) -> Event:
        """Return a document as an event."""
        finding, habit, point = where.finding, judgement.habit, self._point(time, judgement, where)
        earlier = max(point.ages, default=1) - 1
        return Event(
            source=self.source,
            start=time - earlier * self.model.clip_,
            end=time + self.model.clip_,
            peak=time,
            normality=judgement.normality,
            threshold=threshold,
            behaviour=judgement.behaviour + 1,
            expected=tuple(judgement.predicted.tolist()),
            boxes=where.boxes,
            words=where.words,
            surprise=-judgement.log_evidence,
            misfit=judgement.misfit,
            shift=judgement.shift,
            explanation=finding.explanation if finding else self._reasons(where, judgement, before),
            surprisals=where.surprisals,
            alarm=judgement.abnormal,
            probability=self.detector.probability(judgement.normality),
            rarity=self.detector.rarity(judgement.normality),
            cue=finding.cue if finding else "behaviours" if habit else "",
            moment=point.moment,
            behaviours=point.behaviours,
            turn=point.turn,
            track=(point,),
            local_time=clock_text(habit.clock) if habit and habit.clock >= 0 else None,
            standing=point.standing,
            ages=point.ages,
            first_document=None if number is None else max(number - earlier, 0),
            last_document=number,
            peak_document=number,
            behaviour_name=self.names.behaviour(judgement.behaviour + 1),
        )

    def _point(self, time: float, judgement: Judgement, where: AbnormalWords) -> TrackPoint:
        """Return a document as a part of an event."""
        point = TrackPoint(time=time, normality=judgement.normality, boxes=where.boxes)
        habit, habits, finding = judgement.habit, self.detector.habits, where.finding
        if habit is None or habits is None:
            return point
        standing = StandingCells.unknown()
        if habit.standing_evidence is not None and habit.by_standing:
            standing = habit.standing.of(habit.standing_evidence.cells)
        return replace(
            point,
            heat=_hottest(finding, habits.vocabulary) if finding else (),
            moment=tuple(habit.votes.codes(habits.vocabulary).tolist()),
            behaviours=habit.behaviours,
            turn=habit.turn if habit.turn_evidence else None,
            standing=tuple(int(cell) for cell in standing.cells),
            ages=tuple(int(age) for age in standing.ages),
        )

    def _reasons(self, where: AbnormalWords, judgement: Judgement, before: int) -> str:
        """Say why a document is unusual by the topic model."""
        transitions = self.model.transitions_
        shift = judgement.shift
        turn = turn_in_words(before, judgement.behaviour, shift, transitions, self.names)
        reasons = [reason for reason in (turn, self._motion(where, judgement)) if reason]
        return "; ".join(reasons) or "less usual than normal footage"

    def _motion(self, where: AbnormalWords, judgement: Judgement) -> str | None:
        """Say what is unusual about the motion, and in which part of the frame."""
        v = self.model.vocabulary_
        if v is None or not where.boxes:
            return None
        cells, move = heaviest(np.array(where.words), np.array(where.weights), v)
        expected = expectation(
            cells, self.word_given_behaviour, judgement.predicted, self.long_run, v
        )
        motion = motion_in_words(move, expected, self.names)
        return f"{motion}, {self.names.place(where.boxes[0], v)}"


def _as_placed(event: Event, placed: Placement) -> Event:
    """Return a document's event, an alarm or not by where it is."""
    if placed.threshold is None:
        return event
    alarm = event.normality < placed.threshold and not placed.quiet
    return replace(event, zone=placed.zone, threshold=placed.threshold, alarm=alarm)


def _joined(event: Event, later: Event) -> Event:
    """Return one event: the stronger of the two, over the time of both.

    An alarm is stronger than what is none, as in another zone.
    """
    stronger = min(event, later, key=lambda one: (not one.alarm, one.normality))
    return replace(
        stronger,
        start=event.start,
        end=later.end,
        track=_spread((*event.track, *later.track), stronger.peak),
        first_document=event.first_document,
        last_document=later.last_document,
    )


def _spread(track: tuple[TrackPoint, ...], peak: float) -> tuple[TrackPoint, ...]:
    """Return a track of at most `MOST_POINTS`: of more, every second one and the strongest."""
    if len(track) <= MOST_POINTS:
        return track
    last = len(track) - 1
    return tuple(
        point for n, point in enumerate(track) if n % 2 == 0 or n == last or point.time == peak
    )


def _hottest(finding: HabitFinding, v: Vocabulary) -> tuple[tuple[int, int, int, int, float], ...]:
    """Return the most unusual cells of a document in pixels, and their excess in nats."""
    order = np.argsort(-finding.heat, kind="stable")[:MOST_HOT]
    boxes = v.boxes(v.per_cell * finding.cells[order]).tolist()
    return tuple(
        (*map(int, box), round(float(nats), 2))  # type: ignore[misc]
        for box, nats in zip(boxes, finding.heat[order], strict=True)
    )


def standing_of(document: Event | TrackPoint) -> StandingCells:
    """Return the thing that stands in a document of an event, where that is the cue."""
    cells, ages = (np.array(row, dtype=np.int64) for row in (document.standing, document.ages))
    return StandingCells(cells, ages, bool(document.standing))


def judge_moment(
    event: Event, habits: HabitModel, document: Event | TrackPoint | None = None
) -> HabitJudgement:
    """Judge a document of an event, its strongest by default, by any habits of the same grid."""
    document = document or event
    return habits.judge(
        Votes.of_codes(np.array(document.moment, dtype=np.int64), habits.vocabulary),
        document.behaviours,
        clock=event.minute,
        turn=NO_TURN if document.turn is None else document.turn,
        standing=standing_of(document),
    )


def read_events(path: str | os.PathLike[str]) -> list[Event]:
    """Return the events of a file of JSON Lines, in order of time; see `events_by_line`."""
    return sorted(events_by_line(path).values(), key=lambda event: event.start)


def events_by_line(path: str | os.PathLike[str], *, first: int = 1) -> dict[int, Event]:
    """Return the events of a file of JSON Lines from a line on, by the number of their line.

    The first line is 1. Lines about faults of the camera are left out; a line that is no event is
    a `FileError`.
    """
    file = checked_path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file}: neither a habitus model nor a file of events") from error
    return {
        number: _parsed(file, number, line)
        for number, line in enumerate(lines, start=1)
        if number >= first and line.strip() and not line.startswith(FAULT)
    }


class _Stamp(TypedDict):
    """How a line says what it is."""

    habitus: Literal["event"]
    version: Count


def _parsed(file: Path, number: int, line: str) -> Event:
    try:
        version = decoded(line, _Stamp)["version"]
        if version <= SCHEMA:
            return decoded(line, Event)
    except FileError as error:
        raise FileError(
            f"{file}, line {number}: not an event as habitus writes it: {error}"
        ) from error
    raise FileError(
        f"{file}, line {number}: an event of version {version}, this habitus reads up to "
        f"{SCHEMA}: upgrade habitus"
    )


def clock(seconds: float) -> str:
    """Return hours, minutes and seconds of video.

    Examples
    --------
    >>> clock(59.6), clock(3725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
