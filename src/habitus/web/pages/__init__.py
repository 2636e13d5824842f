"""The pages of the console: `add_pages` puts them into the web application."""

from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles

from habitus.web.pages import camera_pages, event_pages, login_page, settings_page, wall
from habitus.web.pages.rendering import STATIC

ROUTERS = (
    wall.router,
    camera_pages.router,
    event_pages.router,
    settings_page.router,
    login_page.router,
)


class Files(StaticFiles):
    """Static files that a browser keeps, and asks about before it uses them again."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file."""
        answer = super().file_response(*args, **kwargs)
        answer.headers["Cache-Control"] = "no-cache"
        return answer


def add_pages(app: FastAPI) -> None:
    """Add all pages, and the files that they need, to an application."""
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/static", Files(directory=STATIC), name="static")
