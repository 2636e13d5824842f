"""Corpora in shards: few of them in memory, and files that do not fit together."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from habitus import Corpus, FileError, InvalidInputError, ShardedCorpus, Vocabulary
from habitus.corpus.shards import CorpusFile, in_order

GRID = Vocabulary(3, 4, directions=12, speeds=16)


def part(n_documents, seed, **changes):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.02, (n_documents, GRID.n_words))
    settings = {"clip": 1.0, "words": "fine"}
    return Corpus(
        counts,
        **{
            "vocabulary": GRID,
            "settings": settings,
            "times": 100.0 * seed + np.arange(n_documents),
            "lengths": [1, n_documents - 1] if n_documents > 1 else None,
            "n_frames": np.full(n_documents, 25),
            "conditions": (rng.random(n_documents) < 0.1).astype(int),
            "picture": np.full((2, 2, 3), seed, dtype=np.uint8),
            **changes,
        },
    )


def equal(one, other):
    return (
        (one.counts != other.counts).nnz == 0
        and one.counts.shape == other.counts.shape
        and one.vocabulary == other.vocabulary
        and one.settings == other.settings
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("times", "lengths", "n_frames", "conditions", "picture")
        )
    )


@pytest.fixture
def parts():
    return [part(n, seed) for seed, n in enumerate((5, 1, 8, 3, 7))]


@pytest.fixture
def paths(parts, tmp_path):
    for i, each in enumerate(parts):
        each.save(tmp_path / f"{i}.corpus")
    return [tmp_path / f"{i}.corpus" for i in range(len(parts))]


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_results_come_in_order_and_a_failure_ends_the_pass(n_threads):
    assert list(in_order(lambda i: i * i, range(20), n_threads)) == [i * i for i in range(20)]
    begun = []

    def task(number):
        begun.append(number)
        if number == 3:
            raise InvalidInputError("three")

    with pytest.raises(InvalidInputError, match="three"):
        list(in_order(task, range(1000), n_threads))
    assert len(begun) < 20


def test_shards_are_the_joined_corpus(parts, paths):
    whole = Corpus.joined(parts)
    for corpus in (ShardedCorpus.of(parts), ShardedCorpus.open(paths)):
        assert equal(corpus.joined(), whole)
        assert (len(corpus), corpus.n_shards, corpus.n_words) == (24, 5, whole.n_words)
        assert corpus.clip == whole.clip
        assert np.array_equal(corpus.picture, whole.picture)
        assert corpus.n_tokens.tolist() == whole.n_tokens.tolist()
        assert corpus.starts.tolist() == [0, 5, 6, 14, 17, 24]
        assert equal(corpus.coarse.joined(), whole.coarse)


@pytest.mark.parametrize(
    "documents", [range(24), [0, 4, 5, 6, 13, 14], [5], [6, 7, 23], [], range(3, 20)]
)
def test_documents_are_taken_as_of_the_joined_corpus(parts, paths, documents):
    chosen = np.asarray(documents, dtype=int)
    found, wanted = ShardedCorpus.open(paths).take(chosen), Corpus.joined(parts).take(chosen)
    if len(chosen):
        assert equal(found, wanted)
    assert len(found) == len(wanted)


def test_headers_alone_are_read_and_shards_without_chosen_documents_are_not(paths, monkeypatch):
    loaded = []
    load = CorpusFile.load
    monkeypatch.setattr(CorpusFile, "load", lambda self: loaded.append(self.name) or load(self))
    corpus = ShardedCorpus.open(paths)
    assert (len(corpus), corpus.vocabulary) == (24, GRID)
    assert loaded == []
    corpus.take([0, 20])
    assert loaded == [str(paths[0]), str(paths[4])]


class Alive:
    """Counts the corpora that were loaded and are still in memory."""

    def __init__(self, monkeypatch):
        self.references, self.most = [], 0
        load = CorpusFile.load

        def counted(file):
            corpus = load(file)
            self.references.append(weakref.ref(corpus.entries.data))
            self.most = max(self.most, sum(each() is not None for each in self.references))
            return corpus

        monkeypatch.setattr(CorpusFile, "load", counted)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_no_more_shards_are_in_memory_than_threads(tmp_path, monkeypatch, n_threads):
    paths = [tmp_path / f"{i}.corpus" for i in range(12)]
    for i, path in enumerate(paths):
        part(4, i).save(path)
    gc.collect()
    alive = Alive(monkeypatch)
    corpus = ShardedCorpus.open(paths)
    total = corpus.map_reduce(lambda shard: shard.n_tokens.sum(), n_threads=n_threads)
    assert total == corpus.n_tokens.sum()
    assert 1 <= alive.most <= n_threads
    assert len(alive.references) == 24


def test_what_does_not_fit_is_told_in_one_line(paths, tmp_path):
    def refused(error, text, *given):
        with pytest.raises(error, match=text) as caught:
            ShardedCorpus.open(given)
        assert "\n" not in str(caught.value)

    refused(InvalidInputError, "at least one shard, found none")
    refused(
        FileError,
        "absent.corpus: expected a habitus corpus file, found nothing",
        *paths[:1],
        tmp_path / "absent.corpus",
    )
    (tmp_path / "text.corpus").write_text("not a corpus")
    refused(FileError, "text.corpus: not a complete habitus corpus file", tmp_path / "text.corpus")
    other = tmp_path / "other.corpus"
    part(3, 0).coarse.save(other)
    refused(InvalidInputError, "other.corpus: shards must have the same vocabulary", *paths, other)
    part(3, 0, settings={"clip": 2.0}).save(other)
    refused(
        InvalidInputError,
        "other.corpus: .* found 2 s after 1 s: extract it with clip=1",
        *paths,
        other,
    )
    part(3, 0, settings=None, times=[0.0, 0.5, 1.0]).save(other)
    refused(InvalidInputError, "found 0.5 s after 1 s", *paths, other)
    part(1, 0, settings=None).save(other)  # one document without settings: any clip
    assert ShardedCorpus.open([other, *paths]).clip == 1.0


def test_a_shard_that_is_damaged_or_replaced_is_named_when_it_is_read(paths):
    corpus = ShardedCorpus.open(paths)
    contents = bytearray(paths[2].read_bytes())
    contents[-1] ^= 1
    paths[2].write_bytes(contents)
    with pytest.raises(FileError, match=r"2\.corpus: the contents do not match their checksum"):
        corpus.map_reduce(lambda shard: 0)
    part(9, 2).save(paths[2])
    with pytest.raises(InvalidInputError, match=r"2\.corpus: 9 documents, it had 8 before"):
        corpus.map_reduce(lambda shard: 0)
    paths[2].unlink()
    with pytest.raises(
        FileError, match=r"2\.corpus: expected a habitus corpus file, found nothing"
    ):
        corpus.joined()


def test_shards_may_be_empty(parts):
    nothing = replace(parts[0].take([]), settings=parts[0].settings)
    corpus = ShardedCorpus.of([nothing, *parts, nothing])
    assert len(corpus) == 24
    assert corpus.take([0, 23]).n_tokens.tolist() == Corpus.joined(parts).n_tokens[[0, 23]].tolist()
