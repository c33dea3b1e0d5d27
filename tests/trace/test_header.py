"""The header contains only safe values of the right type."""

import json

import pytest

from tb_bottleneck.trace.header import MAX_DEVICES, ProcessGroup, read_header

WRONG = [None, True, 7, -1, 1.5, float("nan"), "x", "", [], [None], {}, {"a": 1}, [[]], 2**64]


def test_what_is_read():
    header = read_header({
        "deviceProperties": [{"id": 1, "name": "NVIDIA H100", "numSms": 132}, {"id": 0, "name": "", "numSms": 0}],
        "distributedInfo": {"rank": 3, "world_size": 8, "backend": "nccl"},
        "with_stack": 1,
        "hip_runtime_version": 60200,
        "tb_bottleneck": {"context": {"torch": "2.13"}},
    })  # fmt: skip
    assert [(device.index, device.name, device.multiprocessors) for device in header.devices] == [
        (1, "NVIDIA H100", 132),
        (0, "", None),
    ]
    assert (header.rank, header.world_size, header.backend, header.distributed) == (3, 8, "nccl", True)
    assert (header.stacks_recorded, header.rocm) == (True, True)
    assert header.context == {"torch": "2.13"}


def test_devices_are_found_by_their_index():
    header = read_header({"deviceProperties": [{"id": 1, "name": "b"}, {"name": "by place"}]})
    assert header.device(1) is header.devices[0]
    assert header.device(7) is None


def test_an_empty_header():
    header = read_header({})
    assert (header.devices, header.distributed, header.rank, header.world_size) == ((), False, None, None)
    assert header.backend == ""
    assert (header.stacks_recorded, header.rocm, header.context) == (False, False, {})


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("key", ["deviceProperties", "distributedInfo", "with_stack", "tb_bottleneck"])
def test_wrong_types_are_left_out(key, wrong):
    header = read_header({key: wrong})
    assert (header.rank, header.world_size, header.backend, header.context) == (None, None, "", {})
    assert header.stacks_recorded is (key == "with_stack" and wrong is True)


@pytest.mark.parametrize("wrong", [*WRONG, "\ud800"], ids=repr)
def test_wrong_types_one_level_down_are_left_out(wrong):
    about = dict.fromkeys(("rank", "world_size", "backend"), wrong)
    device = dict.fromkeys(("id", "name", "numSms"), wrong)
    header = read_header({
        "distributedInfo": about, "deviceProperties": [device, wrong], "tb_bottleneck": json.dumps({"context": wrong}),
    })  # fmt: skip
    good = 7 if wrong == 7 and wrong is not True else None
    assert (header.rank, header.world_size) == (good, good)
    assert header.backend == ("x" if wrong == "x" else "?" if wrong == "\ud800" else "")
    assert header.context == (wrong if isinstance(wrong, dict) else {})
    assert header.devices[0].multiprocessors == good
    header.devices[0].name.encode()


def test_very_long_lists_and_names_are_cut():
    devices = [{"name": "x" * 10_000}] * (MAX_DEVICES + 1)
    header = read_header({"deviceProperties": devices, "distributedInfo": {"backend": "x" * 10_000}})
    assert len(header.devices) == MAX_DEVICES
    assert (len(header.devices[0].name), len(header.backend)) == (200, 40)


def test_context_as_text():
    assert read_header({"tb_bottleneck": '{"context": {"a": 1}}'}).context == {"a": 1}
    assert read_header({"tb_bottleneck": "[" * 100_000}).context == {}


def test_private_keys_are_nowhere_in_it():
    secret = "hunter2"
    raw = {"host_name": secret, "trace_id": secret, "user": {"x": secret}, "distributedInfo": {"pg_config": secret}}
    assert secret not in repr(read_header(raw))


@pytest.mark.parametrize(
    ("entry", "multiprocessors"),
    [
        ({"numSms": 108, "maxThreadsPerMultiprocessor": 2048}, 108),
        ({"maxThreadsPerMultiprocessor": 132}, 132),
        ({"maxThreadsPerMultiprocessor": 2048}, None),
        ({"numSms": 0}, None),
        ({"maxThreadsPerMultiprocessor": 0}, None),
    ],
)
def test_multiprocessors_under_either_name(entry, multiprocessors):
    (device,) = read_header({"deviceProperties": [entry]}).devices
    assert device.multiprocessors == multiprocessors


def test_versions_of_libraries_are_whole_numbers_or_not_there():
    raw = {"cuda_runtime_version": 12040, "cuda_driver_version": "12.8", "hip_runtime_version": -1, "nccl_version": 1}
    assert read_header(raw).versions == {"cuda_runtime_version": 12040}


def test_process_groups_the_clock_and_the_host_are_read():
    groups = [
        {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]},
        {"pg_name": 7, "ranks": [0, "1", -1]},
        "x",
    ]
    raw = {"distributedInfo": {"pg_config": groups}, "baseTimeNanoseconds": 5, "host_name": "node17"}
    header = read_header(raw)
    assert header.groups == (ProcessGroup("0", "default_pg", (0, 1), 2), ProcessGroup("", "", (0,), 1))
    assert header.base_time_ns == 5
    assert len(header.host) == 16
    assert "node17" not in repr(header), "the name of a host is private"
    assert read_header({"host_name": "node17"}).host == header.host != read_header({"host_name": "node18"}).host


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_wrong_types_of_groups_clock_and_host_are_left_out(wrong):
    header = read_header({"distributedInfo": {"rank": 0, "pg_config": wrong}, "baseTimeNanoseconds": wrong})
    assert header.groups == ()
    assert header.base_time_ns == (7 if wrong == 7 and wrong is not True else 0)
    header = read_header({"host_name": wrong, "distributedInfo": {"pg_config": [{"pg_size": wrong, "ranks": wrong}]}})
    assert bool(header.host) == (wrong == "x")
    assert len(header.groups) == 1


@pytest.mark.parametrize(
    ("written", "read"), [(85899345920, 85899345920), (0, None), (-1, None), (2**60, None), ("x", None)]
)
def test_the_memory_of_a_device_is_read(written, read):
    header = read_header({"deviceProperties": [{"id": 0, "name": "A100", "totalGlobalMem": written}]})
    assert header.devices[0].memory == read
