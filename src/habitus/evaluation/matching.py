"""Which of the true events were found, and which alarms were false."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

# Seconds that an alarm may lie beside the truth: a document is judged as a whole.
SLACK = 1.0


class Stretch(Protocol):
    """Anything that starts and ends, in seconds."""

    @property
    def start(self) -> float:
        """When it starts."""
        ...

    @property
    def end(self) -> float:
        """When it ends."""
        ...


class Match(NamedTuple):
    """True events and alarms, set against each other."""

    found_by: list[int | None]
    """For each true event: the first alarm that overlaps it, or None."""
    false_alarms: list[int]
    """Alarms that overlap no true event."""

    @property
    def n_found(self) -> int:
        """True events with an alarm."""
        return sum(alarm is not None for alarm in self.found_by)


def match(alarms: Sequence[Stretch], truth: Sequence[Stretch], *, slack: float = SLACK) -> Match:
    """Set alarms against the truth; they match where they overlap, give or take `slack`."""

    def overlap(alarm: Stretch, event: Stretch) -> bool:
        return alarm.start < event.end + slack and event.start - slack < alarm.end

    found_by = [
        next((k for k, alarm in enumerate(alarms) if overlap(alarm, event)), None)
        for event in truth
    ]
    false_alarms = [
        k for k, alarm in enumerate(alarms) if not any(overlap(alarm, event) for event in truth)
    ]
    return Match(found_by, false_alarms)
