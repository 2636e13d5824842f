"""What admins do: cameras, users, tokens, channels and settings; each is written down.

The actor is the name of who does it. Pages and the API call the same functions; whatever they
raise is one line for a person.
"""

import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import delete, func, inspect, select, update
from sqlalchemy.orm import Session

import habitus
from habitus.errors import InvalidInputError, VideoError
from habitus.site.pipe_messages import CameraState
from habitus.site.zones import Zone, check_zones
from habitus.web import channels, outbox, uploads
from habitus.web.answers import (
    LONGEST_NAME,
    CameraChanges,
    ChannelChanges,
    EventChanges,
    HttpError,
    NewBrowser,
    NewCamera,
    NewChannel,
    NewToken,
    NewTokenRequest,
    NewUser,
    Preferences,
    UserChanges,
    checked,
)
from habitus.web.channels import push
from habitus.web.database import (
    Base,
    CameraRow,
    Channel,
    EventRow,
    Login,
    Role,
    Setting,
    Token,
    User,
    searched,
)
from habitus.web.preferences import read_preferences, write_preferences, write_wall
from habitus.web.security import OWNER, PASSWORDS, Actor, digest, new_token
from habitus.web.server import Console
from habitus.web.server_settings import REMOVED
from habitus.web.store import latest_learning, write_audit

T = TypeVar("T", User, Token, Channel)

LEFT_OUT = "=***"
"""What an address that is shown has in place of a password."""
SEPARATE = {"address", "upload", "username", "password"}
"""What is given of a camera and is no column of its row."""


def add_camera(
    console: Console,
    actor: str,
    camera: NewCamera,
    *,
    camera_id: str | None = None,
    trusted: bool = False,
) -> CameraRow:
    """Add a camera, and have it watched.

    Its id is made from the name if None. Where it is trusted, as by who has the data folder, its
    address may be a file, or lead elsewhere.
    """
    if bool(camera.upload) == bool(camera.address):
        raise InvalidInputError("give either an address or a file", parameter="address")
    named = _columns(camera)
    check_zones([Zone.of(zone) for zone in named.get("zones", ())], None)
    options = named["options"] = _present(named.get("options", {}))
    if not camera.upload:
        source = with_user(camera.address or "", camera.username, camera.password)
        _check_source(console, source, camera.kind, options, trusted)
        shown = _shown(source)
    elif camera.kind == "stream":
        raise InvalidInputError("a file is a playback or a recording", parameter="kind")
    else:
        source = str(uploads.path_of(console.settings, camera.upload))
        shown = "a file that was uploaded"
    if not named.get("enabled", True):
        named["state"] = CameraState.OFF.value
    row = CameraRow(**named, kind=camera.kind, shown_address=shown)
    row.secret_address, row.created = console.vault.seal(source), time.time()
    row.since = row.created
    with console.database.transaction() as session:
        row.id = camera_id or _free_id(console, session, row.name)
        session.add(row)
        noted = {"address": shown, "kind": row.kind, "options": options}
        write_audit(session, actor, "camera added", row.id, name=row.name, **noted)
    _refresh(console, row.id)
    return row


def change_camera(
    console: Console, actor: str, camera_id: str, changes: CameraChanges, *, trusted: bool = False
) -> CameraRow:
    """Change a camera; it is watched on as it is then.

    What is None, and options that are not named, stay as they are; options that are None go.
    """
    values, address = _columns(changes), changes.address
    with console.database.transaction() as session:
        camera = camera_of(session, camera_id)
        size = (camera.width, camera.height) if camera.width and camera.height else None
        check_zones([Zone.of(zone) for zone in values.get("zones", ())], size)
        if camera.kind == "stream" and (changes.username or changes.password):
            stored = address or console.vault.open(camera.secret_address)
            address = with_user(stored, changes.username, changes.password)
        options = values["options"] = _present(camera.options | values.get("options", {}))
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


