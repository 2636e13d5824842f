"""The connection to a Dask scheduler, and what its workers are sent: they run this very habitus."""

import logging
import pickle
import re
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Self

import dask
from distributed import Client, LocalCluster, Security, get_worker

from habitus.errors import FileError, InvalidInputError, VideoError, WorkerError
from habitus.files import work_folder
from habitus.jobs.cluster.node import LOOPBACK, Node
from habitus.jobs.workers import number_of_workers
from habitus.progress import report_connected
from habitus.version import __version__

LOCAL = "local"
ADDRESS = r"((tcp|tls|ws|wss)://)?([\w.-]+|\[[0-9a-f:]+\]):\d{1,5}"
ANSWER = 5.0
"""Seconds that a scheduler may take to answer."""
WORKERS = 10.0
"""Seconds to wait for the first worker of a running cluster."""
STARTING = 60.0
"""Seconds that the processes of a cluster on this machine may take to start."""
RETURN = 60.0
"""Seconds to wait for a scheduler or workers that went away."""
# What each worker is asked, as an expression: it may have no habitus at all.
PROBE = "[__import__('av') and None, __import__('habitus').__version__][1]"
LOGGERS = ("distributed", "distributed.client", "distributed.scheduler", "tornado.application")
SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "1TB",  # parameters of models are large
    "distributed.scheduler.allowed-failures": 2,  # three attempts, where the scheduler is ours
    "distributed.scheduler.worker-ttl": None,
}


