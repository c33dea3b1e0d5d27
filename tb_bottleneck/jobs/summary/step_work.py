"""The amount of work of each step, and the times of the costliest kernels."""

import hashlib
from math import prod

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.jobs.summary.rank_summary import KernelTimes, StepWork
from tb_bottleneck.measures.trace.interruptions import interruptions_of
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Ints

MAX_KERNELS = 16


def step_work_of(recording: Recording) -> StepWork:
    """Returns the elements, uploaded bytes and collected garbage per step."""
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
    """Returns the kernels that take the most time."""
    ops = recording.trace.device_ops
    inside = (ops.start >= recording.steps.begin) & (ops.start < recording.steps.end)
    ops = ops.take(inside & np.isin(ops.work, COMPUTE_KERNELS))
    durations = ops.end - ops.start
    names, totals = np.unique(ops.name), np.bincount(ops.name, weights=durations)
    costliest = names[np.argsort(-totals[names], kind="stable")][:MAX_KERNELS].tolist()
    rows = [(_hash(recording.trace.names[name]), durations[ops.name == name]) for name in costliest]
    columns = [[name for name, _ in rows], [len(of) for _, of in rows], [int(np.median(of)) for _, of in rows]]
    return KernelTimes(*(np.array(values, np.int64) for values in columns))


def _elements(recording: Recording) -> Ints:
    """Returns the elements of the first input per signature."""
    return np.array([_first_elements(signature) for signature in recording.trace.signatures], np.int64)


def _first_elements(signature: tuple[bytes, bytes, bytes]) -> int:
    operands = operands_of(signature) if signature[0] else None
    first = operands.dims[0] if operands is not None and operands.dims else ()
    return min(prod(first), 1 << 40) if first and all(isinstance(size, int) for size in first) else 0


def _per_step(recording: Recording, times: Ints, values: Ints) -> Ints:
    step = np.searchsorted(recording.steps.host, times, side="right") - 1
    inside = (step >= 0) & (step < len(recording.steps))
    totals = np.zeros(len(recording.steps), np.int64)
    np.add.at(totals, step[inside], values[inside])
    return totals


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:7], "big")
