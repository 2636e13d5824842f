"""What admins do: cameras, users, tokens, channels and settings; each is written down.

The actor is the name of who does it. Pages and the API call the same functions; whatever they
raise is one line for a person.
"""

import math
import re
import time
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

import habitus
from habitus.errors import InvalidInputError, VideoError
from habitus.site.pipe_messages import CameraState
from habitus.web import channels, outbox, uploads
from habitus.web.answers import NewToken
from habitus.web.database import CameraRow, Channel, Login, Token, User
from habitus.web.http_errors import (
    ConflictError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
)
from habitus.web.preferences import Preferences, read_preferences, write_preferences
from habitus.web.security import OWNER, PASSWORDS, Role, digest, new_token
from habitus.web.server import Console
from habitus.web.server_settings import REMOVED
from habitus.web.store import write_audit

T = TypeVar("T", User, Token, Channel)

LONGEST_NAME = 100
MOST_ALERTS, MOST_DAYS = 1000.0, 365
MOST_POLYGONS, MOST_CORNERS, MOST_PIXELS = 50, 200, 65_536
KINDS = ("stream", "playback", "recording")
OPTIONS: dict[str, tuple[type, ...]] = {
    "fps": (int, float),
    "fast": (bool,),
    "local": (bool,),
    "other_hosts": (bool,),
    "patience": (int, float),
    "speed": (int, float),
    "starts": (int, float),
}
"""Options of reading, and their types."""
MOST_OPTION = 1e11
"""Largest number of an option: a time within some thousand years."""
CAMERA_FIELDS = frozenset(
    ["name", "address", "alerts_per_day", "learn_days", "mask", "region", "enabled", "options"]
)
"""What can be changed of a camera."""


def add_camera(
    console: Console,
    actor: str,
    *,
    name: str,
    address: str | None = None,
    upload: str | None = None,
    kind: str = "stream",
    alerts_per_day: float = 5.0,
    learn_days: int = 7,
    mask: Sequence[Any] = (),
    region: Sequence[Any] = (),
    enabled: bool = True,
    options: dict[str, Any] | None = None,
    camera_id: str | None = None,
    trusted: bool = False,
) -> CameraRow:
    """Add a camera, and have it watched.

    Parameters
    ----------
    console, actor
        Where, and by whom.
    name
        For people.
    address
        Of a stream, with credentials. A file only where it is trusted, or `local` is allowed.
    upload
        Id of a file that was uploaded, in place of an address.
    kind
        stream, playback (a file that plays again and again) or recording (judged at once).
    alerts_per_day
        The alert budget.
    learn_days
        Days of footage to learn from each night.
    mask, region
        What not to watch, and what alone to watch: polygons of [x, y] in pixels of the picture.
    enabled
        Whether it is watched.
    options
        Of reading, as in `OPTIONS`.
    camera_id
        Its id; made from the name if None.
    trusted
        Whether whoever has the data folder says so, who may also let an address lead elsewhere.

    Raises
    ------
    InvalidInputError
        Names the value that cannot be used.
    NotFoundError
        If there is no such upload.
    """
    source = _source(console, address, upload, kind)
    values = _checked_camera(
        {
            "name": name,
            "alerts_per_day": alerts_per_day,
            "learn_days": learn_days,
            "mask": mask,
            "region": region,
            "enabled": enabled,
            "options": {k: v for k, v in (options or {}).items() if v is not None},
        }
    )
    if upload is None:
        _check_source(console, source, kind, values["options"], trusted)
    now = time.time()
    with console.database.transaction() as session:
        camera = CameraRow(
            id=camera_id or _free_id(console, session, values["name"]),
            kind=kind,
            secret_address=console.vault.seal(source),
            shown_address="a file that was uploaded" if upload else _shown(source),
            created=now,
            width=None,
            height=None,
            state=CameraState.CONNECTING,
            since=now,
            reason="",
            model=None,
            **values,
        )
        session.add(camera)
        write_audit(session, actor, "camera added", camera.id, name=camera.name, **_noted(camera))
    _refresh(console, camera.id)
    return camera


