"""Events: their list, each of them, and what people say of them."""

import csv
import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from sqlalchemy.orm import Session
from starlette.background import BackgroundTask

from habitus.errors import InvalidInputError
from habitus.web import administration, queries, reviews
from habitus.web.answers import (
    EventChanges,
    EventDetails,
    EventList,
    HttpError,
    Id,
    ManyReviews,
    PrecisionReport,
    ReviewCount,
    ReviewOutcome,
    ReviewRequest,
    SimilarEvent,
)
from habitus.web.channels.notification import address_of, at, event_links
from habitus.web.database import CameraRow, EventRow
from habitus.web.rendering import (
    JPEG,
    VIDEO,
    Page,
    ReviewerPage,
    ViewerPage,
    file_answer,
    go,
    on_page,
)
from habitus.web.security import Reviewer, ThisConsole, Viewer
from habitus.web.server import Console

pages = APIRouter()
api = APIRouter(prefix="/api", tags=["events"])
PER_PART = 48
MOST_CHOSEN = 500
"""Events that something is done with at once."""
HOURS = {
    "0-6": "night, 0 to 6",
    "6-12": "morning, 6 to 12",
    "12-18": "afternoon",
    "18-24": "evening",
}
UNUSUAL = {31: "once an hour or less", 55: "once a day or less", 81: "once a month or less"}
N_WEEKS = 5
"""Weeks that the calendar shows."""


TOGETHER = 500
"""Events that are read at once."""
COLUMNS = (
    *("id", "camera", "zone", "start", "seconds", "explanation", "rarity", "unusual", "cue"),
    *("review", "reviewer", "starred", "note", "page"),
)


def _event(session: Session, event: str) -> EventRow:
    if (details := queries.event(session, event)) is None:
        raise HttpError(404, f"there is no event {event[:40]!r}; it may have been deleted")
    return details


def _event_of_path(console: ThisConsole, event: str) -> EventRow:
    return console.database.read(_event, event)


OneEvent = Annotated[EventRow, Depends(_event_of_path)]
"""The event in the path. To be named after who asks, who must be known first."""


# Pages.


@pages.get("/events")
def show_events(page: ViewerPage, before: str | None = None) -> HTMLResponse:
    """Show events, the newest first; the next part by the cursor `before`."""
    chosen = queries.EventFilter.of_page(page.request.query_params)
    with page.database.session() as session:
        part = queries.events(session, chosen, before=before, limit=PER_PART)
        shown: dict[str, Any] = {
            "events": part.events,
            "next": f"/events{chosen.query(before=part.next)}" if part.next else None,
            "here": f"/events{chosen.query()}",
            "before": before,
            "filtered": chosen != queries.EventFilter(),
        }
        if before is not None and "HX-Request" in page.request.headers:
            return page.part("results.html", **shown)
        shown["n_events"] = queries.count(session, chosen)
        shown["cameras"], shown["cues"] = queries.wall(session), queries.cues(session)
        shown["zones"] = queries.zones(session)
    shown |= {"HOURS": HOURS, "UNUSUAL": UNUSUAL}
    return page("events.html", section="Events", chosen=chosen, **shown)


@pages.get("/calendar")
def show_calendar(page: ViewerPage) -> HTMLResponse:
    """Show the events of some weeks by day and hour, and which camera has the most."""
    chosen = queries.EventFilter.of_page(page.request.query_params)
    last = chosen.until if isinstance(chosen.until, date) else date.today()
    last += timedelta(days=6 - last.weekday())
    chosen = chosen.model_copy(update={"since": None, "until": None})
    days = page.database.read(queries.calendar, chosen, last, 7 * N_WEEKS)
    by_hour = [sum(hours) for hours in zip(*(day.hours for day in days), strict=True)]
    by_camera = sum((day.cameras for day in days), Counter[str]())
    with page.database.session() as session:
        ids = {camera.name: camera.id for camera in queries.wall(session)}
    return page(
        "calendar.html",
        section="Events",
        chosen=chosen,
        weeks=[days[n : n + 7] for n in range(0, len(days), 7)],
        most=max(1, *(day.total for day in days)),
        by_hour=by_hour,
        by_camera=by_camera.most_common(),
        busiest=max(1, *(n for day in days for n in day.hours)),
        n_undated=page.database.read(queries.n_undated, chosen),
        ids=ids,
        today=date.today(),
        before=(last - timedelta(weeks=N_WEEKS)).isoformat(),
        after=None if last >= date.today() else (last + timedelta(weeks=N_WEEKS)).isoformat(),
    )


