"""A run without a problem gets its next limit and its distances to limits; another run gets none of it."""

import pytest
from helpers.draw import drawn_trace
from helpers.drawn_gpt import Gpt

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.knowledge.gpus import gpu_named, known_names
from tb_bottleneck.knowledge.texts import larger_device_names
from tb_bottleneck.measures.efficiency.headroom import all_reduce_ns, distances, gradient_bytes, larger_device
from tb_bottleneck.report.efficiency.headroom import headroom_of
from tb_bottleneck.report.rendering.details import headroom_lines
from tb_bottleneck.schema import bottleneck_pb2 as pb
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


@pytest.mark.parametrize("changes", [{"severity": "warning"}, {"severity": "info"}, {"regime": "unexplained"}])
def test_only_a_run_without_a_problem_has_headroom(gpt, changes):
    assert not headroom_of(report_of(**changes), gpt)


def test_the_next_limit_is_the_largest_other_regime(gpt):
    (only,) = headroom_of(report_of(), None)  # telemetry
    assert (only.kind, only.title) == ("next_limit", "The next limit: launch overhead")
    assert only.evidence[0].value == pytest.approx(0.2)


def test_more_devices_exchange_the_gradients(gpt):
    sizes = Gpt().layers * Gpt().block_weights + Gpt().vocabulary * Gpt().width
    found = gradient_bytes(gpt)
    assert found.value == pytest.approx(2 * sizes)  # bf16
    ring = all_reduce_ns(gpu_named("NVIDIA A100-SXM4-80GB"), found.value)
    assert ring.value == pytest.approx(2 * 7 / 8 * 2 * sizes / 300)  # an A100 sends 300 GB/s
    kinds = {item.kind for item in headroom_of(report_of(), gpt)}
    assert {"situation", "next_limit", "more_devices"} <= kinds


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


def test_distances_are_of_operators_and_at_most_the_window(gpt):
    found = distances(gpt)
    assert found[0].operator in ("aten::mm", "aten::addmm")
    assert all(0 <= one.beyond <= one.share <= 1 and 0 <= one.reached <= 1 for one in found)
    assert found == sorted(found, key=lambda one: -one.beyond)


def test_a_faster_device_helps_only_the_kernels_that_fill_this_one():
    recording = recording_of(drawn_trace(BUSY))
    device = larger_device(recording)
    assert device.name == "H100 SXM"
    assert device.arithmetic == pytest.approx(494.5 / 156)  # tf32
    busy = 1 - device.unchanged
    assert device.speedup == pytest.approx(1 / (1 - busy + busy * 156 / 494.5))


def test_a_faster_device_waits_for_the_same_traffic():
    """Collectives of seven of ten columns are hidden here, and not behind products that take a third of the time."""
    hidden = BUSY + "    nccl    .nnnnnnn...mmmmmmm...ooooooo.."
    assert larger_device(recording_of(drawn_trace(hidden))).speedup == pytest.approx(10 / 7, rel=0.02)


def test_an_unknown_device_has_no_faster_one():
    properties = [{"id": 0, "name": "NVIDIA X999", "numSms": 108}]
    assert isinstance(larger_device(recording_of(drawn_trace(BUSY, deviceProperties=properties))), Missing)


def test_the_faster_devices_are_listed():
    assert set(larger_device_names()) <= set(known_names())


def test_the_section_explains_each_kind_once(gpt):
    items = headroom_of(report_of(), gpt)
    text = "\n".join(headroom_lines(items))
    assert text.count("Where headroom remains") == 1
    assert text.count("No known fix reaches the roof") == min(1, sum(item.kind == "operator" for item in items))
    assert not list(headroom_lines([]))
