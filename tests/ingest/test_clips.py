"""Documents of clips: which frames they hold, and what never becomes a word."""

from fractions import Fraction

import cv2
import numpy as np
import pytest

from habitus.corpus import Bag, Direction, Vocabulary, summed_bag
from habitus.errors import InvalidInputError, VideoError
from habitus.ingest.clips import (
    LONGEST_GAP,
    ROUNDING,
    ComparisonSchedule,
    DocumentSettings,
    cell_brightness,
    clip_number,
    compare_frames,
    documents,
    reader_from,
    vocabulary_of,
)
from habitus.ingest.extraction import extract_corpus
from habitus.video import Reader, Source, reader, region_of, watched_cells
from reference.footage import FPS, HEIGHT, WIDTH, Drawn, encode, evenly, moving_square, texture

GRID = Vocabulary.of_frame(WIDTH, HEIGHT, words="fine")
COARSE = DocumentSettings(words="coarse")
SIDE = GRID.cell_side
PLAIN = Vocabulary.of_frame(WIDTH, HEIGHT, scale=1, words="fine")
"""Cells of 8 pixels of the camera."""
X264 = {"preset": "ultrafast", "crf": "12", "g": "20"}


def same(one, other):
    """Whether two documents are alike to the bit."""
    return all(
        (a is None and b is None) or np.array_equal(a, b) for a, b in zip(one, other, strict=True)
    )


def assert_same(found, expected):
    assert [d.number for d in found] == [d.number for d in expected]
    for one, other in zip(found, expected, strict=True):
        assert same(one, other), one.number


@pytest.mark.parametrize("clip", [Fraction(1), Fraction(2, 5), Fraction(1, 10)])
def test_clip_numbers_do_not_drift(clip):
    """Ten hours at 29.97 frames per second, with times rounded to milliseconds."""
    rate, slack = Fraction(30000, 1001), Fraction(ROUNDING)
    for n in range(0, 36000 * 30, 997):
        exact = n / rate
        expected = (exact + slack) // clip
        assert clip_number(float(exact), float(clip)) == expected
        rounded = round(float(exact), 3)
        nearest = round(exact / clip) * clip
        if abs(exact - nearest) > Fraction(1, 1000):
            assert clip_number(rounded, float(clip)) == exact // clip


@pytest.mark.parametrize("clip", [1.0, 0.4, 0.2, 0.1])
def test_a_frame_at_the_start_of_a_clip_belongs_to_it(clip):
    for n in range(0, 100_000, 7):
        assert clip_number(n * clip, clip) == n
        assert clip_number(n * clip - 1 / 90_000, clip) == n  # rounded down by its container


def test_documents_count_their_frames(tmp_path):
    path = encode(tmp_path / "a.mp4", moving_square(90), options=X264)
    found = list(documents(Source(str(path))))
    assert [d.number for d in found] == [0, 1, 2, 3]
    assert [d.time for d in found] == [0.0, 1.0, 2.0, 3.0]
    assert [d.n_frames for d in found] == [25, 25, 25, 15]
    assert all(len(d.words) > 0 for d in found)


@pytest.mark.parametrize(("n", "expected"), [(86, 3), (89, 4), (100, 4), (101, 4)])
def test_a_last_document_under_half_a_clip_is_left_out(n, expected):
    pictures = moving_square(n)
    assert len(list(documents(Drawn(pictures, evenly(n))))) == expected


@pytest.mark.parametrize(("n", "expected"), [(14, 1), (15, 2)])
def test_a_last_document_of_exactly_half_a_clip_is_kept(n, expected):
    found = documents(Drawn(moving_square(n), evenly(n)), DocumentSettings(clip=0.4))
    assert len(list(found)) == expected


