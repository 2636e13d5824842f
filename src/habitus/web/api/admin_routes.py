"""Users, tokens, channels, settings, uploads, and who did what."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from sqlalchemy import select

from habitus.web import administration, queries, uploads
from habitus.web.answers import (
    MOST_ROWS,
    AuditRecord,
    ChannelChanges,
    ChannelDetails,
    DiskUse,
    NewChannel,
    NewToken,
    NewTokenRequest,
    NewUser,
    Number,
    PasswordChange,
    PostedNotice,
    PreferenceChanges,
    SessionDetails,
    TokenDetails,
    UploadedFile,
    UserChanges,
    UserDetails,
)
from habitus.web.database import Channel, Token, User
from habitus.web.http_errors import NotAllowedError
from habitus.web.preferences import Preferences
from habitus.web.security import Admin, Viewer, console_of, try_password
from habitus.web.server import Console

router = APIRouter(prefix="/api")


@router.get("/session", tags=["users"])
def show_session(request: Request, actor: Viewer) -> SessionDetails:
    """Show who asks, and what pages send along with changes."""
    return SessionDetails(name=actor.name, role=actor.role, csrf=actor.csrf)


@router.post("/password", status_code=204, tags=["users"])
def change_own_password(request: Request, actor: Viewer, change: PasswordChange) -> None:
    """Change one's own password; all one's logins end."""
    console = console_of(request)
    with console.database.session() as session:
        user = session.get(User, actor.user_id) if actor.user_id is not None else None
    if user is None or not try_password(request, user.name, change.old, user):
        raise NotAllowedError("the old password does not fit")
    administration.change_user(console, user.name, user.id, password=change.new)


@router.get("/users", response_model=list[UserDetails], tags=["users"])
def list_users(request: Request, actor: Admin) -> Any:
    """List who may log in."""
    with console_of(request).database.session() as session:
        return list(session.scalars(select(User).order_by(User.name)))


@router.post("/users", response_model=UserDetails, status_code=201, tags=["users"])
def add_user(request: Request, actor: Admin, user: NewUser) -> Any:
    """Add somebody who may log in; the first one must be an admin."""
    console = console_of(request)
    return administration.add_user(console, actor.name, user.name, user.password, user.role)


@router.patch("/users/{user}", response_model=UserDetails, tags=["users"])
def change_user(request: Request, actor: Admin, user: Number, changes: UserChanges) -> Any:
    """Change what somebody may do, or their password."""
    values = changes.model_dump(exclude_unset=True)
    return administration.change_user(console_of(request), actor.name, user, **values)


@router.delete("/users/{user}", status_code=204, tags=["users"])
def remove_user(request: Request, actor: Admin, user: Number) -> None:
    """Remove a user, and end their logins."""
    administration.remove_user(console_of(request), actor.name, user)


@router.get("/tokens", response_model=list[TokenDetails], tags=["users"])
def list_tokens(request: Request, actor: Admin) -> Any:
    """List the tokens of the API."""
    with console_of(request).database.session() as session:
        return list(session.scalars(select(Token).order_by(Token.id)))


@router.post("/tokens", status_code=201, tags=["users"])
def add_token(request: Request, actor: Admin, token: NewTokenRequest) -> NewToken:
    """Make a token of the API; it is shown once."""
    return administration.add_token(console_of(request), actor.name, token.name, token.role)


@router.delete("/tokens/{token}", status_code=204, tags=["users"])
def remove_token(request: Request, actor: Admin, token: Number) -> None:
    """Withdraw a token."""
    administration.remove_token(console_of(request), actor.name, token)


@router.get("/channels", tags=["channels"])
def list_channels(request: Request, actor: Admin) -> list[ChannelDetails]:
    """List where events are told."""
    with console_of(request).database.session() as session:
        waiting = queries.outbox_waiting(session)
        channels = session.scalars(select(Channel).order_by(Channel.id)).all()
    found = map(ChannelDetails.model_validate, channels)
    return [each.model_copy(update={"waiting": waiting.get(each.id, 0)}) for each in found]


@router.post("/channels", response_model=ChannelDetails, status_code=201, tags=["channels"])
def add_channel(request: Request, actor: Admin, channel: NewChannel) -> Any:
    """Add a place where events are told."""
    values = _named(channel.model_dump(exclude_unset=True))
    return administration.add_channel(console_of(request), actor.name, **values)


@router.patch("/channels/{channel}", response_model=ChannelDetails, tags=["channels"])
def change_channel(request: Request, actor: Admin, channel: Number, changes: ChannelChanges) -> Any:
    """Change a channel; what is not named stays as it is."""
    values = _named(changes.model_dump(exclude_unset=True))
    return administration.change_channel(console_of(request), actor.name, channel, **values)


@router.delete("/channels/{channel}", status_code=204, tags=["channels"])
def remove_channel(request: Request, actor: Admin, channel: Number) -> None:
    """Remove a channel, with what waits to be told there."""
    administration.remove_channel(console_of(request), actor.name, channel)


@router.post("/channels/{channel}/test", status_code=204, tags=["channels"])
def try_channel(request: Request, actor: Admin, channel: Number) -> None:
    """Tell a test message now."""
    administration.try_channel(console_of(request), actor.name, channel)


@router.get("/audit", response_model=list[AuditRecord], tags=["console"])
def list_audit(
    request: Request,
    actor: Admin,
    before: Annotated[int | None, Query(ge=1, le=MOST_ROWS)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    """List who did what, the newest first."""
    with console_of(request).database.session() as session:
        return queries.audit(session, before=before, limit=limit)


@router.get("/settings", tags=["console"])
def show_settings(request: Request, actor: Admin) -> Preferences:
    """Show the settings of the console."""
    return administration.preferences(console_of(request))


@router.patch("/settings", tags=["console"])
def change_settings(request: Request, actor: Admin, changes: PreferenceChanges) -> Preferences:
    """Change settings; what is not named stays as it is."""
    values = changes.model_dump(exclude_unset=True)
    kept = {
        name: value
        for name, value in values.items()
        if value is not None or name.startswith("quiet")
    }
    return administration.change_preferences(console_of(request), actor.name, **kept)


@router.get("/disk", tags=["console"])
def show_disk(request: Request, actor: Viewer) -> DiskUse:
    """Show the bytes on disk, by what they are."""
    console = console_of(request)
    with console.database.session() as session:
        return queries.disk_use(session, console.settings)


@router.get("/notices", tags=["console"])
def list_notices(request: Request, actor: Viewer) -> list[PostedNotice]:
    """List what a person should know, the newest first."""
    return console_of(request).bulletin.notices()


@router.post(
    "/uploads",
    status_code=201,
    tags=["cameras"],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"format": "binary"}}},
        }
    },
)
async def add_upload(request: Request, actor: Admin) -> UploadedFile:
    """Upload a video, as the body; it becomes a camera by `POST /api/cameras`."""
    console: Console = console_of(request)
    length = request.headers.get("Content-Length", "")
    return await uploads.receive(
        console, request.stream(), int(length) if length.isdecimal() else None
    )


def _named(values: dict[str, Any]) -> dict[str, Any]:
    """Return what was named; null takes limits away, and leaves all else as it is."""
    limits = ("quiet_from", "quiet_until", "most_per_hour")
    return {name: value for name, value in values.items() if value is not None or name in limits}
