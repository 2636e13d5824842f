"""Settings, channels, users, tokens, logins and uploads: their pages and their API."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from habitus.errors import HabitusError
from habitus.web import administration, queries, uploads
from habitus.web.answers import (
    GIGABYTE,
    MOST_ROWS,
    AuditRecord,
    BrowserAddress,
    ChannelChanges,
    ChannelDetails,
    DiskUse,
    HttpError,
    NewBrowser,
    NewChannel,
    NewToken,
    NewTokenRequest,
    NewUser,
    Number,
    PasswordChange,
    PostedNotice,
    Preferences,
    ServerKey,
    SessionDetails,
    TokenDetails,
    UploadedFile,
    UserChanges,
    UserDetails,
    checked,
)
from habitus.web.backup import waiting
from habitus.web.channels import push
from habitus.web.database import Channel, Token, User
from habitus.web.preferences import read_preferences
from habitus.web.rendering import (
    Action,
    AdminPage,
    Page,
    PostedFields,
    ViewerPage,
    bare_page,
    go,
    number_of,
    on_page,
    text_of,
)
from habitus.web.security import (
    Admin,
    Anybody,
    Everyone,
    ThisConsole,
    Viewer,
    console_of,
    log_in,
    log_out,
    try_password,
)
from habitus.web.server import Console
from habitus.web.server_log import last_lines

pages = APIRouter()
api = APIRouter(prefix="/api")
N_AUDIT = 50
PARTS: dict[str, str] = {
    "channels": "Channels",
    "people": "People",
    "tokens": "Tokens",
    "disk": "Disk",
    "backup": "Backup",
    "notices": "Notices",
    "log": "Log",
    "audit": "Audit log",
}
"""Pages of the settings, and their names."""


class DiskShare(NamedTuple):
    """A part of the disk that is used, and where it is drawn."""

    name: str
    size: int
    x: float
    width: float


@pages.get("/settings")
@pages.get("/settings/{part}")
def settings(
    page: AdminPage,
    part: str = "channels",
    before: Annotated[int | None, Query(le=MOST_ROWS)] = None,
) -> Response:
    """Show a page of the settings; where a form was sent to, the first one."""
    if part not in PARTS:
        return go("/settings")
    return _settings_page(page, part, before=before)


def _settings_page(
    page: Page,
    part: str,
    *,
    before: int | None = None,
    problem: HabitusError | None = None,
    token: dict[str, str] | None = None,
) -> HTMLResponse:
    with page.database.session() as session:
        shown = _SHOWN[part](session, page.console, before)
    return page(
        "settings.html",
        section="Settings",
        problem=problem,
        part=part,
        parts=PARTS,
        token=token,
        **shown,
    )


def _shown_channels(session: Session, console: Console, before: int | None) -> dict[str, Any]:
    return {
        "preferences": read_preferences(session),
        "channels": queries.channels(session),
        "cameras": queries.wall(session),
    }


def _shown_disk(session: Session, console: Console, before: int | None) -> dict[str, Any]:
    preferences = read_preferences(session)
    disk = queries.disk_use(session, console.settings)
    shares = _shares(disk, preferences.quota_bytes)
    return {"preferences": preferences, "disk": disk, "shares": shares}


def _shown_audit(session: Session, console: Console, before: int | None) -> dict[str, Any]:
    audit = queries.audit(session, before=before, limit=N_AUDIT)
    return {"audit": audit, "older": audit[-1].id if len(audit) == N_AUDIT else None}


_SHOWN: dict[str, Callable[[Session, Console, int | None], dict[str, Any]]] = {
    "channels": _shown_channels,
    "people": lambda session, *_: {
        "users": list(session.scalars(select(User).order_by(User.name)))
    },
    "tokens": lambda session, *_: {
        "tokens": list(session.scalars(select(Token).order_by(Token.id)))
    },
    "disk": _shown_disk,
    "backup": lambda session, console, _: {
        "is_sqlite": console.database.is_sqlite,
        "is_waiting": waiting(console.settings).exists(),
    },
    "log": lambda session, console, _: {"lines": last_lines(console.settings.data)},
    "notices": lambda session, console, _: {"notices": console.bulletin.notices()},
    "audit": _shown_audit,
}
"""What each page of the settings shows."""


_DISK_WORDS = {
    "documents": "footage to learn from",
    "recent": "last ten minutes",
    "other": "log, exports and others, not counted",
}
"""What takes the disk, where the name of its number would be jargon."""


def _shares(disk: DiskUse, quota: int) -> list[DiskShare]:
    """Return the parts of the disk in per cent of the quota, or of what is used if that is more."""
    whole = max(quota, disk.total, 1)
    shares, x = [], 0.0
    for name, size in disk:
        if size and name not in ("total", "free"):
            width = round(100 * size / whole, 3)
            shares.append(DiskShare(_DISK_WORDS.get(name, name), size, round(x, 3), width))
            x += width
    return shares


def _on_page(path: str, part: str, said: str = "changed") -> Callable[[Action], Action]:
    """Have a page of the settings do something too, and show it again, or why nothing was done."""

    def refused(page: Page, error: HabitusError, form: PostedFields) -> Response:
        return _settings_page(page, part, problem=error)

    return on_page(pages, f"/settings{path}", f"/settings/{part}", said, refused)


# Channels.


@_on_page("/channels/{channel}/switch", "channels")
def switch_channel(console: ThisConsole, actor: Admin, channel: Number, form: PostedFields) -> None:
    """Switch a channel on or off."""
    changes = checked(ChannelChanges, {"enabled": bool(text_of(form, "enabled"))})
    administration.change_channel(console, actor.name, channel, changes)


@api.get("/channels", response_model=list[ChannelDetails], tags=["channels"])
def list_channels(console: ThisConsole, actor: Admin) -> Any:
    """List where events are sent."""
    with console.database.session() as session:
        return queries.channels(session)


@api.post("/channels", response_model=ChannelDetails, status_code=201, tags=["channels"])
@_on_page("/channels", "channels")
def add_channel(console: ThisConsole, actor: Admin, channel: NewChannel) -> Any:
    """Add a place where events are sent."""
    return administration.add_channel(console, actor.name, channel)


@api.patch("/channels/{channel}", response_model=ChannelDetails, tags=["channels"])
@_on_page("/channels/{channel}", "channels")
def change_channel(
    console: ThisConsole, actor: Admin, channel: Number, changes: ChannelChanges
) -> Any:
    """Change a channel; what is not named stays as it is."""
    return administration.change_channel(console, actor.name, channel, changes)


@api.delete("/channels/{channel}", status_code=204, tags=["channels"])
@_on_page("/channels/{channel}/remove", "channels", "removed")
def remove_channel(console: ThisConsole, actor: Admin, channel: Number) -> None:
    """Remove a channel, with what waits to be sent there."""
    administration.remove(console, actor.name, Channel, channel)


@api.post("/channels/{channel}/test", status_code=204, tags=["channels"])
@_on_page("/channels/{channel}/test", "channels", "tested")
def try_channel(console: ThisConsole, actor: Admin, channel: Number) -> None:
    """Send a test message now."""
    administration.try_channel(console, actor.name, channel)


# Browsers and phones, which are channels too.

STATIC = Path(__file__).parent / "static"


@pages.get("/manifest.webmanifest")
def show_manifest(actor: Everyone) -> FileResponse:
    """Show what a phone installs the console by."""
    return FileResponse(STATIC / "manifest.webmanifest", media_type="application/manifest+json")


@pages.get("/worker.js")
def show_worker(actor: Everyone) -> FileResponse:
    """Show what runs in a browser while no page is open; all pages are below its address."""
    headers = {"Cache-Control": "no-cache"}
    return FileResponse(STATIC / "worker.js", media_type="text/javascript", headers=headers)


@api.get("/push", tags=["channels"])
def show_key(console: ThisConsole, actor: Viewer) -> ServerKey:
    """Show what a browser subscribes with."""
    return ServerKey(key=push.public_key(console))


@api.post("/push", response_model=ChannelDetails, status_code=201, tags=["channels"])
def subscribe(console: ThisConsole, actor: Viewer, device: NewBrowser) -> Any:
    """Send a browser notifications from now on; it is sent a test message first."""
    return administration.add_device(console, actor, device)


@api.delete("/push", status_code=204, tags=["channels"])
def unsubscribe(console: ThisConsole, actor: Viewer, device: BrowserAddress) -> None:
    """Send a browser no notifications any more."""
    administration.remove_device(console, actor.name, device.endpoint)


# Users and tokens.


@api.get("/users", response_model=list[UserDetails], tags=["users"])
def list_users(console: ThisConsole, actor: Admin) -> Any:
    """List who may log in."""
    with console.database.session() as session:
        return list(session.scalars(select(User).order_by(User.name)))


@api.post("/users", response_model=UserDetails, status_code=201, tags=["users"])
@_on_page("/users", "people")
def add_user(console: ThisConsole, actor: Admin, user: NewUser) -> Any:
    """Add somebody who may log in from then on; the first one must be an admin."""
    return administration.add_user(console, actor.name, user)


@api.patch("/users/{user}", response_model=UserDetails, tags=["users"])
@_on_page("/users/{user}", "people")
def change_user(console: ThisConsole, actor: Admin, user: Number, changes: UserChanges) -> Any:
    """Change what somebody may do, or their password."""
    return administration.change_user(console, actor.name, user, changes)


@api.delete("/users/{user}", status_code=204, tags=["users"])
@_on_page("/users/{user}/remove", "people", "removed")
def remove_user(console: ThisConsole, actor: Admin, user: Number) -> None:
    """Remove a user, and end their logins."""
    administration.remove(console, actor.name, User, user)


@pages.post("/settings/tokens")
def add_posted_token(page: AdminPage, form: PostedFields) -> Response:
    """Make a token, and show it this once."""
    try:
        values = {name: text_of(form, name) for name in ("name", "role")}
        wanted = checked(NewTokenRequest, values)
        made = administration.add_token(page.console, page.actor.name, wanted)
    except HabitusError as error:
        return _settings_page(page, "tokens", problem=error)
    return _settings_page(page, "tokens", token={"name": wanted.name, "secret": made.secret})


@api.get("/tokens", response_model=list[TokenDetails], tags=["users"])
def list_tokens(console: ThisConsole, actor: Admin) -> Any:
    """List the tokens of the API."""
    with console.database.session() as session:
        return list(session.scalars(select(Token).order_by(Token.id)))


@api.post("/tokens", status_code=201, tags=["users"])
def add_token(console: ThisConsole, actor: Admin, token: NewTokenRequest) -> NewToken:
    """Make a token of the API; it is shown once."""
    return administration.add_token(console, actor.name, token)


@api.delete("/tokens/{token}", status_code=204, tags=["users"])
@_on_page("/tokens/{token}/remove", "tokens", "removed")
def remove_token(console: ThisConsole, actor: Admin, token: Number) -> None:
    """Withdraw a token."""
    administration.remove(console, actor.name, Token, token)


# Logins.


@pages.get("/login")
def login(csrf: Anybody, next: str = "/") -> HTMLResponse:
    """Ask for name and password."""
    return bare_page("login.html", csrf=csrf, next=_local(next), name="", problem="")


@pages.post("/login")
def try_login(
    request: Request,
    csrf: Anybody,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Check name and password, and go on to the page that was wanted."""
    try:
        log_in(request, name, password)
    except HttpError as error:
        form = {"csrf": csrf, "next": _local(next), "name": name, "problem": str(error)}
        answer = bare_page("login.html", error.status, **form)
        answer.headers.update(error.headers)
        return answer
    return RedirectResponse(_local(next), 303)


