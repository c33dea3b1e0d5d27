"""Runs all checks: the training under the monitor, the overhead, the peak rates of the device, and TensorBoard. Each
runs in a process with a deadline."""

import contextlib
import json
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from tb_bottleneck.base import calibration_store as calibrations
from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.base.persistence import CACHE_VARIABLE
from tb_bottleneck.base.units import bytes_text, duration_text
from tb_bottleneck.doctor import checks, training
from tb_bottleneck.doctor.child_processes import TOO_LATE, run_child
from tb_bottleneck.doctor.evidence import Evidence, read_evidence, read_measured, recordings_in
from tb_bottleneck.doctor.results import ABSENT, FAILS, LIMITED, UNKNOWN, WORKS, Examination, Row
from tb_bottleneck.doctor.tensorboard import ask_server, plugin_names, plugin_row, server_row, tab_bytes
from tb_bottleneck.native import native_scan
from tb_bottleneck.version import __version__

SECONDS = 120.0
TRAINING_SHARE, OVERHEAD_SHARE, RATES_SHARE, SERVER_SHARE = 0.4, 0.3, 0.1, 0.2
"""Parts of the time limit. On two CPU cores, they take about 8, 17, 3 and 3 s."""
SCRIPT = Path(training.__file__)
BY_STEP = {
    checks.STEP_TIMES: ("wall", "ends"),
    checks.WAITS: ("loader_wait", "waits"),
    checks.CPU_TIME: ("thread_cpu", "threads"),
}
"""Maps each comparison by step to the column of the monitor and the name of the figures of training.py."""
NO_TORCH, NO_GPU = "needs torch, which is not installed for this Python", "torch uses no GPU here"
GPU_CHECKS = ("Device time", "Copies", "Allocator", "GPU counters", "GPU link", "Memory snapshot")
TORCH_CHECKS = (
    *("Training", "Step times", "Waits for data", "CPU time", *GPU_CHECKS),
    *("Capture", "Profiler defects", "Overhead", "Peak rates"),
)
SLOW = "if this machine is slow or busy: tb-bottleneck doctor --seconds 600"
TORCH_FAILS = "install torch again; `python -X faulthandler -c 'import torch; torch.ones(9).sum()'` shows where it ends"
_RATES = {
    "bf16_flops": "bf16",
    "fp16_flops": "fp16",
    "tf32_flops": "TF32",
    "fp32_flops": "fp32",
    "copy_bytes_per_s": "memory (read + write)",
    "h2d_pinned_bytes_per_s": "pinned to device",
    "h2d_pageable_bytes_per_s": "pageable to device",
    "d2h_pinned_bytes_per_s": "device to pinned",
    "launch_ns": "launch of an operator",
}
_PACKAGES = ("tensorboard", "numpy", "protobuf")

Progress = Callable[[str], object]


def examine(seconds: float = SECONDS, progress: Progress = lambda _text: None, script: Path = SCRIPT) -> Examination:
    """Runs all checks within about `seconds`, and calls `progress` with a text about each group before it begins.

    `script` is the program that trains. All files are in a temporary folder, which is deleted at the end.
    """
    began = time.monotonic()
    has_torch = find_spec("torch") is not None
    with tempfile.TemporaryDirectory(prefix="tb_bottleneck_doctor_", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch).resolve()
        evidence, rows = Evidence(), [Row(check, UNKNOWN, NO_TORCH) for check in TORCH_CHECKS]
        if has_torch:
            progress("training under the monitor")
            why = _run(folder, script, "signals", TRAINING_SHARE * seconds)
            evidence = read_evidence(folder)
            rows = _rows("Training", training_rows(evidence, why))
            progress("measuring the monitor's overhead")
            rows += _rows("Overhead", overhead_rows(folder, script, OVERHEAD_SHARE * seconds))
            progress("measuring the peak rates of the device")
            rows += _rows("Peak rates", rate_rows(folder, RATES_SHARE * seconds))
        progress("starting TensorBoard")
        rows += _rows("TensorBoard", tensorboard_rows(folder, SERVER_SHARE * seconds))
    return Examination(tuple(rows), versions(evidence.measured), has_torch, time.monotonic() - began)


