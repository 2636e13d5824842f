"""Where recordings lie: on disks of this machine, or anywhere that fsspec reaches (S3, HTTP, ...).

Credentials are those of the environment, as each kind of place takes them.
"""

import errno
import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from habitus.errors import (
    HabitusError,
    InvalidInputError,
    MissingPackageError,
    optional_package,
)
from habitus.files import work_folder
from habitus.video.source import redacted

# What other places say of a file that changes whenever its contents do, the best first.
CHECKSUMS = ("ETag", "etag", "md5Hash", "contentHash", "checksum")
# Errors of this machine's disk, not of the place.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What they say of when that was.
CHANGED = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")


class FoundFile(NamedTuple):
    """A file as it was when it was looked at."""

    path: str
    """Within its place."""
    address: str
    """Path on this machine, or the address of a file elsewhere."""
    size: int
    version: str
    """Changes whenever the contents do: the time of change, or a checksum."""
    changed: float | None
    """When it was changed last, in seconds since the epoch, where that is known."""

    @property
    def identity(self) -> tuple[int, str]:
        """What distinguishes it from itself with other contents, wherever it is moved to."""
        return self.size, self.version


def place_of(address: str) -> "Place":
    """Return the place that an address, or a pattern of addresses, belongs to."""
    if "://" not in address:
        return Place(str(Path(address).absolute()))
    if address.startswith("file://"):
        return Place(address.removeprefix("file://"))
    return RemotePlace(address)


class Place:
    """Disks of this machine; `path` is the address that was given, without its protocol."""

    def __init__(self, path: str) -> None:
        self.path = path

    def files(self, pattern: str) -> list[FoundFile]:
        """Return the files that a pattern of `*` matches."""
        files = (look_at(path) for path in glob.iglob(pattern))  # noqa: PTH207
        return [file for file in files if file is not None]

    def names(self, folder: str) -> list[str] | None:
        """Return the names in a folder, in order; None where there is none."""
        try:
            return sorted(path.name for path in Path(folder).iterdir())
        except OSError:
            return None

    def shown(self, path: str) -> str:
        """Return a path as an address that may be shown."""
        return path


class RemotePlace(Place):
    """Anywhere else, by fsspec."""

    def __init__(self, address: str) -> None:
        self.address = address
        with _filesystem(address) as (self.filesystem, path):
            super().__init__(path)

    def files(self, pattern: str) -> list[FoundFile]:
        """Return the files that a pattern of `*` matches."""
        with _filesystem(self.address) as (self.filesystem, _):
            self.filesystem.invalidate_cache()
            entries = self.filesystem.glob(pattern, detail=True)
            return [
                _file_of(path, self._address_of(path), self._whole(path, info))
                for path, info in entries.items()
                if info.get("type") != "directory"
            ]

    def _whole(self, path: str, info: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what is known of a file; lists of some places do not have its size."""
        return info if info.get("size") is not None else self.filesystem.info(path)

    def _address_of(self, path: str) -> str:
        """Return the address of a path here: what was given, with another path in it."""
        before, within, after = self.address.rpartition(self.path)
        if within:
            return f"{before}{path}{after}"
        return str(self.filesystem.unstrip_protocol(path))

    def names(self, folder: str) -> list[str] | None:
        """Return the names in a folder, in order; None where there is none."""
        try:
            entries = self.filesystem.ls(folder, detail=False)
        except Exception:  # each library has errors of its own
            return None
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in entries)

    def shown(self, path: str) -> str:
        """Return the address of a path, without what is secret in it."""
        return redacted(self._address_of(path))


def look_at(address: str) -> FoundFile | None:
    """Return a file as it is now; None where there is none."""
    if "://" in address:
        with _filesystem(address) as (filesystem, path):
            filesystem.invalidate_cache()
            try:
                return _file_of(path, address, filesystem.info(path))
            except FileNotFoundError:
                return None
    try:
        status = Path(address).stat()
    except OSError:
        return None
    if not Path(address).is_file():
        return None
    return FoundFile(address, address, status.st_size, str(status.st_mtime_ns), status.st_mtime)


@contextmanager
def at_hand(address: str) -> Iterator[Path]:
    """Give a file of this machine: the one that is meant, or a copy that is deleted at the end.

    InvalidInputError if it cannot be fetched, OSError if there is no room for the copy.
    """
    if "://" not in address:
        yield Path(address)
        return
    with work_folder() as folder:
        copy = folder / f"recording{Path(address).suffix}"
        with _filesystem(address) as (filesystem, path):
            filesystem.get_file(path, str(copy))
        yield copy


@contextmanager
def _filesystem(address: str) -> Iterator[tuple[Any, str]]:
    """Give the file system of an address, and the path within it.

    Whatever the library of a place raises becomes one clear line.
    """
    try:
        fsspec = optional_package("fsspec", f"An address such as {redacted(address)}")
        filesystem, path = fsspec.core.url_to_fs(address)
        yield filesystem, str(path)
    except HabitusError:
        raise
    except ImportError as error:  # fsspec names what to install
        raise MissingPackageError(f"{redacted(address)}: {error}", parameter="patterns") from error
    except Exception as error:  # each library has errors of its own
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidInputError(
            f"cannot read {redacted(address)}: {reason}", parameter="patterns"
        ) from error


def _file_of(path: str, address: str, info: Mapping[str, Any]) -> FoundFile:
    version = next((str(info[name]) for name in (*CHECKSUMS, *CHANGED) if info.get(name)), "")
    changed = next((_when(info[name]) for name in CHANGED if info.get(name)), None)
    return FoundFile(str(path), str(address), int(info.get("size") or 0), version, changed)


def _when(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if isinstance(value, int | float) else None
