"""What workers of commands and decoders have loaded: libraries, and kernels as machine code.

A process that learns or judges loads Numba, SciPy and kernels first: half a second for each of
hundreds.
"""

import habitus.ingest.preloaded
import habitus.lab.comparison.runs
import habitus.site.camera_models
import habitus.site.camera_preload
import habitus.site.shard_judging
import habitus.site.shard_reading  # noqa: F401
