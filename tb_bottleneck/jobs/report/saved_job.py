"""The saved report of a job: a file next to the traces of its ranks, which the tab shows without reading a trace.

The file contains the name, the size and the modification time of the trace of each rank. If a trace has changed, the
report is stale. A logdir is often shared, so the file is untrusted. The file contains ids and numbers, which are
checked, and names of groups and files, which are shown as text. All other texts are not in the file; wording.py makes
them after reading.
"""

import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from tb_bottleneck.base.errors import BottleneckError, Unreadable
from tb_bottleneck.base.persistence import write_atomically
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.jobs.pipeline_passes import PHASES
from tb_bottleneck.jobs.report.pipeline_table import MAX_SPANS
from tb_bottleneck.jobs.report.wording import (
    LARGEST,
    JobAnalysis,
    name_recordings,
    recording_path,
    with_texts,
    without_texts,
)
from tb_bottleneck.report.cache.report_store import code_version, identity_of
from tb_bottleneck.report.cache.sidecar import MODE
from tb_bottleneck.report.jobs import MAX_LISTED_RANKS
from tb_bottleneck.report.json_form import as_dict, refuse_not_finite
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.job_pb2 import JobAnswer, PipelineTable, RankTable, StepTable
from tb_bottleneck.sources.file_system import display_name
from tb_bottleneck.sources.logdir import JOB_ENDING
from tb_bottleneck.sources.paths import filesystem_of, is_url

FORMAT = 3
"""Version of the file format. Files of other versions are not read."""

MAX_BYTES = 64 << 20
"""Largest size in bytes of a file that is read. The report of 10,000 ranks takes about 6 MB."""

# The exceptions that invalid values of a file can raise while they are parsed and checked.
_INVALID = (OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, json_format.ParseError)

_KEYS = {"format", "made_by", "saved_s", "traces", "job", "reasons", "evidence", "ranks", "steps"}
_KINDS = ("data", "tensor", "pipeline", "expert", "context", "sharded", "unknown")
_WORDS = {
    "severity": ("critical", "warning", "info", "none"),
    "confidence": ("high", "medium", "low"),
    "status": ("ok", "degraded"),
    "kind": _KINDS,
    "of": ("rank", "stage", "operation"),
    "phase": PHASES,
    "regime": (*REGIMES, Regime.GPU_UNUSED),
}
"""The valid values of fields that contain an id, by the name of the field. They apply to fields of this name in all
messages."""


class Stale(BottleneckError):
    """Traces have changed or disappeared since the report was saved."""


@dataclass(frozen=True)
class JobTables:
    """The report of a job with the tables of its ranks, its steps and its pipeline; None for a table that could not be
    made (see step_table and pipeline_table)."""

    job: pb.Job
    ranks: RankTable
    steps: StepTable | None
    pipeline: PipelineTable | None
    analysis: JobAnalysis


def saved_path(traces: Sequence[str]) -> Path:
    """Returns the path of the saved report of a job. `traces` are the paths of its traces in order of rank; the report
    is next to the first one."""
    return Path(traces[0] + JOB_ENDING)


def write(tables: JobTables, traces: Sequence[str]) -> Path:
    """Writes the report of a job, and returns the path of the file. `traces` are the paths of its traces in order of
    rank.

    Raises:
        OSError: the file cannot be written, the traces are at a URL or in several directories, or a trace is missing.
    """
    if any(map(is_url, traces)):
        raise OSError(errno.EROFS, "reports are written next to local files only")
    if len({os.path.dirname(os.path.abspath(trace)) for trace in traces}) > 1:
        raise OSError(errno.EXDEV, "the traces of its ranks lie in several directories")
    content = {
        "format": FORMAT,
        "made_by": code_version(),
        "saved_s": int(time.time()),
        "traces": [_identity(trace) for trace in traces],
        "job": as_dict(without_texts(tables.job)),
        "reasons": tables.analysis.reasons,
        "evidence": tables.analysis.evidence,
        "ranks": as_dict(_without_files(tables.ranks)),
        "steps": as_dict(tables.steps) if tables.steps is not None else None,
        **({"pipeline": as_dict(tables.pipeline)} if tables.pipeline is not None else {}),
    }
    path = saved_path(traces)
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    write_atomically(path, text.encode(), MODE)
    return path


def read(path: str, run: str) -> JobAnswer:
    """Reads the saved report at `path`, and adds its texts (see wording.py). `run` is the name of the run that contains
    it.

    The ids of the recordings in the returned answer are empty.

    Raises:
        Unreadable: the file cannot be read, or has content that tb_bottleneck does not write.
        Stale: traces of the job have changed or disappeared.
    """
    try:
        content = json.loads(_bytes_of(path))
        _expect(
            isinstance(content, dict) and content.get("format") == FORMAT and content.keys() - {"pipeline"} == _KEYS
        )
        traces = [(_file_name(name), int(size), int(mtime)) for name, size, mtime in content["traces"]]
        answer = _answer(content)
        _check(answer, len(traces))
        with_texts(answer.job, content["reasons"], content["evidence"])
    except _INVALID as error:
        name = type(error).__name__
        raise Unreadable(f"the file beside the traces is not the saved report of a job ({name})") from error
    _refuse_stale(path, traces)
    answer.ranks.source.extend(display_name(name) for name, _, _ in traces)
    name_recordings(
        answer.job,
        {rank: recording_path(run, name) for rank, name in zip(answer.ranks.rank, answer.ranks.source, strict=True)},
    )
    answer.job.run = run
    answer.state, answer.progress, answer.basis = "done", 1.0, "saved"
    return answer


