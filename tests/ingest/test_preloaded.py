"""What processes that decode have loaded before they are forked."""

import pytest

from habitus import progress
from habitus.ingest.preloaded import load_kernels


def test_kernels_that_are_compiled_later_stop_nothing(monkeypatch: pytest.MonkeyPatch):
    """Other modules that are loaded beside may compile their own."""
    monkeypatch.setattr(progress, "_compilation_listeners", [])
    load_kernels()
    progress.report_compiling()
