"""Cameras: what they are, what they see, and how they are watched."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse

from habitus.site.relearning import describe
from habitus.web import administration, queries
from habitus.web.answers import (
    BehaviourRecord,
    CameraChanges,
    CameraDetails,
    CameraNow,
    CameraSummary,
    CameraTimeline,
    LearningRecord,
    Moment,
    NewCamera,
    Number,
)
from habitus.web.api.media import JPEG, file_answer
from habitus.web.database import CameraRow
from habitus.web.http_errors import NotFoundError
from habitus.web.security import Admin, Viewer, console_of
from habitus.web.server import Console

router = APIRouter(prefix="/api/cameras", tags=["cameras"])
MOST_POINTS = 5000


@router.get("")
def list_cameras(request: Request, actor: Viewer) -> list[CameraSummary]:
    """List all cameras by name."""
    with console_of(request).database.session() as session:
        return queries.wall(session)


@router.post("", response_model=CameraDetails, status_code=201)
def add_camera(request: Request, actor: Admin, camera: NewCamera) -> Any:
    """Add a camera by address, or by a file that was uploaded, and watch it."""
    return administration.add_camera(console_of(request), actor.name, **_given(camera))


@router.get("/{camera}", response_model=CameraDetails)
def show_camera(request: Request, actor: Viewer, camera: str) -> Any:
    """Show a camera, and how it is watched."""
    return _camera(console_of(request), camera)


@router.patch("/{camera}", response_model=CameraDetails)
def change_camera(request: Request, actor: Admin, camera: str, changes: CameraChanges) -> Any:
    """Change a camera; what is not named stays as it is."""
    values = _given(changes)
    return administration.change_camera(console_of(request), actor.name, camera, **values)


@router.delete("/{camera}", status_code=204)
def remove_camera(request: Request, actor: Admin, camera: str) -> None:
    """Remove a camera with all its events."""
    administration.remove_camera(console_of(request), actor.name, camera)


@router.get("/{camera}/now")
def show_now(request: Request, actor: Viewer, camera: str) -> CameraNow:
    """Show what a camera does now: state, behaviour, the next one, arrows and heat."""
    console = console_of(request)
    known = _camera(console, camera)
    supervisor = console.supervisor
    latest = supervisor.latest(camera) if supervisor else None
    seen, judged = (latest.seen, latest.judged) if latest else (None, None)
    expected = list(judged.expected) if judged else []
    return CameraNow(
        state=known.state,
        since=known.since,
        reason=known.reason,
        time=seen.time if seen else None,
        width=seen.width if seen else known.width,
        height=seen.height if seen else known.height,
        arrows=seen.arrows if seen else [],
        heat=seen.heat if seen else [],
        normality=judged.normality if judged else None,
        threshold=judged.threshold if judged else None,
        behaviour=judged.behaviour if judged else 0,
        expected=expected,
        next=1 + expected.index(max(expected)) if expected else 0,
        recent=[(j.time, j.normality, j.behaviour) for j in latest.recent] if latest else [],
        kept_seconds=latest.kept.seconds if latest and latest.kept else None,
        learning=supervisor.learning(camera) if supervisor else None,
    )


@router.get("/{camera}/picture", response_class=Response, responses=JPEG)
def show_picture(request: Request, actor: Viewer, camera: str) -> Response:
    """Show the camera's latest picture."""
    console = console_of(request)
    _camera(console, camera)
    seen = console.supervisor.latest(camera).seen if console.supervisor else None
    if seen is None:
        raise NotFoundError("there is no picture yet")
    return Response(seen.jpeg, media_type="image/jpeg", headers={"X-Time": f"{seen.time:.3f}"})


@router.get("/{camera}/timeline")
def show_timeline(
    request: Request,
    actor: Viewer,
    camera: str,
    since: Moment,
    until: Moment,
    points: Annotated[int, Query(ge=2, le=MOST_POINTS)] = 1200,
) -> CameraTimeline:
    """Show how usual a span of time was, with its events and troubles."""
    console = console_of(request)
    _camera(console, camera)
    with console.database.session() as session:
        return queries.timeline(session, camera, since, until, points)


@router.get("/{camera}/learnings", response_model=list[LearningRecord])
def list_learnings(
    request: Request, actor: Viewer, camera: str, limit: Annotated[int, Query(ge=1, le=200)] = 20
) -> Any:
    """List when the camera's model was learnt, and what from."""
    console = console_of(request)
    _camera(console, camera)
    with console.database.session() as session:
        return queries.learnings(session, camera, limit)


@router.post("/{camera}/learn", status_code=202)
def learn(request: Request, actor: Admin, camera: str) -> None:
    """Learn the camera's model as soon as no other one is being learnt."""
    administration.learn_now(console_of(request), actor.name, camera)


@router.get("/{camera}/behaviours", response_model=list[BehaviourRecord])
def list_behaviours(request: Request, actor: Viewer, camera: str) -> Any:
    """List the behaviours that were learnt, and what follows what."""
    console = console_of(request)
    known = _camera(console, camera)
    if known.model is None or console.supervisor is None:
        return []
    path = console.settings.camera_folder(camera) / Path(known.model).name
    return describe(path, fork_server=console.supervisor.fork_server)


@router.get("/{camera}/behaviours/{number}.jpg", response_class=FileResponse, responses=JPEG)
def show_behaviour(request: Request, actor: Viewer, camera: str, number: Number) -> FileResponse:
    """Show a behaviour drawn on the scene."""
    console = console_of(request)
    _camera(console, camera)
    path = console.settings.camera_folder(camera) / "behaviours" / f"{number}.jpg"
    return file_answer(path, "image/jpeg", f"behaviour {number}")


def _camera(console: Console, camera: str) -> CameraRow:
    with console.database.session() as session:
        return administration.camera_of(session, camera)


def _given(values: CameraChanges) -> dict[str, Any]:
    """Return what was named; null stands for what stays as it is, except in options."""
    found = values.model_dump(exclude_unset=True)
    return {name: value for name, value in found.items() if value is not None}
