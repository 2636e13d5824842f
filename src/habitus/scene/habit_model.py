"""The habits of a scene: judged with, added to, and taken back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, NotRequired

import numpy as np
from annotated_types import Len
from numpy.typing import NDArray
from typing_extensions import TypedDict

from habitus.arrays import Array, Flags, Indices
from habitus.corpus import Condition, Corpus, Vocabulary
from habitus.corpus.clocks import N_WEEK_HOURS, NO_CLOCK, NO_HOUR, hours_of
from habitus.corpus.stands import STANDING, StandingCells, StandingWords
from habitus.corpus.vocabulary import N_DIRECTIONS
from habitus.errors import FileError, InvalidInputError
from habitus.files import Contents
from habitus.habits.contexts import N_CONTEXT_LEVELS
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import (
    CUES,
    STATISTICS,
    DocumentEvidence,
    document_evidence,
    gather_statistics,
)
from habitus.habits.hours import HOUR, HOUR_STATISTICS, gather_hours, hour_evidence, hour_surprisals
from habitus.habits.predictive import N_LEVELS, Concentrations, Habits
from habitus.habits.standing import (
    N_CLASSES,
    StandingCounts,
    StandingEvidence,
    gather_standing,
    standing_evidence,
    standing_surprisals,
)
from habitus.habits.turns import (
    NO_TURN,
    TURN,
    TurnCounts,
    gather_turns,
    turn_evidence,
    turn_habits,
    turn_surprisals,
)
from habitus.habits.votes import DocumentVotes, Votes, votes_of, votes_of_corpus
from habitus.scene.accepted_moments import (
    Moment,
    accepted_moments,
    accepted_tensors,
    moment_of,
    with_accepted_moments,
    with_accepted_standing,
    with_accepted_turns,
)
from habitus.scene.fusion import CueColumns, Fusion
from habitus.schema import (
    BYTE,
    INDEX,
    MOST_NATS,
    REAL,
    AtLeastOne,
    Count,
    Layout,
    NotNegative,
    Positive,
)

MOST_REMEMBERED = 7 * 86_400
"""Held-out documents whose statistics are kept, the latest: a week of one-second documents."""
HALF_LIFE = 14 * 86_400.0
"""Seconds of further footage after which older footage counts half, where a model is learnt anew
night after night: by an archive, by the console."""
PREFIX = "habits."


class LevelConcentrations(TypedDict):
    """One concentration per level for each question: see `habitus.habits.predictive`."""

    place: Annotated[tuple[Positive, ...], Len(N_LEVELS["place"], N_LEVELS["place"])]
    direction: Annotated[tuple[Positive, ...], Len(N_LEVELS["direction"], N_LEVELS["direction"])]
    speed: Annotated[tuple[Positive, ...], Len(N_LEVELS["speed"], N_LEVELS["speed"])]
    hour: NotRequired[Annotated[tuple[Positive, ...], Len(N_CONTEXT_LEVELS, 2 * N_CONTEXT_LEVELS)]]
    """Where the hour is a cue; twice as many where workdays and week-ends are apart."""
    turn: NotRequired[Annotated[tuple[Positive, ...], Len(N_CONTEXT_LEVELS, N_CONTEXT_LEVELS)]]
    """Where the turn is a cue."""
    standing: NotRequired[
        Annotated[tuple[Positive, ...], Len(N_LEVELS["place"], N_LEVELS["place"])]
    ]
    """Where standing is a cue."""


class HabitHeader(TypedDict):
    """What a file's header says of habits."""

    vocabulary: Vocabulary
    least_words: AtLeastOne
    n_documents: NotNegative
    concentrations: LevelConcentrations
    join: Count
    turn_gain: NotRequired[NotNegative]
    """See `Fusion.turn_gain`."""
    standing_trust: NotRequired[NotNegative]
    """See `Fusion.standing_trust`."""


