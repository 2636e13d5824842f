"""Counts: added and taken back to the bit, in any order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus.corpus import Vocabulary
from habitus.corpus.clocks import NO_HOUR
from habitus.habits.counts import HabitCounts
from habitus.habits.votes import votes_of_corpus
from reference.habits import KINDS, random_corpus, random_votes

FINE = Vocabulary(3, 4, directions=12, speeds=16)


def same(one, other):
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in vars(one))


@pytest.mark.parametrize(("directions", "speeds"), KINDS)
def test_counts_are_those_of_each_vote(directions, speeds):
    vocabulary = Vocabulary(3, 4, directions=directions, speeds=speeds)
    votes = votes_of_corpus(random_corpus(vocabulary, 25, seed=0))
    direction = np.zeros((12, directions))
    speed = np.zeros((12, 4, speeds))
    for cell, way, fast in zip(votes.cells, votes.directions, votes.speeds, strict=True):
        direction[cell, way] += 1
        speed[cell, way * 4 // directions, fast] += 1
    found = HabitCounts.of(votes, vocabulary, 25)
    none = HabitCounts.none(vocabulary)
    assert same(found, replace(none, n_documents=25.0, direction=direction, speed=speed))
    assert np.array_equal(found.moving, speed.sum(axis=(1, 2)))
    one_by_one = HabitCounts.none(vocabulary)
    for t in range(25):
        one_by_one = one_by_one.adding(votes.of(t))
    assert same(one_by_one, found)


def test_hours_are_those_of_each_document():
    votes = votes_of_corpus(random_corpus(FINE, 60, seed=1))
    hours = np.random.default_rng(1).integers(0, NO_HOUR + 1, 60)
    moved, documents = np.zeros((12, 48)), np.zeros(48)
    one_by_one = HabitCounts.none(FINE)
    for t, hour in enumerate(hours.tolist()):
        one_by_one = one_by_one.adding(votes.of(t), hour=hour)
        if hour != NO_HOUR:
            documents[hour] += 1
            moved[votes.of(t).cells, hour] += 1
    found = HabitCounts.of(votes, FINE, 60, hours)
    assert same(one_by_one, found)
    assert np.array_equal(found.hours, moved)
    assert np.array_equal(found.hour_documents, documents)
    parts = [
        HabitCounts.of(votes.take(part), FINE, len(part), hours[part])
        for part in (np.arange(17), np.arange(17, 60))
    ]
    assert same(HabitCounts.total(parts), found)
    assert np.array_equal(found.faded(0.5).hours, 0.5 * moved)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_what_is_added_is_taken_back_in_any_order(lengths, order):
    rng = np.random.default_rng(0)
    before = HabitCounts.none(FINE).adding(random_votes(FINE, 5, rng), 7)
    documents = [random_votes(FINE, n, rng) for n in lengths]
    parts = [HabitCounts.none(FINE).adding(votes, hour=len(votes.cells)) for votes in documents]
    counts = before
    for votes in documents:
        counts = counts.adding(votes, hour=len(votes.cells))
    by_part = before
    for part in order.sample(parts, len(parts)):
        by_part = part + by_part
    assert same(counts, by_part)
    for votes in order.sample(documents, len(documents)):
        counts = counts.adding(votes, -1, len(votes.cells))
    for part in order.sample(parts, len(parts)):
        by_part = by_part - part
    assert same(counts, before)
    assert same(by_part, before)
    assert before.n_documents == 7


def test_a_document_changes_nothing_but_its_own_counts():
    votes = random_votes(FINE, 4, np.random.default_rng(1))
    before = HabitCounts.none(FINE)
    after = before.adding(votes, 3)
    assert before.direction.sum() == before.speed.sum() == before.n_documents == 0
    assert after.direction.sum() == after.speed.sum() == 12
    assert (after.moving > 0).sum() == 4


def test_faded_counts_are_a_share():
    votes = random_votes(FINE, 4, np.random.default_rng(1))
    counts = HabitCounts.none(FINE).adding(votes, 3)
    half = counts.faded(0.5)
    assert same(half + half, counts)
    assert half.n_documents == 1.5
