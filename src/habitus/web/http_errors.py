"""Requests that are not carried out, and the status codes that say so."""

from collections.abc import Mapping
from typing import ClassVar

from habitus.errors import HabitusError


class HttpError(HabitusError):
    """A request that is not carried out; each kind has its status code."""

    status: ClassVar[int] = 400
    headers: Mapping[str, str] = {}


class NotLoggedInError(HttpError):
    """Nobody knows who asks."""

    status, headers = 401, {"WWW-Authenticate": "Bearer"}


class NotAllowedError(HttpError):
    """Who asks may not do that."""

    status = 403


class NotFoundError(HttpError):
    """There is no such thing."""

    status = 404


class ConflictError(HttpError):
    """It does not go together with what is there."""

    status = 409


class TooLargeError(HttpError):
    """More bytes than are taken."""

    status = 413


class TooManyAttemptsError(HttpError):
    """Passwords were tried too often; it may be tried again after so many seconds."""

    status = 429

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait
        self.headers = {"Retry-After": str(max(1, round(wait + 0.5)))}


class UnavailableError(HttpError):
    """Something that is needed is away, such as the database."""

    status = 503


def status_of(error: HabitusError) -> int:
    """Return the status code of an error: that of a value that cannot be used, if none is its."""
    return error.status if isinstance(error, HttpError) else 422
