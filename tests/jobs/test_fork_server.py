"""Processes that are forked: they talk, ask for others, and end with whoever asked for them."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pytest

from habitus.errors import HabitusError, InvalidInputError
from habitus.jobs.fork_server import Child, ForkServer
from reference.processes import LONG, descendants, running, wait_until

HERE = "jobs.test_fork_server"


@pytest.fixture
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as fork_server:
        yield fork_server


def answer(child: Child) -> Any:
    assert child.connection is not None
    assert child.connection.poll(LONG), "no answer"
    return child.connection.recv()


def echo_twice(job: Any, connection: Connection) -> None:
    """In the process: send the job, then what comes."""
    connection.send(job)
    connection.send(connection.recv())


def test_a_process_gets_its_job_and_a_connection(fork_server: ForkServer):
    child = fork_server.start_process(f"{HERE}:echo_twice", {"address": "rtsp://me:secret@camera"})
    assert answer(child) == {"address": "rtsp://me:secret@camera"}
    assert child.is_alive
    child.connection.send("more")
    assert answer(child) == "more"
    assert child.wait(LONG) == 0


def test_a_process_that_is_forked_though_it_was_interrupted_ends(monkeypatch: pytest.MonkeyPatch):
    """Else Ctrl-C while workers start takes until they are given up."""
    lifelines: list[int] = []

    def interrupted(self: ForkServer, target: str, job: Any, descriptors: Sequence[int]) -> Child:
        lifelines.extend(map(os.dup, descriptors))
        raise KeyboardInterrupt

    monkeypatch.setattr(ForkServer, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt) as kept:  # and with it, all that was in its frames
        ForkServer().start_process(f"{HERE}:echo_twice", None)
    poll = select.poll()
    poll.register(lifelines[0], 0)
    assert poll.poll(0), f"its connection is open: {kept}"
    os.close(lifelines[0])


def ask_for_another(job: Any, connection: Connection) -> None:
    """In the process: have another one forked, and send its id and its word."""
    child = ForkServer.inherited().start_process(f"{HERE}:echo_twice", "grandchild")
    connection.send((child.pid, answer(child)))
    connection.recv()


def test_a_process_asks_for_another_which_ends_with_it(fork_server: ForkServer):
    child = fork_server.start_process(f"{HERE}:ask_for_another", None)
    pid, word = answer(child)
    assert word == "grandchild"
    assert running(pid)
    child.kill()
    assert child.exit_code == -signal.SIGKILL
    wait_until(lambda: not running(pid), "the grandchild ends")


def fail(job: Any, connection: Connection) -> None:
    raise ValueError(job)


def keep_a_tenth(job: Any, connection: Connection) -> None:
    """In the process: send by how many bytes it grows for arrays of which it keeps a tenth."""
    del job
    before = psutil.Process().memory_info().rss
    bytes(1 << 20)  # a heap of the C library takes arrays of such a length from then on
    arrays = [bytearray(b"x" * 300_000) for _ in range(200)]
    arrays = arrays[::10]
    connection.send(psutil.Process().memory_info().rss - before)


def test_what_a_process_lets_go_it_does_not_keep(fork_server: ForkServer):
    child = fork_server.start_process(f"{HERE}:keep_a_tenth", None)
    assert answer(child) < 200 * 300_000 / 3


def test_exit_codes_are_told(fork_server: ForkServer):
    assert fork_server.start_process(f"{HERE}:fail", "on purpose").wait(LONG) == 1
    assert fork_server.start_process(f"{HERE}:no_such_function", None).wait(LONG) == 1


def open_files(job: Any, connection: Connection) -> None:
    connection.send(len(os.listdir("/proc/self/fd")))  # noqa: PTH208


def test_a_process_holds_no_files_of_others(fork_server: ForkServer):
    alone = answer(fork_server.start_process(f"{HERE}:open_files", None))
    others = [fork_server.start_process(f"{HERE}:echo_twice", n) for n in range(3)]
    assert [answer(child) for child in others] == [0, 1, 2]
    last = fork_server.start_process(f"{HERE}:open_files", None)
    assert answer(last) == alone
    for child in others:
        child.kill()
    assert last.wait(LONG) == 0


def test_a_fork_server_that_was_killed_is_started_again():
    with ForkServer() as fork_server:
        child = fork_server.start_process(f"{HERE}:echo_twice", 1)
        assert answer(child) == 1
        assert fork_server.pid is not None
        os.kill(fork_server.pid, signal.SIGKILL)
        wait_until(lambda: not running(fork_server.pid or 0), "the fork server ends")
        again = fork_server.start_process(f"{HERE}:echo_twice", 2)
        assert answer(again) == 2
        for each in (child, again):
            each.connection.close()
            each.wait(LONG)


def test_a_process_is_not_there_any_more_when_it_is_said_to_have_ended():
    """Else another one would be started beside it, in the same folder."""
    with ForkServer() as fork_server:
        child = fork_server.start_process(f"{HERE}:echo_twice", 1)
        assert answer(child) == 1
        assert fork_server.pid is not None
        os.kill(fork_server.pid, signal.SIGKILL)
        wait_until(lambda: not child.is_alive, "its end is told")
        wait_until(lambda: not running(child.pid), "it has ended")


SERVER = f"""
import time
from habitus.jobs.fork_server import ForkServer
fork_server = ForkServer()
child = fork_server.start_process("{HERE}:ask_for_another", None)
pid, _ = child.connection.recv()
print(fork_server.pid, child.pid, pid, flush=True)
time.sleep(600)
"""


def test_everything_ends_with_a_server_that_is_killed(start: Any):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    server = start([sys.executable, "-c", SERVER], stdout=-1, env=environment)
    pids = [int(word) for word in server.stdout.readline().split()]
    assert len(pids) == 3
    assert all(map(running, pids))
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(running, pids)), "all processes end")


def what_it_has(module: str, connection: Connection) -> None:
    """In the process: send whether a module is loaded, and what its standard input is."""
    connection.send((module in sys.modules, Path("/dev/stdin").samefile(os.devnull)))


TWIN = f"""
import wave
from habitus.jobs.fork_server import ForkServer
for forked in (True, False):
    fork_server = ForkServer()
    fork_server.start(forked=forked)
    child = fork_server.start_process("{HERE}:what_it_has", "wave")
    print(*child.connection.recv(), fork_server.pid, child.wait(60))
    fork_server.close()
