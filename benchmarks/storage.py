"""Bytes of an hour of a busy junction: its video, its documents as commands store them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import habitus
from habitus.corpus.documents import VERSION
from habitus.files import FileFormat
from habitus.lab import Junction, render
from report import Cells, main, progress

SEED, HOUR = 7, 3600


def measure(quick: bool) -> Iterator[Cells]:
    """Rows: each with what an hour of it takes; a corpus has one picture, however long it is."""
    seconds = HOUR // 6 if quick else HOUR
    with tempfile.TemporaryDirectory() as temporary:
        video, plain, packed = (Path(temporary, name) for name in ("v.mp4", "plain", "packed"))
        progress(f"rendering {seconds // 60} minutes")
        render(Junction(seed=SEED, seconds=seconds), video)
        corpus = habitus.extract(video, output=plain).corpus
        header, tensors = corpus.packed_contents()
        FileFormat("corpus", VERSION).write(packed, header, tensors)
        for what, path, once in (
            ("video, 360x288, as the junction is rendered", video, 0),
            ("corpus of `habitus extract`", plain, tensors["picture"].nbytes),
            ("shard of `habitus archive`, packed", packed, tensors["picture"].nbytes),
        ):
            n_bytes = (path.stat().st_size - once) * HOUR / seconds + once
            yield {"what": what, "MB per hour": round(n_bytes / 1e6, 1)}


if __name__ == "__main__":
    main(measure)
