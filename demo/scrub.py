"""Removes private information from a recorded trace: host, user, environment and paths.

Only listed keys are kept: a key that a later torch release adds is dropped until it is reviewed.
"""

import getpass
import gzip
import json
import os
import re
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Any

_KEPT = frozenset((
    "schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName", "tb_bottleneck",
    "tb_bottleneck_late", "tb_bottleneck_lines", "tb_bottleneck_steps_with_stacks",
    "record_shapes", "with_stack", "with_flops", "with_modules", "profile_memory", "deviceProperties",
    "distributedInfo",
    "cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version", "hip_driver_version",
))  # fmt: skip
# Event arguments that may contain text. Numbers are kept under any name, text only under these.
_TEXT_ARGUMENTS = frozenset((
    "name", "labels", "Trace name", "Input type", "Input Dims", "Input Strides", "Concrete Inputs", "Collective name",
    "dtype", "Group size", "kernel",
))  # fmt: skip
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
# A path is not preceded by a name, dot or bracket: `aten/conv` and `</a>` are no paths.
_PATH = re.compile(r"(?<![\w.\-~/<>])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@~$%\-]+)+[/\\]?")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")  # of an object; it differs in every run
_LIBRARY = re.compile(r".*[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]")
_SOURCES = (".py", ".pyx", ".so", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".json", ".json.gz")
_TELLS_NOTHING = frozenset(("root", "user", "localhost"))


def scrub(trace: dict[str, Any], private: Collection[str]) -> dict[str, Any]:
    """Returns a copy of the trace without the words in `private`, absolute paths, URLs, and unlisted keys."""
    words = _pattern(private)
    scrubbed: dict[str, Any] = {
        key: _clean(value, words) for key, value in trace.items() if key in _KEPT - {"traceEvents"}
    }
    scrubbed["traceEvents"] = [_event(event, words) for event in trace.get("traceEvents", [])]
    return scrubbed


def scrub_file(source: Path, target: Path, private: Collection[str]) -> None:
    """Writes the scrubbed trace `source` to `target` (both .json.gz) atomically.

    Raises OSError if a file cannot be read or written, and ValueError if `source` is not JSON.
    """
    with gzip.open(source, "rt", encoding="utf-8") as file:
        trace = json.load(file, strict=False)
    text = json.dumps(scrub(trace, private), ensure_ascii=False, separators=(",", ":"))
    partial = target.with_name(target.name + ".tmp")
    partial.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    os.replace(partial, target)


def words_of_this_machine() -> frozenset[str]:
    """Returns the names of this host and of the logged-in user, without generic ones."""
    host = socket.gethostname()
    names = {host, host.split(".")[0], socket.getfqdn(), Path.home().name}
    try:
        names.add(getpass.getuser())
    except (KeyError, OSError):  # a container may run under a user id without a name
        names.discard("")
    return frozenset(name for name in names if len(name) > 2 and name.lower() not in _TELLS_NOTHING)


def _event(event: dict[str, Any], words: re.Pattern[str]) -> dict[str, Any]:
    clean: dict[str, Any] = {key: _clean(value, words) for key, value in event.items() if key != "args"}
    if "args" in event:
        clean["args"] = {
            key: _clean(value, words)
            for key, value in event["args"].items()
            if key in _TEXT_ARGUMENTS or not _holds_text(value)
        }
    return clean


def _holds_text(value: object) -> bool:
    if isinstance(value, list):
        return any(_holds_text(item) for item in value)
    return isinstance(value, str | dict)


def _clean(value: Any, words: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return _ADDRESS.sub("0x0", _PATH.sub(_shorten, _URL.sub("url", words.sub("private", value))))
    if isinstance(value, list):
        return [_clean(item, words) for item in value]
    if isinstance(value, dict):
        return {_clean(key, words): _clean(item, words) for key, item in value.items()}
    return value


def _shorten(match: re.Match[str]) -> str:
    # As torch shortens its own frames: relative to the import root. Of other source files, only the name is kept.
    path = match[0].rstrip("/\\")
    library = _LIBRARY.match(path)
    if library:
        return path[library.end() :]
    name = re.split(r"[/\\]", path)[-1]
    return name if name.endswith(_SOURCES) else "path"


def _pattern(private: Collection[str]) -> re.Pattern[str]:
    if not private:
        return re.compile(r"(?!)")
    longest_first = sorted(private, key=len, reverse=True)
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)", re.IGNORECASE)
