"""Every page in both themes: what axe-core says, that it fits, plain words, inert names."""

import time
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import expect

from habitus.web.admin_routes import PARTS
from habitus.web.database import CameraRow, Channel
from reference.console_pages import DESK, PHONE, RULES, Site
from reference.processes import wait_until

EVENT = f"{3:012x}"
ZONES = "/cameras/market-junction/zones"
PAGES = (
    "/",
    "/?wall",
    "/cameras/new",
    "/cameras/market-junction",
    "/cameras/market-junction/edit",
    ZONES,
    "/events",
    "/events?review=unusual",
    "/calendar",
    f"/events/{EVENT}",
    "/review",
    "/settings",
    *(f"/settings/{part}" for part in PARTS if part != "channels"),
    "/account",
    "/api",
    "/login",
    "/nothing",
)
EXPERTS = ("/api", "/settings/log")
TERMS = ("nats", "topic", "threshold", "document")
"""Of the model: for experts, and on their pages alone."""
THEMES = {"light": RULES, "dark": ["color-contrast"]}
"""What is asked in each: they differ in colours alone."""
OTHERWISE = ("/", "/?wall", "/cameras/market-junction", "/events", f"/events/{EVENT}", "/review")
"""Pages with a style sheet's rules for phones beyond those of all pages, which these have too."""


@pytest.mark.parametrize(
    ("viewport", "themes", "asked"),
    [(DESK, THEMES, PAGES), (PHONE, {"light": RULES}, OTHERWISE)],
    ids=["desk", "phone"],
)
def test_every_page_is_accessible_and_fits(
    site: Site, viewport: Any, themes: dict[str, list[str]], asked: tuple[str, ...]
) -> None:
    visit = site.visit(viewport=viewport, reduced_motion="reduce", allowed=("404 (Not Found)",))
    for path in PAGES:
        page = visit.go(path)
        page.wait_for_load_state("networkidle" if path == "/login" else "load")
        if path.endswith("junction"):
            page.locator("#timeline canvas").wait_for()
        for theme, rules in themes.items() if path in asked else ():
            page.emulate_media(color_scheme=theme)
            assert visit.violations(rules) == [], (path, theme)
        assert visit.overflow() <= 0, path
        if path not in EXPERTS:
            seen = page.locator("main").inner_text().lower()
            assert [term for term in TERMS if term in seen] == [], path


def test_names_and_addresses_are_inert(site: Site) -> None:
    evil = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
    with site.console.database.transaction() as session:
        camera = session.get(CameraRow, "market-junction")
        assert camera is not None
        camera.name, camera.shown_address = evil, f"rtsp://{evil}/"
        camera.reason = evil
        channel = session.get(Channel, 1)
        assert channel is not None
        channel.name, channel.shown_settings = evil, {"url": evil}
    site.happen("evil", explanation=evil, rarity=evil, cue=evil)
    site.console.bulletin.post(evil, "market-junction")

    def is_told(page: Any) -> bool:
        site.console.bulletin.publish("notice", camera=None, text=evil, time=time.time())
        return "<img" in (page.locator("#toasts").text_content() or "")

    visit = site.visit("/")
    for path in (*PAGES[:-2], "/events/evil", "/review/evil"):
        page = visit.go(path)
        wait_until(partial(is_told, page), "the page listens to news")
        site.happen("evil", explanation=evil, rarity=evil, cue=evil)
        if path in ("/", "/events"):
            expect(page.locator("[data-event=evil]").first).to_contain_text("<img")
        assert page.locator("img[src=x]").count() == 0, path
        assert "<img src=x" not in page.content().replace('placeholder="rtsp://<img src=x', ""), (
            path
        )
