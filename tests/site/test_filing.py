"""Clips of events, cut by processes that may hang."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from habitus.errors import HabitusError
from habitus.site.filing import Filing
from habitus.site.journal import file_event
from habitus.site.pipe_messages import Remark, Report
from reference.consoles import entry
from reference.processes import LONG, wait_until


def no_answer(target: str, *arguments: object, within: float):
    raise HabitusError(f"no answer within {within:g} s")


def test_a_clip_that_takes_too_long_is_none_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("habitus.site.filing.CUTTING", 0.01)
    server = SimpleNamespace(ask=no_answer)
    file_event(tmp_path / "clips", entry("a1"))
    reports: list[Report] = []
    filing = Filing(tmp_path, reports.append, server)  # type: ignore[arg-type]
    filing.tick()
    wait_until(lambda: not filing.is_busy, "it is given up")
    filing.close(within=LONG)
    (remark,) = reports
    assert isinstance(remark, Remark)
    assert remark.text == "no clip of an event: no answer within 0.01 s"
    assert not list((tmp_path / "clips").iterdir())
