"""Labels as CSV tables: intervals, boxes frame by frame, a row a clip, a row a frame."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.errors import InvalidInputError
from habitus.evaluation.labels.footage import Footage
from habitus.evaluation.labels.frame_lists import FrameFlags
from habitus.evaluation.labels.label import Label, Sighting, around, check_intervals, seconds_of
from habitus.model.parameters import Array
from habitus.normality.localisation import Box

SIDES = ("left", "top", "right", "bottom")
Row = dict[str, str]


class Intervals(NamedTuple):
    """Labels that bear their own times."""

    labels: list[Label]

    def on(self, footage: Footage | None) -> list[Label]:
        """The labels, whatever the footage."""
        return self.labels


class ClipFlags(NamedTuple):
    """Whether each document is abnormal."""

    name: str
    flags: NDArray[np.bool_]
    clips: Array
    """Number of each, from 0 on; or its start in seconds."""
    in_seconds: bool

    def on(self, footage: Footage | None) -> list[Label]:
        """A label for each stretch of abnormal documents."""
        if footage is None:
            raise InvalidInputError(f"{self.name}: labels a clip need the video that they are of")
        n, expected = len(footage.times), footage.times
        if len(self.flags) != n:
            raise InvalidInputError(
                f"{self.name}: {len(self.flags)} clips, but {footage.name} has {n} documents of "
                f"{footage.clip:g} s: another video, or another length of clip?"
            )
        if not self.in_seconds:
            expected = np.arange(n, dtype=np.float64)
        wrong = np.flatnonzero(np.abs(self.clips - expected) > 0.01 * footage.clip)
        if len(wrong):
            k, column = int(wrong[0]), "start" if self.in_seconds else "clip"
            raise InvalidInputError(
                f"{self.name}: {column} {self.clips[k]:g} where document {k} is, which should be "
                f"{expected[k]:g}: a row a document, in order, none left out"
            )
        return _stretches(self.flags, footage)


def _stretches(flags: NDArray[np.bool_], footage: Footage) -> list[Label]:
    return footage._replace(n_frames=np.ones(len(footage.times), dtype=np.int64)).labels(flags)


def read_table(file: Path, text: str) -> "Intervals | ClipFlags | FrameFlags":
    """What a CSV table holds, by its columns."""
    try:
        reader = csv.DictReader(text.splitlines(), skipinitialspace=True, strict=True)
        names = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = names
        read = _form(file, names)
        rows = list(reader)
    except csv.Error as error:
        raise InvalidInputError(f"{file}: not a CSV file of labels: {error}") from error
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise InvalidInputError(
                f"{file}, line {number}: expected {len(names)} values ({', '.join(names)})"
            )
    return read(file, rows)


_Form = Callable[[Path, list[Row]], "Intervals | ClipFlags | FrameFlags"]


def _form(file: Path, names: list[str]) -> _Form:
    """How to read a table with these columns: the first form that knows all of them."""
    for required, optional, read in _FORMS:
        if set(required) <= set(names) <= {*required, *optional} and len(set(names)) == len(names):
            return read
    raise InvalidInputError(
        f"{file}: found the columns {', '.join(names) or 'none'}; expected start,end (and perhaps "
        "kind,left,top,right,bottom), or clip,abnormal, or start,abnormal, or frame,abnormal, or "
        "time,event,left,top,right,bottom (and perhaps frame,kind)"
    )


def _intervals(file: Path, rows: list[Row]) -> Intervals:
    labels = [_interval(file, number, row) for number, row in enumerate(rows, start=2)]
    check_intervals(labels, str(file))
    return Intervals(labels)


def _interval(file: Path, number: int, row: Row) -> Label:
    start, end = (_time(file, number, row, name) for name in ("start", "end"))
    if not 0 <= start < end < float("inf"):
        raise InvalidInputError(
            f"{file}, line {number}: a label must end after it starts, found {row['start']} to "
            f"{row['end']}"
        )
    some = any(row.get(side) for side in SIDES)
    return Label(start, end, row.get("kind") or "", _box(file, number, row) if some else None)


def _tracks(file: Path, rows: list[Row]) -> Intervals:
    """Boxes frame by frame, as `write_boxes` of the junction has them; an event each number."""
    tracks: dict[tuple[str, str], list[Sighting]] = {}
    for number, row in enumerate(rows, start=2):
        seen = Sighting(_time(file, number, row, "time"), _box(file, number, row))
        tracks.setdefault((row["event"], row.get("kind") or ""), []).append(seen)
    times = np.unique([seen.time for track in tracks.values() for seen in track])
    step = float(np.diff(times).min(initial=1.0))
    labels = []
    for (_, kind), track in tracks.items():
        track.sort()
        box = around([seen.box for seen in track])
        labels.append(Label(track[0].time, track[-1].time + step, kind, box, tuple(track)))
    return Intervals(sorted(labels))


def _clips(file: Path, rows: list[Row]) -> ClipFlags:
    name = "clip" if rows and "clip" in rows[0] else "start"
    clips = [_time(file, number, row, name) for number, row in enumerate(rows, start=2)]
    return ClipFlags(str(file), _flags(file, rows), np.array(clips), name == "start")


def _frames(file: Path, rows: list[Row]) -> FrameFlags:
    flags = _flags(file, rows)
    if rows and "frame" in rows[0]:
        numbers = [_time(file, number, row, "frame") for number, row in enumerate(rows, start=2)]
        if np.any(np.diff(numbers) != 1) or numbers[0] not in (0, 1):
            raise InvalidInputError(
                f"{file}: frames must be numbered from 0 or 1 on, a row each, none left out"
            )
    return FrameFlags(str(file), flags)


def _flags(file: Path, rows: list[Row]) -> NDArray[np.bool_]:
    for number, row in enumerate(rows, start=2):
        if row["abnormal"].strip() not in ("0", "1"):
            raise InvalidInputError(
                f"{file}, line {number}: abnormal must be 0 or 1, found {row['abnormal']!r}"
            )
    return np.array([row["abnormal"].strip() == "1" for row in rows], dtype=np.bool_)


def _time(file: Path, number: int, row: Row, name: str) -> float:
    try:
        return seconds_of(row[name])
    except ValueError as error:
        raise InvalidInputError(f"{file}, line {number}: {name} is no number: {error}") from error


def _box(file: Path, number: int, row: Row) -> Box:
    try:
        box = Box(*(round(float(row[side])) for side in SIDES))
    except (KeyError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{file}, line {number}: a box needs left, top, right and bottom in pixels: {error}"
        ) from error
    if not (0 <= box.left < box.right and 0 <= box.top < box.bottom):
        raise InvalidInputError(
            f"{file}, line {number}: a box must end to the right of and below where it starts, "
            f"found {','.join(map(str, box))}"
        )
    return box


_FORMS: tuple[tuple[tuple[str, ...], tuple[str, ...], _Form], ...] = (
    (("start", "end"), ("kind", *SIDES), _intervals),
    (("time", "event", *SIDES), ("frame", "kind"), _tracks),
    (("clip", "abnormal"), (), _clips),
    (("start", "abnormal"), (), _clips),
    (("abnormal",), ("frame",), _frames),
)
