"""Where the processor's time of the tests goes, by folder: the figures of CONTRIBUTING.md (Linux).

make unit PYTEST="-p scripts.test_times"
"""

import os
import time
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
TESTS, SECONDS = Counter[str](), Counter[str]()


def _descendants(process: int) -> Iterator[int]:
    """Yield the ids of all processes that a process started and they in turn, as far as alive."""
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found = [int(child) for child in children.read_text().split()]
        except OSError:
            continue
        for child in found:
            yield child
            yield from _descendants(child)


def _processor_seconds() -> float:
    """Return the processor time so far of this process, of its children and theirs."""
    seconds = time.process_time() + sum(os.times()[2:4])
    for process in _descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        seconds += sum(map(int, fields[11:15])) / TICKS
    return seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Remember what was used before a test."""
    item.user_properties.append(("before", _processor_seconds()))
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Send what the test used to where the table is made."""
    yield
    item.user_properties.append(("after", _processor_seconds()))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a test to its folder."""
    used = dict(report.user_properties)
    if report.when == "teardown" and "after" in used:  # not where the teardown failed
        _, *folders, _ = Path(report.location[0]).parts
        folder = folders[0] if folders else "beside the folders"
        TESTS[folder] += 1
        SECONDS[folder] += used["after"] - used["before"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    write = terminalreporter.write_line
    write("| folder | tests | processor seconds |\n|---|---:|---:|")
    for folder, seconds in SECONDS.most_common():
        write(f"| {folder} | {TESTS[folder]:,} | {seconds:.0f} |")
    write(f"| all | {TESTS.total():,} | {SECONDS.total():.0f} |")
