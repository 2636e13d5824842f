import os
import signal
import time
from functools import partial

import pytest

from habitus.errors import InvalidInputError, WorkerError
from habitus.workers import ATTEMPTS, LocalWorkers, number_of_workers, open_workers
from reference.processes import running, wait_until, workers
from reference.tasks import (
    Errand,
    Payload,
    doubled,
    first_or_forever,
    killed_while,
    process_id,
    refused,
    uses,
)


def test_the_number_of_workers_is_that_of_processors_where_none_is_given():
    assert number_of_workers(3) == 3
    assert number_of_workers(-1) == number_of_workers(0) >= 1


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
        time.sleep(0.5)  # until the pool has noticed it, too
        assert dict(pool.as_completed(doubled, range(3))) == {0: 0, 1: 2, 2: 4}


def test_a_task_whose_process_dies_again_and_again_is_named(tmp_path):
    errands = [Errand("fine", 1), Errand("deadly", -1), Errand("also fine", 2)]
    with LocalWorkers(2) as pool:
        with pytest.raises(WorkerError, match=f"^deadly: .* died {ATTEMPTS} times"):
            list(pool.as_completed(partial(killed_while, tmp_path, ATTEMPTS), errands))
        assert len(list(tmp_path.iterdir())) == ATTEMPTS
        assert dict(pool.as_completed(doubled, [3])) == {0: 6}


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
