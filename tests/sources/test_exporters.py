"""The installed torch has two exporters, which write the same recording in different forms."""

import os
from pathlib import Path

import pytest

from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.trace import Trace, load

torch = pytest.importorskip("torch")
STEPS = 4


def recorded(path: Path, **options: bool) -> Trace:
    """Profiles and exports a small training, and returns the trace as it is read."""
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True
    ) as profiler:
        for _ in range(STEPS):
            with torch.profiler.record_function("my step"):
                model(torch.randn(4, 8)).sum().backward()
                optimizer.step()
    profiler.export_chrome_trace(str(path), **options)
    os.utime(path, (1e9, 1e9))
    return load(str(path))


def count(trace: Trace, kind: Kind, word: str) -> int:
    rows = trace.rows(kind)
    return sum(word in trace.names[name] for name in trace.events.name[rows].tolist())


@pytest.mark.filterwarnings("ignore")
def test_the_exporter_in_python_is_read_like_the_other(tmp_path: Path) -> None:
    """It streams, has another order of keys and rows, and omits parts of the header. Its files can have any name."""
    try:
        python = recorded(tmp_path / "from python", use_python_export=True)
    except TypeError:
        pytest.skip("this torch has one exporter only")
    other = recorded(tmp_path / "from c++.json")
    for trace in (python, other):
        assert (dict(trace.lost), trace.truncated) == ({}, "")
        assert count(trace, Kind.CPU_OP, "aten::addmm") == STEPS
        assert count(trace, Kind.ANNOTATION, "my step") == STEPS
        assert len(trace.signatures) > 3
        assert (trace.events.duration >= 0).all()
