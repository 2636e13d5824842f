"""A soak of the console: hours of footage at many times real time, with faults in between.

    python benchmarks/console_soak.py [--minutes 3 | --hours 6] [--speed 10] [--seed 0]
        [--folder FOLDER]

One `habitus serve` watches playbacks at many times their own speed, with anomalies at known times;
a playback without any, which is learnt while it plays; a recording; and two streams in real time
that are cut, stall, go black and the like (`staged.py`). Faults come at random under one seed: the
server is ended by SIGKILL or SIGTERM and started again; a camera's process or a decoder is killed,
or the process that all are forked from; a video is away; the database is locked; the receiver of
webhooks, the mail server or the push service refuses, or the MQTT broker is away; events are
reviewed, and reviews undone. Two playbacks have a zone where the anomalies are. Somebody looks at
the live video of three cameras all the time.

Counted is, at the end:

- Playbacks. An event says which turn and which second of the video it is from. From the start of
  a playback to wherever it was killed, no anomaly may be missing and none be there twice. Between
  a review that calls one normal and its undoing, anomalies may be missing.
- The recording: what a run without faults finds, once.
- Streams: anomalies that arrived undisturbed, once, as in `soak.py`.
- Told: each alarm, its start and its end, at least once by each channel (by mail and push, which
  are for people, its start); more than once only where the server was killed meanwhile.
- Zones: each alarm of a playback with a zone is in it.
- Viewers: video comes at the end, as it did at the beginning.
- Left over: events without an end, entries of journals, torn or missing files, processes.
- Memory at the beginning and at the end. All cameras must watch at the end.
"""

import argparse
import contextlib
import json
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import av
import httpx
import numpy as np
import paho.mqtt.client as mqtt
import psutil
from sqlalchemy import func, select

from habitus.web.administration import add_channel
from habitus.web.answers import NewChannel
from habitus.web.channels.push import public_key
from habitus.web.database import EventRow, Minute, OutboxEntry
from habitus.web.outbox import FOR_PEOPLE, FOR_PROGRAMS
from report import Cells, kept_folder, progress, save, table
from served import Served, add_with_model, descendants, pss
from staged import DISTURBING, LASTS, SLACK, Camera, Disturbance, counted, learnt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.footage import encode
from reference.mail_server import Post
from reference.push_service import PushService, push_service
from reference.telling import MOSQUITTO, Broker, Receiver, receiver
from reference.two_lanes import FPS, HEIGHT, WIDTH, lanes_at, wrong_at

N_PLAYBACKS = 3
TURN = 240
"""Seconds of a video that plays again and again; lanes take turns every 12 seconds."""
APART = (30.0, 60.0)
"""Seconds between the anomalies of a video."""
FAULTS_EVERY = (4.0, 12.0)
SETTLES = 20.0
"""Seconds from a fault until a stream must be judged again."""
QUIET_END = 25.0
"""Seconds without faults at the end."""
PATIENCE = 120.0
"""Seconds in which everything must work again at the end."""
DEADLY = ("server SIGKILL", "server SIGTERM", "process killed", "fork server killed", "video away")
"""Faults after which a playback may start anew."""
HARMLESS = (
    *("database locked", "receiver refuses", "receiver hangs", "broker away", "unusual"),
    *("mail refuses", "push refuses"),
)
ALERTS_PER_DAY = 300.0
"""As many as five minutes of footage can tell of: each anomaly is an alarm."""
MOST_GROWTH = 1.25
"""Memory at the end over that at the beginning, at most."""
ZONE = "Upper lane"
ZONES = {"playback-1": "own", "playback-2": "watch"}
"""Cameras with a zone round the anomalies, and its kind."""
LOOKED_AT = ("playback-1", "quiet", "stream-mpegts")
"""Cameras whose live video somebody looks at."""
LOOKS = 0.5
SILENT = 12.0
"""Seconds from one look to the next, and without video after which a page starts it anew."""


class Video(NamedTuple):
    """A video with anomalies."""

    path: Path
    anomalies: tuple[float, ...]
    """Seconds at which they begin."""
    seconds: int


