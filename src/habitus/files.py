"""Safe files: written whole or not at all, never in place of what is not ours.

Arrays with a JSON header are a safetensors file, without executable content, whose metadata hold
its kind, a format version, a JSON header and a checksum. Everything is checked when it is read.
"""

import errno
import hashlib
import json
import mmap
import os
import re
import secrets
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from habitus.errors import FileError, InvalidInputError
from habitus.schema import ArrayOutline, Layout, check_layouts, check_values, decoded, shortened

try:
    import fcntl as _fcntl

    fcntl: Any = _fcntl
except ImportError:  # without locks, nothing is known to be left behind
    fcntl = None

Tensors = dict[str, NDArray[Any]]

# A safetensors file begins with the length of its JSON header, which is padded with spaces.
LENGTH, ALIGNMENT = struct.Struct("<Q"), 8
LONGEST_NAME = 255
ADDRESS = re.compile("([a-z][a-z0-9+.-]+:)/", re.IGNORECASE)
"""How addresses begin; as a path, with one slash."""
TEMPORARY = ".habitus-"
"""How the names of temporary files and folders begin; 16 hexadecimal digits follow."""
MARK = "made by habitus"
"""Stands in every page, picture and film, so that it is known as ours."""
BEGINNINGS = {
    "events": b'{"habitus": ',  # an event, or that nothing could be judged
    "scores": b"time,normality,judged,abnormal,behaviour",
}
"""How text files of ours begin, by their kind."""
ARTICLES = {"events": "a file of events", "scores": "a file of scores"}


class Contents(NamedTuple):
    """Contents of a file: a JSON header and named arrays."""

    header: dict[str, Any]
    tensors: Tensors


@contextmanager
def writing(path: str | os.PathLike[str], parameter: str | None = None) -> Iterator[None]:
    """Have an error of the system, in the block, say in one line what cannot be written."""
    try:
        yield
    except OSError as error:
        text = f"cannot write {path}: {error.strerror or error}"
        raise InvalidInputError(text, parameter=parameter) from error


@contextmanager
def written_whole(path: str | os.PathLike[str], *, lasting: bool = True) -> Iterator[Path]:
    """Write a file completely or not at all.

    Gives a temporary file in the same folder, to be written inside the block. It is renamed to
    `path`, where a symbolic link is followed, if the block succeeds, and removed if it fails.
    One that is not lasting may be without contents after a crash of the machine, and need not wait
    for the disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder, "a.txt")) as temporary:
    ...         _ = temporary.write_text("complete")
    ...     Path(folder, "a.txt").read_text()
    'complete'
    """
    target = _target(path)
    make = partial(Path.touch, exist_ok=False)
    with writing(target), _held(target.parent, target.suffix, make) as temporary:
        yield temporary
        if lasting:
            _flush(temporary)
        temporary.replace(target)


def write_file(path: Path, contents: bytes, *, lasting: bool = True) -> None:
    """Write a file and the folders that it needs, whole or not at all; see `written_whole`."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path, lasting=lasting) as temporary:
        temporary.write_bytes(contents)


@contextmanager
def work_folder() -> Iterator[Path]:
    """Give a private temporary folder that is deleted at the end of the block."""
    with ExitStack() as stack:
        with writing("a temporary file"):
            make = partial(Path.mkdir, mode=0o700)
            folder = stack.enter_context(_held(Path(tempfile.gettempdir()), "", make))
        yield folder


@contextmanager
def _held(place: Path, suffix: str, make: Callable[[Path], None]) -> Iterator[Path]:
    """Give a temporary file or folder that is locked in the block, and deleted at its end.

    The lock goes with the process, however that ends: what is not locked was left behind, and is
    deleted by the next process that has something to write in the same place.
    """
    _sweep(place)
    path = place / f"{TEMPORARY}{secrets.token_hex(8)}{suffix}"
    make(path)
    while (lock := _lock(path)) is None and not path.exists():
        make(path)  # somebody took it for left behind, before it was locked
    try:
        yield path
    finally:
        _delete(path)
        if lock is not None:
            os.close(lock)


@cache
def _sweep(place: Path) -> None:
    """Delete temporary files and folders of processes that were killed, once."""
    with suppress(OSError):
        for path in list(place.glob(f"{TEMPORARY}*")):
            ours = re.fullmatch(rf"{re.escape(TEMPORARY)}[0-9a-f]{{16}}(\..*)?", path.name)
            lock = _lock(path) if ours else None
            if lock is not None:
                _delete(path)
                os.close(lock)


def _lock(path: Path) -> int | None:
    """Return an open file that locks a path; None if it is locked, gone, or cannot be locked."""
    if fcntl is None:
        return None
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.lstat()):
            return file
    except OSError:
        pass
    os.close(file)
    return None


@contextmanager
def sole_use(lock: Path, refusal: Exception) -> Iterator[None]:
    """Hold a lock file, in the block; raise the refusal where another process does.

    Where the file system has no locks, nobody is refused.
    """
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock_or_refuse(file, refusal)
        yield
    finally:
        os.close(file)


@contextmanager
def sole_use_of_folder(folder: Path, refusal: Exception) -> Iterator[None]:
    """Hold a folder likewise, which is made where it is missing, and deleted if empty at the end.

    Whoever held it before may delete it while it is being locked: then a new one is made.
    """
    file = None
    while file is None:
        with writing(folder):
            folder.mkdir(exist_ok=True)
            file = _locked_folder(folder, refusal)
    try:
        yield
    finally:
        with suppress(OSError):  # it stays if there is something in it
            folder.rmdir()
        os.close(file)


def _locked_folder(folder: Path, refusal: Exception) -> int | None:
    """Return a folder that was opened and locked; None where it was deleted meanwhile."""
    with ExitStack() as stack, suppress(FileNotFoundError):
        file = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, file)
        _lock_or_refuse(file, refusal)
        if os.path.samestat(os.fstat(file), folder.stat()):
            stack.pop_all()
            return file
    return None


def _lock_or_refuse(file: int, refusal: Exception) -> None:
    """Lock an open file; raise the refusal where another process has locked it."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise refusal from error
    except OSError:
        pass


