"""Tests the size of collectives' messages, the share hidden by compute, and the bandwidth of the link."""

import json

import pytest
from helpers.draw import drawn
from helpers.verdict_findings import first_of_verdict
from simulate.examine import measured
from simulate.kineto import DIALECTS, Recording
from simulate.problems import PROBLEMS
from simulate.workload import healthy

from tb_bottleneck.attribution.trace_recording import Recording as Measured
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.bottlenecks.communication.facts import (
    all_to_all_collectives,
    backend,
    buckets,
    bus_bandwidth,
    collective_bytes,
    collectives,
    collectives_after_backward,
    costliest_collective,
    data_parallel_devices,
    hidden_collectives,
    idle_during_other_devices,
    message_size,
    point_to_point_collectives,
    ranks,
    slot_bandwidth,
)
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

BUCKETS = healthy(1).but(buckets=3, bucket_ns=5_000_000, bucket_bytes=20_000_000)


def test_sizes_ranks_and_backend_are_those_of_the_recording():
    recording = measured(BUCKETS)
    assert collectives(recording).value == 3
    assert message_size(recording).value == 20_000_000
    assert collective_bytes(recording).value == 60_000_000
    assert (ranks(recording).value, backend(recording).text) == (8, "nccl")
    alone = measured(BUCKETS, Recording(DIALECTS[3]))
    assert isinstance(ranks(alone), Missing)
    assert isinstance(backend(alone), Missing)
    assert isinstance(bus_bandwidth(alone), Missing)


def test_the_link_rate_is_that_of_the_fastest_large_message():
    recording = measured(BUCKETS)
    fastest = bus_bandwidth(recording)
    names = {recording.trace.names[name] for name in recording.trace.device_ops.name.tolist()}
    factor = 2 if any("AllReduce" in name for name in names) else 1
    assert fastest.value == pytest.approx(factor * 7 / 8 * 20e6 / ((fastest.end - fastest.begin) / 1e9))
    assert slot_bandwidth(recording).value == pytest.approx(1.969e9 * 16 * 0.8)
    assert isinstance(bus_bandwidth(measured(BUCKETS.but(bucket_bytes=100_000))), Missing)


def test_collectives_amid_the_backward_pass_are_hidden_and_those_behind_it_are_late():
    overlapped = measured(BUCKETS.but(layers=20, bucket_ns=500_000, kernel_ns=700_000))
    assert hidden_collectives(overlapped).value > 0.6
    assert collectives_after_backward(overlapped).value < 0.1
    behind = measured(BUCKETS.but(late_buckets=True))
    assert hidden_collectives(behind).value < 0.05
    assert collectives_after_backward(behind).value == 1


