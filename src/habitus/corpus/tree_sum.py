"""Sums whose parts are made by whoever has time, and added in an order that never changes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from operator import add, sub
from typing import Any, Generic, Protocol, Self, TypeVar


class Summable(Protocol):
    """Results that can be added: numbers, arrays, counts; lists are put one after the other."""

    def __add__(self, other: Any) -> Any:
        """Return the sum."""
        ...


S = TypeVar("S", bound=Summable)


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


@dataclass(frozen=True, eq=False)
class Additive:
    """Counts of footage, which add up; whole numbers until they fade, so that this is exact."""

    @property
    def _parts(self) -> Iterator[Any]:
        return (getattr(self, field.name) for field in fields(self))

    def faded(self, factor: float) -> Self:
        """Return the counts times a factor: old footage counts less."""
        return type(self)(*(factor * part for part in self._parts))

    def __add__(self, other: Self) -> Self:
        """Return the counts of both footages."""
        return type(self)(*map(add, self._parts, other._parts))

    def __sub__(self, other: Self) -> Self:
        """Return the counts without those of a part of the footage."""
        return type(self)(*map(sub, self._parts, other._parts))


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