class Connection:
    """A client of a scheduler; it is there while the `with` block is.

    `cluster` is "local" for a scheduler and `jobs` workers on this machine, that end with this
    process, or the address of a scheduler: `tcp://host:port`, `tls://host:port` or `host:port`.
    """

    def __init__(self, cluster: str, jobs: int = -1) -> None:
        if cluster != LOCAL and not re.fullmatch(ADDRESS, cluster):
            raise InvalidInputError(
                f"{cluster!r} is not the address of a scheduler: give local or one such as "
                "tcp://host:8786",
                parameter="cluster",
            )
        self.cluster, self.n_local = cluster, number_of_workers(jobs)
        self.address = cluster
        self.client: Any = None
        self._starting = False
        """Whether there are workers that are being started."""
        self._checked: set[str] = set()
        """Addresses of workers that can do the work."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(_quiet())
            stack.enter_context(dask.config.set(SETTINGS))
            if self.cluster == LOCAL:
                self._start(stack)
            stack.callback(self._leave)
            self._connect()
            if self.cluster == LOCAL:
                self._starting = True
            else:
                self._find_workers(WORKERS)
            if dashboard := self.dashboard:
                report_connected(f"the dashboard of the cluster is at {dashboard}")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        """Start a scheduler in this process, and workers in others, which are not waited for."""
        node = stack.enter_context(Node(self.n_local, stack.enter_context(work_folder())))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the usual port of the dashboard is taken
            scheduler = LocalCluster(
                n_workers=0, host=LOOPBACK, scheduler_port=0, dashboard_address=f"{LOOPBACK}:8787"
            )
        stack.callback(_closed, scheduler)
        self.address = scheduler.scheduler_address
        node.serve(self.address)

    def _connect(self) -> None:
        """Connect to the scheduler."""
        try:
            _check_peer(self.address)
            self.client = Client(self.address, timeout=ANSWER, set_as_default=False)
        except OSError as error:  # TimeoutError is one
            raise InvalidInputError(
                f"no scheduler answers at {self.address} within {ANSWER:g} s: start one with "
                "dask scheduler, or name another address",
                parameter="cluster",
            ) from error

    def _find_workers(self, patience: float) -> None:
        """Wait for a worker, and ask all whether they can do the work."""
        check_scheduler(self.client)
        self._await_workers(1, patience)
        self._checked = set()
        self._check_new(dict(self.client.nthreads()))

    def _await_workers(self, n: int, patience: float) -> None:
        try:
            self.client.wait_for_workers(n, timeout=patience)
        except OSError as error:
            raise InvalidInputError(
                f"the scheduler at {self.address} has no worker after {patience:g} s: start one "
                f"with dask worker {self.address}",
                parameter="cluster",
            ) from error

    def _leave(self) -> None:
        if self.client is not None:
            _closed(self.client)

    @property
    def dashboard(self) -> str | None:
        """Address of the dashboard; None where there is none."""
        if self.cluster == LOCAL and find_spec("bokeh") is None:
            return None
        with suppress(KeyError, OSError):
            return str(self.client.dashboard_link)
        return None

    def n_threads(self) -> dict[str, int]:
        """Return the number of tasks that each worker takes at a time, by its address.

        Nothing where the scheduler does not answer. Workers that are being started are waited for.
        """
        if self._starting:
            self._await_workers(self.n_local, STARTING)
            self._starting = False
        try:
            n_threads = dict(self.client.nthreads())
        except Exception:  # of any kind: the connection is being lost
            return {}
        if self.cluster != LOCAL:
            try:
                self._check_new(n_threads)
            except InvalidInputError as error:  # while work is under way
                raise WorkerError(str(error)) from error
        return n_threads

    def _check_new(self, workers: Collection[str]) -> None:
        """Ask workers that were not asked yet whether they can do the work."""
        new = [address for address in workers if address not in self._checked]
        if new:
            self._checked |= check_workers(self.client, new)

    def restore(self) -> None:
        """Connect again to a scheduler that was lost; WorkerError if it does not come back."""
        end = time.monotonic() + RETURN
        while self.client.status == "connecting":  # it tries by itself
            time.sleep(0.1)
        while self.client.status != "running":
            try:
                self._connect()
                self._find_workers(max(end - time.monotonic(), WORKERS))
            except InvalidInputError as error:
                if time.monotonic() > end:
                    raise WorkerError(
                        f"the cluster at {self.address} went away and did not come back: {error}; "
                        "the same command goes on from what is stored"
                    ) from error


def _check_peer(address: str) -> None:
    """Raise unless Dask could speak to whoever answers at an address.

    A client of Dask that cannot be made keeps its process from ending; one that nobody speaks to
    waits for ever. OSError if nobody is there, or says nothing.
    """
    scheme, _, place = address.rpartition("://")
    security = Security().get_connection_args("client")
    if scheme in ("tls", "wss") and security["ssl_context"] is None:
        raise InvalidInputError(
            f"{address} needs certificates: name them in Dask's configuration (distributed.comm."
            "tls.ca-file and distributed.comm.tls.client)",
            parameter="cluster",
        )
    if scheme in ("", "tcp", "ws") and security["require_encryption"]:
        raise InvalidInputError(
            f"{address} is not encrypted, which Dask's configuration asks for: give a tls:// one",
            parameter="cluster",
        )
    if scheme not in ("", "tcp"):
        return
    host, _, port = place.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER) as connection:
        connection.recv(1)


def check_scheduler(client: Any) -> None:
    """Raise an error if a scheduler has no habitus: Dask unpacks tasks there first."""
    try:
        client.run_on_scheduler(eval, PROBE)
    except ImportError as error:
        raise _lacking("the scheduler", error) from error
    except Exception:  # a scheduler that runs nothing may do so
        return


def check_workers(client: Any, workers: Sequence[str]) -> set[str]:
    """Return which workers can do the work of this habitus; those that went are left out.

    InvalidInputError names one that cannot.
    """
    good = set[str]()
    try:
        answers = client.run(eval, PROBE, workers=list(workers), on_error="return")
    except Exception:  # of any kind: the connection is being lost
        return good
    for address, answer in answers.items():
        if isinstance(answer, OSError):
            continue
        if isinstance(answer, ImportError):
            raise _lacking(f"worker {address}", answer)
        if isinstance(answer, Exception):
            raise InvalidInputError(
                f"worker {address} cannot import habitus: {answer}", parameter="cluster"
            )
        if answer != __version__:
            said = _another_version(address, answer, __version__)
            raise InvalidInputError(said, parameter="cluster")
        good.add(address)
    with suppress(Exception):
        client.run(exec, "import habitus.jobs.cluster.pool", workers=list(good), on_error="ignore")
    return good


def _lacking(who: str, error: ImportError) -> InvalidInputError:
    lacks = "PyAV" if error.name == "av" else (error.name or str(error))
    return InvalidInputError(
        f"{who} has no {lacks}: install habitus {__version__} there, with all that it needs",
        parameter="cluster",
    )


def _another_version(worker: str, version: str, wanted: str) -> str:
    return (
        f"worker {worker} has habitus {version}, this is habitus {wanted}: install the same "
        "version on all workers"
    )


def worker_name() -> str:
    """Return the address of the worker that this is."""
    return str(get_worker().address)


class SharedValue:
    """Something that tasks need beside their items, sent to workers once.

    It is the result of a task of its own, which workers give each other, and which Dask makes again
    where the workers that had it are gone.
    """

    def __init__(self, connection: Connection, value: Any) -> None:
        self._connection, self._payload = connection, pickle.dumps(value)
        self._future: Any = None

    def future(self) -> Any:
        """Return it as an argument of tasks."""
        if self._future is None or self._future.status in ("cancelled", "lost"):
            self._future = self._connection.client.submit(
                received, self._payload, key=f"habitus-sent-{uuid.uuid4().hex}"
            )
        return self._future


def received(payload: bytes) -> Any:
    """Return what was sent; run by a worker.

    A function of this room: a worker imports the room before it carries out the first task, and not
    in one thread while a task in another imports the same modules, which Python does not survive.
    """
    return pickle.loads(payload)  # noqa: S301 - from the client


def carry_out(wanted: str, function: Callable[..., Any], item: bytes, *more: Any) -> Any:
    """Call a function with an item; run by a worker.

    Errors about files, and those of the machine, say on which worker they came up. One that came
    later may have another habitus than the one that asks, `wanted`; that is a `WorkerError`: an
    input that cannot be used is a result for some, and is noted.
    """
    if (version := __version__) != wanted:
        raise WorkerError(_another_version(worker_name(), version, wanted))
    try:
        return function(pickle.loads(item), *more)  # noqa: S301 - from the client
    except (FileError, VideoError) as error:
        named = type(error)(f"{error} (on worker {worker_name()})", parameter=error.parameter)
        raise named from None
    except (OSError, MemoryError) as error:
        raise WorkerError(f"worker {worker_name()}: {str(error) or 'out of memory'}") from error


def _closed(closable: Any) -> None:
    """Close a client or a cluster; what is wrong with it then no longer matters."""
    with suppress(Exception):
        closable.close(timeout=ANSWER)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Dask logs of lost connections from the user: errors say it in one line."""
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
