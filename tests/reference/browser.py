"""Fixtures that open a page in a real browser; a conftest imports them."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reference.system import BROWSER, needs

# The shell is the same engine without a browser's windows: half the processor time.
PROGRAMS = ("chromium-headless-shell", "chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


LONGEST = 120_000
"""Milliseconds that a page may take for anything: a busy machine is slow, not wrong."""


def launch(playwright: Any) -> Any:
    """Start Chromium without a screen."""
    program = next(filter(None, map(shutil.which, PROGRAMS)))
    return playwright.chromium.launch(executable_path=program, args=FLAGS)


@pytest.fixture(scope="module")  # while it is there, asyncio takes its loop for a running one
def browser():
    """Debian's Chromium: a page nobody looked at is not tested."""
    from playwright.sync_api import expect, sync_playwright

    needs(BROWSER)
    expect.set_options(timeout=LONGEST)
    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


class Opened(NamedTuple):
    """A page as a browser has it, and what it complained about."""

    page: object
    complaints: list[str]


@pytest.fixture
def opened(browser):
    """A function that opens a file without any network; complaints and requests are kept."""
    contexts = []

    def open_page(path: Path, **look) -> Opened:
        look = {"viewport": {"width": 1280, "height": 900}} | look
        contexts.append(context := browser.new_context(offline=True, **look))
        context.set_default_timeout(LONGEST)
        page, complaints = context.new_page(), []
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:"))
                else complaints.append(f"request: {request.url}")
            ),
        )
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.goto(path.as_uri())
        return Opened(page, complaints)

    yield open_page
    for context in contexts:
        context.close()
