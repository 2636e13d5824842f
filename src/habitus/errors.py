"""Errors and warnings that habitus raises on purpose."""

from importlib import import_module
from typing import Any


class HabitusError(Exception):
    """Base of every error that habitus raises on purpose.

    Parameters
    ----------
    message
        One line for a person: the value found, the value expected, the remedy.
    parameter
        Name of the parameter to change, where there is one; the command line adds its flag.

    Examples
    --------
    >>> error = InvalidInputError("fps must be above 0, found 0", parameter="fps")
    >>> str(error), error.parameter
    ('fps must be above 0, found 0', 'fps')
    """

    def __init__(self, message: str = "", *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class InvalidInputError(HabitusError, ValueError):
    """A value that cannot be used."""


class FileError(HabitusError, ValueError):
    """A file that is truncated, altered, of another program or of a newer version."""


class LearningError(HabitusError, ArithmeticError):
    """Learning that cannot continue, such as from a likelihood of zero without a prior."""


class VideoError(HabitusError, RuntimeError):
    """A video that cannot be opened, or has no frame."""


class WorkerError(HabitusError, RuntimeError):
    """Work that no worker could carry out."""


class TaskError(WorkerError):
    """A task that was given up, by its number: its workers died, one after the other."""

    def __init__(self, message: str = "", *, task: int = 0) -> None:
        super().__init__(message)
        self.task = task


class MissingPackageError(HabitusError, ImportError):
    """An optional package that is needed and not installed."""


class DegenerateWarning(UserWarning):
    """A topic or behaviour that no data was assigned to."""


def optional_package(name: str, purpose: str) -> Any:
    """Import an optional package, or say for what purpose it must be installed.

    >>> optional_package("no_such_package", "A table")
    Traceback (most recent call last):
    habitus.errors.MissingPackageError: A table needs no_such_package: pip install no_such_package
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(f"{purpose} needs {name}: pip install {name}") from error
