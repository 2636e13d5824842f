"""What pages show and the API answers, one type for each thing; and what the API takes."""

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticCustomError
from sqlalchemy import inspect

from habitus.errors import HabitusError, InvalidInputError
from habitus.web.database import (
    AuditEntry,
    Base,
    CameraRow,
    Channel,
    EventRow,
    LearningRow,
    Role,
    Token,
    TroubleRow,
    User,
)


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):  # they would be 1 and 0
        raise PydanticCustomError("flag_type", "Input should not be true or false")
    return value


NO_FLAG = BeforeValidator(_no_flag)
Rate = Annotated[float, Field(gt=0, le=1000), NO_FLAG]
Budget = Annotated[float, Field(ge=0.01, le=1000), NO_FLAG]

Pixel = Annotated[float, Field(strict=True, ge=-65_536, le=65_536)]
Polygon = Annotated[list[tuple[Pixel, Pixel]], Field(min_length=3, max_length=200)]
LONGEST_NAME = 100


def _plain(name: str) -> str:
    """Return a name without spaces around it; raise if nothing of it can be shown."""
    plain = " ".join(name.split())
    if not plain.isprintable() or (name and not plain):
        raise PydanticCustomError("name", "A name has characters that can be shown")
    return plain


Label = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_plain)]
"""A name, or nothing."""
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_plain)]
Secret = Annotated[str, Field(min_length=1, max_length=1000)]
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]
"""Seconds since the epoch, within some thousand years."""
Id = Annotated[str, Field(max_length=100)]
MOST_ROWS = 2**31 - 1
"""Largest number of a row that both databases have."""
Number = Annotated[int, Field(ge=1, le=MOST_ROWS)]
"""Of a row, in a path."""


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise PydanticCustomError("zone", "Input should be as Europe/Berlin") from None
    return name


TimeZone = Annotated[str, Field(max_length=100), AfterValidator(_known_zone)]
Clock = Annotated[str, Field(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["22:00"])]
EMPTY_IS_NULL = BeforeValidator(lambda value: None if value == "" else value)
"""As forms have it."""
QuietTime = Annotated[Clock | None, EMPTY_IS_NULL]
GIGABYTE = 1_000_000_000
M = TypeVar("M", bound=BaseModel)


class RequestBody(BaseModel):
    """What the API takes; names that are not known are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class ResponseBody(BaseModel):
    """What pages show and the API answers."""

    model_config = ConfigDict(from_attributes=True)


class Problem(BaseModel):
    """Why something was refused."""

    detail: str = Field(examples=["there is no camera 'gate'"])


class HttpError(HabitusError):
    """A request that is not carried out, by the status code that says so."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        usual = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
        self.headers = headers or usual


def checked(kind: type[M], values: Mapping[str, Any], *, strict: bool = False) -> M:
    """Return values as their type has them; raise, in one line, where one cannot be used.

    Where it is strict, texts are not taken for numbers, nor true for 1.
    """
    try:
        if strict:
            return kind.model_validate_json(json.dumps(values, default=str), strict=True)
        return kind.model_validate(values)
    except ValidationError as error:
        first, reason = reason_of(error.errors(include_url=False))
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            reason += f", only {', '.join(kind.model_fields)}"
        raise InvalidInputError(reason, parameter=str(first["loc"][0])) from None
    except RecursionError:
        raise InvalidInputError("too deep to be understood") from None


