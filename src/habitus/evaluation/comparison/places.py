"""Where the abnormal is, moment by moment: more closely than one box a label."""

import csv
import os
from pathlib import Path

from habitus.errors import InvalidInputError
from habitus.evaluation.comparison.footage import Place
from habitus.evaluation.labels import seconds_of
from habitus.normality.localisation import Box

COLUMNS = ("time", "left", "top", "right", "bottom")
MOMENT = 1e-3
"""Seconds that a row stands for: it marks the document that it lies in."""


def read_places(path: str | os.PathLike[str]) -> list[Place]:
    """Boxes of a CSV file: columns time, left, top, right and bottom; others are left alone.

    A row for every frame, as the built-in junction writes it, or for some of them.
    """
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InvalidInputError(
                    f"{file}: boxes need the columns {', '.join(COLUMNS)}; found "
                    f"{', '.join(reader.fieldnames or ()) or 'none'}"
                )
            return [_place(file, number, row) for number, row in enumerate(reader, start=2)]
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInputError(f"{file}: not a CSV file of boxes: {error}") from error


def _place(file: Path, number: int, row: dict[str, str]) -> Place:
    try:
        start = seconds_of(row["time"])
        box = Box(*(int(float(row[side])) for side in COLUMNS[1:]))
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInputError(f"{file}, line {number}: not numbers: {error}") from error
    if not (start >= 0 and box.left < box.right and box.top < box.bottom):
        raise InvalidInputError(
            f"{file}, line {number}: a box needs left < right, top < bottom and a time of at "
            f"least 0, found {', '.join(row[name] for name in COLUMNS)}"
        )
    return Place(start, start + MOMENT, box)
