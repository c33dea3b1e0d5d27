"""The pairs to record: the problem that each shows, and the recording options it needs. Does not import torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
MONITORED = "tb_bottleneck"  # the folder that the monitor creates in a run's folder
VARIANTS = {"slow": False, "fixed": True}  # folder of each variant, and the value of the script's switch `fixed`

CPU = "any machine"
COMPILER = "a C++ compiler"
GPU = "a GPU"
TWO_GPUS = "two GPUs"


@dataclass(frozen=True)
class Pair:
    """One problem and its fix, both in `demo/problems/<name>.py`; or a sweep: one training with several settings."""

    name: str
    shows: str  # text for users: the problem and its fix
    expected: str  # expected regime of the slow variant's verdict; alternatives are separated by " or "
    fixed_causes: str = ""  # causes that the fixed variant removes, separated by " or "; "" if the gain is not replayed
    needs: str = GPU  # requirement of the problem
    work: float = 1.0  # samples per step of the fixed variant / samples per step of the slow one
    settling_steps: int = 9  # they start the workers, fill their queues (2 batches per worker), and let torch allocate
    on_cpu: bool = False  # train on the CPU even if there is a GPU
    sweep: tuple[tuple[str, Any], ...] = ()  # folders and settings of a sweep
    script: str = ""  # the module in demo/problems, if it is not `name`
    memory: str = ""  # expected finding about the memory of the slow variant; memory is then recorded too

    @property
    def variants(self) -> dict[str, Any]:
        """The folder of each variant, or of each run of a sweep, with the value of the script's switch."""
        return dict(self.sweep) or VARIANTS


def workers_sweep(pinned: bool) -> tuple[tuple[str, tuple[int, bool]], ...]:
    """Returns the folders and settings of the sweep over the loader's workers."""
    return tuple((f"{workers}_workers", (workers, pinned)) for workers in (0, 2, 4, 8))


_ALL = (
    Pair("loader_in_main_process", "batches created in the training process; fixed by workers", "input",
         "loader_in_main_process", CPU),
    Pair("loader_workers", "a sweep: the same training with 0, 2, 4 and 8 workers", "input",
         "", CPU, settling_steps=20, sweep=workers_sweep(pinned=False)),
    Pair("loader_workers_pinned", "the same sweep with batches in pinned memory", "input",
         settling_steps=20, sweep=workers_sweep(pinned=True), script="loader_workers"),
    Pair("slow_storage", "a file for each sample on slow storage; fixed by a second worker", "input",
         "slow_storage or too_few_workers", CPU),
    Pair("heavy_augmentation", "images augmented by the workers; fixed by augmenting on the GPU", "input"),
    Pair("checkpointing", "a checkpoint every third step; fixed by rare checkpoints", "interruption",
         "checkpointing", CPU),
    Pair("tensorboard_logging", "histograms logged in every step; fixed by rare logging", "interruption or sync",
         "logging", CPU),
    Pair("garbage_collection", "garbage collection of a large cache; fixed by gc.freeze()", "interruption",
         "garbage_collection", CPU),
    Pair("oversubscribed_threads", "16 threads per core; fixed by one per core", "compute or memory",
         "", CPU, on_cpu=True),
    Pair("crowded_processes", "three trainings with threads for all cores; fixed by a share each", "compute or memory",
         "", CPU, on_cpu=True),
    Pair("for_loop_optimizer", "Adam in a loop over the weights; fixed by fused=True", "launch",
         "optimizer_for_loop", CPU),
    Pair("gradient_accumulation", "micro-batches of one sample; fixed by larger ones", "launch or underfilled",
         "small_batch", CPU),
    Pair("small_batch", "two samples per step; fixed by thirty-two", "launch or underfilled",
         "small_batch", CPU, work=16),
    Pair("synced_portions", "DDP all-reduces after every micro-batch; fixed by no_sync", "communication",
         "", CPU),
    Pair("unfused_pointwise", "a chain of elementwise operators; fixed by torch.compile", "memory",
         "unfused_pointwise", COMPILER),
    Pair("growing_memory", "each step keeps its outputs in a list; fixed by keeping a number", "compute or memory",
         "", CPU, memory="growing_memory"),
    Pair("retained_graph", "a sum of losses keeps the graph of every step; fixed by no_grad", "compute or memory",
         "", CPU, memory="retained_graph"),
    Pair("activation_checkpointing", "activations fill the memory; fixed by checkpointing, which takes time",
         "compute or memory", "", CPU, memory="activations_dominate"),
    Pair("activation_heavy", "no problem: cheap layers with large activations, against 7x7 filters", "memory",
         "", CPU),
    Pair("healthy_transformer", "no problem: a busy device; reading a loss costs nothing", "compute",
         "", CPU),
    Pair("scalar_reads", "loss.item() in every step; fixed by keeping it on the device", "sync or compute or launch",
         "scalar_reads"),
    Pair("metric_reads", "a dozen metrics read one by one; fixed by one read per ten steps", "sync or compute",
         "metric_reads"),
    Pair("printed_loss", "print(loss) in every step; fixed by rare printing", "sync or launch",
         "scalar_reads or waits_combined"),
    Pair("blocking_copies", "pageable, blocking copies; fixed by pinned, overlapped ones", "transfer or sync",
         "blocking_uploads or pageable_copies or blocking_copies"),
    Pair("empty_cache", "empty_cache() after each batch; fixed by removing it", "allocator",
         "empty_cache"),
    Pair("small_kernels", "an activation of many small operators; fixed by a CUDA graph", "launch",
         "small_kernels"),
    Pair("fp32_matmul", "matmuls in full fp32; fixed by bf16", "compute",
         "fp32_matmul"),
    Pair("misaligned_shapes", "widths that prevent tensor-core kernels; fixed by padding", "compute",
         "misaligned_shapes"),
    Pair("model_on_cpu", "the model stays on the CPU; fixed by moving it", "gpu_unused"),
    Pair("gloo_backend", "DDP over gloo; fixed by nccl", "communication",
         "", TWO_GPUS),
    Pair("data_parallel", "DataParallel; fixed by one GPU", "host or launch or communication or sync",
         "", TWO_GPUS),
)  # fmt: skip
PAIRS = {pair.name: pair for pair in _ALL}
