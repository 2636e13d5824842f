"""The wall: every camera, and the latest events."""

import math
import time

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from sqlalchemy.orm import Session

from habitus.web import queries
from habitus.web.pages.rendering import Now, Spark, has_picture, now_at, page, part, spark
from habitus.web.security import Viewer, console_of

router = APIRouter()
N_LATEST = 8
SPARK_SECONDS, SPARK_POINTS = 600.0, 60
MOST_COLUMNS = 6


@router.get("/")
def wall(request: Request, actor: Viewer) -> HTMLResponse:
    """Show every camera."""
    console = console_of(request)
    with console.database.session() as session:
        cameras = queries.wall(session)
        latest = queries.events(session, limit=N_LATEST).events
        nows = {camera.id: now_at(console, camera) for camera in cameras}
        sparks = {camera.id: _spark(session, camera.id, nows[camera.id]) for camera in cameras}
    return page(
        request,
        "wall.html",
        actor,
        section="Wall",
        bare="wall" in request.query_params and bool(cameras),
        columns=min(math.ceil(math.sqrt(len(cameras))), MOST_COLUMNS),
        cameras=cameras,
        latest=latest,
        sparks=sparks,
        nows=nows,
        ready={camera.id for camera in cameras if has_picture(console, camera.id)},
    )


@router.get("/parts/latest")
def latest(request: Request, actor: Viewer, camera: str = "") -> HTMLResponse:
    """Show the latest events, of all cameras or of one, as a piece of a page."""
    wanted = queries.EventFilter([camera] if camera else [])
    with console_of(request).database.session() as session:
        found = queries.events(session, wanted, limit=N_LATEST).events
    return part("latest.html", actor, latest=found)


@router.get("/parts/to-review")
def to_review(request: Request, actor: Viewer) -> PlainTextResponse:
    """Return the number of events that nobody has reviewed."""
    with console_of(request).database.session() as session:
        return PlainTextResponse(str(queries.count(session, queries.EventFilter(review="none"))))


@router.get("/parts/tiles/{camera}")
def tile(request: Request, actor: Viewer, camera: str) -> HTMLResponse:
    """Show one camera, as a piece of the wall."""
    console = console_of(request)
    with console.database.session() as session:
        found = queries.wall(session, camera=camera)
        nows = {card.id: now_at(console, card) for card in found}
        sparks = {card.id: _spark(session, card.id, nows[card.id]) for card in found}
    if not found:
        return HTMLResponse("")
    return part("tile.html", actor, camera=found[0], sparks=sparks, nows=nows, ready=())


def _spark(session: Session, camera: str, judged: Now | None) -> Spark:
    now = time.time()
    line = queries.timeline(session, camera, now - SPARK_SECONDS, now, SPARK_POINTS)
    return spark(line, judged.threshold if judged else None)
