"""The kind of each process group, the stages of a pipeline, and the peers of each rank.

The description of a group gives its kind. If a group has no description, the kind follows from its communications: only
messages mean a pipeline, mostly all-to-alls mean experts, and gathers with scatters mean sharded parameters.
All-reduces mean averaged gradients or, if there are many per step between neighbouring ranks, layers that are split
over ranks.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.pairs import Pairs
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.knowledge.catalogue import kind_of_description
from tb_bottleneck.trace.header import ProcessGroup
from tb_bottleneck.trace.table import Ints

# Smallest number of all-reduces per rank and step in a tensor-parallel group. A tensor-parallel layer has two
# all-reduces forward and two backward (Megatron-LM, arXiv 1909.08053); averaging gradients needs only some all-reduces
# (buckets) per step.
MIN_TENSOR_CALLS = 16
# Largest number of ranks of a tensor-parallel group. Tensor parallelism stays within a node, which has at most this
# many devices (NVLink domains of HGX machines).
MAX_TENSOR_RANKS = 16
# Smallest number of messages per step, sent and received, between a rank and another stage of its pipeline. Stages
# exchange an activation and a gradient per microbatch; ranks with fewer messages are not connected as stages.
MIN_MESSAGES = 2
OVERLAPPED_KINDS = ("data", "sharded", "unknown")
"""Kinds of groups whose collectives can run in parallel with the work that follows. In groups of other kinds, the work
that follows needs the data."""

LAYER_KINDS = ("tensor", "context", "expert")
"""Kinds of groups whose collectives are part of the layers, and therefore of the work of a microbatch."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The parallel layout of a job.

    `kinds` has the kind of each process group of the job: "data", "tensor", "pipeline", "expert", "context", "sharded"
    or "unknown". `stage` has for each recorded rank its pipeline stage, from 0. `stages` is the number of stages; 1
    means that there is no pipeline.
    """

    kinds: tuple[str, ...]
    stage: Ints
    stages: int

    def peers(self, rank: int) -> Ints:
        """Returns the recorded ranks in the same stage as `rank`, including `rank` itself. `rank` and the result are
        positions among the recorded ranks, not rank numbers."""
        return np.flatnonzero(self.stage == self.stage[rank])


def grid_of(job: JobTable, pairs: Pairs) -> Grid:
    """Returns the parallel layout of a job: the kinds of its process groups, and the pipeline stages of its ranks."""
    kinds = tuple(_kind(job, row, group) for row, group in enumerate(job.groups))
    return Grid(kinds, *_stages(job, pairs, kinds))


def _kind(job: JobTable, row: int, group: ProcessGroup) -> str:
    """Returns the kind of a process group, one of the values of `Grid.kinds`. `row` is the index of `group` in
    `job.groups`."""
    described = kind_of_description(group.description)
    if described is not None:
        return described
    mine = job.rows.group == row
    carries = Counter({Operation(op): int(n) for op, n in enumerate(np.bincount(job.rows.operation[mine])) if n})
    calls = sum(carries.values())
    messages = carries[Operation.SEND] + carries[Operation.RECV]
    if calls and messages == calls:
        return "pipeline"
    if carries[Operation.ALL_TO_ALL] * 2 > calls:
        return "expert"
    if carries[Operation.REDUCE_SCATTER] and carries[Operation.ALL_GATHER]:
        return "sharded"
    if not carries[Operation.ALL_REDUCE]:
        return "unknown"
    steps = sum(summary.steps for summary in job.summaries) / len(job.summaries)
    users = max(len(np.unique(job.rows.rank[mine])), 1)
    many = carries[Operation.ALL_REDUCE] / users / steps >= MIN_TENSOR_CALLS
    near = 1 < len(group.ranks) <= MAX_TENSOR_RANKS and group.ranks[-1] - group.ranks[0] == len(group.ranks) - 1
    return "tensor" if many and near and len(group.ranks) < job.world_size else "data"


def _stages(job: JobTable, pairs: Pairs, kinds: tuple[str, ...]) -> tuple[Ints, int]:
    """Returns the stage of each recorded rank, from 0, and the number of stages, including stages without a recorded
    rank.

    `kinds` has the kind of each process group. Ranks that exchange messages are in one pipeline. The ranks of a group
    of a pipeline are also in one pipeline, but not those of the whole job, whose messages may be of several pipelines.
    Stages are in the order of ranks, as in Megatron-LM and torch.
    """
    pipeline = np.array([kind in ("pipeline", "unknown", "data") for kind in kinds] or [False])
    messages = np.isin(job.rows.operation, (Operation.SEND, Operation.RECV)) & (job.rows.peer >= 0)
    messages &= pipeline[job.rows.group] if len(job.rows) else messages
    ends = np.stack((np.array(job.ranks)[job.rows.rank[messages]], job.rows.peer[messages]))
    edges, count = np.unique(ends, axis=1, return_counts=True)
    steps = max(summary.steps for summary in job.summaries)
    edges = edges[:, count >= MIN_MESSAGES * steps]
    member: dict[int, int] = {rank: rank for rank in job.ranks}
    for a, b in edges.T.tolist():
        root_a, root_b = _root(member, a), _root(member, b)
        member[max(root_a, root_b)] = min(root_a, root_b)
    exchanging = set(np.unique(job.rows.group[messages]).tolist()) if len(edges.T) else set()
    for row in exchanging:
        group = job.groups[row]
        part = bool(group.name) and len(group.ranks) < job.world_size
        if kinds[row] == "pipeline" and (part or kind_of_description(group.description) == "pipeline"):
            for a, b in pairwise(group.ranks):
                root_a, root_b = _root(member, a), _root(member, b)
                member[max(root_a, root_b)] = min(root_a, root_b)
    pipelines: defaultdict[int, list[int]] = defaultdict(list)
    for rank in sorted(member):
        pipelines[_root(member, rank)].append(rank)
    place = {rank: position for ranks in pipelines.values() for position, rank in enumerate(ranks)}
    return np.array([place[rank] for rank in job.ranks], np.int64), max(map(len, pipelines.values()), default=1)


def _root(member: dict[int, int], rank: int) -> int:
    """Returns the representative of the set of `rank` in the union-find forest `member` (from each rank to another rank
    of its set). The path from `rank` is shortened in place."""
    member.setdefault(rank, rank)
    while member[rank] != rank:
        member[rank] = member[member[rank]]
        rank = member[rank]
    return rank
