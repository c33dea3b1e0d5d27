"""A summary has the communications of a rank, and splits the rest of its time into own work and waits."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.draw import drawn
from jobs.summary.drawn_summaries import JOB, MS, WAITING, summary

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.jobs.execution.rank_analysis import Task, analyse
from tb_bottleneck.jobs.summary.encoding import decode
from tb_bottleneck.jobs.summary.extract import summary_of
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load


def test_the_rank_waits_for_a_collective_that_work_is_queued_behind():
    found = summary(WAITING)
    assert found.facts.rank == 1
    assert found.steps == 2, "the first step is left out"
    resumes = found.points.resumes == 1
    assert (found.points.time[resumes] / MS).tolist() == pytest.approx([12, 33])
    waited = np.diff(found.points.time, prepend=0) - found.own.sum(axis=1)
    assert (waited[resumes] / MS).tolist() == pytest.approx([8, 6])
    assert (waited[~resumes]).tolist() == [0, 0]
    assert found.own[~resumes][0, Own.DEVICE] == 4 * MS


def test_a_rank_that_has_launched_nothing_does_not_wait():
    """The product after the collective is launched 3 ms after its end: the host was late by itself."""
    found = summary("""
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    launch  ||.............|....||.............|....
    gpu     .######..........##..######..........##.
    nccl    .......######...........######..........
    """)
    assert not found.points.resumes[found.points.communication == 0].any()
    assert len(found.communications) == 2


def test_a_wait_begins_when_the_work_behind_it_was_launched():
    """The host launches the product 3 ms after the device became idle: that would remain without a wait."""
    found = summary("""
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    launch  ||........|.........||........|.........
    gpu     .######......##......######......##.....
    nccl    .......######........######.............
    """)
    resumes = found.points.resumes == 1
    waited = np.diff(found.points.time, prepend=0) - found.own.sum(axis=1)
    assert (waited[resumes] / MS).tolist()[:1] == pytest.approx([3])
    assert found.own[resumes][0, Own.HOST] == 3 * MS


def test_a_blocked_host_waits_for_the_whole_collective_even_if_it_returns_with_it():
    """Old traces have whole microseconds: the blocked call ends when the collective does."""
    found = summary("""
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    sync    .......######..............######.......
    gpu     .######......##......######......##.....
    nccl    .......######..............######.......
    """)
    resumes = found.points.resumes == 1
    waited = np.diff(found.points.time, prepend=0) - found.own.sum(axis=1)
    assert (waited[resumes] / MS).tolist()[:1] == pytest.approx([6])


def test_the_account_of_the_steps_sums_to_the_window():
    found = summary(WAITING)
    assert found.account.sum() == found.edges[-1]
    assert (np.diff(found.edges) == found.account.sum(axis=1)).all()


def test_a_recording_of_one_rank_alone_has_no_summary():
    assert summary(WAITING, distributedInfo={"rank": 0, "world_size": 1}) is None
    assert summary(WAITING, distributedInfo={}) is None
    assert summary(WAITING, distributedInfo={"rank": 5, "world_size": 2}) is None


@pytest.fixture(scope="module")
def traces():
    folder = os.environ.get("TB_BOTTLENECK_TRACES")
    if not folder:
        pytest.skip("TB_BOTTLENECK_TRACES names no folder")
    return Path(folder)


def of_file(path):
    trace = load(str(path))
    return summary_of(Recording(trace, find_steps(trace)))


def test_arguments_of_nccl_are_read_from_a_real_trace(traces):
    found = of_file(traces / "hta_ddp_a100_ws2_ncclmeta.json.gz")
    assert [(group.name, group.description, group.ranks) for group in found.groups] == [("0", "default_pg", (0, 1))]
    rows = found.communications
    assert (found.numbers, np.bincount(rows.step).tolist()) == ((5, 6), [7, 7])
    first = [Operation.BROADCAST] * 2 + [Operation.ALL_REDUCE] * 5
    assert rows.operation.tolist() == first * 2
    assert rows.bytes[2] == 2049000 * 4


def test_old_traces_have_annotations_only(traces):
    found = of_file(traces / "hta_dlrm128_sampled__rank0.json.gz")
    assert found.communications.bytes.tolist()[:3] == [384 * 8, 419430400, 19618307 * 4]
    assert set(found.communications.operation.tolist()) == {
        Operation.ALL_TO_ALL, Operation.ALL_REDUCE, Operation.ALL_GATHER,
    }  # fmt: skip


def test_the_default_name_of_a_file_tells_the_host(tmp_path):
    """torch.profiler's default name has it; recorders may state it in the recording, and then that counts."""
    hosts = {}
    for name, stated in (("a_1", {}), ("a_2", {}), ("b_3", {}), ("a_4", {"host_name": "b"}), ("trace", {})):
        path = tmp_path / f"{name}.1764000000000.pt.trace.json"
        path.write_text(json.dumps(drawn(WAITING, 1000, **JOB, **stated)))
        hosts[name] = decode(analyse(Task(str(path), ".", cache=False)).summary).facts.host
    assert hosts["a_1"] == hosts["a_2"] != ""
    assert hosts["b_3"] == hosts["a_4"] not in (hosts["a_1"], "")
    assert hosts["trace"] == ""


