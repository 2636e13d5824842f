"""How many live streams two cores carry: paced streams over TCP, each turned into documents.

A process of its own serves every stream at 25 frames a second, as MPEG-TS over loopback. Two worker
processes, a thread a stream, make documents of them. A number of streams is carried if, at the end,
no stream is later than one clip: its last document came less than a second after its last frame was
sent. The number is raised until it is not.
"""

import multiprocessing as mp
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av

import clips
from habitus.ingest.clips import DocumentSettings, documents
from habitus.video import Source
from report import Row, main, progress
from timing import n_cores

SIZES: dict[str, tuple[int, int] | None] = {"360x288": None, "1280x720": (1280, 720)}
STEPS = {"360x288": (25, 50, 75, 100, 150, 200), "1280x720": (4, 8, 12, 16, 24)}
SECONDS = 12


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one a size."""
    with tempfile.TemporaryDirectory() as folder:
        for name, size in SIZES.items():
            video = clips.make(Path(folder, f"{name}.mp4"), size=size)
            stream = remux(video, Path(folder, f"{name}.ts"))
            carried, late = 0, 0.0
            for n in STEPS[name][:2] if quick else STEPS[name]:
                late = carry(stream, n)
                progress(f"{n} streams of {name}: {late:.2f} s late")
                if late > 1:
                    break
                carried = n
            yield Row(
                what=f"live 25-fps streams of {name} that {n_cores()} cores carry",
                ours=carried,
                unit="streams",
                note=f"tried {STEPS[name]}; the next was {late:.1f} s late"
                if late > 1
                else f"tried {STEPS[name]}: all carried",
            )


def remux(video: Path, path: Path) -> Path:
    """The same packets as a transport stream."""
    with av.open(str(video)) as given, av.open(str(path), "w", format="mpegts") as out:
        stream = out.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(given.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                out.mux(packet)
    return path


def carry(path: Path, n: int) -> float:
    """Seconds by which the latest of n streams lags behind at the end."""
    context = mp.get_context("spawn")
    ports, results = context.Queue(), context.Queue()
    server = context.Process(target=serve, args=(path, n, ports), daemon=True)
    server.start()
    port = ports.get(timeout=60)
    half = [n // 2, n - n // 2]
    ready = context.Barrier(3)
    workers = [
        context.Process(target=work, args=(port, k, ready, results), daemon=True) for k in half
    ]
    for worker in workers:
        worker.start()
    ready.wait(120)
    late = [results.get(timeout=180) for _ in range(n)]
    for process in (*workers, server):
        process.kill()
    return max(late)


def serve(path: Path, n: int, ports: Any) -> None:
    """Send the stream to everybody who connects, at the speed it was recorded."""
    data = path.read_bytes()
    rate = len(data) / clips.SECONDS
    listener = socket.create_server(("127.0.0.1", 0), backlog=n)
    ports.put(listener.getsockname()[1])
    connections = [listener.accept()[0] for _ in range(n)]
    start, sent = time.monotonic(), 0
    while time.monotonic() - start < SECONDS:
        due = min(int((time.monotonic() - start) * rate) // 188 * 188, len(data))
        for connection in connections:
            connection.sendall(data[sent:due])
        sent = due
        time.sleep(0.02)
    for connection in connections:
        connection.close()
    time.sleep(60)


def work(port: int, n: int, ready: Any, results: Any) -> None:
    """Make documents of n streams, a thread each."""
    list(documents(Source(str(_warm())), stop=1))
    ready.wait()

    def one() -> None:
        begun = time.monotonic()
        source = Source(f"tcp://127.0.0.1:{port}", timeout=60)
        last = 0.0
        for document in documents(source, DocumentSettings(still_every=1000)):
            last = time.monotonic() - begun - (document.time + 1.0)
        results.put(last)

    threads = [threading.Thread(target=one) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _warm() -> Path:
    """A short video to compile the kernels with."""
    path = Path(tempfile.mkdtemp(), "warm.mp4")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(30):
            container.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        container.mux(stream.encode())
    return path


if __name__ == "__main__":
    main(measure)
