"""What admins do: cameras, users, tokens, channels and settings; each is written down.

The actor is the name of who does it. Pages and the API call the same functions; whatever they
raise is one line for a person.
"""

import json
import re
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError
from sqlalchemy import delete, func, inspect, select, update
from sqlalchemy.orm import Session

import habitus
from habitus.errors import InvalidInputError, VideoError
from habitus.site.pipe_messages import CameraState
from habitus.site.zones import Zone, check_zones
from habitus.web import channels, outbox, uploads
from habitus.web.answers import CameraChanges, CameraOptions, NewCamera, NewToken, ZoneSettings
from habitus.web.channels import push
from habitus.web.database import (
    NEW_CAMERA,
    Base,
    CameraRow,
    Channel,
    EventRow,
    Login,
    Setting,
    Token,
    User,
)
from habitus.web.http_errors import (
    ConflictError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
)
from habitus.web.preferences import (
    Preferences,
    read_preferences,
    write_preferences,
    write_wall,
)
from habitus.web.security import OWNER, PASSWORDS, Actor, Role, digest, new_token
from habitus.web.server import Console
from habitus.web.server_settings import REMOVED
from habitus.web.store import latest_learning, searched, write_audit

T = TypeVar("T", User, Token, Channel)
C = TypeVar("C", bound=CameraChanges)

LONGEST_NAME = 100
SEPARATE = {"upload", "kind", "username", "password"}
"""What is given of a camera and is no column of its row."""
MOST_SNOOZED = 168
"""Hours of a week."""
LIMITS = {
    "alerts_per_day": "from 0.01 to 1000",
    "learn_days": "from 1 to 365",
}
"""What values of a camera must be."""
ZONE_LIMITS = {
    "name": f"1 to {LONGEST_NAME} characters",
    "kind": "ignore, watch or own",
    "polygon": "3 to 200 corners [x, y] in pixels of the picture",
    "alerts_per_day": LIMITS["alerts_per_day"],
    "hours": "spans with a start and an end such as 22:00, and days such as mon",
}


def add_camera(
    console: Console,
    actor: str,
    *,
    camera_id: str | None = None,
    trusted: bool = False,
    **values: Any,
) -> CameraRow:
    """Add a camera, as `NewCamera` has it, and have it watched.

    Its id is made from the name if None. Where it is trusted, as by who has the data folder, its
    address may be a file, or lead elsewhere.
    """
    camera = checked_camera(NewCamera, values)
    if bool(camera.upload) == bool(camera.address):
        raise InvalidInputError("give either an address or a file", parameter="address")
    named = _named(camera)
    named.pop("address", None)
    row = CameraRow(**(NEW_CAMERA | named))
    check_zones([Zone.of(zone) for zone in row.zones], None)
    row.options = {name: value for name, value in row.options.items() if value is not None}
    source, row.shown_address = _known(camera.address or "", camera), "a file that was uploaded"
    if not camera.upload:
        _check_source(console, source, camera.kind, row.options, trusted)
        row.shown_address = _shown(source)
    elif camera.kind == "stream":
        raise InvalidInputError("a file is a playback or a recording", parameter="kind")
    else:
        source = str(uploads.path_of(console.settings, camera.upload))
    row.secret_address, row.kind = console.vault.seal(source), camera.kind
    row.created = row.since = time.time()
    if not row.enabled:
        row.state = CameraState.OFF.value
    with console.database.transaction() as session:
        row.id = camera_id or _free_id(console, session, row.name)
        session.add(row)
        noted = {"address": row.shown_address, "kind": row.kind, "options": row.options}
        write_audit(session, actor, "camera added", row.id, name=row.name, **noted)
    _refresh(console, row.id)
    return row


