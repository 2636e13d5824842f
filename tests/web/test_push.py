"""Notifications of browsers: a push service that checks who sends, and a browser that reads."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.sync_api import expect
from sqlalchemy import select

from habitus import InvalidInputError
from habitus.web import administration, channels
from habitus.web.answers import HttpError, NewBrowser, NewUser
from habitus.web.channels import DeliveryError, push
from habitus.web.database import CameraRow, Channel, Role, Setting
from habitus.web.delivery import Deliverer
from habitus.web.outbox import snoozed_until
from habitus.web.security import Actor
from habitus.web.server import Console, open_console
from reference.console_pages import Site
from reference.consoles import add_camera
from reference.processes import wait_until
from reference.push_service import CURVE, PushService, push_service, unb64
from reference.telling import a_trouble, add_channel, all_told, an_event, tell

VIEWER = Actor("ann", Role.VIEWER, user_id=1)
ADMIN = Actor("admin", Role.ADMIN, user_id=2)


@pytest.fixture
def service() -> Iterator[PushService]:
    with push_service() as server:
        yield server


@pytest.fixture
def delivering(console: Console) -> Iterator[list[str]]:
    add_camera(console)
    notices: list[str] = []
    deliverer = Deliverer(console, notice=notices.append, first_wait=0.05, longest_wait=0.2)
    deliverer.start()
    yield notices
    deliverer.stop()


def test_a_text_is_encrypted_as_the_standard_has_it() -> None:
    """The example of RFC 8291, appendix A."""
    secret = int.from_bytes(unb64("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    receiver = unb64(
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    )
    found = push.encrypted(
        b"When I grow up, I want to be a watermelon",
        receiver,
        unb64("BTBZMqHH6r4Tts7J_aSIgg"),
        key=ec.derive_private_key(secret, CURVE),
        salt=unb64("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert found == unb64(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS"
        "6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qul"
        "cy4a-fN"
    )


def test_events_and_troubles_are_shown(
    console: Console, service: PushService, delivering: list[str]
) -> None:
    folder = console.settings.camera_folder("north") / "events"
    folder.mkdir(parents=True)
    (folder / "event1.jpg").write_bytes(b"\xff\xd8 a picture")
    service.server_key = push.public_key(console)
    add_channel(console, "push", service.settings)
    tell(console, "started", an_event(1, thumbnail="event1.jpg"))
    tell(console, "ended", an_event(1, end=an_event(2).start))
    tell(console, "trouble", a_trouble())
    wait_until(lambda: all_told(console), "all are told")
    event, trouble = service.shown
    assert event["title"] == "North: something unusual"
    assert "Moves against the usual direction" in event["body"]
    assert "://" not in event["body"]
    assert event["page"] == "/events/event1"
    assert event["image"] == "/api/events/event1/thumbnail"
    assert (trouble["title"], trouble["image"]) == ("North: lost", None)
    assert [headers["Urgency"] for headers in service.headers] == ["high", "normal"]
    assert delivering == []


def test_a_long_sentence_fits_into_one_message(
    console: Console, service: PushService, delivering: list[str]
) -> None:
    with console.database.transaction() as session:
        session.get_one(CameraRow, "north").name = 100 * "😀"
    add_channel(console, "push", service.settings)
    tell(console, "started", an_event(1, explanation=5000 * "😀"))
    wait_until(lambda: all_told(console), "it is told")
    assert delivering == []
    assert service.shown[0]["body"] == 600 * "😀"


def test_a_browser_that_is_gone_is_removed(
    console: Console, service: PushService, delivering: list[str]
) -> None:
    add_channel(console, "push", service.settings, name="ann: Chrome on Android")
    service.status = 503
    tell(console, "started", an_event(1))
    wait_until(lambda: delivering, "it is away")
    service.status = 410
    wait_until(lambda: not console.database.read(_channels), "it is removed")
    wait_until(lambda: console.bulletin.notices(), "somebody is told")
    (notice,) = console.bulletin.notices()
    assert "ann: Chrome on Android takes no notifications any more" in notice.text


def _channels(session: Any) -> list[Channel]:
    return list(session.scalars(select(Channel)))


def test_the_key_is_made_once_and_encrypted_at_rest(console: Console) -> None:
    first = push.public_key(console)
    again = open_console(console.settings)
    assert push.public_key(again) == first
    again.database.close()
    number = push.private_key(console).private_numbers().private_value
    with console.database.session() as session:
        stored = json.dumps(session.get_one(Setting, "push").value)
    assert str(number) not in stored
    assert len(unb64(first)) == 65


def test_a_browser_is_tried_before_it_is_added(console: Console, service: PushService) -> None:
    device = NewBrowser(**service.settings, name="Chrome on Android")
    service.status = 500
    with pytest.raises(DeliveryError, match="500"):
        administration.add_device(console, ADMIN, device)
    assert console.database.read(_channels) == []
    service.status = 201
    for _ in range(2):  # once more is the same one
        administration.add_device(console, ADMIN, device)
    (channel,) = console.database.read(_channels)
    assert channel.name == "admin: Chrome on Android"
    assert channel.shown_settings == {"url": f"http://127.0.0.1:{service.server_port}/..."}
    assert [news["title"] for news in service.shown] == 2 * ["habitus: a test message"]
    service.status = 503
    with pytest.raises(DeliveryError, match="503"):
        administration.add_device(console, ADMIN, device)
    assert [one.id for one in console.database.read(_channels)] == [channel.id], "it stays"
    administration.remove_device(console, "admin", service.endpoint)
    assert console.database.read(_channels) == []


def test_only_admins_name_a_push_service_of_their_own(
    console: Console, service: PushService
) -> None:
    with pytest.raises(HttpError, match="push service"):
        administration.add_device(console, VIEWER, NewBrowser(**service.settings, name="phone"))
    assert service.shown == []


@pytest.mark.parametrize(
    "changed",
    [{"endpoint": 5}, {"endpoint": "ftp://x/"}, {"p256dh": "BCVx"}, {"auth": "short"}, {"auth": 1}],
)
def test_what_is_no_subscription_is_refused(service: PushService, changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        channels.check("push", {**service.settings, **changed})


def test_who_is_removed_is_sent_nothing_any_more(console: Console, service: PushService) -> None:
    secret = {"password": "long enough"}
    administration.add_user(console, "admin", NewUser(name="admin", role=Role.ADMIN, **secret))
    ann = administration.add_user(console, "admin", NewUser(name="ann", **secret))
    settings = {**service.settings, "user": ann.id}
    add_channel(console, "push", settings)
    add_channel(console, "push", {**settings, "user": 77}, name="another")
    administration.remove(console, "admin", type(ann), ann.id)
    assert [channel.name for channel in console.database.read(_channels)] == ["another"]


SUBSCRIBE = """
const subscription = {
  endpoint: SETTINGS.endpoint,
  toJSON: () => {
    const { endpoint, ...keys } = SETTINGS;
    return { endpoint, keys };
  },
  unsubscribe: async () => { localStorage.removeItem("subscribed"); },
};
PushManager.prototype.subscribe = async (options) => {
  localStorage.setItem("subscribed", Array.from(options.applicationServerKey).length);
  return subscription;
};
PushManager.prototype.getSubscription = async () =>
  localStorage.getItem("subscribed") && subscription;