def _columns(camera: CameraChanges) -> dict[str, Any]:
    """Return what was named, as its row has it; null is what stays as it is."""
    named = camera.model_dump(mode="json", exclude_unset=True, exclude=SEPARATE | {"kind"})
    if camera.zones is not None:
        named["zones"] = [zone.model_dump(mode="json") for zone in camera.zones]
    return _present(named)


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _audit_changes(session: Session, actor: str, row: Base, kind: str, subject: str) -> None:
    """Write which columns of a row are others than before, if any."""
    columns = [column.key for column in inspect(row).attrs if column.history.has_changes()]
    changed = [name.removeprefix("secret_") for name in columns if not name.startswith("shown_")]
    if changed:
        write_audit(session, actor, f"{kind} changed", subject, changed=sorted(changed))


def with_user(address: str, username: str | None, password: str | None) -> str:
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
    user, secret = quote(username or "", safe="") or user, quote(password or "", safe="") or old
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
            raise HttpError(404, f"there is no behaviour {number} of this camera")
        others = {k: v for k, v in learning.names.items() if k != str(number)}
        if name:
            if name in others.values():
                raise HttpError(409, f"another behaviour is called {name!r}")
            others[str(number)] = name
        if others != learning.names:
            learning.names = others
            write_audit(session, actor, "behaviour named", camera_id, number=number, name=name)
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
        raise HttpError(503, "no cameras are watched now, so that none can be learnt")
    with console.database.transaction() as session:
        camera_of(session, camera_id)
        write_audit(session, actor, "learning asked for", camera_id)
    console.supervisor.learn_now(camera_id)


def camera_of(session: Session, camera_id: str) -> CameraRow:
    """Return a camera; raise `HttpError` if there is none."""
    camera = session.get(CameraRow, camera_id)
    if camera is None:
        raise HttpError(404, f"there is no camera {camera_id[:40]!r}")
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
        raise HttpError(403, "other_hosts can be set in cameras.toml only")
    if kind != "stream":
        uploaded = Path(address).parent == console.settings.uploads.resolve()
        if not (uploaded or options.get("local")):
            raise HttpError(403, "files are uploaded, or named in cameras.toml")
        return
    if LEFT_OUT in address:
        raise InvalidInputError(
            "the address has *** where a password was left out: write it there",
            parameter="address",
        )
    with suppress(VideoError):
        habitus.check_address(address, local=bool(options.get("local")))


def _refresh(console: Console, camera_id: str) -> None:
    """Have a change of a camera seen, by its process and by pages."""
    if console.supervisor is not None:
        console.supervisor.refresh()
    console.bulletin.publish("camera", camera=camera_id)


def snooze(console: Console, actor: str, camera_id: str, hours: float) -> float | None:
    """Send people nothing of a camera's events for some hours; return until when.

    0 ends it. Troubles are sent all the same, and programs everything.
    """
    until = time.time() + 3600 * hours if hours else None
    with console.database.transaction() as session:
        camera_of(session, camera_id)
        outbox.snooze(session, camera_id, until)
        write_audit(session, actor, "camera snoozed", camera_id, hours=hours)
    console.bulletin.publish("camera", camera=camera_id)
    return until


# Events.


def note_event(console: Console, actor: str, event_id: str, changes: EventChanges) -> None:
    """Write about an event, or mark it."""
    with console.database.transaction() as session:
        event = session.get(EventRow, event_id)
        if event is None:
            raise HttpError(404, f"there is no event {event_id[:40]!r}")
        if changes.note is not None and (note := changes.note.strip()) != event.note:
            event.note = note
            event.words = searched(event)
            write_audit(session, actor, "note written", event_id)
        if changes.starred is not None:
            event.starred = changes.starred


def star_events(console: Console, ids: Sequence[str], *, starred: bool) -> None:
    """Mark events, or take the mark away."""
    with console.database.transaction() as session:
        session.execute(update(EventRow).where(EventRow.id.in_(ids)).values(starred=starred))


