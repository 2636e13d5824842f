"""One way to compile a kernel."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

F = TypeVar("F", bound=Callable[..., Any])


def compiled(kernel: F) -> F:
    """Compile a kernel once per machine, free of the interpreter's lock.

    Division follows IEEE (no exception). Floating-point sums keep their written order, so that a
    result does not depend on the machine's load or number of cores; only a product and the sum it
    feeds may be rounded together.
    """
    compiler = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
    return cast(F, compiler(kernel))


def compiled_lanes(kernel: F) -> F:
    """Compile a kernel that spells out neighbouring lanes, and make vectors of them.

    Numba leaves out LLVM's superword vectoriser, which clang runs by default: it turns the four
    statements of four neighbouring lanes into one vector operation, with the same rounding.
    """
    dispatcher: Any = compiled(kernel)
    compile_plainly = dispatcher.compile

    def compile_with_vectors(signature: Any) -> Any:
        with _superword_vectoriser():
            return compile_plainly(signature)

    dispatcher.compile = compile_with_vectors
    return cast(F, dispatcher)


@contextmanager
def _superword_vectoriser() -> Iterator[None]:
    config: Any = numba.config
    # Numba's own lock: with a second one, two threads that compile could wait for each other.
    with global_compiler_lock:
        before = config.SLP_VECTORIZE
        config.SLP_VECTORIZE = 1
        try:
            yield
        finally:
            config.SLP_VECTORIZE = before
