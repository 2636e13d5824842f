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
        self._known: dict[int, _Packed | _Spilled] = {}
        self._lock = Lock()

    def __call__(self, number: int) -> T:
        """Return what is made of a shard."""
        stored = self._known.get(number)
        if stored is not None:
            return cast(T, stored.unpacked())
        made = self._make(number)
        if self._left > 0 or self._scratch.left > 0:
            packed = _Packed.of(made)
            with self._lock:
                if number not in self._known:
                    self._keep(number, packed)
        return made

    def _keep(self, number: int, packed: "_Packed") -> None:
        """Keep one more in memory, or in the file, if there is room for it."""
        if packed.n_bytes <= self._left:
            self._known[number] = packed
            self._left -= packed.n_bytes
        elif (spilled := self._scratch.write(packed)) is not None:
            self._known[number] = spilled


class _Field(NamedTuple):
    """One field of a named tuple: an array in a small type, or any other value."""

    value: Any
    dtype: "np.dtype[Any] | None"
    """Type that the array had; None for other values."""


class _Packed(NamedTuple):
    """A named tuple whose arrays are in small types."""

    kind: Any
    fields: tuple[_Field, ...]

    @classmethod
    def of(cls, value: tuple[Any, ...]) -> "_Packed":
        return cls(type(value), tuple(map(cls._field, value)))

    @staticmethod
    def _field(value: Any) -> _Field:
        if isinstance(value, np.ndarray):
            return _Field(smallest(value), value.dtype)
        return _Field(value, None)

    @property
    def n_bytes(self) -> int:
        return sum(field.value.nbytes for field in self.fields if field.dtype is not None)

    def unpacked(self) -> Any:
        return self.kind(
            *(
                value if dtype is None else value.astype(dtype, copy=False)
                for value, dtype in self.fields
            )
        )


class _Spilled(NamedTuple):
    """A named tuple whose arrays are in a temporary file."""

    packed: _Packed
    """In place of each array, its type, shape and position."""
    scratch: "_Scratch"

    def unpacked(self) -> Any:
        # A copy even of the same type: what is read cannot be written to, and kernels differ.
        return self.packed.kind(
            *(
                value if dtype is None else self.scratch.read(*value).astype(dtype)
                for value, dtype in self.packed.fields
            )
        )


class _Scratch:
    """A temporary file without a name: it goes with the process, however that ends."""

    def __init__(self, spill_bytes: int) -> None:
        self.left = spill_bytes
        self._file: Any = None
        self._end, self._lock = 0, Lock()

    def write(self, packed: _Packed) -> _Spilled | None:
        """Write arrays at the end; None where there is no room for them."""
        try:
            if self._file is None and self.left > 0:
                self.left = min(self.left, shutil.disk_usage(tempfile.gettempdir()).free // 2)
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            if packed.n_bytes > self.left:
                return None
            with self._lock:
                fields = tuple(self._written(field) for field in packed.fields)
        except OSError:  # no such folder, or the disk is full
            self.left = 0
            return None
        self.left -= packed.n_bytes
        return _Spilled(packed._replace(fields=fields), self)

    def _written(self, field: _Field) -> _Field:
        if field.dtype is None:
            return field
        array, start = np.ascontiguousarray(field.value), self._end
        self._file.seek(start)
        self._file.write(array.data)
        self._file.flush()
        self._end += array.nbytes
        return _Field((array.dtype, array.shape, start), field.dtype)

    def read(self, dtype: "np.dtype[Any]", shape: tuple[int, ...], start: int) -> NDArray[Any]:
        """Return an array that was written."""
        n_bytes = dtype.itemsize * int(np.prod(shape))
        with self._lock:
            self._file.seek(start)
            contents = self._file.read(n_bytes)
        return np.frombuffer(contents, dtype).reshape(shape)
