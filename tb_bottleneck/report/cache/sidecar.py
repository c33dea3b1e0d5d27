"""Reuses the report of a recording if the same code has already diagnosed the same file.

The report is stored next to its trace as NAME.bottlenecks.json (the sidecar), and is used while the trace is unchanged.
A logdir is often shared, so a sidecar is untrusted: its numbers are accepted, but all sentences and advised code must
be texts of this package (own_texts.py). An invalid sidecar is ignored, and the trace is read instead.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Sequence
from math import fsum, inf
from pathlib import Path

from google.protobuf import json_format
from google.protobuf.message import Message

from tb_bottleneck.base.errors import Unreadable
from tb_bottleneck.base.persistence import write_atomically
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.knowledge.advice_texts import health_advice, regime_advice
from tb_bottleneck.knowledge.texts import guarded, on_cpu
from tb_bottleneck.report.cache.file_identity import FileIdentity, code_version, identity_of
from tb_bottleneck.report.cache.own_texts import remove_foreign_texts
from tb_bottleneck.report.cache.report_store import MAX_REPORT_BYTES, Store
from tb_bottleneck.report.rendering.json_form import as_dict, as_json
from tb_bottleneck.report.saved_report import parse_report
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.schema.compile_log import SCHEMA
from tb_bottleneck.sources.logdir import SIDECAR_ENDING
from tb_bottleneck.sources.paths import filesystem_of, is_url

MODE = 0o644  # other users read it too

_KEYS = {"made_by", "size", "mtime_ns", "beside", "report"}
_TIMES = frozenset(("ns_per_step", "step_ns", "step_times_ns", "step_ns_after", "mean", "median", "p10", "p90"))
_RATIOS = frozenset(("expected", "low", "high", "speedup_total", "ratio"))
SUM_TOLERANCE = 1e-6  # largest deviation of the sum of an account's shares from 1
# The regimes of a valid account: all regimes or, if there is no verdict, none.
_ACCOUNTS: tuple[list[str], ...] = ([], list(REGIMES))
_JUDGED = (*REGIMES, Regime.GPU_UNUSED)
# A terminal may interpret control characters; a report needs only the line break.
_CONTROL = re.compile(r"\\u00|\\[bfrt]|[\x7f-\x9f]")
_PLACEHOLDER = re.compile(r"\\\$(\w+)")


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
    """Returns the report that is stored next to the trace. Returns None unless it is valid, is about the file with this
    identity, and was made by this version of the code."""
    try:
        content = json.loads(_bytes_of(trace + SIDECAR_ENDING))
        if not isinstance(content, dict) or content.keys() != _KEYS:
            return None
        made_for = (content["made_by"], content["size"], content["mtime_ns"], content["beside"])
        if made_for != (code_version(), identity.size, identity.mtime_ns, identity.beside):
            return None
        report = parse_report(content["report"])
        if not _is_valid(report):
            return None
        remove_foreign_texts(report)
        return report
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


# A number with its unit, or the expression of measures/trace/loader_workers.py: workers_advised.
_FIGURE = r"(?:[0-9.,]{1,30}(?: %)?|[0-9]{1,9} \* previous|min\([0-9]{1,9} \* previous, [0-9]{1,9}\))"
# Arguments and words that depend on the device and the operating system (Context.code_values).
_ARGUMENTS = {"pinned": "(?:, pin_memory=True)?", "triton": "Triton", "windows": "Windows"}


def _is_valid(report: pb.Report) -> bool:
    """Returns True if tb_bottleneck could have written this report; otherwise False, or raises KeyError or
    ValueError."""
    regimes = [row.regime for row in report.regimes] + [report.verdict.regime] * report.HasField("verdict")
    return (
        report.schema == SCHEMA
        and report.health.status in ("ok", "degraded", "incomplete")
        and [row.regime for row in report.account] in _ACCOUNTS[report.HasField("verdict") :]
        and _sums_to_one(report.account)
        and _has_possible_numbers(report)
        and all(regime in _JUDGED for regime in regimes)
        and all(reason.fix in health_advice(reason.code).fixes for reason in report.health.reasons)
        and all(_has_own_advice(finding) for finding in report.findings)
        and not _CONTROL.search(as_json(report).replace("\\\\", ""))
    )


def _sums_to_one(account: Sequence[pb.AccountRow]) -> bool:
    return not account or abs(fsum(row.share for row in account) - 1) < SUM_TOLERANCE


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


def _has_own_advice(finding: pb.Finding) -> bool:
    """Returns True if the texts and the code of the finding are this package's advice for its cause, apart from
    figures."""
    if finding.regime not in _JUDGED:
        return False
    advice = regime_advice(finding.regime).causes[finding.cause]
    own = (advice.title, advice.summary, advice.confirm)
    if (finding.title, finding.fix.summary, finding.fix.confirm) not in (own, tuple(map(on_cpu, own))):
        return False
    lines = advice.code.template.splitlines()
    patterns = _code_pattern(lines), _code_pattern(guarded(lines))
    return any(re.fullmatch(pattern, "\n" + finding.fix.code) for pattern in patterns)


def _code_pattern(template: Sequence[str]) -> str:
    """Returns a regular expression that matches the code that `fitted_code` can make from the lines in `template`. In
    the matched text, a line break precedes each line.

    A line with a figure is optional, because `fitted_code` leaves out lines whose figure is not known.
    """
    lines = []
    for line in template:
        pattern = r"\n" + _PLACEHOLDER.sub(lambda match: _ARGUMENTS.get(match[1], _FIGURE), re.escape(line))
        lines.append(pattern if pattern == r"\n" + re.escape(line) else f"(?:{pattern})?")
    return "".join(lines)


Analyse = Callable[..., Report]
Progress = Callable[[int, int], None]

_FINISHED = ("ok", "degraded", "incomplete")


def diagnose_cached(
    analyse: Analyse, store: Store | None, path: str, *, run: str = ".", progress: Progress | None = None
) -> Report:
    """Returns the stored result of `analyse(path, run=run, progress=progress)`, from `store` or from the file next to
    the trace. If there is none, calls `analyse`, and stores the result in `store` if it is repeatable
    (`is_repeatable`).

    Raises only what `analyse` raises."""
    identity = identity_of(path)
    if identity is None:
        return analyse(path, run=run, progress=progress)
    saved = (store.get(identity) if store else None) or read(path, identity)
    if saved is not None:
        # File names are bytes; messages accept only valid text.
        saved.run, saved.source = run, os.fsencode(os.path.basename(path)).decode("utf-8", "replace")
        return saved
    report = analyse(path, run=run, progress=progress)
    # If the file changed while it was read, the report belongs to neither of its states.
    if store is not None and is_repeatable(report) and identity_of(path) == identity:
        store.put(identity, report)
    return report


def is_repeatable(report: Report) -> bool:
    """Returns True if another diagnosis of the same file would give the same report: the report is complete, and no
    rule failed."""
    if report.broken_parts:
        return False
    return report.health.status in _FINISHED and all(verdict.status != "broken" for verdict in report.regimes)
