"""Labels a frame: lists of zeros and ones, ranges, and the ground truth of the UCSD data sets.

Labels as a folder of masks: an image a frame, not black where something is abnormal.

Labels as CSV tables: intervals, boxes frame by frame, a row a clip, a row a frame.

Labels in any of the forms they come in, as intervals of a video.
"""

import csv
import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from habitus.anomaly.localisation import Box
from habitus.arrays import Array
from habitus.errors import InvalidInputError
from habitus.evaluation.labels import (
    Footage,
    Label,
    Sighting,
    around,
    check_intervals,
    check_labels,
    seconds_of,
)

Range = tuple[int, int]


class FrameFlags(NamedTuple):
    """Whether each frame is abnormal."""

    name: str
    flags: NDArray[np.bool_]

    def on(self, footage: Footage | None) -> list[Label]:
        """A label for each stretch of abnormal frames."""
        known = needed(footage, self.name)
        return known.labels(known.fitted(self.flags, self.name))


class FrameRanges(NamedTuple):
    """First and last of abnormal frames, counted from 1."""

    name: str
    ranges: list[Range]

    def on(self, footage: Footage | None) -> list[Label]:
        """A label a range."""
        known = needed(footage, self.name)
        n = len(known.frames())
        flags = np.zeros(max([n, *(last for _, last in self.ranges)]), dtype=np.bool_)
        for first, last in self.ranges:
            flags[first - 1 : last] = True
        return known.labels(known.fitted(flags, self.name))


def needed(footage: Footage | None, name: str) -> Footage:
    """The footage, or an error if there is none."""
    if footage is None:
        raise InvalidInputError(f"{name}: labels a frame need the video that they are of")
    return footage


def read_numpy(file: Path) -> FrameFlags:
    """Flags of a `.npy` file of one dimension."""
    try:
        values = np.load(file, allow_pickle=False)
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, EOFError) as error:
        raise InvalidInputError(f"{file}: not a NumPy file of numbers: {error}") from error
    if not isinstance(values, np.ndarray) or not _are_flags(values := np.squeeze(values)):
        raise InvalidInputError(f"{file}: expected one 0 or 1 a frame, found something else")
    return FrameFlags(str(file), np.atleast_1d(values).astype(np.bool_))


def _are_flags(values: NDArray[np.generic]) -> bool:
    return values.ndim <= 1 and values.dtype.kind in "biuf" and bool(np.isin(values, (0, 1)).all())


def read_list(file: Path, text: str, line: int | None) -> FrameFlags | FrameRanges:
    """Zeros and ones, or ranges such as 60:152, separated by commas, spaces or ends of lines."""
    lines = [part for part in text.splitlines() if part.strip()]
    if line is not None:
        lines = [chosen(file, lines, line)]
    values = re.split(r"[\s,;]+", " ".join(lines).strip())
    if set(values) <= {"0", "1"}:
        return FrameFlags(str(file), np.array([value == "1" for value in values], dtype=np.bool_))
    # A range needs both its ends: 10,20 may well be seconds.
    others = [value for value in values if re.fullmatch(r"\d+[:-]\d+", value) is None]
    if others:
        raise _foreign(file, next((value for value in others if value not in "01"), others[0]))
    return FrameRanges(str(file), _checked(file, values))


def read_matlab(file: Path, text: str, line: int | None) -> FrameRanges:
    """The UCSD data sets' own: `TestVideoFile{end+1}.gt_frame = [60:152];`, a video a line."""
    found = re.findall(r"gt_frame\s*=\s*\[?([^\];\n]*)\]?", text)
    if not found:
        raise InvalidInputError(f"{file}: no line such as TestVideoFile{{end+1}}.gt_frame = [1:9];")
    if line is None and len(found) > 1:
        raise InvalidInputError(
            f"{file}: labels of {len(found)} videos: tell which, from 1 on, by --label-line"
        )
    values = re.split(r"[\s,]+", chosen(file, found, line or 1).strip())
    return FrameRanges(str(file), _checked(file, [value for value in values if value]))


def chosen(file: Path, lines: list[str], line: int) -> str:
    """A line by its number from 1 on."""
    if not 1 <= line <= len(lines):
        raise InvalidInputError(f"{file}: line {line} of {len(lines)} does not exist")
    return lines[line - 1]


def _checked(file: Path, values: list[str]) -> list[Range]:
    """Ranges in order, or an error if one is reversed or overlaps another."""
    ranges = sorted(_range(file, value) for value in values)
    for (_, end), (start, last) in pairwise(ranges):
        if start <= end:
            raise InvalidInputError(
                f"{file}: the frames {start}:{last} overlap others that end at {end}: make them one"
            )
    return ranges


