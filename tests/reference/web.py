"""Web servers on addresses of this machine: they serve bytes, lead elsewhere, and keep count."""

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Two hosts that are not the same, both here.
HERE, THERE = "127.0.0.1", "127.0.0.2"


class Site(ThreadingHTTPServer):
    """Pages by path: bytes, or the address that a page has moved to; others are not found."""

    daemon_threads = True

    def __init__(self, host: str) -> None:
        super().__init__((host, 0), _Answer)
        self.pages: dict[str, bytes | str] = {}
        self.asked: list[str] = []
        self.users: list[str | None] = []

    def address(self, path: str) -> str:
        return f"http://{self.server_address[0]}:{self.server_port}{path}"


class _Answer(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.users.append(self.headers.get("Authorization"))
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
        elif isinstance(page, str):
            self.send_response(302)
            self.send_header("Location", page)
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            with contextlib.suppress(OSError):  # whoever asked has heard enough
                self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def site(host: str) -> Iterator[Site]:
    with Site(host) as server, _running(server):
        yield server


@contextlib.contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def playlist(*addresses: object) -> bytes:
    """An HLS playlist of a recording in parts of two seconds."""
    parts = "".join(f"#EXTINF:2.0,\n{address}\n" for address in addresses)
    head = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n"
    return f"{head}{parts}#EXT-X-ENDLIST\n".encode()


def variants(address: object) -> bytes:
    """An HLS playlist of another one."""
    return f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{address}\n".encode()


class RtspServer(socketserver.ThreadingTCPServer):
    """A camera that has moved to another address, or has nothing."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, host: str, moved_to: str) -> None:
        super().__init__((host, 0), _RtspAnswer)
        self.port, self.moved_to = self.server_address[1], moved_to
        self.asked: list[str] = []


class _RtspAnswer(socketserver.StreamRequestHandler):
    server: RtspServer

    def handle(self) -> None:
        while lines := self._lines():
            method = lines[0].split()[0]
            self.server.asked.append(method)
            number = next(line for line in lines if line.startswith("CSeq"))
            answer = "200 OK" if method == "OPTIONS" else "404 Not Found"
            if method == "DESCRIBE" and self.server.moved_to:
                answer = f"302 Moved\r\nLocation: {self.server.moved_to}"
            self.wfile.write(f"RTSP/1.0 {answer}\r\n{number}\r\n".encode())

    def _lines(self) -> list[str]:
        lines: list[str] = []
        while (line := self.rfile.readline().decode()).strip():
            lines.append(line)
        return lines


@contextlib.contextmanager
def rtsp_redirection(host: str, moved_to: str) -> Iterator[RtspServer]:
    with RtspServer(host, moved_to) as server, _running(server):
        yield server