@pages.post("/events")
def act_on_chosen(
    page: ReviewerPage,
    action: Annotated[str, Form()],
    event: Annotated[list[str], Form(max_length=MOST_CHOSEN)] = [],  # noqa: B006 - FastAPI's way
    back: Annotated[str, Form()] = "",
) -> Response:
    """Do the same with all events that were chosen, and show the list again."""
    if action in ("star", "unstar"):
        administration.star_events(page.console, event, starred=action == "star")
    else:
        verdict = None if action == "undo" else action
        reviews.review_all(page.console, event, verdict, page.actor.name)
    query = back if back.startswith("?") else ""
    return go(f"/events{query}" if query else "/events", "" if query else "changed")


@pages.get("/events/{event}")
def show_event_page(page: ViewerPage, event: OneEvent) -> HTMLResponse:
    """Show one event."""
    shown = page.database.read(_stage, event)
    shown["similar"] = page.database.read(queries.similar, event.id)
    shown["review_action"] = f"/events/{event.id}/review"
    return page("event.html", section="Events", **shown)


@pages.post("/events/{event}/review")
def review_and_show(page: ReviewerPage, event: str, verdict: Annotated[str, Form()]) -> Response:
    """Write a review down, and show the event again."""
    _review(page, event, verdict)
    return go(f"/events/{event}", "undone" if verdict == "undo" else "reviewed")


@pages.post("/review/{event}/too")
def accept_silenced(
    page: ReviewerPage, event: str, camera: Annotated[str, Form()] = ""
) -> Response:
    """Call all events normal that one silenced, and show the next one to review."""
    n_events = reviews.accept_silenced(page.console, event, page.actor.name)
    row = page.database.read(_event, event)
    shown = page.database.read(_next, camera, f"{row.start!r}:{event}")
    outcome = ReviewOutcome(
        event_id=event, camera_id=row.camera_id, verdict="normal", silenced=[], note=""
    )
    return _review_page(page, shown, camera, outcome, n_too=n_events)


@pages.get("/review")
def review_waiting(page: ViewerPage, camera: str = "", after: str | None = None) -> HTMLResponse:
    """Show the newest event that nobody has reviewed, or the next one after a cursor."""
    return _review_page(page, page.database.read(_next, camera, after), camera)


@pages.get("/review/{event}")
def review_one(page: ViewerPage, event: str, camera: str = "") -> HTMLResponse:
    """Show one event for review."""
    return _review_page(page, event, camera)


@pages.post("/review/{event}")
def review_next(
    page: ReviewerPage,
    event: str,
    verdict: Annotated[str, Form()],
    camera: Annotated[str, Form()] = "",
) -> Response:
    """Write a review down, and show the next event; after an undo, the same one again."""
    outcome = _review(page, event, verdict)
    after = f"{page.database.read(_event, event).start!r}:{event}"
    shown = event if verdict == "undo" else page.database.read(_next, camera, after)
    return _review_page(page, shown, camera, outcome)


def _review(page: Page, event: str, verdict: str) -> ReviewOutcome:
    said = None if verdict == "undo" else verdict
    return reviews.review(page.console, event, said, page.actor.name)


def _next(session: Session, camera: str, after: str | None) -> str | None:
    """Return the next older event that nobody has reviewed; else the newest one."""
    wanted = queries.EventFilter(camera=[camera] if camera else [], review="none")
    waiting = queries.events(session, wanted, before=after, limit=1).events
    if not waiting and after is not None:
        waiting = queries.events(session, wanted, limit=1).events
    return waiting[0].id if waiting else None


