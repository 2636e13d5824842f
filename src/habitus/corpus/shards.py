"""A corpus in shards: documents of one camera in several files, which are never all loaded at once.

Whatever is learnt from them is a sum over shards, or has one row per document. Sums are added as a
binary tree that depends on the number of shards alone, so that a result is the same to the bit
whoever works on which shard, and in whatever order they finish.
"""

import os
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from habitus.corpus.documents import LAYOUTS, VERSION, Corpus, CorpusHeader, smallest
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError, LearningError
from habitus.files import read_header

KEEP_BYTES = 1 << 29
"""Bytes of what is made of shards that are kept in memory: 512 MiB, about 2 * 10^8 tokens."""
SPILL_BYTES = 1 << 36
"""Bytes of it that are kept in a temporary file beyond that: 64 GiB, about 2 * 10^10 tokens."""


class Summable(Protocol):
    """Results that can be added: numbers, arrays, counts; lists are put one after the other."""

    def __add__(self, other: Any) -> Any:
        """Return the sum."""
        ...


R = TypeVar("R")
S = TypeVar("S", bound=Summable)
T = TypeVar("T", bound=tuple[Any, ...])
Made = TypeVar("Made", bound=tuple[Any, ...], covariant=True)


@dataclass(frozen=True)
class Sums(Generic[S]):
    """Several sums that are made in one pass.

    Examples
    --------
    >>> Sums((1, 2.5)) + Sums((10, 0.5))
    Sums(parts=(11, 3.0))
    """

    parts: tuple[S, ...]

    def __add__(self, other: "Sums[S]") -> "Sums[S]":
        """Return the sum of each."""
        return Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


class TreeSum(Generic[S]):
    """A sum of parts that come one after the other, added as a fixed binary tree.

    Of n parts the largest power of two that is less than n goes to the left, likewise down to
    single parts. At most one partial sum of each power of two is held. So the sum of an aligned
    block (`aligned_blocks`) is a subtree: it can be made elsewhere, and added as one.

    Examples
    --------
    >>> tree = TreeSum()
    >>> for part in "abcdefg":
    ...     tree.add(f"({part})")
    >>> tree.total()
    '(a)(b)(c)(d)(e)(f)(g)'
    """

    def __init__(self) -> None:
        self._sums: list[tuple[int, S]] = []

    def add(self, part: S, size: int = 1) -> None:
        """Add the next part, or the sum of the next `size` parts: an aligned block of them."""
        while self._sums and self._sums[-1][0] == size:
            part = self._sums.pop()[1] + part
            size *= 2
        self._sums.append((size, part))

    def total(self) -> S:
        """Return the sum of all parts, at least one."""
        (_, whole), *before = reversed(self._sums)
        for _, part in before:
            whole = part + whole
        return whole


def tree_sum(parts: Iterable[S]) -> S:
    """Return the sum of at least one part, added as `TreeSum` does."""
    tree: TreeSum[S] = TreeSum()
    for part in parts:
        tree.add(part)
    return tree.total()


def aligned_blocks(start: int, stop: int, most: int) -> Iterator[range]:
    """Yield numbers from `start` to before `stop` in blocks that are subtrees of a `TreeSum`.

    Each has a power of two of numbers, at most `most`, and starts at a multiple of its size.

    Examples
    --------
    >>> list(aligned_blocks(3, 13, 4))
    [range(3, 4), range(4, 8), range(8, 12), range(12, 13)]
    """
    while start < stop:
        size = 1
        while 2 * size <= min(most, stop - start) and start % (2 * size) == 0:
            size *= 2
        yield range(start, start + size)
        start += size


def in_order(task: Callable[[int], R], numbers: Iterable[int], n_threads: int = 1) -> Iterator[R]:
    """Run a task for each number, several at a time, and yield the results in order.

    Parameters
    ----------
    task
        Function of a number.
    numbers
        What to call it with.
    n_threads
        Tasks at a time. One runs in the thread of the caller.

    Yields
    ------
    object
        What the task returned for each number. Tasks that nobody has waited for are not started
        once one has failed.
    """
    if n_threads == 1:
        yield from map(task, numbers)
        return
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for number in numbers:
                if len(waiting) == 2 * n_threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(task, number))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def go_on() -> None:
    """Let a pass go on."""


