"""MQTT: events as messages, and the state of each camera for Home Assistant and others.

All topics are below one, "habitus" by default:

- `habitus/CAMERA/event`: what happens, as JSON (the same as of a webhook), by QoS 1;
- `habitus/CAMERA/state`: ON while something unusual goes on, else OFF; retained, as the rest;
- `habitus/CAMERA/condition`: watching, learning, lost and so on;
- `habitus/CAMERA/last`: the last event as JSON; `habitus/CAMERA/picture`: its thumbnail;
- `habitus/CAMERA/live`: the camera's picture every ten seconds, not retained;
- `habitus/CAMERA/review`: taken, not sent: normal or unusual, of the camera's last event;
- `habitus/reviews`: events as those of Frigate, whose blueprints read them; not retained;
- `habitus/digest`: what was held back by quiet hours or the limit; `habitus/test`;
- `habitus/status`: online, or offline once the console is gone.

What is retained follows the database, not the outbox: after an outage of the broker it is right
at once. Which topics are retained is remembered, so that those of a camera that was removed are
cleared even if the broker was away then.
"""

import asyncio
import json
import re
import ssl
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiomqtt import Client, MqttError, Will
from sqlalchemy import Select, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from habitus.errors import HabitusError, InvalidInputError
from habitus.web.answers import EventSummary
from habitus.web.channels.destinations import (
    check_destination,
    checked_host,
    checked_port,
    is_on,
)
from habitus.web.channels.notification import (
    DeliveryError,
    Notification,
    Sender,
    address_of,
    event_links,
)
from habitus.web.database import LISTED, CameraRow, Channel, EventRow, Setting, first_line
from habitus.web.server_settings import ServerSettings

if TYPE_CHECKING:
    from habitus.web.server import Console

TIMEOUT = 10.0
"""Seconds that a broker has for an answer."""
REFRESH = 1.0
"""Seconds between two looks at the cameras' states."""
LIVE = 10.0
"""Seconds between two pictures of a camera."""
ACTOR = "MQTT"
"""Who reviews by a message of the broker."""
TOPIC = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")

