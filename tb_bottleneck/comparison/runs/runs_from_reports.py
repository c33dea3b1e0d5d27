"""Runs that are known only from reports, and a common basis for the step times of two runs.

The reports are the output of `diagnose --json`, or the report file next to a trace. With reports, a baseline can be
kept in a repository without its traces. Facts that only a trace contains are not compared: similarity of the work,
batch size, environment, and the expected time on another device.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from google.protobuf import json_format

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.comparison.runs.compared_run import (
    TELEMETRY,
    ComparedRun,
    JudgedRun,
    UnjudgedRun,
    representative_report,
)
from tb_bottleneck.comparison.texts.value_text import sanitize
from tb_bottleneck.knowledge.comparison_texts import headline_text
from tb_bottleneck.report.json_form import parse_report
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.table import Ints

WHOLE = "whole"  # basis of a recording without steps


def on_common_basis(a: ComparedRun, b: ComparedRun) -> tuple[ComparedRun, ComparedRun, str | None]:
    """Returns both runs with comparable step times, and a note if a run had to be changed or cannot be changed.

    A recording without step marks is judged as a whole, from the first device operation to the last. A marked step is
    longer: it begins with the host's work before the first device operation, and may end with work of the host. If only
    one of the runs has marked steps, each of its steps is shortened to the time from its first to its last device
    operation.
    """
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
    """Returns for each step the start of the first and the end of the last device operation that it launches, as two
    arrays in ns. Returns None if a step launches nothing."""
    steps, ops = recording.steps, recording.trace.device_ops
    step = np.searchsorted(steps.host, ops.issued(recording.trace.calls), side="right") - 1
    inside = (step >= 0) & (step < len(steps))
    begins, ends = steps.edges[1:].copy(), steps.edges[:-1].copy()
    np.minimum.at(begins, step[inside], np.maximum(ops.start[inside], steps.begin))
    np.maximum.at(ends, step[inside], ops.end[inside])
    return (begins, ends) if (ends > begins).all() else None


MAX_RUN_NAMES = 4  # that a message lists
SHARES_TOLERANCE = 1e-3
MAX_STEP_NS = 1e18  # about 30 years: largest time of a step, or of one regime in a step
MIN_STEP_NS = 1.0  # smallest step time, so that ratios of step times are finite


def run_from_reports(name: str, text: bytes) -> JudgedRun | UnjudgedRun:
    """Returns the run that the reports in `text`, the JSON output of `diagnose`, describe. `name` is the name of the
    run in texts. The last report with a verdict of each rank is used.

    If there is no usable report, returns an UnjudgedRun.
    """
    try:
        reports = [parse_report(one, ignore_unknown_fields=True) for one in _reports(text)]
    except (ValueError, RecursionError, json_format.ParseError):
        return UnjudgedRun(name, (f"{name} contains no report; `tb-bottleneck diagnose --json` writes one.",))
    return run_of(name, reports)


def run_of(name: str, reports: Iterable[pb.Report]) -> JudgedRun | UnjudgedRun:
    """Returns the run that `reports` describe, one or more per rank, oldest first. Modifies `reports`.

    Returns an UnjudgedRun if no report has a verdict, or if the reports are of several runs.
    """
    reports = [_with_all_regimes(report) for report in reports]
    sound = [report for report in reports if report.HasField("verdict") and _is_sound(report)]
    if not sound:
        return UnjudgedRun(name, (f"{name} contains no report with a verdict.",))
    names = sorted({report.run for report in sound if report.evidence_source != TELEMETRY})
    if len(names) > 1:
        shown = ", ".join(map(sanitize, names[:MAX_RUN_NAMES])) + (", ..." if len(names) > MAX_RUN_NAMES else "")
        because = (
            f"{name} contains reports of {len(names)} runs ({shown}); "
            "`tb-bottleneck diagnose RUN --json` writes those of one run."
        )
        return UnjudgedRun(name, (because,))
    # If a trace was judged too, the trace is compared, because telemetry shows less; telemetry only adds findings.
    traces = {report.rank: report for report in sound if report.evidence_source != TELEMETRY}
    telemetry = [report for report in sound if report.evidence_source == TELEMETRY]
    judged = traces or {report.rank: report for report in telemetry}
    ranks = tuple(judged[rank] for rank in sorted(judged))
    for report in ranks:
        report.run = name
    return JudgedRun(name, ranks, representative_report(ranks), telemetry_reports=tuple(telemetry) if traces else ())


def _reports(text: bytes) -> list[Any]:
    """Returns the reports in {"reports": [...]} or {"report": ...}. Raises ValueError if there are none."""
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    reports = content["reports"] if "reports" in content else [content.get("report")]
    if not isinstance(reports, list) or not all(isinstance(one, dict) for one in reports):
        raise ValueError("no reports")
    return reports


def _with_all_regimes(report: pb.Report) -> pb.Report:
    """Adds empty rows to the account (time per regime) of `report` for the regimes that did not exist when the report
    was saved, and returns it. An incomplete account, whose shares do not sum to 1, is not changed."""
    rows = {row.regime: row for row in report.account}
    saved = [row.regime for row in report.account]
    is_complete = abs(sum(row.share for row in report.account) - 1) < SHARES_TOLERANCE
    if is_complete and saved == [regime for regime in REGIMES if regime in rows]:
        account = [rows.get(regime) or pb.AccountRow(regime=regime, title=regime.label) for regime in REGIMES]
        del report.account[:]
        report.account.extend(account)
    return report


def _is_sound(report: pb.Report) -> bool:
    """Returns True if the report, which is untrusted, has an account (time per regime) with all regimes and plausible
    step times."""
    account = [row.ns_per_step for row in report.account]
    steps = [*report.window.step_times_ns, *report.unprofiled.step_times_ns]
    if report.HasField("unprofiled"):
        steps.append(report.unprofiled.step_ns)
    return (
        [row.regime for row in report.account] == list(REGIMES)
        and all(0 <= ns < MAX_STEP_NS for ns in (*account, report.window.step_ns.median))
        and all(MIN_STEP_NS <= ns < MAX_STEP_NS for ns in (*steps, sum(account)))
    )
