"""The last minutes of a camera, played in a real browser: now, back, and from the timeline."""

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from habitus.site.recent_footage import stretch_at
from reference.console_pages import RULES, Site
from reference.live_ring import arriving, clock_video, recorded
from reference.processes import wait_until

CAMERA, OTHER = "market-junction", "station-road"
PAST = 90.0
Look = dict[str, Any]


@pytest.fixture(scope="session")
def clock_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clock_video(tmp_path_factory.mktemp("clock") / "video.mkv")


def ring_of(site: Site, camera: str) -> Path:
    return site.console.settings.camera_folder(camera) / "recent"


@pytest.fixture
def playing_site(site: Site, clock_file: Path) -> Iterator[Site]:
    """A console of which two cameras send video, since a minute and a half."""
    rings = [ring_of(site, CAMERA), ring_of(site, OTHER)]
    with contextlib.ExitStack() as stack:
        for ring in rings:
            stack.enter_context(arriving(clock_file, ring, past=PAST))
        wait_until(lambda: all(map(is_of_now, rings)), "what came before is there")
        yield site


def is_of_now(ring: Path) -> bool:
    newest = stretch_at(ring)
    return newest is not None and newest.end > time.time() - 2


def assert_plays(video: Locator) -> None:
    """Half a second of it runs, however long that takes a busy machine."""
    before = video.evaluate("video => video.currentTime")
    wait_until(lambda: video.evaluate("video => video.currentTime") > before + 0.5, "it runs")


def test_the_live_video_of_a_camera_runs(playing_site: Site, look: Look) -> None:
    visit = playing_site.visit(f"/cameras/{CAMERA}", **look)
    page = visit.page
    video = page.locator("#view video")
    expect(page.locator("#view")).to_have_class(re.compile("playing"))
    wait_until(lambda: video.evaluate("video => video.currentTime") > 102, "two seconds ran")
    assert video.evaluate("video => video.videoWidth") == 320
    assert_plays(video)
    expect(page.locator("#said")).to_have_text("live")
    assert visit.violations(RULES) == []
    assert visit.overflow() <= 0


def test_a_moment_is_scrubbed_to_and_left_for_live(playing_site: Site, look: Look) -> None:
    page = playing_site.visit(f"/cameras/{CAMERA}", **look).page
    video, said = page.locator("#view video"), page.locator("#said")
    expect(page.locator("#view")).to_have_class(re.compile("playing"))
    scrub = page.locator("#scrub")
    wanted = time.time() - 60
    scrub.evaluate(
        f"(scrub) => {{ scrub.value = {wanted}; scrub.dispatchEvent(new Event('input')); }}"
    )
    expect(said).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
    expect(page.locator("#to-live")).to_have_attribute("aria-pressed", "false")
    wait_until(lambda: abs(float(scrub.input_value()) - wanted) < 5, "it is shown")
    assert_plays(video)
    # The bar is where it was at that time.
    page.locator("#pause").click()
    expect(page.locator("#pause")).to_have_attribute("aria-label", "Play")
    page.locator('[data-jump="-1"]').click()
    wait_until(lambda: float(scrub.input_value()) < wanted - 2, "ten seconds earlier")
    page.locator("#to-live").click()
    expect(said).to_have_text("live")
    assert_plays(video)