class ShardPasses(Protocol[Made]):
    """What is made of each shard of a corpus, and passes over it."""

    def map(
        self,
        function: Callable[[Made, int], R],
        numbers: Iterable[int],
        *,
        n_threads: int = 1,
        check: Callable[[], None] = go_on,
    ) -> Iterator[R]:
        """Call a pure function with what is made of shards and their numbers.

        Parameters
        ----------
        function
            A module-level function or a partial of one, so that it can run elsewhere.
        numbers
            The shards.
        n_threads
            Shards that are worked on at a time, where threads of this process do it.
        check
            Called now and then between shards; it may raise to end the pass.

        Yields
        ------
        object
            What it returned, in the order of the numbers.
        """
        ...

    def sum(
        self,
        function: Callable[[Made, int], S],
        *,
        n_threads: int = 1,
        check: Callable[[], None] = go_on,
    ) -> S:
        """Return the sum of a pure function over all shards, added as `TreeSum` does."""
        ...


@runtime_checkable
class Engine(Protocol):
    """What carries out passes over shards."""

    def passes(self, corpus: "ShardedCorpus", make: Callable[[Corpus], T]) -> ShardPasses[T]:
        """Return what a function makes of each shard, made once as far as it can be kept."""
        ...


class ThreadPasses(Generic[T]):
    """Passes over shards by threads of this process."""

    def __init__(self, corpus: "ShardedCorpus", make: Callable[[Corpus], T]) -> None:
        self.corpus = corpus
        self._kept = Kept(
            lambda number: make(corpus.load(number)),
            keep_bytes=corpus.keep_bytes,
            spill_bytes=corpus.spill_bytes,
        )

    def call(self, function: Callable[[T, int], R], number: int) -> R:
        """Call a function with what is made of one shard; what cannot be learnt names it."""
        try:
            return function(self._kept(number), number)
        except LearningError as error:
            raise LearningError(f"{self.corpus.shards[number].name}: {error}") from error

    def map(
        self,
        function: Callable[[T, int], R],
        numbers: Iterable[int],
        *,
        n_threads: int = 1,
        check: Callable[[], None] = go_on,
    ) -> Iterator[R]:
        """Call a pure function with what is made of shards; see `ShardPasses`."""

        def task(number: int) -> R:
            check()
            return self.call(function, number)

        return in_order(task, numbers, n_threads)

    def sum(
        self,
        function: Callable[[T, int], S],
        *,
        n_threads: int = 1,
        check: Callable[[], None] = go_on,
    ) -> S:
        """Return the sum of a pure function over all shards, added as `TreeSum` does."""
        numbers = range(self.corpus.n_shards)
        return tree_sum(self.map(function, numbers, n_threads=n_threads, check=check))


class Shard(Protocol):
    """Documents that are loaded when they are needed."""

    @property
    def name(self) -> str:
        """How the shard is called in messages."""
        ...

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        ...

    def load(self) -> Corpus:
        """Return the documents."""
        ...


class LoadedShard(NamedTuple):
    """A shard in memory."""

    name: str
    corpus: Corpus

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.corpus)

    def load(self) -> Corpus:
        """Return the documents."""
        return self.corpus


class CorpusFile(NamedTuple):
    """A shard in a file, as its header describes it."""

    path: Path
    n_documents: int
    n_bytes: int
    """Size of the file."""

    @property
    def name(self) -> str:
        """Path of the file."""
        return str(self.path)

    def load(self) -> Corpus:
        """Return the documents, compared with their checksum."""
        corpus = Corpus.load(self.path)
        if len(corpus) != self.n_documents:
            raise InvalidInputError(
                f"{self.path}: {len(corpus)} documents, it had {self.n_documents} before: the file "
                "was replaced while it was in use"
            )
        return corpus


