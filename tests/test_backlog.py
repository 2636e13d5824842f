"""What a thread writes, and what becomes of it where that fails."""

import threading

import pytest

from habitus.backlog import Backlog


def test_a_fault_of_the_writer_is_raised_where_more_is_added(monkeypatch):
    reported = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda raised: reported.set())
    written = []

    def write(item):
        written.append(10 // item)

    backlog = Backlog(write)
    for item in (5, 0):
        backlog.add(item)
    assert reported.wait(60)
    with pytest.raises(ZeroDivisionError):
        backlog.add(2)
    assert backlog.close(within=60) == [0]
    assert written == [2]