def test_the_video_is_ruled_by_keys(playing_site: Site) -> None:
    page = playing_site.visit(f"/cameras/{CAMERA}").page
    expect(page.locator("#view")).to_have_class(re.compile("playing"))
    page.keyboard.press("j")
    expect(page.locator("#to-live")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("k")
    expect(page.locator("#pause")).to_have_attribute("aria-label", "Play")
    before = page.locator("#view video").evaluate("video => video.currentTime")
    page.keyboard.press(".")
    after = page.locator("#view video").evaluate("video => video.currentTime")
    assert after == pytest.approx(before + 0.04, abs=0.01)
    page.locator("#scrub").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("e")
    expect(page.locator("#said")).to_have_text("live")
    page.keyboard.press("f")
    expect(page.locator("figure.live:fullscreen")).to_be_visible()
    page.keyboard.press("f")
    expect(page.locator(":fullscreen")).to_have_count(0)


def test_what_stands_still_is_not_live(playing_site: Site) -> None:
    page = playing_site.visit(f"/cameras/{CAMERA}").page
    expect(page.locator("#view")).to_have_class(re.compile("playing"))
    expect(page.locator("#said")).to_have_text("live")
    page.keyboard.press("k")
    expect(page.locator("#said")).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
    expect(page.locator("#to-live")).to_have_attribute("aria-pressed", "false")


def test_the_timeline_plays_the_moment_that_is_clicked(playing_site: Site) -> None:
    at = time.time() - 40
    page = playing_site.visit(f"/cameras/{CAMERA}?at={at}").page
    expect(page.locator("#view")).to_have_class(re.compile("playing"))
    scrub = page.locator("#scrub")
    wait_until(lambda: abs(float(scrub.input_value()) - at) < 8, "the moment of the address")
    plot = page.locator("#timeline .u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    # It shows five minutes before and after the moment.
    wanted = at - 30
    plot.click(position={"x": box["width"] * (270 / 600), "y": box["height"] / 2})
    wait_until(lambda: abs(float(scrub.input_value()) - wanted) < 6, "the moment of the click")
    plot.click(position={"x": box["width"] * 0.1, "y": box["height"] / 2})
    expect(page.locator("#readout")).to_contain_text("no video any more")


def test_several_cameras_play_on_the_wall(playing_site: Site, look: Look) -> None:
    page = playing_site.visit("/", **look).page
    for camera in (CAMERA, OTHER):
        tile = page.locator(f"#tile-{camera}")
        tile.scroll_into_view_if_needed()
        expect(tile.locator(".view")).to_have_class(re.compile("playing"))
        assert_plays(tile.locator("video"))
    expect(page.locator("#tile-harbour-gate .view")).not_to_have_class(re.compile("playing"))
    page.locator("#video").click()
    expect(page.locator(".view.playing")).to_have_count(0)
    page.reload()
    expect(page.locator("#video")).to_have_attribute("aria-pressed", "false")


def test_a_lost_camera_shows_pictures_again(site: Site, clock_file: Path) -> None:
    with arriving(clock_file, ring_of(site, CAMERA), past=10):
        page = site.visit(f"/cameras/{CAMERA}").page
        expect(page.locator("#view")).to_have_class(re.compile("playing"))
        expect(page.locator("#said")).to_have_text("live")
    expect(page.locator("#view")).not_to_have_class(re.compile("playing"))
    expect(page.locator("#said")).to_have_text("not live")
    expect(page.locator("#view [data-placeholder]")).to_have_text("no picture")
    expect(page.locator("#to-live")).to_have_attribute("aria-pressed", "false")


def test_footage_of_before_is_not_live(site: Site, clock_file: Path) -> None:
    recorded(clock_file, ring_of(site, CAMERA), at=time.time() - 90)
    page = site.visit(f"/cameras/{CAMERA}").page
    play = f"""(moment) => import("/static/player.js").then(async ({{ Player }}) => {{
        const player = new Player(document.querySelector(".view"), "{CAMERA}");
        return [await player.play(moment), player.stop()][0];
    }})"""
    assert page.evaluate(play, time.time() - 85)
    assert not page.evaluate(play, None)


def test_nothing_is_live_without_a_connection(playing_site: Site) -> None:
    page = playing_site.visit(f"/cameras/{CAMERA}", allowed=("ERR_FAILED",)).page
    expect(page.locator("#said")).to_have_text("live")
    page.route("**/api/stream", lambda route: route.abort())
    page.reload()
    expect(page.locator("body")).to_have_attribute("data-link", "away")
    expect(page.locator("#view")).to_have_class(re.compile("playing"))
    expect(page.locator("#said")).not_to_have_text("live")
    expect(page.locator("#to-live")).to_have_attribute("aria-pressed", "false")


def test_what_a_browser_does_not_play_stays_a_picture(site: Site, tmp_path: Path) -> None:
    video = clock_video(
        tmp_path / "video.mkv",
        codec="libx265",
        options={"g": "25", "x265-params": "log-level=none"},
    )
    with arriving(video, ring_of(site, CAMERA), past=10):
        visit = site.visit(f"/cameras/{CAMERA}")
        answer = visit.page.request.get(f"{site.address}/api/cameras/{CAMERA}/recent.mp4")
        assert answer.headers["content-type"].startswith('video/mp4; codecs="hvc1.1.6.L')
        expect(visit.page.locator("#recent")).to_be_visible()
        expect(visit.page.locator("#view")).not_to_have_class(re.compile("playing"))


def test_the_api_says_what_there_is(playing_site: Site) -> None:
    api = playing_site.visit("/").page.request
    recent = f"{playing_site.address}/api/cameras/{CAMERA}/recent"
    ((start, end),) = api.get(recent).json()["spans"]
    assert end - start > PAST - 10
    first = api.get(f"{recent}.mp4?start={start + 20}")
    assert float(first.headers["x-start"]) <= start + 20
    following = api.get(f"{recent}.mp4?after={first.headers['x-last']}")
    assert float(following.headers["x-start"]) == pytest.approx(
        float(first.headers["x-end"]) + 0.04, abs=0.13
    )
    assert api.get(f"{recent}.mp4?after=../../secret").status == 422
    assert api.get(f"{playing_site.address}/api/cameras/harbour-gate/recent.mp4").status == 204
    assert api.get(f"{playing_site.address}/api/cameras/none/recent").status == 404
