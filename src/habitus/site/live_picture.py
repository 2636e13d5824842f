"""What a camera sees, for a page: its picture, what moves there, and what is unusual in it."""

import cv2
import numpy as np

from habitus.arrays import Image
from habitus.corpus.vocabulary import Vocabulary
from habitus.ingest.clips import Document
from habitus.reporting.figures.drawing import HOTTEST
from habitus.scene.detector import Judgement
from habitus.scene.explanation import find_unusual
from habitus.scene.habit_model import HabitModel

# Largest width of a picture in pixels, and its quality.
WIDEST, QUALITY = 640, 75
# Arrows of motion, and boxes of heat, that a page draws at most.
MOST_ARROWS, MOST_BOXES = 48, 64


def jpeg(picture: Image, *, widest: int = WIDEST) -> bytes:
    """Return a picture as JPEG, reduced where it is wide."""
    height, width = picture.shape[:2]
    if width > widest:
        size = (widest, max(1, round(height * widest / width)))
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    colours = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", colours, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return encoded.tobytes()


def arrows_in(
    document: Document, vocabulary: Vocabulary, most: int = MOST_ARROWS
) -> list[tuple[float, float, float, float]]:
    """Return where things move and which way: tails and tips, in pixels of the camera.

    Each of the cells with the most motion has one arrow, two cells long, in the mean direction of
    its words.

    Examples
    --------
    >>> v = Vocabulary.of_frame(160, 128, cell=8, scale=1, words="fine")
    >>> to_the_right = v.words(3, 5, 10, 2)
    >>> clip = Document(0, 0.0, np.array([to_the_right]), np.array([4]), 25, 1.0, None, None)
    >>> arrows_in(clip, v)
    [(36.0, 28.0, 52.0, 28.0)]
    """
    if not len(document.words):
        return []
    places = vocabulary.places(document.words)
    third = vocabulary.directions // 4
    angles = 2 * np.pi * (np.arange(vocabulary.directions) - third // 2) / vocabulary.directions
    cells = places.rows * vocabulary.columns + places.columns
    motion = np.zeros((vocabulary.n_cells, 2))
    np.add.at(motion[:, 0], cells, -np.sin(angles)[places.directions] * document.counts)
    np.add.at(motion[:, 1], cells, -np.cos(angles)[places.directions] * document.counts)
    strength = np.hypot(*motion.T)
    strongest = np.argsort(-strength, kind="stable")[:most]
    strongest = strongest[strength[strongest] > 0.0]
    rows, columns = np.divmod(strongest, vocabulary.columns)
    side = vocabulary.cell_side
    centres = np.stack([columns + 0.5, rows + 0.5], axis=-1) * side
    ahead = motion[strongest] / strength[strongest, None] * side
    ends = np.concatenate([centres - ahead, centres + ahead], axis=1).round(1)
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in ends]


def heat_in(
    judgement: Judgement, habits: HabitModel, most: int = MOST_BOXES
) -> list[tuple[float, float, float, float, float]]:
    """Return where a judged document is unusual: boxes in pixels of the camera, and strengths."""
    if judgement.habit is None:
        return []
    finding, v = find_unusual(judgement.habit, habits), habits.vocabulary
    hottest = np.argsort(-finding.heat, kind="stable")[:most]
    boxes = []
    for n in hottest:
        row, column = divmod(int(finding.cells[n]), v.columns)
        side, heat = float(v.cell_side), min(float(finding.heat[n]) / HOTTEST, 1.0)
        boxes.append((column * side, row * side, side, side, round(heat, 3)))
    return boxes
