"""The peak of the memory under changed conditions."""

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import device_named
from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.knowledge.memory_texts import device_memory, sentence
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.batch_size import batch_size_of, passes_of
from tb_bottleneck.memory.forecast.forecasts import Forecast, Forecaster
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.units import bytes_text

_HALF_PRECISIONS = ("bf16", "fp16")


def add_peak_memory(
    prediction: pb.WhatIf, recording: Recording, *, device: str | None, batch: int | None, precision: str | None
) -> None:
    """Adds the predicted peak and a note about it, if memory was recorded and one of these changes is asked for.

    Several changes at once are not predicted, except for a device with a batch or a precision.
    """
    memory = trace_memory(recording.trace)
    changes_type = precision in _HALF_PRECISIONS
    if isinstance(memory, Missing) or (batch is not None and changes_type):
        return
    forecast = _forecast(memory, recording, batch, changes_type, device is not None)
    if forecast is None:
        return
    capacity = memory.account.capacity if device is None else _memory_of(device)
    message = pb.PeakMemory(
        peak_bytes=forecast.peak, low_bytes=forecast.low, high_bytes=forecast.high, now_bytes=memory.account.peak
    )
    if forecast.change != "device":
        message.assumes = sentence("assumes", forecast.change)
    fits = forecast.fits(capacity)
    if capacity is not None and fits is not None:
        message.capacity_bytes, message.fits = capacity, fits
    largest = None if changes_type else _largest_batch(memory, recording, capacity)
    if largest is not None:
        message.largest_batch = largest
    prediction.memory.CopyFrom(message)
    prediction.notes.append(_note(message))


def _forecast(
    memory: TraceMemory, recording: Recording, batch: int | None, changes_type: bool, other_device: bool
) -> Forecast | None:
    if batch is not None:
        now = batch_size_of(recording)
        if isinstance(now, Missing):
            return None
        # Gradients accumulate over the passes of a step, which therefore share the memory.
        passes = passes_of(recording)
        return Forecaster(memory, max(now.samples // passes, 1)).batch(max(round(batch / passes), 1))
    forecaster = Forecaster(memory, None)
    if changes_type:
        return forecaster.precision()
    return forecaster.unchanged() if other_device else None


def _largest_batch(memory: TraceMemory, recording: Recording, capacity: int | None) -> int | None:
    """Returns the samples per step that fit into this memory; None if not even the recorded batch is known to."""
    now = batch_size_of(recording)
    if isinstance(now, Missing) or capacity is None:
        return None
    passes = passes_of(recording)
    samples = max(now.samples // passes, 1)
    forecaster = Forecaster(memory, samples)
    return now.samples * forecaster.largest_factor(capacity) if forecaster.unchanged().fits(capacity) else None


def _memory_of(device: str) -> int | None:
    """Returns the bytes of memory of a device by any of its names. Raises NotFound if the device is not listed."""
    model = device_named(device)
    gpu = gpu_named(model.name)
    names = (device, model.name, *(() if gpu is None else (gpu.name,)))
    return next((size for name in names if (size := device_memory(name)) is not None), None)


def _note(memory: pb.PeakMemory) -> str:
    name = "unknown_capacity"
    if memory.HasField("fits"):
        name = "fits" if memory.fits else "may_not_fit"
    values = {
        "peak": bytes_text(memory.peak_bytes),
        "low": bytes_text(memory.low_bytes),
        "high": bytes_text(memory.high_bytes),
        "now": bytes_text(memory.now_bytes),
        "capacity": bytes_text(memory.capacity_bytes),
    }
    note = sentence("what_if", name, values)
    if not memory.HasField("largest_batch"):
        return note
    return f"{note} {sentence('what_if', 'largest_batch', {'samples': f'{memory.largest_batch:,.0f}'})}"
