"""Events in words, for a person."""

from habitus.events.detection import Detection
from habitus.events.event import Event


def clock(seconds: float) -> str:
    """Hours, minutes and seconds of video.

    >>> clock(59.6), clock(3725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def in_words(event: Event) -> str:
    """When and why, in one line."""
    return f"{clock(event.start)}-{clock(event.end)}  {event.explanation}"


def summary_of(detection: Detection) -> str:
    """How many events, in how much video, beside how many normal footage brings."""
    n, seconds = len(detection.events), len(detection.corpus) * detection.corpus.clip
    found = f"{n or 'no'} event{'' if n == 1 else 's'} in {clock(seconds)} of video"
    if not detection.judged.any():
        return f"{found}: nothing moved enough to be judged"
    if n == 0:
        lowest = detection.normality[detection.judged].min()
        found += f" (lowest normality {lowest:.3g}, threshold {detection.threshold:.3g})"
    if detection.promised is None:
        return found
    low, _, high = detection.promised
    return f"{found}; normal footage of that length would bring {low:.0f} to {high:.0f}"