Retained = dict[str, str | Path]
"""Payloads by topic; of a picture, its file."""


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without the password."""
    whole = _whole(settings)
    return whole | {"password": bool(whole["password"]), "ca": bool(whole["ca"])}


def _whole(settings: dict[str, Any]) -> dict[str, Any]:
    """Return all settings, checked."""
    tls = is_on(settings, "tls")
    texts = {name: settings.get(name) or "" for name in ("host", "username", "password", "ca")}
    texts["topic"] = settings.get("topic") or "habitus"
    texts["discovery"] = settings.get("discovery", "homeassistant") or ""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InvalidInputError(f"{name} of a broker must be a text", parameter=name)
    port = checked_port(settings.get("port") or (8883 if tls else 1883), "broker")
    whole: dict[str, Any] = {**texts, "port": port, "tls": tls}
    checked_host(whole["host"], "broker")
    for name in ("topic", "discovery"):
        if whole[name] and not TOPIC.fullmatch(whole[name]):
            raise InvalidInputError(
                f"{name} must be of letters, digits, - and _, in parts that / divides",
                parameter=name,
            )
    _tls_context(whole)
    return whole


def _tls_context(settings: dict[str, Any]) -> ssl.SSLContext | None:
    if not settings["tls"]:
        return None
    try:
        return ssl.create_default_context(cadata=settings["ca"] or None)
    except (ssl.SSLError, TypeError, ValueError) as error:
        raise InvalidInputError(
            "ca must be a certificate in PEM form (-----BEGIN CERTIFICATE----- ...)",
            parameter="ca",
        ) from error


class MqttSender(Sender):
    """Keeps a connection to one broker.

    Once it is refreshed it stands for the console there: it says that the console is online, and
    its will that it is not. Before, it only sends, as a test does beside another one.
    """

    def __init__(self, console: "Console", channel: Channel) -> None:
        self._console, self._channel = console, channel
        self._settings = _whole(console.vault.open(channel.secret_settings))
        self._base: str = self._settings["topic"]
        self._client: Client | None = None
        self._listener: asyncio.Task[None] | None = None
        self._retained: Retained = {}
        """What the broker has by now."""
        self._is_known = False
        """Whether it has nothing else, from before."""
        self._looked, self._pictured = -REFRESH, -LIVE
        self._stands = False

    async def refresh(self) -> None:
        """Connect if needed, and bring the retained topics up to date."""
        self._stands = True
        client = await self._connected()
        if time.monotonic() - self._looked < REFRESH:
            return
        wanted = await asyncio.to_thread(self._wanted)
        await self._retain(client, wanted)
        self._looked = now = time.monotonic()
        if now - self._pictured >= LIVE:
            self._pictured = now
            for topic, picture in self._live(wanted).items():
                await self._publish(client, topic, picture, retain=False)

    async def send(self, notification: Notification) -> None:
        """Return once the broker has it."""
        client = await self._connected()
        camera = notification.body.get("camera")
        topic = f"{camera['id']}/event" if camera else notification.kind
        payload = json.dumps(notification.to_json(self._console.settings), allow_nan=False)
        await self._publish(client, f"{self._base}/{topic}", payload, retain=False)
        if review := frigate_review(notification, self._console.settings):
            payload = json.dumps(review, allow_nan=False)
            await self._publish(client, f"{self._base}/reviews", payload, retain=False)

    async def close(self, *, removed: bool = False) -> None:
        """Say that nobody is here; clear everything retained if the channel is no more."""
        with suppress(DeliveryError, MqttError):
            if removed:
                client = await self._connected()
                await self._retain(client, {})
                await self._publish(client, f"{self._base}/status", "", retain=True)
            elif self._client is not None and self._stands:
                await self._publish(self._client, f"{self._base}/status", "offline", retain=True)
        await self._disconnect()

    async def _connected(self) -> Client:
        if self._client is not None and self._listener is not None and not self._listener.done():
            return self._client
        await self._disconnect()
        try:
            await asyncio.to_thread(check_destination, self._settings["host"], "host", look_up=True)
        except InvalidInputError as error:
            raise DeliveryError(str(error)) from error
        status = f"{self._base}/status"
        client = Client(
            self._settings["host"],
            self._settings["port"],
            username=self._settings["username"] or None,
            password=self._settings["password"] or None,
            tls_context=_tls_context(self._settings),
            will=Will(status, "offline", qos=1, retain=True) if self._stands else None,
            timeout=TIMEOUT,
        )
        try:
            await client.__aenter__()
        except (MqttError, OSError, UnicodeError) as error:
            raise DeliveryError(f"the broker is away: {error}") from error
        self._client, self._listener = client, asyncio.create_task(self._listen(client))
        self._retained, self._is_known, self._looked = {}, False, -REFRESH
        if self._stands:
            await self._publish(client, status, "online", retain=True)
            with suppress(MqttError):  # the next message finds out that it is away
                await client.subscribe(f"{self._base}/+/review", qos=1)
        return client

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
            with suppress(asyncio.CancelledError):
                await listener
        if client is not None:
            with suppress(MqttError, OSError):
                await client.__aexit__(None, None, None)

    async def _publish(
        self, client: Client, topic: str, payload: str | bytes, *, retain: bool
    ) -> None:
        try:
            await client.publish(topic, payload, qos=1, retain=retain)
        except (MqttError, OSError) as error:
            await self._disconnect()
            raise DeliveryError(f"the broker did not take it: {error}") from error

    async def _retain(self, client: Client, wanted: Retained) -> None:
        """Publish what is new or another than before, and clear what is no more."""
        if self._is_known and wanted == self._retained:
            return
        gone = await asyncio.to_thread(self._remember, {*self._retained, *wanted}) - {*wanted}
        for topic in sorted(gone):
            await self._publish(client, topic, "", retain=True)
            self._retained.pop(topic, None)
        for topic, payload in wanted.items():
            if self._retained.get(topic) != payload:
                content = await asyncio.to_thread(_content, payload)
                await self._publish(client, topic, content, retain=True)
                self._retained[topic] = payload
        if gone:
            await asyncio.to_thread(self._remember, {*wanted}, only=True)
        self._is_known = True

    def _remember(self, topics: set[str], *, only: bool = False) -> set[str]:
        """Write down which topics are retained, before they are; return these and earlier ones."""
        key = f"mqtt/{self._channel.id}"
        with self._console.database.transaction() as session:
            setting = session.get(Setting, key)
            before = set(setting.value["topics"]) if setting is not None else set()
            after = topics if only else before | topics
            if setting is None and after:
                session.add(Setting(key=key, value={"topics": sorted(after)}))
            elif setting is not None and not after:
                session.delete(setting)
            elif setting is not None and after != before:
                setting.value = {"topics": sorted(after)}
        return after

    async def _listen(self, client: Client) -> None:
        """Take reviews; return once the broker is away."""
        with suppress(MqttError):
            async for message in client.messages:
                camera = str(message.topic).removeprefix(f"{self._base}/").removesuffix("/review")
                verdict = message.payload
                if isinstance(verdict, bytes) and not message.retain:  # of now, not of before
                    await asyncio.to_thread(self._review, camera, verdict.decode(errors="replace"))

    def _review(self, camera: str, verdict: str) -> None:
        """Write what somebody says of a camera's last event."""
        from habitus.web.reviews import review

        if self._channel.cameras and camera not in self._channel.cameras:
            return
        try:
            with self._console.database.session() as session:
                last = session.scalar(_last_event(camera))
            if last is not None:
                review(self._console, last.id, verdict, ACTOR)
        except (HabitusError, SQLAlchemyError) as error:
            self._console.bulletin.post(f"{self._channel.name}: no review: {first_line(error)}")

    def _live(self, wanted: Retained) -> dict[str, bytes]:
        """Return the latest picture of each camera that is shown, by its topic."""
        supervisor = self._console.supervisor
        if supervisor is None:
            return {}
        tops = [topic.removesuffix("/state") for topic in wanted if topic.endswith("/state")]
        seen = {top: supervisor.latest(top.rpartition("/")[2]).seen for top in tops}
        return {f"{top}/live": picture.jpeg for top, picture in seen.items() if picture}

    def _wanted(self) -> Retained:
        """Return all retained topics, as the database knows them now."""
        wanted: Retained = {}
        with self._console.database.session() as session:
            for camera in session.scalars(select(CameraRow).order_by(CameraRow.id)):
                if not self._channel.cameras or camera.id in self._channel.cameras:
                    wanted |= self._states(session, camera)
                    wanted |= self._discovery(camera)
        return wanted

    def _states(self, session: Session, camera: CameraRow) -> Retained:
        last = session.scalar(_last_event(camera.id))
        going_on = last is not None and last.end is None
        top = f"{self._base}/{camera.id}"
        states: Retained = {
            f"{top}/state": "ON" if going_on else "OFF",
            f"{top}/condition": camera.state,
        }
        if last is not None:
            links = event_links(address_of(self._console.settings), last.id)
            event = EventSummary.model_validate(last).model_dump()
            states[f"{top}/last"] = json.dumps({**event, "links": links})
            if last.thumbnail:
                folder = self._console.settings.camera_folder(camera.id) / "events"
                states[f"{top}/picture"] = folder / Path(last.thumbnail).name
        return states

    def _discovery(self, camera: CameraRow) -> Retained:
        """Return what Home Assistant finds the camera by."""
        if not self._settings["discovery"]:
            return {}
        top, node = f"{self._base}/{camera.id}", f"{self._base.replace('/', '_')}_{camera.id}"
        shared = {
            "availability_topic": f"{self._base}/status",
            "device": {
                "identifiers": [node],
                "name": camera.name,
                "manufacturer": "habitus",
                "model": "camera",
                "configuration_url": f"{address_of(self._console.settings)}/cameras/{camera.id}",
            },
        }
        configs: Retained = {}
        for entity, values in _ENTITIES.items():
            component, part = entity.split("/")
            topics = {name: value.format(top=top) for name, value in values.items()}
            config = {**topics, "unique_id": f"{node}_{part}", **shared}
            topic = f"{self._settings['discovery']}/{component}/{node}/{part}/config"
            configs[topic] = json.dumps(config, sort_keys=True)
        return configs