def _rows(group: str, rows: Iterator[Row]) -> list[Row]:
    """Returns the rows of one group of checks. An error of a check ends only its group. Only the type of the error is
    shown, because its message may contain paths."""
    found: list[Row] = []
    try:
        found.extend(rows)
    except Exception as error:
        found.append(Row(group, FAILS, f"a check failed with {type(error).__name__}", checks.REPORT))
    return found


def training_rows(evidence: Evidence, why: str) -> Iterator[Row]:
    """Yields the rows of the table about signals. `why` says how the training failed; empty if it did not. If the
    training failed, rows without figures are unknown."""
    yield _training_row(evidence, why)
    pairs = {agreement: evidence.by_step(*names) for agreement, names in BY_STEP.items()}
    if evidence.on_gpu:
        pairs |= {checks.DEVICE_TIME: evidence.device_times(), checks.COPIES: evidence.copied()}
        pairs |= {checks.ALLOCATOR: evidence.by_step("memory_allocated", "allocated")}
    else:
        pairs |= {checks.CPU_PRODUCTS: evidence.products()}
    for agreement, (first, second) in pairs.items():
        failed = bool(why) and not (first and second)
        yield Row(agreement.check, UNKNOWN, "the training failed") if failed else agreement.row(first, second)
    if evidence.on_gpu:
        yield from _gpu_rows(evidence)
    elif evidence.measured:
        yield from (Row(check, ABSENT, NO_GPU) for check in GPU_CHECKS if check != "Device time")
    trace = evidence.recorded_trace()
    if trace is None and why:
        yield from (Row(check, UNKNOWN, "the training failed") for check in ("Capture", "Profiler defects"))
        return
    yield checks.capture(trace, evidence.missing().get("traces", ""))
    yield checks.profiler_defects(trace, str(evidence.measured.get("cuda") or ""), evidence.torch_for_device())


def _training_row(evidence: Evidence, why: str) -> Row:
    measured = evidence.measured
    if why:
        return Row("Training", FAILS, f"the training process {why}", SLOW if TOO_LATE in why else TORCH_FAILS)
    steps, recorded = len(measured.get("ends", ())), int(evidence.telemetry.steps.count.sum())
    dropped = sum(evidence.telemetry.dropped.values()) + evidence.telemetry.lost_packets
    text = f"{steps} steps on {measured.get('device', 'CPU')}, {recorded} in the event file"
    if dropped:
        return Row("Training", LIMITED, f"{text}; {dropped} packets or readings are unusable", checks.REPORT)
    if steps != recorded:
        return Row("Training", FAILS, text, checks.REPORT)
    if not evidence.on_gpu and shutil.which("nvidia-smi"):
        fix = "unset CUDA_VISIBLE_DEVICES, and install a torch for CUDA: https://pytorch.org/get-started/locally"
        return Row("Training", LIMITED, f"{text}; nvidia-smi is here, but torch sees no GPU", fix)
    return Row("Training", WORKS, text)


def _gpu_rows(evidence: Evidence) -> Iterator[Row]:
    measured, missing, facts = evidence.measured, evidence.missing(), evidence.telemetry.facts
    began, memory = measured.get("load_began_ns", 0), measured.get("device_memory")
    yield checks.counters(evidence.counters(), began, memory, missing)
    rate, because = measured.get("link_bytes_per_s"), missing.get("pcie_generation", "")
    yield checks.link(facts.get("link_generation"), facts.get("link_width"), rate, because)
    if measured.get("rocm"):
        yield Row("Memory snapshot", ABSENT, "snapshots are of the CUDA allocator")
    else:
        yield checks.SNAPSHOT.row(*evidence.snapshot_peaks())


