"""Who may do what: passwords, logins, tokens of the API, roles, and proof that a page asks.

A route depends on `viewer`, `reviewer`, `admin`, or, where nobody has to be known, on `anybody`,
`from_here` or `everyone`. A browser is known by a cookie, a
program by a token. Without any user, which is possible on this machine alone, everybody is admin.
Whatever changes something and is not sent with a token of the API must prove that a page of the
console sent it (CSRF): by the header X-CSRF-Token, or the field csrf_token of a form.
"""

import hashlib
import hmac
import ipaddress
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Annotated, cast

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from fastapi import Depends, Request
from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from habitus.backlog import growing_wait
from habitus.errors import InvalidInputError
from habitus.web.answers import HttpError
from habitus.web.database import Login, Role, Token, User
from habitus.web.server import Console
from habitus.web.server_settings import is_loopback
from habitus.web.store import write_audit


def console_of(request: Request) -> Console:
    """Return the console that a request is for."""
    return cast(Console, request.app.state.console)


async def _this_console(request: Request) -> Console:  # not in a thread, as it is quick
    return console_of(request)


ThisConsole = Annotated[Console, Depends(_this_console)]

OWNER = "the machine's owner"
"""Who acts where no password is set."""
LOGIN_COOKIE, BROWSER_COOKIE = "habitus_login", "habitus_browser"
CSRF_HEADER, CSRF_FIELD = "X-CSRF-Token", "csrf_token"
LOGIN_SECONDS = 14 * 86_400.0
"""A login that is not used for so long ends."""
TOKEN_START = "habitus_"  # noqa: S105 - so that a token that was published is recognised
SHORTEST_PASSWORD, LONGEST_PASSWORD = 8, 1000
FORM = "application/x-www-form-urlencoded"
READING = frozenset(["GET", "HEAD", "OPTIONS"])
UPLOADS, RESTORE = "/api/uploads", "/api/restore"
LARGE = frozenset((UPLOADS, RESTORE))
"""Where files are sent to, of any length."""
# The time of a token's or a login's use is not written more often.
SECONDS_BETWEEN_NOTES = 60.0


@dataclass(frozen=True)
class Actor:
    """Who asks."""

    name: str
    role: Role
    csrf: str = ""
    """What pages of this browser send along with changes; empty with a token of the API."""
    user_id: int | None = None
    """None for the machine's owner and for tokens."""

    @property
    def person(self) -> str:
        """Whom settings of one's own belong to."""
        return self.name if self.user_id is None else str(self.user_id)

    def may(self, role: str) -> bool:
        """Return whether a role is among what the actor may do; for templates."""
        return self.role.includes(Role(role))


class Passwords:
    """Hashes passwords, one at a time: each takes 64 MB for a moment."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        self._lock = threading.Lock()
        self._nobody: str | None = None

    def hashed(self, password: str) -> str:
        """Return the hash of a password that is long enough."""
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise InvalidInputError(
                f"a password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters, "
                f"found {len(password)}",
                parameter="password",
            )
        with self._lock:
            return self._hasher.hash(password)

    def fits(self, password: str, hashed: str | None) -> bool:
        """Return whether a password is the hashed one; as slow for a name that is unknown."""
        with self._lock:
            if self._nobody is None:
                self._nobody = self._hasher.hash(secrets.token_hex())
            try:
                self._hasher.verify(hashed or self._nobody, password[:LONGEST_PASSWORD])
            except (VerificationError, InvalidHashError):
                return False
        return hashed is not None


PASSWORDS = Passwords()


class Attempts:
    """Failed logins by name and by address; from some on, each is followed by a longer wait.

    >>> now = [0.0]
    >>> attempts = Attempts(lambda: now[0])
    >>> for _ in range(Attempts.FREE):
    ...     attempts.begin("admin")
    >>> attempts.begin("admin")
    Traceback (most recent call last):
    habitus.web.answers.HttpError: too many failed logins: try again in 1 s
    >>> now[0] = 2.0
    >>> attempts.begin("admin")
    """

    FREE = 5
    LONGEST_WAIT = 300.0
    FORGOTTEN = 3600.0
    MOST_KEYS = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[str, tuple[int, float]] = {}

    def begin(self, *keys: str) -> None:
        """Count an attempt as failed until `succeed` is called; raise if a key has to wait."""
        with self._lock:
            now = self._clock()
            wait = max(self._until(key) - now for key in keys)
            if wait > 0:
                again = str(math.ceil(round(wait, 3)))
                raise HttpError(
                    429, f"too many failed logins: try again in {again} s", {"Retry-After": again}
                )
            if len(self._failures) > self.MOST_KEYS:  # keep the newer half
                newest = sorted(self._failures.items(), key=lambda item: -item[1][1])
                self._failures = dict(newest[: self.MOST_KEYS // 2])
            for key in keys:
                n, last = self._failures.get(key, (0, now))
                forgotten = now - last > self.FORGOTTEN
                self._failures[key] = (1 if forgotten else n + 1, now)

    def succeed(self, *keys: str) -> None:
        """Forget the failures of these keys."""
        with self._lock:
            for key in keys:
                self._failures.pop(key, None)

    def _until(self, key: str) -> float:
        n, last = self._failures.get(key, (0, 0.0))
        if n < self.FREE:
            return -1.0
        return last + growing_wait(n - self.FREE + 1, 1.0, self.LONGEST_WAIT)


def digest(secret: str) -> str:
    """Return what is stored of a cookie or token: it was random, so that a plain hash is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_token() -> str:
    """Return a new token of the API."""
    return TOKEN_START + secrets.token_urlsafe(32)


