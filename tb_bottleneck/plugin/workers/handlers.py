"""What the worker processes of the server do: turn recordings into reports, or answer questions about recordings."""

import json
import os
import pkgutil
from collections.abc import Callable
from functools import partial

from tb_bottleneck.plugin.workers.analysis_queue import LISTED, WHOLE
from tb_bottleneck.plugin.workers.questions import decode
from tb_bottleneck.report.cache.cached_diagnosis import Analyse, diagnose_cached, listed
from tb_bottleneck.report.cache.report_store import Store
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.sources.file_system import LOCAL

ProgressCallback = Callable[[int, int], None]
Handler = Callable[[bytes, ProgressCallback], bytes]


def analyse_recordings(function: str) -> Handler:
    """Returns the handler of requests for reports. `function` is the dotted name of
    `diagnosis.trace_or_snapshot.diagnose_recording`, or of a function with the same signature."""
    LOCAL.opens_links = False  # the server has resolved the paths
    return partial(_report, pkgutil.resolve_name(function), Store.from_environment(os.environ))


def answer_questions(function: str) -> Handler:
    """Returns the handler of questions. `function` is the dotted name of `dispatch.answer`, or of a function with the
    same signature. Traces stay in memory between questions."""
    LOCAL.opens_links = False
    answer = pkgutil.resolve_name(function)
    from tb_bottleneck.drilldown.inspected_trace import TraceCache

    traces = TraceCache()
    return lambda payload, progress: answer(decode(payload), traces, progress)


def _report(analyse: Analyse, store: Store | None, payload: bytes, progress: ProgressCallback) -> bytes:
    """Returns the encoded report of one recording, which the function `analyse` makes, after WHOLE; after LISTED, only
    the parts that a list shows."""
    job = json.loads(payload)
    report = listed(store, job["path"], job["run"]) if job["for_list"] else None
    kind = WHOLE if report is None else LISTED
    report = report or diagnose_cached(analyse, store, job["path"], run=job["run"], progress=progress)
    report.run, report.source = job["run"], job["source"]
    as_json(report)  # a report without a JSON form must fail here, not in a route
    return kind + report.SerializeToString()
