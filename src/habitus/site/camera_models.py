"""One model per camera, learnt from its shards, and learnt anew only when they have changed."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby, pairwise
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from habitus.corpus import Corpus, ShardedCorpus
from habitus.errors import FileError, HabitusError
from habitus.files import work_folder, write_file
from habitus.jobs.workers import Workers
from habitus.progress import Progress, ProgressCallback, ignore_progress
from habitus.rarity import DAY, counted
from habitus.scene import SceneModel, learn_scene
from habitus.scene.fleet import WORTH, Fleet
from habitus.schema import Count, NotNegative, Text
from habitus.site.shard_reading import overlaps
from habitus.site.shard_store import (
    LEARNT,
    ArchiveFolder,
    CameraFolder,
    RecordedShard,
    is_damaged,
    like_latest,
    read_json,
    set_aside,
    unseen_by_worker,
    write_json,
)
from habitus.version import __version__


class Era(TypedDict):
    """A time in which the documents of a camera are alike: of one frame size and settings."""

    frames: Text
    """Size of the frames, such as "360x288"."""
    first: Text
    """Clock of the first recording."""
    last: Text
    shards: Count


class ModelRecord(TypedDict):
    """What a model was learnt from."""

    fingerprint: Text
    """Digest of the recordings and of how they were learnt from."""
    model: Text
    """Digest of the file of the model."""
    documents: Count
    seconds: NotNegative
    first: Text
    """Clock of the first recording that was learnt from."""
    last: Text
    notes: list[Text]
    calibrated: NotRequired[bool]
    """Whether its topic model knows what normal footage scores; of 0.4 it does."""


class LearningTask(NamedTuple):
    """A camera to learn."""

    name: str
    paths: tuple[str, ...]
    options: Mapping[str, Any]
    """Of `learn_scene`."""
    fleet: str | None = None
    """File of what other cameras have in common."""
    record: Mapping[str, Any] = {}
    """What is known of its model before it is learnt, of a `ModelRecord`."""


class LearntCamera(NamedTuple):
    """A camera that was learnt, or why not."""

    contents: bytes = b""
    """What the file of its model holds; empty where there is none."""
    n_documents: int = 0
    notes: tuple[str, ...] = ()
    calibrated: bool = True
    damaged: tuple[str, ...] = ()
    """Files of shards that cannot be read."""
    reason: str = ""
    fleet: bytes = b""
    """What the file of its fleet holds; empty where it has too little footage."""


@dataclass
class Learning:
    """What learning came to."""

    learnt: list[str] = field(default_factory=list)
    """Cameras that were learnt."""
    known: list[str] = field(default_factory=list)
    """Cameras whose model is of these recordings already."""
    troubles: list[str] = field(default_factory=list)
    """Why cameras were not learnt: a line each, after the camera's name."""
    notes: list[str] = field(default_factory=list)
    damaged: bool = False
    """Whether shards were damaged: they are set aside, and their recordings can be read again."""

    def summary(self) -> str:
        """Return what was learnt, in one line."""
        return f"learnt {counted(len(self.learnt), 'camera')}; {len(self.known)} had nothing new"


def eras_of(shards: Sequence[RecordedShard]) -> list[Era]:
    """Return the eras of a camera, one after the other; shards are in order of time."""
    return [
        {
            "frames": _frames(group[0]),
            "first": group[0].clock,
            "last": group[-1].clock,
            "shards": len(group),
        }
        for group in _runs(shards)
    ]


def _runs(shards: Sequence[RecordedShard]) -> list[list[RecordedShard]]:
    """Return shards that follow each other and are alike."""
    return [list(group) for _, group in groupby(shards, key=lambda shard: shard.kind)]


def _frames(shard: RecordedShard) -> str:
    v = shard.vocabulary
    return f"{v.width}x{v.height}" if v else "unknown"


