"""Models of cameras: what decides that they are learnt anew, and what they tell other cameras."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from habitus.corpus import Corpus, Vocabulary
from habitus.corpus.documents import shard_bytes
from habitus.errors import FileError
from habitus.files import write_file
from habitus.scene.fleet import WORTH, Fleet
from habitus.site.camera_models import (
    LearningTask,
    era_notes,
    eras_of,
    learn_camera,
    learn_cameras,
    wanted_shards,
)
from habitus.site.overview import covered_hours, overview_of
from habitus.site.shard_store import ArchiveFolder
from reference.archives import HereWorkers

VOCABULARY = Vocabulary.of_frame(64, 64)
OPTIONS = {"n_topics": 2, "n_behaviours": 2, "n_restarts": 1, "random_state": 0}


def put_shard(folder, camera, hour, n_documents, seed=0, *, vocabulary=VOCABULARY, start=None):
    """Write a shard of documents in which the same few words come again and again."""
    rng = np.random.default_rng(seed)
    likely = rng.choice(vocabulary.n_words, 60, replace=False)
    words = [np.repeat(rng.choice(likely, 25), 2) for _ in range(n_documents)]
    start = 3600.0 * hour if start is None else start
    corpus = Corpus.from_word_ids(
        words, vocabulary=vocabulary, times=start + np.arange(n_documents)
    )
    origin = {
        "address": f"{camera}-{hour}.mp4",
        "size": 1,
        "version": "1",
        "start": start,
        "made": "",
        "usable": n_documents,
        "notes": [],
    }
    path = folder.camera(camera).shard_path(f"1970-01-01T{hour:02d}-00-00")
    write_file(path, shard_bytes(corpus, {"recording": origin}))
    return path


def learn(folder, **options):
    return learn_cameras(folder, folder.cameras(), HereWorkers(), options=OPTIONS, **options)


def test_cameras_with_half_an_hour_tell_what_they_have_in_common(tmp_path):
    folder = ArchiveFolder(tmp_path)
    for seed, camera in enumerate(("north", "south")):
        put_shard(folder, camera, 0, WORTH, seed=seed)
    put_shard(folder, "young", 0, 120)
    assert learn(folder).learnt == ["north", "south", "young"]
    assert Fleet.load(folder.fleet).n_cameras == 2
    assert not folder.camera("young").fleet.exists()


def test_a_fleet_is_a_reason_to_learn_anew_and_to_learn_otherwise(tmp_path):
    folder = ArchiveFolder(tmp_path)
    put_shard(folder, "north", 0, WORTH)
    put_shard(folder, "young", 0, 120)  # like the other: a fleet of unlike cameras is not used
    learn(folder)
    before = folder.camera("young").model.read_bytes()
    kept = tmp_path / "kept.fleet"
    kept.write_bytes(folder.fleet.read_bytes())
    assert learn(folder, fleet=kept).learnt == ["young"]  # what others tell must not depend on it
    assert folder.camera("young").model.read_bytes() != before
    assert learn(folder, fleet=kept).learnt == []
    with pytest.raises(FileError, match="expected a habitus fleet file"):
        learn(folder, fleet=folder.camera("north").model)


def test_a_damaged_shard_is_named_by_its_file(tmp_path):
    folder = ArchiveFolder(tmp_path)
    good, bad = (put_shard(folder, "north", hour, 100) for hour in range(2))
    bad.write_bytes(bad.read_bytes()[:-9] + bytes(9))
    learnt = learn_camera(LearningTask("north", (str(good), str(bad)), OPTIONS))
    assert learnt.damaged == (str(bad),)
    assert learnt.contents == b""


class Elsewhere(HereWorkers):
    """Workers that have another folder where the archive is."""

    def as_completed(self, function, items):
        for number, item in enumerate(items):
            there = tuple(path.replace("north", "nowhere") for path in item.paths)
            found = function(item._replace(paths=there))
            damaged = tuple(path.replace("nowhere", "north") for path in found.damaged)
            yield number, found._replace(damaged=damaged)


def test_a_shard_that_a_worker_does_not_see_is_kept(tmp_path):
    folder = ArchiveFolder(tmp_path)
    path = put_shard(folder, "north", 0, 100)
    found = learn_cameras(folder, folder.cameras(), Elsewhere(), options=OPTIONS)
    assert not found.damaged
    (trouble,) = found.troubles
    assert str(trouble).startswith(f"north: a worker cannot read {path}, which is whole")
    assert Corpus.load(path)


def test_a_camera_on_which_nothing_moves_is_in_trouble_alone(tmp_path):
    folder = ArchiveFolder(tmp_path)
    put_shard(folder, "north", 0, 100)
    put_shard(folder, "still", 0, 0)
    found = learn(folder)
    assert found.learnt == ["north"]
    (trouble,) = found.troubles
    assert str(trouble).startswith("still: cannot be learnt: ")


@pytest.mark.parametrize(("n", "said"), [(2, ["the model is not calibrated"]), (100, [])])
def test_a_model_of_too_little_footage_is_in_trouble(tmp_path, n, said):
    folder = ArchiveFolder(tmp_path)
    put_shard(folder, "north", 0, n)
    assert learn(folder).learnt == ["north"]
    (camera,) = overview_of(folder).cameras
    assert [trouble.partition(":")[0] for trouble in camera.troubles] == said


def test_eras_follow_each_other(tmp_path):
    folder = ArchiveFolder(tmp_path)
    for hour, width in enumerate((64, 128, 128, 64)):
        put_shard(folder, "north", hour, 5, vocabulary=Vocabulary.of_frame(width, 64))
    shards = folder.camera("north").shards()
    assert [(era["frames"], era["shards"]) for era in eras_of(shards)] == [
        ("64x64", 1),
        ("128x64", 2),
        ("64x64", 1),
    ]
    assert [note.rpartition(": ")[2] for note in era_notes("north", shards)] == [
        "a new model begins there",
        "the model of before goes on",
    ]
    assert wanted_shards(shards) == [shards[0], shards[3]]


def test_the_last_days_end_with_the_last_recording(tmp_path):
    folder = ArchiveFolder(tmp_path)
    for number, start in enumerate((0, 59, 60, 86_400)):
        put_shard(folder, "north", number, 60, start=start)
    shards = folder.camera("north").shards()
    assert [shard.start for shard in wanted_shards(shards, days=1)] == [60, 86_400]
    assert wanted_shards(shards) == shards
    assert wanted_shards([]) == []


def test_hours_are_those_that_clocks_of_the_zone_show(tmp_path):
    """A day of 23 hours: 2026-03-29 in Berlin, with one recording from midnight to midnight."""
    folder = ArchiveFolder(tmp_path)
    put_shard(
        folder, "north", 0, 23 * 3600, start=datetime(2026, 3, 28, 23, tzinfo=UTC).timestamp()
    )
    covered = covered_hours(folder.camera("north").shards(), ZoneInfo("Europe/Berlin"))
    assert set(covered.values()) == {1.0}
    hours = [hour for hour in range(24) if hour != 2]
    assert list(covered) == [f"2026-03-29T{hour:02d}" for hour in hours]