# Users.


def give_password(console: Console, name: str, password: str, *, again: bool = True) -> None:
    """Set the password of an admin, who is made where there is none of that name.

    Unless `again`, one that was given last is not set again: the user may have another since.
    """
    hashed = PASSWORDS.hashed(password)
    name = checked(NewUser, {"name": name, "password": password}).name
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


def add_user(console: Console, actor: str, wanted: NewUser) -> User:
    """Add somebody who may log in; the first one must be an admin."""
    hashed = PASSWORDS.hashed(wanted.password)
    user = User(name=wanted.name, password=hashed, role=wanted.role, created=time.time())
    with console.database.transaction() as session:
        if session.scalar(select(User.id).where(User.name == user.name)) is not None:
            raise HttpError(409, f"there is a user {user.name} already")
        session.add(user)
        _check_admins(console, session)
        write_audit(session, actor, "user added", user.name, role=user.role)
    return user


def change_user(console: Console, actor: str, user_id: int, changes: UserChanges) -> User:
    """Change what somebody may do, or their password, which ends their logins."""
    hashed = None if changes.password is None else PASSWORDS.hashed(changes.password)
    with console.database.transaction() as session:
        user = _row(session, User, user_id)
        if hashed is not None:
            _set_password(session, user, hashed)
            write_audit(session, actor, "password set", user.name)
        if changes.role is not None and user.role != changes.role:
            user.role = changes.role
            _check_admins(console, session)
            write_audit(session, actor, "role changed", user.name, role=changes.role)
    return user


def _set_password(session: Session, user: User, hashed: str) -> None:
    user.password = hashed
    session.execute(delete(Login).where(Login.user_id == user.id))


def _check_admins(console: Console, session: Session) -> None:
    """Raise if nobody could administer the console any more."""
    session.flush()
    n_admins = session.scalar(select(func.count()).select_from(User).where(User.role == Role.ADMIN))
    n_users = session.scalar(select(func.count()).select_from(User))
    if not n_admins and (n_users or console.settings.is_exposed):
        raise HttpError(409, "there must be an admin: add or name another one first")


# Tokens of the API.


def add_token(console: Console, actor: str, wanted: NewTokenRequest) -> NewToken:
    """Make a token of the API."""
    secret = new_token()
    token = Token(**dict(wanted), digest=digest(secret), created=time.time())
    with console.database.transaction() as session:
        session.add(token)
        write_audit(session, actor, "token added", token.name, role=token.role)
    return NewToken(id=token.id, secret=secret)


# Channels and settings.


def add_channel(console: Console, actor: str, wanted: NewChannel) -> Channel:
    """Add a place where events are sent."""
    channel = Channel(
        name=wanted.name,
        kind=wanted.kind,
        shown_settings=channels.check(wanted.kind, wanted.settings),
        secret_settings=console.vault.seal(wanted.settings),
    )
    with console.database.transaction() as session:
        _set_limits(session, channel, wanted)
        session.add(channel)
        write_audit(session, actor, "channel added", channel.name, kind=channel.kind)
    return channel


def change_channel(
    console: Console, actor: str, channel_id: int, wanted: ChannelChanges
) -> Channel:
    """Change a channel.

    Settings that are not named stay as they are, as secrets are not shown to be sent again; those
    that are None are left out from then on.
    """
    with console.database.transaction() as session:
        channel = _row(session, Channel, channel_id)
        if wanted.settings:
            before = console.vault.open(channel.secret_settings)
            settings = _present({**before, **wanted.settings})
            if settings != before:
                channel.shown_settings = channels.check(channel.kind, settings)
                channel.secret_settings = console.vault.seal(settings)
        _set_limits(session, channel, wanted)
        _audit_changes(session, actor, channel, "channel", channel.name)
    return channel


LIMITS = {"quiet_from", "quiet_until", "most_per_hour"}
"""What null takes away from a channel; of all else, it leaves what there is."""


