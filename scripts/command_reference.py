"""Write docs/reference/commands.md from the help of the commands; --check fails if it is stale."""

import sys
from pathlib import Path

from typer.testing import CliRunner

from habitus.cli import command_for

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"


def reference() -> str:
    """Return the page as it should be."""
    app = command_for()
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    for group in app.registered_groups:
        own = group.typer_instance
        names += [f"{own.info.name} {each.callback.__name__}" for each in own.registered_commands]
    parts = ["# Commands\n\nWritten by `make docs` from `habitus COMMAND --help`.\n"]
    for name in names:
        # A fixed width: help is wrapped to the terminal otherwise.
        text = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "100"}).output
        parts.append(f"## habitus {name}\n\n```\n{text.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" in sys.argv:
        if PAGE.read_text() != reference():
            sys.exit(f"{PAGE.name} is stale: run make docs")
    else:
        PAGE.write_text(reference())
