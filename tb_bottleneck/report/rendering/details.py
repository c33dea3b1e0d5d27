"""Formats parts of a report besides the findings as plain text: input pipeline, serving, parts of a step, and headroom
(what the run could still gain)."""

from collections.abc import Iterator, Sequence

from tb_bottleneck.base.units import bytes_text, duration_text, share_text
from tb_bottleneck.report.rendering.figures import count_text, place_text, value_text
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb

_KINDS = {"rotational": "a rotating disk", "ssd": "an SSD", "network": "a network file system", "memory": "memory"}
_MIN_SHARE = 0.005


def input_pipeline_lines(pipeline: pb.InputPipeline) -> Iterator[str]:
    """Yields the lines about the stages of the input pipeline."""
    yield Line("Making a batch, by stage" if pipeline.stages else "Making a batch", "strong")
    if pipeline.stages:
        yield from wrapped(_about(pipeline))
    stages = [stage for stage in pipeline.stages if stage.share >= _MIN_SHARE]
    width = max((len(stage.title) for stage in stages), default=0)
    for stage in stages:
        time = duration_text(stage.ns_per_batch) if stage.HasField("ns_per_batch") else ""
        place = f"  {place_text(stage.place)}" if stage.HasField("place") else ""
        yield f"  {stage.title:{width}}  {share_text(stage.share):>6}  {time:>9}{place}"
    if pipeline.HasField("storage"):
        yield from wrapped(_storage(pipeline.storage))


def _about(pipeline: pb.InputPipeline) -> str:
    how = "from its Python frames" if pipeline.basis == "frames" else "from samples of the workers' stacks"
    parts = [f"One process takes {duration_text(pipeline.batch_ns)} for a batch"] if pipeline.batch_ns else []
    if pipeline.HasField("workers"):
        count = f"{pipeline.workers:.0f} workers make them" if pipeline.workers != 1 else "1 worker makes them"
        parts.append(count if pipeline.workers else "the training process makes them")
    if pipeline.HasField("workers_needed"):
        parts.append(f"{pipeline.workers_needed:.0f} would keep up with the rest of the step")
    if pipeline.HasField("waiting_share"):
        parts.append(f"a worker has no batch to make for {share_text(pipeline.waiting_share)} of its time")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]} ({how})." if text else f"The stages are {how}."


def _storage(storage: pb.InputStorage) -> str:
    parts = []
    if storage.kind or storage.filesystem:
        name = f" ({storage.filesystem})" if storage.filesystem and storage.kind else storage.filesystem
        parts.append(f"on {_KINDS.get(storage.kind, '')}{name}")
    if storage.HasField("read_bytes_per_batch"):
        text = f"{bytes_text(storage.read_bytes_per_batch)} per batch in {storage.reads_per_batch:.0f} calls"
        if storage.HasField("disk_bytes_per_batch"):
            text += f", {bytes_text(storage.disk_bytes_per_batch)} of them from the disk"
        parts.append(text)
    if storage.HasField("opens_per_batch"):
        parts.append(f"{count_text(storage.opens_per_batch)} files opened per batch")
    return f"Data: {'; '.join(parts)}."


TITLE = "Parts of the step, by the functions that the loop calls"


def step_part_lines(parts: Sequence[pb.StepPart]) -> Iterator[str]:
    """Yields the lines about the parts of a step: one paragraph for each part."""
    yield Line(TITLE, "strong")
    for part in parts:
        of = ", ".join(f"{row.title} {share_text(row.share)}" for row in part.account)
        name = place_text(part.place) if part.HasField("place") else "the loop itself"
        yield from wrapped(f"- {name}: {share_text(part.share)} of the step{f': {of}' if of else ''}", "  ")


def headroom_lines(headroom: Sequence[pb.Headroom]) -> Iterator[str]:
    """Yields the lines about what a run without a problem could still gain; none if `headroom` is empty."""
    if not headroom:
        return
    yield ""
    yield Line("Where headroom remains", "strong")
    for item in headroom:
        yield from wrapped(f"- {item.title}{bound_text(item)}", "  ")
        yield from wrapped(", ".join(f"{row.label}: {value_text(row)}" for row in item.evidence), "      ")
        yield from wrapped(item.summary, "      ")


def bound_text(item: pb.Headroom) -> str:
    """Returns the largest possible gain of `item` as the end of its title; empty if it is not known."""
    return f": at most {share_text(item.share)} of the time" if item.HasField("share") else ""