def overhead_rows(folder: Path, script: Path, seconds: float) -> Iterator[Row]:
    """Yields the row of the table about the overhead of the monitor. Runs `script` in `folder` for at most
    `seconds`."""
    place = folder / "overhead"
    place.mkdir()
    why = _run(place, script, "overhead", seconds)
    if not why:
        yield checks.overhead(read_measured(place).get("rounds", ()))
    else:
        result, fix = (UNKNOWN, SLOW) if TOO_LATE in why else (FAILS, TORCH_FAILS)
        yield Row("Overhead", result, f"the training process {why}", fix)


def rate_rows(folder: Path, seconds: float) -> Iterator[Row]:
    """Yields the row about the peak rates of the device. They are measured within `seconds` and stored. Monitors that
    start afterwards record them; reports then compare kernels with them instead of the data sheet."""
    file = folder / "calibration.json"
    why = run_child(["-m", "tb_bottleneck.doctor.calibration", file.name], folder, seconds)
    if why or not file.exists():
        result, fix = (UNKNOWN, SLOW) if TOO_LATE in why else (FAILS, TORCH_FAILS)
        yield Row("Peak rates", result, f"the measurement {why}", fix)
        return
    measured = json.loads(file.read_text())
    figures = measured["figures"]
    text = ", ".join(f"{title} {_rate_text(name, figures[name])}" for name, title in _RATES.items() if name in figures)
    text = "; ".join([text, *(f"{_RATES[name]} not measured: {why}" for name, why in measured["left_out"].items())])
    try:
        stored = calibrations.save(measured["device"], measured["driver"], figures) is not None
    except OSError as error:
        yield Row("Peak rates", LIMITED, f"{text}; not stored: {error.strerror}", "make the cache directory writable")
        return
    if stored:
        yield Row("Peak rates", WORKS, f"{text}; stored, later runs use them")
    else:
        yield Row("Peak rates", LIMITED, f"{text}; not stored, because {CACHE_VARIABLE} switches the cache off")


def _rate_text(name: str, value: float) -> str:
    if name.endswith("_flops"):
        return f"{value / 1e12:.3g} TFLOP/s"
    return duration_text(value) if name.endswith("_ns") else f"{bytes_text(value)}/s"


def tensorboard_rows(folder: Path, seconds: float) -> Iterator[Row]:
    """Yields the rows of the table about TensorBoard, which is started with the logdir of the training."""
    if find_spec("tensorboard") is None:
        yield Row("TensorBoard", FAILS, "not installed for this Python", "pip install tensorboard")
        return
    yield plugin_row(plugin_names(), tab_bytes())
    logdir, files = folder / training.LOGDIR, recordings_in(folder)
    logdir.mkdir(exist_ok=True)
    yield server_row(ask_server(folder, logdir, files, seconds), files)


def versions(measured: Mapping[str, object]) -> dict[str, str]:
    """Returns a dict from packages, Python, the system and the driver to their versions, and with the name of the
    device. The dict contains no names of hosts or users, and no paths."""
    found = {"tb_bottleneck": f"{__version__} ({_reader()} reader)"}
    found |= {"Python": platform.python_version(), platform.system(): platform.release()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    for name in ("torch", "cuda", "rocm", "driver", "device"):
        if measured.get(name):
            found[name] = str(measured[name])
    return found


def _reader() -> str:
    try:
        return "pure" if native_scan() is None else "native"
    except Unusable:
        return "no"


def _run(folder: Path, script: Path, name: str, seconds: float) -> str:
    """Runs the training `name` of the program `script` in a process, in `folder` and for at most `seconds`. Returns how
    the process failed; empty if it did not fail."""
    program = folder / "doctor_training.py"
    shutil.copyfile(script, program)
    why, failure = run_child([program.name, name, "."], folder, seconds), folder / training.FAILURE
    return f"{why} ({failure.read_text()})" if why and failure.exists() else why
