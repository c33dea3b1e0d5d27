"""Kinds of events by category, in the dialects of all torch versions."""

import pytest

from tb_bottleneck.trace.kinds import DEVICE_KINDS, KIND_OF, Kind, kind_of

BY_DIALECT = {
    "torch 1.8": {
        "Operator": Kind.CPU_OP,
        "Runtime": Kind.CALL,
        "Kernel": Kind.KERNEL,
        "Memcpy": Kind.MEMCPY,
        "Memset": Kind.MEMSET,
        "Python": Kind.PYTHON,
    },
    "cuda": {
        "cpu_op": Kind.CPU_OP,
        "user_annotation": Kind.ANNOTATION,
        "python_function": Kind.PYTHON,
        "cuda_runtime": Kind.CALL,
        "cuda_driver": Kind.CALL,
        "kernel": Kind.KERNEL,
        "gpu_memcpy": Kind.MEMCPY,
        "gpu_memset": Kind.MEMSET,
        "overhead": Kind.OVERHEAD,
        "cuda_profiler_range": Kind.COUNTER_RANGE,
    },
    "rocm": {"hip_runtime": Kind.CALL},
    "foreign": dict.fromkeys(
        ("mtia_runtime", "mtia_ccp_events", "hpu_op", "xpu_runtime", "privateuse1_driver", "glow_runtime"),
        Kind.FOREIGN_DEVICE,
    ),
    "no part of it": dict.fromkeys(
        ("gpu_user_annotation", "cuda_sync", "cuda_event", "ac2g", "fwdbwd", "Trace", ""),
        Kind.OTHER,
    ),
}


@pytest.mark.parametrize("dialect", BY_DIALECT)
def test_categories_of_every_dialect(dialect):
    assert {category: kind_of(category) for category in BY_DIALECT[dialect]} == BY_DIALECT[dialect]


def test_every_known_category_is_tested_here():
    tested = {category.lower() for dialect in BY_DIALECT.values() for category in dialect}
    assert set(KIND_OF) <= tested


def test_waits_and_annotations_on_the_device_are_no_device_work():
    """cuda_sync rows overlap kernels on the same row, gpu_user_annotation spans them: they would count twice."""
    assert not {kind_of("cuda_sync"), kind_of("gpu_user_annotation")} & set(DEVICE_KINDS)
