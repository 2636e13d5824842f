"""What pages and the API read, as small functions of a session; timelines: `camera_timeline`."""

import math
import shutil
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.orm import Session
from starlette.datastructures import QueryParams

from habitus.errors import InvalidInputError
from habitus.web.answers import (
    BudgetFigures,
    DiskUse,
    EventSummary,
    Moment,
    PrecisionReport,
    SimilarEvent,
)
from habitus.web.database import (
    LISTED,
    UNDATED,
    AuditEntry,
    CameraRow,
    Channel,
    EventRow,
    LearningRow,
    OutboxEntry,
)
from habitus.web.server_settings import ServerSettings

DAY = 86_400.0
ENOUGH_REVIEWS = 20
"""Reviews that a precision needs at least."""
Z_90 = 1.6448536269514722
"""Quantile of the normal distribution that 90 % intervals reach to."""
SIMILAR_AMONG = 2000
"""Newest events of a camera that similar ones are looked for among."""

Seconds = Annotated[float, Field(ge=0, le=1e9)]
Review = Literal["any", "none", "normal", "unusual", "silenced"]
Sort = Literal["newest", "oldest", "unusual", "longest"]
LENGTHS: dict[str, tuple[float, float]] = {
    "": (0.0, math.inf),
    "short": (0.0, 5.0),
    "medium": (5.0, 30.0),
    "long": (30.0, math.inf),
}
"""Seconds of an event, from and to."""


FIRST_YEAR, LAST_YEAR = 1971, 5000
"""Days that are looked for, in any time zone."""


def _hours(text: str) -> tuple[int, int]:
    """Return the hours of a span such as 22-6."""
    first, last = map(int, text.split("-"))
    if first >= 24 or last > 24 or first == last:
        raise ValueError("hours are as 22-6")
    return first, last


def _checked_hours(text: str) -> str:
    if text:
        _hours(text)
    return text


def _checked_day(day: date) -> date:
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise ValueError(f"a day is from {FIRST_YEAR} to {LAST_YEAR}")
    return day


Day = Annotated[date, AfterValidator(_checked_day)]
Hours = Annotated[str, Field(pattern=r"^(\d{1,2}-\d{1,2})?$"), AfterValidator(_checked_hours)]


class EventFilter(BaseModel):
    """Which events are listed, as addresses of pages and of the API have it."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    camera: Annotated[list[str], Field(max_length=100)] = []
    """Ids; all cameras if empty."""
    since: Moment | Day | None = None
    """Seconds since the epoch, or a day of the server such as 2026-11-18."""
    until: Moment | Day | None = None
    """The same; of a day, its end."""
    cue: str = ""
    """How the cue begins, such as "direction"."""
    review: Review = "any"
    """Silenced ones are those that a review made needless; "none" are those that are left."""
    alarms_only: bool = True
    words: Annotated[str, Field(max_length=200)] = ""
    """Words of explanation or note, in any order."""
    hours: Hours = ""
    """Hour of the day from and until, the second one not included, as 22-6."""
    unusual: Annotated[int, Field(ge=0, le=100)] = 0
    """The least."""
    length: Literal["", "short", "medium", "long"] = ""
    """Up to 5 s, 5 to 30 s, or more."""
    shortest: Seconds | None = None
    """Seconds."""
    longest: Seconds | None = None
    starred: bool = False
    sort: Sort = "newest"
    zone: Annotated[str, Field(max_length=100)] = ""
    """Name of a zone."""
    quiet: bool = False
    """In place of alarms, those that would be alarms but for their zone or too many others."""

    @classmethod
    def of_page(cls, query: QueryParams) -> "EventFilter":
        """Return the filters of a page's address; what cannot be understood is left out."""
        values: dict[str, Any] = {key: query[key] for key in cls.model_fields if query.get(key)}
        values["camera"] = list(filter(None, query.getlist("camera")))
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            wrong = {one["loc"][0] for one in error.errors()}
            return cls.model_validate({k: v for k, v in values.items() if k not in wrong})

    def query(self, **more: Any) -> str:
        """Return these filters as the query of an address, with a question mark if there is any."""
        named = {**self.model_dump(exclude_defaults=True), **more}
        return f"?{urlencode(named, doseq=True)}" if named else ""

    @property
    def n_folded(self) -> int:
        """Number of filters beyond those that are always seen."""
        seen = {"camera", "review", "words", "sort"}
        return len(self.model_dump(exclude_defaults=True, exclude=seen))


