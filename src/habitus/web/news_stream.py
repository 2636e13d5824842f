"""News as they come, as server-sent events."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from habitus.web.answers import HttpError, Id
from habitus.web.bulletin import News
from habitus.web.database import EventRow
from habitus.web.security import Viewer, console_of, current_actor
from habitus.web.server import Console

router = APIRouter(prefix="/api", tags=["events"])

HEARTBEAT = 15.0
"""Seconds without news after which a comment is sent, so that proxies keep the connection; and
after which it is looked whether who listens still may."""
LONGEST = 900.0
"""Seconds after which a stream ends; the browser opens it again, if it still may."""
# Seconds before the last news from which on events are sent again: some are written late.
OVERLAP = 60.0
# Events that went on when the connection was lost are looked for so many seconds back.
LONGEST_EVENT = 3600.0
MOST_MISSED = 200


@router.get("/stream", response_class=StreamingResponse)
async def stream_news(
    request: Request,
    actor: Viewer,
    topic: Annotated[list[Id], Query(max_length=20)] = [],  # noqa: B006 - FastAPI's own way
    camera: Annotated[list[Id], Query(max_length=100)] = [],  # noqa: B006
    last_event_id: Annotated[str | None, Header(max_length=40)] = None,
) -> StreamingResponse:
    """Send news as server-sent events: event, camera, picture, judged, learning, notice, review.

    After an interruption, events that were missed are sent first (Last-Event-ID).
    """

    def wanted(news: News) -> bool:
        about = news.data.get("camera")
        return (not topic or news.topic in topic) and (
            not camera or about is None or about in camera
        )

    since, may = _time_of(last_event_id), partial(_is_known, request)
    return StreamingResponse(
        messages(console_of(request), wanted, since, may),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _is_known(request: Request) -> bool:
    """Return whether who asked is still known: logged in, or with a token."""
    try:
        current_actor(request, "")
    except HttpError:
        return False
    except SQLAlchemyError:  # nobody can say: the next time
        return True
    return True


async def messages(
    console: Console, wanted: Callable[[News], bool], since: float | None, may: Callable[[], bool]
) -> AsyncIterator[str]:
    """Yield messages until the console ends, it was long enough, or who asked may not any more."""
    end, check = time.monotonic() + LONGEST, time.monotonic() + HEARTBEAT
    listening = console.bulletin.listen()
    coming = asyncio.ensure_future(anext(listening))
    try:
        await asyncio.sleep(0)  # it listens before the database is asked
        yield f"retry: 2000\nid: {time.time():.3f}\n\n"
        if since is not None:
            for news in filter(wanted, await run_in_threadpool(_missed, console, since)):
                yield _message(news)
        while not console.closing.is_set() and time.monotonic() < end:
            await asyncio.wait({coming}, timeout=HEARTBEAT)
            if time.monotonic() >= check:
                check = time.monotonic() + HEARTBEAT
                if not await run_in_threadpool(may):
                    return
            if not coming.done():
                yield f": \nid: {time.time():.3f}\n\n"
                continue
            news, coming = coming.result(), asyncio.ensure_future(anext(listening))
            if news.topic != "closing" and wanted(news):
                yield _message(news)
    finally:
        coming.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await coming
        await listening.aclose()  # type: ignore[attr-defined]


def _message(news: News) -> str:
    number = f"id: {time.time():.3f}\n" if news.topic == "event" else ""
    return f"{number}event: {news.topic}\ndata: {json.dumps(news.data)}\n\n"


def _missed(console: Console, since: float) -> list[News]:
    """Return the events that started or ended since a time, the oldest first."""
    start = since - OVERLAP
    with console.database.session() as session:
        rows = session.execute(
            select(EventRow.id, EventRow.camera_id, EventRow.end, EventRow.alarm)
            .where(
                EventRow.start >= start - LONGEST_EVENT,
                (EventRow.start >= start) | EventRow.end.is_(None) | (EventRow.end >= start),
            )
            .order_by(EventRow.start.desc())
            .limit(MOST_MISSED)
        ).all()
    news = []
    for event, camera, end, alarm in reversed(rows):
        kind = "started" if end is None else "ended"
        data = {"camera": camera, "event": event, "kind": kind, "alarm": alarm}
        news.append(News("event", data))
    return news


def _time_of(text: str | None) -> float | None:
    try:
        moment = float(text or 0)
    except ValueError:
        return None
    # One of another server, or of a clock that was set back, says nothing.
    return moment if 0 < moment <= time.time() + LONGEST_EVENT else None