Notification.requestPermission = async () => "granted";
Object.defineProperty(Notification, "permission", { get: () => "granted" });
"""
"""The push service that a browser's maker runs is this test's own."""


def test_a_browser_switches_notifications_on_and_off(
    site: Site, look: dict[str, Any], service: PushService
) -> None:
    visit = site.visit("/", **look)
    settings = json.dumps(service.settings)
    visit.page.add_init_script(SUBSCRIBE.replace("SETTINGS", f"({settings})"))
    page = visit.go("/account")
    expect(page.locator("#push-said")).to_have_text("Off.")
    button = page.get_by_role("button", name="Switch on")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#push-said")).to_contain_text("On:")
    assert [news["title"] for news in service.shown] == ["habitus: a test message"]
    assert page.evaluate("localStorage.getItem('subscribed')") == "65"
    visit.go("/settings/channels")
    expect(page.locator("li", has_text="on Linux").first).to_contain_text("push")
    visit.go("/account")
    page.get_by_role("button", name="Switch off").click()
    expect(page.locator("#push-said")).to_have_text("Off.")
    assert "push" not in {c.kind for c in site.console.database.read(_channels)}


RECORD = """() => {
  self.shown = [];
  ServiceWorkerRegistration.prototype.showNotification = async (title, options) => {
    self.shown.push({ title, ...options });
  };
}"""
"""A browser without a screen shows no notifications: what it is asked to show is kept."""
CLICK = """([page, camera, action]) => {
  const notification = { data: { page, camera }, close() {} };
  const click = new ExtendableEvent("notificationclick");
  self.dispatchEvent(Object.assign(click, { action, notification }));
}"""


def test_the_worker_shows_what_the_console_sent(site: Site, service: PushService) -> None:
    add_channel(site.console, "push", service.settings, name="Phone")
    visit = site.visit("/settings/channels", allowed=("GCM",))
    page = visit.page
    row = page.locator("li", has=page.get_by_text("Phone", exact=True))
    row.get_by_role("button", name="Send a test").click()
    expect(page.locator(".flash.good")).to_contain_text("The test message was sent")
    protocol = page.context.new_cdp_session(page)
    registered: list[str] = []
    protocol.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda told: registered.extend(one["registrationId"] for one in told["registrations"]),
    )
    protocol.send("ServiceWorker.enable")
    page.evaluate("navigator.serviceWorker.register('/worker.js').then(() => true)")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    (worker,) = page.context.service_workers
    worker.evaluate(RECORD)
    news = {**service.shown[0], "camera": "market-junction"}
    sent = {"origin": site.address, "registrationId": registered[-1], "data": json.dumps(news)}
    protocol.send("ServiceWorker.deliverPushMessage", sent)
    wait_until(lambda: worker.evaluate("self.shown.length"), "it is shown")
    (shown,) = worker.evaluate("self.shown")
    assert shown["title"] == "habitus: a test message"
    assert shown["data"] == {"page": "/events", "camera": "market-junction"}
    assert [action["action"] for action in shown["actions"]] == ["snooze"]
    assert not site.console.database.read(snoozed_until, "market-junction")
    worker.evaluate(CLICK, ["/events", "market-junction", "snooze"])
    snoozed = partial(site.console.database.read, snoozed_until, "market-junction")
    wait_until(lambda: page.evaluate("1") and snoozed(), "the camera is snoozed")


def test_a_phone_installs_the_console(site: Site) -> None:
    visit = site.visit("/")
    protocol = visit.page.context.new_cdp_session(visit.page)
    found = protocol.send("Page.getAppManifest")
    assert found["errors"] == []
    assert found["url"].endswith("/manifest.webmanifest")
    manifest = json.loads(found["data"])
    assert manifest["display"] == "standalone"
    for icon in manifest["icons"]:
        size = visit.page.evaluate(
            "async src => { const i = new Image(); i.src = src; await i.decode(); "
            "return `${i.naturalWidth}x${i.naturalHeight}`; }",
            icon["src"],
        )
        assert size == icon["sizes"]
