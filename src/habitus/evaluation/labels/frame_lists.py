"""Labels a frame: lists of zeros and ones, ranges, and the ground truth of the UCSD data sets."""

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.errors import InvalidInputError
from habitus.evaluation.labels.footage import Footage
from habitus.evaluation.labels.label import Label

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
