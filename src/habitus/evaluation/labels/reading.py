"""Labels in any of the forms they come in, as intervals of a video."""

import os
from pathlib import Path
from typing import Protocol

from habitus.errors import InvalidInputError
from habitus.evaluation.labels.footage import Footage
from habitus.evaluation.labels.frame_lists import read_list, read_matlab, read_numpy
from habitus.evaluation.labels.label import Label, check_labels
from habitus.evaluation.labels.masks import read_masks
from habitus.evaluation.labels.tables import read_table


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