def has_users(session: Session) -> bool:
    """Return whether anybody has a password."""
    return session.scalar(select(User.id).limit(1)) is not None


def log_in(request: Request, name: str, password: str) -> None:
    """Check a password, and have the answer set the cookie of a login."""
    console, now = console_of(request), time.time()
    with console.database.session() as session:
        user = session.scalar(select(User).where(User.name == name))
    if not try_password(request, name, password, user) or user is None:
        raise HttpError(401, "name and password do not fit")
    cookie = secrets.token_urlsafe(32)
    with console.database.transaction() as session:
        session.execute(delete(Login).where(Login.expires < now))
        csrf, expires = secrets.token_urlsafe(32), now + LOGIN_SECONDS
        session.add(
            Login(digest=digest(cookie), user_id=user.id, csrf=csrf, created=now, expires=expires)
        )
        write_audit(session, user.name, "logged in", _network(request))
    _set_cookie(request, LOGIN_COOKIE, cookie, LOGIN_SECONDS)


def try_password(request: Request, name: str, password: str, user: User | None) -> bool:
    """Return whether a password is that of a user, if there is one; raise if tried too often."""
    attempts = cast(Attempts, request.app.state.attempts)
    keys = f"name {name[:100].casefold()}", f"address {_network(request)}"
    attempts.begin(*keys)
    if not PASSWORDS.fits(password, user.password if user else None):
        with console_of(request).database.session() as session, _noted(session):
            who = user.name if user else "somebody unknown"  # a name may be a password, mistyped
            write_audit(session, who, "wrong password", _network(request))
        return False
    attempts.succeed(*keys)
    return True


def log_out(request: Request) -> None:
    """End the login of a browser."""
    cookie = request.cookies.get(LOGIN_COOKIE)
    if cookie is not None:
        with console_of(request).database.transaction() as session:
            session.execute(delete(Login).where(Login.digest == digest(cookie)))
    _set_cookie(request, LOGIN_COOKIE, "", 0)


async def _sent_csrf(request: Request) -> str:
    """Return the proof that came with a request."""
    if request.method in READING:
        return ""
    sent: object = request.headers.get(CSRF_HEADER)
    is_form = request.headers.get("Content-Type", "").partition(";")[0] == FORM
    if (
        sent is None and is_form and request.scope["path"] not in LARGE
    ):  # where any length is let in
        sent = (await request.form()).get(CSRF_FIELD)
    return sent if isinstance(sent, str) else ""


SentCsrf = Annotated[str, Depends(_sent_csrf)]


def anybody(request: Request, sent: SentCsrf) -> str:
    """Let everybody pass, and return the proof that forms of this browser send along."""
    csrf = _csrf_of_browser(request)
    _check_csrf(request, sent, csrf)
    return csrf


def current_actor(request: Request, sent: SentCsrf) -> Actor:
    """Return who asks, by token, by cookie, or because no password is set; raise if unknown."""
    console = console_of(request)
    token = _sent_token(request)
    if token is not None:
        return _actor_of_token(console, token)
    with console.database.session() as session:
        actor = _actor_of_cookie(request, session)
        if actor is None and has_users(session):
            raise HttpError(401, "log in first, or send a token")
    if actor is None:
        if console.settings.is_exposed or FORWARDED & set(request.headers):
            raise HttpError(
                401,
                "no password is set, and others can reach this console: set one, and start it as "
                "one that is behind a proxy if there is one",
            )
        actor = Actor(OWNER, Role.ADMIN, _csrf_of_browser(request))
    _check_csrf(request, sent, actor.csrf)
    return actor


