"""Cameras: the wall, the page of each, how they are found, added, changed and removed."""

import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse
from sqlalchemy.orm import Session

import habitus
from habitus.errors import HabitusError
from habitus.site.probe import look
from habitus.site.relearning import describe, description_of
from habitus.web import administration, camera_timeline, onvif, queries, store
from habitus.web.answers import (
    BehaviourChanges,
    BehaviourRecord,
    CameraChanges,
    CameraDetails,
    CameraNow,
    CameraTimeline,
    DeviceRequest,
    HttpError,
    LearningRecord,
    Moment,
    NewCamera,
    Number,
    PictureRequest,
    RecentFootage,
    SnoozeOutcome,
    SnoozeRequest,
    WallLayout,
)
from habitus.web.database import CameraRow
from habitus.web.outbox import snoozed_until
from habitus.web.preferences import arranged, read_wall, write_wall
from habitus.web.rendering import (
    JPEG,
    VIDEO,
    AdminPage,
    Page,
    PostedFields,
    ViewerPage,
    file_answer,
    go,
    has_picture,
    on_page,
    text_of,
)
from habitus.web.security import Admin, Reviewer, ThisConsole, Viewer
from habitus.web.server import Console

pages = APIRouter()
api = APIRouter(prefix="/api", tags=["cameras"])
N_LATEST, N_LATEST_OF_CAMERA = 8, 3
SPARK_SECONDS, SPARK_POINTS = 600.0, 60
MOST_COLUMNS, MOST_POINTS = 6, 5000
STALE = 30.0
"""Seconds after which a document does not say any more what happens now."""
LATEST = 1e11
"""A moment after all others."""


def _camera(console: ThisConsole, camera: str) -> CameraRow:
    return console.database.read(administration.camera_of, camera)


def _counted_camera(session: Session, camera: str) -> CameraRow:
    """Return a camera with its alarms of today."""
    administration.camera_of(session, camera)
    return queries.wall(session, camera=camera)[0]


OneCamera = Annotated[CameraRow, Depends(_camera)]
"""The camera in the path. To be named after who asks, who must be known first."""


def camera_now(console: Console, camera: CameraRow) -> CameraNow:
    """Return what a camera does now, and what it is expected to do next."""
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
        names=latest.names if latest else {},
        recent=[(j.time, j.normality, j.behaviour) for j in latest.recent] if latest else [],
        kept_seconds=latest.kept.seconds if latest and latest.kept else None,
        learning=supervisor.learning(camera.id) if supervisor else None,
    )


def _fresh(now: CameraNow) -> CameraNow | None:
    """Return what a page shows of now: nothing of a camera that is not being judged."""
    is_fresh = now.recent and time.time() - now.recent[-1][0] <= STALE
    return now if now.state == "watching" and is_fresh else None


# The wall.


@pages.get("/")
def wall(page: ViewerPage) -> HTMLResponse:
    """Show every camera."""
    console, cameras = page.console, page.database.read(queries.wall)
    nows = {camera.id: _fresh(camera_now(console, camera)) for camera in cameras}
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
        sparks={camera.id: page.database.read(_spark, camera.id) for camera in cameras},
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
    return page.part(
        "tile.html",
        camera=cards[0],
        sparks={camera: page.database.read(_spark, camera)},
        nows={camera: _fresh(camera_now(page.console, cards[0]))},
        ready=(),
        sizes={},
    )


def _spark(session: Session, camera: str) -> CameraTimeline:
    """Return how usual the last minutes were, for a small drawing."""
    until = time.time()
    return camera_timeline.timeline(session, camera, until - SPARK_SECONDS, until, SPARK_POINTS)


# The pages of a camera.


NEW_FORM = {
    "enabled": "yes",
    "kind": "playback",
    "alerts_per_day": f"{habitus.AlertSettings.BUDGET:g}",
    "learn_days": "7",
}
"""What the form of a new camera starts with."""
FIELDS = ("name", "address", "username", "password", "upload", "local", *NEW_FORM)


def _form_of(camera: CameraRow) -> dict[str, str]:
    """Return the fields of a camera; its address is never shown again."""
    return {
        "name": camera.name,
        "alerts_per_day": f"{camera.alerts_per_day:g}",
        "learn_days": str(camera.learn_days),
        "local": "yes" if camera.options.get("local") else "",
        "enabled": "yes" if camera.enabled else "",
    }


