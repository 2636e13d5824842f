"""How usual a camera's view was: its normality, behaviours, events and troubles in a span."""

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from habitus.errors import InvalidInputError
from habitus.web.answers import CameraTimeline, EventSummary, NamedBehaviours, TimelineSpan
from habitus.web.database import CameraRow, LearningRow, Minute, TroubleRow
from habitus.web.queries import EventFilter, events
from habitus.web.store import SECONDS, PackedMinute

MOST_MODELS = 100
"""Models whose names a timeline shows at most; the newest, if there are more."""
MOST_MARKS = 1000
"""Events that a timeline shows at most; the newest, if there are more."""


def timeline(
    session: Session, camera: str, since: float, until: float, points: int = 1200
) -> CameraTimeline:
    """Return how usual a camera's view was in a span, at some points at most.

    Short spans are drawn by seconds, long ones by minutes or groups of them.
    """
    if not (math.isfinite(since) and math.isfinite(until) and since < until):
        raise InvalidInputError(
            f"expected a span of time, found {since:g} to {until:g}", parameter="until"
        )
    points = max(2, points)
    seconds = max(1, math.ceil((until - since) / points))
    row = session.get(CameraRow, camera)  # None if it was removed just now
    # What it was before it played, as a recording without a date, is at no moment.
    own = math.ceil(row.created / SECONDS) if row and row.kind == "playback" else 0
    if seconds < SECONDS:
        columns = _by_seconds(session, camera, since, until, seconds, own)
    else:
        columns = _by_minutes(session, camera, since, until, math.ceil(seconds / SECONDS), own)
    marked = EventFilter(camera=[camera], since=since, until=until)
    found = events(session, marked, limit=MOST_MARKS).events[::-1]
    return CameraTimeline(
        **columns,
        names=_names(session, camera, until),
        events=[
            EventSummary.model_validate(event)
            for event in found
            if event.dated or not (row and row.dated)
        ],
        troubles=_spans(session, camera, since, until),
    )


def _by_seconds(
    session: Session, camera: str, since: float, until: float, step: int, own: int
) -> dict[str, Any]:
    """Return columns of groups of seconds; a lone second without a document is none.

    Minutes from `own` on count.
    """
    first = int(since // SECONDS)
    n_minutes = math.ceil(until / SECONDS) - first
    normality = np.full((n_minutes, SECONDS), np.nan, np.float32)
    behaviour = np.zeros((n_minutes, SECONDS), np.uint8)
    rows = session.execute(
        select(Minute.minute, Minute.seconds).where(
            Minute.camera_id == camera,
            Minute.minute >= max(first, own),
            Minute.minute < first + n_minutes,
        )
    )
    for minute, packed in rows:
        seconds = PackedMinute(packed)
        normality[minute - first], behaviour[minute - first] = seconds.normality, seconds.behaviour
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
    return {
        "step": float(step),
        "times": [float(start + step * i) for i in range(n_steps)],
        "normality": [round(value, 3) if math.isfinite(value) else None for value in least],
        "behaviour": [_most_frequent(group) for group in usual[chosen].reshape(-1, step).tolist()],
    }


def _most_frequent(behaviours: list[int]) -> int | None:
    counts = Counter(behaviour for behaviour in behaviours if behaviour)
    return counts.most_common(1)[0][0] if counts else None


def _by_minutes(
    session: Session, camera: str, since: float, until: float, step: int, own: int
) -> dict[str, Any]:
    """Return columns of groups of minutes; those from `own` on count."""
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
            Minute.minute >= max(first * step, own),
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
    return {
        "step": float(step * SECONDS),
        "times": [float(start * SECONDS) for start in starts],
        "normality": [round(lowest[start], 3) if start in lowest else None for start in starts],
        "behaviour": [
            max(usual[start], key=usual[start].__getitem__) if start in usual else None
            for start in starts
        ],
    }


def _names(session: Session, camera: str, until: float) -> list[NamedBehaviours]:
    """Return what people call the behaviours of each model that was in use before a time."""
    rows = session.execute(
        select(LearningRow.ended, LearningRow.names)
        .where(LearningRow.camera_id == camera, LearningRow.model.is_not(None))
        .where(LearningRow.ended < until)
        .order_by(LearningRow.id.desc())
        .limit(MOST_MODELS)
    )
    return [NamedBehaviours(since=ended, names=names) for ended, names in rows][::-1]


def _spans(session: Session, camera: str, since: float, until: float) -> list[TimelineSpan]:
    """Return the times in a span in which a camera could not be judged."""
    rows = session.scalars(
        select(TroubleRow)
        .where(
            TroubleRow.camera_id == camera,
            TroubleRow.start < until,
            (TroubleRow.end.is_(None)) | (TroubleRow.end > since),
        )
        .order_by(TroubleRow.start)
    )
    return [TimelineSpan.model_validate(row) for row in rows]


def judged_until(session: Session, camera: str) -> float | None:
    """Return the end of the last minute that was judged."""
    last = session.scalar(select(func.max(Minute.minute)).where(Minute.camera_id == camera))
    return None if last is None else float(SECONDS * (last + 1))
