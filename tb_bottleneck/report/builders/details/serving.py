"""The steps of an inference server as the report shows them."""

from tb_bottleneck.measures.trace.serving import Serving, ServingSteps
from tb_bottleneck.schema import bottleneck_pb2 as pb


def serving(steps: Serving | None) -> pb.Serving | None:
    """Returns the steps by kind and by shape, or None if there are none."""
    if steps is None:
        return None
    kinds, shapes = (list(map(_row, rows)) for rows in (steps.kinds, steps.shapes))
    return pb.Serving(server=steps.server, kinds=kinds, shapes=shapes)


def _row(steps: ServingSteps) -> pb.ServingSteps:
    shape = steps.shape
    return pb.ServingSteps(
        kind=shape.kind,
        count=steps.count,
        share=steps.share,
        step_ns=steps.step_ns,
        device_ns=steps.device_ns,
        pause_ns=steps.pause_ns,
        prefill_requests=shape.prefill_requests,
        prefill_tokens=shape.prefill_tokens,
        decode_requests=shape.decode_requests,
        decode_tokens=shape.decode_tokens,
    )
