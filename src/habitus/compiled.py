"""Compilation of numerical kernels with Numba: one set of options and one cache for all of them."""

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

from habitus.progress import tell_compiling

try:
    from numba.core import compiler_lock

    global_compiler_lock: Any = compiler_lock.global_compiler_lock
except (ImportError, AttributeError):  # an internal name, which a later Numba may move
    global_compiler_lock = None

try:
    fcntl: Any = import_module("fcntl")
except ImportError:  # on Windows
    fcntl = None

COMPILED_WITHIN = 120.0
"""Seconds that another process may take to compile a kernel before it is no longer waited for."""
FunctionCache: Any = caching.FunctionCache
NullCache: Any = caching.NullCache

F = TypeVar("F", bound=Callable[..., Any])

PLAIN_KERNELS = os.environ.get("HABITUS_PLAIN_KERNELS", "") not in ("", "0")
"""Whether kernels use documented Numba only: no vector types of LLVM, no extra compiler passes.

Set by the environment variable HABITUS_PLAIN_KERNELS=1 before habitus is imported. Results are the
same to the bit. Such kernels are compiled anew by every process, because Numba's cache does not
distinguish them from the usual ones.
"""

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Cache of one kernel on disk that never fails.

    A file that cannot be read is compiled anew and replaced; what cannot be written is not kept.
    Of several processes that need a kernel which is not there yet, one compiles it, and the others
    wait for that: workers that start together do not compile everything many times.
    """

    _held: Any = None
    """Lock of the kernel while this process compiles it: an open file."""

    @classmethod
    def of(cls, kernel: Callable[..., Any]) -> "KernelCache | None":
        """Return the cache of a kernel, or None where none can be written.

        Numba looks for a place in NUMBA_CACHE_DIR, beside the source and in the user's cache; the
        last resort is a private folder among temporary files.
        """
        with suppress(RuntimeError):
            return cls(kernel)
        config: Any = numba.config
        given = config.CACHE_DIR
        try:
            config.CACHE_DIR = str(_private_folder())
            return cls(kernel)
        except (RuntimeError, OSError):
            return None
        finally:
            config.CACHE_DIR = given

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, or None."""
        found = self._loaded(sig, target_context)
        if found is None:
            tell_compiling()
            self._lock()
            found = self._loaded(sig, target_context)  # another process may have been quicker
            if found is not None:
                self._unlock()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature, if there is room for it."""
        with suppress(Exception):  # the disk is full, or the index cannot be read
            super().save_overload(sig, data)
        self._unlock()

    def _loaded(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # of any kind: the file was cut short
            with suppress(OSError):
                self.flush()
            return None

    def _lock(self) -> None:
        """Wait until no other process compiles this kernel, as long as that is to be expected."""
        if fcntl is None:
            return
        end = time.monotonic() + COMPILED_WITHIN
        with suppress(OSError, AttributeError):  # no such folder, a full disk, another Numba
            path = Path(self._cache_path, f"{self._impl.filename_base}.lock")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._held = path.open("w")
            while time.monotonic() < end:
                with suppress(BlockingIOError):
                    fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                time.sleep(0.05)

    def _unlock(self) -> None:
        if self._held is not None:
            with suppress(OSError):
                Path(self._held.name).unlink(missing_ok=True)
            self._held.close()
            self._held = None


class NoCache(NullCache):  # type: ignore[misc]
    """Cache of a kernel that every process compiles for itself."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Return nothing."""
        tell_compiling()


def _private_folder() -> Path:
    """Return a folder among temporary files that nobody else can write to: code is run from it."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"habitus-kernels-{owner}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is not private")
    return folder


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
    return cast(F, _cached(numba.njit(**OPTIONS)(kernel)))


def compiled_inline(kernel: F) -> F:
    """Compile a kernel as `compiled` does, and always inline it into the kernel that calls it.

    For kernels with many arguments that are called hundreds of times per frame.
    """
    return cast(F, _cached(numba.njit(**OPTIONS, forceinline=True)(kernel)))


def _cached(dispatcher: Any) -> Any:
    """Give a kernel its cache on disk, where there can be one."""
    cache = None if PLAIN_KERNELS else KernelCache.of(dispatcher.py_func)
    dispatcher._cache = cache or NoCache()
    return dispatcher


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