def change_camera(
    console: Console, actor: str, camera_id: str, *, trusted: bool = False, **changes: Any
) -> CameraRow:
    """Change a camera; it is watched on as it is then.

    Parameters
    ----------
    console, actor
        Where, and by whom.
    camera_id
        Which.
    trusted
        As of `add_camera`.
    **changes
        Some of `CAMERA_FIELDS`. Options that are not named stay as they are.

    Raises
    ------
    InvalidInputError
        Names the value that cannot be used.
    NotFoundError
        If there is no such camera.
    """
    unknown = changes.keys() - CAMERA_FIELDS
    if unknown:
        raise InvalidInputError(f"a camera has no {', '.join(sorted(unknown))}")
    with console.database.transaction() as session:
        camera = camera_of(session, camera_id)
        address = changes.pop("address", None)
        values = _checked_camera(changes)
        if "options" in values:
            whole = {**camera.options, **values["options"]}
            values["options"] = {name: value for name, value in whole.items() if value is not None}
        options = values.get("options", camera.options)
        if address is not None or options != camera.options:
            if address == "":
                raise InvalidInputError("an address must not be empty", parameter="address")
            known = address or console.vault.open(camera.secret_address)
            if address is not None or camera.kind == "stream":
                _check_source(console, known, camera.kind, options, trusted)
        if address is not None:
            camera.secret_address = console.vault.seal(address)
            camera.shown_address = _shown(address)
        changed = {name for name, value in values.items() if getattr(camera, name) != value}
        for name, value in values.items():
            setattr(camera, name, value)
        if address is not None:
            changed.add("address")
        if changed:
            write_audit(session, actor, "camera changed", camera_id, changed=sorted(changed))
    _refresh(console, camera_id)
    return camera


def remove_camera(console: Console, actor: str, camera_id: str) -> None:
    """Remove a camera with all its events.

    Raises
    ------
    NotFoundError
        If there is no such camera.
    """
    with console.database.transaction() as session:
        camera = camera_of(session, camera_id)
        write_audit(session, actor, "camera removed", camera_id, name=camera.name)
        with suppress(OSError):  # no folder yet, or a full disk; the supervisor deletes it anyway
            (console.settings.camera_folder(camera_id) / REMOVED).touch()
        session.execute(delete(CameraRow).where(CameraRow.id == camera_id))
    if console.supervisor is not None:
        console.supervisor.remove(camera_id)
    console.bulletin.publish("camera", camera=camera_id, state="removed")


def learn_now(console: Console, actor: str, camera_id: str) -> None:
    """Have a camera's model learnt as soon as no other one is.

    Raises
    ------
    NotFoundError
        If there is no such camera.
    UnavailableError
        If no cameras are watched now.
    """
    if console.supervisor is None:
        raise UnavailableError("no cameras are watched now, so that none can be learnt")
    with console.database.transaction() as session:
        camera_of(session, camera_id)
        write_audit(session, actor, "learning asked for", camera_id)
    console.supervisor.learn_now(camera_id)


def camera_of(session: Session, camera_id: str) -> CameraRow:
    """Return a camera; raise `NotFoundError` if there is none."""
    camera = session.get(CameraRow, camera_id)
    if camera is None:
        raise NotFoundError(f"there is no camera {camera_id[:40]!r}")
    return camera


def slug(name: str) -> str:
    """Return a name in lower-case letters, digits and hyphens.

    Examples
    --------
    >>> slug("Haupteingang / Süd"), slug("../../etc"), slug("正門")
    ('haupteingang-sud', 'etc', 'camera')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "camera"


def _free_id(console: Console, session: Session, name: str) -> str:
    """Return the id for a name; with a number, if another camera has it, or something is left."""
    start = slug(name)
    ids = (start if n == 1 else f"{start}-{n}" for n in count(1))
    return next(
        found
        for found in ids
        if session.get(CameraRow, found) is None
        and not console.settings.camera_folder(found).exists()
    )


def _noted(camera: CameraRow) -> dict[str, Any]:
    return {"address": camera.shown_address, "kind": camera.kind, "options": camera.options}


def _shown(address: str) -> str:
    return habitus.redacted(address) if "://" in address else Path(address).name


def _source(console: Console, address: str | None, upload: str | None, kind: str) -> str:
    """Return where a new camera's video comes from."""
    if kind not in KINDS:
        raise InvalidInputError(
            f"a camera is of the kind {', '.join(KINDS)}, found {kind[:40]!r}", parameter="kind"
        )
    if bool(upload) == bool(address):
        raise InvalidInputError("give either an address or a file", parameter="address")
    if not upload:
        return address or ""
    if kind == "stream":
        raise InvalidInputError("a file is a playback or a recording", parameter="kind")
    return str(uploads.path_of(console.settings, upload))


