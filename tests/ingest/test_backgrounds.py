"""What stands differs from its background and does not change, whatever the light."""

import numpy as np
import pytest

from habitus.corpus import Vocabulary
from habitus.corpus.documents import Condition
from habitus.ingest import backgrounds
from habitus.ingest.backgrounds import HIDDEN, STEADY, WARM_UP, Backgrounds
from habitus.ingest.chunks import Chunk, CorpusBuilder
from habitus.ingest.clips import Document, DocumentSettings
from reference.footage import texture

ROWS, COLUMNS = 24, 30
V = Vocabulary.of_frame(8 * COLUMNS, 8 * ROWS, scale=1)
ROAD = 60 + 0.5 * texture(COLUMNS, ROWS, 3, 0.7)
THING = (slice(10, 13), slice(5, 9))
CELLS = np.arange(V.n_cells).reshape(ROWS, COLUMNS)[THING].ravel().tolist()
WARM = int(WARM_UP)


def document(picture, number=0, n_frames=25):
    none = np.empty(0, dtype=np.int64)
    thumbnail = np.clip(picture, 0, 255).astype(np.uint8)
    return Document(number, float(number), none, none, n_frames, 3.0, thumbnail, None)


def noisy(picture, rng, light=lambda road: road):
    return light(picture) + rng.normal(0, 0.7, picture.shape)


def with_thing(shade=200.0, where=THING):
    picture = ROAD.copy()
    picture[where] = shade
    return picture


def seen(pictures, **options):
    backgrounds = Backgrounds(V, **options)
    return [backgrounds.take(document(picture)) for picture in pictures]


def footage(n, light=lambda road: road, seed=0):
    rng = np.random.default_rng(seed)
    return [noisy(ROAD, rng, light) for _ in range(n)]


def test_a_thing_stands_since_it_came_until_it_leaves():
    rng = np.random.default_rng(1)
    thing = [noisy(with_thing(), rng) for _ in range(40)]
    found = seen([*footage(WARM + 10), *thing, *footage(20, seed=2)])
    assert not any(each.known for each in found[:WARM])
    assert all(each.known for each in found[WARM:])
    came = WARM + 10
    for t in range(came + STEADY - 1, came + 40):
        assert found[t].cells.tolist() == CELLS
        assert found[t].ages.tolist() == [t - came + 1] * len(CELLS)
    others = [*found[: came + STEADY - 1], *found[came + 40 + STEADY - 1 :]]
    assert not any(len(each.cells) for each in others)


def test_what_passes_before_it_hides_it_for_a_while_and_leaves_its_age():
    rng = np.random.default_rng(1)
    thing = [noisy(with_thing(), rng) for _ in range(30)]
    for t in range(10, 10 + HIDDEN - 1):  # something else each second: it moves
        thing[t] = noisy(with_thing(20 + 25 * (t % 5)), rng)
    found = seen([*footage(WARM), *thing])
    assert found[-1].ages.tolist() == [30] * len(CELLS)


def test_what_moves_does_not_stand():
    rng = np.random.default_rng(1)
    moving = [
        noisy(with_thing(where=(slice(10, 13), slice(t % 26, t % 26 + 4))), rng) for t in range(60)
    ]
    crossing = seen([*footage(WARM), *moving[::2]])
    assert not any(len(each.cells) for each in crossing)


@pytest.mark.parametrize(
    "light",
    [lambda road: 1.4 * road, lambda road: 0.6 * road + 10, lambda road: road + 40],
    ids=["brighter", "darker", "fog"],
)
def test_light_makes_no_word(light):
    found = seen([*footage(WARM + 5), *footage(60, light), *footage(60)])
    assert not any(len(each.cells) for each in found)


def test_light_that_drifts_makes_no_word():
    rng = np.random.default_rng(0)
    drift = [
        noisy(ROAD, rng, lambda road, t=t: road * (1 + 0.25 * np.sin(t / 80))) for t in range(900)
    ]
    assert not any(len(each.cells) for each in seen(drift))


def test_a_thing_is_seen_in_another_light():
    rng = np.random.default_rng(1)
    thing = [noisy(with_thing(), rng, lambda road: 0.7 * road + 5) for _ in range(20)]
    assert seen([*footage(WARM), *thing])[-1].cells.tolist() == CELLS


def test_a_change_of_much_of_the_picture_begins_anew():
    other = ROAD.copy()
    other[:, : COLUMNS // 2] = 255 - other[:, : COLUMNS // 2]
    rng = np.random.default_rng(1)
    found = seen([*footage(WARM + 5), *(noisy(other, rng) for _ in range(WARM + 20))])
    assert found[WARM].known
    assert not any(each.known for each in found[WARM + 5 : 2 * WARM + 5])
    assert not any(len(each.cells) for each in found)
    assert found[-1].known


def test_a_thing_that_became_background_leaves_no_ghost():
    rng = np.random.default_rng(1)
    thing = [noisy(with_thing(100.0), rng) for _ in range(4000)]
    found = seen([*footage(WARM), *thing, *footage(30, seed=5)])
    assert len(found[WARM + 60].cells) > 3
    assert not len(found[WARM + 3999].cells)
    assert not any(len(each.cells) for each in found[WARM + 4010 :])


def test_a_camera_that_was_moved_and_a_new_sequence_begin_anew():
    backgrounds = Backgrounds(V)
    for picture in footage(WARM + 1):
        assert not len(backgrounds.take(document(picture)).cells)
    assert backgrounds.take(document(ROAD)).known
    assert not backgrounds.take(document(ROAD), Condition.MOVED).known
    assert not backgrounds.take(document(ROAD)).known


def test_a_gap_is_no_picture_and_time_goes_on():
    rng = np.random.default_rng(1)
    backgrounds = Backgrounds(V)
    for picture in [*footage(WARM), *(noisy(with_thing(), rng) for _ in range(10))]:
        backgrounds.take(document(picture))
    for _ in range(3):
        gap = backgrounds.take(document(ROAD, n_frames=0))
        assert gap.known
        assert not len(gap.cells)
    assert set(backgrounds.take(document(with_thing())).ages) == {14}


def test_masked_cells_make_no_word():
    rng = np.random.default_rng(1)
    watched = np.ones((ROWS, COLUMNS), dtype=bool)
    watched[11] = False
    thing = [noisy(with_thing(), rng) for _ in range(20)]
    found = seen([*footage(WARM), *thing], watched=watched)[-1]
    assert 0 < len(found.cells) < len(CELLS)
    assert watched.ravel()[found.cells].all()


@pytest.mark.parametrize("size", [7, 60, 1000])
def test_it_does_not_matter_where_chunks_begin(size):
    rng = np.random.default_rng(1)
    pictures = [*footage(WARM), *(noisy(with_thing(), rng) for _ in range(30))]
    documents = [document(picture, number) for number, picture in enumerate(pictures)]
    parts = (documents[i : i + size] for i in range(0, len(documents), size))
    builder = CorpusBuilder(DocumentSettings())
    builder.add_source(Chunk.of(part, V, 1.0) for part in parts)
    corpus = builder.finish().corpus
    for t, stands in enumerate(seen(pictures)):
        assert corpus.standing.cells(t).ages.tolist() == stands.ages.tolist()
        assert corpus.standing.cells(t).cells.tolist() == stands.cells.tolist()
        assert corpus.standing.known[t] == stands.known


@pytest.mark.parametrize("n", [1, 2, 5, 8, 1620])
def test_a_median_is_that_of_numpy_to_the_bit(n):
    values = np.random.default_rng(n).normal(size=n).round(1)
    assert backgrounds._median(values) == np.median(values)
