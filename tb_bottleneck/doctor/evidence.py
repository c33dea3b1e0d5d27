"""Reads the files that the training of the doctor wrote: its own measurements, and the files of the monitor."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tb_bottleneck.attribution.telemetry.telemetry_recording import TelemetryRecording
from tb_bottleneck.base.errors import BottleneckError
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.bottlenecks.compute.torch_build import first_torch_for_device
from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot
from tb_bottleneck.diagnosis.telemetry import TelemetryReader, read_all
from tb_bottleneck.diagnosis.trace import diagnose_loaded
from tb_bottleneck.doctor.checks import Readings, RecordedTrace
from tb_bottleneck.doctor.training import LOGDIR, RESULT
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.telemetry.telemetry import Telemetry
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.steps import Steps, find_steps
from tb_bottleneck.trace.trace import Trace, load

PRODUCT = "aten::bmm"
"""The operator of the matrix multiplications in training.py. Nothing else in the steps calls this operator."""
CLOCKS = ("ends", "threads")
Pair = tuple[Sequence[float], Sequence[float]]
"""Figures of the same steps from two sources. The first source is usually the monitor or its trace."""


@dataclass(frozen=True)
class Evidence:
    """All files that one training wrote. Attributes are empty or None for files that the training did not write."""

    measured: dict[str, Any] = field(default_factory=dict)
    telemetry: Telemetry = field(default_factory=Telemetry)
    trace: Trace | None = None
    report: pb.Report | None = None
    snapshot: pb.Report | None = None

    @property
    def on_gpu(self) -> bool:
        """True if the training ran on a GPU."""
        return bool(self.measured.get("on_gpu"))

    @property
    def steps(self) -> Steps | None:
        """The steps of the trace, or None if there are none."""
        return None if self.trace is None else find_steps(self.trace)

    def by_step(self, column: str, name: str) -> Pair:
        """Returns two lists with a value per step: `column` of the monitor, and the training's own figures `name`.
        Steps without a value are left out. Step 0 is left out, too, because the training does not know when step 0
        begins."""
        rows, own = self.telemetry.steps, self.own(name)
        numbers, values = rows.column("number").mean.astype(int), rows.column(column).mean
        known = [
            (value, own[number])
            for number, value in zip(numbers.tolist(), values.tolist(), strict=True)
            if 0 < number < len(own) and not np.isnan(value)
        ]
        return [value for value, _ in known], [figure for _, figure in known]

    def own(self, name: str) -> Sequence[float]:
        """Returns the training's own figures `name` per step (doctor/training.py). For clocks, these are the
        differences between steps, and the first figure is 0, because the start of step 0 is not known."""
        figures: Sequence[float] = self.measured.get(name, ())
        if name not in CLOCKS:
            return figures
        return [0.0, *(float(end - begin) for begin, end in pairwise(figures))]

    def products(self) -> Pair:
        """Two lists with a value per recorded step: the time of matrix multiplications on the CPU in ns, in the trace
        and by the training's clock."""
        trace, steps = self.trace, self.steps
        if trace is None or steps is None:
            return [], []
        rows = trace.rows(Kind.CPU_OP)
        rows = rows[[trace.names[name] == PRODUCT for name in trace.events.name[rows].tolist()]]
        edges = steps.host
        recorded = _sums(edges, trace.events.start[rows], trace.events.duration[rows])
        own = np.array(self.measured.get("products", ()), np.int64).reshape(-1, 2)
        clock = _sums(edges, own[:, 0] - trace.header.base_time_ns, own[:, 1])
        both = (recorded > 0) & (clock > 0)
        return recorded[both].tolist(), clock[both].tolist()

    def device_times(self) -> Pair:
        """Two lists with at most one value, the median time of a recorded step on the device in ns: measured by CUDA
        events, and in the trace (from the start of its first operation to the end of its last one)."""
        rows = self.telemetry.steps
        events = rows.column("device_busy").mean[rows.column("profiled").mean == 1]
        events = events[~np.isnan(events)]
        if self.trace is None or self.steps is None or not len(self.trace.device_ops):
            return events.tolist()[:1], []
        ops, edges = self.trace.device_ops, self.steps.host
        step = np.searchsorted(edges, ops.issued(self.trace.calls), side="right") - 1
        spans = [
            float(ops.end[step == number].max() - ops.start[step == number].min())
            for number in range(len(edges) - 1)
            if (step == number).any()
        ]
        return ([float(np.median(events))] if len(events) else []), [float(np.median(spans))] if spans else []

    def copied(self) -> Pair:
        """Two lists with a value per recorded step: bytes copied to the device in the trace, and the size of the
        batch."""
        if self.trace is None or self.steps is None:
            return [], []
        ops, edges = self.trace.device_ops, self.steps.host
        uploads = ops.take(np.flatnonzero(ops.work == Work.UPLOAD))
        recorded = _sums(edges, uploads.issued(self.trace.calls), uploads.bytes)
        return recorded.tolist(), [float(self.measured.get("batch_bytes", 0))] * len(recorded)

    def snapshot_peaks(self) -> Pair:
        """Two lists with the peak of allocated bytes: in the snapshot, and measured by torch. Both lists are empty
        without a snapshot."""
        known = self.snapshot is not None and self.snapshot.HasField("memory")
        peak = [self.snapshot.memory.allocated_bytes] if known and self.snapshot is not None else []
        return peak, [float(self.measured.get("allocated_peak", 0))] if peak else []

    def counters(self) -> dict[str, Readings]:
        """Returns a dict: name of a counter -> its readings, for the GPU of the training."""
        device = next(iter(self.telemetry.devices), None)
        series = {name: rows for (name, of), rows in self.telemetry.series.items() if of == device}
        return {name: Readings(rows.end.tolist(), rows.column("value").mean.tolist()) for name, rows in series.items()}

    def missing(self) -> dict[str, str]:
        """Returns a dict: name of a missing signal -> the reason why it is missing."""
        return {signal.name: signal.because for signal in self.telemetry.context.unsupported}

    def recorded_trace(self) -> RecordedTrace | None:
        """The number of events of each kind in the trace, or None without a trace."""
        trace, steps, report = self.trace, self.steps, self.report
        if trace is None or report is None:
            return None
        operators, frames = trace.rows(Kind.CPU_OP), trace.rows(Kind.PYTHON)
        return RecordedTrace(
            steps=0 if steps is None else len(steps),
            operators=len(operators),
            with_shapes=int((trace.events.signature[operators] > 0).sum()),
            frames=len(frames),
            lines=len(trace.call_lines),
            launches=len(trace.calls.of(Role.LAUNCH)),
            kernels=int((trace.events.kind == Kind.KERNEL).sum()),
            health=report.health.status,
            codes=tuple(reason.code for reason in report.health.reasons),
            on_gpu=self.on_gpu,
        )

    def torch_for_device(self) -> str:
        """The first release of torch made for this GPU if an older release is installed, otherwise empty."""
        first = first_torch_for_device(TelemetryRecording(self.telemetry))
        return first.text if isinstance(first, Measure) else ""


