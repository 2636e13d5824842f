"""What can go wrong, as one family of errors."""


class HabitusError(Exception):
    """Base of every error that habitus raises on purpose: one line, for a person to read."""


class InvalidInputError(HabitusError, ValueError):
    """A value that cannot be used: names what was found, what is expected and the remedy.

    Parameters
    ----------
    message
        One line for a person.
    parameter
        Name of the parameter to change, where there is one: the command line adds its flag.
    """

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class FileError(HabitusError, ValueError):
    """A file that is truncated, foreign, tampered with or of a newer version."""


class LearningError(HabitusError, ArithmeticError):
    """Learning that cannot go on, such as a likelihood of zero under bare equations."""


class DegenerateWarning(UserWarning):
    """A topic or behaviour that ended without data of its own."""


class VideoError(HabitusError, RuntimeError):
    """A source of video that cannot be opened, or gives no frame."""


class MissingPackageError(HabitusError, ImportError):
    """An optional package that is needed and not installed."""
