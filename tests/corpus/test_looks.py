"""Looks of a scene: light does not make another view, and a scene is known by few of them."""

import cmath
from itertools import product

import numpy as np
import pytest

from habitus.corpus import Corpus, ShardedCorpus, Vocabulary
from habitus.corpus.looks import (
    GRID,
    LEAST_LIKENESS,
    MOST_LOOKS,
    NOISE,
    NUDGED,
    REACH,
    SAME_LOOK,
    _averages,
    best_likeness,
    compared,
    edges_of,
    joined_looks,
    likeness,
    look_of,
    looks_of,
    median_picture,
)
from habitus.errors import FileError, InvalidInputError
from habitus.files import FileFormat
from habitus.model import TopicModel
from reference.footage import texture

ROWS, COLUMNS = GRID
SCENE = texture(COLUMNS, ROWS, 0, 2.0)
BLACK = np.zeros(GRID, dtype=np.uint8)


def night(seed, scene=SCENE, *, seen=0.35):
    """The same view by another light: a part of it is seen, with its contrast reversed."""
    rng = np.random.default_rng(seed)
    lit = texture(COLUMNS, ROWS, 1000 + seed, 12.0).astype(float)
    noise = rng.normal(0, 2, GRID)
    shown = np.where(lit > np.quantile(lit, 1 - seen), 220 - 0.7 * scene, 40)
    return np.clip(shown + noise, 0, 255).astype(np.uint8)


def slow_edges(picture):
    """`edges_of` by its definition, pixel by pixel."""
    picture = picture.astype(float)
    rows, columns = picture.shape

    def slope(values, i):
        low, high = max(i - 1, 0), min(i + 1, len(values) - 1)
        return (values[high] - values[low]) / (high - low)

    gradient = np.array(
        [
            [slope(picture[r], c) + 1j * slope(picture[:, c], r) for c in range(columns)]
            for r in range(rows)
        ]
    )

    def weights(n, i):
        found = np.exp(-0.5 * ((np.arange(n) - i) / 6.0) ** 2)
        return found / found.sum()

    def fading(n, i):
        depth = min((min(i, n - 1 - i) + 0.5) / (0.1 * n), 1)
        return 0.5 - 0.5 * np.cos(np.pi * depth)

    found = np.zeros((rows, columns), dtype=complex)
    for r, c in product(range(rows), range(columns)):
        around = weights(rows, r) @ np.abs(gradient) ** 2 @ weights(columns, c)
        own = gradient[r, c]
        found[r, c] = own**2 / (abs(own) ** 2 + around + NOISE**2)
        found[r, c] *= fading(rows, r) * fading(columns, c)
    return found - found.mean()


def slow_transform(values, sign):
    rows, columns = values.shape
    return np.array(
        [
            [
                sum(
                    values[r, c]
                    * cmath.exp(sign * 2j * cmath.pi * (r * u / rows + c * v / columns))
                    for r, c in product(range(rows), range(columns))
                )
                for v in range(columns)
            ]
            for u in range(rows)
        ]
    )


@pytest.mark.parametrize("reach", [0, 1])
def test_likeness_by_its_definition(reach):
    one, other = (texture(10, 8, seed, 1.0) for seed in (1, 1))
    other = np.roll(other, 1, axis=1)
    spectra = [slow_transform(slow_edges(each), -1) for each in (one, other)]
    cross = spectra[0] * spectra[1].conj()
    found = slow_transform(cross / np.sqrt(np.abs(cross) + 1e-9), 1).real / one.size
    shift = np.array([[max(min(r, 8 - r), min(c, 10 - c)) for c in range(10)] for r in range(8)])
    best, other_best = found[shift <= reach].max(), found[shift > reach].max()
    far = found[shift > 2 * reach + 2]
    if reach == 0:
        assert other_best > best  # it fits better one pixel further
    expected = (best - (other_best if other_best > best else far.max())) / far.std()
    assert compared(edges_of(one), edges_of(other), reach) == pytest.approx(expected, rel=1e-6)


