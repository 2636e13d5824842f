"""Events: lists, one, its pictures and clip, and what people say of it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse

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
from habitus.web.api.media import JPEG, VIDEO, file_answer
from habitus.web.http_errors import NotFoundError
from habitus.web.security import Reviewer, Viewer, console_of

router = APIRouter(prefix="/api", tags=["events"])


@router.get("/events")
def list_events(
    request: Request,
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
    with console_of(request).database.session() as session:
        return queries.events(session, wanted, before=before, limit=limit)


@router.get("/events/{event}")
def show_event(request: Request, actor: Viewer, event: str) -> EventDetails:
    """Show everything that is known of an event."""
    return _event(request, event)


@router.get("/events/{event}/similar")
def list_similar(
    request: Request, actor: Viewer, event: str, limit: Annotated[int, Query(ge=1, le=50)] = 6
) -> list[SimilarEvent]:
    """List the past events of the camera that are most like one."""
    _event(request, event)
    with console_of(request).database.session() as session:
        return queries.similar(session, event, limit)


@router.post("/events/{event}/review")
def review_event(
    request: Request, actor: Reviewer, event: str, said: ReviewRequest
) -> ReviewOutcome:
    """Say that an event was normal, which teaches the camera, or unusual."""
    _event(request, event)
    return reviews.review(console_of(request), event, said.verdict, actor.name)


@router.delete("/events/{event}/review")
def undo_review(request: Request, actor: Reviewer, event: str) -> ReviewOutcome:
    """Take a review back: everything is as if it had never been said."""
    _event(request, event)
    return reviews.undo(console_of(request), event, actor.name)


@router.get("/events/{event}/thumbnail", response_class=FileResponse, responses=JPEG)
def show_thumbnail(request: Request, actor: Viewer, event: str) -> FileResponse:
    """Show the strongest moment."""
    return _file(request, event, "thumbnail", "image/jpeg")


@router.get("/events/{event}/heat", response_class=FileResponse, responses=JPEG)
def show_heat(request: Request, actor: Viewer, event: str) -> FileResponse:
    """Show where it was unusual."""
    return _file(request, event, "heat", "image/jpeg")


@router.get("/events/{event}/clip", response_class=FileResponse, responses=VIDEO)
def show_clip(request: Request, actor: Viewer, event: str) -> FileResponse:
    """Play it, from five seconds before to five after; parts of it by Range."""
    return _file(request, event, "clip", "video/mp4")


@router.get("/precision")
def show_precision(
    request: Request,
    actor: Viewer,
    camera: Annotated[str | None, Query(max_length=100)] = None,
    days: Annotated[float, Query(gt=0, le=3650)] = 7.0,
) -> PrecisionReport:
    """Show how many of the reviewed alarms were unusual, and what other budgets had brought."""
    with console_of(request).database.session() as session:
        return queries.precision(session, camera, days)


def _event(request: Request, event: str) -> EventDetails:
    with console_of(request).database.session() as session:
        found = queries.event(session, event)
    if found is None:
        raise NotFoundError(f"there is no event {event[:40]!r}")
    return found


def _file(
    request: Request, event: str, kind: Literal["thumbnail", "heat", "clip"], media: str
) -> FileResponse:
    found = _event(request, event)
    name: str | None = getattr(found, kind)
    if name is None:
        raise NotFoundError(f"that event has no {kind}")
    folder = console_of(request).settings.camera_folder(found.camera_id) / "events"
    return file_answer(folder / name, media, kind, lasting=found.end is not None)
