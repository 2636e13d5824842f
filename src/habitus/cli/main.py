"""The command itself and its subcommands."""

import contextlib
import os
import signal
import sys
from types import FrameType

import typer

from habitus import __version__, when_compiling, when_connected
from habitus.cli.accept import accept
from habitus.cli.archive import app as archive
from habitus.cli.compare import compare
from habitus.cli.demo import demo
from habitus.cli.detect import detect
from habitus.cli.evaluate import evaluate
from habitus.cli.extract import extract
from habitus.cli.learn import learn
from habitus.cli.report import report
from habitus.cli.serve import serve
from habitus.cli.show import show
from habitus.cli.terminal import say
from habitus.cli.tune import tune
from habitus.cli.watch import watch

INTERRUPTED = 130  # what typer makes of Ctrl-C

app = typer.Typer(
    name="habitus",
    help="Learn what is habitual in a fixed camera's view, without labels, and show what is not.",
    epilog="Start with: habitus demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo)
app.command()(extract)
app.command()(learn)
app.command()(detect)
app.command()(accept)
app.command()(watch)
app.command()(serve)
app.command()(show)
app.command()(report)
app.command()(evaluate)
app.command()(tune)
app.command()(compare)
app.add_typer(archive)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"habitus {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Take the options that come before a subcommand."""


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read stderr has gone
        say(f"habitus: {text}", err=True)


def _open_standard_files() -> None:
    """Have three standard files, where some were closed: else other files take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def main() -> None:
    """Run the command: Ctrl-C is one line and exit code 130, as any other end is the command's.

    SIGTERM and SIGHUP end it as Ctrl-C does, with exit codes 143 and 129.
    """
    _open_standard_files()
    ended: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, end)
    when_compiling(lambda: _tell("compiling kernels for this machine, once; please wait"))
    when_connected(_tell)
    try:
        app()
    except (SystemExit, KeyboardInterrupt) as leaving:
        for number in handled:  # it is ending already, and what it cleans up is soon done
            signal.signal(number, signal.SIG_IGN)
        if isinstance(leaving, SystemExit) and leaving.code != INTERRUPTED:
            raise
        _tell("interrupted; nothing was left half-written")
        sys.exit(128 + ended[0] if ended else INTERRUPTED)
