"""The report in a real browser, opened from disk and without network."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from habitus import Corpus, Detector, MarkovClusteringTopicModel
from habitus.reporting.normality_chart import quantiles_of
from habitus.reporting.page import render
from habitus.reporting.page.render import write_report
from habitus.scene.detection import detect_events
from habitus.scene.events import clock
from reference.two_lanes import WRONG

HOSTILE = "<script>alert(1)</script>\"'&lt;.mp4"


@pytest.fixture(scope="module")
def pages(tmp_path_factory, lanes, documents, habitual) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    quiet = detect_events(
        Detector(lanes.model, lanes.calibration, threshold=-1e9), lanes.corpus, source=HOSTILE
    )
    write_report(
        folder / "lanes.html",
        lanes.detection,
        source=lanes.source,
        video=folder / "an annotated#video.mp4",
        commands=["habitus report lanes.mp4"],
        settings={"measure": "tail"},
        truth=[(*WRONG, "wrong <way>")],
    )
    write_report(folder / "quiet.html", quiet, source=lanes.source)
    write_report(folder / "many.html", documents.detection)
    write_report(folder / "habits.html", habitual.detection, source=habitual.source)
    return {path.stem: path for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["lanes", "quiet", "many", "habits"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_errors_and_no_requests(pages, opened, name, scheme):
    page, complaints = opened(pages[name], color_scheme=scheme)
    page.hover(".curve", position={"x": 300, "y": 60})
    assert complaints == []
    sizes = page.eval_on_selector_all("img", "all => all.map(i => i.complete && i.naturalWidth)")
    assert sizes
    assert all(size > 100 for size in sizes)


@pytest.mark.parametrize(("name", "n_alarms"), [("lanes", 1), ("quiet", 0)])
def test_one_card_per_moment(pages, opened, name, n_alarms):
    page, _ = opened(pages[name])
    assert page.locator(".event").count() == 10
    assert page.locator(".pill").count() == 10
    assert page.locator(".event img").count() == 3 * 10
    assert page.locator(".event.alarm").count() == n_alarms
    assert page.locator(".pill.minor").count() == 10 - n_alarms
    assert page.locator(".verdict").all_inner_texts() == (
        ["Alarm"] * n_alarms + ["No alarm"] * (10 - n_alarms)
    )


def test_no_alarm_is_no_empty_page(pages, opened):
    page, _ = opened(pages["quiet"])
    assert page.locator("h1").inner_text() == "No alarm in 76 seconds"
    assert page.locator(".lead").inner_text().startswith("These were the most unusual moments")
    told = page.locator(".rarity").all_inner_texts()
    assert len(told) == 10
    assert all("normal footage" in text or "learnt from" in text for text in told)


@pytest.mark.parametrize(("clip", "unit"), [(1.0, "second"), (2.0, "moment")])
def test_documents_are_seconds_only_if_they_last_one(tmp_path, documents, clip, unit):
    corpus = replace(documents.detection.corpus, settings={"clip": clip})
    write_report(tmp_path / "page.html", replace(documents.detection, corpus=corpus))
    page = (tmp_path / "page.html").read_text()
    assert f"How usual each {unit} was" in page
    assert f"{unit.capitalize()}s in which too little moves are left out" in page


def test_nothing_to_judge(tmp_path, lanes, opened):
    still = Corpus(np.zeros((5, lanes.corpus.n_words)), vocabulary=lanes.corpus.vocabulary)
    found = detect_events(Detector(lanes.model, lanes.calibration), still, source="still.mp4")
    write_report(tmp_path / "still.html", found)
    page, complaints = opened(tmp_path / "still.html")
    assert complaints == []
    assert page.locator(".lead").inner_text() == "Nothing moved enough to be judged."
    assert page.locator(".none").count() == 1
    assert page.locator(".event").count() == 0


def test_many_events_are_listed_in_order(pages, opened, documents):
    page, _ = opened(pages["many"])
    events = documents.detection.moments
    assert len(events) > 10
    told = page.locator(".why").all_inner_texts()
    assert [text.lower() for text in told] == [f"{e.explanation}.".lower() for e in events]
    boxes = [pill.bounding_box() for pill in page.locator(".pill").all()]
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart_x = abs(one["x"] - other["x"]) >= (one["width"] + other["width"]) / 2 - 0.5
            apart_y = abs(one["y"] - other["y"]) >= one["height"] - 0.5
            assert apart_x or apart_y


def luminance(rgb):
    shares = np.array(rgb[:3]) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


COLOURS = """all => all.map(element => {
  let ground = element;
  const clear = e => getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)';
  while (ground && clear(ground)) ground = ground.parentElement;
  return [getComputedStyle(element).color, getComputedStyle(ground).backgroundColor];
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_text(pages, opened, scheme):
    page, _ = opened(pages["lanes"], color_scheme=scheme)
    grounds = set()
    text = (
        "p, h1, h2, h3, figcaption, td, th, dt, dd, a, pre, .normal, .axis, .ticks span, .band span"
    )
    for pair in page.eval_on_selector_all(text, COLOURS):
        ink, ground = (
            luminance([float(n) for n in re.findall(r"[\d.]+", colour)]) for colour in pair
        )
        grounds.add(pair[1])
        ratio = (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05)
        assert ratio >= 4.5, pair
    assert len(grounds) > 2


def test_light_and_dark_differ(pages, opened):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (
        opened(pages["lanes"], color_scheme=scheme).page.evaluate(ground)
        for scheme in ("light", "dark")
    )
    assert light != dark


@pytest.mark.parametrize("name", ["lanes", "quiet", "many", "habits"])
def test_fits_a_phone(pages, opened, name):
    page, _ = opened(pages[name], viewport={"width": 375, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    sizes = page.eval_on_selector_all(
        "p, td, dd, figcaption, a", "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12


@pytest.mark.parametrize("name", ["lanes", "quiet", "habits"])
def test_a_phone_shows_the_most_unusual_moment_on_the_timeline(pages, opened, name):
    page, _ = opened(pages[name], viewport={"width": 375, "height": 700})
    left, right = page.evaluate(
        "[document.querySelector('.pill'), document.querySelector('.scroll')]"
        ".map(e => e.getBoundingClientRect()).flatMap(({left, right}, k) => k ? right : left)"
    )
    assert 0 < left < right - 20


ON_SCREEN = """
id => scrollY > 900 && ((top) => top >= -1 && top < 900)(
    document.getElementById(id).getBoundingClientRect().top)
"""


@pytest.mark.parametrize("scripts", [True, False])
def test_a_mark_links_to_its_event(pages, opened, documents, scripts):
    page, _ = opened(pages["many"], java_script_enabled=scripts)
    last = len(documents.detection.moments)
    page.locator(".pill").nth(last - 1).click()
    if scripts:
        page.wait_for_function(ON_SCREEN, arg=f"event-{last}")  # scrolling is smooth
    assert page.url.endswith(f"#event-{last}")


def test_clicking_the_curve_opens_the_event_and_hovering_shows_values(pages, opened, lanes):
    page, complaints = opened(pages["lanes"])
    curve = page.locator(".curve").bounding_box()
    t = int(WRONG[0]) + 1
    x = curve["width"] * (t + 0.5) / len(lanes.corpus)
    page.hover(".curve", position={"x": x, "y": 90})
    told = page.locator(".tip").inner_text()
    assert told.startswith(clock(t))
    assert f"normality {lanes.detection.normality[t]:.3g}" in told
    assert told.endswith("moment 1")
    page.click(".curve", position={"x": x, "y": 90})
    assert page.url.endswith("#event-1")
    assert complaints == []


def test_keyboard_reaches_events(pages, opened):
    page, _ = opened(pages["lanes"])
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "pill":
            page.keyboard.press("Enter")
            break
    assert page.url.endswith("#event-1")


def test_names_are_escaped(pages, opened):
    page, complaints = opened(pages["quiet"])
    assert page.locator(".source").inner_text() == HOSTILE
    assert HOSTILE in page.title()
    assert complaints == []
    page, _ = opened(pages["lanes"])
    assert page.locator(".truth [title]").get_attribute("title") == "wrong <way>"


def test_links_into_the_annotated_video(pages, opened, lanes):
    page, _ = opened(pages["lanes"])
    start = lanes.detection.events[0].start
    link = page.locator(".watch").first.get_attribute("href")
    assert link == f"an%20annotated%23video.mp4#t={start - 2:.1f}"


def test_details(pages, opened):
    from habitus import __version__

    page, _ = opened(pages["lanes"])
    assert page.locator("pre").inner_text().strip() == "habitus report lanes.mp4"
    page.locator("#details summary").click()
    text = page.locator("#details").inner_text()
    for fact in (f"habitus\t{__version__}", "numpy", "OpenCV", "measure\ttail", "random seed\t0"):
        assert fact in text


@pytest.mark.parametrize("name", ["lanes", "habits"])
def test_terms_of_the_model_are_for_experts(pages, opened, name):
    page, _ = opened(pages[name])
    seen = page.locator("body").inner_text().lower()
    assert [word for word in ("nats", "topic", "threshold", "document") if word in seen] == []
    for folded in page.locator("details").all():
        folded.evaluate("folded => { folded.open = true; }")
    assert "nats" in page.locator("body").inner_text()


def test_surprise_bars(pages, opened, lanes):
    page, _ = opened(pages["lanes"])
    assert not page.locator(".bars").first.is_visible()
    page.locator(".event summary").first.click()
    misfit, shift, *_ = page.locator(".bars .number").all_inner_texts()
    event = lanes.detection.events[0]
    n_words = lanes.corpus.n_tokens[int(event.peak)]
    assert misfit == f"{event.misfit / n_words:.2f} nats per word"
    assert shift == f"{event.shift:.2f} nats"


def test_bars_show_the_score_that_raises_an_alarm(pages, opened, habitual):
    page, _ = opened(pages["habits"])
    fusion, found = habitual.detection.habits.fusion, habitual.detection
    assert page.locator(".bars .number").count() == 10 * len(found.moments)
    threshold = fusion.score_of_normality(found.threshold)
    for k, event in enumerate(found.moments):
        card = page.locator(".event").nth(k)
        card.locator("summary").click()
        score = fusion.score_of_normality(event.normality)
        shown = card.locator(".score .number").inner_text()
        assert float(shown.removesuffix(" nats")) == pytest.approx(score, abs=0.06)
        name = card.locator(".strongest dt").inner_text()
        cue, gathering = event.cue.split(", ")
        assert name == f"{cue.capitalize()}, {render.GATHERING_WORDS[gathering]}"
        widths = [
            float(re.search(r"width: ([\d.]+)%", style)[1])
            for style in card.locator(".fill").evaluate_all(
                "all => all.map(e => e.getAttribute('style'))"
            )
        ]
        mark = card.locator(".mark").first.get_attribute("style")
        left = float(re.search(r"left: ([\d.]+)%", mark)[1])
        assert (max(widths) > left) == (score > threshold) == event.alarm


def test_held_out_rarities_lie_on_the_line_if_they_are_right(pages, opened):
    n = 1000
    right = quantiles_of(np.log((np.random.default_rng(0).permutation(n) + 0.5) / n))
    assert float(right.end) == pytest.approx(np.log(2 * n), abs=0.05)
    for x, y in right.points:
        assert x == pytest.approx(100 - y, abs=0.02)
    twice = quantiles_of(2 * np.log((np.arange(n) + 0.5) / n))
    for x, y in twice.points:
        assert 2 * x == pytest.approx(100 - y, abs=0.05)
    page, _ = opened(pages["habits"])
    assert page.locator(".quantiles circle").count() > 20
    assert opened(pages["lanes"]).page.locator(".quantiles").count() == 0


def test_a_model_without_a_vocabulary(tmp_path, opened):
    counts = np.random.default_rng(0).poisson(3, (60, 12))
    model = MarkovClusteringTopicModel(2, 2, random_state=0).fit(Corpus(counts))
    detector = Detector(model, measure="mean", threshold=0.0)
    found = detect_events(detector, Corpus(counts), source="counts.corpus", share=0.05)
    write_report(tmp_path / "counts.html", found)
    page, complaints = opened(tmp_path / "counts.html")
    assert complaints == []
    assert page.locator(".event.alarm").count() == len(found.events) > 0
    assert page.locator("img").count() == 0


def test_the_page_stays_small(pages, documents, lanes, monkeypatch, tmp_path):
    assert pages["lanes"].stat().st_size < 2_000_000
    each = pages["many"].stat().st_size / len(documents.detection.moments)
    assert 30 * each < 6e6
    monkeypatch.setattr(render, "MOST_PICTURES", 2)
    write_report(tmp_path / "few.html", documents.detection)
    text = (tmp_path / "few.html").read_text()
    assert text.count("<img") == 3 * 2 + 4
    assert text.count("<article") == len(documents.detection.moments)


def test_the_page_is_reproducible_and_complete(pages, tmp_path, documents):
    write_report(tmp_path / "many.html", documents.detection)
    assert (tmp_path / "many.html").read_bytes() == pages["many"].read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["many.html"]