_HELD_OUT, _CUED = "documents of habits", "statistics of habits"
LAYOUTS = {
    f"{PREFIX}{name}": layout
    for name, layout in {
        "direction": Layout(REAL, ("cells", "directions"), False, 0.0, MOST_NATS),
        "speed": Layout(REAL, ("cells", N_DIRECTIONS, "speeds"), False, 0.0, MOST_NATS),
        "hours": Layout(REAL, ("cells", N_WEEK_HOURS), False, 0.0, MOST_NATS),
        "hour_documents": Layout(REAL, (N_WEEK_HOURS,), False, 0.0, MOST_NATS),
        "turns": Layout(REAL, ("cells", N_DIRECTIONS, "turns"), False, 0.0, MOST_NATS),
        "turn_documents": Layout(REAL, ("turns",), False, 0.0, MOST_NATS),
        "stood": Layout(REAL, ("cells", N_CLASSES), False, 0.0, MOST_NATS),
        "stood_documents": Layout(REAL, (1,), False, 0.0, MOST_NATS),
        "levels": Layout(REAL, (len(CUES),), False, -MOST_NATS, MOST_NATS),
        "statistics": Layout(REAL, (_HELD_OUT, _CUED), False, -MOST_NATS, MOST_NATS),
        "judged": Layout(BYTE, (_HELD_OUT,), False, 0, 1),
        "trust": Layout(REAL, (_CUED,), False, 0.0, MOST_NATS),
        "reach": Layout(REAL, (1,), False, 0.0, np.inf),
        "behaviours": Layout(REAL, (_HELD_OUT,), False, -MOST_NATS, MOST_NATS),
        "turn_scans": Layout(REAL, (_HELD_OUT,), False, 0.0, MOST_NATS),
        "standing": Layout(REAL, (_HELD_OUT,), False, 0.0, MOST_NATS),
        "fleet_statistics": Layout(
            REAL, ("documents of the fleet", len(STATISTICS)), False, 0.0, MOST_NATS
        ),
        "fleet_scores": Layout(REAL, ("documents of the fleet",), False, 0.0, MOST_NATS),
        "accepted": Layout(INDEX, ("accepted votes",), False, 0),
        "accepted_lengths": Layout(INDEX, ("accepted moments",), False, 0),
        "accepted_hours": Layout(INDEX, ("accepted moments",), False, 0, NO_HOUR),
        "accepted_times": Layout(REAL, ("accepted moments",), False, 0.0, MOST_NATS),
        "accepted_after": Layout(INDEX, ("accepted moments",), False, 0, 1),
        "accepted_cells": Layout(INDEX, ("accepted cells",), False, 0),
        "accepted_ages": Layout(INDEX, ("accepted cells",), False, 1),
        "accepted_stands": Layout(INDEX, ("accepted moments",), False, 0),
    }.items()
}
"""Arrays of habits in a file."""