def change_camera(
    console: Console, actor: str, camera_id: str, *, trusted: bool = False, **changes: Any
) -> CameraRow:
    """Change a camera, as `CameraChanges` has it; it is watched on as it is then.

    What is None, and options that are not named, stay as they are; options that are None go.
    """
    changed = checked_camera(CameraChanges, changes)
    values = _named(changed)
    with console.database.transaction() as session:
        camera = camera_of(session, camera_id)
        size = (camera.width, camera.height) if camera.width and camera.height else None
        check_zones([Zone.of(zone) for zone in values.get("zones", ())], size)
        address = values.pop("address", None)
        if camera.kind == "stream" and (changed.username or changed.password):
            stored = address or console.vault.open(camera.secret_address)
            address = _known(stored, changed)
        options = {**camera.options, **values.pop("options", {})}
        options = values["options"] = {k: v for k, v in options.items() if v is not None}
        if address == "":
            raise InvalidInputError("an address must not be empty", parameter="address")
        if address is not None or (options != camera.options and camera.kind == "stream"):
            source = address or console.vault.open(camera.secret_address)
            _check_source(console, source, camera.kind, options, trusted)
        for name, value in values.items():
            setattr(camera, name, value)
        if address is not None:
            camera.secret_address = console.vault.seal(address)
            camera.shown_address = _shown(address)
        _audit_changes(session, actor, camera, "camera", camera_id)
    _refresh(console, camera_id)
    return camera


def checked_camera(kind: type[C], values: Mapping[str, Any], *, strict: bool = False) -> C:
    """Return values of a camera as their type has them; raise where one cannot be used.

    Where it is strict, texts are not taken for numbers, nor true for 1.
    """
    try:
        if strict:
            return kind.model_validate_json(json.dumps(values, default=str), strict=True)
        return kind.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        first = min(errors, key=lambda one: one["type"] != "extra_forbidden")  # a typing error
    except RecursionError:
        raise InvalidInputError("too deep to be a camera") from None
    place, *inner = map(str, first["loc"])
    if first["type"] == "missing":
        reason = f"a camera needs its {place}"
    elif first["type"] == "extra_forbidden":
        reason = f"a camera has no {place}, only {', '.join(kind.model_fields)}"
        if place == "options":
            reason = f"an option is one of {', '.join(CameraOptions.model_fields)}"
        elif place == "zones":
            reason = f"a zone has no {inner[-1]}, only {', '.join(ZoneSettings.model_fields)}"
        elif place in ("mask", "region"):
            reason = f"a camera has zones (ignore, watch, own) in place of {place}"
    elif first["type"].endswith("_type") and not inner:
        reason = f"{place} is of the wrong type"
    elif place == "zones" and len(inner) > 1 and inner[1] in ZONE_LIMITS:
        reason = f"zone {int(inner[0]) + 1}: {inner[1]} must be {ZONE_LIMITS[inner[1]]}"
    elif place in LIMITS:
        reason = f"{place} must be {LIMITS[place]}"
    else:
        said = first["msg"]
        reason = f"{'.'.join((place, *inner))}: {said[:1].lower()}{said[1:]}"
    raise InvalidInputError(reason, parameter=place)


def _audit_changes(session: Session, actor: str, row: Base, kind: str, subject: str) -> None:
    """Write which columns of a row are others than before, if any."""
    columns = [column.key for column in inspect(row).attrs if column.history.has_changes()]
    changed = [name.removeprefix("secret_") for name in columns if not name.startswith("shown_")]
    if changed:
        write_audit(session, actor, f"{kind} changed", subject, changed=sorted(changed))


def _named(camera: CameraChanges) -> dict[str, Any]:
    """Return what was named, as it is stored but for the source; null is what stays as it is."""
    named = camera.model_dump(mode="json", exclude_unset=True, exclude=SEPARATE)
    if "name" in named:
        named["name"] = checked_name(named["name"])
    if camera.zones is not None:
        zones = [zone.model_dump(mode="json") for zone in camera.zones]
        named["zones"] = [zone | {"name": checked_name(zone["name"])} for zone in zones]
    return {name: value for name, value in named.items() if value is not None}


