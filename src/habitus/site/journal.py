"""What a camera's process found and the database does not have yet: one file each.

A file is written whole and renamed, so that it is there or not, whatever is killed. The server
takes the files in the order of their names, and deletes each after its contents are committed:
taking one twice changes nothing. While the database is away they wait here.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from typing_extensions import TypedDict

from habitus.errors import FileError
from habitus.files import write_file
from habitus.schema import decoded

ORDER = {"started": 0, "ended": 1, "clip": 2}
"""In which order the entries of an event are taken."""


class JournalFiles(TypedDict, total=False):
    """Names of an event's files in the camera's folder `events`."""

    thumbnail: str
    heat: str
    clip: str


@dataclass(frozen=True)
class JournalEntry:
    """What is known of an event at its start, at its end, or once its clip is cut."""

    id: str
    """Of the event."""
    kind: Literal["started", "ended", "clip"]
    start: float
    """In seconds since the epoch, as are `end` and `peak`."""
    end: float | None
    """None while it goes on."""
    peak: float
    alarm: bool
    """Whether it is one within the budget; False for what twice the budget would have raised."""
    event: dict[str, Any]
    """`habitus.Event.to_json()`; empty with a clip."""
    files: JournalFiles = field(default_factory=JournalFiles)
    n_bytes: int = 0
    """Of these files."""
    clip_start: float | None = None
    """Time of the first frame of its clip, with a clip."""
    thresholds: tuple[float, ...] = ()
    """Below which normality is an alarm at half the budget, the budget, and twice the budget."""

    @property
    def file_name(self) -> str:
        """Name of its file in a journal, by which entries are in order.

        What became an alarm has another name than what was none: a file that has been read and is
        deleted next is never replaced by one that says more.
        """
        alarm = "_alarm" if self.kind == "started" and self.alarm else ""  # sorted after the other
        return f"{self.start * 1000:015.0f}-{self.id}-{ORDER[self.kind]}-{self.kind}{alarm}.json"


def file_entry(folder: Path, entry: JournalEntry) -> str:
    """Write an entry to a journal folder, and return the name of its file."""
    write_file(folder / entry.file_name, json.dumps(asdict(entry), allow_nan=False).encode())
    return entry.file_name


def filed_entries(folder: Path) -> Iterator[tuple[Path, JournalEntry | FileError]]:
    """Yield the files of a journal folder in their order; an error for one that is damaged."""
    for path in sorted(folder.glob("[0-9]*.json")):  # not those that are being written
        try:
            yield path, decoded(path.read_text(encoding="utf-8"), JournalEntry)
        except (FileError, OSError, UnicodeDecodeError) as error:
            yield path, FileError(f"{path}: not an entry of the journal: {error}")
