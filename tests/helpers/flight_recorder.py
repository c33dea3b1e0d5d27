"""Dumps of torch's Flight Recorder, as torch writes them."""

from typing import Any

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
