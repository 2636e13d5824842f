"""The web application: all routes of the console."""

from typing import cast
from urllib.parse import urlencode, urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import (
    DataError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as NoConnectionError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

import habitus
from habitus.errors import HabitusError
from habitus.web.api import add_api
from habitus.web.api.prometheus import RequestMetrics
from habitus.web.guard import Guard
from habitus.web.http_errors import HttpError, NotLoggedInError
from habitus.web.pages import add_pages
from habitus.web.pages.rendering import error_page
from habitus.web.security import Attempts
from habitus.web.server import Console

FOR_PROGRAMS = ("/api", "/metrics", "/healthz")
"""Where errors are JSON; pages elsewhere."""


def create_app(console: Console) -> FastAPI:
    """Return the application of a console."""
    app = FastAPI(
        title="habitus",
        version=habitus.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.console = console
    app.state.attempts = Attempts()
    app.state.measured = measured = RequestMetrics(console)
    app.add_middleware(Guard, settings=console.settings, observe=measured.observe)
    app.add_exception_handler(HabitusError, _on_project_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(SQLAlchemyError, _on_database_error)
    add_api(app)
    add_pages(app)
    return app


def is_for_programs(request: Request) -> bool:
    """Return whether a program asks, so that an error is told as JSON."""
    return request.url.path.startswith(FOR_PROGRAMS)


def error_answer(request: Request, status: int, detail: str) -> Response:
    """Return how an error is told to whoever asks."""
    if is_for_programs(request):
        return JSONResponse({"detail": detail}, status)
    return error_page(status, detail)


def _on_project_error(request: Request, error: Exception) -> Response:
    if isinstance(error, NotLoggedInError) and not is_for_programs(request):
        return _to_login(request)
    status = error.status if isinstance(error, HttpError) else 422
    answer = error_answer(request, status, str(error))
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
    """Name the first part that does not fit; never what was sent, which may be a password."""
    first = cast(RequestValidationError, error).errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    reason = str(first["msg"])
    return error_answer(
        request, 422, f"{'.'.join(place) or 'the request'}: {reason[:1].lower()}{reason[1:]}"
    )


def _on_http_error(request: Request, error: Exception) -> Response:
    found = cast(HTTPException, error)
    answer = error_answer(request, found.status_code, str(found.detail))
    answer.headers.update(found.headers or {})
    return answer


def _on_database_error(request: Request, error: Exception) -> Response:
    if isinstance(error, DataError):  # such as a zero byte, which PostgreSQL does not take
        return error_answer(request, 422, "a value cannot be stored")
    if isinstance(error, OperationalError | InterfaceError | NoConnectionError):
        return error_answer(request, 503, "the database does not answer; it is tried again")
    raise error