FORWARDED = frozenset(["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip"])
CurrentActor = Annotated[Actor, Depends(current_actor)]


async def viewer(actor: CurrentActor) -> Actor:
    """Let all who are known pass."""
    return actor


async def reviewer(actor: CurrentActor) -> Actor:
    """Let reviewers and admins pass."""
    return _with_role(actor, Role.REVIEWER)


async def admin(actor: CurrentActor) -> Actor:
    """Let admins pass."""
    return _with_role(actor, Role.ADMIN)


def from_here(request: Request) -> None:
    """Let programs of this machine pass, and all who are known."""
    here = request.client is not None and is_loopback(request.client.host)
    if not here or FORWARDED & set(request.headers) or _sent_token(request) is not None:
        current_actor(request, "")


def everyone() -> None:
    """Let everybody pass; for what nobody needs to be known for, and nothing is changed by."""


Viewer = Annotated[Actor, Depends(viewer)]
Reviewer = Annotated[Actor, Depends(reviewer)]
Admin = Annotated[Actor, Depends(admin)]
Anybody = Annotated[str, Depends(anybody)]
FromHere = Annotated[None, Depends(from_here)]
Everyone = Annotated[None, Depends(everyone)]


def _with_role(actor: Actor, role: Role) -> Actor:
    if not actor.role.includes(role):
        raise HttpError(403, f"that needs the role {role}, and yours is {actor.role}")
    return actor


def _sent_token(request: Request) -> str | None:
    """Return the token of the API that came with a request; a proxy may have a password too."""
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


@contextmanager
def _noted(session: Session) -> Iterator[None]:
    """Write what is good to know; where that cannot be, as on a full disk, go on without."""
    try:
        yield
        session.commit()
    except SQLAlchemyError:
        session.rollback()


def _actor_of_token(console: Console, secret: str) -> Actor:
    now = time.time()
    with console.database.session() as session:
        token = session.scalar(select(Token).where(Token.digest == digest(secret)))
        if token is None:
            raise HttpError(401, "the token is not known, or was withdrawn")
        if token.last_used is None or abs(now - token.last_used) > SECONDS_BETWEEN_NOTES:
            with _noted(session):
                token.last_used = now
        return Actor(f"token {token.name}", Role(token.role))


def _actor_of_cookie(request: Request, session: Session) -> Actor | None:
    cookie = request.cookies.get(LOGIN_COOKIE)
    if cookie is None:
        return None
    now = time.time()
    row = session.execute(
        select(Login, User)
        .join(User, User.id == Login.user_id)
        .where(Login.digest == digest(cookie), Login.expires > now)
    ).one_or_none()
    if row is None:
        return None
    login, user = row
    if login.expires - now < LOGIN_SECONDS / 2:
        with _noted(session):
            login.expires = now + LOGIN_SECONDS
        _set_cookie(request, LOGIN_COOKIE, cookie, LOGIN_SECONDS)
    return Actor(user.name, Role(user.role), login.csrf, user.id)


def _csrf_of_browser(request: Request) -> str:
    """Return the proof of a browser that is not logged in: only its own cookie gives it."""
    cookie: str | None = request.cookies.get(BROWSER_COOKIE) or getattr(
        request.state, "browser", None
    )
    if not cookie:
        cookie = request.state.browser = secrets.token_urlsafe(32)
        _set_cookie(request, BROWSER_COOKIE, cookie, None)
    return console_of(request).vault.sign(f"csrf {cookie}")


def _check_csrf(request: Request, sent: str, expected: str) -> None:
    if request.method not in READING and not hmac.compare_digest(sent.encode(), expected.encode()):
        raise HttpError(
            403,
            "the page is out of date: load it again (changes need the header "
            f"{CSRF_HEADER} of a page, or a token of the API)",
        )


def _set_cookie(request: Request, name: str, value: str, seconds: float | None) -> None:
    """Have the answer set a cookie, whatever the route returns; see `guard`."""
    public = console_of(request).settings.public_url or ""
    cookie: SimpleCookie = SimpleCookie({name: value})
    cookie[name].update({"path": "/", "samesite": "Lax"})
    cookie[name]["httponly"] = True
    if request.url.scheme == "https" or public.startswith("https:"):
        cookie[name]["secure"] = True
    if seconds is not None:
        cookie[name]["max-age"] = int(seconds)
    request.state.cookies[name] = cookie[name].OutputString()


def _network(request: Request) -> str:
    """Return who asks: an address, or the network of one that can have any of a network."""
    host = request.client.host if request.client else "nobody"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host
