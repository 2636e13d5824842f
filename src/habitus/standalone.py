"""Kernels that run without Numba once they are compiled: what decodes video starts at once.

Such a kernel fills arrays, and nothing else: it returns and allocates nothing. Its machine code is
kept in a file that llvmlite loads in milliseconds, and is called with the address of a block of
memory that describes its arrays: once, for arrays that are used over and over.
"""

import ctypes
import hashlib
import math
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.compiled import PLAIN_KERNELS, Kernel, prepare

# What machine code is called by; it calls the kernel with what it finds in the block.
ENTRY = "habitus_entry"
# What Numba's code calls to free an array that it owns: it owns none here.
DESTRUCTOR = "NRT_MemInfo_call_dtor"
# Where Python keeps what it compiles, beside the source.
BESIDE = "__pycache__"
# Bytes before the code in its file.
DIGEST = 32
# Variables of Numba's that do not change what it compiles.
NO_MATTER = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")


Argument = NDArray[Any] | tuple[NDArray[Any], ...]
"""An array, or a named tuple of arrays."""


def arrays_of(arguments: Iterable[Argument]) -> Iterator[NDArray[Any]]:
    """Yield all arrays, one after the other."""
    for argument in arguments:
        yield from argument if isinstance(argument, tuple) else (argument,)


class StandaloneKernel(Kernel):
    """A kernel that needs no Numba once it is compiled; see `standalone`."""

    _entry: Any = None
    """Function of the machine code, None before it is loaded, False where there can be none."""
    _kinds: Any = None

    def __call__(self, *arguments: Argument) -> None:
        """Call the compiled function."""
        self.bound(*arguments)()

    def bound(self, *arguments: Argument) -> "BoundKernel":
        """Return a function that calls the kernel with these arrays: C-contiguous ones.

        A TypeError says that they have other types than those of the first call.
        """
        kinds = [(array.dtype.str, array.ndim) for array in arrays_of(arguments)]
        if self._entry is None:
            self._kinds, self._entry = kinds, self._loaded(arguments) or False
        if kinds != self._kinds:
            raise TypeError(f"expected arrays of {self._kinds}, found {kinds}")
        return BoundKernel(self, arguments, self._entry or None)

    def _loaded(self, arguments: tuple[Argument, ...]) -> Any:
        """Return the function of the machine code, compiled where it must be; None if it cannot."""
        if PLAIN_KERNELS or sys.platform != "linux":
            return None
        place = CodePlace.of(self.py_func, arguments)
        if place is None:
            return None
        code = place.read()
        if code is None:
            from habitus.kernel_cache import compile_standalone

            prepare()
            code = compile_standalone(self.py_func, arguments, place)
        with suppress(OSError, RuntimeError):  # what llvmlite raises where it cannot load it
            return code and _function_of(code)
        return None


def standalone(kernel: Callable[..., None]) -> StandaloneKernel:
    """Compile a kernel on its first call as `compiled` does, to machine code that needs no Numba.

    Parameters
    ----------
    kernel
        Function that fills arrays, C-contiguous ones of a single type each, and returns nothing.
        It takes them alone or as named tuples.

    Returns
    -------
    StandaloneKernel
        The compiled kernel; see `StandaloneKernel.bound`.
    """
    return StandaloneKernel(kernel)


class BoundKernel:
    """A kernel and the arrays that it is called with; see `StandaloneKernel.bound`."""

    def __init__(self, kernel: Kernel, arguments: tuple[Argument, ...], entry: Any) -> None:
        arrays = list(arrays_of(arguments))
        self.kernel, self.arrays, self._entry = kernel, arrays, entry
        self._arguments = arguments
        if not all(array.flags.c_contiguous for array in arrays):
            raise TypeError("a kernel takes contiguous arrays only")
        self._shapes = [array.shape for array in arrays]
        self._starts = list(accumulate((5 + 2 * array.ndim for array in arrays), initial=2))
        n = self._starts[-1]
        # Where the kernel leaves what it returns, and an exception; then its arrays.
        self._block = (ctypes.c_int64 * (n + 2))()
        self._address = ctypes.addressof(self._block)
        self._block[0], self._block[1] = self._address + 8 * n, self._address + 8 * (n + 1)
        for number, array in enumerate(arrays):
            self._describe(number, array.ctypes.data, array.shape)

    def place(self, number: int, address: int, shape: tuple[int, ...]) -> None:
        """Take what is elsewhere in memory for one of the arrays, as long as that is valid."""
        if self._entry is None:
            dtype = self.arrays[number].dtype
            memory: Any = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(
                address
            )
            self.arrays[number] = np.ndarray(shape, dtype, memory)
        elif shape == self._shapes[number]:
            self._block[self._starts[number] + 4] = address
        else:
            self._describe(number, address, shape)

    def _describe(self, number: int, address: int, shape: tuple[int, ...]) -> None:
        """Describe an array as Numba's code takes it: owner, object, sizes, address, strides."""
        size = self.arrays[number].itemsize
        strides = [size * math.prod(shape[axis:]) for axis in range(1, len(shape) + 1)]
        words = 0, 0, math.prod(shape), size, address, *shape, *strides
        self._block[self._starts[number] : self._starts[number + 1]] = list(words)
        self._shapes[number] = shape

    def __call__(self) -> None:
        """Call the kernel."""
        if self._entry is None:
            arrays = iter(self.arrays)
            self.kernel.dispatcher(
                *(
                    type(argument)(*islice(arrays, len(argument)))
                    if isinstance(argument, tuple)
                    else next(arrays)
                    for argument in self._arguments
                )
            )
        elif self._entry(self._address):
            raise RuntimeError(f"the kernel {self.kernel.py_func.__name__} failed")


