"""A camera of sorts: plays a transport stream in real time to everybody who connects.

PORT FILE PROTOCOL FPS STALL. PROTOCOL is tcp or http; after STALL frames (0: never) it falls silent
and keeps the connection. Says "ready" once it listens, and for every connection when its first
frame was sent, by the monotonic clock. Nothing but the standard library: it starts at once.
"""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

PACKET = 188
VIDEO = 0x100
"""The number that FFmpeg gives to the first stream of a transport stream."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nTransfer-Encoding: chunked\r\n\r\n"


def main(port: str, path: str, protocol: str, fps: str, stall: str) -> None:
    frames = frames_of(Path(path).read_bytes())
    with socket.create_server(("127.0.0.1", int(port)), backlog=8) as server:
        say("ready")
        while True:
            arguments = (server.accept()[0], frames, protocol, float(fps), int(stall))
            threading.Thread(target=play, args=arguments, daemon=True).start()


def frames_of(data: bytes) -> list[bytes]:
    """A transport stream, cut before each frame."""
    cuts = [0]
    for start in range(0, len(data), PACKET):
        number = int.from_bytes(data[start + 1 : start + 3], "big")
        if number & 0x1FFF == VIDEO and number & 0x4000:  # the second: something starts here
            cuts.append(start)
    del cuts[1]  # what comes before the first frame goes with it
    return [data[a:b] for a, b in zip(cuts, [*cuts[1:], len(data)], strict=True)]


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def play(
    connection: socket.socket, frames: list[bytes], protocol: str, fps: float, stall: int
) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError), connection:
        if protocol == "http":
            connection.recv(65536)
            connection.sendall(HEAD)
        pace(connection.sendall, frames[: stall or None], chunked=protocol == "http", fps=fps)
        if stall:
            threading.Event().wait()


def pace(send: Callable[[bytes], None], frames: list[bytes], *, chunked: bool, fps: float) -> None:
    start = time.monotonic()
    say(repr(start))
    for n, frame in enumerate(frames):
        time.sleep(max(0.0, start + n / fps - time.monotonic()))
        send(b"%x\r\n%b\r\n" % (len(frame), frame) if chunked else frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
