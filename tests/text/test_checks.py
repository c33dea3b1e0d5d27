"""A single gain does not show how fixes interact: the report adds a note."""

import pytest

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.verdict import note_of


def report_of(plan, **alone):
    report = pb.Report()
    for cause, expected in alone.items():
        report.findings.add(cause=cause, speedup=pb.Speedup(basis="replay", expected=expected))
    for cause, total in plan:
        report.plan.add(cause=cause, title=f"fix {cause}", speedup_total=total)
    return report


def notes(report):
    return [note_of(report, finding) for finding in report.findings]


def test_faster_kernels_gain_little_while_the_host_is_late_and_much_after_its_fix():
    report = report_of([("small_kernels", 1.24), ("fp32_matmul", 2.24)], fp32_matmul=1.02, small_kernels=1.24)
    first, second = notes(report)
    assert first == (
        'Alone this gains little, because other causes delay the device. After "fix small_kernels" it gains 1.81x.'
    )
    assert second == ""


def test_a_fix_that_saves_the_same_time_in_a_shorter_step_gets_no_note():
    assert notes(report_of([("fp32_matmul", 1.96), ("first_runs", 2.8)], first_runs=1.14)) == [""]


def test_a_fix_that_frees_the_same_time_as_another_gets_a_note():
    report = report_of([("small_kernels", 2.0)], loader_in_main_process=1.33, optimizer_for_loop=1.01, no_graph=1.99)
    assert notes(report) == [
        '"fix small_kernels" saves this time as well: after that, this fix gains nothing more.',
        "",  # it would gain nothing anyway
        "",  # it has the fix of the plan
    ]


@pytest.mark.parametrize("basis", ["bound", "none"])
def test_gains_that_were_not_simulated_get_no_note(basis):
    report = report_of([("small_kernels", 2.0)], fp32_matmul=1.02)
    report.findings[0].speedup.basis = basis
    assert notes(report) == [""]
