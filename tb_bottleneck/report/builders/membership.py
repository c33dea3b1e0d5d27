"""The facts of a recording that show which job it belongs to."""

import hashlib

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.header import Header
from tb_bottleneck.trace.steps import step_numbers

# torch numbers the process groups in the order of their creation (torch/distributed/distributed_c10d.py).
_DEFAULT_GROUP = "0"


def membership_of(recording: Recording) -> pb.Membership | None:
    """Returns the membership, or None if the recording is not one rank of several."""
    header, steps = recording.trace.header, recording.steps
    if header.rank is None or (header.world_size or 1) < 2:
        return None
    numbers = step_numbers(recording.trace, steps)
    return pb.Membership(
        begin_ns=header.base_time_ns + steps.begin,
        end_ns=header.base_time_ns + steps.end,
        first_step=numbers[0] if numbers else None,
        last_step=numbers[-1] if numbers else None,
        default_group=_default_group(header),
    )


def _default_group(header: Header) -> str:
    group = next((group for group in header.groups if group.name == _DEFAULT_GROUP), None)
    if group is None:
        return ""
    return hashlib.sha256(repr((group.size, group.ranks)).encode()).hexdigest()[:16]