class HabitJudgement(NamedTuple):
    """What habits say of one document."""

    normality: float
    """ln of the probability that normal documents are as unusual; 0 or less."""
    rarities: Array
    """Trust times rarity of each of `STATISTICS`, then of `HOUR_STATISTICS` where the hour is a
    cue."""
    votes: Votes
    evidence: DocumentEvidence
    behaviours: float = 0.0
    """Normality by the topic model; 0 where it did not judge."""
    behaviour_rarity: float = 0.0
    """Trust times rarity of that."""
    clock: int = NO_CLOCK
    """Local minute: see `Corpus.clocks`."""
    turn: int = NO_TURN
    """See `habitus.habits.turns`."""
    turn_rarity: float = 0.0
    """Trust times rarity by the turn; 0 where that is no cue."""
    turn_evidence: DocumentEvidence | None = None
    """By the turn alone, where that is a cue and the turn is known."""
    by_turn: bool = False
    """Whether the turn is rarer than anything else, trust apart."""
    standing: StandingCells = StandingCells.unknown()
    standing_rarity: float = 0.0
    """Trust times rarity of what stands; 0 where that is no cue."""
    standing_evidence: StandingEvidence | None = None
    """By what stands, where that is a cue and something stands."""

    @property
    def by_standing(self) -> bool:
        """Whether most of the score is what stands."""
        others = max(float(self.rarities.max()), self.behaviour_rarity)
        return self.standing_evidence is not None and self.standing_rarity > others

    @property
    def strongest(self) -> int:
        """Number of the statistic that is the largest part of the score."""
        return int(self.rarities.argmax())

    @property
    def score(self) -> float:
        """The largest rarity of a statistic, plus that by the topic model and that by the turn."""
        largest = max(float(self.rarities.max()), self.standing_rarity)
        return largest + self.behaviour_rarity + self.turn_rarity

    @property
    def by_behaviours(self) -> bool:
        """Whether most of the score is what the topic model says, and the turn is not why."""
        more = self.behaviour_rarity > max(float(self.rarities.max()), self.standing_rarity)
        return more and not self.by_turn


class JudgedHabits(NamedTuple):
    """What habits say of the documents of a corpus."""

    model: "HabitModel"
    normality: Array
    """0 where not judged."""
    judged: Flags
    votes: DocumentVotes
    cues: CueColumns
    """What all of them say; 0 of the turn and of what stands where that is no cue."""
    clocks: NDArray[np.int32]
    """Local minutes."""
    turns: Indices
    """See `habitus.habits.turns`."""
    words: StandingWords
    """What stands."""

    def judgement(self, t: int) -> HabitJudgement:
        """Return what is said of one document, with its evidence."""
        return self.model.judge(
            self.votes.of(t),
            0.0 if self.cues.behaviours is None else float(self.cues.behaviours[t]),
            clock=int(self.clocks[t]),
            turn=int(self.turns[t]),
            standing=self.words.cells(t),
        )


