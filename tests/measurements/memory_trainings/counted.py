"""What fills the memory of a training, as torch itself counts it and as both readers tell it."""

import pickle
from dataclasses import dataclass, fields
from io import BytesIO

import numpy as np
import torch
from helpers.snapshot_of_trace import snapshot_of_trace

from memory_trainings.record import Training, recorded
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.recorded_memory import RecordedMemory
from tb_bottleneck.memory.snapshot.snapshot_memory import snapshot_memory
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory
from tb_bottleneck.sources.snapshot.allocator_snapshot import snapshot_in

KINDS = (Category.PARAMETERS, Category.GRADIENTS, Category.OPTIMIZER, Category.ACTIVATIONS)


@dataclass(frozen=True)
class Count:
    """Bytes. Gradients and activations are the most of a step."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int

    def difference(self, other: "Count", peak: int) -> dict[str, float]:
        """Returns the differences from another count, as shares of the peak."""
        return {it.name: (getattr(self, it.name) - getattr(other, it.name)) / peak for it in fields(self)}


def counted_by_torch(training: Training) -> Count:
    """Trains a step. Activations are the distinct storages that autograd saves, without parameters and the batch."""
    batch = training.batch()
    known = [*training.model.parameters(), *training.model.buffers(), *batch]
    own = {it.untyped_storage().data_ptr() for it in known}
    saved: dict[int, int] = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    training.optimizer.zero_grad()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = training.loss(*batch)
    activations = sum(saved.values())
    loss.backward()
    parameters = list(training.model.parameters())
    gradients = [it.grad for it in parameters if it.grad is not None]
    return Count(_bytes(parameters), _bytes(gradients), _bytes(states_of(training)), activations)


def states_of(training: Training) -> list[torch.Tensor]:
    """Returns the tensors of the optimizer's state."""
    return [value for state in training.optimizer.state.values() for value in state.values() if torch.is_tensor(value)]


def counted_by_readers(training: Training) -> tuple[Count, Count, int]:
    """Records some steps; returns the counts of the readers of traces and of snapshots, and the peak in bytes."""
    trace = recorded(training)
    memory = trace_memory(trace)
    assert isinstance(memory, TraceMemory)
    earlier = [*training.model.parameters(), *states_of(training)]
    raw = snapshot_of_trace(trace, [it.numel() * it.element_size() for it in earlier])
    snapshot = snapshot_memory(snapshot_in(BytesIO(pickle.dumps(raw))))
    return most_of_kinds(memory), most_of_kinds(snapshot), memory.account.peak


def most_of_kinds(memory: RecordedMemory) -> Count:
    """Returns the bytes of each kind: at the peak or, of gradients and activations, the most of a step."""
    account = memory.account.bytes_of
    most = {kind: most_of(memory, kind) for kind in (Category.GRADIENTS, Category.ACTIVATIONS)}
    return Count(*(max(most.get(kind, 0), account[kind]) for kind in KINDS))


def most_of(memory: RecordedMemory, kind: Category) -> int:
    """Returns the most bytes that recorded blocks of a category have at once."""
    blocks, chosen = memory.blocks, memory.category == INDEX[kind]
    change = np.zeros(len(memory.events) + 1, np.int64)
    np.add.at(change, np.maximum(blocks.opened[chosen], 0), blocks.size[chosen])
    np.subtract.at(change, blocks.closed[chosen], blocks.size[chosen])
    return int(np.cumsum(change)[: len(memory.events)].max(initial=0))


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(it.numel() * it.element_size() for it in tensors)
