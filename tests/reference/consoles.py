"""Parts of consoles to test with: cameras, events, a server of PostgreSQL."""

import json
import os
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import habitus
from habitus.schema import decoded
from habitus.site.journal import SiteEvent
from habitus.web.database import OF_EVENT, CameraRow
from habitus.web.server import Console

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
START = 1_750_000_000.0
"""A moment in June 2025, in seconds since the epoch."""
EVENT = habitus.Event(
    source="camera",
    start=0.0,
    end=1.0,
    peak=0.0,
    normality=-12.0,
    threshold=-9.0,
    behaviour=2,
    expected=(0.5, 0.5),
    boxes=(),
    words=(),
    surprise=20.0,
    misfit=15.0,
    shift=5.0,
    explanation="on the left: moving to the left",
    probability=1e-5,
    rarity="about once in 3 hours of normal footage",
    cue="direction, scan",
)


def event_json(**fields: Any) -> dict[str, Any]:
    """An event as plain values, as a file of JSON has them; its peak is its start unless given."""
    fields = {"peak": fields.get("start", EVENT.peak)} | fields
    found: dict[str, Any] = json.loads(replace(EVENT, **fields).line())
    return found


def entry(event_id: str = "a1", *, event: dict[str, Any] | None = None, **fields: Any) -> SiteEvent:
    """What a camera's process says of an event, which has ended unless `end` is None."""
    of_event = {"alarm": True} | {name: fields.pop(name) for name in OF_EVENT if name in fields}
    seen = replace(decoded(json.dumps(event or event_json()), habitus.Event), **of_event)
    usual = {"start": START, "end": START + 1.0, "peak": START}
    usual |= {"at_half": seen.alarm and seen.normality < -11.0}
    usual |= {"details": None if "clip" in fields else seen}
    return SiteEvent(id=event_id, camera_id="north", **(usual | fields))


def add_camera(console: Console, camera_id: str = "north", **fields: Any) -> CameraRow:
    """Add a camera to a console."""
    address = fields.pop("address", "rtsp://192.0.2.1/main")
    defaults = {
        "name": camera_id.capitalize(),
        "kind": "stream",
        "secret_address": console.vault.seal(address),
        "shown_address": address,
        "alerts_per_day": 144.0,  # what minutes of footage can tell
        "learn_days": 7,
        "zones": [],
        "options": {},
        "enabled": True,
        "created": START,
        "state": "connecting",
        "since": START,
        "reason": "",
    }
    camera = CameraRow(id=camera_id, **(defaults | fields))
    with console.database.transaction() as session:
        session.add(camera)
    return camera


def add_playing(console: Console, video: Path, model: Path, *, speed: float = 20.0) -> str:
    """Add a camera that plays a file for ever, with a model; return its id."""
    folder = console.settings.camera_folder("north")
    folder.mkdir(parents=True)
    shutil.copy(model, folder / "model-1.habitus")
    options = {"speed": speed, "local": True}
    add_camera(
        console,
        address=str(video),
        kind="playback",
        options=options,
        model="model-1.habitus",
        alerts_per_day=500.0,  # what goes wrong is an alarm in each turn
    )
    return "north"


class PostgresServer:
    """A server of Debian's PostgreSQL on a free port of this machine, with a password or none."""

    def __init__(self, folder: Path, *, user: str = "habitus", password: str = "") -> None:
        if not POSTGRES:
            pytest.skip("PostgreSQL is not installed")
        self.folder, self.bin = folder / "data", POSTGRES[-1]
        # It refuses to be run by root.
        self.user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        known = ["-A", "trust"]
        if password:
            (file := folder / "password").write_text(password)
            known = ["-A", "scram-sha-256", "--pwfile", str(file)]
        if self.user:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, "postgres")
        self.port = free_port()
        self._run("initdb", "-U", user, *known, "-E", "UTF8", "--locale=C", "-N")
        self.start()

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            [*self.user, self.bin / program, "-D", self.folder, *options],
            check=True,
            capture_output=True,
            cwd="/",
        )

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-w", "-t", "60", "-l", str(log), "-o", options, "start")

    def stop(self) -> None:
        """Stop at once, as a machine that is switched off."""
        self._run("pg_ctl", "-w", "-t", "60", "-m", "immediate", "stop")

    def url(self, name: str = "postgres") -> str:
        return f"postgresql+psycopg://habitus@127.0.0.1:{self.port}/{name}"


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