@pages.post("/logout")
def logout(request: Request, actor: Viewer) -> Response:
    """End the login."""
    log_out(request)
    return go("/login")


def _local(address: str) -> str:
    r"""Return an address of this console; the wall for any other.

    >>> _local("/events?camera=a"), _local("//example.org"), _local("/\\example.org")
    ('/events?camera=a', '/', '/')
    """
    safe = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if safe and address.isprintable() and "\\" not in address else "/"


@api.get("/session", tags=["users"])
def show_session(actor: Viewer) -> SessionDetails:
    """Show who asks, and what pages send along with changes."""
    return SessionDetails(name=actor.name, role=actor.role, csrf=actor.csrf)


@pages.get("/account")
def account(page: ViewerPage) -> HTMLResponse:
    """Show who is logged in, and let them change their password."""
    return page("account.html")


@api.post("/password", status_code=204, tags=["users"])
@on_page(
    pages,
    "/account",
    "/login",
    "",
    lambda page, error, _: page("account.html", problem=error),
)
def change_own_password(request: Request, actor: Viewer, change: PasswordChange) -> None:
    """Change one's own password; all one's logins end."""
    console = console_of(request)
    with console.database.session() as session:
        user = session.get(User, actor.user_id) if actor.user_id is not None else None
    if user is None or not try_password(request, user.name, change.old, user):
        raise HttpError(403, "the old password does not fit")
    administration.change_user(console, user.name, user.id, UserChanges(password=change.new))


