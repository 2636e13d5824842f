"""Files that are given on the page: written as they come, looked at, and kept under a new name."""

import asyncio
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from fastapi.concurrency import run_in_threadpool

from habitus.errors import VideoError
from habitus.site.probe import probe
from habitus.web import queries
from habitus.web.answers import HttpError, UploadedFile
from habitus.web.preferences import read_preferences
from habitus.web.server import Console
from habitus.web.server_settings import ServerSettings

# Bytes that are written at once.
BLOCK = 1 << 20
SPARE = 500_000_000
"""Bytes that an upload leaves free on the disk."""
# Files are looked at one after the other.
_looking = asyncio.Lock()


def path_of(settings: ServerSettings, upload: str) -> Path:
    """Return the file of an upload."""
    path = settings.uploads / upload
    if not re.fullmatch("[0-9a-f]{32}", upload) or not path.is_file():
        raise HttpError(404, "there is no such upload: upload the file again")
    return path.resolve()


async def receive(
    console: Console, chunks: AsyncIterator[bytes], length: int | None
) -> UploadedFile:
    """Keep a video that comes in pieces, of a length in all, if its sender says so."""
    most = await run_in_threadpool(room, console)
    if length is not None and length > most:
        raise _too_large(length, most)
    upload = secrets.token_hex(16)
    path = console.settings.uploads / upload
    part = path.with_suffix(".part")
    try:
        n_bytes = await write(part, chunks, most)
        async with _looking:
            video = await run_in_threadpool(probe, part)
        part.rename(path)
    except OSError as error:
        raise HttpError(503, f"the file cannot be kept: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return UploadedFile(id=upload, **video._asdict(), n_bytes=n_bytes)


async def write(path: Path, chunks: AsyncIterator[bytes], most: int) -> int:
    """Write a file that comes in pieces; return its bytes, and raise where they are too many."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    n_bytes, waiting = 0, bytearray()
    with path.open("wb") as file:
        async for chunk in chunks:
            waiting += chunk
            n_bytes += len(chunk)
            if n_bytes > most:
                raise _too_large(n_bytes, most)
            if len(waiting) >= BLOCK:
                await run_in_threadpool(_append, file, bytes(waiting))
                waiting.clear()
        await run_in_threadpool(_append, file, bytes(waiting))
    if not n_bytes:
        raise VideoError("the file is empty")
    return n_bytes


def _append(file: BinaryIO, data: bytes) -> None:
    """Write some bytes, unless others have filled the disk meanwhile."""
    if shutil.disk_usage(file.name).free - len(data) < SPARE:
        raise HttpError(413, "the disk has no room for it: other files take it now")
    file.write(data)


def room(console: Console) -> int:
    """Return how many bytes an upload may have now."""
    with console.database.session() as session:
        wanted = read_preferences(session)
        used = queries.disk_use(session, console.settings).bounded
    free = shutil.disk_usage(console.settings.data).free - SPARE
    return max(0, min(wanted.upload_bytes, wanted.quota_bytes - used, free))


def _too_large(size: int, most: int) -> HttpError:
    return HttpError(
        413,
        f"at most {most / 1e6:.0f} MB are taken now, found {size / 1e6:.0f} MB: settings have the "
        "limit and the quota",
    )
