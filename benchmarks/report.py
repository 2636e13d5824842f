"""Rows of the table: one measured claim each, how it is shown, and how a benchmark hands it on."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple


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


HEAD = ("what", "ours", "peer", "ratio", "target", "met")


def table(rows: Sequence[Row]) -> str:
    """Markdown, with columns aligned for reading as plain text, and the notes below."""
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(HEAD))]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    notes = [f"- {row.what}: {row.note}" for row in rows if row.note]
    return "\n".join([*lines, "", *notes] if notes else lines)


def main(measure: Callable[[bool], Iterable[Row]]) -> None:
    """Run one benchmark as a script: its rows as JSON, or with --table as a table, on stdout."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--table", action="store_true", help="a table rather than JSON")
    options = parser.parse_args()
    rows = list(measure(options.quick))
    print(table(rows) if options.table else json.dumps([row.as_json() for row in rows]))


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
    verdict = {None: "-", True: "yes", False: "NO"}[row.met]
    return (
        row.what,
        f"{_number(row.ours)} {row.unit}",
        "-" if row.peer is None else f"{_number(row.peer)} {row.unit}",
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
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"
