"""How answers are put together: pages by templates, words and small drawings; and files."""

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from habitus.errors import InvalidInputError
from habitus.rarity import how_often, unusualness
from habitus.web import queries
from habitus.web.answers import CameraCard, CameraTimeline
from habitus.web.database import CameraRow
from habitus.web.http_errors import NotFoundError
from habitus.web.security import Actor, Admin, Reviewer, Viewer, console_of
from habitus.web.server import Console
from habitus.web.store import TROUBLES

STATES = {
    "connecting": "waiting for its first picture",
    "learning": "learning what is usual",
    "watching": "watching",
    "lost": "no picture comes",
    "frozen": "the picture stands still",
    "covered": "the picture is covered",
    "moved": "the camera was moved",
    "slow": "fewer pictures come than are needed",
    "refused": "it cannot be watched as it is",
    "off": "switched off",
    "ended": "the recording was judged to its end",
}
"""What each state means, where no reason is given."""
ERRORS = {
    401: "Not logged in",
    403: "Not allowed",
    404: "Not found",
    409: "Not possible now",
    413: "Too large",
    422: "That does not work",
    429: "Too many attempts",
    503: "Not available now",
}
OCCASIONS = {
    "first": "first model",
    "hour": "after an hour",
    "night": "nightly",
    "asked": "asked for",
}
CUES = {
    "place": "motion where there is little",
    "direction": "the direction of motion",
    "speed": "the speed of motion",
    "together": "place, direction and speed together",
    "behaviours": "the behaviours of the scene",
    "hour": "motion at an unusual hour",
    "turn": "motion out of its turn",
    "standing": "something that stands",
    "scan": "at one place",
    "sum": "over the whole picture",
}
"""What the words of a cue mean."""
SAID = {
    "added": "The camera is added. It learns what is usual from now on.",
    "given": "The recording is read now; what is unusual in it comes to the events.",
    "changed": "The changes are in use.",
    "removed": "It is removed.",
    "learning": "Learning starts as soon as the machine is free for it.",
    "tested": "The test message was sent.",
    "reviewed": "The review is written down.",
    "dismissed": "The notices are dismissed.",
    "undone": "The review is taken back.",
    "snoozed": "Nobody is sent events of this camera until then.",
    "awake": "Events of this camera are sent again.",
    "noted": "It is written down.",
}
"""What pages say after an action, by the word in the address."""
STALE = 30.0
"""Seconds after which a document does not say any more what happens now."""
MOST = 1e9
"""Largest number that a form takes."""
SPARK_WIDTH, SPARK_HEIGHT = 120.0, 24.0
JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}}
VIDEO: dict[int | str, dict[str, Any]] = {
    200: {"content": {"video/mp4": {}}},
    206: {"description": "A part, as Range asks for it.", "content": {"video/mp4": {}}},
}


class Page:
    """What pages for one request are made with: who sees them, and of which console."""

    def __init__(self, request: Request, actor: Actor) -> None:
        self.request, self.actor = request, actor
        self.console = console_of(request)
        self.database = self.console.database

    def __call__(
        self, template: str, *, section: str = "", status: int = 200, **context: Any
    ) -> HTMLResponse:
        """Return a page in the frame of the console, below an entry of the navigation."""
        frame = {
            "actor": self.actor,
            "section": section,
            "bare": False,
            "flash": SAID.get(self.request.query_params.get("said", "")),
            "to_review": self.database.read(queries.count, queries.EventFilter(review="none")),
        }
        return _rendered(template, status, frame | context)

    def part(self, template: str, **context: Any) -> HTMLResponse:
        """Return a piece of a page."""
        return _rendered(template, 200, {"actor": self.actor} | context)


async def _viewer_page(request: Request, actor: Viewer) -> Page:
    return Page(request, actor)


async def _reviewer_page(request: Request, actor: Reviewer) -> Page:
    return Page(request, actor)


async def _admin_page(request: Request, actor: Admin) -> Page:
    return Page(request, actor)


ViewerPage = Annotated[Page, Depends(_viewer_page)]
ReviewerPage = Annotated[Page, Depends(_reviewer_page)]
AdminPage = Annotated[Page, Depends(_admin_page)]


