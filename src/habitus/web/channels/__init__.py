"""Where events are sent: one module for each kind of channel.

A kind has settings, a plain dictionary that is encrypted at rest, and a sender:

- `webhook`: a POST of JSON. Settings: url, and optionally secret and picture.
- `mqtt`: a broker, with Home Assistant discovery. Settings: host, and optionally port, username,
  password, tls, ca, topic, discovery.
- `mail`: a mail server. Settings: host, from, to, and optionally port, security, username,
  password.
- `push`: a browser. Settings: endpoint, p256dh, auth, as it gives them.
- `services`: whatever Apprise knows; its kind is "apprise". Settings: url.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from habitus.errors import InvalidInputError
from habitus.web.channels import mail, mqtt, push, services, webhook
from habitus.web.channels.notification import DeliveryError, Notification, Sender
from habitus.web.database import Channel

if TYPE_CHECKING:
    from habitus.web.server import Console

__all__ = ["KINDS", "DeliveryError", "Notification", "Sender", "check", "open_sender", "send_test"]

Shown = Callable[[dict[str, Any]], dict[str, Any]]
KINDS: dict[str, tuple[Shown, "Callable[[Console, Channel], Sender]"]] = {
    "webhook": (webhook.shown, webhook.WebhookSender),
    "mqtt": (mqtt.shown, mqtt.MqttSender),
    "mail": (mail.shown, mail.MailSender),
    "push": (push.shown, push.PushSender),
    "apprise": (services.shown, services.ServiceSender),
}
"""What checks the settings of a kind and shows them, and what sends."""


def check(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a channel as they may be shown: without secrets.

    Only an administrator's settings may come here: a channel reaches any host, and some of
    Apprise's services are programs of this machine.

    >>> check("webhook", {"url": "https://hooks.example.org/in/hdk3Kd", "secret": "s"})
    {'url': 'https://hooks.example.org/...', 'signed': True}
    """
    for name, value in settings.items():
        if isinstance(value, str) and not "".join(value.splitlines()).isprintable():
            raise InvalidInputError(
                f"{name[:40]} has characters that cannot be shown", parameter=name[:40]
            )
    return KINDS[kind][0](settings)


def open_sender(console: "Console", channel: Channel) -> Sender:
    """Return what sends the notifications of a channel; to be used within one event loop."""
    return KINDS[channel.kind][1](console, channel)


def send_test(console: "Console", channel: Channel) -> None:
    """Send a test message now, not through the outbox; raise `DeliveryError` if it failed."""

    async def send_once(sender: Sender) -> None:
        try:
            key = f"test/{secrets.token_hex(8)}"
            await sender.send(Notification(key, "test", time.time(), {}))
        finally:
            await sender.close()

    asyncio.run(send_once(open_sender(console, channel)))
