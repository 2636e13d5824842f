"""Rows of the tables: measured claims, how they are shown, and how a benchmark hands them on.

With `--save` a benchmark keeps its rows in `results/`, with its command, the version and the
machine; `scripts/figures.py` writes the tables of the documents from there.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import habitus

RESULTS = Path(__file__).with_name("results")
PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "hmmlearn",
    "tomotopy",
    "av",
    "opencv-python-headless",
)
Cells = Mapping[str, str | float | None]
"""A row of a table that is not of claims: its cells by their columns, its name first."""


class Target(NamedTuple):
    """What a claim has to reach."""

    bound: Literal["at least", "at most"]
    value: float
    of: Literal["ratio", "ours"] = "ratio"


@dataclass(frozen=True)
class Row:
    """One claim: our figure, the peer's in the same unit, their ratio as measured, the target."""

    what: str
    ours: float
    unit: str
    peer: float | None = None
    ratio: float | None = None
    target: Target | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is none."""
        if self.target is None:
            return None
        found = self.ours if self.target.of == "ours" else self.ratio
        if found is None:
            return None
        if self.target.bound == "at least":
            return found >= self.target.value
        return found <= self.target.value

    def as_json(self) -> dict[str, Any]:
        """Give the row as plain values, the verdict included."""
        return {**asdict(self), "met": self.met}

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> "Row":
        """Read what `as_json` gave."""
        fields = {name: value for name, value in row.items() if name != "met"}
        fields["target"] = Target(*fields["target"]) if fields["target"] else None
        return cls(**fields)


HEAD = ("what", "habitus", "peer", "ratio", "target", "met")


def table(rows: Sequence[Row | Cells]) -> str:
    """Markdown, with columns aligned for reading as plain text, and the notes below."""
    cells = texts(rows)
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    told = notes(rows)
    return "\n".join([*lines, "", *told] if told else lines)


def notes(rows: Sequence[Row | Cells]) -> list[str]:
    """Give what rows say of themselves, as a list in Markdown."""
    return [f"- {row.what}: {row.note}" for row in rows if isinstance(row, Row) and row.note]


def texts(rows: Sequence[Row | Cells]) -> list[tuple[str, ...]]:
    """Give the head of a table and its cells as they are shown."""
    claims = [row for row in rows if isinstance(row, Row)]
    if claims:
        return [HEAD, *map(_cells, claims)]
    plain = [row for row in rows if not isinstance(row, Row)]
    columns = tuple(plain[0])
    digits = {name: max(_decimals(row[name]) for row in plain) for name in columns}
    body = [tuple(_text(row[name], digits[name]) for name in columns) for row in plain]
    return [columns, *body]


def main(measure: Callable[[bool], Iterable[Row | Cells]]) -> None:
    """Run one benchmark as a script."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    add_output(parser)
    options = parser.parse_args()
    hand_on(list(measure(options.quick)), options)


@contextmanager
def kept_folder(given: Path | None) -> Iterator[Path]:
    """Give the folder for what a benchmark makes: the given one, or one that goes at the end."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = given or Path(temporary)
        folder.mkdir(exist_ok=True)
        yield folder


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hand_on`."""
    parser.add_argument("--table", action="store_true", help="a table rather than JSON")
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")


def hand_on(
    rows: Sequence[Row | Cells], options: argparse.Namespace, name: str | None = None
) -> None:
    """Print rows as JSON, or with --table as a table; with --save, keep them for the documents.

    They are kept under the name of the script, or the one that is given.
    """
    print(table(rows) if options.table else json.dumps([as_json(row) for row in rows]))
    if options.save:
        save(name or Path(sys.argv[0]).stem, rows)


def save(name: str, rows: Sequence[Row | Cells], command: str | None = None) -> None:
    """Write what tables of the documents are made from."""
    found = {
        "command": command or _command(),
        "version": habitus.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "rows": [as_json(row) for row in rows],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


def as_json(row: Row | Cells) -> dict[str, Any]:
    """Give a row as plain values."""
    return row.as_json() if isinstance(row, Row) else dict(row)


def from_json(row: dict[str, Any]) -> Row | Cells:
    """Read what `as_json` gave."""
    return Row.from_json(row) if "ours" in row else row


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "packages": found,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _command() -> str:
    """Return how this script was called; files and folders of this machine are called PATH."""
    given = ["PATH" if Path(each).exists() else each for each in sys.argv[1:] if each != "--save"]
    return " ".join([f"benchmarks/{Path(sys.argv[0]).name}", *given])


def progress(text: str) -> None:
    """Tell on stderr what is going on."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.ljust(width) if i == 0 else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join([first, *rest]) + " |"


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {None: "-", True: "yes", False: "**no**"}[row.met]
    return (
        row.what,
        f"{_number(row.ours)} {row.unit}".strip(),
        "-" if row.peer is None else f"{_number(row.peer)} {row.unit}".strip(),
        "-" if row.ratio is None else _number(row.ratio),
        _target(row),
        verdict,
    )


def _target(row: Row) -> str:
    if row.target is None:
        return "-"
    unit = f" {row.unit}" if row.target.of == "ours" else ""
    return f"{row.target.bound} {row.target.value:g}{unit}"


def _number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if abs(value) >= 100 or (abs(value) >= 10 and value == round(value)) or value == 0:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def _decimals(value: str | float | None) -> int:
    return len(str(value).partition(".")[2]) if isinstance(value, float) else 0


def _text(value: str | float | None, digits: int) -> str:
    """A cell; numbers of a column have as many digits as the longest of them."""
    if value is None:
        return ""
    return f"{value:,.{digits}f}" if isinstance(value, int | float) else value
