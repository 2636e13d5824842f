"""Commands run within the test's process: libraries are imported once, kernels loaded once."""

import sys
import tempfile
import traceback
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from habitus.cli import command_for

COMMAND = (sys.executable, "-m", "habitus")
"""The command as a process of its own, for tests of signals, descriptors and what is imported."""


class Done(NamedTuple):
    """How a command ended and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


def habitus(*arguments: object, cwd: Path) -> Done:
    """Run a command in a folder, its output to files as in a shell."""
    with ExitStack() as stack:
        out, err = (
            stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(2)
        )
        with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
            returncode = _ended(*map(str, arguments))
        for file in (out, err):
            file.seek(0)
        return Done(returncode, out.read(), err.read())


def _ended(*arguments: str) -> int:
    """Return the exit code; an exception is told as Python does, and fails whoever reads it."""
    before, sys.argv = sys.argv, ["habitus", *arguments]
    try:
        command_for(arguments)()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv = before
    return 0


def done(*arguments: object, cwd: Path) -> Done:
    """Run a command that succeeds."""
    run = habitus(*arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run
