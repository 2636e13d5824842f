"""Habits learnt from normal footage: in one pass, with what held-out parts of it score."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, pairwise
from operator import add
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Array, Flags, Indices
from habitus.corpus import Corpus, ShardedCorpus, Vocabulary
from habitus.corpus.clocks import N_HOURS, days_of, spans_weeks
from habitus.corpus.shards import pick_documents
from habitus.corpus.sparse import SparseCounts
from habitus.corpus.stands import STANDING, StandingWords
from habitus.corpus.tree_sum import Additive, Sums
from habitus.errors import InvalidInputError
from habitus.habits.contexts import ContextFit
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import gather_statistics, levels_of, surprisal_histograms
from habitus.habits.hours import HOUR, fit_hours, gather_hours, hour_surprisals
from habitus.habits.predictive import Concentrations, Habits, fit_concentrations
from habitus.habits.standing import (
    LEAST_AGE,
    StandingCounts,
    fit_standing,
    gather_standing,
    implant_statistic,
    standing_surprisals,
)
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
    least_words,
    votes_of_corpus,
)
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.scene.fleet import Fleet
from habitus.scene.fusion import (
    LEAST_GAIN,
    CueColumns,
    Fusion,
    FusionPrior,
    ImplantStatistics,
)
from habitus.scene.habit_model import (
    HabitModel,
    counted_hours,
    fading_factor,
    judged_documents,
    usable_documents,
)
from habitus.scene.implants import changed_votes, draw_hours, draw_places, draw_sources
from habitus.scene.thresholds import join_of

N_FOLDS = 20
"""Parts of the footage that are held out in turn, at most."""
N_PARTS = 5
"""Parts that are held out in turn to see whether turns predict them: what moves goes on moving for
some seconds, and is no turn; so parts are long."""
LEAST_SECONDS = 240.0
"""Footage from which on turns are learnt, and documents that it has then at least: less shows
traffic lights go round hardly twice."""
LEAST_KNOWN = 240.0
"""Footage with a known background from which on what stands is learnt, in seconds."""
STANDS_FOR = 60.0
"""Seconds for which an implant has stood; for `LEAST_AGE` where documents are long."""
LARGEST_TURN = 0.6
"""Share of the documents in one turn up to which there are turns: in a room where hardly anything
moves, behaviours are what happens there, and none has its turn."""
LARGEST_DAY = 0.6
"""Share of the documents in one day up to which days are held out, not parts of them."""

R = TypeVar("R")
S = TypeVar("S", bound=Additive)


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
        What other cameras say; the less footage there is, the more it counts. It is not used where
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
        Called for every fold, as the stage "learning habits".

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
    if isinstance(corpus, Corpus):
        corpus = ShardedCorpus.of([corpus], keep_bytes=sys.maxsize)
    v = known_vocabulary(corpus)
    if fleet is not None:
        fleet.check_fits(v, corpus.clip)
    columns = _Columns.of(corpus)
    if not columns.judged.any():
        raise InvalidInputError("habits need footage in which something moves, found none")
    votes, report = _FoldedVotes(corpus, columns, half_life, n_threads), progress or ignore_progress
    places = _learn_places(votes, fleet, report)
    if places.prior is not None and not places.prior.fits(places.statistics[columns.judged]):
        places = _learn_places(votes, None, report)
    by_turn = _learn_turns(votes, turns, places)
    stands = _learn_standing(votes, places.total, seed)
    cues = CueColumns(
        places.statistics,
        behaviours,
        None if by_turn is None else by_turn.scans,
        None if stands is None else stands.statistics,
    )
    fusion = Fusion.of(
        cues,
        columns.judged,
        _implants(votes, places, seed),
        join_of(corpus.clip),
        places.prior,
        0.0 if by_turn is None else by_turn.fit.gain,
        None if stands is None else stands.implanted,
    )
    concentrations = places.concentrations
    if votes.by_days:
        fusion, concentrations = _with_hours(fusion, votes, places, seed)
    if by_turn is not None:
        concentrations = {**concentrations, TURN: by_turn.fit.concentrations}
    stands = None if fusion.standing is None else stands
    if stands is not None:
        concentrations = {**concentrations, STANDING: stands.concentrations}
    return HabitModel(
        v,
        votes.least,
        places.total,
        concentrations,
        places.levels,
        fusion,
        turns=None if by_turn is None else by_turn.counts,
        stood=None if stands is None else stands.counts,
    )


class _Places(NamedTuple):
    """What is learnt of place, direction and speed."""

    folds: list[HabitCounts]
    n_votes: Indices
    """Of each document."""
    total: HabitCounts
    concentrations: Concentrations
    held_out: list[Habits]
    """Of all but each fold."""
    levels: Array
    statistics: Array
    """Of all documents, by habits that have not seen them."""
    prior: FusionPrior | None


def _learn_places(votes: "_FoldedVotes", fleet: Fleet | None, report: ProgressCallback) -> _Places:
    """Return what is usual at each place."""
    v = votes.vocabulary
    by_fold, lengths = votes.sum(partial(_counts_of, v), Sums((_ByFold({}), []))).parts
    folds = votes.faded(by_fold)
    concentrations, total = fit_concentrations(folds, v), HabitCounts.total(folds)
    if fleet is not None:
        concentrations = fleet.concentrations(concentrations, total.n_documents)
    held_out = [Habits.of(total - fold, concentrations, v) for fold in folds]
    levels = levels_of(votes.sum(partial(_histograms_of, held_out)))
    statistics = _held_out_statistics(votes, held_out, levels, report)
    prior = None if fleet is None else fleet.prior()
    n_votes = np.concatenate(lengths)
    return _Places(folds, n_votes, total, concentrations, held_out, levels, statistics, prior)


def _held_out_statistics(
    votes: "_FoldedVotes", held_out: Sequence[Habits], levels: Array, report: ProgressCallback
) -> Array:
    """Return the statistics of all documents, by habits that have not seen them."""
    parts, done, n = [], 0, votes.n_folds
    for fold, part in votes.map(partial(_statistics_of, votes.vocabulary, held_out, levels)):
        parts.append(part)
        if fold > done:
            done = fold
            report(Progress("learning habits", done, n))
    report(Progress("learning habits", n, n))
    return np.concatenate(parts)


def _implants(votes: "_FoldedVotes", places: _Places, seed: int) -> ImplantStatistics | None:
    """Return the statistics of documents with implants, by habits that have not seen them."""
    rng, v = np.random.default_rng(seed), votes.vocabulary
    sources = draw_sources(places.n_votes, rng)
    if sources is None:
        return None
    changed = changed_votes(votes.take(sources), v, rng)
    rows = votes.gathered(
        sources,
        lambda k, at: gather_statistics(changed.take(at), places.held_out[k], places.levels, v),
    )
    return ImplantStatistics(rows, sources)


class _TurnCue(NamedTuple):
    """What is learnt of turns."""

    counts: TurnCounts
    scans: Array
    """Of all documents, by folds that they are not of."""
    fit: ContextFit


def _learn_turns(votes: "_FoldedVotes", turns: Turns | None, places: _Places) -> _TurnCue | None:
    """Return what turns say; None where they hardly predict what was held out, or are none."""
    if turns is None or len(votes.columns.judged) * min(votes.clip, 1.0) < LEAST_SECONDS:
        return None
    v, counted_turns = votes.vocabulary, votes.of_usable(turns)
    folds = votes.faded(votes.sum(partial(_turn_counts_of, v, counted_turns), _ByFold({})))
    total, whole = reduce(add, folds), places.total
    if total.documents.max() > LARGEST_TURN * total.documents.sum():
        return None
    rest = [Habits.of(whole - part, places.concentrations, v) for part in _in_parts(places.folds)]
    fit = fit_turns(_in_parts(folds), rest, v)
    if fit.gain <= LEAST_GAIN:
        return None
    surprisals = [
        turn_surprisals(total - counts, habits, fit.concentrations, v)
        for counts, habits in zip(folds, places.held_out, strict=True)
    ]
    scans = np.concatenate(list(votes.map(partial(_turn_scans_of, v, surprisals, turns))))
    return _TurnCue(total, scans, fit)


class _StandingCue(NamedTuple):
    """What is learnt of things that stand."""

    counts: StandingCounts
    concentrations: tuple[float, ...]
    statistics: Array
    """Of all documents, by parts that they are not of."""
    implanted: Array
    """Of documents in which something had stood for a minute, likewise."""


def _learn_standing(votes: "_FoldedVotes", whole: HabitCounts, seed: int) -> _StandingCue | None:
    """Return what is usual of things that stand; None where hardly any background is known.

    What stands goes on standing: whole parts are held out, not folds.
    """
    v, known = votes.vocabulary, np.flatnonzero(votes.columns.background)
    if len(known) * votes.clip < LEAST_KNOWN:
        return None
    folds = votes.faded(votes.sum(partial(_stood_of, v, votes.columns.usable), _ByFold({})))
    parts, total = _in_parts(folds), reduce(add, folds)
    concentrations = fit_standing(parts, v)
    of_parts = [standing_surprisals(total - part, concentrations, v) for part in parts]
    held_out = [of_parts[part] for part in _parts_of(votes.n_folds)]
    statistics = np.concatenate(list(votes.map(partial(_standing_of, v, held_out))))
    rng = np.random.default_rng([seed, len(parts)])
    sources, places = draw_places(known, whole.moving, v, rng)
    age = max(STANDS_FOR / votes.clip, LEAST_AGE)
    implanted = [
        implant_statistic(held_out[fold], place, age, v.columns)
        for fold, place in zip(votes.folds_of(sources), places, strict=True)
    ]
    return _StandingCue(
        total, concentrations, statistics, np.maximum(implanted, statistics[sources])
    )


def _parts_of(n_folds: int) -> Indices:
    """Return the part of each fold: those that follow each other, `N_PARTS` at most."""
    parts = np.searchsorted(
        [n_folds * (k + 1) // N_PARTS for k in range(N_PARTS)], range(n_folds), "right"
    )
    return np.unique(parts, return_inverse=True)[1]


def _in_parts(folds: Sequence[S]) -> list[S]:
    """Return the sums of the folds of each part."""
    part_of = _parts_of(len(folds))
    return [
        reduce(add, (fold for fold, own in zip(folds, part_of, strict=True) if own == part))
        for part in range(part_of[-1] + 1)
    ]


def _with_hours(
    fusion: Fusion, votes: "_FoldedVotes", places: _Places, seed: int
) -> tuple[Fusion, Concentrations]:
    """Return fusion and concentrations with the hour as a cue, where it predicts held-out days."""
    v, days = votes.vocabulary, votes.columns.days
    total, concentrations = places.total, places.concentrations
    fit = fit_hours(places.folds, concentrations, v, weeks=spans_weeks(days))
    rng = np.random.default_rng([seed, N_HOURS])
    n_votes = np.where(days < 0, 0, places.n_votes)
    sources = draw_sources(n_votes, rng) if fit.gain > 0 else None
    if sources is None:
        return fusion, concentrations
    held_out = []
    for rest in (total - fold for fold in places.folds):
        place = Habits.of(rest, concentrations, v).place
        held_out.append(hour_surprisals(rest, place, fit.concentrations, v))
    statistics = np.concatenate(list(votes.map(partial(_hour_statistics_of, v, held_out))))
    hours = draw_hours(total.hour_documents, len(sources), rng)
    moved = votes.take(sources)
    implanted = votes.gathered(  # as if they were of other hours
        sources, lambda k, at: gather_hours(moved.take(at), held_out[k], hours[at], v)
    )
    fusion = fusion.beside(statistics, implanted, fit.gain, len(np.unique(days[days >= 0])))
    return fusion, {**concentrations, HOUR: fit.concentrations}


class _Columns(NamedTuple):
    """What habits need to know of every document beside its votes."""

    usable: Flags
    judged: Flags
    n_frames: NDArray[np.int64] | None
    """None where not all shards know them."""
    days: NDArray[np.int32]
    """Number of the day; -1 without a clock."""
    background: Flags
    """Whether it is usable and its background is known."""

    @classmethod
    def of(cls, corpus: ShardedCorpus) -> "_Columns":
        """Return the columns of all documents."""
        shards = list(corpus.map(_columns_of_shard))
        n_frames = [shard.n_frames for shard in shards if shard.n_frames is not None]
        return cls(
            np.concatenate([shard.usable for shard in shards]),
            np.concatenate([shard.judged for shard in shards]),
            np.concatenate(n_frames) if len(n_frames) == len(shards) else None,
            np.concatenate([shard.days for shard in shards]),
            np.concatenate([shard.background for shard in shards]),
        )


def _columns_of_shard(corpus: Corpus) -> _Columns:
    usable = usable_documents(corpus)
    background = usable & corpus.standing.known
    judged, days = judged_documents(corpus), days_of(corpus.clocks)
    return _Columns(usable, judged, corpus.n_frames, days, background)


class _Segment(NamedTuple):
    """Documents of one shard that belong to one fold, as numbers within the shard."""

    fold: int
    start: int
    stop: int
    n_usable: int
    before: int
    """Documents of all shards before this one."""

    @property
    def documents(self) -> slice:
        """The same documents among those of all shards."""
        return slice(self.before + self.start, self.before + self.stop)


class _SegmentVotes(NamedTuple):
    """Votes of a segment."""

    segment: _Segment
    votes: DocumentVotes
    hours: Indices
    standing: StandingWords

    @property
    def fold(self) -> int:
        return self.segment.fold

    def turns(self, turns: Turns) -> Indices:
        """Return the turns of these documents, given those of all."""
        return turns.of[self.segment.documents]


@dataclass(frozen=True)
class _ByFold(Generic[S]):
    """Counts of those folds that shards have documents of."""

    folds: dict[int, S]

    def __add__(self, other: "_ByFold[S]") -> "_ByFold[S]":
        both = {
            fold: self.folds[fold] + other.folds[fold] for fold in self.folds.keys() & other.folds
        }
        return _ByFold(self.folds | other.folds | both)


class _TimedVotes(NamedTuple):
    """The votes of the documents of a shard, the hour of each, and what stands in it."""

    indptr: Indices
    cells: Indices
    directions: Indices
    speeds: Indices
    hours: Indices
    ages: Array
    standing_cells: NDArray[np.integer[Any]]
    standing_indptr: NDArray[np.integer[Any]]
    known: Flags

    @classmethod
    def of(cls, corpus: Corpus, least: int) -> "_TimedVotes":
        words = corpus.standing
        stands = words.entries.data, words.entries.indices, words.entries.indptr, words.known
        return cls(*votes_of_corpus(corpus, least), counted_hours(corpus), *stands)

    @property
    def votes(self) -> DocumentVotes:
        return DocumentVotes(*self[:4])

    @property
    def standing(self) -> StandingWords:
        n_cells = int(self.standing_cells.max(initial=-1)) + 1
        entries = SparseCounts(self.ages, self.standing_cells, self.standing_indptr, n_cells)
        return StandingWords(entries, self.known)

    def parts(self, segments: Sequence[_Segment]) -> Iterator[_SegmentVotes]:
        """Yield the votes and hours of each segment."""
        for segment in segments:
            documents = np.arange(segment.start, segment.stop)
            votes, standing = self.votes.take(documents), self.standing.take(documents)
            yield _SegmentVotes(segment, votes, self.hours[documents], standing)


def _folds_of(days: NDArray[np.int32]) -> tuple[Indices, bool]:
    """Return the fold of each document, given its day (-1 without a clock), and if folds are days.

    Footage to come is of another day: where there are days, each is held out whole, or several of
    them together. What was seen an hour before would make it look more usual than the next day is.
    """
    dates, day_of, n_documents = np.unique(days, return_inverse=True, return_counts=True)
    n, n_folds = len(days), min(N_FOLDS, len(dates))
    if (dates >= 0).sum() >= 2 and n_documents.max() <= LARGEST_DAY * n:
        return day_of * n_folds // len(dates), True
    # As np.array_split: the first folds have one document more where it does not come out even.
    n_folds = min(N_FOLDS, n)
    sizes = [n // n_folds + (i < n % n_folds) for i in range(n_folds)]
    return np.repeat(np.arange(n_folds), sizes), False


class _FoldedVotes:
    """Votes of all documents in folds; shards are read when needed."""

    def __init__(
        self, corpus: ShardedCorpus, columns: _Columns, half_life: float | None, n_threads: int
    ) -> None:
        self.vocabulary, self.clip, self.columns = known_vocabulary(corpus), corpus.clip, columns
        self.least = least_words(columns.n_frames)
        self._starts, self._n_threads = corpus.starts, n_threads
        self._votes = corpus.kept(partial(_TimedVotes.of, least=self.least))
        fold_of, self.by_days = _folds_of(columns.days)
        self._fold_of = fold_of.astype(np.uint8)
        self.n_folds = int(self._fold_of.max()) + 1
        self._segments = [
            list(_segments(self._fold_of[first:end], columns.usable[first:end], int(first)))
            for first, end in pairwise(self._starts)
        ]
        sizes = np.bincount(self._fold_of)
        later = sizes[::-1].cumsum()[::-1] - sizes
        self._fading = [fading_factor(n * self.clip, half_life) for n in later.tolist()]

    def faded(self, counts: "_ByFold[S]") -> list[S]:
        """Return the counts of each fold, faded: see `learn_habits`."""
        return [counts.folds[fold].faded(factor) for fold, factor in enumerate(self._fading)]

    def of_usable(self, turns: Turns) -> Turns:
        """Return the turns of documents of a usable camera."""
        return turns._replace(of=np.where(self.columns.usable, turns.of, NO_TURN))

    def map(self, function: Callable[[_SegmentVotes], R]) -> Iterator[R]:
        """Yield what a pure function returns for each part of a shard that lies in one fold."""
        task = partial(_of_parts, function, self._segments)
        numbers = range(len(self._segments))
        return chain.from_iterable(self._votes.map(task, numbers, n_threads=self._n_threads))

    def sum(self, function: Callable[[_SegmentVotes], Any], zero: Any = 0) -> Any:
        """Return the sum of a pure function of each such part."""
        task = partial(_sum_of_parts, function, zero, self._segments)
        return self._votes.sum(task, n_threads=self._n_threads)

    def folds_of(self, documents: Indices) -> list[int]:
        """Return the fold of each of some documents."""
        return [int(fold) for fold in self._fold_of[documents]]

    def gathered(self, sources: Indices, gather: Callable[[int, Indices], Array]) -> Array:
        """Return a row for each source: `gather` gives those of a fold, by their positions."""
        fold_of = self._fold_of[sources]
        positions = {fold: np.flatnonzero(fold_of == fold) for fold in np.unique(fold_of).tolist()}
        rows = np.concatenate([gather(fold, at) for fold, at in positions.items()])
        return rows[np.argsort(np.concatenate(list(positions.values())))]

    def take(self, documents: Indices) -> DocumentVotes:
        """Return the votes of documents by their numbers, in that order."""
        options = {"n_threads": self._n_threads}
        votes = pick_documents(self._votes, self._starts, documents, _votes_of_some, **options)
        return DocumentVotes.of_documents(votes)


def _of_parts(
    function: Callable[[_SegmentVotes], R],
    segments: Sequence[Sequence[_Segment]],
    votes: _TimedVotes,
    number: int,
) -> list[R]:
    return [function(part) for part in votes.parts(segments[number])]


def _sum_of_parts(
    function: Callable[[_SegmentVotes], Any],
    zero: Any,
    segments: Sequence[Sequence[_Segment]],
    votes: _TimedVotes,
    number: int,
) -> Any:
    return reduce(add, _of_parts(function, segments, votes, number), zero)


def _votes_of_some(shard: _TimedVotes, documents: Indices) -> list[Votes]:
    """Return the votes of some documents of a shard, without keeping the others in memory."""
    votes = shard.votes
    return [Votes(*(part.copy() for part in votes.of(t))) for t in documents.tolist()]


def _segments(fold_of: NDArray[np.uint8], usable: Flags, before: int) -> Iterator[_Segment]:
    """Yield the parts of a shard, given the fold of each of its documents, that lie in one fold."""
    changes = (np.flatnonzero(np.diff(fold_of)) + 1).tolist()
    for start, stop in pairwise([0, *changes, len(fold_of)]):
        if start < stop:
            n_usable = int(usable[start:stop].sum())
            yield _Segment(int(fold_of[start]), start, stop, n_usable, before)


def _counts_of(vocabulary: Vocabulary, part: _SegmentVotes) -> Sums[Any]:
    """Return the counts by fold, and the number of votes of each document."""
    counts = HabitCounts.of(part.votes, vocabulary, part.segment.n_usable, part.hours)
    return Sums((_ByFold({part.fold: counts}), [np.diff(part.votes.indptr)]))


def _histograms_of(held_out: Sequence[Habits], part: _SegmentVotes) -> NDArray[np.int64]:
    return surprisal_histograms(part.votes, held_out[part.fold])


def _statistics_of(
    vocabulary: Vocabulary, held_out: Sequence[Habits], levels: Array, part: _SegmentVotes
) -> tuple[int, Array]:
    return part.fold, gather_statistics(part.votes, held_out[part.fold], levels, vocabulary)


def _hour_statistics_of(
    vocabulary: Vocabulary, held_out: Sequence[Array], part: _SegmentVotes
) -> Array:
    return gather_hours(part.votes, held_out[part.fold], part.hours, vocabulary)


def _stood_of(
    vocabulary: Vocabulary, usable: Flags, part: _SegmentVotes
) -> _ByFold[StandingCounts]:
    own = usable[part.segment.documents]
    return _ByFold({part.fold: StandingCounts.of(part.standing, own, vocabulary)})


def _standing_of(vocabulary: Vocabulary, held_out: Sequence[Array], part: _SegmentVotes) -> Array:
    return gather_standing(part.standing, held_out[part.fold], vocabulary)


def _turn_counts_of(
    vocabulary: Vocabulary, turns: Turns, part: _SegmentVotes
) -> _ByFold[TurnCounts]:
    counts = TurnCounts.of(part.votes, part.turns(turns), turns.n, vocabulary)
    return _ByFold({part.fold: counts})


def _turn_scans_of(
    vocabulary: Vocabulary, held_out: Sequence[Array], turns: Turns, part: _SegmentVotes
) -> Array:
    habits = turn_habits(held_out[part.fold], vocabulary)
    return gather_turns(part.votes, habits, part.turns(turns), vocabulary)
