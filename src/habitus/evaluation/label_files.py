"""Readers of label files: CSV tables, lists and ranges of frames, NumPy arrays, folders of masks.

`parse_labels` reads a file and refuses a bad one before the footage is known; its result turns
into labels in seconds once it is.
"""

import csv
import os
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.arrays import Flags
from habitus.errors import InvalidInputError
from habitus.evaluation.labels import (
    Label,
    LabelledFootage,
    Sighting,
    check_labels,
    check_overlaps,
    parse_seconds,
)
from habitus.files import checked_path
from habitus.scene.localisation import Box
from habitus.scene.thresholds import runs
from habitus.schema import LATEST, MOST_FRAMES, MOST_PIXELS, shortened

UNPARSED = (SyntaxError, TokenError, MemoryError, RecursionError)
LONGEST_NUMBER = 18
"""Digits of a number of a frame, at most."""
FrameRange = tuple[int, int]
"""First and last frame, counted from 1."""


def read_labels(
    path: str | os.PathLike[str], footage: LabelledFootage | None = None, *, line: int | None = None
) -> list[Label]:
    """Read labels in any supported form.

    Parameters
    ----------
    path
        A CSV file, a list of frames, a `.npy` file, a ground-truth file of the UCSD data sets, or
        a folder of masks. Times are seconds, or have colons: 754.5, 12:34.5, 0:12:34.5.
    footage
        Footage that the labels are of; required for labels per frame or per clip.
    line
        Line of the video in a file that labels several videos, from 1.

    Returns
    -------
    list of Label
        Labels in seconds of video.

    Raises
    ------
    InvalidInputError
        If the file cannot be read as labels, or a label lies outside the footage.
    """
    labelling = parse_labels(path, line=line)
    return labelling.to_labels(None) if footage is None else align(labelling, footage)


def parse_labels(path: str | os.PathLike[str], *, line: int | None = None) -> "Labelling":
    """Read a label file before the footage is known; see `read_labels`."""
    file = checked_path(path)
    if not file.is_dir() and file.suffix.lower() != ".npy":
        text = _read_text(file)
        if "gt_frame" in text:
            return read_matlab(file, text, line)
        if text.lstrip()[:1].isdigit():
            return read_frame_list(file, text, line)
    if line is not None:
        raise InvalidInputError(
            f"{file}: only a list of frames can label one video per line: there is no line {line} "
            "to choose",
            parameter="label_line",
        )
    if file.is_dir():
        return read_masks(file)
    return read_numpy(file) if file.suffix.lower() == ".npy" else read_table(file, text)


def align(labels: "Sequence[Label] | Labelling", footage: LabelledFootage) -> list[Label]:
    """Return labels in seconds of the footage; raise InvalidInputError if one lies outside it."""
    if isinstance(labels, Labelling):
        aligned, name = labels.to_labels(footage), labels.name
    else:
        aligned, name = list(labels), "labels"
    check_labels(aligned, 0.0, footage.end, name, clip=footage.clip, size=footage.size)
    return aligned


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{file}: not a CSV file of labels: {error}") from error


class FrameFlags(NamedTuple):
    """Whether each frame is abnormal."""

    name: str
    flags: Flags
    whole: bool = True
    """Whether there is a flag for each frame; if not, the frames after the last are normal."""

    @classmethod
    def of_ranges(cls, name: str, ranges: list[FrameRange]) -> "FrameFlags":
        """Return the flags of ranges of abnormal frames."""
        flags = np.zeros(max((last for _, last in ranges), default=0), dtype=np.bool_)
        for first, last in ranges:
            flags[first - 1 : last] = True
        return cls(name, flags, whole=False)

    def to_flags(self, footage: LabelledFootage) -> Flags:
        """Return whether each frame of the footage is abnormal."""
        rest = 0 if self.whole else max(len(footage.frame_times()) - len(self.flags), 0)
        return footage.fit_flags(np.pad(self.flags, (0, rest)), self.name)

    def to_labels(self, footage: LabelledFootage | None) -> list[Label]:
        """Return one label per run of abnormal frames."""
        known = _required(footage, self.name)
        frames = known.frame_times()
        spans = runs(self.to_flags(known), join=0)
        return [Label(float(frames[a, 0]), float(frames[b, 1])) for a, b in spans]


