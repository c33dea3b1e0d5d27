"""Records and times trainings on a GPU: their memory, other settings, and attention by single operators.

    python tests/measurements/gpu.py --record FOLDER

Each part has a folder of recordings and a file with the true figures: memory.json (bytes), settings.json and
attention.json (ms per step).
"""

import gc
import gzip
import json
import pickle
import sys
import time
from pathlib import Path
from statistics import median

import torch
import torchvision
from attention import Shape, Work
from memory_trainings.counted import Count, counted_by_torch
from torch.profiler import profile, schedule

from gpu_trainings import models
from gpu_trainings.models import Encoder, Gpt, Lstm, Training, images, perceptron, vectors, words
from tb_bottleneck import Monitor, trace_handler

SETTLING, ROUNDS, STEPS = 8, 3, 10
MONITORED_STEPS = 90

# --- Memory: a snapshot, a trace, torch's own count, and the peaks of changed trainings ---

_EAGER = {"make": lambda: Gpt(fused=False), "batch": words, "samples": 8}
_LARGE = {"make": lambda: Gpt(1024, 16, 16), "batch": words}
MEMORY = {
    "gpt_eager_adamw": (_EAGER, {
        "sdpa": {"make": Gpt}, "bf16": {"half": True}, "batch x2": {"samples": 16}, "batch /2": {"samples": 4},
        "checkpointing": {"make": lambda: Gpt(fused=False, checkpointed=True)},
    }),
    "gpt_sdpa_bf16_fused": ({"make": Gpt, "batch": words, "samples": 16, "half": True, "optimizer": "fused AdamW"}, {
        "checkpointing": {"make": lambda: Gpt(checkpointed=True)}, "batch x2": {"samples": 32},
    }),
    "gpt_loop_optimizer": ({**_LARGE, "samples": 2, "optimizer": "AdamW in a loop"}, {
        "bf16": {"half": True}, "batch x2": {"samples": 4},
    }),
    "gpt_whole_bf16": ({**_LARGE, "samples": 4, "whole_half": True}, {"batch x2": {"samples": 8}}),
    "gpt_accumulation_kept_gradients": ({"make": Gpt, "batch": words, "samples": 4, "passes": 3, "kept": True}, {
        "batch x2": {"samples": 8},
    }),
    "resnet50_momentum": (
        {"make": torchvision.models.resnet50, "batch": images, "samples": 64, "optimizer": "SGD, momentum"},
        {"bf16": {"half": True}, "batch x2": {"samples": 128}},
    ),
    "vit_b_adamw": ({"make": torchvision.models.vit_b_16, "batch": images, "samples": 32}, {
        "bf16": {"half": True}, "batch x2": {"samples": 64},
    }),
    "lstm_sgd": ({"make": Lstm, "batch": lambda samples: words(samples, 128), "samples": 32, "optimizer": "SGD"}, {
        "bf16": {"half": True}, "batch x2": {"samples": 64},
    }),
    "convnext_adamw": ({"make": torchvision.models.convnext_tiny, "batch": images, "samples": 64}, {
        "bf16": {"half": True}, "batch x2": {"samples": 128},
    }),
}  # fmt: skip
"""Each training with its changes."""


def record_memory(name: str, folder: Path) -> dict[str, object]:
    """Writes a snapshot and a trace of a training. Returns the true figures."""
    settings, changes = MEMORY[name]
    training = Training(**settings)
    row: dict[str, object] = {"peak": peak_of(training)}
    torch.cuda.memory._record_memory_history(max_entries=200_000)
    for _ in range(3):
        training.step()
    torch.cuda.synchronize()
    with gzip.open(folder / f"{name}.pickle.gz", "wb", 4) as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)
    torch.cuda.memory._record_memory_history(enabled=None)
    plan = schedule(wait=0, warmup=1, active=2, repeat=1)
    with profile(
        schedule=plan, on_trace_ready=handler(folder / name), profile_memory=True, record_shapes=True, with_stack=True
    ) as profiler:
        for _ in range(4):
            training.step()
            profiler.step()
    count: Count = counted_by_torch(training)
    row["truth"] = vars(count)
    del training
    for change, other in changes.items():
        clean()
        row[change] = peak_of(Training(**{**settings, **other}))
    return row


def peak_of(training: Training) -> int:
    """Returns the most bytes in tensors during three steps."""
    for _ in range(2):
        training.step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        training.step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


# --- Settings: another precision, batch or optimizer ---

