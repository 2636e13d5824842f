"""What stands is kept with its documents: taken, joined, saved, and absent in older files."""

import numpy as np
import pytest

from habitus.corpus import Corpus, Vocabulary
from habitus.corpus.documents import FORMAT
from habitus.corpus.stands import StandingCells, StandingWords
from habitus.errors import InvalidInputError

V = Vocabulary(3, 4)


def random_words(n, seed=0, most_age=3000):
    rng = np.random.default_rng(seed)
    documents = []
    for _ in range(n):
        cells = np.flatnonzero(rng.random(V.n_cells) < 0.3)
        ages = rng.integers(1, most_age, len(cells))
        stands = StandingCells(cells, ages, True)
        documents.append(stands if rng.random() < 0.8 else StandingCells.unknown())
    return StandingWords.of(documents, V.n_cells)


def corpus(n, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.2, (n, V.n_words))
    return Corpus(counts, vocabulary=V, standing=random_words(n, seed))


def same(one, other):
    columns = [(words.entries.data, words.entries.indices, words.known) for words in (one, other)]
    equal = all(np.array_equal(*pair) for pair in zip(*columns, strict=True))
    return equal and np.array_equal(one.entries.indptr, other.entries.indptr)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_gives_back_what_stands_to_the_bit(tmp_path, packed):
    before = corpus(40)
    if packed:
        header, tensors = before.packed_contents()
        FORMAT.write(tmp_path / "c", header, tensors)
    else:
        before.save(tmp_path / "c")
    assert same(Corpus.load(tmp_path / "c").standing, before.standing)


def test_documents_take_what_stands_in_them_along():
    whole = corpus(30)
    first, last = whole.take(np.arange(11)), whole.take(np.arange(11, 30))
    assert same(Corpus.joined([first, last]).standing, whole.standing)
    assert same(whole.coarse.standing, whole.standing)
    assert last.standing.cells(2).cells.tolist() == whole.standing.cells(13).cells.tolist()


def test_a_corpus_without_is_one_in_which_nothing_is_known(tmp_path):
    plain = Corpus(np.ones((3, V.n_words)), vocabulary=V)
    assert not plain.standing.known.any()
    header, tensors = plain.contents()
    assert not any("standing" in name for name in (*header, *tensors))
    joined = Corpus.joined([plain, corpus(5)])
    assert joined.standing.known[3:].any()
    assert not joined.standing.known[:3].any()


@pytest.mark.parametrize("cells", [[V.n_cells], [-1]])
def test_cells_that_do_not_exist_are_refused(cells):
    words = StandingWords.of([StandingCells(np.array(cells), np.array([3]), True)], V.n_cells)
    with pytest.raises(InvalidInputError, match="standing must have a row for each of 1 documents"):
        Corpus(np.ones((1, V.n_words)), vocabulary=V, standing=words)
