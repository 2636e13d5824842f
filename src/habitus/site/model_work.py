"""Work on models, done in processes of their own: learning one, and answering questions about one.

Each function runs in a process that was forked, and sends what it finds over its connection.
`habitus.site.relearning` is the other side.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from habitus.errors import HabitusError, InvalidInputError
from habitus.files import write_file
from habitus.model.inspection import matched_behaviours
from habitus.progress import Progress
from habitus.rarity import counted
from habitus.reporting.summaries import summarise_model
from habitus.scene import Event, SceneModel
from habitus.scene.fleet import Fleet
from habitus.scene.habit_model import HALF_LIFE
from habitus.settings import LearningSettings
from habitus.site.camera_models import joined_fleet, learn_documents
from habitus.site.footage import join_hours, read_footage
from habitus.site.judging import (
    TaughtScene,
    accepted_times_of,
    as_event,
    remember,
    with_accepted,
)
from habitus.site.process import ProgressSender
from habitus.site.relearning import (
    LearningFailure,
    LearningJob,
    LearningReport,
    LearntModel,
    description_of,
)
from habitus.site.shard_store import CONSOLE, FLEET, CameraFolder

# Niceness of learning, and of answering somebody who waits.
NICE, SOON = 15, 5
RESTARTS = {"first": 5}
"""Learning runs of which the best is taken: fewer for the first model, which is to come soon and is
replaced within the hour."""
KEPT_MODELS = 3
NAME = re.compile(r"model-(\d{1,9})\.habitus")
# Width in pixels of the picture of a behaviour.
PICTURE_WIDTH = 480


def learn_from_footage(job: LearningJob, connection: Connection) -> None:
    """Learn a model; send progress, and `LearntModel` or `LearningFailure` at the end."""
    os.nice(NICE)
    try:
        outcome: LearningReport = _learn(job, connection)
    except (HabitusError, OSError, MemoryError) as error:
        outcome = LearningFailure(str(error) or type(error).__name__)
    with suppress(BrokenPipeError):  # the server was killed: nobody waits for it
        connection.send(outcome)


def _learn(job: LearningJob, connection: Connection) -> LearntModel:
    camera, reporter = CameraFolder(job.folder, CONSOLE), ProgressSender(connection)
    reporter(Progress("reading", 0, None))
    join_hours(camera.documents, time.time())
    footage = read_footage(camera.documents, job.since, job.until, job.excluded)
    corpus = footage.corpus
    if corpus is None:
        raise InvalidInputError("there is no footage to learn from yet")
    others = [path for path in job.folder.parent.glob(f"*/{FLEET}") if path.parent != job.folder]
    fleet = None if corpus.vocabulary is None else joined_fleet(others, corpus)
    n_restarts = RESTARTS.get(job.occasion, LearningSettings.n_restarts)
    learning = LearningSettings(n_restarts=n_restarts, seed=job.seed)
    scene, common = learn_documents(
        corpus, fleet, half_life=HALF_LIFE, n_jobs=1, progress=reporter, **learning.model_options()
    )
    numbers = [number for number, _ in _models(job.folder)]
    path = job.folder / f"model-{max(numbers, default=0) + 1}.habitus"
    reporter(Progress("drawing", 0, None))
    write_description(scene, path)
    scene.save(path)
    if common is not None:
        common.save(camera.fleet)
    names, unmatched = names_again(scene, job)
    _forget(job.folder)
    return LearntModel(
        model=path.name,
        summary=scene.summary(),
        notes=(
            *(*footage.notes, *scene.notes, *_fleet_note(scene, fleet)),
            *(*_accepted_note(scene, path, job.accepted), *unmatched),
        ),
        since=float(corpus.times.min()),
        until=float(corpus.times.max()) + corpus.clip,
        n_documents=len(corpus),
        n_behaviours=learning.n_behaviours,
        names=tuple((str(number), name) for number, name in names.items()),
    )


def names_again(scene: SceneModel, job: LearningJob) -> tuple[dict[int, str], list[str]]:
    """Return the names of the model before that a new one keeps, and notes on those it does not."""
    matches: dict[int, int] = {}
    if job.names and job.before is not None:
        with suppress(HabitusError):
            before = SceneModel.load(job.folder / job.before).model
            if before.vocabulary_ == scene.model.vocabulary_:
                matches = matched_behaviours(before.parameters_, scene.model.parameters_)
    names = {matches[number - 1] + 1: name for number, name in job.names if number - 1 in matches}
    lost = [name for _, name in job.names if name not in names.values()]
    notes = [f"no behaviour is like the one called {name!r} any more" for name in lost]
    return dict(sorted(names.items())), notes


def _fleet_note(scene: SceneModel, fleet: Fleet | None) -> Iterator[str]:
    """Yield a note where a model leans on other cameras."""
    if fleet is not None and scene.habits is not None and scene.habits.leans_on_fleet:
        yield (
            "how far normal footage goes was learnt from "
            f"{counted(fleet.n_cameras, 'other camera')} as well: this one has less than half an "
            "hour of it"
        )


def _models(folder: Path) -> list[tuple[int, Path]]:
    """Return the numbers of the models in a folder and their files, in order."""
    named = ((NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in named if match)


def _forget(folder: Path) -> None:
    """Delete all but the latest models."""
    for _, path in _models(folder)[:-KEPT_MODELS]:
        path.unlink(missing_ok=True)
        description_of(path).unlink(missing_ok=True)
        accepted_times_of(path).unlink(missing_ok=True)


def _accepted_note(
    scene: SceneModel, path: Path, accepted: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """Remember how often accepted events count; yield a note about those that do not."""
    _, times = with_accepted(scene, accepted)
    remember(path, accepted, times)
    if n_unfit := times.count(0.0):
        yield (
            f"{counted(n_unfit, 'event')} called normal, but seen with another frame size or mask: "
            "not counted any more"
        )


def write_description(scene: SceneModel, path: Path) -> None:
    """Write the behaviours of a model beside it, and a picture of each."""
    from habitus.reporting.figures.moments import jpeg
    from habitus.reporting.figures.scene import behaviour_pictures

    folder = path.parent / "behaviours"
    pictures = behaviour_pictures(scene.model, width=PICTURE_WIDTH)
    for number, picture in enumerate(pictures, start=1):
        write_file(folder / f"{number}.jpg", jpeg(picture))
    write_file(description_of(path), json.dumps(_behaviours(scene, path.parent)).encode())


def _behaviours(scene: SceneModel, folder: Path) -> list[dict[str, Any]]:
    """Return each behaviour as plain values; its picture is in the folder."""
    clip = scene.model.clip_
    return [
        {
            "number": behaviour.number,
            "share": behaviour.share,
            "seconds": None if behaviour.duration is None else behaviour.duration * clip,
            "next": [
                {"number": likely.number, "probability": float(likely.probability)}
                for likely in behaviour.successors
            ],
            "picture": name if (folder / name).exists() else None,
        }
        for behaviour in summarise_model(scene.model).behaviours
        for name in [f"behaviours/{behaviour.number}.jpg"]
    ]


def behaviours_of(model: Path) -> list[dict[str, Any]]:
    """Return what `habitus.site.relearning.describe` returns."""
    os.nice(SOON)
    return _behaviours(SceneModel.load(model), model.parent)


def silenced(
    model: Path,
    accepted: Sequence[dict[str, Any]],
    event: dict[str, Any],
    recent: Sequence[dict[str, Any]],
) -> list[int]:
    """Return what `habitus.site.relearning.silenced_by` returns."""
    os.nice(SOON)
    taught = TaughtScene()
    scene = taught.scene(model, accepted)
    alarms = [as_event(values) for values in recent]
    further = scene.accept(as_event(event)).scene
    if further.habits is not None:
        remember(model, [*accepted, event], [*taught.times, further.habits.accepted[-1].times])
    return sorted(_quiet(further, alarms) - _quiet(scene, alarms))


def _quiet(scene: SceneModel, alarms: Sequence[Event]) -> set[int]:
    """Return which alarms a model would not raise; those that it cannot judge, it would."""
    quiet = set()
    for n, event in enumerate(alarms):
        with suppress(InvalidInputError):
            quiet |= {n} if scene.silenced([event]) else set()
    return quiet
