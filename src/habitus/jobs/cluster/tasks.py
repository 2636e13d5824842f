"""What tasks of a cluster need beside their items, and what workers do with them.

It is sent once: as a task of its own, whose result the workers give each other, and which Dask
makes again where the workers that had it are gone.
"""

import pickle
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from habitus.errors import FileError, VideoError, WorkerError
from habitus.jobs.cluster.connection import Connection, check_own_version, worker_name


class SharedValue:
    """Something that is sent to workers once, and again where it was lost."""

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


def carry_out(wanted: str, function: Callable[[Any], Any], item: bytes) -> Any:
    """Call a function with an item; run by a worker."""
    check_own_version(wanted)
    with naming_worker():
        return function(pickle.loads(item))  # noqa: S301 - from the client that sent the function


@contextmanager
def naming_worker() -> Iterator[None]:
    """Say in errors about files, and in those of the machine, on which worker they came up."""
    try:
        yield
    except (FileError, VideoError) as error:
        named = type(error)(f"{error} (on worker {worker_name()})", parameter=error.parameter)
        raise named from None
    except (OSError, MemoryError) as error:
        raise WorkerError(f"worker {worker_name()}: {str(error) or 'out of memory'}") from error
