import asyncio
import hashlib
import hmac
import json
import socket
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from habitus import InvalidInputError
from habitus.web import channels
from habitus.web.answers import NewChannel, checked
from habitus.web.channels import DeliveryError, webhook
from habitus.web.delivery import Deliverer
from habitus.web.server import Console, open_console
from habitus.web.server_settings import ServerSettings
from reference.consoles import add_camera, event_json
from reference.processes import wait_until
from reference.telling import Receiver, add_channel, all_told, an_event, outbox, receiver, tell


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


def fault(console: Console, url: str) -> str:
    with pytest.raises(DeliveryError) as told:
        channels.send_test(console, add_channel(console, "webhook", {"url": url}))
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_test_message_is_posted_and_signed(console: Console, hook: Receiver) -> None:
    settings = {"url": f"{hook.url}?token=t", "secret": "key"}
    before = int(time.time())
    channels.send_test(console, add_channel(console, "webhook", settings))
    (posted,) = hook.posted
    assert posted.path == "/hook?token=t"
    assert posted.headers["Content-Type"] == "application/json"
    assert posted.body["kind"] == "test"
    assert posted.body["id"] == posted.key
    timestamp = posted.headers["X-Habitus-Timestamp"]
    assert before <= int(timestamp) <= time.time()
    digest = hmac.new(b"key", f"{timestamp}.".encode() + posted.raw, hashlib.sha256).hexdigest()
    assert posted.headers["X-Habitus-Signature"] == f"sha256={digest}"


def test_without_a_secret_there_is_no_signature_and_users_are_told(
    console: Console, hook: Receiver
) -> None:
    url = hook.url.replace("//", "//me:p%40ss@")
    channels.send_test(console, add_channel(console, "webhook", {"url": url}))
    headers = hook.posted[0].headers
    assert "X-Habitus-Signature" not in headers
    assert headers["Authorization"] == "Basic bWU6cEBzcw=="


def test_an_event_is_told_with_links(tmp_path: Path, hook: Receiver) -> None:
    console = open_console(ServerSettings(tmp_path, public_url="https://cameras.example.org/"))
    add_camera(console)
    channel = add_channel(console, "webhook", {"url": hook.url})
    tell(console, "started", an_event(1))
    (row,) = outbox(console)
    notification = channels.Notification(row.subject, row.kind, row.created, row.body)
    asyncio.run(channels.open_sender(console, channel).send(notification))
    body = hook.posted[0].body
    console.database.close()
    assert (body["habitus"], body["version"], body["kind"]) == ("notification", 1, "started")
    assert body["camera"] == {"id": "north", "name": "North"}
    assert body["event"]["explanation"] == "moves against the usual direction"
    assert body["event"]["end"] is None
    assert body["links"] == {
        "page": "https://cameras.example.org/events/event1",
        "thumbnail": "https://cameras.example.org/api/events/event1/thumbnail",
        "heat": "https://cameras.example.org/api/events/event1/heat",
        "clip": "https://cameras.example.org/api/events/event1/clip",
    }


def test_the_documents_show_what_is_sent(console: Console) -> None:
    page = Path(__file__).parents[2] / "docs/how-to/notifications.md"
    shown = json.loads(page.read_text().split("```json\n")[1].split("```")[0])
    add_camera(console)
    add_channel(console, "webhook", {"url": "http://127.0.0.1:9/"})
    tell(console, "started", an_event(1, details=event_json()))
    (row,) = outbox(console)
    sent = channels.Notification(row.subject, row.kind, row.created, row.body)
    real = sent.to_json(console.settings)
    assert list(shown) == list(real)
    for part in ("camera", "event", "links"):
        assert list(shown[part]) == list(real[part])
    assert list(shown["event"]["details"]) == list(real["event"]["details"])


def test_answers_that_are_not_success_are_failures(console: Console, hook: Receiver) -> None:
    hook.status = 404
    assert fault(console, hook.url) == "answered 404 Not Found"


def test_no_redirection_is_followed(console: Console, hook: Receiver) -> None:
    with receiver() as other:
        hook.status, hook.location = 307, other.url
        assert fault(console, hook.url).startswith("answered 307 Temporary Redirect; it is not")
        assert other.posted == []
    hook.location = hook.url
    fault(console, hook.url)
    assert len(hook.posted) == 2


def test_a_receiver_that_never_ends_its_answer_is_cut(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection = server.accept()[0]
            with connection:
                for _ in range(1000):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return
                    time.sleep(0.05)

        thread = threading.Thread(target=drip)
        thread.start()
        told = fault(console, f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join()
    assert told == "no answer within 0.5 s"


def test_https_is_checked(console: Console, hook: Receiver) -> None:
    assert "SSL" in fault(console, hook.url.replace("http:", "https:"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "http://"),
        ({"url": 5}, "http://"),
        ({"url": "ftp://example.org"}, "http://"),
        ({"url": "http://"}, "http://"),
        ({"url": "http://a:99999/"}, "http://"),
        ({"url": "http://[::1/"}, "http://"),
        ({"url": "http://example.org/a b"}, "spaces"),
        ({"url": "http://example.org/", "secret": 5}, "must be a text"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as told:
        channels.check("webhook", settings)
    assert told.value.parameter in ("url", "secret")


@pytest.mark.parametrize("url", ["http://a..b/", f"http://{'a' * 64}.example.org/"])
def test_a_name_that_cannot_be_one_is_a_clear_failure(console: Console, url: str) -> None:
    assert "label" in fault(console, url)


def test_a_path_that_is_not_encoded_is_a_clear_failure(console: Console, hook: Receiver) -> None:
    assert "encode" in fault(console, f"{hook.url}/é")


def test_what_is_shown_has_no_secrets(console: Console) -> None:
    url = "https://user:pass@hooks.example.org:8443/services/T0/B0?key=K"
    shown = channels.check("webhook", {"url": url, "secret": "S"})
    assert shown == {"url": "https://hooks.example.org:8443/...", "signed": True}
    with pytest.raises(InvalidInputError, match=r"kind: .*'mail', 'push' or 'apprise'"):
        checked(NewChannel, {"name": "Fax", "kind": "fax", "settings": {}})


def test_a_webhook_has_the_picture_if_it_is_asked_for(console: Console) -> None:
    add_camera(console)
    deliverer = Deliverer(console)
    deliverer.start()
    folder = console.settings.camera_folder("north") / "events"
    folder.mkdir(parents=True)
    (folder / "event1.jpg").write_bytes(b"\xff\xd8 a picture")
    with receiver() as plain, receiver() as whole:
        add_channel(console, "webhook", {"url": plain.url})
        add_channel(console, "webhook", {"url": whole.url, "picture": True, "secret": "s"})
        tell(console, "started", an_event(1, thumbnail="event1.jpg"), an_event(2))
        wait_until(lambda: all_told(console), "all are told")
    deliverer.stop()
    assert [posted.body.get("picture") for posted in plain.posted] == [None, None]
    first, second = whole.posted
    assert b64decode(first.body["picture"]) == b"\xff\xd8 a picture"
    assert "picture" not in second.body
