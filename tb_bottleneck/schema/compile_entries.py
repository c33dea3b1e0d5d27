"""What is kept of torch's records about compilations: the monitor and the reader of torch's logs collect the same."""

import re
from collections.abc import Callable
from typing import Any

MAX_COMPILATIONS, MAX_BREAKS, MAX_REASON = 200, 32, 300
LOOP = "graph break in loop"
"""How torch names a break that it cannot resume after (pytorch torch/_dynamo/symbolic_convert.py)."""

_FOLDERS = re.compile(r"(?:[A-Za-z]:)?[\w.~+-]*[/\\](?:[\w.~+ -]+[/\\])*(?=[\w-]+\.py\b)")
_NUMBER = re.compile(r"^\d+/\d+: ")


class CompileEntries:
    """Collects the entries of the fact `compile_log`: what torch.compile did. `shown` returns a file's path as it is
    shown.

    A compilation: its id (`frame/number`), function, file, line, start (us since 1970), duration (us), and the failed
    guard. A break: file, line, function, reason, count. A failure, for a function that torch runs without compiling:
    file, line, function, reason. A call that made torch compile: id and start of the compilation, file, line,
    function."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        self._shown = shown
        self._compilations: dict[tuple[str, int], list[object]] = {}
        self._failures: dict[tuple[str, int], list[object]] = {}
        self._breaks: dict[tuple[str, int, str, str], int] = {}
        self._calls: dict[tuple[str, int], list[object]] = {}
        self._running: dict[str, list[object]] = {}  # calls of compilations without a record yet, by their id

    def add(self, record: Any) -> None:
        """Adds the compilation that `record` describes, if it is new, and the function's failure if there was one.

        The record has the fields of CompilationMetrics in torch/_dynamo/utils.py."""
        number: Any = getattr(record, "compile_id", None)
        start: Any = getattr(record, "start_time_us", None)
        if number is None or start is None or len(self._compilations) >= MAX_COMPILATIONS:
            return
        function, file = str(getattr(record, "co_name", None) or ""), getattr(record, "co_filename", None)
        function, file = function[:100], self._shown_file(file)
        line = int(getattr(record, "co_firstlineno", None) or 0)
        took, reason = int(getattr(record, "duration_us", None) or 0), getattr(record, "recompile_reason", None)
        entry = [str(number)[:20], function, file, line, int(start), took, _first_line(reason)]
        key = str(number), int(start)
        if key not in self._compilations and (call := self._running.pop(str(number), None)) is not None:
            self._calls[key] = call
        self._compilations.setdefault(key, entry)
        if getattr(record, "fail_type", None) and len(self._failures) < MAX_BREAKS:
            self._failures[file, line] = [file, line, function, _failure(record)]

    def add_break(self, file: str, line: int, function: str, reason: object) -> None:
        """Counts a graph break at `line` of `file`, in `function`. `reason` is torch's text about the cause."""
        place = (self._shown_file(file), line, function[:100], _two_lines(reason))
        if place in self._breaks or len(self._breaks) < MAX_BREAKS:
            self._breaks[place] = self._breaks.get(place, 0) + 1

    def add_call(self, number: str, file: str, line: int, function: str) -> None:
        """Adds a call that made torch compile: `line` of `file`, in `function`, began the compilation with the id
        `number`."""
        if len(self._running) < MAX_COMPILATIONS:
            self._running[number] = [self._shown_file(file), line, function[:100]]

    def forget_breaks(self) -> None:
        """Removes all graph breaks that were counted so far."""
        self._breaks.clear()

    def fact(self) -> dict[str, list[list[object]]]:
        """Returns a dict with the lists of compilations, breaks, failures and calls; empty if nothing was compiled."""
        if not self._compilations:
            return {}
        return {
            "compilations": list(self._compilations.values()),
            "breaks": [[*place, count] for place, count in self._breaks.items()],
            "failures": list(self._failures.values()),
            "calls": [[number[:20], start, *place] for (number, start), place in self._calls.items()],
        }

    def _shown_file(self, file: object) -> str:
        return self._shown(str(file))[-100:] if file else ""


def _failure(record: Any) -> str:
    """Returns as text why torch stopped compiling a function: at which line, whether in a loop, and what ended the
    graph."""
    reason, line = str(getattr(record, "fail_reason", None) or ""), getattr(record, "fail_user_frame_lineno", None)
    place = [f"line {line}"] * bool(line) + ["in a loop"] * (LOOP in reason)
    what = _two_lines(reason.removeprefix(str(record.fail_type)).lstrip())
    return f"{', '.join(place)}: {what}" if place else what


def _first_line(text: object) -> str:
    """Returns the first line of `text`, which names the failed guard, without the number of the compilation and without
    folders."""
    line = next(iter(str(text or "").splitlines()), "")
    return _clean(_NUMBER.sub("", line))


def _two_lines(text: object) -> str:
    """Returns the first two lines of `text` as one line: what ended a graph, and torch's explanation."""
    lines = [line.strip().removeprefix("Explanation: ") for line in str(text or "").splitlines()[:2]]
    return _clean(": ".join(line.rstrip(".") for line in lines if not line.startswith("Hint")))


def _clean(text: str) -> str:
    return " ".join(_FOLDERS.sub("", text).split())[:MAX_REASON]