def era_notes(camera: str, shards: Sequence[RecordedShard]) -> Iterator[str]:
    """Say where a new model begins, or the model of before goes on."""
    runs, kinds = _runs(shards), list[Any]()
    for one, other in pairwise(runs):
        before, frames, since = _frames(one[0]), _frames(other[0]), other[0].clock
        what = (
            f"frames of {before} until {one[-1].clock}, of {frames} since"
            if before != frames
            else "documents are made in another way since"
        )
        kinds.append(one[0].kind)
        again = other[0].kind in kinds
        model = "the model of before goes on" if again else "a new model begins there"
        yield f"{camera}: {what} {since}: {model}"


def wanted_shards(
    shards: Sequence[RecordedShard], days: float | None = None
) -> list[RecordedShard]:
    """Return the shards to learn from: those like the last one, of the last days."""
    if not shards:
        return []
    since = -float("inf") if days is None else shards[-1].end - days * DAY
    return [shard for shard in like_latest(shards) if shard.start >= since]


def fingerprint(shards: Sequence[RecordedShard], options: Mapping[str, Any]) -> str:
    """Return a digest of recordings, and of how they are learnt from."""
    recordings = [
        [shard.clock, o["size"], o["version"], o["start"], o["made"]]
        for shard in shards
        for o in [shard.origin]
    ]
    text = json.dumps([recordings, {k: str(v) for k, v in options.items()}, __version__])
    return _digest(text.encode())


def learnt_of(camera: CameraFolder) -> ModelRecord | None:
    """Return what the model of a camera was learnt from; None where there is no model."""
    record: ModelRecord | None = read_json(camera.path / LEARNT, ModelRecord)
    return record if camera.model.is_file() else None