class ClipRanges(NamedTuple):
    """Ranges of abnormal frames of several clips, by the stem of each clip's file name."""

    name: str
    ranges: dict[str, list[FrameRange]]

    def of(self, clip: str) -> FrameFlags:
        """Return the labels of one clip, by the name of its file; a clip may have none."""
        return FrameFlags.of_ranges(self.name, self.ranges.get(Path(clip).stem, []))

    def check_clips(self, clips: Sequence[str]) -> None:
        """Raise InvalidInputError if no clip has a row, or two clips have the same stem."""
        stems = [Path(clip).stem for clip in clips]
        twice = {stem for stem in stems if stems.count(stem) > 1}
        if twice:
            raise InvalidInputError(
                f"{self.name}: labels go by the stem of a clip's file name, and several clips are "
                f"called {shortened(min(twice))}"
            )
        if not set(stems) & set(self.ranges):
            raise InvalidInputError(
                f"{self.name}: labels of the clips {_few(sorted(self.ranges))}, but the footage is "
                f"{_few(stems)}: a clip is named by its file, without folder and suffix"
            )

    def to_labels(self, footage: LabelledFootage | None) -> list[Label]:
        """Return one label per range of the clip that the footage is."""
        required = _required(footage, self.name)
        self.check_clips([required.name])
        return self.of(required.name).to_labels(required)


def _few(names: Sequence[str], most: int = 5) -> str:
    """Return names in a row, the first few of many."""
    return ", ".join(map(shortened, names[:most])) + (", ..." if len(names) > most else "")


def _required(footage: LabelledFootage | None, name: str) -> LabelledFootage:
    if footage is None:
        raise InvalidInputError(f"{name}: labels per frame need the video that they are of")
    return footage


