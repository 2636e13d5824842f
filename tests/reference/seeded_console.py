"""A console with days behind it: cameras, minutes, events with their pictures, reviews.

Everything follows from the seed and from `now`. Pictures and clips are of the rendered junction:
a few scenes for each camera, of which each event has its own hard links. `n_events` and `n_days`
make it as large as a benchmark wants; only the newest events have files then.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import av
import cv2
import numpy as np
from sqlalchemy import insert

import habitus
from habitus.lab import Anomaly, Junction, to_bgr
from habitus.rarity import unusualness
from habitus.scene.events import TrackPoint
from habitus.scene.localisation import Box
from habitus.web import database as tables
from habitus.web.server import Console, open_console
from habitus.web.server_settings import ServerSettings

NOW = 1_794_830_400.0
"""Monday 16 November 2026, 10:40 UTC, where a test needs the same pictures each time."""
DAY = 86_400.0
BEFORE, AFTER = 3.0, 3.0
"""Seconds of a clip around its anomaly."""
LONGEST = 6.0
N_BEHAVIOURS = 4
WITH_FILES = 200
"""Events that have files, the newest ones."""
BATCH = 5_000
THRESHOLD = -9.0


class Place(NamedTuple):
    """A camera to be seeded."""

    id: str
    name: str
    address: str
    seed: int
    state: str
    minutes: float
    """Since when it is in that state."""
    reason: str = ""


PLACES = (
    Place("market-junction", "Market junction", "rtsp://10.0.4.11/main", 12, "watching", 1900),
    Place("station-road", "Station road", "rtsp://10.0.4.12/main", 15, "watching", 412),
    Place("harbour-gate", "Harbour gate", "http://10.0.4.31/video", 19, "lost", 23, "no frame"),
)

SAID = {
    "wrong-way": (
        "direction, scan",
        "on the left: something moving to the left, where things go to the right (0 of 212 times)",
    ),
    "red-light": (
        "together, sum",
        "in the middle: things move there that do not move together otherwise (0 of 96 times)",
    ),
    "jaywalker": (
        "place, scan",
        "at the bottom: something small moving where hardly anything moves (2 of 600)",
    ),
    "pavement": (
        "place, sum",
        "on the right: something moving where hardly anything moves (0 of 600)",
    ),
    "u-turn": (
        "direction, scan",
        "in the middle: something moving down and to the left (0 of 33 times)",
    ),
    "breakdown": ("speed, scan", "at the top: about 51 % of the usual speed there (1 of 32 times)"),
}
"""Cue and explanation of each kind of anomaly."""
RARITIES = (
    "about once in 3 hours of normal footage",
    "about once in 11 hours of normal footage",
    "about once in 2 days of normal footage",
    "rarer than anything in the 46 hours learnt from, about once in 9 days",
)
EVERY = (3 * 3600.0, 11 * 3600.0, 2 * DAY, 9 * DAY)
"""Seconds in which such a thing comes once, of each of these."""


@dataclass(frozen=True)
class Scene:
    """An anomaly with its pictures."""

    kind: str
    boxes: tuple[tuple[int, int, int, int], ...]
    seconds: float
    files: Path | None
    """Path of its pictures and clip, without their suffix, if there are any."""
    track: tuple[tuple[int, int, int, int], ...] = ()
    """Its box at each second."""


def seeded_console(
    folder: Path,
    *,
    now: float = NOW,
    n_events: int = 80,
    n_days: int = 2,
    places: tuple[Place, ...] = PLACES,
    model: bool = False,
    pictures: bool = True,
    seconds: float = 75.0,
    enabled: bool = True,
    settings: dict[str, Any] | None = None,
) -> Console:
    """Return the console of a new data folder with cameras, events and all that pages show.

    Parameters
    ----------
    folder
        Data folder; made where it is not there.
    now
        When the newest event has just been, in seconds since the epoch.
    n_events, n_days
        In all, evenly among the cameras; and over how many days, with all their minutes.
    places
        The cameras.
    model
        Whether the first camera has a model, learnt from two minutes: half a minute more.
    pictures
        Whether the newest events have pictures and clips: a minute for each seed among the places.
    seconds
        Length of the scenes whose anomalies are the events.
    enabled
        Whether the cameras are to be watched.
    settings
        Further fields of `ServerSettings`.
    """
    console = open_console(ServerSettings(folder, **(settings or {})))
    by_seed = {
        place.seed: _scenes(folder / "scenes", place, seconds, pictures=pictures)
        for place in {place.seed: place for place in places}.values()
    }
    scenes = [by_seed[place.seed] for place in places]
    with console.database.transaction() as session:
        for place in places:
            session.add(_camera(console, place, now, n_days, enabled=enabled))
        session.flush()
        for rows in _batches(_event_rows(console, places, scenes, now, n_events, n_days)):
            session.execute(insert(tables.EventRow), rows)
        for k, place in enumerate(places):
            for rows in _batches(_minute_rows(place, k, now, n_days)):
                session.execute(insert(tables.Minute), rows)
            session.add_all(_troubles(place, now))
            session.add_all(_learnings(place, now, n_days))
        session.add_all(_channels(console))
        session.flush()
        session.add_all(_outbox(now))
        session.add_all(_audit(places, now))
    if model:
        _learn(console, places[0])
    return console


def _camera(
    console: Console, place: Place, now: float, n_days: int, *, enabled: bool
) -> tables.CameraRow:
    return tables.CameraRow(
        id=place.id,
        name=place.name,
        kind="stream",
        secret_address=console.vault.seal(place.address.replace("//", "//viewer:secret@")),
        shown_address=place.address,
        alerts_per_day=5.0,
        learn_days=7,
        zones=[],
        options={},
        enabled=enabled,
        created=now - n_days * DAY - 3600,
        width=360,
        height=288,
        state=place.state,
        since=now - 60 * place.minutes,
        reason=place.reason,
        model=None,
    )


def _scenes(folder: Path, place: Place, seconds: float, *, pictures: bool) -> list[Scene]:
    """Render the anomalies of a camera: a clip, a picture and a heat map of each."""
    folder.mkdir(parents=True, exist_ok=True)
    junction = Junction(
        seed=place.seed,
        seconds=seconds,
        fps=12.5,
        normal_for=BEFORE,
        anomalies_per_hour=360.0,
        anomalies=("wrong-way", "jaywalker", "pavement", "u-turn", "red-light"),
    )
    if not pictures:
        return [
            Scene(
                anomaly.kind,
                (_peak(junction, anomaly)[1],),
                _seconds(anomaly),
                None,
                _boxes_by_second(junction, anomaly),
            )
            for anomaly in junction.truth()
        ]
    wanted = {number for anomaly in junction.truth() for number in _span(junction, anomaly)}
    frames = {n: frame for n, frame in enumerate(junction.frames()) if n in wanted}
    return [
        _scene(folder / f"{place.id}-{k}", junction, frames, anomaly)
        for k, anomaly in enumerate(junction.truth())
    ]


def _span(junction: Junction, anomaly: Anomaly) -> range:
    """Return the frames of an anomaly's clip."""
    seconds = _seconds(anomaly)
    first = max(0, round((anomaly.start - BEFORE) * junction.fps))
    return range(
        first, min(junction.n_frames, round((anomaly.start + seconds + AFTER) * junction.fps))
    )