"""


def test_a_fork_server_that_is_forked_has_what_was_loaded_and_ends_as_others_do():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", TWIN], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    twin, started = (line.split() for line in done.stdout.splitlines())
    assert [twin[0], twin[1], twin[3]] == ["True", "True", "0"]
    assert [started[0], started[1], started[3]] == ["False", "True", "0"]
    assert not running(int(twin[2]))


def test_a_process_that_was_not_forked_has_no_fork_server():
    with pytest.raises(HabitusError, match="not forked"):
        ForkServer.inherited()


def test_a_question_is_answered_by_a_process_of_its_own(fork_server: ForkServer):
    assert fork_server.ask("builtins:len", "hello", within=LONG) == 5
    with pytest.raises(InvalidInputError, match="at least 1, or -1") as found:
        fork_server.ask("habitus.jobs.workers:number_of_workers", 0, within=LONG)
    assert found.value.parameter == "jobs"
    with pytest.raises(HabitusError, match="No such file"):
        fork_server.ask("os:listdir", "/no/such/folder", within=LONG)
    with pytest.raises(HabitusError, match="should answer has ended"):
        fork_server.ask("os:_exit", 3, within=LONG)
    with pytest.raises(HabitusError, match=r"no answer within 0\.1 s"):
        fork_server.ask("time:sleep", LONG, within=0.1)
    assert not descendants(fork_server.pid or 0)
