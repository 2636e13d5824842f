"""What Numba makes of kernels: one set of options and one cache on disk for all of them.

The only module that imports Numba for it, when the first kernel is used; see `habitus.compiled`.
"""

import ctypes
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, types
from numba.extending import typeof_impl
from numba.np.numpy_support import from_dtype

from habitus.compiled import PLAIN_KERNELS, Kernel
from habitus.progress import report_compiling
from habitus.standalone import (
    DESTRUCTOR,
    ENTRY,
    Argument,
    CodePlace,
    arrays_of,
    is_private,
    joined_code,
    private_folder,
    target_machine,
)

try:
    from numba.core import compiler_lock

    global_compiler_lock: Any = compiler_lock.global_compiler_lock
except (ImportError, AttributeError):  # an internal name, which a later Numba may move
    global_compiler_lock = None

try:
    from numba.core.runtime import nrt

    runtime: Any = nrt.rtsys
except (ImportError, AttributeError):  # another one
    runtime = None

try:
    fcntl: Any = import_module("fcntl")
except ImportError:  # on Windows
    fcntl = None

COMPILED_WITHIN = 120.0
"""Seconds that another process may take to compile a kernel before it is no longer waited for."""
FunctionCache: Any = caching.FunctionCache
NullCache: Any = caching.NullCache

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,  # nobody takes the address of a kernel: less to compile
}


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
        before = config.CACHE_DIR
        try:
            folder = private_folder()
            folder.mkdir(mode=0o700, exist_ok=True)
            if not is_private(folder):  # code is run from it
                return None
            config.CACHE_DIR = str(folder)
            return cls(kernel)
        except (RuntimeError, OSError):
            return None
        finally:
            config.CACHE_DIR = before

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, or None."""
        overload = self._loaded(sig, target_context)
        if overload is None:
            report_compiling()
            self._lock()
            overload = self._loaded(sig, target_context)  # another process may have been quicker
            if overload is not None:
                self._unlock()
        return overload

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature, if there is room for it."""
        with suppress(Exception):  # the disk is full, or the index cannot be read
            super().save_overload(sig, data)
        self._unlock()

    def _loaded(self, sig: Any, target_context: Any) -> Any:
        """Return what is in the cache for a signature, or None.

        Numba would first load all that it can compile, which is half of its start: what is compiled
        needs no more than its memory management.
        """
        try:
            if runtime is None:
                return super().load_overload(sig, target_context)
            runtime.initialize(target_context)
            return self._load_overload(sig, target_context)
        except Exception:  # of any kind: the file was cut short
            with suppress(OSError):
                self.flush()
            return None

    def _lock(self) -> None:
        with suppress(AttributeError):  # another Numba
            self._held = _turn_at(Path(self._cache_path, f"{self._impl.filename_base}.lock"))

    def _unlock(self) -> None:
        _end_turn(self._held)
        self._held = None


def _turn_at(path: Path) -> Any:
    """Wait until no other process compiles a kernel, as long as that is to be expected.

    Returns the lock: an open file, or None where there can be none.
    """
    if fcntl is None:
        return None
    end = time.monotonic() + COMPILED_WITHIN
    with suppress(OSError):  # no such folder, a full disk
        path.parent.mkdir(parents=True, exist_ok=True)
        held = path.open("w")
        while time.monotonic() < end:
            with suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.05)
        return held
    return None


def _end_turn(held: Any) -> None:
    if held is not None:
        with suppress(OSError):
            Path(held.name).unlink(missing_ok=True)
        held.close()


class NoCache(NullCache):  # type: ignore[misc]
    """Cache of a kernel that every process compiles for itself."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Return nothing."""
        report_compiling()


