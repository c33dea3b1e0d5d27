"""Creates a logdir for browser tests: simulated trainings, the ranks of a job, untrusted names, and telemetry."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers.draw import drawn
from helpers.simulated_telemetry import simulate
from helpers.simulated_training_memory import SimulatedTraining
from helpers.telemetry_files import NAME as EVENTS
from helpers.telemetry_files import write as write_events
from helpers.telemetry_problems import simulated_phase
from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import Machine
from simulate.other_device import OtherDevice
from simulate.problems import PROBLEMS
from simulate.training import program_of
from simulate.workload import Workload, healthy

SEED = 11
SIMULATED = {
    "starved": "loader in the main process",
    "reads": "scalar reads in the forward pass",
    "checkpoints": "checkpoints",
}
NAME = "host_1.17.pt.trace.json"
RIGHT_TO_LEFT = "\u05d0\u05d9\u05de\u05d5\u05df"  # a training, in Hebrew
UNTRUSTED_NAME = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
# Each step ends with a read of the loss. Without it, the device would wait for the host, whatever the collective does.
_WAITING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    sync    ....######....######....######
    gpu     abab......abab......abab......
    nccl    ....nnnnnn....nnnnnn....nnnnnn
"""
_LATE = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    sync    .........#.........#.........#
    gpu     ababababa.ababababa.ababababa.
    nccl    .........n.........n.........n
"""
_UNTRUSTED = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ####......####......####......
    op      ....##........##........##....
    gpu     ....aabbcc....aabbcc....aabbcc
"""


def stage(folder: Path, untrusted_names: bool = True) -> Path:
    """Writes the recordings to the folder and returns it; untrusted names and files that are no traces are optional."""
    for run, problem in SIMULATED.items():
        workload = PROBLEMS[problem].make(SEED)
        text = kineto_json(Machine(program_of(workload)).run(), Recording(DIALECTS[3], stacks=True))
        write(folder / run / NAME, text)
    for rank, drawing in enumerate((_WAITING, _LATE, _WAITING)):
        about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}}
        write(folder / "job" / f"rank{rank}.17.pt.trace.json", json.dumps(drawn(drawing, 1000, **about)))
    write(folder / "shapes" / NAME, json.dumps(_with_shapes()))
    write(folder / "leak" / NAME, json.dumps(_with_memory()))
    watched = [
        simulated_phase("healthy", 300),
        simulated_phase("few_workers", 240),
        simulated_phase("healthy", 200),
        simulated_phase("capped", 120),
    ]
    write_events(folder / "watched" / EVENTS, simulate(watched))
    if untrusted_names:
        write(folder / UNTRUSTED_NAME.replace("/", "") / NAME, json.dumps(_untrusted()))
        write(folder / RIGHT_TO_LEFT / f"{RIGHT_TO_LEFT}_1.17.pt.trace.json", json.dumps(_untrusted()))
        write(folder / "bad" / NAME, "{")
        write(folder / "short" / NAME, '{"traceEvents": []}')
    return folder


def _with_memory() -> dict[str, Any]:
    """Returns a training on a device that keeps the graph of each step."""
    simulated = SimulatedTraining(7, leak=1 << 20)
    for at in range(0, 7000, 50):
        simulated.allocator.span("gemm", at + 5, at + 45, "kernel", device=0, stream=7, grid=[1024, 1, 1])
    return simulated.allocator.content()


def on_two_devices(folder: Path) -> Path:
    """Writes one training that waits for its batches, on an A100 and on a faster device; returns the folder."""
    workload = PROBLEMS["loader in the main process"].make(SEED)
    program, recording = program_of(workload), Recording(DIALECTS[3], stacks=True)
    there = OtherDevice("NVIDIA H200", SEED)
    write(folder / "a100" / NAME, kineto_json(Machine(program).run(), recording))
    write(folder / "h200" / NAME, there.relabelled(kineto_json(Machine(there.program(program)).run(), recording)))
    return folder


WORKERS = (1, 2, 4, 8)
NIGHTS = (1.0, 0.99, 1.02, 1.0, 1.01)  # factor of kernel times, relative to the first night
FIRST_BAD_NIGHT = 3  # the first night with batches in pageable memory


def in_rows(folder: Path, untrusted_names: bool = True) -> Path:
    """Writes a sweep of loader workers, the nights of one training, one training on two devices, and unrelated runs;
    returns the folder.
    """
    well = healthy(SEED)
    for number in WORKERS:
        work = well.but(loader="workers", workers=number, load_ns=3 * well.step_ns)
        write(folder / f"sweep/w{number}" / NAME, _with_context(work, workers=number))
    work = well.but(loader="workers", load_ns=1_000_000, batch_bytes=2 * well.step_ns)
    for night, times in enumerate(NIGHTS):
        one = work.but(kernel_ns=int(well.kernel_ns * times), pinned=night < FIRST_BAD_NIGHT)
        write(folder / f"nights/night{night + 8}" / NAME, _with_context(one))
    if untrusted_names:
        write(folder / "other" / NAME, json.dumps(_with_shapes()))
        write(folder / UNTRUSTED_NAME.replace("/", "") / NAME, json.dumps(_untrusted()))
    return on_two_devices(folder)


