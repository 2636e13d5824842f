"""Packed counts: the same numbers in fewer bytes, and nothing else is taken for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.corpus import Corpus
from habitus.corpus.documents import VERSION
from habitus.corpus.sparse import SparseCounts
from habitus.errors import FileError
from habitus.files import FileFormat

N_WORDS = 300_000
documents = st.lists(
    st.dictionaries(st.integers(0, N_WORDS - 1), st.integers(1, 1 << 40), max_size=8), max_size=6
)


def as_arrays(rows):
    words = [sorted(row) for row in rows]
    flat = np.array([word for row in words for word in row], dtype=np.int64)
    counts = [row[word] for row, own in zip(rows, words, strict=True) for word in own]
    indptr = np.cumsum([0, *map(len, words)])
    return flat, np.array(counts, dtype=np.float64), indptr


@settings(deadline=None)
@given(documents)
def test_unpacking_gives_back_words_and_counts(rows):
    words, counts, indptr = as_arrays(rows)
    packed = SparseCounts(counts, words, indptr, N_WORDS).packed()
    found = SparseCounts.unpacked(*packed, indptr, N_WORDS)
    np.testing.assert_array_equal(found.indices, words)
    np.testing.assert_array_equal(found.data, counts)


def busy(n=400):
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(N_WORDS // 30, 200, replace=False)) for _ in range(n)]
    return Corpus.from_word_ids(rows, n_words=N_WORDS // 30)


def save_packed(corpus, path, **changes):
    header, tensors = corpus.packed_contents()
    tensors = {**tensors, **changes}
    FileFormat("corpus", VERSION).write(path, header, tensors)
    return path


def test_a_packed_file_is_the_same_corpus_in_fewer_bytes(tmp_path):
    corpus = busy()
    path = save_packed(corpus, tmp_path / "packed")
    corpus.save(tmp_path / "plain")
    found = Corpus.load(path)
    assert (found.counts != corpus.counts).nnz == 0
    assert found.counts.indices.dtype == Corpus.load(tmp_path / "plain").counts.indices.dtype
    assert path.stat().st_size < (tmp_path / "plain").stat().st_size / 3


@pytest.mark.parametrize(
    "contents", [b"", b"not compressed at all", b"\x78\x01\x03\x00\x00\x00\x00\x01"]
)
def test_what_cannot_be_unpacked_is_a_damaged_file(tmp_path, contents):
    packed = np.frombuffer(contents, np.uint8)
    path = save_packed(busy(), tmp_path / "a", packed=packed)
    with pytest.raises(FileError, match="the array packed"):
        Corpus.load(path)


def test_documents_of_other_sizes_are_refused(tmp_path):
    corpus = busy()
    fewer = corpus.counts.indptr.copy()
    fewer[-1] -= 1
    with pytest.raises(FileError, match="must hold"):
        Corpus.load(save_packed(corpus, tmp_path / "a", indptr=fewer))
    with pytest.raises(FileError, match="never fall"):
        Corpus.load(save_packed(corpus, tmp_path / "b", indptr=fewer[::-1].copy()))


def test_contents_without_their_end_are_refused():
    """All bytes are there, but not the checksum that says so."""
    words, counts, indptr = as_arrays([{3: 1, 700: 2}, {5: 1}])
    packed, packing = SparseCounts(counts, words, indptr, N_WORDS).packed()
    with pytest.raises(FileError, match="must hold"):
        SparseCounts.unpacked(packed[:-4], packing, indptr, N_WORDS)