def _seconds(anomaly: Anomaly) -> float:
    return min(anomaly.end - anomaly.start, LONGEST)


def _peak(junction: Junction, anomaly: Anomaly) -> tuple[int, tuple[int, int, int, int]]:
    """Return frame and box in the middle of an anomaly."""
    middle = round(_seconds(anomaly) / 2 * junction.fps)
    frame, *box = anomaly.boxes[min(len(anomaly.boxes) // 2, middle)]
    left, top, right, bottom = map(int, box)
    return int(frame), (left, top, right, bottom)


def _scene(files: Path, junction: Junction, frames: dict[int, Any], anomaly: Anomaly) -> Scene:
    _encode(files.with_suffix(".mp4"), [frames[n] for n in _span(junction, anomaly)], junction)
    frame, box = _peak(junction, anomaly)
    picture = to_bgr(frames[frame])
    cv2.imwrite(str(files.with_suffix(".jpg")), picture, [cv2.IMWRITE_JPEG_QUALITY, 85])
    cv2.imwrite(str(files.with_suffix(".heat.jpg")), _heated(picture, box))
    seconds, track = _seconds(anomaly), _boxes_by_second(junction, anomaly)
    return Scene(anomaly.kind, (box,), seconds, files, track)


def _boxes_by_second(junction: Junction, anomaly: Anomaly) -> tuple[tuple[int, int, int, int], ...]:
    frames = [min(round(n * junction.fps), len(anomaly.boxes) - 1) for n in range(int(LONGEST))]
    boxes = (tuple(map(int, anomaly.boxes[frame][1:])) for frame in frames)
    return tuple(list(boxes)[: int(_seconds(anomaly)) + 1])  # type: ignore[arg-type]


def _encode(path: Path, frames: list[Any], junction: Junction) -> None:
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=Fraction(junction.fps))
        stream.width, stream.height, stream.pix_fmt = junction.width, junction.height, "yuv420p"
        stream.options = {"preset": "ultrafast", "crf": "26"}
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="yuv420p")))
        container.mux(stream.encode())


