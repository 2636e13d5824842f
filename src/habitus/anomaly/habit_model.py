"""The habits of a scene: learnt in one pass, judged with, added to, and taken back."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import Annotated, Any, NamedTuple, NotRequired, TypeVar

import numpy as np
from annotated_types import Len
from numpy.typing import NDArray
from typing_extensions import TypedDict

from habitus.anomaly.fleet import Fleet
from habitus.anomaly.fusion import Fusion, ImplantStatistics
from habitus.anomaly.implants import changed_votes, draw_hours, draw_sources
from habitus.anomaly.thresholds import join_of
from habitus.arrays import Array, Flags, Indices
from habitus.corpus import Condition, Corpus, ShardedCorpus, Vocabulary
from habitus.corpus.clocks import (
    N_HOURS,
    N_WEEK_HOURS,
    NO_CLOCK,
    NO_HOUR,
    days_of,
    hours_of,
    spans_weeks,
)
from habitus.corpus.tree_sum import Summable
from habitus.corpus.vocabulary import N_DIRECTIONS
from habitus.errors import FileError, InvalidInputError
from habitus.files import Contents, Tensors
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import (
    CUES,
    STATISTICS,
    DocumentEvidence,
    document_evidence,
    gather_statistics,
    levels_of,
    surprisal_histograms,
)
from habitus.habits.hours import (
    HOUR,
    HOUR_STATISTICS,
    N_HOUR_LEVELS,
    fit_hours,
    gather_hours,
    hour_evidence,
    hour_surprisals,
)
from habitus.habits.predictive import N_LEVELS, Concentrations, Habits, fit_concentrations
from habitus.habits.votes import (
    DocumentVotes,
    Votes,
    known_vocabulary,
    least_words_by_frames,
    votes_of,
    votes_of_corpus,
)
from habitus.progress import Progress, ProgressCallback, ignore_progress
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

N_FOLDS = 20
"""Parts of the footage that are held out in turn, at most."""
LARGEST_DAY = 0.6
"""Share of the documents in one day up to which days are held out, not parts of them."""
MOST_REMEMBERED = 7 * 86_400
"""Held-out documents whose statistics are kept, the latest: a week of one-second documents."""
HALF_LIFE = 14 * 86_400.0
"""Seconds of further footage after which older footage counts half, where a model is learnt anew
night after night: by an archive, by the console."""
ALL_BYTES = sys.maxsize

R = TypeVar("R")
S = TypeVar("S", bound=Summable)
PREFIX = "habits."


class LevelConcentrations(TypedDict):
    """One concentration per level for each question: see `habitus.habits.predictive`."""

    place: Annotated[tuple[Positive, ...], Len(N_LEVELS["place"], N_LEVELS["place"])]
    direction: Annotated[tuple[Positive, ...], Len(N_LEVELS["direction"], N_LEVELS["direction"])]
    speed: Annotated[tuple[Positive, ...], Len(N_LEVELS["speed"], N_LEVELS["speed"])]
    hour: NotRequired[Annotated[tuple[Positive, ...], Len(N_HOUR_LEVELS, 2 * N_HOUR_LEVELS)]]
    """Where the hour is a cue; twice as many where workdays and week-ends are apart."""


class HabitHeader(TypedDict):
    """What a file's header tells of habits."""

    vocabulary: Vocabulary
    least_words: AtLeastOne
    n_documents: NotNegative
    concentrations: LevelConcentrations
    join: Count


