"""The confidence in a conclusion: a single pause does not show how often it occurs in the run."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose

# The host prepares something for 10 ms: in one step of five, and in every one of them.
ONCE = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccccccccccccddddddddddeeeeeeeeee
    op      ##############################..........####################
    gpu     .aaaaaaaa..bbbbbbbb..cccccccc..........ddddddddd.eeeeeeeee.f
"""
EACH = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbccccccccccccccccccccdddddddddddddddddddd
    op      ##########..........##########..........##########..........##########..........
    gpu     .aaaaaaaa............bbbbbbbb............cccccccc............dddddddd...........
"""


BUSY_CPU = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      aaaaabbbbbaaaaabbbbbaaaaabbbbbaaaaabbbbb
"""


def test_the_limit_of_a_cpu_is_known_from_names_only(tmp_path):
    path = tmp_path / "cpu.pt.trace.json"
    path.write_text(json.dumps(drawn(BUSY_CPU, 1000, deviceProperties=[])))
    report = diagnose(str(path))
    assert (report.verdict.severity, report.verdict.confidence) == ("none", "medium")


@pytest.mark.parametrize(("drawing", "sure"), [(ONCE, "low"), (EACH, "high")])
def test_a_single_pause_lowers_the_confidence(tmp_path, drawing, sure):
    whole, path = drawn(drawing, 1000), tmp_path / "paused.pt.trace.json"
    kernels = [event for event in whole["traceEvents"] if event["cat"] == "kernel"]
    whole["traceEvents"] += [kernel | {"dur": 5, "tid": 9} for kernel in kernels]
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    assert report.verdict.regime == "host"
    assert report.verdict.confidence == sure
    assert "of the recorded time" in report.verdict.headline
