"""The one place that writes what cameras report: events, states, minutes and learnings.

Each function takes a session, and its caller commits: what others are notified of is put into the
outbox in the same transaction as what it is about. Doing anything twice changes nothing.
"""

import time
from collections import Counter
from datetime import datetime

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

import habitus
from habitus.site.journal import SiteEvent
from habitus.site.pipe_messages import CameraState, JudgedDocument, PictureSize, StateChanged
from habitus.site.relearning import LearningFailure, LearntModel, signature
from habitus.web.database import (
    UNDATED,
    AuditEntry,
    CameraRow,
    EventRow,
    LearningRow,
    Minute,
    TroubleRow,
)
from habitus.web.outbox import enqueue

TROUBLES = frozenset(
    (
        CameraState.LOST,
        CameraState.FROZEN,
        CameraState.COVERED,
        CameraState.MOVED,
        CameraState.SLOW,
        CameraState.REFUSED,
        CameraState.OFF,
    )
)
"""States in which nothing can be judged."""
NOTIFIED_AFTER = 60.0
"""Seconds that a trouble lasts before anybody is notified."""
SECONDS = 60
"""Seconds of a minute, each with a normality and a behaviour."""
MOST_REMEMBERED = 20
"""Alarms of each budget of a camera that a new process of it knows."""


def ingest(session: Session, camera_id: str, event: SiteEvent) -> bool:
    """Write what a camera's journal says of an event; return whether that is news.

    It is said at the start, at the end, and once the clip is cut; in any repetition.
    """
    row = session.get(EventRow, event.id)
    if row is None:
        camera = session.get(CameraRow, camera_id)
        if event.details is None or camera is None:
            return False  # the clip of an event, or a camera, that was deleted meanwhile
        row = EventRow(id=event.id, camera_id=camera_id, clip_bytes=0, note="")
        _describe(row, event, event.details)
        row.offset = row.details.get("start") if camera.kind == "recording" else None
        if not camera.dated:
            row.hour = UNDATED
        session.add(row)
        changed = True
    elif event.kind == "started" and (row.end is not None or row.alarm or not event.alarm):
        return False
    else:
        if event.details is None:
            _add_clip(row, event)
        else:
            _describe(row, event, event.details)
        changed = session.is_modified(row)
    if row.signature is None or event.kind == "ended":
        _sign(session, row)
    session.flush()
    if row.alarm and event.kind != "clip":
        enqueue(session, "started", row)
        if row.end is not None:
            enqueue(session, "ended", row)
    return changed


def _describe(row: EventRow, event: SiteEvent, details: habitus.Event) -> None:
    """Set everything that is said of an event at its start or end."""
    row.describe(details)
    row.start, row.at_half = event.start, event.at_half
    row.peak, row.end = max(event.start, event.peak), _end(event)
    if row.hour != UNDATED:
        row.hour = datetime.fromtimestamp(row.start).hour
    row.thumbnail, row.heat = event.thumbnail or row.thumbnail, event.heat or row.heat
    row.n_bytes = event.n_bytes + row.clip_bytes


def _end(event: SiteEvent) -> float | None:
    """Return when an event ended: never before its start, though the clock may be set back."""
    return None if event.end is None else max(event.start, event.end)


def _sign(session: Session, event: EventRow) -> None:
    """Set what similar events are found by, where the size of the picture is known."""
    camera = session.get(CameraRow, event.camera_id)
    if camera is not None and camera.width and camera.height:
        event.signature = signature(event.details, camera.width, camera.height)


def _add_clip(row: EventRow, event: SiteEvent) -> None:
    row.n_bytes += event.n_bytes - row.clip_bytes
    row.clip_bytes, row.clip, row.clip_start = event.n_bytes, event.clip, event.clip_start
    if row.end is None:
        row.end = _end(event)


def close_events(session: Session, camera_id: str) -> list[str]:
    """End the events that a camera's process left open when it died, at their last known time.

    To be called when the journal is empty and the process is not there. Their ids are returned.
    """
    open_events = session.scalars(
        select(EventRow).where(EventRow.camera_id == camera_id, EventRow.end.is_(None))
    ).all()
    for event in open_events:
        lasted = event.details.get("end", 0.0) - event.details.get("start", 0.0)
        event.end = max(event.start + lasted, event.peak)
        session.flush()
        if event.alarm:
            enqueue(session, "ended", event)
    return [event.id for event in open_events]


def set_size(session: Session, camera_id: str, size: PictureSize) -> bool:
    """Write the size of a camera's picture; return whether it is another one than before."""
    camera = session.get(CameraRow, camera_id)
    if camera is None or (camera.width, camera.height) == (size.width, size.height):
        return False
    camera.width, camera.height = size.width, size.height
    return True


