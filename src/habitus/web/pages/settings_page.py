"""Settings: channels, people, tokens, disk, notices and the audit log."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session
from starlette.datastructures import FormData

from habitus.errors import HabitusError
from habitus.web import administration, queries
from habitus.web.answers import MOST_ROWS, DiskUse, Number
from habitus.web.database import Channel, OutboxEntry, Token, User
from habitus.web.http_errors import HttpError
from habitus.web.pages.rendering import go, number, page
from habitus.web.preferences import GIGABYTE, read_preferences
from habitus.web.security import Actor, Admin, console_of

router = APIRouter(prefix="/settings")
Action = Callable[..., None]
N_AUDIT = 50
FIELDS = {
    "webhook": ("url", "secret"),
    "mqtt": ("host", "port", "username", "password", "topic", "tls"),
    "apprise": ("url",),
}
"""Settings of each kind of channel, as the forms have them."""


class ChannelState(NamedTuple):
    """What a channel has told, and what waits."""

    waiting: int
    last: float | None
    error: str
    """Why the first one that waits could not be told yet."""


class DiskShare(NamedTuple):
    """A part of the disk that is used, and where it is drawn."""

    name: str
    size: int
    x: float
    width: float


@router.get("")
def settings(
    request: Request, actor: Admin, before: Annotated[int | None, Query(le=MOST_ROWS)] = None
) -> HTMLResponse:
    """Show all settings."""
    return _page(request, actor, before=before)


def _page(
    request: Request,
    actor: Actor,
    *,
    before: int | None = None,
    problem: HabitusError | None = None,
    token: dict[str, str] | None = None,
) -> HTMLResponse:
    console = console_of(request)
    with console.database.session() as session:
        preferences = read_preferences(session)
        audit = queries.audit(session, before=before, limit=N_AUDIT)
        disk = queries.disk_use(session, console.settings)
        shown: dict[str, Any] = {
            "channels": list(session.scalars(select(Channel).order_by(Channel.id))),
            "told": _told(session),
            "users": list(session.scalars(select(User).order_by(User.name))),
            "tokens": list(session.scalars(select(Token).order_by(Token.id))),
            "cameras": queries.wall(session),
        }
    status = 200
    if problem is not None:
        status = problem.status if isinstance(problem, HttpError) else 422
    return page(
        request,
        "settings.html",
        actor,
        section="Settings",
        status=status,
        preferences=preferences,
        audit=audit,
        older=audit[-1].id if len(audit) == N_AUDIT else None,
        disk=disk,
        shares=_shares(disk, preferences.quota_bytes),
        notices=console.bulletin.notices(),
        problem=str(problem) if problem else "",
        token=token,
        **shown,
    )


def _told(session: Session) -> dict[int, ChannelState]:
    waiting = case((OutboxEntry.sent.is_(None) & (OutboxEntry.outcome == "waiting"), 1), else_=0)
    rows = session.execute(
        select(OutboxEntry.channel_id, func.sum(waiting), func.max(OutboxEntry.sent)).group_by(
            OutboxEntry.channel_id
        )
    ).all()
    return {
        channel: ChannelState(int(n), last, _error(session, channel) if n else "")
        for channel, n, last in rows
    }


def _error(session: Session, channel: Number) -> str:
    found = select(OutboxEntry.error).where(
        OutboxEntry.channel_id == channel, OutboxEntry.sent.is_(None), OutboxEntry.error != ""
    )
    return session.scalar(found.order_by(OutboxEntry.id).limit(1)) or ""


def _shares(disk: DiskUse, quota: int) -> list[DiskShare]:
    """Return the parts of the disk in per cent of the quota, or of what is used if that is more."""
    whole = max(quota, disk.total, 1)
    shares, x = [], 0.0
    for name, size in disk:
        if size and name not in ("total", "free"):
            width = round(100 * size / whole, 3)
            shares.append(DiskShare(name, size, round(x, 3), width))
            x += width
    return shares


async def _sent(request: Request) -> FormData:
    return await request.form()


PostedForm = Annotated[FormData, Depends(_sent)]


def _text(form: FormData, name: str) -> str:
    found = form.get(name, "")
    return found.strip() if isinstance(found, str) else ""


def _number(form: FormData, name: str) -> float:
    return number(name.replace("_", " "), _text(form, name))


def _action(part: str, said: str = "changed") -> Callable[[Action], Callable[..., Response]]:
    """Have a route show the settings after it: a part of them, or why nothing was done."""

    def decorated(action: Action) -> Callable[..., Response]:
        @wraps(action)
        def route(request: Request, actor: Actor, **values: Any) -> Response:
            try:
                action(request=request, actor=actor, **values)
            except HabitusError as error:
                return _page(request, actor, problem=error)
            return go("/settings", said, part=part)

        return route

    return decorated


@router.post("/channels")
@_action("channels")
def add_channel(request: Request, actor: Admin, form: PostedForm) -> None:
    """Add a channel."""
    kind = _text(form, "kind")
    settings = _channel_settings(form, kind)
    administration.add_channel(
        console_of(request), actor.name, kind=kind, settings=settings, **_limits(form)
    )


@router.post("/channels/{channel}")
@_action("channels")
def change_channel(request: Request, actor: Admin, channel: Number, form: PostedForm) -> None:
    """Change a channel; fields that are left empty stay as they are."""
    console = console_of(request)
    with console.database.session() as session:
        found = session.get(Channel, channel)
    settings = _channel_settings(form, found.kind if found else "")
    administration.change_channel(console, actor.name, channel, settings=settings, **_limits(form))


def _channel_settings(form: FormData, kind: str) -> dict[str, Any]:
    """Return the settings of a kind, without those that were left empty."""
    found: dict[str, Any] = {}
    for name in FIELDS.get(kind, ()):
        text = _text(form, name)
        if name == "tls":
            found[name] = bool(text)
        elif text:
            found[name] = int(_number(form, name)) if name == "port" else text
    return found


def _limits(form: FormData) -> dict[str, Any]:
    most = _text(form, "most_per_hour")
    return {
        "name": _text(form, "name"),
        "cameras": [camera for camera in form.getlist("cameras") if isinstance(camera, str)],
        "quiet_from": _text(form, "quiet_from") or None,
        "quiet_until": _text(form, "quiet_until") or None,
        "most_per_hour": int(_number(form, "most_per_hour")) if most else None,
    }


@router.post("/channels/{channel}/switch")
@_action("channels")
def switch_channel(request: Request, actor: Admin, channel: Number, form: PostedForm) -> None:
    """Switch a channel on or off."""
    enabled = bool(_text(form, "enabled"))
    administration.change_channel(console_of(request), actor.name, channel, enabled=enabled)


@router.post("/channels/{channel}/test")
@_action("channels", "tested")
def test_channel(request: Request, actor: Admin, channel: Number) -> None:
    """Tell a test message now."""
    administration.try_channel(console_of(request), actor.name, channel)


@router.post("/channels/{channel}/remove")
@_action("channels", "removed")
def remove_channel(request: Request, actor: Admin, channel: Number) -> None:
    """Remove a channel."""
    administration.remove_channel(console_of(request), actor.name, channel)


@router.post("/quiet")
@_action("channels")
def change_quiet_hours(request: Request, actor: Admin, form: PostedForm) -> None:
    """Change the quiet hours that new channels start with."""
    hours = {name: _text(form, name) for name in ("quiet_from", "quiet_until")}
    administration.change_preferences(console_of(request), actor.name, **hours)


@router.post("/users")
@_action("people")
def add_user(request: Request, actor: Admin, form: PostedForm) -> None:
    """Add somebody; whoever adds the first one has to log in from then on."""
    name, role = _text(form, "name"), _text(form, "role")
    password = str(form.get("password", ""))
    administration.add_user(console_of(request), actor.name, name, password, role)


@router.post("/users/{user}")
@_action("people")
def change_user(request: Request, actor: Admin, user: Number, form: PostedForm) -> None:
    """Change the role or the password of somebody."""
    administration.change_user(
        console_of(request),
        actor.name,
        user,
        password=str(form["password"]) if "password" in form else None,
        role=_text(form, "role") or None,
    )


@router.post("/users/{user}/remove")
@_action("people", "removed")
def remove_user(request: Request, actor: Admin, user: Number) -> None:
    """Remove somebody."""
    administration.remove_user(console_of(request), actor.name, user)


@router.post("/tokens")
def add_token(request: Request, actor: Admin, form: PostedForm) -> Response:
    """Make a token, and show it this once."""
    name = _text(form, "name")
    try:
        made = administration.add_token(console_of(request), actor.name, name, _text(form, "role"))
    except HabitusError as error:
        return _page(request, actor, problem=error)
    return _page(request, actor, token={"name": name, "secret": made.secret})


@router.post("/tokens/{token}/remove")
@_action("tokens", "removed")
def remove_token(request: Request, actor: Admin, token: Number) -> None:
    """Withdraw a token."""
    administration.remove_token(console_of(request), actor.name, token)


@router.post("/disk")
@_action("disk")
def change_disk(request: Request, actor: Admin, form: PostedForm) -> None:
    """Change how much is kept, and how long."""
    administration.change_preferences(
        console_of(request),
        actor.name,
        quota_bytes=int(_number(form, "quota") * GIGABYTE),
        retention_days=_number(form, "retention_days"),
        upload_bytes=int(_number(form, "upload") * GIGABYTE),
    )
