"""The stages of the input pipeline as the report shows them."""

from collections.abc import Mapping
from typing import Any

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.measures.input_stages import LoaderWork, Stage, stage_text
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.frames.frame_owner import frame_parts
from tb_bottleneck.trace.kernel_names import cut

_KINDS = ("rotational", "ssd", "network", "memory")


def input_pipeline(
    work: LoaderWork | Missing, workers: float | None, needed: Measure | Missing, facts: Mapping[str, Any]
) -> pb.InputPipeline | None:
    """Returns the stages and the storage, without stages only the storage, or None if neither is known.

    `workers` make the batches now (0: the training process), `needed` would be fast enough. `facts` of the run have
    the kind of storage; they are untrusted.
    """
    place = _storage(facts)
    if isinstance(work, Missing) or not work.ns > 0:
        return pb.InputPipeline(storage=place) if place.ListFields() else None
    stages = sorted((*work.stages, *work.beside), key=lambda stage: -stage.ns)
    total = sum(stage.ns for stage in stages)
    storage = pb.InputStorage(
        read_bytes_per_batch=_per_batch(work, work.read_bytes),
        disk_bytes_per_batch=_per_batch(work, work.disk_bytes),
        reads_per_batch=_per_batch(work, work.reads),
        opens_per_batch=_per_batch(work, work.opens),
    )
    storage.MergeFrom(place)
    return pb.InputPipeline(
        stages=[_stage(stage, work, total) for stage in stages],
        basis=work.basis,
        batch_ns=work.batch_ns,
        workers=workers,
        workers_needed=needed.value if isinstance(needed, Measure) else None,
        waiting_share=work.waiting_share,
        storage=storage if storage.ListFields() else None,
    )


def _storage(facts: Mapping[str, Any]) -> pb.InputStorage:
    kind, system = facts.get("dataset_storage"), facts.get("dataset_filesystem")
    return pb.InputStorage(
        kind=kind if kind in _KINDS else "",
        filesystem=system if isinstance(system, str) and system.isalnum() and len(system) < 20 else "",
    )


def _stage(stage: Stage, work: LoaderWork, total: float) -> pb.InputStage:
    row = pb.InputStage(
        stage=stage.stage,
        name=stage.name,
        share=stage.ns / total,
        ns_per_batch=_per_batch(work, stage.ns),
        title=stage_text(stage),
    )
    if stage.place:
        file, line, function = frame_parts(stage.place)
        row.place.CopyFrom(pb.Place(file=cut(file), line=line, function=cut(function), share=1.0))
    return row


def _per_batch(work: LoaderWork, amount: float | None) -> float | None:
    return amount / work.batches if amount is not None and work.batches > 0 else None
