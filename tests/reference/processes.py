"""Processes that habitus starts, as Linux lists them."""

import contextlib
import os
from pathlib import Path


def workers(pid: int | None = None) -> list[int]:
    """Process ids of the loky workers of a process, by default of this one."""
    return _children(pid, b"popen_loky")


def decoders(pid: int | None = None) -> list[int]:
    """Process ids of the decoders of a process, by default of this one."""
    return _children(pid, b"habitus.ingest.decoder")


def _children(pid: int | None, command: bytes) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{pid or os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in path.read_text().split()]
    return [child for child in found if command in _command(child)]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def has_loaded(pid: int, name: str) -> bool:
    """Whether a process has loaded a compiled module of a package."""
    with contextlib.suppress(OSError):
        return f"/{name}/" in Path(f"/proc/{pid}/maps").read_text()
    return False


def running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"
