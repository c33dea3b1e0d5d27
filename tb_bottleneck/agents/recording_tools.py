"""The tools that look into recordings: the tree, comparisons, predictions."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tb_bottleneck.agents.answers import answer
from tb_bottleneck.agents.tool import ID, OFFSET, Arguments, Session, Tool, parts_of
from tb_bottleneck.agents.workers import Tell
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.base.units import NS_PER_MS
from tb_bottleneck.plugin.http.comparison_routes import MAX_SERIES_RUNS, compared_recording
from tb_bottleneck.plugin.state.run_index import id_of
from tb_bottleneck.plugin.workers.questions import (
    TREES,
    CompareQuestion,
    RecordingQuestion,
    SeriesQuestion,
    TraceFile,
    TreeQuestion,
    WhatIfQuestion,
)

PAGE = 40
"""Number of rows on one page of a tree."""

CHANGES = ("device", "workers", "batch", "precision", "link")


async def tree(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns the tree of a trace as JSON. Each row is followed by its children, in descending order of time."""
    file = await _trace(session, arguments["id"])
    other = await _trace(session, arguments["against"]) if "against" in arguments else None
    question = TreeQuestion(file, str(arguments.get("by", "module")), other=other)
    found = await _ask(session, question, tell)
    nodes, before = found["tree"], found.get("other")
    rows = _rows_of(nodes, before, str(arguments.get("find", "")).lower())
    facts = {"id": file.id, "by": nodes["by"], "steps": nodes["steps"], "per": "step", "notes": nodes["notes"]}
    return answer(facts | ({"against": other.id} if other else {}), rows, int(arguments.get("offset", 0)), PAGE)


def _rows_of(nodes: Mapping[str, Any], before: Mapping[str, Any] | None, text: str) -> list[dict[str, Any]]:
    """Returns one row per node, depth first from the root. If `text` is not empty, returns only the nodes whose
    lower-case name contains `text`. `before` is the same tree for the trace to compare with, or None."""
    parents, names = nodes["parent"], nodes["name"]
    times = [sum(column["ns"][node] for column in nodes["regimes"]) for node in range(len(parents))]
    old = [sum(column["ns"][node] for column in before["regimes"]) for node in range(len(parents))] if before else []
    below: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            below[parent].append(node)
    steps, old_steps = max(nodes["steps"], 1), max(before["steps"], 1) if before else 1
    rows, waiting = [], [(0, 0)] if parents else []
    while waiting:
        node, depth = waiting.pop()
        waiting += [(child, depth + 1) for child in sorted(below[node], key=lambda child: times[child])]
        if text and text not in names[node].lower():
            continue
        row: dict[str, Any] = {
            "depth": depth,
            "name": names[node] or "all",
            "kind": nodes["kinds"][nodes["kind"][node]],
            "ms": times[node] / steps / NS_PER_MS,
            "share": times[node] / max(nodes["window_ns"], 1.0),
            "device_ms": nodes["device_ns"][node] / steps / NS_PER_MS,
            "host_ms": nodes["host_ns"][node] / steps / NS_PER_MS,
            "calls": nodes["calls"][node] / steps,
        }
        if before:
            row["ms_against"] = old[node] / old_steps / NS_PER_MS
        rows.append(row)
    return rows


async def compare(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns the comparison of two recordings as JSON; for more than two recordings, a series."""
    ids = arguments["ids"]
    if not 2 <= len(ids) <= MAX_SERIES_RUNS:
        raise NotFound(f"ids must be 2 to {MAX_SERIES_RUNS} ids")
    known = await asyncio.to_thread(session.logdir.recordings)
    compared = [compared_recording(known.trace(each), known.scan) for each in ids]
    question = CompareQuestion(*compared) if len(compared) == 2 else SeriesQuestion(tuple(compared))
    found = await _ask(session, question, tell)
    rows = parts_of(found.get("comparison") or found["series"])
    facts = {"ids": [each.trace.id for each in compared], "names": [each.name for each in compared]}
    return answer(facts, rows, int(arguments.get("offset", 0)))


async def what_if(session: Session, arguments: Arguments, tell: Tell) -> str:
    """Returns the prediction for the requested changes as JSON; without a change, a table of the usual changes."""
    known = await asyncio.to_thread(session.logdir.recordings)
    recording = known.trace(arguments["id"])
    changes = {name: arguments[name] for name in CHANGES if name in arguments}
    if changes.get("batch") == 0:
        raise NotFound("batch must be at least 1")
    found = await _ask(session, WhatIfQuestion(compared_recording(recording, known.scan), **changes), tell)
    rows = parts_of(found.get("what_if") or found["table"])
    return answer({"id": id_of(recording)}, rows, int(arguments.get("offset", 0)))


async def _trace(session: Session, name: str) -> TraceFile:
    recording = (await asyncio.to_thread(session.logdir.recordings)).trace(name)
    return TraceFile.of(id_of(recording), recording)


async def _ask(session: Session, question: RecordingQuestion, tell: Tell) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await session.workers.ask(question, tell))
    return found


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
TOOLS = (
    Tool(
        "tree",
        "Where the time of a step goes in a trace. find: only rows with this text. against: id of another trace.",
        tree,
        {**ID, "by": {"type": "string", "enum": list(TREES)}, "find": _TEXT, "against": _TEXT, **OFFSET},
        ("id",),
    ),
    Tool(
        "compare",
        f"Why one run is faster than another: 2 ids, before and after. 3 to {MAX_SERIES_RUNS}: a series.",
        compare,
        {"ids": {"type": "array", "items": _TEXT}, **OFFSET},
        ("ids",),
    ),
    Tool(
        "what_if",
        "Predicted step time with another device, precision, link (gen4x16), worker count or batch."
        " Without a change: the usual ones.",
        what_if,
        {
            **ID,
            "device": _TEXT,
            "workers": _NUMBER,
            "batch": _NUMBER,
            "precision": {"type": "string", "enum": ["bf16", "fp16", "tf32"]},
            "link": _TEXT,
            **OFFSET,
        },
        ("id",),
    ),
)
