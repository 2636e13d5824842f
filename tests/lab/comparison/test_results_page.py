"""The page of a comparison in a real browser, and its Markdown file."""

import re

import numpy as np
import pytest

from habitus.lab.comparison.findings import summarise
from habitus.lab.comparison.protocol import identity_of, select_runs
from habitus.lab.comparison.results_page import comparison_table, time, write_comparison
from habitus.lab.comparison.run_store import ComparisonStore
from habitus.lab.comparison.runs import carry_out, repetitions_of
from habitus.lab.comparison.scoring import labelled_words
from reference.labelled import QUICK, labelled_footage

METHODS = ["em", "vb-1", "vb-H", "gibbs-H", "ours", "neighbours"]
HOSTILE = "<script>alert(1)</script>.mp4"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    footage, folder = labelled_footage(), tmp_path_factory.mktemp("comparison")
    labelled, runs = labelled_words(footage, QUICK), repetitions_of(select_runs(METHODS).runs, 2)
    store = ComparisonStore(folder, identity_of(footage, QUICK))
    for run in runs:
        store.put(run, carry_out(run, footage, QUICK, labelled))
    comparison = summarise(store, footage, QUICK, runs)._replace(notes=["left out: a <thing>"])
    page = write_comparison(folder, comparison, source=HOSTILE, command="habitus compare x")
    return page, comparison


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_without_errors_and_shows_every_method(written, opened, scheme):
    page, complaints = opened(written[0], color_scheme=scheme)
    assert complaints == []
    assert page.locator("h1").inner_text() == f"{len(written[1].rows)} methods of anomaly detection"
    assert page.locator(".drawing svg").count() == 4
    names = page.locator(".cells tbody th[scope=row]").all_inner_texts()
    assert [row.method.name for row in written[1].rows] == names[: len(written[1].rows)]


def test_the_page_fits_a_phone(written, opened):
    page, _ = opened(written[0], viewport={"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_page_is_one_file_without_scripts_or_references(written):
    text = written[0].read_text()
    assert re.findall(r"""(?:src|href)=["'](?!#)""", re.sub(r'xlink:href="#', "", text)) == []
    assert "url(http" not in text
    assert "<script" not in text
    assert not re.search(r"\bnan\b", text, flags=re.IGNORECASE)
    ids = re.findall(r'\bid="([^"]+)"', text)
    shared = {name for name in ids if ids.count(name) > 1}
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert not shared & used


def test_the_markdown_file_has_the_same_figures_and_pictures(written):
    page, comparison = written
    text = page.with_suffix(".md").read_text()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures == ["areas.png", "sensitivity.png", "best-and-worst.png", "localisation.png"]
    for name in pictures:
        assert (page.parent / name).read_bytes().startswith(b"\x89PNG")
    for row in comparison.rows:
        assert f"| {row.method.name} | {len(row.average_precisions)} | {row.mean:.3f} |" in text
    assert "0.3166 | 0.3759" in text
    assert "0.9544 | 0.8891" in text
    assert "paper: QMUL" in text
    assert "## Findings" in text


def test_the_same_results_give_the_same_files(written, tmp_path):
    page, comparison = written
    again = write_comparison(tmp_path, comparison, source=HOSTILE, command="habitus compare x")
    for name in ("comparison.html", "comparison.md", "areas.png"):
        assert (again.parent / name).read_bytes() == (page.parent / name).read_bytes()


def test_the_terminal_table_has_one_line_per_method(written):
    _, comparison = written
    lines = comparison_table(comparison).splitlines()
    assert len(lines) == len(comparison.rows) + 2
    assert max(map(len, lines)) <= 100
    assert time(np.float64(31.41)) == "31.4 s"
