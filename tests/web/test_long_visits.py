"""Pages that are left open: the login ends, the server restarts, tabs are hidden, hours go by."""

import re
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from sqlalchemy import delete

from habitus.lab import Junction, render
from habitus.web import administration
from habitus.web.answers import CameraChanges, NewCamera, NewUser
from habitus.web.database import Login, Role
from habitus.web.server import Console, open_console, working
from habitus.web.server_settings import ServerSettings
from reference.console_pages import Site, answering
from reference.consoles import add_camera
from reference.processes import wait_until

AWAY = ("Failed to load resource", "ERR_", "401 (Unauthorized)")


def judge(console: Console, camera: str, **fields: Any) -> None:
    told = {"time": time.time(), "normality": -3.0, "threshold": -9.0, "behaviour": 2}
    console.bulletin.publish("judged", camera=camera, **(told | {"expected": [0.3, 0.7]} | fields))


ADMIN = NewUser(name="admin", role=Role.ADMIN, **{"password": "correct horse"})


def test_a_login_that_ended_leads_to_the_login_and_back(empty_site: Site) -> None:
    console = empty_site.console
    add_camera(console, "north", state="watching")
    administration.add_user(console, "me", ADMIN)
    page = empty_site.visit("/login?next=/events?review=none", allowed=AWAY).page
    for _ in range(2):
        page.get_by_label("Name").fill("admin")
        page.get_by_label("Password").fill("correct horse")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/events\?review=none$"))
        expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
        with console.database.transaction() as session:
            session.execute(delete(Login))
        console.bulletin.publish("event", camera="north", event="1", kind="ended", alarm=True)
        expect(page).to_have_url(re.compile("/login"))


def test_filters_after_the_login_ended_lead_to_the_login_too(empty_site: Site) -> None:
    page = empty_site.visit("/events", allowed=AWAY).page
    administration.add_user(empty_site.console, "me", ADMIN)
    page.get_by_label("Reviewed").select_option("unusual")
    expect(page).to_have_url(re.compile(r"/login\?next="))


def test_pages_say_that_the_server_is_away_and_come_back(browser: Any, tmp_path: Path) -> None:
    settings = ServerSettings(tmp_path / "data")
    console = open_console(settings)
    add_camera(console, "north", state="watching", name="Before")
    with answering(console) as address:
        site = Site(console, address, browser)
        wall = site.visit("/", allowed=AWAY).page
        screen = site.visit("/?wall", allowed=AWAY).page
        for page in (wall, screen):
            expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    console.database.close()
    for page in (wall, screen):
        expect(page.locator("#link-state")).to_have_text("no connection")
        expect(page.locator("#link-state")).to_be_visible()
    console = open_console(settings)
    administration.change_camera(console, "me", "north", CameraChanges(name="After"))
    with answering(console, port=int(address.rpartition(":")[2])):
        for page in (wall, screen):
            expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
            expect(page.locator(".tile-name")).to_have_text("After")
        for context in site.contexts:
            context.close()
    console.database.close()
    for visit in site.visits:
        visit.check()


def test_a_hidden_tab_gives_its_connection_back(empty_site: Site) -> None:
    listeners = empty_site.console.bulletin
    page = empty_site.visit("/").page
    for _ in range(5):
        for hidden, n_listeners in ((True, 0), (False, 1)):
            page.evaluate(
                "hidden => { Object.defineProperty(document, 'hidden', "
                "{ value: hidden, configurable: true }); "
                "document.dispatchEvent(new Event('visibilitychange')); }",
                hidden,
            )
            wait_until(lambda n=n_listeners: len(listeners) == n, "connections")


