"""What people say of events: normal, which teaches the camera, or unusual.

A camera judges by its model as it was learnt and the list of events that were called normal since;
taking one back is the same list without it, so that nothing is left of it.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import exists, func, select, update
from sqlalchemy.orm import Session, aliased

from habitus.errors import HabitusError, InvalidInputError
from habitus.jobs.fork_server import ForkServer
from habitus.site.relearning import silenced_by
from habitus.web import queries
from habitus.web.answers import EventSummary, ReviewOutcome
from habitus.web.database import CameraRow, EventRow
from habitus.web.store import write_audit

if TYPE_CHECKING:
    from habitus.web.server import Console

RECENT_DAYS = 7
"""Days of alarms that are judged again when one is called normal."""
MOST_RECENT = 200
"""Of them, as many as are judged again at most: the newest."""


def review(console: "Console", event_id: str, verdict: str | None, actor: str) -> ReviewOutcome:
    """Write what a person says of an event, or take it back, and teach the camera.

    "normal": the camera's model counts it, from the next document on, and alarms that it would have
    silenced are looked for. "unusual": it is never learnt from. None: everything is as if it had
    never been said. InvalidInputError if there is no such event, or no such verdict.
    """
    with console.database.session() as session:
        event = session.get(EventRow, event_id)
    if event is None:
        raise InvalidInputError(f"there is no event {event_id[:40]!r}", parameter="event")
    review_all(console, [event_id], verdict, actor)
    silenced, note = [], ""
    if verdict == "normal" and console.supervisor is not None:
        try:
            silenced = _silenced(console, console.supervisor.fork_server, event_id, event.camera_id)
        except HabitusError as error:
            note = str(error)
        one = aliased(EventRow)  # it may have been taken back meanwhile
        is_normal = exists().where(one.id == event_id, one.review == "normal")
        with console.database.transaction() as session:
            ids = [row.id for row in silenced]
            quiet = update(EventRow).where(EventRow.id.in_(ids), EventRow.silenced_by.is_(None))
            session.execute(quiet.where(is_normal).values(silenced_by=event_id))
    return ReviewOutcome(
        event_id=event_id,
        camera_id=event.camera_id,
        verdict=verdict,
        silenced=[EventSummary.model_validate(row) for row in silenced],
        note=note,
    )


def accept_silenced(console: "Console", event_id: str, actor: str) -> int:
    """Call all events normal that one silences; return how many there were."""
    with console.database.session() as session:
        ids = session.scalars(select(EventRow.id).where(EventRow.silenced_by == event_id)).all()
    return review_all(console, ids, "normal", actor)


def review_all(console: "Console", ids: Sequence[str], verdict: str | None, actor: str) -> int:
    """Write the same of many events, or take it back if None; return how many it is news of.

    What else that silences is not looked for.
    """
    if verdict not in ("normal", "unusual", None):
        raise InvalidInputError(
            f"an event is normal or unusual, found {verdict[:40]!r}", parameter="verdict"
        )
    with console.database.transaction() as session:
        rows = session.scalars(select(EventRow).where(EventRow.id.in_(ids))).all()
        changed = [event for event in rows if event.review != verdict]
        before = [event.review for event in changed]
        for event in changed:
            event.review = verdict
            event.reviewed = None if verdict is None else time.time()
            event.reviewer = None if verdict is None else actor
        freed = update(EventRow).where(EventRow.silenced_by.in_([event.id for event in changed]))
        session.execute(freed.values(silenced_by=None))
        if len(changed) == 1:
            action = "review undone" if verdict is None else "event reviewed"
            said = {"verdict": verdict, "before": before[0]}
            write_audit(session, actor, action, changed[0].id, **said)
        elif changed:
            events = [event.id for event in changed][:MOST_RECENT]
            about = f"{len(changed)} events"
            write_audit(session, actor, "events reviewed", about, verdict=verdict, events=events)
    for event in changed:
        console.bulletin.publish(
            "review", camera=event.camera_id, event=event.id, verdict=verdict, actor=actor
        )
    if changed and console.supervisor is not None:
        console.supervisor.refresh()
    return len(changed)


def _silenced(
    console: "Console", fork_server: ForkServer, event_id: str, camera_id: str
) -> list[EventRow]:
    """Return the recent alarms that would not be raised now that an event is normal."""
    with console.database.session() as session:
        camera, event = session.get_one(CameraRow, camera_id), session.get_one(EventRow, event_id)
        if camera.model is None:
            raise HabitusError("the camera has no model yet")
        since = (event.reviewed or time.time()) - RECENT_DAYS * queries.DAY
        recent = session.execute(
            select(EventRow.id, EventRow.details)
            .where(
                EventRow.camera_id == camera_id,
                EventRow.alarm.is_(True),
                EventRow.start >= since,
                EventRow.review.is_(None),
                EventRow.silenced_by.is_(None),
            )
            .order_by(EventRow.start.desc())
            .limit(MOST_RECENT)
        ).all()
        others = accepted(session, camera_id, but=event_id)
        model = console.settings.camera_folder(camera_id) / camera.model
        details = event.details
    numbers = silenced_by(
        model, others, details, [row.details for row in recent], fork_server=fork_server
    )
    with console.database.session() as session:
        return queries.summaries(session, [recent[number].id for number in numbers])


def accepted(session: Session, camera_id: str, *, but: str | None = None) -> list[dict[str, Any]]:
    """Return the events of a camera that were called normal, but one, in the order of reviews."""
    return list(
        session.scalars(
            select(EventRow.details)
            .where(
                EventRow.camera_id == camera_id,
                EventRow.review == "normal",
                EventRow.id != (but or ""),
            )
            .order_by(EventRow.reviewed, EventRow.id)
        )
    )


def accepted_states(session: Session) -> dict[str, tuple[object, ...]]:
    """Return, by camera, what differs whenever other events are called normal than before."""
    rows = session.execute(
        select(
            EventRow.camera_id,
            func.count(),
            func.max(EventRow.reviewed),
            func.sum(EventRow.reviewed),
        )
        .where(EventRow.review == "normal")
        .group_by(EventRow.camera_id)
    )
    return {camera_id: tuple(state) for camera_id, *state in rows}


def never_learnt(session: Session, camera_id: str) -> list[tuple[float, float]]:
    """Return start and end of the events that were called unusual: they are not learnt from."""
    rows = session.execute(
        select(EventRow.start, EventRow.end, EventRow.peak)
        .where(EventRow.camera_id == camera_id, EventRow.review == "unusual")
        .order_by(EventRow.start)
    )
    return [(start, max(end or peak, peak)) for start, end, peak in rows]
