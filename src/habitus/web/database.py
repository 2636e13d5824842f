"""Tables of the console, on SQLite or PostgreSQL.

All times are seconds since the epoch. `migrations` brings a database of any version to these
tables; a change here needs a migration there.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import (
    JSON,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    UniqueConstraint,
    create_engine,
    event,
)
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.hybrid import hybrid_property
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    defer,
    mapped_column,
    relationship,
    sessionmaker,
)

import habitus
from habitus.errors import FileError
from habitus.rarity import unusualness
from habitus.web.server_settings import ServerSettings

T = TypeVar("T")
P = ParamSpec("P")

# Threads of the server that may use it at once, beside ten connections that are kept.
MOST_THREADS = 40
# Seconds that a writer waits for another one (SQLite).
PATIENCE = 10.0
# Columns that are what an event says of itself.
OF_EVENT = (
    *("alarm", "zone", "quiet", "normality", "threshold", "probability", "rarity", "cue"),
    *("explanation", "behaviour"),
)
# What events are filtered by.
FILTERED = (
    *("review", "silenced_by", "cue", "at_half", "unusual", "hour", "end", "starred"),
    *("zone", "quiet"),
)


class Base(DeclarativeBase):
    """Common base of all tables; names of constraints are fixed, so that migrations know them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar = {
        dict[str, Any]: JSON,
        list[Any]: JSON,
        bytes: LargeBinary,
        float: Double,
    }


class Role(StrEnum):
    """What somebody may do; each may do all that those before it may."""

    VIEWER = "viewer"
    """Sees everything but users, tokens, channels and settings."""
    REVIEWER = "reviewer"
    """Says what was normal."""
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """Return whether this role may do what another one may.

        >>> Role.ADMIN.includes(Role.VIEWER), Role.VIEWER.includes(Role.REVIEWER)
        (True, False)
        """
        order = list(Role)
        return order.index(self) >= order.index(other)


class Setting(Base):
    """A setting of the console, such as the disk quota."""

    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[dict[str, Any]]


class User(Base):
    """A person who may log in."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    password: Mapped[str]
    """Its hash, by argon2."""
    role: Mapped[str]
    """viewer, reviewer or admin."""
    created: Mapped[float]


class Login(Base):
    """A browser that is logged in."""

    __tablename__ = "logins"

    digest: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the cookie."""
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    csrf: Mapped[str]
    created: Mapped[float]
    expires: Mapped[float]


class Token(Base):
    """A token of the API."""

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    created: Mapped[float]
    last_used: Mapped[float | None]


class AuditEntry(Base):
    """Who did what."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float] = mapped_column(index=True)
    actor: Mapped[str]
    """Name of the user or token; "the machine's owner" where no password is set."""
    action: Mapped[str]
    """Such as "camera added" or "event reviewed"."""
    subject: Mapped[str]
    details: Mapped[dict[str, Any]]


class CameraRow(Base):
    """A camera, and how it is watched."""

    __tablename__ = "cameras"

    id: Mapped[str] = mapped_column(primary_key=True)
    """Lower-case letters, digits and hyphens; also the name of its folder."""
    name: Mapped[str]
    kind: Mapped[str]
    """stream (an address), playback (a file that plays again and again) or recording (a file that
    is judged at once)."""
    secret_address: Mapped[bytes]
    """Address with its credentials, encrypted; see `vault`."""
    shown_address: Mapped[str]
    """The address without credentials."""
    alerts_per_day: Mapped[float] = mapped_column(default=habitus.AlertSettings.BUDGET)
    learn_days: Mapped[int] = mapped_column(default=7)
    """Number of days of footage to learn from each night."""
    zones: Mapped[list[Any]] = mapped_column(default=list)
    """Named parts of its picture, as `answers.ZoneSettings` has them; see `habitus.site.zones`."""
    options: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Of reading: fps, fast, other_hosts, local (may reach this machine and its files), and the
    time zone of its zones' hours."""
    enabled: Mapped[bool] = mapped_column(default=True)
    created: Mapped[float]
    width: Mapped[int | None]
    """Of the camera's picture, once it is known."""
    height: Mapped[int | None]
    state: Mapped[str] = mapped_column(default="connecting")
    """connecting, learning, watching, lost, frozen, covered, moved, slow, off, refused, ended."""
    since: Mapped[float]
    """When that state began."""
    reason: Mapped[str] = mapped_column(default="")
    """One line for a person; may be empty."""
    model: Mapped[str | None]
    """Name of the model file in its folder, if there is one."""
    alarms_today = to_review = 0
    """As `queries.wall` counts them; no columns."""

    @hybrid_property
    def has_start(self) -> bool:
        """Whether it is known when its recording starts."""
        return self.options.get("starts") is not None

    @has_start.inplace.expression
    @classmethod
    def _has_start(cls) -> ColumnElement[bool]:
        known: ColumnElement[bool] = cls.options["starts"].as_float().is_not(None)
        return known

    @property
    def dated(self) -> bool:
        """False for a recording of which nobody knows when it was."""
        return self.kind != "recording" or self.has_start


