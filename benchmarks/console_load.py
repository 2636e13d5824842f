"""What the console carries: cameras, memory, browsers, and how soon an event is on the page.

    python benchmarks/console_load.py [--only PART ...] [--sizes 360x288 1280x720] [--most 16]
        [--seconds 30] [--minutes 3] [--anomalies 20] [--browsers 20] [--table]

- carried: streams of 25 frames a second over TCP are added until a camera gives fewer documents
  than seconds, with the wall open in Chromium. Streams and browser run on the same cores.
- memory: of four such cameras over `--minutes`, in a row of samples; what processes share counts
  in parts (PSS). A camera is its process and its decoder.
- beside: processor time and memory of as many `habitus watch`, one after the other: the peer.
- latency: seconds from the last frame of the clip that made an event to the event in the news
  stream, on the wall, at the push service of a phone and at a mail server, for anomalies in three
  streams.
- browsers: the same with twenty walls open, and the time of a page meanwhile.

With --save, each part keeps its own rows, so that one can be measured anew alone.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import numpy as np
import psutil

import clips
import habitus
from habitus.web.administration import add_channel
from habitus.web.answers import NewChannel
from report import Row, Target, add_output, hand_on, progress, save
from served import Served, add_with_model, descendants, pss
from staged import Camera, learnt
from streams import remux
from timing import n_cores

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.browser import launch
from reference.mail_server import Post
from reference.push_service import push_service
from reference.streams import free_port, playing

PARTS = ("carried", "memory", "latency", "browsers")
SIZES: dict[str, tuple[int, int] | None] = {"360x288": None, "1280x720": (1280, 720)}
STEPS = {
    "360x288": (8, 16, 32, 48, 56, 64, 72, 80, 88, 96, 112, 128),
    "1280x720": (4, 8, 12, 16, 20, 24, 28, 32),
}
REPEATS = 30
"""Times that forty seconds are repeated in a stream: twenty minutes."""
N_BESIDE = 4
"""Cameras of which memory and processor time are measured."""
STILL_LOADING = 0.5
"""Megabytes by which what cameras are forked from grows in seconds while it loads."""
MOST_MEMORY = 80.0
"""Megabytes of a camera, at most."""
ALERTS_PER_DAY = 300.0
"""Of streams with anomalies: by minutes of footage, no alarm is as rare as five a day."""
SLACK = 2
"""Documents that may be missing at the edges of a time."""
STARTING = 90.0
OBSERVE = """
() => {
  window.shown = {};
  const note = () => document.querySelectorAll("#latest [data-event]").forEach((row) => {
    window.shown[row.dataset.event] ??= Date.now() / 1000;
  });
  note();
  const latest = document.getElementById("latest");
  new MutationObserver(note).observe(latest, {childList: true, subtree: true});
}
"""
"""Notes when each event is on the page."""


class News(threading.Thread):
    """A listener to the news stream of a console; counts documents, and notes events."""

    def __init__(self, served: Served) -> None:
        super().__init__(daemon=True)
        self.served, self.documents = served, Counter[str]()
        self.heard: dict[str, float] = {}
        """When an alarm was told first."""
        self.lasted: dict[str, float] = {}
        """End of the clip that made it one, in seconds since the epoch."""
        self.start()

    def run(self) -> None:
        """Listen until the server ends."""
        client = httpx.Client(base_url=self.served.client.base_url, timeout=None)  # noqa: S113
        with contextlib.suppress(httpx.HTTPError), client.stream("GET", "/api/stream") as answer:
            topic = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    topic = line[7:]
                elif line.startswith("data: "):
                    self._take(topic, json.loads(line[6:]))

    def _take(self, topic: str, news: dict[str, Any]) -> None:
        if topic == "judged":
            self.documents[news["camera"]] += 1
        elif topic == "event" and news["alarm"] and news["event"] not in self.heard:
            self.heard[news["event"]] = time.time()
            details = self.served.json(f"/api/events/{news['event']}")
            seconds = details["details"]["end"] - details["details"]["start"]
            self.lasted[news["event"]] = details["start"] + seconds


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Open a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        try:
            yield browser
        finally:
            browser.close()


def wall(browser: Any, served: Served) -> Any:
    """Open the wall in a window of its own."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(str(served.client.base_url))
    page.evaluate(OBSERVE)
    return page


