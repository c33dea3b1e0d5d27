"""recorded.json: what was recorded when, on what, and how long a step took without a profiler."""

import json
import os
import statistics
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from demo.pairs import HALVES, PAIRS

SCHEMA = 1
INDEX = "recorded.json"

_FACTS = ("torch", "torch_threads", "cores", "machine_cores", "device_kind", "device_name")

Half = dict[str, Any]


def describe(last: Half, timed: list[list[int]]) -> Half:
    """The entry of a half in recorded.json. Times are in ns and taken without a profiler.

    Told of is the fastest training, because other programs on the machine only ever slow one down. `ns_per_step` is its
    mean step, which counts what strikes some steps only; `step_ns_median` is its median step.
    """
    means = [statistics.fmean(steps) for steps in timed]
    fastest = min(timed, key=statistics.fmean)
    return {
        "trace": last["trace"],
        "recorded": datetime.now(timezone.utc).date().isoformat(),
        **{fact: last["context"][fact] for fact in _FACTS if fact in last["context"]},
        "unprofiled": {
            "steps": len(fastest),
            "ns_per_step": round(statistics.fmean(fastest)),
            "step_ns_median": round(statistics.median(fastest)),
            "ns_per_step_of_each_training": [round(mean) for mean in means],
        },
    }


def write_index(out: Path, name: str, half: str, entry: Half) -> None:
    """Put the entry into recorded.json, and where both halves are there, how much slower the slow one is per sample."""
    index = read_index(out)
    pair = index["pairs"].setdefault(name, {})
    pair[half] = entry
    if HALVES.keys() <= pair.keys():
        slow, fixed = (pair[each]["unprofiled"]["ns_per_step"] for each in ("slow", "fixed"))
        pair["slow_over_fixed"] = round(slow / fixed * PAIRS[name].work, 3)
    growing = out / f"{INDEX}.tmp"
    growing.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    os.replace(growing, out / INDEX)


def read_index(out: Path) -> dict[str, Any]:
    """What recorded.json says, or an empty one where there is none yet."""
    try:
        index: dict[str, Any] = json.loads((out / INDEX).read_text())
    except FileNotFoundError:
        return {"schema": SCHEMA, "command": "python -m demo record", "pairs": {}}
    return index


def exists(out: Path, name: str, half: str) -> bool:
    """Whether this half is recorded: the index tells of a trace, and the trace is there."""
    entry = read_index(out)["pairs"].get(name, {}).get(half)
    return entry is not None and (out / name / half / entry["trace"]).is_file()
