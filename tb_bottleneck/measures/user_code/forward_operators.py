"""The forward operators that operators of the backward pass belong to, for one recording."""

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.trace.autograd.forward_links import ForwardLinks, forward_links, linked_forward
from tb_bottleneck.trace.table import Ints


@memoized
def _links(recording: Recording) -> ForwardLinks:
    return forward_links(recording.trace)


def forward_of(recording: Recording, threads: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Returns the backward operator that runs on each thread at each time, and its forward operator; -1 for none."""
    return linked_forward(recording.trace, _links(recording), threads, times)
