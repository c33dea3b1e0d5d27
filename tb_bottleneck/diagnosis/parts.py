"""The parts of a report other than its verdicts, such as the input pipeline, the memory and the efficiency.

An error in one part affects only that part, and the report says that the part is missing.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeVar

import numpy as np

from tb_bottleneck.attribution.profiler_time.logged_steps import logged_unprofiled
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.bottlenecks.host.facts import frequent_operators
from tb_bottleneck.bottlenecks.input.loader import SINGLE_PROCESS_ITERATOR, loader_iterator
from tb_bottleneck.bottlenecks.input.loader_workers import workers_used
from tb_bottleneck.bottlenecks.input.trace_stages import loader_work, processes_needed
from tb_bottleneck.bottlenecks.launch.compiled_steps import compiled_steps
from tb_bottleneck.bottlenecks.launch.graph_replays import graph_replays
from tb_bottleneck.measures.user_code.step_parts import step_parts
from tb_bottleneck.quality.trace_defects import Defect
from tb_bottleneck.report.builders.details import input_pipeline, parts_of_step, recorded_compilation, replayed_graphs
from tb_bottleneck.report.builders.report_builder import Details
from tb_bottleneck.report.profiler_slowdown import unprofiled_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class Parts:
    """Builds the parts of one report, and collects the names of the parts that fail (knowledge/parts.toml lists all
    names)."""

    def __init__(self) -> None:
        self._broken: list[str] = []

    def build(self, part: str, build: Callable[[], Result]) -> Result | None:
        """Returns the result of `build()`, which builds the part named `part`. If `build` raises an exception, stores
        the name of the part, logs the error, and returns None. Raises only MemoryError."""
        try:
            return build()
        except MemoryError:
            raise
        except Exception:
            _log.exception("the part '%s' of one report could not be built", part)
            self._broken.append(part)
            return None

    def broken(self) -> list[str]:
        """Returns the names of the parts that failed."""
        return self._broken


def details_of(recording: Recording, parts: Parts) -> Details:
    """Returns the details of the report of a trace. `parts` collects the names of details that cannot be built; such
    details are None. Raises only MemoryError.

    The details are about the input pipeline, torch.compile, captured graphs, the steps of an inference server, the
    operators, and the parts of the step.
    """
    return Details(
        input=parts.build("input", lambda: _input_of(recording)),
        compilation=parts.build("compilation", lambda: _compilation_of(recording)),
        graphs=parts.build("graphs", lambda: _graphs_of(recording)),
        operators=parts.build("operators", lambda: _operators_of(recording)),
        step_parts=parts.build("step_parts", lambda: parts_of_step(step_parts(recording), len(recording.steps))),
    )


def _input_of(recording: Recording) -> pb.InputPipeline | None:
    """Returns the message about the input pipeline, with the number of workers: 0 for a loader in the main process,
    None if not known."""
    iterator, workers = loader_iterator(recording), workers_used(recording)
    in_process = isinstance(iterator, Measure) and iterator.text == SINGLE_PROCESS_ITERATOR
    count = 0.0 if in_process else workers.value if isinstance(workers, Measure) else None
    return input_pipeline(loader_work(recording), count, processes_needed(recording), recording.trace.header.context)


def _compilation_of(recording: Recording) -> pb.Compilation | None:
    return recorded_compilation(compiled_steps(recording), len(recording.steps))


def _graphs_of(recording: Recording) -> pb.GraphReplays | None:
    return replayed_graphs(graph_replays(recording), len(recording.steps))


def _operators_of(recording: Recording) -> list[pb.OperatorCount]:
    """Returns the most frequent operators, each with its calls per step and the place in the program with the most
    calls."""
    steps = len(recording.steps)
    return [
        pb.OperatorCount(name=name, per_step=calls / steps, place=None if place is None else pb.Place(**asdict(place)))
        for name, calls, place in frequent_operators(recording)
    ]


def headroom_of(
    report: pb.Report, parts: Parts, recording: Recording | None = None, parameters: float | None = None
) -> list[pb.Headroom]:
    """Returns the possible gains that are no findings. Such gains are most useful for a run without a problem.

    `recording` is the recording of a trace, or None for telemetry. For telemetry, nothing is returned if the report has
    a problem. `parts` collects the name "headroom" if this part cannot be built. `parameters` is the size of the
    model's parameters in bytes, or None if unknown.
    """
    if report.verdict.severity != "none" and recording is None:
        return []
    from tb_bottleneck.report.efficiency import headroom  # few reports need its imports

    return parts.build("headroom", lambda: headroom.headroom_of(report, recording, parameters)) or []


def trace_unprofiled(recording: Recording, defects: Sequence[Defect]) -> pb.Unprofiled | None:
    """Returns the step time without the profiler, compared with the recorded step time. `defects` are those of the
    recording.

    The monitor measures steps without the profiler before the recording. Returns None if this time is missing or
    implausible.
    """
    logged = logged_unprofiled(recording)
    if logged is None:
        return None
    codes = [defect.code for defect in defects]
    recorded = float((np.mean if logged.times else np.median)(recording.as_recorded.steps.durations))
    return unprofiled_of(logged.step, logged.steps, recorded, codes, logged.times, recording.correction is not None)
