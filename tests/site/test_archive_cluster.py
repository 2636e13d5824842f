"""An archive on a cluster: the same files, though a worker is killed while it reads.

The command is given the name of a folder in its own, which is not that of the workers.
"""

import sys

import habitus
from habitus.site.operations import learn_archive
from reference.archives import PATTERN, put, recorded
from reference.clusters import cluster, kill
from reference.processes import LONG, wait_until

OPTIONS = {"learning": habitus.LearningSettings(4, 2, n_restarts=1), "timezone": "UTC"}
FLAGS = ("--topics", 4, "--behaviours", 2, "--restarts", 1, "--timezone", "UTC")


def contents(site):
    return {
        str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()
    }


def test_a_cluster_that_loses_a_worker_makes_the_same_files(tmp_path_factory, tmp_path, start):
    master = recorded(tmp_path_factory) / "0.mp4"
    for minute in range(4):
        put(tmp_path / "recordings", "north", minute, master)
    pattern, site = f"{tmp_path}/recordings/{PATTERN}", tmp_path / "site"
    with cluster(tmp_path, 2) as found:
        command = [sys.executable, "-m", "habitus", "archive", "learn", pattern, "-o", site.name]
        process = start([*command, *FLAGS, "--cluster", found.address], cwd=tmp_path)
        shards = site / "north/shards"
        wait_until(lambda: list(shards.glob("[0-9]*.corpus")), "a shard is written")
        kill(found.processes[-1])
        assert process.wait(LONG) == 0
    learn_archive(
        pattern, output=tmp_path / "plain", reading=habitus.ReadingSettings(jobs=1), **OPTIONS
    )
    assert contents(site) == contents(tmp_path / "plain")
    assert "north/model.habitus" in contents(site)
