"""Events of the cameras of a site, and the journal by which they reach its database.

The journal is a folder with one file for each thing that a camera's process knows of an event. A
file is written whole and renamed, so that it is there or not, whatever is killed. The server takes
the files in the order of their names, and deletes each after its contents are committed: taking one
twice changes nothing. While the database is away they wait.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from habitus.errors import FileError
from habitus.files import write_file
from habitus.scene.events import Event
from habitus.schema import decoded

ORDER = {"started": 0, "ended": 1, "clip": 2}
"""In which order what is known of an event is taken."""


@dataclass(frozen=True, kw_only=True)
class SiteEvent:
    """An event, whole, and its place in a site: what a camera's process knows of it.

    It is written when the event starts, when it is over and once its clip is cut.
    """

    id: str
    """Given when it starts."""
    camera_id: str
    start: float
    """In seconds since the epoch, as all times."""
    end: float | None
    """None while it goes on."""
    peak: float
    at_half: bool = False
    """Whether half the budget would have raised it too."""
    thumbnail: str | None = None
    """Name of a file in the camera's folder `events`, as are `heat` and `clip`."""
    heat: str | None = None
    clip: str | None = None
    clip_start: float | None = None
    """Time of the first frame of its clip."""
    n_bytes: int = 0
    """Of these files."""
    details: Event | None
    """The event; None beside a clip."""

    @property
    def alarm(self) -> bool:
        """Whether it is an alarm; only alarms have clips."""
        return self.details is None or self.details.alarm

    @property
    def kind(self) -> str:
        """What is known of it: that it has started, its end, or its clip."""
        return "clip" if self.clip else "started" if self.end is None else "ended"

    @property
    def file_name(self) -> str:
        """Name of its file in a journal, by which files are in order.

        What became an alarm has another name than what was none: a file that has been read and is
        deleted next is never replaced by one that says more.
        """
        alarm = "_alarm" if self.kind == "started" and self.alarm else ""  # sorted after the other
        return f"{self.start * 1000:015.0f}-{self.id}-{ORDER[self.kind]}-{self.kind}{alarm}.json"


def file_event(folder: Path, event: SiteEvent) -> str:
    """Write what is known of an event to a journal folder, and return the name of its file."""
    entry = {**vars(event), "details": event.details and event.details.to_json()}
    write_file(folder / event.file_name, json.dumps(entry, allow_nan=False).encode())
    return event.file_name


def filed_events(folder: Path) -> Iterator[tuple[Path, SiteEvent | FileError]]:
    """Yield the files of a journal folder in their order; an error for one that is damaged."""
    for path in sorted(folder.glob("[0-9]*.json")):  # not those that are being written
        try:
            text = path.read_text(encoding="utf-8")
            if '"thresholds": ' in text:
                text = json.dumps(_of_0_4(json.loads(text), path.parents[1].name))
            yield path, decoded(text.replace('"details": {}', '"details": null'), SiteEvent)
        except (FileError, OSError, ValueError, KeyError, TypeError) as error:
            yield path, FileError(f"{path}: not an entry of the journal: {error}")


def _of_0_4(entry: dict[str, Any], camera_id: str) -> dict[str, Any]:
    """Return an entry as 0.4 wrote it as one of today; a clip came without its event."""
    event, thresholds, alarm = entry["event"], entry["thresholds"], entry["alarm"]
    at_half = bool(event and alarm and thresholds and event["normality"] < thresholds[0])
    details = {**event, "alarm": alarm} if event else None
    new = {"camera_id": camera_id, "details": details, "at_half": at_half}
    return {**entry, **entry["files"], **new}