def event(category, name, at, length, stream=None, **args):
    pid, tid = (1, 1) if stream is None else (0, stream)
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": length, "args": args}


def message(name, **peer):
    group = {"Process Group Name": "3", "Process Group Ranks": "[0, 1, 2, 3]", "dtype": "Float"}
    return {"Collective name": name, "In msg nelems": 10, "Out msg nelems": 10, **group, **peer}


def test_a_batch_of_messages_is_one_kernel_that_links_all_peers(tmp_path):
    """The kernel of batch_isend_irecv is launched after the operators of its messages, and has no arguments."""
    events = []
    for step in range(4):
        base = step * 100
        events += [
            event("user_annotation", f"ProfilerStep#{step}", base, 100),
            event("cpu_op", "record_param_comms", base + 10, 4, **message("send", **{"Dst Rank": 2})),
            event("cpu_op", "record_param_comms", base + 15, 4, **message("recv", **{"Src Rank": 0})),
            event("user_annotation", "nccl:coalesced", base + 30, 10),
        ]
        for number, (name, at, end, stream) in enumerate((("ncclDevKernel_SendRecv", 40, 60, 20), ("gemm", 62, 90, 7))):
            link = 1 + 2 * step + number
            events += [
                event("cuda_runtime", "cudaLaunchKernel", base + 32 + 10 * number, 2, correlation=link),
                event("kernel", name, base + at, end - at, stream, device=0, correlation=link),
            ]
    path = tmp_path / "t.json"
    header = {"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 4}}
    path.write_text(json.dumps({**header, "traceEvents": events}))
    rows = of_file(path).communications
    assert rows.operation.tolist()[:2] == [Operation.SEND, Operation.RECV]
    assert rows.peer.tolist()[:2] == [2, 0]
    assert rows.bytes.tolist()[:2] == [40, 40]
    assert rows.start[0] == rows.start[1]
    assert rows.end[0] == rows.end[1]


def pipeline_step(base, begins_early):
    """A stage that computes, receives a message of 50 us, and computes with it. Only the kernel has the arguments."""
    kernels = (("gemm", 10, 30, 7, {}), ("ncclDevKernel_SendRecv", 30, 80, 20, message("recv", **{"Src Rank": 0})))
    events = [event("user_annotation", f"ProfilerStep#{base // 100}", base, 100)]
    for number, (name, at, end, stream, args) in enumerate((*kernels, ("gemm", 80 - begins_early, 95, 7, {}))):
        link = 1 + base + number
        events += [
            event("cuda_runtime", "cudaLaunchKernel", base + 1 + 2 * number, 1, correlation=link),
            event("kernel", name, base + at, end - at, stream, device=0, correlation=link, **args),
        ]
    return events


@pytest.mark.parametrize("begins_early", [0, 0.9])
def test_a_kernel_has_the_arguments_that_its_operator_lacks(tmp_path, begins_early):
    """Converted recordings have no record_param_comms, and times that were measured on two streams."""
    path = tmp_path / "t.json"
    header = {"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 4}}
    events = [each for step in range(5) for each in pipeline_step(step * 100, begins_early)]
    path.write_text(json.dumps({**header, "traceEvents": events}))
    found = of_file(path)
    assert [(group.name, group.ranks) for group in found.groups] == [("3", (0, 1, 2, 3))]
    assert set(found.communications.operation.tolist()) == {Operation.RECV}
    assert set(found.communications.peer.tolist()) == {0}
    assert found.points.resumes.sum() == len(found.communications), "the second product waits for the message"
    assert found.own[found.points.resumes == 0][:, Own.HOST].max() <= 15_000, "the end of a step, not the message"


@pytest.mark.parametrize(
    ("annotation", "collective", "description", "found"),
    [
        ("FSDP::all_gather (layers.3)", "_allgather_base", "default_pg", "default_pg fsdp"),
        ("FSDP::post_backward_reduce (layers.3)", "allreduce", "mesh_dim_0", "mesh_dim_0 dp_replicate"),
        ("FullyShardedDataParallel._pre_forward", "_allgather_base", "", "fsdp"),
        ("FSDP::all_gather (layers.3)", "_allgather_base", "mesh_tp", "mesh_tp"),
        ("FSDP::all_gather (layers.3)", "broadcast", "default_pg", "default_pg"),
        ("my FSDP::all_gather", "_allgather_base", "default_pg", "default_pg"),
    ],
)
def test_a_group_is_described_by_the_annotations_of_its_collectives(
    tmp_path, annotation, collective, description, found
):
    events = []
    for step in range(5):
        base, args = step * 100, message(collective, **{"Process Group Description": description})
        events += [
            event("user_annotation", f"ProfilerStep#{step}", base, 100),
            event("user_annotation", annotation, base + 1, 20),
            event("cpu_op", "record_param_comms", base + 5, 10, **args),
            event("cuda_runtime", "cudaLaunchKernel", base + 7, 2, correlation=1 + step),
            event("kernel", "ncclDevKernel_X", base + 20, 40, 20, device=0, correlation=1 + step),
            event("cuda_runtime", "cudaLaunchKernel", base + 25, 2, correlation=101 + step),
            event("kernel", "gemm", base + 60, 30, 7, device=0, correlation=101 + step),
        ]
    path = tmp_path / "t.json"
    header = {"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 4}}
    path.write_text(json.dumps({**header, "traceEvents": events}))
    assert [group.description for group in of_file(path).groups] == [found]


def test_a_short_collective_after_a_long_wait_is_not_what_the_rank_waited_for(tmp_path):
    """It ends within two percent of the wait, which once cut it off, so that its ranks contradicted each other."""
    kernels = (
        ("gemm", 0, 100, 7, {}), ("ncclDevKernel_A", 100, 1100, 20, message("allreduce")),
        ("gemm", 1100, 1104, 7, {}), ("ncclDevKernel_A", 1104, 1112, 20, message("allreduce")),
        ("gemm", 1112, 1900, 7, {}),
    )  # fmt: skip
    events = []
    for step in range(5):
        base = step * 2000
        events.append(event("user_annotation", f"ProfilerStep#{step}", base, 2000))
        for number, (name, at, end, stream, args) in enumerate(kernels):
            link = 10 * step + number + 1
            events += [
                event("cuda_runtime", "cudaLaunchKernel", base + 1 + 2 * number, 1, correlation=link),
                event("kernel", name, base + at, end - at, stream, device=0, correlation=link, **args),
            ]
    path = tmp_path / "t.json"
    header = {"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 4}}
    path.write_text(json.dumps({**header, "traceEvents": events}))
    rows = of_file(path).communications
    assert ((rows.end - rows.start) // 1000).tolist()[:2] == [1000, 8]


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        (["aten::_flash_attention_backward", "aten::_scaled_dot_product_flash_attention_backward"], 6),
        (["autograd::engine::evaluate_function: FlashAttnFuncBackward", "FlashAttnFuncBackward"], 6),
        (["aten::_softmax_backward_data", "aten::_log_softmax_backward_data"], 6),
        (["aten::_flash_attention_forward", "aten::_softmax", "aten::_log_softmax_backward_data"], 0),
    ],
)
def test_gradients_of_attention_are_counted(tmp_path, operators, found):
    """Once per layer and microbatch, also if the operator calls another one for it."""
    events = []
    for step in range(4):
        events.append(event("user_annotation", f"ProfilerStep#{step}", step * 1000, 1000))
        for call in range(6):
            at = step * 1000 + 100 * call + 10
            for number, name in enumerate(operators):
                events.append(event("cpu_op", name, at + number, 50 - 2 * number))
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"distributedInfo": {"rank": 1, "world_size": 4}, "traceEvents": events}))
    assert of_file(path).facts.attentions == found
