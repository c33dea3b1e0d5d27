"""The private names that the monitor uses exist in this torch. Each test says what breaks if one is removed."""

import threading
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader

from tb_bottleneck.monitor import torch_internals as internals
from tb_bottleneck.monitor.facts.process_groups import host_collectives
from tb_bottleneck.monitor.facts.torch_settings import CompileLog
from tb_bottleneck.monitor.guard import Guard


def test_loader_iterator_base_class() -> None:
    """Without `_BaseDataLoaderIter.__next__`, waits for batches and samples per step are not measured."""
    assert "__next__" in vars(internals.loader_iterator_class())
    assert isinstance(iter(DataLoader([1])), internals.loader_iterator_class())
    assert "__next__" not in vars(type(iter(DataLoader([1])))), "a subclass would bypass the hook"


def test_prepare_trace() -> None:
    """Without `profile._prepare_trace`, the monitor does not notice the training's own profiler: torch may crash."""
    owner, begin, end = internals.profiler_methods()
    assert callable(vars(owner)[begin])
    assert callable(vars(owner)[end])
    calls = []
    recorder = owner(use_kineto=True)
    recorder.__dict__[begin] = lambda: calls.append(begin)
    recorder._start_trace = lambda: calls.append("start")
    recorder.__enter__()
    assert calls == [begin, "start"], "torch no longer begins a recording with this method"


def test_is_profiler_enabled() -> None:
    """Without `_is_profiler_enabled`, no step is marked as profiled and no trace is captured."""
    assert not internals.is_profiling()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        assert internals.is_profiling()
    assert not internals.is_profiling()


def test_current_graph_task_id() -> None:
    """Without `_current_graph_task_id`, a recording may end inside of a backward pass, where torch 2.13 crashed."""
    seen = []
    weight = torch.ones(1, requires_grad=True)
    weight.register_hook(lambda gradient: seen.append(internals.is_in_backward()))
    weight.sum().backward()
    assert seen == [True]
    assert not internals.is_in_backward()


def test_recorded_collectives(tmp_path: Path) -> None:
    """Without `_dump_fr_trace_json`, jobs with Gloo and several groups are judged by the accounts of their ranks.
    Without `_get_default_store`, no machine is checked in a job."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        group = torch.distributed.new_group()
        for each in (None, group, group):
            torch.distributed.all_reduce(torch.ones(2, 3), group=each)
        rows = host_collectives()["host_collectives"]
        internals.job_store().set("key", "value")
    finally:
        torch.distributed.destroy_process_group()
    assert isinstance(rows, list)
    assert [row[1:3] for row in rows[-3:]] == [["gloo:all_reduce", 6]] * 3
    first, second, third = (row[3:] for row in rows[-3:])
    assert second[0] == third[0] != first[0], "the groups"
    assert third[1] == second[1] + 1, "the numbers in the group"
    assert abs(rows[-1][0] - time.time_ns()) < 60e9, "a time since 1970"
    assert host_collectives() == {}


def test_compiled_call_impl() -> None:
    """Without `_compiled_call_impl`, the forward hook would become part of what torch.compile compiles."""
    model = nn.Linear(1, 1)
    assert not internals.is_compiled_in_place(model)
    model.compile(backend="eager")
    assert internals.is_compiled_in_place(model)


def test_orig_mod() -> None:
    """Without `_orig_mod`, the fact `model_wrappers` misses torch.compile and the wrappers inside it."""
    model = nn.Linear(1, 1)
    assert internals.wrapped_module(torch.compile(model, backend="eager")) is model
    assert internals.wrapped_module(nn.DataParallel(model)) is model
    assert internals.wrapped_module(model) is None


def test_dummy_thread() -> None:
    """Without `threading._DummyThread`, optimizers that step inside the backward pass are not recognised."""
    kinds = []
    thread = threading.Thread(target=lambda: kinds.append(internals.is_python_thread()))
    thread.start()
    thread.join()
    leaf = torch.ones(1, requires_grad=True)
    leaf.register_hook(lambda _gradient: kinds.append(internals.is_python_thread()))
    leaf.sum().backward()
    assert kinds == [True, True], "the CPU's backward pass runs on the calling thread"
    assert issubclass(threading._DummyThread, threading.Thread)


def test_compilations_and_graph_breaks() -> None:
    """Without `get_compilation_metrics` and `graph_break_reasons`, no guard and no reason of a graph break is named."""

    def broken(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        x = x * 2
        torch._dynamo.graph_break()
        return x - 1

    log = CompileLog(Guard())
    compiled = torch.compile(broken, backend="eager", dynamic=False)
    compiled(torch.ones(2))
    assert log.has_changed()
    compiled(torch.ones(3))
    found = log.facts()["compile_log"]
    assert not log.has_changed()
    assert isinstance(found, dict)
    line = broken.__code__.co_firstlineno
    again = [entry for entry in found["compilations"] if entry[1] == "broken" and entry[6]]
    assert [(entry[2].rpartition("/")[2], entry[3]) for entry in again] == [("test_torch_internals.py", line)]
    assert "size mismatch at index 0. expected 2, actual 3" in again[0][6]
    breaks = {entry[1]: entry[3] for entry in found["breaks"] if entry[0].endswith("test_torch_internals.py")}
    assert {line + 2, line + 4} <= set(breaks)
    assert all("graph_break()" in reason for reason in breaks.values())


def test_a_function_that_torch_gives_up() -> None:
    """Without `fail_type` and `fail_reason`, a function that runs uncompiled seems to be compiled."""

    def looped(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = x * x.sum().item()
        return x

    torch.compile(looped, backend="eager")(torch.ones(2))
    (failure,) = [each for each in CompileLog(Guard()).facts()["compile_log"]["failures"] if each[2] == "looped"]  # type: ignore[index]
    line = looped.__code__.co_firstlineno
    assert (failure[0].rpartition("/")[2], failure[1]) == ("test_torch_internals.py", line)
    assert failure[3].startswith(f"line {line + 2}, in a loop: ")
    assert ".item()" in failure[3]


def test_callbacks_before_compilations() -> None:
    """Without `callback_handler.start_callbacks`, the line that makes torch compile again is not known."""

    def squared(x: torch.Tensor) -> torch.Tensor:
        return (x * x).sum()

    def call(size: int) -> torch.Tensor:
        return torch.compile(squared, backend="aot_eager", dynamic=False)(torch.ones(size, requires_grad=True))

    log = CompileLog(Guard())
    call(2).backward()
    log.watch()
    call(5).backward()
    found = log.facts()["compile_log"]
    assert isinstance(found, dict)
    (again,) = [entry for entry in found["compilations"] if entry[1] == "squared" and entry[6]]
    calls = {(number, start): place for number, start, *place in found["calls"]}
    file, line, function = calls[again[0], again[4]]
    assert (file.rpartition("/")[2], function) == ("test_torch_internals.py", "call")
    assert line == call.__code__.co_firstlineno + 1, "not that of the backward pass"

    torch.compiler.reset()
    call(2)
    log.watch()
    call(5)
    assert len(log.facts()["compile_log"]["calls"]) == 2, "also after a reset, which clears torch's list"  # type: ignore[index]
    log.close()
    call(7)
    log.watch()
    call(9)
    assert len(log.facts()["compile_log"]["calls"]) == 2, "it is over"  # type: ignore[index]
    assert internals.compilation_callbacks() == []