@dataclass(frozen=True, eq=False)
class ShardedCorpus:
    """Documents of one camera in shards, in time order; each shard starts a new sequence.

    Made by `open` from files, or by `of` from corpora in memory. The documents are those of
    `Corpus.joined`, and `MarkovClusteringTopicModel.fit` and `learn_scene` take either.

    Examples
    --------
    >>> monday, tuesday = Corpus([[1, 0], [0, 2]]), Corpus([[3, 0]])
    >>> corpus = ShardedCorpus.of([monday, tuesday])
    >>> corpus
    ShardedCorpus(3 documents in 2 shards, 2 words)
    >>> corpus.map_reduce(lambda shard: shard.n_tokens.sum())
    np.float64(6.0)
    """

    shards: tuple[Shard, ...]
    like: Corpus
    """A corpus without documents that has the vocabulary, settings and picture of all shards."""
    clip: float
    """Seconds per document."""
    keep_bytes: int = KEEP_BYTES
    """Bytes of what is made of shards that learners may keep in memory."""
    spill_bytes: int = SPILL_BYTES
    """Bytes of it that they may keep in a temporary file beyond that."""
    engine: Engine | None = None
    """What carries out passes over the shards; threads of this process where None."""

    @classmethod
    def open(
        cls,
        paths: Sequence[str | os.PathLike[str]],
        *,
        keep_bytes: int = KEEP_BYTES,
        spill_bytes: int = SPILL_BYTES,
    ) -> Self:
        """Return the corpus of several files, whose headers alone are read.

        Parameters
        ----------
        paths
            Corpus files of one camera in time order, with the same words and clips.
        keep_bytes, spill_bytes
            Learners prepare each shard once: so many bytes of that may be kept in memory, and so
            many more in a temporary file (in the folder that TMPDIR names, at most half of what is
            free there). Other shards are read and prepared again for every pass. Neither changes a
            result.

        Returns
        -------
        ShardedCorpus
            Picture and settings are those of the first file.

        Raises
        ------
        FileError
            If a file is absent, damaged or no corpus.
        InvalidInputError
            If its words or clips are not those of the first.
        """
        found = [_described(path) for path in paths]
        return cls._checked(found, keep_bytes, spill_bytes)

    @classmethod
    def of(
        cls,
        corpora: Sequence[Corpus],
        *,
        keep_bytes: int = KEEP_BYTES,
        spill_bytes: int = SPILL_BYTES,
    ) -> Self:
        """Return the corpus of shards that are in memory; parameters and errors as of `open`."""
        shards = [LoadedShard(f"shard {i}", corpus) for i, corpus in enumerate(corpora)]
        found = [(shard, _empty(shard.corpus), _clip_of(shard.corpus)) for shard in shards]
        return cls._checked(found, keep_bytes, spill_bytes)

    @classmethod
    def _checked(
        cls,
        found: Sequence[tuple[Shard, Corpus, float | None]],
        keep_bytes: int,
        spill_bytes: int,
    ) -> Self:
        """Return the corpus of shards that fit together, each with its header and its clip."""
        if not found:
            raise InvalidInputError("there must be at least one shard, found none")
        _, like, _ = found[0]
        clip = next((clip for _, _, clip in found if clip is not None), 1.0)
        for shard, other, own_clip in found:
            if (other.vocabulary, other.n_words) != (like.vocabulary, like.n_words):
                raise InvalidInputError(
                    f"{shard.name}: shards must have the same vocabulary (camera, frame size, cell "
                    f"and words), found {other.vocabulary or other.n_words} after "
                    f"{like.vocabulary or like.n_words}"
                )
            if own_clip is not None and own_clip != clip:
                raise InvalidInputError(
                    f"{shard.name}: shards must have documents of the same length, found "
                    f"{own_clip:g} s after {clip:g} s: extract it with clip={clip:g}",
                    parameter="clip",
                )
        return cls(tuple(shard for shard, _, _ in found), like, clip, keep_bytes, spill_bytes)

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.shards)

    @property
    def n_documents(self) -> int:
        """Number of documents of all shards."""
        return sum(shard.n_documents for shard in self.shards)

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return self.like.n_words

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Meaning of the word ids, where known."""
        return self.like.vocabulary

    @property
    def settings(self) -> dict[str, Any] | None:
        """How the documents of the first shard were extracted from video."""
        return self.like.settings

    @property
    def picture(self) -> NDArray[np.uint8] | None:
        """Picture of the scene in the first shard."""
        return self.like.picture

    @property
    def coarse(self) -> "ShardedCorpus":
        """The same documents in coarse words; see `Corpus.coarse`."""
        return replace(self, like=self.like.coarse)

    def carried_by(self, workers: object) -> "ShardedCorpus":
        """Return the same documents, with passes by workers that can carry out passes.

        By any others, and by none, they are done by threads of this process.
        """
        return replace(self, engine=workers if isinstance(workers, Engine) else None)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first document of each shard; one entry more than shards."""
        return np.cumsum([0, *(shard.n_documents for shard in self.shards)], dtype=np.int64)

    @cached_property
    def n_tokens(self) -> NDArray[np.float64]:
        """Number of tokens in each document; the first use reads all shards."""
        return self.column(_n_tokens)

    def load(self, number: int) -> Corpus:
        """Return the documents of one shard, in the words of this corpus."""
        corpus = self.shards[number].load()
        vocabulary = self.like.vocabulary
        return corpus if vocabulary is None else corpus.summed(vocabulary)

    def map(self, function: Callable[[Corpus], R], *, n_threads: int = 1) -> Iterator[R]:
        """Call a pure function with each shard, of which `n_threads` are loaded at a time.

        Yields
        ------
        object
            What it returned, in the order of the shards.
        """
        once = replace(self, keep_bytes=0, spill_bytes=0).kept(_itself)
        numbers = range(self.n_shards)
        return once.map(partial(_without_number, function), numbers, n_threads=n_threads)

    def map_reduce(self, function: Callable[[Corpus], S], *, n_threads: int = 1) -> S:
        """Return the sum of a pure function over all shards, added as `TreeSum` does."""
        once = replace(self, keep_bytes=0, spill_bytes=0).kept(_itself)
        return once.sum(partial(_without_number, function), n_threads=n_threads)

    def kept(self, make: Callable[[Corpus], T]) -> ShardPasses[T]:
        """Return what a function makes of each shard, made once as far as it can be kept."""
        if self.engine is not None:
            return self.engine.passes(self, make)
        return ThreadPasses(self, make)

    def column(self, function: Callable[[Corpus], NDArray[Any]]) -> NDArray[Any]:
        """Return what a function gives for the documents of each shard, one row per document."""
        return np.concatenate(list(self.map(function)))

    def take(self, documents: ArrayLike) -> Corpus:
        """Return some of the documents in memory, as `Corpus.take` of all of them would.

        Shards without any of them are not read.
        """
        chosen = np.asarray(documents, dtype=np.int64)
        edges = np.searchsorted(chosen, self.starts)
        parts = [
            self.load(i).take(chosen[start:stop] - self.starts[i])
            for i, (start, stop) in enumerate(pairwise(edges))
            if stop > start
        ]
        return self._joined(parts)

    def joined(self) -> Corpus:
        """Return all documents in memory."""
        return self._joined([self.load(i) for i in range(self.n_shards)])

    def _joined(self, parts: Sequence[Corpus]) -> Corpus:
        if not parts:
            return self.like
        whole = Corpus.joined(parts)
        return replace(whole, picture=self.picture, settings=self.settings)

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        return (
            f"ShardedCorpus({self.n_documents} documents in {self.n_shards} shards, "
            f"{self.n_words} words)"
        )


