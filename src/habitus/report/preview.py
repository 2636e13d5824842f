"""Footage with its visual words drawn as arrows, to see at once whether extraction works."""

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from habitus.documents.clips import Seen, Settings, see, vocabulary_of
from habitus.documents.extraction import Progress
from habitus.report.arrows import Picture, arrows_of, draw_on_picture
from habitus.report.film import film, film_size
from habitus.report.lettering import write
from habitus.video import Reader, Source
from habitus.words import Direction, Vocabulary

LETTERS = 14
"""Size of the letters, in pixels."""


def write_preview(
    path: str | os.PathLike[str],
    source: Source,
    settings: Settings,
    *,
    progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Write an H.264 video of the source; arrows stay until the next frame that is compared."""
    with Reader(source) as reader:
        vocabulary = vocabulary_of(reader, settings)
        size = film_size(vocabulary.width, vocabulary.height, enlarge=False)
        moves: NDArray[np.int8] | None = None
        with film(path, size, reader.fps) as add:
            for n, seen in enumerate(see(reader, settings)):
                if seen.moves is not None:
                    moves = seen.moves
                picture = seen.frame.colours(*size)
                if moves is not None:
                    draw_words(picture, moves, vocabulary)
                _label(picture, seen, moves)
                add(picture, seen.frame.time)
                if n % 16 == 0:
                    progress(Progress(seen.frame.time, reader.duration, n, seen.frame.time))


def draw_words(picture: Picture, moves: NDArray[np.int8], v: Vocabulary) -> None:
    """Draw an arrow in each cell that moved, in the colour of its direction."""
    rows, columns = np.nonzero(moves >= 0)
    words = v.words(rows, columns, moves[rows, columns].astype(np.int64) % len(Direction))
    draw_on_picture(picture, arrows_of(words, np.full(len(words), 0.6), v), v)


def _label(picture: Picture, seen: Seen, moves: NDArray[np.int8] | None) -> None:
    n = 0 if moves is None else int((moves >= 0).sum())
    text = f"{seen.frame.time:.2f} s   document {seen.number}   {n} words"
    picture[-26:, :360] //= 3
    write(picture, text, (8, len(picture) - 24), LETTERS)
