"""recorded.json: date, environment and unprofiled step times of each recording."""

import json
import os
import statistics
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from demo.pairs import PAIRS, VARIANTS

SCHEMA = 1
INDEX = "recorded.json"

_FACTS = ("torch", "torch_threads", "cores", "machine_cores", "device_kind", "device_name")

Entry = dict[str, Any]


def describe(last: Entry, timed: list[list[int]]) -> Entry:
    """Returns the entry of a variant in recorded.json. Times are in ns and measured without a profiler.

    The median training counts (the slower of the two in the middle). The fastest one is a lucky one where processes or
    threads compete for cores, and a report predicts the usual time. `ns_per_step` is its mean step, which includes
    costs of only some steps; `step_ns_median` is its median step.
    """
    means = [statistics.fmean(steps) for steps in timed]
    typical = sorted(timed, key=statistics.fmean)[len(timed) // 2]
    return {
        "trace": last["trace"],
        "recorded": datetime.now(timezone.utc).date().isoformat(),
        **{fact: last["context"][fact] for fact in _FACTS if fact in last["context"]},
        "unprofiled": {
            "steps": len(typical),
            "ns_per_step": round(statistics.fmean(typical)),
            "step_ns_median": round(statistics.median(typical)),
            "ns_per_step_of_each_training": [round(mean) for mean in means],
        },
    }


def write_index(out: Path, name: str, variant: str, entry: Entry) -> None:
    """Writes the entry into recorded.json, and the slowdown per sample once both variants are recorded."""
    index = read_index(out)
    pair = index["pairs"].setdefault(name, {})
    pair[variant] = entry
    if VARIANTS.keys() <= pair.keys():
        slow, fixed = (pair[each]["unprofiled"]["ns_per_step"] for each in ("slow", "fixed"))
        pair["slow_over_fixed"] = round(slow / fixed * PAIRS[name].work, 3)
    partial = out / f"{INDEX}.tmp"
    partial.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    os.replace(partial, out / INDEX)


def read_index(out: Path) -> dict[str, Any]:
    """Returns the content of recorded.json, or an empty index if there is no such file."""
    try:
        index: dict[str, Any] = json.loads((out / INDEX).read_text())
    except FileNotFoundError:
        return {"schema": SCHEMA, "command": "python -m demo record", "pairs": {}}
    return index


def exists(out: Path, name: str, variant: str) -> bool:
    """Returns True if this variant is recorded: the index lists its trace, and the file exists."""
    entry = read_index(out)["pairs"].get(name, {}).get(variant)
    return entry is not None and (out / name / variant / entry["trace"]).is_file()
