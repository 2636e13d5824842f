"""E-mail by a mail server (SMTP), from its host, user and password in fields of their own.

A message that is sent again, as after a crash, has the same Message-ID.
"""

import hashlib
import smtplib
import ssl
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, getaddresses
from typing import TYPE_CHECKING, Any

from habitus.errors import InvalidInputError
from habitus.web.channels.destinations import check_destination, checked_host, checked_port
from habitus.web.channels.notification import Notification
from habitus.web.channels.services import ThreadSender
from habitus.web.database import Channel

if TYPE_CHECKING:
    from habitus.web.server import Console

PORTS = {"starttls": 587, "tls": 465, "none": 25}
"""By how a connection is encrypted: from a command on, from its start, or not."""
TIMEOUT = 20.0
"""Seconds that a server has for each answer."""


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without the password."""
    whole = _whole(settings)
    return whole | {"password": bool(whole["password"]), "to": ", ".join(whole["to"])}


def _whole(settings: dict[str, Any]) -> dict[str, Any]:
    """Return all settings, checked."""
    security = settings.get("security") or "starttls"
    if security not in PORTS:
        raise InvalidInputError(
            f"security of a mail server must be {', '.join(PORTS)}, found {security!r}",
            parameter="security",
        )
    texts = {name: settings.get(name) or "" for name in ("username", "password")}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InvalidInputError(f"{name} of a mail server must be a text", parameter=name)
    if texts["password"] and not texts["username"]:
        raise InvalidInputError("a password needs its user", parameter="username")
    sender, *others = _addresses(settings, "from")
    if others:
        raise InvalidInputError("mail is from one address", parameter="from")
    return {
        "host": checked_host(settings.get("host"), "mail server"),
        "port": checked_port(settings.get("port") or PORTS[security], "mail server"),
        "security": security,
        **texts,
        "from": sender,
        "to": _addresses(settings, "to"),
    }


def _addresses(settings: dict[str, Any], name: str) -> list[str]:
    """Return the addresses of a field, which are divided by commas."""
    text = settings.get(name)
    found = getaddresses([text]) if isinstance(text, str) and text.isprintable() else []
    try:
        if not found or not all(Address(addr_spec=spec).domain for _, spec in found):
            raise ValueError
        return [str(Address(words, addr_spec=spec)) for words, spec in found]
    except (ValueError, HeaderParseError, IndexError):
        raise InvalidInputError(
            f"{name} must be an address of e-mail, such as me@example.org", parameter=name
        ) from None


class MailSender(ThreadSender):
    """Sends by one mail server, with a connection for each message."""

    def __init__(self, console: "Console", channel: Channel) -> None:
        super().__init__(console)
        self._channel, self._settings = channel, _whole(console.vault.open(channel.secret_settings))

    def notify(self, notification: Notification) -> str:
        """Return why it could not be sent; nothing if it was."""
        try:
            with self._connection() as server:
                if server.sock is not None:
                    check_destination(server.sock.getpeername()[0], "host")
                if self._settings["security"] == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if self._settings["username"]:
                    server.login(self._settings["username"], self._settings["password"])
                refused = server.send_message(self._message(notification))
        except smtplib.SMTPRecipientsRefused as error:
            return _refusals(error.recipients)
        except smtplib.SMTPResponseException as error:
            return f"the server answered {error.smtp_code} {_line(error.smtp_error)}"
        except (OSError, InvalidInputError, UnicodeError) as error:
            return str(error) or type(error).__name__
        if refused:
            self._console.bulletin.post(f"{self._channel.name}: {_refusals(refused)}")
        return ""

    def _connection(self) -> smtplib.SMTP:
        host, port = self._settings["host"], self._settings["port"]
        check_destination(host, "host", look_up=True)
        if self._settings["security"] == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT, context=context)
        return smtplib.SMTP(host, port, timeout=TIMEOUT)

    def _message(self, notification: Notification) -> EmailMessage:
        settings = self._console.settings
        message = EmailMessage()
        message["Subject"] = notification.title()
        message["From"], message["To"] = self._settings["from"], ", ".join(self._settings["to"])
        message["Date"] = formatdate(notification.created, localtime=True)
        name = hashlib.sha256(f"{self._channel.id} {notification.key}".encode()).hexdigest()[:32]
        domain = self._settings["from"].rpartition("@")[2].rstrip(">")
        message["Message-ID"] = f"<habitus.{name}@{domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(notification.text(settings))
        if picture := notification.picture(settings):
            content = picture.read_bytes()
            message.add_attachment(content, "image", "jpeg", filename=picture.name)
        return message


def _refusals(recipients: dict[str, tuple[int, bytes]]) -> str:
    said = (f"{address} ({code} {_line(text)})" for address, (code, text) in recipients.items())
    return f"the server refused {', '.join(said)}"


def _line(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:200]
