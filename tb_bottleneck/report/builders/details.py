"""Builds the parts of a report besides its verdicts: input pipeline and parts of a step.

For a part that could not be built, the report has a BrokenPart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from string import Template
from typing import Any

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.input.stages import LoaderWork, Stage, stage_text
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.measures.user_code.step_parts import StepPart
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.frames import frame_parts
from tb_bottleneck.trace.kernel_names import cut


def broken_part(part: str) -> pb.BrokenPart:
    """Returns the message that `part` of a report could not be built. Raises KeyError if there is no such part."""
    texts = load("parts.toml")
    return pb.BrokenPart(part=part, because=Template(texts["broken"]).substitute(title=texts["title"][part]))


_KINDS = ("rotational", "ssd", "network", "memory")


def input_pipeline(
    work: LoaderWork | Missing, workers: float | None, needed: Measure | Missing, facts: Mapping[str, Any]
) -> pb.InputPipeline | None:
    """Returns the stages of the input pipeline and the storage.

    If the stages are not known, returns only the storage; None if the storage is not known either. `work` has the
    measured work of the loader. `workers` is the present number of workers (0: the training process makes the batches),
    `needed` the number that would be fast enough. `facts` are the untrusted facts of the run, with the kind of storage.
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


MAX_REGIMES, LEAST_SHARE = 3, 0.05


def parts_of_step(parts: Sequence[StepPart], steps: int) -> list[pb.StepPart]:
    """Returns the messages of the `parts` of a step: the functions that the training loop calls. `steps` is the number
    of recorded steps.

    Each part names at most MAX_REGIMES regimes (kinds of time), each with at least LEAST_SHARE of the step."""
    return [_step_part_row(part, steps) for part in parts]


def _step_part_row(part: StepPart, steps: int) -> pb.StepPart:
    row = pb.StepPart(name=part.place.function, share=part.share, calls=part.calls / steps)
    if part.place.function:
        row.place.CopyFrom(pb.Place(**asdict(part.place)))
    for regime, share in part.regimes[:MAX_REGIMES]:
        if share >= LEAST_SHARE:
            row.account.add(regime=regime, share=share, title=regime.label)
    return row
