"""What is to be sent elsewhere: written with what it is about, sent in order, at least once.

`enqueue` writes one row for each channel, in the transaction of what it is about. A row waits
until it is sent, goes into a digest (held, then in digest), or is given up. `take_next` says what
a channel sends next; `delivery` sends it.
"""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from datetime import time as time_of_day
from typing import Any, Literal

from sqlalchemy import ScalarResult, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from habitus.errors import InvalidInputError
from habitus.web.answers import EventSummary, TimelineSpan
from habitus.web.database import (
    CameraRow,
    Channel,
    EventRow,
    OutboxEntry,
    Setting,
    TroubleRow,
)

Kind = Literal["started", "ended", "trouble", "recovered"]

EVIDENCE = frozenset(("words", "surprisals", "moment", "track", "standing", "ages"))
"""Fields of an event by which it is judged again; they are long, and messages lack them."""
HOUR = 3600.0
N_MOST_UNUSUAL = 5
"""Events that a digest describes."""
FOLLOWS = {"ended": "started", "recovered": "trouble"}
"""What is the end of what: it is not counted, and sent as its beginning was."""
KINDS = ("started", "ended", "trouble", "recovered")
FOR_PEOPLE = frozenset(("started", "trouble", "recovered"))
"""What people are sent; programs also want to know when an event is over."""
FOR_PROGRAMS = frozenset(("webhook", "mqtt"))
"""Kinds of channels that programs listen to."""


def enqueue(
    session: Session, kind: Kind, about: EventRow | TroubleRow, *, now: float | None = None
) -> int:
    """Write that a row is to be sent, for each enabled channel that wants it; return how many.

    The row is in the session, flushed; the transaction is the caller's. Doing it again changes
    nothing: the same kind of the same event, or trouble, is sent once by each channel.
    """
    camera = session.get(CameraRow, about.camera_id)
    channels = [
        channel
        for channel in session.scalars(select(Channel).where(Channel.enabled))
        if (kind in FOR_PEOPLE or channel.kind in FOR_PROGRAMS)
        and about.camera_id in (channel.cameras or [about.camera_id])
    ]
    if camera is None or not channels:
        return 0
    now = time.time() if now is None else now
    if kind == "started" and (snoozed_until(session, camera.id) or 0) > now:
        channels = [channel for channel in channels if channel.kind in FOR_PROGRAMS]
    body = {
        "camera": {"id": camera.id, "name": camera.name},
        ("event" if isinstance(about, EventRow) else "trouble"): described(about),
    }
    rows = [
        {
            "channel_id": channel.id,
            "subject": f"{_subject(about)}/{kind}",
            "kind": kind,
            "body": body,
            "created": now,
            "outcome": "held" if is_quiet(channel, now) else "waiting",
        }
        for channel in channels
    ]
    return sum(_insert_new(session, row) for row in rows)


def snooze(session: Session, camera: str, until: float | None) -> None:
    """Have people be sent nothing of a camera's events for a while, or again."""
    session.merge(Setting(key=f"snooze/{camera}", value={"until": until}))


def snoozed_until(session: Session, camera: str) -> float | None:
    """Return the moment until which people are sent nothing of a camera's events, if any."""
    setting = session.get(Setting, f"snooze/{camera}")
    return None if setting is None else setting.value["until"]


def _insert_new(session: Session, row: dict[str, Any]) -> int:
    """Insert a row unless the channel has one of the same subject; return how many were."""
    postgres = session.get_bind().dialect.name == "postgresql"
    statement = postgresql.insert(OutboxEntry) if postgres else sqlite.insert(OutboxEntry)
    new = statement.values(row).on_conflict_do_nothing(index_elements=["channel_id", "subject"])
    return len(session.execute(new.returning(OutboxEntry.id)).all())


def _subject(about: EventRow | TroubleRow) -> str:
    return about.id if isinstance(about, EventRow) else f"{about.camera_id}-{about.start:.0f}"


def described(about: EventRow | TroubleRow) -> dict[str, Any]:
    """Return an event or a trouble as the API answers it, as plain values."""
    if isinstance(about, TroubleRow):
        return {"id": _subject(about), **TimelineSpan.model_validate(about).model_dump()}
    details = {name: value for name, value in about.details.items() if name not in EVIDENCE}
    return {**EventSummary.model_validate(about).model_dump(), "details": details}


def check_quiet_hours(quiet_from: str | None, quiet_until: str | None) -> None:
    """Raise unless quiet hours have a start and another time as their end, or there are none."""
    if (quiet_from is None) != (quiet_until is None) or (quiet_from and quiet_from == quiet_until):
        raise InvalidInputError(
            "quiet hours have a start and another time as their end", parameter="quiet_until"
        )