def _heated(picture: Any, box: tuple[int, ...]) -> Any:
    """Return the picture with a warm spot at the box."""
    left, top, right, bottom = box
    y, x = np.mgrid[: picture.shape[0], : picture.shape[1]]
    across, down = max(right - left, 16), max(bottom - top, 16)
    distance = ((x - (left + right) / 2) / across) ** 2 + ((y - (top + bottom) / 2) / down) ** 2
    share = 0.6 * np.exp(-distance)[..., None]
    return (picture + share * (np.array([122, 0, 224]) - picture)).astype(np.uint8)


def _event_rows(
    console: Console,
    places: tuple[Place, ...],
    scenes: list[list[Scene]],
    now: float,
    n_events: int,
    n_days: int,
) -> Iterator[dict[str, Any]]:
    """Yield events from the newest to the oldest."""
    rng = np.random.default_rng(15)
    gaps = rng.exponential(n_days * DAY / n_events, size=n_events)
    starts = now - 45 - np.cumsum(gaps) * min(1.0, (n_days * DAY - 600) / gaps.sum())
    for k, start in enumerate(starts.tolist()):
        which = int(rng.integers(len(places)))
        place = places[which]
        if place.state == "lost":
            start = min(start, now - 60 * place.minutes - 30)
        scene = scenes[which][int(rng.integers(len(scenes[which])))]
        normality = THRESHOLD - float(rng.exponential(4.0)) - 0.05
        alarm = bool(rng.random() > 0.2)
        review, reviewer = None, None
        if k > n_events // 6 and alarm and rng.random() < 0.8:
            review, reviewer = ("unusual" if rng.random() < 0.7 else "normal"), "anna"
        yield _event_row(
            console,
            place,
            scene,
            start=start,
            number=k,
            normality=normality if alarm else THRESHOLD + 1.0,
            alarm=alarm,
            rarity=RARITIES[(rank := min(int((THRESHOLD - normality) / 3), 3))],
            probability=1 / EVERY[rank],
            signature=_signature(scene, rng),
            review=review,
            reviewer=reviewer,
            reviewed=start + 3600 if review else None,
        )