def reason_of(errors: Sequence[Any]) -> tuple[Any, str]:
    """Return the first error of values, typing errors before others, and what it says.

    It never says what was sent, which may be a password.
    """
    first = min(errors, key=lambda one: one["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    if first["type"] == "extra_forbidden":
        return first, f"there is no {place}"
    if first["type"] == "missing":
        return first, f"{place or 'the body'} is missing"
    reason = str(first["msg"]).removeprefix("Value error, ")
    return first, f"{place or 'the request'}: {reason[:1].lower()}{reason[1:]}"


def status_of(error: HabitusError) -> int:
    """Return the status code of an error: that of a value that cannot be used, if none is its."""
    return error.status if isinstance(error, HttpError) else 422


class CameraOptions(RequestBody):
    """How a camera is read."""

    fps: Rate | None = Field(None, description="Of a stream without times.")
    fast: bool | None = Field(None, description="Skip frames that no other one needs.")
    local: bool | None = Field(
        None, description="It may be a file or service of the server's own machine."
    )
    other_hosts: bool | None = Field(
        None, description="Its address may lead to another host; in cameras.toml only."
    )
    patience: Annotated[float, Field(gt=0, le=3600), NO_FLAG] | None = Field(
        None, description="Seconds of silence until it is opened again."
    )
    speed: Rate | None = Field(None, description="Of a playback.")
    starts: Annotated[float, Field(gt=0, le=1e11), NO_FLAG] | None = Field(
        None, description="When a recording starts."
    )
    timezone: TimeZone | None = Field(
        None, description="By which zones have their hours; the server's if null."
    )


class ZoneHours(RequestBody):
    """The same hours of some days."""

    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = Field(
        [], max_length=7, description="On which they begin; all if empty."
    )
    start: Clock
    end: Clock = Field(description="Of the next day, unless it is after the start.")


class ZoneSettings(RequestBody):
    """A named part of a camera's picture."""

    name: Name = Field(examples=["Loading bay"])
    kind: Literal["ignore", "watch", "own"] = Field(
        "own",
        description="ignore: nothing there is seen. watch: alarms come from zones alone. own: a "
        "part with a name, and with a budget and hours of its own.",
    )
    polygon: Polygon = Field(
        description="Corners in pixels of the camera's picture.",
        examples=[[[0, 0], [120, 0], [120, 40], [0, 40]]],
    )
    alerts_per_day: Budget | None = Field(None, description="Its own; that of the camera if null.")
    hours: list[ZoneHours] = Field(
        [], max_length=20, description="In which its events may be alarms; always if empty."
    )


class CameraChanges(RequestBody):
    """What is to be changed of a camera; the rest stays as it is."""

    name: Name | None = Field(None, examples=["North gate"])
    address: Annotated[str, Field(max_length=2000)] | None = Field(
        None, description="With user and password; never shown again."
    )
    username: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="Whom the camera knows, unless the address says it."
    )
    password: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="Of the user; never shown again."
    )
    alerts_per_day: Budget | None = Field(
        None, description="Alarms that normal footage may raise.", examples=[5]
    )
    learn_days: Annotated[int, Field(ge=1, le=365), NO_FLAG] | None = Field(
        None, description="Days to learn from."
    )
    zones: Annotated[list[ZoneSettings], Field(max_length=50)] | None = Field(
        None, description="Named parts of its picture, all of them."
    )
    enabled: bool | None = None
    options: CameraOptions | None = None


class NewCamera(CameraChanges):
    """A camera to be added: by address, or by a file that was uploaded."""

    name: Name
    address: Annotated[str, Field(max_length=2000)] | None = Field(
        None,
        description="With user and password; never shown again.",
        examples=["rtsp://viewer:secret@10.0.4.11/main"],
    )
    upload: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = Field(
        None, description="What `POST /api/uploads` gave, in place of an address."
    )
    kind: Literal["stream", "playback", "recording"] = Field(
        "stream",
        description="A file that was uploaded is a playback (it plays again and again) or a "
        "recording (it is judged at once).",
    )


class SnoozeRequest(RequestBody):
    """How long people are sent nothing of a camera's events."""

    hours: Annotated[float, Field(ge=0, le=168), NO_FLAG] = Field(description="0 ends it.")


class SnoozeOutcome(ResponseBody):
    """Until when people are sent nothing of a camera's events."""

    until: float | None


class CameraLogin(RequestBody):
    """Whom a camera knows that is not added yet."""

    username: Annotated[str, Field(max_length=200)] = ""
    password: Annotated[str, Field(max_length=200)] = ""
    local: bool = Field(False, description="It may be the server's own machine.")


