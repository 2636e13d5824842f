"""What is loaded before cameras are forked: they load no kernel themselves."""

import json
import subprocess
import sys

from reference.footage import FPS, encode, moving_square
from reference.processes import running

LISTENING = """
import json, sys

loaded = []
sys.addaudithook(
    lambda event, arguments: event == "open"
    and str(arguments[0]).endswith((".nbc", ".code"))
    and loaded.append(str(arguments[0]))
)
import habitus.site.camera_preload
from habitus.corpus import Bag, summed_bag
from habitus.ingest.clips import DocumentSettings, documents, vocabulary_of
from habitus.video import Reader, Source

before = len(loaded)
with Reader(Source(sys.argv[1])) as reader:
    v = vocabulary_of(reader, DocumentSettings())
    for document in documents(reader, DocumentSettings()):
        summed_bag(Bag(document.words, document.counts), v, v.coarse)
print(json.dumps([before, loaded[before:]]))
"""

COMPILING = """
import habitus.jobs.workers as workers
workers.load_early("habitus.errors")
(server,) = workers._early.values()
pid = server.pid
import habitus.site.camera_preload
print(pid)
print(len(workers._early), flush=True)
import os
os._exit(0)  # as the fork server does: nothing is ended then
"""


def test_what_compiled_kernels_beside_it_does_not_stay():
    run = [sys.executable, "-c", COMPILING]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    pid, n_early = map(int, done.stdout.split())
    assert n_early == 0
    assert not running(pid)


def test_documents_are_made_by_kernels_that_are_loaded_before(tmp_path):
    video = encode(tmp_path / "a.mp4", moving_square(4 * FPS))
    run = [sys.executable, "-c", LISTENING, str(video)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert before
    assert after == []
