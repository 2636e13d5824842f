"""Tables and lines for a person, by Rich: only commands that print some wait for its import."""

from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from habitus.cli.terminal import printable


class Screen(Console):
    """Console for tables and lines; what looks like markup in them is text."""

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as it is printed; every text of a table or a line passes here."""
        lines = "\n".join(map(printable, text.split("\n")))
        return super().render_str(lines, **options)


def table(*headings: str, left: Iterable[int] = (0,), **style: Any) -> Table:
    """Return a table of numbers, with texts in the columns that are aligned to the left."""
    columns, made = set(left), Table(box=SIMPLE_HEAD, **style)
    for k, heading in enumerate(headings):
        made.add_column(heading, justify="left" if k in columns else "right")
    return made
