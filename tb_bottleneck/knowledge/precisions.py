"""The unit and the type of a contraction kernel, from its name."""

import re
from dataclasses import dataclass
from functools import lru_cache

from tb_bottleneck.knowledge.catalogue import first_match, kernel_patterns, precision_patterns

# Names are untrusted text; in all real names that were seen, the type is within this length.
MAX_NAME_READ = 2000

UNITS = ("tensor", "vector", "unknown")
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")

# CUTLASS names the widest load, in elements, that shapes and pointers allow: 8 half-precision or 4 single-precision
# elements are the 16 bytes that tensor cores need. With 1 and 2 the fast kernels cannot be used: on an H100 a sequence
# of 5185 runs cutlass_75_tensorop_bf16_s1688gemm_..._align1, 42 % of that recording's kernel time.
_NARROW_LOAD = re.compile(r"tensorop.*_align[12](?!\d)")


@dataclass(frozen=True)
class Precision:
    """The unit and the operand type of a contraction kernel.

    `unit` is tensor (tensor cores, AMD's matrix units), vector (ordinary units) or unknown. `dtype` is one of DTYPES,
    or None if the name does not contain it.
    """

    unit: str
    dtype: str | None


@lru_cache(maxsize=4096)
def precision_of(kernel_name: str) -> Precision | None:
    """Returns the precision of a contraction kernel, or None for other kernels and unknown names."""
    name = kernel_name[:MAX_NAME_READ]
    if first_match(kernel_patterns(), name) != "contraction":
        return None
    runs = first_match(precision_patterns(), name)
    if runs is None:
        return None
    unit, _, dtype = runs.partition(" ")
    return Precision(unit, dtype or None)


def misaligned(kernel_name: str) -> bool:
    """Returns True for a tensor-core kernel that was chosen because shapes or pointers do not allow 16-byte loads.

    Kernels outside the tensor cores (simt) always load single elements; their suffix has no meaning.
    """
    return _NARROW_LOAD.search(kernel_name[:MAX_NAME_READ]) is not None