def _with_context(work: Workload, **facts: Any) -> str:
    """Returns the training's recording, with the facts that the training process adds."""
    text = kineto_json(Machine(program_of(work)).run(), Recording(DIALECTS[3], stacks=True))
    return text.replace("{", '{"tb_bottleneck": ' + json.dumps({"schema": 1, "context": facts}) + ", ", 1)


def _untrusted() -> dict[str, Any]:
    """Returns a recording in which every name except those of steps ends in markup."""
    content = drawn(_UNTRUSTED, 1000)
    for event in content["traceEvents"]:
        if not event["name"].startswith("ProfilerStep"):
            event["name"] += UNTRUSTED_NAME
    return content


_PRODUCTS = """
    step    aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb
    op      #.#.#.#.#...........#.#.#.#.#...........
    launch  |.|.|.|.|...........|.|.|.|.|...........
    gpu     .aaaaaabbbcccccddee..aaaaaabbbcccccddee.
"""
_SIZES = ((8192, 4096, 4096), (4096, 4096, 4096), (8192, 1024, 4096), (2048, 512, 8192), (65536, 64, 64))


def _with_shapes() -> dict[str, Any]:
    """Returns products of several sizes, with recorded shapes."""
    content = drawn(_PRODUCTS, 500, record_shapes=1)
    products = [event for event in content["traceEvents"] if event["cat"] == "cpu_op"]
    for number, event in enumerate(products):
        m, k, n = _SIZES[number % len(_SIZES)]
        event["name"] = "aten::mm"
        event["args"] = {"Input Dims": [[m, k], [k, n]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
    return content


def write(path: Path, text: str) -> None:
    """Writes a recording with an old time, so that it does not count as still growing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (0, 0))


DEVICE = "GPU-1f0e8c5a"
BEGIN_NS, SAMPLE_NS, SAMPLES = 1.79e18, 5e8, 600


def _series(name: str, reading: Callable[[int], float], device: str = DEVICE) -> dict[str, Any]:
    times = [BEGIN_NS + at * SAMPLE_NS for at in range(SAMPLES)]
    return {"name": name, "device": device, "unix_ns": times, "values": [reading(at) for at in range(SAMPLES)]}


def telemetry(live: bool = True) -> dict[str, Any]:
    """Returns a TelemetryAnswer of five minutes: a slow loader for one minute, a power limit for half a minute."""
    steps = range(900)
    slow = [300 < step < 500 for step in steps]
    return {
        "id": "x",
        "live": live,
        "context": {
            "schema": 1,
            "facts": {},
            "notes": [],
            "unsupported": [{"name": "sm_activity", "because": "Only GPUs from Hopper on tell it without DCGM."}],
        },
        "series": [
            _series("gpu_utilisation", lambda at: 0.5 if 200 < at < 330 else 0.93),
            _series("tensor_activity", lambda at: 0.3 + 0.05 * math.sin(at / 7)),
            _series("dram_activity", lambda at: 0.5 + 0.1 * math.sin(at / 9)),
            _series("power", lambda at: 600 + 90 * math.sin(at / 30)),
            _series("power_limit", lambda at: 700.0),
            _series("power_capped_total", lambda at: max(0, min(at, 470) - 400) * 1e7),
            _series("sm_clock", lambda at: 1.68e9 if 400 < at < 470 else 1.98e9),
            _series("pcie_received", lambda at: 2e9 + 1e9 * math.sin(at / 4)),
            _series("pcie_sent", lambda at: 1e8),
            _series("cpu_busy_cores", lambda at: 12 + 4 * math.sin(at / 11), "host"),
            _series("cpu_usable_cores", lambda at: 32.0, "host"),
        ],
        "steps": {
            "number": list(steps),
            "end_unix_ns": [BEGIN_NS + step * 3.3e8 for step in steps],
            "wall_ns": [7.3e8 if slow[step] else 3.3e8 + 1e7 * math.sin(step) for step in steps],
            "columns": [{"name": "loader_wait", "values": [3.6e8 if late else 1e7 for late in slow]}],
        },
        "bands": [_band(0, 200, "compute"), _band(200, 330, "input"), _band(330, SAMPLES, "compute")],
        "notes": [],
        "lost_packets": 0,
        "dropped": [],
        "devices": [DEVICE],
    }


def _band(first: int, last: int, regime: str) -> dict[str, Any]:
    begin, end = BEGIN_NS + first * SAMPLE_NS, BEGIN_NS + last * SAMPLE_NS
    severity = "critical" if regime == "input" else "none"
    return {"begin_unix_ns": begin, "end_unix_ns": end, "regime": regime, "share": 0.6, "severity": severity}