def _check_source(
    console: Console, address: str, kind: str, options: dict[str, Any], trusted: bool
) -> None:
    """Raise unless a camera may have an address; a host that is not known now is waited for."""
    if trusted:
        return
    if options.get("other_hosts"):
        raise NotAllowedError("other_hosts can be set in cameras.toml only")
    if kind != "stream":
        uploaded = Path(address).parent == console.settings.uploads.resolve()
        if not (uploaded or options.get("local")):
            raise NotAllowedError("files are uploaded, or named in cameras.toml")
        return
    with suppress(VideoError):
        habitus.check_address(address, local=bool(options.get("local")))


def _checked_camera(values: dict[str, Any]) -> dict[str, Any]:
    """Return values of a camera as they are stored; raise where one cannot be used."""
    found = dict(values)
    if "name" in found:
        found["name"] = checked_name(found["name"])
    if "alerts_per_day" in found:
        found["alerts_per_day"] = _between("alerts_per_day", found, 0.01, MOST_ALERTS)
    if "learn_days" in found:
        found["learn_days"] = int(_between("learn_days", found, 1, MOST_DAYS))
    for name in ("mask", "region"):
        if name in found:
            found[name] = _checked_polygons(name, found[name])
    if "options" in found:
        found["options"] = _checked_options(found["options"])
    return found


def checked_name(name: str) -> str:
    """Return a name without spaces around it; raise if it is empty, long or cannot be shown."""
    found = " ".join(name.split())
    if not 1 <= len(found) <= LONGEST_NAME or not found.isprintable():
        raise InvalidInputError(
            f"a name has 1 to {LONGEST_NAME} characters that can be shown", parameter="name"
        )
    return found


def _between(name: str, values: dict[str, Any], least: float, most: float) -> float:
    value = float(values[name])
    if not least <= value <= most:
        raise InvalidInputError(
            f"{name} must be from {least:g} to {most:g}, found {value:g}", parameter=name
        )
    return value


def _checked_polygons(name: str, polygons: Iterable[Any]) -> list[list[list[float]]]:
    try:
        found = [[[float(x), float(y)] for x, y in polygon] for polygon in polygons]
    except (TypeError, ValueError):
        found = [[]]
    fits = len(found) <= MOST_POLYGONS and all(
        3 <= len(polygon) <= MOST_CORNERS for polygon in found
    )
    numbers = (value for polygon in found for corner in polygon for value in corner)
    if not fits or not all(math.isfinite(v) and -MOST_PIXELS <= v <= MOST_PIXELS for v in numbers):
        raise InvalidInputError(
            f"{name} must be at most {MOST_POLYGONS} polygons of 3 to {MOST_CORNERS} corners in "
            "pixels of the picture",
            parameter=name,
        )
    return found


def _checked_options(options: dict[str, Any]) -> dict[str, Any]:
    for name, value in options.items():
        kinds = OPTIONS.get(name)
        if kinds is None:
            raise InvalidInputError(
                f"an option is one of {', '.join(OPTIONS)}, found {name[:40]!r}",
                parameter="options",
            )
        is_flag = isinstance(value, bool)
        fits = isinstance(value, kinds) and is_flag == (bool in kinds)
        if value is not None and not (fits and (is_flag or 0 < value <= MOST_OPTION)):
            wanted = "true or false" if bool in kinds else f"above 0 and at most {MOST_OPTION:g}"
            raise InvalidInputError(f"the option {name} must be {wanted}", parameter="options")
    return options


def _refresh(console: Console, camera_id: str) -> None:
    """Have a change of a camera seen, by its process and by pages."""
    if console.supervisor is not None:
        console.supervisor.refresh()
    console.bulletin.publish("camera", camera=camera_id)


# Users.


