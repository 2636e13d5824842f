"""Corpora: construction, files, parts, tables."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus import Corpus, MarkovClusteringTopicModel, Vocabulary
from habitus.corpus import Condition
from habitus.errors import HabitusError, InvalidInputError
from habitus.schema import MOST_FRAMES

documents = st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=6)


def same(one: Corpus, other: Corpus) -> bool:
    return (
        one.counts.shape == other.counts.shape
        and (one.counts != other.counts).nnz == 0
        and np.array_equal(one.times, other.times)
        and np.array_equal(one.lengths, other.lengths)
        and one.vocabulary == other.vocabulary
    )


@settings(deadline=None)
@given(documents)
def test_word_ids_are_counted(ids):
    corpus = Corpus.from_word_ids(ids, n_words=10)
    for row, words in zip(corpus.counts.toarray(), ids, strict=True):
        assert row.tolist() == np.bincount(words, minlength=10).tolist() if words else not row.any()


def test_all_types_of_counts_give_the_same_corpus():
    counts = np.array([[0, 2, 1], [0, 0, 0], [4, 0, 0]])
    ways = [
        Corpus(counts),
        Corpus(sp.csc_matrix(counts)),
        Corpus(sp.coo_array(counts)),
        Corpus.from_word_ids([[1, 2, 1], [], [0, 0, 0, 0]], n_words=3),
    ]
    assert all(same(ways[0], way) for way in ways)
    assert ways[0].n_tokens.tolist() == [3, 0, 4]
    assert len(ways[0]) == 3
    assert repr(ways[0]) == "Corpus(3 documents in 1 sequence, 3 words, 7 tokens)"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("kind", [sp.coo_array, sp.coo_matrix])
def test_small_integers_do_not_wrap(dtype, kind):
    at = np.zeros(300, dtype=np.int64)
    counts = kind((np.ones(300, dtype=dtype), (at, at)), shape=(2, 3))
    assert Corpus(counts).counts.toarray().tolist() == [[300, 0, 0], [0, 0, 0]]
    model = MarkovClusteringTopicModel(1, 1, n_iterations=1).fit(counts)
    assert model.words_per_document_ == 300


def test_stored_zeros_and_duplicates_are_summed_away_and_the_input_is_left_alone():
    raw = sp.csr_matrix((np.array([1.0, 2, 0]), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 2))
    corpus = Corpus(raw)
    assert corpus.counts.nnz == 1
    assert corpus.counts.toarray().tolist() == [[0, 3], [0, 0]]
    assert raw.nnz == 3


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.one_of(st.integers(0, 300), st.floats(0, 1e6)), min_size=4, max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_files_bring_back_what_was_written(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("corpus") / "scene.corpus"
    corpus = Corpus(np.array(rows, dtype=float), times=np.arange(len(rows)) * 0.5)
    corpus.save(path)
    assert same(corpus, Corpus.load(path))


def test_files_keep_sequences_and_vocabulary(tmp_path):
    vocabulary = Vocabulary(3, 4)
    counts = np.random.default_rng(0).poisson(1, (7, vocabulary.n_words))
    corpus = Corpus(counts, lengths=[3, 4], vocabulary=vocabulary)
    corpus.save(tmp_path / "scene.corpus")
    assert same(corpus, Corpus.load(tmp_path / "scene.corpus"))


def test_an_empty_corpus_is_a_corpus(tmp_path):
    corpus = Corpus(np.empty((0, 5)))
    corpus.save(tmp_path / "empty.corpus")
    assert len(Corpus.load(tmp_path / "empty.corpus")) == 0


def test_a_corpus_cannot_be_changed():
    corpus = Corpus(np.ones((2, 2)))
    with pytest.raises(AttributeError):
        corpus.times = np.zeros(2)


def test_taken_documents_break_the_sequence_where_some_are_left_out():
    corpus = Corpus(np.arange(1, 22).reshape(7, 3), lengths=[4, 3], settings={"clip": 2.0})
    part = corpus.take([0, 1, 3, 4, 5])
    assert part.lengths.tolist() == [2, 1, 2]
    assert part.times.tolist() == [0, 1, 3, 4, 5]
    assert part.counts.toarray().tolist() == corpus.counts.toarray()[[0, 1, 3, 4, 5]].tolist()
    assert part.clip == 2.0
    assert len(corpus.take([])) == 0
    with pytest.raises(ValueError, match="ascending"):
        corpus.take([3, 1])


def test_seconds_per_document_default_to_the_spacing_of_the_times():
    assert Corpus(np.ones((3, 2)), times=[0.0, 0.5, 1.0]).clip == 0.5
    assert Corpus(np.ones((1, 2))).clip == 1.0


def test_the_papers_words_of_a_corpus_add_up_slow_and_fast():
    grid = Vocabulary(2, 3, speeds=2)
    counts = np.random.default_rng(0).poisson(1.0, (5, grid.n_words))
    corpus = Corpus(
        counts, vocabulary=grid, settings={"clip": 2.0, "words": "coarse"}, lengths=[2, 3]
    )
    paper = corpus.paper
    expected = counts.reshape(5, -1, 2).sum(axis=2)
    np.testing.assert_array_equal(paper.counts.toarray(), expected)
    assert paper.vocabulary == Vocabulary(2, 3)
    assert paper.settings == {"clip": 2.0, "words": "paper"}
    assert paper.lengths.tolist() == [2, 3]
    assert paper.paper is paper
    assert corpus.settings == {"clip": 2.0, "words": "coarse"}


@settings(deadline=None)
@given(documents)
def test_bags_are_the_rows_of_the_counts(ids):
    corpus = Corpus.from_word_ids(ids, n_words=10)
    bags = list(corpus.bags())
    assert len(bags) == len(corpus)
    for bag, row in zip(bags, corpus.counts.toarray(), strict=True):
        assert bag.words.tolist() == np.flatnonzero(row).tolist()
        assert bag.counts.tolist() == row[row > 0].tolist()


def test_joined_corpora_are_sequences_one_after_the_other():
    grid = Vocabulary(1, 2)
    counts = np.random.default_rng(0).poisson(1.0, (5, grid.n_words))
    known = Corpus(
        counts[:3], vocabulary=grid, lengths=[1, 2], n_frames=[25, 25, 24], conditions=[0, 1, 0]
    )
    other = Corpus(counts[3:], vocabulary=grid, times=[7.0, 8.0], n_frames=[25, 20])
    joined = Corpus.joined([known, other])
    assert joined.lengths.tolist() == [1, 2, 2]
    assert joined.times.tolist() == [0, 1, 2, 7, 8]
    assert joined.n_frames.tolist() == [25, 25, 24, 25, 20]
    assert joined.conditions.tolist() == [0, 1, 0, 0, 0]
    assert joined.first.tolist() == [True, True, False, True, False]
    np.testing.assert_array_equal(joined.counts.toarray(), counts)
    unknown = Corpus(counts[3:], vocabulary=grid)
    assert Corpus.joined([known, unknown]).n_frames is None
    with pytest.raises(InvalidInputError, match="same vocabulary"):
        Corpus.joined([known, Corpus(counts, vocabulary=Vocabulary(2, 1))])


def test_a_table_has_a_row_per_document():
    pytest.importorskip("pandas")
    corpus = Corpus(
        [[0, 2], [1, 1], [0, 0]],
        times=[0.0, 0.5, 9.0],
        lengths=[2, 1],
        n_frames=[12, 13, 12],
        conditions=[Condition.USABLE, Condition.FROZEN, Condition.USABLE],
    )
    table = corpus.to_dataframe()
    assert table.index.name == "document"
    assert table.to_dict("list") == {
        "time": [0.0, 0.5, 9.0],
        "sequence": [0, 0, 1],
        "tokens": [2.0, 2.0, 0.0],
        "distinct_words": [1, 2, 0],
        "frames": [12, 13, 12],
        "condition": ["usable", "frozen", "usable"],
    }
    assert Corpus([[1.0]]).to_dataframe()["frames"].isna().all()


def test_a_table_without_pandas_is_an_error_that_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas: pip install pandas") as raised:
        Corpus([[1.0]]).to_dataframe()
    assert isinstance(raised.value, HabitusError)


def test_notebooks_show_a_small_table():
    corpus = Corpus(np.ones((4, 24)), lengths=[3, 1], vocabulary=Vocabulary(2, 3), times=range(4))
    shown = corpus._repr_html_()
    assert shown.startswith("<table>")
    for text in ("4 of 1 s", "96, 24 per document", "24 (2 x 3 cells of 8 pixels)"):
        assert f"<td>{text}</td>" in shown
    assert "0 per document" in Corpus(np.empty((0, 3)))._repr_html_()


@pytest.mark.parametrize("lengths", [[2, 2], [4, 2]])
def test_sequences_have_all_documents_and_no_more(lengths):
    found = sum(lengths)
    with pytest.raises(InvalidInputError, match=f"add up to the 5 documents, found {found}"):
        Corpus(np.ones((5, 2)), lengths=lengths)


def test_a_document_has_at_most_so_many_frames():
    assert Corpus(np.ones((1, 2)), n_frames=[MOST_FRAMES]).n_frames == [MOST_FRAMES]
    with pytest.raises(InvalidInputError, match=f"1 integers from 0 to {MOST_FRAMES}"):
        Corpus(np.ones((1, 2)), n_frames=[MOST_FRAMES + 1])
