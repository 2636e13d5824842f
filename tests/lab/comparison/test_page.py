"""The page of a comparison in a real browser, and the Markdown beside it."""

import re

import numpy as np
import pytest

from habitus.lab.comparison.baselines import truths_of
from habitus.lab.comparison.findings import summarise
from habitus.lab.comparison.protocol import chosen, identity_of
from habitus.lab.comparison.results_page import in_terminal, time, write_comparison
from habitus.lab.comparison.runs import Store, run_chain, runs_of
from reference.labelled import QUICK, labelled_footage

METHODS = ["em", "vb-1", "vb-H", "gibbs-H", "ours", "neighbours"]
HOSTILE = "<script>alert(1)</script>.mp4"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    footage, folder = labelled_footage(), tmp_path_factory.mktemp("comparison")
    truths, runs = truths_of(footage, QUICK), runs_of(chosen(METHODS), 2)
    store = Store(folder, identity_of(footage, QUICK))
    for run in runs:
        store.put(run, run_chain(run.chain, run.number, footage, QUICK, truths))
    summary = summarise(store, footage, QUICK, runs)._replace(notes=["left out: a <thing>"])
    page = write_comparison(folder, summary, source=HOSTILE, command="habitus compare x")
    return page, summary


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_to_complain_about(written, opened, scheme):
    page, complaints = opened(written[0], color_scheme=scheme)
    assert complaints == []
    assert (
        page.locator("h1").inner_text() == f"{len(written[1].rows)} ways to find what is not usual"
    )
    assert page.locator(".drawing svg").count() == 4
    names = page.locator(".cells tbody th[scope=row]").all_inner_texts()
    assert [row.method.name for row in written[1].rows] == names[: len(written[1].rows)]


def test_the_page_fits_a_phone(written, opened):
    page, _ = opened(written[0], viewport={"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_one_file_that_needs_nothing_else_and_runs_nothing(written):
    text = written[0].read_text()
    assert re.findall(r"""(?:src|href)=["'](?!#)""", re.sub(r'xlink:href="#', "", text)) == []
    assert "url(http" not in text
    assert "<script" not in text
    assert not re.search(r"\bnan\b", text, flags=re.IGNORECASE)
    ids = re.findall(r'\bid="([^"]+)"', text)
    shared = {name for name in ids if ids.count(name) > 1}
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert not shared & used


def test_the_markdown_says_the_same_with_pictures_beside_it(written):
    page, summary = written
    text = page.with_suffix(".md").read_text()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures == ["areas.png", "sensitivity.png", "best-and-worst.png", "localisation.png"]
    for name in pictures:
        assert (page.parent / name).read_bytes().startswith(b"\x89PNG")
    for row in summary.rows:
        assert f"| {row.method.name} | {len(row.areas)} | {row.mean:.3f} |" in text
    assert "0.3166 | 0.3759" in text
    assert "0.9544 | 0.8891" in text
    assert "paper: QMUL" in text
    assert "## What this says" in text


def test_the_same_results_give_the_same_files(written, tmp_path):
    page, summary = written
    again = write_comparison(tmp_path, summary, source=HOSTILE, command="habitus compare x")
    for name in ("comparison.html", "comparison.md", "areas.png"):
        assert (again.parent / name).read_bytes() == (page.parent / name).read_bytes()


def test_the_terminal_has_a_line_a_method(written):
    _, summary = written
    lines = in_terminal(summary).splitlines()
    assert len(lines) == len(summary.rows) + 2
    assert max(map(len, lines)) <= 100
    assert time(np.float64(31.41)) == "31.4 s"
