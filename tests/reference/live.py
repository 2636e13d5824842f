"""Documents of a live source, each with a still, until somebody has seen enough."""

import threading
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import Job
from habitus.ingest.live import LiveDocument, LiveSource, Notice
from habitus.video import PacketTap, Source


def live_documents(
    source: Source,
    settings: DocumentSettings,
    *,
    stop: threading.Event,
    tap: PacketTap | None = None,
    **options: Any,
) -> Generator[LiveDocument | Notice]:
    """Yield documents and notices; close the generator to end the decoder process."""
    yield from LiveSource(
        Job(source, replace(settings, still_every=1), tap=tap), stop=stop, **options
    )
