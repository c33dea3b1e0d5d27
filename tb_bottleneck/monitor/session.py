"""Connects the parts of a monitor, and starts and stops them.

hooks ─▶ StepClock ─▶ TraceCapture ─▶ DeviceSpans ─▶ RowQueue ═▶ WriterThread ─▶ EventFile
                           └──── recordings ═══════════════════▶      └───────▶ TraceWriter
                    (the training thread)                        (the monitor's own thread)

A double arrow (═▶) leads from one thread to the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_bottleneck.monitor import accelerator
from tb_bottleneck.monitor.capture.memory_snapshots import MemorySnapshots
from tb_bottleneck.monitor.capture.module_marks import MarkingProfiler, ModuleMarks
from tb_bottleneck.monitor.capture.torch_profiler import OtherProfilers, new_profiler, profiler_costs, stop_stacks
from tb_bottleneck.monitor.capture.trace_capture import CaptureLimits, FinishedRecording, Profiler, TraceCapture
from tb_bottleneck.monitor.capture.trace_files import TraceWriter
from tb_bottleneck.monitor.facts import process, torch_settings
from tb_bottleneck.monitor.facts.run_facts import RunFacts
from tb_bottleneck.monitor.guard import Guard, Patches, interrupts_held
from tb_bottleneck.monitor.hooks import (
    backward,
    cuda_graphs,
    forward,
    interruptions,
    loader,
    optimizer,
    tensor_transfers,
)
from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.machine_check import MachineCheck
from tb_bottleneck.monitor.results import tell_results
from tb_bottleneck.monitor.samplers.sampler import Sampler
from tb_bottleneck.monitor.steps.device_timing import DeviceSpans, ThreadTime
from tb_bottleneck.monitor.steps.row_queue import RowQueue, StepRow
from tb_bottleneck.monitor.steps.step_clock import StepClock, clock_cost_ns
from tb_bottleneck.monitor.torch_internals import is_profiling
from tb_bottleneck.monitor.workers.loader_stacks import SAMPLES
from tb_bottleneck.monitor.writer.heartbeat import Heartbeat
from tb_bottleneck.monitor.writer.run_directory import new_directory, process_rank, trace_directory
from tb_bottleneck.monitor.writer.writer_thread import PACKET_S, WriterInputs, WriterThread

RECORDING_RANKS = 8
"""First rank that records traces on request only. The ranks before it, which usually run on the first node, are enough
to show the differences between ranks."""

STEPS_BEFORE_MISSING = 20
IMPORT_STEPS = 3
"""After each of the first IMPORT_STEPS steps, modules that write checkpoints and logs are searched for. A program
usually imports these modules before or during its first steps, for example to create a log writer."""
NO_EVENTS = {
    loader.SIGNAL: "no batch came from a DataLoader of torch",
    forward.SIGNAL: "the model was not called: pass the object that the loop calls to the monitor",
    backward.SIGNAL: "torch.autograd.backward was not called: the gradients are computed in another way",
}
"""Reasons for signals without an event in the first STEPS_BEFORE_MISSING steps."""


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """The arguments of the class Monitor (monitor/monitor.py), whose docstring describes them. `every_s` is in
    seconds."""

    logdir: Path
    model: Any = None
    captures: int = 3
    every_s: float = PACKET_S
    memory_snapshots: int = 0
    revision: str | None = None
    module_depth: int = -1  # below 0, modules are not marked
    sample_workers: bool = True
    check_machine: bool = False


class Session:
    """The running parts of one active monitor, from `start` to `stop`."""

    def __init__(
        self,
        options: MonitorOptions,
        samplers: Callable[[], list[Sampler]] | None = None,
        after_step: Callable[[], bool] = lambda: False,
    ) -> None:
        from torch.compiler import is_compiling

        self._options = options
        self._after_step = after_step
        self._make_samplers = samplers or _samplers
        self.guard = Guard()
        self.patches = Patches()
        self._rows = RowQueue()
        self.spans = DeviceSpans(
            self._rows.add,
            accelerator.new_event,
            accelerator.is_capturing,
            lambda error: self.guard.switch_off("device_busy", error),
        )
        self.clock = StepClock(self._step_ended)
        self._rank = process_rank(group=self.guard.call("rank", _process_group))
        ranks = {"rank": self._rank.rank, "world_size": self._rank.world_size}
        facts = self._facts = RunFacts(self.clock, self.guard, ranks, options.revision, options.sample_workers)
        self._context = HookContext(
            self.clock, self.guard, self.patches, self.spans, facts.loaders, self._add_facts, is_compiling, facts.stacks
        )
        self._models_found = forward.FoundModels(self._context)
        self._thread_time = ThreadTime()
        self._interruptions = interruptions.InterruptionHooks(self._context)
        self._other_profilers = OtherProfilers(self._context)
        self._machine = MachineCheck(options.check_machine)
        self._allocator = accelerator.AllocatorCounters()
        self._directory = options.logdir
        self._traces = TraceWriter(self._rank.rank, self.guard)
        self.capture = self._new_capture()
        self._snapshots = MemorySnapshots(
            accelerator.MemoryHistory(), self._trace_directory, self._rank.rank, self.guard, options.memory_snapshots
        )
        self._remove_hooks: list[Callable[[], None]] = []
        self._missing: dict[str, str] = {}
        self._costs: dict[str, object] | None = None
        self._own_ns = 0
        self._clock_ns = 0.0
        self._profiled = False
        self._on_device = False
        self._stopping = False
        self._writer: WriterThread | None = None
        self._heartbeat: Heartbeat | None = None
        self.started_too_early = False
        """True if torch's process group, which has the rank, was created only after the monitor's start."""

    def start(self) -> Path:
        """Creates the run directory, installs the hooks and starts the writer thread. Returns the directory.

        Raises OSError if the directory or the event file cannot be created. In this case, no hook is installed."""
        directory = new_directory(self._options.logdir, self._rank)
        samplers = self.guard.call("samplers", self._make_samplers) or []
        self._heartbeat = Heartbeat(directory, self._rank, self.clock)
        inputs = WriterInputs(
            self._rows,
            samplers,
            self._facts.collect,
            self._missing_signals,
            self._hook_ns,
            self._heartbeat,
            self._facts.link.add_readings,
            self._machine.request,
        )
        writer = WriterThread(directory, inputs, self.capture, self._traces, self.guard, self._options.every_s)
        writer.start()
        self._directory, self._writer = directory, writer
        self._clock_ns = self.guard.call("monitor_cost", clock_cost_ns) or 0.0
        self._install()
        self.patches.activate()
        return directory

    @property
    def loader_workers(self) -> int:
        """The number of workers of the DataLoader with the most workers."""
        return self._facts.loaders.workers

    def tell_results(self, error: str) -> None:
        """Shows the user what limits the training, if this process has rank 0. `error` is as in `stop`."""
        if self._rank.rank == 0 and self._directory is not None:
            tell_results(self._options.logdir, str(self._directory), self.clock.steps, error)

    def stop(self, error: str = "") -> None:
        """Restores torch, and writes the remaining data. A Ctrl-C during this call takes effect at its end.

        `error` is the name of the exception that ends the training; empty if there is none."""
        if self._heartbeat is not None:
            self._heartbeat.error = error
        with interrupts_held():
            self._stop()

    def _stop(self) -> None:
        self._stopping = True
        if self.patches.live and self.clock.is_training_thread():
            self.guard.call("steps", self.clock.finish)
        self.guard.call("traces", self.capture.finish)
        self._snapshots.finish()
        self.patches.restore()
        for remove in self._remove_hooks:
            self.guard.call("hooks", remove)
        self.guard.call(torch_settings.CALLS, self._facts.compile_log.close)
        self.guard.call("device_busy", self.spans.drop_pending)
        if self._writer is not None:
            self._writer.stop()
        if self._facts.stacks is not None:
            self.guard.call(SAMPLES, self._facts.stacks.close)

    def abandon(self) -> None:
        """Disables the session in a forked process, which has no writer thread and must not write."""
        self.patches.deactivate()
        self.guard.call(torch_settings.CALLS, self._facts.compile_log.close)
        if self._writer is not None:
            self._writer.abandon()
        self._writer = None

    def step(self, samples: float | None) -> None:
        """Ends a step because the training called Monitor.step. `samples` is the number of samples in the step; None if
        unknown."""
        if self.patches.live and self.clock.is_training_thread():
            self.spans.end()
            self.guard.call("steps", self.clock.step, samples)

    def _install(self) -> None:
        install: dict[str, Callable[[], Any]] = {
            loader.SIGNAL: lambda: loader.install(self._context),
            backward.SIGNAL: lambda: backward.install(self._context),
            optimizer.SIGNAL: lambda: self._remove_hooks.append(optimizer.install(self._context)),
            interruptions.CHECKPOINT: lambda: self._remove_hooks.append(self._interruptions.install()),
            "traces": lambda: self._other_profilers.install(self.capture),
        }
        self._on_device = bool(self.guard.call("accelerator", accelerator.is_available))
        if self._on_device:
            install |= {
                tensor_transfers.TRANSFER: lambda: tensor_transfers.install_transfer(self._context),
                tensor_transfers.SYNCS: lambda: tensor_transfers.install_syncs(self._context),
                cuda_graphs.SIGNAL: lambda: cuda_graphs.install(self._context),
            }
        else:
            self.capture.stop_stacks = stop_stacks
            self.spans.disable()
            self._missing |= dict.fromkeys(
                (tensor_transfers.TRANSFER, tensor_transfers.SYNCS, "device_busy"), "torch sees no accelerator"
            )
        if self._options.model is not None:
            self._add_facts("model", self._options.model)
            install[forward.SIGNAL] = lambda: forward.install(self._context, self._options.model)
        for signal, work in install.items():
            self.guard.call(signal, work)

    def _step_ended(self, row: StepRow) -> None:
        began = self.clock.now()
        self.guard.call("profiled", self._mark_profiled, row)
        if self.clock.is_training_thread():
            self.guard.call("thread_cpu", self._thread_time.add_to, row)
        if self.clock.steps <= IMPORT_STEPS:
            self.guard.call(interruptions.CHECKPOINT, self._interruptions.install_imported)
        self.guard.call(torch_settings.CALLS, self._facts.compile_log.watch)
        if self._on_device:
            row.figures.update(self.guard.call("allocator", self._allocator.read, row.end_ns) or {})
        if not self._stopping:
            self.capture.advance(row, self._facts.loaders.fetched_ahead)
            if self._on_device:
                self._snapshots.advance(row)
        self.spans.close(row)
        self._own_ns += self.clock.now() - began
        waited = self._after_step()
        can_check = self.guard.is_on("machine_check") and not (self._stopping or self._profiled)
        if can_check and self._machine.is_due(self.clock.steps):
            self._check_machine()
            waited = True
        if waited:
            self.clock.began = self.clock.now()
        if "loader_wait" not in self.clock.known:
            self.spans.begin()

    def _check_machine(self) -> None:
        """Measures the machine. The hooks are off meanwhile, and the time belongs to no step."""
        self.patches.deactivate()
        try:
            self.guard.call("machine_check", self._machine.run)
            self._facts.machine = self._machine.figures
        finally:
            self.patches.activate()

    def _missing_signals(self) -> dict[str, str]:
        """Returns {signal: reason} for the signals that the monitor cannot record. Any thread may call this."""
        missing = dict(self._missing)
        if self._options.model is None and self._models_found.missing:
            missing[forward.SIGNAL] = self._models_found.missing
        if self.clock.steps >= STEPS_BEFORE_MISSING:
            missing = {name: reason for name, reason in NO_EVENTS.items() if name not in self.clock.known} | missing
        if self.clock.fetched_elsewhere:
            missing[loader.SIGNAL] = (
                "the batches are fetched by another thread than the training thread, so waits for them are not visible"
            )
        return missing

    def _hook_ns(self) -> float:
        return self._own_ns + self.clock.steps * self._clock_ns

    def _mark_profiled(self, row: StepRow) -> None:
        profiled_now = is_profiling()
        row.figures["profiled"] = float(profiled_now or self._profiled)
        self._profiled = profiled_now

    def _add_facts(self, kind: str, source: Any) -> None:
        self.guard.call(f"facts of the {kind}", self._facts.models.add, kind, source)
        if kind == "optimizer" and self._options.model is None:
            self.guard.call(forward.SIGNAL, self._models_found.add, source)

    def _new_capture(self) -> TraceCapture:
        limits = CaptureLimits(
            automatic=self._options.captures if self._rank.rank < RECORDING_RANKS else 0,
            together=self._rank.world_size > 1,
        )

        def metadata(more: dict[str, object]) -> str:
            return process.as_metadata({**self._facts.collect(), **self._profiler_costs(), **more})

        def new(steps: int) -> Profiler:
            profiler, depth = new_profiler(steps), self._options.module_depth
            return profiler if depth < 0 else MarkingProfiler(profiler, ModuleMarks(depth, self.guard))

        return TraceCapture(
            new,
            self._other_profilers.busy,
            metadata,
            self._recorded,
            self.guard,
            limits,
            late_metadata=self._facts.late_metadata,
        )

    def _recorded(self, recording: FinishedRecording) -> None:
        group = self.guard.call("rank", _process_group)
        self.started_too_early = self._rank.world_size == 1 and group is not None and group[1] > 1
        text = self._traces.write(recording, self._trace_directory())
        self._snapshots.take("trace")
        if text is not None and self._writer is not None:
            self._writer.add_trace(text)

    def _trace_directory(self) -> Path:
        return trace_directory(self._directory, self._rank)

    def _profiler_costs(self) -> dict[str, object]:
        """Returns {"profiler_costs": ...}; {} if the measurement failed. The costs are measured only once, before the
        first trace is recorded."""
        if self._costs is None:
            costs = self.guard.call("cost of the profiler", profiler_costs)
            self._costs = {} if costs is None else {"profiler_costs": costs}
        return self._costs


def _process_group() -> tuple[int, int] | None:
    """Returns the rank in torch's default process group and its size; None if there is no group yet."""
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _samplers() -> list[Sampler]:
    from tb_bottleneck.monitor.samplers import all_samplers

    return all_samplers()
