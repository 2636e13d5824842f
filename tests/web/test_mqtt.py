import contextlib
import gc
import json
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from sqlalchemy import select

from habitus import InvalidInputError
from habitus.scene import read_events
from habitus.site.journal import SiteEvent, file_event, filed_events
from habitus.site.pipe_messages import CameraPicture
from habitus.web import channels, store
from habitus.web.app import create_app
from habitus.web.channels import DeliveryError
from habitus.web.database import OF_EVENT, CameraRow, Channel, EventRow, Setting
from habitus.web.delivery import Deliverer
from habitus.web.outbox import EVIDENCE
from habitus.web.server import Console
from habitus.web.supervisor import LatestReports, Supervisor
from reference.commands import done
from reference.consoles import START, add_camera
from reference.processes import LONG, wait_until
from reference.system import BROKER, needs
from reference.telling import (
    Broker,
    a_trouble,
    add_channel,
    all_told,
    an_event,
    deliverer_process,
    outcomes,
    receiver,
    tell,
)
from reference.visitors import Visitor


class Subscriber:
    """Somebody who takes everything from a broker, and reconnects by itself."""

    def __init__(self, broker: Broker) -> None:
        self.retained: dict[str, bytes] = {}
        """Last payload of each topic but events; without those that were cleared."""
        self.events: list[dict[str, Any]] = []
        self.n_repeated = 0
        """Of these, those that the broker told again, as it did not know of their arrival."""
        self.statuses: list[str] = []
        self.reviews: list[dict[str, Any]] = []
        self._subscribed: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id="subscriber", clean_session=False
        )
        self._client.username_pw_set(broker.user, broker.password)
        self._client.on_connect = lambda *_: self._client.subscribe("#", qos=1)
        self._client.on_subscribe = lambda *_: self._subscribed.put(True)
        self._client.on_message = self._take
        self._client.reconnect_delay_set(0.05, 0.1)
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        self.wait()

    def wait(self) -> None:
        """Return once it is (again) subscribed."""
        self._subscribed.get(timeout=LONG)

    def _take(self, _client: object, _data: object, message: mqtt.MQTTMessage) -> None:
        if message.topic.endswith(("/event", "/digest", "/test")):
            self.events.append({"topic": message.topic, **json.loads(message.payload)})
            self.n_repeated += message.dup
            return
        if message.topic.endswith("/reviews"):
            self.reviews.append(json.loads(message.payload))
            return
        if message.topic.endswith("/review"):
            return
        if message.topic.endswith("/status"):
            self.statuses.append(message.payload.decode())
        if message.payload:
            self.retained[message.topic] = message.payload
        else:
            self.retained.pop(message.topic, None)

    def text(self, topic: str) -> str | None:
        found = self.retained.get(topic)
        return None if found is None else found.decode()

    def publish(self, topic: str, payload: str) -> None:
        self._client.publish(topic, payload, qos=1).wait_for_publish(LONG)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    needs(BROKER)
    folder = tmp_path / "broker"
    folder.mkdir()
    server = Broker(folder)
    server.start()
    yield server
    server.stop()


@contextlib.contextmanager
def subscribed(broker: Broker) -> Iterator[Subscriber]:
    subscriber = Subscriber(broker)
    try:
        yield subscriber
    finally:
        subscriber.close()


@pytest.fixture
def delivering(console: Console) -> Iterator[list[str]]:
    notices: list[str] = []
    deliverer = Deliverer(console, notice=notices.append, first_wait=0.05, longest_wait=0.2)
    deliverer.start()
    yield notices
    deliverer.stop()


def ids(subscriber: Subscriber) -> list[str]:
    return [event["id"] for event in subscriber.events]


