"""Workers of a cluster: real schedulers and workers, killed and started again."""

import logging
import os
import signal
import socket
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest

import habitus
from habitus.errors import InvalidInputError, MissingPackageError, TaskError, WorkerError
from habitus.jobs.cluster import open_workers
from habitus.jobs.cluster.connection import SharedValue, check_workers
from habitus.jobs.cluster.pool import FETCH, ClusterWorkers
from habitus.jobs.workers import ATTEMPTS, Task
from habitus.site.places import look_at
from reference.clusters import as_environment, cluster, encryption, kill
from reference.processes import wait_until
from reference.tasks import (
    Errand,
    Payload,
    doubled,
    killed_while,
    meet,
    noted,
    process_id,
    refused,
    uses,
    wait_for_file,
)


def test_results_come_with_the_numbers_of_their_items(workers):
    assert isinstance(workers, ClusterWorkers)
    assert workers.n_workers == 2
    assert dict(workers.as_completed(doubled, iter(range(20)))) == {i: 2 * i for i in range(20)}
    assert dict(workers.as_completed(doubled, [])) == {}


def test_tasks_run_in_the_processes_of_the_workers(workers, two, tmp_path):
    """In all of them: two tasks that wait for each other."""
    processes = {process.pid for process in two.processes if process is not two.scheduler}
    found = [pid for _, pid in workers.as_completed(partial(meet, tmp_path, 2), range(2))]
    assert sorted(found) == sorted(processes)


def test_a_function_is_sent_to_each_worker_once(workers):
    found = dict(workers.as_completed(partial(uses, Payload()), range(12)))
    assert max(found.values()) >= 6
    assert sorted(found.values())[-2:] != [1, 1]


def test_an_error_of_a_task_is_raised_as_it_is(workers):
    with pytest.raises(InvalidInputError, match=r"^b: refused$") as found:
        list(workers.as_completed(refused, [Errand("b", 1)]))
    assert found.value.parameter == "value"
    assert dict(workers.as_completed(doubled, [3])) == {0: 6}


