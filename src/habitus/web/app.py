"""The web application: all routes of the console, and how errors are answered."""

from functools import cache
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import DataError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match

import habitus
from habitus.errors import HabitusError
from habitus.web import (
    admin_routes,
    camera_routes,
    event_routes,
    news_stream,
    prometheus,
    upkeep_routes,
)
from habitus.web.answers import HttpError, Problem, reason_of, status_of
from habitus.web.guard import Guard
from habitus.web.rendering import ERRORS, ViewerPage, error_page
from habitus.web.security import READING, Attempts, Viewer
from habitus.web.server import Console

FOR_PROGRAMS = ("/api", "/metrics", "/healthz")
"""Where errors are JSON; pages elsewhere."""
DESCRIPTION = """
Send a token of the settings page as `Authorization: Bearer habitus_...`. Times are seconds since
the epoch (UTC). Whatever is refused has a `detail`, one line for a person.
"""
TAGS = {
    "cameras": "What is watched, and how.",
    "events": "What was unusual, and what people say of it.",
    "channels": "Where events are sent.",
    "users": "Who may do what.",
    "console": "Settings, health, and who did what.",
}
overview = APIRouter(include_in_schema=False)


class Files(StaticFiles):
    """Static files that a browser keeps, and asks about before it uses them again."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file."""
        answer = super().file_response(*args, **kwargs)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def create_app(console: Console) -> FastAPI:
    """Return the application of a console."""
    app = FastAPI(
        title="habitus",
        version=habitus.__version__,
        description=DESCRIPTION,
        openapi_tags=[{"name": name, "description": about} for name, about in TAGS.items()],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.console = console
    app.state.attempts = Attempts()
    app.state.measured = measured = prometheus.RequestMetrics(console)
    app.add_middleware(Guard, settings=console.settings, observe=measured.observe)
    app.add_exception_handler(HabitusError, _on_project_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(SQLAlchemyError, _on_database_error)
    app.router.routes.extend(_routes())
    app.mount("/static", Files(directory=Path(__file__).parent / "static"), name="static")
    return app


@cache
def _routes() -> list[BaseRoute]:
    """Return what all applications answer to: to build it takes longer than to answer once."""
    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem, "description": about} for status, about in ERRORS.items()
    }
    routed = (camera_routes, event_routes, admin_routes, upkeep_routes)
    apis, router = [module.api for module in routed], APIRouter()
    for api in (*apis, news_stream.router, prometheus.router):
        router.include_router(api, responses=problems)
    router.include_router(overview)
    for module in routed:
        router.include_router(module.pages, include_in_schema=False)
    return router.routes


@overview.get("/api/openapi.json")
def show_schema(request: Request, actor: Viewer) -> dict[str, Any]:
    """Show the description of the API (OpenAPI)."""
    return cast(FastAPI, request.app).openapi()


@overview.get("/api")
def show_overview(page: ViewerPage) -> HTMLResponse:
    """Show a list of all that the API can do."""
    paths = page.request.app.openapi()["paths"]
    return page("api.html", description=DESCRIPTION, paths=paths)


def _answer(request: Request, status: int, detail: str) -> Response:
    """Return an error as JSON for a program, else as a page."""
    if request.url.path.startswith(FOR_PROGRAMS):
        return JSONResponse({"detail": detail}, status)
    return error_page(status, detail)


def _on_project_error(request: Request, error: Exception) -> Response:
    status = status_of(cast(HabitusError, error))
    if status == HTTPStatus.UNAUTHORIZED and not request.url.path.startswith(FOR_PROGRAMS):
        return _to_login(request)
    answer = _answer(request, status, str(error))
    if isinstance(error, HttpError):
        answer.headers.update(error.headers)
    return answer


def _to_login(request: Request) -> Response:
    """Send a browser to the login; a part of a page (htmx) sends the whole page."""
    if "HX-Request" in request.headers:
        back = _page_of(request.headers.get("HX-Current-URL", ""))
        login = f"/login?{urlencode({'next': back})}"
        return Response(status_code=401, headers={"HX-Redirect": login})
    back = _page_of(str(request.url)) if request.method == "GET" else "/"
    return RedirectResponse(f"/login?{urlencode({'next': back})}", 303)


def _page_of(address: str) -> str:
    """Return path and query of an address of the console."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "/"
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _on_invalid(request: Request, error: Exception) -> Response:
    _, reason = reason_of(cast(RequestValidationError, error).errors())
    return _answer(request, 422, reason)


def _on_http_error(request: Request, error: Exception) -> Response:
    raised = cast(HTTPException, error)
    if raised.status_code == HTTPStatus.METHOD_NOT_ALLOWED and _is_page(request):
        return RedirectResponse(_page_above(request), 303)
    answer = _answer(request, raised.status_code, str(raised.detail))
    answer.headers.update(raised.headers or {})
    return answer


def _is_page(request: Request) -> bool:
    """Return whether a browser asks for a page, as one does again where a form was refused."""
    return request.method in READING and not request.url.path.startswith(FOR_PROGRAMS)


def _page_above(request: Request) -> str:
    """Return the nearest page above an address that only forms are sent to."""
    for above in PurePosixPath(request.url.path).parents:
        scope = {**request.scope, "method": "GET", "path": str(above)}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes):
            return str(above)
    return "/"


def _on_database_error(request: Request, error: Exception) -> Response:
    if isinstance(error, DataError):  # such as a zero byte, which PostgreSQL does not take
        return _answer(request, 422, "a value cannot be stored")
    if isinstance(error, OperationalError | InterfaceError | NoConnectionError):
        return _answer(request, 503, "the database does not answer; it is tried again")
    raise error
