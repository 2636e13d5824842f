"""Documents of a camera on disk, to learn from: the last days, whatever is killed meanwhile.

Each minute is written to a corpus file of its own, so that at most a minute is lost and nothing is
written twice. Whoever learns joins the minutes of past hours to one file an hour. Times are seconds
since the epoch. The settings of such a corpus have one entry more, `after`: the time of the
document that its first one follows, in the file before; without it, a sequence begins there.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Flags, Image
from habitus.corpus import Condition, Corpus, Vocabulary
from habitus.corpus.clocks import minute_of
from habitus.corpus.documents import corpus_header, smallest
from habitus.corpus.looks import joined_looks, median_picture
from habitus.corpus.sparse import SparseCounts
from habitus.errors import FileError, HabitusError
from habitus.ingest.clips import Document, DocumentSettings
from habitus.site.pipe_messages import FootageExtent

# Seconds of documents in a file as it is written first.
MINUTE = 60.0
HOUR = 3600.0
DAY = 86_400.0
# How files are named: by their first document, or by their hour.
SHARD_NAME, HOUR_NAME = "%Y%m%dT%H%M%S", "%Y%m%dT%H"
SUFFIX = ".corpus"
# Files of documents; one that is being written has another name.
FILES = f"[0-9]*{SUFFIX}"
AFTER = "after"
"""Setting of a corpus: the time of the document that its first one follows."""
MOST_DOCUMENTS = 86_400
"""Documents that are learnt from at most: a day of one-second ones."""
MOST_COUNTS = 8_000_000
"""Distinct words of all these documents together, at most: learning needs about 100 bytes each."""
# Documents that wait in memory at most while nothing can be written.
MOST_HELD = 600
# Stills that the picture of the scene is the median of: at least so many, and less than twice.
FEWEST_STILLS = 5
# Seconds between stills at first; it doubles whenever there are too many.
STILL_SPACING = 4.0


class _Held(NamedTuple):
    """A document that is not written yet."""

    time: float
    words: NDArray[np.int64]
    counts: NDArray[np.int64]
    n_frames: int
    condition: Condition
    follows: bool


class _Extent(NamedTuple):
    """When the documents of a file are from, and how they were made; not their words."""

    times: NDArray[np.float64]
    usable: Flags
    kind: str
    """Vocabulary and settings; files of the same can be joined."""
    n_counts: int
    """Distinct words of all documents, each counted by itself."""

    @classmethod
    def of_file(cls, path: Path) -> "_Extent":
        """Read it.

        Raises
        ------
        HabitusError, LookupError
            If it is no file of documents.
        """
        header, arrays, found = corpus_header(path, "times", "conditions")
        if not len(found["times"]):
            raise FileError(f"{path}: expected documents, found none")
        (header.get("settings") or {}).pop(AFTER, None)
        kind = json.dumps(header, sort_keys=True, default=Vocabulary.to_json)
        usable = found["conditions"] == Condition.USABLE
        return cls(found["times"], usable, kind, arrays["data"].shape[0])


class _Count(NamedTuple):
    """Number of usable documents of a file, and when they are from."""

    n_usable: int
    first: float
    last: float


class FootageWriter:
    """Keeps the documents of a camera as they come.

    It never raises because of the disk: what cannot be written waits in memory, for ten minutes.

    Parameters
    ----------
    folder
        Where the files are; it is made if it is not there.
    settings
        How the documents are made.
    learn_days
        Days that they are kept for; for ever if None.

    Attributes
    ----------
    notes
        What there is to say to a person; whoever says it clears the list.
    """

    def __init__(
        self, folder: Path, settings: DocumentSettings, *, learn_days: float | None = 7.0
    ) -> None:
        self.folder, self.settings, self.learn_days = folder, settings, learn_days
        self.notes: list[str] = []
        self._vocabulary: Vocabulary | None = None
        self._held: list[_Held] = []
        self._before: float | None = None
        """Time of the latest document that was written, or dropped."""
        self._failed, self._since = False, 0.0
        """Whether the last attempt to write failed; the time from which a minute is counted."""
        self._scene = _Scene()
        self._n_files, self._hour = 0, -1
        self._pruned = -1
        """Hour in which files were deleted last."""
        self._counts = [
            _Count(int(extent.usable.sum()), float(extent.times[0]), float(extent.times[-1]))
            for _, extent in _extents(folder, [])
        ]

    def add(
        self,
        document: Document,
        time: float,
        condition: Condition,
        vocabulary: Vocabulary,
        *,
        follows: bool = True,
    ) -> None:
        """Add the next document, and write those of a minute once they are complete.

        Parameters
        ----------
        document
            Its words, and a still where there is one.
        time
            Start of its clip in seconds since the epoch.
        condition
            Of the camera.
        vocabulary
            The meaning of its words.
        follows
            Whether it follows the document before; if not, a sequence begins.
        """
        if vocabulary != self._vocabulary:
            self.flush()
            self._vocabulary, self._before, follows = vocabulary, None, False
            self._scene = _Scene()
        if self._held and not 0 <= time - self._since < MINUTE:
            self.flush()
            self._since = time
        elif not self._held:
            self._since = time
        words, counts = document.words, document.counts
        self._held.append(_Held(time, words, counts, document.n_frames, condition, follows))
        if condition is Condition.USABLE and document.still is not None:
            self._scene.add(document.still, time)

    def flush(self) -> None:
        """Write what is held now."""
        if not self._held or self._vocabulary is None:
            return
        path = self.folder / f"{_utc(self._held[0].time):{SHARD_NAME}}{SUFFIX}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._corpus(self._vocabulary).save(_free(path))
        except (HabitusError, OSError) as error:
            self._hold_back(error)
            return
        if self._failed:
            self._failed = False
            self.notes.append("documents to learn from are written again")
        first, last = self._held[0].time, self._held[-1].time
        n_usable = sum(held.condition is Condition.USABLE for held in self._held)
        self._counts.append(_Count(n_usable, first, last))
        self._before, self._held, self._n_files = last, [], self._n_files + 1
        self._prune(last)

    def close(self) -> None:
        """Write what is held, at the end."""
        self.flush()

    def kept(self) -> FootageExtent | None:
        """Return how much there is to learn from; None where there is nothing."""
        if not self._counts:
            return None
        n_usable, clip = sum(count.n_usable for count in self._counts), self.settings.clip
        first = min(count.first for count in self._counts)
        return FootageExtent(
            n_usable * clip, first, max(count.last for count in self._counts) + clip
        )

    def _hold_back(self, error: Exception) -> None:
        """Say that nothing can be written, once, and hold the latest documents."""
        if not self._failed:
            self.notes.append(f"documents to learn from wait in memory: {error}")
        self._failed = True
        n_dropped = max(0, len(self._held) - MOST_HELD)
        if n_dropped:
            self._before = self._held[n_dropped - 1].time
            del self._held[:n_dropped]

    def _corpus(self, vocabulary: Vocabulary) -> Corpus:
        """Return the documents that are held."""
        held = self._held
        indptr = np.cumsum([0, *(len(document.words) for document in held)], dtype=np.int32)
        words = np.concatenate([document.words for document in held]).astype(np.int32)
        counts = np.concatenate([document.counts for document in held])
        begins = np.array([n == 0 or not document.follows for n, document in enumerate(held)])
        settings = self.settings.to_json(vocabulary)
        if held[0].follows and self._before is not None:
            settings[AFTER] = self._before
        return Corpus(
            entries=SparseCounts(counts, words, indptr, vocabulary.n_words),
            times=[document.time for document in held],
            lengths=np.diff([*np.flatnonzero(begins), len(held)]),
            vocabulary=vocabulary,
            n_frames=[document.n_frames for document in held],
            conditions=[document.condition for document in held],
            clocks=[minute_of(document.time) for document in held],
            picture=self._scene.picture() if self._wants_picture() else None,
            settings=settings,
        )

    def _wants_picture(self) -> bool:
        """Return whether the next file has a picture: the 1st, 2nd, 4th, 8th ... of an hour."""
        hour = int(self._held[0].time // HOUR)
        if hour != self._hour:
            self._hour, self._n_files = hour, 0
        number = self._n_files + 1
        return number & (number - 1) == 0

    def _prune(self, now: float) -> None:
        """Delete files that are too old, once an hour."""
        hour = int(now // HOUR)
        if self.learn_days is None or hour == self._pruned:
            return
        self._pruned, oldest = hour, now - self.learn_days * DAY
        self._counts = [count for count in self._counts if count.last >= oldest]
        for path in self.folder.glob(FILES):
            if _hour_of(path) + HOUR < oldest:
                path.unlink(missing_ok=True)


class _Scene:
    """Stills that are spread over the time so far."""

    def __init__(self) -> None:
        self.stills: list[Image] = []
        self.spacing, self.latest = STILL_SPACING, -math.inf

    def add(self, still: Image, time: float) -> None:
        """Take a still, if it is time for one."""
        if 0 <= time - self.latest < self.spacing:
            return
        if self.stills and self.stills[0].shape != still.shape:
            self.stills = []
        self.stills.append(still)
        self.latest = time
        if len(self.stills) >= 2 * FEWEST_STILLS:
            self.stills, self.spacing = self.stills[::2], 2 * self.spacing

    def picture(self) -> Image | None:
        """Return the picture of the scene without what moves in it."""
        return _median(self.stills)


def _median(pictures: Sequence[Image]) -> Image | None:
    """Return the median of pictures, if any; of an even number, the first does not count."""
    odd = pictures[(len(pictures) + 1) % 2 :]
    return median_picture(odd).astype(np.uint8) if odd else None


def _utc(time: float) -> datetime:
    return datetime.fromtimestamp(time, UTC)


def _hour_of(path: Path) -> float:
    """Return the start of the hour that a file is of; in the future, for a foreign file."""
    try:
        return datetime.strptime(path.stem[:11], HOUR_NAME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return math.inf


def _is_whole_hour(path: Path) -> bool:
    return len(path.stem) == len("YYYYMMDDTHH")


def _free(path: Path) -> Path:
    """Return a name that is not taken, as one may be where the clock was set back."""
    number, named = 1, path
    while named.exists():
        number += 1
        named = path.with_stem(f"{path.stem}-{number}")
    return named


def _extents(folder: Path, notes: list[str]) -> Iterator[tuple[Path, _Extent]]:
    """Yield the files of a folder in order of time; one that is damaged is noted.

    What was joined to a whole hour already is left out.
    """
    hours: dict[str, NDArray[np.float64]] = {}
    found = []
    for path in sorted(folder.glob(FILES)):  # a whole hour before its minutes
        try:
            extent = _Extent.of_file(path)
        except (HabitusError, LookupError) as error:
            if path.exists():  # not deleted meanwhile
                notes.append(f"{path.name} is damaged and was left out: {error}")
            continue
        if _is_whole_hour(path):
            hours[path.stem] = extent.times
        elif extent.times[0] in hours.get(path.stem[:11], ()):
            continue
        found.append((path, extent))
    yield from sorted(found, key=lambda each: each[1].times[0])


class Footage(NamedTuple):
    """Documents to learn from."""

    corpus: Corpus | None
    """None where there is nothing."""
    notes: list[str]
    """What was left out, and why."""


def read_footage(
    folder: Path,
    since: float = -math.inf,
    until: float = math.inf,
    excluded: Sequence[tuple[float, float]] = (),
    *,
    most: int = MOST_DOCUMENTS,
    most_counts: int = MOST_COUNTS,
) -> Footage:
    """Read the documents of a camera.

    Of too many, whole minutes are taken that are spread evenly over the time. What is damaged is
    left out, and so is what was made in another way than the latest: of another frame size, with
    another mask.

    Parameters
    ----------
    folder
        Where a `FootageWriter` has written them.
    since, until
        Times between which they start, in seconds since the epoch.
    excluded
        Starts and ends of times not to learn from.
    most, most_counts
        Number of documents to return at most, and of distinct words of all of them together.
    """
    notes: list[str] = []
    found = list(_of_latest_kind(list(_extents(folder, notes)), notes))
    n_counts = sum(extent.n_counts for _, extent in found)
    n_documents = sum(len(extent.times) for _, extent in found)
    most = min(most, n_documents * most_counts // max(n_counts, 1))
    wanted = [_wanted(extent.times, since, until, excluded) for _, extent in found]
    times = np.concatenate([np.empty(0), *(extent.times for _, extent in found)])
    chosen = np.concatenate([np.empty(0, dtype=np.bool_), *wanted])
    minutes = _spread_minutes(times[chosen], most)
    parts: list[_Part] = []
    for (path, extent), each in zip(found, wanted, strict=True):
        taken = each & np.isin(extent.times // MINUTE, minutes)
        if taken.any():
            parts += _loaded(path, taken, notes)
    return Footage(_assembled(parts) if parts else None, notes)


def join_hours(folder: Path, before: float) -> None:
    """Join the minutes of each hour that was over some minutes before a time to one file.

    It can be repeated, and interrupted. An hour in which settings changed stays as it is.
    """
    hours = groupby(_extents(folder, []), key=lambda each: _hour_of(each[0]))
    for hour, group in hours:
        files = list(group)
        paths, kinds = [path for path, _ in files], {extent.kind for _, extent in files}
        if hour + HOUR + 2 * MINUTE > before or len(kinds) > 1 or all(map(_is_whole_hour, paths)):
            continue
        notes: list[str] = []
        everything = [(path, np.ones(len(extent.times), dtype=np.bool_)) for path, extent in files]
        parts = [part for path, taken in everything for part in _loaded(path, taken, notes)]
        if not parts or notes:
            continue
        after = parts[0].after
        corpus = _assembled(parts)
        settings = {**(corpus.settings or {}), **({} if after is None else {AFTER: after})}
        replace(corpus, settings=settings).save(folder / f"{_utc(hour):{HOUR_NAME}}{SUFFIX}")
        for path in paths:
            if not _is_whole_hour(path):
                path.unlink(missing_ok=True)


def _of_latest_kind(
    found: list[tuple[Path, _Extent]], notes: list[str]
) -> Iterator[tuple[Path, _Extent]]:
    """Yield the files that were made as the latest was."""
    if not found:
        return
    latest = max(found, key=lambda each: each[1].times[-1])[1].kind
    n_others = sum(len(extent.times) for _, extent in found if extent.kind != latest)
    if n_others:
        notes.append(
            f"{n_others} documents were left out: they were made with another frame size or mask"
        )
    yield from ((path, extent) for path, extent in found if extent.kind == latest)


def _wanted(
    times: NDArray[np.float64],
    since: float,
    until: float,
    excluded: Sequence[tuple[float, float]],
) -> Flags:
    """Return which documents may be learnt from."""
    wanted = (times >= since) & (times < until)
    for start, end in excluded:
        wanted &= (times < start) | (times >= end)
    return wanted


def _spread_minutes(times: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return minutes, spread evenly over those of the documents, that have at most so many.

    Examples
    --------
    >>> _spread_minutes(np.arange(600.0), most=200)
    array([0., 4., 9.])
    """
    minutes, counts = np.unique(times // MINUTE, return_counts=True)
    n = len(minutes)
    chosen = np.arange(n)
    while counts[chosen].sum() > most and len(chosen) > 1:
        n = min(len(chosen) - 1, int(n * most / counts.sum()) if n == len(minutes) else n - 1)
        chosen = np.linspace(0, len(minutes) - 1, max(n, 1)).astype(np.int64)
    return np.asarray(minutes[chosen])


class _Part(NamedTuple):
    """Documents of one file that are learnt from."""

    corpus: Corpus
    counts: SparseCounts
    """Its counts, as small as on disk."""
    after: float | None
    """Time of the document that the first one follows, in another file."""
    last: float | None
    """Time of the last document, if it was the last of its file."""


def _loaded(path: Path, taken: Flags, notes: list[str]) -> Iterator[_Part]:
    """Yield what was taken of a file, unless it is damaged."""
    try:
        corpus = Corpus.load(path)
    except HabitusError as error:
        notes.append(f"{path.name} is damaged and was left out: {error}")
        return
    after = (corpus.settings or {}).get(AFTER)
    if not taken.all():
        corpus = corpus.take(np.flatnonzero(taken))
    yield _Part(
        replace(corpus, entries=_none_of(corpus.entries)),
        replace(corpus.entries, data=smallest(corpus.entries.data)),
        after if taken[0] else None,
        float(corpus.times[-1]) if taken[-1] else None,
    )


def _none_of(counts: SparseCounts) -> SparseCounts:
    """Return as many documents without words."""
    indptr = np.zeros_like(counts.indptr)
    return SparseCounts(counts.data[:0].copy(), counts.indices[:0].copy(), indptr, counts.n_words)


def _assembled(parts: list[_Part]) -> Corpus:
    """Return all parts as one corpus, sequences that go on from one file to the next in one."""
    corpora = [part.corpus for part in parts]
    settings = {k: v for k, v in (corpora[-1].settings or {}).items() if k != AFTER}
    lengths: list[int] = []
    last: float | None = None
    for part in parts:
        own = part.corpus.lengths.tolist()
        if lengths and part.after is not None and part.after == last:
            lengths[-1] += own.pop(0)
        lengths += own
        last = part.last
    pictures = [corpus.picture for corpus in corpora if corpus.picture is not None]
    spread = np.linspace(0, len(pictures) - 1, min(len(pictures), 2 * FEWEST_STILLS - 1))
    entries = SparseCounts.joined([part.counts for part in parts])
    parts.clear()  # or the counts would be there twice
    return Corpus(
        entries=entries,
        times=np.concatenate([corpus.times for corpus in corpora]),
        lengths=lengths,
        vocabulary=corpora[-1].vocabulary,
        n_frames=np.concatenate(
            [np.zeros(0) if corpus.n_frames is None else corpus.n_frames for corpus in corpora]
        ),
        conditions=np.concatenate([corpus.conditions for corpus in corpora]),
        clocks=np.concatenate([corpus.clocks for corpus in corpora]),
        picture=_median([pictures[n] for n in spread.astype(int)]),
        looks=joined_looks(look for corpus in corpora for look in corpus.looks),
        settings=settings,
    )
