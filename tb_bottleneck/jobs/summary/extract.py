"""Extracts the summary of one rank from its recording."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.jobs.summary.communication_rows import communications_of
from tb_bottleneck.jobs.summary.own_time import ends_with, points_of, waits_of
from tb_bottleneck.jobs.summary.process_groups import GroupTable
from tb_bottleneck.jobs.summary.rank_summary import RankFacts, RankSummary
from tb_bottleneck.jobs.summary.step_work import kernel_times_of, step_work_of
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.trace.header import hash_of_host
from tb_bottleneck.trace.steps import step_numbers
from tb_bottleneck.trace.table import Ints


def summary_of(recording: Recording, host_name: str = "") -> RankSummary | None:
    """Returns the summary, or None if the recording is not one rank of several. `host_name` counts if the recording has
    none."""
    header, steps = recording.trace.header, recording.steps
    if header.rank is None or header.world_size is None or not header.rank < header.world_size >= 2:
        return None
    groups = GroupTable(header)
    communications = communications_of(recording, groups)
    waits = waits_of(recording, communications)
    communications = ends_with(communications, waits)
    return RankSummary(
        facts=_facts(recording, header.rank, header.world_size, host_name),
        groups=groups.groups(),
        numbers=step_numbers(recording.trace, steps),
        edges=steps.edges - steps.begin,
        account=_account(recording),
        work=step_work_of(recording),
        kernels=kernel_times_of(recording),
        communications=communications,
        points=points_of(recording, communications, waits),
    )


def _facts(recording: Recording, rank: int, world_size: int, host_name: str) -> RankFacts:
    trace = recording.trace
    header = trace.header
    device = header.device(trace.device_index)
    local_size = header.context.get("local_world_size")
    return RankFacts(
        rank=rank,
        world_size=world_size,
        host=header.host or hash_of_host(host_name),
        local_size=local_size if isinstance(local_size, int) and 0 < local_size <= world_size else 0,
        backend=header.backend,
        device=device.name if device is not None and recording.on_device else "",
        begin_ns=header.base_time_ns + recording.steps.begin,
        marked=recording.steps.basis == "profiler_step",
        lost=bool(trace.lost) or bool(trace.truncated),
    )


def _account(recording: Recording) -> Ints:
    """Returns the time per step by regime, in ns."""
    edges = recording.steps.edges
    by_regime = recording.owned_spans.covered(edges[:-1], edges[1:])
    return np.stack([by_regime[regime] for regime in REGIMES], axis=1)
