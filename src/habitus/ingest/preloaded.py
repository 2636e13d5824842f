"""What processes that decode files have loaded before they are forked; importing it does that.

Kernels that must be compiled are left to each process, which says so.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import numpy

import habitus.ingest.segments  # noqa: F401 - the task itself
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import warm_up
from habitus.progress import when_compiling

# Numba imports them for products of matrices, calls of C and a file of settings, where they are
# installed. No kernel of decoding needs them, and they are a third of the start.
UNUSED = ("scipy", "scipy.linalg", "cffi", "yaml")


class _NotCompiled(Exception):  # noqa: N818 - no error
    """A kernel is not in the cache."""


def _leave() -> None:
    raise _NotCompiled


def load_kernels() -> None:
    """Load the kernels if they are compiled, and of Numba what is needed."""
    when_compiling(_leave)
    with _without_unused():
        try:
            warm_up(DocumentSettings())
        except _NotCompiled:
            _load_compiler()


@contextmanager
def _without_unused() -> Iterator[None]:
    """Have Numba load nothing that kernels of decoding do not need, while the block runs."""
    hidden: Any = dict.fromkeys(name for name in UNUSED if name not in sys.modules)
    sys.modules.update(hidden)
    with suppress(ImportError, AttributeError):  # an internal name, which a later Numba may move
        from numba.core import entrypoints

        entrypoints._already_initialized = True  # else what each package declares is read
    masked = "ma" not in vars(numpy)
    if masked:  # Numba asks of each array whether it is masked
        numpy.ma = SimpleNamespace(MaskedArray=())  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        if masked:
            del numpy.ma


def _load_compiler() -> None:
    """Load what Numba would before it compiles, once for all processes."""
    with suppress(ImportError, AttributeError):  # internal names, which a later Numba may move
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()


load_kernels()