_HELD_OUT, _CUED = "documents of habits", "statistics of habits"
LAYOUTS = {
    f"{PREFIX}{name}": layout
    for name, layout in {
        "direction": Layout(REAL, ("cells", "directions"), False, 0.0, MOST_NATS),
        "speed": Layout(REAL, ("cells", N_DIRECTIONS, "speeds"), False, 0.0, MOST_NATS),
        "hours": Layout(REAL, ("cells", N_WEEK_HOURS), False, 0.0, MOST_NATS),
        "hour_documents": Layout(REAL, (N_WEEK_HOURS,), False, 0.0, MOST_NATS),
        "levels": Layout(REAL, (len(CUES),), False, -MOST_NATS, MOST_NATS),
        "statistics": Layout(REAL, (_HELD_OUT, _CUED), False, -MOST_NATS, MOST_NATS),
        "judged": Layout(BYTE, (_HELD_OUT,), False, 0, 1),
        "trust": Layout(REAL, (_CUED,), False, 0.0, MOST_NATS),
        "reach": Layout(REAL, (1,), False, 0.0, np.inf),
        "behaviours": Layout(REAL, (_HELD_OUT,), False, -MOST_NATS, MOST_NATS),
        "fleet_statistics": Layout(
            REAL, ("documents of the fleet", len(STATISTICS)), False, 0.0, MOST_NATS
        ),
        "fleet_scores": Layout(REAL, ("documents of the fleet",), False, 0.0, MOST_NATS),
        "accepted": Layout(INDEX, ("accepted votes",), False, 0),
        "accepted_lengths": Layout(INDEX, ("accepted moments",), False, 0),
        "accepted_hours": Layout(INDEX, ("accepted moments",), False, 0, NO_HOUR),
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

    @property
    def strongest(self) -> int:
        """Number of the statistic that is the largest part of the score."""
        return int(self.rarities.argmax())

    @property
    def score(self) -> float:
        """The largest rarity of a statistic, plus that by the topic model."""
        return float(self.rarities.max()) + self.behaviour_rarity

    @property
    def by_behaviours(self) -> bool:
        """Whether most of the score is what the topic model says."""
        return bool(self.behaviour_rarity > self.rarities.max())


class JudgedHabits(NamedTuple):
    """What habits say of the documents of a corpus."""

    model: "HabitModel"
    normality: Array
    """0 where not judged."""
    judged: Flags
    votes: DocumentVotes
    statistics: Array
    behaviours: Array
    """Normality by the topic model; 0 where it did not judge."""
    clocks: NDArray[np.int32]
    """Local minutes."""

    def judgement(self, t: int) -> HabitJudgement:
        """Return what is said of one document, with its evidence."""
        return self.model.judge(
            self.votes.of(t), float(self.behaviours[t]), clock=int(self.clocks[t])
        )


class Moment(NamedTuple):
    """A document that an operator called normal."""

    votes: Votes
    hour: int = NO_HOUR
    """See `hours_of`."""


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

    @property
    def leans_on_fleet(self) -> bool:
        """Whether other cameras tell, as well, how far normal footage goes."""
        return self.fusion.fleet_scores is not None

    @cached_property
    def all_counts(self) -> HabitCounts:
        """The counts with the accepted moments."""
        counts = self.counts
        for votes, hour in self.accepted:
            counts = counts.adding(votes, hour=hour)
        return counts

    @cached_property
    def habits(self) -> Habits:
        """Surprisals of votes."""
        return Habits.of(self.all_counts, self.concentrations, self.vocabulary)

    @property
    def weeks_apart(self) -> bool:
        """Whether hours of workdays and of week-ends are apart: see `habitus.habits.hours`."""
        return len(self.concentrations.get(HOUR, ())) > N_HOUR_LEVELS

    @cached_property
    def hour_surprisals(self) -> Array | None:
        """Surprisals of hours: see `habitus.habits.hours`; None where the hour is no cue."""
        if HOUR not in self.concentrations:
            return None
        place, own = self.habits.place, self.concentrations[HOUR]
        return hour_surprisals(self.all_counts, place, own, self.vocabulary)

    def votes(self, words: NDArray[Any], counts: NDArray[Any]) -> Votes:
        """Return the votes of a document in the words of the vocabulary."""
        return votes_of(words, counts, self.vocabulary, self.least_words)

    def judge(
        self, votes: Votes, behaviours: float = 0.0, *, clock: int = NO_CLOCK
    ) -> HabitJudgement:
        """Judge the votes of one document, with its normality by the topic model and its minute."""
        found = document_evidence(votes, self.habits, self.levels, self.vocabulary)
        if self.hour_surprisals is not None:
            hour = int(hours_of(np.array(clock)))
            found = found.beside(hour_evidence(votes, self.hour_surprisals, hour, self.vocabulary))
        rarities = self.fusion.rarities(found.statistics[None])[0]
        added = float(self.fusion.behaviour_rarities(np.array([behaviours]))[0])
        judgement = HabitJudgement(0.0, rarities, votes, found, behaviours, added, clock)
        normality = self.fusion.normality_of_scores(np.array([judgement.score]))
        return judgement._replace(normality=float(normality[0]))

    def judge_all(self, corpus: Corpus, behaviours: Array | None = None) -> JudgedHabits:
        """Judge all documents of a corpus; the same as `judge` for each.

        Parameters
        ----------
        corpus
            The documents.
        behaviours
            Their normality by the topic model; all 0, as usual as can be, where None.
        """
        behaviours = np.zeros(len(corpus)) if behaviours is None else behaviours
        corpus = corpus.summed(self.vocabulary)
        votes = votes_of_corpus(corpus, self.least_words)
        statistics = gather_statistics(votes, self.habits, self.levels, self.vocabulary)
        if self.hour_surprisals is not None:
            hours = hours_of(corpus.clocks)
            by_hour = gather_hours(votes, self.hour_surprisals, hours, self.vocabulary)
            statistics = np.hstack([statistics, by_hour])
        judged = judged_documents(corpus)
        normality = np.where(judged, self.fusion.normality(statistics, behaviours), 0.0)
        return JudgedHabits(self, normality, judged, votes, statistics, behaviours, corpus.clocks)

    def updated(
        self,
        corpus: Corpus,
        *,
        half_life: float | None = None,
        behaviours: Array | None = None,
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
        behaviours
            As of `judge_all`.
        """
        factor = fading_factor(len(corpus) * corpus.clip, half_life)
        # Without the accepted moments, so that withdrawing one later leaves no trace of it.
        found = replace(self, accepted=()).judge_all(corpus, behaviours)
        usable = int((corpus.conditions == Condition.USABLE).sum())
        further = HabitCounts.of(found.votes, self.vocabulary, usable, counted_hours(corpus))
        counts = self.counts if half_life is None else self.counts.faded(factor)
        held = self.fusion
        kept = slice(-MOST_REMEMBERED, None)
        return replace(
            self,
            counts=counts + further,
            fusion=replace(
                held,
                statistics=np.concatenate([held.statistics, found.statistics])[kept],
                judged=np.concatenate([held.judged, found.judged])[kept],
                behaviours=None
                if held.behaviours is None
                else np.concatenate([held.behaviours, found.behaviours])[kept],
            ),
        )

    def accept(self, votes: Votes, *, clock: int = NO_CLOCK) -> "HabitModel":
        """Return the model with a moment counted as normal; `withdraw` takes it back."""
        return replace(self, accepted=(*self.accepted, _moment_of(votes, clock)))

    def withdraw(self, votes: Votes, *, clock: int = NO_CLOCK) -> "HabitModel":
        """Return the model without a moment that was accepted, to the bit as it was before."""
        wanted = _moment_of(votes, clock)
        for i, (other, hour) in enumerate(self.accepted):
            same = all(np.array_equal(one, two) for one, two in zip(votes, other, strict=True))
            if same and hour == wanted.hour:
                return replace(self, accepted=self.accepted[:i] + self.accepted[i + 1 :])
        raise InvalidInputError("this moment was not accepted, so there is nothing to take back")

    def contents(self) -> Contents:
        """Return header and arrays for a file; names start with `habits.`."""
        codes = [moment.votes.codes(self.vocabulary) for moment in self.accepted]
        tensors: Tensors = {
            "direction": self.counts.direction,
            "speed": self.counts.speed,
            "levels": self.levels,
            "statistics": self.fusion.statistics,
            "judged": self.fusion.judged.astype(np.uint8),
            "trust": self.fusion.trust,
            "reach": np.array([self.fusion.reach]),
            "accepted": np.concatenate([np.empty(0, dtype=np.int64), *codes]),
            "accepted_lengths": np.array([len(each) for each in codes], dtype=np.int64),
        }
        if self.counts.hour_documents.any():
            tensors["hours"] = self.counts.hours
            tensors["hour_documents"] = self.counts.hour_documents
        if any(moment.hour != NO_HOUR for moment in self.accepted):
            tensors["accepted_hours"] = np.array([moment.hour for moment in self.accepted])
        if self.fusion.behaviours is not None:
            tensors["behaviours"] = self.fusion.behaviours
        if self.fusion.fleet_statistics is not None and self.fusion.fleet_scores is not None:
            tensors["fleet_statistics"] = self.fusion.fleet_statistics
            tensors["fleet_scores"] = self.fusion.fleet_scores
        header = {
            "vocabulary": self.vocabulary.to_json(),
            "least_words": self.least_words,
            "n_documents": self.counts.n_documents,
            "concentrations": {name: list(own) for name, own in self.concentrations.items()},
            "join": self.fusion.join,
        }
        return Contents(
            {"habits": header}, {f"{PREFIX}{name}": value for name, value in tensors.items()}
        )

    @classmethod
    def from_contents(cls, contents: Contents) -> "HabitModel | None":
        """Return the habits of a file; None where it has none."""
        header = contents.header.get("habits")
        if header is None:
            return None
        own = {
            name.removeprefix(PREFIX): value
            for name, value in contents.tensors.items()
            if name.startswith(PREFIX)
        }
        vocabulary = header["vocabulary"]
        codes, lengths = own["accepted"], own["accepted_lengths"]
        if codes.max(initial=-1) >= vocabulary.n_words or lengths.sum() != len(codes):
            raise FileError("the accepted moments do not fit the habits")
        parts = np.split(codes, np.cumsum(lengths)[:-1]) if len(lengths) else []
        hours = own.get("accepted_hours", np.full(len(parts), NO_HOUR))
        concentrations, none = header["concentrations"], HabitCounts.none(vocabulary)
        if len(concentrations.get(HOUR, ())) % N_HOUR_LEVELS:
            raise FileError(f"hours have {N_HOUR_LEVELS} or {2 * N_HOUR_LEVELS} concentrations")
        cued = len(STATISTICS) + len(HOUR_STATISTICS) * (HOUR in concentrations)
        if len(own["trust"]) != cued:
            raise FileError(f"the habits must have {cued} statistics, found {len(own['trust'])}")
        return cls(
            vocabulary,
            int(header["least_words"]),
            HabitCounts(
                float(header["n_documents"]),
                own["direction"],
                own["speed"],
                own.get("hours", none.hours),
                own.get("hour_documents", none.hour_documents),
            ),
            concentrations,
            own["levels"],
            Fusion(
                own["statistics"],
                own["judged"] != 0,
                own["trust"],
                float(own["reach"][0]),
                int(header["join"]),
                own.get("behaviours"),
                own.get("fleet_statistics"),
                own.get("fleet_scores"),
            ),
            tuple(
                Moment(Votes.of_codes(part, vocabulary), int(hour))
                for part, hour in zip(parts, hours, strict=True)
            ),
        )


def _moment_of(votes: Votes, clock: int) -> Moment:
    return Moment(votes, int(hours_of(np.array(clock))))


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


def judged_documents(corpus: Corpus) -> Flags:
    """Return which documents are judged: the camera was usable, and something moved."""
    return np.asarray((corpus.conditions == Condition.USABLE) & (corpus.n_tokens > 0))


def counted_hours(corpus: Corpus) -> Indices:
    """Return the hour of each document, `NO_HOUR` where the camera was not usable."""
    usable = corpus.conditions == Condition.USABLE
    return np.where(usable, hours_of(corpus.clocks), NO_HOUR)


def learn_habits(
    corpus: Corpus | ShardedCorpus,
    *,
    behaviours: Array | None = None,
    fleet: Fleet | None = None,
    half_life: float | None = None,
    seed: int = 0,
    n_threads: int = 1,
    progress: ProgressCallback | None = None,
) -> HabitModel:
    """Learn the habits of a scene, and what normal footage scores by them.

    Parameters
    ----------
    corpus
        Normal footage, with a vocabulary. Shards are read one after the other, a few times; the
        result is to the bit that of the same documents in one corpus, as all sums are of whole
        numbers.
    behaviours
        Normality of each document by a topic model that has not learnt from it, 0 where that did
        not judge: see `Calibration`. Where None, habits judge alone.
    fleet
        What other cameras tell; the less footage there is, the more it counts. It is not used where
        they are unlike this one: see `FusionPrior.fits`.
    half_life
        Seconds of further footage after which older footage counts half: each fold, a day or a
        part of the footage, fades as if the later ones had been added to it by
        `HabitModel.updated`. Nothing fades where None. Scores never fade.
    seed
        Seed of the implants.
    n_threads
        Shards that are worked on at a time. It never changes the result.
    progress
        Told of every fold, as the stage "learning habits".

    Returns
    -------
    HabitModel
        Ready to judge.

    Raises
    ------
    InvalidInputError
        Where the corpus has no vocabulary, nothing moves in it, or the fleet is of cameras with
        other words, cells or clips.
    """
    report, v = progress or ignore_progress, known_vocabulary(corpus)
    if fleet is not None:
        fleet.check_fits(v, corpus.clip)
    columns = _columns(corpus)
    if not columns.judged.any():
        raise InvalidInputError("habits need footage in which something moves, found none")
    votes = _FoldedVotes(corpus, columns, n_threads)
    counted = votes.counts().faded(votes.fading(half_life, corpus.clip))
    folds = [counted.folds[fold] for fold in range(votes.n_folds)]
    concentrations = fit_concentrations(folds, v)
    total = HabitCounts.total(folds)
    if fleet is not None:
        concentrations = fleet.concentrations(concentrations, total.n_documents)
    held_out = [Habits.of(total - fold, concentrations, v) for fold in folds]
    levels = levels_of(votes.histograms(held_out))
    statistics, done = [], 0
    for fold, found in votes.statistics(held_out, levels):
        statistics.append(found)
        if fold > done:
            done = fold
            report(Progress("learning habits", done, len(folds)))
    report(Progress("learning habits", len(folds), len(folds)))
    gathered, prior = np.concatenate(statistics), None if fleet is None else fleet.prior()
    if prior is not None and not prior.fits(gathered[columns.judged]):
        return learn_habits(
            corpus,
            behaviours=behaviours,
            half_life=half_life,
            seed=seed,
            n_threads=n_threads,
            progress=progress,
        )
    rng = np.random.default_rng(seed)
    sources = draw_sources(np.concatenate(counted.n_votes), rng)
    implanted = None if sources is None else votes.implanted(sources, held_out, levels, rng)
    fusion = Fusion.of(gathered, columns.judged, implanted, join_of(corpus.clip), behaviours, prior)
    by_hour = _learn_hours(votes, columns, counted, total, concentrations, seed)
    if by_hour is not None:
        concentrations = {**concentrations, HOUR: by_hour.concentrations}
        fusion = fusion.beside(*by_hour[1:])
    return HabitModel(v, votes.least, total, concentrations, levels, fusion)


class _HourCue(NamedTuple):
    """What is learnt of hours."""

    concentrations: tuple[float, ...]
    statistics: Array
    """Of all documents, by days that they are not of: documents x `HOUR_STATISTICS`."""
    implanted: Array
    """Likewise of documents as if they were of another hour."""
    gain: float
    """See `HourFit`."""
    n_days: int


def _learn_hours(
    votes: "_FoldedVotes",
    columns: "_Columns",
    counted: "_CountsByFold",
    total: HabitCounts,
    concentrations: Concentrations,
    seed: int,
) -> _HourCue | None:
    """Return what hours tell; None where no days were held out, or the hour predicts none."""
    if not votes.by_days:
        return None
    v = votes.vocabulary
    weeks = spans_weeks(columns.days)
    fit = fit_hours(list(counted.folds.values()), concentrations, v, weeks=weeks)
    if fit.gain <= 0:
        return None
    held_out = []
    for fold in range(votes.n_folds):
        rest = total - counted.folds[fold]
        place = Habits.of(rest, concentrations, v).place
        held_out.append(hour_surprisals(rest, place, fit.concentrations, v))
    statistics = np.concatenate(list(votes.by_hours(held_out)))
    n_votes = np.where(columns.days < 0, 0, np.concatenate(counted.n_votes))
    rng = np.random.default_rng([seed, N_HOURS])
    sources = draw_sources(n_votes, rng)
    if sources is None:
        return None
    hours = draw_hours(total.hour_documents, len(sources), rng)
    implanted = votes.at_hours(sources, hours, held_out)
    n_days = len(np.unique(columns.days[columns.days >= 0]))
    return _HourCue(fit.concentrations, statistics, implanted, fit.gain, n_days)


class _Columns(NamedTuple):
    """What habits need to know of every document beside its votes."""

    usable: Flags
    judged: Flags
    n_frames: NDArray[np.int64] | None
    days: NDArray[np.int32]
    """Number of the day; -1 without a clock."""


def _columns(corpus: Corpus | ShardedCorpus) -> _Columns:
    """Return the columns of all documents; frames where all shards know them."""
    if isinstance(corpus, Corpus):
        return _columns_of_shard(corpus)
    usable, judged, n_frames, days = zip(*corpus.map(_columns_of_shard), strict=True)
    known = None if any(each is None for each in n_frames) else np.concatenate(n_frames)
    return _Columns(np.concatenate(usable), np.concatenate(judged), known, np.concatenate(days))


def _columns_of_shard(corpus: Corpus) -> _Columns:
    return _Columns(
        corpus.conditions == Condition.USABLE,
        judged_documents(corpus),
        corpus.n_frames,
        days_of(corpus.clocks),
    )


class _Segment(NamedTuple):
    """Documents of one shard that belong to one fold, as numbers within the shard."""

    fold: int
    start: int
    stop: int
    n_usable: int


@dataclass(frozen=True)
class _CountsByFold:
    """Counts of habits of those folds that shards have documents of."""

    folds: dict[int, HabitCounts]
    n_votes: list[Indices]
    """Number of votes of each document, by shard."""

    def __add__(self, other: "_CountsByFold") -> "_CountsByFold":
        shared = self.folds.keys() & other.folds
        both = {fold: self.folds[fold] + other.folds[fold] for fold in shared}
        return _CountsByFold(self.folds | other.folds | both, self.n_votes + other.n_votes)

    def faded(self, factors: Sequence[float]) -> "_CountsByFold":
        """Return the counts times a factor each."""
        faded = {fold: counts.faded(factors[fold]) for fold, counts in self.folds.items()}
        return replace(self, folds=faded)


class _TimedVotes(NamedTuple):
    """The votes of the documents of a shard, and the hour of each document."""

    indptr: Indices
    cells: Indices
    directions: Indices
    speeds: Indices
    hours: Indices

    @classmethod
    def of(cls, corpus: Corpus, least: int) -> "_TimedVotes":
        return cls(*votes_of_corpus(corpus, least), counted_hours(corpus))

    @property
    def votes(self) -> DocumentVotes:
        return DocumentVotes(*self[:-1])

    def parts(
        self, segments: "Sequence[_Segment]"
    ) -> "Iterator[tuple[_Segment, DocumentVotes, Indices]]":
        """Yield the votes and hours of each segment."""
        for segment in segments:
            own = np.arange(segment.start, segment.stop)
            yield segment, self.votes.take(own), self.hours[own]


def _folds_of(days: NDArray[np.int32]) -> tuple[Indices, bool]:
    """Return the fold of each document, given its day (-1 without a clock), and if folds are days.

    Footage to come is of another day: where there are days, each is held out whole, or several of
    them together. What was seen an hour before would make it look more usual than the next day is.
    """
    known, day_of, n_documents = np.unique(days, return_inverse=True, return_counts=True)
    n, n_folds = len(days), min(N_FOLDS, len(known))
    if (known >= 0).sum() >= 2 and n_documents.max() <= LARGEST_DAY * n:
        return day_of * n_folds // len(known), True
    # As np.array_split: the first folds have one document more where it does not come out even.
    n_folds = min(N_FOLDS, n)
    sizes = [n // n_folds + (i < n % n_folds) for i in range(n_folds)]
    return np.repeat(np.arange(n_folds), sizes), False


class _FoldedVotes:
    """Votes of all documents in folds; shards are read when needed."""

    def __init__(self, corpus: Corpus | ShardedCorpus, columns: _Columns, n_threads: int) -> None:
        if isinstance(corpus, Corpus):
            corpus = ShardedCorpus.of([corpus], keep_bytes=ALL_BYTES)
        self.vocabulary = known_vocabulary(corpus)
        self.least = least_words_by_frames(columns.n_frames)
        self._starts, self._n_threads = corpus.starts, n_threads
        self._votes = corpus.kept(partial(_TimedVotes.of, least=self.least))
        fold_of, self.by_days = _folds_of(columns.days)
        self._fold_of = fold_of.astype(np.uint8)
        self._segments = [
            list(_segments(self._fold_of[first:end], columns.usable[first:end]))
            for first, end in pairwise(self._starts)
        ]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self._fold_of.max()) + 1

    def fading(self, half_life: float | None, clip: float) -> list[float]:
        """Return what the counts of each fold are multiplied by: see `learn_habits`."""
        sizes = np.bincount(self._fold_of)
        later = sizes[::-1].cumsum()[::-1] - sizes
        return [fading_factor(n * clip, half_life) for n in later.tolist()]

    def counts(self) -> _CountsByFold:
        """Return the counts of each fold."""
        return self._sum(partial(_counts_of_shard, self.vocabulary))

    def histograms(self, held_out: Sequence[Habits]) -> NDArray[np.int64]:
        """Return how often which surprisal occurs, by habits that have not seen the fold."""
        return self._sum(partial(_histograms_of_shard, held_out))

    def statistics(self, held_out: Sequence[Habits], levels: Array) -> Iterator[tuple[int, Array]]:
        """Yield fold and statistics of documents in order, by habits that have not seen them."""
        found = self._map(partial(_statistics_of_shard, self.vocabulary, held_out, levels))
        return chain.from_iterable(found)

    def by_hours(self, held_out: Sequence[Array]) -> Iterator[Array]:
        """Yield the statistics by the hour of documents in order; see `gather_hours`."""
        return self._map(partial(_hour_statistics_of_shard, self.vocabulary, held_out))

    def at_hours(self, sources: Indices, hours: Indices, held_out: Sequence[Array]) -> Array:
        """Return the statistics by the hour of documents as if they were of other hours."""
        votes, folds = self._take(sources), self._fold_of[sources]
        found = np.empty((len(sources), len(HOUR_STATISTICS)))
        for fold, surprisals in enumerate(held_out):
            own = np.flatnonzero(folds == fold)
            found[own] = gather_hours(votes.take(own), surprisals, hours[own], self.vocabulary)
        return found

    def implanted(
        self,
        sources: Indices,
        held_out: Sequence[Habits],
        levels: Array,
        rng: np.random.Generator,
    ) -> ImplantStatistics:
        """Return the statistics of documents with implants, by habits that have not seen them."""
        made = changed_votes(self._take(sources), self.vocabulary, rng)
        found, order = [], []
        for fold, habits in enumerate(held_out):
            own = np.flatnonzero(self._fold_of[sources] == fold)
            found.append(gather_statistics(made.take(own), habits, levels, self.vocabulary))
            order.append(sources[own])
        return ImplantStatistics(np.concatenate(found), np.concatenate(order))

    def _map(self, function: Callable[[_TimedVotes, Sequence[_Segment]], R]) -> Iterator[R]:
        """Call a pure function with the votes and segments of each shard, in order."""
        task = partial(_with_segments, function, self._segments)
        return self._votes.map(task, range(len(self._segments)), n_threads=self._n_threads)

    def _sum(self, function: Callable[[_TimedVotes, Sequence[_Segment]], S]) -> S:
        """Return the sum of a pure function of the votes and segments of each shard."""
        task = partial(_with_segments, function, self._segments)
        return self._votes.sum(task, n_threads=self._n_threads)

    def _take(self, documents: Indices) -> DocumentVotes:
        """Return the votes of documents by their numbers, in that order."""
        shard_of = np.searchsorted(self._starts, documents, side="right") - 1
        wanted = {n: np.unique(documents[shard_of == n]) for n in np.unique(shard_of).tolist()}
        own = {number: chosen - self._starts[number] for number, chosen in wanted.items()}
        votes = self._votes.map(partial(_votes_of_some, own), wanted, n_threads=self._n_threads)
        chosen = chain.from_iterable(each.tolist() for each in wanted.values())
        found = dict(zip(chosen, chain.from_iterable(votes), strict=True))
        return DocumentVotes.of_documents([found[t] for t in documents.tolist()])


def _with_segments(
    function: Callable[[_TimedVotes, Sequence[_Segment]], R],
    segments: Sequence[Sequence[_Segment]],
    votes: _TimedVotes,
    number: int,
) -> R:
    return function(votes, segments[number])


def _votes_of_some(documents: Mapping[int, Indices], made: _TimedVotes, number: int) -> list[Votes]:
    """Return the votes of some documents of a shard, without keeping the others in memory."""
    votes = made.votes
    return [Votes(*(part.copy() for part in votes.of(t))) for t in documents[number].tolist()]


def _segments(fold_of: NDArray[np.uint8], usable: Flags) -> Iterator[_Segment]:
    """Yield the parts of a shard, given the fold of each of its documents, that lie in one fold."""
    changes = (np.flatnonzero(np.diff(fold_of)) + 1).tolist()
    for start, stop in pairwise([0, *changes, len(fold_of)]):
        if start < stop:
            yield _Segment(int(fold_of[start]), start, stop, int(usable[start:stop].sum()))


def _counts_of_shard(
    vocabulary: Vocabulary, made: _TimedVotes, segments: Sequence[_Segment]
) -> _CountsByFold:
    """Return the counts of the folds that a shard has documents of."""
    found = _CountsByFold({}, [np.diff(made.indptr)])
    for segment, votes, hours in made.parts(segments):
        own = HabitCounts.of(votes, vocabulary, segment.n_usable, hours)
        found += _CountsByFold({segment.fold: own}, [])
    return found


def _histograms_of_shard(
    held_out: Sequence[Habits], made: _TimedVotes, segments: Sequence[_Segment]
) -> NDArray[np.int64]:
    """Return the sum of the histograms of the segments of a shard."""
    total = surprisal_histograms(made.votes.take(np.arange(0)), held_out[0])
    for segment, own, _ in made.parts(segments):
        total += surprisal_histograms(own, held_out[segment.fold])
    return total


def _statistics_of_shard(
    vocabulary: Vocabulary,
    held_out: Sequence[Habits],
    levels: Array,
    made: _TimedVotes,
    segments: Sequence[_Segment],
) -> list[tuple[int, Array]]:
    """Return fold and statistics of each segment of a shard."""
    return [
        (segment.fold, gather_statistics(own, held_out[segment.fold], levels, vocabulary))
        for segment, own, _ in made.parts(segments)
    ]


def _hour_statistics_of_shard(
    vocabulary: Vocabulary,
    held_out: Sequence[Array],
    made: _TimedVotes,
    segments: Sequence[_Segment],
) -> Array:
    """Return the statistics by the hour of the documents of a shard."""
    found = [np.empty((0, len(HOUR_STATISTICS)))]
    for segment, votes, hours in made.parts(segments):
        found.append(gather_hours(votes, held_out[segment.fold], hours, vocabulary))
    return np.concatenate(found)
