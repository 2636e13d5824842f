"""Processes that a test started: which there are, and waiting for what they should do."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil

# Seconds in which a busy machine gets anything done. What holds earlier takes no longer for it.
LONG = 600.0
# What the processes of `habitus.jobs.workers` are called.
WORKER = "habitus-workers"
# What decoders of live sources are called.
DECODER = "habitus-decoder"
# What fork servers are called.
FORK_SERVER = "habitus-forks"


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Return once the condition holds; fail, saying what was expected, where it never does."""
    end, pause = time.monotonic() + LONG, 0.01
    while not condition():
        assert time.monotonic() < end, f"not within {LONG:g} s: {what}"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.05)  # what takes long is not slowed down by whoever asks for it


def descendants(pid: int) -> list[int]:
    """Process ids of all that a process started, and they in turn."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def command_of(pid: int) -> str:
    """What a process was started as; nothing once it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(psutil.Process(pid).cmdline())
    return ""


def name_of(pid: int) -> str:
    """What a process is called; nothing once it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).name()
    return ""


def running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def resident_bytes(pid: int) -> int:
    """Memory that a process holds."""
    return int(psutil.Process(pid).memory_info().rss)


def workers(pid: int | None = None) -> list[int]:
    """Process ids of the workers of a process, by default of this one."""
    return [child for child in descendants(pid or os.getpid()) if name_of(child) == WORKER]


def decoders(pid: int | None = None) -> list[int]:
    """Process ids of the decoders of a process, by default of this one."""
    return [child for child in descendants(pid or os.getpid()) if name_of(child) == DECODER]


def fork_servers() -> list[int]:
    """Process ids of the fork servers of this process."""
    return [child for child in descendants(os.getpid()) if name_of(child) == FORK_SERVER]


def has_loaded(pid: int, name: str) -> bool:
    """Whether a process has loaded a compiled module of a package."""
    with contextlib.suppress(OSError):
        return f"/{name}/" in Path(f"/proc/{pid}/maps").read_text()
    return False