def dispatcher_of(function: Callable[..., Any], *, lanes: bool) -> Any:
    """Return what Numba makes of a function, with a cache on disk where there can be one.

    `lanes` is as of `habitus.compiled.compiled_lanes`. Where Numba no longer offers that, the
    kernel is compiled without: slower, with the same result.
    """
    dispatcher: Any = numba.njit(**OPTIONS)(function)
    dispatcher._cache = (None if PLAIN_KERNELS else KernelCache.of(function)) or NoCache()
    with suppress(AttributeError):  # a dispatcher that cannot be changed
        dispatcher.compile = _for_types(dispatcher.compile)
    can = global_compiler_lock is not None and hasattr(numba.config, "SLP_VECTORIZE")
    if lanes and can and not PLAIN_KERNELS:
        compile_without = dispatcher.compile

        def compile_with_vectors(signature: Any) -> Any:
            with _superword_vectoriser():
                return compile_without(signature)

        with suppress(AttributeError):  # a dispatcher that cannot be changed
            dispatcher.compile = compile_with_vectors
    return dispatcher


def compile_standalone(
    function: Callable[..., Any], arguments: Sequence[Argument], place: CodePlace
) -> bytes | None:
    """Compile a kernel to machine code that needs no Numba, and keep it; None where that fails."""
    report_compiling()
    folder = place.folder()
    turn = None if folder is None else _turn_at(folder / f"{place.name}.lock")
    try:
        code = place.read()  # another process may have been quicker
        if code is None:
            with suppress(AttributeError, ImportError):  # internal names, which may move
                code = _machine_code(function, arguments)
                place.write(code)
        return code
    finally:
        _end_turn(turn)


def _machine_code(function: Callable[..., Any], arguments: Sequence[Argument]) -> bytes:
    """Return a kernel as `habitus.standalone` loads it: its code, and what calls it."""
    from llvmlite import binding, ir

    dispatcher: Any = numba.njit(**{**OPTIONS, "no_cpython_wrapper": True})(function)
    _for_types(dispatcher.compile)(tuple(map(_type_of, arguments)))
    (overload,) = dispatcher.overloads.values()
    if overload.signature.return_type != types.none:
        raise TypeError(f"{function.__name__} must return nothing")
    python: Any = ctypes.pythonapi
    for needed in overload.library._final_module.functions:
        name = needed.name
        if needed.is_declaration and not name.startswith("llvm.") and name != DESTRUCTOR:
            getattr(python, name)  # AttributeError: what calls it cannot be loaded without Numba
    word, status = ir.IntType(64), ir.IntType(32)
    n = 2 + sum(5 + 2 * array.ndim for array in arrays_of(arguments))
    module = ir.Module()
    kernel = ir.Function(
        module, ir.FunctionType(status, [word] * n), overload.fndesc.llvm_func_name
    )
    entry = ir.Function(module, ir.FunctionType(status, [word.as_pointer()]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = [builder.load(builder.gep(entry.args[0], [word(k)])) for k in range(n)]
    builder.ret(builder.call(kernel, words))
    calling = target_machine().emit_object(binding.parse_assembly(str(module)))
    return joined_code(overload.library._compiled_object, calling)


def _type_of(argument: Argument) -> Any:
    """Return Numba's type of a contiguous array, or of a named tuple of them."""
    if isinstance(argument, tuple):
        named: Any = types.NamedTuple
        return named(tuple(map(_type_of, argument)), type(argument))
    array: Any = types.Array
    return array(from_dtype(argument.dtype), argument.ndim, "C")


def _for_types(compile_for: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let a kernel that another calls with the number 4 be the one for any integer.

    Numba would compile it once more for each such number. Python does not look for unused objects
    meanwhile: up to a tenth of the time.
    """
    unliteral: Any = types.unliteral

    def compile_for_types(signature: Any) -> Any:
        is_concrete, collecting = isinstance(signature, tuple), gc.isenabled()
        gc.disable()
        try:
            return compile_for(tuple(map(unliteral, signature)) if is_concrete else signature)
        finally:
            if collecting:
                gc.enable()

    return compile_for_types


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, context: Any) -> Any:
    """Have Numba take a kernel that another one calls for its dispatcher."""
    return types.Dispatcher(kernel.dispatcher)


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