def _values(form: PostedFields) -> dict[str, Any]:
    """Return what the form of a camera says; what is empty is not named, but for the name."""
    source = ("upload", "kind") if text_of(form, "upload") else ("address", "username")
    texts = {
        name: text_of(form, name) for name in ("name", "alerts_per_day", "learn_days", *source)
    }
    return {
        **{name: text for name, text in texts.items() if text or name == "name"},
        "password": form.get("password") or None,
        "options": {"local": bool(text_of(form, "local")) or None},
    }


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@pages.get("/cameras/new")
def ask_for_camera(page: AdminPage, upload: str = "", name: str = "") -> HTMLResponse:
    """Ask for a camera; its recording may have been uploaded already."""
    return _edit_page(page, None, NEW_FORM | {"name": name, "upload": upload})


@pages.get("/cameras/{camera}")
def show_camera_page(page: ViewerPage, camera: str, at: float | None = None) -> HTMLResponse:
    """Show a camera: now, its timeline, and what was learnt."""
    console, row = page.console, page.database.read(_counted_camera, camera)
    now = camera_now(console, row)
    behaviours = _behaviours(console, row)
    learnings = page.database.read(queries.learnings, camera)
    recorded, until = row.kind == "recording", page.database.read(snoozed_until, camera)
    wanted = queries.EventFilter(camera=[camera])
    return page(
        "camera.html",
        section="Wall",
        camera=row,
        learnings=learnings,
        # Of a recording without a date times are counted from its beginning.
        origin=None if row.dated or not learnings else learnings[-1].since,
        until=page.database.read(camera_timeline.judged_until, camera) if recorded else None,
        latest=page.database.read(queries.events, wanted, limit=N_LATEST_OF_CAMERA).events,
        learning=now.learning,
        kept_seconds=now.kept_seconds,
        now=_fresh(now),
        ready=has_picture(console, camera),
        behaviours=behaviours,
        called={one["number"]: one["name"] for one in behaviours},
        snoozed=until if until and until > time.time() else None,
        at=at,
    )


@pages.get("/cameras/{camera}/edit")
def edit_camera(page: AdminPage, camera: OneCamera) -> HTMLResponse:
    """Show how a camera is watched, to be changed."""
    return _edit_page(page, camera, _form_of(camera))


def _edit_again(page: Page, error: HabitusError, form: PostedFields) -> HTMLResponse:
    camera = page.request.path_params.get("camera")
    return _edit_page(page, camera and _camera(page.console, camera), form, error)


@pages.get("/cameras/{camera}/zones")
def edit_zones(page: AdminPage, camera: OneCamera) -> HTMLResponse:
    """Show the zones of a camera, to be drawn and changed."""
    return _zones_page(page, camera, camera.zones, camera.options.get("timezone", ""))


def _zone_values(form: PostedFields) -> dict[str, Any]:
    timezone = text_of(form, "timezone") or None
    return {"zones": _parsed(text_of(form, "zones", "[]")), "options": {"timezone": timezone}}


def _zones_again(page: Page, error: HabitusError, form: PostedFields) -> HTMLResponse:
    camera = _camera(page.console, page.request.path_params["camera"])
    zones, timezone = _parsed(text_of(form, "zones")), text_of(form, "timezone")
    return _zones_page(page, camera, zones, timezone, error)


def _zones_page(
    page: Page,
    camera: CameraRow,
    zones: object,
    timezone: str,
    error: HabitusError | None = None,
) -> HTMLResponse:
    return page(
        "zones.html",
        problem=error,
        camera=camera,
        zones=zones if isinstance(zones, list) else camera.zones,
        timezone=timezone,
        ready=has_picture(page.console, camera.id),
    )


@pages.post("/cameras/{camera}/remove")
def remove_posted_camera(
    page: AdminPage, camera: str, sure: Annotated[str, Form()] = ""
) -> Response:
    """Remove a camera, once somebody is sure."""
    if sure != "yes":
        return go(f"/cameras/{camera}/edit")
    administration.remove_camera(page.console, page.actor.name, camera)
    return go("/", "removed")


def _edit_page(
    page: Page,
    camera: CameraRow | None,
    form: Mapping[str, Any],
    error: HabitusError | None = None,
) -> HTMLResponse:
    """Show the form of a camera; after an error with what was typed, but for passwords."""
    given, again = _shown_again({name: form.get(name, "") for name in FIELDS})
    return page(
        "edit.html",
        problem=error,
        camera=camera,
        given=given,
        again=again,
        makers=onvif.PATHS,
        ready=camera is not None and has_picture(page.console, camera.id),
    )


