"""A console that answers on a free port of this machine, and its pages in a real browser."""

import contextlib
import os
import queue
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from habitus.web import store
from habitus.web.server import Console, open_console, run
from habitus.web.server_settings import ServerSettings
from reference.browser import LONGEST
from reference.consoles import entry, event_json
from reference.made_once import made_once
from reference.processes import LONG
from reference.seeded_console import PLACES, seeded_console

DESK = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
LOOKS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": DESK},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
AXE = Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@contextlib.contextmanager
def answering(console: Console, port: int = 0) -> Iterator[str]:
    """Answer requests in a thread, on a free port unless one is given; gives the address."""
    stop, started = threading.Event(), queue.Queue[str]()
    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=run, args=(console, listener, started.put, stop))
        thread.start()
        try:
            yield started.get(timeout=LONG).rstrip("/")
        finally:
            stop.set()
            thread.join()


@dataclass
class Visit:
    """A browser's tab, and what it complained about."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    allowed: tuple[str, ...] = ()
    """Complaints with one of these texts are expected."""
    answer: bool = False
    """What is said to a page that asks whether one is sure."""
    scripts: bool = True
    """Whether the browser runs them."""

    def __post_init__(self) -> None:
        page, complain = self.page, self.complaints.append
        page.on("console", lambda said: complain(f"console: {said.text}"))
        page.on("pageerror", lambda error: complain(f"error: {error}"))
        page.on("dialog", self._answer)
        page.on("request", self._look_at)

    def _answer(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        if self.answer:
            dialog.accept()
        else:
            dialog.dismiss()

    def _look_at(self, request: Any) -> None:
        if not request.url.startswith((f"{self.address}/", "blob:", "data:")):
            self.complaints.append(f"request: {request.url}")

    def go(self, path: str) -> Any:
        """Open a page, and wait until its scripts have started, if it has any."""
        self.page.goto(self.address + path)
        return self.settled()

    def settled(self) -> Any:
        """Wait until the scripts of the page have started."""
        self.page.wait_for_load_state("domcontentloaded")  # half a page has no toasts yet
        if self.scripts:
            started = "body[data-ready], body:not(:has(#toasts))"
            self.page.wait_for_selector(started, state="attached")
        return self.page

    def check(self) -> None:
        """Fail if anything was complained about that was not expected."""
        found = [c for c in self.complaints if not any(text in c for text in self.allowed)]
        assert not found, "\n".join(found)

    def violations(self, rules: list[str]) -> list[str]:
        """What axe-core finds wrong with the page, by rules or sets of them: WCAG 2 A and AA."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate(
            "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", rules
        )["violations"]
        return [
            f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
            for rule in found
            for node in rule["nodes"]
        ]

    def overflow(self) -> int:
        """Pixels by which the page is wider than the screen."""
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(width))


@dataclass
class Site:
    """A console that answers, and a browser to visit it with."""

    console: Console
    address: str
    browser: Any
    contexts: list[Any] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)

    def visit(self, path: str = "/", *, allowed: tuple[str, ...] = (), **look: Any) -> Visit:
        """Open a page in a browser of its own."""
        self.contexts.append(context := self.browser.new_context(**({"viewport": DESK} | look)))
        context.set_default_timeout(LONGEST)
        scripts = look.get("java_script_enabled", True)
        return self.tab(context, path, allowed=allowed, scripts=scripts)

    def tab(
        self,
        context: Any,
        path: str = "/",
        *,
        allowed: tuple[str, ...] = (),
        scripts: bool = True,
    ) -> Visit:
        """Open a page in another tab of a browser."""
        visit = Visit(context.new_page(), self.address, allowed=allowed, scripts=scripts)
        self.visits.append(visit)
        visit.go(path)
        return visit

    def happen(self, event_id: str, camera: str = "market-junction", **fields: Any) -> None:
        """Let an event be written and told to pages, as the supervisor does."""
        start = fields.pop("start", time.time() - 2)
        told = entry(event_id, start=start, end=start + 1, peak=start, event=event_json(**fields))
        with self.console.database.transaction() as session:
            store.ingest(session, camera, told)
        self.console.bulletin.publish(
            "event", camera=camera, event=event_id, kind="started", alarm=True
        )


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A desk's and a phone's browser, for flows that make sense on both."""
    return LOOKS[request.param]


@pytest.fixture(scope="session")
def seeded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with days behind it; to be copied. All cameras show the same two anomalies."""
    places = tuple(place._replace(seed=PLACES[0].seed) for place in PLACES)

    def make(folder: Path) -> None:
        seeded_console(folder, now=time.time(), places=places, seconds=52.0).database.close()

    return made_once(tmp_path_factory, "seeded", make)


@pytest.fixture
def open_site(browser: Any) -> Iterator[Callable[[Console], Site]]:
    """A function that lets a console answer, to be visited; what pages complain of fails."""
    with contextlib.ExitStack() as stack:

        def opened(console: Console) -> Site:
            stack.callback(console.database.close)
            site = Site(console, stack.enter_context(answering(console)), browser)
            stack.callback(lambda: [context.close() for context in site.contexts])
            sites.append(site)
            return site

        sites: list[Site] = []
        yield opened
        for site in sites:
            for visit in site.visits:
                visit.check()


@pytest.fixture
def site(open_site: Callable[[Console], Site], seeded_folder: Path, tmp_path: Path) -> Site:
    """A console with days behind it."""
    folder = tmp_path / "data"
    ignored = shutil.ignore_patterns("scenes")
    shutil.copytree(seeded_folder, folder, ignore=ignored, copy_function=_copy)
    return open_site(open_console(ServerSettings(folder)))


def _copy(source: str, target: str) -> None:
    """Link what is never changed in place: pictures and clips."""
    if source.endswith((".jpg", ".mp4")):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


@pytest.fixture
def empty_site(open_site: Callable[[Console], Site], tmp_path: Path) -> Site:
    """A console without any camera."""
    return open_site(open_console(ServerSettings(tmp_path / "data")))
