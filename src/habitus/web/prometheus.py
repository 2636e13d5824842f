"""What Prometheus reads, and whether everything works."""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Histogram, Summary, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from starlette.types import Scope

from habitus.site.pipe_messages import CameraState
from habitus.web import queries
from habitus.web.answers import Health
from habitus.web.database import CameraRow, EventRow, Minute, Setting
from habitus.web.security import Everyone, FromHere, ThisConsole
from habitus.web.server import Console

router = APIRouter(tags=["console"])
LEAST_FREE = 100_000_000
"""Bytes on the disk below which it counts as full."""
METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])


class RequestMetrics:
    """What is counted of requests, beside what a console knows."""

    def __init__(self, console: Console) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_ConsoleCollector(console))
        # A histogram of each route would be most of what is shown.
        self._seconds = Summary(
            "habitus_http_seconds",
            "Seconds that requests took: their number and sum.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._spread = Histogram(
            "habitus_http_duration_seconds",
            "Seconds that requests took, all together.",
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 10),
        )

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request; streams last as long as they are read, and are not counted."""
        route = getattr(scope.get("route"), "path", None) or "other"
        if route != "/api/stream":
            method = scope["method"] if scope["method"] in METHODS else "OTHER"
            self._seconds.labels(method, route, str(status)).observe(seconds)
            self._spread.observe(seconds)


def _gauge(
    name: str,
    about: str,
    labels: str,
    values: Iterable[tuple[object, ...]],
    kind: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily,
) -> Metric:
    """Return a figure by its labels: rows of their values, and the number."""
    family = kind(f"habitus_{name}", about, labels=labels.split())
    for *label_values, value in values:
        family.add_metric([str(label) for label in label_values], value)  # type: ignore[arg-type]
    return family


class _ConsoleCollector(Collector):
    """Reads the figures of a console when it is asked for them."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def describe(self) -> list[Metric]:
        """Return nothing: what there is depends on the cameras."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what is known; without the database, only that it is away."""
        try:
            figures = self.console.database.read(self._figures)
        except SQLAlchemyError:
            figures = []
        yield _gauge("database_up", "Whether the database answers.", "", [(int(bool(figures)),)])
        yield from figures

    def _figures(self, session: Session) -> list[Metric]:
        cameras = {camera.id: camera.state for camera in session.scalars(select(CameraRow))}
        states = [(state, list(cameras.values()).count(state)) for state in CameraState]
        events = session.execute(
            select(EventRow.camera_id, EventRow.alarm, func.count()).group_by(
                EventRow.camera_id, EventRow.alarm
            )
        )
        kept = [(camera, "true" if alarm else "false", n) for camera, alarm, n in events]
        judged = session.execute(
            select(Minute.camera_id, func.sum(Minute.n_judged))
            .where(Minute.minute >= int(queries.midnight() // 60))
            .where(Minute.camera_id.in_(list(cameras)))
            .group_by(Minute.camera_id)
        )
        outbox = [(channel.id, channel.waiting) for channel in queries.channels(session)]
        bulletin = self.console.bulletin
        return [
            _gauge("cameras", "Cameras by state.", "state", states),
            _gauge("events", "Events that are kept.", "camera alarm", kept),
            _gauge(
                "documents_judged_today",
                "Documents judged since midnight.",
                "camera",
                map(tuple, judged),
            ),
            _gauge("outbox_waiting", "Messages that are not sent yet.", "channel", outbox),
            _gauge("notices", "Notices that are kept.", "", [(len(bulletin.notices()),)]),
            *self._of_processes(cameras),
            _gauge("news_streams", "Pages that listen to news.", "", [(len(bulletin),)]),
        ]

    def _of_processes(self, cameras: Iterable[str]) -> Iterator[Metric]:
        supervisor = self.console.supervisor
        latest = {camera: supervisor.latest(camera) for camera in cameras} if supervisor else {}
        behind = [
            (camera, max(0.0, time.time() - report.judged.time - 1))
            for camera, report in latest.items()
            if report.judged is not None
        ]
        memory = [
            (camera, n_bytes)
            for camera, report in latest.items()
            if report.pid is not None and (n_bytes := _resident(report.pid))
        ]
        restarts = [(camera, report.restarts) for camera, report in latest.items()]
        about = "Seconds since the clip of the last document ended."
        yield _gauge("camera_seconds_behind", about, "camera", behind)
        yield _gauge("camera_memory_bytes", "Memory of a camera's process.", "camera", memory)
        about = "Times that a process was started again."
        yield _gauge("camera_restarts", about, "camera", restarts, CounterMetricFamily)


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
    return Response(
        generate_latest(measured.registry), media_type="text/plain; version=0.0.4; charset=utf-8"
    )


@router.get("/healthz", responses={503: {"model": Health}})
def show_health(console: ThisConsole, response: Response, reader: Everyone) -> Health:
    """Show whether everything works: 200, or 503 with the reasons."""
    problems = list(find_problems(console))
    response.status_code = 503 if problems else 200
    return Health(status="failing" if problems else "ok", problems=problems)


def find_problems(console: Console) -> Iterator[str]:
    """Yield what does not work now."""
    try:
        with console.database.session() as session:
            session.execute(text("SELECT 1"))
            try:  # changes nothing, and is not committed
                session.execute(update(Setting).where(Setting.key == "").values(key=""))
            except SQLAlchemyError:
                yield "the database cannot be written"
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
        yield "events are not sent: the delivery has ended"
