"""Options: those that several commands share, in groups, and how functions become commands.

A group is a frozen dataclass whose fields are options, named as the library's parameters.
`command` turns a function that takes groups into one with all their options, for Typer.
"""

import functools
import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

import habitus
from habitus import HabitusError
from habitus.cli.ending import check_surroundings
from habitus.cli.terminal import say


class _Option(NamedTuple):
    """Default of an option or argument, its texts, and the values to choose from, if any."""

    default: Any
    info: Any
    choice: Sequence[str] = ()


def option(default: Any, text: str, *flags: str, choice: Sequence[str] = (), **more: Any) -> Any:
    """Return an option of a command; one without a default, ..., is required."""
    return _Option(default, typer.Option(*flags, help=text, **more), choice)


def argument(text: str, metavar: str | None = None, *, default: Any = ...) -> Any:
    """Return an argument of a command."""
    return _Option(default, typer.Argument(help=text, metavar=metavar))


LEARNING, READING, ALERTS = (
    habitus.LearningSettings,
    habitus.ReadingSettings,
    habitus.AlertSettings,
)
"""Where the defaults of options are."""
FOOTAGE = argument(
    "Normal footage: videos, as for extract; or corpus files that extract wrote.", "VIDEO|CORPUS..."
)
SOURCE = argument("A video, as for extract; or a corpus file.", "VIDEO|CORPUS")
MODEL = option(..., "What `habitus learn` wrote.", "--model", "-m")
SKIP = option(None, "Skip the first N seconds.")
MIN_WORDS = option(LEARNING.min_words, "Documents with fewer words carry no evidence.")
LABEL_LINE = option(None, "Which video of a file that labels several, one per line, from 1.")
FAST = option(False, "Skip frames no other frame needs, and the loop filter.", "--fast")
FORCE = option(False, "Replace an output that habitus did not write.", "--force")


def json_option(text: str) -> Any:
    """Return the option that makes a command print for machines."""
    return option(False, text, "--json")


@dataclass(frozen=True)
class OptionGroup:
    """Options that belong together."""


@dataclass(frozen=True)
class DocumentOptions(OptionGroup):
    """How documents are made from video."""

    clip: float = option(1.0, "Seconds of video per document.")
    cell: int = option(
        8, "Side of a cell, in pixels of the analysed frame (large frames are halved)."
    )
    motion: str = option(
        "cells",
        "cells: our own kernel, fast. flow: plain optical flow, as in the paper, slow.",
        choice=("cells", "flow"),
    )
    words: str = option(
        "fine",
        "Words to keep: fine (12 directions, 16 speeds), coarse (4 directions, slow or fast) or "
        "paper (4 directions).",
        choice=("fine", "coarse", "paper"),
    )
    mask: str | None = option(
        None,
        "What not to watch (clocks, trees, screens): a PNG of the frame's size, not black there, "
        "or polygons: '0,0 90,0 90,20; 300,10 ...'.",
    )
    region: str | None = option(None, "Watch only this: a PNG or polygons, as for --mask.")

    def settings(self) -> "habitus.DocumentSettings":
        """Return the settings that the library takes."""
        return habitus.DocumentSettings(**vars(self))


@dataclass(frozen=True)
class StreamOptions(OptionGroup):
    """How a source of video is opened."""

    fps: float | None = option(None, "Frames per second of images, or of streams without times.")
    fast: bool = FAST
    other_hosts: bool = option(
        False,
        "Let an http(s) or rtsp address lead to other hosts (redirections, playlists).",
        "--other-hosts",
    )


@dataclass(frozen=True)
class ReadingOptions(StreamOptions):
    """How a source of video is opened and read."""

    timeout: float = option(READING.timeout, "Seconds that an address may take to answer.")
    jobs: int = option(READING.jobs, "Processes; -1 for one per core. Never changes the result.")


@dataclass(frozen=True)
class ClusterOptions(OptionGroup):
    """Where the work is done."""

    cluster: str | None = option(
        None,
        "Work on a Dask cluster: local (a scheduler and --jobs workers on this machine) or the "
        "address of a scheduler, such as tcp://host:8786. Never changes the result.",
        metavar="local|ADDRESS",
    )


@dataclass(frozen=True)
class ClusterReadingOptions(ClusterOptions, ReadingOptions):
    """How a source of video is opened and read, and where."""


@dataclass(frozen=True)
class SizeOptions(OptionGroup):
    """How large a model is."""

    n_topics: int = option(LEARNING.n_topics, "Number of topics.", "--topics")
    n_behaviours: int = option(LEARNING.n_behaviours, "Number of behaviours.", "--behaviours")


