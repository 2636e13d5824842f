"""Cameras: the wall, the page of each, and how they are added, changed and removed."""

import json
import math
import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse
from pydantic import BaseModel, StringConstraints

import habitus
from habitus.errors import HabitusError, InvalidInputError
from habitus.site.relearning import describe, description_of
from habitus.web import administration, onvif, queries, store
from habitus.web.answers import (
    BehaviourChanges,
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
    SnoozeOutcome,
    SnoozeRequest,
    WallLayout,
)
from habitus.web.database import CameraRow
from habitus.web.http_errors import NotFoundError, status_of
from habitus.web.outbox import snoozed_until
from habitus.web.preferences import arranged, read_wall, write_wall
from habitus.web.rendering import (
    JPEG,
    AdminPage,
    Now,
    Page,
    ReviewerPage,
    Spark,
    ViewerPage,
    file_answer,
    go,
    has_picture,
    now_at,
    spark,
)
from habitus.web.security import Admin, Reviewer, ThisConsole, Viewer
from habitus.web.server import Console

pages = APIRouter()
api = APIRouter(prefix="/api/cameras", tags=["cameras"])
own = APIRouter(prefix="/api", tags=["cameras"])
N_LATEST, N_LATEST_OF_CAMERA = 8, 3
SPARK_SECONDS, SPARK_POINTS = 600.0, 60
MOST_COLUMNS, MOST_POINTS = 6, 5000


def _camera(console: ThisConsole, camera: str) -> CameraRow:
    return console.database.read(administration.camera_of, camera)


OneCamera = Annotated[CameraRow, Depends(_camera)]
"""The camera in the path. To be named after who asks, who must be known first."""


# The wall.


@pages.get("/")
def wall(page: ViewerPage) -> HTMLResponse:
    """Show every camera."""
    console, cameras = page.console, page.database.read(queries.wall)
    nows = {camera.id: now_at(console, camera) for camera in cameras}
    layout = page.database.read(read_wall, page.actor.person)
    sizes = {tile.camera: tile.size for tile in layout.tiles}
    n_cells = sum(sizes.get(camera.id, 1) ** 2 for camera in cameras)
    return page(
        "wall.html",
        section="Wall",
        bare="wall" in page.request.query_params and bool(cameras),
        columns=min(math.ceil(math.sqrt(n_cells)), MOST_COLUMNS),
        groups=arranged(cameras, layout),
        layout=layout,
        sizes=sizes,
        latest=page.database.read(queries.events, limit=N_LATEST).events,
        sparks=_sparks(console, nows),
        nows=nows,
        ready={camera.id for camera in cameras if has_picture(console, camera.id)},
    )


@pages.get("/parts/latest")
def show_latest(page: ViewerPage, camera: str = "") -> HTMLResponse:
    """Show the latest events, of all cameras or of one, as a piece of a page."""
    wanted = queries.EventFilter(camera=[camera] if camera else [])
    latest = page.database.read(queries.events, wanted, limit=N_LATEST)
    return page.part("latest.html", latest=latest.events)


@pages.get("/parts/to-review")
def count_to_review(page: ViewerPage) -> PlainTextResponse:
    """Return the number of events that nobody has reviewed."""
    n_events = page.database.read(queries.count, queries.EventFilter(review="none"))
    return PlainTextResponse(str(n_events))


@pages.get("/parts/tiles/{camera}")
def show_tile(page: ViewerPage, camera: str) -> HTMLResponse:
    """Show one camera, as a piece of the wall."""
    cards = page.database.read(queries.wall, camera=camera)
    if not cards:
        return HTMLResponse("")
    nows = {camera: now_at(page.console, cards[0])}
    sparks = _sparks(page.console, nows)
    return page.part("tile.html", camera=cards[0], sparks=sparks, nows=nows, ready=(), sizes={})


def _sparks(console: Console, nows: dict[str, Now | None]) -> dict[str, Spark]:
    until = time.time()
    span = (until - SPARK_SECONDS, until, SPARK_POINTS)
    with console.database.session() as session:
        return {
            camera: spark(queries.timeline(session, camera, *span), now.threshold if now else None)
            for camera, now in nows.items()
        }


# The pages of a camera.


