"""Heartbeats as the monitor writes them, with planted differences."""

import json
from pathlib import Path
from typing import Any

NOW_S = 1_800_000_000.0
MACHINE = "elsewhere"


def beat(rank: int = 0, world_size: int = 2, **changes: Any) -> dict[str, Any]:
    """Returns a heartbeat of a healthy rank: steps of 20 ms, the last one 0.1 s ago."""
    content: dict[str, Any] = {
        "schema": 1,
        "unix_ns": (NOW_S - 1) * 1e9,
        "began_unix_ns": (NOW_S - 1000) * 1e9,
        "state": "running",
        "error": "",
        "pid": 100 + rank,
        "host": MACHINE,
        "rank": rank,
        "world_size": world_size,
        "job": "abc123",
        "restart": 0,
        "step": 1000,
        "step_unix_ns": (NOW_S - 0.1) * 1e9,
        "usual_step_ns": 20e6,
        "longest_pause_ns": 30e6,
        "phase": "backward",
        "where": ["train.py", 50, "main"],
        "still_s": 0.0,
        "stacks": [],
        "recent": {"wall": 20e6, "loader_wait": 1e6, "forward": 5e6, "backward": 10e6, "optimizer": 2e6, "steps": 3000},
        "device": {},
        "lines": [],
        "history": [[NOW_S - 10, 500, 20e6, 1e6, 9e6, None]],
    }
    recent = content["recent"] | changes.pop("recent", {})
    own = recent["wall"] - recent["backward"]
    return content | changes | {"recent": {"own": own, "own_mean": own} | recent}


def still(since_s: float, rank: int, phase: str, line: int, **changes: Any) -> dict[str, Any]:
    """Returns the heartbeat of a rank that has been at one line since then."""
    at = (NOW_S - since_s) * 1e9
    usual = {"still_s": since_s - 1, "step_unix_ns": at, "phase": phase, "where": ["train.py", line, "main"]}
    return beat(rank, **(usual | changes))


def write(logdir: Path, *beats: dict[str, Any]) -> Path:
    """Writes the heartbeats into run directories, and returns the logdir."""
    for number, content in enumerate(beats):
        folder = logdir / "tb_bottleneck" / f"2027011{number % 10}-000000_abc123_rank{content['rank']}_{number}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "heartbeat.json").write_text(json.dumps(content))
    return logdir