class DeviceRequest(CameraLogin):
    """A device of which the streams are wanted."""

    device: Annotated[str, Field(min_length=1, max_length=500)] = Field(
        description="Its address, as it was found, or its host."
    )


class PictureRequest(CameraLogin):
    """A camera that is looked at before it is added."""

    address: Annotated[str, Field(min_length=1, max_length=2000)]


def with_columns(row: type[Base], *, but: str = "") -> Callable[[type[M]], type[M]]:
    """Have an answer show the columns of a row, but for some, beside its own fields."""

    def completed(kind: type[M]) -> type[M]:
        hints = get_type_hints(row)
        hidden = {*but.split(), *kind.model_fields}
        fields: dict[str, Any] = {
            key: (get_args(hints[key])[0], Field(description=column.doc))
            for key, column in inspect(row).columns.items()
            if key not in hidden
        }
        return create_model(kind.__name__, __base__=kind, __doc__=kind.__doc__, **fields)

    return completed


@with_columns(CameraRow, but="secret_address")
class CameraDetails(ResponseBody):
    """A camera, how it is watched, what it does, and its alarms of today."""

    zones: list[ZoneSettings]
    alarms_today: int = Field(description="Of a recording without a date, all of its alarms.")
    to_review: int = Field(description="Of them, those that nobody has reviewed.")


@with_columns(LearningRow, but="camera_id names")
class LearningRecord(ResponseBody):
    """One time that a camera's model was learnt."""


@with_columns(User, but="password")
class UserDetails(ResponseBody):
    """Somebody who may log in."""


@with_columns(Token, but="digest")
class TokenDetails(ResponseBody):
    """A token of the API, without its secret."""


@with_columns(Channel, but="secret_settings")
class ChannelDetails(ResponseBody):
    """A place where events are sent, without its secrets."""

    waiting: int = Field(description="Messages that are not sent yet.")


@with_columns(AuditEntry)
class AuditRecord(ResponseBody):
    """Who did what."""


class WallTile(RequestBody):
    """How somebody has a camera on the wall."""

    camera: Id
    size: Annotated[int, Field(ge=1, le=3, description="Columns that it takes."), NO_FLAG] = 1
    group: Annotated[str, Field(max_length=60)] = ""


class WallLayout(RequestBody):
    """How somebody has the wall; cameras that are not named follow by name."""

    tiles: Annotated[list[WallTile], Field(max_length=1000)] = []
    live_first: Annotated[bool, Field(description="Cameras without a picture come last.")] = True


class LearningProgress(ResponseBody):
    """How far a learning is."""

    camera_id: str = Field(exclude=True)
    occasion: str
    stage: str
    done: float
    total: float | None
    note: str


class CameraNow(ResponseBody):
    """What a camera does now."""

    state: str
    since: float
    reason: str
    time: float | None = Field(description="Of the picture.")
    width: int | None = Field(description="Of the camera's picture; arrows and heat are in it.")
    height: int | None
    arrows: list[tuple[float, float, float, float]] = Field(
        description="Motion: x, y of the tail, and of the tip."
    )
    heat: list[tuple[float, float, float, float, float]] = Field(
        description="Unusual places: x, y, width, height, strength from 0 to 1."
    )
    normality: float | None
    threshold: float | None = Field(description="Alarms are below.")
    behaviour: int = Field(description="Counted from 1; 0 if not known.")
    expected: list[float] = Field(description="Probability of each behaviour in a second.")
    next: int = Field(description="The most probable of them; 0 if not known.")
    names: dict[int, str] = Field(description="What people call its behaviours.")
    recent: list[tuple[float, float | None, int]] = Field(
        description="Time, normality and behaviour of the last minutes."
    )
    kept_seconds: float | None = Field(description="Footage that can be learnt from, so far.")
    learning: LearningProgress | None


@with_columns(TroubleRow, but="id camera_id told")
class TimelineSpan(ResponseBody):
    """A time in which nothing could be judged."""


