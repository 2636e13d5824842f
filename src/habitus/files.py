"""Safe files: arrays with a JSON header, without executable content.

A file is a safetensors file whose metadata hold its kind, a format version, a JSON header and a
checksum. It is written beside its place and renamed, so that it is complete or absent; everything
is checked when it is read.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from habitus.errors import FileError, InvalidInputError

Tensors = dict[str, NDArray[Any]]


class Contents(NamedTuple):
    """Contents of a file: a JSON header and named arrays."""

    header: dict[str, Any]
    tensors: Tensors


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file completely or not at all.

    Parameters
    ----------
    path
        File to write; an existing one is replaced.

    Yields
    ------
    Path
        Temporary file in the same folder, to be written inside the block. It is renamed to `path`
        if the block succeeds, and removed if it fails.

    Raises
    ------
    InvalidInputError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder, "a.txt")) as temporary:
    ...         _ = temporary.write_text("complete")
    ...     Path(folder, "a.txt").read_text()
    'complete'
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"cannot write {target}: it is a folder, expected a file")
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise InvalidInputError(f"cannot write {target}: {error.strerror}") from error
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise InvalidInputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_tensors(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    header: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
) -> None:
    """Write arrays and a header to a file, completely or not at all.

    Parameters
    ----------
    path
        File to write; an existing one is replaced.
    kind
        Kind of the contents, such as "corpus" or "model".
    version
        Version of the format of this kind.
    header
        Plain values, as JSON has them; no NaN or infinity.
    tensors
        Arrays by their names.

    Raises
    ------
    InvalidInputError
        If the file cannot be written.
    """
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    text = json.dumps(dict(header), sort_keys=True, allow_nan=False)
    metadata = {
        "habitus": kind,
        "version": str(version),
        "header": text,
        "digest": _digest(kind, str(version), text, arrays),
    }
    with written_whole(path) as temporary:
        temporary.write_bytes(save(arrays, metadata=metadata))


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of a file that `write_tensors` wrote, or None for any other file."""
    try:
        with safe_open(Path(path), framework="numpy") as file:
            return (file.metadata() or {}).get("habitus")
    except (SafetensorError, OSError, ValueError):
        return None


def read_tensors(path: str | os.PathLike[str], *, kind: str, version: int) -> Contents:
    """Read a file that `write_tensors` wrote.

    Parameters
    ----------
    path
        File to read.
    kind
        Kind of contents that is expected.
    version
        Newest version of the format that is understood.

    Returns
    -------
    Contents
        The header and the arrays.

    Raises
    ------
    FileError
        If the file is absent, of another kind, truncated, altered, or of a newer version.
    """
    source = Path(path)
    if not source.is_file():
        found = "a folder" if source.is_dir() else "nothing"
        raise FileError(f"{source}: expected a habitus {kind} file, found {found}")
    try:
        with safe_open(source, framework="numpy") as file:
            metadata = file.metadata() or {}
            # A safetensors file has no iteration of its own.
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f"{source}: not a complete habitus {kind} file (truncated or foreign): {reason}"
        ) from error
    return Contents(_checked_header(source, metadata, tensors, kind, version), tensors)


def _checked_header(
    source: Path, metadata: Mapping[str, str], tensors: Tensors, kind: str, version: int
) -> dict[str, Any]:
    """Return the header, after kind, version and checksum are checked."""
    found = metadata.get("habitus")
    if found != kind:
        what = f"a habitus {found} file" if found else "a safetensors file of another program"
        raise FileError(f"{source}: expected a habitus {kind} file, found {what}")
    found_version = metadata.get("version", "")
    if not found_version.isdecimal() or int(found_version) > version:
        raise FileError(
            f"{source}: {kind} format version {found_version or 'missing'} is not supported "
            f"(up to {version}): upgrade habitus"
        )
    text = metadata.get("header", "")
    if metadata.get("digest") != _digest(kind, found_version, text, tensors):
        raise FileError(f"{source}: the contents do not match their checksum: damaged or altered")
    header: dict[str, Any] = json.loads(text)
    return header


def _digest(kind: str, version: str, text: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return a checksum of everything that the file holds."""
    digest = hashlib.blake2b(f"{kind}|{version}|{text}".encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype.str}|{tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
