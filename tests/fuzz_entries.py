"""What tests/fuzz.py can damage besides a trace: native traces, comparisons, predictions, trees, details, dependencies,
jobs, saved reports, event files, snapshots, dumps of the Flight Recorder, and entries of the cache.

Each entry has sound inputs, and a function that uses a damaged one. It returns whether there was a result and the
behaviour, and raises for a defect.
"""

import json
import math
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from google.protobuf.message import Message
from helpers.draw import drawn
from helpers.flight_recorder import RANKS, dump, entry
from helpers.little_memory import in_this_process
from helpers.perfetto_writer import perfetto_of
from helpers.simulated_telemetry import simulate
from helpers.snapshots import random_snapshot
from helpers.telemetry_files import NAME, events
from helpers.telemetry_problems import simulated_phase
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.compared_run import JudgedRun, UnjudgedRun, open_recordings
from tb_bottleneck.comparison.series.run_series import series_of
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot
from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.drilldown.inspected_trace import TraceCache
from tb_bottleneck.drilldown.tree.paths import BY
from tb_bottleneck.live.collectives import first_divergence
from tb_bottleneck.plugin.workers import questions
from tb_bottleneck.plugin.workers.dispatch import answer
from tb_bottleneck.plugin.workers.job_answers import computed_job
from tb_bottleneck.report.cache import sidecar
from tb_bottleneck.report.cache.report_store import FileIdentity, Store, code_version, identity_of
from tb_bottleneck.report.json_form import as_dict, as_json
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.flight_recorder import dumps_in
from tb_bottleneck.text.report import render

Behaviour = tuple[object, ...]
_DRAWING = (
    "step aaaaaaaaaabbbbbbbbbbcccccccccc\nloader ####......####......####......\ngpu ....aabbcc....aabbcc....aabbcc"
)
_WAITS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##..#.....##..#.....##..#.....
    launch  |.|.......|.|.......|.|.......
    sync    ...####......####......####...
    gpu     .aa..bbb...aa..bbb...aa..bbb..
"""
_ON_CPU = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  ##........##........##........
    op      ..########..########..########
"""
_CHANGES = (
    WhatIfOptions(device="H200 SXM"),
    WhatIfOptions(workers=4, batch=64),
    WhatIfOptions(precision="bf16", link="gen4x16"),
)
_WAITING_RANK = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    sync    ....######....######....######
    gpu     abab......abab......abab......
    nccl    ....nnnnnn....nnnnnn....nnnnnn
"""
_LATE_RANK = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    sync    .........#.........#.........#
    gpu     ababababa.ababababa.ababababa.
    nccl    .........n.........n.........n
"""
_LENGTH_BYTES = 4


@dataclass(frozen=True)
class Entry:
    """One way into the program."""

    behave: Callable[[Path, bytes], Behaviour]
    inputs: Callable[[], list[bytes]]


def impossible(message: Message) -> list[str]:
    """Returns the numbers of a report that no recording can have."""
    wrong = []
    if isinstance(message, pb.Report) and message.account:
        total = math.fsum(row.share for row in message.account)
        wrong += [] if abs(total - 1) < 1e-6 else [f"the account sums to {total}"]
    for field, value in message.ListFields():
        for item in value if not isinstance(value, Message | float | int | str | bytes) else [value]:
            if isinstance(item, Message):
                wrong += impossible(item)
            elif isinstance(item, float) and not _is_possible(field.name, item):
                wrong.append(f"{field.name} is {item}")
    return wrong


def shape(message: Message) -> frozenset[str]:
    """Returns which fields of which messages are set: inputs that set others lead to other code."""
    found = set()
    for field, value in message.ListFields():
        found.add(f"{message.DESCRIPTOR.name}.{field.name}")
        for item in value if not isinstance(value, Message | float | int | str | bytes) else [value]:
            if isinstance(item, Message):
                found |= shape(item)
    return frozenset(found)


def _is_possible(name: str, value: float) -> bool:
    if "share" in name:
        return 0 <= value <= 1 + 1e-9
    positive = name in ("ns_per_step", "step_ns", "step_times_ns", "step_ns_after", "mean", "median", "expected", "low")
    return math.isfinite(value) and (value >= 0 or not positive)


def check(report: pb.Report) -> Behaviour:
    """Renders the report in every form. Raises AssertionError if it is broken or impossible."""
    as_json(report)
    render(report)
    codes = tuple(reason.code for reason in report.health.reasons)
    assert "broken" not in codes, report.health.reasons[0].detail
    assert not (wrong := impossible(report)), wrong[0]
    has_result = report.HasField("verdict") or report.HasField("memory")
    return has_result, report.health.status, codes, report.verdict.regime, shape(report)