def forget_states(session: Session, now: float) -> None:
    """Have the cameras that are to be watched wait for their first report; troubles go on."""
    session.execute(
        update(CameraRow)
        .where(CameraRow.enabled.is_(True))
        .where(CameraRow.state.not_in((CameraState.CONNECTING, CameraState.ENDED)))
        .values(state=CameraState.CONNECTING.value, since=now, reason="")
    )


def set_state(session: Session, camera_id: str, change: StateChanged) -> bool:
    """Write what a camera does now, and open or close its trouble; return whether that is news.

    A trouble goes on while the camera is being connected again. One that follows another at once
    is sent at once if the other was.
    """
    camera = session.get(CameraRow, camera_id)
    if camera is None:
        return False
    changed = (camera.state, camera.reason) != (change.state.value, change.reason)
    if camera.state != change.state.value:
        camera.since = change.since
    camera.state, camera.reason = change.state.value, change.reason
    if change.state is not CameraState.CONNECTING:
        _follow_trouble(session, camera, change)
    session.flush()
    return changed


def _follow_trouble(session: Session, camera: CameraRow, change: StateChanged) -> None:
    """Close the trouble that is over, and open the one that begins."""
    trouble = open_trouble(session, camera.id)
    if trouble is not None and trouble.kind == change.state.value:
        trouble.reason = change.reason or trouble.reason
        return
    notified = None if trouble is None else trouble.told
    if trouble is not None:
        trouble.end = max(trouble.start, change.since)
        if notified is not None and change.state not in TROUBLES:
            enqueue(session, "recovered", trouble)
    if change.state in TROUBLES:
        begun = TroubleRow(
            camera_id=camera.id,
            kind=change.state.value,
            start=change.since,
            reason=change.reason,
        )
        session.add(begun)
        if notified is not None and change.state is not CameraState.OFF:
            _notify(session, begun, change.since)


def open_trouble(session: Session, camera_id: str) -> TroubleRow | None:
    """Return the trouble that a camera is in, if any."""
    return session.scalars(
        select(TroubleRow)
        .where(TroubleRow.camera_id == camera_id, TroubleRow.end.is_(None))
        .order_by(TroubleRow.id.desc())
        .limit(1)
    ).first()


def notify_troubles(session: Session, now: float) -> int:
    """Put the troubles that last for more than a minute into the outbox; return how many."""
    lasting = session.scalars(
        select(TroubleRow).where(
            TroubleRow.end.is_(None),
            TroubleRow.told.is_(None),
            TroubleRow.kind != CameraState.OFF.value,
            # A clock that was set back since makes nobody wait.
            or_(TroubleRow.start <= now - NOTIFIED_AFTER, TroubleRow.start > now + NOTIFIED_AFTER),
        )
    ).all()
    for trouble in lasting:
        _notify(session, trouble, now)
    return len(lasting)


def _notify(session: Session, trouble: TroubleRow, now: float) -> None:
    trouble.told = now
    session.flush()
    enqueue(session, "trouble", trouble)


def begin_learning(session: Session, camera_id: str, occasion: str, now: float) -> int:
    """Write that a model is being learnt; return the number of the learning."""
    learning = LearningRow(camera_id=camera_id, occasion=occasion, started=now)
    session.add(learning)
    session.flush()
    return learning.id


def end_learning(
    session: Session, number: int, result: LearntModel | LearningFailure, now: float
) -> LearningRow | None:
    """Write what became of a learning, and return it; the camera has a new model from now on."""
    learning = session.get(LearningRow, number)
    if learning is None:  # of a camera that was removed
        return None
    learning.ended = max(now, learning.started)
    if isinstance(result, LearningFailure):
        learning.summary = result.reason
        return learning
    learning.model, learning.n_documents = result.model, result.n_documents
    learning.summary, learning.notes = result.summary, list(result.notes)
    learning.since, learning.until = result.since, result.until
    learning.names = dict(result.names)
    camera = session.get(CameraRow, learning.camera_id)
    if camera is not None:
        camera.model = result.model
    return learning


def latest_learning(session: Session, camera: CameraRow) -> LearningRow | None:
    """Return how the model of a camera was learnt, if it has one."""
    return session.scalars(
        select(LearningRow)
        .where(LearningRow.camera_id == camera.id, LearningRow.model == camera.model)
        .order_by(LearningRow.id.desc())
        .limit(1)
    ).first()


def behaviour_names(session: Session, camera: CameraRow) -> dict[int, str]:
    """Return what people call the behaviours of a camera's model, by number from 1."""
    learning = latest_learning(session, camera)
    return {int(number): name for number, name in learning.names.items()} if learning else {}