def _itself(corpus: Corpus) -> Any:
    return corpus


def _without_number(function: Callable[[Any], R], made: Any, number: int) -> R:
    return function(made)


def _n_tokens(corpus: Corpus) -> NDArray[np.float64]:
    return corpus.n_tokens


def _described(path: str | os.PathLike[str]) -> tuple[CorpusFile, Corpus, float | None]:
    """Return a file as a shard, a corpus without documents that is like it, and its clip."""
    header, arrays, tensors = read_header(
        path,
        kind="corpus",
        version=VERSION,
        schema=CorpusHeader,
        layouts=LAYOUTS,
        wanted=("picture",),
    )
    n_documents = arrays["times"].shape[0]
    like = Corpus(
        sp.csr_array((0, header["n_words"])),
        vocabulary=header["vocabulary"],
        picture=tensors.get("picture"),
        settings=header.get("settings"),
    )
    clip = (like.settings or {}).get("clip")
    if clip is None and n_documents > 1:
        found = read_header(path, kind="corpus", version=VERSION, wanted=("times",))
        clip = Corpus(np.zeros((n_documents, 1)), times=found.tensors["times"]).clip
    return CorpusFile(Path(path), n_documents, Path(path).stat().st_size), like, clip


def _empty(corpus: Corpus) -> Corpus:
    """Return a corpus without documents that is like another."""
    return corpus.take(np.arange(0))


def _clip_of(corpus: Corpus) -> float | None:
    """Return the seconds per document; None where neither settings nor times tell."""
    known = corpus.settings and "clip" in corpus.settings
    return corpus.clip if known or len(corpus) > 1 else None


class Kept(Generic[T]):
    """What is made of each shard: named tuples of arrays, made once and then kept.

    The first that fit into `keep_bytes` are kept in memory, others in a temporary file, as long as
    that takes less than `spill_bytes` and less than half of the free disk; the rest are made anew.
    Arrays are kept in the smallest types of whole numbers that hold them, and are given back as
    they were made.

    Parameters
    ----------
    make
        Function of the number of a shard.
    keep_bytes, spill_bytes
        Limits; they never change what is given back.
    """

    def __init__(self, make: Callable[[int], T], *, keep_bytes: int, spill_bytes: int) -> None:
        self._make, self._left = make, keep_bytes
        self._scratch = _Scratch(spill_bytes)
        self._known: dict[int, _Packed | _Spilled] = {}
        self._lock = Lock()

    def __call__(self, number: int) -> T:
        """Return what is made of a shard."""
        known = self._known.get(number)
        if known is not None:
            return cast(T, known.unpacked())
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
        return sum(each.value.nbytes for each in self.fields if each.dtype is not None)

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
                fields = tuple(self._written(each) for each in packed.fields)
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
