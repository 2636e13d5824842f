"""What Prometheus reads, and whether everything works."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from starlette.types import Scope

from habitus.site.pipe_messages import CameraState
from habitus.web import queries
from habitus.web.answers import Health
from habitus.web.database import CameraRow, Channel, EventRow, Minute
from habitus.web.security import Everyone, FromHere, console_of
from habitus.web.server import Console

router = APIRouter(tags=["console"])
LEAST_FREE = 100_000_000
"""Bytes on the disk below which it counts as full."""
OPEN_METRICS = "text/plain; version=0.0.4; charset=utf-8"


class RequestMetrics:
    """What is counted of requests, beside what a console knows.

    Parameters
    ----------
    console
        Whose figures.
    """

    def __init__(self, console: Console) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_ConsoleCollector(console))
        self._seconds = Histogram(
            "habitus_http_seconds",
            "Seconds that requests took.",
            ["method", "route", "status"],
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 10),
        )

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request; streams last as long as they are read, and are not counted."""
        route = getattr(scope.get("route"), "path", None) or "other"
        if route != "/api/stream":
            method = scope["method"] if scope["method"] in METHODS else "OTHER"
            self._seconds.labels(method, route, str(status)).observe(seconds)

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        return generate_latest(self.registry)


METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])


class _ConsoleCollector(Collector):
    """Reads the figures of a console when it is asked for them."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def describe(self) -> list[Metric]:
        """Return nothing: what there is depends on the cameras."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what is known; without the database, only that it is away."""
        up = GaugeMetricFamily("habitus_database_up", "Whether the database answers.")
        try:
            with self.console.database.session() as session:
                found = list(self._of_database(session))
        except SQLAlchemyError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from found

    def _of_database(self, session: Session) -> Iterator[Metric]:
        cameras = {camera.id: camera for camera in session.scalars(select(CameraRow))}
        states = GaugeMetricFamily("habitus_cameras", "Cameras by state.", labels=["state"])
        for state in CameraState:
            states.add_metric([state], sum(c.state == state for c in cameras.values()))
        yield states
        events = GaugeMetricFamily(
            "habitus_events", "Events that are kept.", labels=["camera", "alarm"]
        )
        counts = session.execute(
            select(EventRow.camera_id, EventRow.alarm, func.count()).group_by(
                EventRow.camera_id, EventRow.alarm
            )
        )
        for camera, alarm, n in counts:
            events.add_metric([camera, "true" if alarm else "false"], n)
        yield events
        judged = GaugeMetricFamily(
            "habitus_documents_judged_today", "Documents judged since midnight.", labels=["camera"]
        )
        first = int(queries.midnight() // 60)
        for camera, n in session.execute(
            select(Minute.camera_id, func.sum(Minute.n_judged))
            .where(Minute.minute >= first, Minute.camera_id.in_(list(cameras)))
            .group_by(Minute.camera_id)
        ):
            judged.add_metric([camera], n)
        yield judged
        waiting = GaugeMetricFamily(
            "habitus_outbox_waiting", "Messages that are not told yet.", labels=["channel"]
        )
        counted = queries.outbox_waiting(session)
        for channel in session.scalars(select(Channel)):
            waiting.add_metric([str(channel.id)], counted.get(channel.id, 0))
        yield waiting
        notices = GaugeMetricFamily("habitus_notices", "Notices that are kept.")
        notices.add_metric([], len(self.console.bulletin.notices()))
        yield notices
        yield from self._of_processes(list(cameras))

    def _of_processes(self, cameras: list[str]) -> Iterator[Metric]:
        behind = GaugeMetricFamily(
            "habitus_camera_seconds_behind",
            "Seconds since the clip of the last document ended.",
            labels=["camera"],
        )
        memory = GaugeMetricFamily(
            "habitus_camera_memory_bytes", "Memory of a camera's process.", labels=["camera"]
        )
        restarts = CounterMetricFamily(
            "habitus_camera_restarts", "Times that a process was started again.", labels=["camera"]
        )
        listeners = GaugeMetricFamily("habitus_news_streams", "Pages that listen to news.")
        listeners.add_metric([], len(self.console.bulletin))
        supervisor = self.console.supervisor
        for camera in cameras if supervisor else ():
            latest = supervisor.latest(camera)  # type: ignore[union-attr]
            restarts.add_metric([camera], latest.restarts)
            if latest.judged is not None:
                behind.add_metric([camera], max(0.0, time.time() - latest.judged.time - 1))
            if latest.pid is not None and (n_bytes := _resident(latest.pid)):
                memory.add_metric([camera], n_bytes)
        yield from (behind, memory, restarts, listeners)


def _resident(pid: int) -> int:
    """Return the memory that a process holds, in bytes; 0 if that is not known."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@router.get("/metrics", response_class=Response)
def show_metrics(request: Request, reader: FromHere) -> Response:
    """Show figures for Prometheus; with a token, or from the server's own machine."""
    measured: RequestMetrics = request.app.state.measured
    return Response(measured.text(), media_type=OPEN_METRICS)


@router.get("/healthz", responses={503: {"model": Health}})
def show_health(request: Request, response: Response, reader: Everyone) -> Health:
    """Show whether everything works: 200, or 503 with the reasons."""
    problems = list(find_problems(console_of(request)))
    response.status_code = 503 if problems else 200
    return Health(status="failing" if problems else "ok", problems=problems)


def find_problems(console: Console) -> Iterator[str]:
    """Yield what does not work now."""
    try:
        with console.database.session() as session:
            session.execute(text("SELECT 1"))
    except SQLAlchemyError:
        yield "the database does not answer"
    try:
        if shutil.disk_usage(console.settings.data).free < LEAST_FREE:
            yield "the disk is full"
    except OSError:
        yield "the data folder cannot be read"
    if console.supervisor is not None and not console.supervisor.is_alive:
        yield "cameras are not watched: the supervisor has ended"
    if console.deliverer is not None and not console.deliverer.is_alive:
        yield "events are not told: the delivery has ended"
