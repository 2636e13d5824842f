"""A process that has code loaded, from which others are forked: workers, cameras, decoders.

A process that is forked shares the libraries and compiled kernels of the fork server, and has
little memory of its own. `multiprocessing` has such a server too, but one whose children cannot ask
it for further processes, and which runs the script that started it in each of them.

The fork server ends with the process that started it: nobody else holds the other end of its
socket. Whatever it forked is killed by its process id: no tool of the system is needed.
"""

import contextlib
import errno
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
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NoReturn, Self

from habitus.errors import HabitusError, WorkerError

# What the process runs.
COMMAND = "from habitus.jobs.fork_server import main; main()"
# Variables of libraries that would otherwise use every core in each process; one thread each also
# makes results independent of the number of processes.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)
# Of processes that are forked, besides: heaps of the C library for threads cost memory, and so does
# what large arrays leave in a heap. Their limits in bytes keep it from raising them by itself.
SMALL = {
    **ONE_THREAD,
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 18),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 20),
}
# Precedes a request and its answer: length in bytes, or a process id.
HEADER = struct.Struct("<q")
# Most open files that are handed to a process.
MOST_DESCRIPTORS = 8
# The fork server never has as many files open.
MOST_OPEN = 1 << 16
# Seconds that processes may take to end by themselves once the server is gone.
ENDING = 10.0
# Signals that end a command: by the terminal, by whoever started it, or with the session. The
# command handles them, and ends its processes itself.
ENDINGS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Child:
    """A process that was forked, as seen by whoever asked for it.

    From the open file `status` its exit code can be read once it has ended.
    """

    connection: Connection
    """To talk to it, where it was started by `ForkServer.start_process`."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid, self._status, self._lock = pid, status, threading.Lock()
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
                    self._code = self._read_code()
        return self._code

    def _read_code(self) -> int:
        code = os.read(self._status, HEADER.size)
        if len(code) == HEADER.size:
            return int(HEADER.unpack(code)[0])
        # Nobody knows the code of a process whose fork server was killed; it may still be there,
        # and must not be beside the one that is started in its place.
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

    def end(self) -> None:
        """End it at once, and close the connection to it."""
        self.kill()
        self.connection.close()


class ForkServer:
    """Forks processes on request, with modules loaded that are named with commas; see the module.

    It is started with the first request, and again if it was killed.

    Examples
    --------
    >>> with ForkServer() as fork_server:
    ...     fork_server.ask("builtins:len", "hello", within=10)
    5
    """

    def __init__(self, preload: str = "habitus.errors") -> None:
        self.preload = preload
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | _Twin | None = None
        self._socket: socket.socket | None = None

    @classmethod
    def inherited(cls) -> Self:
        """Return the fork server that this process was forked from."""
        if _own_socket is None:
            raise HabitusError("this process was not forked from a fork server")
        fork_server = cls()
        fork_server._socket = _own_socket
        return fork_server

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self, *, forked: bool = False) -> None:
        """Start to load everything, in the background; requests wait for it.

        `forked` from this process, the fork server has at once what is loaded here: for a process
        that has a single thread, and nothing open.
        """
        with self._lock:
            if self._socket is None:
                self._start(forked=forked)

    def close(self) -> None:
        """End the fork server, and all that was forked from it."""
        with self._lock:
            self._forget()

    def kill(self) -> None:
        """End the fork server at once, whatever it is loading, and forget what it has forked."""
        if self._process is not None:
            self._process.kill()
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id of the fork server, if this process has started it."""
        return self._process.pid if self._process else None

    def start_process(
        self, target: str, job: Any, descriptors: Sequence[int] = (), *, grace: float = ENDING / 2
    ) -> Child:
        """Fork a process that calls a function, "module:name", with a job and a connection to here.

        Open files are handed over: their numbers there are further arguments. The connection, our
        end of which the child has, is the process's lifeline as well: it ends at the latest `grace`
        seconds after our end is closed.
        """
        ours, theirs = Pipe()
        try:
            with theirs:
                what = target, job, grace
                files = [theirs.fileno(), *descriptors]
                child = self.fork("habitus.jobs.fork_server:connected", what, files)
        except BaseException:  # interrupted, it may have been forked all the same
            ours.close()
            raise
        child.connection = ours
        return child

    def ask(self, target: str, *arguments: Any, within: float) -> Any:
        """Return what a function returns in a process of its own; errors are raised.

        One of them is that nothing comes within so many seconds, as where the process dies.
        """
        child = self.start_process("habitus.jobs.fork_server:answer", (target, *arguments))
        try:
            if not child.connection.poll(within):
                raise HabitusError(f"no answer within {within:g} s")
            answer = child.connection.recv()
        except (EOFError, OSError):
            raise WorkerError("the process that should answer has ended") from None
        finally:
            child.end()
        if isinstance(answer, HabitusError):
            raise answer
        return answer

    def fork(self, target: str, job: Any, descriptors: Sequence[int] = ()) -> Child:
        """Fork a process that calls a function with a job and the numbers of open files.

        HabitusError if no process can be started.
        """
        data = pickle.dumps((target, job))
        with self._lock:
            for attempt in range(2):
                if self._socket is None:
                    self._start()
                try:
                    return self._ask(self._socket, data, descriptors)
                except (OSError, EOFError) as error:
                    if self._process is None or attempt:
                        reason = getattr(error, "strerror", None) or "it ended at once"
                        raise HabitusError(f"cannot start a process: {reason}") from error
                    self._forget()
        raise AssertionError

    def _start(self, *, forked: bool = False) -> None:
        if not hasattr(os, "fork"):
            raise HabitusError("habitus needs Linux or macOS: this system cannot fork")
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as failed, interrupts_blocked():
            failed.callback(ours.close)
            start = _Twin if forked else _started
            self._process = start(theirs, self.preload)
            self._socket = ours
            failed.pop_all()

    def _forget(self) -> None:
        """End the fork server; another one is started with the next request."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _ask(
        self, fork_server: socket.socket | None, data: bytes, descriptors: Sequence[int]
    ) -> Child:
        if fork_server is None:
            raise EOFError
        status, theirs = os.pipe()
        try:
            socket.send_fds(fork_server, [HEADER.pack(len(data))], [theirs, *descriptors])
            fork_server.sendall(data)
            (pid,) = HEADER.unpack(_receive(fork_server, HEADER.size))
            if pid == 0:
                (size,) = HEADER.unpack(_receive(fork_server, HEADER.size))
                raise HabitusError(f"cannot load code: {_receive(fork_server, size).decode()}")
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(theirs)
        if pid < 0:
            os.close(status)
            raise OSError(-pid, os.strerror(-pid))
        return Child(pid, status)


def _started(server: socket.socket, preload: str) -> subprocess.Popen[bytes]:
    """Start a fork server as a command, with its end of the connection."""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-c", COMMAND, str(server.fileno()), preload],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[server.fileno()],
        env={**os.environ, **path, **SMALL},
    )


class _Twin:
    """A fork server that is forked from this process; used as a `subprocess.Popen` is."""

    def __init__(self, server: socket.socket, preload: str) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            try:
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 0)
                os.dup2(null, 1)
                _close_all_but([server.fileno()])
                serve(server, preload)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for its end."""
        with contextlib.suppress(ChildProcessError):  # where the system forgets who has ended
            os.waitpid(self.pid, 0)


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Start processes that never see what ends the parent, where signals can be blocked.

    The parent handles them, and ends its processes. A process inherits the signal mask of the
    thread that starts it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
