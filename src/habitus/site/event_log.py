"""A file that events are added to for weeks: no event is lost while it cannot be written.

The file is opened anew for each event, so that it may be renamed or replaced at any time (log
rotation). A line is on the disk before its picture is written. What cannot be written waits in
memory. The rest of a line that was cut short, as by a loss of power, is set apart.
"""

import errno
import json
import os
import queue
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from habitus.backlog import Backlog
from habitus.errors import HabitusError, InvalidInputError
from habitus.files import is_ours, is_pipe, write_file

# Seconds that writing what waits may take at the end.
ENDING = 5.0
# Number of waiting events from which on they wait without their pictures.
PICTURES_WAITING = 1000
# Reasons that may pass although the file was never written.
FULL = (errno.ENOSPC, errno.EDQUOT)
# Bytes that are read at once while the last whole line is sought.
BLOCK = 1 << 16


class Thumbnail(NamedTuple):
    """An encoded picture, and where to write it."""

    path: Path
    data: bytes


class EventLog:
    """A file of JSON Lines that is added to by a thread of its own, and created if it is absent.

    InvalidInputError if the file cannot be opened, or is not a file of events.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._notes: queue.SimpleQueue[str] = queue.SimpleQueue()
        try:
            if not is_pipe(self.path):  # opening a pipe would wait for its reader
                self._append(b"")
        except OSError as error:
            if error.errno not in FULL:
                raise InvalidInputError(f"cannot write {path}: {error.strerror}") from error
        self._backlog = Backlog(self._write, note=self._say)

    def add(self, line: str, picture: Thumbnail | None = None) -> None:
        """Add a line; the picture is written after it."""
        if len(self._backlog) >= PICTURES_WAITING:
            picture = None
        self._backlog.add((line, picture))

    def notes(self) -> Iterator[str]:
        """Yield what there is to say since the last call."""
        with suppress(queue.Empty):
            while True:
                yield self._notes.get_nowait()

    def close(self) -> list[str]:
        """Write what waits, and return the lines that could not be written."""
        return [line for line, _ in self._backlog.close(within=ENDING)]

    def _say(self, trouble: str) -> None:
        text = f"cannot write {self.path}: {trouble}; events wait in memory"
        self._notes.put(text if trouble else f"{self.path} is written again")

    def _write(self, entry: tuple[str, Thumbnail | None]) -> None:
        line, picture = entry
        self._append(f"{line}\n".encode())
        try:
            if picture is not None:
                write_file(*picture)
        except HabitusError as error:
            self._notes.put(f"no picture: {error}; its event is written")

    def _append(self, data: bytes) -> None:
        """Add bytes to the file and wait until they are on the disk; all of them, or none."""
        special = is_pipe(self.path)
        # A pipe that is opened for reading as well would never say that nobody reads it.
        with FileIO(self.path, "a" if special else "a+") as file:
            if special:
                _write_all(file, data)
                return
            self._mend(file)
            size = file.seek(0, os.SEEK_END)
            try:
                _write_all(file, data)
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    file.truncate(size)
                raise
        if size == 0 and data:
            _sync_folder(self.path.parent)

    def _mend(self, file: FileIO) -> None:
        """End the last line of the file; where it was cut short, move it to another file."""
        if not is_ours(self.path, "events"):
            raise InvalidInputError(f"cannot write {self.path}: it is not a file of events")
        rest = next(lines_from_the_end(self.path), b"")
        if not rest:
            return
        try:
            json.loads(rest)
        except ValueError:
            torn = self.path.with_name(f"{self.path.name}.torn")
            with FileIO(torn, "a") as apart:
                _write_all(apart, rest + b"\n")
                os.fsync(apart.fileno())
            file.truncate(file.seek(0, os.SEEK_END) - len(rest))
            self._notes.put(
                f"{self.path}: the last line was cut short; its {len(rest)} bytes are in {torn}"
            )
        else:
            _write_all(file, b"\n")


def lines_from_the_end(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, the last one first; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            start, rest = file.seek(0, os.SEEK_END), b""
            while start > 0:
                n = min(BLOCK, start)
                start = file.seek(start - n)
                rest, *whole = (file.read(n) + rest).split(b"\n")
                yield from reversed(whole)
            yield rest
    except OSError:
        return


def _write_all(file: FileIO, data: bytes) -> None:
    while data:
        data = data[file.write(data) or 0 :]


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on the disk, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
