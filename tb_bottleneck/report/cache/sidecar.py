"""The report that `diagnose --write` stores next to its trace, as NAME.bottlenecks.json (the sidecar).

A logdir is often shared, so a sidecar is untrusted. Lists of recordings take its ids, names and numbers while the trace
is unchanged, and show this package's own texts about them; a whole report is always made from the trace.
"""

import errno
import json
import re
from math import fsum, inf
from pathlib import Path

from google.protobuf import json_format
from google.protobuf.message import Message

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.persistence import write_atomically
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import one_line, share_text
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.bottlenecks.texts import assumptions, regime_advice, word
from tb_bottleneck.knowledge.memory_texts import memory_advice
from tb_bottleneck.knowledge.texts import words_for
from tb_bottleneck.report.builders.action import action_of, verdict_action
from tb_bottleneck.report.cache.report_store import MAX_REPORT_BYTES, FileIdentity, code_version
from tb_bottleneck.report.json_form import as_dict, parse_report
from tb_bottleneck.report.memory_alert import alert_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.logdir import SIDECAR_ENDING
from tb_bottleneck.sources.paths import filesystem_of, is_url
from tb_bottleneck.version import SCHEMA

MODE = 0o644  # other users read it too
MAX_NAME = 600  # characters

_KEYS = {"made_by", "size", "mtime_ns", "beside", "report"}
_LISTED = (
    "schema", "evidence_source", "witness", "rank", "world_size", "device", "health", "window", "account", "regimes",
    "membership", "efficiency", "unprofiled", "memory", "plan", "findings", "verdict", "revision",
)  # fmt: skip
"""The parts of a report from which a list is made (report/digest.py)."""

_NAMES = {"Report": "revision", "Device": "name", "Membership": "default_group"}
"""The fields with names, which are untrusted in every report. By message."""

_IDENTIFIER = re.compile(r"\w{0,60}", re.ASCII)
_TIMES = frozenset(("ns_per_step", "step_ns", "step_times_ns", "step_ns_after", "mean", "median", "p10", "p90"))
_RATIOS = frozenset(("expected", "low", "high", "speedup_total", "ratio"))
SUM_TOLERANCE = 1e-6  # largest deviation of the sum of an account's shares from 1
# The regimes of a valid account: all regimes or, if there is no verdict, none.
_ACCOUNTS: tuple[list[str], ...] = ([], list(REGIMES))
_JUDGED = (*REGIMES, Regime.GPU_UNUSED)


def sidecar_path(trace: str) -> Path:
    """Returns the path of the stored report (the sidecar) of the trace with the path `trace`."""
    return Path(trace + SIDECAR_ENDING)


def write(trace: str, identity: FileIdentity, report: pb.Report) -> Path:
    """Writes the report of the trace with this identity, and returns the path of the sidecar.

    Raises:
        OSError: the sidecar could not be written, or the trace is at a URL (remote stores are only read).
    """
    if is_url(trace):
        raise OSError(errno.EROFS, "reports are written next to local files only")
    copy = pb.Report()
    copy.CopyFrom(report)
    copy.run = "."  # the name of the run depends on the logdir
    content = {
        "made_by": code_version(),
        "size": identity.size,
        "mtime_ns": identity.mtime_ns,
        "beside": identity.beside,
        "report": as_dict(copy),
    }
    path = sidecar_path(trace)
    write_atomically(path, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1).encode(), MODE)
    return path


def read(trace: str, identity: FileIdentity) -> pb.Report | None:
    """Returns the parts of the report that is stored next to the trace from which lists are made: its ids, names and
    numbers, with texts of this package. Returns None unless the report is valid, is about the file with this identity,
    and was made by this version of the code."""
    try:
        content = json.loads(_bytes_of(trace + SIDECAR_ENDING))
        if not isinstance(content, dict) or content.keys() != _KEYS:
            return None
        made_for = (content["made_by"], content["size"], content["mtime_ns"], content["beside"])
        if made_for != (code_version(), identity.size, identity.mtime_ns, identity.beside):
            return None
        report = parse_report(content["report"])
        return _with_own_texts(report) if _is_valid(report) else None
    except (OSError, ValueError, KeyError, RecursionError, Unreadable, json_format.ParseError):
        return None