class NamedBehaviours(ResponseBody):
    """What people call the behaviours of a model."""

    since: float = Field(description="When it was first used.")
    names: dict[int, str]


@with_columns(EventRow, but="details hour words signature clip_bytes")
class EventSummary(ResponseBody):
    """An event, as lists have it."""

    id: str = Field(description="Given when it starts.")
    camera_id: str
    camera: str = Field(description="Name of the camera.")
    dated: bool = Field(description="False for a recording of which nobody knows when it was.")


@with_columns(EventRow, but="hour words signature clip_bytes")
class EventDetails(EventSummary):
    """An event and all that is known of it."""

    newer: str | None = Field(description="Id of the next alarm, if there is one.")
    older: str | None


class CameraTimeline(ResponseBody):
    """How usual a camera's view was, in columns of the same length."""

    step: float = Field(description="Seconds from one time to the next.")
    times: list[float]
    normality: list[float | None] = Field(description="Lowest one; null where none was judged.")
    behaviour: list[int | None] = Field(description="Most frequent one.")
    names: list[NamedBehaviours] = Field(
        description="What people call behaviours, by the time since when a model is in use."
    )
    events: list[EventSummary]
    troubles: list[TimelineSpan]


class RecentFootage(BaseModel):
    """What of a camera can be played."""

    spans: list[tuple[float, float]] = Field(description="From when to when, the oldest first.")


class BehaviourRecord(ResponseBody):
    """A behaviour of a camera's model."""

    number: int
    name: str = Field("", description="What people call it.")
    share: float = Field(description="Of the time.")
    seconds: float | None = Field(description="How long it lasts on average.")
    next: list[dict[str, float]]
    picture: str | None


class BehaviourChanges(RequestBody):
    """What a behaviour is to be called."""

    name: Label = Field(description="Nothing takes the name away.", examples=["north-south green"])


class EventList(ResponseBody):
    """Events, the newest first."""

    events: list[EventSummary]
    next: str | None = Field(description="Send it as `before` for the next part.")


class SimilarEvent(ResponseBody):
    """A past event that is like another one."""

    card: EventSummary
    similarity: float = Field(description="Cosine, up to 1.")


class ReviewRequest(RequestBody):
    """What a person says of an event."""

    verdict: Literal["normal", "unusual"]


class ReviewOutcome(ResponseBody):
    """What a review did."""

    event_id: str
    camera_id: str
    verdict: str | None = Field(description="normal, unusual, or null once it was undone.")
    silenced: list[EventSummary] = Field(description="Recent alarms it would have silenced.")
    note: str = Field(description="Why nothing could be learnt from it, if so.")


class ManyReviews(RequestBody):
    """What a person says of many events."""

    events: list[Id] = Field(max_length=500)
    verdict: Literal["normal", "unusual"] | None = Field(description="null takes reviews back.")


class ReviewCount(ResponseBody):
    """What reviewing many events did."""

    changed: int


class EventChanges(RequestBody):
    """What is to be changed of an event; the rest stays as it is."""

    note: Annotated[str, Field(max_length=2000)] | None = None
    starred: bool | None = None


class BudgetFigures(ResponseBody):
    """What one alert budget brought, or would have brought."""

    alarms: int
    reviewed: int
    unusual: int = Field(description="Reviewed ones that were called unusual.")
    precision: float | None = Field(description="Share of the reviewed alarms.")
    interval: tuple[float, float] = Field(description="90 % interval of the precision.")


class PrecisionReport(ResponseBody):
    """Measured precision at today's budget, at half of it and at twice."""

    days: float
    reviews_needed: int = Field(description="Reviews that are missing; 0 if there are enough.")
    half: BudgetFigures
    now: BudgetFigures
    twice: BudgetFigures


class UploadedFile(ResponseBody):
    """A video that can become a camera."""

    id: str = Field(description="Send it as `upload` to `POST /api/cameras`.")
    width: int
    height: int
    seconds: float
    n_bytes: int


