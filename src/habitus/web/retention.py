"""Keeping the data folder within its quota, and old things no longer than they are wanted.

Documents to learn from are thinned first, where a camera has more than learning reads. Then clips
go, the oldest before the others; then events that nobody called unusual; those that were called
unusual stay longest. Where that is not enough, documents are thinned further. What was called
normal stays as a row without files: it is what its camera has learnt. A row is changed before its
files are deleted: after a crash in between, files that no row knows are swept.
"""

import logging
import shutil
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import ColumnElement, delete, or_, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from habitus.errors import FileError, HabitusError
from habitus.web import queries
from habitus.web.database import (
    AuditEntry,
    CameraRow,
    EventRow,
    Login,
    Minute,
    OutboxEntry,
    TroubleRow,
    first_line,
)
from habitus.web.preferences import read_preferences
from habitus.web.server_settings import REMOVED
from habitus.web.store import SECONDS

if TYPE_CHECKING:
    from habitus.web.server import Console

DAY = queries.DAY
AUDIT_DAYS = 400
"""Days that who did what is kept."""
TOGETHER = 200
"""Rows that are deleted together."""
LEAST_SHARE = 0.1
"""Share of the quota that events have at least, whatever footage and models take."""
LEAST_FREE, LEAST_FREE_SHARE = 200 * 10**6, 0.05
"""Bytes, or on a small disk a share of it, that are left free: databases cannot write without."""
QUOTA_EVERY, SWEEP_EVERY = 60.0, 6 * 3600.0
"""Seconds between two looks at the quota, and at everything else."""
PLENTY, LEAST_DOCUMENTS = 100 * 10**6, 10 * 10**6
"""Bytes of a camera's documents beyond which they are more than learning reads; and those that are
left in any case."""
RECENT_SHARE, LEAST_RECENT = 0.25, 32 * 10**6
"""Share of the quota that the last minutes of all cameras take at most; and bytes of each camera
that are left in any case: clips of events are cut from them."""
THINNING = 300.0
"""Seconds that thinning the documents of a camera may take."""
UNKNOWN_FOR = 3600.0
"""Seconds after which a file that no row knows is deleted."""

logger = logging.getLogger(__name__)


class SweepCounts(NamedTuple):
    """What was deleted."""

    clips: int = 0
    events: int = 0
    files: int = 0
    """Files that no row knew, and old documents and uploads."""


