"""Logging in and out."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from habitus.web.http_errors import NotLoggedInError, TooManyAttemptsError
from habitus.web.pages.rendering import bare_page, go
from habitus.web.security import Anybody, Viewer, log_in, log_out

router = APIRouter()


@router.get("/login")
def login(request: Request, csrf: Anybody, next: str = "/") -> HTMLResponse:
    """Ask for name and password."""
    return bare_page("login.html", csrf=csrf, next=_local(next), name="", problem="")


@router.post("/login")
def try_login(
    request: Request,
    csrf: Anybody,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Check name and password, and go on to the page that was wanted."""
    try:
        log_in(request, name, password)
    except (NotLoggedInError, TooManyAttemptsError) as error:
        answer = bare_page(
            "login.html", error.status, csrf=csrf, next=_local(next), name=name, problem=str(error)
        )
        if isinstance(error, TooManyAttemptsError):
            answer.headers.update(error.headers)
        return answer
    return RedirectResponse(_local(next), 303)


@router.post("/logout")
def logout(request: Request, actor: Viewer) -> Response:
    """End the login."""
    log_out(request)
    return go("/login")


def _local(address: str) -> str:
    r"""Return an address of this console; the wall for any other.

    Examples
    --------
    >>> _local("/events?camera=a"), _local("//example.org"), _local("/\\example.org")
    ('/events?camera=a', '/', '/')
    """
    safe = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if safe and address.isprintable() and "\\" not in address else "/"
