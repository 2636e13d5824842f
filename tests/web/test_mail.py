import ssl
import time
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from habitus import InvalidInputError
from habitus.web import channels
from habitus.web.channels import DeliveryError, Notification, services
from habitus.web.delivery import Deliverer
from habitus.web.outbox import HOUR
from habitus.web.server import Console
from reference.certificates import make_certificate
from reference.consoles import add_camera
from reference.mail_server import PASSWORD, USER, Post
from reference.processes import wait_until
from reference.telling import a_trouble, add_channel, all_told, an_event, outbox, outcomes, tell

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
JPEG = b"\xff\xd8\xff\xe0 a picture \xff\xd9"


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Iterator[Post]:
    # Apprise lets 5.5 seconds pass between two messages.
    monkeypatch.setattr("apprise.plugins.base.NotifyBase.request_rate_per_sec", 0)
    server = Post()
    yield server
    server.close()


@pytest.fixture
def delivering(console: Console) -> Iterator[list[str]]:
    add_camera(console)
    notices: list[str] = []
    deliverer = Deliverer(console, notice=notices.append, first_wait=0.05, longest_wait=0.2)
    deliverer.start()
    yield notices
    deliverer.stop()


def text_of(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


@pytest.mark.parametrize("kind", ["apprise", "mail"])
def test_an_event_is_one_mail_with_its_picture(
    console: Console, post: Post, delivering: list[str], kind: str
) -> None:
    folder = console.settings.camera_folder("north") / "events"
    folder.mkdir(parents=True)
    (folder / "event1.jpg").write_bytes(JPEG)
    add_channel(console, kind, {"url": post.url()} if kind == "apprise" else post.settings())
    tell(console, "started", an_event(1, thumbnail="event1.jpg"))
    tell(console, "ended", an_event(1, thumbnail="event1.jpg", end=an_event(3).start))
    tell(console, "started", an_event(2, thumbnail="gone.jpg"))
    tell(console, "trouble", a_trouble())
    wait_until(lambda: all_told(console), "all are told")
    first, second, trouble = post.mail
    assert first["Subject"] == "North: something unusual"
    assert first["To"].addresses[0].addr_spec == "me@example.org"
    text = text_of(first)
    assert "Moves against the usual direction" in text
    assert time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(an_event(1).start)) in text
    assert "About once in 3 hours (how unusual, from 0 to 100: 0)" in text
    assert "http://127.0.0.1:8420/events/event1" in text
    (picture,) = first.iter_attachments()
    assert picture.get_content() == JPEG
    assert list(second.iter_attachments()) == []
    assert trouble["Subject"] == "North: lost"
    assert "no picture" in text_of(trouble)
    assert delivering == []


def test_mail_waits_for_its_server_in_order(
    console: Console, post: Post, delivering: list[str]
) -> None:
    post.full = True
    add_channel(console, "apprise", {"url": post.url()}, name="my mail")
    tell(console, "started", *(an_event(k) for k in range(1, 4)))
    wait_until(lambda: outbox(console)[0].attempts >= 2, "it is tried again")
    assert outbox(console)[0].error
    post.full = False
    wait_until(lambda: all_told(console), "all are told")
    links = [text_of(message).rpartition("/")[2].strip() for message in post.mail]
    assert links == ["event1", "event2", "event3"]
    assert delivering[0].startswith("my mail cannot be sent anything now")


def test_a_digest_is_readable(console: Console, post: Post) -> None:
    add_camera(console)
    now = time.time()
    add_channel(console, "apprise", {"url": post.url()}, most_per_hour=1)
    tell(console, "started", *(an_event(k) for k in range(1, 5)), now=now)
    shift = [0.0]
    deliverer = Deliverer(console, clock=lambda: now + shift[0])
    deliverer.start()
    wait_until(lambda: outcomes(console) == ["sent"] + 3 * ["held"], "one is told")
    shift[0] = HOUR + 1
    wait_until(lambda: len(post.mail) == 2, "the digest is told")
    deliverer.stop()
    assert post.mail[1]["Subject"] == "habitus: 3 unusual events"
    text = text_of(post.mail[1])
    assert "The most unusual:" in text
    assert text.count("http://127.0.0.1:8420/events/event") == 3


def test_a_slow_service_is_a_failure_but_not_told_twice(
    console: Console, post: Post, monkeypatch: pytest.MonkeyPatch, delivering: list[str]
) -> None:
    patience = services.TIMEOUT
    monkeypatch.setattr(services, "TIMEOUT", 0.3)
    post.gate.clear()
    add_channel(console, "apprise", {"url": post.url()})
    tell(console, "started", an_event(1), an_event(2))
    wait_until(lambda: outbox(console)[0].attempts >= 2, "it has failed twice")
    assert outbox(console)[0].error == "no answer within 0.3 s"
    monkeypatch.setattr(services, "TIMEOUT", patience)
    post.gate.set()
    wait_until(lambda: all_told(console), "all are told")
    assert len(post.mail) == 2


def test_what_may_have_been_told_before_says_so(console: Console) -> None:
    body = {"camera": {"id": "north", "name": "North"}, "event": {"id": "a", "start": 0.0}}
    body["event"] |= {"end": None, "explanation": "e", "rarity": ""}
    first = Notification("a/started", "started", 0.0, body)
    assert "before" not in first.text(console.settings)
    assert "may have been sent before" in first._replace(again=True).text(console.settings)