class CameraForm(BaseModel):
    """What a form of a camera has in its fields."""

    name: str = ""
    address: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    username: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    password: str = ""
    kind: str = "playback"
    """Of an upload."""
    upload: str = ""
    alerts_per_day: str = "5"
    learn_days: str = "7"
    local: str = ""
    """Not empty if it is ticked, as `enabled`."""
    enabled: str = ""

    @classmethod
    def of(cls, camera: CameraRow) -> "CameraForm":
        """Return the fields of a camera; its address is never shown again."""
        return cls(
            name=camera.name,
            alerts_per_day=f"{camera.alerts_per_day:g}",
            learn_days=str(camera.learn_days),
            local="yes" if camera.options.get("local") else "",
            enabled="yes" if camera.enabled else "",
        )

    def values(self) -> dict[str, Any]:
        """Return what administration takes, and says what is wrong with."""
        return {
            "name": self.name,
            "address": self.address or None,
            "username": self.username or None,
            "password": self.password or None,
            "alerts_per_day": self.alerts_per_day,
            "learn_days": self.learn_days,
            "enabled": bool(self.enabled),
            "options": {"local": bool(self.local) or None},
        }


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


PostedForm = Annotated[CameraForm, Form()]
ON_PAGE = {
    f"an admin may allow local {what} for this camera": (
        "tick “The camera is on this machine” if that is meant"
    )
    for what in ("addresses", "files")
}
"""Remedies that an error names, as the form has them."""


@pages.get("/cameras/new")
def ask_for_camera(page: AdminPage, upload: str = "", name: str = "") -> HTMLResponse:
    """Ask for a camera; its recording may have been uploaded already."""
    return _edit_page(page, None, CameraForm(name=name, upload=upload, enabled="yes"))


@pages.post("/cameras")
def add_posted_camera(page: AdminPage, form: PostedForm) -> Response:
    """Add a camera, or say what is wrong with it."""
    try:
        values = {**form.values(), "enabled": True}
        if form.upload:
            values |= {"upload": form.upload, "kind": form.kind, "address": None}
        elif not form.address:
            raise InvalidInputError("give an address, or a recording", parameter="address")
        camera = administration.add_camera(page.console, page.actor.name, **values)
    except HabitusError as error:
        return _edit_page(page, None, form, error)
    return go(f"/cameras/{camera.id}", "given" if camera.kind == "recording" else "added")


@pages.get("/cameras/{camera}")
def show_camera_page(page: ViewerPage, camera: OneCamera, at: float | None = None) -> HTMLResponse:
    """Show a camera: now, its timeline, and what was learnt."""
    console, supervisor = page.console, page.console.supervisor
    wanted = queries.EventFilter(camera=[camera.id])
    behaviours = _behaviours(console, camera)
    learnings = page.database.read(queries.learnings, camera.id)
    recorded = camera.kind == "recording"
    return page(
        "camera.html",
        section="Wall",
        camera=camera,
        today=page.database.read(queries.wall, camera=camera.id)[0],
        learnings=learnings,
        # Of a recording without a date times are counted from its beginning.
        origin=None if camera.dated or not learnings else learnings[-1].since,
        until=page.database.read(queries.judged_until, camera.id) if recorded else None,
        latest=page.database.read(queries.events, wanted, limit=N_LATEST_OF_CAMERA).events,
        learning=supervisor.learning(camera.id) if supervisor else None,
        kept=supervisor.latest(camera.id).kept if supervisor else None,
        now=now_at(console, camera),
        ready=has_picture(console, camera.id),
        behaviours=behaviours,
        called={one["number"]: one["name"] for one in behaviours},
        snoozed=_snoozed(console, camera),
        at=at,
    )


@pages.get("/cameras/{camera}/edit")
def edit_camera(page: AdminPage, camera: OneCamera) -> HTMLResponse:
    """Show how a camera is watched, to be changed."""
    return _edit_page(page, camera, CameraForm.of(camera))


@pages.post("/cameras/{camera}")
def change_posted_camera(page: AdminPage, camera: OneCamera, form: PostedForm) -> Response:
    """Change a camera, or say what is wrong."""
    try:
        administration.change_camera(page.console, page.actor.name, camera.id, **form.values())
    except HabitusError as error:
        return _edit_page(page, camera, form, error)
    return go(f"/cameras/{camera.id}", "changed")


@pages.get("/cameras/{camera}/zones")
def edit_zones(page: AdminPage, camera: OneCamera) -> HTMLResponse:
    """Show the zones of a camera, to be drawn and changed."""
    return _zones_page(page, camera, camera.zones, camera.options.get("timezone", ""))


@pages.post("/cameras/{camera}/zones")
def change_posted_zones(
    page: AdminPage,
    camera: OneCamera,
    zones: Annotated[str, Form()] = "[]",
    timezone: Annotated[str, Form()] = "",
) -> Response:
    """Change the zones of a camera, or say what is wrong."""
    options = {"timezone": timezone.strip() or None}
    try:
        administration.change_camera(
            page.console, page.actor.name, camera.id, zones=_parsed(zones), options=options
        )
    except HabitusError as error:
        return _zones_page(page, camera, _parsed(zones), timezone, error)
    return go(f"/cameras/{camera.id}", "changed")