def _flush(path: Path) -> None:
    """Have the contents of a file on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def check_output(
    path: str | os.PathLike[str],
    kind: str,
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    force: bool = False,
) -> None:
    """Raise if a file must not or cannot be written, before any work is done.

    It must not be one of the inputs, whatever its name, nor anything but a file of ours of that
    kind ("corpus", "model", "events", "scores", "page", "picture" or "film"), unless by `force`.
    """
    target = _target(path)
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise InvalidInputError(
            f"cannot write {path}: {error.strerror}: name a file in a folder that exists and can "
            "be written to"
        ) from error
    for source in inputs:
        if _same_file(target, source):
            raise InvalidInputError(f"cannot write {path}: it is an input, {source}")
    if not force and target.exists() and not is_ours(target, kind):
        what = ARTICLES.get(kind, f"a {kind}")
        raise InvalidInputError(
            f"cannot write {path}: it exists and is not {what} that habitus wrote: name another "
            "file, or replace it by force",
            parameter="force",
        )


def is_ours(path: Path, kind: str) -> bool:
    """Return whether a file is one of ours of this kind, or empty."""
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return True
            if kind in BEGINNINGS:  # the line that a file begins with may have been cut short
                beginning = file.read(len(BEGINNINGS[kind]))
                return BEGINNINGS[kind].startswith(beginning)
            if kind in ("page", "picture", "film"):
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as contents:
                    return contents.find(MARK.encode()) >= 0
    except OSError:
        return False
    return kind_of(path) == kind


def checked_path(path: str | os.PathLike[str], *, to: str = "read") -> Path:
    """Return the path of a file that is there or not; raise if there can be no such file.

    Examples
    --------
    >>> checked_path("a" * 300)
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: cannot read aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...: File \
name too long
    >>> checked_path("rtsp://me:secret@camera/1")
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: cannot read rtsp://...: it is an address, expected a file
    """
    file = Path(path)
    address = ADDRESS.match(os.fspath(path))
    if address is not None and not file.is_file():  # not shown: it may hold a password
        raise InvalidInputError(f"cannot {to} {address[1]}//...: it is an address, expected a file")
    try:
        os.fspath(file).encode()
        file.stat()
    except UnicodeEncodeError as error:
        shown = os.fsencode(file).decode(errors="backslashreplace")
        raise InvalidInputError(f"cannot {to} {shown}: the name is not UTF-8: rename it") from error
    except (OSError, ValueError) as error:  # a loop of links, a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        if getattr(error, "errno", None) not in (errno.ENOENT, errno.ENOTDIR):
            shown = shortened(file.name) if len(file.name) > LONGEST_NAME else str(file)
            raise InvalidInputError(f"cannot {to} {shown}: {reason}") from error
    return file


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names something that is written to as it is, such as a pipe."""
    return Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path names, also by a symbolic link; raise if it is no file."""
    target = checked_path(path, to="write").resolve()
    if target.is_file() or not target.exists():
        return target
    kind = "a folder" if target.is_dir() else "a device or a pipe"
    raise InvalidInputError(f"cannot write {path}: it is {kind}, expected a file")


def _same_file(target: Path, source: str | os.PathLike[str]) -> bool:
    try:
        return target.samefile(source)
    except (OSError, ValueError):  # not there, or no path at all
        return False


def _file_parts(
    kind: str, version: int, header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]
) -> tuple[bytes, memoryview]:
    """Return the two parts of a file: what is said of the arrays, and the arrays."""
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    text = json.dumps(dict(header), sort_keys=True, allow_nan=False)
    metadata = {
        "habitus": kind,
        "version": str(version),
        "header": text,
        "digest": _digest(kind, str(version), text, arrays),
    }
    made = save(arrays, metadata=metadata)
    (size,) = LENGTH.unpack_from(made)
    # Metadata come in any order: sorted, the same contents are the same bytes.
    layout = json.loads(made[LENGTH.size : LENGTH.size + size])
    head = json.dumps(layout, sort_keys=True, separators=(",", ":")).encode()
    head += b" " * (-len(head) % ALIGNMENT)
    return LENGTH.pack(len(head)) + head, memoryview(made)[LENGTH.size + size :]


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of a file of a `FileFormat`, or None for any other file."""
    try:
        with safe_open(Path(path), framework="numpy") as file:
            return (file.metadata() or {}).get("habitus")
    except (SafetensorError, OSError, ValueError):
        return None


