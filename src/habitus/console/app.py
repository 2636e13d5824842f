"""The web application: all routes of the console."""

from typing import cast

from fastapi import FastAPI, Request

from habitus.console.server import Console


def console_of(request: Request) -> Console:
    """Return the console that a request is for; a dependency of the routes."""
    return cast(Console, request.app.state.console)


def create_app(console: Console) -> FastAPI:
    """Return the application of a console."""
    app = FastAPI(title="habitus", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.console = console
    return app