class Retention(threading.Thread):
    """The thread that keeps a console to its limits."""

    def __init__(self, console: "Console") -> None:
        super().__init__(name="retention", daemon=True)
        self.console = console
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Keep to the limits until it is stopped."""
        next_sweep = 0.0
        while not self._stopping.wait(QUOTA_EVERY if next_sweep else 5.0):
            try:
                keep_quota(self.console)
                if time.monotonic() >= next_sweep:
                    sweep(self.console)
                    next_sweep = time.monotonic() + SWEEP_EVERY
            except Exception as error:  # the disk would be full one day if the thread ended
                if not isinstance(error, SQLAlchemyError | OSError | HabitusError):
                    logger.exception("in the retention")
                self.console.bulletin.post(f"old data cannot be deleted: {first_line(error)}")


def keep_quota(console: "Console") -> SweepCounts:
    """Thin documents, delete clips and events, as far as the quota or a full disk asks for that.

    Where others have filled the disk, what was called unusual stays.
    """
    if _missing(console) > 0:
        console.bulletin.post("the disk is nearly full: the oldest clips and events are deleted")
    prune_recent(console)
    thin_documents(console, _missing(console), PLENTY)
    counts = _keep_events(console, _missing(console))
    thin_documents(console, _missing(console), LEAST_DOCUMENTS)
    return counts


def _missing(console: "Console") -> int:
    """Return how many more bytes are to be free on the disk; none if this is not above 0."""
    disk = shutil.disk_usage(console.settings.data)
    return int(min(LEAST_FREE, LEAST_FREE_SHARE * disk.total)) - disk.free


def prune_recent(console: "Console") -> None:
    """Delete the oldest of the last minutes, where there are too many cameras for the quota."""
    quota = console.database.read(read_preferences).quota_bytes
    folders = list((console.settings.data / "cameras").glob("*/recent"))
    most = max(RECENT_SHARE * quota / max(len(folders), 1), LEAST_RECENT)
    for folder in folders:
        held = 0
        # Named by their time; the newest is being written.
        for number, path in enumerate(sorted(folder.glob("*.*"), reverse=True)):
            try:
                held += path.stat().st_size
                if number and held > most:
                    path.unlink()
            except OSError:  # deleted meanwhile
                continue


def thin_documents(console: "Console", missing: int, least: int) -> None:
    """Thin the documents of cameras that have more bytes of them than `least`, if need be.

    `missing` bytes are to be free on the disk.
    """
    supervisor = console.supervisor
    if supervisor is None or supervisor.learner.now is not None:  # which reads them
        return
    with console.database.session() as session:
        quota = read_preferences(session).quota_bytes
        used = queries.disk_use(session, console.settings)
    excess = max(used.bounded - quota, missing)
    for size, folder in sorted(queries.document_folders(console.settings), reverse=True):
        if excess <= 0 or size <= least:
            return
        share = max(least / size, 1 - excess / size)
        target, now = "habitus.site.footage:thin", time.time()
        supervisor.fork_server.ask(target, folder, share, now, within=THINNING)
        excess -= int((1 - share) * size)


def _keep_events(console: "Console", missing: int) -> SweepCounts:
    """Delete clips and events."""
    with console.database.session() as session:
        quota = read_preferences(session).quota_bytes
        used = queries.disk_use(session, console.settings)
    pictures_and_clips = used.clips + used.pictures
    room = max(quota - (used.bounded - pictures_and_clips), LEAST_SHARE * quota)
    excess = pictures_and_clips - int(room)
    unusual = EventRow.review == "unusual"
    other = or_(EventRow.review.is_(None), EventRow.review != "unusual")
    if missing > excess:
        return _free(console, missing, [other])
    return _free(console, excess, [other, unusual])


def _free(console: "Console", excess: int, order: Sequence[ColumnElement[bool]]) -> SweepCounts:
    """Delete clips, then events, of one kind after the other, until so many bytes are free."""
    counts = {True: 0, False: 0}
    for which in order:
        for clips_only in (True, False):
            held = EventRow.clip_bytes if clips_only else EventRow.n_bytes
            while excess > 0:
                with console.database.session() as session:
                    oldest = session.execute(
                        select(EventRow.id, held)
                        .where(which, held > 0, EventRow.end.is_not(None))
                        .order_by(EventRow.start, EventRow.id)
                        .limit(TOGETHER)
                    ).all()
                chosen: list[str] = []
                for event_id, n_bytes in oldest:
                    if excess <= 0:
                        break
                    chosen.append(event_id)
                    excess -= n_bytes
                if not chosen:
                    break
                counts[clips_only] += delete_events(console, chosen, clips_only=clips_only)
    return SweepCounts(clips=counts[True], events=counts[False])


def delete_events(console: "Console", ids: Sequence[str], *, clips_only: bool = False) -> int:
    """Delete events with their files, or their clips alone; return how many.

    Of what was called normal, the files are deleted alone.
    """
    files: list[Path] = []
    with console.database.transaction() as session:
        events = session.scalars(select(EventRow).where(EventRow.id.in_(ids))).all()
        for event in events:
            names = (event.clip,) if clips_only else (event.thumbnail, event.heat, event.clip)
            folder = console.settings.camera_folder(event.camera_id) / "events"
            files += [folder / name for name in names if name]
            if not clips_only and event.review != "normal":
                session.delete(event)
                continue
            event.n_bytes = event.n_bytes - event.clip_bytes if clips_only else 0
            event.clip, event.clip_bytes = None, 0
            if not clips_only:
                event.thumbnail = event.heat = None
    _unlink(files)
    return len(events)


def _unlink(files: Iterable[Path]) -> int:
    n = 0
    for path in files:
        path.unlink(missing_ok=True)
        n += 1
    return n


def sweep(console: "Console", now: float | None = None) -> SweepCounts:
    """Delete what is older than it is kept, and files that nobody knows."""
    now = time.time() if now is None else now
    with console.database.session() as session:
        oldest = now - read_preferences(session).retention_days * DAY
        cameras = {
            camera.id: camera.learn_days for camera in session.scalars(select(CameraRow)).all()
        }
        uploads = _used_uploads(console, session)
    n_events = 0
    expired = or_(EventRow.review.is_(None), (EventRow.review == "normal") & (EventRow.n_bytes > 0))
    while ids := _older(console, expired, oldest):
        n_events += delete_events(console, ids)
    _delete_rows(console, oldest, now)
    old = _written_before(console.settings.uploads, "*", now - DAY)
    n_files = _unlink(path for path in old if path.name not in uploads)
    n_files += _unlink(_written_before(console.settings.data, "export-*.zip", now - DAY))
    n_files += _delete_removed(console, cameras.keys())
    for camera_id, learn_days in cameras.items():
        folder = console.settings.camera_folder(camera_id)
        (folder / REMOVED).unlink(missing_ok=True)  # there is one of this name again
        n_files += _unlink(_unknown_files(console, folder / "events", now))
        n_files += _unlink(_written_before(folder / "documents", "*", now - learn_days * DAY - DAY))
        n_files += _unlink(_written_before(folder / "journal", "*.damaged", oldest))
    return SweepCounts(events=n_events, files=n_files)


def _delete_removed(console: "Console", known: Collection[str]) -> int:
    """Delete the folders of cameras that were removed, where the console was killed before."""
    n_files = 0
    for mark in console.settings.camera_folder("*").parent.glob(f"*/{REMOVED}"):
        if mark.parent.name not in known:
            shutil.rmtree(mark.parent, ignore_errors=True)
            n_files += 1
    return n_files


def _older(console: "Console", which: ColumnElement[bool], oldest: float) -> list[str]:
    with console.database.session() as session:
        return list(
            session.scalars(
                select(EventRow.id)
                .join(CameraRow, CameraRow.id == EventRow.camera_id)
                .where(which, EventRow.start < oldest, EventRow.end.is_not(None))
                .where(CameraRow.created < oldest)  # a recording may be older than its camera
                .limit(TOGETHER)
            )
        )


def _delete_rows(console: "Console", oldest: float, now: float) -> None:
    """Delete old rows that have no files."""
    with console.database.transaction() as session:
        known = Minute.camera_id.in_(select(CameraRow.id).where(CameraRow.created < oldest))
        session.execute(delete(Minute).where(known, Minute.minute < int(oldest // SECONDS)))
        session.execute(delete(TroubleRow).where(TroubleRow.end < oldest))
        session.execute(
            delete(OutboxEntry).where(
                OutboxEntry.created < oldest, OutboxEntry.outcome.not_in(("waiting", "held"))
            )
        )
        session.execute(delete(AuditEntry).where(AuditEntry.time < now - AUDIT_DAYS * DAY))
        session.execute(delete(Login).where(Login.expires < now))


def _used_uploads(console: "Console", session: Session) -> set[str]:
    """Return the names of uploads that cameras have, wherever the data folder was then."""
    used = set()
    for sealed in session.scalars(select(CameraRow.secret_address)):
        try:
            used.add(Path(console.vault.open(sealed)).name)
        except FileError:  # another key: better to delete nothing
            used |= {path.name for path in console.settings.uploads.glob("*")}
    return used


def _unknown_files(console: "Console", folder: Path, now: float) -> Iterator[Path]:
    """Yield files of a camera's events that no row has."""
    old = _written_before(folder, "*", now - UNKNOWN_FOR)
    while some := list(islice(old, 5 * TOGETHER)):
        with console.database.session() as session:
            ids = {path.name.partition(".")[0] for path in some}
            rows = session.execute(
                select(EventRow.thumbnail, EventRow.heat, EventRow.clip).where(EventRow.id.in_(ids))
            ).all()
        known = {name for row in rows for name in row}
        yield from (path for path in some if path.name not in known)


def _written_before(folder: Path, pattern: str, moment: float) -> Iterator[Path]:
    for path in folder.glob(pattern):
        try:
            if path.is_file() and path.stat().st_mtime < moment:
                yield path
        except OSError:  # deleted meanwhile
            continue
