"""Labels: what is known to have happened, as a table of intervals."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from habitus.errors import InvalidInputError
from habitus.normality.localisation import Box

COLUMNS = ("start", "end", "kind", "left", "top", "right", "bottom")


class Label(NamedTuple):
    """Something abnormal, as a person or the scene's own truth has it."""

    start: float
    """In seconds of video."""
    end: float
    kind: str = ""
    box: Box | None = None
    """Where, in pixels of the camera's frame."""


def read_labels(path: str | os.PathLike[str]) -> list[Label]:
    """Labels of a CSV file with columns start, end and, if known, kind, left, top, right, bottom.

    Times are seconds, or minutes and hours before colons: 754.5, 12:34.5, 0:12:34.5.
    """
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            _check_columns(file, reader.fieldnames)
            return [_label(file, number, row) for number, row in enumerate(reader, start=2)]
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{file}: not a CSV file of labels: {error}") from error


def check_labels(labels: list[Label], first: float, last: float, what: str = "labels") -> None:
    """Refuse labels that lie outside the video that they should be of."""
    for label in labels:
        if label.end <= first or label.start >= last:
            raise InvalidInputError(
                f"{what}: {label.kind or 'a label'} from {label.start:g} to {label.end:g} s is "
                f"outside the video, which runs from {first:g} to {last:g} s: another video, or "
                "other units?"
            )


def seconds_of(text: str) -> float:
    """Seconds, or a time with colons.

    >>> seconds_of("754.5"), seconds_of("12:34.5"), seconds_of("1:00:00")
    (754.5, 754.5, 3600.0)
    """
    seconds = 0.0
    for part in text.strip().split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def _check_columns(file: Path, found: Sequence[str] | None) -> None:
    names = list(found or [])
    unknown = [name for name in names if name not in COLUMNS]
    if "start" not in names or "end" not in names or unknown:
        raise InvalidInputError(
            f"{file}: labels need the columns start and end, and may have "
            f"{', '.join(COLUMNS[2:])}; found {', '.join(map(str, names)) or 'none'}"
        )


def _label(file: Path, number: int, row: dict[str, str]) -> Label:
    try:
        start, end = seconds_of(row["start"]), seconds_of(row["end"])
        sides = [row.get(side) for side in COLUMNS[3:]]
        box = Box(*(int(float(side or "")) for side in sides)) if all(sides) else None
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"{file}, line {number}: not numbers: {error}") from error
    if not 0 <= start < end < float("inf"):
        raise InvalidInputError(
            f"{file}, line {number}: a label must end after it starts, found {row['start']} to "
            f"{row['end']}"
        )
    return Label(start, end, row.get("kind") or "", box)
