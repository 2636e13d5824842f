"""One function for each command of an archive: learn, detect, report.

Each reads what is new first, and does only what has not been done: they can be run every night, and
again after whatever cut them short.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from habitus.errors import InvalidInputError
from habitus.files import check_output
from habitus.ingest.clips import DocumentSettings
from habitus.jobs.cluster import open_workers
from habitus.progress import ProgressCallback, ignore_progress
from habitus.scene.habit_model import HALF_LIFE
from habitus.settings import (
    Address,
    AlertSettings,
    LearningSettings,
    ReadingSettings,
    check_seconds,
    check_unused,
)
from habitus.site.camera_models import Learning, learn_cameras
from habitus.site.overview import ArchiveOverview, overview_of
from habitus.site.pattern import Pattern, Recording, find_recordings
from habitus.site.shard_judging import (
    ArchiveDetection,
    judge_archive,
    note_bars,
    rank_moments,
    write_moments,
)
from habitus.site.shard_reading import CAMERA, SETTLED, Reading, read_new
from habitus.site.shard_store import SETTINGS, ArchiveFolder, ArchiveSettings
from habitus.video.mask import is_file


@dataclass(frozen=True)
class ArchiveLearning:
    """What learning an archive came to."""

    reading: Reading
    learning: Learning
    overview: ArchiveOverview

    @property
    def notes(self) -> list[str]:
        """What there is to say, one line each."""
        troubles = (*self.reading.waiting, *self.learning.troubles)
        others = [
            f"{camera.camera}: {text}"
            for camera in self.overview.cameras
            for text in camera.troubles
        ]
        return list(dict.fromkeys([*troubles, *self.learning.notes, *others]))


def learn_archive(
    patterns: str | Sequence[str] = (),
    *,
    output: Address = "archive",
    cameras: Sequence[str] = (),
    days: float | None = None,
    half_life: float | None = HALF_LIFE,
    fleet: Address | None = None,
    timezone: str | None = None,
    settled: float = SETTLED,
    documents: DocumentSettings | None = None,
    learning: LearningSettings = LearningSettings(),
    reading: ReadingSettings = ReadingSettings(),
    progress: ProgressCallback = ignore_progress,
) -> ArchiveLearning:
    """Learn one model per camera from an archive of recordings, reading only what is new.

    Parameters
    ----------
    patterns
        Where the recordings are, with fields for camera and time, such as
        "recordings/{camera}/{date}/{hour}.mp4"; any address that fsspec opens. Where none is
        given, those of the archive, with its own `timezone`, `documents` and `reading.fast`.
    output
        Folder of the archive.
    cameras
        Cameras to do; all if empty.
    days
        Learn from the last so many days of each camera only.
    half_life
        Seconds of further footage after which older footage counts half, so that habits follow the
        scene; nothing fades where None.
    fleet
        File of what other cameras have in common, for cameras with little footage: as of `learn`.
        That of the cameras of this archive with at least half an hour is written to
        `archive.fleet` in its folder.
    timezone
        Time zone that recordings are named in, such as "Europe/Berlin"; that of this machine if
        None.
    settled
        Leave recordings that were changed in the last so many seconds for the next run.
    documents
        As of `extract`; {camera} in the name of a mask stands for the camera's name.
    learning
        Numbers of topics, behaviours and restarts, and the seed.
    reading
        As of `extract`: `fast`, `jobs` and `cluster`, whose workers reach recordings and archive by
        the same names.
    progress
        Called with how far the work is.

    Returns
    -------
    ArchiveLearning
        What was read and learnt, and the archive as it is now.

    Raises
    ------
    InvalidInputError
        If a pattern matches nothing or cannot be understood, two files are of one time of a camera,
        or the folder cannot be written to.
    """
    if days is not None and not days > 0:
        raise InvalidInputError(f"days must be above 0, found {days:g}", parameter="days")
    check_seconds("half_life", half_life)
    folder = ArchiveFolder(Path(output))
    check_unused(learning, "an archive", "n_topics", "n_behaviours", "n_restarts", "seed")
    check_unused(reading, "an archive", "fast", "jobs", "cluster")
    settings = _archive_settings(
        folder, patterns, timezone, documents or DocumentSettings(), reading.fast
    )
    notes: list[str] = []
    recordings = _recordings(settings, cameras, notes)
    options = {**learning.model_options(), "half_life": half_life}
    with folder.alone(), open_workers(reading.cluster, reading.jobs) as workers:
        folder.put_settings(settings)
        came, models = Reading(), Learning()
        for _ in range(2):  # again where shards were damaged, whose recordings are read again
            came = read_new(
                folder,
                recordings,
                settings,
                workers,
                settled=settled,
                before=came,
                progress=progress,
            )
            models = learn_cameras(
                folder,
                [camera for camera in folder.cameras() if not cameras or camera.camera in cameras],
                workers,
                days=days,
                options=options,
                fleet=None if fleet is None else Path(fleet),
                before=models.learnt,
                progress=progress,
            )
            if not models.damaged:
                break
    models.notes[:0] = notes
    return ArchiveLearning(came, models, overview_of(folder))


def detect_archive(
    folder: Address,
    *,
    alerts_per_day: float = AlertSettings.BUDGET,
    cameras: Sequence[str] = (),
    again: bool = False,
    settled: float = SETTLED,
    cluster: str | None = None,
    jobs: int = -1,
    progress: ProgressCallback = ignore_progress,
) -> ArchiveDetection:
    """Find what is unusual in an archive, within one budget of alerts for all cameras.

    New recordings are read first. Each recording is judged once, with the model that its camera
    has then: run this before `learn_archive`, and it is judged by a model that has not learnt from
    it. `events.jsonl` in the folder has the most unusual moments of all, alarms or not.

    Parameters
    ----------
    folder
        Folder of the archive.
    alerts_per_day
        Alerts per day that normal footage of all cameras together may raise.
    cameras
        Cameras to judge; all if empty. The budget is always that of all.
    again
        Judge again what was judged before, with the models as they are now.
    settled, cluster, jobs, progress
        As of `learn_archive`.

    Returns
    -------
    ArchiveDetection
        The most unusual moments of all, and which of them are alarms.
    """
    if not 0 < alerts_per_day < float("inf"):
        raise InvalidInputError(
            f"a budget must be above 0 alerts per day and finite, found {alerts_per_day:g}",
            parameter="alerts_per_day",
        )
    archive = _archive_at(folder)
    settings = archive.settings()
    with archive.alone(), open_workers(cluster, jobs) as workers:
        notes: list[str] = []
        recordings = [] if settings is None else _recordings(settings, (), notes, strict=False)
        zone = None if settings is None else settings["timezone"]
        detection = ArchiveDetection()
        for first in (True, False):  # again where shards were damaged, as for learning
            reading = read_new(
                archive, recordings, settings, workers, settled=settled, progress=progress
            )
            detection = judge_archive(
                archive,
                archive.cameras(cameras),
                workers,
                alerts_per_day=alerts_per_day,
                again=again and first,
                n_before=detection.n_judged,
                progress=progress,
            )
            detection.troubles[:0] = reading.waiting
            if not detection.damaged:
                break
        rank_moments(archive.cameras(), detection, timezone=zone)
        note_bars(archive.cameras(cameras), detection, workers)
        detection.notes[:0] = notes
        write_moments(archive, detection, recordings, workers, progress=progress)
    return detection


def report_archive(
    folder: Address,
    *,
    output: Address | None = None,
    cameras: Sequence[str] = (),
    force: bool = False,
) -> ArchiveOverview:
    """Return an archive at a glance, and write it as a page where `output` is given.

    Parameters
    ----------
    folder
        Folder of the archive.
    output
        Page to write, as .html: one file that needs nothing else.
    cameras
        Cameras to show; all if empty.
    force
        Replace a page that habitus did not write.
    """
    archive = _archive_at(folder)
    if output is not None:
        check_output(output, "page", force=force)
    overview = overview_of(archive, cameras)
    if output is not None:
        from habitus.site.archive_page import write_archive_page

        write_archive_page(Path(output), archive, overview)
    return overview


def _archive_at(folder: Address) -> ArchiveFolder:
    """Return the archive in a folder; raise if there is none."""
    archive = ArchiveFolder(Path(folder))
    if not (archive.path / SETTINGS).is_file() and not archive.cameras():
        what = "another folder" if archive.path.is_dir() else "a file"
        if not archive.path.exists():
            what = "nothing"
        raise InvalidInputError(
            f"{folder}: expected the folder of an archive, found {what}: learn one first",
            parameter="folder",
        )
    return archive


def _archive_settings(
    folder: ArchiveFolder,
    patterns: str | Sequence[str],
    timezone: str | None,
    documents: DocumentSettings,
    fast: bool,
) -> ArchiveSettings:
    """Return how recordings are read: as they are named, or, without patterns, as before."""
    texts = [patterns] if isinstance(patterns, str) else list(patterns)
    if not texts:
        if (stored := folder.settings()) is not None:
            return stored
        raise InvalidInputError(
            "say where the recordings are, such as 'recordings/{camera}/{date}/{hour}.mp4'",
            parameter="patterns",
        )
    texts = [text if "://" in text else str(Path(text).absolute()) for text in texts]
    values = {name: value for name, value in asdict(documents).items() if name != "still_every"}
    for name in ("mask", "region"):
        if values[name] and (CAMERA in values[name] or is_file(values[name])):
            values[name] = str(Path(values[name]).absolute())
    return {"patterns": texts, "timezone": timezone, "documents": values, "fast": fast}


def _recordings(
    settings: ArchiveSettings, cameras: Sequence[str], notes: list[str], *, strict: bool = True
) -> list[Recording]:
    """Return the recordings that there are, noting files passed over; unless strict, maybe none."""
    patterns = [Pattern(text) for text in settings["patterns"]]
    if not strict:
        patterns = [pattern for pattern in patterns if pattern.files()]
    return find_recordings(patterns, timezone=settings["timezone"], cameras=cameras, notes=notes)
