"""Builds the parts of a report about torch.compile and about replays of captured graphs."""

from dataclasses import asdict

from tb_bottleneck.bottlenecks.launch.compile_log import CompileLog, break_in_words, original_function
from tb_bottleneck.bottlenecks.launch.compiled_steps import CompiledSteps
from tb_bottleneck.bottlenecks.launch.graph_replays import GraphReplays, ReplayedGraph
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_ROWS, MAX_REASONS = 10, 3
MIN_NS = 1_000
"""Operators outside of graphs are not listed if they take less time (ns) per step."""
REASONS_MISSING = (
    "The guards and the reasons are not in the trace: record it with tb_bottleneck.Monitor, or run the program with "
    "TORCH_TRACE=DIR, where DIR is the folder of the trace."
)


def recorded_compilation(compiled: CompiledSteps | None, steps: int) -> pb.Compilation | None:
    """Returns what torch.compile did in a trace of `steps` steps, with values per step; None if nothing was
    compiled."""
    if compiled is None:
        return None
    breaks = [
        pb.GraphBreak(
            function=entry.function,
            file=entry.file,
            line=entry.line,
            reason=entry.reason,
            ns_per_step=None if entry.ns is None else entry.ns / steps,
        )
        for entry in compiled.breaks[:MAX_ROWS]
    ]
    functions = [
        pb.CompiledFunction(
            function=entry.function,
            file=entry.file,
            line=entry.line,
            compilations=entry.count,
            reasons=entry.reasons,
            ns=None if entry.failure else entry.ns,
            failure=entry.failure,
        )
        for entry in compiled.functions[:MAX_ROWS]
    ]
    explained = compiled.explained or not (functions or breaks)
    missing = "" if explained else REASONS_MISSING
    return pb.Compilation(
        functions=functions,
        breaks=breaks,
        compile_ns=compiled.compile_ns / steps,
        regions=compiled.regions / steps,
        outside=[
            pb.OutsideGraph(name=entry.name, calls=entry.calls / steps, ns_per_step=entry.ns / steps)
            for entry in compiled.outside
            if entry.ns / steps >= MIN_NS
        ],
        missing=missing,
    )


def logged_compilation(log: CompileLog) -> pb.Compilation | None:
    """Returns what torch.compile did in the whole run, from the monitor's log; None if nothing was compiled. Times and
    counts are totals of the run, not values per step."""
    if not log.compilations:
        return None
    functions: dict[tuple[str, str, int], pb.CompiledFunction] = {}
    for entry in log.compilations:
        named = entry if entry.function else log.function_of(entry.frame)
        if named is None:
            continue
        function, resumed = original_function(named.function)
        key = (function, named.file, resumed or named.line)
        row = functions.setdefault(key, pb.CompiledFunction(function=function, file=key[1], line=key[2], ns=0.0))
        row.failure = log.failure_of(named.file, named.line)
        row.ns += entry.duration_us * 1_000
        row.compilations += bool(entry.function)  # the backward graph belongs to the same compilation
        if entry.reason and entry.reason not in row.reasons and len(row.reasons) < MAX_REASONS:
            row.reasons.append(entry.reason)
    by_place: dict[tuple[str, int], pb.GraphBreak] = {}
    for ended in log.breaks:
        place = by_place.setdefault((ended.file, ended.line), pb.GraphBreak(file=ended.file, line=ended.line))
        place.function = place.function or original_function(ended.function)[0]
        reason = break_in_words(ended.reason)
        if reason not in place.reason:
            place.reason += f"; {reason}" if place.reason else reason
    ordered = sorted(functions.values(), key=lambda row: -row.ns)
    return pb.Compilation(functions=ordered[:MAX_ROWS], breaks=list(by_place.values())[:MAX_ROWS])


def replayed_graphs(replays: GraphReplays | None, steps: int) -> pb.GraphReplays | None:
    """Returns the replays of CUDA graphs in a trace of `steps` steps, with values per step; None if there are none."""
    if replays is None:
        return None
    return pb.GraphReplays(
        graphs=[_graph(graph, steps) for graph in replays.graphs],
        launches=replays.launches / steps,
        outside=[
            pb.OutsideGraph(name=entry.name, calls=entry.count / steps, ns_per_step=entry.ns / steps)
            for entry in replays.outside
            if entry.ns / steps >= MIN_NS
        ],
        outside_operations=replays.outside_count / steps,
        outside_ns=replays.outside_ns / steps,
    )


def _graph(graph: ReplayedGraph, steps: int) -> pb.ReplayedGraph:
    return pb.ReplayedGraph(
        operations=graph.operations,
        launches=graph.launches / steps,
        device_ns=graph.span,
        idle_ns=graph.idle_inside,
        idle_before_ns=graph.idle_before,
        call_ns=graph.call,
        place=pb.Place(**asdict(graph.place)) if graph.place is not None else None,
    )
