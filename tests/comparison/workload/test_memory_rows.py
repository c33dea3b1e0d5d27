"""Peaks of two runs are compared by category, without small differences."""

from tb_bottleneck.comparison.workload.operator_time import memory_rows
from tb_bottleneck.schema import bottleneck_pb2 as pb


def report(**parts: float) -> pb.Report:
    rows = [pb.MemoryPart(kind=kind, bytes=size, title=kind.title()) for kind, size in parts.items()]
    return pb.Report(memory=pb.Memory(peak_bytes=sum(parts.values()), parts=rows))


def test_differences_are_listed_largest_first():
    rows = memory_rows(
        report(parameters=10e9, activations=20e9, inputs=1e9), report(parameters=10e9, activations=5e9, gradients=2e9)
    )
    assert [(row.key, row.a, row.b) for row in rows] == [
        ("memory_peak", "31.0 GB", "17.0 GB"),
        ("memory_activations", "20.0 GB", "5.0 GB"),
        ("memory_gradients", "0 B", "2.0 GB"),
        ("memory_inputs", "1.0 GB", "0 B"),
    ]
    assert rows[1].title == "memory: activations"


def test_equal_memory_and_unknown_memory_have_no_rows():
    assert memory_rows(report(parameters=10e9), report(parameters=10.1e9)) == []
    assert memory_rows(report(parameters=10e9), pb.Report()) == []
