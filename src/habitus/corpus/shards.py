"""A corpus in shards: documents of one camera in several files, which are never all loaded at once.

Whatever is learnt from them is a sum over shards, or has one row per document. Sums are added as a
binary tree that depends on the number of shards alone, so that a result is the same to the bit
whoever works on which shard, and in whatever order they finish.
"""

import os
import pickle
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.corpus.documents import FORMAT, Corpus, smallest
from habitus.corpus.looks import joined_looks
from habitus.corpus.tree_sum import Summable, tree_sum
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError, LearningError
from habitus.rarity import counted

KEEP_BYTES = 1 << 29
"""Bytes of what is made of shards that are kept in memory: 512 MiB, about 2 * 10^8 tokens."""
SPILL_BYTES = 1 << 36
"""Bytes of it that are kept in a temporary file beyond that: 64 GiB, about 2 * 10^10 tokens."""


R = TypeVar("R")
S = TypeVar("S", bound=Summable)
T = TypeVar("T", bound=tuple[Any, ...])
Fields = list[tuple[Any, "np.dtype[Any] | None"]]
"""Of a named tuple: arrays in small types and the types that they had, other values and None."""


def in_order(task: Callable[[int], R], numbers: Iterable[int], n_threads: int = 1) -> Iterator[R]:
    """Run a task for each number, `n_threads` at a time, and yield the results in order.

    One at a time runs in the thread of the caller. Tasks that nobody has waited for are not started
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


class ShardPasses(Generic[T]):
    """What is made of each shard of a corpus, and passes over it by threads of this process."""

    def __init__(self, corpus: "ShardedCorpus", make: Callable[[Corpus], T]) -> None:
        self.corpus = corpus
        self._made = ShardCache(
            lambda number: make(corpus.load(number)),
            keep_bytes=corpus.keep_bytes,
            spill_bytes=corpus.spill_bytes,
        )

    def call(self, function: Callable[[T, int], R], number: int) -> R:
        """Call a function with what is made of one shard; what cannot be learnt names it."""
        try:
            return function(self._made(number), number)
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
        """Call a pure function with what is made of shards and their numbers, and yield in order.

        It is a module-level function or a partial of one, so that it can run elsewhere; here,
        `n_threads` run it. `check`, called between shards, may raise to end the pass.
        """

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


@runtime_checkable
class PassWorkers(Protocol):
    """Workers that carry out passes over shards."""

    def passes(self, corpus: "ShardedCorpus", make: Callable[[Corpus], T]) -> ShardPasses[T]:
        """Return what a function makes of each shard, made once as far as it can be kept."""
        ...


class ShardCache(Generic[T]):
    """What is made of each shard: named tuples of arrays, made once and then kept.

    The first that fit into `keep_bytes` are kept in memory, others in a temporary file, as long as
    that takes less than `spill_bytes` and less than half of the free disk; the rest are made anew.
    Arrays are kept in the smallest types of whole numbers that hold them, and are given back as
    they were made.
    """

    def __init__(self, make: Callable[[int], T], *, keep_bytes: int, spill_bytes: int) -> None:
        self._make, self._left, self._spill_left = make, keep_bytes, spill_bytes
        self._known: dict[int, tuple[Any, Fields | int]] = {}
        """Type of each tuple, and its fields or where they begin in the file."""
        self._file: Any = None
        self._lock = Lock()

    def __call__(self, number: int) -> T:
        """Return what is made of a shard."""
        if number in self._known:
            kind, fields = self._known[number]
            if isinstance(fields, int):
                with self._lock:
                    self._file.seek(fields)
                    fields = pickle.load(self._file)  # noqa: S301 - our own, without a name
            values = (v if dtype is None else v.astype(dtype, copy=False) for v, dtype in fields)
            made: T = kind(*values)
            return made
        made = self._make(number)
        if self._left > 0 or self._spill_left > 0:
            with self._lock:
                if number not in self._known:
                    self._keep(number, made)
        return made

    def _keep(self, number: int, made: T) -> None:
        """Keep one more in memory, or in the file, if there is room for it."""
        arrays = (isinstance(part, np.ndarray) for part in made)
        fields: Fields = [
            (smallest(part), part.dtype) if array else (part, None)
            for part, array in zip(made, arrays, strict=True)
        ]
        n_bytes = sum(value.nbytes for value, dtype in fields if dtype is not None)
        if n_bytes <= self._left:
            self._known[number] = type(made), fields
            self._left -= n_bytes
            return
        try:
            if self._file is None and self._spill_left > 0:
                free = shutil.disk_usage(tempfile.gettempdir()).free
                self._spill_left = min(self._spill_left, free // 2)
                # Without a name: it goes with the process, however that ends.
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                weakref.finalize(self, self._file.close)
            if n_bytes <= self._spill_left:
                start = self._file.seek(0, 2)
                pickle.dump(fields, self._file, protocol=pickle.HIGHEST_PROTOCOL)
                self._file.flush()
                self._known[number] = type(made), start
                self._spill_left -= n_bytes
        except OSError:  # no such folder, or the disk is full
            self._spill_left = 0


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


Shard = LoadedShard | CorpusFile
"""Documents that are loaded when they are needed."""


@dataclass(frozen=True, eq=False)
class ShardedCorpus:
    """Documents of one camera in shards, in time order; each shard starts a new sequence.

    Made by `open` from files, or by `of` from corpora in memory. The documents are those of
    `Corpus.joined`, and `TopicModel.fit` and `learn_scene` take either.

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
    workers: PassWorkers | None = None
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

        Picture and settings are those of the first file, looks those of all. Words or clips that
        differ are an `InvalidInputError`.

        Parameters
        ----------
        paths
            Corpus files of one camera in time order, with the same words and clips.
        keep_bytes, spill_bytes
            Learners prepare each shard once: so many bytes of that may be kept in memory, and so
            many more in a temporary file (in the folder that TMPDIR names, at most half of what is
            free there). Other shards are read and prepared again for every pass. Neither changes a
            result.
        """
        described = [_described(path) for path in paths]
        return cls._checked(described, keep_bytes, spill_bytes)

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
        described = [(shard, shard.corpus.take([]), _clip_of(shard.corpus)) for shard in shards]
        return cls._checked(described, keep_bytes, spill_bytes)

    @classmethod
    def _checked(
        cls,
        described: Sequence[tuple[Shard, Corpus, float | None]],
        keep_bytes: int,
        spill_bytes: int,
    ) -> Self:
        """Return the corpus of shards that fit together, each with its header and its clip."""
        if not described:
            raise InvalidInputError("there must be at least one shard, found none")
        _, like, _ = described[0]
        clip = next((clip for _, _, clip in described if clip is not None), 1.0)
        for shard, other, own_clip in described:
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
        looks = joined_looks(look for _, other, _ in described for look in other.looks)
        shards, like = tuple(shard for shard, _, _ in described), replace(like, looks=looks)
        return cls(shards, like, clip, keep_bytes, spill_bytes)

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
    def looks(self) -> NDArray[np.uint8]:
        """Looks of the scene in all shards."""
        return self.like.looks

    @property
    def coarse(self) -> "ShardedCorpus":
        """The same documents in coarse words; see `Corpus.coarse`."""
        return replace(self, like=self.like.coarse)

    def with_workers(self, workers: object) -> "ShardedCorpus":
        """Return the same documents, with passes by workers that can carry out passes.

        By any others, and by none, they are done by threads of this process.
        """
        return replace(self, workers=workers if isinstance(workers, PassWorkers) else None)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first document of each shard; one entry more than shards."""
        return np.cumsum([0, *(shard.n_documents for shard in self.shards)], dtype=np.int64)

    @cached_property
    def n_tokens(self) -> NDArray[np.float64]:
        """Number of tokens in each document; the first use reads all shards."""
        return self.column(attrgetter("n_tokens"))

    def load(self, number: int) -> Corpus:
        """Return the documents of one shard, in the words of this corpus."""
        corpus = self.shards[number].load()
        vocabulary = self.like.vocabulary
        return corpus if vocabulary is None else corpus.summed(vocabulary)

    def map(self, function: Callable[[Corpus], R], *, n_threads: int = 1) -> Iterator[R]:
        """Yield what a pure function returns for each shard; `n_threads` are loaded at a time."""
        numbers = range(self.n_shards)
        return self._once.map(partial(without_number, function), numbers, n_threads=n_threads)

    def map_reduce(self, function: Callable[[Corpus], S], *, n_threads: int = 1) -> S:
        """Return the sum of a pure function over all shards, added as `TreeSum` does."""
        return self._once.sum(partial(without_number, function), n_threads=n_threads)

    @property
    def _once(self) -> ShardPasses[Any]:
        """The shards themselves, for one pass."""
        return replace(self, keep_bytes=0, spill_bytes=0).kept(_itself)

    def kept(self, make: Callable[[Corpus], T]) -> ShardPasses[T]:
        """Return what a function makes of each shard, made once as far as it can be kept."""
        if self.workers is not None:
            return self.workers.passes(self, make)
        return ShardPasses(self, make)

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
        return replace(whole, picture=self.picture, looks=self.looks, settings=self.settings)

    def __len__(self) -> int:
        return self.n_documents

    def __repr__(self) -> str:
        return (
            f"ShardedCorpus({counted(self.n_documents, 'document')} in "
            f"{counted(self.n_shards, 'shard')}, {counted(self.n_words, 'word')})"
        )


