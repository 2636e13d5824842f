"""Every mistake gets one line that names what was found and what is expected."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from habitus import (
    Assignments,
    Corpus,
    DirichletPosterior,
    HabitusError,
    MarkovClusteringTopicModel,
    Parameters,
    Prior,
    Vocabulary,
    generate,
)

GOOD = np.full((6, 4), 9.0)


def parameters(**changes):
    blocks = {
        "phi": np.full((4, 2), 0.25),
        "theta": np.full((2, 2), 0.5),
        "pi": np.full(2, 0.5),
        "xi": np.full((2, 2), 0.5),
    }
    return Parameters(**(blocks | changes))


def fit(counts=GOOD, *, lengths=None, n_topics=2, n_behaviours=2, **settings):
    settings = {"n_iterations": 2, "burn_in": 1, "n_samples": 1, "random_state": 0} | settings
    model = MarkovClusteringTopicModel(n_topics, n_behaviours, **settings)
    return model.fit(counts, lengths=lengths)


def altered(value):
    counts = GOOD.copy()
    counts[1, 2] = value
    return counts


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit(altered(-1)), r"at least 0, found -1"),
        (lambda: fit(altered(np.nan)), r"finite numbers, found NaN"),
        (lambda: fit(altered(np.inf)), r"finite numbers, found inf"),
        (lambda: fit(altered(2.5), learning="gibbs"), r"whole counts, found 2.5"),
        (lambda: fit(altered(2.5), learning="blocked-gibbs"), r"whole counts, found 2.5"),
        (lambda: fit(GOOD * 0), r"longest has 0 words, min_words is 20"),
        (lambda: fit(GOOD * 0, min_words=0), r"no document to learn from: the longest has 0"),
        (lambda: fit(GOOD, min_words=100), r"longest has 36 words, min_words is 100"),
        (lambda: fit(GOOD, n_behaviours=7), r"n_behaviours=7 needs .* found 6"),
        (lambda: fit(lengths=[3, 4]), r"add up to the 6 documents, found 7"),
        (lambda: fit(lengths=[6, 0]), r"each length must be at least 1, found 0"),
        (lambda: fit(lengths=[2.5, 3.5]), r"integers, found \[2.5, 3.5\]"),
        (lambda: fit(lengths=["all"]), r"integers, found"),
        (lambda: fit(Corpus(GOOD), lengths=[6]), r"its own lengths"),
        (lambda: fit(n_topics=0), r"^n_topics must be an int in the range \[1, 65535\], found 0$"),
        (lambda: fit(n_topics=2.0), r"n_topics must be an int .* found 2.0$"),
        (lambda: fit(n_topics=True), r"n_topics must be an int .* found True$"),
        (lambda: fit(n_topics=70_000), r"n_topics must be an int .*65535\], found 70000$"),
        (lambda: fit(n_iterations=0), r"n_iterations .*\[1, 1000000000\], found 0"),
        (lambda: fit(n_restarts=-1), r"n_restarts .*\[1, 100000\], found -1"),
        (lambda: fit(burn_in=0), r"burn_in .*\[1, 1000000000\], found 0"),
        (lambda: fit(thinning=0), r"thinning .*\[1, 1000000000\], found 0"),
        (lambda: fit(n_jobs=0), r"n_jobs .*-1\], an int .*\[1, 1000000000\] or None, found 0"),
        (lambda: fit(smoothing=-1e-6), r"smoothing must be a float .*1000000000.0\], found -1e-06"),
        (lambda: fit(smoothing=np.inf), r"smoothing must be a float .* found inf"),
        (lambda: fit(smoothing=np.nan), r"smoothing must be a float .* found nan"),
        (lambda: fit(tolerance="small"), r"tolerance must be a float .* or None, found 'small'"),
        (lambda: fit(min_words=None), r"min_words must be a float .* found None"),
        (lambda: fit(learning="magic"), r"learning must be a str among .*'vb'.* found 'magic'"),
        (lambda: fit(prior="H+2"), r"prior must be '1', 'H', 'H\+1' or .*found 'H\+2'"),
        (lambda: fit(prior=3), r"prior must be .* found 3"),
        (lambda: fit(prior=Prior(beta=[1, 2, 3])), r"beta must be one value or 4, found 3"),
        (lambda: fit(prior=Prior(alpha=[1, 2, 3])), r"alpha must be one value or 2, found 3"),
        (lambda: fit(random_state=-1), r"random_state must be .* found -1"),
        (lambda: fit(random_state="today"), r"random_state must be .* found 'today'"),
        (lambda: fit(init="here"), r'init for learning="em" .* found here'),
        (lambda: fit(init=parameters(), learning="vb"), r"DirichletPosterior, found Parameters"),
        (lambda: fit(init=parameters(), n_restarts=2), r"n_restarts must be 1, found 2"),
        (lambda: fit(init=parameters(pi=np.ones(3) / 3)), r"pi must have shape \(2,\), found"),
        (lambda: fit(init=parameters(pi=np.array([0.4, 0.4]))), r"columns of pi .* 0.8"),
        (lambda: fit(init=parameters(pi=np.array([-1.0, 2]))), r"columns of pi .* value of -1"),
        (lambda: fit(init=parameters(pi=np.array([np.nan, 1]))), r"pi must be finite"),
        (
            lambda: fit(init=DirichletPosterior(*parameters(pi=np.array([0.0, 1]))), learning="vb"),
            r"Dirichlet parameters of pi must be above 0, found 0",
        ),
        (
            lambda: fit(init=Assignments(np.zeros(3, int), np.zeros(6, int)), learning="gibbs"),
            r"init must give 216 topics .* shape \(3,\)",
        ),
        (
            lambda: fit(init=Assignments(np.full(216, 2), np.zeros(6, int)), learning="gibbs"),
            r"init's topics must run from 0 to 1, found 2 to 2",
        ),
        (lambda: Prior(alpha=0), r"alpha must be a number above 0.* found 0"),
        (lambda: Prior(beta=-1), r"beta must be a number above 0.* found -1"),
        (lambda: Prior(gamma=np.inf), r"gamma must be a number above 0.* found inf"),
        (lambda: Prior(eta=[1, np.nan]), r"eta must be a number above 0.* found \[1, nan\]"),
        (lambda: Prior(eta="one"), r"eta must be numbers above 0, found 'one'"),
        (lambda: Prior(eta=[]), r"eta must be a number above 0.* found \[\]"),
        (lambda: Corpus(GOOD, vocabulary=Vocabulary(2, 2)), r"4 words, the vocabulary 16"),
        (lambda: Corpus("words"), r"documents x words"),
        (lambda: Corpus(GOOD, times=[1, 2]), r"times must be 6 finite numbers"),
        (lambda: Corpus(GOOD, times=[0, 1, 2, 3, 4, np.nan]), r"times must be 6 finite numbers"),
        (lambda: Corpus(GOOD, times=[0, 1, 3, 2, 4, 5]), r"not fall .* found 2 after 3 s"),
        (lambda: Corpus(GOOD, times="now"), r"times must be 6 finite numbers"),
        (lambda: Corpus.from_word_ids([[0, 4]], n_words=4), r"from 0 to 3, found 0 to 4"),
        (lambda: Corpus.from_word_ids([[-1]], n_words=4), r"from 0 to 3, found -1 to -1"),
        (lambda: Corpus.from_word_ids([[0.5]], n_words=4), r"integers\), found float64"),
        (lambda: Corpus.from_word_ids([["a"]], n_words=4), r"integers\), found <U1"),
        (lambda: Vocabulary(0, 3), r"rows .* must be an integer from 1 to 65536, found 0"),
        (lambda: Vocabulary(2, 2).places([16]), r"from 0 to 15, found 16 to 16"),
        (lambda: Vocabulary(2, 2).words(2, 0, 0), r"outside the \(2, 2, 4, 1\) vocabulary"),
        (lambda: generate(parameters(), [-1], np.random.default_rng(0)), r"n_tokens must be"),
        (lambda: fit().score_samples(GOOD, start="later"), r"start must be .* found \'later\'"),
        (lambda: fit().score_samples(Corpus(GOOD[:, :3])), r"3 words, the model was learnt on 4"),
        (lambda: fit().top_words(0), r"n must be a whole number from 1 to 4, found 0"),
        (lambda: fit().top_words(5), r"n must be a whole number from 1 to 4, found 5"),
        (lambda: fit().top_words(of="words"), r"of must be .* found 'words'"),
        (lambda: fit().to_arviz(), r"no posterior samples: learn it with learning=\"gibbs\""),
        (lambda: fit().set_params(n_topic=3), r"no parameter 'n_topic'; it has .*n_topics"),
        (lambda: fit().sample(0), r"n_documents .*\[1, inf\), found 0"),
        (lambda: fit().sample(words_per_document=-1), r"words_per_document .*\[0, inf\), found -1"),
    ],
)
def test_one_line_that_says_what_and_why(call, message):
    with pytest.raises(HabitusError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert re.search(message, text), text
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("indices", lambda found: np.append(found[:-1], -1), r"run from 0 to \d+, found -1 to"),
        ("indices", lambda found: np.append(found[:-1], 50), r"run from 0 to \d+, found 0 to 50"),
        ("indices", lambda found: found[:-1], r"must have \d+ entries, .* found \d+ indices"),
        ("indices", lambda found: found + 0.5, r"must be integers, found float64"),
        ("indptr", lambda found: np.append(0, found[:0:-1]), r"integers that .* never fall"),
        ("indptr", lambda found: found - 1, r"start with 0 .* found \d+ from -1 to"),
        ("indptr", lambda found: found * 1_000_000, r"must have \d+ entries, as indptr says"),
        ("indptr", lambda found: found[:-1], r"must be \d+ integers .*, found \d+ from 0"),
        ("indptr", lambda found: np.append(found, found[-1]), r"must be \d+ integers"),
        ("data", lambda found: found[:-1], r"must have \d+ entries, .* and \d+ values"),
    ],
)
def test_a_malformed_sparse_matrix_is_refused_at_the_door(kind, part, change, message):
    counts = sp.csr_array(GOOD).asformat(kind)
    setattr(counts, part, change(getattr(counts, part)))
    for door in (Corpus, fit):  # one that is let in ends Python
        with pytest.raises(HabitusError, match=message) as caught:
            door(counts)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_the_first_index_outside_a_sparse_matrix_is_refused(kind):
    counts = sp.csr_array(GOOD).asformat(kind)
    rows, columns = np.array(counts.shape) // getattr(counts, "blocksize", 1)
    n = rows if kind == "csc" else columns
    counts.indices[-1] = n
    with pytest.raises(HabitusError, match=rf"run from 0 to {n - 1}, found 0 to {n}$"):
        Corpus(counts)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_sparse_counts_of_every_kind_are_those_of_the_array(kind):
    learnt = fit(sp.csr_array(GOOD).asformat(kind))
    np.testing.assert_array_equal(learnt.parameters_.phi, fit(GOOD).parameters_.phi)


def test_the_error_of_a_parameter_knows_its_name():
    with pytest.raises(HabitusError) as caught:
        fit(n_restarts=0)
    assert caught.value.parameter == "n_restarts"


def test_arrays_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 4 features"):
        fit().predict(GOOD[:, :3])


def test_em_and_vb_take_fractions_as_weights():
    for learning in ("em", "vb"):
        half = fit(GOOD * 0.75, learning=learning)
        assert np.isfinite(half.objective_).all()