def test_a_whole_last_clip_of_two_frames_is_kept():
    for n in (4, 50, 100):
        found = list(documents(Drawn(moving_square(n), evenly(n)), DocumentSettings(clip=0.08)))
        assert [d.n_frames for d in found] == [2] * (n // 2)


def test_documents_of_a_variable_frame_rate(tmp_path):
    steps = np.random.default_rng(0).choice([0.02, 0.04, 0.08, 0.2], 79)
    times = np.concatenate([[0.0], np.cumsum(steps)])
    path = encode(tmp_path / "a.mkv", moving_square(80), times=times, options=X264)
    found = list(documents(Source(str(path))))
    expected = np.bincount((np.round(times, 3) + ROUNDING).astype(int))
    assert [d.n_frames for d in found] == expected[: len(found)].tolist()
    assert len(found) >= len(expected) - 1
    assert all(len(d.words) > 0 for d in found)


def test_words_are_those_of_the_square():
    pictures = moving_square(50, velocity=(1, 0), start=(8, 40))
    found = list(documents(Drawn(pictures, evenly(50)), COARSE))
    for document in found:
        places = GRID.coarse.places(document.words)
        x = 8 + 25 * document.number
        tokens = document.counts.sum()
        assert tokens > 100
        right = document.counts[places.directions == Direction.RIGHT].sum()
        assert right > 0.98 * tokens
        assert places.rows.min() >= 40 // SIDE
        assert places.rows.max() <= (40 + 48) // SIDE
        assert places.columns.min() >= (x - 2) // SIDE
        assert places.columns.max() <= (x + 25 + 48) // SIDE
        assert (np.diff(document.words) > 0).all()


@pytest.mark.parametrize("motion", ["cells", "flow"])
@pytest.mark.parametrize(("pixels", "fps", "fast"), [(1, 12.5, 0), (2, 25.0, 1), (4, 12.5, 1)])
def test_words_tell_slow_from_fast(motion, pixels, fps, fast):
    """25 pixels of the doubled frame per second, and 100."""
    pictures = moving_square(50, velocity=(pixels, 0), start=(8, 40))
    drawn = Drawn(pictures, evenly(50, fps), fps)
    for document in documents(drawn, DocumentSettings(motion=motion, words="coarse")):
        places, n = GRID.coarse.places(document.words), document.counts
        # Cells at the square's edge move less in the mean.
        assert n[places.speeds == fast].sum() > 0.75 * n.sum()


def test_plain_flow_sees_what_the_gate_leaves_out():
    """A square that hardly differs from its ground."""
    pictures = moving_square(50, velocity=(2, 0), start=(8, 40))
    faint = [(128 + (picture.astype(int) - 128) // 80).astype(np.uint8) for picture in pictures]

    def n_words(motion):
        found = documents(Drawn(faint, evenly(50)), DocumentSettings(motion=motion, scale=1))
        return sum(document.counts.sum() for document in found)

    assert n_words("cells") == 0 < n_words("flow")


@pytest.mark.parametrize("motion", ["cells", "flow"])
@pytest.mark.parametrize("words", ["coarse", "paper"])
def test_coarser_words_are_sums_of_fine_words(words, motion):
    drawn = Drawn(moving_square(50, velocity=(1, 1), start=(8, 40)), evenly(50))
    fine = documents(drawn, DocumentSettings(motion=motion))
    summed = documents(drawn, DocumentSettings(motion=motion, words=words))
    coarser = getattr(GRID, words)
    for one, other in zip(fine, summed, strict=True):
        assert len(one.words) > len(other.words) > 0
        found = summed_bag(Bag(one.words, one.counts), GRID, coarser)
        assert np.array_equal(found.words, other.words)
        assert np.array_equal(found.counts, other.counts)


@pytest.mark.parametrize("motion", ["cells", "flow"])
@pytest.mark.parametrize(("velocity", "direction"), [((2, 1), 9), ((-1, 2), 6), ((1, -2), 0)])
def test_fine_words_tell_directions_between_the_four(velocity, direction, motion):
    drawn = Drawn(moving_square(25, velocity=velocity, start=(50, 30)), evenly(25))
    (document,) = documents(drawn, DocumentSettings(motion=motion))
    found = document.counts[GRID.places(document.words).directions == direction].sum()
    assert found > 0.75 * document.counts.sum()


CUTS = [(0, 2), (1, 3), (2, 4), (3, None), (4, 8)]


@pytest.mark.parametrize("clip", [1.0, 0.32])
@pytest.mark.parametrize("options", [X264, {"preset": "medium", "x264-params": "open-gop=1"}])
def test_a_slice_is_the_slice_of_the_whole(tmp_path, options, clip):
    path = encode(tmp_path / "a.mp4", moving_square(150), options=options)
    source, settings = Source(str(path)), DocumentSettings(clip=clip, still_every=2)
    whole = list(documents(source, settings))
    assert len(whole) >= 6
    for start, stop in CUTS:
        found = list(documents(source, settings, start=start, stop=stop))
        assert_same(found, whole[start:stop])
        assert [d.still is not None for d in found] == [d.number % 2 == 0 for d in found]


def with_gap(first, missing, last, fps=FPS):
    """Pictures and times of two segments with seconds missing between them."""
    n = round((first + last) * fps)
    times = evenly(n, fps)
    return moving_square(n), np.where(times >= first, times + missing, times)


def test_a_short_gap_becomes_empty_documents():
    found = list(documents(Drawn(*with_gap(2, 3, 2))))
    assert [d.number for d in found] == list(range(7))
    assert [d.n_frames for d in found] == [25, 25, 0, 0, 0, 25, 25]
    assert [len(d.words) > 0 for d in found] == [True, True, False, False, False, True, True]


def test_a_long_gap_is_left_open():
    found = list(documents(Drawn(*with_gap(2, LONGEST_GAP + 5, 2))))
    assert [d.number for d in found] == [0, 1, LONGEST_GAP + 7, LONGEST_GAP + 8]


@pytest.mark.parametrize("missing", [0.3, 3])
@pytest.mark.parametrize("clip", [1.0, 0.1])
def test_a_slice_that_starts_or_ends_in_a_gap_is_the_slice_of_the_whole(missing, clip):
    """Several processes extract segments: a gap where two of them meet must not show."""
    drawn, settings = Drawn(*with_gap(2, missing, 2)), DocumentSettings(clip=clip)
    whole = list(documents(drawn, settings))
    first = next((d.number for d in whole if d.n_frames == 0), None)
    borders = range(1, 5) if first is None else range(first - 1, first + 5)
    for border in borders:
        before = list(documents(drawn, settings, stop=border))
        after = list(documents(drawn, settings, start=border))
        assert_same(before + after, whole)


def test_gaps_separate_sequences_in_a_corpus(tmp_path):
    pictures, times = with_gap(2, 3, 2)
    path = encode(tmp_path / "short.mkv", pictures, times=times, options=X264)
    corpus = extract_corpus([Source(str(path))]).corpus
    assert corpus.lengths.tolist() == [7]
    assert corpus.n_frames.tolist() == [25, 25, 0, 0, 0, 25, 25]
    pictures, times = with_gap(2, 15, 2)
    path = encode(tmp_path / "long.mkv", pictures, times=times, options=X264)
    corpus = extract_corpus([Source(str(path))]).corpus
    assert corpus.lengths.tolist() == [2, 2]
    assert corpus.times.tolist() == [0, 1, 17, 18]


@pytest.mark.parametrize("motion", ["cells", "flow"])
@pytest.mark.parametrize("cut", [23, 24, 25, 31])
def test_a_cut_gives_no_words(motion, cut):
    still = [moving_square(50, velocity=(0, 0), seed=seed) for seed in (0, 7)]
    pictures = still[0][:cut] + still[1][cut:]
    reader = Drawn(pictures, evenly(50))
    found = list(documents(reader, DocumentSettings(motion=motion)))
    assert sum(d.counts.sum() for d in found) == 0
    assert max(d.change for d in found) == 255


def test_motion_goes_on_after_a_cut():
    pictures = moving_square(25) + moving_square(25, seed=7)
    frames = compare_frames(Drawn(pictures, evenly(50)), DocumentSettings())
    first = [frame for frame in frames if frame.moves is not None]
    across = [s for s in first if s.frame.time == 1.0]
    assert len(across) == 1
    assert (across[0].moves == -1).all()
    after = [s for s in first if s.frame.time > 1.0]
    assert all((s.moves >= 0).sum() > 5 for s in after)


def pulsing(n, width, height):
    """A faint ground that a codec at a low rate redraws at every keyframe, and a small square."""
    ground = (120 + (texture(width, height, 3).astype(int) - 128) / 2).astype(np.uint8)
    square = texture(24, 24, 9)
    for i in range(n):
        picture = ground.copy()
        x = (8 + 2 * i) % (width - 24)
        picture[height - 32 : height - 8, x : x + 24] = square
        yield picture


@pytest.mark.parametrize("codec", ["mpeg4", "msmpeg4v2", "wmv2"])
def test_a_keyframe_of_mpeg_4_makes_no_words(tmp_path, codec, monkeypatch):
    options = {"b": "60000", "g": "12"}
    path = encode(tmp_path / "a.avi", pulsing(100, 320, 256), codec=codec, options=options)
    grid = Vocabulary.of_frame(320, 256, words="fine")

    def words():
        """Count words elsewhere, and in the rows of the square."""
        rows = np.zeros(grid.rows)
        for document in documents(Source(str(path))):
            np.add.at(rows, grid.places(document.words).rows, document.counts)
        return rows[:27].sum(), rows[27:].sum()

    elsewhere, inside = words()
    monkeypatch.setattr(reader, "PULSING_CODECS", frozenset())
    pulse, whole = words()
    assert pulse > 200
    assert elsewhere < pulse / 4
    assert inside > 0.75 * whole


@pytest.mark.parametrize("gop", [1, 2])
def test_every_frame_may_be_a_keyframe(tmp_path, gop):
    options = {"b": "4000000", "g": str(gop)}
    path = encode(tmp_path / "a.avi", moving_square(50), codec="mpeg4", options=options)
    assert all(len(document.words) > 50 for document in documents(Source(str(path))))


def test_keyframes_of_h264_are_compared(tmp_path):
    path = encode(tmp_path / "a.mp4", moving_square(50), options=X264)
    with Reader(Source(str(path))) as frames:
        assert not any(frame.redrawn for frame in frames)


def test_a_slice_of_mpeg_4_is_the_slice_of_the_whole(tmp_path):
    options = {"b": "300000", "g": "10"}
    path = encode(tmp_path / "a.avi", moving_square(150), codec="mpeg4", options=options)
    with Reader(Source(str(path))) as frames:
        assert [n for n, frame in enumerate(frames) if frame.redrawn] == list(range(10, 150, 10))
    for settings in (DocumentSettings(), DocumentSettings(clip=0.32)):
        whole = list(documents(Source(str(path)), settings))
        for start, stop in CUTS:
            found = list(documents(Source(str(path)), settings, start=start, stop=stop))
            assert_same(found, whole[start:stop])


@pytest.mark.parametrize("side", [4, 8, 12, 32])
def test_cell_brightness_equals_its_numpy_line(side):
    luma = np.random.default_rng(0).integers(0, 256, (3 * side + 5, 4 * side + 7), np.uint8)
    step = max(side // 4, 1)
    cells = luma[: 3 * side, : 4 * side].reshape(3, side, 4, side)[:, ::step, :, ::step]
    expected = cells.mean(axis=(1, 3)).astype(np.uint8)
    assert np.array_equal(cell_brightness(luma, 3, 4, side), expected)


def test_a_clip_must_hold_two_frames():
    with pytest.raises(InvalidInputError, match="at least two frames"):
        vocabulary_of(Drawn(moving_square(2), evenly(2)), DocumentSettings(clip=0.05))
    for clip in (0.0, -1.0, 1e6, float("nan")):
        with pytest.raises(InvalidInputError, match="above 0 and at most 86400 seconds"):
            DocumentSettings(clip=clip)


def test_one_frame_is_no_document(tmp_path):
    path = encode(tmp_path / "a.mp4", moving_square(1))
    with pytest.raises(VideoError, match="no document") as raised:
        extract_corpus([Source(str(path))])
    assert len(str(raised.value).splitlines()) == 1


def png(path, area, *, width=WIDTH, height=HEIGHT):
    picture = np.zeros((height, width), dtype=np.uint8)
    picture[area] = 255
    assert cv2.imwrite(str(path), picture)
    return str(path)


def test_masks_and_regions_choose_cells(tmp_path):
    area = np.s_[16:64, 40:120]
    cells = np.zeros((PLAIN.rows, PLAIN.columns), dtype=np.bool_)
    cells[2:8, 5:15] = True
    polygon = "40,16 119,16 119,63 40,63"
    for given in (png(tmp_path / "area.png", area), polygon):
        assert np.array_equal(watched_cells(PLAIN, mask=given), ~cells)
        assert np.array_equal(watched_cells(PLAIN, region=given), cells)
    two = "0,0 7,0 7,7 0,7; 152,120 159,120 159,127 152,127"
    found = watched_cells(PLAIN, mask=two)
    assert np.argwhere(~found).tolist() == [[0, 0], [PLAIN.rows - 1, PLAIN.columns - 1]]
    both = watched_cells(PLAIN, mask="40,16 47,16 47,23 40,23", region=polygon)
    assert both.sum() == cells.sum() - 1


def test_a_mask_takes_every_cell_it_touches_and_a_region_those_mostly_inside(tmp_path):
    corner = png(tmp_path / "corner.png", np.s_[23:24, 23:24])
    assert np.argwhere(~watched_cells(PLAIN, mask=corner)).tolist() == [[2, 2]]
    most = png(tmp_path / "most.png", np.s_[0:5, 0:13])
    assert np.argwhere(watched_cells(PLAIN, region=most)).tolist() == [[0, 0]]


def test_a_mask_is_in_pixels_of_the_camera():
    large = Vocabulary.of_frame(960, 960)
    assert large.scale == 4
    found = watched_cells(large, mask="32,64 63,64 63,95 32,95")
    assert np.argwhere(~found).tolist() == [[2, 1]]


def test_masked_cells_give_no_words(tmp_path):
    reader = Drawn(moving_square(50), evenly(50))
    plain = list(documents(reader, DocumentSettings(scale=1)))
    lower = png(tmp_path / "lower.png", np.s_[64:, :])
    masked = list(documents(reader, DocumentSettings(mask=lower, scale=1)))
    kept = list(documents(reader, DocumentSettings(region=lower, scale=1)))
    for document, without, only in zip(plain, masked, kept, strict=True):
        assert (PLAIN.places(without.words).rows < 8).all()
        assert (PLAIN.places(only.words).rows >= 8).all()
        assert len(without.words) > 0
        assert len(only.words) > 0
        assert document.change == without.change == only.change


def test_bad_masks_are_refused(tmp_path):
    wrong = png(tmp_path / "wrong.png", np.s_[:8, :8], width=80, height=64)
    (tmp_path / "text.png").write_text("not a picture")
    whole = png(tmp_path / "whole.png", np.s_[:, :])
    for given, message in (
        (wrong, "80x64"),
        (str(tmp_path / "absent.png"), "no file"),
        (str(tmp_path / "text.png"), "not an image"),
        (whole, "no cell"),
        ("0,0 10,10", "three corners"),
        ("0,0 10,a 5,5", "three corners"),
        ("0,0 10,0,3 5,5", "three corners"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            watched_cells(GRID, mask=given)


def test_a_mask_may_have_a_comma_in_its_name(tmp_path):
    given = png(tmp_path / "trees, clock.png", np.s_[:8, :8])
    assert np.argwhere(~watched_cells(PLAIN, mask=given)).tolist() == [[0, 0]]


@pytest.mark.parametrize("size", [(360, 288), (1283, 725), (161, 121)])
def test_watched_cells_become_a_region_that_gives_them_back(size):
    grid = Vocabulary.of_frame(*size)
    watched = np.random.default_rng(0).random((grid.rows, grid.columns)) < 0.6
    region = region_of(watched, grid)
    assert np.array_equal(watched_cells(grid, region=region), watched)
    assert region_of(np.ones_like(watched), grid) is None


class Watched(Drawn):
    """Pictures that know how many of them were asked for."""

    asked = 0

    def __iter__(self):
        for frame in super().__iter__():
            self.asked += 1
            yield frame


@pytest.mark.parametrize(("fps", "clip"), [(25, 1.0), (25, 0.4), (30000 / 1001, 0.5), (8, 1.0)])
def test_prompt_documents_are_the_same_and_come_with_their_last_frame(fps, clip):
    drawn, times = moving_square(100), evenly(100, fps)
    expected = list(documents(Drawn(drawn, times, fps), DocumentSettings(clip=clip)))
    frames = Watched(drawn, times, fps)
    found, asked = [], []
    for document in documents(frames, DocumentSettings(clip=clip), prompt=True):
        found.append(document)
        asked.append(frames.asked)
    assert_same(found, expected)
    ends = np.searchsorted(times + ROUNDING, clip * (1 + np.arange(len(found))))
    late = np.array(asked) - ends
    assert (late[ends > 10] == 0).all()
    assert (late[ends <= 10] == 1).all()  # the frame rate is not known yet


def test_prompt_documents_before_a_gap_are_given_once():
    drawn, times = with_gap(2, 3, 2)
    expected = list(documents(Drawn(drawn, times), DocumentSettings()))
    assert_same(list(documents(Drawn(drawn, times), DocumentSettings(), prompt=True)), expected)
    assert [d.number for d in expected] == list(range(len(expected)))
    assert any(d.n_frames == 0 for d in expected)


def test_prompt_documents_wait_where_the_pace_is_not_even():
    steps = np.random.default_rng(0).choice([0.02, 0.04, 0.1], 199)
    times = np.concatenate([[0.0], np.cumsum(steps)])
    drawn = moving_square(200)
    expected = list(documents(Drawn(drawn, times), DocumentSettings(clip=0.5)))
    found = documents(Drawn(drawn, times), DocumentSettings(clip=0.5), prompt=True)
    assert_same(list(found), expected)


WITH_B_FRAMES = {
    "libx264": {"preset": "medium", "g": "20"},
    "libx265": {"preset": "fast", "x265-params": "log-level=none:keyint=20:bframes=4"},
    "mpeg4": {"bf": "2", "g": "20"},
}


@pytest.mark.parametrize("codec", WITH_B_FRAMES)
@pytest.mark.parametrize("clip", [1.0, 0.32])
def test_frames_that_nobody_needs_are_not_decoded_and_not_missed(tmp_path, codec, clip):
    pictures = moving_square(150)
    path = encode(tmp_path / "a.mp4", pictures, codec=codec, options=WITH_B_FRAMES[codec])
    source, settings = Source(str(path)), DocumentSettings(clip=clip, still_every=2)
    with Reader(source) as reader:
        whole = list(documents(reader, settings))
    assert_same(list(documents(source, settings)), whole)
    for start, stop in CUTS:
        assert_same(list(documents(source, settings, start=start, stop=stop)), whole[start:stop])
    with reader_from(0, source, settings) as reader:
        frames = list(reader)
    assert len(frames) == 150
    assert [f.time for f in frames] == sorted(f.time for f in frames)
    spared = [f.decoded is None for f in frames]
    assert sum(spared) >= 10
    paced = ComparisonSchedule(clip)
    assert not any(paced(f.time) and skipped for f, skipped in zip(frames, spared, strict=True))