def pick_documents(
    passes: ShardPasses[T],
    starts: NDArray[np.int64],
    documents: NDArray[np.int64],
    copies: Callable[[T, NDArray[np.int64]], Sequence[R]],
    **options: Any,
) -> list[R]:
    """Return what is made of documents by their numbers, in that order.

    Shards without any of them are not read. Of each other, `copies` gives those of some numbers
    within it, without keeping the rest in memory.
    """
    shard_of = np.searchsorted(starts, documents, side="right") - 1
    wanted = {n: np.unique(documents[shard_of == n]) for n in np.unique(shard_of).tolist()}
    within = {number: chosen - starts[number] for number, chosen in wanted.items()}
    picked = passes.map(partial(_picked, copies, within), wanted, **options)
    numbers = chain.from_iterable(chosen.tolist() for chosen in wanted.values())
    by_number = dict(zip(numbers, chain.from_iterable(picked), strict=True))
    return [by_number[number] for number in documents.tolist()]


def _picked(
    copies: Callable[[Any, NDArray[np.int64]], Sequence[R]],
    within: Mapping[int, NDArray[np.int64]],
    made: Any,
    number: int,
) -> Sequence[R]:
    return copies(made, within[number])


def _itself(corpus: Corpus) -> Any:
    return corpus


def without_number(function: Callable[[Any], R], made: Any, number: int) -> R:
    """Call a function with what is made of a shard alone."""
    return function(made)


def _described(path: str | os.PathLike[str]) -> tuple[CorpusFile, Corpus, float | None]:
    """Return a file as a shard, a corpus without documents that is like it, and its clip."""
    header, arrays, tensors = FORMAT.read_header(path, ("picture", "pictures"))
    n_documents = arrays["times"].shape[0]
    like = Corpus(
        np.empty((0, header["n_words"])),
        vocabulary=header["vocabulary"],
        picture=tensors.get("picture"),
        looks=tensors.get("pictures"),
        settings=header.get("settings"),
    )
    clip = (like.settings or {}).get("clip")
    if clip is None and n_documents > 1:
        times = FORMAT.read_header(path, ("times",)).tensors["times"]
        clip = Corpus(np.zeros((n_documents, 1)), times=times).clip
    file = Path(path).absolute()  # workers have other folders
    return CorpusFile(file, n_documents, file.stat().st_size), like, clip


def _clip_of(corpus: Corpus) -> float | None:
    """Return the seconds per document; None where neither settings nor times say."""
    stated = corpus.settings and "clip" in corpus.settings
    return corpus.clip if stated or len(corpus) > 1 else None
