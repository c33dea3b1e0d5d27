"""Dumps of torch's Flight Recorder: read as plain data, and the collective that not all ranks called alike."""

import io
import json
import os
import pickle
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.flight_recorder import RANKS, dump, entry
from live.beats import NOW_S, beat, still, write

from tb_bottleneck.__main__ import main
from tb_bottleneck.live.collectives import first_divergence
from tb_bottleneck.live.post_mortem import post_mortem
from tb_bottleneck.live.state import LiveJobs
from tb_bottleneck.sources.flight_recorder import Dump, dumps_in


def write_dumps(folder: Path, *entries: list[dict[str, Any]]) -> list[Dump]:
    folder.mkdir(exist_ok=True)
    for rank, each in enumerate(entries):
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(each), protocol=2))
    return dumps_in(str(folder))


def coalesced(sequence: int, rows: int = 5) -> list[dict[str, Any]]:
    """Returns two broadcasts that run as one all-gather of unequal parts."""
    parts = [entry(sequence, "nccl:_broadcast_oop", input_sizes=[[size]], output_sizes=[[size]]) for size in (4, rows)]
    return [*parts, entry(sequence, "nccl:ALLGATHER_coalesced", input_sizes=[[]], output_sizes=[[]])]


def all_to_all(sent: int, received: int) -> list[dict[str, Any]]:
    return [entry(2, "nccl:all_to_all", input_sizes=[[sent]], output_sizes=[[received]])]


USUAL = [entry(1), entry(2), entry(3, state="started")]
CASES = {
    "missing": ([USUAL, USUAL[:2], USUAL], (1,), "missing", 3),
    "two missing": ([USUAL, USUAL[:1], USUAL[:1]], (1, 2), "missing", 2),
    "another operation": ([USUAL, USUAL, [*USUAL[:2], entry(3, "nccl:all_gather", "started")]], (2,), "different", 3),
    "another size": ([USUAL, [entry(1), entry(2, input_sizes=[[1]]), USUAL[2]], USUAL], (1,), "different", 2),
    "not started": ([USUAL, USUAL, [*USUAL[:2], entry(3, state="scheduled")]], (2,), "not started", 3),
    "another type": ([USUAL, USUAL, [*USUAL[:2], entry(3, input_dtypes=["Half"])]], (2,), "different", 3),
    "another output": ([USUAL, [entry(1), entry(2, output_sizes=[[1]]), USUAL[2]], USUAL], (1,), "different", 2),
    "a part of a coalesced one": (
        [
            [entry(1), *coalesced(2, 5)],
            [entry(1), *coalesced(2, 5)],
            [entry(1), *coalesced(2, 4)],
        ],
        (2,),
        "different",
        2,
    ),
    "no part of a coalesced one": ([[*coalesced(1)], [*coalesced(1)], [coalesced(1)[0]]], (2,), "missing", 1),
    "an uneven all-to-all": ([USUAL[:1] + all_to_all(n, 4) for n in (4, 4, 5)], (0, 1, 2), "unequal", 2),
}
OF_TORCH = [name for name in CASES if name not in ("not started", "an uneven all-to-all")]


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


def test_an_even_all_to_all_of_unequal_parts_is_well(tmp_path: Path) -> None:
    assert first_divergence(write_dumps(tmp_path, *(all_to_all(n, 8 - n) for n in (3, 4, 5)))) is None


def test_a_dump_with_odd_numbers_is_read(tmp_path: Path) -> None:
    odd = entry(2, input_sizes=[[True, 1 << 70, 4]], collective_seq_id=1 << 80)
    dumps = write_dumps(tmp_path, [entry(1), odd, entry(3, input_sizes=[[True, 1 << 70, 4]])])
    assert [call.inputs for call in dumps[0].calls] == [((64, 256),), ((4,),)]


@pytest.mark.parametrize(
    "bad",
    [
        pickle.dumps(dump([entry(1, frames=[{"filename": "a.py", "line": "\ud800"}])])),
        b"\x80\x04}(" + b"K\x01" + b"\x85" * 2_000_000 + b"K\x01u.",  # a key so deep that its hash ends the process
    ],
    ids=["half a character", "a deep key"],
)
def test_a_bad_dump_costs_only_itself(tmp_path: Path, bad: bytes) -> None:
    write_dumps(tmp_path, [entry(1)], [entry(1)], [entry(1)])
    (tmp_path / "nccl_trace_rank_1").write_bytes(bad)
    assert {dump.rank for dump in dumps_in(str(tmp_path))} >= {0, 2}


