"""Reads the heartbeats under a logdir (monitor/writer/heartbeat.py). The content of heartbeats is untrusted."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tb_bottleneck.base.persistence import open_regular
from tb_bottleneck.base.units import one_line
from tb_bottleneck.schema.signals import HEARTBEAT_FILE, HEARTBEAT_SCHEMA

MAX_BYTES = 64_000
MAX_RANKS = 1 << 16
MAX_FILES = 4_096
"""Largest number of heartbeats that are read under one logdir. The newest directories come first."""
MAX_TEXT = 120
MAX_PID = 1 << 31

Number = float | int | None


class Stack(msgspec.Struct):
    """The stack of a thread. `frames` are (file, line, function), innermost first."""

    thread: str = ""
    training: bool = False
    frames: list[tuple[str, int, str]] = []


class Heartbeat(msgspec.Struct):
    """One heartbeat, with the fields of the file (see monitor/writer/heartbeat.py). `unix_ns` and fields that end in
    `_unix_ns` are times in ns since 1970; other fields in `_ns` are durations in ns, those in `_s` in s."""

    schema: int
    unix_ns: float
    began_unix_ns: float
    state: str
    pid: int
    host: str
    rank: int
    world_size: int
    step: int
    error: str = ""
    job: str = ""
    restart: int = 0
    step_unix_ns: float | None = None
    usual_step_ns: float | None = None
    longest_pause_ns: float = 0.0
    phase: str = ""
    where: tuple[str, int, str] | None = None
    still_s: float = 0.0
    stacks: list[Stack] = []
    recent: dict[str, float] = {}
    device: dict[str, float] = {}
    lines: list[tuple[str, int, str, str, int]] = []
    history: list[tuple[float, int, Number, Number, Number, Number]] = []


@dataclass(frozen=True)
class Located:
    """A heartbeat, and the run directory that contains it. `directory` is its name, usually relative to the logdir."""

    directory: str
    beat: Heartbeat
    path: str
    """The absolute path of the run directory."""


class Heartbeats:
    """Reads the heartbeats under a logdir. A file that has not changed is not read again. Not thread-safe."""

    def __init__(self, logdir: str) -> None:
        self._logdir = logdir
        self._known: dict[str, tuple[tuple[int, int, int], Located | None]] = {}

    def read(self, directories: Mapping[str, str] | None = None) -> list[Located]:
        """Returns all usable heartbeats. Unusable files are skipped. `directories` maps the absolute paths of the run
        directories to their names; by default, all run directories below the logdir are searched for."""
        found: dict[str, tuple[tuple[int, int, int], Located | None]] = {}
        for directory, name in (directories if directories is not None else _run_directories(self._logdir)).items():
            path = os.path.join(directory, HEARTBEAT_FILE)
            try:
                status = os.stat(path)
            except OSError:
                continue
            identity = (status.st_ino, status.st_mtime_ns, status.st_size)
            known = self._known.get(path)
            found[path] = known if known is not None and known[0] == identity else (identity, _read(path, name))
            if len(found) >= MAX_FILES:
                break
        self._known = found
        return [located for _, located in found.values() if located is not None]


def _read(path: str, name: str) -> Located | None:
    try:
        with open_regular(path) as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            return None
        beat = msgspec.json.decode(text, type=Heartbeat)
    except (OSError, ValueError, RecursionError):
        return None
    return Located(name, _with_plain_texts(beat), os.path.dirname(path)) if _is_plausible(beat) else None


def _run_directories(logdir: str) -> dict[str, str]:
    """Maps the directories below `logdir` that have a heartbeat to their paths relative to `logdir`, newest first."""
    found = []
    for folder, names, files in os.walk(logdir):
        names[:] = [name for name in names if not name.startswith(".")]
        if HEARTBEAT_FILE in files:
            found.append(folder)
            names.clear()
    found.sort(key=os.path.basename, reverse=True)
    return {folder: os.path.relpath(folder, logdir) for folder in found}


def _is_plausible(beat: Heartbeat) -> bool:
    numbers: list[Any] = [beat.unix_ns, beat.began_unix_ns, beat.step_unix_ns, beat.usual_step_ns, beat.still_s]
    numbers += [beat.longest_pause_ns, *beat.recent.values(), *beat.device.values()]
    numbers += [value for row in beat.history for value in row]
    return (
        beat.schema == HEARTBEAT_SCHEMA
        and 0 <= beat.rank < beat.world_size <= MAX_RANKS
        and 0 < beat.pid < MAX_PID
        and all(value is None or abs(value) < 1e20 for value in numbers)  # False for NaN
    )


def _with_plain_texts(beat: Heartbeat) -> Heartbeat:
    """Returns the heartbeat with texts that are shortened and contain no control characters for a terminal."""

    def plain(text: str) -> str:
        return one_line(text)[:MAX_TEXT]

    def frame(each: tuple[str, int, str]) -> tuple[str, int, str]:
        return plain(each[0]), each[1], plain(each[2])

    return msgspec.structs.replace(
        beat,
        state=plain(beat.state),
        error=plain(beat.error),
        job=plain(beat.job),
        phase=plain(beat.phase),
        where=None if beat.where is None else frame(beat.where),
        lines=[(*frame(line[:3]), plain(line[3]), line[4]) for line in beat.lines],
        stacks=[
            Stack(plain(stack.thread), stack.training, [frame(each) for each in stack.frames]) for stack in beat.stacks
        ],
    )


def shown(directory: str) -> str:
    """Returns the name of the run for a run directory: its path without the monitor's own folders at its end."""
    return str(Path(directory).parent.parent)
