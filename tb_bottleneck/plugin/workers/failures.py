"""An analysis that came to no report, as a report that says so."""

from dataclasses import dataclass

from tb_bottleneck.schema.bottleneck_pb2 import Health, HealthReason, Report
from tb_bottleneck.schema.metadata import SCHEMA
from tb_bottleneck.sources.logdir import Recording

# Like every fix in a report these are lines to copy: commands, or code of the training script.
_FIXES = {
    "worker_not_started": "python -m tensorboard.main --logdir ...   # the Python that has tb_bottleneck installed",
    "worker_died": "touch FILE   # tries it again; fewer steps need less: schedule(wait=5, warmup=2, active=3)",
    "out_of_memory": "TB_BOTTLENECK_MEMORY_GIB=8 tensorboard --logdir ...   # or schedule(wait=5, warmup=2, active=3)",
    "timed_out": "TB_BOTTLENECK_SECONDS_PER_FILE=3600 tensorboard --logdir ...   # or record fewer steps",
    "analysis_failed": "tb-bottleneck diagnose FILE   # shows this defect of tb_bottleneck without TensorBoard",
}


@dataclass(frozen=True)
class WorkerFailure:
    """Why there is no report: a code that `_FIXES` knows, and what was seen."""

    code: str
    detail: str


def as_report(recording: Recording, failure: WorkerFailure) -> Report:
    """An unreadable recording's report, whose only reason is the failure."""
    detail = failure.detail.encode("utf-8", "replace").decode()  # it may quote a path, which need not be Unicode
    reason = HealthReason(code=failure.code, detail=f"{recording.source}: {detail}.", fix=_FIXES[failure.code])
    return Report(
        schema=SCHEMA,
        run=recording.run,
        source=recording.source,
        witness="trace",
        evidence_source="trace",
        health=Health(status="unreadable", reasons=[reason]),
    )
