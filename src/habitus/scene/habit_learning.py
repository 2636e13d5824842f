"""Habits learnt from normal footage: in one pass, with what held-out parts of it score."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, pairwise
from operator import add
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags, Indices
from habitus.corpus import Condition, Corpus, ShardedCorpus, Vocabulary
from habitus.corpus.clocks import N_HOURS, days_of, spans_weeks
from habitus.corpus.tree_sum import Summable
from habitus.errors import InvalidInputError
from habitus.habits.contexts import ContextFit
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import gather_statistics, levels_of, surprisal_histograms
from habitus.habits.hours import (
    HOUR,
    HOUR_STATISTICS,
    fit_hours,
    gather_hours,
    hour_surprisals,
)
from habitus.habits.predictive import Concentrations, Habits, fit_concentrations
from habitus.habits.turns import (
    NO_TURN,
    TURN,
    TurnCounts,
    Turns,
    fit_turns,
    gather_turns,
    turn_habits,
    turn_surprisals,
)
from habitus.habits.votes import (
    DocumentVotes,
    Votes,
    known_vocabulary,
    least_words_by_frames,
    votes_of_corpus,
)
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.scene.fleet import Fleet
from habitus.scene.fusion import LEAST_GAIN, Fusion, ImplantStatistics
from habitus.scene.habit_model import (
    HabitModel,
    counted_hours,
    fading_factor,
    judged_documents,
)
from habitus.scene.implants import changed_votes, draw_hours, draw_sources
from habitus.scene.thresholds import join_of

N_FOLDS = 20
"""Parts of the footage that are held out in turn, at most."""
N_PARTS = 5
"""Parts that are held out in turn to see whether turns predict them: what moves goes on moving for
some seconds, and is no turn; so parts are long."""
LEAST_SECONDS = 240.0
"""Footage from which on turns are learnt, and documents that it has then at least: less shows
traffic lights go round hardly twice."""
LARGEST_TURN = 0.6
"""Share of the documents in one turn up to which there are turns: in a room where hardly anything
moves, behaviours are what happens there, and none has its turn."""
LARGEST_DAY = 0.6
"""Share of the documents in one day up to which days are held out, not parts of them."""
ALL_BYTES = sys.maxsize

R = TypeVar("R")
S = TypeVar("S", bound=Summable)


def learn_habits(
    corpus: Corpus | ShardedCorpus,
    *,
    behaviours: Array | None = None,
    turns: Turns | None = None,
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
    turns
        Turn of each document. Where None, the turn is no cue; nor is it where it does not predict
        held-out footage, or where there is little footage.
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
    fading = votes.fading(half_life, corpus.clip)
    counted = votes.counts().faded(fading)
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
            turns=turns,
            half_life=half_life,
            seed=seed,
            n_threads=n_threads,
            progress=progress,
        )
    rng = np.random.default_rng(seed)
    sources = draw_sources(np.concatenate(counted.n_votes), rng)
    implanted = None if sources is None else votes.implanted(sources, held_out, levels, rng)
    by_turn = None
    if turns is not None and len(corpus) * min(corpus.clip, 1.0) >= LEAST_SECONDS:
        by_turn = _learn_turns(votes, turns, fading, folds, concentrations, held_out)
    fusion = Fusion.of(
        gathered,
        columns.judged,
        implanted,
        join_of(corpus.clip),
        behaviours,
        prior,
        *(() if by_turn is None else (by_turn.scans, by_turn.fit.gain)),
    )
    by_hour = _learn_hours(votes, columns, counted, total, concentrations, seed)
    if by_hour is not None:
        concentrations = {**concentrations, HOUR: by_hour.concentrations}
        fusion = fusion.beside(*by_hour[1:])
    if by_turn is not None:
        concentrations = {**concentrations, TURN: by_turn.fit.concentrations}
    return HabitModel(
        v,
        votes.least,
        total,
        concentrations,
        levels,
        fusion,
        turns=None if by_turn is None else by_turn.counts,
    )


class _TurnCue(NamedTuple):
    """What is learnt of turns."""

    counts: TurnCounts
    scans: Array
    """Of all documents, by folds that they are not of."""
    fit: ContextFit


def _learn_turns(
    votes: "_FoldedVotes",
    turns: Turns,
    fading: Sequence[float],
    counted: Sequence[HabitCounts],
    concentrations: Concentrations,
    held_out: Sequence[Habits],
) -> _TurnCue | None:
    """Return what turns tell; None where they hardly predict what was held out, or are none."""
    v = votes.vocabulary
    folds = [own.faded(factor) for own, factor in zip(votes.turns(turns), fading, strict=True)]
    total, whole = reduce(add, folds), HabitCounts.total(counted)
    if total.documents.max() > LARGEST_TURN * total.documents.sum():
        return None
    rest = [Habits.of(whole - part, concentrations, v) for part in _in_parts(counted)]
    fit = fit_turns(_in_parts(folds), rest, v)
    if fit.gain <= LEAST_GAIN:
        return None
    surprisals = [
        turn_surprisals(total - own, habits, fit.concentrations, v)
        for own, habits in zip(folds, held_out, strict=True)
    ]
    scans = np.concatenate(list(votes.by_turns(turns, surprisals)))
    return _TurnCue(total, scans, fit)


def _in_parts(folds: Sequence[S]) -> list[S]:
    """Return the sums of folds that follow each other, `N_PARTS` at most."""
    ends = [len(folds) * (k + 1) // N_PARTS for k in range(N_PARTS)]
    return [reduce(add, folds[start:end]) for start, end in pairwise([0, *ends]) if end > start]


class _HourCue(NamedTuple):
    """What is learnt of hours."""

    concentrations: tuple[float, ...]
    statistics: Array
    """Of all documents, by days that they are not of: documents x `HOUR_STATISTICS`."""
    implanted: Array
    """Likewise of documents as if they were of another hour."""
    gain: float
    """See `ContextFit`."""
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
    before: int
    """Documents of all shards before this one."""

    def of(self, turns: Indices) -> Indices:
        """Return the turns of these documents, given those of all."""
        return turns[self.before + self.start : self.before + self.stop]


@dataclass(frozen=True)
class _CountsByFold:
    """Counts of habits of those folds that shards have documents of."""

    folds: dict[int, HabitCounts]
    n_votes: list[Indices]
    """Number of votes of each document, by shard."""

    def __add__(self, other: "_CountsByFold") -> "_CountsByFold":
        return _CountsByFold(_both(self.folds, other.folds), self.n_votes + other.n_votes)

    def faded(self, factors: Sequence[float]) -> "_CountsByFold":
        """Return the counts times a factor each."""
        faded = {fold: counts.faded(factors[fold]) for fold, counts in self.folds.items()}
        return replace(self, folds=faded)


@dataclass(frozen=True)
class _TurnsByFold:
    """Counts by the turn of those folds that shards have documents of."""

    folds: dict[int, TurnCounts]

    def __add__(self, other: "_TurnsByFold") -> "_TurnsByFold":
        return _TurnsByFold(_both(self.folds, other.folds))


def _both(own: dict[int, S], other: dict[int, S]) -> dict[int, S]:
    """Return the sums of counts by fold."""
    shared = own.keys() & other
    return own | other | {fold: own[fold] + other[fold] for fold in shared}


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
        self._fold_of, self._usable = fold_of.astype(np.uint8), columns.usable
        self._segments = [
            list(_segments(self._fold_of[first:end], columns.usable[first:end], int(first)))
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

    def turns(self, turns: Turns) -> list[TurnCounts]:
        """Return the counts by the turn of each fold."""
        own = self._sum(partial(_turn_counts_of_shard, self.vocabulary, self._counted(turns)))
        return [own.folds[fold] for fold in range(self.n_folds)]

    def by_turns(self, turns: Turns, held_out: Sequence[Array]) -> Iterator[Array]:
        """Yield the scans by the turn of documents in order; see `gather_turns`."""
        return self._map(partial(_turn_scans_of_shard, self.vocabulary, held_out, turns))

    def _counted(self, turns: Turns) -> Turns:
        """Return the turns of documents of a usable camera."""
        return turns._replace(of=np.where(self._usable, turns.of, NO_TURN))

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


def _segments(fold_of: NDArray[np.uint8], usable: Flags, before: int) -> Iterator[_Segment]:
    """Yield the parts of a shard, given the fold of each of its documents, that lie in one fold."""
    changes = (np.flatnonzero(np.diff(fold_of)) + 1).tolist()
    for start, stop in pairwise([0, *changes, len(fold_of)]):
        if start < stop:
            n_usable = int(usable[start:stop].sum())
            yield _Segment(int(fold_of[start]), start, stop, n_usable, before)


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


def _turn_counts_of_shard(
    vocabulary: Vocabulary, turns: Turns, made: _TimedVotes, segments: Sequence[_Segment]
) -> _TurnsByFold:
    """Return the counts by the turn of the folds that a shard has documents of."""
    found = _TurnsByFold({})
    for segment, votes, _ in made.parts(segments):
        own = TurnCounts.of(votes, segment.of(turns.of), turns.n, vocabulary)
        found += _TurnsByFold({segment.fold: own})
    return found


def _turn_scans_of_shard(
    vocabulary: Vocabulary,
    held_out: Sequence[Array],
    turns: Turns,
    made: _TimedVotes,
    segments: Sequence[_Segment],
) -> Array:
    """Return the scans by the turn of the documents of a shard."""
    found = [np.empty(0)]
    for segment, votes, _ in made.parts(segments):
        own = segment.of(turns.of)
        habits = turn_habits(held_out[segment.fold], vocabulary)
        found.append(gather_turns(votes, habits, own, vocabulary))
    return np.concatenate(found)
