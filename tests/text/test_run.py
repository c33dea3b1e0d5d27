"""The phases as lines for a terminal."""

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.sections import MAX_LINES, phase_lines
from tb_bottleneck.text.terminal import Layout

S = 1_000_000_000


def run_of(*parts: tuple[int, str, float, str]) -> pb.Report:
    report, begin = pb.Report(), 1_700_000_000 * S
    for seconds, title, share, severity in parts:
        end = begin + seconds * S
        report.phases.add(begin_ns=begin, end_ns=end, title=title, share=share, severity=severity)
        begin = end
    return report


def test_one_line_has_time_regime_and_share():
    result = run_of((130, "Compute", 0.9, "none"), (3600, "Waiting for data", 0.4, "critical"))
    assert Layout(80).text(phase_lines(result)).splitlines() == [
        "     0:00 to 2:10  Compute           90 %",
        "  2:10 to 1:02:10  Waiting for data  40 %  critical",
    ]


def test_a_single_phase_is_left_out_and_many_are_cut():
    assert list(phase_lines(run_of((60, "Compute", 0.9, "none")))) == []
    many = run_of(*[(60, "Compute", 0.9, "none")] * (MAX_LINES + 5))
    assert list(phase_lines(many))[-1] == "  and 5 more"
