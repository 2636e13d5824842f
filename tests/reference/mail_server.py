"""A mail server that keeps what it takes, and fails on demand."""

import asyncio
import email
import email.policy
import threading
import time
from email.message import EmailMessage
from typing import Any
from urllib.parse import quote

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from reference.streams import free_port

USER, PASSWORD = "user", "pass%word"


class Post:
    """A mail server of one user; it refuses all mail while `full`."""

    def __init__(self, **options: Any) -> None:
        self.mail: list[EmailMessage] = []
        self.taken: list[float] = []
        """When each of them came."""
        self.full = False
        self.gate = threading.Event()
        self.gate.set()
        self.port = free_port()
        self._controller = Controller(
            self,
            hostname="127.0.0.1",
            port=self.port,
            authenticator=self._authenticate,
            **{"auth_required": True, "auth_require_tls": False, **options},
        )
        self._controller.start()

    def _authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _how: str, data: Any
    ) -> Any:
        known = isinstance(data, LoginPassword) and data.password == b"pass%word"
        return AuthResult(success=known, handled=False)

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        if self.full:
            return "452 the mailbox is full"
        while not self.gate.is_set():
            await asyncio.sleep(0.01)
        content = envelope.content
        assert isinstance(content, bytes)
        found = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(found, EmailMessage)
        self.taken.append(time.time())
        self.mail.append(found)
        return "250 taken"

    async def handle_RCPT(
        self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if address.startswith("nobody"):
            return "550 there is no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    def settings(self, **changes: Any) -> dict[str, Any]:
        """Settings of a channel that is no address of Apprise."""
        server = {"host": "localhost", "port": self.port, "security": "none"}
        people = {"from": "Habitus <habitus@example.org>", "to": "me@example.org, you@example.org"}
        return {**server, "username": USER, "password": PASSWORD, **people, **changes}

    def url(self, password: str = PASSWORD) -> str:
        return (
            f"mailto://{USER}:{quote(password)}@127.0.0.1:{self.port}?smtp=127.0.0.1&mode=insecure"
            "&from=habitus@example.org&to=me@example.org"
        )

    def close(self) -> None:
        self.gate.set()
        self._controller.stop()
