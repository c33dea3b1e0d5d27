"""Runs of comparisons, drawn: what a training did, on this device, as it was recorded."""

import json
from pathlib import Path
from typing import Any

from helpers.draw import drawn

from tb_bottleneck.comparison.runs.compared_run import ComparedRun, UnjudgedRun, judge_run

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}
H200 = {"id": 0, "name": "NVIDIA H200", "numSms": 132}
V100 = {"id": 0, "name": "Tesla V100-SXM2-32GB", "numSms": 80}


def repeated(steps: int, **rows: str) -> str:
    """Returns a drawing of this many equal steps; without a `step` row, each is a step of its own."""
    length = len(next(iter(rows.values())))
    letters = "".join(chr(ord("a") + number % 26) * length for number in range(steps))
    return "\n".join([f"step {letters}", *(f"{name} {row * steps}" for name, row in rows.items())])


def recorded(folder: Path, drawing: str, device: dict[str, Any] = A100, unit_us: float = 100.0, **header: Any) -> str:
    """Writes the drawing to a file and returns its path."""
    number = len(list(folder.iterdir()))
    path = folder / f"drawn_{number}.pt.trace.json"
    path.write_text(json.dumps(drawn(drawing, unit_us, deviceProperties=[device], **header)))
    return str(path)


def read(folder: Path, drawing: str, **options: Any) -> ComparedRun | UnjudgedRun:
    """Returns the drawing as a run, judged or not."""
    path = recorded(folder, drawing, **options)
    return judge_run(Path(path).name, [path])


def judged(folder: Path, drawing: str, **options: Any) -> ComparedRun:
    """Returns the drawing as a run with a verdict."""
    run = read(folder, drawing, **options)
    assert isinstance(run, ComparedRun), run
    return run


def context(**facts: Any) -> str:
    """Returns the context that the training process adds to its trace."""
    return json.dumps({"schema": 1, "context": facts})
