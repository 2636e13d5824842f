"""Events: their list, each of them, and what people say of them."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from sqlalchemy.orm import Session

from habitus.web import queries, reviews
from habitus.web.answers import (
    EventDetails,
    EventList,
    Id,
    Moment,
    PrecisionReport,
    ReviewOutcome,
    ReviewRequest,
    SimilarEvent,
)
from habitus.web.database import CameraRow
from habitus.web.http_errors import NotFoundError
from habitus.web.rendering import JPEG, VIDEO, Page, ReviewerPage, ViewerPage, file_answer, go
from habitus.web.security import Reviewer, ThisConsole, Viewer
from habitus.web.server import Console

pages = APIRouter()
api = APIRouter(prefix="/api", tags=["events"])
PER_PART = 48
FIRST_YEAR, LAST_YEAR = 1971, 9000
"""Days that are looked for, in any time zone."""


def _event(session: Session, event: str) -> EventDetails:
    if (details := queries.event(session, event)) is None:
        raise NotFoundError(f"there is no event {event[:40]!r}; it may have been deleted")
    return details


def _event_of_path(console: ThisConsole, event: str) -> EventDetails:
    return console.database.read(_event, event)


OneEvent = Annotated[EventDetails, Depends(_event_of_path)]
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

    @classmethod
    def of(cls, request: Request) -> "EventFilterForm":
        """Return the filters of a request; what cannot be understood is left out."""
        form = cls(**{name: request.query_params.get(name, "") for name in cls._fields})
        return form._replace(
            since=form.since if _midnight(form.since) else "",
            until=form.until if _midnight(form.until) else "",
            review=form.review if form.review in ("none", "normal", "unusual") else "any",
        )

    def filter(self) -> queries.EventFilter:
        """Return what is looked for in the database."""
        first, last = _midnight(self.since), _midnight(self.until)
        return queries.EventFilter(
            cameras=[self.camera] if self.camera else [],
            since=first.timestamp() if first else None,
            until=(last + timedelta(days=1)).timestamp() if last else None,
            cue=self.cue or None,
            review=cast(queries.Review, self.review),
        )

    def address(self, **more: str) -> str:
        """Return the address of the list with these filters."""
        named = {k: v for k, v in {**self._asdict(), **more}.items() if v and v != "any"}
        return f"/events?{urlencode(named)}" if named else "/events"


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
    return page("events.html", section="Events", chosen=chosen, **shown)


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
    wanted = queries.EventFilter(cameras=[camera] if camera else [], review="none")
    waiting = queries.events(session, wanted, before=after, limit=1).events
    if not waiting and after is not None:
        waiting = queries.events(session, wanted, limit=1).events
    return waiting[0].id if waiting else None


def _review_page(
    page: Page, event: str | None, camera: str, outcome: ReviewOutcome | None = None
) -> HTMLResponse:
    cameras = [camera] if camera else []
    with page.database.session() as session:
        shown: dict[str, Any] = {
            "event": None,
            "camera": camera,
            "cameras": queries.wall(session),
            "n_waiting": queries.count(session, queries.EventFilter(cameras, review="none")),
            "n_events": queries.count(session, queries.EventFilter(cameras)),
            "precision": queries.precision(session, camera or None),
            "said": outcome,
            "review_action": f"/review/{event}",
        }
        if event is not None:
            shown |= _stage(session, _event(session, event))
    return page("review.html", section="Review", **shown)


def _stage(session: Session, event: EventDetails) -> dict[str, Any]:
    """Return what the stage shows of an event."""
    camera = session.get(CameraRow, event.camera_id)
    expected = event.details.get("expected") or []
    has_expected = 1 <= event.behaviour <= len(expected)
    return {
        "event": event,
        "ratio": f"{camera.width} / {camera.height}" if camera and camera.width else "5 / 4",
        "expected": expected[event.behaviour - 1] if has_expected else None,
    }


# The API.


@api.get("/events")
def list_events(
    console: ThisConsole,
    actor: Viewer,
    camera: Annotated[list[Id], Query(max_length=100)] = [],  # noqa: B006 - FastAPI's own way
    since: Moment | None = None,
    until: Moment | None = None,
    cue: Annotated[str | None, Query(max_length=100)] = None,
    review: queries.Review = "any",
    alarms_only: bool = True,
    before: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
) -> EventList:
    """List events, the newest first, in parts."""
    wanted = queries.EventFilter(tuple(camera), since, until, cue, review, alarms_only)
    return console.database.read(queries.events, wanted, before=before, limit=limit)


@api.get("/events/{event}")
def show_event(actor: Viewer, event: OneEvent) -> EventDetails:
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
    console: Console, event: EventDetails, kind: Literal["thumbnail", "heat", "clip"], media: str
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