def _known(address: str, camera: CameraChanges) -> str:
    """Return an address with the user and the password that were given beside it."""
    return with_user(address, camera.username or "", camera.password or "")


def with_user(address: str, username: str, password: str) -> str:
    """Return an address with user and password in it, encoded; of what is empty, what it had.

    >>> with_user("rtsp://10.0.4.11/main", "me", "p@ss/word")
    'rtsp://me:p%40ss%2Fword@10.0.4.11/main'
    >>> with_user("rtsp://me:old@10.0.4.11/main", "", "new")
    'rtsp://me:new@10.0.4.11/main'
    """
    scheme, separator, rest = address.partition("://")
    if not (username or password) or not separator:
        return address
    place, slash, path = rest.partition("/")
    before, _, host = place.rpartition("@")
    user, _, old = before.partition(":")
    user, secret = quote(username, safe="") or user, quote(password, safe="") or old
    return f"{scheme}://{user}{':' if secret else ''}{secret}@{host}{slash}{path}"


def name_behaviour(
    console: Console, actor: str, camera_id: str, number: int, name: str
) -> dict[int, str]:
    """Give a behaviour of a camera's model a name, or take it away; return all names.

    A new model is given the names of the behaviours that it has again.
    """
    with console.database.transaction() as session:
        learning = latest_learning(session, camera_of(session, camera_id))
        if learning is None or not 1 <= number <= MOST_BEHAVIOURS:
            raise NotFoundError(f"there is no behaviour {number} of this camera")
        others = {k: v for k, v in learning.names.items() if k != str(number)}
        if plain := checked_name(name) if name.strip() else "":
            if plain in others.values():
                raise ConflictError(f"another behaviour is called {plain!r}")
            others[str(number)] = plain
        if others != learning.names:
            learning.names = others
            write_audit(session, actor, "behaviour named", camera_id, number=number, name=plain)
    _refresh(console, camera_id)
    return {int(key): value for key, value in others.items()}


MOST_BEHAVIOURS = 1000


def remove_camera(console: Console, actor: str, camera_id: str) -> None:
    """Remove a camera with all its events."""
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
    """Have a camera's model learnt as soon as no other one is."""
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
        free
        for free in ids
        if session.get(CameraRow, free) is None
        and not console.settings.camera_folder(free).exists()
    )


def _shown(address: str) -> str:
    return habitus.redacted(address) if "://" in address else Path(address).name


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


def checked_name(name: str) -> str:
    """Return a name without spaces around it; raise if it is empty, long or cannot be shown."""
    plain = " ".join(name.split())
    if not 1 <= len(plain) <= LONGEST_NAME or not plain.isprintable():
        raise InvalidInputError(
            f"a name has 1 to {LONGEST_NAME} characters that can be shown", parameter="name"
        )
    return plain


def _refresh(console: Console, camera_id: str) -> None:
    """Have a change of a camera seen, by its process and by pages."""
    if console.supervisor is not None:
        console.supervisor.refresh()
    console.bulletin.publish("camera", camera=camera_id)


def snooze(console: Console, actor: str, camera_id: str, hours: float) -> float | None:
    """Send people nothing of a camera's events for some hours; return until when.

    0 ends it. Troubles are sent all the same, and programs everything.
    """
    if not 0 <= hours <= MOST_SNOOZED:
        raise InvalidInputError(f"hours must be from 0 to {MOST_SNOOZED}", parameter="hours")
    until = time.time() + 3600 * hours if hours else None
    with console.database.transaction() as session:
        camera_of(session, camera_id)
        outbox.snooze(session, camera_id, until)
        write_audit(session, actor, "camera snoozed", camera_id, hours=hours)
    console.bulletin.publish("camera", camera=camera_id)
    return until


# Events.


