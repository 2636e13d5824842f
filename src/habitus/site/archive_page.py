"""The page of an archive: one HTML file that contains everything it needs."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from habitus.errors import HabitusError
from habitus.files import written_whole
from habitus.rarity import counted, sentence
from habitus.reporting.figures.moments import jpeg
from habitus.reporting.figures.scene import behaviour_captions, behaviour_pictures
from habitus.reporting.page.render import data_uri, stylesheet, template, version_facts
from habitus.scene import SceneModel
from habitus.scene.events import Event
from habitus.site.overview import ArchiveOverview, CameraOverview, clock_in_words
from habitus.site.shard_judging import hours_in_words
from habitus.site.shard_store import ArchiveFolder

FEW_DAYS = 10
"""Days up to which each has a row of hours; of more, each is a column."""
CELL, ROW, COLUMN, BAR = 10, 7, 12, 5
"""Size of an hour in units of the drawing: width and height of few days, of many."""
SCENE = 300
"""Width of the picture of a behaviour, in pixels."""
STYLE = Path(__file__).parent / "templates" / "archive.css"
MOST_SHOWN = 40
"""Moments with pictures on the page."""
MOST_TROUBLES = 5
"""Troubles of a camera that are shown in full."""


class HourBar(NamedTuple):
    """Hours of one day in the same state, in units of the drawing."""

    x: float
    y: float
    width: float
    height: float
    state: str
    """"whole", "part", "none" or "unread"."""
    title: str


class Calendar(NamedTuple):
    """The hours of a camera, day by day."""

    width: float
    height: float
    spans: list[HourBar]
    alarms: list[tuple[float, float]]
    days: list[tuple[float, float, str]]
    """Position and text of the labels of days."""
    hours: list[tuple[float, float, str]]
    in_words: str
    """The same in words."""


def write_archive_page(path: Path, folder: ArchiveFolder, overview: ArchiveOverview) -> None:
    """Write the page of an archive, with its models and pictures, as one .html file."""
    first, last = _days(overview)
    html = template("habitus.site", "archive.html").render(
        overview=overview,
        headline=_headline(overview),
        lead=_lead(overview),
        cameras=[
            (camera, calendar_of(camera, overview.moments, first, last))
            for camera in overview.cameras
        ],
        moments=[_card(folder, moment) for moment in overview.moments[:MOST_SHOWN]],
        scenes=[(camera, _behaviours(folder, camera)) for camera in overview.cameras],
        most_troubles=MOST_TROUBLES,
        clock=clock_in_words,
        facts=version_facts(),
        style=Markup(stylesheet()),  # noqa: S704 - a file of this package
        own_style=Markup(STYLE.read_text(encoding="utf-8")),  # noqa: S704 - a file of this package
    )
    with written_whole(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def _headline(overview: ArchiveOverview) -> str:
    alarms = counted(overview.alarms, "alarm") if overview.alarms else "No alarms"
    return f"{alarms} on {counted(len(overview.cameras), 'camera')}"


def _lead(overview: ArchiveOverview) -> str:
    read = f"{hours_in_words(overview.hours)} of recordings read"
    cameras = [camera for camera in overview.cameras if camera.first]
    if cameras:
        first = min(camera.first or "" for camera in cameras)
        last = max(camera.until or "" for camera in cameras)
        read += f", from {clock_in_words(first)} to {clock_in_words(last)}"
    troubled = [camera.camera for camera in overview.in_trouble]
    if not troubled:
        return f"{read}. No camera is in trouble."
    return f"{read}. In trouble: {', '.join(troubled)}."


def _days(overview: ArchiveOverview) -> tuple[date, date]:
    """Return the first and the last day of all cameras."""
    days = [
        hour[:10] for camera in overview.cameras for hour in (*camera.covered, *camera.unread_hours)
    ]
    if not days:
        return date(1970, 1, 1), date(1970, 1, 1)
    return date.fromisoformat(min(days)), date.fromisoformat(max(days))


def calendar_of(
    camera: CameraOverview, moments: Sequence[Event], first: date, last: date
) -> Calendar:
    """Return the hours of a camera, from the first day to the last.

    Up to ten days each has a row of 24 hours; more are columns.
    """
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    rows = len(days) <= FEW_DAYS
    place = _placed_in_rows if rows else _placed_in_columns
    spans = [
        HourBar(*place(n, hours[0], len(hours)), state, _title(day, hours, state))
        for n, day in enumerate(days)
        for state, hours in _states(camera, day)
    ]
    alarms = []
    for moment in moments:
        clock = moment.clock
        if moment.camera == camera.camera and moment.alarm and clock:
            n = (date.fromisoformat(clock[:10]) - first).days
            x, y, width, height = place(n, int(clock[11:13]), 1)
            alarms.append((x + width / 2, y + height / 2))
    every = max(1, -(-len(days) // 12))
    return Calendar(
        24 * CELL if rows else len(days) * COLUMN,
        len(days) * (ROW + 2) if rows else 24 * BAR,
        spans,
        alarms,
        [(*place(n, 0, 1)[:2], f"{day:%d %b}") for n, day in enumerate(days) if n % every == 0],
        [(*place(0, hour, 1)[:2], f"{hour:02d}") for hour in range(0, 24, 6)],
        f"{camera.hours:.1f} hours read, {camera.gap_hours:.1f} hours missing in "
        f"{counted(camera.gaps, 'gap')}, {counted(camera.unread, 'recording')} that cannot be read",
    )


def _placed_in_rows(day: int, hour: int, n: int) -> tuple[float, float, float, float]:
    return hour * CELL, day * (ROW + 2), n * CELL - 0.8, ROW


def _placed_in_columns(day: int, hour: int, n: int) -> tuple[float, float, float, float]:
    return day * COLUMN, hour * BAR, COLUMN - 1, n * BAR


def _states(camera: CameraOverview, day: date) -> Iterator[tuple[str, list[int]]]:
    """Yield the states of the hours of a day, and the hours of each, in order."""

    def state(hour: int) -> str:
        key = f"{day:%Y-%m-%d}T{hour:02d}"
        share = camera.covered.get(key, 0.0)
        if key in camera.unread_hours:
            return "unread"
        return "whole" if share > 0.98 else "part" if share > 0 else "none"

    for name, hours in groupby(range(24), key=state):
        yield name, list(hours)


def _title(day: date, hours: Sequence[int], state: str) -> str:
    text = {"whole": "read", "part": "read in part", "none": "no recording", "unread": "unreadable"}
    return f"{day:%Y-%m-%d} {hours[0]:02d}:00 to {hours[-1] + 1:02d}:00: {text[state]}"


def _card(folder: ArchiveFolder, event: Event) -> dict[str, Any]:
    picture = None
    if event.thumbnail is not None:
        path = folder.path / event.thumbnail
        picture = data_uri(path.read_bytes()) if path.is_file() else None
    return {
        "camera": event.camera,
        "event": event,
        "id": hashlib.blake2b(event.line().encode(), digest_size=4).hexdigest(),
        "clock": (event.clock or "")[:19].replace("T", " "),
        "seconds": f"{event.end - event.start:.0f} s",
        "why": f"{sentence(event.explanation)}.",
        "rarity": f"{sentence(event.rarity)}." if event.rarity else "",
        "picture": picture,
    }


def _behaviours(folder: ArchiveFolder, camera: CameraOverview) -> list[tuple[str, str | None]]:
    """Return caption and picture of each behaviour; none where there is no model."""
    try:
        model = SceneModel.load(folder.camera(camera.camera).model).model
    except HabitusError:
        return []
    pictures = [data_uri(jpeg(picture)) for picture in behaviour_pictures(model, width=SCENE)]
    captions = behaviour_captions(model)
    return [(caption, pictures[n] if pictures else None) for n, caption in enumerate(captions)]