@dataclass(frozen=True, eq=False)
class HabitModel:
    """Habits of a scene with what normal footage scores by them.

    Examples
    --------
    >>> vocabulary = Vocabulary.of_frame(64, 64)
    >>> to_the_left = vocabulary.words(4, np.arange(8), 1)
    >>> corpus = Corpus.from_word_ids(
    ...     [np.repeat(to_the_left, 3)] * 100, n_words=vocabulary.n_words, vocabulary=vocabulary
    ... )
    >>> from habitus.scene import learn_habits
    >>> model = learn_habits(corpus)
    >>> usual = model.judge(Votes.of_codes(to_the_left, vocabulary))
    >>> other_way = model.judge(Votes.of_codes(to_the_left + 2, vocabulary))
    >>> usual.normality > other_way.normality
    True
    """

    vocabulary: Vocabulary
    least_words: int
    """Words of a cell from which on it votes."""
    counts: HabitCounts
    """All footage, without the accepted moments."""
    concentrations: Concentrations
    levels: Array
    """Level of each cue in nats."""
    fusion: Fusion
    accepted: tuple[Moment, ...] = ()
    """Moments that an operator called normal, in the order of acceptance."""
    turns: TurnCounts | None = None
    """Counts by the turn, likewise without the accepted moments; None where the turn is no cue."""
    stood: StandingCounts | None = None
    """Counts of what stands, likewise; None where that is no cue."""

    @property
    def leans_on_fleet(self) -> bool:
        """Whether other cameras say, as well, how far normal footage goes."""
        return self.fusion.fleet_scores is not None

    @cached_property
    def all_counts(self) -> HabitCounts:
        """The counts with the accepted moments."""
        return with_accepted_moments(self.counts, self.accepted)

    @cached_property
    def habits(self) -> Habits:
        """Surprisals of votes."""
        return Habits.of(self.all_counts, self.concentrations, self.vocabulary)

    @property
    def weeks_apart(self) -> bool:
        """Whether hours of workdays and of week-ends are apart: see `habitus.habits.hours`."""
        return len(self.concentrations.get(HOUR, ())) > N_CONTEXT_LEVELS

    @cached_property
    def hour_surprisals(self) -> Array | None:
        """Surprisals of hours: see `habitus.habits.hours`; None where the hour is no cue."""
        if HOUR not in self.concentrations:
            return None
        place, concentrations = self.habits.place, self.concentrations[HOUR]
        return hour_surprisals(self.all_counts, place, concentrations, self.vocabulary)

    @cached_property
    def all_turns(self) -> TurnCounts | None:
        """Counts by the turn with the accepted moments; None where the turn is no cue."""
        return with_accepted_turns(self.turns, self.accepted, self.vocabulary)

    @cached_property
    def turn_habits(self) -> tuple[Habits, ...]:
        """Habits of each turn: see `habitus.habits.turns`; none where the turn is no cue."""
        if self.all_turns is None:
            return ()
        concentrations, v = self.concentrations[TURN], self.vocabulary
        return turn_habits(turn_surprisals(self.all_turns, self.habits, concentrations, v), v)

    @cached_property
    def all_stood(self) -> StandingCounts | None:
        """Counts of what stands with the accepted moments; None where that is no cue."""
        return with_accepted_standing(self.stood, self.accepted)

    @cached_property
    def standing_surprisals(self) -> Array | None:
        """Surprisals of what stands: see `habitus.habits.standing`; None where that is no cue."""
        if self.all_stood is None:
            return None
        return standing_surprisals(self.all_stood, self.concentrations[STANDING], self.vocabulary)

    def votes(self, words: NDArray[Any], counts: NDArray[Any]) -> Votes:
        """Return the votes of a document in the words of the vocabulary."""
        return votes_of(words, counts, self.vocabulary, self.least_words)

    def judge(
        self,
        votes: Votes,
        behaviours: float = 0.0,
        *,
        clock: int = NO_CLOCK,
        turn: int = NO_TURN,
        standing: StandingCells | None = None,
    ) -> HabitJudgement:
        """Judge the votes of one document, given its normality by the topic model."""
        evidence = document_evidence(votes, self.habits, self.levels, self.vocabulary)
        if self.hour_surprisals is not None:
            hour = int(hours_of(np.array(clock)))
            evidence = evidence.beside(
                hour_evidence(votes, self.hour_surprisals, hour, self.vocabulary)
            )
        rarities = self.fusion.rarities(evidence.statistics[None])[0]
        added = float(self.fusion.behaviour_rarities(np.array([behaviours]))[0])
        judgement = HabitJudgement(0.0, rarities, votes, evidence, behaviours, added, clock, turn)
        if self.turn_habits:
            judgement = self._at_its_turn(judgement)
        if self.standing_surprisals is not None:
            stands = standing or StandingCells.unknown()
            judgement = self._with_standing(judgement, stands, self.standing_surprisals)
        normality = self.fusion.normality_of_scores(np.array([judgement.score]))
        return judgement._replace(normality=float(normality[0]))

    def _at_its_turn(self, judgement: HabitJudgement) -> HabitJudgement:
        """Return a judgement with what its turn says; where that is not known, nothing."""
        if not 0 <= judgement.turn < len(self.turn_habits):
            return judgement._replace(turn_rarity=float(self.fusion.turn_rarities(np.zeros(1))[0]))
        habits = self.turn_habits[judgement.turn]
        evidence = turn_evidence(judgement.votes, habits, self.vocabulary)
        rarity = float(self.fusion.turn_rarities(evidence.statistics)[0])
        rarer = rarity > self.fusion.turn_trust * float(judgement.rarities.max())
        return judgement._replace(turn_rarity=rarity, turn_evidence=evidence, by_turn=rarer)

    def _with_standing(
        self, judgement: HabitJudgement, standing: StandingCells, surprisals: Array
    ) -> HabitJudgement:
        """Return a judgement with what is said of things that stand."""
        evidence = standing_evidence(standing, surprisals, self.vocabulary)
        rarity = float(self.fusion.standing_rarities(np.array([evidence.statistic]))[0])
        seen = evidence if evidence.age else None
        return judgement._replace(standing=standing, standing_rarity=rarity, standing_evidence=seen)

    def judge_all(
        self, corpus: Corpus, behaviours: Array | None = None, turns: Indices | None = None
    ) -> JudgedHabits:
        """Judge all documents of a corpus; the same as `judge` for each.

        Where `behaviours`, the normality by the topic model, are None, all are as usual as can be.
        """
        behaviours = np.zeros(len(corpus)) if behaviours is None else behaviours
        turns = np.full(len(corpus), NO_TURN) if turns is None else turns
        corpus = corpus.summed(self.vocabulary)
        votes = votes_of_corpus(corpus, self.least_words)
        statistics = gather_statistics(votes, self.habits, self.levels, self.vocabulary)
        if self.hour_surprisals is not None:
            hours = hours_of(corpus.clocks)
            by_hour = gather_hours(votes, self.hour_surprisals, hours, self.vocabulary)
            statistics = np.hstack([statistics, by_hour])
        scans = np.zeros(len(corpus))
        if self.turn_habits:
            scans = gather_turns(votes, self.turn_habits, turns, self.vocabulary)
        stands = np.zeros(len(corpus))
        if self.standing_surprisals is not None:
            stands = gather_standing(corpus.standing, self.standing_surprisals, self.vocabulary)
        judged = judged_documents(corpus)
        cues = CueColumns(statistics, behaviours, scans, stands)
        normality = self.fusion.normality(cues)
        return JudgedHabits(
            self,
            np.where(judged, normality, 0.0),
            judged,
            votes,
            cues,
            corpus.clocks,
            turns,
            corpus.standing,
        )

    def updated(
        self,
        corpus: Corpus,
        *,
        half_life: float | None = None,
        behaviours: Array | None = None,
        turns: Indices | None = None,
    ) -> "HabitModel":
        """Return the model with further normal footage, which it has not seen.

        The new documents are judged first: what they score is what unseen footage scores. Of these
        scores the latest `MOST_REMEMBERED` are kept. Levels, concentrations and trust stay.

        Parameters
        ----------
        corpus
            Further footage of the scene.
        half_life
            Seconds of further footage after which older footage counts half: with s seconds added,
            all older counts are multiplied by 2 ** (-s / half_life). Nothing fades where None.
            Accepted moments do not fade.
        behaviours, turns
            As of `judge_all`.
        """
        factor = fading_factor(len(corpus) * corpus.clip, half_life)
        # Without the accepted moments, so that withdrawing one later leaves no trace of it.
        judged = replace(self, accepted=()).judge_all(corpus, behaviours, turns)
        usable, hours = usable_documents(corpus), counted_hours(corpus)
        further = HabitCounts.of(judged.votes, self.vocabulary, usable.sum(), hours)
        by_turn = self.turns
        if by_turn is not None:
            at = counted_turns(corpus, judged.turns)
            further_turns = TurnCounts.of(judged.votes, at, len(by_turn.documents), self.vocabulary)
            by_turn = by_turn.faded(factor) + further_turns
        stood = self.stood
        if stood is not None:
            further_stood = StandingCounts.of(corpus.standing, usable, self.vocabulary)
            stood = stood.faded(factor) + further_stood
        held = self.fusion
        return replace(
            self,
            counts=self.counts.faded(factor) + further,
            fusion=replace(
                held,
                judged=np.concatenate([held.judged, judged.judged])[-MOST_REMEMBERED:],
                **held.cues.latest(judged.cues, MOST_REMEMBERED)._asdict(),
            ),
            turns=by_turn,
            stood=stood,
        )

    def accept(
        self,
        votes: Votes,
        *,
        clock: int = NO_CLOCK,
        standing: StandingCells | None = None,
        times: float = 1.0,
    ) -> "HabitModel":
        """Return the model with a moment counted as normal; `withdraw` takes it back."""
        return self.accept_all([(votes, standing)], clock=clock, times=times)

    def accept_all(
        self,
        moments: Sequence[tuple[Votes, StandingCells | None]],
        *,
        clock: int = NO_CLOCK,
        times: float = 1.0,
    ) -> "HabitModel":
        """Return the model with moments accepted one after the other, as `accept` takes them."""
        further = [
            moment_of(votes, clock, standing, times)._replace(after=n > 0)
            for n, (votes, standing) in enumerate(moments)
        ]
        model = replace(self, accepted=(*self.accepted, *further))
        # The same sums in the same order, without those before anew.
        model.__dict__["all_counts"] = with_accepted_moments(self.all_counts, further)
        model.__dict__["all_turns"] = with_accepted_turns(self.all_turns, further, self.vocabulary)
        model.__dict__["all_stood"] = with_accepted_standing(self.all_stood, further)
        return model

    def withdraw(
        self, votes: Votes, *, clock: int = NO_CLOCK, standing: StandingCells | None = None
    ) -> "HabitModel":
        """Return the model without a moment that was accepted, to the bit as it was before."""
        return self.withdraw_all([(votes, standing)], clock=clock)

    def withdraw_all(
        self, moments: Sequence[tuple[Votes, StandingCells | None]], *, clock: int = NO_CLOCK
    ) -> "HabitModel":
        """Return the model without the moments of an event, to the bit as it was before.

        The latest that were accepted together; one by one where no event has all of them, as in
        files that do not say which are of one event.
        """
        wanted = [moment_of(votes, clock, standing) for votes, standing in moments]
        firsts = [i for i, moment in enumerate(self.accepted) if not moment.after]
        for first, end in reversed([*pairwise([*firsts, len(self.accepted)])]):
            together = self.accepted[first:end]
            if len(together) == len(wanted) and all(map(Moment.same, together, wanted)):
                return replace(self, accepted=self.accepted[:first] + self.accepted[end:])
        left = [*self.accepted]
        for moment in wanted:
            i = next((i for i, other in enumerate(left) if moment.same(other)), None)
            if i is None:
                raise InvalidInputError(
                    "this moment was not accepted, so there is nothing to take back"
                )
            removed = left.pop(i)
            if not removed.after and i < len(left):
                left[i] = left[i]._replace(after=False)
        return replace(self, accepted=tuple(left))

    def contents(self) -> Contents:
        """Return header and arrays for a file; names start with `habits.`."""
        counts, fusion, turns, stood = self.counts, self.fusion, self.turns, self.stood
        timed = counts.hour_documents.any()
        tensors = {
            "direction": counts.direction,
            "speed": counts.speed,
            "hours": counts.hours if timed else None,
            "hour_documents": counts.hour_documents if timed else None,
            "turns": None if turns is None else turns.moved,
            "turn_documents": None if turns is None else turns.documents,
            "stood": None if stood is None else stood.stood,
            "stood_documents": None if stood is None else np.array([stood.documents]),
            "levels": self.levels,
            "statistics": fusion.statistics,
            "judged": fusion.judged.astype(np.uint8),
            "trust": fusion.trust,
            "reach": np.array([fusion.reach]),
            "behaviours": fusion.behaviours,
            "turn_scans": fusion.turn_scans,
            "standing": fusion.standing,
            "fleet_statistics": fusion.fleet_statistics,
            "fleet_scores": fusion.fleet_scores,
            **accepted_tensors(self.accepted, self.vocabulary),
        }
        header = {
            "vocabulary": self.vocabulary.to_json(),
            "least_words": self.least_words,
            "n_documents": counts.n_documents,
            "concentrations": {name: list(values) for name, values in self.concentrations.items()},
            "join": fusion.join,
            "turn_gain": fusion.turn_gain,
            **({} if stood is None else {"standing_trust": fusion.standing_trust}),
        }
        return Contents(
            {"habits": header},
            {f"{PREFIX}{name}": value for name, value in tensors.items() if value is not None},
        )

    @classmethod
    def from_contents(cls, contents: Contents) -> "HabitModel | None":
        """Return the habits of a file; None where it has none."""
        header = contents.header.get("habits")
        if header is None:
            return None
        stored = {
            name.removeprefix(PREFIX): value
            for name, value in contents.tensors.items()
            if name.startswith(PREFIX)
        }
        vocabulary = header["vocabulary"]
        concentrations, none = header["concentrations"], HabitCounts.none(vocabulary)
        if len(concentrations.get(HOUR, ())) % N_CONTEXT_LEVELS:
            raise FileError(
                f"hours have {N_CONTEXT_LEVELS} or {2 * N_CONTEXT_LEVELS} concentrations"
            )
        cued = len(STATISTICS) + len(HOUR_STATISTICS) * (HOUR in concentrations)
        if len(stored["trust"]) != cued:
            raise FileError(f"the habits must have {cued} statistics, found {len(stored['trust'])}")
        return cls(
            vocabulary,
            int(header["least_words"]),
            HabitCounts(
                float(header["n_documents"]),
                stored["direction"],
                stored["speed"],
                stored.get("hours", none.hours),
                stored.get("hour_documents", none.hour_documents),
            ),
            concentrations,
            stored["levels"],
            Fusion(
                stored["statistics"],
                stored["judged"] != 0,
                stored["trust"],
                float(stored["reach"][0]),
                int(header["join"]),
                stored.get("behaviours"),
                stored.get("fleet_statistics"),
                stored.get("fleet_scores"),
                stored["turn_scans"] if TURN in concentrations else None,
                float(header.get("turn_gain", 0.0)),
                stored["standing"] if STANDING in concentrations else None,
                float(header.get("standing_trust", 0.0)),
            ),
            tuple(accepted_moments(stored, vocabulary)),
            TurnCounts(stored["turns"], stored["turn_documents"])
            if TURN in concentrations
            else None,
            StandingCounts(stored["stood"], float(stored["stood_documents"][0]))
            if STANDING in concentrations
            else None,
        )


