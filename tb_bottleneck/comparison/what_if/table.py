"""Predictions of a run under common other conditions: other devices, batch sizes, precision and numbers of workers."""

from collections.abc import Iterator

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.calibration_store import calibrated_gpus
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.input.loader import SINGLE_PROCESS_ITERATOR, loader_iterator
from tb_bottleneck.comparison.devices.device_rates import BY_MEASUREMENT, device_of
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, UnjudgedRun
from tb_bottleneck.comparison.texts.value_text import sanitize
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.measures.batch_size import SamplesPerStep, batch_size_of
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.process_facts import positive
from tb_bottleneck.version import SCHEMA

DEVICES = ("T4", "A100 SXM 80 GB", "H100 SXM", "H200 SXM", "B200", "MI300X")
"""Devices that are predicted, by their names in gpus.toml; others that the user calibrated come after them."""
BATCHES = (2, 4)
"""Batch sizes that are predicted, as multiples of the recorded batch size."""
PRECISION = "bf16"
MOST_WORKERS = 32
USUAL_CORES = 16
"""Number of cores that is assumed if the recording does not state it."""
NUMBER_OF_WORKERS = (1, 2, 4, 8, 16, 32)

_GROUPS = {"device": "Other devices", "batch": "Larger batches", "precision": PRECISION, "workers": "Loader workers"}
Row = tuple[str, str, WhatIfOptions]  # title, value, changes


def what_if_table(run: JudgedRun | UnjudgedRun) -> pb.WhatIfTable:
    """Returns the table of predictions for `run`, one row per condition. If a condition, or a group of conditions such
    as all devices, cannot be predicted, the notes say why."""
    table = pb.WhatIfTable(schema=SCHEMA, run=run.name)
    if not isinstance(run, ComparedRun):
        table.notes.extend(what_if(run, WhatIfOptions()).notes)
        return table
    table.step_ns = run.step_ns
    samples = batch_size_of(run.recording)
    if isinstance(samples, Missing):
        table.notes.append(f"{_GROUPS['batch']}: {samples.because}.")
    for group, rows in _rows(run.recording, samples).items():
        predictions = [(title, value, what_if(run, changes)) for title, value, changes in rows]
        known = [row for row in predictions if row[2].HasField("after")]
        for title, value, prediction in known:
            _add(table, prediction, title=title, group=group, value=value)
        for title, _, prediction in predictions if known else predictions[:1]:
            if not prediction.HasField("after"):
                table.notes.append(f"{title if known else _GROUPS[group]}: {prediction.notes[-1]}")
    return table


def _add(table: pb.WhatIfTable, prediction: pb.WhatIf, **row: str) -> None:
    """Adds a row with the result of `prediction` to `table`. `row` has the fields title, group and value of the row."""
    added = table.rows.add(after=prediction.after, per=prediction.per, regime=prediction.regime, **row)
    if prediction.HasField("memory"):
        added.memory.CopyFrom(prediction.memory)


def _rows(recording: Recording, samples: SamplesPerStep | Missing) -> dict[str, list[Row]]:
    """Returns for each group of conditions ("device", "batch", "precision", "workers") its rows, as (title, value,
    changes to predict). `samples` is the recorded batch size."""
    return {
        "device": list(_devices(recording)) if recording.on_device else [],
        "batch": [] if isinstance(samples, Missing) else list(_batches(int(samples.samples))),
        "precision": [(PRECISION, PRECISION, WhatIfOptions(precision=PRECISION))],
        "workers": list(_workers(recording)),
    }


def _devices(recording: Recording) -> Iterator[Row]:
    facts = recording.trace.header.device(recording.trace.device_index)
    own = gpu_named(facts.name) if facts is not None else None
    for name in DEVICES:
        if own is None or own.name != name:
            yield name, name, WhatIfOptions(device=name)
    current = device_of(recording.trace)
    is_measured = current is not None and current.basis == BY_MEASUREMENT
    for name in calibrated_gpus():
        gpu = gpu_named(name)
        listed = gpu is not None and (gpu.name in DEVICES or (own is not None and gpu.name == own.name))
        if not listed and (facts is None or facts.name != name):
            # If the device has a data sheet, its measured rates are used only together with measured rates of the other
            # device (device_pair_to).
            note = " (calibrated)" if gpu is None or is_measured else ""
            yield f"{sanitize(name)}{note}", name, WhatIfOptions(device=name)


def _batches(samples: int) -> Iterator[Row]:
    for factor in BATCHES:
        number = factor * samples
        yield f"{number:,} samples per step", str(number), WhatIfOptions(batch=number)


def _workers(recording: Recording) -> Iterator[Row]:
    cores = int(min(positive(recording.trace.header.context.get("cores")) or USUAL_CORES, MOST_WORKERS))
    iterator = loader_iterator(recording)
    if not isinstance(iterator, Missing) and iterator.text != SINGLE_PROCESS_ITERATOR:
        yield "no loader workers", "0", WhatIfOptions(workers=0)
    for number in sorted({cores, *(each for each in NUMBER_OF_WORKERS if each < cores)}):
        yield f"{number} loader worker{'s' if number > 1 else ''}", str(number), WhatIfOptions(workers=number)
