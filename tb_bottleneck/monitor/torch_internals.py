"""The only module that uses private names of torch, and of `threading`.

A release of torch may remove any of these names. For each name, a test in tests/monitor/test_torch_internals.py says
which signal is lost without the name.
"""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

LOADER_ITERATOR = "_BaseDataLoaderIter"
ITERATOR_WORKERS = "_num_workers"
PREPARE_TRACE = "_prepare_trace"
PROFILER_ENABLED = "_is_profiler_enabled"
COMPILED_CALL = "_compiled_call_impl"
COMPILED_MODULE = "_orig_mod"
FOREIGN_THREAD = "_DummyThread"
FAST_BLOCK = "_RecordFunctionFast"
COMPILATIONS = "get_compilation_metrics"
GRAPH_BREAKS = "graph_break_reasons"
COMPILATION_CALLBACKS = "callback_handler"
START_CALLBACKS = "start_callbacks"
BACKWARD_TASK = "_current_graph_task_id"
RECORDED_COLLECTIVES = "_dump_fr_trace_json"


def loader_iterator_class() -> Any:
    """Returns the base class of the iterators of torch's DataLoader, which defines `__next__`."""
    from torch.utils.data import dataloader

    return getattr(dataloader, LOADER_ITERATOR)


def makes_batches_in_workers(iterator: Any) -> bool:
    """Returns True if an iterator of torch's DataLoader gets its batches from worker processes."""
    return bool(getattr(iterator, ITERATOR_WORKERS, 0))


def profiler_methods() -> tuple[Any, str, str]:
    """Returns the class that all profilers of torch use, and its methods (by name) that begin and end a recording."""
    from torch.autograd.profiler import profile

    return profile, PREPARE_TRACE, "__exit__"


def is_profiling() -> bool:
    """Returns True if any profiler records now, on any thread. Called in every step; torch must be imported."""
    return bool(sys.modules["torch.autograd.profiler"]._is_profiler_enabled)


def small_profile(stacks: bool) -> tuple[Callable[[], None], Callable[[], None]]:
    """Returns two functions that begin and end a recording of the CPU, with Python stacks if `stacks` is True. The
    result of the recording is discarded.

    torch's public classes are not used, because at the end they read all events, which takes far longer than the
    recording."""
    import torch

    autograd: Any = torch.autograd
    profile = autograd.profiler.profile(use_cpu=True, record_shapes=True, with_stack=stacks)
    config, activities = profile.config(), profile.kineto_activities

    def begin() -> None:
        autograd._prepare_profiler(config, activities)
        autograd._enable_profiler(config, activities)

    def end() -> None:
        autograd._disable_profiler()

    return begin, end


def is_in_backward() -> bool:
    """Returns True if this thread runs code for a backward pass, such as a hook of a gradient (torch 2.1 or newer)."""
    task = getattr(sys.modules.get("torch._C"), BACKWARD_TASK, None)
    return task is not None and task() != -1


def is_compiled_in_place(model: Any) -> bool:
    """Returns True if `model.compile()` was called, which compiles the model in place."""
    return getattr(model, COMPILED_CALL, None) is not None


def wrapped_module(wrapper: Any) -> Any:
    """Returns the module inside `wrapper`, such as a DistributedDataParallel or the result of torch.compile; None if
    `wrapper` wraps no module."""
    return getattr(wrapper, "module", None) or getattr(wrapper, COMPILED_MODULE, None)


def is_compiled_module(module: Any) -> bool:
    """Returns True if `torch.compile` returned this module."""
    return COMPILED_MODULE in getattr(module, "_modules", {})


def has_compiled() -> bool:
    """Returns True if torch.compile compiled any code so far."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])


def compilations() -> list[Any]:
    """Returns torch's records of the last compilations, the newest last; empty if nothing was compiled."""
    records = getattr(sys.modules.get("torch._dynamo.utils"), COMPILATIONS, None)
    try:
        return list(records()) if records is not None else []
    except RuntimeError:  # another thread adds one now
        return []


def compilation_callbacks() -> list[Any] | None:
    """Returns the list of the functions that torch calls when it begins to compile; None if torch has no such list, or
    nothing was compiled yet.

    The functions get an object with `compile_id` and `callback_trigger` (torch 2.13); in older releases they get no
    argument. `torch.compiler.reset()` clears the list.
    """
    return getattr(
        getattr(sys.modules.get("torch._dynamo.callback"), COMPILATION_CALLBACKS, None), START_CALLBACKS, None
    )


def graph_breaks() -> list[Any]:
    """Returns torch's records of the places where compiled graphs end, the newest last; at most the last 1,000. Each
    record has the reason and the stack."""
    return list(getattr(sys.modules.get("torch._dynamo.utils"), GRAPH_BREAKS, ())[-1_000:])


def recorded_collectives() -> list[dict[str, Any]]:
    """Returns the entries of torch's Flight Recorder, the oldest first; empty if this torch cannot return them. It
    records the last 2000 collectives by default (TORCH_FR_BUFFER_SIZE)."""
    from torch._C import _distributed_c10d

    dump = getattr(_distributed_c10d, RECORDED_COLLECTIVES, None)
    return [] if dump is None else list(json.loads(dump())["entries"])


def job_store() -> Any:
    """Returns the key-value store of torch's default process group."""
    from torch.distributed import distributed_c10d

    return distributed_c10d._get_default_store()


def record_block() -> Any:
    """Returns a class of context managers. A `with` block of this class appears in recordings under the name that is
    passed to the class.

    torch's own record_function takes several times as long."""
    import torch

    fast = getattr(getattr(torch._C, "_profiler", None), FAST_BLOCK, None)
    return torch.profiler.record_function if fast is None else fast


def is_python_thread() -> bool:
    """Returns True if Python started the current thread; False on autograd's own threads.

    `threading.current_thread()` is not used: for an unknown thread it creates an object that is never deleted.
    """
    own = threading.get_ident()
    return any(
        thread.ident == own and not isinstance(thread, threading._DummyThread) for thread in threading.enumerate()
    )
