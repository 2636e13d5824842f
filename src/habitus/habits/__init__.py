"""Habits of places: how often anything moves in a cell, which way and how fast."""

from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import CUES, STATISTICS, DocumentEvidence, document_evidence
from habitus.habits.hours import HOUR_STATISTICS
from habitus.habits.predictive import Concentrations, Habits
from habitus.habits.votes import DocumentVotes, Votes, votes_of, votes_of_corpus

__all__ = [
    "CUES",
    "HOUR_STATISTICS",
    "STATISTICS",
    "Concentrations",
    "DocumentEvidence",
    "DocumentVotes",
    "HabitCounts",
    "Habits",
    "Votes",
    "document_evidence",
    "votes_of",
    "votes_of_corpus",
]