def with_gloo(drawing, starts_ms, length_ms, unit_us=1000):
    """The drawing in columns of `unit_us`, with collectives on Gloo's own thread."""
    whole = drawn(drawing, unit_us)
    row = {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 100, "tid": 777}
    whole["traceEvents"] += [row | {"ts": start * 1000, "dur": length_ms * 1000} for start in starts_ms]
    return whole | {"distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}}


def read(tmp_path, whole):
    path = tmp_path / "gloo.pt.trace.json"
    path.write_text(json.dumps(whole))
    trace = load(str(path))
    recording = Measured(trace, find_steps(trace))
    assert {regime: recording.owned_spans.of(regime).total() for regime in REGIMES} == recording.account.ns
    return recording, diagnose(str(path))


def test_collectives_of_the_host_belong_to_communication_and_not_to_python(tmp_path):
    """Gloo's own threads exchange gradients from 2 to 7 ms; no row shows that the training thread waits for them."""
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      ####......####......####......
    """
    recording, report = read(tmp_path, with_gloo(drawing, (2, 12, 22), 5))
    assert recording.account.share("communication") == pytest.approx(0.3)
    assert recording.account.share("host") == pytest.approx(0.3)
    assert (collectives(recording).value, costliest_collective(recording).text) == (1, "gloo:all_reduce")
    assert hidden_collectives(recording).value == pytest.approx(0.4)
    assert "slow_backend" not in [finding.cause for finding in report.findings]  # on the CPU it is the right one


@pytest.mark.parametrize(("lasts_ms", "share"), [(0.2, 0.1), (0.5, 0.0)])
def test_a_short_wait_for_a_collective_is_no_dispatching(tmp_path, lasts_ms, share):
    """Gradients that were reduced one by one: 122 waits of less than half a millisecond were launch overhead.

    If the collective goes on after the pause, the training did not wait for it."""
    drawing = """
        step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
        op      ######...#########..######...#########..
    """
    recording, _ = read(tmp_path, with_gloo(drawing, (0.65, 2.65), lasts_ms, unit_us=100))
    assert recording.account.share("communication") == pytest.approx(share)


IN_ONE_EXCHANGE = """
    step     aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    dispatch abcdef....abcdef....abcdef....abcdef....
"""


def exchanges(starts_ms, length_ms, elements, wrapped=True):
    """Returns steps with a backward pass of 6 ms, and collectives of Gloo with so many elements."""
    whole = with_gloo(IN_ONE_EXCHANGE, starts_ms, length_ms) | {"deviceProperties": []}
    for event in whole["traceEvents"]:
        if event["name"] == "gloo:all_reduce":
            event["args"] = {"Input Dims": [[elements]], "Input type": ["float"], "Concrete Inputs": [""]}
    row = {"ph": "X", "cat": "user_annotation", "name": "DistributedDataParallel.forward", "pid": 100, "tid": 100}
    if wrapped:
        whole["traceEvents"] += [row | {"ts": step * 10_000, "dur": 5} for step in range(4)]
    return whole


def test_the_size_of_a_message_of_the_host_is_that_of_its_inputs(tmp_path):
    recording, _ = read(tmp_path, exchanges((6, 16, 26, 36), 3, 250_000))
    assert message_size(recording).value == 1_000_000
    assert collective_bytes(recording).value == 1_000_000


def test_many_small_messages_on_the_host_are_named(tmp_path):
    starts = [step * 10 + 6 + number / 10 for step in range(4) for number in range(30)]
    _, report = read(tmp_path, exchanges(starts, 0.09, 1000, wrapped=False))
    assert "small_messages" in [finding.cause for finding in report.findings]


def test_data_parallel_training_with_one_bucket_is_advised_several_and_never_to_replace_all_reduce(tmp_path):
    recording, report = read(tmp_path, exchanges((6, 16, 26, 36), 3, 250_000))
    assert buckets(recording).value == 1
    assert (report.findings[0].cause, report.verdict.severity) == ("one_bucket", "warning")
    assert "all_reduce" not in report.findings[0].fix.code


def test_collectives_after_the_backward_pass_without_data_parallel_are_not_overlapped(tmp_path):
    recording, report = read(tmp_path, exchanges((6, 16, 26, 36), 3, 250_000, wrapped=False))
    assert isinstance(buckets(recording), Missing)
    assert (report.findings[0].cause, report.verdict.severity) == ("no_overlap", "critical")


def test_a_thread_of_gloo_with_more_rows_than_the_training_is_not_the_main_thread(tmp_path):
    """Two exchanges in each step, after the operators: Gloo's thread has six annotations, the training has three."""
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      ####......####......####......
    """
    recording, _ = read(tmp_path, with_gloo(drawing, (4, 6, 14, 16, 24, 26), 2))
    assert recording.account.share("communication") == pytest.approx(0.4)
    assert recording.account.share("host") == pytest.approx(0.2)


def test_a_device_that_waits_for_collectives_of_the_host_has_the_wrong_backend(tmp_path):
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      ##.......###.......###.......#
        gpu     .aabb......ccdd......eeff.....
        small   .....s.........s.........s....
    """
    recording, report = read(tmp_path, with_gloo(drawing, (4, 14, 24), 5))
    assert sum(recording.account.ns.values()) == recording.account.window
    assert recording.account.share("communication") > 0.2
    assert (report.verdict.regime, report.findings[0].cause) == ("communication", "slow_backend")
    assert sum(row.share for row in report.account) == pytest.approx(1)


@pytest.mark.parametrize(
    ("result", "size"),
    [
        ({"In msg nelems": 1000, "Out msg nelems": 8000, "dtype": "BFloat16"}, 16_000),  # an all-gather's result
        ({"In msg nelems": "1000", "dtype": "Double"}, 8_000),
        ({"In msg nelems": 1000, "dtype": "Unheard"}, None),
        ({"In msg nelems": 1000, "dtype": ["Float"]}, None),
        ({"In msg nelems": -5, "dtype": "Float"}, None),
        ({"In msg nelems": 10**30, "dtype": "Float"}, None),
        ({"In msg nelems": {}, "dtype": "Float"}, None),
        ({}, None),
    ],
)
def test_the_size_of_a_message_is_its_larger_side_and_nonsense_is_none(tmp_path, result, size):
    whole = drawn("step aaaaaaaaaabbbbbbbbbbcccccccccc\nnccl .###.###..###.###..###.###..", 1000)
    for event in whole["traceEvents"]:
        if event["cat"] == "kernel":
            del event["args"]["bytes"]
            event["args"] |= result
    path = tmp_path / "m.pt.trace.json"
    path.write_text(json.dumps(whole))
    trace = load(str(path))
    found = message_size(Measured(trace, find_steps(trace)))
    assert (None if isinstance(found, Missing) else found.value) == size


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "exposed_collectives"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long)", "exposed_shards"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclWorkElem)", "exposed_shards"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "exposed_all_to_all"),
    ],
)
def test_what_to_do_about_a_collective_depends_on_who_needs_it(tmp_path, name, cause):
    whole = drawn(
        """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        gpu     .aabb.....ccdd......eeff......
        nccl    .....####......####......####.
    """,
        1000,
    )
    for event in whole["traceEvents"]:
        if "nccl" in event["name"]:
            event["name"] = name
    report = read(tmp_path, whole)[1]
    assert (report.verdict.regime, first_of_verdict(report).cause) == ("communication", cause)
    assert ("DistributedDataParallel" in first_of_verdict(report).fix.code) is (cause == "exposed_collectives")