def staged_video(path: Path, seconds: int, rng: np.random.Generator | None) -> Video:
    """Draw a video of two lanes; with anomalies, if they are to be chosen."""
    gaps = rng.uniform(*APART, size=seconds) if rng is not None else np.array([np.inf])
    starts = tuple(start for start in np.cumsum(gaps) if start + LASTS + 5 < seconds)

    def pictures() -> Iterator[Any]:
        for i in range(seconds * FPS):
            now = i / FPS
            picture = lanes_at(now)
            for start in starts:
                if start <= now < start + LASTS:
                    wrong_at(picture, now - start)
            yield picture

    encode(path, pictures(), rate=FPS)
    return Video(path, starts, seconds)


class Told(NamedTuple):
    """A message that was taken."""

    event: str
    kind: str


class Listener:
    """Takes what is published to a broker, also what it missed while that was away."""

    def __init__(self, broker: Broker) -> None:
        self.told: list[Told] = []
        self._client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id="soak", clean_session=False
        )
        self._client.username_pw_set(broker.user, broker.password)
        self._client.on_connect = lambda *_: self._client.subscribe("habitus/+/event", qos=1)
        self._client.on_message = self._take
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()

    def _take(self, _client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        found = json.loads(message.payload)
        if "event" in found:
            self.told.append(Told(found["event"]["id"], found["kind"]))

    def close(self) -> None:
        """Go."""
        self._client.disconnect()
        self._client.loop_stop()


class LiveViewer(threading.Thread):
    """Somebody who looks at the live video of a camera, and asks again whatever happens."""

    def __init__(self, served: Served, camera: str) -> None:
        super().__init__(daemon=True)
        self.camera, self.n_stretches, self.last_came = camera, 0, time.time()
        self._client = httpx.Client(
            base_url=served.client.base_url, headers=served.client.headers, timeout=10
        )
        self._stop_looking = threading.Event()
        self.start()

    def run(self) -> None:
        """Ask for what follows, as a page does."""
        last = ""
        while not self._stop_looking.wait(LOOKS):
            with contextlib.suppress(httpx.HTTPError):
                query = {"after": last} if last else {}
                answer = self._client.get(f"/api/cameras/{self.camera}/recent.mp4", params=query)
                if answer.status_code == httpx.codes.OK and answer.content[4:8] == b"ftyp":
                    last = answer.headers["X-Last"]
                    self.n_stretches, self.last_came = self.n_stretches + 1, time.time()
            if time.time() - self.last_came > SILENT:
                last = ""

    def close(self) -> None:
        """Go."""
        self._stop_looking.set()
        self.join()
        self._client.close()


@dataclass
class Scene:
    """Everything that the soak runs."""

    served: Served
    videos: dict[str, Video]
    """Of the playbacks with anomalies, by camera."""
    recording: Video
    streams: dict[str, Camera]
    hook: Receiver
    broker: Broker | None
    post: Post
    push: PushService
    viewers: list[LiveViewer] = field(default_factory=list)
    happened: list[Disturbance] = field(default_factory=list)
    undo_later: list[tuple[float, Disturbance, str]] = field(default_factory=list)
    kills: int = 0
    """Times that the server was killed."""


class Faults:
    """Faults one after the other, at random."""

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self.scene, self.rng = scene, rng
        self.kinds = [*DEADLY, "process killed", "process killed", *HARMLESS, "stream", "stream"]
        self.kinds += ["normal", "unusual"]
        if scene.broker is None:
            self.kinds.remove("broker away")

    def step(self) -> None:
        """Have one fault happen, and wait until it is over."""
        kind = str(self.rng.choice(self.kinds))
        start, seconds = time.time(), float(self.rng.uniform(1.0, 8.0))
        try:
            getattr(self, "_" + kind.replace(" ", "_"))(seconds)
        except httpx.HTTPError as error:
            progress(f"{kind}: {error!r}")
        self.scene.happened.append(Disturbance(start, time.time(), kind))
        self._undo_due()

    def pause(self) -> None:
        """Wait between two faults."""
        time.sleep(float(self.rng.uniform(*FAULTS_EVERY)))

    def end(self) -> None:
        """Undo what is still to be undone."""
        self._undo_due(at_once=True)

    def _server_SIGKILL(self, seconds: float) -> None:  # noqa: N802 - a signal
        self.scene.kills += 1
        self._restart(signal.SIGKILL)

    def _server_SIGTERM(self, seconds: float) -> None:  # noqa: N802
        self._restart(signal.SIGTERM)

    def _restart(self, number: int) -> None:
        below = descendants(self.scene.served.pid)
        self.scene.served.end(number)
        _, alive = psutil.wait_procs(below, 30)
        if alive:
            raise RuntimeError(f"{len(alive)} processes outlived the server")
        self.scene.served.start()

    def _process_killed(self, seconds: float) -> None:
        self._kill(_forked(self.scene.served.pid))

    def _fork_server_killed(self, seconds: float) -> None:
        with contextlib.suppress(psutil.Error):
            self._kill(psutil.Process(self.scene.served.pid).children())

    def _kill(self, among: list[psutil.Process]) -> None:
        if among:
            with contextlib.suppress(psutil.Error):
                among[int(self.rng.integers(len(among)))].kill()

    def _video_away(self, seconds: float) -> None:
        video = self._one_of(list(self.scene.videos.values())).path
        away = video.with_suffix(".away")
        video.rename(away)
        time.sleep(seconds)
        away.rename(video)

    def _database_locked(self, seconds: float) -> None:
        path = self.scene.served.data / "habitus.sqlite"
        with contextlib.closing(sqlite3.connect(path, timeout=60)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(1.5 * seconds)  # some longer than a writer waits
            connection.rollback()

    def _receiver_refuses(self, seconds: float) -> None:
        self.scene.hook.status = 503
        time.sleep(seconds)
        self.scene.hook.status = 200

    def _receiver_hangs(self, seconds: float) -> None:
        self.scene.hook.gate.clear()
        time.sleep(seconds)
        self.scene.hook.gate.set()

    def _broker_away(self, seconds: float) -> None:
        if self.scene.broker is not None:
            self.scene.broker.stop()
            time.sleep(seconds)
            self.scene.broker.start()

    def _mail_refuses(self, seconds: float) -> None:
        self.scene.post.full = True
        time.sleep(seconds)
        self.scene.post.full = False

    def _push_refuses(self, seconds: float) -> None:
        self.scene.push.status = 503
        time.sleep(seconds)
        self.scene.push.status = 201

    def _stream(self, seconds: float) -> None:
        camera = self._one_of(list(self.scene.streams.values()))
        camera.disturb(self._one_of(list(DISTURBING)), 2 * seconds)
        time.sleep(2 * seconds)

    def _unusual(self, seconds: float) -> None:
        self._review("unusual")

    def _normal(self, seconds: float) -> None:
        start = time.time()
        event = self._review("normal")
        if event is not None:
            begun = Disturbance(start, np.inf, "called normal")
            self.scene.undo_later.append((time.time() + seconds, begun, event))

    def _review(self, verdict: str) -> str | None:
        events = self.scene.served.json("/api/events", review="none", limit=50)["events"]
        if not events:
            return None
        event: str = self._one_of(events)["id"]
        said = self.scene.served.client.post(
            f"/api/events/{event}/review", json={"verdict": verdict}
        )
        said.raise_for_status()
        return event

    def _undo_due(self, *, at_once: bool = False) -> None:
        waiting = []
        for at, begun, event in self.scene.undo_later:
            if not at_once and time.time() < at:
                waiting.append((at, begun, event))
                continue
            self.scene.served.client.delete(f"/api/events/{event}/review").raise_for_status()
            self.scene.happened.append(begun._replace(end=time.time()))
        self.scene.undo_later = waiting

    def _one_of(self, among: list[Any]) -> Any:
        return among[int(self.rng.integers(len(among)))]


def _forked(server: int) -> list[psutil.Process]:
    """Return the processes of cameras, decoders, clips and learning."""
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(server).children()
        return [child for fork_server in below for child in descendants(fork_server.pid)]
    return []


class PlaybackCounts(NamedTuple):
    """What became of the anomalies of a playback."""

    played: int
    """From the starts of the video to wherever it was ended."""
    missing: list[str]
    twice: list[str]
    unasked: int
    """Alarms that are of no anomaly."""
    lives: int
    """Times that the video began anew because of a fault, and the first."""


def playback_counts(
    video: Video, events: list[EventRow], happened: list[Disturbance]
) -> PlaybackCounts:
    """Compare the events of a playback with its anomalies.

    Parameters
    ----------
    video
        What was played.
    events
        In the order of their starts.
    happened
        Faults and reviews.
    """
    deadly = [each for each in happened if each.kind in DEADLY]
    taught = [each for each in happened if each.kind == "called normal"]
    missing, twice, unasked, lives = [], [], 0, 1
    played, before, when = 0, -1, 0.0
    n = len(video.anomalies)
    for event in events:
        clock = event.start
        first, last = (float(event.details[name]) for name in ("start", "end"))
        turns = range(int(first // video.seconds), int((last + SLACK) // video.seconds) + 1)
        # What is unusual just before an anomaly is one event with it.
        found = [
            turn * n + k
            for turn in turns
            for k, start in enumerate(video.anomalies)
            if first - LASTS - SLACK < turn * video.seconds + start <= last + SLACK
        ]
        if not found:
            unasked += event.alarm
            continue
        number = found[0]
        if number <= before:
            # After a model was changed, an anomaly under way is another event.
            if number == before and _any_in(taught, when, clock):
                continue
            if _any_in(deadly, when, clock):
                lives, before = lives + 1, -1
            else:
                twice.append(f"anomaly {number} at {_clock(clock)}")
                continue
        skipped = range(before + 1, number)
        if skipped and not _any_in(taught, when, clock):
            missing += [f"anomaly {k} before {_clock(clock)}" for k in skipped]
        played += number - before
        before, when = number, clock
    return PlaybackCounts(played, missing, twice, unasked, lives)


def _any_in(happened: list[Disturbance], start: float, end: float) -> bool:
    return any(each.start < end + SETTLES and each.end > start - SETTLES for each in happened)


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def set_up(folder: Path, options: argparse.Namespace, rng: np.random.Generator) -> dict[str, Any]:
    """Make videos, cameras and channels; return what `Scene` takes of them."""
    model = learnt(folder)
    data = folder / "data"
    data.mkdir()
    videos = {
        f"playback-{k}": staged_video(folder / f"playback-{k}.mkv", TURN, each)
        for k, each in enumerate(rng.spawn(options.playbacks), 1)
    }
    quiet = staged_video(folder / "quiet.mkv", TURN, None)
    recording = staged_video(folder / "recording.mkv", 2 * TURN, rng.spawn(1)[0])
    streams = {
        f"stream-{kind}": Camera(kind, each)
        for kind, each in zip(("mpegts", "mjpeg"), rng.spawn(2), strict=True)
    }
    served = Served(data)
    with served.opened() as console:
        speed = {"speed": options.speed, "local": True}
        budget = {"alerts_per_day": ALERTS_PER_DAY}
        for name, video in videos.items():
            zones = [_zone(ZONES[name])] if name in ZONES else []
            kept = {"kind": "playback", "options": speed, "zones": zones}
            add_with_model(console, name, str(video.path), model, **kept, **budget)
        add_with_model(console, "quiet", str(quiet.path), None, kind="playback", options=speed)
        add_with_model(console, "recording", str(recording.path), model, kind="recording", **budget)
        for name, camera in streams.items():
            patient = {"local": True, "patience": 5.0}
            add_with_model(console, name, camera.address, model, options=patient, **budget)
    return {"served": served, "videos": videos, "recording": recording, "streams": streams}


def _zone(kind: str) -> dict[str, Any]:
    """Return a zone round what goes the wrong way."""
    corners = [[0, 0], [WIDTH, 0], [WIDTH, HEIGHT // 2], [0, HEIGHT // 2]]
    return {"name": ZONE, "kind": kind, "polygon": corners, "alerts_per_day": ALERTS_PER_DAY}


class Memory(NamedTuple):
    """Megabytes; what processes share counts in parts."""

    server: float
    below: float
    """Of everything that it started."""
    n_processes: int


def memory(served: Served, seconds: float = 0.0) -> Memory:
    """Return the least within some seconds: processes that cut clips or learn come and go."""
    until, samples = time.monotonic() + seconds, list[Memory]()
    while not samples or time.monotonic() < until:
        below = [pss(process.pid) for process in descendants(served.pid)]
        samples.append(Memory(pss(served.pid), sum(below), len(below)))
        time.sleep(1.0)
    return min(samples, key=lambda sample: sample.below)


def soak(folder: Path, options: argparse.Namespace) -> bool:
    """Run, print the figures, and return whether nothing was lost."""
    rng = np.random.default_rng(options.seed)
    made = set_up(folder, options, rng)
    served: Served = made["served"]
    with contextlib.ExitStack() as stack:
        hook = stack.enter_context(receiver())
        push = stack.enter_context(push_service())
        post = Post()
        stack.callback(post.close)
        broker, listener = None, None
        with served.opened() as console:
            push.server_key = public_key(console)
            add_channel(
                console, "soak", NewChannel(name="hook", kind="webhook", settings={"url": hook.url})
            )
            add_channel(
                console, "soak", NewChannel(name="mail", kind="mail", settings=post.settings())
            )
            add_channel(
                console, "soak", NewChannel(name="push", kind="push", settings=push.settings)
            )
            if MOSQUITTO.exists():
                (folder / "broker").mkdir()
                broker = Broker(folder / "broker")
                broker.persist()
                stack.callback(broker.stop)
                listener = Listener(broker)
                stack.callback(listener.close)
                add_channel(
                    console, "soak", NewChannel(name="mqtt", kind="mqtt", settings=broker.settings)
                )
        stack.enter_context(served)
        scene = Scene(**made, hook=hook, broker=broker, post=post, push=push)
        for camera in LOOKED_AT:
            scene.viewers.append(viewer := LiveViewer(served, camera))
            stack.callback(viewer.close)
        began = time.time()
        samples = _run(scene, Faults(scene, rng), options)
        is_whole = _settle(scene)
        until = time.time()
        served.end()
        told = {"webhook": _hooked(hook), "mail": _mailed(post), "push": _pushed(push)}
        if listener is not None:
            told["mqtt"] = Counter(listener.told)
        print(f"{until - began:.0f} s, seed {options.seed}, playbacks at {options.speed:g} times")
        return report(scene, until, told, samples, options.save) and is_whole


def _share_done(scene: Scene, options: argparse.Namespace, began: float) -> float:
    """Return how much of the soak is over, by the clock or by the footage that was read."""
    if options.hours is None:
        return (time.time() - began + QUIET_END) / (60 * float(options.minutes))
    return _hours(scene.served) / float(options.hours)


def _hours(served: Served) -> float:
    """Return the hours of footage of all cameras so far."""
    with served.opened() as console, console.database.session() as session:
        return (session.scalar(select(func.sum(Minute.n_documents))) or 0) / 3600


def _run(scene: Scene, faults: Faults, options: argparse.Namespace) -> list[Memory]:
    """Have faults happen; return memory from the beginning to the end."""
    _settle(scene)
    began = time.time()
    samples = [memory(scene.served, QUIET_END)]
    while (done := _share_done(scene, options, began)) < 1:
        faults.step()
        faults.pause()
        progress(f"{100 * done:.0f} %: {scene.happened[-1].kind}")
        samples.append(memory(scene.served))
    faults.end()
    return [*samples, memory(scene.served, QUIET_END)]


def _settle(scene: Scene) -> bool:
    """Wait until all cameras watch and everything is told; say what does not."""
    until, waiting = time.time() + PATIENCE, ["nothing yet"]
    while waiting and time.time() < until:
        time.sleep(1.0)
        waiting = [
            f"{camera['name']} is {camera['state']}: {camera['reason']}"
            for camera in scene.served.json("/api/cameras")
            if camera["state"] not in ("watching", "ended")
            and (camera["id"], camera["state"]) != ("quiet", "learning")
        ]
        waiting += [
            f"{channel['waiting']} messages wait for {channel['name']}"
            for channel in scene.served.json("/api/channels")
            if channel["waiting"] > 5 * N_PLAYBACKS  # there are new ones all the time
        ]
        waiting += [
            f"no video of {viewer.camera} for {time.time() - viewer.last_came:.0f} s"
            for viewer in scene.viewers
            if time.time() - viewer.last_came > SILENT or not viewer.n_stretches
        ]
    for one in waiting:
        print(f"  at the end: {one}")
    return not waiting


def _hooked(hook: Receiver) -> Counter[Told]:
    """Return what the receiver of webhooks took, and how often."""
    return Counter(
        Told(posted.body["event"]["id"], posted.body["kind"])
        for posted in hook.posted
        if "event" in posted.body and posted.taken
    )


def _mailed(post: Post) -> Counter[Told]:
    """Return the events that mails are about; those of troubles name a camera."""
    texts = (body.get_content() for mail in post.mail if (body := mail.get_body(("plain",))))
    links = (word for text in texts for word in text.split() if "/events/" in word)
    return Counter(Told(link.rpartition("/")[2], "started") for link in links)


def _pushed(push: PushService) -> Counter[Told]:
    """Return the events that notifications are about."""
    pages = (news["page"] for news in push.shown)
    return Counter(
        Told(page.rpartition("/")[2], "started") for page in pages if page.startswith("/events/")
    )


def report(
    scene: Scene,
    until: float,
    told: dict[str, Counter[Told]],
    samples: list[Memory],
    keep: bool,
) -> bool:
    """Print what was counted; return whether all is as it should be."""
    problems: list[str] = []
    with scene.served.opened() as console, console.database.session() as session:
        events = list(session.scalars(select(EventRow).order_by(EventRow.start)))
        outbox = list(session.scalars(select(OutboxEntry)))
    of = {
        camera: [event for event in events if event.camera_id == camera]
        for camera in (*scene.videos, *scene.streams, "recording", "quiet")
    }
    rows: list[Cells] = []
    for camera, video in scene.videos.items():
        found = playback_counts(video, of[camera], scene.happened)
        problems += [f"{camera}: missing: {one}" for one in found.missing]
        problems += [f"{camera}: twice: {one}" for one in found.twice]
        counts = (found.played, len(found.missing), len(found.twice), found.unasked)
        rows.append(_row(camera, *counts, lives=found.lives))
    problems += _report_recording(scene.recording, of["recording"], rows)
    for camera, stream in scene.streams.items():
        problems += _report_stream(camera, stream, of[camera], scene.happened, until, rows)
    rows.append(_row("quiet", 0, 0, 0, sum(event.alarm for event in of["quiet"])))
    print(f"\n{table(rows)}")
    if keep:
        save("console_soak", rows)
    problems += _report_told(events, outbox, told, scene.kills)
    problems += _report_zones(of)
    stretches = ", ".join(f"{each.camera} {each.n_stretches}" for each in scene.viewers)
    print(f"stretches of live video that viewers were given: {stretches}")
    problems += _left_over(scene, events)
    problems += _report_memory(samples)
    kinds = Counter(each.kind for each in scene.happened)
    print("faults: " + ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())))
    print(
        f"{_hours(scene.served):.1f} hours of footage, {len(events)} events, "
        f"{sum(event.alarm for event in events)} alarms"
    )
    for one in problems:
        print(f"  {one}")
    return not problems


def _report_zones(of: dict[str, list[EventRow]]) -> list[str]:
    """Return the alarms of cameras with a zone that are not in it."""
    alarms = [event for camera in ZONES for event in of.get(camera, []) if event.alarm]
    outside = [event for event in alarms if event.zone != ZONE]
    print(f"zones: {len(alarms) - len(outside)} of {len(alarms)} alarms are in theirs")
    return [f"{event.id} is in no zone" for event in outside]


def _row(
    camera: str, anomalies: int | str, missing: int, twice: int, other: int, *, lives: int = 1
) -> Cells:
    counts = {"missing": missing, "twice": twice, "other": other, "began anew": lives - 1}
    return {"camera": camera, "anomalies": anomalies, **{k: int(n) for k, n in counts.items()}}


def _report_recording(video: Video, events: list[EventRow], rows: list[Cells]) -> list[str]:
    """Count the anomalies of the recording."""
    starts = [float(event.details["start"]) for event in events]
    # A recording's first half is not judged: without a model it would be learnt from.
    due = [start for start in video.anomalies if start > video.seconds / 2]
    hits = {a: [s for s in starts if a - SLACK < s < a + LASTS + SLACK] for a in due}
    missing = [a for a, found in hits.items() if not found]
    twice = [a for a, found in hits.items() if len(found) > 1]
    other = len(starts) - sum(map(len, hits.values()))
    rows.append(_row("recording", len(due), len(missing), len(twice), other))
    return [f"recording: missing: {a:.0f} s" for a in missing] + [
        f"recording: twice: {a:.0f} s" for a in twice
    ]


def _report_stream(
    name: str,
    camera: Camera,
    events: list[EventRow],
    happened: list[Disturbance],
    until: float,
    rows: list[Cells],
) -> list[str]:
    disturbed = [
        each._replace(end=each.end + SETTLES) for each in happened if each.kind not in HARMLESS
    ]
    found, lost = counted(camera, disturbed, [event.start for event in events], until)
    # Where frames come too late there are long events, and an anomaly is within one.
    spans = [(event.start, event.end or event.start) for event in events]
    lost = [a for a in lost if not any(start < a.end and end > a.start for start, end in spans)]
    clear = f"{found.clear} clear of {found.clear + found.disturbed}"
    rows.append(_row(name, clear, len(lost), found.twice, found.unasked))
    return [f"{name}: missing: {_clock(anomaly.start)}" for anomaly in lost] + (
        [f"{name}: {found.twice} twice"] if found.twice else []
    )


def _report_told(
    events: list[EventRow], outbox: list[OutboxEntry], told: dict[str, Counter[Told]], kills: int
) -> list[str]:
    """Compare what was told with the alarms; what still waited at the end is not asked for."""
    problems = []
    waiting = {entry.subject for entry in outbox if entry.outcome != "sent"}
    wanted = {
        Told(event.id, kind)
        for event in events
        if event.alarm
        for kind in ("started", "ended")
        if f"{event.id}/{kind}" not in waiting
    }
    print()
    for channel, taken in told.items():
        again = sum(n - 1 for n in taken.values())
        due = {one for one in wanted if channel in FOR_PROGRAMS or one.kind in FOR_PEOPLE}
        missed = due - set(taken)
        unknown = {one.event for one in taken} - {event.id for event in events}
        print(
            f"{channel}: {len(due)} messages due, {len(missed)} not told, {again} told again, "
            f"{len(unknown)} about no event; the server was killed {kills} times"
        )
        problems += [f"{channel}: not told: {one.event} {one.kind}" for one in sorted(missed)[:5]]
        if again > kills:
            problems.append(f"{channel}: {again} told again, with {kills} kills")
        if unknown:
            problems.append(f"{channel}: told of {len(unknown)} events that are not there")
    return problems


def _report_memory(samples: list[Memory]) -> list[str]:
    early, late = samples[0], samples[-1]
    print(
        f"\nmemory: server {early.server:.0f} -> {late.server:.0f} MB (at most "
        f"{max(each.server for each in samples):.0f}), all that it started {early.below:.0f} -> "
        f"{late.below:.0f} MB ({early.n_processes} -> {late.n_processes} processes)"
    )
    grown = max(late.server / early.server, late.below / early.below)
    return [f"memory has grown to {grown:.2f} times"] if grown > MOST_GROWTH else []


def _left_over(scene: Scene, events: list[EventRow]) -> list[str]:
    """Return what is not whole on disk or in the database."""
    data = scene.served.data
    problems = [f"{event.id} has no end" for event in events if event.end is None]
    for path in data.glob("cameras/*/journal/[!.]*"):
        problems.append(f"left in a journal: {path.name}")
    # What was being written when a process was killed goes with the next file there.
    n_temporary = sum(1 for _ in data.rglob(".habitus-*"))
    with contextlib.closing(sqlite3.connect(data / "habitus.sqlite")) as connection:
        (found,) = connection.execute("PRAGMA integrity_check").fetchone()
    if found != "ok":
        problems.append(f"the database: {found}")
    n_clips = 0
    for event in events:
        place = data / "cameras" / event.camera_id / "events"
        for name in (event.thumbnail, event.heat):
            if name and (place / name).read_bytes()[-2:] != b"\xff\xd9":
                problems.append(f"torn: {name}")
        if event.clip:
            n_clips += 1
            problems += _torn_clip(place / event.clip)
    pictures = sum(event.thumbnail is not None for event in events if event.alarm)
    print(
        f"files: {pictures} thumbnails of alarms and {n_clips} clips; {n_temporary} temporary ones"
    )
    return problems


def _torn_clip(path: Path) -> list[str]:
    try:
        with av.open(str(path)) as container:
            next(container.decode(video=0))
    except (av.error.FFmpegError, StopIteration, OSError) as error:
        return [f"torn: {path.name}: {error}"]
    return []


def main() -> None:
    """Run the soak; exit with 1 where something was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--hours", type=float, help="of footage, all cameras together")
    parser.add_argument("--speed", type=float, default=10.0)
    parser.add_argument("--playbacks", type=int, default=N_PLAYBACKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where everything is kept; made anew")
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        sys.exit(0 if soak(folder, options) else 1)


if __name__ == "__main__":
    main()
