"""The command itself and its subcommands."""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

import typer

from habitus import __version__, when_compiling, when_connected
from habitus.cli import options
from habitus.cli.ending import lack
from habitus.cli.terminal import say

COMMANDS = (
    *("demo", "extract", "learn", "detect", "accept", "watch", "serve"),
    *("show", "report", "evaluate", "tune", "compare", "archive"),
)
"""Subcommands, each of a module of its name."""
INTERRUPTED = 130  # what typer makes of Ctrl-C


def _version(wanted: bool) -> None:
    if wanted:
        say(f"habitus {__version__}")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Take the options that come before a subcommand."""


def command_for(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the command `habitus` with the subcommand that is given, or with all of them.

    Each takes time to import and to build.
    """
    app = typer.Typer(
        name="habitus",
        help="Learn what is habitual in a fixed camera's view, without labels, and show what is "
        "not.",
        epilog="Start with: habitus demo",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name in [name for name in arguments[:1] if name in COMMANDS] or COMMANDS:
        module = import_module(f"habitus.cli.{name}")
        if hasattr(module, "app"):
            for command in module.app.registered_commands:
                command.short_help = options.first_line(command.callback)
            app.add_typer(module.app, short_help=module.app.info.help)
        else:
            function = getattr(module, name)
            app.command(short_help=options.first_line(function))(function)
    return app


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read stderr has gone
        say(f"habitus: {text}", err=True)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _try_again() -> None:
    """Have the interrupt again in a moment."""
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def _lost(lost: "sys.UnraisableHookArgs") -> None:
    """Make up for an interrupt that a destructor raised, which Python prints and forgets."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _try_again()
    else:
        sys.__unraisablehook__(lost)


def main() -> None:
    """Run the command: Ctrl-C is one line and exit code 130, as any other end is the command's.

    SIGTERM and SIGHUP end it as Ctrl-C does, with exit codes 143 and 129.
    """
    ended: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        """End the command, but no module in the middle of its import: it would not stand that."""
        ended.append(number)
        if not (hasattr(signal, "setitimer") and _importing(frame)):
            raise KeyboardInterrupt
        _try_again()

    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    usual = (signal.SIG_DFL, signal.default_int_handler)
    handled = [number for number in numbers if signal.getsignal(number) in usual]
    when_compiling(lambda: _say("compiling kernels for this machine, once; please wait"))
    when_connected(_say)
    try:
        if hasattr(signal, "setitimer"):
            sys.unraisablehook = _lost
        for number in handled:
            signal.signal(number, end)
        command_for(sys.argv[1:])()
    except (SystemExit, KeyboardInterrupt) as leaving:
        for number in handled:  # it is ending already, and what it cleans up is soon done
            signal.signal(number, signal.SIG_IGN)
        if isinstance(leaving, SystemExit) and leaving.code != INTERRUPTED:
            raise
        _say("interrupted; nothing was left half-written")
        sys.exit(128 + ended[0] if ended else INTERRUPTED)
    except (OSError, MemoryError, ImportError, RuntimeError) as error:
        if (reason := lack(error)) is None:
            raise
        _say(reason)
        with contextlib.suppress(OSError):  # what stdout could not take is not written again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
