"""The wall as each wants it: order, size, groups; and tiles in which something happens."""

import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import expect

from habitus.web.administration import add_user, remove
from habitus.web.answers import NewUser, WallLayout, WallTile
from habitus.web.database import Role, Setting, User
from habitus.web.preferences import arranged, read_wall, write_wall
from habitus.web.queries import wall
from habitus.web.server import Console
from reference.console_pages import RULES, Site
from reference.processes import wait_until

Look = dict[str, Any]
NAMES = ["Market junction", "Station road", "Harbour gate"]


def layout_of(site: Site) -> WallLayout:
    with site.console.database.session() as session:
        return read_wall(session, "the machine's owner")


def test_tiles_are_moved_sized_and_grouped_by_buttons(site: Site, look: Look) -> None:
    visit = site.visit("/", **look)
    page = visit.page
    names = page.locator(".tile-name")
    expect(names).to_have_text(NAMES)
    page.keyboard.press("o")
    expect(page.locator("#arrange")).to_have_attribute("aria-pressed", "true")
    assert visit.violations(RULES) == []
    assert visit.overflow() <= 0
    page.get_by_role("button", name="Station road: earlier").press("Enter")
    expect(names).to_have_text(["Station road", "Market junction", "Harbour gate"])
    expect(page.locator("#announce")).to_have_text("Station road: place 1 of 3")
    expect(page.get_by_role("button", name="Station road: earlier")).to_be_focused()
    page.get_by_label("Market junction: size").select_option("Large")
    wait_until(lambda: [tile.size for tile in layout_of(site).tiles] == [1, 2, 1], "it is kept")
    page.get_by_label("Harbour gate: group").fill("The <b>port</b>")
    page.keyboard.press("Tab")
    expect(page.get_by_role("heading", name="The <b>port</b>")).to_be_visible()
    expect(page.locator("#arrange")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(names).to_have_text(["Station road", "Market junction", "Harbour gate"])
    expect(page.locator("#tile-market-junction")).to_have_class(re.compile("size-2"))
    assert visit.overflow() <= 0


def test_tiles_are_dragged(site: Site) -> None:
    page = site.visit("/").page
    page.locator("#arrange").click()
    page.locator("#tile-station-road .view").drag_to(page.locator("#tile-market-junction .view"))
    expect(page.locator(".tile-name")).to_have_text(
        ["Station road", "Market junction", "Harbour gate"]
    )
    wait_until(lambda: layout_of(site).tiles[:1] == [WallTile(camera="station-road")], "kept")


def test_a_tile_in_which_something_happens_is_framed(site: Site, look: Look) -> None:
    page = site.visit("/", **look).page
    tile = page.locator("#tile-market-junction")
    expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    site.happen("new1")
    expect(tile).to_have_class(re.compile("happening"))
    expect(page.locator("#tile-station-road")).not_to_have_class(re.compile("happening"))


def test_one_camera_and_all_on_the_whole_screen_by_key(site: Site) -> None:
    page = site.visit("/").page
    page.mouse.move(2, 2)
    page.locator("#tile-market-junction .tile-name").focus()
    page.keyboard.press("f")
    expect(page.locator("#tile-market-junction .view:fullscreen")).to_be_visible()
    page.keyboard.press("f")
    expect(page.locator(":fullscreen")).to_have_count(0)
    page.locator("#tile-market-junction .tile-name").blur()
    whole = page.locator("html:fullscreen")

    def filled() -> bool:
        """Press, as a person does again: a browser can drop it while it still leaves the last."""
        page.keyboard.press("f")
        with suppress(AssertionError):
            expect(whole).to_be_attached(timeout=10_000)
        return whole.count() == 1

    wait_until(filled, "the whole page on the whole screen")


def test_everybody_has_a_wall_of_their_own(console: Console) -> None:
    secret = {"password": "correct horse"}
    eve = add_user(console, "test", NewUser(name="eve", role=Role.ADMIN, **secret))
    bob = add_user(console, "test", NewUser(name="bob", **secret))
    with console.database.transaction() as session:
        write_wall(session, str(bob.id), WallLayout(live_first=False))
    with console.database.session() as session:
        assert not read_wall(session, str(bob.id)).live_first
        assert read_wall(session, str(eve.id)).live_first
    remove(console, "test", User, bob.id)
    with console.database.session() as session:
        assert session.get(Setting, f"wall of {bob.id}") is None


@pytest.mark.parametrize("live_first", [True, False])
def test_cameras_without_a_picture_come_last(site: Site, live_first: bool) -> None:
    tiles = [WallTile(camera="harbour-gate"), WallTile(camera="gone", group="Old")]
    cameras = site.console.database.read(wall)
    (group,) = arranged(cameras, WallLayout(tiles=tiles, live_first=live_first))
    names = [camera.name for camera in group.cameras]
    assert names == (NAMES if live_first else [NAMES[2], *NAMES[:2]])
