"""The ways in which a worker process gives no result, and the report that states a failed analysis."""

from dataclasses import dataclass

from tb_bottleneck.schema.bottleneck_pb2 import Health, HealthReason, Report
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.sources.logdir import RecordingFile

# Like every fix in a report these are lines to copy: commands, or code of the training script.
FIXES = {
    "worker_not_started": "python -m tensorboard.main --logdir ...   # the Python that has tb_bottleneck installed",
    "worker_died": "touch FILE   # tries it again; fewer steps need less: schedule(wait=5, warmup=2, active=3)",
    "out_of_memory": "TB_BOTTLENECK_MEMORY_GIB=8 tensorboard --logdir ...   # or schedule(wait=5, warmup=2, active=3)",
    "timed_out": "TB_BOTTLENECK_SECONDS_PER_FILE=3600 tensorboard --logdir ...   # or record fewer steps",
    "analysis_failed": "tb-bottleneck diagnose FILE   # shows this defect of tb_bottleneck without TensorBoard",
}


@dataclass(frozen=True)
class WorkerFailure:
    """A defect or a limit of the worker process: a code of `FIXES`, and what was observed."""

    code: str
    detail: str


@dataclass(frozen=True)
class Refusal:
    """The reason why a question has no answer, as a sentence. The worker process is fine: the recording cannot be read,
    say, or a device is not known."""

    sentence: str


def as_report(recording: RecordingFile, failure: WorkerFailure) -> Report:
    """Returns an unreadable recording's report with the failure as its only reason."""
    detail = failure.detail.encode("utf-8", "replace").decode()  # it may quote a path, which need not be Unicode
    reason = HealthReason(code=failure.code, detail=f"{recording.source}: {detail}.", fix=FIXES[failure.code])
    return Report(
        schema=SCHEMA,
        run=recording.run,
        source=recording.source,
        witness=recording.kind,
        evidence_source=recording.kind,
        health=Health(status="unreadable", reasons=[reason]),
    )
