"""One rank of a real pipeline or of FSDP2 with Gloo, run by torchrun: `gloo_parallel.py KIND CAUSE VARIANT FOLDER`.

KIND is pipeline (torch.distributed.pipelining, 1F1B) or sharded (fully_shard), VARIANT planted or fixed. Compute
sleeps, so that the ranks fit on few cores. Each rank writes a trace of eight steps, and one the mean time of later
steps without a profiler.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

STEPS, PROFILED_UNTIL = 30, 14
MICROBATCHES = 8
FORWARD_MS = 4.0
SLOW_RANK, SLOW_SECONDS = 1, 0.03


@torch.library.custom_op("job::work", mutates_args=())
def work(batch: torch.Tensor, milliseconds: float) -> torch.Tensor:
    """Takes that long."""
    time.sleep(milliseconds / 1000)
    return batch.clone()


def _remember(ctx, inputs, output) -> None:  # torch passes them by name
    ctx.milliseconds = inputs[1]


@work.register_fake
def _(batch: torch.Tensor, milliseconds: float) -> torch.Tensor:
    return torch.empty_like(batch)


work.register_autograd(
    lambda context, gradient: (torch.ops.job.work(gradient, 2 * context.milliseconds), None), setup_context=_remember
)


class Layer(torch.nn.Module):
    """A layer whose forward pass takes `milliseconds`, and whose backward pass takes twice that."""

    def __init__(self, milliseconds: float) -> None:
        super().__init__()
        self._inner, self._milliseconds = torch.nn.Linear(64, 64), milliseconds

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return torch.ops.job.work(self._inner(batch).relu(), self._milliseconds)


def pipeline(uneven: bool) -> tuple[torch.nn.Module, Callable[[], None]]:
    """Returns the stage of this rank, and a step. `uneven` gives the last stage a part of the work of all others."""
    rank, stages = dist.get_rank(), dist.get_world_size()
    less = 0.2 * FORWARD_MS if uneven else 0.0
    model = Layer(FORWARD_MS - less + (stages * less if rank == stages - 1 else 0.0))
    stage = PipelineStage(model, rank, stages, torch.device("cpu"))
    runs = Schedule1F1B(stage, MICROBATCHES, loss_fn=lambda found, wanted: (found - wanted).pow(2).mean())
    size = 8 * MICROBATCHES

    def step() -> None:
        if rank == 0:
            runs.step(torch.randn(size, 64))
        elif rank == stages - 1:
            runs.step(target=torch.randn(size, 64))
        else:
            runs.step()

    return model, step


def sharded(_: bool) -> tuple[torch.nn.Module, Callable[[], None]]:
    """Returns a model of four layers whose parameters are sharded over all ranks, and a step."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("fsdp",))
    model = torch.nn.Sequential(*(Layer(FORWARD_MS) for _ in range(4)))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, lambda: model(torch.randn(16, 64)).pow(2).mean().backward()


def main() -> None:
    """Trains."""
    kind, cause, planted, folder = sys.argv[1], sys.argv[2], sys.argv[3] == "planted", Path(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, times = dist.get_rank(), []
    build = {"pipeline": pipeline, "sharded": sharded}[kind]
    model, step = build(planted and cause == "stage_imbalance")
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(skip_first=2, wait=1, warmup=1, active=8, repeat=1),
        record_shapes=True,
        with_stack=True,
        on_trace_ready=tensorboard_trace_handler(str(folder), use_gzip=True),
    ) as profiler:
        for number in range(STEPS):
            begin = time.perf_counter()
            optimizer.zero_grad()
            if planted and cause == "slow_rank" and rank == SLOW_RANK:
                time.sleep(SLOW_SECONDS)
            step()
            optimizer.step()
            profiler.step()
            if number >= PROFILED_UNTIL:
                times.append(time.perf_counter() - begin)
    if rank == dist.get_world_size() - 1:
        (folder / "unprofiled.json").write_text(json.dumps(sum(times) / len(times)))
    dist.barrier()
    os._exit(0)  # about one rank in 50 aborts in torch's threads if the interpreter is taken down


if __name__ == "__main__":
    main()
