"""Facts about torch.compile: what it compiled, which guard failed before, where graphs end, and what stays uncompiled.

torch keeps both in memory for its own reports (torch/_dynamo/utils.py), so nothing is hooked or switched on.
"""

import re
from collections.abc import Iterable
from typing import Any

from tb_bottleneck.monitor.torch_internals import compilations, graph_breaks
from tb_bottleneck.monitor.workers.stack_sampler import below_import_path

MAX_COMPILATIONS, MAX_BREAKS, MAX_REASON = 200, 32, 300
LOOP = "graph break in loop"
"""How torch names a break that it cannot resume after (pytorch torch/_dynamo/symbolic_convert.py)."""

_FOLDERS = re.compile(r"(?:[A-Za-z]:)?[\w.~+-]*[/\\](?:[\w.~+ -]+[/\\])*(?=[\w-]+\.py\b)")
_NUMBER = re.compile(r"^\d+/\d+: ")


class CompileLog:
    """Accumulates torch's records: it keeps only the last 64 compilations."""

    def __init__(self) -> None:
        self._compilations: dict[tuple[str, int], list[object]] = {}
        self._failures: dict[tuple[str, int], list[object]] = {}
        self._last: object = None

    def has_changed(self) -> bool:
        """Returns True if something was compiled since the last call of `facts`. Takes microseconds."""
        records = compilations()
        return bool(records) and records[-1] is not self._last

    def facts(self) -> dict[str, object]:
        """Returns `compile_log` with `compilations`, `breaks` and `failures`, without paths; nothing if there is none.

        A compilation: its id (`frame/number`), function, file, line, start (us since 1970), duration (us), and the
        failed guard. A break: file, line, function, reason, count. A failure, for a function that torch runs without
        compiling: file, line, function, reason.
        """
        records = compilations()
        self._last = records[-1] if records else None
        for record in records:
            entry = _compilation(record)
            if entry is not None and len(self._compilations) < MAX_COMPILATIONS:
                self._compilations.setdefault((str(entry[0]), int(str(entry[4]))), entry)
                if getattr(record, "fail_type", None) and len(self._failures) < MAX_BREAKS:
                    function, file, line = entry[1:4]
                    self._failures[str(file), int(str(line))] = [file, line, function, _failure(record)]
        if not self._compilations:
            return {}
        found = {
            "compilations": list(self._compilations.values()),
            "breaks": _breaks(graph_breaks()),
            "failures": list(self._failures.values()),
        }
        return {"compile_log": found}


def _compilation(record: Any) -> list[object] | None:
    number, start = getattr(record, "compile_id", None), getattr(record, "start_time_us", None)
    if number is None or start is None:
        return None
    file = getattr(record, "co_filename", None)
    return [
        str(number)[:20],
        str(getattr(record, "co_name", None) or "")[:100],
        below_import_path(str(file))[-100:] if file else "",
        int(getattr(record, "co_firstlineno", None) or 0),
        int(start),
        int(getattr(record, "duration_us", None) or 0),
        _first_line(getattr(record, "recompile_reason", None)),
    ]


def _failure(record: Any) -> str:
    """Returns why torch gave a function up: at which line, whether in a loop, and what ended the graph."""
    reason, line = str(getattr(record, "fail_reason", None) or ""), getattr(record, "fail_user_frame_lineno", None)
    place = [f"line {line}"] * bool(line) + ["in a loop"] * (LOOP in reason)
    what = _two_lines(reason.removeprefix(str(record.fail_type)).lstrip())
    return f"{', '.join(place)}: {what}" if place else what


def _breaks(reasons: Iterable[Any]) -> list[list[object]]:
    by_place: dict[tuple[str, int, str, str], int] = {}
    for reason in reasons:
        stack = getattr(reason, "user_stack", None) or ()
        frame = stack[-1] if stack else None
        place = (
            below_import_path(str(frame.filename))[-100:] if frame else "",
            int(frame.lineno or 0) if frame else 0,
            str(frame.name)[:100] if frame else "",
            _two_lines(getattr(reason, "reason", None)),
        )
        if place in by_place or len(by_place) < MAX_BREAKS:
            by_place[place] = by_place.get(place, 0) + 1
    return [[*place, count] for place, count in by_place.items()]


def _first_line(text: object) -> str:
    """Returns the failed guard in one line, without the number of the compilation and without folders."""
    line = next(iter(str(text or "").splitlines()), "")
    return _clean(_NUMBER.sub("", line))


def _two_lines(text: object) -> str:
    """Returns what ended a graph, and torch's explanation."""
    lines = [line.strip().removeprefix("Explanation: ") for line in str(text or "").splitlines()[:2]]
    return _clean(": ".join(line.rstrip(".") for line in lines if not line.startswith("Hint")))


def _clean(text: str) -> str:
    return " ".join(_FOLDERS.sub("", text).split())[:MAX_REASON]