@dataclass(frozen=True)
class SequenceOptions(OptionGroup):
    """How several sources belong together."""

    continued: bool = option(
        False, "Several videos are one, cut into files: one sequence.", "--continue"
    )


@dataclass(frozen=True)
class FootageOptions(SequenceOptions):
    """How several sources belong together, and how much of them is used."""

    duration: float | None = option(None, "Use the first N seconds only.")


@dataclass(frozen=True)
class JudgingOptions(OptionGroup):
    """When a document is abnormal."""

    alerts_per_day: float | None = option(
        None,
        f"The budget: alerts per day that normal footage may raise ({ALERTS.BUDGET:g} if nothing "
        "else is given).",
    )
    share: float | None = option(
        None, "Instead of a budget: this share of the documents is abnormal (0.02)."
    )
    threshold: float | None = option(
        None, "Instead of a budget: documents of lower normality are abnormal."
    )
    measure: str | None = option(
        None,
        "habits: where, which way and how fast things usually move (default; tail for a model "
        "without habits). tail: single words of high surprisal under the topic model. mean: the "
        "paper's, all words together.",
        choice=("habits", "tail", "mean"),
    )
    approximation: str = option(
        ALERTS.approximation,
        "plug-in: one estimate. monte-carlo: posterior samples (vb, gibbs).",
        choice=("plug-in", "monte-carlo"),
    )
    n_samples: int | None = option(
        None, "Posterior samples of monte-carlo (vb: 100; gibbs: all kept).", "--samples"
    )
    seed: int = option(ALERTS.seed, "Seed of vb's posterior samples.")
    force: bool = option(
        False,
        "Go on even if the footage does not show the model's scene, and replace outputs that "
        "habitus did not write.",
        "--force",
    )

    def parameters(self) -> dict[str, Any]:
        """Return `alerts` and `force` of the functions that judge."""
        settings = dict(vars(self))
        force = settings.pop("force")
        return {"alerts": habitus.AlertSettings(**settings), "force": force}


def reading_settings(*groups: OptionGroup, **more: Any) -> "habitus.ReadingSettings":
    """Return how footage is read, by several groups of options and single ones."""
    for group in groups:
        more |= vars(group)
    return habitus.ReadingSettings(**more)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer: groups become options, a project error one line and exit code 1.

    Parameters of the function that are annotated with an `OptionGroup` receive one.
    """
    hints = get_type_hints(function)
    groups: dict[str, type[OptionGroup]] = {
        name: hint
        for name, hint in hints.items()
        if inspect.isclass(hint) and issubclass(hint, OptionGroup)
    }

    @functools.wraps(function)
    def run(context: typer.Context, **given: Any) -> None:
        given = {name: plain(value) for name, value in given.items()}
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        if "context" in hints:
            given["context"] = context
        try:
            check_surroundings()
            function(**given)
        except HabitusError as error:
            say(error_line(error, context), err=True)
            raise typer.Exit(1) from error

    parameters = [_keyword("context", typer.Context), *_parameters(function, hints, groups)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(
    function: Callable[..., None], hints: dict[str, Any], groups: dict[str, type[OptionGroup]]
) -> Iterator[inspect.Parameter]:
    """Yield the options and arguments of a function, those of its groups among them."""
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            types = get_type_hints(groups[name])
            for field in fields(groups[name]):
                yield _keyword(field.name, types[field.name], field.default)
        elif name != "context":
            yield _keyword(name, hints[name], parameter.default)


def _keyword(name: str, hint: Any, given: Any = None) -> inspect.Parameter:
    """Return a parameter as Typer reads it."""
    default: Any = inspect.Parameter.empty
    if isinstance(given, _Option):
        default = default if given.default is ... else given.default
        if given.choice:
            named = [(value, value) for value in given.choice]
            choice = StrEnum("Choice", named)  # type: ignore[misc]
            hint, default = (choice | None, None) if default is None else (choice, choice(default))
        hint = Annotated[hint, given.info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def command_line() -> str:
    """Return the command under way as it may be shown."""
    return shlex.join(["habitus", *map(habitus.redacted, sys.argv[1:])])


def plain(value: Any) -> Any:
    """Return the value of a choice as the library takes it."""
    return value.value if isinstance(value, StrEnum) else value


def error_line(error: HabitusError, context: typer.Context) -> str:
    """Return what to say of an error, with the option of the command that it is about, if any."""
    flags = {option.name: option.opts[0] for option in context.command.params}
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
