"""What one block of a trial measured. It is read from the block's result file and the event file of its monitor.

A block is one run of one variant of the program.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tb_bottleneck.base.units import one_line
from tb_bottleneck.diagnosis.telemetry import TelemetryReader, read_all

MAX_OUTPUT = 2_000
PARTS = ("loader_wait", "forward", "backward", "optimizer", "evaluation", "checkpoint", "logging", "garbage_collection")


class BlockFailed(Exception):
    """The failure of a block: no steps were measured, or the change had no effect. str() is the reason, for users."""


@dataclass(frozen=True)
class BlockResult:
    """What one block (one run of one variant of the program) measured. Times are means per step in ns.

    `parts` maps the names in PARTS, and "other" for the rest of the step, to times. `losses` are those of the first
    steps. `peak_bytes` is the peak memory in bytes.
    """

    step_ns: float
    steps: int
    samples: float  # per step; 0 if it is not known
    parts: dict[str, float]
    losses: tuple[float, ...]
    peak_bytes: int
    run: Path
    """The logdir of the block."""
    ended: bool = False
    """True if the program itself ended before enough steps were measured."""
    uncopied: tuple[str, ...] = ()
    """Modules that a program in a copy of the work tree imported from the work tree itself, as paths relative to the
    work tree."""


def read_result(path: Path, logdir: Path, output: Path) -> BlockResult:
    """Reads the result file `path` of a block that has ended. Raises BlockFailed if no step was measured.

    The step time is the mean over the steps in the block's turns. If the program ended before its first turn, it is the
    mean over the last two thirds of the steps that the monitor logged. `logdir` is the folder of the block, and
    `output` is the file with what the program printed.
    """
    result = json.loads(path.read_text(encoding="utf-8"))
    if result["state"] == "failed":
        raise BlockFailed(f"{one_line(result['because'])}\n{tail(output)}")
    if result["unused"] and result["steps"]:
        raise BlockFailed(f"The change had no effect: {'; '.join(result['unused'])}.")
    files = sorted(logdir.glob("tb_bottleneck/*/events.out.tfevents.*"))
    reader = TelemetryReader(str(files[0])) if files else None
    if reader is None or read_all(reader) is not None or not len(reader.telemetry.steps):
        raise BlockFailed(f"the program made no step that the monitor saw:\n{tail(output)}")
    rows = reader.telemetry.steps
    number = rows.column("number").mean
    measured = np.zeros(len(rows), np.bool_)
    for first, end in result["measured"]:
        measured |= (number >= first) & (number < end)
    if not result["measured"]:
        measured = number >= len(rows) // 3
    counts = np.where(measured, rows.count, 0).astype(np.float64)
    if not counts.sum():
        raise BlockFailed(f"the program made only {result['steps']} steps, too few to measure:\n{tail(output)}")

    def mean(name: str) -> float:
        return float(np.nansum(rows.column(name).mean * counts) / counts.sum())

    samples = rows.column("samples").mean
    known = np.where(np.isfinite(samples), counts, 0.0)
    steps = sum(end - first for first, end in result["measured"])
    wall = result["measured_ns"] / steps if steps else mean("wall")
    parts = {name: mean(name) for name in PARTS}
    parts["other"] = max(wall - sum(parts.values()), 0.0)
    return BlockResult(
        step_ns=wall,
        steps=steps or int(counts.sum()),
        samples=float(np.nansum(samples * known) / known.sum()) if known.sum() else 0.0,
        parts=parts,
        losses=tuple(result["losses"]),
        peak_bytes=result["peak_bytes"],
        run=logdir,
        ended=result["state"] == "ended",
        uncopied=tuple(result["uncopied"]),
    )


def tail(output: Path) -> str:
    """Returns the last lines of the file `output`, indented; empty if the file cannot be read."""
    try:
        text = output.read_text(encoding="utf-8", errors="replace")[-MAX_OUTPUT:]
    except OSError:
        return ""
    return "\n".join(f"  {one_line(line)}" for line in text.splitlines()[-12:])