def test_a_look_is_the_mean_of_equal_parts():
    picture = np.random.default_rng(0).integers(0, 256, (2 * ROWS, 3 * COLUMNS), dtype=np.uint8)
    means = picture.reshape(ROWS, 2, COLUMNS, 3).mean(axis=(1, 3))
    assert abs(look_of(picture) - means).max() <= 0.5 + 1e-9
    halves = look_of(np.repeat(np.repeat(SCENE[::2, ::2], 2, 0), 2, 1)[: ROWS - 1])
    assert halves.shape == GRID
    colours = np.stack([picture] * 3, axis=-1)
    assert np.array_equal(look_of(colours), look_of(picture))


@pytest.mark.parametrize("size", [(288, 360), (135, 240), (97, 131)])  # groups of 96, 3 and 1 rows
def test_a_look_is_the_same_whether_rows_are_averaged_in_groups_or_all_at_once(size):
    picture = np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8)
    down, across = (_averages(*sizes) for sizes in zip(GRID, size, strict=True))
    assert np.array_equal(look_of(picture), np.ceil(down @ picture @ across.T - 0.5 - 1e-6))


@pytest.mark.parametrize("seed", range(6))
def test_one_view_in_another_light(seed):
    assert likeness(SCENE, night(seed)) > LEAST_LIKENESS
    assert likeness(night(seed), SCENE) > LEAST_LIKENESS
    assert likeness(SCENE, np.roll(night(seed), (REACH, -REACH), (0, 1))) > LEAST_LIKENESS
    nudged = np.roll(SCENE, (NUDGED, -NUDGED), (0, 1))
    assert likeness(SCENE, nudged) == compared(edges_of(SCENE), edges_of(nudged), NUDGED) / 2
    assert likeness(SCENE, nudged) > LEAST_LIKENESS


def test_other_views():
    for seed in range(1, 15):
        other = texture(COLUMNS, ROWS, seed, 2.0)
        assert likeness(SCENE, other) < LEAST_LIKENESS - 2
        assert likeness(SCENE, night(seed, other)) < LEAST_LIKENESS - 2
    for turned in ((0, NUDGED + 1), (NUDGED + 1, 0), (20, 30)):
        assert likeness(SCENE, np.roll(SCENE, turned, (0, 1))) < 0


@pytest.mark.parametrize("plain", [0, 16, 200, 255])
def test_a_plain_picture_cannot_be_compared(plain):
    blank = np.full((30, 40), plain, dtype=np.uint8)
    assert np.isnan(likeness(SCENE, blank))
    assert np.isnan(likeness(blank, blank))
    edges = [edges_of(look_of(each)) for each in (blank, SCENE)]
    assert np.isnan(best_likeness(edges[:1], edges))
    assert best_likeness(edges, edges[1:]) == likeness(SCENE, SCENE)
    assert np.isnan(best_likeness([], edges))


def noisy(look, seed, sigma=3.0):
    rng = np.random.default_rng(seed)
    return np.clip(look + rng.normal(0, sigma, look.shape), 0, 255).astype(np.uint8)


def test_looks_that_are_nearly_alike_are_one_and_the_later_stays():
    again = noisy(SCENE, 1)
    assert likeness(SCENE, again) > SAME_LOOK
    found = joined_looks([SCENE, night(0), again])
    assert np.array_equal(found, [night(0), again])
    assert np.array_equal(joined_looks([BLACK, SCENE, BLACK + 3]), [SCENE, BLACK + 3])
    assert joined_looks([]).shape == (0, *GRID)


def test_looks_are_bounded_and_the_one_unseen_for_the_longest_goes():
    nights = [night(seed) for seed in range(MOST_LOOKS)]
    assert len(joined_looks(nights)) == MOST_LOOKS
    again = noisy(nights[0], 1)
    found = joined_looks([*nights, again, SCENE])
    assert np.array_equal(found, [*nights[2:], again, SCENE])


def test_looks_joined_one_after_the_other_are_those_of_all_at_once():
    looks = [night(seed % 3) if seed % 2 else noisy(SCENE, seed) for seed in range(7)]
    looks += [night(seed) for seed in range(20, 20 + MOST_LOOKS)]
    whole = joined_looks(looks)
    for n in (1, 6, 12):
        assert np.array_equal(joined_looks([*joined_looks(looks[:n]), *looks[n:]]), whole)


