"""A process that has everything loaded, from which all others of the console are forked.

A process that is forked shares the libraries and compiled kernels of the nursery, and has little
memory of its own. `multiprocessing` has such a server too, but one whose children cannot ask it
for further processes, and which runs the script that started it in each of them.

The nursery ends with the process that started it: nobody else holds the other end of its socket.
"""

import contextlib
import gc
import importlib
import os
import pickle
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NamedTuple, Self

from habitus.errors import HabitusError

# What the process runs.
COMMAND = "from habitus.cameras.nursery import main; main()"
# What is loaded in it: all that cameras, decoders and learning need.
LOADED = "habitus.cameras.loaded"
# Threads of numerical libraries, and heaps of the C library for threads: a camera is one core's
# work, and each thread and heap costs memory.
SMALL = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MALLOC_ARENA_MAX"), "1"
)
# Precedes a request and its answer: length in bytes, or a process id.
HEADER = struct.Struct("<q")
# Most open files that are handed to a process.
MOST_DESCRIPTORS = 8
# The nursery never has as many files open.
MOST_OPEN = 1 << 16
# Seconds that processes may take to end by themselves once the server is gone.
ENDING = 10.0
# Signals that end the server: it ends its processes itself.
ENDINGS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Child:
    """A process that was forked, as seen by whoever asked for it.

    Parameters
    ----------
    pid
        Its process id.
    status
        Open file from which its exit code can be read once it has ended.
    connection
        To talk to it, where it was started by `Nursery.start_process`.
    """

    def __init__(self, pid: int, status: int, connection: Connection | None = None) -> None:
        self.pid, self.connection = pid, connection
        self._status, self._lock = status, threading.Lock()
        weakref.finalize(self, os.close, status)
        self._code: int | None = None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, the negative number of the signal that ended it, or None."""
        return self.wait(0.0)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.exit_code is None

    def wait(self, within: float) -> int | None:
        """Wait for its end; return its exit code, or None if it has not ended so soon."""
        if self._code is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(within):
                    return None
            with self._lock:
                if self._code is None:
                    self._code = self._told_code()
        return self._code

    def _told_code(self) -> int:
        code = os.read(self._status, HEADER.size)
        if len(code) == HEADER.size:
            return int(HEADER.unpack(code)[0])
        # Nobody knows the code of a process whose nursery was killed; it may still be there, and
        # must not be beside the one that is started in its place.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return -signal.SIGKILL

    def kill(self) -> None:
        """End it at once, if it is there, and wait for that.

        One that waits for a device that does not answer ends only when that does: nobody waits
        for it.
        """
        until = time.monotonic() + ENDING
        while self.is_alive and time.monotonic() < until:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait(1.0)


class _Request(NamedTuple):
    """What a process is to do."""

    target: str
    """Function to call, as "module:name"."""
    job: Any
    """Its first argument; open files that were handed over follow."""


class Nursery:
    """Forks processes on request; see the module.

    It is started with the first request, and again if it was killed.

    Examples
    --------
    >>> with Nursery() as nursery:
    ...     child = nursery.start_process("habitus.cameras.nursery:echo", "hello")
    ...     child.connection.recv(), child.wait(within=10)
    ('hello', 0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    @classmethod
    def inherited(cls) -> Self:
        """Return the nursery that this process was forked from."""
        if _own_socket is None:
            raise HabitusError("this process was not forked from a nursery")
        nursery = cls()
        nursery._socket = _own_socket
        return nursery

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start to load everything, in the background; requests wait for it."""
        with self._lock:
            if self._socket is None:
                self._start()

    def close(self) -> None:
        """End the nursery, and all that was forked from it."""
        with self._lock:
            self._forget()

    @property
    def pid(self) -> int | None:
        """Process id of the nursery, if this process has started it."""
        return self._process.pid if self._process else None

    def start_process(self, target: str, job: Any) -> Child:
        """Fork a process that calls a function with a job and a connection to here.

        The connection is the process's lifeline as well: it ends soon after our end is closed.

        Parameters
        ----------
        target
            Function to call, as "module:name".
        job
            Anything that can be pickled.

        Returns
        -------
        Child
            The process; the other end of the connection is its `connection`.
        """
        ours, theirs = Pipe()
        with theirs:
            child = self.fork("habitus.cameras.nursery:connected", (target, job), [theirs.fileno()])
        child.connection = ours
        return child

    def fork(self, target: str, job: Any, descriptors: Sequence[int] = ()) -> Child:
        """Fork a process that calls a function with a job and with open files of this process.

        Parameters
        ----------
        target, job
            As of `start_process`.
        descriptors
            Open files to hand over; the function gets their numbers in its process.

        Raises
        ------
        HabitusError
            If no process can be started.
        """
        data = pickle.dumps(_Request(target, job))
        with self._lock:
            for attempt in range(2):
                if self._socket is None:
                    self._start()
                try:
                    return self._ask(self._socket, data, descriptors)
                except (OSError, EOFError) as error:
                    if self._process is None or attempt:
                        raise HabitusError(f"cannot start a process: {error}") from error
                    self._forget()
        raise AssertionError

    def _start(self) -> None:
        if not hasattr(os, "fork"):
            raise HabitusError("the console needs Linux or macOS: this system cannot fork")
        ours, theirs = socket.socketpair()
        with theirs:
            path = {"PYTHONPATH": os.pathsep.join(sys.path)}
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-P", "-c", COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **path, **SMALL},
            )
        self._socket = ours

    def _forget(self) -> None:
        """End the nursery; another one is started with the next request."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _ask(self, nursery: socket.socket | None, data: bytes, descriptors: Sequence[int]) -> Child:
        if nursery is None:
            raise EOFError
        status, theirs = os.pipe()
        try:
            socket.send_fds(nursery, [HEADER.pack(len(data))], [theirs, *descriptors])
            nursery.sendall(data)
            (pid,) = HEADER.unpack(_receive(nursery, HEADER.size))
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(theirs)
        if pid < 0:
            os.close(status)
            raise OSError(-pid, os.strerror(-pid))
        return Child(pid, status)


def _receive(connection: socket.socket, size: int) -> bytes:
    """Return exactly so many bytes; EOFError at the end."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


_own_socket: socket.socket | None = None
"""How a process that was forked asks the nursery for another one."""


def main() -> None:
    """Run the nursery: load everything, then fork a process for each request."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    server = socket.socket(fileno=int(sys.argv[1]))
    _name_process("habitus-nursery")
    importlib.import_module(LOADED)
    gc.collect()
    gc.freeze()  # else the first collection of each process would copy all that is shared
    _Forking(server).run()


class _Forking:
    """The nursery's own side."""

    def __init__(self, server: socket.socket) -> None:
        self.server = server
        self.selector = selectors.DefaultSelector()
        self.selector.register(server, selectors.EVENT_READ)
        self.statuses: dict[int, int] = {}
        """Where to tell the exit code of each process that runs."""
        # A signal that is handled wakes the selector.
        self.awake, waker = socket.socketpair()
        for end in (self.awake, waker):
            end.setblocking(False)
        self.selector.register(self.awake, selectors.EVENT_READ)
        self.waker = waker
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        """Serve until the process that started the nursery ends."""
        serving = True
        while serving:
            for key, _ in self.selector.select():
                if key.fileobj is self.awake:
                    self.awake.recv(4096)
                elif isinstance(key.fileobj, socket.socket):
                    serving &= self._serve(key.fileobj)
            self._reap()
        self._end()

    def _serve(self, client: socket.socket) -> bool:
        """Fork a process for a client; return False if that was the last, and is gone."""
        try:
            head, descriptors, _, _ = socket.recv_fds(client, HEADER.size, MOST_DESCRIPTORS)
            if not head:
                raise EOFError
            data = _receive(client, HEADER.unpack(head)[0])
        except (OSError, EOFError):
            self.selector.unregister(client)
            client.close()
            return client is not self.server
        ours, theirs = socket.socketpair()
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            _grow_up(data, theirs, descriptors)
        theirs.close()
        status, *handed = descriptors
        for descriptor in handed:
            os.close(descriptor)
        if pid > 0:
            self.statuses[pid] = status
            self.selector.register(ours, selectors.EVENT_READ)
        else:
            os.close(status)
            ours.close()
        with contextlib.suppress(OSError):
            client.sendall(HEADER.pack(pid))
        return True

    def _reap(self) -> None:
        """Tell the exit codes of processes that have ended."""
        while self.statuses:
            pid, code = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            status = self.statuses.pop(pid)
            with contextlib.suppress(OSError):
                os.write(status, HEADER.pack(os.waitstatus_to_exitcode(code)))
            os.close(status)

    def _end(self) -> None:
        """Give processes time to end by themselves, then end them."""
        until = time.monotonic() + ENDING
        while self.statuses and time.monotonic() < until:
            self._reap()
            time.sleep(0.02)
        for pid in self.statuses:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def _grow_up(data: bytes, nursery: socket.socket, descriptors: Sequence[int]) -> None:
    """Be a process of its own: call what was asked for, then end."""
    global _own_socket
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, *handed = descriptors
        _close_all_but([*handed, nursery.fileno()])
        _own_socket = nursery
        request: _Request = pickle.loads(data)  # noqa: S301 - from our own process
        _call(request.target, request.job, *handed)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _call(target: str, *arguments: Any) -> None:
    """Call a function that is given as "module:name", in a process that is named for it."""
    module, _, name = target.partition(":")
    _name_process(f"habitus-{module.rpartition('.')[2]}")
    getattr(importlib.import_module(module), name)(*arguments)


def _close_all_but(wanted: Sequence[int]) -> None:
    """Close the files of all others, whose ends would otherwise never be noticed."""
    last = 2
    for descriptor in sorted(wanted):
        os.closerange(last + 1, descriptor)
        last = descriptor
    os.closerange(last + 1, MOST_OPEN)


def connected(what: tuple[str, Any], descriptor: int) -> None:
    """Call a function with a job and a connection, and end soon after its other end is closed."""
    target, job = what
    connection = Connection(descriptor)
    threading.Thread(target=_end_with, args=(descriptor,), daemon=True).start()
    _call(target, job, connection)


def _end_with(descriptor: int) -> None:
    """End this process when nobody is at the other end, with time to end by itself."""
    wait_for_hang_up(descriptor)
    time.sleep(ENDING / 2)
    os._exit(1)


def wait_for_hang_up(descriptor: int) -> None:
    """Return when nobody is at the other end of a pipe or socket any more."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)  # that it broke is always told
    poll.poll()


def _name_process(name: str) -> None:
    """Have this process listed by a name of its own, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name[:15])


def echo(job: Any, connection: Connection) -> None:
    """Send the job back."""
    connection.send(job)