def _set_limits(session: Session, channel: Channel, wanted: ChannelChanges) -> None:
    """Set what was named of a channel's name, limits and cameras."""
    named = wanted.model_dump(include=LIMITS | {"name", "enabled"}, exclude_unset=True)
    for name, value in named.items():
        if value is not None or name in LIMITS:
            setattr(channel, name, value)
    outbox.check_quiet_hours(channel.quiet_from, channel.quiet_until)
    if wanted.cameras is None:
        return
    present = set(session.scalars(select(CameraRow.id).where(CameraRow.id.in_(wanted.cameras))))
    # Cameras that were removed since the page was loaded are not an error.
    channel.cameras = [camera for camera in dict.fromkeys(wanted.cameras) if camera in present]
    if wanted.cameras and not channel.cameras:
        raise InvalidInputError("none of these cameras exists", parameter="cameras")


def try_channel(console: Console, actor: str, channel_id: int) -> None:
    """Send a test message now; raise `DeliveryError` if it could not be."""
    with console.database.transaction() as session:
        channel = _row(session, Channel, channel_id)
        write_audit(session, actor, "channel tested", channel.name)
    channels.send_test(console, channel)


def add_device(console: Console, actor: Actor, device: NewBrowser) -> Channel:
    """Send a browser of somebody notifications, if it takes a test message.

    Only admins may name a push service of their own: what they subscribe is sent to any host.
    """
    if not (push.is_known(device.endpoint) or actor.may("admin")):
        raise HttpError(403, "not the address of a push service that is known")
    settings = {**device.model_dump(exclude={"name"}), "user": actor.user_id}
    values: dict[str, Any] = {"name": f"{actor.name}: {device.name}"[:LONGEST_NAME], "kind": "push"}
    channels.check("push", settings)
    channels.send_test(console, Channel(**values, secret_settings=console.vault.seal(settings)))
    wanted = checked(NewChannel, {**values, "settings": settings})
    remove_device(console, actor.name, device.endpoint)
    return add_channel(console, actor.name, wanted)


def remove_device(console: Console, actor: str, endpoint: str) -> None:
    """Send a browser nothing any more."""
    for channel in _devices(console, lambda settings: settings["endpoint"] == endpoint):
        remove(console, actor, Channel, channel)


def _devices(console: Console, wanted: Callable[[dict[str, Any]], bool]) -> list[int]:
    """Return the channels of browsers whose settings are wanted."""
    with console.database.session() as session:
        rows = session.scalars(select(Channel).where(Channel.kind == "push"))
        return [row.id for row in rows if wanted(console.vault.open(row.secret_settings))]


def change_preferences(console: Console, actor: str, changes: Preferences) -> Preferences:
    """Change those settings that are named."""
    with console.database.transaction() as session:
        before, after = read_preferences(session), write_preferences(session, changes)
        outbox.check_quiet_hours(after.quiet_from, after.quiet_until)
        changed = {name: value for name, value in after if value != getattr(before, name)}
        if changed:
            write_audit(session, actor, "settings changed", "settings", **changed)
    return after


def remove(console: Console, actor: str, kind: type[T], key: int) -> None:
    """Remove a user with logins and devices, a token, or a channel with what waits there."""
    devices: list[int] = []
    if kind is User:
        devices = _devices(console, lambda settings: settings.get("user") == key)
    with console.database.transaction() as session:
        row = _row(session, kind, key)
        session.execute(delete(Channel).where(Channel.id.in_(devices)))
        session.delete(row)
        if kind is User:
            _check_admins(console, session)
            write_wall(session, str(key), None)
        write_audit(session, actor, f"{kind.__name__.lower()} removed", row.name)


def _row(session: Session, kind: type[T], key: int) -> T:
    row = session.get(kind, key)
    if row is None:
        raise HttpError(404, f"there is no {kind.__name__.lower()} {key}")
    return row