def give_password(console: Console, name: str, password: str) -> None:
    """Set the password of an admin, who is made where there is none of that name."""
    hashed, name = PASSWORDS.hashed(password), checked_name(name)
    with console.database.transaction() as session:
        user = session.scalar(select(User).where(User.name == name))
        if user is None:
            session.add(User(name=name, password=hashed, role=Role.ADMIN, created=time.time()))
        else:
            user.role = Role.ADMIN
            _set_password(session, user, hashed)
        write_audit(session, OWNER, "password set", name)


def add_user(console: Console, actor: str, name: str, password: str, role: str) -> User:
    """Add somebody who may log in; the first one must be an admin.

    Raises
    ------
    InvalidInputError
        If the password is too short, or there is no such role.
    ConflictError
        If there is one of that name.
    """
    name, wanted = checked_name(name), _role(role)
    hashed = PASSWORDS.hashed(password)
    with console.database.transaction() as session:
        if session.scalar(select(User.id).where(User.name == name)) is not None:
            raise ConflictError(f"there is a user {name} already")
        user = User(name=name, password=hashed, role=wanted, created=time.time())
        session.add(user)
        _check_admins(console, session)
        write_audit(session, actor, "user added", name, role=wanted)
    return user


def change_user(
    console: Console,
    actor: str,
    user_id: int,
    *,
    password: str | None = None,
    role: str | None = None,
) -> User:
    """Change what somebody may do, or their password, which ends their logins."""
    hashed = None if password is None else PASSWORDS.hashed(password)
    with console.database.transaction() as session:
        user = _found(session, User, user_id)
        if hashed is not None:
            _set_password(session, user, hashed)
            write_audit(session, actor, "password set", user.name)
        if role is not None:
            user.role = _role(role)
            _check_admins(console, session)
            write_audit(session, actor, "role changed", user.name, role=role)
    return user


def remove_user(console: Console, actor: str, user_id: int) -> None:
    """Remove a user, and end their logins."""
    with console.database.transaction() as session:
        user = _found(session, User, user_id)
        session.delete(user)
        _check_admins(console, session)
        write_audit(session, actor, "user removed", user.name)


def _set_password(session: Session, user: User, hashed: str) -> None:
    user.password = hashed
    session.execute(delete(Login).where(Login.user_id == user.id))


def _role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InvalidInputError(
            f"a role is one of {', '.join(Role)}, found {role[:40]!r}", parameter="role"
        ) from None


def _check_admins(console: Console, session: Session) -> None:
    """Raise if nobody could administer the console any more."""
    session.flush()
    n_admins = session.scalar(select(func.count()).select_from(User).where(User.role == Role.ADMIN))
    n_users = session.scalar(select(func.count()).select_from(User))
    if not n_admins and (n_users or console.settings.is_exposed):
        raise ConflictError("there must be an admin: add or name another one first")


# Tokens of the API.


def add_token(console: Console, actor: str, name: str, role: str) -> NewToken:
    """Make a token of the API."""
    secret = new_token()
    token = Token(
        name=checked_name(name),
        digest=digest(secret),
        role=_role(role),
        created=time.time(),
        last_used=None,
    )
    with console.database.transaction() as session:
        session.add(token)
        write_audit(session, actor, "token added", token.name, role=role)
    return NewToken(id=token.id, secret=secret)


def remove_token(console: Console, actor: str, token_id: int) -> None:
    """Withdraw a token."""
    with console.database.transaction() as session:
        token = _found(session, Token, token_id)
        session.delete(token)
        write_audit(session, actor, "token removed", token.name)


# Channels and settings.


def add_channel(
    console: Console,
    actor: str,
    *,
    name: str,
    kind: str,
    settings: dict[str, Any],
    cameras: Sequence[str] = (),
    enabled: bool = True,
    quiet_from: str | None = None,
    quiet_until: str | None = None,
    most_per_hour: int | None = None,
) -> Channel:
    """Add a place where events are told.

    Parameters
    ----------
    console, actor
        Where, and by whom.
    name
        For people.
    kind, settings
        As `channels.check` takes them.
    cameras
        Ids; all cameras if empty.
    enabled
        Whether it is told anything.
    quiet_from, quiet_until, most_per_hour
        As `outbox.check_limits` takes them.
    """
    channel = Channel(
        name=checked_name(name),
        kind=kind,
        shown_settings=channels.check(kind, settings),
        secret_settings=console.vault.seal(settings),
        cameras=[],
        enabled=enabled,
        quiet_from=quiet_from or None,
        quiet_until=quiet_until or None,
        most_per_hour=most_per_hour,
    )
    with console.database.transaction() as session:
        _set_limits(session, channel, cameras)
        session.add(channel)
        write_audit(session, actor, "channel added", channel.name, kind=kind)
    return channel


