"""Numerical kernels: Python functions that Numba compiles when they are first used.

Numba is imported then, and not before: a command that uses no kernel itself starts without it.
"""

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P", bound=Callable[[], None])

PLAIN_KERNELS = os.environ.get("HABITUS_PLAIN_KERNELS", "") not in ("", "0")
"""Whether kernels use documented Numba only: no vector types of LLVM, no extra compiler passes.

Set by the environment variable HABITUS_PLAIN_KERNELS=1 before habitus is imported. Results are the
same to the bit. Such kernels are compiled anew by every process, because Numba's cache does not
distinguish them from the usual ones.
"""

_preparations: list[Callable[[], None]] = []
_lock = threading.RLock()


class Kernel:
    """A function that is compiled on its first call, and kept as `py_func`; see `compiled`."""

    def __init__(self, function: Callable[..., Any], *, lanes: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._lanes = function, lanes
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """What Numba makes of it."""
        if self._dispatcher is None:
            from habitus.kernel_cache import dispatcher_of

            prepare()
            with _lock:
                self._dispatcher = self._dispatcher or dispatcher_of(
                    self.py_func, lanes=self._lanes
                )
        return self._dispatcher

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._dispatcher or self.dispatcher)(*arguments)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # a kernel is sent to other processes by its name


def prepare() -> None:
    """Call what `before_compiling` was given."""
    with _lock:
        while _preparations:
            _preparations.pop()()


def compiled(kernel: F) -> F:
    """Compile a kernel on its first call, cache it on disk and run it without the GIL.

    Division follows IEEE 754 (no exception). Floating-point sums keep their written order, so that
    a result does not depend on the load or the number of cores; only a product and the sum it is
    added to may be fused (rounded once).
    """
    return cast(F, Kernel(kernel))


def compiled_lanes(kernel: F) -> F:
    """Compile a kernel that writes out several neighbouring lanes, as vector operations.

    Numba does not run LLVM's superword-level (SLP) vectoriser, which clang runs by default: it
    turns the statements of neighbouring lanes into one vector operation with the same rounding.
    """
    return cast(F, Kernel(kernel, lanes=True))


def before_compiling(preparation: P) -> P:
    """Call a function once, before the next kernel is compiled or loaded: it may import Numba."""
    _preparations.append(preparation)
    return preparation