def test_a_wrong_password_is_a_clear_failure_without_it(
    console: Console, post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    channel = add_channel(console, "apprise", {"url": post.url("wr0ng")})
    with pytest.raises(DeliveryError) as told:
        channels.send_test(console, channel)
    assert "wr0ng" not in str(told.value)
    assert "wr0ng" not in caplog.text
    assert "\n" not in str(told.value)
    channels.send_test(console, add_channel(console, "apprise", {"url": post.url()}))
    assert post.mail[0]["Subject"] == "habitus: a test message"


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_is_encrypted_to_a_server_that_is_known(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    certificate, key = make_certificate(tmp_path, "DNS:localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    options = {"auth_require_tls": True, "require_starttls": True, "tls_context": context}
    if security == "tls":
        options = {"ssl_context": context, "auth_require_tls": False}
    server = Post(**options)
    try:
        channel = add_channel(console, "mail", server.settings(security=security))
        with pytest.raises(DeliveryError, match="certificate verify failed"):
            channels.send_test(console, channel)
        assert server.mail == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        channels.send_test(console, channel)
        assert server.mail[0]["Subject"] == "habitus: a test message"
        assert server.mail[0]["From"] == "Habitus <habitus@example.org>"
    finally:
        server.close()


def test_a_mail_server_that_is_away_is_waited_for(
    console: Console, post: Post, delivering: list[str]
) -> None:
    post.full = True
    add_channel(console, "mail", post.settings(), name="my mail")
    tell(console, "started", *(an_event(k) for k in range(1, 3)))
    wait_until(lambda: outbox(console)[0].attempts >= 2, "it is tried again")
    assert outbox(console)[0].error == "the server answered 452 the mailbox is full"
    post.full = False
    wait_until(lambda: all_told(console), "all are told")
    first, second = (message["Message-ID"] for message in post.mail)
    assert first != second
    assert first.endswith("@example.org>")


def test_a_mailbox_that_is_refused_is_a_notice(
    console: Console, post: Post, delivering: list[str]
) -> None:
    settings = post.settings(to="me@example.org, nobody@example.org")
    add_channel(console, "mail", settings, name="my mail")
    tell(console, "started", an_event(1))
    wait_until(lambda: all_told(console), "it is told")
    (notice,) = console.bulletin.notices()
    assert notice.text.startswith("my mail: the server refused nobody@example.org (550 ")
    channel = add_channel(console, "mail", post.settings(to="nobody@example.org"))
    with pytest.raises(DeliveryError, match="refused nobody@"):
        channels.send_test(console, channel)


def test_a_mail_server_does_not_learn_a_wrong_password_from_errors(
    console: Console, post: Post
) -> None:
    channel = add_channel(console, "mail", post.settings(**{"password": "wr0ng"}))
    with pytest.raises(DeliveryError, match="answered 535") as told:
        channels.send_test(console, channel)
    assert "wr0ng" not in str(told.value)
    assert channel.shown_settings["password"] is True
    assert "wr0ng" not in str(channel.shown_settings)


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"host": "a b"}, "host"),
        ({"host": "169.254.169.254"}, "host"),
        ({"port": 70000}, "port"),
        ({"port": True}, "port"),
        ({"security": "ssl2"}, "security"),
        ({"from": "nobody"}, "from"),
        ({"from": "a@example.org, b@example.org"}, "from"),
        ({"to": ""}, "to"),
        ({"to": "me@example.org, "}, "to"),
        ({"to": "me@example.org\nBcc: all@example.org"}, "to"),
        ({"to": 5}, "to"),
        ({"username": ""}, "username"),
        ({"password": 5}, "password"),
    ],
)
def test_settings_of_a_mail_server_are_checked(changed: dict[str, Any], parameter: str) -> None:
    good = {"host": "mail.example.org", "from": "a@example.org", "to": "b@example.org"}
    good |= {"username": USER, "password": PASSWORD}
    assert channels.check("mail", good)["port"] == 587
    with pytest.raises(InvalidInputError) as told:
        channels.check("mail", {**good, **changed})
    assert told.value.parameter == parameter


def test_secrets_are_not_shown() -> None:
    shown = channels.check("apprise", {"url": "mailto://user:s3cret@example.org?pass=s3cret"})
    assert shown == {"service": "E-Mail", "url": "mailto://user:****@example.org/"}


@pytest.mark.parametrize("url", [None, 5, "", "nonsense", "file:///etc/passwd", "mailto://"])
def test_addresses_that_apprise_does_not_know_are_refused(url: Any) -> None:
    with pytest.raises(InvalidInputError, match="not an address that Apprise knows") as told:
        channels.check("apprise", {"url": url})
    assert told.value.parameter == "url"


def test_names_of_pictures_do_not_leave_their_folder(console: Console) -> None:
    folder = console.settings.camera_folder("north") / "events"
    folder.mkdir(parents=True)
    Path(folder.parent / "secret.jpg").write_bytes(JPEG)
    body = {"camera": {"id": "north"}, "event": {"thumbnail": "../secret.jpg"}}
    assert Notification("a", "started", 0.0, body).picture(console.settings) is None
