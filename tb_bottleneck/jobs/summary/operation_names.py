"""Maps the names of collectives in torch, NCCL and Gloo to operations."""

import re

from tb_bottleneck.jobs.summary.rank_summary import Operation

# In this order: a reduce-scatter contains "reduce", an all-gather "gather". Names: record_param_comms has "allreduce",
# "_allgather_base", "reduce_scatter_tensor_coalesced"; annotations have "nccl:all_reduce", "gloo:all_gather"; kernels
# have "ncclDevKernel_AllReduce_Sum_f32_RING_LL" (torch/csrc/distributed/c10d, NCCL src/device).
_WORDS = (
    ("allreduce", Operation.ALL_REDUCE),
    ("reducescatter", Operation.REDUCE_SCATTER),
    ("allgather", Operation.ALL_GATHER),
    ("alltoall", Operation.ALL_TO_ALL),
    ("broadcast", Operation.BROADCAST),
    ("barrier", Operation.BARRIER),
    ("sendrecv", Operation.OTHER),
    ("gather", Operation.GATHER),
    ("scatter", Operation.SCATTER),
    ("reduce", Operation.REDUCE),
    ("send", Operation.SEND),
    ("recv", Operation.RECV),
)
_PEER = re.compile(r"(\d{1,8})\s*(->|<-)\s*(\d{1,8})", re.ASCII)


def operation_of(name: str) -> Operation:
    """Returns the operation that a name contains, or OTHER."""
    plain = name.lower().replace("_", "")
    return next((operation for word, operation in _WORDS if word in plain), Operation.OTHER)


def peer_in(name: str) -> int:
    """Returns the other rank in `nccl:send 0->1` or `nccl:recv 1<-0`, or -1."""
    match = _PEER.search(name)
    return int(match[3]) if match else -1
