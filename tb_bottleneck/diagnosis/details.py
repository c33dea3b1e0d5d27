"""The input pipeline, torch.compile, captured graphs and an inference server's steps in the report of a trace."""

from dataclasses import asdict

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.diagnosis.parts import Parts
from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.trace.compiled_steps import compiled_steps
from tb_bottleneck.measures.trace.graph_replays import graph_replays
from tb_bottleneck.measures.trace.host_dispatch import frequent_operators
from tb_bottleneck.measures.trace.input_stages import loader_work, processes_needed
from tb_bottleneck.measures.trace.loader import SINGLE_PROCESS_ITERATOR, loader_iterator
from tb_bottleneck.measures.trace.loader_workers import workers_used
from tb_bottleneck.measures.trace.serving import serving_steps
from tb_bottleneck.measures.user_code.step_parts import step_parts
from tb_bottleneck.report.builders.details.compilation import recorded_compilation
from tb_bottleneck.report.builders.details.graphs import replayed_graphs
from tb_bottleneck.report.builders.details.input_pipeline import input_pipeline
from tb_bottleneck.report.builders.details.serving import serving
from tb_bottleneck.report.builders.details.step_parts import parts_of_step
from tb_bottleneck.report.builders.report_builder import Details
from tb_bottleneck.schema import bottleneck_pb2 as pb


def details_of(recording: Recording, parts: Parts) -> Details:
    """Returns the details. Only MemoryError is raised."""
    return Details(
        input=parts.build("input", lambda: _input_of(recording)),
        compilation=parts.build("compilation", lambda: _compilation_of(recording)),
        graphs=parts.build("graphs", lambda: _graphs_of(recording)),
        serving=parts.build("serving", lambda: _serving_of(recording)),
        operators=parts.build("operators", lambda: _operators_of(recording)),
        step_parts=parts.build("step_parts", lambda: parts_of_step(step_parts(recording), len(recording.steps))),
    )


def _input_of(recording: Recording) -> pb.InputPipeline | None:
    iterator, workers = loader_iterator(recording), workers_used(recording)
    in_process = isinstance(iterator, Measure) and iterator.text == SINGLE_PROCESS_ITERATOR
    count = 0.0 if in_process else workers.value if isinstance(workers, Measure) else None
    return input_pipeline(loader_work(recording), count, processes_needed(recording), recording.trace.header.context)


def _compilation_of(recording: Recording) -> pb.Compilation | None:
    return recorded_compilation(compiled_steps(recording), len(recording.steps))


def _graphs_of(recording: Recording) -> pb.GraphReplays | None:
    return replayed_graphs(graph_replays(recording), len(recording.steps))


def _serving_of(recording: Recording) -> pb.Serving | None:
    return serving(serving_steps(recording))


def _operators_of(recording: Recording) -> list[pb.OperatorCount]:
    steps = len(recording.steps)
    return [
        pb.OperatorCount(name=name, per_step=calls / steps, place=None if place is None else pb.Place(**asdict(place)))
        for name, calls, place in frequent_operators(recording)
    ]
