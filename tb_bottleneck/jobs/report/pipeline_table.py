"""One step of a pipeline for its diagram: the passes of each rank, and which passes are on the critical path."""

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.pipeline_passes import spans_of
from tb_bottleneck.jobs.replay.sweep import critical_work
from tb_bottleneck.schema.job_pb2 import PipelineTable
from tb_bottleneck.trace.table import Bools

MAX_RANKS, MAX_SPANS = 32, 8_000
"""Largest numbers of ranks and of spans (passes of a microbatch on a rank) in a diagram. In a larger diagram, single
spans could not be distinguished."""


def pipeline_table(context: JobContext) -> PipelineTable | None:
    """Returns the forward and backward passes of one step, the middle one of the steps that all ranks recorded.

    Returns None if there is no pipeline, if the clocks are not aligned, if the ranks have no step in common, or if this
    step has no passes.
    """
    job, graph = context.job, context.graph
    if context.grid.stages < 2 or context.clocks.because:
        return None
    numbers = [np.array(s.numbers) if job.numbered else np.arange(s.steps) for s in job.summaries]
    common = sorted(set.intersection(*(set(each.tolist()) for each in numbers)))
    if not common:
        return None
    step = common[len(common) // 2]
    complete = context.complete
    own, wire = (graph.points.own[complete.point], context.wires.wire[complete.row])
    critical = critical_work(complete.graph, context.replay, own, wire)[: len(graph.points)]
    table = PipelineTable(step=step)
    spans = [
        (job.ranks[row], context.graph.begin[row], each)
        for row in _shown(context, critical)
        for each in spans_of(context, row, int(np.searchsorted(numbers[row], step)))
    ][:MAX_SPANS]
    origin = min((begin + each.begin for _, begin, each in spans), default=0.0)
    for rank, begin, each in spans:
        table.rank.append(rank)
        table.phase.append(each.phase)
        table.microbatch.append(each.microbatch)
        table.begin_ns.append(round(begin + each.begin - origin))
        table.end_ns.append(round(begin + each.end - origin))
        table.critical.append(bool(critical[each.point]))
    return table if spans else None


def _shown(context: JobContext, critical: Bools) -> list[int]:
    """Returns the positions of the ranks that the diagram shows, sorted by replica (one copy of the pipeline) and
    stage.

    `critical` is a mask of the points on the critical path. If there are more than MAX_RANKS ranks, the replicas with
    the most points on the critical path are chosen.
    """
    stage = context.grid.stage
    replica = np.array([int((stage[:row] == stage[row]).sum()) for row in range(len(stage))])
    on_path = np.bincount(replica[context.graph.points.rank[critical]], minlength=int(replica.max()) + 1)
    chosen = np.argsort(-on_path, kind="stable")[: max(MAX_RANKS // context.grid.stages, 1)]
    rows = [row for row in range(len(stage)) if replica[row] in chosen]
    return sorted(rows, key=lambda row: (replica[row], stage[row]))[:MAX_RANKS]
