"""The pairs that are recorded: which illnesses there are, and what a trace of each has to hold. Imports no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
HALVES = {"slow": False, "fixed": True}  # the folder of a half, and the value of its switch `cured`

CPU = "any machine"
COMPILER = "a C++ compiler"
GPU = "a GPU"
TWO_GPUS = "two GPUs"


@dataclass(frozen=True)
class Pair:
    """One illness and its cure: `demo/<name>.py` holds both. Or a sweep: one training in several settings."""

    name: str
    shows: str  # what the training does wrong, and what cures it; words for people
    expected: str  # the regime that the slow half's verdict should name; more than one are parted by " or "
    cures: str = ""  # the causes of findings that the fixed half cures, parted alike; "" where no replay tells its gain
    needs: str = GPU  # what a machine must have for the illness to mean something
    work: float = 1.0  # samples in a step of the fixed half, over samples in a step of the slow one
    settling_steps: int = 9  # they start the workers, fill their queues (2 batches for each), and let torch allocate
    active_steps: int = 6
    with_stack: bool = False  # Python frames cost time and space: only where the illness is visible in nothing else
    on_cpu: bool = False  # it trains on the CPU where there is a GPU, too
    sweep: tuple[tuple[str, Any], ...] = ()  # folders and settings, where it is no pair but a row of runs
    script: str = ""  # where that is not demo/<name>.py

    @property
    def halves(self) -> dict[str, Any]:
        """The folder of each half, or of each run of a sweep, and the value of the script's switch."""
        return dict(self.sweep) or HALVES


def workers_sweep(pinned: bool) -> tuple[tuple[str, tuple[int, bool]], ...]:
    """The settings of the sweep over the loader's workers."""
    return tuple((f"{workers}_workers", (workers, pinned)) for workers in (0, 2, 4, 8))


_ALL = (
    Pair("loader_in_main_process", "batches made in the training process; cured by two workers", "input",
         "loader_in_main_process", CPU),
    Pair("loader_workers", "a sweep: the same with 0, 2, 4 and 8 workers", "input",
         "", CPU, settling_steps=20, sweep=workers_sweep(pinned=False)),
    Pair("loader_workers_pinned", "the same sweep, its batches in pinned memory", "input",
         settling_steps=20, sweep=workers_sweep(pinned=True), script="loader_workers"),
    Pair("slow_storage", "a file for each sample on slow storage; cured by packing", "input",
         "slow_storage or too_few_workers", CPU, active_steps=12),
    Pair("heavy_augmentation", "pictures augmented by the workers; cured by the GPU's doing it", "input"),
    Pair("checkpointing", "a checkpoint every second step; cured by writing them seldom", "interruption",
         "checkpointing", CPU, with_stack=True),
    Pair("tensorboard_logging", "histograms logged in every step; cured by logging seldom", "interruption or sync",
         "logging", CPU, active_steps=4, with_stack=True),
    Pair("garbage_collection", "the collector walks over a large cache; cured by freezing it", "interruption",
         "garbage_collection", CPU, with_stack=True),
    Pair("oversubscribed_threads", "16 threads for each core; cured by one for each", "compute or memory",
         "", CPU, active_steps=5, on_cpu=True),
    Pair("crowded_processes", "three trainings with all threads each; cured by sharing them", "compute or memory",
         "", CPU, on_cpu=True),
    Pair("for_loop_optimizer", "Adam in a loop over the weights; cured by the fused one", "launch",
         "optimizer_for_loop", CPU, active_steps=3),
    Pair("gradient_accumulation", "portions of one sample each; cured by larger ones", "launch or underfilled",
         "", CPU, active_steps=3),
    Pair("small_batch", "two samples in a step; cured by thirty-two", "launch or underfilled",
         "small_batch", CPU, work=16, active_steps=4),
    Pair("synced_portions", "DDP talks after every portion; cured by no_sync", "communication",
         "", CPU),
    Pair("unfused_pointwise", "a chain of elementwise operators; cured by torch.compile", "memory",
         "unfused_pointwise", COMPILER),
    Pair("activation_heavy", "nothing to mend: cheap layers over much memory, against 7x7 filters", "memory",
         "", CPU),
    Pair("healthy_transformer", "nothing to mend: a busy device; reading a loss costs nothing", "compute",
         "", CPU),
    Pair("scalar_reads", "loss.item() in every step; cured by keeping it on the device", "sync or compute or launch",
         "scalar_reads"),
    Pair("metric_reads", "a dozen metrics read one by one; cured by one read in ten steps", "sync",
         "metric_reads"),
    Pair("printed_loss", "print(loss) in every step; cured by printing seldom", "sync",
         "scalar_reads"),
    Pair("blocking_copies", "pageable, blocking copies; cured by pinned ones beside the work", "transfer or sync",
         "blocking_uploads or pageable_copies or blocking_copies"),
    Pair("empty_cache", "empty_cache() after each batch; cured by leaving it out", "allocator",
         "empty_cache"),
    Pair("small_kernels", "an activation of many small operators; cured by a CUDA graph", "launch",
         "small_kernels"),
    Pair("fp32_matmul", "products in full fp32; cured by bf16", "compute",
         "fp32_matmul"),
    Pair("misaligned_shapes", "widths that keep tensor cores away; cured by padding", "compute",
         "misaligned_shapes"),
    Pair("model_on_cpu", "the model was left on the CPU; cured by moving it", "gpu_unused"),
    Pair("gloo_backend", "DDP over gloo; cured by nccl", "communication",
         "", TWO_GPUS),
    Pair("data_parallel", "DataParallel; cured by one GPU", "host or launch or communication or sync",
         "", TWO_GPUS),
)  # fmt: skip
PAIRS = {pair.name: pair for pair in _ALL}
