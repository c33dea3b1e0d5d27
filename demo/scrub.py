"""Takes out of a recorded trace whatever tells where, by whom and in which environment it was recorded.

What is kept is listed, everything else goes: a key that a later torch adds is dropped until someone has looked at it.
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
    "record_shapes", "with_stack", "with_flops", "with_modules", "profile_memory", "deviceProperties",
    "distributedInfo",
    "cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version", "hip_driver_version",
))  # fmt: skip
# Arguments of events that may hold text; numbers are kept under any name, other text only under these.
_TEXT_ARGUMENTS = frozenset((
    "name", "labels", "Trace name", "Input type", "Input Dims", "Input Strides", "Concrete Inputs", "Collective name",
    "dtype", "Group size", "kernel",
))  # fmt: skip
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
# A path starts where no name, dot or bracket runs into it: `aten/conv` and `</a>` are none.
_PATH = re.compile(r"(?<![\w.\-~/<>])(?:~|[A-Za-z]:)?(?:[/\\][\w.+@~$%\-]+)+[/\\]?")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")  # of an object; it differs in every run and tells nothing
_LIBRARY = re.compile(r".*[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]")
_SOURCES = (".py", ".pyx", ".so", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".json", ".json.gz")
_TELLS_NOTHING = frozenset(("root", "user", "localhost"))


def scrub(trace: dict[str, Any], private: Collection[str]) -> dict[str, Any]:
    """A copy of the trace without the words in `private`, absolute paths, URLs, and keys not known to be harmless."""
    words = _pattern(private)
    kept: dict[str, Any] = {key: _clean(value, words) for key, value in trace.items() if key in _KEPT - {"traceEvents"}}
    kept["traceEvents"] = [_event(event, words) for event in trace.get("traceEvents", [])]
    return kept


def scrub_file(source: Path, target: Path, private: Collection[str]) -> None:
    """Write the scrubbed trace `source` to `target` (both .json.gz); `target` is never seen half written.

    Raises OSError where either cannot be read or written and ValueError where `source` is not JSON.
    """
    with gzip.open(source, "rt", encoding="utf-8") as file:
        trace = json.load(file, strict=False)
    text = json.dumps(scrub(trace, private), ensure_ascii=False, separators=(",", ":"))
    growing = target.with_name(target.name + ".tmp")
    growing.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    os.replace(growing, target)


def words_of_this_machine() -> frozenset[str]:
    """The names of this host and of whoever is logged in, where they tell something."""
    host = socket.gethostname()
    names = {host, host.split(".")[0], socket.getfqdn(), Path.home().name}
    try:
        names.add(getpass.getuser())
    except (KeyError, OSError):  # a container may run as a number without a name; then there is none to give away
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
    # As torch shortens its own frames: from the import root on; of any other source file only its name is left.
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