class EventRow(Base):
    """An event with its place in a site and what people say of it.

    `details` is the event, whole. Lists are found by columns, and shown from columns alone.
    """

    __tablename__ = "events"
    # Lists are filtered within an index, so that only the rows that are shown are read.
    __table_args__ = (
        Index("ix_events_start", "start", "id", *FILTERED, "camera_id"),
        Index("ix_events_alarm_start", "alarm", "start", "id", *FILTERED, "camera_id"),
        Index("ix_events_camera_start", "camera_id", "start", "id", *FILTERED, "alarm"),
        Index("ix_events_camera_alarm_start", "camera_id", "alarm", "start", "id", *FILTERED),
        Index("ix_events_camera_bytes", "camera_id", "n_bytes", "clip_bytes"),
        Index("ix_events_words", "alarm", "start", "id", *FILTERED, "camera_id", "words"),
        Index("ix_events_named", "alarm", "cue", "zone"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    camera_id: Mapped[str] = mapped_column(ForeignKey("cameras.id", ondelete="CASCADE"))
    start: Mapped[float] = mapped_column(doc="In seconds since the epoch, as all times.")
    end: Mapped[float | None] = mapped_column(doc="None while it goes on.")
    peak: Mapped[float]
    alarm: Mapped[bool] = mapped_column(doc="False for what only twice the budget had raised.")
    at_half: Mapped[bool] = mapped_column(default=False, doc="Raised by half the budget too.")
    zone: Mapped[str] = mapped_column(default="", doc="Name of the zone that it is in, if any.")
    quiet: Mapped[bool] = mapped_column(
        default=False, doc="An alarm, but for its zone or for too many alarms before it."
    )
    normality: Mapped[float]
    threshold: Mapped[float]
    probability: Mapped[float | None]
    rarity: Mapped[str]
    cue: Mapped[str]
    explanation: Mapped[str]
    behaviour: Mapped[int]
    thumbnail: Mapped[str | None] = mapped_column(doc="File name, as are `heat` and `clip`.")
    heat: Mapped[str | None]
    clip: Mapped[str | None]
    clip_start: Mapped[float | None] = mapped_column(doc="Time of the first frame of its clip.")
    n_bytes: Mapped[int] = mapped_column(doc="Of these files.")
    clip_bytes: Mapped[int] = mapped_column(default=0)
    review: Mapped[str | None] = mapped_column(doc="normal, unusual, or None.")
    reviewed: Mapped[float | None]
    reviewer: Mapped[str | None]
    silenced_by: Mapped[str | None] = mapped_column(doc="Event whose review made it needless.")
    unusual: Mapped[int] = mapped_column(default=0, doc="From 0, each minute, to 100, once a year.")
    hour: Mapped[int] = mapped_column(default=0)
    """Of the day at which it started, by this machine's clock; `UNDATED` if nobody knows."""
    offset: Mapped[float | None] = mapped_column(doc="Of a recording: seconds from its beginning.")
    note: Mapped[str] = mapped_column(default="", doc="What people wrote about it.")
    starred: Mapped[bool] = mapped_column(default=False)
    words: Mapped[str] = mapped_column(default="")
    """What a search looks through, in lower case: explanation and note."""
    signature: Mapped[bytes | None]
    """What similar events are found by."""
    details: Mapped[dict[str, Any]] = mapped_column(doc="As `habitus detect` writes it.")
    """The last column, as it is long and seldom read."""
    of_camera: Mapped[CameraRow] = relationship(lazy="joined", innerjoin=True)
    newer = older = cast("str | None", None)
    """Ids of the alarms after and before it, as `queries.event` finds them; no columns."""

    @property
    def camera(self) -> str:
        """Name of its camera."""
        return self.of_camera.name

    @property
    def dated(self) -> bool:
        """False for a recording of which nobody knows when it was."""
        return self.offset is None or self.of_camera.has_start

    def describe(self, event: habitus.Event) -> None:
        """Set all columns that an event is found and shown by, and the event itself."""
        for name in OF_EVENT:
            setattr(self, name, getattr(event, name))
        self.unusual = unusualness(event.probability)
        self.words = searched(self)
        self.details = json.loads(event.line())


def searched(event: EventRow) -> str:
    """Return what a search looks through."""
    return f"{event.explanation} {event.note}".strip().lower()


LISTED = defer(EventRow.details), defer(EventRow.signature)
"""Options of what lists read of events."""
UNDATED = -1
"""Hour of an event of which nobody knows when it was."""


class Minute(Base):
    """How usual a minute was."""

    __tablename__ = "minutes"
    # A month of one camera is drawn from the index alone.
    __table_args__ = (
        Index("ix_minutes_drawn", "camera_id", "minute", "behaviour", "normality", "n_judged"),
    )

    camera_id: Mapped[str] = mapped_column(
        ForeignKey("cameras.id", ondelete="CASCADE"), primary_key=True
    )
    minute: Mapped[int] = mapped_column(primary_key=True)
    """Minutes since the epoch."""
    normality: Mapped[float | None]
    """Lowest of its documents; None if none was judged."""
    behaviour: Mapped[int | None]
    """Most frequent one, counted from 1."""
    n_documents: Mapped[int]
    n_judged: Mapped[int]
    seconds: Mapped[bytes]
    """60 times normality (float32, NaN if not judged), 60 times behaviour (uint8, 0 if none)."""


class TroubleRow(Base):
    """A time in which a camera could not be judged."""

    __tablename__ = "troubles"
    __table_args__ = (Index("ix_troubles_camera_start", "camera_id", "start"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    camera_id: Mapped[str] = mapped_column(ForeignKey("cameras.id", ondelete="CASCADE"))
    kind: Mapped[str]
    """lost, frozen, covered, moved, slow, refused, off."""
    start: Mapped[float]
    end: Mapped[float | None]
    reason: Mapped[str]
    told: Mapped[float | None]
    """When it was put into the outbox: troubles that pass soon are not sent."""


class LearningRow(Base):
    """One time that a camera's model was learnt."""

    __tablename__ = "learnings"

    id: Mapped[int] = mapped_column(primary_key=True)
    camera_id: Mapped[str] = mapped_column(ForeignKey("cameras.id", ondelete="CASCADE"), index=True)
    occasion: Mapped[str]
    """first (five minutes), hour, night or asked."""
    started: Mapped[float]
    ended: Mapped[float | None]
    since: Mapped[float | None]
    """Footage that was learnt from."""
    until: Mapped[float | None]
    n_documents: Mapped[int] = mapped_column(default=0)
    model: Mapped[str | None]
    """File name in the camera's folder; None where it failed."""
    summary: Mapped[str] = mapped_column(default="")
    """One line: what was learnt, or why it failed."""
    notes: Mapped[list[Any]] = mapped_column(default=list)
    names: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What people call the model's behaviours, by number from 1."""


class Channel(Base):
    """Where events are sent."""

    __tablename__ = "channels"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    """webhook, mqtt, mail, push or apprise."""
    secret_settings: Mapped[bytes]
    """JSON of its addresses and passwords, encrypted; see `vault`."""
    shown_settings: Mapped[dict[str, Any]]
    """The same without secrets."""
    cameras: Mapped[list[Any]] = mapped_column(default=list)
    """Ids; all cameras if empty."""
    enabled: Mapped[bool] = mapped_column(default=True)
    quiet_from: Mapped[str | None]
    """Local time such as 22:00."""
    quiet_until: Mapped[str | None]
    most_per_hour: Mapped[int | None]
    waiting, error, last_sent = 0, "", 0.0
    """Messages that are not sent yet, why the first of them is not, and when the last one was; no
    columns."""


class OutboxEntry(Base):
    """Something that is to be sent, or was."""

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("channel_id", "subject"),
        Index("ix_outbox_channel_outcome", "channel_id", "outcome", "id"),
        Index("ix_outbox_channel_sent", "channel_id", "sent"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    channel_id: Mapped[int] = mapped_column(ForeignKey("channels.id", ondelete="CASCADE"))
    subject: Mapped[str]
    """What it is about and which part of it, such as "<event id>/started": sent once a channel."""
    kind: Mapped[str]
    """started, ended, trouble, recovered or digest."""
    body: Mapped[dict[str, Any]]
    created: Mapped[float] = mapped_column(index=True)
    sent: Mapped[float | None]
    outcome: Mapped[str] = mapped_column(default="waiting")
    """waiting, held (for the next digest), in digest, sent, or given up."""
    attempts: Mapped[int] = mapped_column(default=0)
    """Times that sending it failed."""
    error: Mapped[str] = mapped_column(default="")
    """Why it failed the last time."""


class Database:
    """A database of the console, by its address as SQLAlchemy takes it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = _engine(url)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)

    @classmethod
    def of(cls, settings: ServerSettings) -> "Database":
        """Return the database that a console is started with."""
        return cls(settings.database) if settings.database else cls.in_folder(settings.data)

    @classmethod
    def in_folder(cls, folder: Path) -> "Database":
        """Return the SQLite database of a data folder."""
        path = folder / "habitus.sqlite"
        with suppress(OSError):  # there is one, or SQLite will say what is wrong
            path.touch(mode=0o600, exist_ok=False)  # its other files get the same mode
        return cls(f"sqlite:///{path}")

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.engine.dialect.name == "sqlite"

    def session(self) -> Session:
        """Return a session that only reads, or whose owner commits."""
        return self._sessions()

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session; it is committed at the end of the block, or undone by an error."""
        with self._sessions.begin() as session:
            yield session

    def read(
        self, query: Callable[Concatenate[Session, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        """Return what a query, a function of a session, finds."""
        with self.session() as session:
            return query(session, *values, **named)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def first_line(error: Exception) -> str:
    """Return the first line of what a database said, without the statement."""
    said = str(getattr(error, "orig", None) or error).strip()
    return said.splitlines()[0] if said else type(error).__name__


@contextmanager
def database_errors() -> Iterator[None]:
    """Say in one line what is wrong with a database."""
    try:
        yield
    except (SQLAlchemyError, ImportError) as error:
        raise FileError(
            f"cannot use the database: {first_line(error)}", parameter="database"
        ) from error


def _engine(url: str) -> Engine:
    # A server of PostgreSQL that does not answer is away.
    options = {"connect_timeout": 5} if url.startswith("postgresql") else {}
    engine = create_engine(
        url, pool_pre_ping=True, pool_size=10, max_overflow=MOST_THREADS, connect_args=options
    )
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
    return engine


def _set_up_sqlite(connection: Any, record: Any) -> None:
    """Let readers go on beside a writer, and lose nothing with the power."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute(f"PRAGMA busy_timeout={int(1000 * PATIENCE)}")
    cursor.close()
