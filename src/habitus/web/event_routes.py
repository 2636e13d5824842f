"""Events: their list, each of them, and what people say of them."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from sqlalchemy.orm import Session
from starlette.background import BackgroundTask

from habitus.site.journal import SiteEvent
from habitus.web import administration, queries, reviews
from habitus.web.answers import (
    EventChanges,
    EventList,
    Id,
    ManyReviewed,
    ManyReviews,
    PrecisionReport,
    ReviewOutcome,
    ReviewRequest,
    SimilarEvent,
)
from habitus.web.database import WHOLE, CameraRow
from habitus.web.exports import table_lines, write_archive
from habitus.web.http_errors import NotFoundError
from habitus.web.rendering import JPEG, VIDEO, Page, ReviewerPage, ViewerPage, file_answer, go
from habitus.web.security import Reviewer, ThisConsole, Viewer
from habitus.web.server import Console

pages = APIRouter()
api = APIRouter(prefix="/api", tags=["events"])
PER_PART = 48
LONGEST_NOTE = 2000
MOST_CHOSEN = 500
"""Events that something is done with at once."""
HOURS = {
    "0-6": "night, 0 to 6",
    "6-12": "morning, 6 to 12",
    "12-18": "afternoon",
    "18-24": "evening",
}
UNUSUAL = {"31": "once an hour or less", "55": "once a day or less", "81": "once a month or less"}
LENGTHS = {
    "short": (0.0, 5.0),
    "medium": (5.0, 30.0),
    "long": (30.0, None),
}
"""Seconds of an event, from and to."""
N_WEEKS = 5
"""Weeks that the calendar shows."""
FIRST_YEAR, LAST_YEAR = 1971, 5000
"""Days that are looked for, in any time zone."""


def _event(session: Session, event: str) -> SiteEvent:
    if (details := queries.event(session, event)) is None:
        raise NotFoundError(f"there is no event {event[:40]!r}; it may have been deleted")
    return details


def _event_of_path(console: ThisConsole, event: str) -> SiteEvent:
    return console.database.read(_event, event)


OneEvent = Annotated[SiteEvent, Depends(_event_of_path)]
"""The event in the path. To be named after who asks, who must be known first."""


# Pages.


class EventFilterForm(NamedTuple):
    """Filters as the address bar has them."""

    camera: str = ""
    since: str = ""
    until: str = ""
    """The last day, whole."""
    cue: str = ""
    review: str = "any"
    words: str = ""
    hours: str = ""
    """As 22-6."""
    unusual: str = ""
    """The least, from 0 to 100."""
    length: str = ""
    """One of `LENGTHS`."""
    starred: str = ""
    sort: str = "newest"
    zone: str = ""
    quiet: str = ""
    """Those that are no alarms for their zone alone, if not empty."""

    @classmethod
    def of(cls, request: Request) -> "EventFilterForm":
        """Return the filters of a request; what cannot be understood is left out."""
        form = cls(**{name: request.query_params.get(name, "") for name in cls._fields})
        return form._replace(
            since=form.since if _midnight(form.since) else "",
            until=form.until if _midnight(form.until) else "",
            review=form.review if form.review in get_args(queries.Review) else "any",
            words=form.words[: queries.LONGEST_WORDS].strip(),
            hours=form.hours if queries.hours_of(form.hours) else "",
            unusual=form.unusual if form.unusual in UNUSUAL else "",
            length=form.length if form.length in LENGTHS else "",
            starred="yes" if form.starred else "",
            quiet="yes" if form.quiet else "",
            sort=form.sort if form.sort in get_args(queries.Sort) else "newest",
        )

    def filter(self) -> queries.EventFilter:
        """Return what is looked for in the database."""
        first, last = _midnight(self.since), _midnight(self.until)
        return queries.EventFilter(
            camera=[self.camera] if self.camera else [],
            since=first.timestamp() if first else None,
            until=(last + timedelta(days=1)).timestamp() if last else None,
            cue=self.cue,
            review=cast(queries.Review, self.review),
            words=self.words,
            hours=self.hours,
            unusual=int(self.unusual or 0),
            shortest=LENGTHS[self.length][0] if self.length else None,
            longest=LENGTHS[self.length][1] if self.length else None,
            starred=bool(self.starred),
            sort=cast(queries.Sort, self.sort),
            zone=self.zone,
            quiet=bool(self.quiet),
        )

    def query(self, **more: str) -> str:
        """Return these filters as the query of an address, with a question mark if there is any."""
        named = {**self._asdict(), **more}
        defaults = EventFilterForm()._asdict()
        named = {k: v for k, v in named.items() if v and v != defaults.get(k)}
        return f"?{urlencode(named)}" if named else ""

    def address(self, **more: str) -> str:
        """Return the address of the list with these filters."""
        return f"/events{self.query(**more)}"

    @property
    def n_folded(self) -> int:
        """Number of filters beyond those that are always seen."""
        seen = EventFilterForm(
            camera=self.camera, review=self.review, words=self.words, sort=self.sort
        )
        return sum(one != other for one, other in zip(self, seen, strict=True))


def _midnight(day: str) -> datetime | None:
    try:
        midnight = datetime.strptime(day, "%Y-%m-%d")
    except ValueError:
        return None
    return midnight if FIRST_YEAR <= midnight.year <= LAST_YEAR else None


@pages.get("/events")
def show_events(page: ViewerPage, before: str | None = None) -> HTMLResponse:
    """Show events, the newest first; the next part by the cursor `before`."""
    chosen = EventFilterForm.of(page.request)
    with page.database.session() as session:
        part = queries.events(session, chosen.filter(), before=before, limit=PER_PART)
        shown: dict[str, Any] = {
            "events": part.events,
            "next": chosen.address(before=part.next) if part.next else None,
            "here": chosen.address(),
            "before": before,
            "filtered": chosen != EventFilterForm(),
        }
        if before is not None and "HX-Request" in page.request.headers:
            return page.part("results.html", **shown)
        shown["n_events"] = queries.count(session, chosen.filter())
        shown["cameras"], shown["cues"] = queries.wall(session), queries.cues(session)
        shown["zones"] = queries.zones(session)
    choices: dict[str, Any] = {"HOURS": HOURS, "UNUSUAL": UNUSUAL, "LENGTHS": LENGTHS}
    return page("events.html", section="Events", chosen=chosen, **choices, **shown)


@pages.get("/calendar")
def show_calendar(page: ViewerPage, until: str = "") -> HTMLResponse:
    """Show the events of some weeks by day and hour, and which camera has the most."""
    chosen = EventFilterForm.of(page.request)._replace(since="", until="")
    last = (_midnight(until) or datetime.now()).date()
    last += timedelta(days=6 - last.weekday())
    days = page.database.read(queries.calendar, chosen.filter(), last, 7 * N_WEEKS)
    by_hour = [sum(hours) for hours in zip(*(day.hours for day in days), strict=True)]
    by_camera = sum((Counter(day.cameras) for day in days), Counter[str]())
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
        ids=ids,
        today=datetime.now().date().isoformat(),
        before=(last - timedelta(weeks=N_WEEKS)).isoformat(),
        after=(last + timedelta(weeks=N_WEEKS)).isoformat(),
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


@pages.post("/events/{event}/note")
def write_note(
    page: ReviewerPage,
    event: str,
    note: Annotated[str, Form(max_length=LONGEST_NOTE)] = "",
    starred: Annotated[str, Form()] = "",
) -> Response:
    """Write about an event, and mark it or not."""
    administration.note_event(
        page.console, page.actor.name, event, note=note, starred=bool(starred)
    )
    return go(f"/events/{event}", "noted")


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
    if verdict == "undo":
        return reviews.undo(page.console, event, page.actor.name)
    return reviews.review(page.console, event, verdict, page.actor.name)


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


def _stage(session: Session, event: SiteEvent) -> dict[str, Any]:
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


def _track(event: SiteEvent) -> list[dict[str, Any]]:
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


@api.get("/events", response_model_exclude={"events": {"__all__": WHOLE}})
def list_events(
    console: ThisConsole, actor: Viewer, wanted: Annotated[queries.EventRequest, Query()]
) -> EventList:
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
    wanted = EventFilterForm.of(request).filter()
    return StreamingResponse(
        table_lines(console, wanted, event),
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
    path = write_archive(console, event)
    return FileResponse(
        path,
        media_type="application/zip",
        filename="habitus-events.zip",
        background=BackgroundTask(path.unlink, missing_ok=True),
    )


@api.post("/events/review")
def review_events(console: ThisConsole, actor: Reviewer, chosen: ManyReviews) -> ManyReviewed:
    """Say the same of many events, or take it back; what else it silences is not looked for."""
    n_changed = reviews.review_all(console, chosen.events, chosen.verdict, actor.name)
    return ManyReviewed(changed=n_changed)


@api.patch("/events/{event}", response_model=SiteEvent)
def change_event(
    console: ThisConsole, actor: Reviewer, event: OneEvent, changes: EventChanges
) -> SiteEvent:
    """Write a note about an event, or mark it."""
    values = changes.model_dump(exclude_none=True)
    administration.note_event(console, actor.name, event.id, **values)
    return console.database.read(_event, event.id)


@api.get("/events/{event}")
def show_event(actor: Viewer, event: OneEvent) -> SiteEvent:
    """Show everything that is known of an event."""
    return event


@api.get("/events/{event}/similar", response_model_exclude={"__all__": {"card": WHOLE}})
def list_similar(
    console: ThisConsole,
    actor: Viewer,
    event: OneEvent,
    limit: Annotated[int, Query(ge=1, le=50)] = 6,
) -> list[SimilarEvent]:
    """List the past events of the camera that are most like one."""
    return console.database.read(queries.similar, event.id, limit)


@api.post("/events/{event}/review", response_model_exclude={"silenced": {"__all__": WHOLE}})
def review_event(
    console: ThisConsole, actor: Reviewer, event: OneEvent, said: ReviewRequest
) -> ReviewOutcome:
    """Say that an event was normal, which teaches the camera, or unusual."""
    return reviews.review(console, event.id, said.verdict, actor.name)


@api.delete("/events/{event}/review")
def undo_review(console: ThisConsole, actor: Reviewer, event: OneEvent) -> ReviewOutcome:
    """Take a review back: everything is as if it had never been said."""
    return reviews.undo(console, event.id, actor.name)


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
    console: Console, event: SiteEvent, kind: Literal["thumbnail", "heat", "clip"], media: str
) -> FileResponse:
    name: str | None = getattr(event, kind)
    if name is None:
        raise NotFoundError(f"that event has no {kind}")
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
