"""Compilation of numerical kernels with Numba: one set of options for all of them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba

try:
    from numba.core import compiler_lock

    global_compiler_lock: Any = compiler_lock.global_compiler_lock
except (ImportError, AttributeError):  # an internal name, which a later Numba may move
    global_compiler_lock = None

F = TypeVar("F", bound=Callable[..., Any])

PLAIN_KERNELS = os.environ.get("HABITUS_PLAIN_KERNELS", "") not in ("", "0")
"""Whether kernels use documented Numba only: no vector types of LLVM, no extra compiler passes.

Set by the environment variable HABITUS_PLAIN_KERNELS=1 before habitus is imported. Results are the
same to the bit. Such kernels are compiled anew by every process, because Numba's cache does not
distinguish them from the usual ones.
"""

OPTIONS: dict[str, Any] = {
    "cache": not PLAIN_KERNELS,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
}


def compiled(kernel: F) -> F:
    """Compile a kernel on its first call, cache it on disk and run it without the GIL.

    Division follows IEEE 754 (no exception). Floating-point sums keep their written order, so that
    a result does not depend on the load or the number of cores; only a product and the sum it is
    added to may be fused (rounded once).

    Parameters
    ----------
    kernel
        Function of arrays and numbers in the subset of Python that Numba compiles.

    Returns
    -------
    callable
        The compiled kernel; `py_func` is the function itself.
    """
    return cast(F, numba.njit(**OPTIONS)(kernel))


def compiled_inline(kernel: F) -> F:
    """Compile a kernel as `compiled` does, and always inline it into the kernel that calls it.

    For kernels with many arguments that are called hundreds of times per frame.
    """
    return cast(F, numba.njit(**OPTIONS, forceinline=True)(kernel))


def compiled_lanes(kernel: F) -> F:
    """Compile a kernel that writes out several neighbouring lanes, as vector operations.

    Numba does not run LLVM's superword-level (SLP) vectoriser, which clang runs by default: it
    turns the statements of neighbouring lanes into one vector operation with the same rounding.
    Where Numba no longer offers it, the kernel is compiled without it: slower, with the same
    result.
    """
    dispatcher: Any = compiled(kernel)
    if PLAIN_KERNELS or global_compiler_lock is None or not hasattr(numba.config, "SLP_VECTORIZE"):
        return cast(F, dispatcher)
    compile_without = dispatcher.compile

    def compile_with_vectors(signature: Any) -> Any:
        with _superword_vectoriser():
            return compile_without(signature)

    try:
        dispatcher.compile = compile_with_vectors
    except AttributeError:  # a dispatcher that cannot be changed
        return compiled(kernel)
    return cast(F, dispatcher)


@contextmanager
def _superword_vectoriser() -> Iterator[None]:
    """Turn on the SLP vectoriser for what is compiled inside the block."""
    config: Any = numba.config
    # Numba's own lock: with a second one, two threads that compile could wait for each other.
    with global_compiler_lock:
        before = config.SLP_VECTORIZE
        config.SLP_VECTORIZE = 1
        try:
            yield
        finally:
            config.SLP_VECTORIZE = before
