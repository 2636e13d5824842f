"""What the tests themselves count on: skipping, failing in CI, processes that end, sharing."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reference import system
from reference.made_once import made_once
from reference.processes import running

TESTS = Path(__file__).parents[1]


def run_tests(folder, code, **variables):
    """Run pytest, with our conftest, on one file of tests."""
    (folder / "test_it.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-rs"]
    return subprocess.run(
        [*command, "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "CI"}
        | {"PYTHONPATH": str(TESTS), **variables},
    )


@pytest.fixture
def without_chromium(monkeypatch):
    monkeypatch.setattr(system, "missing", lambda: {"chromium-headless-shell"})


def test_a_missing_package_skips_with_the_command(without_chromium, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    command = "as root: apt-get install --no-install-recommends chromium-headless-shell"
    with pytest.raises(pytest.skip.Exception, match=command):
        system.needs(system.BROWSER)
    system.needs(system.RTSP_SERVER)  # of which nothing is missing


def test_a_missing_package_fails_in_ci(without_chromium, monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install"):
        system.needs(system.BROWSER)


SKIPPED = "import pytest\ndef test(): pytest.skip('for a reason')\n"


def test_whatever_is_skipped_fails_in_ci(tmp_path):
    here = run_tests(tmp_path, SKIPPED)
    assert here.returncode == 0, here.stdout
    assert "1 skipped" in here.stdout
    there = run_tests(tmp_path, SKIPPED, CI="true")
    assert there.returncode == 1, there.stdout
    assert "skipped, with CI=true" in there.stdout
    assert "for a reason" in there.stdout


def test_what_is_expected_to_fail_may_do_so_in_ci(tmp_path):
    code = "import pytest\n@pytest.mark.xfail\ndef test(): assert False\n"
    assert "1 xfailed" in run_tests(tmp_path, code, CI="true").stdout


def test_a_started_process_hears_ctrl_c_where_the_tests_ignore_it(start):
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.communicate()[0] == "True\n"


LEFT = """
import subprocess, sys
def test(start):
    child = "c = subprocess.Popen(['sleep', '600']); print(c.pid, flush=True); c.wait()"
    code = f"import subprocess; {child}"
    process = start([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with open("pids", "w") as file:
        print(process.pid, process.stdout.readline(), file=file)
    raise AssertionError
"""


def test_nothing_outlives_a_test_that_fails(tmp_path):
    done = run_tests(tmp_path, LEFT)
    assert "1 failed" in done.stdout, done.stdout
    process, grandchild = map(int, (tmp_path / "pids").read_text().split())
    assert not running(process)
    assert not running(grandchild)


def test_what_is_dear_is_made_by_the_first_who_needs_it(tmp_path_factory):
    tmp_path_factory.getbasetemp()  # pytest makes it for whoever asks first
    made, together = [], threading.Barrier(3)

    def make(folder):
        made.append(folder)
        time.sleep(0.1)  # the others ask meanwhile
        (folder / "a").write_text("made")

    def ask(_):
        together.wait()
        return (made_once(tmp_path_factory, "dear", make) / "a").read_text()

    with ThreadPoolExecutor(3) as workers:
        assert list(workers.map(ask, range(3))) == ["made"] * 3
    assert len(made) == 1


def test_what_could_not_be_made_is_made_by_the_next(tmp_path_factory):
    def fail(folder):
        (folder / "half").touch()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk"):
        made_once(tmp_path_factory, "broken", fail)
    folder = made_once(tmp_path_factory, "broken", lambda folder: (folder / "whole").touch())
    assert [path.name for path in folder.iterdir()] == ["whole"]
