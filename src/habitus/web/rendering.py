"""How answers are put together: pages by templates, words and small drawings; and files."""

import inspect
import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.datastructures import FormData

from habitus.errors import HabitusError, InvalidInputError
from habitus.rarity import how_often, sentence, unusualness
from habitus.web import queries
from habitus.web.answers import HttpError, RequestBody, checked, status_of
from habitus.web.channels.notification import offset
from habitus.web.security import CSRF_FIELD, Actor, Admin, Reviewer, Viewer, console_of
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
ON_PAGE = {
    f"an admin may allow local {what} for this camera": (
        "tick “The camera is on this machine” if that is meant"
    )
    for what in ("addresses", "files")
}
"""Remedies that an error names, as the form has them."""
MOST = 1e9
"""Largest number that a form takes."""
JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}}
VIDEO: dict[int | str, dict[str, Any]] = {
    200: {"content": {"video/mp4": {}}},
    206: {"description": "A part, as Range asks for it.", "content": {"video/mp4": {}}},
}


Action = TypeVar("Action", bound=Callable[..., Any])


class Page:
    """What pages for one request are made with: who sees them, and of which console."""

    def __init__(self, request: Request, actor: Actor) -> None:
        self.request, self.actor = request, actor
        self.console = console_of(request)
        self.database = self.console.database

    def __call__(
        self,
        template: str,
        *,
        section: str = "",
        problem: HabitusError | None = None,
        **context: Any,
    ) -> HTMLResponse:
        """Return a page in the frame of the console, below an entry of the navigation.

        `problem` is why a form was refused, of which the page names the field.
        """
        words = str(problem or "")
        for remedy, on_page in ON_PAGE.items():
            words = words.replace(remedy, on_page)
        frame = {
            "actor": self.actor,
            "section": section,
            "problem": words,
            "problem_at": getattr(problem, "parameter", None) or "",
            "bare": False,
            "flash": SAID.get(self.request.query_params.get("said", "")),
            "to_review": self.database.read(queries.count, queries.EventFilter(review="none")),
        }
        return _rendered(template, status_of(problem) if problem else 200, frame | context)

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
        raise HttpError(404, f"the {what} is not there, or not any more")
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
        code_spans=code_spans,
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


def code_spans(text: str) -> Markup:
    """Return a text with its code between backticks marked as such.

    >>> code_spans("`next` of <b>")
    Markup('<code>next</code> of &lt;b&gt;')
    """
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def cue_in_words(cue: str) -> str:
    """Return what a cue means.

    >>> cue_in_words("direction, scan")
    'the direction of motion, at one place'
    """
    return ", ".join(CUES.get(word, word) for word in cue.split(", "))


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


def has_picture(console: Console, camera: str) -> bool:
    """Return whether a camera has sent a picture since the console was started."""
    return console.supervisor is not None and console.supervisor.latest(camera).seen is not None


def on_page(
    router: APIRouter,
    path: str,
    back: str,
    said: str | Callable[[Any], str] = "changed",
    refused: Callable[[Page, HabitusError, FormData], Response] | None = None,
    values_of: Callable[[FormData], dict[str, Any]] | None = None,
) -> Callable[[Action], Action]:
    """Have a form do what a function of the API does, and then show a page.

    `back` may name parameters of the function and its `result`, `said` depend on that; `refused`
    shows why nothing was done; `values_of` returns what a form says, unless by names of fields.
    """

    def registered(action: Action) -> Action:
        parameters = inspect.signature(action).parameters
        bodies = {
            name: parameter.annotation
            for name, parameter in parameters.items()
            if isinstance(parameter.annotation, type)
            and issubclass(parameter.annotation, RequestBody)
        }

        def route(request: Request, posted: FormData, **values: Any) -> Response:
            try:
                for name, kind in bodies.items():
                    values[name] = checked(
                        kind, values_of(posted) if values_of else _sent(posted, kind)
                    )
                if "request" in parameters:
                    values["request"] = request
                result = action(**values)
            except HabitusError as error:
                if refused is None:
                    raise
                return refused(Page(request, values["actor"]), error, posted)
            return go(
                back.format(**values, result=result), said(result) if callable(said) else said
            )

        kinds = {name: parameter.annotation for name, parameter in parameters.items()}
        kinds |= {"request": Request, "posted": PostedFields}
        route.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
                for name, kind in kinds.items()
                if name not in bodies
            ]
        )
        router.post(path, response_class=HTMLResponse)(route)
        return action

    return registered


def _sent(form: FormData, kind: type[RequestBody]) -> dict[str, Any]:
    """Return what a form says of a thing; of a channel, all other fields are its settings."""
    names = kind.model_fields
    values: dict[str, Any] = {name: form[name] for name in form if name in names}
    if "settings" in names:
        others = {name: text for name, text in form.items() if text and name not in names}
        others.pop(CSRF_FIELD, None)
        values |= {"settings": others, "cameras": form.getlist("cameras")}
    return values


async def _posted(request: Request) -> FormData:
    return await request.form()


PostedFields = Annotated[FormData, Depends(_posted)]


def text_of(form: FormData, name: str, default: str = "") -> str:
    """Return what was typed into a field, without spaces around it."""
    value = form.get(name, default)
    return value.strip() if isinstance(value, str) else ""


def number_of(form: FormData, name: str) -> float:
    """Return a number that was typed; raise if it is none, or none that can be counted with.

    >>> number_of(FormData({"days": " 7.5"}), "days")
    7.5
    """
    text = text_of(form, name)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= MOST:
        words = name.replace("_", " ")
        raise InvalidInputError(f"{words} must be a number, found {text[:20]!r}")
    return value
