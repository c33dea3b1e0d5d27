"""Kinds of events: maps the category names of all torch versions to one enum.

The names are in libkineto ActivityType.h. torch 1.8 to 1.11 write other names: Operator, Runtime, Kernel, Memcpy,
Memset and Python (renamed in pytorch/kineto 3db5c597).
"""

from enum import IntEnum


class Kind(IntEnum):
    """The kind of a row of the event table."""

    OTHER = 0
    CPU_OP = 1
    ANNOTATION = 2
    PYTHON = 3
    CALL = 4  # of the CUDA or HIP runtime or driver
    KERNEL = 5
    MEMCPY = 6
    MEMSET = 7
    OVERHEAD = 8
    FOREIGN_DEVICE = 9  # work on an accelerator this package does not judge (MTIA, HPU, XPU, private backends)
    COUNTER_RANGE = 10  # CUPTI range profiling replaces kernel records


KIND_OF = {
    "cpu_op": Kind.CPU_OP,
    "operator": Kind.CPU_OP,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "python": Kind.PYTHON,
    "cuda_runtime": Kind.CALL,
    "cuda_driver": Kind.CALL,
    "hip_runtime": Kind.CALL,
    "runtime": Kind.CALL,
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "overhead": Kind.OVERHEAD,
    "cuda_profiler_range": Kind.COUNTER_RANGE,
}

MODULE = "nn.Module: "
"""Prefix of the names that the profiler and the monitor give to events of a model's modules."""

_FOREIGN_PREFIXES = ("mtia", "hpu", "xpu", "privateuse1", "glow")

DEVICE_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)


def kind_of_row(category: str, name: object) -> Kind:
    """Returns the kind of an event with this category and name.

    The monitor annotates the modules of a model. These events are annotations, even if torch writes them with the
    category of operators.
    """
    kind = kind_of(category)
    return Kind.ANNOTATION if kind is Kind.CPU_OP and isinstance(name, str) and name.startswith(MODULE) else kind


def kind_of(category: str) -> Kind:
    """Returns the kind for a category as written in a trace. An unknown category is OTHER, whose events are ignored."""
    word = category.lower()
    kind = KIND_OF.get(word)
    if kind is not None:
        return kind
    return Kind.FOREIGN_DEVICE if word.startswith(_FOREIGN_PREFIXES) else Kind.OTHER
