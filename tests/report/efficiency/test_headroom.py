"""A run without a problem is told small fixes, and what more devices bring; another run is told none of it."""

import pytest
from helpers.draw import drawn_trace
from helpers.drawn_gpt import Gpt

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.report.efficiency import headroom
from tb_bottleneck.report.efficiency.headroom import all_reduce_ns, gradient_bytes, headroom_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.sections import headroom_lines
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

BUSY = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##........##........##........
    gpu     .aaaaaaaa..aaaaaaaa..aaaaaaaa.
"""


def recording_of(trace):
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    return recording_of(load(Gpt().write(tmp_path_factory.mktemp("gpt"))))


def report_of(**changes):
    shares = [pb.AccountRow(regime="compute", share=0.8, title="Compute")]
    shares += [pb.AccountRow(regime="launch", share=0.2, title="Launch overhead")]
    verdict = {"regime": "compute", "title": "Compute", "severity": "none"} | changes
    return pb.Report(verdict=pb.Verdict(**verdict), account=shares)


def test_the_report_of_a_trace_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr(headroom, "headroom_of", lambda *inputs: [pb.Headroom(kind="more_devices")])
    report = diagnose(str(Gpt().write(tmp_path)))
    assert [item.kind for item in report.headroom] == ["more_devices"]


@pytest.mark.parametrize("changes", [{"severity": "warning"}, {"severity": "info"}, {"regime": "unexplained"}])
def test_only_a_run_without_a_problem_has_headroom(gpt, changes):
    assert not headroom_of(report_of(**changes), gpt)


def test_more_devices_exchange_the_gradients(gpt):
    sizes = Gpt().layers * Gpt().block_weights + Gpt().vocabulary * Gpt().width
    found = gradient_bytes(gpt)
    assert found.value == pytest.approx(2 * sizes)  # bf16
    ring = all_reduce_ns(gpu_named("NVIDIA A100-SXM4-80GB"), found.value)
    assert ring.value == pytest.approx(2 * 7 / 8 * 2 * sizes / 300)  # an A100 sends 300 GB/s
    assert "more_devices" in {item.kind for item in headroom_of(report_of(), gpt)}


TRAINED = """
    step      aaaaaaaaaabbbbbbbbbbcccccccccc
    dispatch  ##........##........##........
    gpu       .aaaaaaaa..aaaaaaaa..aaaaaaaa.
"""


def more_devices(found):
    return [{row.label: row.value for row in item.evidence} for item in found if item.kind == "more_devices"]


@pytest.mark.parametrize(
    ("drawing", "context", "world_size", "shown"),
    [
        (TRAINED, {}, 1, [{}]),
        (TRAINED, {"parameters_by_dtype": {"float32": 1e6, "bfloat16": 1e6}}, 1, [6e6]),
        (TRAINED, {"parameters_by_dtype": {"quint4x2": 1e6}}, 1, [{}]),
        (TRAINED, {}, 8, []),
        (BUSY, {}, 1, []),
    ],
    ids=["size unknown", "parameters counted", "type unknown", "several devices already", "inference"],
)
def test_a_training_on_one_device_may_use_more_without_recorded_gradients(drawing, context, world_size, shown):
    header = {"tb_bottleneck": {"context": context}, "distributedInfo": {"rank": 0, "world_size": world_size}}
    found = more_devices(headroom_of(report_of(), recording_of(drawn_trace(drawing, **header))))
    assert [each.get("parameters, as many bytes as their gradients", {}) for each in found] == shown


@pytest.mark.parametrize(("kind", "parameters", "shown"), [("cuda", 6e6, 1), ("cuda", None, 0), ("cpu", 6e6, 0)])
def test_a_healthy_run_with_telemetry_only_may_use_more_devices(kind, parameters, shown):
    report = report_of()
    report.device.kind, report.device.name = kind, "NVIDIA A100-SXM4-80GB"
    found = more_devices(headroom_of(report, None, parameters))
    assert len(found) == shown
    assert all(len(each) == 2 for each in found), "the bytes, and the time to sum them"


def test_the_section_is_text(gpt):
    items = headroom_of(report_of(), gpt)
    text = "\n".join(headroom_lines(items))
    assert text.count("Where headroom remains") == 1
    assert not list(headroom_lines([]))