_BATCHES_OF_16 = {"batch x2": {"samples": 32}, "batch x4": {"samples": 64}}
_ENCODER = {"make": Encoder, "batch": lambda samples: vectors(samples, 256, 1024), "samples": 16}
_DEEP = {"make": lambda: Gpt(512, 8, 24), "batch": lambda samples: words(samples, 256), "samples": 4, "half": True}
_SMALL = {"make": perceptron, "batch": lambda samples: vectors(samples, 512), "samples": 16}
SETTINGS = {
    "encoder_fp32": (_ENCODER, {"tf32": {"tf32": True}, "bf16": {"half": True}, **_BATCHES_OF_16}),
    "encoder_tf32": ({**_ENCODER, "tf32": True}, {"bf16": {"half": True}, **_BATCHES_OF_16}),
    "resnet50": (MEMORY["resnet50_momentum"][0], {
        "bf16": {"half": True}, "batch x2": {"samples": 128}, "batch x4": {"samples": 256},
    }),
    "gpt_bf16": ({"make": Gpt, "batch": words, "samples": 8, "half": True}, {
        "fused optimizer": {"optimizer": "fused AdamW"}, "batch x2": {"samples": 16}, "batch x4": {"samples": 32},
    }),
    "gpt_loop_optimizer": ({**_DEEP, "optimizer": "AdamW in a loop"}, {
        "fused optimizer": {"optimizer": "fused AdamW"}, "batch x4": {"samples": 16},
    }),
    "mlp_small_batch": (_SMALL, {"batch x4": {"samples": 64}, "batch x16": {"samples": 256}}),
    "vit_fp32": (MEMORY["vit_b_adamw"][0], {
        "tf32": {"tf32": True}, "bf16": {"half": True}, "batch x2": {"samples": 64},
    }),
}  # fmt: skip


def record_settings(name: str, folder: Path) -> dict[str, object]:
    """Records a training with the monitor. Returns the ms per step of it, and of its changes."""
    settings, changes = SETTINGS[name]
    row: dict[str, object] = {"base": timed(Training(**settings).step), "samples": settings["samples"]}
    training = Training(**settings)
    with Monitor(folder / name, captures=1):
        for _ in range(MONITORED_STEPS):
            training.step()
    del training
    for change, other in changes.items():
        clean()
        row[change] = timed(Training(**{**settings, **other}).step)
    return row


# --- Attention by single operators, and fused ---

SHAPES = (
    Shape(768, 12, 6, 8, 1024),
    Shape(1024, 16, 4, 4, 2048),
    Shape(512, 8, 6, 16, 512),
    Shape(768, 12, 6, 32, 256),
    Shape(1024, 8, 4, 2, 4096),
    Shape(1280, 20, 4, 8, 1024),
)
ATTENTION = {
    f"{it.width}x{it.heads}x{it.layers}x{it.samples}x{it.tokens}_{dtype}_{'train' if trains else 'infer'}": (
        it,
        dtype,
        trains,
    )
    for it in SHAPES
    for dtype in ("tf32", "bf16", "autocast")
    for trains in (True, False)
}


def record_attention(name: str, folder: Path) -> dict[str, object]:
    """Records a transformer with attention by single operators. Returns the ms per step of it, and with fused ones."""
    shape, dtype, trains = ATTENTION[name]
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    slow = Work(shape, trains, fused=False, device=models.DEVICE, dtype=dtype)
    row = {"name": name, "slow_ms": timed(slow.step)}
    plan = schedule(skip_first=2, wait=0, warmup=2, active=3, repeat=1)
    with profile(schedule=plan, record_shapes=True, on_trace_ready=handler(folder / name)) as profiler:
        for _ in range(8):
            slow.step()
            profiler.step()
    del slow
    clean()
    return {**row, "fused_ms": timed(Work(shape, trains, fused=True, device=models.DEVICE, dtype=dtype).step)}


def timed(step) -> float:
    """Returns the ms per step: the median of ROUNDS."""
    for _ in range(SETTLING):
        step()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - began) / STEPS * 1e3)
    return median(times)


def handler(folder: Path):
    """Returns a handler that writes a compressed trace to `folder`."""
    return trace_handler(str(folder), use_gzip=True)


def clean() -> None:
    """Gives unused memory back."""
    gc.collect()
    torch.cuda.empty_cache()


def main(folder: Path) -> int:
    """Records everything into `folder`. Returns the exit status: 2 without a GPU."""
    if not torch.cuda.is_available():
        print("this needs a GPU; torch finds none", file=sys.stderr)
        return 2
    parts = (("memory", MEMORY, record_memory), ("settings", SETTINGS, record_settings))
    for part, cases, record in (*parts, ("attention", ATTENTION, record_attention)):
        (folder / part).mkdir(parents=True, exist_ok=True)
        rows = {}
        for name in cases:
            print(part, name, file=sys.stderr)
            clean()
            rows[name] = record(name, folder / part)
            (folder / f"{part}.json").write_text(json.dumps(rows, indent=1))
    device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    (folder / "device.json").write_text(json.dumps(device))
    return 0
