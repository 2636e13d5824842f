"""The figure of the curves of an assessment."""

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure

from habitus.errors import InvalidInputError
from habitus.evaluation.assessment import evaluate_model
from habitus.reporting.figures.curves import _draw_precision_recall, draw_curves
from reference.planted import detector_of, planted


@pytest.fixture(scope="module")
def found():
    corpus, model, labels = planted()
    return evaluate_model(detector_of(model), corpus, labels, share=0.05)


def test_a_figure_with_and_without_localisation(tmp_path, found):
    draw_curves(tmp_path / "all.png", found, title="planted")
    draw_curves(tmp_path / "less.png", found._replace(localisation=None), title="planted")
    whole, less = (cv2.imread(str(tmp_path / f"{name}.png")) for name in ("all", "less"))
    assert whole.shape == less.shape
    assert min(whole.shape[:2]) > 1000
    corner = np.s_[whole.shape[0] * 6 // 10 :, whole.shape[1] * 6 // 10 :]
    assert (whole[corner] < 128).any()
    assert (less[corner] == 255).all()


def test_the_svg_is_reproducible(tmp_path, found):
    for name in ("a.svg", "b.svg"):
        draw_curves(tmp_path / name, found, title="planted")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_area_under_the_curve_is_average_precision(found):
    ax = Figure().subplots()
    _draw_precision_recall(ax, found)
    line = max(ax.get_lines(), key=lambda line: len(line.get_xdata()))
    assert line.get_drawstyle() == "steps-pre"
    recall, precision = line.get_xdata(), line.get_ydata()
    area = (np.diff(recall) * precision[1:]).sum()
    assert area == pytest.approx(found.documents["average_precision"].value, rel=1e-9)


def test_other_formats_are_refused(tmp_path, found):
    with pytest.raises(InvalidInputError, match=r"ends in \.png, .*\.pdf, found \.gif"):
        draw_curves(tmp_path / "curves.gif", found, title="planted")
    assert not list(tmp_path.iterdir())