def test_workers_of_this_machine_are_replaced(tmp_path):
    """All of them, while they work and while they do not."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    with open_workers("local", 2) as pool:
        assert pool.here
        first = {pid for _, pid in pool.as_completed(partial(meet, meeting, 2), range(2))}
        assert len(first) == 2
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        second = {pid for _, pid in pool.as_completed(process_id, range(20))}
        assert second
        assert not first & second
        errands = [Errand(f"task-{n}", -n) for n in range(1, 5)]
        found = pool.as_completed(partial(killed_while, tmp_path, 1), errands)
        assert dict(found) == {n: -n - 1 for n in range(4)}
        assert len(list(tmp_path.glob("task-*"))) == 4


def test_an_address_without_a_port_is_told():
    for address in ("nonsense", "tcp://", "http://127.0.0.1:1"):
        with (
            pytest.raises(InvalidInputError, match="scheduler") as found,
            open_workers(address),
        ):
            pass
        assert found.value.parameter == "cluster"


def test_without_the_extra_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in [name for name in sys.modules if name.startswith("habitus.jobs.cluster.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingPackageError, match=r"pip install 'habitus\[cluster\]'") as found:
        open_workers("local")
    assert found.value.parameter == "cluster"


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr("habitus.jobs.cluster.connection.ANSWER", 1.0)
    with (
        pytest.raises(InvalidInputError, match=r"no scheduler answers at 127\.0\.0\.1:9 within 1"),
        open_workers("127.0.0.1:9"),
    ):
        pass


def test_somebody_else_answers(monkeypatch):
    monkeypatch.setattr("habitus.jobs.cluster.connection.ANSWER", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(InvalidInputError, match=f"no scheduler answers at {address} within 1"),
            open_workers(address),
        ):
            pass


def test_certificates_that_are_missing_are_told(two):
    address = two.address.replace("tcp:", "tls:")
    with (
        pytest.raises(InvalidInputError, match=f"^{address} needs certificates") as found,
        open_workers(address),
    ):
        pass
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("scheme", ["", "tcp://", "ws://"])
def test_what_is_not_encrypted_is_refused_where_that_is_asked_for(scheme):
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(InvalidInputError, match=r"127\.0\.0\.1:9 is not encrypted"),
        open_workers(f"{scheme}127.0.0.1:9"),
    ):
        pass


def test_what_dask_logs_is_heard_again_afterwards(two, caplog):
    caplog.set_level(logging.WARNING, "distributed.client")
    with open_workers(two.address):
        assert not logging.getLogger("distributed.client").isEnabledFor(logging.CRITICAL)
    assert logging.getLogger("distributed.client").isEnabledFor(logging.WARNING)


def test_work_is_done_by_encrypted_connections(tmp_path):
    configuration = encryption(tmp_path)
    environment = as_environment(configuration)
    with cluster(tmp_path, 0, environment) as found:
        found.scheme = "tls"
        found.start_worker(environment=environment)
        with dask.config.set(configuration):
            found.wait_for_workers(1)
            with open_workers(found.address) as pool:
                assert dict(pool.as_completed(doubled, range(5))) == {i: 2 * i for i in range(5)}
        with (
            pytest.raises(InvalidInputError, match="needs certificates"),
            open_workers(found.address),
        ):
            pass


def test_a_cluster_without_workers_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("habitus.jobs.cluster.connection.WORKERS", 0.5)
    with (
        cluster(tmp_path, 0) as found,
        pytest.raises(InvalidInputError, match=r"has no worker after 0\.5 s: start one with"),
        open_workers(found.address),
    ):
        pass


def shadow(folder: Path, package: str, code: str) -> dict[str, str]:
    """An environment in which a package is another one."""
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}


@pytest.mark.parametrize(
    ("package", "code", "message"),
    [
        ("habitus", "__version__ = '0.0.1'", r"worker tcp://\S+ has habitus 0\.0\.1, this is hab"),
        (
            "av",
            "raise ImportError('no such library', name='av')",
            r"worker tcp://\S+ has no PyAV: ins",
        ),
        (
            "habitus",
            "raise ImportError('no', name='habitus')",
            r"worker tcp://\S+ has no habitus: i",
        ),
    ],
    ids=["another version", "no PyAV", "no habitus"],
)
def test_a_worker_that_cannot_do_the_work_is_named(tmp_path, package, code, message):
    with cluster(tmp_path, 0) as found:
        found.start_worker(environment=shadow(tmp_path / "shadow", package, code))
        found.wait_for_workers(1)
        with pytest.raises(InvalidInputError, match=message), open_workers(found.address):
            pass


def test_a_scheduler_that_cannot_do_the_work_is_named(tmp_path):
    without = shadow(tmp_path / "shadow", "habitus", "raise ImportError('no', name='habitus')")
    with (
        cluster(tmp_path, 1, without) as found,
        pytest.raises(InvalidInputError, match=r"the scheduler has no habitus: install habitus"),
        open_workers(found.address),
    ):
        pass


def test_a_worker_without_a_package_that_comes_later_is_named(tmp_path):
    code = "raise ImportError('no such library', name='av')"
    with cluster(tmp_path, 1) as found, open_workers(found.address) as pool:
        assert dict(pool.as_completed(doubled, [1])) == {0: 2}
        found.start_worker(environment=shadow(tmp_path / "shadow", "av", code))
        found.wait_for_workers(2)
        with pytest.raises(WorkerError, match=r"worker tcp://\S+ has no PyAV: install habitus"):
            list(pool.as_completed(look_at, [f"{n}.mp4" for n in range(100)]))


def test_a_worker_of_another_version_that_comes_later_is_named(tmp_path):
    with cluster(tmp_path, 1) as found, open_workers(found.address) as pool:
        assert dict(pool.as_completed(doubled, [1])) == {0: 2}
        patch = "import habitus.version\nhabitus.version.__version__ = '0.0.2'\n"
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(patch)
        path = os.pathsep.join([str(tmp_path / "site"), *sys.path])
        found.start_worker(environment={"PYTHONPATH": path})
        found.wait_for_workers(2)
        with pytest.raises(WorkerError, match=r"worker tcp://\S+ has habitus 0\.0\.2, this"):
            list(pool.as_completed(process_id, range(100)))


class Answers(dict):
    """A client whose workers have threads, or answer what they are asked."""

    def run(self, *question, **options):
        return self

    def nthreads(self):
        return self

    def wait_for_workers(self, n, timeout):
        assert len(self) >= n


def test_a_worker_that_goes_while_it_is_asked_is_left_out():
    there = Answers({"tcp://a:1": habitus.__version__, "tcp://b:1": OSError("timed out")})
    assert check_workers(there, list(there)) == {"tcp://a:1"}


def workers_of(client):
    """Workers that a client speaks to."""
    workers = ClusterWorkers("tcp://127.0.0.1:9")
    workers.client = client
    return workers


def test_workers_are_asked_anew_by_a_new_connection():
    """At the address of one that could do the work, another may have been started."""
    connection = workers_of(Answers({"tcp://a:1": habitus.__version__}))
    connection._find_workers(1.0)
    connection.client = Answers({"tcp://a:1": "0.0.2"})
    with pytest.raises(InvalidInputError, match=r"worker tcp://a:1 has habitus 0\.0\.2, this"):
        connection._find_workers(1.0)


def test_a_task_is_started_though_no_worker_is_there_yet(monkeypatch):
    monkeypatch.setattr(ClusterWorkers, "_check_new", lambda workers, addresses: None)
    assert workers_of(Answers()).n_workers == 1
    assert workers_of(Answers({"tcp://a:1": 2, "tcp://b:1": 3})).n_workers == 5


class Client:
    """A client that carries out nothing: its futures are what a test makes of them."""

    status = "running"

    def __init__(self):
        self.submitted, self.cancelled, self.client = [], [], self

    def nthreads(self):
        return {"tcp://a:1": 2}

    def run(self, *question, **options):
        return {}

    def submit(self, function, *arguments, key):
        self.submitted.append(SimpleNamespace(key=key, status="pending", add_done_callback=id))
        return self.submitted[-1]

    def cancel(self, futures, force):
        self.cancelled += futures


def test_what_was_sent_is_sent_again_only_where_it_was_lost():
    client = Client()
    sent = SharedValue(client, "a function")
    for status, n_sent in (("pending", 1), ("finished", 1), ("lost", 2), ("cancelled", 3)):
        sent.future().status = status
        assert sent.future() is client.submitted[-1]
        assert len(client.submitted) == n_sent


def test_tasks_that_nobody_waits_for_any_longer_are_cancelled():
    def interrupted():
        raise KeyboardInterrupt

    client = Client()
    tasks, items = workers_of(client), (Task(number, number) for number in range(5))
    with pytest.raises(KeyboardInterrupt):
        list(tasks.results(partial(tasks.submit, doubled), items, check=interrupted))
    assert len(client.submitted) == 2
    assert client.cancelled == client.submitted


class Late:
    """A future whose result takes half a minute to come."""

    key = "late"

    def __init__(self):
        self.timeouts = []

    def add_done_callback(self, call):
        call(self)

    def result(self, timeout):
        self.timeouts.append(timeout)
        assert len(self.timeouts) < 10
        if timeout < 30:
            raise TimeoutError
        return "here"


def test_a_large_result_is_given_more_and_more_time():
    late = Late()
    ((_, found),) = workers_of(Client()).results(lambda task: late, iter([Task(0, 0)]))
    assert found == "here"
    assert late.timeouts == [FETCH, 2 * FETCH, 4 * FETCH, 8 * FETCH]


def test_the_task_of_a_worker_that_was_killed_is_carried_out_elsewhere(tmp_path):
    with cluster(tmp_path, 2) as found, open_workers(found.address) as pool:
        marks = tmp_path / "marks"
        marks.mkdir()
        results = pool.as_completed(partial(wait_for_file, marks, tmp_path / "go"), range(6))
        collected: dict[int, int] = {}
        thread = threading.Thread(target=lambda: collected.update(results))
        thread.start()
        wait_until(lambda: len(list(marks.iterdir())) >= 2, "both workers are at work")
        kill(found.processes[1])
        (tmp_path / "go").touch()
        thread.join()
        assert collected == {i: 2 * i for i in range(6)}


def test_a_task_whose_workers_die_is_named(tmp_path):
    with cluster(tmp_path, 5) as found, open_workers(found.address) as pool:
        deadly = partial(killed_while, tmp_path, 99)
        with pytest.raises(TaskError, match=r"^deadly: the workers that worked on it died") as told:
            list(pool.as_completed(deadly, [Errand("deadly", -1)]))
    assert told.value.task == 0


def test_a_task_whose_own_workers_go_again_and_again_is_named(workers, monkeypatch):
    monkeypatch.setattr("habitus.jobs.cluster.pool.LOOK", 0.01)
    gone, started = "tcp://127.0.0.1:9", []

    def submit(task):
        started.append(task)
        assert len(started) <= ATTEMPTS
        return workers.submit(doubled, 1, workers=[gone])

    results = workers.results(submit, iter([Task(0, Errand("deadly", 1))]), homes={0: gone})
    with pytest.raises(WorkerError, match=rf"^deadly: .* died {ATTEMPTS} times"):
        list(results)


def test_all_workers_are_killed_and_others_started(tmp_path):
    with cluster(tmp_path, 2) as found, open_workers(found.address) as pool:
        results = pool.as_completed(partial(noted, tmp_path), range(8))
        first = [next(results)]
        for process in found.processes[1:]:
            kill(process)
        found.start_worker()
        assert dict([*first, *results]) == {i: 2 * i for i in range(8)}


def test_workers_that_never_come_back_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("habitus.jobs.cluster.pool.RETURN", 1.0)
    with cluster(tmp_path, 1) as found, open_workers(found.address) as pool:
        results = pool.as_completed(doubled, range(50))
        next(results)
        kill(found.processes[1])
        with pytest.raises(WorkerError, match=r"has had no workers for 1 s: start some, and give"):
            list(results)


def test_a_scheduler_that_is_started_again_is_gone_on_with(tmp_path):
    with cluster(tmp_path, 1) as found, open_workers(found.address) as pool:
        results = pool.as_completed(partial(noted, tmp_path), range(8))
        first = [next(results)]
        for process in found.processes:
            kill(process)
        found.start_scheduler()
        found.start_worker()
        assert dict([*first, *results]) == {i: 2 * i for i in range(8)}


def test_a_scheduler_that_stays_away_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("habitus.jobs.cluster.connection.RETURN", 1.0)
    monkeypatch.setattr("habitus.jobs.cluster.connection.ANSWER", 1.0)
    with cluster(tmp_path, 1) as found, open_workers(found.address) as pool:
        results = pool.as_completed(doubled, range(50))
        next(results)
        for process in found.processes:
            kill(process)
        with pytest.raises(WorkerError, match="went away and did not come back: no scheduler ans"):
            list(results)
