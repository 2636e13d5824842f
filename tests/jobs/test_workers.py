import os
import pickle
import signal
import subprocess
import sys
from functools import partial

import pytest

from habitus.errors import HabitusError, InvalidInputError, TaskError, WorkerError
from habitus.jobs.cluster import open_workers
from habitus.jobs.workers import (
    ATTEMPTS,
    LocalWorkers,
    available_processors,
    load_early,
    number_of_workers,
)
from reference.processes import LONG, running, wait_until, workers
from reference.tasks import (
    Errand,
    Payload,
    doubled,
    first_or_forever,
    inverse,
    killed_while,
    process_id,
    refused,
    report_until,
    unsendable,
    unsendable_result,
    uses,
)


def test_the_number_of_workers_is_that_of_processors_where_none_is_given():
    assert number_of_workers(3) == 3
    assert number_of_workers(-1) >= 1
    for jobs in (0, -2):
        with pytest.raises(HabitusError, match=f"at least 1, or -1 .*, found {jobs}"):
            number_of_workers(jobs)


def test_results_come_with_the_numbers_of_their_items():
    with open_workers(jobs=2) as pool:
        assert dict(pool.as_completed(doubled, iter(range(9)))) == {i: 2 * i for i in range(9)}
        assert dict(pool.as_completed(doubled, [])) == {}


def test_processes_are_others_and_stay_from_call_to_call():
    with LocalWorkers(2) as pool:
        first = {pid for _, pid in pool.as_completed(process_id, range(8))}
        second = {pid for _, pid in pool.as_completed(process_id, range(8))}
    assert first == second
    assert len(first) == 2
    assert os.getpid() not in first
    assert not any(map(running, first))


def test_a_function_is_sent_to_each_process_once():
    with LocalWorkers(1) as pool:
        assert list(pool.as_completed(partial(uses, Payload()), "abc")) == [(0, 1), (1, 2), (2, 3)]


def test_the_task_of_a_process_that_died_is_carried_out_again(tmp_path):
    errands = [Errand(f"errand {i}", -i) for i in range(6)]
    with LocalWorkers(2) as pool:
        found = dict(pool.as_completed(partial(killed_while, tmp_path, ATTEMPTS - 1), errands))
    assert found == {i: -i for i in range(6)}
    assert len(list(tmp_path.iterdir())) == 5 * (ATTEMPTS - 1)


def test_a_process_that_died_while_it_had_nothing_to_do_is_replaced():
    with LocalWorkers(1) as pool:
        ((_, pid),) = pool.as_completed(process_id, [0])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not running(pid), "it is gone")
        assert dict(pool.as_completed(doubled, range(3))) == {0: 0, 1: 2, 2: 4}


def test_a_task_whose_process_dies_again_and_again_is_named(tmp_path):
    errands = [Errand("fine", 1), Errand("deadly", -1), Errand("also fine", 2)]
    with LocalWorkers(2) as pool:
        with pytest.raises(TaskError, match=f"^deadly: .* died {ATTEMPTS} times") as told:
            list(pool.as_completed(partial(killed_while, tmp_path, ATTEMPTS), errands))
        assert told.value.task == 1
        assert len(list(tmp_path.iterdir())) == ATTEMPTS
        assert dict(pool.as_completed(doubled, [3])) == {0: 6}


def test_what_a_task_reports_is_heard_while_it_runs(tmp_path):
    heard = []
    with LocalWorkers(2) as pool:
        tasks = pool.started(
            partial(report_until, tmp_path), range(3), heard=lambda *said: heard.append(said)
        )
        with tasks:
            while len(heard) < 4 or {number for number, _ in heard} != {0, 1}:
                assert list(tasks.poll(LONG)) == []
            assert tasks.pending
            (tmp_path / "end").touch()
            found = {}
            while tasks.pending:
                found |= tasks.poll(LONG)
    assert found == {0: 0, 1: 2, 2: 4}
    assert all(said == f"at {number}" for number, said in heard)


def test_an_error_that_was_not_expected_names_what_led_to_it():
    with LocalWorkers(1) as pool, pytest.raises(ZeroDivisionError) as found:
        list(pool.as_completed(inverse, [0]))
    assert "in inverse" in found.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_told_in_words():
    with LocalWorkers(1) as pool, pytest.raises(WorkerError, match=r"^Unsendable: 3 and 4$"):
        list(pool.as_completed(unsendable, [3]))


def test_a_result_that_cannot_be_sent_is_an_error():
    with LocalWorkers(1) as pool:
        with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
            list(pool.as_completed(unsendable_result, [3]))
        assert dict(pool.as_completed(doubled, [3])) == {0: 6}


def test_code_that_cannot_be_loaded_is_told_in_one_line():
    with (
        LocalWorkers(1, preload="no.such.module") as pool,
        pytest.raises(HabitusError, match=r"^cannot load code: ModuleNotFoundError: .*'no'$"),
    ):
        list(pool.as_completed(doubled, [3]))


def test_a_container_has_the_processors_of_its_quota(tmp_path, monkeypatch):
    monkeypatch.setattr("habitus.jobs.workers.CGROUP", tmp_path)
    unlimited = available_processors()
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert available_processors() == unlimited
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert available_processors() == 1
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    for quota, expected in (("-1", unlimited), ("150000", min(2, unlimited)), ("100000", 1)):
        (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota)
        assert available_processors() == expected


def test_an_error_of_a_task_is_raised_as_it_is():
    with LocalWorkers(2) as pool, pytest.raises(InvalidInputError, match=r"^b: refused$") as found:
        list(pool.as_completed(refused, [Errand("b", 1)]))
    assert found.value.parameter == "value"


def test_tasks_that_nobody_waits_for_are_ended(tmp_path):
    with LocalWorkers(2) as pool:
        endless = pool.as_completed(partial(first_or_forever, tmp_path), range(2))
        next(endless)
        wait_until(lambda: list(tmp_path.iterdir()), "the second task runs")
        (pid,) = [int(mark.name) for mark in tmp_path.iterdir()]
        endless.close()
        wait_until(lambda: not running(pid), "the process is gone")
        assert dict(pool.as_completed(doubled, [3])) == {0: 6}
    assert not workers()


EARLY = """
import habitus.jobs.workers as workers
workers.load_early("habitus.scene.ahead")
(server,) = workers._early.values()
print(server.pid, flush=True)
"""


def test_what_was_loaded_early_is_used_or_ends_with_the_process():
    load_early("reference.tasks")
    with LocalWorkers(1, preload="reference.tasks") as pool:
        assert dict(pool.as_completed(doubled, [3])) == {0: 6}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", EARLY], env=environment, capture_output=True, text=True, check=True
    )
    assert not running(int(done.stdout))
    assert done.stderr == ""