def _zones_page(
    page: Page,
    camera: CameraRow,
    zones: object,
    timezone: str,
    error: HabitusError | None = None,
) -> HTMLResponse:
    return page(
        "zones.html",
        status=status_of(error) if error else 200,
        camera=camera,
        zones=zones if isinstance(zones, list) else camera.zones,
        timezone=timezone,
        problem=str(error or ""),
        problem_at="",
        ready=has_picture(page.console, camera.id),
    )


@pages.post("/cameras/{camera}/behaviours/{number}")
def name_behaviour_and_show(
    page: AdminPage, camera: str, number: Number, name: Annotated[str, Form()] = ""
) -> Response:
    """Give a behaviour a name, or take it away."""
    administration.name_behaviour(page.console, page.actor.name, camera, number, name)
    return go(f"/cameras/{camera}", "changed")


@pages.post("/cameras/{camera}/remove")
def remove_posted_camera(
    page: AdminPage, camera: str, sure: Annotated[str, Form()] = ""
) -> Response:
    """Remove a camera, once somebody is sure."""
    if sure != "yes":
        return go(f"/cameras/{camera}/edit")
    administration.remove_camera(page.console, page.actor.name, camera)
    return go("/", "removed")


@pages.post("/cameras/{camera}/learn")
def learn_and_show(page: AdminPage, camera: str) -> Response:
    """Learn a camera's model as soon as the machine is free."""
    administration.learn_now(page.console, page.actor.name, camera)
    return go(f"/cameras/{camera}", "learning")


@pages.post("/cameras/{camera}/snooze")
def snooze_and_show(
    page: ReviewerPage, camera: str, hours: Annotated[float, Form(ge=0, le=168)]
) -> Response:
    """Send people nothing of a camera's events for some hours."""
    until = administration.snooze(page.console, page.actor.name, camera, hours)
    return go(f"/cameras/{camera}", "snoozed" if until else "awake")


def _edit_page(
    page: Page, camera: CameraRow | None, form: CameraForm, error: HabitusError | None = None
) -> HTMLResponse:
    """Show the form of a camera; after an error with what was typed, but for passwords."""
    problem = str(error or "")
    for remedy, on_page in ON_PAGE.items():
        problem = problem.replace(remedy, on_page)
    return page(
        "edit.html",
        status=status_of(error) if error else 200,
        camera=camera,
        given=form.model_copy(update={"address": habitus.redacted(form.address), "password": ""}),
        makers=onvif.PATHS,
        problem=problem,
        problem_at=getattr(error, "parameter", None) or "",
        ready=camera is not None and has_picture(page.console, camera.id),
    )


def _snoozed(console: Console, camera: CameraRow) -> float | None:
    """Return until when people are sent nothing of a camera's events, if that is still to come."""
    until = console.database.read(snoozed_until, camera.id)
    return until if until and until > time.time() else None