class Material(NamedTuple):
    """A stream of one size, and its model."""

    stream: Path
    model: Path


def material(folder: Path, size: str) -> Material:
    """Draw forty seconds, learn them, and make a long stream of them."""
    video = clips.make(folder / f"{size}.mp4", size=SIZES[size])
    model = folder / f"{size}.model"
    habitus.learn(
        str(video),
        output=str(model),
        reading=habitus.ReadingSettings(jobs=1),
        learning=habitus.LearningSettings(n_behaviours=3, n_restarts=1),
    )
    long = clips.repeat(video, folder / f"{size}-long.mp4", REPEATS)
    return Material(remux(long, folder / f"{size}.ts"), model)


@contextlib.contextmanager
def console_of(folder: Path, address: str, model: Path, n_cameras: int) -> Iterator[Served]:
    """Run a console with cameras that are switched off."""
    folder.mkdir()
    served = Served(folder)
    with served.opened() as console:
        for k in range(1, n_cameras + 1):
            add_with_model(console, f"camera-{k}", address, model, enabled=False)
    with served:
        yield served


def switch_on(served: Served, cameras: list[str]) -> None:
    """Have cameras watched, and wait until they are."""
    for camera in cameras:
        changed = served.client.patch(f"/api/cameras/{camera}", json={"enabled": True})
        changed.raise_for_status()
    until = time.monotonic() + STARTING
    while {camera["state"] for camera in served.json("/api/cameras") if camera["enabled"]} != {
        "watching"
    }:
        if time.monotonic() > until:
            raise TimeoutError("not all cameras were watched in time")
        time.sleep(0.5)


