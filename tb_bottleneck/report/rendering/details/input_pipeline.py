"""Formats the stages of the input pipeline as text."""

from collections.abc import Iterator

from tb_bottleneck.base.text import bytes_text, duration_text, share_text
from tb_bottleneck.report.rendering.figures import count_text, place_text
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb

_KINDS = {"rotational": "a rotating disk", "ssd": "an SSD", "network": "a network file system", "memory": "memory"}
_MIN_SHARE = 0.005


def lines_of(pipeline: pb.InputPipeline) -> Iterator[str]:
    """Yields the lines of the part."""
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