def _range(file: Path, text: str) -> Range:
    match = re.fullmatch(r"(\d+)(?:[:-](\d+))?", text)
    if match is None:
        raise _foreign(file, text)
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= first <= last:
        raise InvalidInputError(
            f"{file}: frames count from 1 and a range must not end before it starts, found {text}"
        )
    return first, last


def _foreign(file: Path, value: str) -> InvalidInputError:
    return InvalidInputError(
        f"{file}: expected 0 or 1 for each frame, or ranges of frames such as 60:152, found "
        f"{value[:40]!r}; a table needs a first line with its columns, such as start,end"
    )


class Masks(NamedTuple):
    """Boxes of each frame, around what hangs together in its mask."""

    name: str
    boxes: list[list[Box]]
    size: tuple[int, int]
    """Width and height."""

    def on(self, footage: Footage | None) -> list[Label]:
        """A label for each stretch of frames with something in them, and where that is."""
        known = needed(footage, self.name)
        if known.size is not None and known.size != self.size:
            raise InvalidInputError(
                f"{self.name}: masks of {self.size[0]}x{self.size[1]} pixels, but {known.name} has "
                f"{known.size[0]}x{known.size[1]}: resize the masks"
            )
        flags = np.array([len(boxes) > 0 for boxes in self.boxes], dtype=np.bool_)
        found = known.labels(known.fitted(flags, self.name))
        sightings = [
            Sighting(float(start), box)
            for (start, _), boxes in zip(known.frames(), self.boxes, strict=False)
            for box in boxes
        ]
        return [_tracked(label, sightings) for label in found]


def _tracked(label: Label, sightings: list[Sighting]) -> Label:
    track = tuple(seen for seen in sightings if label.start <= seen.time < label.end)
    return label._replace(box=around([seen.box for seen in track]), track=track)


def read_masks(folder: Path) -> Masks:
    """The masks of a folder, in the order of the numbers in their names."""
    import cv2

    from habitus.video.source import image_paths

    boxes, size = [], None
    for path in image_paths(str(folder)):
        mask = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        if mask is None:
            raise InvalidInputError(f"{path}: not an image")
        found = (mask.shape[1], mask.shape[0])
        if size is not None and found != size:
            raise InvalidInputError(f"{path}: {found} pixels, the masks before it {size}")
        size = found
        _, _, parts, _ = cv2.connectedComponentsWithStats((mask > 0).astype(np.uint8))
        boxes.append([Box(int(x), int(y), int(x + w), int(y + h)) for x, y, w, h, _ in parts[1:]])
    return Masks(str(folder), boxes, size or (0, 0))


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


class Labelling(Protocol):
    """What a file of labels says; some of them only of footage that is known."""

    def on(self, footage: Footage | None) -> list[Label]:
        """The labels as intervals; those of frames and clips need the footage they are of."""
        ...


def read_labels(
    path: str | os.PathLike[str], footage: Footage | None = None, *, line: int | None = None
) -> list[Label]:
    """Labels of a file or folder in any form that docs/evaluation.md tells of.

    Times are seconds, or minutes and hours before colons: 754.5, 12:34.5, 0:12:34.5. Labels of
    frames or clips need the `footage` that they are of. `line` chooses one of several videos.
    """
    known = parse_labels(path, line=line)
    return known.on(None) if footage is None else align(known, footage, path)


def align(known: Labelling, footage: Footage, path: str | os.PathLike[str]) -> list[Label]:
    """Labels as intervals of the footage; refused where they lie outside it."""
    labels = known.on(footage)
    check_labels(labels, 0.0, footage.end, str(path))
    return labels


def parse_labels(path: str | os.PathLike[str], *, line: int | None = None) -> Labelling:
    """Read labels, and refuse what is none, before the footage is known."""
    file = Path(path)
    if not file.is_dir() and file.suffix.lower() != ".npy":
        text = _text(file)
        if "gt_frame" in text:
            return read_matlab(file, text, line)
        if text.lstrip()[:1].isdigit():
            return read_list(file, text, line)
    if line is not None:
        raise InvalidInputError(
            f"{file}: only lists of frames label a video a line, so there is no line {line} to "
            "choose: leave out --label-line"
        )
    if file.is_dir():
        return read_masks(file)
    return read_numpy(file) if file.suffix.lower() == ".npy" else read_table(file, text)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{file}: not a CSV file of labels: {error}") from error
