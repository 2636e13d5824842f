"""The pages in a real browser: every flow, by mouse, finger and keys."""

import contextlib
import csv
import json
import re
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from playwright.sync_api import Route, TimeoutError, expect
from sqlalchemy import select

from habitus.site.pipe_messages import CameraPicture
from habitus.site.relearning import LearntModel
from habitus.web import administration, queries, reviews, store
from habitus.web.answers import EventSummary, NewUser
from habitus.web.database import CameraRow, Channel, EventRow, Token
from habitus.web.supervisor import LatestReports
from reference.console_pages import LOOKS, RULES, Site
from reference.footage import encode, moving_square
from reference.processes import wait_until
from reference.telling import receiver

EVENT = f"{3:012x}"
Look = dict[str, Any]


def alarms(site: Site, review: str = "any") -> list[EventRow]:
    with site.console.database.session() as session:
        return queries.events(session, queries.EventFilter(review=review)).events


def stored(site: Site, table: Any) -> list[Any]:
    with site.console.database.session() as session:
        return list(session.scalars(select(table)))


def test_the_theme_is_switched_and_kept(site: Site) -> None:
    visit = site.visit(color_scheme="light")
    page = visit.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    visit.settled()
    assert page.evaluate(ground) == dark
    page.keyboard.press("t")
    assert page.evaluate(ground) == light


def test_the_wall_shows_cameras_and_news_by_themselves(site: Site, look: Look) -> None:
    page = site.visit("/", **look).page
    expect(page.locator(".tile-name")).to_have_text(
        ["Market junction", "Station road", "Harbour gate"]
    )
    expect(page.locator("#tile-harbour-gate .state")).to_have_text("lost")
    expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    waiting = page.locator("#to-review [data-count]")
    before = int(waiting.inner_text())
    site.happen("new1", explanation="in the middle: a cow")
    expect(page.locator("#latest > li").first).to_contain_text("In the middle: a cow")
    expect(page.locator("#announce")).to_contain_text("Market junction, In the middle: a cow")
    expect(waiting).to_have_text(str(before + 1))
    assert page.locator("#latest > li").count() == 8
    told = {"normality": -3.0, "threshold": -9.0, "behaviour": 2}
    publish = partial(site.console.bulletin.publish, "judged", camera="market-junction", **told)
    publish(time=time.time(), expected=[0.1, 0.2, 0.7])
    tile = page.locator("#tile-market-junction [data-part=behaviours]")
    expect(tile).to_contain_text("behaviour 2 → 3 next, 70 %")
    publish(time=time.time(), expected=[0.1, 0.7, 0.2])
    expect(tile).to_have_text("behaviour 2")


def test_pictures_that_are_not_of_now_look_so(site: Site) -> None:
    picture = next(site.console.settings.data.glob("cameras/*/events/*.jpg")).read_bytes()
    seen = [CameraPicture(time.time(), picture, 360, 288, [], [])]
    site.console.supervisor = Mock()
    site.console.supervisor.latest = lambda camera: LatestReports(seen[0], None, [], None, 1, 0, {})
    site.console.supervisor.learning.return_value = None
    page = site.visit("/", allowed=("ERR_FAILED",)).page
    view = page.locator("#tile-station-road .view")
    expect(view.locator("img:not([data-waiting])")).to_be_visible()
    expect(view).not_to_have_class(re.compile("old"))
    seen[0] = seen[0]._replace(time=time.time() - 60)
    page.reload()
    expect(view).to_have_class(re.compile("old"))
    expect(view.locator(".taken")).to_contain_text("picture of")
    expect(page.locator("body")).to_have_attribute("data-link", "live")
    page.route("**/api/stream", lambda route: route.abort())
    page.reload()
    expect(page.locator("body")).to_have_attribute("data-link", "away")
    dimmed = "element => getComputedStyle(element, '::after').content"
    assert "no connection" in view.evaluate(dimmed)


OVERLAPS = """() => [...document.querySelectorAll(".tile-body")].flatMap((body) => {
  const shown = [...body.querySelectorAll("a, span, p")].filter(
    (e) => !e.children.length && e.getClientRects().length);
  const cut = shown.filter(
    (e) => e.matches(".tile-name, .state") && e.scrollWidth > e.clientWidth + 1);
  const pairs = shown.flatMap((a, k) => shown.slice(k + 1).map((b) => [a, b]));
  const over = pairs.filter(([a, b]) => {
    const [p, q] = [a, b].map((e) => e.getBoundingClientRect());
    const across = p.left < q.right - 1 && q.left < p.right - 1;
    return across && p.top < q.bottom - 1 && q.top < p.bottom - 1;
  });
  return [...cut.map((e) => [e]), ...over].map((all) => all.map((e) => e.textContent).join("|"));
})"""
"""Texts of tiles that lie over each other, and names that are cut."""
LITTLE = "2 minutes of footage cannot tell what happens 480 times a day: expect 38 to 1427 alarms"


@pytest.mark.parametrize("size", [(2560, 1440), (1280, 800), (390, 844)])
def test_the_wall_screen_has_pictures_alone(site: Site, size: tuple[int, int]) -> None:
    with site.console.database.transaction() as session:
        for camera in session.scalars(select(CameraRow)):
            camera.reason = LITTLE
    width, height = size
    visit = site.visit("/", viewport={"width": width, "height": height})
    page = visit.page
    expect(page.locator("#expected summary")).to_be_visible()
    expect(page.locator("#expected p").first).to_be_hidden()
    page.keyboard.press("w")
    expect(page.locator("body")).to_have_class(re.compile("bare"))
    visit.settled()
    expect(page.locator("header")).to_have_count(0)
    expect(page.locator(".spark-name").first).to_be_hidden()  # as what it names
    chip = page.locator("#tile-market-junction .behaviour")

    def is_told() -> bool:
        news = {"time": 0.0, "normality": None, "threshold": None, "behaviour": 2, "expected": []}
        site.console.bulletin.publish("judged", camera="market-junction", **news)
        return bool(chip.count())

    wait_until(is_told, "the behaviour of now")
    expect(chip).to_be_visible(visible=width > 640)  # where there is no room it would be cut
    assert page.evaluate(OVERLAPS) == []
    expect(page.locator("#tile-market-junction")).not_to_contain_text("alarms")
    boxes = [tile.bounding_box() for tile in page.locator(".tile").all()]
    if width > 640:
        assert max(box["y"] + box["height"] for box in boxes) <= height
    page.keyboard.press("Escape")
    expect(page.locator("header")).to_be_visible()