def latest_alarms(session: Session, camera: CameraRow) -> tuple[tuple[float, float, str], ...]:
    """Return time, normality and zone of the latest alarms of each budget of a camera.

    Those of a clock that ran ahead would keep others back until then.
    """
    zones = [zone["name"] for zone in camera.zones if zone.get("alerts_per_day") is not None]
    found: list[tuple[float, float, str]] = []
    for where in (EventRow.zone.not_in(zones), *(EventRow.zone == zone for zone in zones)):
        query = (
            select(EventRow.start, EventRow.normality, EventRow.zone)
            .where(EventRow.camera_id == camera.id, EventRow.alarm.is_(True), where)
            .where(EventRow.start <= time.time())
            .order_by(EventRow.start.desc())
            .limit(MOST_REMEMBERED)
        )
        found += [(start, lowest, zone) for start, lowest, zone in session.execute(query)]
    return tuple(found)


def forget_interrupted(session: Session) -> None:
    """Delete learnings that never ended, as the server did before them: they did not fail."""
    session.execute(delete(LearningRow).where(LearningRow.ended.is_(None)))


def write_audit(session: Session, actor: str, action: str, subject: str, **details: object) -> None:
    """Write who did what."""
    session.add(
        AuditEntry(time=time.time(), actor=actor, action=action, subject=subject, details=details)
    )


class PackedMinute:
    """Normality and behaviour of each second of a minute, as its `bytes()` or of nothing yet."""

    def __init__(self, packed: bytes = b"") -> None:
        self.normality: NDArray[np.float32] = np.full(SECONDS, np.nan, np.float32)
        """NaN if not judged."""
        self.behaviour: NDArray[np.uint8] = np.zeros(SECONDS, np.uint8)
        """Counted from 1; 0 if not known."""
        self.n_documents = self.n_judged = 0
        """Documents that were put, and those of them that were judged."""
        if packed:
            self.normality[:] = np.frombuffer(packed, "<f4", SECONDS)
            self.behaviour[:] = np.frombuffer(packed, np.uint8, SECONDS, offset=4 * SECONDS)

    def put(self, second: int, judged: JudgedDocument) -> None:
        """Take a document; of several in one second, the least usual counts."""
        self.n_documents += 1
        self.n_judged += judged.normality is not None
        if judged.behaviour:
            self.behaviour[second] = min(judged.behaviour, 255)
        if judged.normality is not None:
            self.normality[second] = np.fmin(self.normality[second], judged.normality)

    def merge(self, other: "PackedMinute") -> None:
        """Take all seconds of another one."""
        self.normality = np.fmin(self.normality, other.normality)
        self.behaviour = np.where(other.behaviour > 0, other.behaviour, self.behaviour)

    @property
    def lowest(self) -> float | None:
        """Lowest normality, if any second was judged."""
        judged = self.normality[~np.isnan(self.normality)]
        return float(judged.min()) if judged.size else None

    @property
    def usual_behaviour(self) -> int | None:
        """Most frequent behaviour, if any is known."""
        known = Counter(self.behaviour[self.behaviour > 0].tolist())
        return min(known, key=lambda behaviour: (-known[behaviour], behaviour)) if known else None

    def __bytes__(self) -> bytes:
        return self.normality.astype("<f4").tobytes() + self.behaviour.tobytes()


class MinuteBuffer:
    """Documents of the last seconds, which are written together.

    Examples
    --------
    >>> buffer = MinuteBuffer()
    >>> buffer.add("north", JudgedDocument(120.0, -3.5, -9.0, 2, (), 100.0))
    >>> len(buffer)
    1
    """

    def __init__(self) -> None:
        self._gathered: dict[tuple[str, int], PackedMinute] = {}

    def add(self, camera_id: str, judged: JudgedDocument) -> None:
        """Take one document of a camera."""
        minute, second = divmod(int(judged.time), SECONDS)
        self._gathered.setdefault((camera_id, minute), PackedMinute()).put(second, judged)

    def forget(self, camera_id: str) -> None:
        """Drop what is known of a camera that was removed."""
        self._gathered = {key: v for key, v in self._gathered.items() if key[0] != camera_id}

    def write(self, session: Session) -> None:
        """Merge everything into the table; `clear` it once that is committed."""
        known = frozenset(session.scalars(select(CameraRow.id)))
        for (camera_id, minute), gathered in self._gathered.items():
            if camera_id in known:
                _write_minute(session, camera_id, minute, gathered)

    def clear(self) -> None:
        """Forget what was written."""
        self._gathered.clear()

    def __len__(self) -> int:
        return len(self._gathered)


def _write_minute(session: Session, camera_id: str, minute: int, gathered: PackedMinute) -> None:
    row = session.get(Minute, (camera_id, minute))
    if row is None:
        row = Minute(camera_id=camera_id, minute=minute, n_documents=0, n_judged=0, seconds=b"")
        session.add(row)
    seconds = PackedMinute(row.seconds)
    seconds.merge(gathered)
    row.seconds, row.normality, row.behaviour = (
        bytes(seconds),
        seconds.lowest,
        seconds.usual_behaviour,
    )
    row.n_documents += gathered.n_documents
    row.n_judged += gathered.n_judged