def note_event(
    console: Console,
    actor: str,
    event_id: str,
    *,
    note: str | None = None,
    starred: bool | None = None,
) -> None:
    """Write about an event, or mark it."""
    with console.database.transaction() as session:
        event = session.get(EventRow, event_id)
        if event is None:
            raise NotFoundError(f"there is no event {event_id[:40]!r}")
        if note is not None and note.strip() != event.note:
            event.note = note.strip()
            event.words = searched(event)
            write_audit(session, actor, "note written", event_id)
        if starred is not None:
            event.starred = starred


def star_events(console: Console, ids: Sequence[str], *, starred: bool) -> None:
    """Mark events, or take the mark away."""
    with console.database.transaction() as session:
        session.execute(update(EventRow).where(EventRow.id.in_(ids)).values(starred=starred))


# Users.


def give_password(console: Console, name: str, password: str, *, again: bool = True) -> None:
    """Set the password of an admin, who is made where there is none of that name.

    Unless `again`, one that was given last is not set again: the user may have another since.
    """
    hashed, name = PASSWORDS.hashed(password), checked_name(name)
    mark = Setting(
        key=f"password/{name}", value={"mark": console.vault.sign(f"password {name} {password}")}
    )
    with console.database.transaction() as session:
        user = session.scalar(select(User).where(User.name == name))
        before = session.get(Setting, mark.key)
        if user is not None and before is not None and before.value == mark.value and not again:
            return
        session.merge(mark)
        if user is None:
            session.add(User(name=name, password=hashed, role=Role.ADMIN, created=time.time()))
        else:
            user.role = Role.ADMIN
            _set_password(session, user, hashed)
        write_audit(session, OWNER, "password set", name)


def add_user(console: Console, actor: str, name: str, password: str, role: str) -> User:
    """Add somebody who may log in; the first one must be an admin."""
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
        user = _row(session, User, user_id)
        if hashed is not None:
            _set_password(session, user, hashed)
            write_audit(session, actor, "password set", user.name)
        if role is not None and user.role != _role(role):
            user.role = role
            _check_admins(console, session)
            write_audit(session, actor, "role changed", user.name, role=role)
    return user


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


# Channels and settings.


def add_channel(
    console: Console, actor: str, *, name: str, kind: str, settings: dict[str, Any], **limits: Any
) -> Channel:
    """Add a place where events are sent: settings as `channels.check` takes them, and limits.

    Limits are cameras (all if empty), enabled, quiet_from, quiet_until and most_per_hour.
    """
    channel = Channel(
        name=checked_name(name),
        kind=kind,
        shown_settings=channels.check(kind, settings),
        secret_settings=console.vault.seal(settings),
        cameras=[],
        enabled=True,
    )
    with console.database.transaction() as session:
        _set_limits(session, channel, limits)
        session.add(channel)
        write_audit(session, actor, "channel added", channel.name, kind=kind)
    return channel


def change_channel(console: Console, actor: str, channel_id: int, **changes: Any) -> Channel:
    """Change a channel: its name, settings, and limits as of `add_channel`.

    Settings that are not named stay as they are, as secrets are not shown to be sent again; those
    that are None are left out from then on.
    """
    with console.database.transaction() as session:
        channel = _row(session, Channel, channel_id)
        if named := changes.pop("settings", None):
            before = console.vault.open(channel.secret_settings)
            settings = {k: v for k, v in {**before, **named}.items() if v is not None}
            if settings != before:
                channel.shown_settings = channels.check(channel.kind, settings)
                channel.secret_settings = console.vault.seal(settings)
        if "name" in changes:
            channel.name = checked_name(changes.pop("name"))
        _set_limits(session, channel, changes)
        _audit_changes(session, actor, channel, "channel", channel.name)
    return channel