def _written(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))
    return str(path)


def _traces() -> list[bytes]:
    """Returns small traces that can be compared. Parts of real ones get no verdict."""
    device = {"id": 0, "name": "NVIDIA H100", "numSms": 132}
    facts = {"workers": 2, "batch_size": 8, "cores": 8, "precision": "bf16", "unprofiled_step_ns": 9e6}
    context = {"tb_bottleneck": json.dumps({"context": facts})}
    return [
        json.dumps(drawn(drawing, 1000, deviceProperties=[device], **more)).encode()
        for drawing in (_DRAWING, _WAITS, _ON_CPU)
        for more in ({}, context)
    ]


@cache
def _sound_trace() -> bytes:
    return _traces()[0]


def _run(folder: Path, name: str, data: bytes) -> JudgedRun | UnjudgedRun:
    return open_recordings(name, [_written(folder, f"{name}.json", data)], [], None)


def _perfetto_traces() -> list[bytes]:
    return [perfetto_of(json.loads(trace)) for trace in _traces()]


def _perfetto(folder: Path, data: bytes) -> Behaviour:
    return check(diagnose(_written(folder, "trace.pftrace", data)))


def _compare(folder: Path, data: bytes) -> Behaviour:
    runs = [_run(folder, "a", data), _run(folder, "b", _sound_trace()), _run(folder, "c", data)]
    comparisons = [compare_runs(*pair) for pair in (runs[:2], runs[1::-1], runs[::2])]
    for made in (*comparisons, series_of(runs)):
        as_json(made)
    return any(made.comparable for made in comparisons), *map(shape, comparisons)


def _what_if(folder: Path, data: bytes) -> Behaviour:
    run = _run(folder, "a", data)
    predictions = [what_if(run, changes) for changes in _CHANGES]
    for prediction in predictions:
        as_json(prediction)
        assert not (wrong := impossible(prediction)), wrong[0]
    return any(prediction.HasField("after") for prediction in predictions), *map(shape, predictions)


def _drill_down(folder: Path, data: bytes) -> Behaviour:
    trace, sound = (_file(folder, f"{name}.json", text) for name, text in (("a", data), ("b", _sound_trace())))
    asked: list[questions.RecordingQuestion] = [
        *(questions.TreeQuestion(trace, by, merged) for by in BY for merged in (False, True)),
        questions.TreeQuestion(trace, BY[0], first_step=2, last_step=2),
        *(questions.TreeQuestion(*pair[:1], BY[2], other=pair[1]) for pair in ((trace, sound), (sound, trace))),
    ]
    cache = TraceCache()
    states = [_answered(question, cache) for question in asked]
    return "done" in states, *states


def _answered(question: questions.RecordingQuestion, cache: TraceCache) -> str:
    try:
        found = json.loads(answer(question, cache))
    except BottleneckError as error:
        return type(error).__name__
    assert not (wrong := _impossible_values(found)), wrong[0]
    return str(found["state"])


def _impossible_values(value: object, name: str = "") -> list[str]:
    """Returns the numbers of an answer that no recording can have."""
    if isinstance(value, dict):
        return [wrong for key, item in value.items() for wrong in _impossible_values(item, key)]
    if isinstance(value, list):
        return [wrong for item in value for wrong in _impossible_values(item, name)]
    is_wrong = isinstance(value, float) and not _is_possible(name, value)
    return [f"{name} is {value}"] if is_wrong else []


def _file(folder: Path, name: str, data: bytes) -> questions.TraceFile:
    return questions.TraceFile(name, _written(folder, name, data), int(1e18), len(data))


def _ranks() -> list[bytes]:
    return [_rank(drawing, 0) for drawing in (_WAITING_RANK, _LATE_RANK)]


def _rank(drawing: str, rank: int) -> bytes:
    about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}}
    return json.dumps(drawn(drawing, 1000, **about)).encode()


def _job(folder: Path, data: bytes) -> Behaviour:
    ranks = (data, _rank(_LATE_RANK, 1), _rank(_WAITING_RANK, 2))
    files = tuple(_file(folder, f"rank{number}.json", text) for number, text in enumerate(ranks))
    job = computed_job(questions.JobQuestion(files[1], "job", files), None)
    as_json(job)
    assert not (wrong := impossible(job)), wrong[0]
    return len(job.job.ranks) > 0, tuple(culprit.cause for culprit in job.job.culprits), shape(job)


