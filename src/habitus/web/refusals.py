"""What the console refuses, and the status code that says so."""

from collections.abc import Mapping
from typing import ClassVar

from habitus.errors import HabitusError


class RefusedError(HabitusError):
    """A request that is not carried out."""

    status: ClassVar[int] = 400

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers of the answer."""
        return {}


class NotLoggedInError(RefusedError):
    """Nobody knows who asks."""

    status = 401

    @property
    def headers(self) -> Mapping[str, str]:
        """Return how to say who asks."""
        return {"WWW-Authenticate": "Bearer"}


class NotAllowedError(RefusedError):
    """Who asks may not do that."""

    status = 403


class NotFoundError(RefusedError):
    """There is no such thing."""

    status = 404


class ConflictError(RefusedError):
    """It does not go together with what is there."""

    status = 409


class TooLargeError(RefusedError):
    """More bytes than are taken."""

    status = 413


class TooManyAttemptsError(RefusedError):
    """Passwords were tried too often.

    Parameters
    ----------
    message
        One line for a person.
    wait
        Seconds after which it may be tried again.
    """

    status = 429

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait

    @property
    def headers(self) -> Mapping[str, str]:
        """Return when to try again."""
        return {"Retry-After": str(max(1, round(self.wait + 0.5)))}


class UnavailableError(RefusedError):
    """Something that is needed is away, such as the database."""

    status = 503