def _shown_again(typed: dict[str, str]) -> tuple[dict[str, str], set[str]]:
    """Return what was typed without passwords, and the fields where they have to be given again.

    >>> given, again = _shown_again({"address": "rtsp://me:s3cret@10.0.4.11/1", "password": ""})
    >>> given["address"], given["username"], again
    ('rtsp://10.0.4.11/1', 'me', {'password'})
    """
    shown = habitus.redacted(typed["address"])
    again = {"password"} if typed["password"] else set()
    if administration.LEFT_OUT in shown:
        again.add("address")
    user = ""
    if "@" in typed["address"] and "@" not in shown:
        with suppress(ValueError):
            parts = urlsplit(typed["address"])
            user = unquote(parts.username or "")
        if not user or parts.password is not None:
            again.add("password")
    user = typed.get("username") or user
    return typed | {"address": shown, "username": user, "password": ""}, again


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


@api.get("/wall")
def show_wall_layout(console: ThisConsole, actor: Viewer) -> WallLayout:
    """Show how who asks has the wall."""
    return console.database.read(read_wall, actor.person)


@api.put("/wall", status_code=204)
def change_wall_layout(console: ThisConsole, actor: Viewer, layout: WallLayout) -> None:
    """Order, size and group the wall of who asks."""
    with console.database.transaction() as session:
        write_wall(session, actor.person, layout)


@api.post("/finding/devices")
def find_devices(console: ThisConsole, actor: Admin) -> list[onvif.OnvifDevice]:
    """Ask the network for cameras that speak ONVIF."""
    devices = onvif.discover()
    with console.database.transaction() as session:
        store.write_audit(session, actor.name, "cameras looked for", f"{len(devices)} found")
    return devices


@api.post("/finding/streams")
def find_streams(actor: Admin, wanted: DeviceRequest) -> list[onvif.DeviceStream]:
    """List the streams of a device, the largest first."""
    user, password = wanted.username, wanted.password
    return onvif.streams(wanted.device, user, password, local=wanted.local)


@api.post("/finding/picture", response_class=Response, responses=JPEG)
def look_at_camera(actor: Admin, wanted: PictureRequest) -> Response:
    """Show a picture of a camera that is not added yet."""
    address = administration.with_user(wanted.address, wanted.username, wanted.password)
    seen = look(address, local=wanted.local)
    size = {"X-Size": f"{seen.width}x{seen.height}"}
    return Response(seen.jpeg, media_type="image/jpeg", headers=size)


@api.get("/cameras", response_model=list[CameraDetails])
def list_cameras(console: ThisConsole, actor: Viewer) -> Any:
    """List all cameras by name."""
    return console.database.read(queries.wall)


@api.post("/cameras", response_model=CameraDetails, status_code=201)
@on_page(
    pages,
    "/cameras",
    "/cameras/{result.id}",
    lambda camera: "given" if camera.kind == "recording" else "added",
    _edit_again,
    _values,
)
def add_camera(console: ThisConsole, actor: Admin, camera: NewCamera) -> Any:
    """Add a camera by address, or by a file that was uploaded, and watch it."""
    return administration.add_camera(console, actor.name, camera)


@api.get("/cameras/{camera}", response_model=CameraDetails)
def show_camera(console: ThisConsole, actor: Viewer, camera: str) -> Any:
    """Show a camera, how it is watched, and its alarms of today."""
    return console.database.read(_counted_camera, camera)


@api.patch("/cameras/{camera}", response_model=CameraDetails)
@on_page(
    pages,
    "/cameras/{camera}",
    "/cameras/{camera}",
    refused=_edit_again,
    values_of=lambda form: {**_values(form), "enabled": bool(text_of(form, "enabled"))},
)
@on_page(
    pages,
    "/cameras/{camera}/zones",
    "/cameras/{camera}",
    refused=_zones_again,
    values_of=_zone_values,
)
def change_camera(console: ThisConsole, actor: Admin, camera: str, changes: CameraChanges) -> Any:
    """Change a camera; what is not named stays as it is."""
    administration.change_camera(console, actor.name, camera, changes)
    return console.database.read(_counted_camera, camera)


@api.delete("/cameras/{camera}", status_code=204)
def remove_camera(console: ThisConsole, actor: Admin, camera: str) -> None:
    """Remove a camera with all its events."""
    administration.remove_camera(console, actor.name, camera)


@api.get("/cameras/{camera}/now")
def show_now(console: ThisConsole, actor: Viewer, camera: OneCamera) -> CameraNow:
    """Show what a camera does now: state, behaviour, the next one, arrows and heat."""
    return camera_now(console, camera)


@api.get("/cameras/{camera}/picture", response_class=Response, responses=JPEG)
def show_picture(console: ThisConsole, actor: Viewer, camera: OneCamera) -> Response:
    """Show the camera's latest picture."""
    seen = console.supervisor.latest(camera.id).seen if console.supervisor else None
    if seen is None:
        raise HttpError(404, "there is no picture yet")
    return Response(seen.jpeg, media_type="image/jpeg", headers={"X-Time": f"{seen.time:.3f}"})


