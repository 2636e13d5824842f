"""Everything that pages and the API read, as small functions of a session."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from habitus.console.database import (
    AuditEntry,
    Camera,
    Event,
    Learning,
    Minute,
    OutboxEntry,
    Trouble,
)
from habitus.console.settings import ServerSettings
from habitus.console.store import SECONDS, PackedMinute
from habitus.errors import InvalidInputError

DAY = 86_400.0
ENOUGH_REVIEWS = 20
"""Reviews that a precision is told from at least."""
Z_90 = 1.6448536269514722
"""Quantile of the normal distribution that 90 % intervals reach to."""
SIMILAR_AMONG = 2000
"""Newest events of a camera that similar ones are looked for among."""

Review = Literal["any", "none", "normal", "unusual"]


class CameraCard(NamedTuple):
    """A camera as the wall shows it."""

    id: str
    name: str
    kind: str
    shown_address: str
    enabled: bool
    state: str
    since: float
    reason: str
    width: int | None
    height: int | None
    model: str | None
    alerts_per_day: float
    alarms_today: int
    to_review: int
    """Alarms of today that nobody has reviewed."""


class EventCard(NamedTuple):
    """An event as a list shows it."""

    id: str
    camera_id: str
    camera: str
    """Name of the camera."""
    start: float
    end: float | None
    peak: float
    alarm: bool
    at_half: bool
    normality: float
    threshold: float
    probability: float | None
    rarity: str
    cue: str
    explanation: str
    behaviour: int
    thumbnail: str | None
    heat: str | None
    clip: str | None
    review: str | None
    reviewed: float | None
    reviewer: str | None


class EventPage(NamedTuple):
    """Part of a list of events, the newest first."""

    events: list[EventCard]
    next: str | None
    """`before` of the next part; None at the end."""


class EventFilter(NamedTuple):
    """Which events are listed."""

    cameras: Sequence[str] = ()
    """Ids; all cameras if empty."""
    since: float | None = None
    until: float | None = None
    cue: str | None = None
    """How the cue begins, such as "direction"."""
    review: Review = "any"
    alarms_only: bool = True


class EventPageEntry(NamedTuple):
    """One event, with what only its own page shows."""

    card: EventCard
    details: dict[str, Any]
    """`habitus.Event.to_json()`."""
    newer: str | None
    """Id of the next alarm, if there is one."""
    older: str | None


class SimilarEvent(NamedTuple):
    """A past event that is like another one."""

    card: EventCard
    similarity: float
    """Cosine, up to 1."""


class Mark(NamedTuple):
    """An event on a timeline."""

    id: str
    start: float
    end: float | None
    alarm: bool
    normality: float
    explanation: str
    review: str | None


class Span(NamedTuple):
    """A time in which nothing could be judged."""

    kind: str
    start: float
    end: float | None
    reason: str


class Timeline(NamedTuple):
    """How usual a camera's view was, in columns of the same length."""

    step: float
    """Seconds from one time to the next."""
    times: list[float]
    normality: list[float | None]
    """Lowest one of each step; None where nothing was judged."""
    behaviour: list[int | None]
    """Most frequent one of each step."""
    events: list[Mark]
    troubles: list[Span]


class Today(NamedTuple):
    """A camera's day so far, from midnight at the server."""

    since: float
    alarms: int
    to_review: int
    documents: int
    judged: int
    lowest: float | None


class BudgetFigures(NamedTuple):
    """What one alert budget brought, or would have brought."""

    alarms: int
    reviewed: int
    unusual: int
    """Reviewed ones that were called unusual."""

    @property
    def precision(self) -> float | None:
        """Share of the reviewed alarms that were unusual."""
        return self.unusual / self.reviewed if self.reviewed else None

    @property
    def interval(self) -> tuple[float, float]:
        """90 % interval of the precision, by Wilson's score."""
        return wilson(self.unusual, self.reviewed)


class Precision(NamedTuple):
    """Measured precision at today's budget, at half of it and at twice."""

    days: float
    reviews_needed: int
    """Reviews that are missing before the figures mean something; 0 if there are enough."""
    half: BudgetFigures
    now: BudgetFigures
    twice: BudgetFigures