CHANNEL_FIELDS = frozenset(
    ["name", "settings", "cameras", "enabled", "quiet_from", "quiet_until", "most_per_hour"]
)
"""What can be changed of a channel."""


def change_channel(console: Console, actor: str, channel_id: int, **changes: Any) -> Channel:
    """Change a channel: some of `CHANNEL_FIELDS`.

    Settings that are not named stay as they are, as secrets are not shown to be sent again; those
    that are None are left out from then on.
    """
    unknown = changes.keys() - CHANNEL_FIELDS
    if unknown:
        raise InvalidInputError(f"a channel has no {', '.join(sorted(unknown))}")
    with console.database.transaction() as session:
        channel = _found(session, Channel, channel_id)
        if (given := changes.get("settings")) is not None:
            whole = {**console.vault.open(channel.secret_settings), **given}
            settings = {name: value for name, value in whole.items() if value is not None}
            channel.shown_settings = channels.check(channel.kind, settings)
            channel.secret_settings = console.vault.seal(settings)
        if "name" in changes:
            channel.name = checked_name(changes["name"])
        for name in ("enabled", "quiet_from", "quiet_until", "most_per_hour"):
            if name in changes:
                setattr(
                    channel, name, changes[name] if name == "enabled" else changes[name] or None
                )
        _set_limits(session, channel, changes.get("cameras"))
        write_audit(session, actor, "channel changed", channel.name, changed=sorted(changes))
    return channel


def remove_channel(console: Console, actor: str, channel_id: int) -> None:
    """Remove a channel, with what waits to be told there."""
    with console.database.transaction() as session:
        channel = _found(session, Channel, channel_id)
        session.delete(channel)
        write_audit(session, actor, "channel removed", channel.name)


def try_channel(console: Console, actor: str, channel_id: int) -> None:
    """Tell a test message now.

    Raises
    ------
    DeliveryError
        Says in one line why it could not be told.
    """
    with console.database.transaction() as session:
        channel = _found(session, Channel, channel_id)
        write_audit(session, actor, "channel tested", channel.name)
    channels.send_test(console, channel)


def _set_limits(session: Session, channel: Channel, cameras: Sequence[str] | None) -> None:
    """Check the limits of a channel, and set its cameras; where None, they stay."""
    outbox.check_limits(channel.quiet_from, channel.quiet_until, channel.most_per_hour)
    if cameras is None:
        return
    known = set(session.scalars(select(CameraRow.id).where(CameraRow.id.in_(cameras))))
    # Cameras that were removed since the page was loaded are not an error.
    channel.cameras = [camera for camera in dict.fromkeys(cameras) if camera in known]
    if cameras and not channel.cameras:
        raise InvalidInputError("none of these cameras exists", parameter="cameras")


def preferences(console: Console) -> Preferences:
    """Return the settings as they are now."""
    with console.database.session() as session:
        return read_preferences(session)


def change_preferences(console: Console, actor: str, **changes: Any) -> Preferences:
    """Change settings, as `Preferences` has them."""
    unknown = changes.keys() - {field.name for field in fields(Preferences)}
    if unknown:
        raise InvalidInputError(f"there is no setting {', '.join(sorted(unknown))}")
    for name in ("quiet_from", "quiet_until"):
        if name in changes:
            changes[name] = changes[name] or None
    with console.database.transaction() as session:
        changed = write_preferences(session, changes)
        outbox.check_limits(changed.quiet_from, changed.quiet_until, None)
        write_audit(session, actor, "settings changed", "settings", **changes)
    return changed


def _found(session: Session, kind: type[T], key: int) -> T:
    found = session.get(kind, key)
    if found is None:
        raise NotFoundError(f"there is no {kind.__name__.lower()} {key}")
    return found
