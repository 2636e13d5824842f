"""What is sent of an event, a trouble or a digest: for programs as JSON, for people in words."""

import socket
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from habitus.errors import HabitusError
from habitus.rarity import counted, how_often, sentence
from habitus.web.server_settings import ServerSettings

SCHEMA = 1


class DeliveryError(HabitusError, RuntimeError):
    """Something that could not be sent now; it will be tried again."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        """Of the answer, if there was one of HTTP."""


class Notification(NamedTuple):
    """Something to send."""

    key: str
    """Unique, and the same when it is sent again: receivers drop what they know."""
    kind: str
    """started, ended, trouble, recovered, digest or test."""
    created: float
    body: dict[str, Any]
    """camera, and event or trouble; or digest: see `habitus.web.outbox`."""
    attempt: int = 1
    """Above 1 if sending it failed before."""
    again: bool = False
    """Whether it may have been sent already, as the console ended while it was being sent."""

    def to_json(self, settings: ServerSettings) -> dict[str, Any]:
        """Return it as plain values, with links to the console's pages."""
        return {
            "habitus": "notification",
            "version": SCHEMA,
            "id": self.key,
            "kind": self.kind,
            "time": self.created,
            **self.body,
            "links": self.links(settings),
        }

    def links(self, settings: ServerSettings) -> dict[str, str]:
        """Return the addresses of what it is about: page, and thumbnail, heat map and clip."""
        base = address_of(settings)
        if event := self.body.get("event"):
            return event_links(base, event["id"])
        if camera := self.body.get("camera"):
            return {"page": f"{base}/cameras/{quote(camera['id'])}"}
        return {"page": f"{base}/events"}

    def picture(self, settings: ServerSettings) -> Path | None:
        """Return the file of the event's thumbnail, if there is one and it starts."""
        name = self.body.get("event", {}).get("thumbnail")
        if not name or self.kind != "started":
            return None
        path = settings.camera_folder(self.body["camera"]["id"]) / "events" / Path(name).name
        return path if path.is_file() else None

    def title(self) -> str:
        """Return what it is about, in a few words."""
        if self.kind == "test":
            return "habitus: a test message"
        if self.kind == "digest":
            return f"habitus: {_counted(self.body['digest'])}"
        name = self.body["camera"]["name"]
        if zone := self.body.get("event", {}).get("zone"):
            name = f"{name}, {zone}"
        if "trouble" in self.body:
            trouble = self.body["trouble"]["kind"]
            return f"{name}: {trouble}" if self.kind == "trouble" else f"{name}: watching again"
        return f"{name}: something unusual" + (" has ended" if self.kind == "ended" else "")

    def text(self, settings: ServerSettings) -> str:
        """Return all that a person wants to know, in lines."""
        page = self.links(settings)["page"]
        if self.kind == "test":
            lines = ["If you read this, events of your cameras will be sent here."]
            page = address_of(settings)
        elif self.kind == "digest":
            lines = _digest_lines(self.body["digest"], address_of(settings))
            page = f"All: {page}"
        elif event := self.body.get("event"):
            lines = [sentence(event["explanation"]), _rarity(event), _span(event)]
        else:
            trouble = self.body["trouble"]
            over = trouble["end"] is not None
            span = f"{trouble['kind']} from" if over else "since"
            lines = [trouble["reason"], f"{span} {_span(trouble)}"]
        lines.append(page)
        if self.again:
            lines.append("(The console was interrupted: this may have been sent before.)")
        return "\n".join(line for line in lines if line)


class Sender(Protocol):
    """Sends notifications of one channel, one after the other."""

    async def refresh(self) -> None:
        """Bring up to date what is seen there all the time, if anything, such as states."""

    async def send(self, notification: Notification) -> None:
        """Return once it has been sent; raise `DeliveryError` if it could not be."""

    async def close(self, *, removed: bool = False) -> None:
        """Close what is open between two messages, if anything; `removed`: for good."""


def address_of(settings: ServerSettings) -> str:
    """Return the address that people reach the console by.

    >>> address_of(ServerSettings(Path("data")))
    'http://127.0.0.1:8420'
    >>> everywhere = ServerSettings(Path("data"), host="0.0.0.0")
    >>> address_of(everywhere) == f"http://{socket.gethostname()}:8420"
    True
    """
    if settings.public_url:
        return settings.public_url.rstrip("/")
    every = settings.host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound to
    name = socket.gethostname() if every else settings.host
    host = f"[{name}]" if ":" in name else name
    return f"http://{host}:{settings.port}"


def event_links(base: str, event: str) -> dict[str, str]:
    """Return the addresses of an event's page, thumbnail, heat map and clip."""
    name = quote(event, safe="")
    files = {file: f"{base}/api/events/{name}/{file}" for file in ("thumbnail", "heat", "clip")}
    return {"page": f"{base}/events/{name}", **files}


def at(moment: float, zone: str = " %Z") -> str:
    """Return date, time and zone as this machine's clock shows them."""
    return time.strftime(f"%Y-%m-%d %H:%M:%S{zone}", time.localtime(moment))


def _rarity(event: dict[str, Any]) -> str:
    """Return how often such an event comes, with the scale of the pages."""
    often = how_often(event["rarity"])
    return f"{sentence(often)} (how unusual, from 0 to 100: {event['unusual']})" if often else ""


def offset(seconds: float) -> str:
    """Return where in a recording something is.

    >>> offset(83.4), offset(4000)
    ('1:23', '1:06:40')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _start(event: dict[str, Any]) -> str:
    """Return when an event began; in a recording of which nobody knows the date, where."""
    if event.get("dated", True):
        return at(event["start"])
    return f"{offset(event['offset'])} into the recording"


def _span(about: dict[str, Any]) -> str:
    start, end = about["start"], about["end"]
    if not about.get("dated", True):
        return _start(about)
    return at(start) if end is None else f"{at(start, zone='')} to {at(end)}"


def _digest_lines(digest: dict[str, Any], base: str) -> list[str]:
    span = _span({"start": digest["since"], "end": digest["until"]})
    lines = [f"{span}: {_counted(digest)}.", " "]
    lines += [f"{camera['name']}: {_counted(camera)}" for camera in digest["cameras"]]
    if digest["most_unusual"]:
        lines += [" ", "The most unusual:"]
    for one in digest["most_unusual"]:
        event = one["event"]
        lines.append(f"{_start(event)} {one['camera']['name']}: {event['explanation']}")
        lines.append(f"  {event_links(base, event['id'])['page']}")
    return [*lines, " "]


def _counted(counts: dict[str, Any]) -> str:
    """Return numbers of events and troubles in words.

    >>> _counted({"started": 1, "trouble": 2, "recovered": 2})
    '1 unusual event, 2 troubles, 2 of them over'
    >>> _counted({"started": 0, "trouble": 0, "recovered": 1})
    'no unusual events, 1 trouble over'
    """
    events, troubles, over = counts["started"], counts["trouble"], counts["recovered"]
    words = counted(events, "unusual event") if events else "no unusual events"
    if troubles:
        words += f", {counted(troubles, 'trouble')}"
    if over:
        of_them = "of them" if troubles else f"trouble{'' if over == 1 else 's'}"
        words += f", {over} {of_them} over"
    return words