def fading_factor(seconds: float, half_life: float | None) -> float:
    """Return what older counts are multiplied by when so many seconds of footage are added.

    Examples
    --------
    >>> fading_factor(86_400, half_life=2 * 86_400), fading_factor(86_400, half_life=None)
    (0.7071067811865476, 1.0)
    """
    if half_life is None:
        return 1.0
    if not 0 < half_life < np.inf:
        raise InvalidInputError(
            f"half_life must be a number of seconds above 0, found {half_life:g}",
            parameter="half_life",
        )
    return float(0.5 ** (seconds / half_life))


def usable_documents(corpus: Corpus) -> Flags:
    """Return in which documents the camera was usable."""
    return np.asarray(corpus.conditions == Condition.USABLE)


def judged_documents(corpus: Corpus) -> Flags:
    """Return which documents are judged: the camera was usable, and something moved."""
    return usable_documents(corpus) & (corpus.n_tokens > 0)


def counted_hours(corpus: Corpus) -> Indices:
    """Return the hour of each document, `NO_HOUR` where the camera was not usable."""
    return np.where(usable_documents(corpus), hours_of(corpus.clocks), NO_HOUR)


def counted_turns(corpus: Corpus, turns: Indices) -> Indices:
    """Return the turn of each document, `NO_TURN` where the camera was not usable."""
    return np.where(usable_documents(corpus), turns, NO_TURN)
