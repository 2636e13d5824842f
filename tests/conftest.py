"""What every test may count on: processes that end with it, and in CI that it is not skipped."""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import habitus
from habitus.jobs.workers import available_processors
from reference.browser import browser, opened
from reference.footage import encode, moving_square
from reference.kept_forks import kept_fork_servers, own_fork_servers
from reference.system import in_ci

__all__ = ["browser", "kept_fork_servers", "opened", "own_fork_servers", "start"]

Start = Callable[..., "subprocess.Popen[str]"]


IN_MEMORY = Path("/dev/shm")  # noqa: S108 - only as the place of pytest's own folder
ROOM = 3 << 30


def pytest_configure() -> None:
    """Let tests write to memory, where there is room: at each commit, a disk is waited for."""
    with contextlib.suppress(OSError, AttributeError):  # neither is there on macOS
        programs_run = not os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC
        if programs_run and shutil.disk_usage(IN_MEMORY).free > ROOM:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail what would be skipped, with CI=true."""
    report = yield
    if in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped, with CI=true: {report.longreprtext}"
    return report


@pytest.fixture
def start() -> Iterator[Start]:
    """A function that starts a command as a terminal does, in a process group of its own.

    Ctrl-C reaches it even where the tests are a background job of a plain shell, which ignores
    SIGINT and hands that down. Whatever the command started is killed at the end of the test.
    """
    processes: list[subprocess.Popen[str]] = []

    def started(command: Sequence[object], **options: Any) -> "subprocess.Popen[str]":
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = subprocess.Popen(
                [*map(str, command)], text=True, start_new_session=True, **options
            )
        finally:
            signal.signal(signal.SIGINT, before)
        processes.append(process)
        return process

    yield started
    for process in processes:
        # Gone already, or, on macOS, about to be.
        with process, contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while all is imported, nor ever search what was imported."""
    gc.disable()
    outcome = yield
    gc.freeze()
    gc.enable()
    return outcome


LONGEST = ("packaging", "test_bare.py", "test_docs.py", "cluster", "test_accessibility.py")
"""Folders and files whose tests take longest, up to a minute."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: all others run beside it, and short ones are left at the end.

    Workers take from each other what comes last. A test that drives a browser has a second try, as
    a busy browser drops a key now and then; the summary names it (RERUN). No other test has one.
    """
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: min(ranks.get(part, len(ranks)) for part in item.path.parts))
    for item in items:
        if isinstance(item, pytest.Function) and "browser" in item.fixturenames:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return twice as many workers as processors: a third of the time, tests wait."""
    return available_processors() * 2


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile modules and kernels of a fresh checkout once, before workers start together.

    Each worker would compile the libraries and rewrite the tests anew; and tests read what commands
    say, which is more while kernels are compiled.
    """
    package, config = Path(habitus.__file__).parent, session.config
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    if next(package.rglob("*.nbi"), None) is not None:
        return
    kernels = [sys.executable, "-c", "import reference.loaded"]
    with subprocess.Popen(kernels, cwd=Path(__file__).parent):  # beside the modules
        if config.getoption("tx", None):
            collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", *config.args]
            subprocess.run(collect, check=False, capture_output=True)
    with tempfile.TemporaryDirectory() as folder:
        video = encode(Path(folder, "a.mp4"), moving_square(250))
        command = [sys.executable, "-m", "habitus", "learn", str(video), "-o", f"{video}.model"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
