"""Write the figures of the documents from benchmarks/results; --check fails if one is stale.

Between `<!-- figures: NAME ... -->` and `<!-- /figures -->` stands the table of one or several
results, with the version, the machine and the command; `figures with notes` adds what the rows
say of themselves. Within a sentence,
`<!-- figure: NAME :: ROW :: COLUMN -->` stands before one cell of it, `<!-- /figure -->` after it.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

from report import RESULTS, from_json, notes, texts  # noqa: E402

WIDTH = 150
"""Characters of a line of the documents, tables apart."""
WHOLE_WORDS = {"break_long_words": False, "break_on_hyphens": False}
TABLE = re.compile(
    r"(<!-- figures( with notes)?: ([\w -]+) -->\n).*?(<!-- /figures -->)", re.DOTALL
)
QUOTED = re.compile(r"(<!-- figure: ([\w-]+) :: (.+?) :: (.+?) -->).*?(<!-- /figure -->)")


class Result(NamedTuple):
    """Head and cells of a table as they are shown, and how they were measured."""

    cells: list[tuple[str, ...]]
    notes: list[str]
    command: str
    measured: str
    load: float | None


@cache
def result(name: str) -> Result:
    """Return the result of that name."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in RESULTS.glob("*.json")))
        sys.exit(f"no result {name!r} in {RESULTS.name}/, which has {known}")
    found = json.loads(path.read_text())
    machine = found["machine"] or {}
    cores = f"{machine['cores']} cores" if machine else None
    told = (f"version {found['version']}", machine.get("processor"), cores)
    measured, load = ", ".join(filter(None, told)), machine.get("load")
    rows = [from_json(row) for row in found["rows"]]
    return Result(texts(rows), notes(rows), found["command"], measured, load)


def tables(names: Iterable[str], *, with_notes: bool = False) -> str:
    """Return the rows of some results as one table, and how they were measured."""
    found = [result(name) for name in names]
    head = found[0].cells[0]
    lines = [head, ("---",) * len(head), *(row for each in found for row in each.cells[1:])]
    parts = [
        "",
        *(f"| {' | '.join(line)} |" for line in lines),
        "",
        wrapped(f"*{origin(found)}*"),
        "",
    ]
    listed = [wrapped(note) for each in found for note in each.notes] if with_notes else []
    return "\n".join([*parts, *listed, ""] if listed else parts)


def wrapped(text: str) -> str:
    """Return a paragraph or an item of a list in lines of the documents' width."""
    return fill(text, WIDTH, subsequent_indent="  " if text.startswith("- ") else "", **WHOLE_WORDS)


def origin(found: Sequence[Result]) -> str:
    """Return the commands of results, with version, machine and the most that it had to do."""
    parts = []
    for measured in dict.fromkeys(each.measured for each in found):
        alike = [each for each in found if each.measured == measured]
        loads = [each.load for each in alike if each.load is not None]
        load = f", load at most {max(loads):g}" if loads else ""
        commands = ", ".join(dict.fromkeys(f"`{each.command}`" for each in alike))
        parts.append(f"{commands} ({measured}{load})")
    return "; ".join(parts)


def quoted(name: str, row: str, column: str) -> str:
    """Return one cell."""
    head, *body = result(name).cells
    found = [cells for cells in body if cells[0] == row]
    if len(found) != 1 or column not in head:
        sys.exit(f"result {name!r}: {len(found)} rows {row!r}, columns {', '.join(head)}")
    return found[0][head.index(column)]


def written(text: str) -> str:
    """Return a page with its figures as they should be."""
    text = TABLE.sub(
        lambda found: (
            f"{found[1]}{tables(found[3].split(), with_notes=bool(found[2]))}\n{found[4]}"
        ),
        text,
    )
    return QUOTED.sub(lambda found: found[1] + quoted(*found.group(2, 3, 4)) + found[5], text)


if __name__ == "__main__":
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = page.read_text()
        after = written(before)
        if after != before and "--check" in sys.argv:
            stale.append(page.name)
        elif after != before:
            page.write_text(after)
    if stale:
        sys.exit(f"stale figures in {', '.join(stale)}: run make docs")
