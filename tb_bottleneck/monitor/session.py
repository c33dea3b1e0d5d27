"""Puts the parts of a monitor together, and takes them apart again.

hooks ─▶ StepClock ─▶ Captures ─▶ DeviceSpans ─▶ Waiting ═▶ Pump ─▶ EventFile
                           └──── recordings ══════════════▶      └▶ Traces
        (the training thread)                    (the monitor's own thread)
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_bottleneck.monitor import accelerator
from tb_bottleneck.monitor.capture.torch_profiler import OtherProfilers, is_profiling, new_profiler
from tb_bottleneck.monitor.capture.trace_capture import CaptureLimits, FinishedRecording, TraceCapture
from tb_bottleneck.monitor.capture.trace_files import TraceWriter
from tb_bottleneck.monitor.facts import process, torch_settings
from tb_bottleneck.monitor.facts.loader import LoaderFacts
from tb_bottleneck.monitor.facts.model import ModelFacts
from tb_bottleneck.monitor.facts.pcie_link import PcieLinkFacts
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.hooks import backward, forward, loader, optimizer, tensor_transfers
from tb_bottleneck.monitor.hooks.hook_context import HookContext
from tb_bottleneck.monitor.patches import Patches
from tb_bottleneck.monitor.samplers.sampler import Sampler
from tb_bottleneck.monitor.steps.clock_cost import cost_of_a_step
from tb_bottleneck.monitor.steps.device_timing import DeviceSpans
from tb_bottleneck.monitor.steps.step_clock import StepClock
from tb_bottleneck.monitor.steps.step_rows import RowQueue, StepRow
from tb_bottleneck.monitor.writer.run_directory import new_directory, process_rank, trace_directory
from tb_bottleneck.monitor.writer.writer_thread import PACKET_S, WriterInputs, WriterThread

RANKS_THAT_RECORD = 8
"""Ranks beyond these record on request only: the first node's show what differs between ranks."""

ENOUGH_STEPS = 20
UNSEEN = {
    loader.SIGNAL: "no batch came from a DataLoader of torch",
    forward.SIGNAL: "the model that the monitor was given was not called: give it what the loop calls",
    backward.SIGNAL: "torch.autograd.backward was not called: the gradients come by another way",
}
"""What to say of a signal that did not come in so many steps."""


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """What a monitor is told: see `Monitor`."""

    logdir: Path
    model: Any = None
    captures: int = 3
    every_s: float = PACKET_S


