"""The checks of signals. Each check compares what the monitor recorded with a second source, and returns one row.

The checks use no files, torch or processes, so that tests can call them with two measurements that disagree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from tb_bottleneck.base.units import bytes_text, duration_text, rate_text, share_text
from tb_bottleneck.doctor.results import FAILS, LIMITED, UNKNOWN, WORKS, Row
from tb_bottleneck.knowledge.gpus import GIGA, lane_rates
from tb_bottleneck.knowledge.health_texts import health_advice
from tb_bottleneck.quality.degradations import OVERHEAD_SHARE
from tb_bottleneck.schema.signals import SERIES

REPORT = "report it as a defect of tb_bottleneck, with the output of `tb-bottleneck doctor --json`"
LIMITED_FACTOR = 3.0
"""A signal works with limits if the difference is at most this factor times the tolerance: it still shows what takes
most of a step."""


@dataclass(frozen=True)
class Agreement:
    """A check that the sources `first` and `second` give the same figure, which the function `text` formats.

    The sources agree if the median difference is at most `share` (0 to 1) times the median of the second source, or at
    most `slack` (in the figure's unit)."""

    check: str
    first: str
    second: str
    share: float
    slack: float
    text: Callable[[float], str] = duration_text
    fix: str = REPORT

    def row(self, first: Sequence[float], second: Sequence[float]) -> Row:
        """Returns the row of the doctor's table for this check. `first` and `second` have figures of the same steps, in
        ns or bytes. If `first` has no figures, the signal does not work. If only `second` has none, the result is
        unknown."""
        for name, figures in ((self.first, first), (self.second, second)):
            if not figures:
                return Row(self.check, FAILS if name == self.first else UNKNOWN, f"{name}: no figure", self.fix)
        difference = median(abs(a - b) for a, b in zip(first, second, strict=True))
        allowed = max(self.share * median(second), self.slack)
        agrees = WORKS if difference <= allowed else LIMITED if difference <= LIMITED_FACTOR * allowed else FAILS
        many = f" ({len(first)} steps)" if len(first) > 1 else ""
        measured = f"{self.first} {self.text(median(first))}, {self.second} {self.text(median(second))}{many}"
        return Row(self.check, agrees, measured, "" if agrees == WORKS else self.fix)


_MS = 1e6  # ns
STEP_TIMES = Agreement("Step times", "monitor", "own clock", 0.01, 0.1 * _MS)
"""Both read time.perf_counter_ns; only the hooks of the monitor run between the two readings, which takes
microseconds."""
WAITS = Agreement("Waits for data", "monitor", "known", 0.05, 0.5 * _MS)
"""The known time is inside the data set; torch's loader itself takes about 0.1 ms around it."""
CPU_TIME = Agreement("CPU time", "monitor", "own clock", 0.05, 0.2 * _MS)
"""Both read time.thread_time_ns."""
CPU_PRODUCTS = Agreement("Device time (CPU)", "trace", "own clock", 0.05, 0.2 * _MS)
"""The clock includes the dispatch of the recorded operators, some 10 µs each."""
DEVICE_TIME = Agreement("Device time", "CUDA events", "trace's kernels", 0.10, 0.2 * _MS)
"""The time between the events also includes the launch of the first kernel, about 0.01 ms, and idle time in which the
device waits for the host."""
COPIES = Agreement("Copies", "trace", "known", 0.01, 1e4, bytes_text)
"""torch itself copies a few hundred bytes, such as seeds."""
ALLOCATOR = Agreement("Allocator", "monitor", "torch", 0.01, 1e4, bytes_text)
"""Both read the same counter at the end of the same step."""
SNAPSHOT = Agreement("Memory snapshot", "snapshot's peak", "torch's peak", 0.10, 1e6, bytes_text)
"""torch rounds blocks up to 512 bytes; its peak includes steps before the history began."""


@dataclass(frozen=True)
class Readings:
    """The readings of one counter of the GPU. `values` are in the unit that schema/signals.py declares."""

    times_ns: Sequence[float]
    values: Sequence[float]

    def highest(self, begin: float, end: float) -> float | None:
        """Returns the highest value in the time from `begin` to `end` (ns since 1970); None without readings."""
        inside = [value for at, value in zip(self.times_ns, self.values, strict=True) if begin <= at < end]
        return max(inside, default=None)


PLAUSIBLE = {
    "gpu_utilisation": (0.0, 1.0),
    "power": (1.0, 3000.0),
    "temperature": (1.0, 125.0),
    "sm_clock": (1e7, 1e10),
    "memory_used": (1e6, 1e13),
    "memory_total": (1e8, 1e13),
}
"""Lowest and highest plausible readings, in the units of schema/signals.py. No board draws 3 kW (a GB300: 1.4 kW); GPUs
switch off at 90 to 105 °C."""
MOVING = ("gpu_utilisation", "power", "memory_used", "sm_clock")
"""Counters of which at least one must rise under load."""
MEMORY_SHARE = 0.05
"""Allowed difference between the memory sizes of the driver and of torch, as a share of the latter. The driver reserves
some memory that torch sees, about 2 % on an H100."""


def counters(
    series: Mapping[str, Readings], load_began_ns: float, torch_memory: float | None, missing: Mapping[str, str]
) -> Row:
    """Returns the row of the doctor's table about the driver's counters of torch's GPU (`series`): they must exist, be
    plausible, and change under load, which begins at `load_began_ns`.

    `torch_memory` is torch's own figure in bytes; `missing` has the reasons for missing signals."""
    name, fix = "GPU counters", "check that nvidia-smi (or amd-smi) shows this GPU in this container"
    present = [key for key in PLAUSIBLE if key in series]
    if not present:
        return Row(name, FAILS, f"no reading: {missing.get('gpu_utilisation', 'the driver gave none')}", fix)
    for key in present:
        low, high = PLAUSIBLE[key]
        wrong = [value for value in series[key].values if not low <= value <= high]
        if wrong:
            return Row(name, FAILS, f"{key.replace('_', ' ')} {reading_text(key, wrong[0])} is impossible", fix)
    changes = [
        (key, before, after)
        for key in MOVING
        if key in series
        and (before := series[key].highest(0, load_began_ns)) is not None
        and (after := series[key].highest(load_began_ns, float("inf"))) is not None
    ]
    shown = ", ".join(
        f"{key.replace('_', ' ')} {reading_text(key, before)} idle, {reading_text(key, after)} under load"
        for key, before, after in changes[:2]
    )
    if changes and not any(after > before for _, before, after in changes):
        return Row(name, FAILS, f"nothing changes under load: {shown}", fix)
    total = max(series["memory_total"].values) if "memory_total" in series else None
    if total is not None and torch_memory is not None:
        shown += f"; memory {bytes_text(total)}, torch {bytes_text(torch_memory)}"
        if abs(total - torch_memory) > MEMORY_SHARE * torch_memory:
            return Row(name, FAILS, f"not torch's GPU: {shown}", fix)
    absent = [key for key in PLAUSIBLE if key not in series]
    if absent or not changes:
        because = missing.get(absent[0], "") if absent else "no reading before and under load"
        return Row(name, LIMITED, f"{shown}; without {', '.join(absent) or 'a comparison'}: {because}")
    return Row(name, WORKS, shown)


def reading_text(signal: str, value: float) -> str:
    """Returns the reading `value` of the counter `signal` as text with its unit."""
    unit = SERIES[signal].unit
    if unit in ("share", "bytes"):
        return share_text(value) if unit == "share" else bytes_text(value)
    return f"{value:.4g} {unit}"


LINK_SHARE = 0.5
"""Copies must reach at least this share of the link's payload rate. A healthy link reaches four fifths
(knowledge/gpus.py: USABLE_LINK_SHARE)."""


def link(generation: float | None, width: float | None, bytes_per_s: float | None, because: str = "") -> Row:
    """Returns the row of the doctor's table about the PCIe link under load: its generation and its width in lanes; None
    if they were not read. `bytes_per_s` is the measured rate of copies of pinned memory; `because` says why the driver
    gives no link."""
    name = "GPU link"
    lane = lane_rates().get(int(generation)) if generation else None
    if lane is None or not width:
        return Row(name, LIMITED if bytes_per_s else UNKNOWN, f"the driver gives no link: {because or 'not read'}")
    limit = lane * width * GIGA
    text = f"generation {generation:.0f} x{width:.0f}, {rate_text(limit)}"
    if bytes_per_s is None:
        return Row(name, UNKNOWN, f"{text}; copies were not measured")
    text += f"; copies {rate_text(bytes_per_s)}"
    if bytes_per_s > 1.05 * limit:
        return Row(name, FAILS, f"{text}: more than the link can carry", REPORT)
    slow = bytes_per_s < LINK_SHARE * limit
    fix = "let nothing else use the link, and bind the process to the CPU socket of the GPU (numactl)" if slow else ""
    return Row(name, LIMITED if slow else WORKS, text, fix)


@dataclass(frozen=True)
class RecordedTrace:
    """The number of events of each kind in a trace of the monitor, and the health and defect codes of its report."""

    steps: int
    operators: int
    with_shapes: int
    frames: int
    lines: int
    launches: int
    kernels: int
    health: str
    codes: tuple[str, ...]
    on_gpu: bool


def capture(trace: RecordedTrace | None, because: str = "") -> Row:
    """Returns the row of the doctor's table that says whether the monitor recorded a usable trace. `because` says why
    `trace` is None."""
    name, fix = (
        "Capture",
        "torch.profiler.supported_activities() must have CPU and, with a GPU, CUDA: install torch again",
    )
    if trace is None:
        return Row(name, FAILS, f"no trace{f': {because}' if because else ''}", fix)
    text = f"{trace.steps} steps, {trace.operators} operators, {trace.with_shapes} with shapes; "
    text += f"{trace.frames} Python calls, {trace.lines} with lines"
    if trace.on_gpu and not trace.kernels:
        advice = health_advice("kernels_not_recorded")
        return Row(
            name, FAILS, f"{text}; {trace.launches} launches, no kernel", advice.fix_if.get("launched", advice.fix)
        )
    if trace.health not in ("ok", "degraded"):
        return Row(name, FAILS, f"{text}; not readable: {', '.join(trace.codes)}", REPORT)
    if not (trace.steps and trace.operators):
        return Row(name, FAILS, text, fix)
    parts = {"shapes": trace.with_shapes, "stacks": trace.frames, "lines": trace.lines}
    lost = [part for part, count in parts.items() if not count]
    if lost:
        return Row(
            name, LIMITED, f"{text}; without {', '.join(lost)}", "a version of torch that the README lists as tested"
        )
    return Row(name, WORKS, text)


DEFECTS = ("kernels_lost", "launches_lost", "events_lost", "truncated", "calls_not_recorded", "overlapping_steps")
"""Defects of a recording that the profiler causes (knowledge/advice/health.toml)."""


def profiler_defects(trace: RecordedTrace | None, cuda: str, too_old_for: str = "") -> Row:
    """Returns the row of the doctor's table about defects of the profiler: known defects of the CUDA version `cuda`,
    and defects of the recorded trace.

    `too_old_for` is the first release of torch that is made for this GPU, if an older one is installed."""
    name = "Profiler defects"
    if trace is None:
        return Row(name, UNKNOWN, "no trace")
    found = [code for code in trace.codes if code in DEFECTS]
    counts = f"{trace.launches} launches, {trace.kernels} kernels" if trace.on_gpu else f"{trace.operators} operators"
    text = f"{counts}, {', '.join(found).replace('_', ' ') or 'none lost'}"
    if found:
        return Row(name, FAILS, text, health_advice(found[0]).fix)
    if too_old_for:
        return Row(name, LIMITED, f"{text}; torch is older than this GPU", f"pip install 'torch>={too_old_for}'")
    advice = health_advice("kernels_lost")
    first, last = advice.cuda
    if trace.on_gpu and _version(first) <= _version(cuda) <= _version(last):
        known = f"CUDA {cuda} is known to lose the first kernels of a recording"
        return Row(name, LIMITED, f"{text}; {known}", f"{advice.fix} (the monitor warms up by itself)")
    return Row(name, WORKS, text)


def _version(text: str) -> tuple[int, ...]:
    words = text.split(".")[:2]
    return tuple(int(word) for word in words) if all(word.isdecimal() for word in words) else ()


SMALL_OVERHEAD = OVERHEAD_SHARE / 2
"""Half of the share from which reports state the overhead of a profiler (quality/degradations.py)."""


def overhead(rounds: Sequence[Sequence[float]]) -> Row:
    """Returns the row of the monitor's overhead. A round has two blocks of steps without the monitor, then one block
    with the monitor. `rounds` has for each round the step times of its three blocks in ns. A block with the monitor is
    compared with the mean of the blocks directly before and after it. The last round has no block after it; there, the
    second block of the round is used instead. The noise is the median difference of the two blocks without the
    monitor."""
    name = "Overhead"
    if not rounds:
        return Row(name, UNKNOWN, "not measured")
    after = [first for first, _, _ in rounds[1:]] + [rounds[-1][1]]
    cost = median(on / fmean((before, then)) - 1 for (_, before, on), then in zip(rounds, after, strict=True))
    noise = median(abs(second / first - 1) for first, second, _ in rounds)
    step = duration_text(median(first for first, _, _ in rounds))
    text = f"{signed_share(cost)} of steps of {step}; two blocks without the monitor differ by {share_text(noise)}"
    if noise >= abs(cost):
        return Row(name, UNKNOWN, f"{text}, so the noise is larger")
    if cost <= SMALL_OVERHEAD:
        return Row(name, WORKS, text)
    fix = "leave a part of a core for the monitor's thread: fewer workers of the loader, or fewer threads of torch"
    return Row(name, LIMITED if cost <= OVERHEAD_SHARE else FAILS, text, fix)


def signed_share(share: float) -> str:
    """Returns a fraction as a percentage with its sign, as in "+1.2 %"."""
    return f"{'-' if share < 0 else '+'}{share_text(abs(share))}"
