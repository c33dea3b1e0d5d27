"""Stores the results of calibrations in the user's cache directory. Later runs and predictions use them.

A calibration measures the peak rates of a device (`tb-bottleneck doctor`). A result is identified by the name of the
device, and by the driver or library that runs the device.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tb_bottleneck.base.persistence import cache_directory, read_own, write_atomically

CALIBRATION_SCHEMA = 1
NAMES = (
    "bf16_flops",
    "fp16_flops",
    "tf32_flops",
    "fp32_flops",
    "copy_bytes_per_s",
    "h2d_pinned_bytes_per_s",
    "h2d_pageable_bytes_per_s",
    "d2h_pinned_bytes_per_s",
    "launch_ns",
)
"""Rates of matmuls in floating-point operations per second, of copies in bytes per second. `copy_bytes_per_s` counts
bytes read plus bytes written, the other copies count bytes transferred. `launch_ns` is the host's time for one small
operator, including dispatch."""

CPU_DRIVER = "torch "
"""What the driver of a CPU begins with; see `of_cpu` in monitor/facts/device.py."""
MAX_CALIBRATED = 100
MAX_RATE = 1e30
"""Results of this rate or more are ignored: no device reaches this rate."""
_MAX_BYTES = 1 << 16  # limit for reading; our files have a few hundred bytes


def directory(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the directory of the calibrations, or None if there is no cache directory.

    `environment` contains the environment variables. TB_BOTTLENECK_CACHE names another cache directory, or disables the
    cache.
    """
    root = cache_directory(environment)
    return None if root is None else root / "calibrations"


def save(device: str, driver: str, measured: Mapping[str, float]) -> Path | None:
    """Writes `measured` to a file and returns its path. Returns None if there is no cache directory.

    `measured` maps names in NAMES to rates. There is one JSON file per device name and driver, {"schema", "device",
    "driver", "measured": {name: number}}. An existing file is replaced atomically. Raises OSError if the file cannot be
    written.
    """
    folder = directory()
    if folder is None:
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps(
        {"schema": CALIBRATION_SCHEMA, "device": device, "driver": driver, "measured": dict(measured)}, indent=1
    )
    entry = folder / _name(device, driver)
    write_atomically(entry, text.encode())
    return entry


def load(device: str, driver: str) -> dict[str, float] | None:
    """Returns the rates of this device and driver, by name (see NAMES). Returns None if no rates are stored, or if they
    cannot be read."""
    folder = directory()
    entry = None if folder is None else _entry(folder / _name(device, driver))
    return entry.measured if entry is not None and (entry.device, entry.driver) == (device, driver) else None


def calibrated_gpus() -> dict[str, dict[str, float]]:
    """Returns the rates of all GPUs that were calibrated: name of the device -> name (see NAMES) -> rate. If a GPU was
    calibrated with several drivers, the newest result counts."""
    folder = directory()
    files = [] if folder is None else list(folder.glob("*.json"))[:MAX_CALIBRATED]
    newest_last = sorted(filter(None, map(_entry, files)), key=lambda entry: entry.modified_ns)
    return {entry.device: entry.measured for entry in newest_last if not entry.driver.startswith(CPU_DRIVER)}


class _Entry(NamedTuple):
    """The content of one file, and the time of its last change in ns since 1970."""

    device: str
    driver: str
    measured: dict[str, float]
    modified_ns: int


def _entry(file: Path) -> _Entry | None:
    """Returns the content of a file, without values that are no rates. Returns None if the file cannot be read or has
    no rate."""
    try:
        modified, raw = file.stat().st_mtime_ns, json.loads(read_own(file, _MAX_BYTES))
        if raw["schema"] != CALIBRATION_SCHEMA:
            return None
        measured = {name: float(value) for name, value in raw["measured"].items() if name in NAMES and _is_rate(value)}
        return _Entry(str(raw["device"]), str(raw["driver"]), measured, modified) if measured else None
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None


def _name(device: str, driver: str) -> str:
    """Returns the name of the file for a device and its driver."""
    key = "\0".join((device, driver)).encode("utf-8", "replace")
    return f"{hashlib.sha256(key).hexdigest()[:32]}.json"


def _is_rate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_RATE
