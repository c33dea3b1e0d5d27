"""`python tests/measurements/simulated_demo.py --write`: the demo's recordings of GPUs, which the simulators write.

No GPU is needed for them. Each problem is simulated without its fix and with it, from the same random numbers, and the
name of the device says that it is simulated. Without `--write`, the recordings are only compared with those present.
"""

import argparse
import gzip
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from simulate.fixes import FIX_OF  # noqa: E402
from simulate.jobs.as_traces import trace_of  # noqa: E402
from simulate.jobs.execution import execute  # noqa: E402
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape  # noqa: E402
from simulate.kineto import DIALECTS, Recording, kineto_json  # noqa: E402
from simulate.machine import Machine  # noqa: E402
from simulate.problems import PROBLEMS  # noqa: E402
from simulate.training import program_of  # noqa: E402
from simulate.variation import IDEAL  # noqa: E402

from demo.simulated import SIMULATED  # noqa: E402
from tb_bottleneck.knowledge.gpus import SIMULATED_SUFFIX  # noqa: E402

Traces = dict[str, dict[str, Any]]
"""The traces of a variant by file name."""

DIALECT = next(dialect for dialect in DIALECTS if dialect.name == "torch 2.4")
FILE = "simulated.pt.trace.json.gz"
SEED = 7
WORKERS = 4