def _bytes_of(path: str) -> bytes:
    """Returns the content of the file. Raises OSError or ValueError if it is missing, not regular, or too large."""
    storage = filesystem_of(path)
    status = storage.status(path)
    if status.kind != "file" or status.size > MAX_REPORT_BYTES:
        raise ValueError("not a sidecar")
    with storage.open(path) as file:
        return file.read(MAX_REPORT_BYTES)


def _is_valid(report: pb.Report) -> bool:
    """Returns True if tb_bottleneck could have written the numbers of this report."""
    regimes = [row.regime for row in report.regimes] + [report.verdict.regime] * report.HasField("verdict")
    return (
        report.schema == SCHEMA
        and report.health.status in ("ok", "degraded", "incomplete")
        and [row.regime for row in report.account] in _ACCOUNTS[report.HasField("verdict") :]
        and (not report.account or abs(fsum(row.share for row in report.account) - 1) < SUM_TOLERANCE)
        and _has_possible_numbers(report)
        and all(regime in _JUDGED for regime in regimes)
    )


def _has_possible_numbers(message: Message) -> bool:
    """Returns True if shares are from 0 to 1, times of steps and gains not negative, and all other numbers finite."""
    for field, value in message.ListFields():
        for item in [value] if isinstance(value, Message | float | int | str) else value:
            if isinstance(item, Message):
                if not _has_possible_numbers(item):
                    return False
            elif isinstance(item, float) and not _is_possible(field.name, item):
                return False
    return True


def _is_possible(name: str, number: float) -> bool:
    if "share" in name:
        return 0 <= number <= 1
    return (0 if name in _TIMES | _RATIOS else -inf) <= number < inf and number > -inf


def _with_own_texts(report: pb.Report) -> pb.Report:
    """Returns `report` with the parts in _LISTED only, and with texts of this package in place of its own. Raises
    KeyError if a cause is unknown."""
    for field, _ in report.ListFields():
        if field.name not in _LISTED:
            report.ClearField(field.name)
    conditions = [_condition(finding) for finding in report.findings]
    _clear_texts(report)
    said, titles = words_for(report.device.kind), assumptions()
    for finding, condition in zip(report.findings, conditions, strict=True):
        advice = regime_advice(Regime(finding.regime)).causes[finding.cause]
        finding.title, finding.fix.action = said(advice.title), said(action_of(finding.cause, advice))
        if condition:
            finding.speedup.unless = condition
    for step in report.plan:
        step.title = said(titles[scenarios()[step.cause].name].title)
    for problem in report.memory.findings:
        of_memory = memory_advice(problem.cause)
        problem.title, problem.fix.action = said(of_memory.title), said(of_memory.action)
        problem.headline = problem.fix.action or problem.title
    if report.HasField("verdict"):
        verdict = report.verdict
        verdict.title = said(Regime(verdict.regime).label)
        verdict.headline = f"{verdict.title}: {share_text(verdict.share)} of the time."
        verdict.MergeFrom(pb.Verdict(memory_alert=alert_of(verdict.severity, report.memory)))
        verdict.MergeFrom(verdict_action(report))
    return report


def _condition(finding: pb.Finding) -> str:
    """Returns the condition of a bound (report/builders/gains.py) as a text of this package; empty if it has none."""
    speedup = finding.speedup
    if speedup.unless in {word(name).substitute() for name in ("cores_become_free", "advice_reaches")}:
        return speedup.unless
    if not speedup.unless or not 1 <= speedup.expected < speedup.high or not finding.cost_share:
        return ""
    remains = 1 - (1 - 1 / speedup.expected) / finding.cost_share
    return word("part_remains").substitute(share=share_text(remains))


def _clear_texts(message: Message) -> None:
    """Clears all texts in `message` but identifiers and names."""
    for field, value in message.ListFields():
        if isinstance(value, Message):
            _clear_texts(value)
        elif isinstance(value, str):
            is_name = field.name == _NAMES.get(message.DESCRIPTOR.name)
            text = one_line(value, MAX_NAME) if is_name else value if _IDENTIFIER.fullmatch(value) else ""
            setattr(message, field.name, text)
        elif field.message_type is not None:
            for item in value:
                _clear_texts(item)
        elif field.type == field.TYPE_STRING:
            message.ClearField(field.name)
