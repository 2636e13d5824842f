"""Tables of labels: read, checked, and refused in one line."""

import re

import numpy as np
import pytest

from habitus.errors import InvalidInputError
from habitus.evaluation.label_files import parse_labels, read_labels
from habitus.evaluation.labels import Label, LabelledFootage, check_labels
from habitus.lab import write_labels


def written(folder, text):
    (folder / "labels.csv").write_text(text)
    return folder / "labels.csv"


def test_intervals_with_kinds_boxes_and_clock_times(tmp_path):
    path = written(
        tmp_path,
        "start,end,kind,left,top,right,bottom\n"
        "12.5,20,u-turn,1,2,30,40\n1:00,1:02.5,,,,,\n1:00:00,1:00:01,x,,,,\n",
    )
    assert read_labels(path) == [
        Label(12.5, 20.0, "u-turn", (1, 2, 30, 40)),
        Label(60.0, 62.5, "", None),
        Label(3600.0, 3601.0, "x", None),
    ]
    assert read_labels(written(tmp_path, "end,start\n2,1\n")) == [Label(1.0, 2.0)]


def test_labels_written_by_the_junction_are_read(tmp_path, scene):
    write_labels(scene, tmp_path / "junction.csv")
    labels = read_labels(tmp_path / "junction.csv")
    truth = scene.truth()
    assert len(truth) == 3
    assert [label.kind for label in labels] == [event.kind for event in truth]
    for label, event in zip(labels, truth, strict=True):
        assert label.start == pytest.approx(event.start, abs=1e-3)
        assert label.box == event.box


def test_ranges_of_clips_count_frames_from_0_with_both_ends(tmp_path):
    path = written(tmp_path, "clip,first_frame,last_frame\n01,0,4\n02,7,7\n01,10,14\n")
    footage = LabelledFootage("testing/01.mp4", np.arange(3.0), 1.0, np.array([5, 5, 5]))
    assert read_labels(path, footage) == [Label(0.0, 1.0), Label(2.0, 3.0)]
    assert parse_labels(path).of("02.corpus").to_flags(footage).nonzero()[0].tolist() == [7]
    assert parse_labels(path).of("03.mp4").to_labels(footage) == []
    with pytest.raises(InvalidInputError, match="labels of the clips 01, 02, but the footage is 9"):
        read_labels(path, footage._replace(name="9.mp4"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clip,first_frame,last_frame\na,3,2\n", "the last not before the first, found '3' and"),
        ("clip,first_frame,last_frame\na,-1,2\n", "must be whole numbers from 0"),
        ("clip,first_frame,last_frame\na,1.5,2\n", "line 2: first_frame and last_frame must be"),
        ("", "found the columns none"),
        ("begin,end\n1,2\n", "found the columns begin, end; expected start,end"),
        ("start,end,colour\n1,2,red\n", "found the columns start, end, colour"),
        ("start,end,end\n1,2,3\n", "found the columns start, end, end"),
        ("start,end\n2,1\n", "line 2: a label must end after it starts, found 2 to 1"),
        ("start,end\n1,2\n-3,1\n", "line 3: start must be from 0 to 1e+12, found -3"),
        ("start,end\n1,two\n", "line 2: end is not a number"),
        ("start,end\n1,2:75\n", "line 2: end is not a number: '2:75' is not a time such as"),
        ("start,end\n1\n", "line 2: expected 2 values"),
        ("start,end\n1,2,3\n", "line 2: expected 2 values"),
        ("start,end\n1,inf\n", "end must be from 0 to 1e+12, found inf"),
        ("start,end\n1,5\n4,6\n", "a label from 4 to 6 s overlaps the one from 1 to 5 s"),
        ("start,end,kind\n1,5,x\n0,9,y\n1,5,x\n", "x from 1 to 5 s overlaps the one from 1"),
        ("start,end,left,top,right,bottom\n1,2,5,5,,9\n", "a box needs left, top, right and"),
        ("start,end,left,top,right,bottom\n1,2,5,5,4,9\n", "found 5,5,4,9"),
        ("clip,abnormal\n0,1\n", "found the columns clip, abnormal; expected start,end"),
        ("0\n1\n2\n", "such as 60:152, found '2'"),
        ("10,20\n30,40\n", "a table needs a header line with its columns, such as start,end"),
        ("0:5\n", "frames count from 1 and a range must not end before it starts, found 0:5"),
        ("5:9 8:12\n", "frames 8:12 overlap a range that ends at 9"),
        ("12:8\n", "must not end before it starts, found 12:8"),
        ("1,x,0\n", "expected 0 or 1 per frame, or ranges of frames such as 60:152"),
        ("a.gt_frame = [1:5];\na.gt_frame = [2:6];\n", "labels of 2 videos: choose one"),
        ("a.gt_frame = [1:z];\n", "such as 60:152, found '1:z'"),
    ],
)
def test_a_file_that_holds_no_labels_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)) as raised:
        read_labels(written(tmp_path, text))
    assert len(str(raised.value).splitlines()) == 1


def test_simultaneous_labels_must_differ_in_kind_or_box(tmp_path):
    head = "start,end,kind,left,top,right,bottom\n"
    allowed = "1,5,x,0,0,9,9\n2,6,x,20,20,29,29\n3,4,y,,,,\n6,9,x,20,20,29,29\n"
    assert len(read_labels(written(tmp_path, head + allowed))) == 4
    with pytest.raises(InvalidInputError, match=r"x from 2\.5 to 3 s overlaps"):
        read_labels(written(tmp_path, f"{head}{allowed}2.5,3,x,,,,\n"))
    with pytest.raises(InvalidInputError, match="x from 8 to 10 s overlaps"):
        read_labels(written(tmp_path, f"{head}{allowed}8,10,x,20,20,29,29\n"))


def test_missing_and_binary_files_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_labels(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    with pytest.raises(InvalidInputError, match="not a CSV file"):
        read_labels(tmp_path / "binary.csv")


def test_labels_of_another_video_are_refused():
    check_labels([Label(1, 2), Label(9.5, 11)], 0.0, 10.0, clip=1.0)
    with pytest.raises(InvalidInputError, match="outside the video, which runs from 0 to 10 s"):
        check_labels([Label(1, 2), Label(754, 760, "u-turn")], 0.0, 10.0, clip=1.0)
