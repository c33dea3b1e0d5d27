"""What was recorded about torch.compile: compilations and the guards that failed, graph breaks, and functions that
failed to compile, each with the reason.

The entries are recorded by the monitor, or by torch itself in a log (trace/process_facts.py). A guard is a condition
under which compiled code is valid; if a guard fails, torch compiles again.
"""

import re
from collections.abc import Mapping
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.kernel_names import cut

MAX_ENTRIES = 1_000
"""At most this number of entries of each kind are read, because the context of a file is untrusted."""

RESUMED = re.compile(r"^(?:torch_dynamo_resume_in_)+(.+)_at_(\d{1,9})$")
"""Matches the name of the function that torch creates for the code after a graph break. Groups: the name of the
original function, and the line of the break (pytorch torch/_dynamo/resume_execution.py)."""

_IN_WORDS = {"generic_jump": "a branch depends on the value of a tensor"}


class Compiled(Record, frozen=True):
    """One compilation. Texts are untrusted.

    `frame` is torch's number of the compiled function, and `number` counts the compilations of this function.
    `function`, `file` and `line` are the function in the program. `start_us` is in us since 1970, `duration_us` in us.
    `reason` is the guard that failed; empty for the first compilation.
    """

    frame: str
    number: int
    function: str
    file: str
    line: int
    start_us: float
    duration_us: float
    reason: str


class Break(Record, frozen=True):
    """A place in the program at which a graph breaks. `count` is the number of breaks there. `reason` is torch's
    reason. Texts are untrusted."""

    file: str
    line: int
    function: str
    reason: str
    count: int = 1


class Failure(Record, frozen=True):
    """A function that torch runs without compiling it, because compiling failed for `reason`. Texts are untrusted."""

    file: str
    line: int
    function: str
    reason: str


class Call(Record, frozen=True):
    """The line of the program whose call made torch compile a function. Texts are untrusted."""

    file: str
    line: int
    function: str


class CompileLog(Record, frozen=True):
    """All recorded entries. Compilations are sorted by start. The keys of `calls` are (frame, number, start_us) of a
    compilation."""

    compilations: tuple[Compiled, ...] = ()
    breaks: tuple[Break, ...] = ()
    failures: tuple[Failure, ...] = ()
    calls: Mapping[tuple[str, int, float], Call] = {}

    def recompilations(self) -> list[tuple[Compiled, Compiled]]:
        """Returns for each recompilation two entries of the log: the recompilation, and the entry that names its
        function and guard.

        The two are the same, except for a backward graph: torch records it with the number of the forward graph, but
        without function and guard. The second is then the entry of the forward graph.
        """
        found, named = [], dict[tuple[str, int], Compiled]()
        for entry in self.compilations:
            origin = entry if entry.function or entry.reason else named.get((entry.frame, entry.number), entry)
            named[entry.frame, entry.number] = origin
            if origin.reason:
                found.append((entry, origin))
        return found

    def call_of(self, entry: Compiled) -> Call | None:
        """Returns the call that made torch run the compilation `entry`, or None if the call was not recorded."""
        return self.calls.get((entry.frame, entry.number, entry.start_us))

    def function_of(self, frame: str) -> Compiled | None:
        """Returns the first compilation that has torch's function number `frame` and names its function, or None."""
        return next((entry for entry in self.compilations if entry.frame == frame and entry.function), None)

    def failure_of(self, file: str, line: int) -> str:
        """Returns the reason why the function that begins at `line` of `file` was not compiled; empty if no failure is
        known."""
        found = (entry.reason for entry in self.failures if entry.line == line and _same(entry.file, file))
        return next(found, "")

    def at(self, start_us: float, end_us: float) -> Compiled | None:
        """Returns the compilation that ran for more than half of the interval from `start_us` to `end_us` (us since
        1970), or None."""
        found = [
            (min(end_us, entry.start_us + entry.duration_us) - max(start_us, entry.start_us), entry)
            for entry in self.compilations
        ]
        overlap, entry = max(found, key=lambda pair: pair[0], default=(0.0, None))
        return entry if overlap > (end_us - start_us) / 2 else None