class FileOutline(NamedTuple):
    """What a file says that it holds."""

    header: Any
    arrays: dict[str, ArrayOutline]
    """Type and shape of each array."""
    tensors: Tensors
    """Arrays that were asked for."""


class FileFormat(NamedTuple):
    """How files of one kind are written and read: arrays, and a header of plain values."""

    kind: str
    version: int
    """Of what is written; newest that is understood."""
    schema: Any = dict[str, Any]
    """Type of the header."""
    layouts: Mapping[str, Layout] | None = None
    """What the arrays must be; those of other names are left out. Where None, all are read."""
    sizes: Callable[[Any], Mapping[str, int | range]] = lambda header: {}
    """Returns the sizes that a header states, by the names that they have in `layouts`."""

    def write(
        self,
        path: str | os.PathLike[str],
        header: Mapping[str, Any],
        tensors: Mapping[str, NDArray[Any]],
    ) -> None:
        """Write a file, completely or not at all; see `to_bytes`."""
        parts = _file_parts(self.kind, self.version, header, tensors)
        with written_whole(path) as temporary, temporary.open("wb") as file:
            file.writelines(parts)

    def to_bytes(self, header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> bytes:
        """Return what a file holds; the same contents are the same bytes.

        The header has plain values, as JSON has them; no NaN or infinity.
        """
        return b"".join(_file_parts(self.kind, self.version, header, tensors))

    def read_header(self, path: str | os.PathLike[str], wanted: Sequence[str] = ()) -> FileOutline:
        """Read what a file says that it holds, whatever the size of its arrays.

        Only `read` compares the contents with their checksum. Small arrays are read by the names
        that are `wanted`, where the file has them.
        """
        with _opened(path, self) as (file, outline):
            tensors = {name: file.get_tensor(name) for name in wanted if name in outline.arrays}
            return outline._replace(tensors=tensors)

    def read(self, path: str | os.PathLike[str]) -> Contents:
        """Read a file that `write` wrote; a `FileError` says what is wrong with another.

        Header, names, types and shapes are checked before an array is read.
        """
        with _opened(path, self) as (file, outline):
            tensors = {name: file.get_tensor(name) for name in outline.arrays}
            metadata = file.metadata()
            digest = _digest(self.kind, metadata["version"], metadata["header"], tensors)
            if metadata.get("digest") != digest:
                raise FileError("the contents do not match their checksum: damaged or altered")
            if self.layouts is not None:
                tensors = {name: tensors[name] for name in self.layouts if name in tensors}
                for name, tensor in tensors.items():
                    check_values(name, tensor, self.layouts[name])
            return Contents(outline.header, tensors)


@contextmanager
def _opened(path: str | os.PathLike[str], form: FileFormat) -> Iterator[tuple[Any, FileOutline]]:
    """Open a file of a format, checked but for the values of its arrays.

    Every error becomes a `FileError` that names it.
    """
    source, kind = checked_path(path), form.kind
    if not source.is_file():
        what = "a folder" if source.is_dir() else "nothing"
        raise FileError(f"{source}: expected a habitus {kind} file, found {what}")
    try:
        with safe_open(source, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_kind(metadata, kind, form.version)
            header = decoded(metadata.get("header", ""), form.schema)
            # A safetensors file has no iteration of its own.
            slices = {name: file.get_slice(name) for name in list(file.keys())}
            arrays = {
                name: ArrayOutline(array.get_dtype(), tuple(array.get_shape()))
                for name, array in slices.items()
            }
            check_layouts(arrays, form.layouts or {}, form.sizes(header))
            yield file, FileOutline(header, arrays, {})
    except FileError as error:
        raise FileError(f"{source}: {error}") from error
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        said = "" if isinstance(error, SafetensorError) else f": {' '.join(str(error).split())}"
        raise FileError(
            f"{source}: not a complete habitus {kind} file (truncated or foreign){said}"
        ) from error


def _check_kind(metadata: Mapping[str, str], kind: str, version: int) -> None:
    """Raise unless a file is of this kind, and of this version or an older one."""
    kind_found = metadata.get("habitus")
    if kind_found != kind:
        other = "a safetensors file of another program"
        what = f"a habitus {kind_found} file" if kind_found else other
        raise FileError(f"expected a habitus {kind} file, found {what}")
    found_version = metadata.get("version", "")
    if re.fullmatch(r"[0-9]{1,9}", found_version) is None or int(found_version) > version:
        raise FileError(
            f"{kind} format version {shortened(found_version) or 'missing'} is not supported "
            f"(up to {version}): upgrade habitus"
        )


def _digest(kind: str, version: str, text: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return a checksum of everything that the file holds."""
    digest = hashlib.blake2b(f"{kind}|{version}|{text}".encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype.str}|{tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