def _review_page(
    page: Page,
    event: str | None,
    camera: str,
    outcome: ReviewOutcome | None = None,
    *,
    n_too: int = 0,
) -> HTMLResponse:
    cameras = [camera] if camera else []
    with page.database.session() as session:
        shown: dict[str, Any] = {
            "event": None,
            "camera": camera,
            "cameras": queries.wall(session),
            "n_waiting": queries.count(session, queries.EventFilter(camera=cameras, review="none")),
            "n_events": queries.count(session, queries.EventFilter(camera=cameras))
            - queries.count(session, queries.EventFilter(camera=cameras, review="silenced")),
            "precision": queries.precision(session, camera or None),
            "said": outcome,
            "n_too": n_too,
            "review_action": f"/review/{event}",
        }
        if event is not None:
            shown |= _stage(session, _event(session, event))
    return page("review.html", section="Review", **shown)


def _stage(session: Session, event: EventRow) -> dict[str, Any]:
    """Return what the stage shows of an event."""
    camera = session.get(CameraRow, event.camera_id)
    expected = event.details.get("expected") or []
    has_expected = 1 <= event.behaviour <= len(expected)
    return {
        "event": event,
        "track": _track(event),
        "lead": event.start - (event.clip_start or event.start - CLIP_BEFORE),
        "size": (camera.width, camera.height) if camera and camera.width else None,
        "ratio": f"{camera.width} / {camera.height}" if camera and camera.width else "5 / 4",
        "expected": expected[event.behaviour - 1] if has_expected else None,
    }


CLIP_BEFORE = 5.0
"""Seconds of a clip before its event."""


def _track(event: EventRow) -> list[dict[str, Any]]:
    """Return where an event was unusual, by the seconds from its start; its peak, if no more."""
    details = event.details
    points = details.get("track") or [
        {"time": details.get("peak", 0.0), "boxes": details.get("boxes", []), "heat": []}
    ]
    start = details.get("start", 0.0)
    return [
        {"at": round(p["time"] - start, 3), "boxes": p["boxes"], "heat": p.get("heat", [])}
        for p in points
    ]


# The API.


@api.get("/events", response_model=EventList)
def list_events(
    console: ThisConsole, actor: Viewer, wanted: Annotated[queries.EventRequest, Query()]
) -> queries.EventPart:
    """List events, the newest first unless sorted otherwise, in parts."""
    return console.database.read(queries.events, wanted, before=wanted.before, limit=wanted.limit)


Chosen = Annotated[list[Id], Query(max_length=MOST_CHOSEN)]


@api.get("/events.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def export_table(
    request: Request,
    console: ThisConsole,
    actor: Viewer,
    event: Chosen = [],  # noqa: B006
) -> StreamingResponse:
    """Export chosen events, or all that fit the filters of the page, as a table."""
    wanted = queries.EventFilter.of_page(request.query_params)
    return StreamingResponse(
        _table_lines(console, wanted, event),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="habitus-events.csv"'},
    )


@api.get(
    "/events.zip",
    response_class=FileResponse,
    responses={200: {"content": {"application/zip": {}}}},
)
def export_files(console: ThisConsole, actor: Viewer, event: Chosen) -> FileResponse:
    """Export chosen events with their pictures and clips."""
    path = _write_archive(console, event)
    return FileResponse(
        path,
        media_type="application/zip",
        filename="habitus-events.zip",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )


def _table_lines(
    console: Console, wanted: queries.EventFilter, ids: Sequence[str] = ()
) -> Iterator[str]:
    """Yield chosen events, or all of a filter, as lines of CSV with a header."""
    base = address_of(console.settings)
    yield _line(COLUMNS)
    for part in _parts(console, wanted, ids):
        yield "".join(_line(_values(event, base)) for event in part)


def _parts(
    console: Console, wanted: queries.EventFilter, ids: Sequence[str]
) -> Iterator[list[EventRow]]:
    if ids:
        yield console.database.read(queries.summaries, ids)
        return
    before: str | None = None
    while True:
        part = console.database.read(queries.events, wanted, before=before, limit=TOGETHER)
        yield part.events
        if (before := part.next) is None:
            return


def _values(event: EventRow, base: str) -> tuple[Any, ...]:
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