def read_numpy(file: Path) -> FrameFlags:
    """Read one flag per frame from a one-dimensional `.npy` file."""
    try:
        # Mapped, so that a header cannot ask for more than there is in the file.
        with np.errstate(over="ignore"):
            values = np.squeeze(np.load(file, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    # NumPy parses the header as a Python literal, which can fail in any of these ways.
    except (ValueError, EOFError, TypeError, OverflowError, *UNPARSED) as error:
        reason = shortened(" ".join(str(error).split()), 100)
        raise InvalidInputError(f"{file}: not a NumPy file of numbers: {reason}") from error
    numbers = values.ndim <= 1 and values.dtype.kind in "biuf"
    if not numbers or not np.isin(values, (0, 1)).all():
        raise InvalidInputError(f"{file}: expected one 0 or 1 per frame, found something else")
    return FrameFlags(str(file), np.array(values, dtype=np.bool_, ndmin=1))


def read_frame_list(file: Path, text: str, line: int | None) -> FrameFlags:
    """Read zeros and ones, or ranges such as 60:152, separated by commas, spaces or newlines."""
    lines = [part for part in text.splitlines() if part.strip()]
    if line is not None:
        lines = [_line_of(file, lines, line)]
    values = re.split(r"[\s,;]+", " ".join(lines).strip())
    if set(values) <= {"0", "1"}:
        return FrameFlags(str(file), np.array([value == "1" for value in values], dtype=np.bool_))
    # A range needs both ends: 10,20 may well be seconds.
    others = [value for value in values if re.fullmatch(r"[0-9]+[:-][0-9]+", value) is None]
    if others:
        raise _not_frames(file, next((value for value in others if value not in "01"), others[0]))
    return FrameFlags.of_ranges(str(file), _parse_ranges(file, values))


def read_matlab(file: Path, text: str, line: int | None) -> FrameFlags:
    """Read `TestVideoFile{end+1}.gt_frame = [60:152];`, the form of the UCSD data sets."""
    ranges = re.findall(r"gt_frame\s*=\s*\[?([^\];\n]*)\]?", text)
    if not ranges:
        raise InvalidInputError(f"{file}: no line such as TestVideoFile{{end+1}}.gt_frame = [1:9];")
    if line is None and len(ranges) > 1:
        raise InvalidInputError(
            f"{file}: labels of {len(ranges)} videos: choose one of them by its number, from 1",
            parameter="label_line",
        )
    values = re.split(r"[\s,]+", _line_of(file, ranges, line or 1).strip())
    return FrameFlags.of_ranges(str(file), _parse_ranges(file, list(filter(None, values))))


def _line_of(file: Path, lines: list[str], line: int) -> str:
    if not 1 <= line <= len(lines):
        raise InvalidInputError(
            f"{file}: line {line} of {len(lines)} does not exist", parameter="label_line"
        )
    return lines[line - 1]


def _parse_ranges(file: Path, values: list[str]) -> list[FrameRange]:
    """Return ranges in order; refuse ranges that overlap."""
    ranges = sorted(_parse_range(file, value) for value in values)
    for (_, end), (start, last) in pairwise(ranges):
        if start <= end:
            raise InvalidInputError(
                f"{file}: the frames {start}:{last} overlap a range that ends at {end}: merge them"
            )
    return ranges


def _parse_range(file: Path, text: str) -> FrameRange:
    match = re.fullmatch(r"([0-9]+)(?:[:-]([0-9]+))?", text)
    if match is None:
        raise _not_frames(file, text)
    first, last = _frame(file, match[1]), _frame(file, match[2] or match[1])
    if not 1 <= first <= last:
        raise InvalidInputError(
            f"{file}: frames count from 1 and a range must not end before it starts, found "
            f"{shortened(text)}"
        )
    return first, last


def _frame(file: str | Path, digits: str) -> int:
    """Return the number of a frame, if a video can have so many."""
    if len(digits) > LONGEST_NUMBER or int(digits) > MOST_FRAMES:
        raise InvalidInputError(
            f"{file}: a video has at most {MOST_FRAMES} frames, found frame {shortened(digits)}"
        )
    return int(digits)


def _not_frames(file: Path, value: str) -> InvalidInputError:
    return InvalidInputError(
        f"{file}: expected 0 or 1 per frame, or ranges of frames such as 60:152, found "
        f"{value[:40]!r}; a table needs a header line with its columns, such as start,end"
    )


class Masks(NamedTuple):
    """Boxes around the connected parts of the mask of each frame."""

    name: str
    boxes: list[list[Box]]
    """Boxes of each frame."""
    size: tuple[int, int]
    """Width and height of the masks."""

    def to_labels(self, footage: LabelledFootage | None) -> list[Label]:
        """Return one label, with its track, per run of frames with a mask that is not empty."""
        known = _required(footage, self.name)
        if known.size is not None and known.size != self.size:
            raise InvalidInputError(
                f"{self.name}: masks of {self.size[0]}x{self.size[1]} pixels, but {known.name} has "
                f"{known.size[0]}x{known.size[1]}: resize the masks"
            )
        flags = np.array([len(boxes) > 0 for boxes in self.boxes], dtype=np.bool_)
        sightings = [
            Sighting(float(start), box)
            for (start, _), boxes in zip(known.frame_times(), self.boxes, strict=False)
            for box in boxes
        ]
        labels = []
        for label in FrameFlags(self.name, flags).to_labels(known):
            track = tuple(seen for seen in sightings if label.start <= seen.time < label.end)
            box = Box.around(np.array([sighting.box for sighting in track]))
            labels.append(label._replace(box=box, track=track))
        return labels


def read_masks(folder: Path) -> Masks:
    """Read a folder of masks, one image per frame, in the order of the numbers in their names."""
    import cv2

    from habitus.video.source import image_paths

    boxes, size = [], None
    for path in image_paths(str(folder)):
        mask = _read_mask(path)
        pixels = (mask.shape[1], mask.shape[0])
        if size is not None and pixels != size:
            raise InvalidInputError(f"{path}: {pixels} pixels, but the masks before it have {size}")
        size = pixels
        _, _, parts, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
        boxes.append([Box(int(x), int(y), int(x + w), int(y + h)) for x, y, w, h, _ in parts[1:]])
    return Masks(str(folder), boxes, size or (0, 0))


def read_pixels(folder: Path, n_frames: int, size: tuple[int, int]) -> dict[int, NDArray[np.int64]]:
    """Read the abnormal pixels of a clip from `FRAME.png`, frames from 0, not black where abnormal.

    Returns their numbers, row by row, for each frame that has any. Frames without a mask, and clips
    without a folder, have none; masks of the few frames after the last document are left out.
    """
    from habitus.video.source import image_paths

    pixels = {}
    for path in image_paths(str(folder)) if folder.is_dir() else []:
        if not path.stem.isdecimal():
            raise InvalidInputError(
                f"{path}: a mask is named by the number of its frame, such as 012.png"
            )
        mask = _read_mask(path)
        if mask.shape != size[::-1]:
            raise InvalidInputError(
                f"{path}: {mask.shape[1]}x{mask.shape[0]} pixels, but the video has "
                f"{size[0]}x{size[1]}: resize the masks"
            )
        abnormal, frame = np.flatnonzero(mask), int(path.stem)
        if len(abnormal) and frame < n_frames:
            pixels[frame] = abnormal
    return pixels


def _read_mask(path: Path) -> Flags:
    """Return which pixels of an image are not black, rows x columns."""
    from habitus.video.mask import read_grey

    mask = read_grey(path)
    if mask is None:
        raise InvalidInputError(f"{path}: not an image")
    return np.asarray(mask > 0)


class TimedLabels(NamedTuple):
    """Labels with times of their own."""

    name: str
    labels: list[Label]

    def to_labels(self, footage: LabelledFootage | None) -> list[Label]:
        """Return the labels, whatever the footage."""
        return self.labels


Labelling = FrameFlags | ClipRanges | Masks | TimedLabels
"""Content of a label file, before its frames or clips have times."""
SIDES = ("left", "top", "right", "bottom")
TableLabels = TimedLabels | ClipRanges


class TableRow(NamedTuple):
    """A row of a table."""

    place: str
    """File and line, for messages."""
    values: dict[str, str]

    def error(self, text: str) -> InvalidInputError:
        """Return the error that this row is refused with."""
        return InvalidInputError(f"{self.place}: {text}")

    def time(self, name: str) -> float:
        """Return a column in seconds."""
        try:
            seconds = parse_seconds(self.values[name])
        except ValueError as error:
            raise self.error(f"{name} is not a number: {shortened(str(error), 100)}") from error
        if not 0 <= seconds <= LATEST:
            raise self.error(f"{name} must be from 0 to {LATEST:g}, found {seconds:g}")
        return seconds

    def box(self) -> Box:
        """Return the box of the columns `SIDES`."""
        try:
            box = Box(*(round(float(self.values[side])) for side in SIDES))
        except (KeyError, ValueError, OverflowError) as error:
            raise self.error(
                f"a box needs left, top, right and bottom in pixels: {shortened(str(error), 80)}"
            ) from error
        left, top, right, bottom = box
        if not (0 <= left < right <= MOST_PIXELS and 0 <= top < bottom <= MOST_PIXELS):
            raise self.error(
                "a box must end to the right of and below its start, within "
                f"{MOST_PIXELS} pixels, found {shortened(','.join(map(str, box)))}"
            )
        return box


def read_table(file: Path, text: str) -> TableLabels:
    """Read a CSV table; its columns say which form it has."""
    try:
        reader = csv.DictReader(text.splitlines(), skipinitialspace=True, strict=True)
        names = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = names
        read = _table_reader(file, names)
        rows = [TableRow(f"{file}, line {number}", row) for number, row in enumerate(reader, 2)]
    except csv.Error as error:
        raise InvalidInputError(f"{file}: not a CSV file of labels: {error}") from error
    for row in rows:
        if None in row.values or None in row.values.values():
            raise row.error(f"expected {len(names)} values ({', '.join(names)})")
    return read(str(file), rows)


_TableReader = Callable[[str, list[TableRow]], TableLabels]


def _table_reader(file: Path, names: list[str]) -> _TableReader:
    """Return the reader of the first form that has these columns."""
    for required, optional, read in _FORMS:
        if set(required) <= set(names) <= {*required, *optional} and len(set(names)) == len(names):
            return read
    found = shortened(", ".join(names)) or "none"
    raise InvalidInputError(
        f"{file}: found the columns {found}; expected start,end (optional: "
        "kind,left,top,right,bottom), or clip,first_frame,last_frame, or "
        "time,event,left,top,right,bottom (optional: frame,kind)"
    )


def _read_intervals(name: str, rows: list[TableRow]) -> TimedLabels:
    labels = []
    for row in rows:
        start, end, values = row.time("start"), row.time("end"), row.values
        if not start < end:
            raise row.error(
                f"a label must end after it starts, found {shortened(values['start'])} to "
                f"{shortened(values['end'])}"
            )
        box = row.box() if any(values.get(side) for side in SIDES) else None
        labels.append(Label(start, end, values.get("kind") or "", box))
    check_overlaps(labels, name)
    return TimedLabels(name, labels)


def _read_tracks(name: str, rows: list[TableRow]) -> TimedLabels:
    """Read one box per event and frame, as written by `habitus.lab.junction`."""
    tracks: dict[tuple[str, str], list[Sighting]] = {}
    for row in rows:
        event = row.values["event"], row.values.get("kind") or ""
        tracks.setdefault(event, []).append(Sighting(row.time("time"), row.box()))
    times = np.unique([sighting.time for track in tracks.values() for sighting in track])
    step = float(np.diff(times).min(initial=1.0))
    labels = []
    for (_, kind), track in tracks.items():
        track.sort()
        box = Box.around(np.array([sighting.box for sighting in track]))
        labels.append(Label(track[0].time, track[-1].time + step, kind, box, tuple(track)))
    return TimedLabels(name, sorted(labels))


def _read_clip_ranges(name: str, rows: list[TableRow]) -> ClipRanges:
    """Read ranges of frames of clips, frames from 0, both ends inclusive."""
    ranges: dict[str, list[FrameRange]] = {}
    for row in rows:
        first, last = row.values["first_frame"].strip(), row.values["last_frame"].strip()
        whole = re.fullmatch(r"[0-9]+", first) and re.fullmatch(r"[0-9]+", last)
        if not whole or _frame(name, first) > _frame(name, last):
            raise row.error(
                "first_frame and last_frame must be whole numbers from 0, the last not before the "
                f"first, found {shortened(repr(first))} and {shortened(repr(last))}"
            )
        ranges.setdefault(row.values["clip"].strip(), []).append((int(first) + 1, int(last) + 1))
    return ClipRanges(name, ranges)


_FORMS: tuple[tuple[tuple[str, ...], tuple[str, ...], _TableReader], ...] = (
    (("start", "end"), ("kind", *SIDES), _read_intervals),
    (("time", "event", *SIDES), ("frame", "kind"), _read_tracks),
    (("clip", "first_frame", "last_frame"), (), _read_clip_ranges),
)
