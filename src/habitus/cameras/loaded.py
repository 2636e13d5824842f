"""What the nursery loads before it forks: libraries, and kernels as machine code.

Importing this module does it. Whatever is loaded here costs its memory once, and whatever a camera
loads itself costs it once for each camera.
"""

import cv2

import habitus.anomaly.watching
import habitus.ingest.decoder
import habitus.reporting.figures.moments
from habitus.ingest.clips import DocumentSettings

cv2.setNumThreads(1)
habitus.ingest.decoder.warm_up(DocumentSettings())