class DiskUse(NamedTuple):
    """Bytes on disk, by what they are."""

    clips: int
    pictures: int
    documents: int
    recent: int
    """Packets of the last minutes."""
    models: int
    uploads: int
    database: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


def wall(session: Session, now: float | None = None) -> list[CameraCard]:
    """Return all cameras by name, with the alarms of today."""
    counts = {
        camera: (n, n_reviewed)
        for camera, n, n_reviewed in session.execute(
            select(Event.camera_id, func.count(), func.count(Event.review))
            .where(Event.alarm.is_(True), Event.start >= midnight(now))
            .group_by(Event.camera_id)
        )
    }
    cards = []
    for camera in session.scalars(select(Camera).order_by(func.lower(Camera.name), Camera.id)):
        n, n_reviewed = counts.get(camera.id, (0, 0))
        cards.append(_camera_card(camera, n, n - n_reviewed))
    return cards


def _camera_card(camera: Camera, alarms: int, to_review: int) -> CameraCard:
    fields = {
        name: getattr(camera, name)
        for name in CameraCard._fields
        if name not in ("alarms_today", "to_review")
    }
    return CameraCard(**fields, alarms_today=alarms, to_review=to_review)


def midnight(now: float | None = None) -> float:
    """Return when the day began at the server."""
    moment = datetime.fromtimestamp(time.time() if now is None else now)
    return moment.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


_CARD = (
    Event.id,
    Event.camera_id,
    Camera.name,
    Event.start,
    Event.end,
    Event.peak,
    Event.alarm,
    Event.at_half,
    Event.normality,
    Event.threshold,
    Event.probability,
    Event.rarity,
    Event.cue,
    Event.explanation,
    Event.behaviour,
    Event.thumbnail,
    Event.heat,
    Event.clip,
    Event.review,
    Event.reviewed,
    Event.reviewer,
)


def events(
    session: Session,
    wanted: EventFilter | None = None,
    *,
    before: str | None = None,
    limit: int = 60,
) -> EventPage:
    """Return events, the newest first.

    Parameters
    ----------
    session
        To read by.
    wanted
        Which events; all alarms by default.
    before
        `next` of the part before this one.
    limit
        Length of a part.

    Raises
    ------
    InvalidInputError
        If `before` is not what an earlier call gave.
    """
    chosen = select(Event.id, Event.start).where(*_conditions(wanted or EventFilter()))
    if before is not None:
        start, event_id = _cursor(before)
        chosen = chosen.where(Event.start <= start, (Event.start < start) | (Event.id < event_id))
    keys = session.execute(
        chosen.order_by(Event.start.desc(), Event.id.desc()).limit(limit + 1)
    ).all()
    more = len(keys) > limit
    shown = cards(session, [key.id for key in keys[:limit]])
    return EventPage(shown, f"{keys[limit - 1].start!r}:{keys[limit - 1].id}" if more else None)