"""How a process that was forked asks the fork server for another one."""


def main() -> None:
    """Run the fork server as a command."""
    descriptor, preload = sys.argv[1:]
    serve(socket.socket(fileno=int(descriptor)), preload)


def serve(server: socket.socket, preload: str) -> None:
    """Be the fork server: load everything, then fork a process for each request."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    _name_process("habitus-forks")
    gc.disable()  # nearly all that is loaded stays: looking for the rest is a sixth of the time
    try:
        for name in preload.split(","):
            importlib.import_module(name)
    except Exception as error:  # for want of memory, for instance
        _refuse(server, f"{type(error).__name__}: {error}")
    gc.freeze()  # else the first collection of each process would copy all that is shared
    gc.enable()
    try:
        forking = _Forking(server)
    except OSError as error:
        _refuse(server, f"{error.strerror}")
    forking.run()


def _refuse(server: socket.socket, reason: str) -> NoReturn:
    """Answer the first request with the reason for which no process can be forked, and end."""
    said = reason.encode()
    with contextlib.suppress(OSError):
        server.recv(1)
        server.sendall(HEADER.pack(0) + HEADER.pack(len(said)) + said)
    os._exit(1)


class _Forking:
    """The fork server's own side."""

    def __init__(self, server: socket.socket) -> None:
        self.server = server
        self.selector = selectors.DefaultSelector()
        self.selector.register(server, selectors.EVENT_READ)
        self.statuses: dict[int, int] = {}
        """Where to write the exit code of each process that runs."""
        # A signal that is handled wakes the selector.
        self.awake, waker = socket.socketpair()
        for end in (self.awake, waker):
            end.setblocking(False)
        self.selector.register(self.awake, selectors.EVENT_READ)
        self.waker = waker
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        """Serve until the process that started the fork server ends."""
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
        remaining = list(descriptors)
        try:
            if not descriptors:  # there was no room for what was handed over
                raise OSError(errno.EMFILE, "")
            ours, theirs = socket.socketpair()
            with theirs:
                pid = os.fork()
                if pid == 0:
                    _grow_up(data, theirs, descriptors)
            self.statuses[pid] = remaining.pop(0)
            self.selector.register(ours, selectors.EVENT_READ)
        except OSError as error:
            pid = -(error.errno or 1)
        for descriptor in remaining:
            os.close(descriptor)
        with contextlib.suppress(OSError):
            client.sendall(HEADER.pack(pid))
        return True

    def _reap(self) -> None:
        """Write the exit codes of processes that have ended."""
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


