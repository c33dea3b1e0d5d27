"""A run of a comparison: for each rank the last good recording, and all ranks together."""

import pytest
from comparison.drawn_runs import judged, recorded, repeated

from tb_bottleneck.comparison.runs.compared_run import ComparedRun, UnjudgedRun, judge_run
from tb_bottleneck.schema import bottleneck_pb2 as pb

SHORT = repeated(9, loader="####....", gpu="....##..")
LONG = repeated(9, loader="####........", gpu="....####....")


def rank(number):
    return {"distributedInfo": {"backend": "nccl", "rank": number, "world_size": 2}}


def test_the_account_sums_to_the_step(tmp_path):
    run = judged(tmp_path, SHORT)
    assert sum(run.ns.values()) == run.step_ns == pytest.approx(float(run.durations.mean()), rel=1e-9)


def test_of_several_recordings_of_one_rank_the_last_is_taken(tmp_path):
    run = judge_run("run", [recorded(tmp_path, SHORT), recorded(tmp_path, LONG)])
    assert isinstance(run, ComparedRun)
    assert run.step_ns == pytest.approx(1.2e6, rel=0.01)


def test_a_recording_that_was_cut_off_does_not_take_the_place_of_a_good_one(tmp_path):
    run = judge_run("run", [recorded(tmp_path, SHORT), recorded(tmp_path, "step a\nop #")])
    assert isinstance(run, ComparedRun)
    assert run.step_ns == pytest.approx(0.8e6, rel=0.01)


def test_ranks_are_taken_together(tmp_path):
    run = judge_run("run", [recorded(tmp_path, SHORT, **rank(0)), recorded(tmp_path, LONG, **rank(1))])
    assert isinstance(run, ComparedRun)
    assert [report.rank for report in run.reports] == [0, 1]
    assert run.step_ns == pytest.approx(1.0e6, rel=0.01)
    assert run.causes[0] == "loader_in_main_process"


def test_a_run_without_a_verdict_says_why(tmp_path):
    path = tmp_path / "broken.pt.trace.json"
    path.write_text("no json")
    found = judge_run("run", [str(path)])
    assert isinstance(found, UnjudgedRun)
    assert found.because[0].startswith("run is unreadable")


@pytest.mark.parametrize(("same_folder", "named"), [(False, True), (True, False)])
def test_what_the_telemetry_alone_found_is_among_the_causes(tmp_path, same_folder, named):
    """Of one process, the trusted evidence source names the causes, as in its diagnosis."""
    telemetry = pb.Report(evidence_source="telemetry", verdict=pb.Verdict(regime="compute", severity="none"))
    telemetry.findings.add(cause="small_operators", regime="launch", cost_share=0.9)
    file = str(tmp_path / "events.out.tfevents.1") if same_folder else str(tmp_path / "other" / "events.out.tfevents.1")
    run = judge_run("run", [recorded(tmp_path, SHORT)], None, [(file, telemetry)])
    assert isinstance(run, ComparedRun)
    assert ("small_operators" in run.causes) == named


def test_problems_of_the_memory_are_among_the_causes(tmp_path):
    run = judged(tmp_path, SHORT)
    for severity, headline in (("critical", "Each step keeps a graph."), ("info", "")):
        run.report.memory.findings.add(cause=f"of_{severity}", severity=severity, headline=headline)
    assert "of_critical" in run.causes
    assert "of_info" not in run.causes


def test_what_the_monitor_logged_is_known_of_the_recording(tmp_path):
    """With two processes, the context of this rank is used; the trace's own context takes precedence."""
    said = {"tb_bottleneck": '{"schema": 1, "context": {"torch_threads": 4}}'}
    logged = [{"rank": 0.0, "workers": 2.0, "torch_threads": 8.0}, {"rank": 1.0, "workers": 6.0}]
    run = judge_run("run", [recorded(tmp_path, SHORT, **said)], None, (), logged)
    assert isinstance(run, ComparedRun)
    context = run.recording.trace.header.context
    assert context == {"rank": 0, "workers": 2, "torch_threads": 4}
    assert isinstance(context["workers"], int)