def learn_cameras(
    folder: ArchiveFolder,
    cameras: Sequence[CameraFolder],
    workers: Workers,
    *,
    days: float | None = None,
    options: Mapping[str, Any],
    fleet: Path | None = None,
    before: Sequence[str] = (),
    progress: ProgressCallback = ignore_progress,
) -> Learning:
    """Learn a model of each camera whose recordings or options have changed, side by side.

    They are learnt from the last so many days of each camera, or from all, with `options` of
    `learn_scene`. Those with less than half an hour lean on `fleet`, a file. `before` has the
    cameras that this run has learnt already.
    """
    if fleet is not None:
        Fleet.load(fleet)  # an error of the file is said before anything is learnt
    learning = Learning([*before])
    tasks = [
        task for camera in cameras for task in _unlearnt(camera, days, options, fleet, learning)
    ]
    # Cameras with much footage first, so that all workers finish together.
    tasks.sort(key=lambda task: -len(task.paths))
    n_jobs = max(1, workers.n_workers // max(len(tasks), 1))
    tasks = [task._replace(options={**options, "n_jobs": n_jobs}) for task in tasks]
    progress(Progress("learning", 0, len(tasks)))
    for n, (number, learnt) in enumerate(workers.as_completed(learn_camera, tasks), start=1):
        _keep(folder, tasks[number], learnt, learning)
        progress(Progress("learning", n, len(tasks), tasks[number].name))
    learning.learnt = sorted({*learning.learnt})
    try:
        common = joined_fleet(one.fleet for one in folder.cameras() if one.fleet.is_file())
        if common is not None:
            common.save(folder.fleet)
    except HabitusError as error:
        learning.notes.append(f"no fleet of all cameras: {error}")
    return learning


def _unlearnt(
    camera: CameraFolder,
    days: float | None,
    options: Mapping[str, Any],
    fleet: Path | None,
    learning: Learning,
) -> Iterator[LearningTask]:
    """Yield what is to be learnt of a camera, and note what is known, or stands against it."""
    shards = camera.shards()
    learning.notes += era_notes(camera.camera, shards)
    chosen = wanted_shards(shards, days)
    troubles = [f"{camera.camera}: {text}" for text in overlaps(chosen)]
    learning.troubles += troubles
    if troubles or not chosen:
        return
    # What cameras with much footage give to others must not depend on what they got.
    others = fleet if sum(shard.n_documents for shard in chosen) < WORTH else None
    of_others = None if others is None else _digest(others.read_bytes())
    digest, record = fingerprint(chosen, {**options, "fleet": of_others}), learnt_of(camera)
    if (
        record is not None
        and record["fingerprint"] == digest
        and record["model"] == _digest(camera.model.read_bytes())
    ):
        learning.known += [] if camera.camera in learning.learnt else [camera.camera]
        return
    yield LearningTask(
        camera.camera,
        tuple(str(shard.path.absolute()) for shard in chosen),
        options,
        None if others is None else str(others.absolute()),
        {
            "fingerprint": digest,
            "seconds": sum(shard.seconds for shard in chosen),
            "first": chosen[0].clock,
            "last": chosen[-1].clock,
        },
    )


def _digest(contents: bytes) -> str:
    return hashlib.blake2b(contents, digest_size=16).hexdigest()


def joined_fleet(paths: Iterable[Path], corpus: Corpus | None = None) -> Fleet | None:
    """Return what cameras have in common, by their files; None without any.

    Where documents are given, of those cameras alone that fit them; HabitusError otherwise, if
    there are different kinds.
    """
    fleets = []
    for path in sorted(paths):
        try:
            fleet = Fleet.load(path)
            if corpus is not None and corpus.vocabulary is not None:
                fleet.check_fits(corpus.vocabulary, corpus.clip)
            fleets.append(fleet)
        except HabitusError:
            if corpus is None:
                raise
    return reduce(add, fleets) if fleets else None


def _keep(
    folder: ArchiveFolder, task: LearningTask, learnt: LearntCamera, learning: Learning
) -> None:
    """Write a model and what it was learnt from, or note why there is none."""
    camera = folder.camera(task.name)
    if not learnt.contents:
        aside = [path for path in map(Path, learnt.damaged) if set_aside(path)]
        learning.damaged |= bool(aside)
        damaged = f"damaged: {counted(len(aside), 'shard')}" if aside else ""
        text = learnt.reason or damaged
        text = text or unseen_by_worker(learnt.damaged[0])
        learning.troubles.append(f"{camera.camera}: {text}")
        return
    write_file(camera.model, learnt.contents)
    if learnt.fleet:
        write_file(camera.fleet, learnt.fleet)
    else:
        camera.fleet.unlink(missing_ok=True)
    record = {
        **task.record,
        "model": _digest(learnt.contents),
        "documents": learnt.n_documents,
        "notes": list(learnt.notes),
        "calibrated": learnt.calibrated,
    }
    write_json(camera.path / LEARNT, record)
    learning.learnt.append(camera.camera)
    learning.notes += [f"{camera.camera}: {note}" for note in learnt.notes]


def learn_camera(task: LearningTask) -> LearntCamera:
    """Return the model of a camera; run by a worker."""
    try:
        corpus = ShardedCorpus.open(task.paths)
        fleet = None if task.fleet is None else Fleet.load(task.fleet)
        scene, common = learn_documents(corpus, fleet, **task.options)
    except FileError as error:
        damaged = tuple(path for path in task.paths if is_damaged(path))
        return LearntCamera(damaged=damaged, reason="" if damaged else str(error))
    except HabitusError as error:
        return LearntCamera(reason=f"cannot be learnt: {error}")
    with work_folder() as folder:
        path = folder / "contents"
        scene.save(path)
        contents, of_fleet = path.read_bytes(), b""
        if common is not None:
            common.save(path)
            of_fleet = path.read_bytes()
        calibrated = scene.calibration is not None
        return LearntCamera(contents, len(corpus), scene.notes, calibrated, fleet=of_fleet)


def learn_documents(
    corpus: Corpus | ShardedCorpus, fleet: Fleet | None, **options: Any
) -> tuple[SceneModel, Fleet | None]:
    """Learn a camera's model from its documents; return also what it has in common with others.

    Where there is less than half an hour of documents, habits lean on a fleet. Options are those of
    `learn_scene`.
    """
    scene = learn_scene(corpus, fleet=fleet if len(corpus) < WORTH else None, **options)
    return scene, Fleet.of_scene(scene)