def _reports() -> list[bytes]:
    drawings = (_DRAWING, _WAITS, _ON_CPU)
    return [json.dumps(report).encode() for report in map(_report, drawings)]


def _report(drawing: str) -> dict[str, object]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return as_dict(diagnose(_written(Path(folder), "t.json", json.dumps(drawn(drawing, 1000)).encode())))


def _sidecar(folder: Path, data: bytes) -> Behaviour:
    trace = _written(folder, "t.pt.trace.json", _sound_trace())
    identity = identity_of(trace)
    assert identity is not None
    head = f'{{"made_by":"{code_version()}","size":{identity.size},"mtime_ns":{identity.mtime_ns},"beside":"","report":'
    sidecar.sidecar_path(trace).write_bytes(head.encode() + data + b"}")
    report = sidecar.read(trace, identity)
    return (False,) if report is None else check(report)


def _event_files() -> list[bytes]:
    phases = ("healthy", "storage")
    return [_framed(events(simulate([simulated_phase(problem, 40.0)]))) for problem in phases]


def _framed(bodies: Iterator[bytes]) -> bytes:
    """Returns the contents of records after each other. Damaged lengths and checksums hide all other damage."""
    return b"".join(len(body).to_bytes(_LENGTH_BYTES, "little") + body for body in bodies)


def _events(folder: Path, data: bytes) -> Behaviour:
    path, at = folder / NAME, 0
    with open(path, "wb") as file:
        writer = RecordWriter(file)
        while at < len(data):
            size = int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
            writer.write(data[at + _LENGTH_BYTES : at + _LENGTH_BYTES + size])
            at += _LENGTH_BYTES + size
        writer.flush()
    return check(diagnose_telemetry(str(path)))


def _snapshots() -> list[bytes]:
    return [pickle.dumps(random_snapshot(60, seed), protocol=protocol) for seed, protocol in ((1, 4), (2, 2))]


def _snapshot(folder: Path, data: bytes) -> Behaviour:
    with in_this_process():
        return check(diagnose_snapshot(_written(folder, "snapshot.pickle", data)))


def _dumps() -> list[bytes]:
    calls = dump([entry(1), entry(2, input_sizes=[]), entry(3, "nccl:all_gather", "started")])
    plain = json.dumps(calls).encode()
    return [plain, *(pickle.dumps(calls, protocol=protocol) for protocol in (2, 4))]


def _collectives(folder: Path, data: bytes) -> Behaviour:
    for rank, content in enumerate((data, _dumps()[0])):
        _written(folder, f"nccl_trace_rank_{rank}", content)
    with in_this_process():
        dumps = dumps_in(str(folder))
    found = first_divergence(dumps)
    return (
        len(dumps) == RANKS - 1,
        len(dumps[0].calls),
        found and (found.kind, found.ranks, len(found.sentence) < 500),
    )


def _entries() -> list[bytes]:
    return [b"".join((bytes(32), pb.Report(**report).SerializeToString())) for report in ({"schema": 2}, {"run": "a"})]


def _cache(folder: Path, data: bytes) -> Behaviour:
    store, identity = Store(folder / "cache", "1"), FileIdentity("/t", 1, 1)
    store.put(identity, pb.Report(schema=2))
    (entry,) = (folder / "cache").glob("*.report")
    whole = entry.read_bytes()
    entry.write_bytes(data if len(data) % 2 else whole[:32] + data[32:])
    found = store.get(identity)
    assert found is None or found == pb.Report(schema=2), "a damaged entry was used"
    return (found is not None,)


ENTRIES: dict[str, Entry] = {
    "compare": Entry(_compare, _traces),
    "perfetto": Entry(_perfetto, _perfetto_traces),
    "what_if": Entry(_what_if, _traces),
    "drill_down": Entry(_drill_down, _traces),
    "job": Entry(_job, _ranks),
    "sidecar": Entry(_sidecar, _reports),
    "events": Entry(_events, _event_files),
    "snapshot": Entry(_snapshot, _snapshots),
    "flight_recorder": Entry(_collectives, _dumps),
    "cache": Entry(_cache, _entries),
}


def behaviour_of(entry: Entry, folder: Path, data: bytes) -> Behaviour:
    """Returns the behaviour, first whether there was a result; our own errors are one too."""
    try:
        return entry.behave(folder, data)
    except BottleneckError as error:
        return False, type(error).__name__