def is_quiet(channel: Channel, now: float) -> bool:
    """Return whether a channel has its quiet hours, by this machine's local time.

    They are spans of real time: when clocks are set back they do not come twice in a night.
    """
    if not channel.quiet_from or not channel.quiet_until:
        return False
    start, end = map(time_of_day.fromisoformat, (channel.quiet_from, channel.quiet_until))
    today = datetime.fromtimestamp(now).date()
    for day in (today - timedelta(days=1), today):
        begins = datetime.combine(day, start).timestamp()
        ends = datetime.combine(day + timedelta(days=end <= start), end).timestamp()
        if begins <= now < ends:
            return True
    return False


def take_next(session: Session, channel: Channel, now: float) -> OutboxEntry | None:
    """Return what a channel is to send now, if anything; write digests, and hold what is for one.

    The transaction is the caller's. Rows are taken in the order of their ids. Now may be earlier
    than before: nothing waits for a moment.
    """
    quiet, full = is_quiet(channel, now), _is_full(session, channel, now)
    if not quiet and not full:
        _write_digest(session, channel, now)
    while (entry := _with_outcome(session, channel, "waiting", 1).first()) is not None:
        outcome = _outcome(session, entry, quiet=quiet, full=full)
        if outcome == "waiting":
            return None if quiet else entry
        entry.outcome, entry.sent = outcome, now if outcome == "in digest" else None
        session.flush()
    return None


def _with_outcome(
    session: Session, channel: Channel, outcome: str, most: int | None = None
) -> ScalarResult[OutboxEntry]:
    own = (OutboxEntry.channel_id == channel.id, OutboxEntry.outcome == outcome)
    return session.scalars(select(OutboxEntry).where(*own).order_by(OutboxEntry.id).limit(most))


def _is_full(session: Session, channel: Channel, now: float) -> bool:
    """Return whether the channel sent as much within the last hour as it may."""
    if channel.most_per_hour is None:
        return False
    sent = select(func.count()).where(
        OutboxEntry.channel_id == channel.id,
        OutboxEntry.outcome == "sent",
        OutboxEntry.kind.not_in(FOLLOWS),
        OutboxEntry.sent > now - HOUR,
        OutboxEntry.sent <= now,  # not what was sent before the clock was set back
    )
    return (session.scalar(sent) or 0) >= channel.most_per_hour


def _outcome(session: Session, entry: OutboxEntry, *, quiet: bool, full: bool) -> str:
    """Return what becomes of an entry: waiting to be sent, held, or in digest."""
    if entry.kind == "digest":
        return "waiting"
    if entry.kind in FOLLOWS:
        beginning = f"{entry.subject.rpartition('/')[0]}/{FOLLOWS[entry.kind]}"
        became = session.scalar(
            select(OutboxEntry.outcome).where(
                OutboxEntry.channel_id == entry.channel_id, OutboxEntry.subject == beginning
            )
        )
        if became in ("held", "in digest"):
            return str(became)
        full = False
    return "held" if quiet or full else "waiting"


def _write_digest(session: Session, channel: Channel, now: float) -> None:
    """Put everything that is held into one message."""
    held = _with_outcome(session, channel, "held").all()
    if not held:
        return
    session.add(
        OutboxEntry(
            channel_id=channel.id,
            subject=f"digest-{held[0].id}-{held[-1].id}/digest",
            kind="digest",
            body={"digest": digest_of(held, now)},
            created=now,
        )
    )
    for entry in held:
        entry.outcome, entry.sent = "in digest", now
    session.flush()


def digest_of(entries: Sequence[OutboxEntry], now: float) -> dict[str, Any]:
    """Return what is sent in place of many messages: numbers, cameras, the most unusual."""
    cameras: dict[str, dict[str, Any]] = {}
    events: dict[str, dict[str, Any]] = {}
    for entry in entries:
        camera = entry.body["camera"]
        counts = cameras.setdefault(camera["id"], {**camera, **dict.fromkeys(KINDS, 0)})
        counts[entry.kind] += 1
        if "event" in entry.body:  # at its end, more is known of it
            events[entry.body["event"]["id"]] = entry.body
    total = {kind: sum(camera[kind] for camera in cameras.values()) for kind in KINDS}
    return {
        "since": min(entry.created for entry in entries),
        "until": now,
        **total,
        "cameras": sorted(cameras.values(), key=lambda camera: -camera["started"]),
        "most_unusual": sorted(events.values(), key=_usualness)[:N_MOST_UNUSUAL],
    }


def _usualness(body: dict[str, Any]) -> tuple[float, float]:
    event = body["event"]
    probability = event["probability"]
    margin = event["normality"] - event["threshold"]
    return (1.0 if probability is None else probability, margin)