def _grow_up(data: bytes, fork_server: socket.socket, descriptors: Sequence[int]) -> None:
    """Be a process of its own: call what was asked for, then end."""
    global _own_socket
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, *handed = descriptors
        _close_all_but([*handed, fork_server.fileno()])
        _own_socket = fork_server
        _call(*pickle.loads(data), *handed)  # noqa: S301 - from our own process
        code = 0
    except MemoryError:
        pass  # whoever waits for it notices that it died
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _call(target: str, *arguments: Any) -> Any:
    """Call a function that is given as "module:name", in a process that is named for it."""
    module, _, name = target.partition(":")
    _name_process(f"habitus-{module.rpartition('.')[2]}")
    return getattr(importlib.import_module(module), name)(*arguments)


def _close_all_but(wanted: Sequence[int]) -> None:
    """Close the files of all others, whose ends would otherwise never be noticed."""
    last = 2
    for descriptor in sorted(wanted):
        os.closerange(last + 1, descriptor)
        last = descriptor
    os.closerange(last + 1, MOST_OPEN)


def connected(what: tuple[str, Any, float], descriptor: int, *opened: int) -> None:
    """Call a function with a job and a connection, and end soon after its other end is closed."""
    target, job, grace = what
    connection = Connection(descriptor)
    threading.Thread(target=_end_with, args=(descriptor, grace), daemon=True).start()
    _call(target, job, connection, *opened)


def _end_with(descriptor: int, grace: float) -> None:
    """End this process when nobody is at the other end, with time to end by itself."""
    import select

    poll = select.poll()
    poll.register(descriptor, 0)  # that it broke is always reported
    poll.poll()
    time.sleep(grace)
    os._exit(1)


def _name_process(name: str) -> None:
    """Have this process listed by a name of its own, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name[:15])


def answer(question: tuple[Any, ...], connection: Connection) -> None:
    """Send what a function returns, or the error that it raises; see `ForkServer.ask`."""
    result: Any
    try:
        result = _call(*question)
    except HabitusError as error:
        result = error
    except OSError as error:
        result = HabitusError(str(error))
    connection.send(result)