def test_groups_of_one_name_are_told_apart_by_their_ranks(tmp_path: Path) -> None:
    """torch gives the groups of a split the same name; each rank has only its own."""
    for rank, members in enumerate(([0, 1], [0, 1], [2, 3], [2, 3])):
        calls = [entry(number) for number in range(1, 3 if members == [0, 1] else 4)]
        config = {"0": {"name": "0", "desc": "mesh_tp", "ranks": str(members)}}
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump(calls) | {"pg_config": config}))
    assert first_divergence(dumps_in(str(tmp_path))) is None


def test_distant_numbers_take_no_time(tmp_path: Path) -> None:
    distant = [entry(1), entry(10**17)]
    assert first_divergence(write_dumps(tmp_path, distant, distant, distant)) is None


@pytest.mark.parametrize("name", OF_TORCH)
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
    named = first.missing_ranks or first.mismatch_collectives
    assert tuple(sorted(named)) == ranks


GROUPS = {"0": [0, 1, 2, 3], "1": [0, 1], "2": [2, 3]}
DEFECTS = {
    "missing": lambda calls, at: calls[:at],
    "size": lambda calls, at: [*calls[:at], calls[at] | {"input_sizes": [[7]]}, *calls[at + 1 :]],
    "type": lambda calls, at: [*calls[:at], calls[at] | {"input_dtypes": ["Half"]}, *calls[at + 1 :]],
    "operation": lambda calls, at: [*calls[:at], calls[at] | {"profiling_name": "nccl:broadcast"}, *calls[at + 1 :]],
    "order": lambda calls, at: [
        *calls[:at],
        calls[at] | {"profiling_name": calls[at + 1]["profiling_name"]},
        calls[at + 1] | {"profiling_name": calls[at]["profiling_name"]},
        *calls[at + 2 :],
    ],
}


@pytest.mark.parametrize("seed", range(30))
def test_torchs_own_tool_agrees_on_drawn_sets(tmp_path: Path, seed: int) -> None:
    """Three groups, of which one has a defect; the buffer of one rank begins later."""
    builder = pytest.importorskip("torch.distributed.flight_recorder.components.builder")
    random = Random(seed)
    kind, group = list(DEFECTS)[seed % len(DEFECTS)], random.choice(list(GROUPS))
    culprit, late = random.choice(GROUPS[group]), random.randrange(4)
    details: dict[str, Any] = {}
    for rank in range(4):
        entries = []
        for number, name in enumerate(name for name, members in GROUPS.items() if rank in members):
            pairs = enumerate(("all_reduce", "all_gather", "reduce_scatter") * 4, start=1)
            of_group = {"process_group": (name, f"group {name}"), "pg_id": number}
            calls = [entry(at, f"nccl:{op}", **of_group) for at, op in pairs]
            if (rank, name) == (culprit, group):
                calls = DEFECTS[kind](calls, 9)
            entries += calls[random.randrange(4) if rank == late else 0 :]
        config = {name: {"name": name, "desc": "", "ranks": str(of)} for name, of in GROUPS.items() if rank in of}
        details[str(rank)] = {"version": "2.10", "pg_config": config, "entries": entries}
    for rank, each in details.items():
        (tmp_path / f"comm_lib_trace_rank_{rank}").write_bytes(pickle.dumps(each, protocol=2))
    found = first_divergence(dumps_in(str(tmp_path)))
    assert found is not None
    split = kind != "missing" and group != "0"  # of two ranks that differ, none is that of most
    assert (found.group, found.call.sequence) == (group, 10)
    assert found.ranks == (tuple(GROUPS[group]) if split else (culprit,))
    arguments = SimpleNamespace(verbose=False, just_print_entries=False, allow_incomplete_ranks=False, mismatch_cap=10)
    for rank, each in details.items():
        each |= {"rank": int(rank), "host_name": ""}
    with redirect_stdout(io.StringIO()):
        database = builder.build_db(details, arguments, "2.10")
    wrong = [each for each in database.collectives if each.missing_ranks or not each.pass_check]
    assert (f"{group}:group {group}", 10) in [(each.pg_desc, each.collective_seq_id) for each in wrong], wrong


