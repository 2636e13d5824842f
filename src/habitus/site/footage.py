"""Documents of a camera on disk, to learn from: the last days, whatever is killed meanwhile.

Each minute is written to a shard of its own, so that at most a minute is lost and nothing is
written twice. Whoever learns joins the minutes of past hours to one shard an hour. Times are
seconds since the epoch. The settings of such a corpus have one entry more, `after`: the time of the
document that its first one follows, in the file before; without it, a sequence begins there.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Flags, Image
from habitus.corpus import Condition, Corpus, Vocabulary
from habitus.corpus.clocks import minute_of
from habitus.corpus.documents import FORMAT, shard_bytes
from habitus.corpus.looks import median_picture
from habitus.corpus.sparse import SparseCounts
from habitus.corpus.stands import StandingCells, StandingWords
from habitus.errors import FileError, HabitusError
from habitus.files import write_file
from habitus.ingest.backgrounds import Backgrounds
from habitus.ingest.clips import Document, DocumentSettings
from habitus.rarity import DAY, HOUR
from habitus.scene.scene_model import SEGMENT, spread_numbers
from habitus.site.pipe_messages import FootageExtent
from habitus.site.shard_store import FILES, SUFFIX, described_shards, like_latest

# Days for which documents are kept, where nobody says otherwise.
LEARN_DAYS = 7.0
# Seconds of documents in a file as it is written first.
MINUTE = 60.0
# How files are named: by their first document, or by their hour.
SHARD_NAME, HOUR_NAME = "%Y%m%dT%H%M%S", "%Y%m%dT%H"
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


class _HeldDocument(NamedTuple):
    """A document that is not written yet; its words in a third of the memory."""

    time: float
    words: NDArray[np.int32]
    counts: NDArray[np.integer[Any]]
    """Of the smallest type that holds them."""
    n_frames: int
    condition: Condition
    follows: bool
    standing: StandingCells


class _StoredFile(NamedTuple):
    """When the documents of a file are from, and how they were made; not their words."""

    path: Path
    times: NDArray[np.float64]
    usable: Flags
    kind: object
    """Vocabulary and settings; files of the same can be joined."""
    n_counts: int
    """Distinct words of all documents, each counted by itself."""

    @classmethod
    def described(cls, path: Path) -> "_StoredFile":
        """Read the header; HabitusError or LookupError if it is no file of documents."""
        header, _, arrays = FORMAT.read_header(path, ("times", "conditions", "indptr"))
        times, indptr = arrays["times"], arrays["indptr"]
        if not len(times):
            raise FileError(f"{path}: expected documents, found none")
        settings = {k: v for k, v in (header.get("settings") or {}).items() if k != AFTER}
        usable = arrays["conditions"] == Condition.USABLE
        return cls(path, times, usable, (header["vocabulary"], settings), int(indptr[-1]))

    @property
    def is_whole_hour(self) -> bool:
        """Whether minutes were joined to it."""
        return len(self.path.stem) == len("YYYYMMDDTHH")


class FootageWriter:
    """Keeps the documents of a camera in a folder as they come, for some days, or for ever if None.

    It never raises because of the disk: what cannot be written waits in memory, for ten minutes.
    `notes` has what there is to say to a person; whoever says it clears the list.
    """

    def __init__(
        self, folder: Path, settings: DocumentSettings, *, learn_days: float | None = LEARN_DAYS
    ) -> None:
        self.folder, self.settings, self.learn_days = folder, settings, learn_days
        self.notes: list[str] = []
        self._vocabulary: Vocabulary | None = None
        self._backgrounds: Backgrounds
        """Of cameras with that vocabulary."""
        self._held: list[_HeldDocument] = []
        self._before: float | None = None
        """Time of the latest document that was written, or dropped."""
        self._failed, self._since = False, 0.0
        """Whether the last attempt to write failed; the time from which a minute is counted."""
        self._scene = _Scene()
        self._n_files, self._hour = 0, -1
        self._pruned = -1
        """Hour in which files were deleted last."""
        self._written = [self._extent(file.usable, file.times) for file in _files(folder, [])]
        self.kept = self._sum()
        """How much there is to learn from; None where there is nothing."""

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

        `time` is the start of its clip in seconds since the epoch. Where it does not follow the
        document before, a sequence begins.
        """
        if vocabulary != self._vocabulary:
            self.flush()
            self._vocabulary, self._before, follows = vocabulary, None, False
            self._scene = _Scene()
            self._backgrounds = Backgrounds.of(vocabulary, self.settings)
        if self._held and not 0 <= time - self._since < MINUTE:
            self.flush()
            self._since = time
        elif not self._held:
            self._since = time
        if not follows:
            self._backgrounds.new_sequence()
        stands = self._backgrounds.take(document, condition)
        words, counts = document.words.astype(np.int32), document.counts
        counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))
        self._held.append(
            _HeldDocument(time, words, counts, document.n_frames, condition, follows, stands)
        )
        if condition is Condition.USABLE and document.still is not None:
            self._scene.add(document.still, time)

    def flush(self) -> None:
        """Write what is held now."""
        if not self._held or self._vocabulary is None:
            return
        path = self.folder / f"{_utc(self._held[0].time):{SHARD_NAME}}{SUFFIX}"
        try:
            write_file(_free(path), shard_bytes(self._corpus(self._vocabulary)))
        except (HabitusError, OSError) as error:
            self._hold_back(error)
            return
        if self._failed:
            self._failed = False
            self.notes.append("documents to learn from are written again")
        last = self._held[-1].time
        usable = [held.condition is Condition.USABLE for held in self._held]
        self._written.append(self._extent(usable, [held.time for held in self._held]))
        self._before, self._held, self._n_files = last, [], self._n_files + 1
        self._prune(last)
        self.kept = self._sum()

    def _sum(self) -> FootageExtent | None:
        if not self._written:
            return None
        seconds, first, last = zip(*self._written, strict=True)
        return FootageExtent(sum(seconds), min(first), max(last))

    def _extent(self, usable: ArrayLike, times: Sequence[float] | NDArray[Any]) -> FootageExtent:
        clip = self.settings.clip
        n_usable = int(np.count_nonzero(usable))
        return FootageExtent(n_usable * clip, float(times[0]), float(times[-1]) + clip)

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
        rows = [(document.words, document.counts) for document in held]
        begins = np.array([n == 0 or not document.follows for n, document in enumerate(held)])
        settings = self.settings.to_json(vocabulary)
        if held[0].follows and self._before is not None:
            settings[AFTER] = self._before
        return Corpus(
            entries=SparseCounts.of_rows(rows, vocabulary.n_words),
            times=[document.time for document in held],
            lengths=np.diff([*np.flatnonzero(begins), len(held)]),
            vocabulary=vocabulary,
            n_frames=[document.n_frames for document in held],
            conditions=[document.condition for document in held],
            clocks=[minute_of(document.time) for document in held],
            picture=self._scene.picture() if self._wants_picture() else None,
            settings=settings,
            standing=StandingWords.of([document.standing for document in held], vocabulary.n_cells),
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
        self._written = [extent for extent in self._written if extent.last > oldest]
        for path in self.folder.glob(FILES):
            if _hour_of(path) + HOUR < oldest:
                path.unlink(missing_ok=True)


class _Scene:
    """Stills that are spread over the time so far; packed without loss, to a third."""

    def __init__(self) -> None:
        self.stills: list[Image] = []
        self.shape: tuple[int, ...] = ()
        self.spacing, self.latest = STILL_SPACING, -math.inf

    def add(self, still: Image, time: float) -> None:
        """Take a still, if it is time for one."""
        if 0 <= time - self.latest < self.spacing:
            return
        if self.shape != still.shape:
            self.stills, self.shape = [], still.shape
        self.stills.append(_packed(still))
        self.latest = time
        if len(self.stills) >= 2 * FEWEST_STILLS:
            self.stills, self.spacing = self.stills[::2], 2 * self.spacing

    def picture(self) -> Image | None:
        """Return the picture of the scene without what moves in it."""
        return _median([_unpacked(still) for still in self.stills])


def _packed(still: Image) -> Image:
    """Return a still as PNG, packed quickly."""
    return np.asarray(cv2.imencode(".png", still, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1], np.uint8)


def _unpacked(still: Image) -> Image:
    return np.asarray(cv2.imdecode(still, cv2.IMREAD_UNCHANGED), np.uint8)


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


def _free(path: Path) -> Path:
    """Return a name that is not taken, as one may be where the clock was set back."""
    number, named = 1, path
    while named.exists():
        number += 1
        named = path.with_stem(f"{path.stem}-{number}")
    return named


def _files(folder: Path, notes: list[str]) -> list[_StoredFile]:
    """Return the files of a folder in order of time; one that is damaged is noted.

    What was joined to a whole hour already is left out.
    """
    hours, files = dict[str, NDArray[np.float64]](), []
    for file in described_shards(folder, _StoredFile.described, notes):
        if file.is_whole_hour:
            hours[file.path.stem] = file.times
        elif file.times[0] in hours.get(file.path.stem[:11], ()):
            continue
        files.append(file)
    return sorted(files, key=lambda file: file.times[0])


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
    """Read the documents of a camera that start from `since` to before `until`, but for `excluded`.

    Of more than `most`, or of more than `most_counts` distinct words together, segments are taken
    that are spread evenly over the time. What is damaged is left out, and so is what was made in
    another way than the latest: of another frame size, with another mask.
    """
    notes: list[str] = []
    files = _files(folder, notes)
    latest = like_latest(files)
    if n_others := sum(len(file.times) for file in files if file.kind != latest[-1].kind):
        notes.append(
            f"{n_others} documents were left out: they were made with another frame size or mask"
        )
    times = np.concatenate([np.empty(0), *(file.times for file in latest)])
    wanted = (times >= since) & (times < until)
    for start, end in excluded:
        wanted &= (times < start) | (times >= end)
    chosen = np.flatnonzero(wanted)
    n_counts = sum(file.n_counts for file in latest)
    most = min(most, len(times) * most_counts // max(n_counts, 1))
    if len(chosen) > most:
        chosen = chosen[spread_numbers(len(chosen), most)]
    corpus = _joined(latest, chosen, notes)
    if corpus is not None:
        settings = {k: v for k, v in (corpus.settings or {}).items() if k != AFTER}
        corpus = replace(corpus, settings=settings)
    return Footage(corpus, notes)


def join_hours(folder: Path, before: float) -> None:
    """Join the minutes of each hour that was over some minutes before a time to one file.

    It can be repeated, and interrupted. An hour in which settings changed stays as it is.
    """
    for hour, group in groupby(_files(folder, []), key=lambda file: _hour_of(file.path)):
        files, notes = list(group), list[str]()
        is_over = hour + HOUR + 2 * MINUTE <= before
        if not is_over or all(file.is_whole_hour for file in files):
            continue
        n_documents = sum(len(file.times) for file in files)
        alike = len(like_latest(files)) == len(files)
        corpus = _joined(files, np.arange(n_documents), notes) if alike else None
        if corpus is None or notes:
            continue
        write_file(folder / f"{_utc(hour):{HOUR_NAME}}{SUFFIX}", shard_bytes(corpus))
        for file in files:
            if not file.is_whole_hour:
                file.path.unlink(missing_ok=True)


def thin(folder: Path, share: float, now: float) -> None:
    """Keep a share of the documents of each past hour, in segments that are spread over it.

    Learning takes such segments anyway where there is more than it reads. An hour of which less
    than a segment would stay, or that is damaged, stays as it is.
    """
    join_hours(folder, now)
    for file in _files(folder, []):
        n_documents = len(file.times)
        most = int(share * n_documents)
        if not file.is_whole_hour or not SEGMENT <= most < n_documents:
            continue
        corpus = _joined([file], spread_numbers(n_documents, most), [])
        if corpus is not None:
            write_file(file.path, shard_bytes(corpus))


def _joined(
    files: Sequence[_StoredFile], chosen: NDArray[np.int64], notes: list[str]
) -> Corpus | None:
    """Return chosen documents of files, counted over all, as one corpus; None without any.

    Sequences go on from one file to the next. A file that is damaged is noted.
    """
    starts = np.cumsum([0, *(len(file.times) for file in files)])
    parts, lengths, follows = list[Corpus](), list[int](), dict[str, Any]()
    for file, start, (low, high) in zip(
        files, starts[:-1], pairwise(np.searchsorted(chosen, starts)), strict=True
    ):
        if low == high:
            continue
        try:
            whole = Corpus.load(file.path)
        except HabitusError as error:
            notes.append(f"{file.path.name} is damaged and was left out: {error}")
            continue
        numbers = chosen[low:high] - start
        if len(whole) != len(file.times):  # thinned since its header was read
            numbers = np.flatnonzero(np.isin(whole.times, file.times[numbers]))
            if not len(numbers):
                continue
        part = whole.take(numbers)
        after = (whole.settings or {}).get(AFTER) if chosen[low] == start else None
        part_lengths = part.lengths.tolist()
        if not parts and after is not None:
            follows = {AFTER: after}
        elif after is not None and after == parts[-1].times[-1]:
            lengths[-1] += part_lengths.pop(0)
        lengths += part_lengths
        parts.append(part)
    if not parts:
        return None
    pictures = [part.picture for part in parts if part.picture is not None]
    spread = np.linspace(0, len(pictures) - 1, min(len(pictures), 2 * FEWEST_STILLS - 1))
    picture = _median([pictures[n] for n in spread.astype(int)])
    corpus = Corpus.joined(parts)
    settings = {k: v for k, v in (corpus.settings or {}).items() if k != AFTER} | follows
    return replace(corpus, lengths=np.asarray(lengths), picture=picture, settings=settings)
