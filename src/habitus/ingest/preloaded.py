"""What processes that decode files have loaded before they are forked; importing it does that.

Kernels that must be compiled are left to each process, which says so.
"""

from contextlib import suppress

import habitus.ingest.segments  # noqa: F401 - the task itself
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import warm_up
from habitus.progress import no_longer_when_compiling, when_compiling


class _NotCompiled(Exception):  # noqa: N818 - no error
    """A kernel is not in the cache."""


def _leave() -> None:
    raise _NotCompiled


def load_kernels() -> None:
    """Load the kernels if they are compiled, else what compiles them."""
    when_compiling(_leave)
    try:
        warm_up(DocumentSettings())
    except _NotCompiled:
        _load_compiler()
    finally:
        no_longer_when_compiling(_leave)  # other kernels are compiled by who needs them


def _load_compiler() -> None:
    """Load what Numba would before it compiles, once for all processes."""
    with suppress(ImportError, AttributeError):  # internal names, which a later Numba may move
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()


load_kernels()
