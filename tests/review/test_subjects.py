"""A reviewer names runs as lists show them."""

import pytest

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.review.subjects import subject_of
from tb_bottleneck.sources.logdir import RecordingFile

RUNS = ["vit/tb_bottleneck/20260101-120000_rank0_17", "bert/20260101-120000_rank0_17", "bert/20260102-120000_rank0_18"]
RECORDINGS = [RecordingFile(f"/{run}/a.pt.trace.json", run, "a.pt.trace.json", 1, 1) for run in RUNS]


@pytest.mark.parametrize("name", [RUNS[0], "vit", "vit/rank0_17", "vit/tb_bottleneck"])
def test_a_part_of_the_path_names_the_only_run_that_has_it(name):
    assert subject_of(name, "/", RECORDINGS) == RUNS[0]


@pytest.mark.parametrize("name", ["rank", "it", ""])
def test_a_part_of_no_run_names_none_and_lists_runs_that_contain_it(name):
    with pytest.raises(NotFound, match=r"no run or recording.*; there is .*rank0_17"):
        subject_of(name, "/", RECORDINGS)


@pytest.mark.parametrize(("name", "runs"), [("bert", RUNS[1:]), ("rank0_17", [RUNS[1], RUNS[0]])])
def test_a_part_of_several_runs_lists_them(name, runs):
    with pytest.raises(NotFound, match=f"stands for 2 runs under /: {', '.join(runs)}$"):
        subject_of(name, "/", RECORDINGS)


def test_names_are_accepted_as_the_tab_shows_them():
    runs = ["sweep/resnet50_lr1", "sweep/resnet50_lr2", "one", "one/tb_bottleneck/20260101-120000_rank0_17"]
    recordings = [RecordingFile(f"/{run}/a", run, "a", 1, 1) for run in runs]
    assert subject_of("…lr2", "/", recordings) == "sweep/resnet50_lr2"
    assert subject_of("one", "/", recordings) == "one"
