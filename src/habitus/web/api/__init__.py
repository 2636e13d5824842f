"""The API for programs: `add_api` puts it into the web application.

- `camera_routes`, `event_routes`, `admin_routes`: what there is, and how it is changed;
- `news_stream`: news as server-sent events;
- `prometheus`: figures, and whether everything works.

`habitus.web.answers` has what is taken and given.
"""

from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse

from habitus.web.answers import Problem
from habitus.web.api import (
    admin_routes,
    camera_routes,
    event_routes,
    news_stream,
    prometheus,
)
from habitus.web.security import Viewer

__all__ = ["add_api"]

DESCRIPTION = """
Send a token of the settings page as `Authorization: Bearer habitus_...`. Times are seconds since
the epoch (UTC). Whatever is refused has a `detail`, one line for a person.
"""
TAGS = [
    {"name": "cameras", "description": "What is watched, and how."},
    {"name": "events", "description": "What was unusual, and what people say of it."},
    {"name": "channels", "description": "Where events are told."},
    {"name": "users", "description": "Who may do what."},
    {"name": "console", "description": "Settings, health, and who did what."},
]
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in {
        401: "Nobody knows who asks.",
        403: "Who asks may not do that.",
        404: "There is no such thing.",
        409: "It does not go together with what is there.",
        413: "More bytes than are taken.",
        422: "A value that cannot be used.",
        503: "The database does not answer.",
    }.items()
}

router = APIRouter(include_in_schema=False)


@router.get("/api/openapi.json")
def show_schema(request: Request, actor: Viewer) -> dict[str, Any]:
    """Show the description of the API (OpenAPI)."""
    found: dict[str, Any] = request.app.openapi()
    return found


@router.get("/api", response_class=HTMLResponse)
def show_overview(request: Request, actor: Viewer) -> HTMLResponse:
    """Show a list of all that the API can do."""
    schema = request.app.openapi()
    rows = "".join(
        f"<tr><td><code>{method.upper()}</code></td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(operation.get('description', ''))}</td></tr>"
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    )
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>habitus: API</title>'
        '<link rel="stylesheet" href="/static/style.css"><main><h1>API</h1>'
        f'<p>{escape(DESCRIPTION)}</p><p>Everything in full: <a href="/api/openapi.json">'
        f"OpenAPI</a>.</p><table><tbody>{rows}</tbody></table></main></html>"
    )


def add_api(app: FastAPI) -> None:
    """Add the API to an application."""
    app.description, app.openapi_tags = DESCRIPTION, TAGS
    for routes in (camera_routes, event_routes, admin_routes, news_stream, prometheus):
        app.include_router(routes.router, responses=PROBLEMS)
    app.include_router(router)