def read_measured(folder: Path) -> dict[str, Any]:
    """Returns the training's own measurements from its `folder`, by name; empty if there are none."""
    try:
        measured = json.loads((folder / RESULT).read_text())
    except (OSError, ValueError):
        return {}
    return measured if isinstance(measured, dict) else {}


def read_evidence(folder: Path) -> Evidence:
    """Reads all files that the training wrote to its `folder`."""
    logdir, measured = folder / LOGDIR, read_measured(folder)
    telemetry, trace, report, snapshot = Telemetry(), None, None, None
    for events in logdir.rglob("*tfevents*"):
        reader = TelemetryReader(str(events))
        read_all(reader)
        telemetry = reader.telemetry
    for path in logdir.rglob("*.pt.trace.json.gz"):
        try:
            trace = load(str(path))
        except BottleneckError:
            continue  # the row says that there is no trace
        report = diagnose_loaded(trace, str(path))[0]
    for path in logdir.rglob("*.pickle"):
        snapshot = diagnose_snapshot(str(path))
    return Evidence(measured, telemetry, trace, report, snapshot)


def recordings_in(folder: Path) -> int:
    """Returns the number of files in the training's logdir that TensorBoard must list as recordings."""
    endings = ("*tfevents*", "*.pt.trace.json.gz", "*.pickle")
    return sum(1 for ending in endings for _ in (folder / LOGDIR).rglob(ending))


def _sums(edges: Any, times: Any, amounts: Any) -> Any:
    """Returns for each step the sum of the `amounts` whose times are in it. Step i is [edges[i], edges[i + 1])."""
    step = np.searchsorted(edges, times, side="right") - 1
    inside = (step >= 0) & (step < len(edges) - 1)
    return np.bincount(step[inside], weights=np.asarray(amounts[:])[inside], minlength=len(edges) - 1)
