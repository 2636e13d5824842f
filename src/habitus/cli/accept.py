"""habitus accept: this was normal."""

from typing import Annotated

import typer

import habitus
from habitus.cli import options
from habitus.cli.terminal import say


@options.command
def accept(
    events: Annotated[str, typer.Argument(help="Events that `habitus detect -o` wrote.")],
    numbers: Annotated[list[int], typer.Argument(help="Lines of the events in that file, from 1.")],
    model: options.ModelFile,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where to write the new model; to MODEL if not given."),
    ] = None,
    force: options.Force = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take it back: the model is as if it never was.")
    ] = False,
) -> None:
    """Tell a model that events were normal.

    What moved in the strongest second of each is counted as one more normal second, and the alarms
    of the file that the model would no longer raise are told. Alarms like it that remain can be
    accepted too.
    Example: habitus accept events.jsonl 3 --model junction.model
    """
    target = output or model
    found = habitus.accept(events, numbers, model, output=target, force=force, undo=undo)
    done = "taken back" if undo else "accepted"
    say(f"{done}: {len(numbers)} event(s)")
    say(f"{len(found.silenced)} alarm(s) of {events} would no longer be raised")
    say(f"wrote {target}")