_ENTITIES: dict[str, dict[str, str]] = {
    "binary_sensor/unusual": {
        "name": "Unusual motion",
        "device_class": "motion",
        "state_topic": "{top}/state",
    },
    "sensor/condition": {
        "name": "Condition",
        "icon": "mdi:cctv",
        "entity_category": "diagnostic",
        "state_topic": "{top}/condition",
    },
    "sensor/last": {
        "name": "Last event",
        "icon": "mdi:eye-outline",
        "state_topic": "{top}/last",
        "value_template": "{{{{ value_json.explanation[:250] }}}}",
        "json_attributes_topic": "{top}/last",
    },
    "camera/live": {
        "name": "Live",
        "topic": "{top}/live",
    },
    "button/call_normal": {
        "name": "Last event was normal",
        "icon": "mdi:check",
        "command_topic": "{top}/review",
        "payload_press": "normal",
    },
    "button/call_unusual": {
        "name": "Last event was unusual",
        "icon": "mdi:alert",
        "command_topic": "{top}/review",
        "payload_press": "unusual",
    },
    "image/picture": {
        "name": "Last event",
        "content_type": "image/jpeg",
        "image_topic": "{top}/picture",
    },
}
"""By the component of Home Assistant and the last part of the topic, what is an entity's own."""


def _last_event(camera: str) -> Select[EventRow]:
    return (
        select(EventRow)
        .where(EventRow.camera_id == camera, EventRow.alarm)
        .order_by(EventRow.start.desc())
        .limit(1)
        .options(*LISTED)
    )


def frigate_review(notification: Notification, settings: ServerSettings) -> dict[str, Any] | None:
    """Return an event as Frigate sends its reviews, for automations that read those."""
    event = notification.body.get("event")
    if event is None:
        return None
    item = {
        "id": event["id"],
        "camera": notification.body["camera"]["id"],
        "start_time": event["start"],
        "end_time": event["end"],
        "severity": "alert",
        "thumb_path": notification.links(settings)["thumbnail"],
        "data": {
            "detections": [event["id"]],
            "objects": ["unusual"],
            "sub_labels": [],
            "zones": [event["zone"]] if event.get("zone") else [],
            "audio": [],
            "metadata": {"scene": event["explanation"]},
        },
    }
    kind = "end" if notification.kind == "ended" else "new"
    before = item if kind == "new" else {**item, "end_time": None}
    return {"type": kind, "before": before, "after": item}


def _content(payload: str | Path) -> str | bytes:
    if isinstance(payload, str):
        return payload
    try:
        return payload.read_bytes()
    except OSError:  # deleted meanwhile
        return b""
