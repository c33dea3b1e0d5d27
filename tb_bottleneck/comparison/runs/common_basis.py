"""Brings the step times of two runs to one basis.

A recording without step marks is judged as a whole: from the first device operation to the last. A marked step is
longer: it begins with the host's work before its first device operation, and it may end with the host's. If only one of
the runs has marked steps, each of its steps is cut to its device operations.
"""

from dataclasses import replace

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.knowledge.comparison_texts import headline_text
from tb_bottleneck.trace.table import Ints

WHOLE = "whole"  # basis of a recording without steps


def on_common_basis(a: ComparedRun, b: ComparedRun) -> tuple[ComparedRun, ComparedRun, str | None]:
    """Returns both runs with step times of one basis, and a note if that changed anything or was not possible."""
    wholes = [run.recording.steps.basis == WHOLE for run in (a, b)]
    if wholes[0] == wholes[1]:
        return a, b, None
    letters = {"whole": "A", "marked": "B"} if wholes[0] else {"whole": "B", "marked": "A"}
    marked = b if wholes[0] else a
    spans = device_spans_of(marked.recording) if a.recording.on_device and b.recording.on_device else None
    if spans is None:
        return a, b, headline_text("two_bases").safe_substitute(letters)
    cut = replace(marked, step_bounds=spans)
    note = headline_text("device_spans").safe_substitute(letters)
    return (a, cut, note) if wholes[0] else (cut, b, note)


def device_spans_of(recording: Recording) -> tuple[Ints, Ints] | None:
    """Returns the begin of the first and the end of the last device operation launched in each step, in ns.

    None if a step launches nothing.
    """
    steps, ops = recording.steps, recording.trace.device_ops
    step = np.searchsorted(steps.host, ops.issued(recording.trace.calls), side="right") - 1
    inside = (step >= 0) & (step < len(steps))
    begins, ends = steps.edges[1:].copy(), steps.edges[:-1].copy()
    np.minimum.at(begins, step[inside], np.maximum(ops.start[inside], steps.begin))
    np.maximum.at(ends, step[inside], ops.end[inside])
    return (begins, ends) if (ends > begins).all() else None
