"""Extracts the summary of one rank from its recording, with the work of each step and the costliest kernels.

If the extraction fails, only the summary is missing; the report is not affected.
"""

import hashlib
import logging
import os
import re
from math import prod

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.bottlenecks.interruption.facts import interruptions_of
from tb_bottleneck.jobs.machines import FIGURES
from tb_bottleneck.jobs.summary.communication_rows import communications_of
from tb_bottleneck.jobs.summary.encoding import encode
from tb_bottleneck.jobs.summary.own_time import GroupTable, ends_with, points_of, waits_of
from tb_bottleneck.jobs.summary.rank_summary import KernelTimes, RankFacts, RankSummary, StepWork
from tb_bottleneck.sources.file_system import host_of
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.header import hash_of_host
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.process_facts import positive
from tb_bottleneck.trace.steps import step_numbers
from tb_bottleneck.trace.table import Ints

MAX_KERNELS = 16
_ATTENTION_GRADIENTS = (
    re.compile(r"(?i)att(?:entio)?n\w*backward"),
    re.compile("^aten::_softmax_backward_data$"),  # the softmax of a loss is called _log_softmax
)
"""Names of backward operators that are called once per attention layer: those of fused attention or, if there are none,
the softmax of attention that consists of single operators."""


def step_work_of(recording: Recording) -> StepWork:
    """Returns the amount of work in each step: elements of the first inputs of all operators, bytes copied to the
    device, and time of garbage collection in ns."""
    trace, events = recording.trace, recording.trace.events
    operators = trace.rows(Kind.CPU_OP)
    elements = _elements(recording)[events.signature[operators]]
    ops = trace.device_ops.take(trace.device_ops.work == Work.UPLOAD)
    collections = interruptions_of(recording).of("collection").rows
    return StepWork(
        elements=_per_step(recording, events.start[operators], elements),
        uploaded=_per_step(recording, ops.issued(trace.calls), ops.bytes),
        collected=_per_step(recording, events.start[collections], events.duration[collections]),
    )


def kernel_times_of(recording: Recording) -> KernelTimes:
    """Returns the MAX_KERNELS compute kernels that take the most time in the window, costliest first."""
    ops = recording.trace.device_ops
    inside = (ops.start >= recording.steps.begin) & (ops.start < recording.steps.end)
    ops = ops.take(inside & np.isin(ops.work, COMPUTE_KERNELS))
    durations = ops.end - ops.start
    names, totals = np.unique(ops.name), np.bincount(ops.name, weights=durations)
    costliest = names[np.argsort(-totals[names], kind="stable")][:MAX_KERNELS].tolist()
    rows = [
        (_hash(recording.trace.names[name]), mine.sum(), np.median(durations[mine]), np.median(ops.blocks[mine]))
        for name, mine in ((name, ops.name == name) for name in costliest)
    ]
    return KernelTimes(*np.array(rows, np.int64).reshape(-1, 4).T.copy())


def attentions_of(recording: Recording) -> int:
    """Returns the median number of backward passes of attention per step; 0 if no such operator was recorded.

    For a transformer, this is its number of layers times the number of microbatches, even if forward passes are
    recomputed. If several backward operators match, the most frequent one counts, because one may call the other.
    """
    trace, events = recording.trace, recording.trace.events
    operators = trace.rows(Kind.CPU_OP)
    names = np.unique(events.name[operators]).tolist()
    for pattern in _ATTENTION_GRADIENTS:
        rows = [operators[events.name[operators] == name] for name in names if pattern.search(trace.names[name])]
        if rows:
            calls = [_per_step(recording, events.start[mine], np.ones(len(mine), np.int64)) for mine in rows]
            return int(max(np.median(each) for each in calls))
    return 0


def _elements(recording: Recording) -> Ints:
    """Returns for each entry of `trace.signatures` (shapes and types of the inputs of an operator) the number of
    elements of the first input; 0 if it is not known."""
    return np.array([_first_elements(signature) for signature in recording.trace.signatures], np.int64)


def _first_elements(signature: tuple[bytes, bytes, bytes]) -> int:
    operands = operands_of(signature) if signature[0] else None
    first = operands.dims[0] if operands is not None and operands.dims else ()
    return min(prod(first), 1 << 40) if first and all(isinstance(size, int) for size in first) else 0


def _per_step(recording: Recording, times: Ints, values: Ints) -> Ints:
    """Returns for each step the sum of the `values` whose `times` (ns, one per value) are in the step on the host."""
    step = np.searchsorted(recording.steps.host, times, side="right") - 1
    inside = (step >= 0) & (step < len(recording.steps))
    totals = np.zeros(len(recording.steps), np.int64)
    np.add.at(totals, step[inside], values[inside])
    return totals


def _hash(name: str) -> int:
    """Returns the first 56 bits of the SHA-256 hash of `name`."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:7], "big")


def summary_of(recording: Recording, host_name: str = "") -> RankSummary | None:
    """Returns the summary of the rank of a recording; None if the recording does not say that it is one of several
    ranks. `host_name` is used if the recording does not name its host."""
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
        attentions=attentions_of(recording),
        machine=_machine(header.context.get("machine_figures")),
    )


def _machine(found: object) -> dict[str, float]:
    """Returns the valid figures of the machine."""
    figures = found if isinstance(found, dict) else {}
    known = ((name, positive(figures.get(name))) for name in FIGURES)
    return {name: value for name, value in known if value is not None}


def _account(recording: Recording) -> Ints:
    """Returns the time of each step by regime in ns, of shape (steps, regimes), in the order of REGIMES."""
    edges = recording.steps.edges
    by_regime = recording.owned_spans.covered(edges[:-1], edges[1:])
    return np.stack([by_regime[regime] for regime in REGIMES], axis=1)


_log = logging.getLogger(__name__)


def encoded_summary(recording: Recording, path: str) -> bytes:
    """Returns the encoded summary of the recording at `path`, or empty bytes if the recording is not one of several
    ranks.

    The summary has the recorded times, including the profiler overhead, because the ranks wait for each other while all
    of them are recorded. Errors are logged and give empty bytes. Raises only MemoryError.
    """
    try:
        summary = summary_of(recording.as_recorded, host_of(os.path.basename(path)))
        return encode(summary) if summary is not None else b""
    except MemoryError:
        raise
    except Exception:
        _log.exception("the summary of one recording failed")
        return b""
