"""Options: those that several commands share, and how functions become commands.

A parameter of a command is an option, an argument, or several options that become one value, as
settings of the library do. `command` turns such a function into one for Typer.
"""

import functools
import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

import habitus
from habitus import HabitusError
from habitus.cli.ending import check_surroundings
from habitus.cli.terminal import say

LEARNING, READING, ALERTS = (
    habitus.LearningSettings,
    habitus.ReadingSettings,
    habitus.AlertSettings,
)
"""Where the defaults of options are."""
USUAL = object()
"""Default of an option that becomes one of these: what it is there."""


class _Option(NamedTuple):
    """Default of an option or argument, its texts, and the values to choose from, if any."""

    default: Any
    info: Any
    choice: Sequence[str] = ()


class _Group(NamedTuple):
    """Options by their names, and what they become together."""

    kind: Callable[..., Any]
    options: dict[str, _Option]

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the options as Typer reads them, with the types of what they become, if known."""
        hints = get_type_hints(self.kind)
        for name, option in self.options.items():
            default = getattr(self.kind, name) if option.default is USUAL else option.default
            hint = hints.get(name, str | None if default is None else type(default))
            yield _keyword(name, str if hint is Any else hint, option._replace(default=default))


def option(default: Any, text: str, *flags: str, choice: Sequence[str] = (), **more: Any) -> Any:
    """Return an option of a command; one without a default, ..., is required."""
    return _Option(default, typer.Option(*flags, help=text, **more), choice)


def argument(text: str, metavar: str, *, default: Any = ...) -> Any:
    """Return an argument of a command."""
    return _Option(default, typer.Argument(help=text, metavar=metavar))


def together(kind: Callable[..., Any], **options: Any) -> Any:
    """Return options that become one value: what `kind` returns for them."""
    return _Group(kind, options)


FOOTAGE = argument(
    "Normal footage: videos, as for extract; or corpus files that extract wrote.", "VIDEO|CORPUS"
)
SOURCE = argument("A video, as for extract; or a corpus file.", "VIDEO|CORPUS")
MODEL = option(..., "What `habitus learn` wrote.", "--model", "-m")
LABEL_LINE = option(None, "Which video of a file that labels several, one per line, from 1.")
FORCE = option(False, "Replace an output that habitus did not write.", "--force")
FORCE_SCENE = option(
    False,
    "Go on even if the footage does not show the model's scene, and replace outputs that habitus "
    "did not write.",
    "--force",
)
SKIP = option(None, "Skip the first N seconds.")
MIN_WORDS = option(USUAL, "Documents with fewer words carry no evidence.")
FAST = option(False, "Skip frames no other frame needs, and the loop filter.", "--fast")
CONTINUED = option(False, "Several videos are one, cut into files: one sequence.", "--continue")
JOBS = option(READING.jobs, "Processes; -1 for one per core. Never changes the result.")
CLUSTER = option(
    None,
    "Work on a Dask cluster: local (a scheduler and --jobs workers on this machine) or the address "
    "of a scheduler, such as tcp://host:8786. Never changes the result.",
    metavar="local|ADDRESS",
)
SIZES = {
    "n_topics": option(USUAL, "Number of topics.", "--topics"),
    "n_behaviours": option(USUAL, "Number of behaviours.", "--behaviours"),
}
STREAM = {
    "fps": option(None, "Frames per second of images, or of streams without times."),
    "fast": FAST,
    "other_hosts": option(
        False,
        "Let an http(s) or rtsp address lead to other hosts (redirections, playlists).",
        "--other-hosts",
    ),
}
READ_HERE = {
    **STREAM,
    "timeout": option(USUAL, "Seconds that an address may take to answer."),
    "jobs": JOBS,
}
READ_ANYWHERE = {**READ_HERE, "cluster": CLUSTER}
READ_ONE = together(READING, **READ_HERE, skip=SKIP)
SEVERAL = together(
    READING,
    continued=CONTINUED,
    duration=option(None, "Use the first N seconds only."),
    **READ_ANYWHERE,
)
DOCUMENTS = together(
    lambda **values: habitus.DocumentSettings(**values),  # which takes long to import
    clip=option(1.0, "Seconds of video per document."),
    cell=option(8, "Side of a cell, in pixels of the analysed frame (large frames are halved)."),
    motion=option(
        "cells",
        "cells: our own kernel, fast. flow: plain optical flow, as in the paper, slow.",
        choice=("cells", "flow"),
    ),
    words=option(
        "fine",
        "Words to keep: fine (12 directions, 16 speeds), coarse (4 directions, slow or fast) or "
        "paper (4 directions).",
        choice=("fine", "coarse", "paper"),
    ),
    mask=option(
        None,
        "What not to watch (clocks, trees, screens): a PNG of the frame's size, not black there, "
        "or polygons: '0,0 90,0 90,20; 300,10 ...'.",
    ),
    region=option(None, "Watch only this: a PNG or polygons, as for --mask."),
)
JUDGING = together(
    ALERTS,
    alerts_per_day=option(
        None,
        f"The budget: alerts per day that normal footage may raise ({ALERTS.BUDGET:g} if nothing "
        "else is given).",
    ),
    share=option(
        None, "Instead of a budget: this share of the documents is abnormal, such as 0.02."
    ),
    threshold=option(None, "Instead of a budget: documents of lower normality are abnormal."),
    measure=option(
        None,
        "habits: where, which way and how fast things usually move (default; tail for a model "
        "without habits). tail: single words of high surprisal under the topic model. mean: the "
        "paper's, all words together.",
        choice=("habits", "tail", "mean"),
    ),
    approximation=option(
        USUAL,
        "plug-in: one estimate. monte-carlo: posterior samples (vb, gibbs).",
        choice=("plug-in", "monte-carlo"),
    ),
    n_samples=option(
        None, "Posterior samples of monte-carlo (vb: 100; gibbs: all kept).", "--samples"
    ),
    seed=option(USUAL, "Seed of vb's posterior samples."),
)


def json_option(text: str) -> Any:
    """Return the option that makes a command print for machines."""
    return option(False, text, "--json")


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer, in which a project error is one line and exit code 1."""
    hints, groups = get_type_hints(function), dict[str, _Group]()
    parameters = [_keyword("context", typer.Context)]
    for name, parameter in inspect.signature(function).parameters.items():
        if isinstance(parameter.default, _Group):
            groups[name] = parameter.default
            parameters += parameter.default.parameters()
        elif name != "context":
            parameters.append(_keyword(name, hints[name], parameter.default))

    @functools.wraps(function)
    def run(context: typer.Context, **values: Any) -> None:
        values = {name: plain(value) for name, value in values.items()}
        if "context" in hints:
            values["context"] = context
        try:
            check_surroundings()
            for name, (kind, options) in groups.items():
                values[name] = kind(**{option: values.pop(option) for option in options})
            function(**values)
        except HabitusError as error:
            say(error_line(error, context), err=True)
            raise typer.Exit(1) from error

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _keyword(name: str, hint: Any, option: Any = None) -> inspect.Parameter:
    """Return a parameter as Typer reads it."""
    default: Any = inspect.Parameter.empty
    if isinstance(option, _Option):
        default = default if option.default is ... else option.default
        if option.choice:
            named = [(value, value) for value in option.choice]
            choice = StrEnum("Choice", named)  # type: ignore[misc]
            hint, default = (choice | None, None) if default is None else (choice, choice(default))
        hint = Annotated[hint, option.info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def first_line(function: object) -> str:
    """Return the first line of a command's help; in a list of commands Typer cuts it otherwise."""
    return (function.__doc__ or "").partition("\n")[0]


def command_line() -> str:
    """Return the command under way as it may be shown."""
    return shlex.join(["habitus", *map(habitus.redacted, sys.argv[1:])])


def plain(value: Any) -> Any:
    """Return the value of a choice as the library takes it."""
    return value.value if isinstance(value, StrEnum) else value


def error_line(error: HabitusError, context: typer.Context) -> str:
    """Return what to say of an error, with the option of the command that it is about, if any."""
    flags = {
        option.name: option.opts[0] if option.param_type_name == "option" else option.metavar
        for option in context.command.params
    }
    parameter = getattr(error, "parameter", None)
    remedy = f" ({flags[parameter]})" if parameter in flags else ""
    return f"habitus: {error}{remedy}"


def given_options(context: typer.Context, names: set[str]) -> list[str]:
    """Return those of the named options that were given on the command line, as words."""
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if name not in names or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        words.append(option.opts[0])
        if value is not True:
            words.append(f"{value:g}" if isinstance(value, float) else str(value))
    return words
