"""One way to compile a kernel."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

_COMPILING = RLock()


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
    with _COMPILING:
        before = config.SLP_VECTORIZE
        config.SLP_VECTORIZE = 1
        try:
            yield
        finally:
            config.SLP_VECTORIZE = before
