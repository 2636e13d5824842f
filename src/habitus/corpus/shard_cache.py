"""What is made of each shard of a corpus, kept in memory and in a temporary file."""

import shutil
import tempfile
import weakref
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from habitus.corpus.documents import smallest

T = TypeVar("T", bound=tuple[Any, ...])


class ShardCache(Generic[T]):
    """What is made of each shard: named tuples of arrays, made once and then kept.

    The first that fit into `keep_bytes` are kept in memory, others in a temporary file, as long as
    that takes less than `spill_bytes` and less than half of the free disk; the rest are made anew.
    Arrays are kept in the smallest types of whole numbers that hold them, and are given back as
    they were made.
    """

    def __init__(self, make: Callable[[int], T], *, keep_bytes: int, spill_bytes: int) -> None:
        self._make, self._left = make, keep_bytes
        self._scratch = _Scratch(spill_bytes)
        self._known: dict[int, _PackedTuple] = {}
        self._lock = Lock()

    def __call__(self, number: int) -> T:
        """Return what is made of a shard."""
        stored = self._known.get(number)
        if stored is not None:
            return cast(T, stored.unpacked())
        made = self._make(number)
        if self._left > 0 or self._scratch.left > 0:
            packed = _PackedTuple.of(made)
            with self._lock:
                if number not in self._known:
                    self._keep(number, packed)
        return made

    def _keep(self, number: int, packed: "_PackedTuple") -> None:
        """Keep one more in memory, or in the file, if there is room for it."""
        if packed.n_bytes <= self._left:
            self._known[number] = packed
            self._left -= packed.n_bytes
        elif (spilled := self._scratch.write(packed)) is not None:
            self._known[number] = spilled


_Field = tuple[Any, "np.dtype[Any] | None"]
"""One field of a named tuple: an array and the type that it had, or any other value and None."""


class _PackedTuple(NamedTuple):
    """A named tuple whose arrays are in small types, here or in a temporary file."""

    kind: Any
    fields: tuple[_Field, ...]
    scratch: "_Scratch | None" = None
    """Where arrays are in a file: in place of each stand its type, shape and position."""

    @classmethod
    def of(cls, value: tuple[Any, ...]) -> "_PackedTuple":
        fields = (
            (smallest(part), part.dtype) if isinstance(part, np.ndarray) else (part, None)
            for part in value
        )
        return cls(type(value), tuple(fields))

    @property
    def n_bytes(self) -> int:
        return sum(value.nbytes for value, dtype in self.fields if dtype is not None)

    def unpacked(self) -> Any:
        return self.kind(*(self._unpacked(*field) for field in self.fields))

    def _unpacked(self, value: Any, dtype: "np.dtype[Any] | None") -> Any:
        if dtype is None or self.scratch is None:
            return value if dtype is None else value.astype(dtype, copy=False)
        # A copy even of the same type: what is read cannot be written to, and kernels differ.
        return self.scratch.read(*value).astype(dtype)


class _Scratch:
    """A temporary file without a name: it goes with the process, however that ends."""

    def __init__(self, spill_bytes: int) -> None:
        self.left = spill_bytes
        self._file: Any = None
        self._end, self._lock = 0, Lock()

    def write(self, packed: _PackedTuple) -> _PackedTuple | None:
        """Write arrays at the end; None where there is no room for them."""
        try:
            if self._file is None and self.left > 0:
                self.left = min(self.left, shutil.disk_usage(tempfile.gettempdir()).free // 2)
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            if packed.n_bytes > self.left:
                return None
            with self._lock:
                fields = tuple(self._written(*field) for field in packed.fields)
        except OSError:  # no such folder, or the disk is full
            self.left = 0
            return None
        self.left -= packed.n_bytes
        return packed._replace(fields=fields, scratch=self)

    def _written(self, value: Any, dtype: "np.dtype[Any] | None") -> _Field:
        if dtype is None:
            return value, None
        array, start = np.ascontiguousarray(value), self._end
        self._file.seek(start)
        self._file.write(array.data)
        self._file.flush()
        self._end += array.nbytes
        return (array.dtype, array.shape, start), dtype

    def read(self, dtype: "np.dtype[Any]", shape: tuple[int, ...], start: int) -> NDArray[Any]:
        """Return an array that was written."""
        n_bytes = dtype.itemsize * int(np.prod(shape))
        with self._lock:
            self._file.seek(start)
            contents = self._file.read(n_bytes)
        return np.frombuffer(contents, dtype).reshape(shape)