def main() -> int:
    """Writes or compares the recordings. Returns 1 if one that is present differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace the recordings in {SIMULATED}")
    options = parser.parse_args()
    if options.write:
        shutil.rmtree(SIMULATED, ignore_errors=True)
    differs = False
    for path, content in recordings():
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        differs |= not path.is_file() or path.read_bytes() != content
        print(f"{path.relative_to(SIMULATED)}: {len(content) // 1000} kB")
    return int(differs)


def recordings() -> Iterator[tuple[Path, bytes]]:
    """Yields the path and the compressed content of each trace."""
    for name, variants in MAKERS.items():
        for variant, make in variants.items():
            for file, trace in make().items():
                for device in trace["deviceProperties"]:
                    device["name"] += SIMULATED_SUFFIX
                text = json.dumps(trace, separators=(",", ":"))
                yield SIMULATED / name / variant / file, gzip.compress(text.encode(), compresslevel=9, mtime=0)


def planted(
    problem: str, cause: str, seed: int = SEED, number: int = 1, **changes: object
) -> dict[str, Callable[[], Traces]]:
    """Returns the recordings of a planted problem, and of the same program with the fix of this cause."""
    work = PROBLEMS[problem].make(seed).but(steps=6, **changes)
    program = program_of(work)
    fixed = FIX_OF[cause](program, number, IDEAL)
    recording = Recording(DIALECT, stacks=True, noise=True)
    return {
        "slow": lambda: {FILE: json.loads(kineto_json(Machine(program).run(), recording))},
        "fixed": lambda: {FILE: json.loads(kineto_json(Machine(fixed).run(), recording))},
    }


# --- a job ---

RANKS, STRAGGLER, SLOWDOWN = 8, 5, 1.35


def job(faults: Faults) -> Traces:
    """Returns the traces of eight ranks that train one model with sharded parameters."""
    job = TOPOLOGIES["sharded"](Shape(ranks=RANKS, steps=6, lead=1, seed=SEED), faults)
    lines = execute(job)
    return {f"rank{rank}.pt.trace.json.gz": trace_of(job, rank, line) for rank, line in enumerate(lines)}


# --- attention ---


@dataclass
class Attention:
    """Writes steps of a transformer that computes attention with separate products, or with one kernel.

    Times of products are operations at 60 % of the peak of an A100 in bf16, other times are bytes at 80 % of its memory
    bandwidth; the fused kernel takes the operations of its products at 45 % of the peak (FlashAttention-2, ICLR 2024,
    figure 5: 40 to 62 % forward on an A100). The host launches ahead.
    """

    fused: bool
    batch: int = 8
    heads: int = 16
    tokens: int = 2048
    width: int = 1024
    layers: int = 6
    events: list[dict[str, Any]] = field(default_factory=list)
    host: float = 0.0  # us
    device: float = 0.0

    FLOPS, BYTES = 312e12, 1.56e12
    LAUNCH_US = 12.0

    def trace(self, steps: int = 5) -> dict[str, Any]:
        """Returns the trace."""
        for step in range(steps):
            begin = self.host
            for _ in range(self.layers):
                self._layer()
            self._call("cudaDeviceSynchronize", max(self.device - self.host, 0.0) + 5)
            self._row("user_annotation", f"ProfilerStep#{step + 3}", begin, self.host)
        return {
            "schemaVersion": 1,
            "record_shapes": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}],
            "traceEvents": self.events,
        }

    def _layer(self) -> None:
        rows, depth = self.batch * self.tokens, self.width // self.heads
        pairs = [self.batch * self.heads, self.tokens, self.tokens]
        query = [self.batch * self.heads, self.tokens, depth]
        self._product("aten::mm", [rows, self.width], [self.width, 3 * self.width])
        if self.fused:
            whole = [self.batch, self.heads, self.tokens, depth]
            ns = 4 * pairs[0] * self.tokens**2 * depth / (0.45 * self.FLOPS) * 1e6
            name = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>"
            self._kernel("aten::_scaled_dot_product_flash_attention", [whole, whole, whole], name, ns)
        else:
            self._product("aten::bmm", query, [pairs[0], depth, self.tokens])
            self._stream(
                "aten::mul", pairs, "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor>"
            )
            self._stream("aten::add", pairs, "void at::native::elementwise_kernel<128, 4, at::native::AddFunctor>")
            self._stream("aten::_softmax", pairs, "void softmax_warp_forward<c10::BFloat16, float, 11, false, false>")
            self._product("aten::bmm", pairs, query)
        self._product("aten::mm", [rows, self.width], [self.width, self.width])
        self._product("aten::mm", [rows, self.width], [self.width, 4 * self.width])
        self._stream(
            "aten::gelu", [rows, 4 * self.width], "void at::native::vectorized_elementwise_kernel<4, GeluCUDA>"
        )
        self._product("aten::mm", [rows, 4 * self.width], [4 * self.width, self.width])

    def _product(self, name: str, left: list[int], right: list[int]) -> None:
        operations = 2.0 * right[-1]
        for size in left:
            operations *= size
        kernel = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
        self._kernel(name, [left, right], kernel, operations / (0.6 * self.FLOPS) * 1e6)

    def _stream(self, name: str, shape: list[int], kernel: str) -> None:
        moved = 2.0 * 2
        for size in shape:
            moved *= size
        self._kernel(name, [shape], kernel, moved / (0.8 * self.BYTES) * 1e6)

    def _kernel(self, name: str, dims: list[list[int]], kernel: str, us: float) -> None:
        args = {"Input Dims": dims, "Input type": ["c10::BFloat16"] * len(dims), "Concrete Inputs": [""] * len(dims)}
        self._row("cpu_op", name, self.host, self.host + self.LAUNCH_US - 2, **args)
        link = {"correlation": len(self.events)}
        begin = max(self.device + 1, self.host + 9)
        self._row("cuda_runtime", "cudaLaunchKernel", self.host + 3, self.host + 8, **link)
        where = {"device": 0, "stream": 7, "grid": [2048, 1, 1], "block": [256, 1, 1]}
        self._row("kernel", kernel, begin, begin + us, pid=0, tid=7, **link, **where)
        self.host += self.LAUNCH_US
        self.device = begin + us

    def _call(self, name: str, us: float) -> None:
        self._row("cuda_runtime", name, self.host, self.host + us, correlation=len(self.events))
        self.host += us

    def _row(self, category: str, name: str, begin: float, end: float, pid: int = 1, tid: int = 1, **args: Any) -> None:
        times = {"ts": round(begin, 3), "dur": round(end - begin, 3)}
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args})


MAKERS: dict[str, dict[str, Callable[[], Traces]]] = {
    "metric_reads": planted("metrics read one by one", "metric_reads"),
    "small_kernels": planted("small kernels", "small_kernels", seed=SEED + 1),
    "loader_in_main_process": planted("loader in the main process", "loader_in_main_process", number=WORKERS),
    "pageable_copies": planted("pageable copies", "pageable_copies"),
    "unfused_attention": {
        "slow": lambda: {FILE: Attention(fused=False).trace()},
        "fixed": lambda: {FILE: Attention(fused=True).trace()},
    },
    "slow_rank_of_eight": {
        "slow": lambda: job(Faults(device={STRAGGLER: SLOWDOWN})),
        "fixed": lambda: job(Faults()),
    },
}


if __name__ == "__main__":
    sys.exit(main())
