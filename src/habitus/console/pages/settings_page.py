"""Settings: channels, people, tokens, disk, notices and the audit log."""

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from habitus.console import administration, queries
from habitus.console.app import console_of
from habitus.console.channels import DeliveryError
from habitus.console.database import Channel, OutboxEntry, Token, User
from habitus.console.pages.rendering import go, page
from habitus.console.preferences import GIGABYTE
from habitus.console.refusals import RefusedError
from habitus.console.security import Actor, Admin
from habitus.errors import HabitusError, InvalidInputError

router = APIRouter(prefix="/settings")
N_AUDIT = 50
FIELDS = {
    "webhook": ("url", "secret"),
    "mqtt": ("host", "port", "username", "password", "topic", "tls"),
    "apprise": ("url",),
}
"""Settings of each kind of channel, as the forms have them."""


class ToldState(NamedTuple):
    """What a channel has told, and what waits."""

    waiting: int
    last: float | None
    error: str
    """Why the first one that waits could not be told yet."""


class NewSecret(NamedTuple):
    """A token that was just made."""

    name: str
    secret: str


class DiskShare(NamedTuple):
    """A part of the disk that is used, and where it is drawn."""

    name: str
    size: int
    x: float
    width: float


@router.get("")
def settings(request: Request, actor: Admin, before: int | None = None) -> HTMLResponse:
    """Show all settings."""
    return _page(request, actor, before=before)


def _page(
    request: Request,
    actor: Actor,
    *,
    before: int | None = None,
    problem: HabitusError | None = None,
    token: NewSecret | None = None,
) -> HTMLResponse:
    console = console_of(request)
    with console.database.session() as session:
        preferences = administration.read_preferences(session)
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
        status = problem.status if isinstance(problem, RefusedError) else 422
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


def _told(session: Session) -> dict[int, ToldState]:
    waiting = case((OutboxEntry.sent.is_(None) & (OutboxEntry.outcome == "waiting"), 1), else_=0)
    rows = session.execute(
        select(OutboxEntry.channel_id, func.sum(waiting), func.max(OutboxEntry.sent)).group_by(
            OutboxEntry.channel_id
        )
    ).all()
    return {
        channel: ToldState(int(n), last, _error(session, channel) if n else "")
        for channel, n, last in rows
    }


def _error(session: Session, channel: int) -> str:
    found = select(OutboxEntry.error).where(
        OutboxEntry.channel_id == channel, OutboxEntry.sent.is_(None), OutboxEntry.error != ""
    )
    return session.scalar(found.order_by(OutboxEntry.id).limit(1)) or ""


def _shares(disk: queries.DiskUse, quota: int) -> list[DiskShare]:
    """Return the parts of the disk in per cent of the quota, or of what is used if that is more."""
    whole = max(quota, disk.total, 1)
    shares, x = [], 0.0
    for name, size in disk._asdict().items():
        if size:
            width = round(100 * size / whole, 3)
            shares.append(DiskShare(name, size, round(x, 3), width))
            x += width
    return shares


@router.post("/channels")
async def add_channel(request: Request, actor: Admin) -> Response:
    """Add a channel."""
    form = await _form(request)
    return await _attempt(
        request,
        actor,
        lambda: administration.add_channel(
            console_of(request),
            actor.name,
            kind=form.get("kind", ""),
            settings=_settings(form, form.get("kind", "")),
            **_limits(form),
        ),
        "changed",
    )
