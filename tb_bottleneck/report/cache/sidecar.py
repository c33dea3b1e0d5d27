"""Puts a report beside its trace, as NAME.bottlenecks.json, and takes it from there as long as it is about that file.

A logdir is often shared, so a sidecar is a stranger's file: it may bring figures, never a line to copy that is not
ours. What is odd about it is not mended; the trace is read instead.
"""

import errno
import json
import re
from pathlib import Path

from google.protobuf import json_format

from tb_bottleneck.errors import Unreadable
from tb_bottleneck.knowledge.advice_texts import health_advice, regime_advice
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.report.cache.file_identity import Identity, code_version
from tb_bottleneck.report.cache.report_store import LARGEST
from tb_bottleneck.report.rendering.json_form import as_dict, as_json
from tb_bottleneck.report.saved_report import parse_report
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.sources.filesystem import is_url, place_of
from tb_bottleneck.sources.logdir import SIDECAR_ENDING
from tb_bottleneck.storage import write_atomically

MODE = 0o644  # others read it too

_KEYS = {"made_by", "size", "mtime_ns", "report"}
# Whole or, where there is no verdict either, absent.
_ACCOUNTS: tuple[list[str], ...] = ([], list(REGIMES))
_JUDGED = (*REGIMES, Regime.GPU_UNUSED)
# A terminal may obey control characters; of those only the line break has a use in a report.
_CONTROL = re.compile(r"\\u00|\\[bfrt]|[\x7f-\x9f]")
_PLACEHOLDER = re.compile(r"\\\$(\w+)")


def beside(trace: str) -> Path:
    """Where the sidecar of a trace is."""
    return Path(trace + SIDECAR_ENDING)


def write(trace: str, identity: Identity, report: pb.Report) -> Path:
    """Writes the report, which was made while the trace was just so; returns where.

    Raises:
        OSError: it could not be written, or the trace lies at a URL: stores are only read.
    """
    if is_url(trace):
        raise OSError(errno.EROFS, "reports are written beside local files only")
    told = pb.Report()
    told.CopyFrom(report)
    told.run = "."  # what the run is called depends on who looks
    content = {
        "made_by": code_version(),
        "size": identity.size,
        "mtime_ns": identity.mtime_ns,
        "report": as_dict(told),
    }
    path = beside(trace)
    write_atomically(path, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1).encode(), MODE)
    return path


def read(trace: str, identity: Identity) -> pb.Report | None:
    """The report that lies beside the trace, where it is about this very file, by this very code, and sound."""
    try:
        content = json.loads(_bytes_of(trace + SIDECAR_ENDING))
        if not isinstance(content, dict) or content.keys() != _KEYS:
            return None
        made_for = (content["made_by"], content["size"], content["mtime_ns"])
        if made_for != (code_version(), identity.size, identity.mtime_ns):
            return None
        report = parse_report(content["report"])
        return report if _is_sound(report) else None
    except (OSError, ValueError, KeyError, RecursionError, Unreadable, json_format.ParseError):
        return None


def _bytes_of(path: str) -> bytes:
    """Raises OSError or ValueError where it is not there, no regular file (a pipe would hang), or too large."""
    place = place_of(path)
    status = place.status(path)
    if status.kind != "file" or status.size > LARGEST:
        raise ValueError("no file of ours")
    with place.open(path) as file:
        return file.read(LARGEST)


def _is_sound(report: pb.Report) -> bool:
    """Whether it is a report as we make them. Raises KeyError or ValueError where it is not, too."""
    shares = [row.share for row in report.account] + [row.share for row in report.regimes] + [report.verdict.share]
    regimes = [row.regime for row in report.regimes] + [report.verdict.regime] * report.HasField("verdict")
    return (
        report.schema == SCHEMA
        and report.health.status in ("ok", "degraded", "incomplete")
        and [row.regime for row in report.account] in _ACCOUNTS[report.HasField("verdict") :]
        and all(0 <= share <= 1 for share in shares)
        and all(regime in _JUDGED for regime in regimes)
        and all(reason.fix == health_advice(reason.code).fix for reason in report.health.reasons)
        and all(_is_advice_of_ours(finding) for finding in report.findings)
        and not _CONTROL.search(as_json(report).replace("\\\\", ""))
    )


def _is_advice_of_ours(finding: pb.Finding) -> bool:
    """Whether what it tells to do is what our own advice tells, with figures in the places for figures."""
    if finding.regime not in _JUDGED:
        return False
    words = regime_advice(finding.regime).causes[finding.cause]
    # A figure that is not known leaves its place as it is.
    code = _PLACEHOLDER.sub(r"(?:[0-9.,]{1,30}(?: %)?|\\$\1)", re.escape(words.code.template))
    return (finding.title, finding.fix.summary, finding.fix.confirm) == (
        words.title,
        words.summary,
        words.confirm,
    ) and re.fullmatch(code, finding.fix.code) is not None
