"""Safe files: tensors with a JSON header, checked when read, renamed into place when written."""

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
    """What a file holds: a JSON header and named arrays."""

    header: dict[str, Any]
    tensors: Tensors


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it into place only when the block succeeds."""
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"cannot write {target}: it is a folder; name a file")
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
    """Write arrays and a header to one safetensors file, whole or not at all."""
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
    """What kind of habitus file this is, None if none."""
    try:
        with safe_open(Path(path), framework="numpy") as file:
            return (file.metadata() or {}).get("habitus")
    except (SafetensorError, OSError, ValueError):
        return None


def read_tensors(path: str | os.PathLike[str], *, kind: str, version: int) -> Contents:
    """Read a file that `write_tensors` wrote; refuse any other with one line."""
    source = Path(path)
    if not source.is_file():
        found = "a folder" if source.is_dir() else "nothing"
        raise FileError(f"{source}: expected a habitus {kind} file, found {found}")
    try:
        with safe_open(source, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f"{source}: not a whole habitus {kind} file (truncated or foreign): {reason}"
        ) from error
    return Contents(_checked_header(source, metadata, tensors, kind, version), tensors)


def _checked_header(
    source: Path, metadata: Mapping[str, str], tensors: Tensors, kind: str, version: int
) -> dict[str, Any]:
    found = metadata.get("habitus")
    if found != kind:
        what = f"a habitus {found} file" if found else "a safetensors file of another program"
        raise FileError(f"{source}: expected a habitus {kind} file, found {what}")
    found_version = metadata.get("version", "")
    if not found_version.isdecimal() or int(found_version) > version:
        raise FileError(
            f"{source}: {kind} format version {found_version or 'missing'} is not one this habitus "
            f"reads (up to {version}): upgrade habitus"
        )
    text = metadata.get("header", "")
    if metadata.get("digest") != _digest(kind, found_version, text, tensors):
        raise FileError(f"{source}: its contents do not match their checksum: damaged or altered")
    header: dict[str, Any] = json.loads(text)
    return header


def _digest(kind: str, version: str, text: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.blake2b(f"{kind}|{version}|{text}".encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype.str}|{tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
