"""Debugging aids of the training process: none by default, and each that is on by its key."""

import sys
from types import SimpleNamespace

import pytest

from tb_bottleneck.monitor.facts import debugging
from tb_bottleneck.monitor.facts.debugging import debugging_aids
from tb_bottleneck.quality.trace_defects import DEBUGGING_AIDS, debugging_defects


def torch_with(profiler="NONE", debug=False, initialized=True):
    autograd = SimpleNamespace(_profiler_type=lambda: SimpleNamespace(name=profiler))
    return SimpleNamespace(
        _C=SimpleNamespace(_autograd=autograd),
        version=SimpleNamespace(debug=debug),
        cuda=SimpleNamespace(is_initialized=lambda: initialized),
    )


@pytest.mark.parametrize(
    ("torch", "environment", "found"),
    [
        (torch_with(), {}, []),
        (torch_with(), {"CUDA_LAUNCH_BLOCKING": "1"}, ["launch_blocking"]),
        (torch_with(initialized=False), {"CUDA_LAUNCH_BLOCKING": "1"}, []),
        (torch_with(), {"CUDA_LAUNCH_BLOCKING": "0"}, []),
        (torch_with("NVTX"), {}, ["nvtx"]),
        (torch_with(debug=True), {}, ["debug_build"]),
    ],
)
def test_each_aid_has_a_key(monkeypatch, torch, environment, found):
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(debugging.os, "environ", environment)
    monkeypatch.setattr(debugging.sys, "gettrace", lambda: None)
    assert [aid for aid in debugging_aids() if aid != "tracer"] in (found, found or ["none"])
    monkeypatch.setattr(debugging.sys, "gettrace", lambda: print)
    assert "tracer" in debugging_aids()


def test_a_profiler_of_python_is_a_tracer_and_that_of_torch_is_not():
    torch = pytest.importorskip("torch")
    assert not debugging.is_profiled()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True):
        assert sys.getprofile() is not None
        assert not debugging.is_profiled()
    sys.setprofile(lambda *event: None)
    try:
        assert debugging.is_profiled()
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("recorded", [None, [], ["none"], "tracer", ["<b>other</b>"], {"tracer": 1}, [["tracer"]]])
def test_other_values_are_no_aids(recorded):
    assert not list(debugging_defects({"debugging": recorded}))


@pytest.mark.parametrize(("recorded", "named"), [(True, True), (False, False), ("yes", False), (None, False)])
def test_deterministic_algorithms_are_named_too(recorded, named):
    found = list(debugging_defects({"debugging": ["none"], "deterministic_algorithms": recorded}))
    assert ["use_deterministic_algorithms" in each.facts["aids"] for each in found] == [True] * named


def test_a_report_names_the_aids():
    (defect,) = debugging_defects({"debugging": ["tracer", "launch_blocking", 3]})
    assert defect.facts["aids"] == f"{DEBUGGING_AIDS['launch_blocking']}, {DEBUGGING_AIDS['tracer']}"
