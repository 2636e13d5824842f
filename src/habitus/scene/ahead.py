"""Kernels of learning and of judging, called once with almost nothing; importing it does that.

On a first use another process imports this module, and compiles those of messages and of the M-step
while the process that learns compiles what it needs before; then those of judging, which are needed
last. See
`habitus.jobs.workers.compile_ahead`.
"""

import numpy as np

from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.habits import HabitCounts, Habits, votes_of_corpus
from habitus.habits.evidence import gather_statistics, levels_of, surprisal_histograms
from habitus.habits.predictive import N_LEVELS
from habitus.model.em import log_prior, maximise
from habitus.model.expected_counts import ExpectedCounts, gather
from habitus.model.messages import filter_forward, smooth_backward
from habitus.model.online import filter_documents, filter_tables
from habitus.model.parameters import Concentrations, Parameters

N_DOCUMENTS = 4


def call_kernels() -> None:
    """Send messages along a chain, filter a few documents, and gather the evidence of votes."""
    half, first = np.full((2, 2), 0.5), np.array([True, False])
    smooth_backward(filter_forward(half, first, half[0], half), first, half)
    prior = Concentrations(half[:, :1].copy(), half[:, :1].copy(), half[0], half[:, :1].copy())
    estimates, _ = maximise(ExpectedCounts(*(half.copy() for _ in range(4))), prior, 1e-9)
    log_prior(estimates, prior)
    vocabulary = Vocabulary.of_frame(64, 64, words="fine", scale=1)
    counts = np.random.default_rng(0).poisson(0.02, (N_DOCUMENTS, vocabulary.n_words))
    corpus = Corpus(counts, vocabulary=vocabulary)
    phi = np.full((vocabulary.n_words, 2), 1 / vocabulary.n_words)
    filter_documents(gather(corpus), filter_tables([Parameters(phi, half, half[0], half)]))
    votes = votes_of_corpus(corpus)
    concentrations = {question: (1.0,) * n for question, n in N_LEVELS.items()}
    seen = HabitCounts.of(votes, vocabulary, N_DOCUMENTS)
    habits = Habits.of(seen, concentrations, vocabulary)
    levels = levels_of(surprisal_histograms(votes, habits))
    gather_statistics(votes, habits, levels, vocabulary)


call_kernels()
