"""Events to take away: as a table, and with their pictures and clips as one file."""

import csv
import io
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from habitus.errors import InvalidInputError
from habitus.site.journal import SiteEvent
from habitus.web import queries
from habitus.web.channels.notification import address_of, at, event_links
from habitus.web.server import Console

TOGETHER = 500
"""Events that are read at once."""
COLUMNS = (
    *("id", "camera", "zone", "start", "seconds", "explanation", "rarity", "unusual", "cue"),
    *("review", "reviewer", "starred", "note", "page"),
)


def table_lines(
    console: Console, wanted: queries.EventFilter, ids: Sequence[str] = ()
) -> Iterator[str]:
    """Yield chosen events, or all of a filter, as lines of CSV with a header."""
    base = address_of(console.settings)
    yield _line(COLUMNS)
    for part in _parts(console, wanted, ids):
        yield "".join(_line(_values(event, base)) for event in part)


def _parts(
    console: Console, wanted: queries.EventFilter, ids: Sequence[str]
) -> Iterator[list[SiteEvent]]:
    if ids:
        yield console.database.read(queries.summaries, ids)
        return
    before: str | None = None
    while True:
        part = console.database.read(queries.events, wanted, before=before, limit=TOGETHER)
        yield part.events
        if (before := part.next) is None:
            return


def _values(event: SiteEvent, base: str) -> tuple[Any, ...]:
    seconds = "" if event.end is None else f"{event.end - event.start:.1f}"
    start = at(event.start) if event.dated else f"{event.offset:.1f} s in the recording"
    return (
        *(event.id, event.camera, event.zone, start, seconds, event.explanation, event.rarity),
        event.unusual,
        *(event.cue, event.review or "", event.reviewer or "", "yes" if event.starred else ""),
        *(event.note, event_links(base, event.id)["page"]),
    )


def _line(values: Sequence[Any]) -> str:
    r"""Return a line of CSV; a text that a spreadsheet would calculate is quoted for it.

    >>> _line(["a, b", 5, "=1+1"])
    '"a, b",5,\'=1+1\r\n'
    """
    text = io.StringIO()
    csv.writer(text).writerow(
        f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t" and value else value
        for value in values
    )
    return text.getvalue()


def write_archive(console: Console, ids: Sequence[str]) -> Path:
    """Write events with their pictures and clips to a file that the caller deletes; return it."""
    events = console.database.read(queries.summaries, ids)
    if not events:
        raise InvalidInputError("choose events first", parameter="event")
    with (
        tempfile.NamedTemporaryFile(
            dir=console.settings.data, prefix="export-", suffix=".zip", delete=False
        ) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        lines = "".join(table_lines(console, queries.EventFilter(), [event.id for event in events]))
        archive.writestr("events.csv", lines)
        for event in events:
            folder = console.settings.camera_folder(event.camera_id) / "events"
            for name in (event.thumbnail, event.heat, event.clip):
                if name and (folder / name).is_file():
                    archive.write(folder / name, f"{event.camera_id}-{name}")
    return Path(file.name)