def test_an_empty_console_teaches(empty_site: Site, look: Look) -> None:
    page = empty_site.visit("/", **look).page
    expect(page.locator("main")).to_contain_text("habitus serve --demo")
    page.get_by_role("link", name="Add a camera").click()
    expect(page).to_have_url(re.compile("/cameras/new$"))
    page.go_back()
    page.goto(f"{empty_site.address}/events")
    expect(page.locator("#results")).to_contain_text("Nothing unusual yet")
    page.goto(f"{empty_site.address}/review")
    expect(page.locator("main")).to_contain_text("Nothing to review yet")


def test_a_camera_is_added_by_keys_alone(empty_site: Site) -> None:
    visit = empty_site.visit("/cameras/new", allowed=("422 (Unprocessable",))
    page = visit.page
    page.locator("#name").focus()
    page.keyboard.type("Front door")
    page.keyboard.press("Tab")
    page.keyboard.type("rtsp://me:secret@127.0.0.1/1")
    page.keyboard.press("Enter")
    expect(page.locator("#problem")).to_contain_text("127.0.0.1 is this machine")
    assert "secret" not in page.content()
    expect(page.locator("#address")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("rtsp://me:secret@192.0.2.7/1")
    page.locator("#alerts").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("2.5")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Front door")
    expect(page.get_by_role("status").first).to_contain_text("The camera is added")
    assert "secret" not in page.content()
    (camera,) = stored(empty_site, CameraRow)
    assert (camera.id, camera.name, camera.alerts_per_day) == ("front-door", "Front door", 2.5)


def test_a_refused_form_keeps_its_entries(empty_site: Site, look: Look) -> None:
    visit = empty_site.visit("/cameras/new", allowed=("422 (Unprocessable",), **look)
    page, address = visit.page, "rtsp://me:secret@127.0.0.1/1"
    page.get_by_label("Name").fill("Front door")
    page.locator("#address").fill(address)
    page.locator("#alerts").fill("2.5")
    page.get_by_role("button", name="Add the camera").click()
    problem = page.locator("#address + #problem")
    expect(problem).to_contain_text("tick “The camera is on this machine”")
    expect(page.locator("#address")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#address")).to_be_focused()
    expect(page).to_have_url(re.compile("/cameras/new$"))
    values = [page.locator(field).input_value() for field in ("#name", "#address", "#alerts")]
    assert values == ["Front door", address, "2.5"]
    assert visit.violations(["wcag2a", "wcag2aa"]) == []
    page.get_by_label("The camera is on this machine").check()
    page.get_by_role("button", name="Add the camera").click()
    expect(page.locator("h1")).to_have_text("Front door")


@pytest.mark.parametrize(
    ("address", "again"),
    [
        ("rtsp://me:s3cret@127.0.0.1/1", "rtsp://127.0.0.1/1"),
        ("rtsp://me:s3/cret@127.0.0.1/1", "rtsp://127.0.0.1/1"),
        ("rtsp://127.0.0.1/1", "rtsp://127.0.0.1/1"),
    ],
)
def test_without_scripts_a_refused_password_is_asked_for_again(
    empty_site: Site, address: str, again: str
) -> None:
    """What is shown would be stored as it stands, and the camera refuse it."""
    visit = empty_site.visit(
        "/cameras/new", allowed=("422 (Unprocessable",), java_script_enabled=False
    )
    page, given = visit.page, "s3cret" in address or "cret@" in address
    page.locator("#name").fill("Front door")
    page.locator("#address").fill(address)
    if not given:
        page.locator("#password").fill("s3cret")
    page.get_by_role("button", name="Add the camera").click()
    expect(page.locator("#problem")).to_be_visible()
    expect(page.locator("#address")).to_have_value(again)
    expect(page.locator("#username")).to_have_value("me" if ":s3cret@" in address else "")
    password = page.get_by_label("Password")
    expect(password).to_have_value("")
    expect(password).to_have_accessible_description(re.compile("^Give the password again"))
    assert "cret" not in page.content()
    page.get_by_label("The camera is on this machine").check()
    page.get_by_role("button", name="Add the camera").click()
    expect(password).to_be_focused()  # the browser does not send it without
    page.locator("#username").fill("me")
    password.fill("s3cret")
    page.get_by_role("button", name="Add the camera").click()
    expect(page.locator("h1")).to_have_text("Front door")
    (camera,) = stored(empty_site, CameraRow)
    source = empty_site.console.vault.open(camera.secret_address)
    assert source == "rtsp://me:s3cret@127.0.0.1/1"


def test_what_stands_for_a_password_is_none(empty_site: Site) -> None:
    visit = empty_site.visit(
        "/cameras/new", allowed=("422 (Unprocessable",), java_script_enabled=False
    )
    page = visit.page
    page.locator("#name").fill("Front door")
    page.locator("#address").fill("http://127.0.0.1/live?user=me&pwd=s3cret")
    page.get_by_role("button", name="Add the camera").click()
    expect(page.locator("#address")).to_have_value("http://127.0.0.1/live?user=***&pwd=***")
    expect(page.locator("#address-again")).to_contain_text("in place of ***")
    page.get_by_label("The camera is on this machine").check()
    page.get_by_role("button", name="Add the camera").click()
    expect(page.locator("#problem")).to_contain_text("write it there")
    assert stored(empty_site, CameraRow) == []


def test_a_refused_channel_keeps_its_entries(site: Site) -> None:
    page = site.visit("/settings", allowed=("422 (Unprocessable",)).page
    page.get_by_text("Add MQTT").click()
    form = page.locator("details[open] form")
    form.get_by_label("Name").fill("Broker")
    form.get_by_label("Host").fill("169.254.169.254")
    form.get_by_label("Password").fill("secret")
    form.get_by_role("button", name="Add").click()
    expect(form.locator("label:has([name=host]) + #problem")).to_contain_text("local link")
    assert form.get_by_label("Password").input_value() == "secret"
    expect(page).to_have_url(re.compile("/settings$"))


ZONES = "/cameras/market-junction/zones"


def zones_of(site: Site) -> list[dict[str, Any]]:
    camera = next(c for c in stored(site, CameraRow) if c.id == "market-junction")
    zones: list[dict[str, Any]] = camera.zones
    return zones


def corners_on(page: Any, *corners: tuple[float, float], tap: bool) -> None:
    """Point at places of the picture, by shares of its width and height."""
    canvas = page.locator("#canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    for x, y in corners:
        point = page.touchscreen.tap if tap else page.mouse.click
        point(box["x"] + x * box["width"], box["y"] + y * box["height"])


def test_zones_are_drawn_named_changed_and_undone(site: Site, look: Look) -> None:
    visit = site.visit(ZONES, **look)
    page, tap = visit.page, "has_touch" in look
    corners_on(page, (0.1, 0.1), (0.5, 0.1), (0.5, 0.5), (0.1, 0.1), tap=tap)
    expect(page.locator("#canvas polygon")).to_have_count(1)
    first = page.get_by_role("group", name="Zone Zone 1")
    expect(first.get_by_label("Name")).to_be_focused()
    page.keyboard.type("Loading bay")
    card = page.get_by_role("group", name="Zone Loading bay")
    card.get_by_label("Alerts per day").fill("0.5")
    card.get_by_role("button", name="Hours in which it is armed").click()
    card.get_by_label("Su").uncheck(force=True)
    card.get_by_label("until").fill("07:30")
    expect(page.locator("#canvas text")).to_have_text("Loading bay")
    corners_on(page, (0.6, 0.6), (0.9, 0.6), (0.9, 0.9), tap=tap)
    page.get_by_role("button", name="Close the zone").click()
    second = page.get_by_role("group", name="Zone Zone 2")
    second.get_by_label("What it does").select_option("ignore")
    expect(second.get_by_label("Alerts per day")).to_be_hidden()
    second.get_by_role("button", name="Delete").click()
    expect(page.locator("#canvas polygon")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#canvas polygon.ignore")).to_have_count(1)
    assert visit.violations(RULES) == []
    assert visit.overflow() <= 0
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("The changes are in use")
    bay, other = zones_of(site)
    assert bay["polygon"] == [pytest.approx(c, abs=2) for c in ([36, 29], [180, 29], [180, 144])]
    days = ["mon", "tue", "wed", "thu", "fri", "sat"]
    assert bay["hours"] == [{"days": days, "start": "22:00", "end": "07:30"}]
    assert (bay["name"], bay["kind"], bay["alerts_per_day"]) == ("Loading bay", "own", 0.5)
    assert (other["name"], other["kind"], other["hours"]) == ("Zone 2", "ignore", [])


def test_a_corner_is_moved_and_a_refused_zone_is_not_lost(site: Site) -> None:
    page = site.visit(ZONES, allowed=("422",)).page
    corners_on(page, (0.2, 0.2), (0.6, 0.2), (0.6, 0.6), (0.2, 0.2), tap=False)
    box = page.locator("#canvas .corner").nth(1).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] - 20)
    page.mouse.up()
    moved = json.loads(page.locator("#zones").input_value())[0]["polygon"]
    assert moved[1] != pytest.approx([216, 58], abs=4)
    page.get_by_role("button", name="Add a zone").click()
    page.get_by_label("x,y of each corner").nth(1).fill("500,0 600,0 600,90")
    page.get_by_role("group", name="Zone Zone 2").get_by_label("Name").fill("Far")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#problem")).to_contain_text("Zone 'Far' must be a polygon of the frame")
    expect(page.locator("#canvas polygon")).to_have_count(2)
    assert zones_of(site) == []


def test_zones_are_drawn_with_keys_and_typed(site: Site) -> None:
    page = site.visit(ZONES).page
    page.locator("#canvas").focus()
    for keys in ("Enter", "Shift+ArrowRight Enter", "Shift+ArrowDown Enter", "Enter"):
        for key in keys.split():
            page.keyboard.press(key)
    expect(page.locator("#canvas polygon.own")).to_have_count(1)
    page.locator("#canvas").focus()
    page.keyboard.press("Delete")
    expect(page.locator("#canvas polygon")).to_have_count(0)
    page.keyboard.press("Backspace")
    drawn = json.loads(page.locator("#zones").input_value())
    assert [zone["polygon"] for zone in drawn] == [[[180, 144], [216, 144], [216, 180]]]
    page.get_by_role("button", name="Add a zone").focus()
    page.keyboard.press("Enter")
    corners = page.get_by_label("x,y of each corner").nth(1)
    corners.fill("0,0 90,0 90,90 0,90")
    page.get_by_label("Time zone of the hours").fill("Europe/Berlin")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The changes are in use")
    assert [zone["polygon"][-1] for zone in zones_of(site)] == [[216, 180], [0, 90]]
    camera = next(c for c in stored(site, CameraRow) if c.id == "market-junction")
    assert camera.options["timezone"] == "Europe/Berlin"


def test_a_camera_is_removed_with_keys(site: Site) -> None:
    page = site.visit("/cameras/station-road/edit").page
    page.get_by_label("Yes, remove Station road").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("It is removed")
    assert {camera.id for camera in stored(site, CameraRow)} == {"harbour-gate", "market-junction"}


def test_events_are_filtered_by_zone(site: Site, look: Look) -> None:
    site.happen("bay", zone="Loading bay", explanation="in Loading bay: a cow")
    page = site.visit("/events", **look).page
    page.get_by_text("More filters").click()
    page.get_by_label("Zone", exact=True).select_option("Loading bay")
    expect(page.locator("#results .event")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"zone=Loading"))
    expect(page.locator("#event-bay")).to_contain_text("In Loading bay: a cow")
    page.locator("#event-bay .whole").click()
    expect(page.locator("dt:text-is('Zone') + dd")).to_have_text("Loading bay")


def test_a_recording_is_chosen_and_judged(empty_site: Site, look: Look, tmp_path: Path) -> None:
    video = encode(tmp_path / "yard at noon.mp4", moving_square(50))
    page = empty_site.visit("/cameras/new", **look).page
    page.locator("#recording").set_input_files(video)
    expect(page.locator("#name")).to_have_value("yard at noon")
    page.get_by_label("Judge it at once").check()
    page.get_by_role("button", name="Upload and add").click()
    expect(page.locator("h1")).to_have_text("yard at noon")
    (camera,) = stored(empty_site, CameraRow)
    assert camera.kind == "recording"
    kept = Path(empty_site.console.vault.open(camera.secret_address))
    assert kept.read_bytes() == video.read_bytes()


DROP = """([name, bytes]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([new Uint8Array(bytes)], name, { type: "video/mp4" }));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: dropped, bubbles: true, cancelable: true });
    document.querySelector("main").dispatchEvent(event);
  }
}"""


def test_a_recording_is_dropped_onto_the_wall(empty_site: Site, tmp_path: Path) -> None:
    video = encode(tmp_path / "yard at noon.mp4", moving_square(50))
    page = empty_site.visit("/", allowed=("status of 4",)).page
    page.evaluate(DROP, ["notes.mp4", list(b"not a video")])
    expect(page.locator("#toasts .bad")).to_be_visible()
    expect(page.locator("#drop")).to_be_hidden()
    page.evaluate(DROP, [video.name, list(video.read_bytes())])
    expect(page.locator("#uploaded")).to_be_visible()
    expect(page.locator("#name")).to_have_value("yard at noon")
    page.get_by_role("button", name="Add the camera").click()
    expect(page.locator("h1")).to_have_text("yard at noon")
    (camera,) = stored(empty_site, CameraRow)
    assert camera.kind == "playback"
    kept = Path(empty_site.console.vault.open(camera.secret_address))
    assert kept.read_bytes() == video.read_bytes()


def test_what_is_no_video_is_refused(empty_site: Site, tmp_path: Path) -> None:
    text = tmp_path / "a.mp4"
    text.write_text("not a video")
    page = empty_site.visit("/cameras/new", allowed=("status of 4",)).page
    page.locator("#recording").set_input_files(text)
    page.get_by_role("button", name="Upload and add").click()
    expect(page.locator("#toasts .bad")).to_be_visible()
    expect(page.locator("#save")).to_be_enabled()
    assert stored(empty_site, CameraRow) == []


def test_the_timeline_is_zoomed_and_opens_events(site: Site, look: Look) -> None:
    page = site.visit("/cameras/market-junction", **look).page
    page.locator("#timeline canvas").wait_for()
    page.get_by_role("button", name="7 days").click()
    expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
    page.locator("#timeline").focus()
    for key in ("+", "-", "ArrowLeft", "End", "Home"):
        with page.expect_request(lambda request: "timeline" in request.url):
            page.keyboard.press(key)
    page.keyboard.press("End")
    page.get_by_role("button", name="6 h").click()
    with page.expect_response(lambda answer: "timeline" in answer.url):
        page.mouse.move(*_middle(page.locator("#timeline .u-over")))
        page.mouse.wheel(0, -300)
    expect(page.locator("#readout")).to_contain_text(re.compile(r"how unusual|lost"))
    page.keyboard.press("End")
    with page.expect_response(lambda answer: "timeline" in answer.url):
        page.get_by_role("button", name="7 days").click()
    explanation = re.compile("|".join(re.escape(card.explanation) for card in alarms(site)))

    def choose() -> bool:
        page.keyboard.press("]")
        return bool(explanation.search(page.locator("#readout").inner_text()))

    def opens() -> bool:
        """What is drawn anew meanwhile has nothing chosen."""
        wait_until(choose, "an event that is chosen by its key")
        with contextlib.suppress(TimeoutError), page.expect_navigation(timeout=2000):
            page.keyboard.press("Enter")
        return "/events/" in page.url

    wait_until(opens, "its page")
    expect(page).to_have_url(re.compile("/events/[0-9a-f]{12}$"))


def _middle(locator: Any) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_events_are_filtered_in_the_address_bar_and_endless(site: Site, look: Look) -> None:
    page = site.visit("/events", **look).page
    everything = len(alarms(site)) + 1
    cards = page.locator("#results > .event")
    expect(cards).to_have_count(48)
    page.get_by_role("link", name="Older events").scroll_into_view_if_needed()
    page.mouse.wheel(0, 20000)
    expect(page.get_by_role("link", name="Older events")).to_have_count(0)
    assert cards.count() >= everything - 1
    page.get_by_label("Camera").select_option("harbour-gate")
    expect(page).to_have_url(re.compile(r"camera=harbour-gate"))
    expect(page.locator("#results .meta", has_text="Market junction")).to_have_count(0)
    page.get_by_label("Reviewed").select_option("unusual")
    wanted = queries.EventFilter(camera=["harbour-gate"], review="unusual")
    with site.console.database.session() as session:
        n_found = queries.count(session, wanted)
    expect(cards).to_have_count(n_found)
    expect(page.locator("#how-many")).to_have_text(f"{n_found} events")
    page.reload()
    expect(cards).to_have_count(n_found)
    site.happen("other", camera="market-junction")
    page.get_by_label("Reviewed").select_option("none")
    expect(page).to_have_url(re.compile("review=none"))
    site.happen("new2", camera="harbour-gate", explanation="a boat")
    expect(cards.first).to_contain_text("A boat")
    expect(page.locator("#event-other")).to_have_count(0)
    reviews.review(site.console, "new2", "unusual", "bo")
    expect(page.locator("#event-new2")).to_have_count(0)


def test_events_are_searched_sorted_and_chosen(site: Site, look: Look) -> None:
    site.happen("first", explanation="a cow on the left", probability=1e-9)
    site.happen("second", explanation="a cow on the right", probability=0.01)
    page = site.visit("/events?sort=unusual", **look).page
    cards = page.locator("#results > .event")
    expect(cards.first).to_contain_text("100")
    page.get_by_label("Search").fill("Cow LEFT")
    expect(cards).to_have_count(1)
    expect(page.locator("#how-many")).to_have_text("1 event")
    page.get_by_label("Search").fill("cow")
    expect(cards).to_have_count(2)
    expect(cards.first).to_have_attribute("data-event", "first")
    page.get_by_text("More filters").click()
    page.get_by_label("How rare").select_option("81")
    expect(cards).to_have_count(1)
    page.get_by_label("How rare").select_option("")
    expect(cards).to_have_count(2)
    for event in ("first", "second"):
        page.locator(f"#event-{event} .choose input").check()
    expect(page.locator("#act")).to_contain_text("2 chosen")
    page.locator("#act").get_by_role("button", name="Normal").click()
    expect(page).to_have_url(re.compile("words=cow"))
    expect(page.locator("#results .verdict-normal")).to_have_count(2)
    assert {card.id for card in alarms(site, "normal")} >= {"first", "second"}


def test_all_that_are_shown_are_chosen_and_stay_so(site: Site) -> None:
    site.happen("cow", explanation="a cow on the left")
    page = site.visit("/events?words=cow").page
    page.locator("#event-cow .choose input").check()
    site.happen("calf", explanation="a cow and its calf")
    expect(page.locator("#results > .event")).to_have_count(2)
    page.locator("#act").get_by_role("button", name="All shown").click()
    expect(page.locator("#act")).to_contain_text("2 chosen")
    reviews.review(site.console, "cow", "unusual", "bo")
    expect(page.locator("#event-cow .verdict-unusual")).to_be_visible()
    expect(page.locator("#event-cow .choose input")).to_be_checked()


def test_a_link_to_an_event_is_copied(site: Site) -> None:
    visit = site.visit(f"/events/{EVENT}", permissions=["clipboard-read", "clipboard-write"])
    page = visit.page
    page.keyboard.press("c")
    expect(page.locator("#toasts")).to_contain_text("link is copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{site.address}/events/{EVENT}"


def test_events_are_taken_away_and_noted(site: Site) -> None:
    event = alarms(site)[0].id
    page = site.visit(f"/events/{event}").page
    page.get_by_label("Note").fill("=a dog, not a car")
    page.get_by_label("Mark this event").check()
    page.locator(".note-form").get_by_role("button", name="Save").click()
    expect(page.locator(".flash.good")).to_contain_text("written down")
    page.goto(f"{site.address}/events?words=dog&starred=yes")
    expect(page.locator("#results > .event")).to_have_count(1)
    page.locator(".choose input").check()
    with page.expect_download() as download:
        page.locator("#act").get_by_role("button", name="ZIP").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert sorted(name.partition(".")[2] for name in archive.namelist()) == [
            *("csv", "heat.jpg", "jpg", "mp4")
        ]
        lines = list(csv.DictReader(archive.read("events.csv").decode().splitlines()))
    assert [(line["id"], line["note"]) for line in lines] == [(event, "'=a dog, not a car")]
    wait_until(lambda: not list(site.console.settings.data.glob("export-*")), "taken away")


def test_the_calendar_leads_to_days_and_hours(site: Site, look: Look) -> None:
    visit = site.visit("/calendar", **look)
    page = visit.page
    assert visit.violations(RULES) == []
    assert visit.overflow() <= 0
    first, day = page.locator(".calendar .date").first, page.locator(".calendar a").last
    expect(first).to_have_text(re.compile(r"^\d+ [A-Z][a-z]{2}$"))
    assert day.locator("svg rect").count() > 0, "the hours of the day"
    expect(page.get_by_role("link", name="Later")).to_have_count(0)
    page.get_by_role("link", name="Earlier").click()
    page.get_by_role("link", name="Later").click()
    n_events = day.locator("strong").inner_text()
    day.click()
    expect(page.locator("#how-many")).to_have_text(re.compile(f"^{n_events} event"))
    expect(page).to_have_url(re.compile(r"since=(\d+-\d+-\d+)&until=\1"))


def test_marks_are_drawn_over_the_clip_in_time_with_it(site: Site, look: Look) -> None:
    allowed = ("willReadFrequently",)  # as nobody but this test reads what is drawn
    visit = site.visit(f"/events/{EVENT}", allowed=allowed, reduced_motion="reduce", **look)
    page = visit.page
    ready = "document.getElementById('clip').readyState"
    wait_until(lambda: page.evaluate(ready) >= 2, "a clip")

    def inked() -> bool:
        return page.evaluate("""() => {
            const canvas = document.getElementById("marks");
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return data.some((value) => value > 0);
        }""")

    stage = page.locator("#stage")
    page.evaluate("document.getElementById('clip').currentTime = 0.5")  # before the event
    expect(stage).to_have_attribute("data-drawn", "")
    assert not inked()
    page.evaluate("document.getElementById('clip').currentTime = 4.2")
    expect(stage).to_have_attribute("data-drawn", "1")
    assert inked()
    page.keyboard.press(".")
    page.keyboard.press("]")
    assert page.evaluate("document.getElementById('clip').playbackRate") == 2
    assert page.evaluate("document.getElementById('clip').currentTime") == pytest.approx(4.24)
    page.keyboard.press("b")
    expect(page.locator("#marks")).to_be_hidden()
    events = "getComputedStyle(document.getElementById('heat')).pointerEvents"
    assert page.evaluate(events) == "none", "the controls of the video can be used"


def test_marks_on_a_picture_are_those_of_its_moment(site: Site) -> None:
    """A picture shows the strongest moment, which need not be the middle one."""
    with site.console.database.transaction() as session:
        event = session.get_one(EventRow, EVENT)
        event.clip, event.peak = None, event.start + 3
        boxes = [[10, 10, 40, 40]]
        track = [{"time": k, "boxes": boxes, "normality": -9.0} for k in range(5)]
        event.details = event.details | {"start": 0.0, "peak": 3.0, "track": track}
    page = site.visit(f"/events/{EVENT}").page
    expect(page.locator("#stage")).to_have_attribute("data-drawn", "3")


def test_a_frame_is_as_long_as_the_camera_has_it(site: Site) -> None:
    page = site.visit(f"/events/{EVENT}").page
    clip = page.locator("#clip")
    wait_until(lambda: clip.evaluate("clip => clip.currentTime") > 2, "it runs")
    page.keyboard.press(",")
    expect(clip).to_have_js_property("paused", True)
    before = clip.evaluate("clip => clip.currentTime")
    page.keyboard.press(".")
    passed = clip.evaluate("clip => clip.currentTime") - before
    assert passed == pytest.approx(1 / 12.5, rel=0.1), "as the scenes are rendered"


def test_silenced_events_leave_the_queue_and_push_nothing_away(
    site: Site, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = alarms(site, "none")
    quiet = [card for card in waiting[1:] if card.camera_id == waiting[0].camera_id][:3]
    monkeypatch.setattr(reviews, "_silenced", lambda *_: quiet)
    site.console.supervisor = Mock()
    page = site.visit("/review", **look).page
    page.keyboard.press("n")
    expect(page.locator("#said")).to_contain_text(f"{len(quiet)} other events")
    assert {card.id for card in alarms(site, "none")} == {
        card.id for card in waiting[1:] if card not in quiet
    }
    expect(page.locator("#to-review [data-count]")).to_have_text(str(len(alarms(site, "none"))))
    expect(page.locator("#clip")).to_be_in_viewport(ratio=0.5)
    expect(page.locator("[data-verdict=normal]")).to_be_in_viewport(ratio=1)
    page.keyboard.press("a")
    expect(page.locator("#said")).to_contain_text(f"So are {len(quiet)} others")
    assert {card.id for card in alarms(site, "normal")} >= {card.id for card in quiet}


def test_a_review_that_is_taken_back_brings_the_silenced_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = alarms(site, "none")
    monkeypatch.setattr(reviews, "_silenced", lambda *_: waiting[1:3])
    site.console.supervisor = Mock()
    reviews.review(site.console, waiting[0].id, "normal", "ann")
    assert len(alarms(site, "none")) == len(waiting) - 3
    assert [card.id for card in alarms(site, "silenced")] == [card.id for card in waiting[1:3]]
    reviews.review(site.console, waiting[0].id, None, "ann")
    again, before = (
        [EventSummary.model_validate(e) for e in found] for found in (alarms(site, "none"), waiting)
    )
    assert again == before


def test_the_timeline_of_a_recording_counts_from_its_beginning(site: Site) -> None:
    def camera(**options: float) -> float:
        with site.console.database.transaction() as session:
            row = session.get_one(CameraRow, "market-junction")
            row.kind, row.options = "recording", options
            first = queries.learnings(session, row.id)[-1]
            assert first.since is not None
            first.until = first.since + 150
            return first.since

    start = camera()
    site.happen("take", start=start + 83, explanation="a cow")
    address = f"/cameras/market-junction?at={start + 83}"
    visit = site.visit(address)
    page = visit.page
    learnt, readout = page.locator("#learnt tbody tr").last, page.locator("#readout")
    expect(learnt).to_contain_text("0:00 to 2:30 in the recording")
    page.locator("#timeline canvas").wait_for()
    page.keyboard.press("]")
    expect(readout).to_have_text("1:23 · a cow")
    expect(page.locator("#recent")).to_have_count(0)
    camera(starts=start)
    visit.go(address)
    expect(learnt).not_to_contain_text("in the recording")
    page.locator("#timeline canvas").wait_for()
    page.keyboard.press("]")
    expect(readout).to_have_text(re.compile(r"20\d\d at .* · a cow"))


def test_only_the_newest_model_is_in_use(site: Site) -> None:
    with site.console.database.transaction() as session:
        row = session.get_one(CameraRow, "market-junction")
        learnings = queries.learnings(session, row.id)
        row.model = learnings[0].model
    results = site.visit("/cameras/market-junction").page.locator("#learnt tbody td:last-child")
    said = [text.split("\n")[0] for text in results.all_inner_texts()]
    assert said == ["In use", *["Replaced"] * (len(learnings) - 1)]


def test_recordings_show_where_and_a_date_only_if_it_is_known(site: Site) -> None:
    def camera(**options: float) -> None:
        with site.console.database.transaction() as session:
            row = session.get_one(CameraRow, "market-junction")
            row.kind, row.options = "recording", options

    camera()
    started = 1.7e9
    site.happen("take", start=started, explanation="a cow", **{"end": 84.0, "peak": 83.0})
    with site.console.database.transaction() as session:
        session.get_one(EventRow, "take").offset = 83.0
    page = site.visit("/events/take").page
    expect(page.locator("h1")).to_have_text("1:23 into the recording")
    assert "2023" not in page.locator("main").inner_text()
    page.goto(f"{site.address}/events?words=cow")
    expect(page.locator("#event-take a.whole")).to_have_text("1:23 into the recording")
    page.get_by_role("link", name="Calendar").click()
    expect(page.locator("main")).to_contain_text("Not in it: 1 event of recordings")
    camera(starts=started - 83)
    page.goto(f"{site.address}/events/take")
    expect(page.locator("h1")).to_contain_text("2023")


def test_the_first_learning_moves_by_seconds(site: Site) -> None:
    with site.console.database.transaction() as session:
        session.get_one(CameraRow, "market-junction").state = "learning"
    page = site.visit("/cameras/market-junction").page
    expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    news = {"time": 0.0, "normality": None, "threshold": None, "behaviour": 0, "expected": []}
    for _ in range(3):
        site.console.bulletin.publish("judged", camera="market-junction", **news)
    wait_until(lambda: page.locator("#first-progress").evaluate("bar => bar.value") == 3, "seconds")


def test_an_event_has_clip_heat_map_and_neighbours(site: Site, look: Look) -> None:
    newest, second = alarms(site)[:2]
    visit = site.visit(f"/events/{newest.id}", **look)
    page = visit.page
    wait_until(
        lambda: page.evaluate("document.getElementById('clip').readyState") >= 2,
        "a clip",
    )
    expect(page.locator(".why-large")).to_contain_text(newest.explanation[1:])
    expect(page.locator(".similar .event").first).to_be_visible()
    page.keyboard.press("h")
    expect(page.locator("#heat")).to_be_visible()
    page.keyboard.press("h")
    expect(page.locator("#heat")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(f"{site.address}/events/{second.id}")
    visit.settled()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(f"{site.address}/events/{newest.id}")


def test_a_track_is_of_one_thing(site: Site) -> None:
    page = site.visit(f"/events/{alarms(site)[0].id}").page
    far, near = [200, 200, 220, 220], [[10 * k, 0, 10 * k + 20, 20] for k in range(5)]
    points = [{"at": k, "boxes": [far, box]} for k, box in enumerate(near)]
    points[2]["boxes"].reverse()  # the strongest moment is of the near one
    points.append({"at": 5, "boxes": [far]})
    found = page.evaluate(
        "points => import('/static/overlay.js').then((drawn) => drawn.followed(points, 2.1))",
        points,
    )
    assert [point["at"] for point in found] == [0, 1, 2, 3, 4]
    assert [point["centre"] for point in found] == [[10 * k + 10, 10] for k in range(5)]


def test_marks_leave_room_for_the_controls_of_the_video(site: Site) -> None:
    page = site.visit(f"/events/{alarms(site)[0].id}").page
    mask = "getComputedStyle(document.getElementById('marks')).maskImage"
    clip = page.locator("#clip")
    wait_until(lambda: clip.evaluate("clip => !clip.paused"), "it plays")
    page.mouse.move(2, 2)
    assert page.evaluate(mask) == "none"
    page.keyboard.press(",")
    wait_until(lambda: "gradient" in page.evaluate(mask), "its controls show")


def test_what_is_usual_is_drawn_as_nothing_unusual(site: Site) -> None:
    page = site.visit("/cameras/market-junction").page
    drawn = "import('/static/scale.js').then((scale) => [-1, null, -9].map(scale.drawnOf))"
    assert page.evaluate(drawn) == [pytest.approx(-4.0943, abs=1e-4), None, -9]


def test_a_behaviour_is_named_and_read_on_the_timeline(site: Site, look: Look) -> None:
    now = time.time()
    folder = site.console.settings.camera_folder("market-junction")
    known = [{"number": n, "share": 0.5, "seconds": 9, "next": []} for n in (1, 2)]
    (folder / "named.json").write_text(json.dumps([{**one, "picture": None} for one in known]))
    with site.console.database.transaction() as session:
        number = store.begin_learning(session, "market-junction", "asked", now - 40 * 86400)
        learnt = LearntModel("named.habitus", "", (), now - 300, now, 300, 4)
        store.end_learning(session, number, learnt, now - 40 * 86400)
    page = site.visit("/cameras/market-junction", **look).page
    page.get_by_text("Name it: behaviour 1").click()
    page.get_by_label("Name of behaviour 1").fill("north-south green")
    page.locator(".naming[open]").get_by_role("button", name="Save").click()
    expect(page.locator("#behaviours figcaption strong").first).to_have_text("north-south green")
    timeline = page.request.get(
        f"{site.address}/api/cameras/market-junction/timeline?since={now - 600}&until={now}"
    )
    assert timeline.json()["names"][-1]["names"] == {"1": "north-south green"}
    name = """names => import('/static/timeline.js').then(({ Timeline }) =>
      Timeline.prototype.nameOf.call({ found: { names } }, 1, Date.now() / 1000))"""
    assert page.evaluate(name, timeline.json()["names"]) == "north-south green"


def test_cards_have_seconds_and_notices_are_dismissed(site: Site, look: Look) -> None:
    page = site.visit("/events", **look).page
    expect(page.locator("#results a.whole").first).to_have_text(re.compile(r"\d+:\d\d:\d\d"))
    site.console.bulletin.post("the disk is nearly full", "market-junction")
    page.goto(f"{site.address}/settings/notices")
    expect(page.locator("#notices")).to_contain_text("The disk is nearly full")
    page.get_by_role("button", name="Dismiss all").click()
    expect(page.locator("#notices")).to_contain_text("All is well")
    assert site.console.bulletin.notices() == []


def test_a_note_and_a_mark_are_kept(site: Site, look: Look) -> None:
    event = alarms(site)[0].id
    page = site.visit(f"/events/{event}", **look).page
    page.get_by_label("Note").fill("the postman")
    page.get_by_label("Mark this event").check()
    page.locator(".note-form").get_by_role("button", name="Save").click()
    expect(page.locator(".flash.good")).to_be_visible()
    page.goto(f"{site.address}/events?starred=yes&words=postman")
    expect(page.locator("#results .event")).to_have_count(1)
    expect(page.locator(f"#event-{event} .note")).to_have_text("the postman")


def test_lists_fit_their_screens(site: Site, look: Look) -> None:
    visit = site.visit(f"/events/{alarms(site)[0].id}", **look)
    page = visit.page
    desk = page.viewport_size["width"] > 1000
    width = page.locator(".similar .event").first.bounding_box()["width"]
    assert width >= (220 if desk else 150)
    visit.go("/events?unusual=1")
    for name in ("not raised", "marked ones"):
        label = page.locator(".choice", has_text=name)
        tops = [label.locator(part).bounding_box() for part in ("input", "span")]
        middles = [box["y"] + box["height"] / 2 for box in tops]
        assert middles[0] == pytest.approx(middles[1], abs=2)
    cut = "element => element.scrollWidth - element.clientWidth"
    for path, scrolled in (("audit", ".scroll"), ("log", ".log")):
        visit.go(f"/settings/{path}")
        if not desk:
            assert page.locator(scrolled).evaluate(cut) <= 0, path
    visit.go("/api")
    assert "`" not in page.locator("main").inner_text()
    if not desk:
        assert page.locator(".scroll").evaluate(cut) <= 0


def test_events_are_reviewed_by_keys(site: Site) -> None:
    first, second, third = alarms(site, "none")[:3]
    page = site.visit("/review").page
    stage = page.locator("#stage")
    expect(stage).to_have_attribute("data-event", first.id)
    page.keyboard.press("n")
    expect(stage).to_have_attribute("data-event", second.id)
    expect(page.locator("#said")).to_contain_text("Normal.")
    page.keyboard.press("u")
    expect(stage).to_have_attribute("data-event", third.id)
    assert {e.id: e.review for e in stored(site, EventRow) if e.id in (first.id, second.id)} == {
        first.id: "normal",
        second.id: "unusual",
    }
    page.keyboard.press("z")
    expect(stage).to_have_attribute("data-event", second.id)
    page.keyboard.press("z")
    expect(stage).to_have_attribute("data-event", first.id)
    expect(page.locator("#said")).to_contain_text("Taken back.")
    assert alarms(site, "none")[0].id == first.id
    older = alarms(site)[1]
    page.keyboard.press("ArrowRight")
    expect(stage).to_have_attribute("data-event", older.id)
    page.keyboard.press("ArrowLeft")
    expect(stage).to_have_attribute("data-event", first.id)
    expect(page.locator("#precision-title + p")).to_contain_text("90 % interval")


def test_a_key_does_not_wait_for_the_page_that_renews_itself(site: Site) -> None:
    first, second = alarms(site, "none")[:2]
    visit = site.visit("/review")
    page, stage = visit.page, visit.page.locator("#stage")
    expect(stage).to_have_attribute("data-event", first.id)
    held: list[Route] = []
    page.route(
        "**/review",
        lambda route: held.append(route) if route.request.method == "GET" else route.continue_(),
    )
    other = site.tab(page.context, f"/events/{first.id}").page
    with page.expect_request("**/review"):
        other.keyboard.press("n")
    page.keyboard.press("u")
    expect(stage).to_have_attribute("data-event", second.id)
    with page.expect_response("**/review"):
        held[0].continue_()
    expect(stage).to_have_attribute("data-event", second.id)


def test_events_are_reviewed_by_finger(site: Site) -> None:
    first, second, third = alarms(site, "none")[:3]
    page = site.visit("/review", **LOOKS["phone"]).page
    stage = page.locator("#stage")
    for verdict, following in (("Normal", second), ("Unusual", third)):
        page.get_by_role("button", name=verdict).tap()
        expect(stage).to_have_attribute("data-event", following.id)
        expect(page.locator("#said")).to_contain_text(f"{verdict}.")
    page.locator("#said").get_by_role("button", name="Undo").tap()
    expect(stage).to_have_attribute("data-event", second.id)
    page.get_by_role("link", name="Newer").tap()
    expect(stage).to_have_attribute("data-event", first.id)
    expect(stage.locator("[data-verdict=normal]")).to_have_attribute("aria-pressed", "true")
    stage.get_by_role("button", name="Heat map").tap()
    expect(page.locator("#heat")).to_be_visible()


def test_a_review_in_one_tab_shows_in_the_other(site: Site) -> None:
    first = alarms(site, "none")[0]
    visit = site.visit("/review")
    other = site.tab(visit.page.context, "/events").page
    card = other.locator(f"#event-{first.id}")
    expect(card).to_be_visible()
    expect(other.locator("#link-state")).to_have_attribute("data-state", "live")
    visit.page.bring_to_front()
    visit.page.keyboard.press("u")
    expect(card.locator(".verdict-unusual")).to_be_visible()
    third = site.tab(visit.page.context, f"/events/{first.id}").page
    expect(third.locator("#link-state")).to_have_attribute("data-state", "live")
    reviews.review(site.console, first.id, None, "bo")
    expect(card.locator(".verdict-unusual")).to_have_count(0)
    expect(third.get_by_role("button", name="Undo")).to_have_count(0)


def test_lists_and_reviews_work_without_scripts(site: Site) -> None:
    first = alarms(site, "none")[0]
    page = site.visit("/events?review=none", java_script_enabled=False).page
    page.locator(f"#event-{first.id} a").click()
    page.get_by_role("button", name="Unusual").click()
    expect(page.get_by_role("status").first).to_contain_text("written down")
    page.get_by_role("button", name="Undo").click()
    assert alarms(site, "none")[0].id == first.id
    page.goto(f"{site.address}/review")
    page.get_by_role("button", name="Normal").click()
    expect(page.locator("#said")).to_contain_text("Normal.")


def test_channels_are_added_tested_and_removed(site: Site, look: Look) -> None:
    visit = site.visit("/settings", allowed=("status of 4", "dialog: Remove the channel"), **look)
    page = visit.page
    page.get_by_text("Quiet hours of new channels").click()
    form = page.locator("details[open] form")
    form.get_by_label("Quiet from").fill("22:00")
    form.get_by_label("until").fill("06:00")
    form.get_by_role("button", name="Save").click()
    expect(page.locator(".flash.good")).to_be_visible()
    with receiver() as desk:
        page.get_by_text("Add a webhook").click()
        form.get_by_label("Name").fill("Night desk")
        form.get_by_label("Address").fill(f"{desk.url}/secret-path")
        form.get_by_role("button", name="Add").click()
        added = page.locator("li", has_text="Night desk").first
        expect(added).to_contain_text("quiet 22:00 to 06:00")
        assert "secret-path" not in page.content()
        added.get_by_role("button", name="Send a test").click()
        expect(page.locator(".flash.good")).to_contain_text("The test message was sent")
        assert [posted.path for posted in desk.posted] == ["/hook/secret-path"]
        desk.status = 410
        added.get_by_role("button", name="Send a test").click()
        expect(page.locator(".flash.bad")).to_contain_text("410")
    remove = page.get_by_label("Remove the channel Night desk")
    n_before = len(stored(site, Channel))
    visit.settled()  # scripts ask whether one is sure
    remove.click()  # the dialog is dismissed
    expect(remove).to_be_visible()
    assert len(stored(site, Channel)) == n_before
    visit.answer = True
    remove.click()
    expect(page.locator(".flash.good")).to_contain_text("It is removed")
    assert "Night desk" not in {channel.name for channel in stored(site, Channel)}


def test_people_log_in_and_see_what_they_may(site: Site, look: Look) -> None:
    allowed = ("401 (Unauthorized)", "403 (Forbidden)", "Autofocus processing was blocked")
    visit = site.visit("/settings/people", allowed=allowed, **look)
    page = visit.page
    page.get_by_text("Add somebody").click()
    form = page.locator("#people details[open] form")
    form.get_by_label("Name").fill("admin")
    form.get_by_label("Password").fill("correct horse")
    form.get_by_role("button", name="Add").click()
    expect(page).to_have_url(re.compile("/login"))
    visit.settled()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill("wrong horse")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not fit")
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Settings")
    visit.settled()
    page.get_by_role("link", name="Tokens").click()
    visit.settled()
    page.get_by_text("Make a token").click()
    page.locator("#tokens").get_by_label("Name").fill("script")
    page.get_by_role("button", name="Make", exact=True).click()
    secret = page.locator("#new-token").inner_text()
    assert secret.startswith("habitus_")
    visit.go("/settings/tokens")
    assert secret not in page.content()
    assert [token.name for token in stored(site, Token)] == ["script"]
    administration.add_user(
        site.console, "admin", NewUser(name="vera", **{"password": "correct horse"})
    )
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile("/login"))
    visit.settled()
    page.get_by_label("Name").fill("vera")
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Settings")).to_have_count(0)
    expect(page.get_by_role("link", name="Review")).to_have_count(0)
    page.get_by_role("link", name="vera").click()
    expect(page.get_by_label("New password")).to_be_visible()
    page.goto(f"{site.address}/events/{EVENT}")
    expect(page.get_by_role("button", name="Unusual")).to_have_count(0)
    page.goto(f"{site.address}/settings")
    expect(page.locator("h1")).to_have_text("Not allowed")
    expect(page.locator("main")).to_contain_text("That needs the role admin, and yours is viewer.")


TABLET = {"viewport": {"width": 1180, "height": 820}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("look", [*LOOKS.values(), TABLET], ids=[*LOOKS, "tablet"])
def test_a_touch_screen_shows_no_keys(site: Site, look: Look) -> None:
    page = site.visit(f"/events/{EVENT}", **look).page
    for hint in (page.locator("#show-keys"), page.locator("[data-verdict=normal] kbd")):
        expect(hint).to_be_visible(visible="has_touch" not in look)


def test_keys_are_shown_and_lead_to_pages(site: Site) -> None:
    visit = site.visit("/")
    page = visit.page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("wall screen")
    page.keyboard.press("Escape")
    for key, name in (("e", "Events"), ("r", "Review"), ("s", "Settings"), ("w", "Wall")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(name)
        visit.settled()


def test_e_mail_is_set_up_in_fields(site: Site, look: Look) -> None:
    page = site.visit("/settings", allowed=("status of 4",), **look).page
    page.get_by_text("Add e-mail").click()
    form = page.locator("details[open] form")
    form.get_by_label("Name").fill("Night mail")
    form.get_by_label("Mail server").fill("mail.example.org")
    form.get_by_label("Encryption").select_option("TLS from the start")
    form.get_by_label("User").fill("habitus")
    form.get_by_label("Password").fill("s3cret word")
    form.get_by_label("From", exact=True).fill("habitus@example.org")
    form.get_by_label("To", exact=True).fill("nobody")
    form.get_by_role("button", name="Add").click()
    expect(page.locator("#problem")).to_contain_text("To must be an address of e-mail")
    expect(form.get_by_label("Mail server")).to_have_value("mail.example.org")
    form.get_by_label("To", exact=True).fill("me@example.org, you@example.org")
    form.get_by_role("button", name="Add").click()
    added = page.locator("li", has_text="Night mail").first
    expect(added).to_contain_text("mail.example.org")
    assert "s3cret word" not in page.content()
    added.get_by_text("Change").click()
    expect(added.get_by_label("Port")).to_have_attribute("placeholder", "465")
    expect(added.get_by_label("Encryption")).to_have_value("tls")


def test_a_camera_is_snoozed_and_woken(site: Site, look: Look) -> None:
    visit = site.visit("/cameras/market-junction", **look)
    page = visit.page
    page.get_by_label("Notifications").select_option("snooze for 4 hours")
    expect(page.locator(".flash.good")).to_be_visible()
    expect(page.locator("#snooze-form")).to_contain_text("snoozed until")
    page.locator("#snooze-form").get_by_role("button", name="End").click()
    expect(page.locator(".flash.good")).to_contain_text("sent again")
    expect(page.get_by_label("Notifications")).to_be_visible()


def test_what_to_expect_of_many_cameras_pushes_no_event_away(site: Site, look: Look) -> None:
    reason = "an hour of footage cannot tell it: expect 0 to 9 alarms in a day (90 %); of synthetic"
    with site.console.database.transaction() as session:
        for camera in session.scalars(select(CameraRow)):
            camera.state, camera.reason = "watching", reason
    page = site.visit("/events", **look).page
    expect(page.locator("#expected")).to_have_js_property("open", False)
    expect(page.locator("#results .event").first).to_be_in_viewport()
    page.locator("#expected summary").click()
    expect(page.locator("#expected p").first).to_be_visible()
    page.goto(f"{site.address}/events?camera=market-junction")
    expect(page.get_by_text("expect 0 to 9 alarms in a day (90 %).")).to_be_visible()
    expect(page.get_by_text("synthetic")).to_have_count(0)