GLOO = """
import os, sys
os.environ["TORCH_FR_BUFFER_SIZE"] = "100"
import torch, torch.distributed as dist
folder, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
for _ in range(3):
    dist.all_reduce(torch.ones(8))
if rank == 0:
    dist.all_reduce(torch.ones(9), async_op=True)
open(f"{folder}/fr_rank_{rank}", "wb").write(torch._C._distributed_c10d._dump_fr_trace())
os._exit(0)
"""


def test_dumps_of_this_torch_are_read_and_compared(tmp_path: Path) -> None:
    """Two processes with Gloo write them with torch itself; rank 1 does not call the fourth collective."""
    (tmp_path / "train.py").write_text(GLOO)
    command = [sys.executable, str(tmp_path / "train.py"), str(tmp_path)]
    processes = [subprocess.Popen([*command, str(rank)], stderr=subprocess.PIPE) for rank in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    if any(process.returncode for process in processes):
        pytest.skip(f"this torch writes no dump: {errors}")
    dumps = dumps_in(str(tmp_path))
    assert [len(each.calls) for each in dumps] == [4, 3]
    found = first_divergence(dumps)
    assert found is not None
    assert (found.ranks, found.kind, found.call.sequence) == ((1,), "missing", 4)
    assert found.call.place == f"{tmp_path}/train.py:10"


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


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_a_file_that_is_cut_is_a_rank_without_a_dump(tmp_path: Path, part: float) -> None:
    write_dumps(tmp_path, USUAL, USUAL, USUAL)
    whole = (tmp_path / "nccl_trace_rank_1").read_bytes()
    (tmp_path / "nccl_trace_rank_1").write_bytes(whole[: int(part * len(whole))])
    found = post_mortem(str(tmp_path))
    assert found is not None
    assert (found.kind, found.absent) == ("absent", (1,))


def test_a_job_that_hangs_names_its_collective(tmp_path: Path) -> None:
    logdir = write(
        tmp_path, *(still(30, rank, "collective", 50, world_size=RANKS) for rank in range(2)), beat(2, RANKS)
    )
    write_dumps(logdir, USUAL, USUAL, USUAL[:2])
    write(logdir, still(31, 2, "data", 41, world_size=RANKS, began_unix_ns=(NOW_S - 900) * 1e9))
    (state,) = LiveJobs(str(logdir), clock=lambda: NOW_S).read()
    assert state.verdict.ranks == (2,)
    assert state.verdict.headline.endswith("Flight Recorder: Rank 2 did not call nccl:all_reduce number 3 of group 0.")


HUNG = {
    "missing": ([USUAL, USUAL[:2], USUAL], "missing", "Rank 1 did not call nccl:all_reduce number 3 of group 0."),
    "no dump": ([USUAL, USUAL], "absent", "Rank 2 left no dump."),
    "all wait": ([USUAL, USUAL, USUAL], "agree", "All ranks called nccl:all_reduce number 3 of group 0"),
    "none waits": ([USUAL[:2], USUAL[:2], USUAL[:2]], "done", "No collective was under way"),
    "no majority": ([USUAL, [*USUAL[:2], entry(3, "nccl:all_gather")]], "split", "Ranks 0 and 1 did not agree"),
}


@pytest.mark.parametrize("name", HUNG)
def test_dumps_alone_say_why_a_job_hung(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    entries, kind, headline = HUNG[name]
    write_dumps(tmp_path, *entries)
    assert main(["diagnose", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(headline)
    assert main(["diagnose", str(tmp_path), "--json"]) == 0
    (hang,) = json.loads(capsys.readouterr().out)["hangs"]
    assert (hang["kind"], hang["calls"][0]["stack"]) == (kind, ["train.py:50 step"])
    assert main(["watch", str(tmp_path), "--until-hang"]) == 3
    assert capsys.readouterr().out.startswith(headline)