def _conditions(wanted: EventFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.alarms_only:
        found.append(Event.alarm.is_(True))
    if len(wanted.cameras) == 1:
        found.append(Event.camera_id == wanted.cameras[0])
    elif wanted.cameras:
        found.append(Event.camera_id.in_(wanted.cameras))
    if wanted.since is not None:
        found.append(Event.start >= wanted.since)
    if wanted.until is not None:
        found.append(Event.start < wanted.until)
    if wanted.cue:
        found.append(Event.cue.startswith(wanted.cue, autoescape=True))
    if wanted.review == "none":
        found.append(Event.review.is_(None))
    elif wanted.review != "any":
        found.append(Event.review == wanted.review)
    return found


def _cursor(text: str) -> tuple[float, str]:
    start, _, event_id = text.partition(":")
    try:
        if not math.isfinite(time_of := float(start)) or not event_id:
            raise ValueError
    except ValueError:
        raise InvalidInputError(
            f"before={text[:40]!r} is no place in a list of events: use `next` of an earlier part",
            parameter="before",
        ) from None
    return time_of, event_id


def cards(session: Session, ids: Sequence[str]) -> list[EventCard]:
    """Return cards of events in the order of their ids."""
    rows = session.execute(
        select(*_CARD).join(Camera, Camera.id == Event.camera_id).where(Event.id.in_(ids))
    )
    by_id = {row.id: EventCard._make(row) for row in rows}
    return [by_id[event_id] for event_id in ids if event_id in by_id]


def count(session: Session, wanted: EventFilter | None = None) -> int:
    """Return the number of events of a filter."""
    found = select(func.count(Event.id)).where(*_conditions(wanted or EventFilter()))
    return session.scalar(found) or 0


def cues(session: Session) -> list[str]:
    """Return the cues that events have, such as "direction", by their first word."""
    found = session.scalars(select(Event.cue).where(Event.alarm.is_(True)).distinct())
    return sorted({cue.partition(",")[0] for cue in found if cue})


def event(session: Session, event_id: str) -> EventPageEntry | None:
    """Return one event with its details, or None."""
    shown = cards(session, [event_id])
    if not shown:
        return None
    card = shown[0]
    details = session.scalar(select(Event.details).where(Event.id == event_id)) or {}
    alarms = select(Event.id).where(Event.alarm.is_(True))
    older = alarms.where(
        Event.start <= card.start, (Event.start < card.start) | (Event.id < card.id)
    ).order_by(Event.start.desc(), Event.id.desc())
    newer = alarms.where(
        Event.start >= card.start, (Event.start > card.start) | (Event.id > card.id)
    ).order_by(Event.start, Event.id)
    return EventPageEntry(
        card, details, session.scalar(newer.limit(1)), session.scalar(older.limit(1))
    )


def similar(session: Session, event_id: str, limit: int = 6) -> list[SimilarEvent]:
    """Return the earlier events of the same camera that are most like one, the most similar first.

    Only the `SIMILAR_AMONG` before it are looked at.
    """
    chosen = session.get(Event, event_id)
    if chosen is None or chosen.signature is None:
        return []
    rows = session.execute(
        select(Event.id, Event.signature)
        .where(
            Event.camera_id == chosen.camera_id,
            Event.start <= chosen.start,
            Event.id != event_id,
        )
        .order_by(Event.start.desc())
        .limit(SIMILAR_AMONG)
    )
    same = len(chosen.signature)
    known = [
        (row.id, row.signature) for row in rows if row.signature and len(row.signature) == same
    ]
    if not known:
        return []
    signatures = np.frombuffer(b"".join(signature for _, signature in known), "<f4")
    likeness = signatures.reshape(len(known), -1) @ np.frombuffer(chosen.signature, "<f4")
    best = np.argsort(-likeness, kind="stable")[:limit]
    shown = cards(session, [known[i][0] for i in best])
    return [SimilarEvent(card, float(likeness[i])) for card, i in zip(shown, best, strict=True)]


def timeline(
    session: Session, camera: str, since: float, until: float, points: int = 1200
) -> Timeline:
    """Return how usual a camera's view was in a span.

    Short spans are drawn by seconds, long ones by minutes or groups of them.

    Parameters
    ----------
    session
        To read by.
    camera
        Its id.
    since, until
        The span.
    points
        Number of times, at most.

    Raises
    ------
    InvalidInputError
        If the span is empty, or without an end.
    """
    if not (math.isfinite(since) and math.isfinite(until) and since < until):
        raise InvalidInputError(
            f"expected a span of time, found {since:g} to {until:g}", parameter="until"
        )
    points = max(2, points)
    seconds = max(1, math.ceil((until - since) / points))
    if seconds < SECONDS:
        columns = _by_seconds(session, camera, since, until, seconds)
    else:
        columns = _by_minutes(session, camera, since, until, math.ceil(seconds / SECONDS))
    return Timeline(
        *columns, _marks(session, camera, since, until), troubles(session, camera, since, until)
    )


Columns = tuple[float, list[float], list[float | None], list[int | None]]


def _by_seconds(session: Session, camera: str, since: float, until: float, step: int) -> Columns:
    """Return columns of groups of seconds; a lone second without a document is none."""
    first = int(since // SECONDS)
    n_minutes = math.ceil(until / SECONDS) - first
    normality = np.full((n_minutes, SECONDS), np.nan, np.float32)
    behaviour = np.zeros((n_minutes, SECONDS), np.uint8)
    rows = session.execute(
        select(Minute.minute, Minute.seconds).where(
            Minute.camera_id == camera,
            Minute.minute >= first,
            Minute.minute < first + n_minutes,
        )
    )
    for minute, packed in rows:
        found = PackedMinute(packed)
        normality[minute - first], behaviour[minute - first] = found.normality, found.behaviour
    start = int(since // step * step)
    skipped = start - first * SECONDS
    if skipped < 0:
        start, skipped = start + step, skipped + step
    n_steps = max(
        1, min(math.ceil((until - start) / step), (n_minutes * SECONDS - skipped) // step)
    )
    chosen = slice(skipped, skipped + n_steps * step)
    lowest, usual = normality.ravel(), behaviour.ravel()
    lone = np.isnan(lowest[1:-1]) & ~np.isnan(lowest[:-2]) & ~np.isnan(lowest[2:])
    lowest[1:-1][lone] = lowest[:-2][lone]
    usual[1:-1][lone] = usual[:-2][lone]
    unknown = np.where(np.isnan(lowest), np.inf, lowest)[chosen]
    least = unknown.reshape(-1, step).min(axis=1).tolist()
    return (
        float(step),
        [float(start + step * i) for i in range(n_steps)],
        [round(value, 3) if math.isfinite(value) else None for value in least],
        [_most_frequent(group) for group in usual[chosen].reshape(-1, step).tolist()],
    )


def _most_frequent(behaviours: list[int]) -> int | None:
    known = Counter(behaviour for behaviour in behaviours if behaviour)
    return known.most_common(1)[0][0] if known else None


def _by_minutes(session: Session, camera: str, since: float, until: float, step: int) -> Columns:
    """Return columns of groups of minutes."""
    first, last = int(since / SECONDS // step), int(until / SECONDS // step)
    rows = session.execute(
        select(
            (Minute.minute - Minute.minute % step).label("start"),
            Minute.behaviour,
            func.min(Minute.normality),
            func.count(),
        )
        .where(
            Minute.camera_id == camera,
            Minute.minute >= first * step,
            Minute.minute < (last + 1) * step,
        )
        .group_by("start", Minute.behaviour)
    )
    lowest: dict[int, float] = {}
    usual: dict[int, dict[int, int]] = defaultdict(dict)
    for start, behaviour, least, n in rows:
        if least is not None:
            lowest[start] = min(least, lowest.get(start, math.inf))
        if behaviour:
            usual[start][behaviour] = n
    starts = [step * group for group in range(first, last + 1)]
    return (
        float(step * SECONDS),
        [float(start * SECONDS) for start in starts],
        [round(lowest[start], 3) if start in lowest else None for start in starts],
        [
            max(usual[start], key=usual[start].__getitem__) if start in usual else None
            for start in starts
        ],
    )


def _marks(session: Session, camera: str, since: float, until: float) -> list[Mark]:
    rows = session.execute(
        select(
            Event.id,
            Event.start,
            Event.end,
            Event.alarm,
            Event.normality,
            Event.explanation,
            Event.review,
        )
        .where(
            Event.camera_id == camera,
            Event.alarm.is_(True),
            Event.start >= since,
            Event.start < until,
        )
        .order_by(Event.start.desc())
        .limit(MOST_MARKS)
    )
    return [Mark(*row) for row in rows][::-1]


MOST_MARKS = 1000
"""Events that a timeline shows at most; the newest, if there are more."""


def troubles(session: Session, camera: str, since: float, until: float) -> list[Span]:
    """Return the times in a span in which a camera could not be judged."""
    rows = session.execute(
        select(Trouble.kind, Trouble.start, Trouble.end, Trouble.reason)
        .where(
            Trouble.camera_id == camera,
            Trouble.start < until,
            (Trouble.end.is_(None)) | (Trouble.end > since),
        )
        .order_by(Trouble.start)
    )
    return [Span(*row) for row in rows]


def today(session: Session, camera: str, now: float | None = None) -> Today:
    """Return a camera's day so far."""
    since = midnight(now)
    alarms, reviewed = session.execute(
        select(func.count(), func.count(Event.review)).where(
            Event.camera_id == camera, Event.alarm.is_(True), Event.start >= since
        )
    ).one()
    documents, judged, lowest = session.execute(
        select(
            func.coalesce(func.sum(Minute.n_documents), 0),
            func.coalesce(func.sum(Minute.n_judged), 0),
            func.min(Minute.normality),
        ).where(Minute.camera_id == camera, Minute.minute >= int(since // SECONDS))
    ).one()
    return Today(since, alarms, alarms - reviewed, documents, judged, lowest)


def learnings(session: Session, camera: str, limit: int = 20) -> list[Learning]:
    """Return when a camera's model was learnt, the newest first."""
    return list(
        session.scalars(
            select(Learning)
            .where(Learning.camera_id == camera)
            .order_by(Learning.id.desc())
            .limit(limit)
        )
    )


def precision(
    session: Session, camera: str | None = None, days: float = 7.0, now: float | None = None
) -> Precision:
    """Return how many of the reviewed alarms were unusual, and what other budgets had brought.

    At half the budget there would have been the alarms that were below its threshold too; at
    twice, also the moments that are kept but were no alarms.

    Parameters
    ----------
    session
        To read by.
    camera
        Its id; all cameras if None.
    days
        Number of days back.
    now
        End of these days; by default, this moment.
    """
    since = (time.time() if now is None else now) - days * DAY
    # Both values of `alarm` are named so that only these days are read, by an index.
    statement = select(Event.alarm, Event.at_half, Event.review, func.count()).where(
        Event.alarm.in_((True, False)), Event.start >= since
    )
    if camera is not None:
        statement = statement.where(Event.camera_id == camera)
    rows = session.execute(statement.group_by(Event.alarm, Event.at_half, Event.review)).all()

    def figures(chosen: list[Any]) -> BudgetFigures:
        return BudgetFigures(
            sum(n for *_, n in chosen),
            sum(n for _, _, review, n in chosen if review is not None),
            sum(n for _, _, review, n in chosen if review == "unusual"),
        )

    now_figures = figures([row for row in rows if row[0]])
    return Precision(
        days,
        max(0, ENOUGH_REVIEWS - now_figures.reviewed),
        figures([row for row in rows if row[0] and row[1]]),
        now_figures,
        figures([*rows]),
    )


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 90 % interval of a share by Wilson's score.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.541, 0.931]
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if n == 0:
        return 0.0, 1.0
    share, spread = successes / n, Z_90**2 / n
    middle = share + spread / 2
    half = Z_90 * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def audit(session: Session, *, before: int | None = None, limit: int = 100) -> list[AuditEntry]:
    """Return who did what, the newest first.

    Parameters
    ----------
    session
        To read by.
    before
        Id of the last entry of the part before this one.
    limit
        Length of a part.
    """
    statement = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(AuditEntry.id < before)
    return list(session.scalars(statement))


def outbox_waiting(session: Session) -> dict[int, int]:
    """Return the number of messages that wait, by channel."""
    rows = session.execute(
        select(OutboxEntry.channel_id, func.count())
        .where(OutboxEntry.sent.is_(None), OutboxEntry.outcome == "waiting")
        .group_by(OutboxEntry.channel_id)
    )
    return {row[0]: row[1] for row in rows}


def disk_use(session: Session, settings: ServerSettings, camera: str | None = None) -> DiskUse:
    """Return the bytes on disk, of one camera or of all."""
    statement = select(
        func.coalesce(func.sum(Event.n_bytes), 0), func.coalesce(func.sum(Event.clip_bytes), 0)
    )
    if camera is not None:
        statement = statement.where(Event.camera_id == camera)
    n_bytes, clip_bytes = map(int, session.execute(statement).one())
    folders = (
        [settings.camera_folder(camera)]
        if camera is not None
        else sorted((settings.data / "cameras").glob("*"))
    )
    return DiskUse(
        clip_bytes,
        n_bytes - clip_bytes,
        sum(_bytes_in(folder / "documents") for folder in folders),
        sum(_bytes_in(folder / "recent") for folder in folders),
        sum(_bytes_in(folder, "*.habitus") for folder in folders),
        0 if camera is not None else _bytes_in(settings.uploads),
        0 if camera is not None else _bytes_in(settings.data, "habitus.sqlite*"),
    )


def _bytes_in(folder: Path, pattern: str = "*") -> int:
    total = 0
    for path in folder.glob(pattern):
        try:
            total += path.stat().st_size
        except OSError:  # deleted meanwhile
            continue
    return total