def _behaviours(console: Console, camera: CameraRow) -> list[dict[str, Any]]:
    """Return the behaviours of a camera's model, as they were described when it was learnt."""
    if camera.model is None:
        return []
    description = description_of(console.settings.camera_folder(camera.id) / camera.model)
    try:
        behaviours: list[dict[str, Any]] = json.loads(description.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return _named(console, camera, behaviours)


def _named(
    console: Console, camera: CameraRow, behaviours: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    names = console.database.read(store.behaviour_names, camera)
    return [one | {"name": names.get(one["number"], "")} for one in behaviours]


# The API.


@own.get("/wall")
def show_wall_layout(console: ThisConsole, actor: Viewer) -> WallLayout:
    """Show how who asks has the wall."""
    return console.database.read(read_wall, actor.person)


@own.put("/wall", status_code=204)
def change_wall_layout(console: ThisConsole, actor: Viewer, layout: WallLayout) -> None:
    """Order, size and group the wall of who asks."""
    with console.database.transaction() as session:
        write_wall(session, actor.person, layout)


@api.get("")
def list_cameras(console: ThisConsole, actor: Viewer) -> list[CameraSummary]:
    """List all cameras by name."""
    return console.database.read(queries.wall)


@api.post("", response_model=CameraDetails, status_code=201)
def add_camera(console: ThisConsole, actor: Admin, camera: NewCamera) -> Any:
    """Add a camera by address, or by a file that was uploaded, and watch it."""
    return administration.add_camera(console, actor.name, **camera.model_dump(exclude_unset=True))


@api.get("/{camera}", response_model=CameraDetails)
def show_camera(actor: Viewer, camera: OneCamera) -> Any:
    """Show a camera, and how it is watched."""
    return camera


@api.patch("/{camera}", response_model=CameraDetails)
def change_camera(console: ThisConsole, actor: Admin, camera: str, changes: CameraChanges) -> Any:
    """Change a camera; what is not named stays as it is."""
    values = changes.model_dump(exclude_unset=True)
    return administration.change_camera(console, actor.name, camera, **values)


@api.delete("/{camera}", status_code=204)
def remove_camera(console: ThisConsole, actor: Admin, camera: str) -> None:
    """Remove a camera with all its events."""
    administration.remove_camera(console, actor.name, camera)


@api.get("/{camera}/now")
def show_now(console: ThisConsole, actor: Viewer, camera: OneCamera) -> CameraNow:
    """Show what a camera does now: state, behaviour, the next one, arrows and heat."""
    supervisor = console.supervisor
    latest = supervisor.latest(camera.id) if supervisor else None
    seen, judged = (latest.seen, latest.judged) if latest else (None, None)
    expected = list(judged.expected) if judged else []
    return CameraNow(
        state=camera.state,
        since=camera.since,
        reason=camera.reason,
        time=seen.time if seen else None,
        width=seen.width if seen else camera.width,
        height=seen.height if seen else camera.height,
        arrows=seen.arrows if seen else [],
        heat=seen.heat if seen else [],
        normality=judged.normality if judged else None,
        threshold=judged.threshold if judged else None,
        behaviour=judged.behaviour if judged else 0,
        expected=expected,
        next=1 + expected.index(max(expected)) if expected else 0,
        recent=[(j.time, j.normality, j.behaviour) for j in latest.recent] if latest else [],
        kept_seconds=latest.kept.seconds if latest and latest.kept else None,
        learning=supervisor.learning(camera.id) if supervisor else None,
    )


@api.get("/{camera}/picture", response_class=Response, responses=JPEG)
def show_picture(console: ThisConsole, actor: Viewer, camera: OneCamera) -> Response:
    """Show the camera's latest picture."""
    seen = console.supervisor.latest(camera.id).seen if console.supervisor else None
    if seen is None:
        raise NotFoundError("there is no picture yet")
    return Response(seen.jpeg, media_type="image/jpeg", headers={"X-Time": f"{seen.time:.3f}"})


@api.get("/{camera}/timeline")
def show_timeline(
    console: ThisConsole,
    actor: Viewer,
    camera: OneCamera,
    since: Moment,
    until: Moment,
    points: Annotated[int, Query(ge=2, le=MOST_POINTS)] = 1200,
) -> CameraTimeline:
    """Show how usual a span of time was, with its events and troubles."""
    return console.database.read(queries.timeline, camera.id, since, until, points)


@api.get("/{camera}/learnings", response_model=list[LearningRecord])
def list_learnings(
    console: ThisConsole,
    actor: Viewer,
    camera: OneCamera,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Any:
    """List when the camera's model was learnt, and what from."""
    return console.database.read(queries.learnings, camera.id, limit)


@api.post("/{camera}/learn", status_code=202)
def learn(console: ThisConsole, actor: Admin, camera: str) -> None:
    """Learn the camera's model as soon as no other one is being learnt."""
    administration.learn_now(console, actor.name, camera)


@api.post("/{camera}/snooze")
def snooze(
    console: ThisConsole, actor: Reviewer, camera: str, wanted: SnoozeRequest
) -> SnoozeOutcome:
    """Send people nothing of the camera's events for some hours; 0 ends it."""
    return SnoozeOutcome(until=administration.snooze(console, actor.name, camera, wanted.hours))


@api.get("/{camera}/behaviours", response_model=list[BehaviourRecord])
def list_behaviours(console: ThisConsole, actor: Viewer, camera: OneCamera) -> Any:
    """List the behaviours that were learnt, and what follows what."""
    if camera.model is None or console.supervisor is None:
        return []
    path = console.settings.camera_folder(camera.id) / Path(camera.model).name
    return _named(console, camera, describe(path, fork_server=console.supervisor.fork_server))


@api.patch("/{camera}/behaviours/{number}", status_code=204)
def name_behaviour(
    console: ThisConsole, actor: Admin, camera: str, number: Number, changes: BehaviourChanges
) -> None:
    """Give a behaviour a name, or take it away; a new model keeps it where it has the same one."""
    administration.name_behaviour(console, actor.name, camera, number, changes.name)


@api.get("/{camera}/behaviours/{number}.jpg", response_class=FileResponse, responses=JPEG)
def show_behaviour(
    console: ThisConsole, actor: Viewer, camera: OneCamera, number: Number
) -> FileResponse:
    """Show a behaviour drawn on the scene."""
    path = console.settings.camera_folder(camera.id) / "behaviours" / f"{number}.jpg"
    return file_answer(path, "image/jpeg", f"behaviour {number}")
