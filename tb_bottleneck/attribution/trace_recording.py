"""A trace with its steps, and the derived data that several measures share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.attribution.cpu_attribution import ThreadOperators, cpu_claims, operators_of
from tb_bottleneck.attribution.device_attribution import busy_by_regime, device_claims
from tb_bottleneck.attribution.host_activity import HostTimeline
from tb_bottleneck.attribution.idle_gaps import IdleGaps, find_gaps
from tb_bottleneck.attribution.owned_spans import Account, OwnedSpans, account_of, owned_spans_of
from tb_bottleneck.attribution.profiler_time.costs import Correction
from tb_bottleneck.attribution.training_detection import OPTIMIZER, OPTIMIZER_STEP, optimizer_time
from tb_bottleneck.base.intervals import Spans, complement, merge, union
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.roofline.kernel_bounds import KernelBounds, kernel_bounds_of
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class Recording:
    """One trace with the window to analyse, which is the time of `steps`. Derived data is cached on first use.

    If `correction` is given, the profiler's own time is removed from all times, and `recorded` is the recording before
    this removal. `dispatching` is the recording before the time was removed by which the profiler delayed launches,
    None if it was not.
    """

    trace: Trace
    steps: Steps
    correction: Correction | None = None
    recorded: "Recording | None" = None
    dispatching: "Recording | None" = None

    @property
    def as_recorded(self) -> "Recording":
        """The recording with the original times: `recorded`, or this recording if nothing was corrected."""
        return self.recorded or self

    @property
    def for_replay(self) -> "Recording":
        """The recording that a replay starts from: it scales all dispatching itself, also beside a busy device."""
        return self.dispatching or self

    @cached_property
    def on_device(self) -> bool:
        """True if the trace has operations of an accelerator. Otherwise, the CPU is the device."""
        return len(self.trace.device_ops) > 0

    @cached_property
    def host(self) -> HostTimeline:
        """The activities of the host threads."""
        return HostTimeline(self.trace)

    @cached_property
    def main_operators(self) -> ThreadOperators:
        """The operators of the main thread. In a run on the CPU, they are the work."""
        return operators_of(self.trace, self.host.main_thread)

    @cached_property
    def kernel_bounds(self) -> KernelBounds:
        """What limits each operation of the device. Unknown if neither shapes nor hardware counters were recorded."""
        return kernel_bounds_of(self.trace)

    @cached_property
    def busy(self) -> dict[Regime, Spans]:
        """The accelerator's busy time in the window, by regime."""
        trace, steps = self.trace, self.steps
        return busy_by_regime(trace.device_ops, self.kernel_bounds, steps.begin, steps.end)

    @cached_property
    def idle(self) -> Spans:
        """The accelerator's idle time in the window."""
        return complement(merge(*self.busy.values()), self.steps.begin, self.steps.end)

    @cached_property
    def gaps(self) -> IdleGaps:
        """The accelerator's idle gaps in the window, each split by cause."""
        # Gaps before the window are included at first: a wait there may be the reason for idle time at its start.
        ops = self.trace.device_ops
        before = complement(union(ops.start, ops.end), min(int(ops.start[0]), self.steps.begin), self.steps.begin)
        starts, ends = (
            np.concatenate(pair) for pair in ((before.starts, self.idle.starts), (before.ends, self.idle.ends))
        )
        return find_gaps(self.trace, Spans(starts, ends), self.host).since(self.steps.begin)

    @cached_property
    def optimizer_steps(self) -> Spans:
        """The time in which the host runs Optimizer.step, without the closures that Optimizer.step calls."""
        return optimizer_time(self.trace, OPTIMIZER_STEP)

    @cached_property
    def optimizer_time(self) -> Spans:
        """The time in which the host runs any annotated function of an optimizer, without the closures it calls."""
        return optimizer_time(self.trace, OPTIMIZER)

    @cached_property
    def owned_spans(self) -> OwnedSpans:
        """The time of the window as spans, each with the regime that owns it."""
        if self.on_device:
            return owned_spans_of(self.trace, device_claims(self.busy, self.gaps, self.host))
        thread = self.host.main_thread
        activities = {} if thread is None else self.host.activities(thread)
        return owned_spans_of(self.trace, cpu_claims(self.trace, self.steps, activities, self.main_operators))

    @cached_property
    def account(self) -> Account:
        """The time of the window by regime, in ns."""
        return account_of(self.steps.end - self.steps.begin, self.owned_spans.totals())

    def in_window(self, starts: Ints) -> Bools:
        """Returns a mask of `starts` (times in ns): True for times in the window."""
        return (starts >= self.steps.begin) & (starts < self.steps.end)
