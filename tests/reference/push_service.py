"""A push service and a browser of its own: it checks who sends (VAPID), and reads what is sent."""

import contextlib
import hashlib
import hmac
import json
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP256R1()


def b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def hkdf(salt: bytes, key: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, of at most one block, by its definition."""
    extracted = hmac.new(salt, key, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\1", hashlib.sha256).digest()[:length]


class PushService(ThreadingHTTPServer):
    """Takes messages of one console for one browser, and answers with `status`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.key = ec.generate_private_key(CURVE)
        self.secret = b"sixteen bytes it"
        self.server_key = ""
        """Public key that the browser subscribed with; any until one is given."""
        self.status = 201
        self.shown: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.taken: list[float] = []
        """When each of them came."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/push/{'x' * 40}"

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def settings(self) -> dict[str, Any]:
        keys = {"p256dh": b64(self.public), "auth": b64(self.secret)}
        return {"endpoint": self.endpoint, **keys}

    def check_sender(self, authorization: str) -> None:
        """Fail unless a header is signed by the key that was subscribed with (RFC 8292)."""
        scheme, _, rest = authorization.partition(" ")
        assert scheme == "vapid"
        fields = dict(field.strip().split("=", 1) for field in rest.split(","))
        assert self.server_key in ("", fields["k"])
        head, claims, signature = fields["t"].split(".")
        assert json.loads(unb64(head)) == {"typ": "JWT", "alg": "ES256"}
        said = json.loads(unb64(claims))
        assert said["aud"] == f"http://127.0.0.1:{self.server_port}"
        assert time.time() < said["exp"] <= time.time() + 86400
        assert said["sub"].startswith(("mailto:", "https://"))
        raw = unb64(signature)
        r, s = (int.from_bytes(raw[k : k + 32], "big") for k in (0, 32))
        public = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, unb64(fields["k"]))
        signed = f"{head}.{claims}".encode()
        public.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))

    def read(self, body: bytes) -> dict[str, Any]:
        """Decrypt a message as a browser does (RFC 8291)."""
        assert len(body) <= 4096
        salt, length = body[:16], body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        point = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, sender)
        shared = self.key.exchange(ec.ECDH(), point)
        key = hkdf(self.secret, shared, b"WebPush: info\0" + self.public + sender, 32)
        content_key = hkdf(salt, key, b"Content-Encoding: aes128gcm\0", 16)
        nonce = hkdf(salt, key, b"Content-Encoding: nonce\0", 12)
        text = AESGCM(content_key).decrypt(nonce, sealed, None)
        assert text[-1:] == b"\2"
        found: dict[str, Any] = json.loads(text[:-1])
        return found


class _Take(BaseHTTPRequestHandler):
    server: PushService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.status
        try:
            self.server.check_sender(self.headers["Authorization"])
            assert self.headers["Content-Encoding"] == "aes128gcm"
            assert int(self.headers["TTL"]) >= 0
            news = self.server.read(body)
            if status < 300:
                self.server.headers.append(dict(self.headers))
                self.server.taken.append(time.time())
                self.server.shown.append(news)
        except Exception:  # whatever is wrong with it, it is refused
            status = 403
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def push_service() -> Iterator[PushService]:
    with PushService() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
