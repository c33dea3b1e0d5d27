"""The table of recordings: sorted, as wide as the terminal, and safe with names from anywhere."""

import pytest

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.table import table_text, table_values
from tb_bottleneck.text.table_rows import SORTS, recorded_at, rows_of, short_names
from tb_bottleneck.text.terminal import Layout


def report(run, source="host_1.1795283861864.pt.trace.json.gz", *, severity="critical", total=1.5, step=5e6):
    return pb.Report(
        run=run,
        source=source,
        health=pb.Health(status="ok"),
        device=pb.Device(name="NVIDIA H100 80GB HBM3", kind="cuda"),
        verdict=pb.Verdict(regime="input", title="Waiting for data", severity=severity, share=0.41),
        window=pb.Window(steps=3, step_ns=pb.Spread(mean=step, median=step)),
        plan=[pb.PlanStep(title="Let worker processes create the batches", speedup_total=total, low=1, high=total)],
    )


def unreadable(run):
    reasons = [pb.HealthReason(code="truncated")]
    return pb.Report(run=run, source="t.json", health=pb.Health(status="unreadable", reasons=reasons))


RUNS = [
    report("exp/a", total=1.1, step=9e6, severity="info"),
    report("exp/b", total=2.6, step=5e6, source="host_1.1795283861999.pt.trace.json.gz"),
    unreadable("exp/c"),
    report("exp/d", total=1.1, step=1e6, severity="critical"),
]


@pytest.mark.parametrize(
    ("sort", "order"),
    [("gain", "bdac"), ("step", "abdc"), ("severity", "bdac"), ("name", "abcd"), ("time", "bdac")],
)
def test_rows_are_sorted(sort, order):
    assert "".join(row.name[0] for row in rows_of(RUNS, sort)) == order
    assert sort in SORTS


def test_by_default_a_severe_problem_without_a_gain_goes_before_a_gain():
    leak = report("exp/leak", total=1.0, severity="none")
    del leak.plan[:], leak.findings[:]
    leak.verdict.memory_alert.MergeFrom(pb.MemoryAlert(severity="critical", title="Memory grows", leads=True))
    bound = report("exp/bound", total=1.6, severity="info")
    assert [row.report.run for row in rows_of([bound, leak])] == ["exp/leak", "exp/bound"]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 170, 200])
def test_no_row_is_wider_than_the_terminal(width):
    long = report("exp/" + "very_long_name_" * 20)
    lines = table_text(rows_of([*RUNS, long]), Layout(width)).splitlines()
    assert max(map(len, lines)) <= width
    assert any("…" in line for line in lines)
    assert any("Let worker" in line for line in lines)
    assert any("no verdict: truncated" in line for line in lines)


def test_a_narrow_terminal_leaves_out_columns_instead_of_cutting_names():
    names = ("garbage_collection/slow", "tensorboard_logging/slow")
    rows = rows_of([report(name, source="demo.json") for name in names])
    for width, columns in ((60, {"Severity", "To gain", "Step"}), (80, {"Severity", "To gain", "Step", "Share"})):
        head, *lines = table_text(rows, Layout(width)).splitlines()
        assert {line.split()[0] for line in lines[::2]} == {f"{name}/demo" for name in names}
        assert all(column in head for column in columns)
        assert "…" not in head
    assert "Health" in table_text(rows, Layout(100)).splitlines()[0]


def test_a_wider_terminal_shows_more_columns():
    run = report("exp/a")
    run.device.name = "NVIDIA H200"
    headers = {width: table_text(rows_of([run]), Layout(width)).splitlines()[0] for width in (70, 120, 160)}
    assert "Device" not in headers[70]
    assert headers[120].split().count("Device") == headers[120].split().count("Verdict") == 1
    assert "Memory" not in headers[120], "no recording has a memory"
    text = table_text(rows_of([run]), Layout(120))
    assert text.count("NVIDIA H200") == 1, "what has a column is not repeated below"
    assert "Let worker" in text


def test_severity_is_coloured_only_in_a_terminal():
    assert "\x1b[1;31mcritical\x1b[0m" in table_text(rows_of(RUNS), Layout(80, styled=True))
    assert "\x1b" not in table_text(rows_of(RUNS), Layout(80))


def test_a_bound_is_marked():
    bound = report("a")
    del bound.plan[:]
    bound.findings.add(title="Slow", speedup=pb.Speedup(expected=1.4, low=1, high=1.4, basis="bound"))
    assert "≤1.40x" in table_text(rows_of([bound]), Layout(80))


def test_json_has_whole_names_and_plain_numbers():
    (row,) = table_values(rows_of([report("exp/b", total=2.6)]))["trainings"]
    assert (row["run"], row["source"]) == ("exp/b", "host_1.1795283861864.pt.trace.json.gz")
    assert (row["share"], row["gain"], row["step_ns"], row["action"][:10]) == (0.41, 2.6, 5e6, "Let worker")


def test_names_do_not_control_the_terminal():
    assert "\x1b" not in table_text(rows_of([report("a|b\x1b[2J\n<img src=x>", source="`x`")]), Layout(80))


def test_shared_folders_are_dropped_and_names_stay_different():
    paths = [("team/exp/a/tb_bottleneck/20261121-160336_rank0_882", "events.out.tfevents.1795277016.1.0")]
    paths += [("team/exp/a", f"host_1.179528386186{end}.pt.trace.json.gz") for end in (1, 2)]
    paths += [("team/exp/b", "host_1.1795283861864411510.pt.trace.json"), ("team/exp/b", "plain.json")]
    names = short_names([pb.Report(run=run, source=source) for run, source in paths])
    assert names == ["a/telemetry", f"a/{paths[1][1]}", f"a/{paths[2][1]}", "b/host_1", "b/plain"]
    assert short_names([pb.Report(run=".", source="x.json")]) == ["x"]
    run = "runs/mine/tb_bottleneck/20261121-185735_rank0_1"
    alone = pb.Report(run=run, source="rank0_1.1795283861864.pt.trace.json.gz")
    assert short_names([alone]) == ["mine/rank0_1"], "its folder is the user's own name for it"


def test_the_time_of_a_recording_is_in_its_name():
    assert recorded_at("events.out.tfevents.1795277016.882.0") == 1795277016
    assert recorded_at("host_1.1795283861864411510.pt.trace.json.gz") == pytest.approx(1795283861.864)
    assert recorded_at("trace.json") is None


def test_long_names_that_begin_alike_are_shown_without_their_beginning():
    reports = [report(f"sweep-of-learning-rates-lr0.1-seed{seed}-slow") for seed in range(3)]
    lines = table_text(rows_of(reports), Layout(80)).splitlines()
    assert lines[0] == "Each name begins with sweep-of-learning-rates-lr0.1-"
    assert [any(line.startswith(f"seed{seed}-slow") for line in lines) for seed in range(3)] == [True] * 3
    short = table_text(rows_of([report("sweep-of-rates-a"), report("sweep-of-rates-b")]), Layout(80))
    assert "begins with" not in short
