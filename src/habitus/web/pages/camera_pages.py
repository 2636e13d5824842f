"""A camera: its page, and how it is added, changed and removed."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, StringConstraints

from habitus.errors import HabitusError, InvalidInputError
from habitus.site.relearning import description_of
from habitus.web import administration, queries
from habitus.web.database import CameraRow
from habitus.web.http_errors import HttpError
from habitus.web.pages.rendering import go, has_picture, now_at, number, page
from habitus.web.security import Admin, Viewer, console_of
from habitus.web.server import Console

router = APIRouter(prefix="/cameras")
N_LATEST = 3


class CameraForm(BaseModel):
    """What a form of a camera has in its fields."""

    name: str = ""
    address: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    kind: str = "playback"
    """Of an upload."""
    upload: str = ""
    alerts_per_day: str = "5"
    learn_days: str = "7"
    mask: str = "[]"
    region: str = "[]"
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
            mask=json.dumps(camera.mask),
            region=json.dumps(camera.region),
            local="yes" if camera.options.get("local") else "",
            enabled="yes" if camera.enabled else "",
        )

    def values(self) -> dict[str, Any]:
        """Return what administration takes.

        Raises
        ------
        InvalidInputError
            If a number or a shape cannot be understood.
        """
        return {
            "name": self.name,
            "alerts_per_day": number("alerts per day", self.alerts_per_day),
            "learn_days": int(number("days to learn from", self.learn_days)),
            "mask": _polygons("mask", self.mask),
            "region": _polygons("region", self.region),
            "enabled": bool(self.enabled),
            "options": {"local": bool(self.local) or None},
        }


def _polygons(name: str, text: str) -> list[list[tuple[float, float]]]:
    try:
        return [[(float(x), float(y)) for x, y in polygon] for polygon in json.loads(text)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidInputError(f"{name} must be polygons, each a list of [x, y]") from None


PostedForm = Annotated[CameraForm, Form()]


@router.get("/new")
def new_camera(request: Request, actor: Admin, upload: str = "", name: str = "") -> HTMLResponse:
    """Ask for a camera; its recording may have been uploaded already."""
    given = CameraForm(name=name, upload=upload, enabled="yes")
    return page(request, "edit.html", actor, camera=None, given=given, problem="", ready=False)


@router.post("")
def add_camera(request: Request, actor: Admin, given: PostedForm) -> Response:
    """Add a camera, or say what is wrong with it."""
    console = console_of(request)
    try:
        values = {**given.values(), "enabled": True}
        if given.upload:
            values["upload"], values["kind"] = given.upload, given.kind
        elif given.address:
            values["address"] = given.address
        else:
            raise InvalidInputError("give an address, or a recording")
        camera = administration.add_camera(console, actor.name, **values)
    except HabitusError as error:
        return _again(request, actor, None, given, error)
    return go(f"/cameras/{camera.id}", "given" if camera.kind == "recording" else "added")


@router.get("/{camera}")
def one_camera(
    request: Request, actor: Viewer, camera: str, at: float | None = None
) -> HTMLResponse:
    """Show a camera: now, its timeline, and what was learnt."""
    console = console_of(request)
    supervisor = console.supervisor
    with console.database.session() as session:
        today = queries.wall(session, camera=camera)
        found = administration.camera_of(session, camera)
        learnings = queries.learnings(session, camera)
        latest = queries.events(session, queries.EventFilter([camera]), limit=N_LATEST).events
    return page(
        request,
        "camera.html",
        actor,
        section="Wall",
        camera=found,
        today=today[0],
        learnings=learnings,
        latest=latest,
        learning=supervisor.learning(camera) if supervisor else None,
        kept=supervisor.latest(camera).kept if supervisor else None,
        now=now_at(console, found),
        ready=has_picture(console, camera),
        behaviours=_behaviours(console, found),
        at=at,
    )


@router.get("/{camera}/edit")
def edit_camera(request: Request, actor: Admin, camera: str) -> HTMLResponse:
    """Show how a camera is watched, to be changed."""
    with console_of(request).database.session() as session:
        found = administration.camera_of(session, camera)
    ready = has_picture(console_of(request), camera)
    given = CameraForm.of(found)
    return page(request, "edit.html", actor, camera=found, given=given, problem="", ready=ready)


@router.post("/{camera}")
def change_camera(request: Request, actor: Admin, camera: str, given: PostedForm) -> Response:
    """Change a camera, or say what is wrong."""
    console = console_of(request)
    with console.database.session() as session:
        found = administration.camera_of(session, camera)
    try:
        values = given.values()
        if given.address:
            values["address"] = given.address
        administration.change_camera(console, actor.name, camera, **values)
    except HabitusError as error:
        return _again(request, actor, found, given, error)
    return go(f"/cameras/{camera}", "changed")


@router.post("/{camera}/remove")
def remove_camera(
    request: Request, actor: Admin, camera: str, sure: Annotated[str, Form()] = ""
) -> Response:
    """Remove a camera, once somebody is sure."""
    if sure != "yes":
        return go(f"/cameras/{camera}/edit")
    administration.remove_camera(console_of(request), actor.name, camera)
    return go("/", "removed")


@router.post("/{camera}/learn")
def learn_now(request: Request, actor: Admin, camera: str) -> Response:
    """Learn a camera's model as soon as the machine is free."""
    administration.learn_now(console_of(request), actor.name, camera)
    return go(f"/cameras/{camera}", "learning")


def _again(
    request: Request, actor: Admin, camera: CameraRow | None, given: CameraForm, error: HabitusError
) -> HTMLResponse:
    """Show the form again with what was typed, and why it cannot be taken."""
    status = error.status if isinstance(error, HttpError) else 422
    return page(
        request,
        "edit.html",
        actor,
        status=status,
        camera=camera,
        given=given.model_copy(update={"address": ""}),
        problem=str(error),
        ready=camera is not None and has_picture(console_of(request), camera.id),
    )


def _behaviours(console: Console, camera: CameraRow) -> list[dict[str, Any]]:
    """Return the behaviours of a camera's model, as they were described when it was learnt."""
    if camera.model is None:
        return []
    written = description_of(console.settings.camera_folder(camera.id) / camera.model)
    try:
        found: list[dict[str, Any]] = json.loads(written.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return found