class EventRequest(EventFilter):
    """A part of the events of a filter."""

    before: Annotated[str | None, Field(max_length=200)] = None
    """`next` of the part before."""
    limit: Annotated[int, Field(ge=1, le=500)] = 60


def wall(
    session: Session, now: float | None = None, *, camera: str | None = None
) -> list[CameraRow]:
    """Return all cameras by name, or one, with the alarms of today.

    Those of a recording without a date are all counted, and in no day.
    """
    cameras = select(CameraRow).order_by(func.lower(CameraRow.name), CameraRow.id)
    if camera is not None:
        cameras = cameras.where(CameraRow.id == camera)
    rows = list(session.scalars(cameras))
    alarms = select(EventRow.camera_id, func.count(), func.count(EventRow.review)).where(
        EventRow.alarm.is_(True)
    )
    if camera is not None:
        alarms = alarms.where(EventRow.camera_id == camera)
    today = alarms.where(EventRow.start >= midnight(now), EventRow.hour != UNDATED)
    counts = {key: n for key, *n in session.execute(today.group_by(EventRow.camera_id))}
    if undated := [row.id for row in rows if not row.dated]:
        of_them = alarms.where(EventRow.camera_id.in_(undated))
        counts |= {key: n for key, *n in session.execute(of_them.group_by(EventRow.camera_id))}
    for row in rows:
        row.alarms_today, n_reviewed = counts.get(row.id, (0, 0))
        row.to_review = row.alarms_today - n_reviewed
    return rows


def midnight(now: float | None = None) -> float:
    """Return when the day began at the server."""
    moment = datetime.fromtimestamp(time.time() if now is None else now)
    return moment.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


class EventPart(NamedTuple):
    """A part of a list of events."""

    events: list[EventRow]
    next: str | None
    """What the next part begins by."""


def events(
    session: Session,
    wanted: EventFilter | None = None,
    *,
    before: str | None = None,
    limit: int = 60,
) -> EventPart:
    """Return a part of the events, the newest first; `before` is `next` of the part before."""
    wanted = wanted or EventFilter()
    chosen = select(EventRow.id, EventRow.start).where(*_conditions(wanted))
    skipped = 0
    if wanted.sort == "newest":
        chosen = chosen.where(*_older_than(*_cursor(before))) if before is not None else chosen
    elif before is not None:  # the place in the list
        skipped = int(before) if before.isdecimal() and len(before) < MOST_DIGITS else 0
    keys = session.execute(
        chosen.order_by(*_ORDERS[wanted.sort]).offset(skipped).limit(limit + 1)
    ).all()
    last = None
    if len(keys) > limit:
        key = keys[limit - 1]
        last = f"{key.start!r}:{key.id}" if wanted.sort == "newest" else f"{skipped + limit}"
    return EventPart(summaries(session, [key.id for key in keys[:limit]]), last)


MOST_DIGITS = 10
_ORDERS: dict[Sort, tuple[ColumnElement[Any], ...]] = {
    "newest": (EventRow.start.desc(), EventRow.id.desc()),
    "oldest": (EventRow.start.asc(), EventRow.id.asc()),
    "unusual": (EventRow.unusual.desc(), EventRow.start.desc(), EventRow.id.desc()),
    "longest": ((EventRow.end - EventRow.start).desc(), EventRow.start.desc(), EventRow.id.desc()),
}