def carried(folder: Path, size: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the number of cameras that are carried."""
    made, port = material(folder, size), free_port()
    steps = [n for n in STEPS[size] if n <= options.most] or [options.most]
    notes, most = [], 0
    with (
        playing(port, made.stream),
        console_of(folder / "data", f"tcp://127.0.0.1:{port}", made.model, steps[-1]) as served,
        chromium() as browser,
    ):
        page, news, on = wall(browser, served), News(served), 0
        for n in steps:
            switch_on(served, [f"camera-{k}" for k in range(on + 1, n + 1)])
            on = n
            page.wait_for_timeout(5000)
            before, busy = Counter(news.documents), _processor_seconds(served)
            psutil.cpu_percent()
            page.wait_for_timeout(1000 * options.seconds)
            used = (_processor_seconds(served) - busy) / options.seconds
            fewest = min(
                news.documents[f"camera-{k}"] - before[f"camera-{k}"] for k in range(1, n + 1)
            )
            note = (
                f"{n}: {fewest} documents in {options.seconds:g} s, console {used:.2f} cores, "
                f"machine {psutil.cpu_percent():.0f} %"
            )
            progress(f"{size}, {note}")
            notes.append(note)
            if fewest < options.seconds - SLACK:
                break
            most = n
    yield Row(
        what=f"25-fps cameras of {size} with the wall open, {n_cores()} cores",
        ours=most,
        unit="cameras",
        note="; ".join(notes),
    )


def _processor_seconds(served: Served) -> float:
    """Return what all processes of a console have used so far."""
    total = 0.0
    for process in (psutil.Process(served.pid), *descendants(served.pid)):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def memory(folder: Path, size: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield memory and processor time of a camera, beside `habitus watch`."""
    made, port = material(folder, size), free_port()
    address, seconds = f"tcp://127.0.0.1:{port}", 60 * options.minutes
    names = [f"camera-{k}" for k in range(1, N_BESIDE + 1)]
    with (
        playing(port, made.stream),
        console_of(folder / "data", address, made.model, N_BESIDE) as served,
        chromium() as browser,
    ):
        page = wall(browser, served)
        idle = _shared(served)
        switch_on(served, names)
        page.wait_for_timeout(15_000)
        samples, busy, began = [_of_cameras(served)], _processor_seconds(served), time.monotonic()
        while time.monotonic() < began + seconds:
            page.wait_for_timeout(min(30_000, 1000 * seconds))
            samples.append(_of_cameras(served))
        elapsed = time.monotonic() - began
        used = (_processor_seconds(served) - busy) / elapsed / N_BESIDE
        server = pss(served.pid)
    with playing(port, made.stream):
        peer_memory, peer_used = _watched(folder, address, made.model, min(seconds, 60.0))
    later = samples[len(samples) // 2 :]
    growth = 3600 * (later[-1] - later[0]) / (elapsed / 2)
    yield Row(
        what=f"memory of a camera of {size} after {elapsed / 60:.0f} minutes",
        ours=samples[-1],
        unit="MB",
        peer=peer_memory,
        ratio=samples[-1] / peer_memory,
        target=Target("at most", MOST_MEMORY, "ours"),
        note=f"its process and decoder, of {N_BESIDE}: "
        + ", ".join(f"{sample:.0f}" for sample in samples[:: max(1, len(samples) // 12)])
        + f" MB over the time ({growth:+.1f} MB per hour); server {server:.0f} MB, what all are "
        f"forked from {idle:.0f} MB; peer: `habitus watch`",
    )
    yield Row(
        what=f"processor time of a camera of {size} per second",
        ours=1e3 * used,
        unit="ms",
        peer=1e3 * peer_used,
        ratio=used / peer_used,
        note=f"everything of the console, divided by {N_BESIDE}; the wall open",
    )


def _shared(served: Served) -> float:
    """Return the megabytes of what cameras are forked from, once they no longer grow."""
    before, now = -1.0, 0.0
    while abs(now - before) > STILL_LOADING:
        time.sleep(3.0)
        before, now = now, sum(pss(c.pid) for c in psutil.Process(served.pid).children())
    return now


def _of_cameras(served: Served) -> float:
    """Return the megabytes of a camera: all that was forked, divided by their number."""
    fork_servers = psutil.Process(served.pid).children()
    forked = [child.pid for fork_server in fork_servers for child in descendants(fork_server.pid)]
    return sum(map(pss, forked)) / N_BESIDE


def _watched(folder: Path, address: str, model: Path, seconds: float) -> tuple[float, float]:
    """Return megabytes and processor seconds a second of one `habitus watch` among several."""
    watches = []
    for k in range(N_BESIDE):
        command = [sys.executable, "-m", "habitus", "watch", address, "--model", str(model)]
        command += ["--output", str(folder / f"events-{k}.jsonl")]
        watches.append(
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
    try:
        time.sleep(30)
        before = sum(map(_tree_seconds, watches))
        time.sleep(seconds)
        used = (sum(map(_tree_seconds, watches)) - before) / seconds / N_BESIDE
        every = [pss(p) for w in watches for p in (w.pid, *(c.pid for c in descendants(w.pid)))]
        return sum(every) / N_BESIDE, used
    finally:
        for watch in watches:
            watch.terminate()
            watch.wait()


def _tree_seconds(process: "subprocess.Popen[bytes]") -> float:
    total = 0.0
    for each in (psutil.Process(process.pid), *descendants(process.pid)):
        with contextlib.suppress(psutil.Error):
            times = each.cpu_times()
            total += times.user + times.system
    return total


def latency(folder: Path, options: argparse.Namespace, n_walls: int) -> Iterator[Row]:
    """Yield the time from a clip's last frame to the event in the news, on pages and phones."""
    model = learnt(folder)
    rng = np.random.default_rng(options.seed)
    cameras = [Camera("mpegts", each) for each in rng.spawn(3)]
    (folder / "data").mkdir()
    with contextlib.ExitStack() as stack:
        served, post = Served(folder / "data"), stack.enter_context(contextlib.closing(Post()))
        push = stack.enter_context(push_service())
        with served.opened() as console:
            for k, camera in enumerate(cameras, 1):
                name, budget = f"stream-{k}", {"alerts_per_day": ALERTS_PER_DAY}
                add_with_model(console, name, camera.address, model, enabled=False, **budget)
            add_channel(
                console, "benchmark", NewChannel(name="push", kind="push", settings=push.settings)
            )
            add_channel(
                console, "benchmark", NewChannel(name="mail", kind="mail", settings=post.settings())
            )
        stack.enter_context(served)
        browser = stack.enter_context(chromium())
        walls, news = [wall(browser, served) for _ in range(n_walls)], News(served)
        switch_on(served, [f"stream-{k}" for k in range(1, 4)])
        for camera in cameras:
            camera.next = time.time() + float(rng.uniform(15, 40))
        pages, until = [], time.monotonic() + 120 + 20 * options.anomalies
        while len(news.heard) < options.anomalies and time.monotonic() < until:
            walls[0].wait_for_timeout(1000)
            start = time.perf_counter()
            served.client.get("/").raise_for_status()
            pages.append(time.perf_counter() - start)
        until = time.monotonic() + 15
        while True:  # until the latest is on every wall, too
            walls[0].wait_for_timeout(1000)
            shown = [page.evaluate("window.shown") for page in walls]
            if all({*news.lasted} <= {*each} for each in shown) or time.monotonic() > until:
                break
        documents = news.documents
    heard = [news.heard[event] - last for event, last in news.lasted.items()]
    on_page = [
        each[event] - last for each in shown for event, last in news.lasted.items() if event in each
    ]
    missed = sum(event not in each for each in shown for event in news.lasted)
    pushed = dict(zip((each["page"] for each in push.shown), push.taken, strict=True))
    mailed = dict(zip(map(_page_of, post.mail), post.taken, strict=True))
    pages_of = {f"/events/{event}": last for event, last in news.lasted.items()}
    on_phone, by_mail = (
        [at[page] - last for page, last in pages_of.items() if page in at]
        for at in (pushed, mailed)
    )
    walls_text = "the wall" if n_walls == 1 else f"{n_walls} walls"
    for what, values in (
        (f"in the news stream, {walls_text} open", heard),
        (f"on {walls_text}", on_page),
        (f"at the push service of a phone, {walls_text} open", on_phone),
        (f"at a mail server, {walls_text} open", by_mail),
    ):
        yield Row(
            what=f"from the last frame of a clip to the event {what}",
            ours=median(values),
            unit="s",
            note=f"median of {len(values)}; 95 %: {_late(values):.2f} s; largest "
            f"{max(values):.2f} s; {missed} not shown",
        )
    yield Row(
        what=f"the wall's page meanwhile, {walls_text} open",
        ours=1e3 * median(pages),
        unit="ms",
        target=Target("at most", 200, "ours"),
        note=f"95 %: {1e3 * _late(pages):.0f} ms of {len(pages)}; documents "
        + ", ".join(f"{n}" for n in documents.values()),
    )


def _page_of(mail: EmailMessage) -> str:
    """Return the page of the event that a mail is about."""
    body = mail.get_body(("plain",))
    text = body.get_content() if body else ""
    return next((urlsplit(word).path for word in text.split() if "/events/" in word), "")


def _late(values: list[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def measure(part: str, folder: Path, size: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of one part."""
    if part == "carried":
        return carried(folder, size, options)
    if part == "memory":
        return memory(folder, size, options)
    return latency(folder, options, 1 if part == "latency" else options.browsers)


def main() -> None:
    """Measure what was asked for, and print its table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--most", type=int, default=8, help="cameras to try, at most")
    parser.add_argument("--seconds", type=float, default=20.0, help="that a number is tried for")
    parser.add_argument("--minutes", type=float, default=1.0, help="over which memory is read")
    parser.add_argument("--anomalies", type=int, default=5)
    parser.add_argument("--browsers", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    add_output(parser)
    options = parser.parse_args()
    rows: list[Row] = []
    for part in options.only:
        before = len(rows)
        for size in options.sizes if part in ("carried", "memory") else ("",):
            progress(f"{part} {size}")
            with tempfile.TemporaryDirectory() as temporary:
                for row in measure(part, Path(temporary), size, options):
                    progress(f"{row.what}: {row.ours:.3g} {row.unit}; {row.note}")
                    rows.append(row)
        if options.save:
            save(f"console_load-{part}", rows[before:])
    options.save = False
    hand_on(rows, options)
    sys.exit(1 if any(row.met is False for row in rows) else 0)


if __name__ == "__main__":
    main()