def test_looks_of_stills():
    day, dark = [noisy(SCENE, n) for n in range(9)], [noisy(night(0), n) for n in range(4)]
    other = texture(COLUMNS, ROWS, 5, 2.0)
    found = looks_of([*day, *dark, night(3), other, noisy(other, 1), BLACK, BLACK])
    medians = [np.median(each, axis=0).astype(np.uint8) for each in (day, dark)]
    assert np.array_equal(found, medians)  # seen once, of another scene, and plain: no looks
    assert np.array_equal(looks_of([SCENE]), [SCENE])
    assert np.array_equal(looks_of([BLACK]), [BLACK])
    assert len(looks_of([])) == 0


V = Vocabulary.of_frame(COLUMNS, ROWS)


def footage(*looks, picture=SCENE):
    rng = np.random.default_rng(0)
    colour = np.stack([picture] * 3, axis=-1)
    return Corpus(
        rng.integers(0, 3, (40, V.n_words)),
        vocabulary=V,
        picture=colour,
        looks=np.array(looks) if looks else None,
    )


def test_looks_are_kept_in_files(tmp_path):
    alone, several = footage(), footage(SCENE, night(0))
    assert np.array_equal(alone.looks, [SCENE])
    assert "pictures" not in alone.contents().tensors  # as 0.4 wrote it
    for corpus in (alone, several):
        corpus.save(tmp_path / "a.corpus")
        assert np.array_equal(Corpus.load(tmp_path / "a.corpus").looks, corpus.looks)
        assert np.array_equal(corpus.take([1, 2]).looks, corpus.looks)
        model = TopicModel(2, 2, n_restarts=1, n_iterations=2, random_state=0).fit(corpus)
        model.save(tmp_path / "a.model")
        assert np.array_equal(TopicModel.load(tmp_path / "a.model").looks_, corpus.looks)
    assert Corpus([[1]]).looks.shape == (0, *GRID)


def test_a_model_takes_further_looks():
    model = TopicModel(2, 2, n_restarts=1, n_iterations=2, random_state=0).fit(footage())
    found = model.with_looks(np.array([night(0), noisy(SCENE, 1)]))
    assert np.array_equal(found.looks_, [night(0), noisy(SCENE, 1)])
    assert np.array_equal(model.looks_, [SCENE])
    assert found.parameters_ is model.parameters_


def test_joined_corpora_and_shards_have_the_looks_of_all(tmp_path):
    hours = [footage(), footage(picture=night(0)), footage(noisy(SCENE, 1), night(1))]
    expected = joined_looks([SCENE, night(0), noisy(SCENE, 1), night(1)])
    assert len(expected) == 3
    paths = [tmp_path / f"{n}.corpus" for n in range(3)]
    for path, hour in zip(paths, hours, strict=True):
        hour.save(path)
    shards = ShardedCorpus.open(paths)
    for corpus in (Corpus.joined(hours), ShardedCorpus.of(hours), shards, shards.joined()):
        assert np.array_equal(corpus.looks, expected)
    assert np.array_equal(shards.take([0, 50]).looks, expected)


@pytest.mark.parametrize("looks", [np.zeros((MOST_LOOKS + 1, *GRID)), np.zeros((1, 2, 2))])
def test_looks_of_another_size_are_refused(tmp_path, looks):
    looks = looks.astype(np.uint8)
    with pytest.raises(InvalidInputError, match="looks must be at most 8 x 96 x 128 of uint8"):
        footage(*looks)
    header, tensors = footage().contents()
    path = tmp_path / "forged.corpus"
    FileFormat("corpus", 3).write(path, header, tensors | {"pictures": looks})
    with pytest.raises(FileError, match="pictures"):
        Corpus.load(path)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_a_median_picture_is_that_of_numpy(n, dtype):
    pictures = np.random.default_rng(n).integers(0, 256, (n, 6, 7, 3)).astype(dtype)
    found = median_picture(pictures)
    assert found.dtype == np.float64
    assert np.array_equal(found, np.median(pictures, axis=0))