class Session:
    """One monitor at work, from `start` to `stop`."""

    def __init__(self, options: MonitorOptions, samplers: Callable[[], list[Sampler]] | None = None) -> None:
        from torch.compiler import is_compiling

        self._options = options
        self._make_samplers = samplers or _samplers
        self.guard = Guard()
        self.patches = Patches()
        self._waiting = RowQueue()
        self.spans = DeviceSpans(self._waiting.add, accelerator.new_event, accelerator.is_capturing)
        self.clock = StepClock(self._ended)
        self._seen = ModelFacts()
        self._loaders = LoaderFacts()
        self._at = HookContext(
            self.clock, self.guard, self.patches, self.spans, self._loaders, self._look, is_compiling
        )
        self._aside = OtherProfilers(self._at)
        self._allocator = accelerator.AllocatorCounters()
        self._place = process_rank()
        self._directory = options.logdir
        self._traces = TraceWriter(self._place.rank, self.guard)
        self.captures = self._new_captures()
        self._aside.captures = self.captures
        self._remove: list[Callable[[], None]] = []
        self._missing: dict[str, str] = {}
        self._own_ns = 0
        self._clock_ns = 0.0
        self._profiled = False
        self._on_device = False
        self._ending = False
        self._pump: WriterThread | None = None
        self._blas_facts: dict[str, object] = {}
        self._link = PcieLinkFacts()

    def start(self) -> Path:
        """Makes the run directory, hooks in, and begins to write. Returns the directory. Raises OSError, and then
        nothing is hooked in."""
        directory = new_directory(self._options.logdir, self._place)
        samplers = self.guard.call("samplers", self._make_samplers) or []
        sources = WriterInputs(self._waiting, samplers, self._facts, self._why_missing, self._hook_ns, self._link.hear)
        pump = WriterThread(directory, sources, self.captures, self._traces, self.guard, self._options.every_s)
        pump.start()
        self._directory, self._pump = directory, pump
        self._clock_ns = self.guard.call("monitor_cost", cost_of_a_step) or 0.0
        self._install()
        self.patches.live = True
        return directory

    def stop(self) -> None:
        """Puts torch back as it was, and writes what is left."""
        self._ending = True
        if self.patches.live and self.clock.is_mine():
            self.guard.call("steps", self.clock.finish)
        self.guard.call("traces", self.captures.finish)
        self.patches.restore()
        for remove in self._remove:
            self.guard.call("hooks", remove)
        self.guard.call("device_busy", self.spans.drop_pending)
        if self._pump is not None:
            self._pump.stop()

    def abandon(self) -> None:
        """In a process that was forked: the thread is not here, and nothing must be written."""
        self.patches.live = False
        self._pump = None

    def step(self, samples: float | None) -> None:
        """The training says that a step ends here."""
        if self.patches.live and self.clock.is_mine():
            self.spans.end()
            self.guard.call("steps", self.clock.step, samples)

    def _install(self) -> None:
        self.spans.failed = lambda error: self.guard.switch_off("device_busy", error)
        install: dict[str, Callable[[], Any]] = {
            loader.SIGNAL: lambda: loader.install(self._at),
            backward.SIGNAL: lambda: backward.install(self._at),
            optimizer.SIGNAL: lambda: self._remove.append(optimizer.install(self._at)),
            "traces": self._aside.install,
        }
        self._on_device = self.spans.on = bool(self.guard.call("accelerator", accelerator.is_there))
        if self._on_device:
            install |= {
                tensor_transfers.TRANSFER: lambda: tensor_transfers.install_transfer(self._at),
                tensor_transfers.SYNCS: lambda: tensor_transfers.install_syncs(self._at),
            }
        else:
            no_device = "torch sees no accelerator"
            self._missing |= dict.fromkeys(
                (tensor_transfers.TRANSFER, tensor_transfers.SYNCS, "device_busy"), no_device
            )
        if self._options.model is None:
            self._missing[forward.SIGNAL] = "the monitor was not given the model: Monitor(logdir, model=model)"
        else:
            self._look("model", self._options.model)
            install[forward.SIGNAL] = lambda: forward.install(self._at, self._options.model)
        for signal, work in install.items():
            self.guard.call(signal, work)

    def _ended(self, row: StepRow) -> None:
        began = self.clock.now()
        self.guard.call("profiled", self._mark_profiled, row)
        if self._on_device:
            row.figures.update(self.guard.call("allocator", self._allocator.look, row.end_ns) or {})
        self.captures.fetched_ahead = self._loaders.fetched_ahead
        if not self._ending:
            self.captures.advance(row)
        self.spans.close(row)
        if "loader_wait" not in self.clock.known:
            self.spans.begin()
        self._own_ns += self.clock.now() - began

    def _why_missing(self) -> dict[str, str]:
        """For any thread."""
        told = dict(self._missing)
        if self.clock.steps >= ENOUGH_STEPS:
            told = {name: words for name, words in UNSEEN.items() if name not in self.clock.known} | told
        if self.clock.fetched_elsewhere:
            told[loader.SIGNAL] = (
                "another thread than the training's fetches the batches, and how the training waits is unseen"
            )
        return told

    def _hook_ns(self) -> float:
        return self._own_ns + self.clock.steps * self._clock_ns

    def _mark_profiled(self, row: StepRow) -> None:
        now = is_profiling()
        row.figures["profiled"] = float(now or self._profiled)
        self._profiled = now

    def _look(self, kind: str, one: Any) -> None:
        self.guard.call(f"facts of the {kind}", self._seen.look, kind, one)

    def _new_captures(self) -> TraceCapture:
        alone = self._place.world_size == 1
        allowed = CaptureLimits(
            automatic=self._options.captures if self._place.rank < RANKS_THAT_RECORD else 0, together=not alone
        )

        def metadata(more: dict[str, object]) -> str:
            return process.as_metadata({**self._facts(), **more})

        return TraceCapture(
            new_profiler, self._aside.busy, metadata, self._recorded, self.guard, allowed, time.perf_counter_ns
        )

    def _recorded(self, recorded: FinishedRecording) -> None:
        text = self._traces.write(recorded, trace_directory(self._directory, self._place))
        if text is not None and self._pump is not None:
            self._pump.take(text)

    def _facts(self) -> Mapping[str, object]:
        ranks = {"rank": self._place.rank, "world_size": self._place.world_size}
        seen = {**self._loaders.facts(self.clock.trained_on()), **self._seen.facts}
        return {**ranks, **process.collect(), **torch_settings.collect(), **seen, **self._blas(), **self._link.facts()}

    def _blas(self) -> dict[str, object]:
        """Asked once, after torch has been seen: it walks over all loaded libraries."""
        if not self._blas_facts:
            self._blas_facts = self.guard.call("blas", _blas_facts) or {"blas_pools": []}
        return self._blas_facts


def _samplers() -> list[Sampler]:
    from tb_bottleneck.monitor.samplers import all_samplers

    return all_samplers()


def _blas_facts() -> dict[str, object]:
    from tb_bottleneck.monitor.samplers.thread_pools import thread_pool_facts

    return thread_pool_facts()
