"""What is printed for a person: texts of files are shown, never obeyed by the terminal."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from rich.text import Text


def printable(text: str) -> str:
    r"""Return a text in one line without codes that a terminal would obey.

    Examples
    --------
    >>> printable("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def say(line: str, *, err: bool = False) -> None:
    """Print a line, on stderr where it is no result."""
    typer.echo(printable(line), err=err)


class Screen(Console):
    """Console for tables and lines; what looks like markup in them is text."""

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as it is printed; every text of a table or a line passes here."""
        lines = "\n".join(map(printable, text.split("\n")))
        return super().render_str(lines, **options)