def _event_row(
    console: Console,
    place: Place,
    scene: Scene,
    *,
    start: float,
    number: int,
    normality: float,
    **known: Any,
) -> dict[str, Any]:
    identity = f"{number:012x}"
    cue, explanation = SAID[scene.kind]
    behaviour = 1 + number % N_BEHAVIOURS
    end, peak = start + scene.seconds, start + scene.seconds / 2
    expected = np.roll([0.55, 0.25, 0.15, 0.05], number % N_BEHAVIOURS)
    details = habitus.Event(
        source=place.address,
        start=start,
        end=end,
        peak=peak,
        normality=normality,
        threshold=THRESHOLD,
        behaviour=behaviour,
        expected=tuple(expected.tolist()),
        boxes=scene.boxes,
        words=(17, 90),
        surprise=-normality + 12.0,
        misfit=-normality + 9.5,
        shift=2.5,
        explanation=explanation,
        surprisals=(8.5, 6.25),
        alarm=known["alarm"],
        probability=known["probability"],
        rarity=known["rarity"],
        cue=cue,
        track=tuple(
            TrackPoint(start + second, normality, (Box(*box),))
            for second, box in enumerate(scene.track)
        ),
    )
    files = _files(console, place, scene.files, identity) if number < WITH_FILES else {}
    sizes = {suffix: _folder(console, place, name).stat().st_size for suffix, name in files.items()}
    return {
        "id": identity,
        "camera_id": place.id,
        "start": start,
        "end": end,
        "peak": peak,
        "normality": normality,
        "threshold": THRESHOLD,
        "unusual": unusualness(details.probability),
        "hour": datetime.fromtimestamp(start).hour,
        "words": explanation.lower(),
        "clip_start": start - BEFORE,
        "cue": cue,
        "explanation": explanation,
        "behaviour": behaviour,
        "details": details.to_json(),
        "thumbnail": files.get("jpg"),
        "heat": files.get("heat.jpg"),
        "clip": files.get("mp4"),
        "n_bytes": sum(sizes.values()),
        "clip_bytes": sizes.get("mp4", 0),
        "at_half": known["alarm"] and normality < THRESHOLD - 2.0,
        **known,
    }


def _folder(console: Console, place: Place, *names: str) -> Path:
    return console.settings.camera_folder(place.id).joinpath("events", *names)


def _files(console: Console, place: Place, files: Path | None, identity: str) -> dict[str, str]:
    if files is None:
        return {}
    folder = _folder(console, place)
    folder.mkdir(parents=True, exist_ok=True)
    names = {suffix: f"{identity}.{suffix}" for suffix in ("jpg", "heat.jpg", "mp4")}
    for suffix, name in names.items():
        os.link(files.with_suffix(f".{suffix}"), folder / name)
    return names


def _signature(scene: Scene, rng: np.random.Generator) -> bytes:
    """Return a unit vector: events of a scene have similar ones."""
    own = np.random.default_rng(scene.boxes[0]).normal(size=64)
    vector = own + 0.3 * rng.normal(size=64)
    return (vector / np.linalg.norm(vector)).astype(np.float32).tobytes()