def _write_archive(console: Console, ids: Sequence[str]) -> Path:
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
        lines = "".join(
            _table_lines(console, queries.EventFilter(), [event.id for event in events])
        )
        archive.writestr("events.csv", lines)
        for event in events:
            folder = console.settings.camera_folder(event.camera_id) / "events"
            for name in (event.thumbnail, event.heat, event.clip):
                if name and (folder / name).is_file():
                    archive.write(folder / name, f"{event.camera_id}-{name}")
    return Path(file.name)


@api.post("/events/review")
def review_events(console: ThisConsole, actor: Reviewer, chosen: ManyReviews) -> ReviewCount:
    """Say the same of many events, or take it back; what else it silences is not looked for."""
    n_changed = reviews.review_all(console, chosen.events, chosen.verdict, actor.name)
    return ReviewCount(changed=n_changed)


@api.patch("/events/{event}", response_model=EventDetails)
@on_page(pages, "/events/{event}/note", "/events/{event.id}", "noted")
def change_event(
    console: ThisConsole, actor: Reviewer, event: OneEvent, changes: EventChanges
) -> EventRow:
    """Write a note about an event, or mark it."""
    administration.note_event(console, actor.name, event.id, changes)
    return console.database.read(_event, event.id)


@api.get("/events/{event}", response_model=EventDetails)
def show_event(actor: Viewer, event: OneEvent) -> EventRow:
    """Show everything that is known of an event."""
    return event


@api.get("/events/{event}/similar")
def list_similar(
    console: ThisConsole,
    actor: Viewer,
    event: OneEvent,
    limit: Annotated[int, Query(ge=1, le=50)] = 6,
) -> list[SimilarEvent]:
    """List the past events of the camera that are most like one."""
    return console.database.read(queries.similar, event.id, limit)


@api.post("/events/{event}/review")
def review_event(
    console: ThisConsole, actor: Reviewer, event: OneEvent, said: ReviewRequest
) -> ReviewOutcome:
    """Say that an event was normal, which teaches the camera, or unusual."""
    return reviews.review(console, event.id, said.verdict, actor.name)


@api.delete("/events/{event}/review")
def undo_review(console: ThisConsole, actor: Reviewer, event: OneEvent) -> ReviewOutcome:
    """Take a review back: everything is as if it had never been said."""
    return reviews.review(console, event.id, None, actor.name)


@api.head("/events/{event}/thumbnail", include_in_schema=False)
@api.get("/events/{event}/thumbnail", response_class=FileResponse, responses=JPEG)
def show_thumbnail(console: ThisConsole, actor: Viewer, event: OneEvent) -> FileResponse:
    """Show the strongest moment."""
    return _file(console, event, "thumbnail", "image/jpeg")


@api.head("/events/{event}/heat", include_in_schema=False)
@api.get("/events/{event}/heat", response_class=FileResponse, responses=JPEG)
def show_heat(console: ThisConsole, actor: Viewer, event: OneEvent) -> FileResponse:
    """Show where it was unusual."""
    return _file(console, event, "heat", "image/jpeg")


@api.head("/events/{event}/clip", include_in_schema=False)
@api.get("/events/{event}/clip", response_class=FileResponse, responses=VIDEO)
def show_clip(console: ThisConsole, actor: Viewer, event: OneEvent) -> FileResponse:
    """Play it, from five seconds before to five after; parts of it by Range."""
    return _file(console, event, "clip", "video/mp4")


def _file(
    console: Console, event: EventRow, kind: Literal["thumbnail", "heat", "clip"], media: str
) -> FileResponse:
    name: str | None = getattr(event, kind)
    if name is None:
        raise HttpError(404, f"that event has no {kind}")
    folder = console.settings.camera_folder(event.camera_id) / "events"
    return file_answer(folder / name, media, kind, lasting=event.end is not None)


@api.get("/precision")
def show_precision(
    console: ThisConsole,
    actor: Viewer,
    camera: Annotated[str | None, Query(max_length=100)] = None,
    days: Annotated[float, Query(gt=0, le=3650)] = 7.0,
) -> PrecisionReport:
    """Show how many of the reviewed alarms were unusual, and what other budgets had brought."""
    return console.database.read(queries.precision, camera, days)
