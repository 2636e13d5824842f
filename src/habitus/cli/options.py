"""Options that several commands share, in groups.

A group is a frozen dataclass whose fields are options, named as the library's parameters.
`command` turns a function that takes groups into one with all their options, for Typer.
"""

import functools
import inspect
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import typer

import habitus
from habitus import HabitusError
from habitus.cli.ending import check_surroundings
from habitus.cli.terminal import say


class MotionChoice(StrEnum):
    """Ways to see motion."""

    CELLS = "cells"
    FLOW = "flow"


class WordChoice(StrEnum):
    """Kinds of words."""

    FINE = "fine"
    COARSE = "coarse"
    PAPER = "paper"


class MeasureChoice(StrEnum):
    """Measures of the normality of a document."""

    HABITS = "habits"
    TAIL = "tail"
    MEAN = "mean"


class TopicMeasure(StrEnum):
    """Measures of the normality of a document under the topic model."""

    TAIL = "tail"
    MEAN = "mean"


class ApproximationChoice(StrEnum):
    """Ways to deal with the unknown parameters."""

    PLUG_IN = "plug-in"
    MONTE_CARLO = "monte-carlo"


Footage = Annotated[
    list[str],
    typer.Argument(
        help="Normal footage: videos, as for extract; or corpus files that extract wrote.",
        metavar="VIDEO|CORPUS...",
    ),
]
OneSource = Annotated[
    str, typer.Argument(help="A video, as for extract; or a corpus file.", metavar="VIDEO|CORPUS")
]
ModelFile = Annotated[str, typer.Option("--model", "-m", help="What `habitus learn` wrote.")]
Skip = Annotated[float | None, typer.Option(help="Skip the first N seconds.")]
Duration = Annotated[float | None, typer.Option(help="Use the first N seconds only.")]
MinWords = Annotated[float, typer.Option(help="Documents with fewer words carry no evidence.")]
LabelLine = Annotated[
    int | None,
    typer.Option(help="Which video of a file that labels several, one per line, from 1."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an output that habitus did not write.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True)
class OptionGroup:
    """Options that belong together."""

    def parameters(self) -> dict[str, Any]:
        """Return the options as parameters of settings of the library."""
        return {name: plain(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class DocumentOptions(OptionGroup):
    """How documents are made from video."""

    clip: Annotated[float, typer.Option(help="Seconds of video per document.")] = 1.0
    cell: Annotated[
        int,
        typer.Option(
            help="Side of a cell, in pixels of the analysed frame (large frames are halved)."
        ),
    ] = 8
    motion: Annotated[
        MotionChoice,
        typer.Option(
            help="cells: our own kernel, fast. flow: plain optical flow, as in the paper, slow."
        ),
    ] = MotionChoice.CELLS
    words: Annotated[
        WordChoice,
        typer.Option(
            help="Words to keep: fine (12 directions, 16 speeds), coarse (4 directions, slow or "
            "fast) or paper (4 directions)."
        ),
    ] = WordChoice.FINE
    mask: Annotated[
        str | None,
        typer.Option(
            help="What not to watch (clocks, trees, screens): a PNG of the frame's size, not "
            "black there, or polygons: '0,0 90,0 90,20; 300,10 ...'."
        ),
    ] = None
    region: Annotated[
        str | None, typer.Option(help="Watch only this: a PNG or polygons, as for --mask.")
    ] = None

    def settings(self) -> "habitus.DocumentSettings":
        """Return the settings that the library takes."""
        return habitus.DocumentSettings(**self.parameters())


@dataclass(frozen=True)
class StreamOptions(OptionGroup):
    """How a source of video is opened."""

    fps: Annotated[
        float | None,
        typer.Option(help="Frames per second of images, or of streams without times."),
    ] = None
    fast: Annotated[
        bool, typer.Option("--fast", help="Skip frames no other frame needs, and the loop filter.")
    ] = False
    other_hosts: Annotated[
        bool,
        typer.Option(
            "--other-hosts",
            help="Let an http(s) or rtsp address lead to other hosts (redirections, playlists).",
        ),
    ] = False


@dataclass(frozen=True)
class ReadingOptions(StreamOptions):
    """How a source of video is opened and read."""

    timeout: Annotated[float, typer.Option(help="Seconds that an address may take to answer.")] = (
        10.0
    )
    jobs: Annotated[
        int, typer.Option(help="Processes; -1 for one per core. Never changes the result.")
    ] = -1


@dataclass(frozen=True)
class ClusterOptions(OptionGroup):
    """Where the work is done."""

    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="local|ADDRESS",
            help="Work on a Dask cluster: local (a scheduler and --jobs workers on this machine) "
            "or the address of a scheduler, such as tcp://host:8786. Never changes the result.",
        ),
    ] = None


@dataclass(frozen=True)
class SequenceOptions(OptionGroup):
    """How several sources belong together."""

    continued: Annotated[
        bool,
        typer.Option("--continue", help="Several videos are one, cut into files: one sequence."),
    ] = False


@dataclass(frozen=True)
class JudgingOptions(OptionGroup):
    """When a document is abnormal."""

    alerts_per_day: Annotated[
        float | None,
        typer.Option(
            help="The budget: alerts per day that normal footage may raise (5 if nothing else is "
            "given)."
        ),
    ] = None
    share: Annotated[
        float | None,
        typer.Option(help="Instead of a budget: this share of the documents is abnormal (0.02)."),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(help="Instead of a budget: documents of lower normality are abnormal."),
    ] = None
    measure: Annotated[
        MeasureChoice | None,
        typer.Option(
            help="habits: where, which way and how fast things usually move (default; tail for a "
            "model without habits). tail: single words of high surprisal under the topic model. "
            "mean: the paper's, all words together."
        ),
    ] = None
    approximation: Annotated[
        ApproximationChoice,
        typer.Option(help="plug-in: one estimate. monte-carlo: posterior samples (vb, gibbs)."),
    ] = ApproximationChoice.PLUG_IN
    n_samples: Annotated[
        int | None,
        typer.Option(
            "--samples", help="Posterior samples of monte-carlo (vb: 100; gibbs: all kept)."
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of vb's posterior samples.")] = 0
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Go on even if the footage does not show the model's scene, and replace outputs "
            "that habitus did not write.",
        ),
    ] = False

    def settings(self) -> "habitus.AlertSettings":
        """Return the settings that the library takes; `force` is a parameter of its own."""
        parameters = self.parameters()
        del parameters["force"]
        return habitus.AlertSettings(**parameters)


def reading_settings(*groups: OptionGroup, **more: Any) -> "habitus.ReadingSettings":
    """Return how footage is read, by several groups of options and single ones."""
    for group in groups:
        more |= group.parameters()
    return habitus.ReadingSettings(**more)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer: groups become options, a project error one line and exit code 1.

    Parameters
    ----------
    function
        Parameters that are annotated with an `OptionGroup` receive one.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[OptionGroup]] = {
        name: hint
        for name, hint in hints.items()
        if inspect.isclass(hint) and issubclass(hint, OptionGroup)
    }
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        own = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=own[field.name],
                )
            )

    @functools.wraps(function)
    def run(context: typer.Context, **given: Any) -> None:
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

    own_context = inspect.Parameter(
        "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
    )
    keyword = [
        own_context,
        *(
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for p in parameters
            if p.name != "context"
        ),
    ]
    run.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in keyword}
    return run


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
            words.append(f"{value:g}" if isinstance(value, float) else str(plain(value)))
    return words
