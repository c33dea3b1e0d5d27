"""Builds the parts of a report besides its verdicts: input pipeline and parts of a step.

For a part that could not be built, the report has a BrokenPart.

Builds the parts of a report about torch.compile and about replays of captured graphs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from string import Template
from typing import Any

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.input.stages import LoaderWork, Stage, stage_text
from tb_bottleneck.bottlenecks.launch.compile_log import CompileLog, break_in_words, original_function
from tb_bottleneck.bottlenecks.launch.compiled_steps import CompiledSteps
from tb_bottleneck.bottlenecks.launch.graph_replays import GraphReplays, ReplayedGraph
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measures.user_code.step_parts import StepPart
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.frames import frame_parts
from tb_bottleneck.trace.kernel_names import cut

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


def broken_part(part: str) -> pb.BrokenPart:
    """Returns the message that `part` of a report could not be built. Raises KeyError if there is no such part."""
    texts = load("parts.toml")
    return pb.BrokenPart(part=part, because=Template(texts["broken"]).substitute(title=texts["title"][part]))


_KINDS = ("rotational", "ssd", "network", "memory")


def input_pipeline(
    work: LoaderWork | Missing, workers: float | None, needed: Measure | Missing, facts: Mapping[str, Any]
) -> pb.InputPipeline | None:
    """Returns the stages of the input pipeline and the storage.

    If the stages are not known, returns only the storage; None if the storage is not known either. `work` has the
    measured work of the loader. `workers` is the present number of workers (0: the training process makes the batches),
    `needed` the number that would be fast enough. `facts` are the untrusted facts of the run, with the kind of storage.
    """
    place = _storage(facts)
    if isinstance(work, Missing) or not work.ns > 0:
        return pb.InputPipeline(storage=place) if place.ListFields() else None
    stages = sorted((*work.stages, *work.beside), key=lambda stage: -stage.ns)
    total = sum(stage.ns for stage in stages)
    storage = pb.InputStorage(
        read_bytes_per_batch=_per_batch(work, work.read_bytes),
        disk_bytes_per_batch=_per_batch(work, work.disk_bytes),
        reads_per_batch=_per_batch(work, work.reads),
        opens_per_batch=_per_batch(work, work.opens),
    )
    storage.MergeFrom(place)
    return pb.InputPipeline(
        stages=[_stage(stage, work, total) for stage in stages],
        basis=work.basis,
        batch_ns=work.batch_ns,
        workers=workers,
        workers_needed=needed.value if isinstance(needed, Measure) else None,
        waiting_share=work.waiting_share,
        storage=storage if storage.ListFields() else None,
    )


def _storage(facts: Mapping[str, Any]) -> pb.InputStorage:
    kind, system = facts.get("dataset_storage"), facts.get("dataset_filesystem")
    return pb.InputStorage(
        kind=kind if kind in _KINDS else "",
        filesystem=system if isinstance(system, str) and system.isalnum() and len(system) < 20 else "",
    )


def _stage(stage: Stage, work: LoaderWork, total: float) -> pb.InputStage:
    row = pb.InputStage(
        stage=stage.stage,
        name=stage.name,
        share=stage.ns / total,
        ns_per_batch=_per_batch(work, stage.ns),
        title=stage_text(stage),
    )
    if stage.place:
        file, line, function = frame_parts(stage.place)
        row.place.CopyFrom(pb.Place(file=cut(file), line=line, function=cut(function), share=1.0))
    return row


def _per_batch(work: LoaderWork, amount: float | None) -> float | None:
    return amount / work.batches if amount is not None and work.batches > 0 else None


MAX_REGIMES, LEAST_SHARE = 3, 0.05


def parts_of_step(parts: Sequence[StepPart], steps: int) -> list[pb.StepPart]:
    """Returns the messages of the `parts` of a step: the functions that the training loop calls. `steps` is the number
    of recorded steps.

    Each part names at most MAX_REGIMES regimes (kinds of time), each with at least LEAST_SHARE of the step."""
    return [_step_part_row(part, steps) for part in parts]


def _step_part_row(part: StepPart, steps: int) -> pb.StepPart:
    row = pb.StepPart(name=part.place.function, share=part.share, calls=part.calls / steps)
    if part.place.function:
        row.place.CopyFrom(pb.Place(**asdict(part.place)))
    for regime, share in part.regimes[:MAX_REGIMES]:
        if share >= LEAST_SHARE:
            row.account.add(regime=regime, share=share, title=regime.label)
    return row
