"""Bytes that an install takes on disk: the core by its packages, and what each extra adds."""

from collections.abc import Iterator
from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from report import Cells, main

EXTRAS = ("compare", "console", "cluster", "notebook", "docs")
LARGEST = 12
"""Packages of the core that are named."""
BLOCK = 512


def measure(quick: bool) -> Iterator[Cells]:
    """Rows: the core, its largest packages, and each extra beyond the core."""
    core = packages("habitus", frozenset())
    sizes = {name: size(name) for name in core}
    whole = sum(sizes.values())
    yield row("habitus", whole, whole)
    for name in sorted(sizes, key=lambda name: -sizes[name])[:LARGEST]:
        yield row(f"of these, {name}", sizes[name], whole)
    for extra in EXTRAS:
        added = packages("habitus", frozenset({extra})) - core
        yield row(f"habitus[{extra}] adds", sum(map(size, added)), whole)


def row(name: str, found: float, whole: float) -> Cells:
    """Return one row of the table."""
    return {
        "install": name,
        "MB on disk": round(found),
        "of the core": f"{100 * found / whole:.0f} %",
    }


def packages(name: str, extras: frozenset[str]) -> set[str]:
    """Return the packages that one needs, itself included; all must be installed."""
    found: set[str] = set()
    waiting = [(name, extras)]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        seen.add((name, extras))
        found.add(name)
        for text in distribution(name).requires or ():
            need = Requirement(text)
            wanted = any(
                need.marker is None or need.marker.evaluate({"extra": extra})
                for extra in extras | {""}
            )
            each = (canonicalize_name(need.name), frozenset(need.extras))
            if wanted and each not in seen:
                waiting.append(each)
    return found


def size(name: str) -> float:
    """Megabytes of what a package installed, its compiled Python included."""
    files = [each.locate() for each in distribution(name).files or ()]
    return sum(path.stat().st_blocks * BLOCK for path in files if path.is_file()) / 1e6


if __name__ == "__main__":
    main(measure)