class CodePlace(NamedTuple):
    """Where the machine code of a kernel is kept, and what it is valid for."""

    name: str
    """Of the file: that of the kernel and of the kind of machine."""
    stamp: bytes
    """Identifies the kernel's source and the types of its arrays."""
    folders: tuple[Path, ...]

    @classmethod
    def of(
        cls, function: Callable[..., Any], arguments: tuple[Argument, ...]
    ) -> "CodePlace | None":
        """Return the place of a kernel; None where the machine cannot be identified."""
        source = Path(function.__code__.co_filename).absolute()
        try:
            machine = _machine()
            # A kernel calls others of its own folder only.
            files = [*source.parent.glob("*.py"), Path(__file__)]
            states = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
        except (ImportError, OSError, RuntimeError):
            return None
        kinds = [(array.dtype.str, array.ndim) for array in arrays_of(arguments)]
        stamp = repr((sorted(states), kinds)).encode()
        name = f"{source.stem}.{function.__qualname__}-{machine}.code"
        return cls(name, stamp, tuple(_folders(source)))

    def read(self) -> bytes | None:
        """Return the code, or None where there is none that is whole and of today's source."""
        for folder in self.folders:
            with suppress(OSError):
                if _is_trusted(folder):
                    contents = (folder / self.name).read_bytes()
                    digest, code = contents[:DIGEST], contents[DIGEST:]
                    if digest == self._digest(code):
                        return code
        return None

    def write(self, code: bytes) -> None:
        """Keep the code, where that is possible."""
        folder = self.folder()
        if folder is None:
            return
        part = folder / f"{self.name}.{os.getpid()}"
        with suppress(OSError):
            try:
                part.write_bytes(self._digest(code) + code)
                part.replace(folder / self.name)
            finally:
                part.unlink(missing_ok=True)

    def folder(self) -> Path | None:
        """Return the first folder that can be written to."""
        for folder in self.folders:
            with suppress(OSError):
                beside = folder.name == BESIDE
                folder.mkdir(mode=0o777 if beside else 0o700, parents=True, exist_ok=True)
                if _is_trusted(folder) and os.access(folder, os.W_OK):
                    return folder
        return None

    def _digest(self, code: bytes) -> bytes:
        return hashlib.sha256(self.stamp + code).digest()


def _folders(source: Path) -> Iterator[Path]:
    """Yield where code may be kept: as Numba does it, then a folder among temporary files."""
    cache_folder = os.environ.get("NUMBA_CACHE_DIR")
    if cache_folder:
        digest = hashlib.sha256(bytes(source.parent)).hexdigest()[:16]
        yield Path(cache_folder, f"{source.parent.name}-{digest}")
        return
    yield source.parent / BESIDE
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "habitus")
    yield private_folder()


def private_folder() -> Path:
    """Return the name of a folder among temporary files."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir(), f"habitus-kernels-{owner}")


def _is_trusted(folder: Path) -> bool:
    """Return whether code may be run from a folder: beside the source, or nobody else's."""
    return folder.name == BESIDE or is_private(folder)


def is_private(folder: Path) -> bool:
    """Return whether nobody else, but for the superuser, can write to a folder."""
    status = folder.lstat()
    owners = (0, os.getuid() if hasattr(os, "getuid") else 0)
    mine = status.st_uid in owners and not status.st_mode & 0o022
    return stat.S_ISDIR(status.st_mode) and mine


@cache
def _machine() -> str:
    """Return what identifies the processor, the compiler and its settings."""
    import llvmlite
    from llvmlite import binding

    numba = Path(str(getattr(find_spec("numba"), "origin", None))).with_name("_version.py").stat()
    settings = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_")}
    facts = (
        binding.get_process_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        llvmlite.__version__,
        (numba.st_mtime_ns, numba.st_size),
        sorted(item for item in settings.items() if item[0] not in NO_MATTER),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _function_of(code: bytes) -> Any:
    """Load machine code, and return its function: of the address of a block, 0 if all went well."""
    from llvmlite import binding

    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    if binding.address_of_symbol(DESTRUCTOR) is None:
        binding.add_symbol(DESTRUCTOR, ctypes.cast(ctypes.pythonapi.abort, ctypes.c_void_p).value)
    size = int.from_bytes(code[:8], "little")
    for part in (code[8 : 8 + size], code[8 + size :]):
        engine.add_object_file(binding.ObjectFileRef.from_data(part))
    engine.finalize_object()
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(
        engine.get_function_address(ENTRY)
    )
    function.engine = engine  # owns the code
    return function


def joined_code(kernel: bytes, entry: bytes) -> bytes:
    """Return the machine code of a kernel, and of what calls it, as it is kept."""
    return len(kernel).to_bytes(8, "little") + kernel + entry


def target_machine() -> Any:
    """Return what llvmlite makes machine code for: the processor of this machine."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        codemodel="jitdefault", jit=True
    )