# Settings, and what there is to know.


@_on_page("/disk", "disk")
def change_disk(console: ThisConsole, actor: Admin, form: PostedFields) -> None:
    """Change how much is kept, and how long."""
    values = {
        "quota_bytes": int(number_of(form, "quota") * GIGABYTE),
        "retention_days": number_of(form, "retention_days"),
        "upload_bytes": int(number_of(form, "upload") * GIGABYTE),
    }
    administration.change_preferences(console, actor.name, checked(Preferences, values))


@api.get("/settings", tags=["console"])
def show_settings(console: ThisConsole, actor: Admin) -> Preferences:
    """Show the settings of the console."""
    return console.database.read(read_preferences)


@api.patch("/settings", tags=["console"])
@_on_page("/quiet", "channels")
def change_settings(console: ThisConsole, actor: Admin, changes: Preferences) -> Preferences:
    """Change settings; what is not named stays as it is."""
    return administration.change_preferences(console, actor.name, changes)


@api.get("/audit", response_model=list[AuditRecord], tags=["console"])
def list_audit(
    console: ThisConsole,
    actor: Admin,
    before: Annotated[int | None, Query(ge=1, le=MOST_ROWS)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    """List who did what, the newest first."""
    return console.database.read(queries.audit, before=before, limit=limit)


@api.get("/disk", tags=["console"])
def show_disk(console: ThisConsole, actor: Viewer) -> DiskUse:
    """Show the bytes on disk, by what they are."""
    return console.database.read(queries.disk_use, console.settings)


@api.delete("/notices", status_code=204, tags=["console"])
@_on_page("/notices/dismiss", "notices", "dismissed")
def dismiss_notices(console: ThisConsole, actor: Admin) -> None:
    """Dismiss all notices; what goes on is posted again."""
    console.bulletin.dismiss()


@api.get("/notices", tags=["console"])
def list_notices(console: ThisConsole, actor: Viewer) -> list[PostedNotice]:
    """List what a person should know, the newest first."""
    return console.bulletin.notices()


BINARY = {"application/octet-stream": {"schema": {"format": "binary"}}}


@api.post(
    "/uploads",
    status_code=201,
    tags=["cameras"],
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
)
async def add_upload(request: Request, console: ThisConsole, actor: Admin) -> UploadedFile:
    """Upload a video, as the body; it becomes a camera by `POST /api/cameras`."""
    length = request.headers.get("Content-Length", "")
    n_bytes = int(length) if length.isdecimal() else None
    return await uploads.receive(console, request.stream(), n_bytes)