def test_tiles_follow_what_is_judged_and_a_lost_camera_does_nothing(empty_site: Site) -> None:
    console = empty_site.console
    add_camera(console, "north", state="watching")
    add_camera(console, "south", state="lost", reason="no frame")
    page = empty_site.visit("/").page
    expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    line = page.locator("#tile-north .spark path").first
    expect(line).to_have_attribute("d", "")
    judge(console, "south")
    judge(console, "north")
    expect(line).to_have_attribute("d", re.compile(r"^M120.0 23.0$"))
    judge(console, "north", normality=-15.0)
    expect(line).to_have_attribute("d", re.compile(r"120.0 1.0$"))  # what is unusual goes up
    expect(page.locator("#tile-north .spark .level")).to_have_attribute("d", re.compile("^M0 23.0"))
    expect(page.locator("#tile-north")).to_contain_text("behaviour 2")
    expect(page.locator("#tile-south")).not_to_contain_text("behaviour")
    with console.database.transaction() as session:
        camera = administration.camera_of(session, "north")
        camera.state, camera.reason = "covered", "dark"
    console.bulletin.publish("camera", camera="north", state="covered", since=0.0, reason="dark")
    expect(page.locator("#tile-north .corner")).to_have_text("covered")
    expect(page.locator("#tile-north")).not_to_contain_text("behaviour")


COUNTED = """() => {
  window.addresses = 0;
  const [make, revoke] = [URL.createObjectURL, URL.revokeObjectURL];
  URL.createObjectURL = (blob) => { window.addresses += 1; return make.call(URL, blob); };
  URL.revokeObjectURL = (url) => { window.addresses -= 1; revoke.call(URL, url); };
}"""


def test_a_playing_camera_is_seen_live_for_ten_minutes(empty_site: Site, tmp_path: Path) -> None:
    video = tmp_path / "junction.mp4"
    render(Junction(seed=12, seconds=20.0, normal_for=20.0), video)
    console = empty_site.console
    with working(console):
        camera = NewCamera(name="Junction", address=str(video), kind="playback")
        administration.add_camera(console, "me", camera, trusted=True)
        visit = empty_site.visit("/", allowed=("willReadFrequently",))  # looked at more than once
        page = visit.page
        picture = page.locator("#tile-junction img.live-picture")
        expect(picture).to_be_visible()
        first = picture.get_attribute("src")
        expect(picture).not_to_have_attribute("src", str(first))
        assert_ten_minutes_leave_nothing(page, console)
        page.locator(".tile-name").click()
        expect(page.locator("#view")).to_be_visible()  # the picture, or by now its video
        visit.settled()
        page.get_by_role("button", name="Arrows").click()
        drawn = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v)"
        wait_until(lambda: page.locator("#overlay").evaluate(drawn), "arrows on the picture")
        expect(page.locator("#learning")).to_contain_text("of the five minutes")


def assert_ten_minutes_leave_nothing(page: Any, console: Console) -> None:
    """The news of ten minutes, each with a picture: heap, nodes and listeners stay as they are.

    At most 200 bytes of the heap and two nodes may be kept of each, and no listener.
    """
    page.evaluate(COUNTED)
    memory = page.context.new_cdp_session(page)
    pictures: list[str] = []
    page.on("request", lambda asked: pictures.append(asked.url))
    used = []
    for _ in range(6):
        _tell_of_a_minute(page, console)
        used.append(_kept(memory))
    before = used[1]

    def as_before() -> bool:
        """What is on its way into the page or out of it passes; what is kept stays."""
        now = _kept(memory)
        return (
            now["heap"] < before["heap"] + 80_000
            and now["nodes"] <= before["nodes"] + 8
            and now["jsEventListeners"] <= before["jsEventListeners"] + 3
        )

    wait_until(as_before, f"what is kept to be as after two minutes: {used}")
    assert sum("/picture" in address for address in pictures) > 3
    # The one that is shown, and one that may be on its way.
    assert page.evaluate("window.addresses") <= 2


def _kept(memory: Any) -> dict[str, int]:
    memory.send("HeapProfiler.collectGarbage")
    heap = memory.send("Runtime.getHeapUsage")["usedSize"]
    return {"heap": heap, **memory.send("Memory.getDOMCounters")}


def _tell_of_a_minute(page: Any, console: Console) -> None:
    """As many as nobody has to drop; it ends with a tile that is shown anew."""
    with page.expect_response(lambda answer: "/parts/tiles/" in answer.url):
        for _ in range(100):
            console.bulletin.publish("picture", camera="junction", time=time.time())
        console.bulletin.publish("camera", camera="junction", state="learning", reason="")
