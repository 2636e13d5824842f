"""Events of the cameras of a site, and the journal by which they reach its database.

The journal is a folder with one file for each thing that a camera's process knows of an event. A
file is written whole and renamed, so that it is there or not, whatever is killed. The server takes
the files in the order of their names, and deletes each after its contents are committed: taking one
twice changes nothing. While the database is away they wait.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from habitus.errors import FileError
from habitus.files import write_file
from habitus.rarity import unusualness
from habitus.scene.events import Event
from habitus.schema import decoded

ORDER = {"started": 0, "ended": 1, "clip": 2}
"""In which order what is known of an event is taken."""
OF_EVENT = "normality", "threshold", "probability", "rarity", "cue", "explanation", "behaviour"
"""What an event with its place in a site has from `Event` as it is."""


@dataclass(frozen=True, kw_only=True)
class SiteEvent:
    """An event with its place in a site, as journal, database, pages, API and messages have it.

    A camera's process writes it when it starts, when it is over and once its clip is cut; the
    database adds what people say of it.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"use_attribute_docstrings": True}

    id: str
    """Given when it starts."""
    camera_id: str
    camera: str = ""
    """Name of the camera."""
    start: float
    """In seconds since the epoch, as all times."""
    end: float | None
    """None while it goes on."""
    peak: float
    alarm: bool
    """False for what only twice the budget would have raised."""
    at_half: bool = False
    """Whether half the budget would have raised it too."""
    zone: str = ""
    """Name of the zone that it is in, if any."""
    quiet: bool = False
    """Whether it would be an alarm, but for its zone or for too many alarms before it."""
    normality: float
    threshold: float
    probability: float | None = None
    rarity: str = ""
    unusual: int = 0
    """From 0, each minute, to 100, once a year."""
    cue: str = ""
    explanation: str
    behaviour: int
    offset: float | None = None
    """Of a recording: seconds from its beginning."""
    dated: bool = True
    """False for a recording of which nobody knows when it was."""
    thumbnail: str | None = None
    """Name of a file in the camera's folder `events`, as are `heat` and `clip`."""
    heat: str | None = None
    clip: str | None = None
    clip_start: float | None = None
    """Time of the first frame of its clip."""
    n_bytes: int = 0
    """Of these files."""
    review: str | None = None
    """normal, unusual, or None."""
    reviewed: float | None = None
    reviewer: str | None = None
    silenced_by: str | None = None
    """Event that was called normal, so that this one would not be raised."""
    note: str = ""
    """What people wrote about it."""
    starred: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    """As `habitus detect` writes it. Lists and messages have neither this nor the two below."""
    newer: str | None = None
    """Id of the next alarm, if there is one."""
    older: str | None = None

    @classmethod
    def of(
        cls,
        event: Event,
        *,
        id: str,
        camera_id: str,
        start: float,
        speed: float = 1.0,
        ended: bool,
        thresholds: Sequence[float],
    ) -> "SiteEvent":
        """Return an event that started at a time.

        `speed` is the number of seconds of video in a second; `thresholds` begin with that of half
        the budget.
        """
        return cls(
            id=id,
            camera_id=camera_id,
            start=start,
            end=start + (event.end - event.start) / speed if ended else None,
            peak=start + (event.peak - event.start) / speed,
            alarm=event.alarm,
            at_half=event.alarm and event.normality < thresholds[0],
            zone=event.zone,
            quiet=not event.alarm and event.normality < event.threshold,
            unusual=unusualness(event.probability),
            details=event.to_json(),
            **{name: getattr(event, name) for name in OF_EVENT},
        )

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
    write_file(folder / event.file_name, json.dumps(asdict(event), allow_nan=False).encode())
    return event.file_name


def filed_events(folder: Path) -> Iterator[tuple[Path, SiteEvent | FileError]]:
    """Yield the files of a journal folder in their order; an error for one that is damaged."""
    for path in sorted(folder.glob("[0-9]*.json")):  # not those that are being written
        try:
            text = path.read_text(encoding="utf-8")
            if '"thresholds": ' in text:
                text = json.dumps(_of_0_4(json.loads(text), path.parents[1].name))
            yield path, decoded(text, SiteEvent)
        except (FileError, OSError, ValueError, KeyError, TypeError) as error:
            yield path, FileError(f"{path}: not an entry of the journal: {error}")


def _of_0_4(entry: dict[str, Any], camera_id: str) -> dict[str, Any]:
    """Return the fields of an event from an entry as 0.4 wrote it; a clip came without others."""
    details, thresholds = entry["event"], entry["thresholds"]
    same = {name: entry[name] for name in ("id", "start", "end", "peak", "alarm", "n_bytes")}
    event = {"normality": 0.0, "threshold": 0.0, "explanation": "", "behaviour": 0} | {
        name: value for name, value in details.items() if name in OF_EVENT
    }
    at_half = bool(entry["alarm"] and thresholds and event["normality"] < thresholds[0])
    unusual = unusualness(event.get("probability"))
    new = {"camera_id": camera_id, "clip_start": entry.get("clip_start"), "details": details}
    return {**same, **entry["files"], **event, **new, "at_half": at_half, "unusual": unusual}