def _conditions(wanted: EventFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.quiet:
        conditions += [EventRow.alarm.is_(False), EventRow.quiet.is_(True)]
    elif wanted.alarms_only:
        conditions.append(EventRow.alarm.is_(True))
    if wanted.zone:
        conditions.append(EventRow.zone == wanted.zone)
    if len(wanted.camera) == 1:
        conditions.append(EventRow.camera_id == wanted.camera[0])
    elif wanted.camera:
        conditions.append(EventRow.camera_id.in_(wanted.camera))
    if wanted.since is not None:
        conditions.append(EventRow.start >= _moment(wanted.since))
    if wanted.until is not None:
        conditions.append(EventRow.start < _moment(wanted.until, days=1))
    if wanted.cue:
        conditions.append(EventRow.cue.startswith(wanted.cue, autoescape=True))
    if wanted.review in ("none", "silenced"):
        conditions.append(EventRow.review.is_(None))
        silenced = EventRow.silenced_by
        conditions.append(silenced.is_(None) if wanted.review == "none" else silenced.is_not(None))
    elif wanted.review != "any":
        conditions.append(EventRow.review == wanted.review)
    conditions += [
        EventRow.words.contains(word, autoescape=True) for word in wanted.words.lower().split()
    ]
    if wanted.hours:
        first, last = _hours(wanted.hours)
        within = EventRow.hour >= first, EventRow.hour < last
        conditions.append(and_(*within) if first < last else or_(*within))
        conditions.append(EventRow.hour != UNDATED)
    if wanted.unusual > 0:
        conditions.append(EventRow.unusual >= wanted.unusual)
    shortest, longest = LENGTHS[wanted.length]
    if (shortest := max(wanted.shortest or 0.0, shortest)) > 0:
        conditions.append(EventRow.end - EventRow.start >= shortest)
    if (longest := min(math.inf if wanted.longest is None else wanted.longest, longest)) < math.inf:
        conditions.append(EventRow.end - EventRow.start <= longest)
    if wanted.starred:
        conditions.append(EventRow.starred.is_(True))
    return conditions


def _moment(when: float | date, days: int = 0) -> float:
    """Return a time in seconds; of a day, its beginning, or that of one some days later."""
    if isinstance(when, date):
        return datetime.combine(when + timedelta(days), datetime.min.time()).timestamp()
    return when


class DayCount(NamedTuple):
    """Events of a day, by the hour."""

    day: date
    hours: list[int]
    cameras: Counter[str]
    """By the name of the camera."""

    @property
    def total(self) -> int:
        """Events of the whole day."""
        return sum(self.hours)


def calendar(session: Session, wanted: EventFilter, last: date, n_days: int) -> list[DayCount]:
    """Return the events of some days up to the last one, by day, hour and camera."""
    days = [last - timedelta(days=n) for n in reversed(range(n_days))]
    edges = [_moment(day) for day in days]
    span = wanted.model_copy(update={"since": days[0], "until": last})
    rows = session.execute(
        select(EventRow.start, EventRow.hour, CameraRow.name)
        .join(CameraRow, CameraRow.id == EventRow.camera_id)
        .where(*_conditions(span), EventRow.hour != UNDATED)
    )
    counts = [DayCount(day, [0] * 24, Counter()) for day in days]
    for start, hour, name in rows:
        day = counts[bisect_right(edges, start) - 1]
        day.hours[hour] += 1
        day.cameras[name] += 1
    return counts


def n_undated(session: Session, wanted: EventFilter) -> int:
    """Return the number of events that are in no day of the calendar."""
    conditions = *_conditions(wanted), EventRow.hour == UNDATED
    return session.scalar(select(func.count(EventRow.id)).where(*conditions)) or 0


def _older_than(start: float, event_id: str) -> tuple[ColumnElement[bool], ...]:
    return EventRow.start <= start, (EventRow.start < start) | (EventRow.id < event_id)


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


def summaries(session: Session, ids: Sequence[str]) -> list[EventRow]:
    """Return events, as lists have them, in the order of their ids."""
    rows = session.scalars(select(EventRow).where(EventRow.id.in_(ids)).options(*LISTED))
    by_id = {row.id: row for row in rows}
    return [by_id[event_id] for event_id in ids if event_id in by_id]


def count(session: Session, wanted: EventFilter | None = None) -> int:
    """Return the number of events of a filter."""
    conditions = _conditions(wanted or EventFilter())
    return session.scalar(select(func.count(EventRow.id)).where(*conditions)) or 0


def cues(session: Session) -> list[str]:
    """Return the cues that events have, such as "direction", by their first word."""
    whole = session.scalars(select(EventRow.cue).where(EventRow.alarm.is_(True)).distinct())
    return sorted({cue.partition(",")[0] for cue in whole if cue})


def zones(session: Session) -> list[str]:
    """Return the names of zones that cameras or events have."""
    drawn = (zone["name"] for row in session.scalars(select(CameraRow.zones)) for zone in row)
    return sorted({*drawn, *session.scalars(select(EventRow.zone).distinct())} - {""})


def event(session: Session, event_id: str) -> EventRow | None:
    """Return one event with its neighbours, or None."""
    row = session.get(EventRow, event_id)
    if row is None:
        return None
    start = row.start
    alarms = select(EventRow.id).where(EventRow.alarm.is_(True)).limit(1)
    older = alarms.where(*_older_than(start, event_id)).order_by(
        EventRow.start.desc(), EventRow.id.desc()
    )
    newer = alarms.where(
        EventRow.start >= start, (EventRow.start > start) | (EventRow.id > event_id)
    ).order_by(EventRow.start, EventRow.id)
    row.newer, row.older = session.scalar(newer), session.scalar(older)
    return row


def similar(session: Session, event_id: str, limit: int = 6) -> list[SimilarEvent]:
    """Return the earlier events of the same camera that are most like one, the most similar first.

    Only the `SIMILAR_AMONG` before it are looked at.
    """
    chosen = session.get(EventRow, event_id)
    if chosen is None or chosen.signature is None:
        return []
    rows = session.execute(
        select(EventRow.id, EventRow.signature)
        .where(
            EventRow.camera_id == chosen.camera_id,
            EventRow.start <= chosen.start,
            EventRow.id != event_id,
        )
        .order_by(EventRow.start.desc())
        .limit(SIMILAR_AMONG)
    )
    same = len(chosen.signature)
    signed = [
        (row.id, row.signature) for row in rows if row.signature and len(row.signature) == same
    ]
    if not signed:
        return []
    signatures = np.frombuffer(b"".join(signature for _, signature in signed), "<f4")
    likeness = signatures.reshape(len(signed), -1) @ np.frombuffer(chosen.signature, "<f4")
    best = np.argsort(-likeness, kind="stable")[:limit]
    shown = summaries(session, [signed[i][0] for i in best])
    return [
        SimilarEvent(card=EventSummary.model_validate(card), similarity=likeness[i])
        for card, i in zip(shown, best, strict=True)
    ]


def learnings(session: Session, camera: str, limit: int = 20) -> list[LearningRow]:
    """Return when a camera's model was learnt, the newest first."""
    return list(
        session.scalars(
            select(LearningRow)
            .where(LearningRow.camera_id == camera)
            .order_by(LearningRow.id.desc())
            .limit(limit)
        )
    )


def precision(
    session: Session, camera: str | None = None, days: float = 7.0, now: float | None = None
) -> PrecisionReport:
    """Return how many of the reviewed alarms were unusual, and what other budgets had brought.

    At half the budget there would have been the alarms that were below its threshold too; at
    twice, also the moments that are kept but were no alarms.
    """
    since = (time.time() if now is None else now) - days * DAY
    # Both values of `alarm` are named so that only these days are read, by an index.
    statement = select(EventRow.alarm, EventRow.at_half, EventRow.review, func.count()).where(
        EventRow.alarm.in_((True, False)), EventRow.quiet.is_(False), EventRow.start >= since
    )
    if camera is not None:
        statement = statement.where(EventRow.camera_id == camera)
    rows = session.execute(
        statement.group_by(EventRow.alarm, EventRow.at_half, EventRow.review)
    ).all()
    at_budget = _figures([row for row in rows if row[0]])
    return PrecisionReport(
        days=days,
        reviews_needed=max(0, ENOUGH_REVIEWS - at_budget.reviewed),
        half=_figures([row for row in rows if row[0] and row[1]]),
        now=at_budget,
        twice=_figures(rows),
    )


def _figures(rows: Sequence[Any]) -> BudgetFigures:
    reviewed = sum(n for _, _, review, n in rows if review is not None)
    unusual = sum(n for _, _, review, n in rows if review == "unusual")
    return BudgetFigures(
        alarms=sum(n for *_, n in rows),
        reviewed=reviewed,
        unusual=unusual,
        precision=unusual / reviewed if reviewed else None,
        interval=wilson(unusual, reviewed),
    )


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 90 % interval of a share by Wilson's score.

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
    """Return who did what, the newest first; `before` is the last id of the part before."""
    statement = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(AuditEntry.id < before)
    return list(session.scalars(statement))


def channels(session: Session) -> list[Channel]:
    """Return all channels, each with what waits there, what was sent last, and why it failed."""
    waiting = case((OutboxEntry.sent.is_(None) & (OutboxEntry.outcome == "waiting"), 1), else_=0)
    failed = select(OutboxEntry.error).where(OutboxEntry.sent.is_(None), OutboxEntry.error != "")
    sums = select(OutboxEntry.channel_id, func.sum(waiting), func.max(OutboxEntry.sent))
    rows = session.execute(sums.group_by(OutboxEntry.channel_id))
    sent = {channel: (int(n), last or 0.0) for channel, n, last in rows}
    every = list(session.scalars(select(Channel).order_by(Channel.id)))
    for channel in every:
        channel.waiting, channel.last_sent = sent.get(channel.id, (0, 0.0))
        if channel.waiting:
            first = failed.where(OutboxEntry.channel_id == channel.id).order_by(OutboxEntry.id)
            channel.error = session.scalar(first.limit(1)) or ""
    return every


OTHER_FILES = ("server.log*", "export-*.zip", "restore.*", "before-restore*/**/*", "demo/*")
"""What else there may be in the data folder."""


def disk_use(session: Session, settings: ServerSettings) -> DiskUse:
    """Return the bytes on disk."""
    sums = select(
        func.coalesce(func.sum(EventRow.n_bytes), 0),
        func.coalesce(func.sum(EventRow.clip_bytes), 0),
    )
    n_bytes, clip_bytes = map(int, session.execute(sums).one())
    folders = sorted((settings.data / "cameras").glob("*"))
    used = {
        "clips": clip_bytes,
        "pictures": n_bytes - clip_bytes,
        "documents": sum(_bytes_in(folder / "documents") for folder in folders),
        "recent": sum(_bytes_in(folder / "recent") for folder in folders),
        "models": sum(_bytes_in(folder, "*.habitus") for folder in folders),
        "uploads": _bytes_in(settings.uploads),
        "database": _bytes_in(settings.data, "habitus.sqlite*"),
        "other": sum(_bytes_in(settings.data, pattern) for pattern in OTHER_FILES),
    }
    free = shutil.disk_usage(settings.data).free
    return DiskUse(**used, total=sum(used.values()), free=free)


def document_folders(settings: ServerSettings) -> list[tuple[int, Path]]:
    """Return the bytes of each camera's documents, and where they are."""
    folders = [folder / "documents" for folder in (settings.data / "cameras").glob("*")]
    return [(_bytes_in(folder), folder) for folder in folders]


def _bytes_in(folder: Path, pattern: str = "*") -> int:
    total = 0
    for path in folder.glob(pattern):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # deleted meanwhile
            continue
    return total
