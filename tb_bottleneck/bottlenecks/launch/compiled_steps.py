"""The parts of a compiled step outside of compiled graphs: compilations, graph breaks, and operators.

torch marks each call of compiled code with a region `Torch-Compiled Region: frame/number`, and each phase of a
compilation with `NAME (dynamo_timed)`. The code after a graph break becomes a separate function, whose name contains
the line of the break. This function runs inside the region of the code before the break. The functions, the guards that
failed and the reasons of graph breaks come from the monitor or from torch's log beside the trace. The functions can
also come from Python frames.
"""

import re
from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.base.units import NS_PER_US, duration_text
from tb_bottleneck.bottlenecks.launch.compilation import TIMED, OutsideOperator, operators_outside, uncompiled
from tb_bottleneck.bottlenecks.launch.compile_log import CompileLog, break_in_words, compile_log, original_function
from tb_bottleneck.measures.trace.window_rows import host_rows
from tb_bottleneck.trace.frames import frame_parts
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Rows, by_thread

_REGION = re.compile(r"^Torch-Compiled Region: (?:!\d+/)?(\d{1,9})/(\d{1,9})")
_FUNCTION_TIMED = f"_compile.compile_inner {TIMED}"
# A graph that runs: of AOTAutograd, of Inductor, and of torch.fx as the profiler names its frame.
_GRAPH = re.compile(r"^CompiledFunction$|^## Call CompiledFxGraph|^<eval_with_key>")
_NOT_COMPILED = Missing("no compiled region was recorded")
_MAX_LISTED = 3


class Compilations(Record, frozen=True):
    """The compilations of one function in the recording. All texts are untrusted.

    `line` is 0 if the line is not known. `count` is the number of compilations, and `ns` their total time. `reasons`
    are guards that failed. `failure` says why torch runs the function without compiling it; empty if torch compiles the
    function.
    """

    function: str
    file: str
    line: int
    count: int
    reasons: tuple[str, ...]
    ns: float
    failure: str = ""


class BrokenGraph(Record, frozen=True):
    """A graph break in `function`, at `line` of `file`. All texts are untrusted.

    `reason` is torch's reason for the break; empty if the reason is not known. `ns` is the total time in all steps from
    the end of the graph before the break to the start of the region after it, without the time of compiling; None if
    this time is not known.
    """

    function: str
    file: str
    line: int
    reason: str
    ns: float | None


class CompiledSteps(Record, frozen=True):
    """The compiled functions, graph breaks and operators outside of graphs of a window; each is sorted by time, longest
    first.

    `regions` is the number of runs of compiled regions, `compile_ns` the total time (ns) of compiling, both in all
    steps. `explained` is True if a log gives the reasons of compilations.
    """

    functions: tuple[Compilations, ...]
    breaks: tuple[BrokenGraph, ...]
    outside: tuple[OutsideOperator, ...]
    regions: int
    compile_ns: int
    explained: bool  # by a log


@memoized
def compiled_steps(recording: Recording) -> CompiledSteps | None:
    """Returns what is known about the compiled code of the window, or None if nothing was compiled."""
    regions = host_rows(recording, lambda name: bool(_REGION.match(name)), Kind.CPU_OP, Kind.ANNOTATION)
    timed = host_rows(recording, lambda name: name.endswith(TIMED), Kind.CPU_OP, Kind.ANNOTATION)
    failed = {(entry.function, entry.file, entry.line): entry.reason for entry in uncompiled(recording)}
    if not len(regions) and not len(timed) and not failed:
        return None
    events, log = recording.trace.events, compile_log(recording.trace.header.context)
    compiling = union(events.start[timed], events.end[timed])
    functions = _functions_of(recording, regions, log)
    known = _compilations(recording, compiling, regions, functions, log)
    never = tuple(Compilations(*key, 0, (), 0.0, reason) for key, reason in failed.items())
    return CompiledSteps(
        (*(entry for entry in known if (entry.function, entry.file, entry.line) not in failed), *never),
        _breaks(recording, compiling, regions, functions, log),
        operators_outside(recording, regions),
        len(regions),
        compiling.total(),
        bool(log.compilations),
    )


def recompiled_functions(recording: Recording) -> Measure | Missing:
    """The functions that were compiled in the window, each with the number of compilations, their time and the first
    guard that failed, as text."""
    steps = compiled_steps(recording)
    if steps is None or not steps.functions:
        return Missing("no compilation by torch.compile was recorded")
    named = [entry for entry in steps.functions if entry.function and not entry.failure]
    if not named:
        return Missing("which function was compiled is not known; the monitor or Python frames would show it")
    texts = []
    for entry in named[:_MAX_LISTED]:
        reason = f": {entry.reasons[0]}" if entry.reasons else ""
        texts.append(f"{_place(entry)}, {entry.count} times, {duration_text(entry.ns)}{reason}")
    return text_measure("; ".join(texts), sum(entry.count for entry in steps.functions))


def broken_graphs(recording: Recording) -> Measure | Missing:
    """The places in the program at which graphs end, with the reasons, as text."""
    steps = compiled_steps(recording)
    if steps is None:
        return _NOT_COMPILED
    if not steps.breaks:
        return Missing("no graph break was recorded")
    texts = [f"{_place(entry)}{f': {entry.reason}' if entry.reason else ''}" for entry in steps.breaks[:_MAX_LISTED]]
    return text_measure("; ".join(texts), len(steps.breaks))


def _place(entry: Compilations | BrokenGraph) -> str:
    return f"{entry.function} ({entry.file}:{entry.line})" if entry.file else entry.function


