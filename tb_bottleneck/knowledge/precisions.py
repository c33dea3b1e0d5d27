"""On which unit a contraction kernel multiplies, and which type, as its name tells."""

import re
from dataclasses import dataclass
from functools import lru_cache

from tb_bottleneck.knowledge.catalogue import first_match, kernel_patterns, precision_patterns

# Names come from strangers' files; the types of all real ones seen stand within this length.
LONGEST_NAME_READ = 2000

UNITS = ("tensor", "vector", "unknown")
DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")

# CUTLASS names the widest load, in elements, that shapes and pointers allow: 8 half-precision or 4 single-precision
# elements make the 16 bytes that tensor cores are fed with. At 1 and 2 the fast kernels are out of reach: on an H100 a
# sequence of 5185 runs cutlass_75_tensorop_bf16_s1688gemm_..._align1, 42 % of that recording's kernel time.
_NARROW_LOAD = re.compile(r"tensorop.*_align[12](?!\d)")


@dataclass(frozen=True)
class Precision:
    """What a contraction kernel multiplies, and where.

    `unit` is tensor (tensor cores, AMD's matrix units), vector (ordinary units) or unknown. `dtype` is the type of the
    operands, one of DTYPES; None where the name does not tell it.
    """

    unit: str
    dtype: str | None


@lru_cache(maxsize=4096)
def precision_of(kernel_name: str) -> Precision | None:
    """The precision of a contraction kernel; None for other kernels, and for names that tell nothing."""
    name = kernel_name[:LONGEST_NAME_READ]
    if first_match(kernel_patterns(), name) != "contraction":
        return None
    runs = first_match(precision_patterns(), name)
    if runs is None:
        return None
    unit, _, dtype = runs.partition(" ")
    return Precision(unit, dtype or None)


def misaligned(kernel_name: str) -> bool:
    """Whether a tensor-core kernel had to be chosen for shapes or pointers that do not divide into 16-byte loads.

    Kernels outside the tensor cores (simt) always load single elements; for them the suffix says nothing.
    """
    return _NARROW_LOAD.search(kernel_name[:LONGEST_NAME_READ]) is not None