@api.get("/cameras/{camera}/recent")
def show_recent(console: ThisConsole, actor: Viewer, camera: OneCamera) -> RecentFootage:
    """Show from when to when there are pictures that can be played."""
    from habitus.site.recent_footage import recorded_spans  # PyAV, once somebody looks

    recent = console.settings.camera_folder(camera.id) / "recent"
    return RecentFootage(spans=recorded_spans(recent))


@api.get(
    "/cameras/{camera}/recent.mp4",
    response_class=Response,
    responses={
        **VIDEO,
        204: {"description": "There is nothing that a browser plays, or nothing follows yet."},
    },
)
def play_recent(
    console: ThisConsole,
    actor: Viewer,
    camera: OneCamera,
    start: Moment = LATEST,
    after: Annotated[str, Query(pattern=r"^(\d{15}-\d{1,9})?$")] = "",
) -> Response:
    """Play some seconds as fragmented MP4, as the camera sent them.

    They begin with the last key frame before `start`, or with the newest one; or follow the answer
    whose X-Last is given as `after`. X-Start and X-End are when its first frame and its last are
    shown; times in the file count from the epoch.
    """
    from habitus.site.recent_footage import stretch_after, stretch_at

    recent = console.settings.camera_folder(camera.id) / "recent"
    stretch = stretch_after(recent, after) if after else stretch_at(recent, start)
    if stretch is None:
        return Response(status_code=204)
    headers = {
        "X-Start": f"{stretch.start:.3f}",
        "X-End": f"{stretch.end:.3f}",
        "X-Last": stretch.last,
    }
    return Response(stretch.data, 200, headers, f'video/mp4; codecs="{stretch.codec}"')


@api.get("/cameras/{camera}/timeline")
def show_timeline(
    console: ThisConsole,
    actor: Viewer,
    camera: OneCamera,
    since: Moment,
    until: Moment,
    points: Annotated[int, Query(ge=2, le=MOST_POINTS)] = 1200,
) -> CameraTimeline:
    """Show how usual a span of time was, with its events and troubles."""
    return console.database.read(camera_timeline.timeline, camera.id, since, until, points)


@api.get("/cameras/{camera}/learnings", response_model=list[LearningRecord])
def list_learnings(
    console: ThisConsole,
    actor: Viewer,
    camera: OneCamera,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Any:
    """List when the camera's model was learnt, and what from."""
    return console.database.read(queries.learnings, camera.id, limit)


@api.post("/cameras/{camera}/learn", status_code=202)
@on_page(pages, "/cameras/{camera}/learn", "/cameras/{camera}", "learning")
def learn(console: ThisConsole, actor: Admin, camera: str) -> None:
    """Learn the camera's model as soon as no other one is being learnt."""
    administration.learn_now(console, actor.name, camera)


@api.post("/cameras/{camera}/snooze")
@on_page(
    pages,
    "/cameras/{camera}/snooze",
    "/cameras/{camera}",
    lambda outcome: "snoozed" if outcome.until else "awake",
)
def snooze(
    console: ThisConsole, actor: Reviewer, camera: str, wanted: SnoozeRequest
) -> SnoozeOutcome:
    """Send people nothing of the camera's events for some hours; 0 ends it."""
    return SnoozeOutcome(until=administration.snooze(console, actor.name, camera, wanted.hours))


@api.get("/cameras/{camera}/behaviours", response_model=list[BehaviourRecord])
def list_behaviours(console: ThisConsole, actor: Viewer, camera: OneCamera) -> Any:
    """List the behaviours that were learnt, and what follows what."""
    if camera.model is None or console.supervisor is None:
        return []
    path = console.settings.camera_folder(camera.id) / Path(camera.model).name
    return _named(console, camera, describe(path, fork_server=console.supervisor.fork_server))


@api.patch("/cameras/{camera}/behaviours/{number}", status_code=204)
@on_page(pages, "/cameras/{camera}/behaviours/{number}", "/cameras/{camera}")
def name_behaviour(
    console: ThisConsole, actor: Admin, camera: str, number: Number, changes: BehaviourChanges
) -> None:
    """Give a behaviour a name, or take it away; a new model keeps it where it has the same one."""
    administration.name_behaviour(console, actor.name, camera, number, changes.name)


@api.get("/cameras/{camera}/behaviours/{number}.jpg", response_class=FileResponse, responses=JPEG)
def show_behaviour(
    console: ThisConsole, actor: Viewer, camera: OneCamera, number: Number
) -> FileResponse:
    """Show a behaviour drawn on the scene."""
    path = console.settings.camera_folder(camera.id) / "behaviours" / f"{number}.jpg"
    return file_answer(path, "image/jpeg", f"behaviour {number}")
