"""Web push: notifications of a browser or phone, through the push service of its maker.

A channel is one browser. It gives an address of its push service and a key (RFC 8030), which
what is sent is encrypted with, so that the service cannot read it (RFC 8291). The console proves
by a key of its own that it is the one that the browser subscribed to (VAPID, RFC 8292).
"""

import asyncio
import json
import os
import socket
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import delete

from habitus.errors import InvalidInputError
from habitus.web.channels.notification import DeliveryError, Notification, Sender
from habitus.web.channels.webhook import checked_address, post
from habitus.web.database import Channel, Setting

if TYPE_CHECKING:
    from habitus.web.server import Console

SERVICES = (
    "fcm.googleapis.com",
    "push.services.mozilla.com",
    "notify.windows.com",
    "push.apple.com",
)
"""Push services of browsers, by the end of their names."""
KEY = "push"
"""Setting that holds the console's key."""
LASTING = 86_400
"""Seconds that a push service keeps what a browser that is off cannot be given."""
RECORD = 4096
MOST_TITLE, MOST_TEXT = 150, 600
"""Characters; a push service takes 4,096 bytes in all."""
GONE = (404, 410)
"""Answers of a push service that does not know the browser any more."""


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the host of the push service; the rest of its address is a secret."""
    address, *_ = _checked(settings)
    return {"url": f"{address.scheme}://{address.netloc.rpartition('@')[2]}/..."}


def is_known(endpoint: str) -> bool:
    """Return whether an address is of the push service of a browser that many use.

    >>> is_known("https://updates.push.services.mozilla.com/wpush/v2/gAAA")
    True
    >>> is_known("https://fcm.googleapis.com.example.org/"), is_known("http://fcm.googleapis.com/")
    (False, False)
    """
    try:
        address = urlsplit(endpoint)
        host, port = address.hostname or "", address.port
    except ValueError:
        return False
    at_service = any(host == name or host.endswith(f".{name}") for name in SERVICES)
    return address.scheme == "https" and at_service and port in (None, 443)


def _checked(settings: dict[str, Any]) -> tuple[SplitResult, bytes, bytes]:
    """Return where to send, the browser's public key and what only it and the console know."""
    address = checked_address({"url": settings.get("endpoint")}, "a push service", "endpoint")
    try:
        key, secret = (_decoded(settings[name]) for name in ("p256dh", "auth"))
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
        if len(secret) != 16:
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInputError(
            "a browser has the keys p256dh and auth, as its subscription gives them",
            parameter="p256dh",
        ) from None
    return address, key, secret


def private_key(console: "Console") -> ec.EllipticCurvePrivateKey:
    """Return the console's key, which browsers know it by; made where there is none."""
    with console.database.transaction() as session:
        setting = session.get(Setting, KEY)
        if setting is None:
            made = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
            setting = Setting(key=KEY, value={"key": console.vault.seal(made).decode()})
            session.add(setting)
        number = console.vault.open(setting.value["key"].encode())
    return ec.derive_private_key(number, ec.SECP256R1())


def public_key(console: "Console") -> str:
    """Return what a browser subscribes with (applicationServerKey)."""
    return _encoded(_point(private_key(console)))


class PushSender(Sender):
    """Sends to one browser."""

    def __init__(self, console: "Console", channel: Channel) -> None:
        self._console, self._channel = console, channel
        self._checked = _checked(console.vault.open(channel.secret_settings))
        self._key = private_key(console)

    async def send(self, notification: Notification) -> None:
        """Return once the push service took it; one that the browser has left is removed."""
        address, key, secret = self._checked
        body = json.dumps(self._payload(notification), ensure_ascii=False).encode()
        origin = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
        headers = {
            "Authorization": vapid_header(self._key, origin, self._subject(), time.time()),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(LASTING),
            "Urgency": "high" if notification.kind == "started" else "normal",
        }
        try:
            await asyncio.to_thread(post, address, encrypted(body, key, secret), headers)
        except DeliveryError as error:
            if error.status not in GONE or notification.kind == "test":
                raise
            await asyncio.to_thread(self._remove)

    def _payload(self, notification: Notification) -> dict[str, Any]:
        """Return what the service worker shows; links are of the console that it came from."""
        settings = self._console.settings
        links = {name: urlsplit(link).path for name, link in notification.links(settings).items()}
        lines = notification.text(settings).splitlines()
        text = "\n".join(line for line in lines if "://" not in line)
        has_picture = notification.picture(settings) is not None
        return {
            "title": notification.title()[:MOST_TITLE],
            "body": text[:MOST_TEXT],
            "tag": notification.key,
            "page": links["page"],
            "camera": notification.body["camera"]["id"] if "event" in notification.body else None,
            "image": links["thumbnail"] if has_picture else None,
            "time": notification.created,
        }

    def _subject(self) -> str:
        """Return whom a push service can write to about what is sent."""
        public = self._console.settings.public_url or ""
        return public if public.startswith("https:") else f"mailto:habitus@{socket.gethostname()}"

    def _remove(self) -> None:
        with self._console.database.transaction() as session:
            session.execute(delete(Channel).where(Channel.id == self._channel.id))
        self._console.bulletin.post(
            f"{self._channel.name} takes no notifications any more, and is removed: switch them on "
            "there again if they are wanted"
        )


def vapid_header(key: ec.EllipticCurvePrivateKey, origin: str, subject: str, now: float) -> str:
    """Return the header that a push service knows the console by (RFC 8292)."""
    claims = {"aud": origin, "exp": int(now) + LASTING // 2, "sub": subject}
    parts = ({"typ": "JWT", "alg": "ES256"}, claims)
    signed = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    signature = _encoded(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={_encoded(_point(key))}"


def encrypted(
    text: bytes,
    receiver: bytes,
    secret: bytes,
    *,
    key: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Return a text that only a browser can read, in one record (RFC 8291, section 3.4).

    Key and salt are for this text alone: they are random unless given, as by a test.
    """
    key, salt = key or ec.generate_private_key(ec.SECP256R1()), salt or os.urandom(16)
    sender = _point(key)
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver)
    shared = key.exchange(ec.ECDH(), point)
    combined = _derived(secret, shared, b"WebPush: info\0" + receiver + sender, 32)
    content_key = _derived(salt, combined, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(salt, combined, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD.to_bytes(4, "big") + bytes([len(sender)]) + sender
    return header + AESGCM(content_key).encrypt(nonce, text + b"\2", None)


def _derived(salt: bytes, key: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(key)


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