def _answer(content: Mapping[str, Any]) -> JobAnswer:
    """Returns the saved job in `content`, the JSON of a file. Raises KeyError, ValueError or ParseError."""
    return JobAnswer(
        job=json_format.ParseDict(content["job"], pb.Job()),
        ranks=json_format.ParseDict(content["ranks"], RankTable()),
        steps=json_format.ParseDict(content["steps"], StepTable()) if content["steps"] is not None else None,
        pipeline=json_format.ParseDict(content["pipeline"], PipelineTable()) if "pipeline" in content else None,
        saved_ns=float(content["saved_s"]) * NS_PER_S,
        other_version=content["made_by"] != code_version(),
    )


def _identity(trace: str) -> tuple[str, int, int]:
    """Returns the name, the size in bytes and the modification time in ns of a trace. Raises OSError if it does not
    exist."""
    identity = identity_of(trace)
    if identity is None:
        raise OSError(errno.ENOENT, f"{os.path.basename(trace)} has disappeared")
    return os.path.basename(trace), identity.size, identity.mtime_ns


def _without_files(ranks: RankTable) -> RankTable:
    plain = RankTable()
    plain.CopyFrom(ranks)
    del plain.id[:], plain.source[:]
    return plain


def _bytes_of(path: str) -> bytes:
    storage = filesystem_of(path)
    status = storage.status(path)
    _expect(status.kind == "file" and status.size <= MAX_BYTES)
    with storage.open(path) as file:
        return file.read(MAX_BYTES)


def _file_name(name: str) -> str:
    """Returns `name`. Raises ValueError if `name` is not a plain file name, which might refer to another directory."""
    _expect(
        isinstance(name, str) and 0 < len(name) < 1000 and not {"/", "\\", "\0"} & set(name) and name not in (".", "..")
    )
    return name


def _refuse_stale(path: str, traces: Sequence[tuple[str, int, int]]) -> None:
    """Raises Stale if a trace is not the analysed file any more.

    `path` is that of the saved report. `traces` has (name, size in bytes, modification time in ns) of each trace.
    """
    storage, directory = filesystem_of(path), path.removesuffix(os.path.basename(path))
    changed = 0
    for name, size, mtime_ns in traces:
        try:
            status = storage.status(directory + name)
            changed += (status.kind, status.size, status.mtime_ns) != ("file", size, mtime_ns)
        except OSError:
            changed += 1
    if changed:
        raise Stale(
            f"{changed:,} of the {len(traces):,} traces of the saved report have changed or disappeared since then"
        )


def _check(answer: JobAnswer, traces: int) -> None:
    """Raises ValueError if `answer`, from an untrusted file, has ids, numbers or lengths of columns that tb_bottleneck
    does not write. `traces` is the number of traces that the file names."""
    job, table, steps = answer.job, answer.ranks, answer.steps
    count = len(table.rank)
    refuse_not_finite(answer)
    _check_values(answer)
    ranks = list(table.rank)
    rows = count * steps.count
    columns = [len(column) for column in (table.step_ns, table.regime, table.severity)]
    optional = (table.host, table.stage, table.excess_share, table.wait_share, table.wire_share)
    by_step = [len(column) for column in (steps.begin_ns, steps.end_ns, steps.wait_share)]
    _expect(2 <= count == traces and ranks == sorted(set(ranks)) and ranks[-1] < job.world_size <= MAX_LISTED_RANKS)
    _expect(not table.id and not table.source and job.HasField("verdict"))
    _expect(all(length == count for length in [*columns, *(len(entry.share) for entry in table.account)]))
    _expect(all(len(column) in (0, count) for column in optional))
    _expect(all(length == rows for length in [*by_step, *(len(entry.share) for entry in steps.account)]))
    spans = answer.pipeline
    of_spans = (spans.phase, spans.microbatch, spans.begin_ns, spans.end_ns, spans.critical)
    _expect(all(len(column) == len(spans.rank) <= MAX_SPANS for column in of_spans))
    listed = [list(job.ranks), list(job.missing_ranks), list(spans.rank)]
    listed += [list(item.ranks) for item in job.groups]
    listed += [list(item.ranks) for item in job.culprits]
    listed += [list(item.ranks) for item in job.hosts]
    _expect(all(rank < job.world_size for column in listed for rank in column))
    _expect(all(culprit.ranks for culprit in job.culprits))


def _check_values(message: Message) -> None:
    """Raises ValueError if an id in `message` is unknown, a field `share` is more than 1, or a number is negative or
    larger than LARGEST. Only fields with the name `value` may be negative."""
    for field, value in message.ListFields():
        values = [value] if isinstance(value, Message | int | float | str) else value
        known = _WORDS.get(field.name)
        for item in values:
            if isinstance(item, Message):
                _check_values(item)
            elif isinstance(item, str):
                _expect(known is None or item in known)
            else:
                least = -LARGEST if field.name == "value" else 0
                _expect(least <= item <= (1 if field.name == "share" else LARGEST))


def _expect(condition: bool) -> None:
    if not condition:
        raise ValueError("not a saved report of a job")