def test_events_states_and_conditions_are_told(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    add_camera(console, state="watching")
    add_channel(console, "mqtt", broker.settings)
    with subscribed(broker) as heard:
        wait_until(lambda: heard.text("habitus/north/state") == "OFF", "nothing unusual")
        assert heard.text("habitus/status") == "online"
        wait_until(lambda: heard.text("habitus/north/condition") == "watching", "watching")
        picture = console.settings.camera_folder("north") / "events" / "event1.jpg"
        picture.parent.mkdir(parents=True)
        picture.write_bytes(b"\xff\xd8 a picture")
        tell(console, "started", an_event(1, thumbnail="event1.jpg"))
        wait_until(lambda: heard.text("habitus/north/state") == "ON", "it goes on")
        wait_until(lambda: heard.retained.get("habitus/north/picture"), "its picture")
        assert heard.retained["habitus/north/picture"] == picture.read_bytes()
        last = json.loads(heard.text("habitus/north/last") or "")
        assert last["explanation"] == "moves against the usual direction"
        assert last["links"]["page"].endswith("/events/event1")
        tell(console, "ended", an_event(1, end=an_event(2).start))
        wait_until(lambda: heard.text("habitus/north/state") == "OFF", "it is over")
        with console.database.transaction() as session:
            session.get_one(CameraRow, "north").state = "lost"
        tell(console, "trouble", a_trouble())
        wait_until(lambda: heard.text("habitus/north/condition") == "lost", "it is lost")
        wait_until(lambda: len(heard.events) == 3, "all are told")
        assert [event["kind"] for event in heard.events] == ["started", "ended", "trouble"]
        assert {event["topic"] for event in heard.events} == {"habitus/north/event"}
    assert delivering == []


def test_home_assistant_finds_cameras_and_forgets_removed_ones(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    add_camera(console, "north", name="North <junction>")
    add_camera(console, "south")
    add_camera(console, "west")
    channel = add_channel(
        console, "mqtt", broker.settings | {"topic": "site/one"}, cameras=["north", "south"]
    )
    with subscribed(broker) as heard:
        parts = ("unusual", "condition", "last", "picture", "live", "call_normal", "call_unusual")
        wait_until(lambda: len(configurations(heard)) == 2 * len(parts), "all are found")
        found = configurations(heard)
        assert len({config["unique_id"] for config in found.values()}) == len(found)
        unusual = found["homeassistant/binary_sensor/site_one_north/unusual/config"]
        assert unusual["state_topic"] == "site/one/north/state"
        assert unusual["availability_topic"] == "site/one/status"
        assert unusual["device"]["name"] == "North <junction>"
        last = found["homeassistant/sensor/site_one_north/last/config"]
        assert last["value_template"] == "{{ value_json.explanation[:250] }}"
        with console.database.transaction() as session:
            session.delete(session.get_one(CameraRow, "south"))
        wait_until(lambda: not any("south" in topic for topic in heard.retained), "south is gone")
        assert len(configurations(heard)) == len(parts)
        with console.database.transaction() as session:
            session.delete(session.get_one(Channel, channel.id))
        wait_until(lambda: not heard.retained, "everything is gone with the channel")
    with console.database.session() as session:
        assert session.scalars(select(Setting)).all() == []


def test_events_are_also_told_as_those_of_frigate(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    add_camera(console)
    add_channel(console, "mqtt", broker.settings)
    with subscribed(broker) as heard:
        tell(console, "started", an_event(1, thumbnail="event1.jpg"))
        tell(console, "ended", an_event(1, thumbnail="event1.jpg", end=an_event(2).start))
        tell(console, "trouble", a_trouble())
        wait_until(lambda: len(heard.events) == 3, "all are told")
        wait_until(lambda: len(heard.reviews) == 2, "both are told")
    new, end = heard.reviews
    assert (new["type"], end["type"]) == ("new", "end")
    assert new["after"] == new["before"] == end["before"]
    assert end["after"] == {**new["after"], "end_time": an_event(2).start}
    data = new["after"].pop("data")
    assert new["after"] == {
        "id": "event1",
        "camera": "north",
        "start_time": an_event(1).start,
        "end_time": None,
        "severity": "alert",
        "thumb_path": "http://127.0.0.1:8420/api/events/event1/thumbnail",
    }
    assert data.pop("metadata")["scene"] == "moves against the usual direction"
    lists = {"sub_labels": [], "zones": [], "audio": []}
    assert data == {"detections": ["event1"], "objects": ["unusual"], **lists}


def test_the_last_event_is_reviewed_by_a_button(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    for camera in ("north", "south"):
        add_camera(console, camera)
    channel = add_channel(console, "mqtt", broker.settings, cameras=["north"])

    def reviewed() -> list[tuple[str, str | None, str | None]]:
        with console.database.session() as session:
            rows = session.scalars(select(EventRow).order_by(EventRow.id))
            return [(row.id, row.review, row.reviewer) for row in rows]

    with subscribed(broker) as heard:
        tell(console, "started", an_event(1), an_event(2), an_event(3, "south"))
        wait_until(lambda: heard.text("habitus/north/last"), "it is told")
        heard.publish("habitus/south/review", "normal")  # not one of the channel's cameras
        heard.publish("habitus/north/review", "unusual")
        wait_until(lambda: reviewed()[1] == ("event2", "unusual", "MQTT"), "it is reviewed")
        heard.publish("habitus/north/review", "nonsense")
        wait_until(lambda: console.bulletin.notices(), "a notice")
        assert [row[1] for row in reviewed()] == [None, "unusual", None]
        heard.publish("habitus/north/review", "normal")
        wait_until(lambda: reviewed()[1][1] == "normal", "it is reviewed anew")
    assert "an event is normal or unusual" in console.bulletin.notices()[0].text
    assert channel.name in console.bulletin.notices()[0].text


def test_home_assistant_gets_the_live_picture(console: Console, broker: Broker) -> None:
    add_camera(console)
    jpeg = b"\xff\xd8 a live picture"
    picture = CameraPicture(time.time(), jpeg, 16, 16, [], [])

    class Watching(Supervisor):
        def latest(self, camera_id: str) -> LatestReports:
            return super().latest(camera_id)._replace(seen=picture)

    console.supervisor = Watching(console)
    add_channel(console, "mqtt", broker.settings)
    with subscribed(broker) as heard, delivered(console):
        wait_until(lambda: heard.retained.get("habitus/north/live") == jpeg, "it is shown")
        config = configurations(heard)["homeassistant/camera/habitus_north/live/config"]
        assert config["topic"] == "habitus/north/live"
        assert config["unique_id"] == "habitus_north_live"


def configurations(heard: Subscriber) -> dict[str, Any]:
    return {
        topic: json.loads(payload)
        for topic, payload in list(heard.retained.items())
        if topic.endswith("/config")
    }


@pytest.mark.parametrize("removed", [["south"], ["north", "south"]])
def test_cameras_that_were_removed_while_the_broker_was_away_are_forgotten(
    console: Console, broker: Broker, removed: list[str]
) -> None:
    broker.persist()
    for camera in ("north", "south"):
        add_camera(console, camera)
    add_channel(console, "mqtt", broker.settings)
    with subscribed(broker) as heard:
        with delivered(console):
            wait_until(lambda: len(configurations(heard)) == 14, "all are found")
        wait_until(lambda: heard.text("habitus/status") == "offline", "the console has left")
    broker.stop()
    with console.database.transaction() as session:
        for camera in removed:
            session.delete(session.get_one(CameraRow, camera))
    broker.start()
    with subscribed(broker) as heard:
        wait_until(lambda: len(configurations(heard)) == 14, "the broker forgot nothing")
        with delivered(console):
            n_left = 14 - 7 * len(removed)
            wait_until(lambda: len(configurations(heard)) == n_left, "they are gone")


@contextlib.contextmanager
def delivered(console: Console) -> Iterator[None]:
    deliverer = Deliverer(console, first_wait=0.05, longest_wait=0.2)
    deliverer.start()
    try:
        yield
    finally:
        deliverer.stop()


def test_nothing_is_lost_and_all_is_in_order_while_the_broker_comes_and_goes(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    broker.persist()
    add_camera(console)
    add_channel(console, "mqtt", broker.settings, name="the broker")
    with subscribed(broker) as heard:
        tell(console, "started", *(an_event(k, end=0.0) for k in range(20)))
        wait_until(lambda: len(heard.events) >= 5, "some are told")
        broker.stop()
        tell(console, "started", *(an_event(k) for k in range(20, 40)))
        wait_until(lambda: any("the broker cannot" in line for line in delivering), "a notice")
        broker.start()
        heard.wait()
        wait_until(lambda: all_told(console), "all are told")
        wait_until(lambda: len(set(ids(heard))) == 40, "all are heard")
        wait_until(lambda: heard.text("habitus/north/state") == "ON", "its state is right")
    # What the broker had when it was killed may be told again, with its id.
    assert list(dict.fromkeys(ids(heard))) == [f"event{k}/started" for k in range(40)]
    assert len(ids(heard)) - heard.n_repeated <= 41  # which the broker itself repeats
    assert "the broker works again" in delivering


def test_an_idle_connection_that_broke_is_made_again(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    add_camera(console)
    add_channel(console, "mqtt", broker.settings)
    with subscribed(broker) as heard:
        wait_until(lambda: heard.text("habitus/status") == "online", "it is there")
        broker.stop()  # forgets everything
        heard.retained.clear()
        broker.start()
        heard.wait()
        wait_until(lambda: heard.text("habitus/north/state") == "OFF", "all is there again")
        wait_until(lambda: heard.text("habitus/status") == "online", "it is there again")


def test_a_console_that_dies_is_offline(console: Console, broker: Broker, start: Any) -> None:
    add_channel(console, "mqtt", broker.settings)
    process = deliverer_process(start, console)
    with subscribed(broker) as heard:
        wait_until(lambda: heard.text("habitus/status") == "online", "it is there")
        process.kill()
        wait_until(lambda: heard.text("habitus/status") == "offline", "its will is told")


def test_states_are_not_limited_but_messages_are(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    add_camera(console)
    add_channel(console, "mqtt", broker.settings, most_per_hour=1)
    with subscribed(broker) as heard:
        tell(console, "started", an_event(1, end=0.0), an_event(2))
        wait_until(lambda: outcomes(console) == ["sent", "held"], "one is told")
        wait_until(lambda: heard.text("habitus/north/state") == "ON", "the second goes on")
    assert ids(heard) == ["event1/started"]


def test_a_test_beside_the_console_leaves_its_state_alone(
    console: Console, broker: Broker, delivering: list[str]
) -> None:
    channel = add_channel(console, "mqtt", broker.settings)
    with subscribed(broker) as heard:
        wait_until(lambda: heard.text("habitus/status") == "online", "it is there")
        for n_tests in (1, 2):  # what the first said of its end is heard before the second
            channels.send_test(console, channel)
            wait_until(lambda n=n_tests: len(heard.events) == n, "the test is heard")
        assert heard.statuses == ["online"]


def test_a_wrong_password_is_a_clear_failure(console: Console, broker: Broker) -> None:
    wrong = add_channel(console, "mqtt", broker.settings | {"password": "wrong"})
    with pytest.raises(DeliveryError, match=r"the broker is away: .*(?i:not authori[sz]ed)"):
        channels.send_test(console, wrong)
    with subscribed(broker) as heard:
        channels.send_test(console, add_channel(console, "mqtt", broker.settings))
        wait_until(lambda: heard.events, "the test is heard")
    assert heard.events[0]["topic"] == "habitus/test"


# paho-mqtt leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_broker_is_known_by_its_certificate(console: Console, broker: Broker) -> None:
    settings = broker.settings | {"host": "localhost", "tls": True, "ca": broker.encrypt()}
    channels.send_test(console, add_channel(console, "mqtt", settings))
    for wrong in ({"ca": ""}, {"host": "127.0.0.1"}):
        with pytest.raises(DeliveryError, match=r"(?i)certificate"):
            channels.send_test(console, add_channel(console, "mqtt", settings | wrong))
    gc.collect()


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({}, "host"),
        ({"host": "mqtt://example.org"}, "host"),
        ({"host": 5}, "host"),
        ({"host": "a", "port": 70000}, "port"),
        ({"host": "a", "port": "mqtt"}, "port"),
        ({"host": "a", "topic": "a/#"}, "topic"),
        ({"host": "a", "discovery": "/x"}, "discovery"),
        ({"host": "a", "tls": True, "ca": "nonsense"}, "ca"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InvalidInputError) as told:
        channels.check("mqtt", settings)
    assert told.value.parameter == parameter


def test_what_is_shown_has_no_password() -> None:
    shown = channels.check("mqtt", {"host": "a", "username": "u", "password": "s3", "tls": True})
    assert shown["port"] == 8883
    assert shown["password"] is True
    assert "s3" not in json.dumps(shown)


def test_one_event_is_the_same_from_the_command_to_the_broker(
    console: Console,
    broker: Broker,
    delivering: list[str],
    video: Path,
    model: Path,
    tmp_path: Path,
) -> None:
    """What `detect --json` prints: in journal, database, API, webhook and MQTT, field by field."""
    asked = ("detect", video, "-m", model, "--alerts-per-day", 500, "--json")
    (tmp_path / "events.jsonl").write_text(done(*asked, cwd=tmp_path).stdout)
    printed = json.loads((tmp_path / "events.jsonl").read_text().splitlines()[0])
    (seen, *_) = read_events(tmp_path / "events.jsonl")
    told = SiteEvent(
        id="e1", camera_id="north", start=START, end=START + 2, peak=START + 1, details=seen
    )
    file_event(tmp_path, told)
    ((_, filed),) = filed_events(tmp_path)
    assert filed == told
    add_camera(console)
    add_channel(console, "mqtt", broker.settings)
    with receiver() as hook, subscribed(broker) as heard:
        add_channel(console, "webhook", {"url": hook.url})
        with console.database.transaction() as session:
            assert store.ingest(session, "north", filed)
        both = {"e1/started", "e1/ended"}
        wait_until(lambda: {*ids(heard)} == {*hook.keys} == both, "both are told")
        wait_until(lambda: heard.text("habitus/north/last"), "it is the last one")
        last = json.loads(heard.text("habitus/north/last") or "")
    browser = Visitor(create_app(console))
    answered = browser.get("/api/events/e1").json()
    listed = {name: answered[name] for name in answered.keys() - {"details", "newer", "older"}}
    short = {name: value for name, value in printed.items() if name not in EVIDENCE}
    assert answered["details"] == printed
    assert {name: listed[name] for name in OF_EVENT} == {
        name: printed.get(name, seen.quiet) for name in OF_EVENT
    }
    assert browser.get("/api/events").json()["events"] == [listed]
    assert last == listed | {"links": last["links"]}
    for message in (*heard.events, *(posted.body for posted in hook.posted)):
        assert message["event"] == listed | {"details": short}
    with console.database.session() as session:
        assert session.get_one(EventRow, "e1").details == printed