class SessionDetails(ResponseBody):
    """Who asks."""

    name: str
    role: str
    csrf: str = Field(description="Header X-CSRF-Token of changes, without a token of the API.")


class PostedNotice(ResponseBody):
    """Something that a person should know, and that the console goes on after."""

    text: str
    first: float = Field(description="When it was first posted, in seconds since the epoch.")
    last: float
    times: int = Field(description="How often it was posted.")
    camera: str | None


class NewUser(RequestBody):
    """Somebody who may log in."""

    name: Name
    password: Secret
    role: Role = Role.VIEWER


class UserChanges(RequestBody):
    """What is to be changed of a user."""

    password: Secret | None = None
    role: Role | None = None


class PasswordChange(RequestBody):
    """One's own password."""

    old: Secret
    new: Secret


class NewTokenRequest(RequestBody):
    """A token to be made."""

    name: Name
    role: Role = Role.VIEWER


class NewToken(ResponseBody):
    """A token that was just made."""

    id: int
    secret: str = Field(description="Shown once: only its digest is kept.")


class ChannelChanges(RequestBody):
    """What is to be changed of a channel; the rest stays as it is."""

    name: Name | None = None
    settings: dict[str, Any] | None = Field(
        None, description="Those that are not named stay; null leaves one out."
    )
    cameras: list[Id] | None = Field(None, max_length=1000, description="Ids; all if empty.")
    enabled: bool | None = None
    quiet_from: QuietTime = Field(None, examples=["22:00"])
    quiet_until: QuietTime = Field(None, examples=["06:30"])
    most_per_hour: Annotated[
        Annotated[int, Field(ge=1, le=100_000), NO_FLAG] | None, EMPTY_IS_NULL
    ] = None


class NewChannel(ChannelChanges):
    """A place where events are to be sent."""

    name: Name
    kind: Literal["webhook", "mqtt", "mail", "push", "apprise"]
    settings: dict[str, Any] = Field(examples=[{"url": "https://hooks.example.org/in"}])


class ServerKey(ResponseBody):
    """What a browser subscribes with."""

    key: str = Field(description="applicationServerKey of the browser's subscription.")


class BrowserAddress(RequestBody):
    """A browser, by the address that its push service gave it."""

    endpoint: Annotated[str, Field(max_length=2000)]


class NewBrowser(BrowserAddress):
    """A browser that is to be sent notifications, as its subscription has it."""

    p256dh: Annotated[str, Field(max_length=200)]
    auth: Annotated[str, Field(max_length=100)]
    name: Name = Field(examples=["Firefox on Android"])


class Preferences(RequestBody):
    """Settings of the console; to change them, those that are to be others."""

    # An answer always has all of them.
    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    quota_bytes: Annotated[int, Field(ge=GIGABYTE // 10, le=10**6 * GIGABYTE), NO_FLAG] = Field(
        20 * GIGABYTE, description="What everything on disk may take; the oldest goes first."
    )
    retention_days: Annotated[float, Field(ge=1, le=3650), NO_FLAG] = Field(
        30.0, description="How long events are kept."
    )
    upload_bytes: Annotated[int, Field(ge=0, le=10**3 * GIGABYTE), NO_FLAG] = Field(
        2 * GIGABYTE, description="Size of a file that is given on the page, at most."
    )
    quiet_from: QuietTime = Field(None, description="What is proposed for new channels.")
    quiet_until: QuietTime = None


class DiskUse(ResponseBody):
    """Bytes on disk, by what they are."""

    clips: int
    pictures: int
    documents: int
    recent: int = Field(description="Packets of the last minutes.")
    models: int
    uploads: int
    database: int
    other: int = Field(
        description="Log, exports under way, what a restore put aside, videos of the demonstration."
    )
    total: int
    free: int

    @property
    def bounded(self) -> int:
        """What counts to the quota: what else there is, is not deleted by it."""
        return self.total - self.other


class Health(BaseModel):
    """Whether everything works."""

    status: Literal["ok", "failing"]
    problems: list[str]
