import numpy as np

from habitus.report.film.strip import fitted, lettering, write


def test_letters_cover_and_share_a_base_line():
    one, other = lettering("ace", 20), lettering("Älgj", 20)
    assert one.shape[0] == other.shape[0]
    assert one.max() > 0.9
    foot = [np.flatnonzero(line.max(axis=1) > 0.5).max() for line in (one, other)]
    assert foot[1] > foot[0]  # g and j reach below the line that a, c and e stand on


def test_what_does_not_fit_is_cut_off():
    picture = np.zeros((20, 30, 3), np.uint8)
    write(picture, "a text that is far too long", (10, 8), 16)
    assert picture[:8].max() == 0
    assert picture[:, :10].max() == 0
    assert picture.max() > 200
    write(picture, "outside", (40, 30), 16)


def test_dots_stand_for_what_has_no_room():
    text = "leftward motion where the scene is usually still"
    assert fitted(text, 16, 10_000) == text
    short = fitted(text, 16, 200)
    assert short.endswith("…")
    assert lettering(short, 16).shape[1] <= 200
