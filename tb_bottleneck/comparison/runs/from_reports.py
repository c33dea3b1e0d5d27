"""A side of a comparison of which only the reports are left: `diagnose --json`, or what lies beside a trace.

A baseline can so be kept in a repository without its traces. What only a trace tells is not compared then: whether it
is the same work, the batch, what is around the runs, and what another device promises.
"""

import json
import math
from typing import Any

from google.protobuf import json_format

from tb_bottleneck.comparison.runs.compared_run import Judged, Unjudged, of_ranks
from tb_bottleneck.comparison.texts.sanitize import printable
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.report.saved_report import parse_report
from tb_bottleneck.schema import bottleneck_pb2 as pb

TELEMETRY = "telemetry"  # the witness of a report that no trace is behind
MOST_SHOWN = 4  # names of runs
MOST_NS = 1e18  # some 30 years: of one step, or of one regime in it


def reported(name: str, text: bytes) -> Judged | Unjudged:
    """The run that these reports are of; of each rank the last one that has a verdict."""
    try:
        reports = [parse_report(one, ignore_unknown_fields=True) for one in _reports(text)]
    except (ValueError, RecursionError, json_format.ParseError):
        return Unjudged(name, (f"{name} holds no report: `tb-bottleneck diagnose --json` writes one.",))
    found = [report for report in reports if report.HasField("verdict") and _is_sound(report)]
    if not found:
        return Unjudged(name, (f"{name} holds no report with a verdict.",))
    runs = sorted({report.run for report in found if report.evidence_source != TELEMETRY})
    if len(runs) > 1:
        shown = ", ".join(map(printable, runs[:MOST_SHOWN])) + (", ..." if len(runs) > MOST_SHOWN else "")
        because = (
            f"{name} holds reports of {len(runs)} runs ({shown}); `tb-bottleneck diagnose RUN --json` tells of one."
        )
        return Unjudged(name, (because,))
    # Where a trace was judged too, telemetry is heard and not compared: it cannot tell all that a trace does.
    traces = {report.rank: report for report in found if report.evidence_source != TELEMETRY}
    heard = [report for report in found if report.evidence_source == TELEMETRY]
    judged = traces or {report.rank: report for report in heard}
    ranks = tuple(judged[rank] for rank in sorted(judged))
    for report in ranks:
        report.run = name
    return Judged(name, ranks, of_ranks(ranks), heard=tuple(heard) if traces else ())


def _reports(text: bytes) -> list[Any]:
    """The reports in {"reports": [...]}, or in {"report": ...}. Raises ValueError."""
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("no object")
    found = content["reports"] if "reports" in content else [content.get("report")]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError("no reports")
    return found


def _is_sound(report: pb.Report) -> bool:
    """Whether it has a whole account in numbers that a step can have."""
    times = [row.ns_per_step for row in report.account] + list(report.window.step_times_ns)
    return (
        [row.regime for row in report.account] == list(REGIMES)
        and all(math.isfinite(ns) and 0 <= ns < MOST_NS for ns in times)
        and sum(row.ns_per_step for row in report.account) > 0
    )