def _minute_rows(place: Place, k: int, now: float, n_days: int) -> Iterator[dict[str, Any]]:
    """Yield minutes: a daily swing, noise, and gaps while the camera was lost."""
    rng = np.random.default_rng(100 + k)
    last = int(now // 60)
    gap = (last - 700, last - 640)
    lost = last - place.minutes if place.state == "lost" else last
    for minute in range(last - n_days * 1440, last):
        if gap[0] <= minute < gap[1] or minute >= lost:
            continue
        swing = -3.0 - 1.2 * np.sin(2 * np.pi * (minute % 1440) / 1440)
        normality = (swing - rng.exponential(0.8, size=60)).astype(np.float32)
        behaviour = (1 + (np.arange(60) + minute * 60 + 7 * k) // 14 % N_BEHAVIOURS).astype(
            np.uint8
        )
        yield {
            "camera_id": place.id,
            "minute": minute,
            "normality": float(normality.min()),
            "behaviour": int(np.bincount(behaviour).argmax()),
            "n_documents": 60,
            "n_judged": 60,
            "seconds": normality.tobytes() + behaviour.tobytes(),
        }


def _troubles(place: Place, now: float) -> list[tables.TroubleRow]:
    start = now - 700 * 60
    troubles = [(start, start + 3600.0, "lost", "no frame")]
    if place.state == "lost":
        troubles.append((now - 60 * place.minutes, None, "lost", place.reason))
    return [
        tables.TroubleRow(camera_id=place.id, kind=kind, start=begin, end=end, reason=reason)
        for begin, end, kind, reason in troubles
    ]


def _learnings(place: Place, now: float, n_days: int) -> list[tables.LearningRow]:
    added = now - n_days * DAY
    times = [("first", added + 300, 300), ("hour", added + 3600, 3600)]
    times += [("night", added + day * DAY - 6 * 3600, 70_000 * day) for day in range(1, n_days + 1)]
    return [
        tables.LearningRow(
            camera_id=place.id,
            occasion=occasion,
            started=started,
            ended=started + 90,
            since=added,
            until=started,
            n_documents=n,
            model=f"model-{k + 1}.habitus",
            summary=f"{N_BEHAVIOURS} behaviours and 8 topics from {n} documents",
            notes=[],
        )
        for k, (occasion, started, n) in enumerate(times)
    ]


def _channels(console: Console) -> list[tables.Channel]:
    webhook = {"url": "https://hooks.example.org/habitus"}
    broker = {"host": "mqtt.example.org", "port": 1883, "topic": "habitus"}
    return [
        tables.Channel(
            id=number,
            name=name,
            kind=kind,
            secret_settings=console.vault.seal(shown),
            shown_settings=shown,
            cameras=[],
            enabled=enabled,
            quiet_from="22:00" if number == 1 else None,
            quiet_until="06:30" if number == 1 else None,
            most_per_hour=10 if number == 1 else None,
        )
        for number, name, kind, shown, enabled in (
            (1, "Control room", "webhook", webhook, False),
            (2, "Home Assistant", "mqtt", broker, False),
        )
    ]


def _outbox(now: float) -> list[tables.OutboxEntry]:
    return [
        tables.OutboxEntry(
            channel_id=1 + k % 2,
            subject=f"{k:012x}/started",
            kind="started",
            body={},
            created=now - 600 * k - 50,
            sent=None if k == 0 else now - 600 * k - 49,
            outcome="waiting" if k == 0 else "sent",
            attempts=3 if k == 0 else 1,
            error="connection refused" if k == 0 else "",
        )
        for k in range(6)
    ]


def _audit(places: tuple[Place, ...], now: float) -> list[tables.AuditEntry]:
    added = [("admin", "camera added", place.id, {"name": place.name}) for place in places]
    rest: list[tuple[str, str, str, dict[str, Any]]] = [
        ("admin", "user added", "anna", {"role": "reviewer"}),
        ("anna", "event reviewed", f"{20:012x}", {"review": "unusual"}),
    ]
    return [
        tables.AuditEntry(time=now - DAY + 60 * k, actor=a, action=b, subject=c, details=d)
        for k, (a, b, c, d) in enumerate([*added, *rest])
    ]


def _learn(console: Console, place: Place) -> None:
    """Learn a model of a camera from two minutes without anomalies."""
    from habitus.ingest.clips import DocumentSettings
    from habitus.ingest.extraction import extract_corpus
    from habitus.lab import render
    from habitus.scene import learn_scene
    from habitus.site.model_work import write_description
    from habitus.video import Source

    folder = console.settings.camera_folder(place.id)
    video = console.settings.data / "scenes" / "normal.mp4"
    render(Junction(seed=place.seed, seconds=150.0, normal_for=150.0), video)
    documents = extract_corpus([Source(str(video))], DocumentSettings(), output=video, jobs=1)
    learnt = learn_scene(documents.corpus, n_restarts=3, n_jobs=1, random_state=0)
    learnt.save(folder / "model-1.habitus")
    write_description(learnt, folder / "model-1.habitus")
    with console.database.transaction() as session:
        camera = session.get(tables.CameraRow, place.id)
        assert camera is not None
        camera.model = "model-1.habitus"


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