def test_without_collectives_or_sizes_nothing_is_said():
    none, unsized = measured(healthy(1)), measured(BUCKETS.but(bucket_bytes=0))
    for measure in (message_size, collective_bytes, hidden_collectives, collectives_after_backward, bus_bandwidth):
        assert isinstance(measure(none), Missing)
    for measure in (message_size, collective_bytes, bus_bandwidth):
        assert isinstance(measure(unsized), Missing)


def test_one_process_that_drives_several_devices_is_seen_by_its_annotation():
    assert data_parallel_devices(measured(PROBLEMS["DataParallel"].make(1))).value == 2
    assert (
        data_parallel_devices(measured(healthy(1).but(devices=2))).value == 0
    )  # a model split over devices drives two as well
    assert data_parallel_devices(measured(healthy(1).but(data_parallel=True))).value == 0


SENDING = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      ########################################
    gpu     .aaaa......aaaa......aaaa......aaaa.....
    nccl    .....####......####......####......####.
"""


@pytest.mark.parametrize(
    ("asked", "named"),
    [("nccl:send 0->1", "pipeline_bubble"), ("nccl:coalesced", "pipeline_bubble"), ("nccl:all_to_all", None)],
)
def test_stages_of_a_pipeline_are_distinguished_from_all_to_all_exchanges(tmp_path, asked, named):
    """Both run the same kernel; the record_function of the operation differs."""
    whole, path = drawn(SENDING, 1000), tmp_path / "sent.pt.trace.json"
    mark = {"ph": "X", "cat": "user_annotation", "name": asked, "pid": 100, "tid": 100, "dur": 20}
    for event in list(whole["traceEvents"]):
        if "nccl" in event["name"]:
            event["name"] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
            whole["traceEvents"].append(mark | {"ts": event["ts"] - 10})
    path.write_text(json.dumps(whole))
    trace = load(str(path))
    recording = Measured(trace, find_steps(trace))
    assert all_to_all_collectives(recording).value == 1
    assert point_to_point_collectives(recording).value == (1 if named else 0)
    assert first_of_verdict(diagnose(str(path))).cause == (named or "exposed_all_to_all")


TWO_DEVICES = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      ########################################
    gpu     .aaaa......aaaa......aaaa......aaaa.....
    small   .....{0}.....{0}.....{0}.....{0}
"""


@pytest.mark.parametrize(("other", "turns"), [("####.", 0.4), (".....", None)])
def test_devices_that_take_turns_are_distinguished_from_slow_launches(tmp_path, other, turns):
    """The kernels of the row `small` run on a second device."""
    recording, report = on_two_devices(tmp_path, TWO_DEVICES.format(other))
    result = idle_during_other_devices(recording)
    assert (None if isinstance(result, Missing) else result.value) == (turns and pytest.approx(turns, abs=0.03))
    assert report.findings[0].cause == ("devices_take_turns" if turns else "small_kernels")


def test_devices_that_work_side_by_side_take_no_turns(tmp_path):
    drawing = TWO_DEVICES.replace(".....{0}.....{0}.....{0}.....{0}", ".#####.....#####.....#####.....#####....")
    recording, report = on_two_devices(tmp_path, drawing)
    assert idle_during_other_devices(recording).value == 0
    assert report.findings[0].cause == "small_kernels"


def on_two_devices(tmp_path, drawing):
    """The drawing with the kernels of `small` on a second device."""
    whole, path = drawn(drawing, 1000), tmp_path / "two.pt.trace.json"
    for event in whole["traceEvents"]:
        if event["args"].get("grid") == [1, 1, 1]:
            event["pid"] = event["args"]["device"] = 1
            event["args"]["grid"] = [1024, 1, 1]
    # Three kernels to one on the first device: the report is about it.
    kernels = [event for event in whole["traceEvents"] if event["cat"] == "kernel" and event["pid"] == 0]
    whole["traceEvents"] += [kernel | {"dur": 5, "tid": 9} for kernel in kernels for _ in range(2)]
    path.write_text(json.dumps(whole))
    trace = load(str(path))
    return Measured(trace, find_steps(trace)), diagnose(str(path))
