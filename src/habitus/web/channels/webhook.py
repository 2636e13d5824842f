"""Webhook: a POST of JSON, signed if there is a secret.

A receiver that keeps the header Idempotency-Key of what it took can drop what is sent again
after a crash. The signature is of "<X-Habitus-Timestamp>.<body>", so that neither can be
altered, and an old message not be sent again by somebody else.
"""

import asyncio
import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from base64 import b64encode
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from habitus.errors import InvalidInputError
from habitus.web.channels.destinations import check_destination, is_on
from habitus.web.channels.notification import DeliveryError, Notification, Sender
from habitus.web.database import Channel

if TYPE_CHECKING:
    from habitus.web.server import Console

TIMEOUT = 10.0
"""Seconds from the first byte of a message to the last one of its answer."""
MOST_ANSWER = 1 << 16
"""Bytes of an answer that are looked at."""


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without secrets: of the address only the host, as paths are keys too."""
    address = checked_address(settings)
    if not isinstance(settings.get("secret", ""), str):
        raise InvalidInputError("the secret of a webhook must be a text", parameter="secret")
    host = f"[{address.hostname}]" if ":" in str(address.hostname) else address.hostname
    port = f":{address.port}" if address.port else ""
    hidden = "/..." if address.path.strip("/") or address.query else ""
    url = f"{address.scheme}://{host}{port}{hidden}"
    picture = {"picture": True} if is_on(settings, "picture") else {}
    return {"url": url, "signed": bool(settings.get("secret")), **picture}


def checked_address(
    settings: dict[str, Any], of: str = "a webhook", parameter: str = "url"
) -> SplitResult:
    """Return the address to send to; raise unless it is of HTTP, and may be sent to."""
    url = settings.get("url")
    try:
        address = urlsplit(url if isinstance(url, str) else "")
        _ = address.port
    except ValueError:
        address = urlsplit("")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise InvalidInputError(
            f"the address of {of} must be http://... or https://...", parameter=parameter
        )
    if any(ord(letter) <= 32 or ord(letter) == 127 for letter in str(url)):
        raise InvalidInputError(
            f"the address of {of} must not have spaces: write them as %20", parameter=parameter
        )
    check_destination(address.hostname, parameter)
    return address


class WebhookSender(Sender):
    """Sends to one address."""

    def __init__(self, console: "Console", channel: Channel) -> None:
        self._console = console
        self._settings: dict[str, Any] = console.vault.open(channel.secret_settings)

    async def send(self, notification: Notification) -> None:
        """Return once the receiver took it, by an answer of 200 to 299."""
        settings = self._console.settings
        message = notification.to_json(settings)
        if is_on(self._settings, "picture") and (picture := notification.picture(settings)):
            message["picture"] = b64encode(picture.read_bytes()).decode()
        body = json.dumps(message, allow_nan=False).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "habitus",
            "Idempotency-Key": notification.key,
            "X-Habitus-Attempt": str(notification.attempt + notification.again),
            **signature_headers(self._settings.get("secret", ""), body, time.time()),
        }
        await asyncio.to_thread(post, checked_address(self._settings), body, headers)


def signature_headers(secret: str, body: bytes, now: float) -> dict[str, str]:
    """Return the headers that a receiver knows the sender by; none without a secret.

    >>> signature_headers("key", b"{}", 1700000000.5)["X-Habitus-Timestamp"]
    '1700000000'
    """
    if not secret:
        return {}
    timestamp = str(int(now))
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return {
        "X-Habitus-Timestamp": timestamp,
        "X-Habitus-Signature": f"sha256={digest.hexdigest()}",
    }


def post(address: SplitResult, body: bytes, headers: dict[str, str]) -> None:
    """Send a body; raise `DeliveryError` unless it is taken, by an answer of 200 to 299."""
    connection = _connection(address)
    until = time.monotonic() + TIMEOUT
    ended = threading.Timer(TIMEOUT, _cut, (connection,))
    ended.start()
    try:
        _check_peer(connection)
        connection.request("POST", _target(address), body, {**_user(address), **headers})
        answer = connection.getresponse()
        answer.read(MOST_ANSWER)
    except (OSError, HTTPException, InvalidInputError, UnicodeError) as error:
        late = f"no answer within {TIMEOUT:g} s" if time.monotonic() >= until else ""
        raise DeliveryError(late or str(error) or type(error).__name__) from error
    finally:
        ended.cancel()
        connection.close()
    if not 200 <= answer.status < 300:
        moved = "; it is not followed elsewhere" if 300 <= answer.status < 400 else ""
        raise DeliveryError(f"answered {answer.status} {answer.reason}{moved}", answer.status)


def _connection(address: SplitResult) -> HTTPConnection:
    host = str(address.hostname)
    if address.scheme == "http":
        return HTTPConnection(host, address.port, timeout=TIMEOUT)
    context = ssl.create_default_context()
    return HTTPSConnection(host, address.port, timeout=TIMEOUT, context=context)


def _check_peer(connection: HTTPConnection) -> None:
    """Connect, and raise if a name led to an address that is refused; nothing was said yet."""
    connection.connect()
    check_destination(connection.sock.getpeername()[0], "url")


def _cut(connection: HTTPConnection) -> None:
    """End a conversation that takes too long, wherever it is."""
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _target(address: SplitResult) -> str:
    return (address.path or "/") + (f"?{address.query}" if address.query else "")


def _user(address: SplitResult) -> dict[str, str]:
    if address.username is None:
        return {}
    pair = f"{unquote(address.username)}:{unquote(address.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
