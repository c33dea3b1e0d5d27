"""Dumps of torch's Flight Recorder: read as plain data, and the collective that not all ranks called alike."""

import io
import json
import os
import pickle
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from live.beats import NOW_S, beat, still, write

from tb_bottleneck.live.collectives import first_divergence
from tb_bottleneck.live.state import LiveJobs
from tb_bottleneck.sources.flight_recorder import Dump, dumps_in, read_dump

RANKS = 3


def entry(sequence: int, name: str = "nccl:all_reduce", state: str = "completed", **changes: Any) -> dict[str, Any]:
    """Returns an entry as torch writes it (FlightRecorder.hpp, version 2.10)."""
    return {
        "record_id": sequence,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": sequence,
        "p2p_seq_id": 0,
        "op_id": sequence,
        "profiling_name": name,
        "time_created_ns": 10**18 + sequence,
        "input_sizes": [[64, 256]],
        "input_dtypes": ["Float"],
        "output_sizes": [[64, 256]],
        "output_dtypes": ["Float"],
        "state": state,
        "time_discovered_started_ns": 1,
        "time_discovered_completed_ns": 2,
        "retired": state == "completed",
        "timeout_ms": 600_000,
        "is_p2p": False,
        "frames": [{"name": "step", "filename": "train.py", "line": 50}],
    } | changes


def dump(entries: list[dict[str, Any]]) -> dict[str, Any]:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(RANKS)))}}
    return {"version": "2.10", "pg_config": config, "entries": entries}


def write_dumps(folder: Path, *entries: list[dict[str, Any]]) -> list[Dump]:
    folder.mkdir(exist_ok=True)
    for rank, each in enumerate(entries):
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(each), protocol=2))
    return dumps_in(str(folder))


USUAL = [entry(1), entry(2), entry(3, state="started")]
CASES = {
    "missing": ([USUAL, USUAL[:2], USUAL], (1,), "missing", 3),
    "two missing": ([USUAL, USUAL[:1], USUAL[:1]], (1, 2), "missing", 2),
    "another operation": ([USUAL, USUAL, [*USUAL[:2], entry(3, "nccl:all_gather", "started")]], (2,), "different", 3),
    "another size": ([USUAL, [entry(1), entry(2, input_sizes=[[1]]), USUAL[2]], USUAL], (1,), "different", 2),
    "not started": ([USUAL, USUAL, [*USUAL[:2], entry(3, state="scheduled")]], (2,), "not started", 3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_difference_is_named(tmp_path: Path, name: str) -> None:
    entries, ranks, kind, sequence = CASES[name]
    found = first_divergence(write_dumps(tmp_path, *entries))
    assert found is not None
    assert (found.ranks, found.kind, found.call.sequence) == (ranks, kind, sequence)
    assert found.call.place == "train.py:50"


def test_equal_ranks_and_cut_buffers_differ_in_nothing(tmp_path: Path) -> None:
    assert first_divergence(write_dumps(tmp_path / "equal", USUAL, USUAL, USUAL)) is None
    assert first_divergence(write_dumps(tmp_path / "cut", USUAL, USUAL[1:], USUAL)) is None


@pytest.mark.parametrize("name", ["missing", "two missing", "another operation", "another size"])
def test_torchs_own_tool_names_the_same_collective(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = pytest.importorskip("torch.distributed.flight_recorder.components.builder")
    entries, ranks, _, sequence = CASES[name]
    details = {
        str(rank): {"rank": rank, "host_name": "", **dump([dict(e) for e in each])} for rank, each in enumerate(entries)
    }
    arguments = SimpleNamespace(verbose=False, just_print_entries=False, allow_incomplete_ranks=False, mismatch_cap=10)
    with redirect_stdout(io.StringIO()):
        database = builder.build_db(details, arguments, "2.10")
    wrong = [each for each in database.collectives if each.missing_ranks or not each.pass_check]
    first = min(wrong, key=lambda each: each.collective_seq_id)
    assert first.collective_seq_id == sequence
    if first.missing_ranks:
        assert tuple(sorted(first.missing_ranks)) == ranks


def test_a_dump_of_this_torch_is_read(tmp_path: Path) -> None:
    """A process with Gloo writes one with torch itself."""
    import subprocess

    program = """
import os, sys
os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + "/store", rank=0, world_size=1)
for _ in range(3):
    dist.all_reduce(torch.ones(8))
open(sys.argv[1] + "/fr_rank_0", "wb").write(torch._C._distributed_c10d._dump_fr_trace())
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this torch writes no dump: {done.stderr[-200:]}")
    found = read_dump(str(tmp_path / "fr_rank_0"))
    assert found is not None
    assert len(found.calls) == 3
    assert all("all_reduce" in call.name or "allreduce" in call.name for call in found.calls)


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch /tmp/tb_bottleneck_was_executed",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80",
        b"{",
        pickle.dumps([1, 2]),
        pickle.dumps({"entries": 3}),
        pickle.dumps({"entries": [Evil()], "pg_config": {}}),
        json.dumps({"entries": [{"process_group": 5, "collective_seq_id": "x"}], "pg_config": []}).encode(),
        pickle.dumps(dump([entry(1, frames=[5], process_group=())])),
    ],
)
def test_hostile_dumps_cost_only_themselves(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "fr_rank_0").write_bytes(content)
    (tmp_path / "fr_rank_1").write_bytes(pickle.dumps(dump(USUAL)))
    assert [each.rank for each in dumps_in(str(tmp_path)) if each.calls] == [1]
    assert not Path("/tmp/tb_bottleneck_was_executed").exists()


def test_json_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "fr_rank_4.json").write_text(json.dumps(dump(USUAL)))
    (found,) = dumps_in(str(tmp_path))
    assert (found.rank, len(found.calls), found.groups["0"]) == (4, 3, (0, 1, 2))


def test_a_job_that_hangs_names_its_collective(tmp_path: Path) -> None:
    logdir = write(
        tmp_path, *(still(30, rank, "collective", 50, world_size=RANKS) for rank in range(2)), beat(2, RANKS)
    )
    write_dumps(logdir, USUAL, USUAL, USUAL[:2])
    write(logdir, still(31, 2, "data", 41, world_size=RANKS, began_unix_ns=(NOW_S - 900) * 1e9))
    (state,) = LiveJobs(str(logdir), clock=lambda: NOW_S).read()
    assert state.verdict.ranks == (2,)
    assert state.verdict.headline.endswith("Flight Recorder: rank 2 did not call nccl:all_reduce number 3 of group 0.")
