"""Marks the calls of modules while a trace is recorded, so that the trace contains their names in the model.

The profiler itself names modules only with stacks, and then by their classes (`Linear_3`). Two global hooks of torch
run around each module's forward pass; they are removed when the recording ends, and they change neither inputs nor
outputs. Hooks of single modules are not used, because they would be pickled with the modules.

Cost, measured with torch 2.13 on a busy CPU while a recording runs: the call of an empty module takes 5 us without
hooks, 20 us with hooks (mostly because torch then takes a slower path through a call), and 40 us with hooks and a mark.
Outside of recordings there is no cost.
"""

import threading
from typing import Any

from tb_bottleneck.monitor.capture.trace_capture import Profiler
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.torch_internals import has_compiled, record_block, wrapped_module

SIGNAL = "module_marks"
PREFIX = "nn.Module: "
"""Prefix of the marks' names. The profiler uses the same prefix for the names of modules."""

MAX_MODULES = 50_000
"""Maximum number of modules that get names. Naming more would take too long."""


class MarkingProfiler:
    """A profiler that also records the names of modules. `marks` has the hooks that record the names."""

    def __init__(self, profiler: Profiler, marks: "ModuleMarks") -> None:
        self._profiler, self._marks = profiler, marks
        self.step = profiler.step
        self.add_metadata_json = profiler.add_metadata_json
        self.export_chrome_trace = profiler.export_chrome_trace

    @property
    def profiler(self) -> Any:
        """The attribute `profiler` of torch's profiler, which has the recorded events."""
        return self._profiler.profiler

    def start(self) -> None:
        """Starts the recording, then the hooks that mark modules."""
        self._profiler.start()
        self._marks.begin()

    def stop(self) -> None:
        """Removes the hooks that mark modules, then ends the recording, so that no mark is open when the recording
        ends."""
        self._marks.end()
        self._profiler.stop()


class _OpenCalls(threading.local):
    """The marked module calls that have not returned yet on each thread, outermost first, as pairs: the id of the
    module, and the record_function block that marks its call."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Any]] = []


class ModuleMarks:
    """The hooks of one recording. A module that no other module calls is a model. The name of a module in a model is
    its path in this model.

    Modules down to the depth `depth` are marked: 0 marks only the models, 1 also their children."""

    def __init__(self, depth: int, guard: Guard) -> None:
        self._depth, self._guard = depth, guard
        self._handles: list[Any] = []
        self._names: dict[int, str] = {}
        self._models: list[Any] = []  # kept alive, since modules are known by their ids
        self._local = _OpenCalls()

    def begin(self) -> None:
        """Installs the hooks. Only records a note if torch.compile has compiled code: the hooks would make
        torch.compile compile this code again."""
        self._guard.call(SIGNAL, self._install)

    def end(self) -> None:
        """Removes the hooks, and closes the marks that are open on this thread."""
        for handle in self._handles:
            self._guard.call("ending module marks", handle.remove)
        self._handles = []
        self._guard.call("ending module marks", self._close, 0)
        self._names, self._models = {}, []

    def _install(self) -> None:
        if has_compiled():
            self._guard.note("module_marks_off", "modules are not marked: hooks would compile code again")
            return
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._block = record_block()
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]

    # The two hooks catch errors themselves: they run for every call of a module, and Guard.call takes 1 us.

    def _before(self, module: Any, arguments: Any) -> None:
        try:
            name = self._names.get(id(module))
            if name is None:
                if self._local.calls:
                    return
                name = self._add(module)
            block = self._block(name)
            block.__enter__()
            self._local.calls.append((id(module), block))
        except Exception as error:  # the training must continue without marks
            self._guard.switch_off(SIGNAL, error)

    def _after(self, module: Any, arguments: Any, output: Any) -> None:
        try:
            if id(module) in self._names:
                self._leave(module)
        except Exception as error:  # as above
            self._guard.switch_off(SIGNAL, error)

    def _leave(self, module: Any) -> None:
        calls = self._local.calls
        # After an error in a module, calls of its submodules may be left open.
        for position in range(len(calls) - 1, -1, -1):
            if calls[position][0] == id(module):
                self._close(position)
                return

    def _close(self, position: int) -> None:
        calls = self._local.calls
        while len(calls) > position:
            calls.pop()[1].__exit__(None, None, None)

    def _add(self, model: Any) -> str:
        """Chooses names for `model` and its modules, and returns the name of the model. The model is named by its
        class, the modules by their paths. Wrappers of the model, such as DistributedDataParallel, are not part of the
        paths."""
        self._models.append(model)
        self._names[id(model)] = f"{PREFIX}{type(model).__name__}"
        inner = model
        while (wrapped := wrapped_module(inner)) is not None:
            inner = wrapped
        if inner is not model:
            self._names[id(inner)] = f"{PREFIX}{type(inner).__name__}"
        for path, module in inner.named_modules():
            if len(self._names) >= MAX_MODULES:
                break
            if path and path.count(".") < self._depth:
                self._names[id(module)] = f"{PREFIX}{path}"
        return self._names[id(model)]