def compile_log(facts: Mapping[str, Any]) -> CompileLog:
    """Returns the log in `facts`, the facts of a run; empty if there is no log. Malformed entries are left out."""
    fact = facts.get("compile_log")
    if not isinstance(fact, dict):
        return CompileLog()
    compilations = [entry for entry in map(_compiled, _entries(fact, "compilations")) if entry is not None]
    breaks = [entry for entry in map(_break, _entries(fact, "breaks")) if entry is not None]
    failures = [entry for entry in map(_failure, _entries(fact, "failures")) if entry is not None]
    calls = dict(found for entry in _entries(fact, "calls") if (found := _call(entry)) is not None)
    ordered = sorted(compilations, key=lambda entry: entry.start_us)
    return CompileLog(tuple(ordered), tuple(breaks), tuple(failures), calls)


def break_in_words(reason: str) -> str:
    """Returns torch's `reason` of a graph break in words if the words are known, otherwise `reason` itself."""
    return next((words for start, words in _IN_WORDS.items() if reason.startswith(start)), reason)


def guard_in_words(reason: str) -> str:
    """Returns a failed guard as `GUARD, in FILE:LINE: CODE`. `reason` is torch's text `GUARD # CODE # FILE:LINE in
    FUNCTION`; any other text is returned unchanged."""
    guard, *code = reason.rsplit(" # ", 2)
    return f"{guard}, in {code[1].partition(' in ')[0]}: {code[0]}" if len(code) == 2 else reason


def original_function(function: str) -> tuple[str, int]:
    """Returns (name of the function in the program, line of the graph break after which it continues). The line is 0 if
    `function` is not a function that torch created for the code after a graph break."""
    match = RESUMED.match(function)
    return (match[1], int(match[2])) if match else (function, 0)


def _same(file: str, other: str) -> bool:
    """Returns True if one path is the end of the other path. The start of a path depends on how the program is
    started."""
    return f"/{file}".endswith(f"/{other}") or f"/{other}".endswith(f"/{file}")


def _entries(fact: Mapping[str, Any], name: str) -> list[Any]:
    """Returns the first MAX_ENTRIES entries of the list `name` in `fact`; empty if there is no such list."""
    entries = fact.get(name)
    return entries[:MAX_ENTRIES] if isinstance(entries, list) else []


def _compiled(entry: object) -> Compiled | None:
    """Returns a compilation from the JSON form of an entry, or None if the entry is malformed."""
    match entry:
        case [str(number), str(function), str(file), line, start, duration, str(reason)]:
            values, parts = _numbers(line, start, duration), _id(number)
            if values is None or parts is None:
                return None
            at, began, took = values
            return Compiled(*parts, cut(function), cut(file), int(at), began, took, cut(guard_in_words(reason)))
    return None


def _id(number: str) -> tuple[str, int] | None:
    """Returns (frame, number) of a compilation's id, the text `frame/number`, or None if the text is malformed."""
    frame, _, count = number.partition("/")
    return (cut(frame), int(count)) if count.isascii() and count.isdecimal() and len(count) < 10 else None


def _call(entry: object) -> tuple[tuple[str, int, float], Call] | None:
    """Returns (key in `calls` of CompileLog, call) from the JSON form of an entry, or None if the entry is
    malformed."""
    match entry:
        case [str(number), start, str(file), line, str(function)]:
            values, parts = _numbers(start, line), _id(number)
            if values is None or parts is None:
                return None
            return (*parts, values[0]), Call(cut(file), int(values[1]), cut(original_function(function)[0]))
    return None


def _break(entry: object) -> Break | None:
    match entry:
        case [str(file), line, str(function), str(reason), count]:
            values = _numbers(line, count)
            return (values and Break(cut(file), int(values[0]), cut(function), cut(reason), int(values[1]))) or None
    return None


def _failure(entry: object) -> Failure | None:
    match entry:
        case [str(file), line, str(function), str(reason)]:
            values = _numbers(line)
            return (values and Failure(cut(file), int(values[0]), cut(function), cut(reason))) or None
    return None


def _numbers(*values: object) -> list[float] | None:
    """Returns `values` as floats, or None if one of them is not a number from 0 to 2**53."""
    known = [isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53 for value in values]
    return [float(value) for value in values] if all(known) else None  # type: ignore[arg-type]
