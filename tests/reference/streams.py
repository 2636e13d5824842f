"""Cameras of sorts: real servers, in processes of their own, that can be cut and come back."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from reference.processes import LONG
from reference.system import RTSP_SERVER, needs

HERE = Path(__file__).parent
# The one that Debian's python3-gi belongs to.
SYSTEM_PYTHON = "/usr/bin/python3"
MJPEG_HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=--next\r\n\r\n"
MJPEG_PART = b"--next\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def playing(
    port: int, path: Path, *, protocol: str = "tcp", fps: float = 25, stall: int = 0
) -> Iterator[subprocess.Popen[str]]:
    """A server of a transport stream, killed at the end; see `stream_server`."""
    arguments = [HERE / "stream_server.py", port, path, protocol, fps, stall]
    with _serving([sys.executable, *map(str, arguments)]) as process:
        yield process


@contextlib.contextmanager
def motion_jpeg(pictures: Iterable[bytes], *, fps: float) -> Iterator[str]:
    """A server of JPEG pictures over HTTP without any times, once; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def play() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(MJPEG_HEAD)
                start = time.monotonic()
                for n, picture in enumerate(pictures):
                    time.sleep(max(0.0, start + n / fps - time.monotonic()))
                    connection.sendall(MJPEG_PART % len(picture) + picture + b"\r\n")

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/camera.mjpg"


@contextlib.contextmanager
def rtsp(port: int, path: Path) -> Iterator[str]:
    """GStreamer's RTSP server, killed at the end; gives the address of its camera."""
    needs(RTSP_SERVER)
    with _serving([SYSTEM_PYTHON, str(HERE / "rtsp_server.py"), str(port), str(path)]):
        yield f"rtsp://127.0.0.1:{port}/camera"


class Silent(NamedTuple):
    """An address that takes connections and says nothing."""

    address: str
    server: socket.socket

    def wait(self) -> None:
        """Until somebody has connected."""
        self.server.accept()[0].detach()  # never closed: the silence lasts


@contextlib.contextmanager
def silent() -> Iterator[Silent]:
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        server.settimeout(60)
        yield Silent(f"tcp://127.0.0.1:{server.getsockname()[1]}", server)


@contextlib.contextmanager
def _serving(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            _, errors = process.communicate(timeout=LONG)
            last = errors.strip().splitlines()[-1:]
            raise AssertionError(f"the server did not start: {last}")
        yield process
    finally:
        process.kill()
        process.communicate()