def bare_page(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a page without navigation, for somebody who is not known."""
    frame = {"actor": None, "csrf": "", "bare": True, "flash": None}
    return _rendered(template, status, frame | context)


def error_page(status: int, detail: str) -> HTMLResponse:
    """Return an error in the style of the console; it needs neither database nor actor."""
    title = ERRORS.get(status, "Something went wrong")
    if status == HTTPStatus.NOT_FOUND and detail == HTTPStatus.NOT_FOUND.phrase:
        detail = "there is no such page"
    return bare_page("error.html", status, code=status, title=title, detail=detail)


def go(address: str, said: str = "") -> RedirectResponse:
    """Send the browser to a page after a change; it says what was done."""
    return RedirectResponse(f"{address}?{urlencode({'said': said})}" if said else address, 303)


def file_answer(path: Path, media: str, what: str, *, lasting: bool = False) -> FileResponse:
    """Return a file of a media type; one that will not change may be kept by the browser."""
    if ".." in path.parts or not path.is_file():
        raise NotFoundError(f"the {what} is not there, or not any more")
    headers = {"Cache-Control": "private, max-age=3600"} if lasting else {}
    return FileResponse(path, media_type=media, headers=headers)


def _rendered(template: str, status: int, context: Mapping[str, Any]) -> HTMLResponse:
    return HTMLResponse(_environment().get_template(template).render(context), status)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("habitus.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        STATES=STATES, OCCASIONS=OCCASIONS, TROUBLES=frozenset(map(str, TROUBLES))
    )
    environment.filters.update(
        iso=iso,
        local=local_time,
        cue_in_words=cue_in_words,
        how_often=how_often,
        offset=offset,
        duration=duration,
        sentence=sentence,
        unusual=lambda normality: unusualness(math.exp(normality)),
        bytes=in_bytes,
        details=in_words,
    )
    return environment


def iso(seconds: float) -> str:
    """Return a time in ISO 8601, in UTC.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def local_time(seconds: float, style: str = "moment") -> str:
    """Return a time as the server has it; the browser writes it in its own zone."""
    styles = {"full": "%A %-d %B %Y, %H:%M:%S", "second": "%a %-d %b, %H:%M:%S"}
    styles["short"] = "%-d %b %H:%M"
    return datetime.fromtimestamp(seconds).strftime(styles.get(style, "%a %-d %b, %H:%M"))


def duration(seconds: float) -> str:
    """Return a number of seconds in words.

    >>> duration(5), duration(200), duration(7000), duration(200_000)
    ('5 s', '3 min', '2 h', '2 days')
    """
    for unit, length in (("day", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length or (unit != "day" and seconds >= length):
            n = round(seconds / length)
            return f"{n} {unit}{'s' if unit == 'day' and n != 1 else ''}"
    return f"{seconds:.0f} s"


def offset(seconds: float) -> str:
    """Return where in a recording something is.

    >>> offset(83.4), offset(4000)
    ('1:23', '1:06:40')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def cue_in_words(cue: str) -> str:
    """Return what a cue means.

    >>> cue_in_words("direction, scan")
    'the direction of motion, at one place'
    """
    return ", ".join(CUES.get(word, word) for word in cue.split(", "))


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def in_bytes(number: float) -> str:
    """Return a number of bytes in words.

    >>> in_bytes(999), in_bytes(3_400_000), in_bytes(20e9)
    ('999 B', '3.4 MB', '20 GB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"


def in_words(details: Mapping[str, Any]) -> str:
    """Return plain values in one line.

    >>> in_words({"changed": ["mask", "name"], "before": None, "options": {"local": True}})
    'changed mask name, options local yes'
    """
    words = {}
    for key, value in details.items():
        match value:
            case bool():
                words[key] = "yes" if value else "no"
            case float():
                words[key] = f"{value:.15g}"
            case list():
                words[key] = " ".join(map(str, value))
            case dict():
                words[key] = in_words(value)
            case _:
                words[key] = "" if value is None else str(value)
    return ", ".join(f"{key.replace('_', ' ')} {word}" for key, word in words.items() if word)


class Spark(NamedTuple):
    """A small drawing of how unusual the last minutes were; pages draw on as news come."""

    path: str
    level: float | None
    """Where on it alarms begin, from its top."""
    normality: list[float | None]
    step: float
    """Seconds from one value to the next."""
    last: float
    """When the last value is."""


def spark(line: CameraTimeline, threshold: float | None) -> Spark:
    """Return the drawing of a part of the timeline, beside the threshold of alarms if it is known.

    With it in the picture, what is usual looks calm.
    """
    values = [value for value in line.normality if value is not None]
    values += [threshold] if values and threshold is not None else []
    low, high = min(values, default=0.0), max(values, default=0.0)
    path = spark_path(line.normality, low, high)
    level = None if threshold is None or not values else _spark_y(threshold, low, high)
    return Spark(path, level, line.normality, line.step, line.times[-1])


def spark_path(normality: Sequence[float | None], low: float, high: float) -> str:
    """Return the path of a small drawing that rises where it is unusual; gaps are gaps.

    >>> spark_path([-3.0, -4.0, None, -3.0], -4.0, -3.0)
    'M0.0 23.0 L40.0 1.0 M120.0 23.0'
    """
    step = SPARK_WIDTH / max(len(normality) - 1, 1)
    path, pen = [], "M"
    for k, value in enumerate(normality):
        if value is not None:
            path.append(f"{pen}{k * step:.1f} {_spark_y(value, low, high):.1f}")
        pen = "M" if value is None else "L"
    return " ".join(path)


def _spark_y(value: float, low: float, high: float) -> float:
    return 1 + (value - low) / max(high - low, 1.0) * (SPARK_HEIGHT - 2)


class Now(NamedTuple):
    """What a camera does now, and what it is expected to do next."""

    behaviour: int
    """Counted from 1; 0 if not known."""
    next: int
    """The most probable one; 0 if not known."""
    probability: float
    normality: float | None
    threshold: float | None
    name: str = ""
    """What people call it."""
    next_name: str = ""


def now_at(console: Console, camera: CameraCard | CameraRow) -> Now | None:
    """Return what a camera does now; None if it is not being judged."""
    if console.supervisor is None or camera.state != "watching":
        return None
    latest = console.supervisor.latest(camera.id)
    judged, names = latest.judged, latest.names
    if judged is None or time.time() - judged.time > STALE:
        return None
    probability = max(judged.expected, default=0.0)
    following = 1 + judged.expected.index(probability) if judged.expected else 0
    return Now(
        *(judged.behaviour, following, probability, judged.normality, judged.threshold),
        *(names.get(judged.behaviour, ""), names.get(following, "")),
    )


def has_picture(console: Console, camera: str) -> bool:
    """Return whether a camera has sent a picture since the console was started."""
    return console.supervisor is not None and console.supervisor.latest(camera).seen is not None


def number(name: str, text: str) -> float:
    """Return a number that was typed; raise if it is none, or none that can be counted with.

    >>> number("days", "7.5")
    7.5
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= MOST:
        raise InvalidInputError(f"{name} must be a number, found {text[:20]!r}")
    return value