def _functions_of(recording: Recording, regions: Rows, log: CompileLog) -> dict[str, tuple[str, str, int]]:
    """Returns a dict: number that torch gives a compiled function -> (function, file, line). The values come from the
    compile log `log` or, for functions that are not in it, from Python frames. `regions` are the event rows of compiled
    regions.

    The frame of a compiled function is the first frame outside torch that begins inside the region of the function.
    """
    trace, events = recording.trace, recording.trace.events
    frames, found = trace.rows(Kind.PYTHON), {}
    for name in np.unique(events.name[regions]).tolist():
        match = _REGION.match(trace.names[name])
        frame = match[1] if match else ""
        entry = log.function_of(frame)
        if entry is not None:
            found[frame] = (entry.function, entry.file, entry.line)
            continue
        region = int(regions[np.flatnonzero(events.name[regions] == name)[0]])
        at = int(np.searchsorted(events.start[frames], events.start[region]))
        inside = frames[at : at + 50]
        inside = inside[(events.thread[inside] == events.thread[region]) & (events.end[inside] <= events.end[region])]
        texts = (trace.names[events.name[row]] for row in inside.tolist())
        text = next((text for text in texts if ".py(" in text and not text.startswith(("torch/", "<"))), "")
        if text:
            file, line, function = frame_parts(text)
            found.setdefault(frame, (cut(function), cut(file), line))
    return found


def _compilations(
    recording: Recording, compiling: Spans, regions: Rows, functions: dict[str, tuple[str, str, int]], log: CompileLog
) -> tuple[Compilations, ...]:
    """Returns the compilations of each function, the function with the longest time first. Without a log, the compiled
    region that follows a compilation shows which function was compiled.

    `compiling` is the time in which torch compiles. `regions` are the event rows of compiled regions. `functions` is
    the result of `_functions_of`.
    """
    trace, events = recording.trace, recording.trace.events
    starts, base = events.start[regions], trace.header.base_time_ns
    begun = np.sort(
        events.start[host_rows(recording, lambda name: name == _FUNCTION_TIMED, Kind.CPU_OP, Kind.ANNOTATION)]
    )
    totals: dict[tuple[str, str, int], float] = defaultdict(float)
    counts: dict[tuple[str, str, int], int] = defaultdict(int)
    reasons: dict[tuple[str, str, int], dict[str, None]] = defaultdict(dict)
    key: tuple[str, str, int] | None = None
    for begin, end in zip(compiling.starts.tolist(), compiling.ends.tolist(), strict=True):
        entry = log.at((base + begin) / NS_PER_US, (base + end) / NS_PER_US) if base else None
        following = int(np.searchsorted(starts, end))
        match = _REGION.match(trace.names[events.name[regions[following]]]) if following < len(regions) else None
        frame = entry.frame if entry is not None else match[1] if match else ""
        function, file, line = functions.get(frame, ("", "", 0))
        if entry is not None and entry.function:
            function, file, line = entry.function, entry.file, entry.line
        function, resumed = original_function(function)
        count = int(np.searchsorted(begun, end) - np.searchsorted(begun, begin))
        if count or entry is not None or key is None:  # otherwise a backward graph of the previous function
            key = (function, file, resumed or line)
        totals[key] += end - begin
        counts[key] += count
        if entry is not None and entry.reason:
            reasons[key].setdefault(entry.reason)
    ordered = sorted(totals, key=lambda key: -totals[key])
    return tuple(Compilations(*key, counts[key], tuple(reasons[key])[:_MAX_LISTED], totals[key]) for key in ordered)


def _breaks(
    recording: Recording, compiling: Spans, regions: Rows, functions: dict[str, tuple[str, str, int]], log: CompileLog
) -> tuple[BrokenGraph, ...]:
    """Returns the graph breaks, longest first. Each break is found from the compiled region of the function that torch
    created for the code after the break. The arguments are as in `_compilations`."""
    trace, events = recording.trace, recording.trace.events
    graphs = host_rows(recording, lambda name: bool(_GRAPH.search(name)), Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON)
    graph_ends = np.sort(events.end[graphs])
    around = _around(recording, regions)
    spent: dict[tuple[str, str, int], float | None] = {}
    for region, outer in zip(regions.tolist(), around.tolist(), strict=True):
        match = _REGION.match(trace.names[events.name[region]])
        function, file, _ = functions.get(match[1] if match else "", ("", "", 0))
        original, line = original_function(function)
        if not line:
            continue
        begin = int(events.start[region])
        before = int(np.searchsorted(graph_ends, begin, side="right")) - 1
        key, gap = (original, file, line), None
        # The time is known only if the graph before the break ended inside the region that contains this region.
        if before >= 0 and outer != region and graph_ends[before] > events.start[outer]:
            ended = int(graph_ends[before])
            gap = float(begin - ended - int(compiling.covered(ended, begin)))
        previous = spent.get(key)
        spent[key] = previous if gap is None else gap + (previous or 0.0)
    found = [BrokenGraph(*key, _reason(log, key), ns) for key, ns in spent.items()]
    return tuple(sorted(found, key=lambda entry: -(entry.ns or 0.0)))


def _around(recording: Recording, regions: Rows) -> Rows:
    """Returns for each of `regions` (event rows) the innermost other region that contains it, or the region itself if
    there is none."""
    events, around = recording.trace.events, regions.copy()
    for own in by_thread(np.arange(len(regions)), events.thread[regions]).values():
        rows = regions[own]
        around[own] = rows[nest(events.start[rows], events.end[rows]).parent]
    return around


def _reason(log: CompileLog, key: tuple[str, str, int]) -> str:
    """Returns torch's reasons for the graph breaks at `key` (function, file, line), joined by semicolons; empty if they
    are not known."""
    _, file, line = key
    found = dict.fromkeys(entry.reason for entry in log.breaks if entry.line == line and entry.file == file)
    return "; ".join(break_in_words(reason) for reason in found)
