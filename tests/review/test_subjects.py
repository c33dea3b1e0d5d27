"""A reviewer names runs as lists show them."""

import pytest

from tb_bottleneck.errors import NotFound
from tb_bottleneck.review.subjects import subject_of
from tb_bottleneck.sources.logdir import RecordingFile

RUNS = ["vit/tb_bottleneck/20260101-120000_rank0_17", "bert/20260101-120000_rank0_17", "bert/20260102-120000_rank0_18"]
RECORDINGS = [RecordingFile(f"/{run}/a.pt.trace.json", run, "a.pt.trace.json", 1, 1) for run in RUNS]


@pytest.mark.parametrize("name", [RUNS[0], "vit", "vit/rank0_17", "vit/tb_bottleneck"])
def test_a_part_of_the_path_names_the_only_run_that_has_it(name):
    assert subject_of(name, "/", RECORDINGS) == RUNS[0]


@pytest.mark.parametrize("name", ["bert", "rank0_17", "rank", "it", ""])
def test_a_part_of_several_runs_or_of_none_names_no_run(name):
    with pytest.raises(NotFound, match="no run or recording"):
        subject_of(name, "/", RECORDINGS)
