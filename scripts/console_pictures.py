"""Take the pictures of the console in the documents, from a demonstration that runs.

    habitus serve --demo --data DIR --port 8601    # until all three cameras are watching
    python scripts/console_pictures.py http://127.0.0.1:8601

It reviews an event on the way, and takes that back.
"""

import argparse
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "pictures" / "console"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = (1280, 800), (390, 844)
# Milliseconds after which pictures and timelines are drawn.
SETTLED = 4000


class Shot(NamedTuple):
    """A picture to take."""

    name: str
    address: str
    size: tuple[int, int] = DESK
    scheme: str = "light"
    before: Callable[[Page], None] = lambda page: None
    """What is done on the page before."""


def show_heat(page: Page) -> None:
    """Show the heat map of an event, at its strongest moment."""
    page.keyboard.press("h")
    page.evaluate(
        """() => {
            const { lead, peak } = document.getElementById("stage").dataset;
            document.getElementById("clip").currentTime = Number(lead) + Number(peak) + 0.5;
        }"""
    )
    page.wait_for_timeout(SETTLED)
    page.wait_for_timeout(500)


def show_hour(page: Page) -> None:
    """Show the last hour, in full."""
    page.set_viewport_size({"width": DESK[0], "height": 1700})
    page.click("[data-span='3600']")
    page.wait_for_timeout(SETTLED)


def say_normal(page: Page) -> None:
    """Review an event, so that the page says what else is silenced."""
    page.keyboard.press("n")
    page.wait_for_selector("#said", timeout=60_000)
    page.wait_for_timeout(SETTLED)


def draw_zones(page: Page) -> None:
    """Draw two zones on the picture of a camera; they are not saved."""
    page.wait_for_timeout(SETTLED)
    box = page.locator("#canvas").bounding_box()
    assert box is not None  # noqa: S101
    zones = {
        "Side street": ((0.03, 0.05), (0.34, 0.05), (0.3, 0.34), (0.03, 0.38), (0.03, 0.05)),
        "Crossing": ((0.4, 0.4), (0.72, 0.4), (0.78, 0.74), (0.36, 0.74), (0.4, 0.4)),
    }
    for name, corners in zones.items():
        for x, y in corners:
            page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
        page.keyboard.type(name)
    page.get_by_label("What it does").first.select_option("ignore")
    crossing = page.get_by_role("group", name="Zone Crossing")
    crossing.get_by_label("Alerts per day").fill("1")
    crossing.get_by_role("button", name="Hours in which it is armed").click()
    page.wait_for_timeout(500)


def shots(event: str, camera: str) -> list[Shot]:
    """Return all pictures of the documents."""
    return [
        Shot("wall", "/"),
        Shot("wall-dark-phone", "/", PHONE, "dark"),
        Shot("camera", f"/cameras/{camera}", before=show_hour),
        Shot("events", "/events"),
        Shot("events-phone", "/events", PHONE),
        Shot("event-dark", f"/events/{event}", scheme="dark", before=show_heat),
        Shot("zones", f"/cameras/{camera}/zones", before=draw_zones),
        Shot("review", "/review", before=say_normal),
        Shot("review-phone", "/review", PHONE),
    ]


def take(browser: Browser, console: str, shot: Shot) -> bytes:
    """Return a picture as PNG."""
    width, height = shot.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if shot.scheme == "dark" else "light",
        device_scale_factor=1 if shot.size == DESK else 2,
        reduced_motion="reduce",
    )
    with context:
        page = context.new_page()
        page.goto(f"{console}{shot.address}")
        page.wait_for_timeout(SETTLED)
        shot.before(page)
        found = page.screenshot()
        if page.locator("#said [data-undo]").count():
            page.click("#said [data-undo]")
            page.wait_for_timeout(SETTLED)
    return found


def main() -> None:
    """Take all pictures, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("console", nargs="?", default="http://127.0.0.1:8601")
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        api = playwright.request.new_context(base_url=arguments.console)
        events = api.get("/api/events").json()["events"]
        # The least usual event, by how far below the threshold it is.
        event = min(events, key=lambda each: each["normality"] - each["threshold"])
        for shot in shots(event["id"], event["camera_id"]):
            if arguments.only and shot.name not in arguments.only:
                continue
            picture = Image.open(io.BytesIO(take(browser, arguments.console, shot)))
            picture.convert("RGB").save(PICTURES / f"{shot.name}.webp", quality=82, method=6)
        browser.close()


if __name__ == "__main__":
    main()
