"""Makes allocator snapshots as torch writes them, with known contents."""

from random import Random
from typing import Any

BASE = 0x7F0000000000
MOST_LIVE = 2_000
"""Blocks that exist at once."""


def frame(file: str, line: int, function: str) -> dict[str, Any]:
    """Returns a frame."""
    return {"filename": file, "line": line, "name": function}


def segment(address: int, blocks: list[dict[str, Any]], pool: tuple[int, int] = (0, 0), **more: Any) -> dict[str, Any]:
    """Returns a segment that its blocks fill."""
    at, placed = address, []
    for block in blocks:
        placed.append({"address": at, **block})
        at += block["size"]
    active = sum(block["size"] for block in blocks if block["state"].startswith("active"))
    facts = {"device": 0, "address": address, "total_size": at - address, "allocated_size": active}
    facts |= {"active_size": active, "requested_size": active, "stream": 0, "segment_type": "large"}
    return {**facts, "segment_pool_id": pool, "is_expandable": False, "frames": [], **more, "blocks": placed}


def block(size: int, frames: list[Any] | None = None, state: str = "active_allocated") -> dict[str, Any]:
    """Returns a block."""
    return {"size": size, "requested_size": size, "state": state, "frames": frames or []}


def random_snapshot(events: int, seed: int = 0, stacks: int = 30, depth: int = 12, devices: int = 1) -> dict[str, Any]:
    """Returns a snapshot with random allocations and frees; each allocation has its own list of frames, as in torch."""
    random = Random(seed)
    frames = [frame(f"/src/module_{number % 7}.py", 7 * number % 900, f"function_{number}") for number in range(60)]
    kinds = [[random.choice(frames) for _ in range(depth)] for _ in range(stacks)]
    traces, time = [], 1_750_000_000_000_000
    for _ in range(devices):
        entries: list[dict[str, Any]] = []
        live: list[dict[str, Any]] = []
        while len(entries) < events:
            time += random.randrange(1, 40)
            if len(live) > MOST_LIVE or (live and random.random() < 0.4):
                freed = live.pop(random.randrange(len(live)))
                entries += [
                    {**freed, "action": action, "time_us": time} for action in ("free_requested", "free_completed")
                ]
                continue
            size = 512 * random.choice([1, 4, 100, 70_000, 9_000_000])
            address = BASE + 512 * random.randrange(1 << 24)
            entry = {"action": "alloc", "addr": address, "size": size, "stream": 0, "time_us": time}
            # torch makes the first text anew for each entry, and pickle then writes it each time.
            entry |= {
                "compile_context": "".join(("N", "/A")),
                "user_metadata": "",
                "frames": list(random.choice(kinds)),
            }
            entries.append(entry)
            live.append(entry)
        traces.append(entries)
    segments = [segment(entry["addr"], [block(entry["size"], entry["frames"])]) for entry in live]
    scopes = [{"name": "Optimizer.step#AdamW.step", "stage": "START", "device": 0, "time_us": time}]
    settings = {"expandable_segments": False, "roundup_power2_divisions": {"1": 0}}
    return {
        "segments": segments,
        "device_traces": traces,
        "external_annotations": scopes,
        "allocator_settings": settings,
    }