def _set_limits(session: Session, channel: Channel, limits: dict[str, Any]) -> None:
    """Set some of a channel's limits, and its cameras."""
    unknown = limits.keys() - {"cameras", "enabled", "quiet_from", "quiet_until", "most_per_hour"}
    if unknown:
        raise InvalidInputError(f"a channel has no {', '.join(sorted(unknown))}")
    cameras = limits.pop("cameras", None)
    for name, value in limits.items():
        setattr(channel, name, value if name == "enabled" else value or None)
    outbox.check_limits(channel.quiet_from, channel.quiet_until, channel.most_per_hour)
    if cameras is None:
        return
    present = set(session.scalars(select(CameraRow.id).where(CameraRow.id.in_(cameras))))
    # Cameras that were removed since the page was loaded are not an error.
    channel.cameras = [camera for camera in dict.fromkeys(cameras) if camera in present]
    if cameras and not channel.cameras:
        raise InvalidInputError("none of these cameras exists", parameter="cameras")


def try_channel(console: Console, actor: str, channel_id: int) -> None:
    """Send a test message now; raise `DeliveryError` if it could not be."""
    with console.database.transaction() as session:
        channel = _row(session, Channel, channel_id)
        write_audit(session, actor, "channel tested", channel.name)
    channels.send_test(console, channel)


def add_device(
    console: Console, actor: Actor, *, name: str, endpoint: str, p256dh: str, auth: str
) -> Channel:
    """Send a browser of somebody notifications, if it takes a test message.

    Only admins may name a push service of their own: what they subscribe is sent to any host.
    """
    if not (push.is_known(endpoint) or actor.may("admin")):
        raise NotAllowedError("not the address of a push service that is known")
    settings = {"endpoint": endpoint, "p256dh": p256dh, "auth": auth, "user": actor.user_id}
    for before in _devices(console, lambda known: known["endpoint"] == endpoint):
        remove(console, actor.name, Channel, before)
    values: dict[str, Any] = {"name": f"{actor.name}: {name}"[:LONGEST_NAME], "kind": "push"}
    channels.check("push", settings)
    channels.send_test(console, Channel(**values, secret_settings=console.vault.seal(settings)))
    return add_channel(console, actor.name, settings=settings, **values)


def remove_device(console: Console, actor: str, endpoint: str) -> None:
    """Send a browser nothing any more."""
    for channel in _devices(console, lambda known: known["endpoint"] == endpoint):
        remove(console, actor, Channel, channel)


def _devices(console: Console, wanted: Callable[[dict[str, Any]], bool]) -> list[int]:
    """Return the channels of browsers whose settings are wanted."""
    with console.database.session() as session:
        rows = session.scalars(select(Channel).where(Channel.kind == "push"))
        return [row.id for row in rows if wanted(console.vault.open(row.secret_settings))]


def change_preferences(console: Console, actor: str, **changes: Any) -> Preferences:
    """Change settings, as `Preferences` has them."""
    unknown = changes.keys() - {field.name for field in fields(Preferences)}
    if unknown:
        raise InvalidInputError(f"there is no setting {', '.join(sorted(unknown))}")
    for name in ("quiet_from", "quiet_until"):
        if name in changes:
            changes[name] = changes[name] or None
    with console.database.transaction() as session:
        before, after = read_preferences(session), write_preferences(session, changes)
        outbox.check_limits(after.quiet_from, after.quiet_until, None)
        changed = {k: v for k, v in asdict(after).items() if v != getattr(before, k)}
        if changed:
            write_audit(session, actor, "settings changed", "settings", **changed)
    return after


def remove(console: Console, actor: str, kind: type[T], key: int) -> None:
    """Remove a user with logins and devices, a token, or a channel with what waits there."""
    own: list[int] = []
    if kind is User:
        own = _devices(console, lambda known: known.get("user") == key)
    with console.database.transaction() as session:
        row = _row(session, kind, key)
        session.execute(delete(Channel).where(Channel.id.in_(own)))
        session.delete(row)
        if kind is User:
            _check_admins(console, session)
            write_wall(session, str(key), None)
        write_audit(session, actor, f"{kind.__name__.lower()} removed", row.name)


def _row(session: Session, kind: type[T], key: int) -> T:
    row = session.get(kind, key)
    if row is None:
        raise NotFoundError(f"there is no {kind.__name__.lower()} {key}")
    return row
