"""Receivers of messages: a web server and a broker that fail on demand; rows of the outbox."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select

from habitus.web import channels
from habitus.web.database import Channel, EventRow, OutboxEntry, TroubleRow
from habitus.web.outbox import Kind, enqueue
from habitus.web.server import Console
from reference.certificates import make_certificate
from reference.processes import wait_until
from reference.streams import free_port

MOSQUITTO = Path("/usr/sbin/mosquitto")
START = 1_750_000_000.0


class Posted(NamedTuple):
    """A request that a receiver took."""

    path: str
    headers: dict[str, str]
    raw: bytes
    taken: bool = True
    """Whether the answer was that it took it."""

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw)
        return found

    @property
    def key(self) -> str:
        return self.headers["Idempotency-Key"]


class Receiver(ThreadingHTTPServer):
    """A receiver of webhooks: it answers with `status`, once `gate` is open."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Take)
        self.posted: list[Posted] = []
        self.status, self.location = 200, ""
        self.gate = threading.Event()
        self.gate.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"

    @property
    def keys(self) -> list[str]:
        return [posted.key for posted in self.posted]


class _Take(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        taken = self.server.status < 300
        self.server.posted.append(Posted(self.path, dict(self.headers), raw, taken))
        self.server.gate.wait()
        with contextlib.suppress(OSError):  # whoever asked is gone
            self.send_response(self.server.status)
            if self.server.location:
                self.send_header("Location", self.server.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    with Receiver(port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.gate.set()
            server.shutdown()
            thread.join()


class Broker:
    """Mosquitto on a free port, for one user with a password."""

    user, password = "habitus", "s3cret"

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        passwords = folder / "passwords"
        passwords.touch(0o600)
        subprocess.run(
            ["/usr/bin/mosquitto_passwd", "-b", passwords, self.user, self.password], check=True
        )
        self.configuration = folder / "mosquitto.conf"
        self.configuration.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous false\n"
            f"password_file {passwords}\nuser root\n"
        )

    def persist(self) -> None:
        """Forget nothing when it is stopped."""
        self.stop()
        with self.configuration.open("a") as file:
            file.write(f"persistence true\npersistence_location {self.folder}/\n")
        self.start()

    def encrypt(self) -> str:
        """Listen by TLS from now on; return the certificate to know it by."""
        self.stop()
        certificate, key = make_certificate(self.folder, "DNS:localhost")
        with self.configuration.open("a") as file:
            file.write(f"certfile {certificate}\nkeyfile {key}\n")
        self.start()
        return certificate.read_text()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [MOSQUITTO, "-c", self.configuration],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, "the broker listens")

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "username": self.user,
            "password": self.password,
        }


def add_channel(console: Console, kind: str, settings: dict[str, Any], **fields: Any) -> Channel:
    """Add a channel as an administrator does."""
    channel = Channel(
        **{
            "name": f"my {kind}",
            "kind": kind,
            "secret_settings": console.vault.seal(settings),
            "shown_settings": channels.check(kind, settings),
            "cameras": [],
            "enabled": True,
            **fields,
        }
    )
    with console.database.transaction() as session:
        session.add(channel)
    return channel


def an_event(number: int, camera: str = "north", **fields: Any) -> EventRow:
    """An alarm; each number is ten seconds later than the one before."""
    start = START + 10.0 * number
    return EventRow(
        **{
            "id": f"event{number}",
            "camera_id": camera,
            "start": start,
            "end": None,
            "peak": start + 1,
            "alarm": True,
            "at_half": False,
            "normality": -20.0,
            "threshold": -10.0,
            "probability": 1e-4,
            "rarity": "about once in 3 hours of normal footage",
            "cue": "direction",
            "explanation": "moves against the usual direction",
            "behaviour": 2,
            "n_bytes": 0,
            "clip_bytes": 0,
            "details": {},
            **fields,
        }
    )


def tell(
    console: Console, kind: Kind, *about: EventRow | TroubleRow, now: float | None = None
) -> None:
    """Write events or troubles, and what is to be told of them, in one transaction."""
    with console.database.transaction() as session:
        for one in about:
            merged = session.merge(one)
            session.flush()
            enqueue(session, kind, merged, now=now)


def deliverer_process(start: Any, console: Console) -> Any:
    """A process that tells the outbox, by the fixture `start`."""
    script = Path(__file__).with_name("telling_process.py")
    return start([sys.executable, script, console.settings.data])


def outbox(console: Console) -> list[OutboxEntry]:
    """All rows, in their order."""
    with console.database.session() as session:
        return list(session.scalars(select(OutboxEntry).order_by(OutboxEntry.id)))


def outcomes(console: Console) -> list[str]:
    return [entry.outcome for entry in outbox(console)]


def all_told(console: Console) -> bool:
    with console.database.session() as session:
        waiting = select(OutboxEntry.id).where(OutboxEntry.outcome != "sent").limit(1)
        return session.scalar(waiting) is None


def a_trouble(number: int = 0, camera: str = "north", **fields: Any) -> TroubleRow:
    values = {"kind": "lost", "start": START + number, "end": None, "reason": "no picture"}
    return TroubleRow(**{"camera_id": camera, "told": time.time(), **values, **fields})
