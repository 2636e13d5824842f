"""What holds for every request, before any route: whom it is for, who sent it, and its size."""

import ipaddress
import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from habitus.web.answers import HttpError
from habitus.web.security import LARGE, READING
from habitus.web.server_log import LOGGER
from habitus.web.server_settings import ServerSettings, is_loopback

LARGEST_BODY = 1 << 20
"""Bytes of a request, but for uploads, which have a limit of their own."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; manifest-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Observe = Callable[[Scope, int, float], None]


class Guard:
    """Lets requests through to the application, and adds what every answer has.

    `observe` is called with each request, its status and its seconds.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, observe: Observe) -> None:
        self.app, self.settings, self.observe = app, settings, observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        cookies = scope.setdefault("state", {}).setdefault("cookies", {})
        started, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                for cookie in cookies.values():
                    headers.append("Set-Cookie", cookie)
            await send(message)

        try:
            check_request(scope, self.settings)
            await self.app(scope, _limited(scope, receive), answer)
        except HttpError as refusal:
            refused = JSONResponse({"detail": str(refusal)}, refusal.status)
            await refused(scope, receive, answer)
        except Exception as fault:  # of ours: it is logged, and not shown; uvicorn shows it too
            LOGGER.info("%s %s failed", scope["method"], scope["path"], exc_info=fault)
            if not status:
                failed = JSONResponse({"detail": "the console failed; its log says why"}, 500)
                await failed(scope, receive, answer)
            raise
        finally:
            self.observe(scope, status or 500, time.perf_counter() - started)


def check_request(scope: Scope, settings: ServerSettings) -> None:
    """Raise unless a request is for this console, from one of its pages or a program, and small.

    A page of another host whose name was made to lead to this machine (DNS rebinding) still sends
    its own name as Host; one that sends a form to us, its own as Origin.
    """
    headers = Headers(scope=scope)
    host = headers.get("Host", "")
    if not is_own_name(_name_of(host), settings):
        raise HttpError(
            403, "this console does not answer to that name: start it with its public address"
        )
    if scope["method"] not in READING:
        origin = headers.get("Origin")
        origins = {host.lower()}
        if settings.public_url is not None:
            origins.add(_place(settings.public_url))
        if (origin is not None and _place(origin) not in origins) or (
            headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        ):
            raise HttpError(403, "changes are taken from the console's own pages only")
    length = headers.get("Content-Length", "0")
    if scope["path"] not in LARGE and length.isdecimal() and int(length) > LARGEST_BODY:
        raise HttpError(413, f"at most {LARGEST_BODY} bytes are taken, found {length}")


def is_own_name(name: str, settings: ServerSettings) -> bool:
    """Return whether the console answers to a name.

    >>> from pathlib import Path
    >>> here = ServerSettings(Path("data"))
    >>> is_own_name("127.0.0.1", here), is_own_name("rebound.example.org", here)
    (True, False)
    """
    if is_loopback(name) or name == settings.host.lower():
        return True
    if settings.public_url is not None and name == urlsplit(settings.public_url).hostname:
        return True
    if settings.is_loopback:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        machine = socket.gethostname().lower()
        return name in {machine, machine.partition(".")[0], f"{machine}.local"}
    return True  # only names can be made to lead here


def _name_of(host: str) -> str:
    """Return the name in a Host header."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _place(origin: str) -> str:
    """Return host and port of an origin, as a Host header has them."""
    scheme, _, place = origin.lower().partition("://")
    default = {"http": ":80", "https": ":443"}.get(scheme, "")
    return place.rstrip("/").removesuffix(default) if default else place.rstrip("/")


def _limited(scope: Scope, receive: Receive) -> Receive:
    """Return what receives a body, and raises where it is too long, whatever its header said."""
    if scope["path"] in LARGE:
        return receive
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > LARGEST_BODY:
            raise HttpError(413, f"at most {LARGEST_BODY} bytes are taken")
        return message

    return limited
