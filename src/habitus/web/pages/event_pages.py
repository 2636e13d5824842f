"""Events: their list, one of them, and the review of one after the other."""

from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from habitus.web import queries, reviews
from habitus.web.answers import EventDetails, ReviewOutcome
from habitus.web.database import CameraRow
from habitus.web.http_errors import NotFoundError
from habitus.web.pages.rendering import go, is_part, page, part
from habitus.web.security import Actor, Reviewer, Viewer, console_of

router = APIRouter()
PER_PART = 48
FIRST_YEAR, LAST_YEAR = 1971, 9000
"""Days that are looked for, in any time zone."""
REVIEWS = ("any", "none", "normal", "unusual")


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
        given = {name: request.query_params.get(name, "") for name in cls._fields}
        review = given["review"] if given["review"] in REVIEWS else "any"
        days = {name: given[name] if _midnight(given[name]) else "" for name in ("since", "until")}
        return cls(given["camera"], days["since"], days["until"], given["cue"], review)

    def filter(self) -> queries.EventFilter:
        """Return what is looked for in the database."""
        last = _midnight(self.until)
        since = _midnight(self.since)
        return queries.EventFilter(
            cameras=[self.camera] if self.camera else [],
            since=since.timestamp() if since else None,
            until=(last + timedelta(days=1)).timestamp() if last else None,
            cue=self.cue or None,
            review=self.review,  # type: ignore[arg-type]
        )

    def address(self, **more: str) -> str:
        """Return the address of the list with these filters."""
        given = {k: v for k, v in {**self._asdict(), **more}.items() if v and v != "any"}
        return f"/events?{urlencode(given)}" if given else "/events"


def _midnight(day: str) -> datetime | None:
    try:
        found = datetime.strptime(day, "%Y-%m-%d")
    except ValueError:
        return None
    return found if FIRST_YEAR <= found.year <= LAST_YEAR else None


@router.get("/events")
def events(request: Request, actor: Viewer, before: str | None = None) -> HTMLResponse:
    """Show events, the newest first; the next part by the cursor `before`."""
    chosen = EventFilterForm.of(request)
    with console_of(request).database.session() as session:
        found = queries.events(session, chosen.filter(), before=before, limit=PER_PART)
        shown: dict[str, Any] = {
            "events": found.events,
            "next": chosen.address(before=found.next) if found.next else None,
            "here": chosen.address(),
            "before": before,
            "filtered": chosen != EventFilterForm(),
        }
        if before is not None and is_part(request):
            return part("results.html", actor, **shown)
        shown["n_events"] = queries.count(session, chosen.filter())
        shown["cameras"], shown["cues"] = queries.wall(session), queries.cues(session)
    return page(request, "events.html", actor, section="Events", chosen=chosen, **shown)


@router.get("/events/{event}")
def one_event(request: Request, actor: Viewer, event: str) -> HTMLResponse:
    """Show one event."""
    with console_of(request).database.session() as session:
        found = _found(session, event)
        similar = queries.similar(session, event)
        shown = _shown(session, found)
    return page(
        request,
        "event.html",
        actor,
        section="Events",
        similar=similar,
        review_action=f"/events/{event}/review",
        **shown,
    )


@router.post("/events/{event}/review")
def review_event(
    request: Request, actor: Reviewer, event: str, verdict: Annotated[str, Form()]
) -> Response:
    """Write a review down, and show the event again."""
    _review(request, actor, event, verdict)
    return go(f"/events/{event}", "undone" if verdict == "undo" else "reviewed")


@router.get("/review")
def review(
    request: Request, actor: Viewer, camera: str = "", after: str | None = None
) -> HTMLResponse:
    """Show the newest event that nobody has reviewed, or the next one after a cursor."""
    wanted = queries.EventFilter(cameras=[camera] if camera else [], review="none")
    with console_of(request).database.session() as session:
        waiting = queries.events(session, wanted, before=after, limit=1).events
        if not waiting and after is not None:
            waiting = queries.events(session, wanted, limit=1).events
        return _review_page(request, actor, session, waiting[0].id if waiting else None, camera)


@router.get("/review/{event}")
def review_one(request: Request, actor: Viewer, event: str, camera: str = "") -> HTMLResponse:
    """Show one event for review."""
    with console_of(request).database.session() as session:
        return _review_page(request, actor, session, event, camera)


@router.post("/review/{event}")
def review_next(
    request: Request,
    actor: Reviewer,
    event: str,
    verdict: Annotated[str, Form()],
    camera: Annotated[str, Form()] = "",
) -> Response:
    """Write a review down, and show the next event; after an undo, the same one again."""
    said = _review(request, actor, event, verdict)
    with console_of(request).database.session() as session:
        shown = event if verdict == "undo" else _next(session, event, camera)
        return _review_page(request, actor, session, shown, camera, said)


def _review(request: Request, actor: Actor, event: str, verdict: str) -> ReviewOutcome:
    console = console_of(request)
    if verdict == "undo":
        return reviews.undo(console, event, actor.name)
    return reviews.review(console, event, verdict, actor.name)


def _next(session: Session, event: str, camera: str) -> str | None:
    """Return the next older event that nobody has reviewed; else the newest one."""
    wanted = queries.EventFilter(cameras=[camera] if camera else [], review="none")
    start = _found(session, event).start
    older = queries.events(session, wanted, before=f"{start!r}:{event}", limit=1).events
    found = older or queries.events(session, wanted, limit=1).events
    return found[0].id if found else None


def _review_page(
    request: Request,
    actor: Actor,
    session: Session,
    event: str | None,
    camera: str,
    said: ReviewOutcome | None = None,
) -> HTMLResponse:
    found = _found(session, event) if event is not None else None
    cameras = [camera] if camera else []
    shown: dict[str, Any] = {
        "event": None,
        "camera": camera,
        "cameras": queries.wall(session),
        "n_waiting": queries.count(session, queries.EventFilter(cameras, review="none")),
        "n_events": queries.count(session, queries.EventFilter(cameras)),
        "precision": queries.precision(session, camera or None),
        "said": said,
        "review_action": f"/review/{event}",
    }
    if found is not None:
        shown |= _shown(session, found)
    return page(request, "review.html", actor, section="Review", **shown)


def _found(session: Session, event: str) -> EventDetails:
    found = queries.event(session, event)
    if found is None:
        raise NotFoundError("there is no such event; it may have been deleted")
    return found


def _shown(session: Session, event: EventDetails) -> dict[str, Any]:
    """Return what the stage shows of an event."""
    camera = session.get(CameraRow, event.camera_id)
    expected = event.details.get("expected") or []
    known = 1 <= event.behaviour <= len(expected)
    return {
        "event": event,
        "ratio": f"{camera.width} / {camera.height}" if camera and camera.width else "5 / 4",
        "expected": expected[event.behaviour - 1] if known else None,
    }
