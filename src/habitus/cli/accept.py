"""habitus accept: this was normal."""

import habitus
from habitus.cli import options
from habitus.cli.options import argument, option
from habitus.cli.terminal import say
from habitus.rarity import counted


@options.command
def accept(
    *,
    events: str = argument("Events that `habitus detect -o` wrote.", "EVENTS"),
    numbers: list[int] = argument("Lines of the events in that file, from 1.", "LINE"),
    model: str = options.MODEL,
    output: str | None = option(
        None, "Where to write the new model; to MODEL if not given.", "--output", "-o"
    ),
    force: bool = options.FORCE,
    undo: bool = option(False, "Take it back: the model is as if it never was.", "--undo"),
) -> None:
    """Call events normal in a model.

    What moved in each second of them is counted as normal, as often as it takes until none is an
    alarm, and the alarms of the file that the model would no longer raise are counted. Alarms like
    them that remain can be accepted too.
    Example: habitus accept events.jsonl 3 --model junction.model
    """
    target = output or model
    accepted = habitus.accept(events, numbers, model, output=target, force=force, undo=undo)
    say(f"{'taken back' if undo else 'accepted'}: {counted(len(numbers), 'event')}")
    say(f"{counted(len(accepted.silenced), 'alarm')} of {events} would no longer be raised")
    say(f"wrote {target}")
