"""Clips of events, cut by processes that may hang."""

from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import pytest

from habitus.site.filing import Filing
from habitus.site.journal import file_entry
from habitus.site.pipe_messages import Remark, Report
from reference.consoles import entry
from reference.processes import LONG, wait_until


def test_a_clip_that_takes_too_long_is_none_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("habitus.site.filing.CUTTING", 0.01)
    ours, theirs = Pipe()
    killed: list[bool] = []
    child = SimpleNamespace(connection=ours, kill=lambda: killed.append(True))
    server = SimpleNamespace(start_process=lambda target, job: child)
    file_entry(tmp_path / "clips", entry("a1", kind="clip", event={}))
    reports: list[Report] = []
    filing = Filing(tmp_path, reports.append, server)  # type: ignore[arg-type]
    filing.tick()
    wait_until(lambda: not filing.is_busy, "it is given up")
    filing.close(within=LONG)
    theirs.close()
    (remark,) = reports
    assert isinstance(remark, Remark)
    assert remark.text == "no clip of an event: it was not cut within 0.01 s"
    assert killed
    assert not list((tmp_path / "clips").iterdir())
