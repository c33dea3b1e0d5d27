"""What is around a run: device, libraries, loader, precision; told by the trace's head, the run, and what it did."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.texts.sanitize import sanitize
from tb_bottleneck.comparison.workload.batch_size import batch_size_of
from tb_bottleneck.comparison.workload.operator_time import changed_kernels
from tb_bottleneck.knowledge.comparison_texts import fact_titles, ignored_facts
from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.trace.kernel_efficiency import types_multiplied
from tb_bottleneck.measures.trace.loader import SINGLE_PROCESS_ITERATOR, WORKER_ITERATOR, loader_iterator
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role

MAX_FACTS = 64  # of a context
_LOADERS = {SINGLE_PROCESS_ITERATOR: "in the training process", WORKER_ITERATOR: "by workers"}
PRECISION = "precision"
MAX_KERNEL_NAME = 90  # characters of a kernel's name
MIN_TYPE_PERCENT = 5.0  # percent of the products' time
_UNSAID = "not recorded"


def environment_differences(a: ComparedRun, b: ComparedRun) -> list[pb.ContextRow]:
    """Facts that differ, those with a title first. What only one side recorded is left out, unless it is the device."""
    first, second = environment_of(a), environment_of(b)
    titles = fact_titles()
    known = [key for key in titles if key in first or key in second]
    others = sorted((first.keys() & second.keys()) - titles.keys())
    rows = [(key, titles.get(key, key.replace("_", " "))) for key in [*known, *others]]
    told = [(key, title) for key, title in rows if key == "device" or (key in first and key in second)]
    found = [
        pb.ContextRow(key=key, title=title, a=first.get(key, _UNSAID), b=second.get(key, _UNSAID))
        for key, title in told
        if first.get(key) != second.get(key) and not (key == PRECISION and _same_types(first[key], second[key]))
    ]
    return found + _kernels(a.recording, b.recording)


def _same_types(a: str, b: str) -> bool:
    """Whether two lists of types with their shares name the same ones, but for crumbs."""
    return _types(a) == _types(b)


def _types(shares: str) -> set[str]:
    """The types of "bf16 (tensor): 90 %, fp32 (vector): 9.9 %" that take part worth the name."""
    pairs = (one.rpartition(": ") for one in shares.split(", "))
    return {kind for kind, _, share in pairs if float(share.partition(" ")[0]) >= MIN_TYPE_PERCENT}


def environment_of(run: ComparedRun) -> dict[str, str]:
    """Everything that is known around a run, as text by key. What is not known is left out."""
    return _said(run.recording) | _head(run) | _seen(run)


def _said(recording: Recording) -> dict[str, str]:
    """The run's own words: plain values and lists of its context, and of tables in it one level deep."""
    found: dict[str, str] = {}
    for key, value in list(recording.trace.header.context.items())[:MAX_FACTS]:
        if key in ignored_facts():
            continue
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for name, one in list(inner)[:MAX_FACTS]:
            text = _text(one)
            if text is not None:
                found[sanitize(f"{key}_{name}" if name else key)] = text
    return found


def _text(value: object) -> str | None:
    """A plain value or a list of such as text; None for anything else."""
    if isinstance(value, list):
        shown = (sanitize(one) for one in value[:MAX_FACTS] if isinstance(one, str | int | float))
        return sanitize(", ".join(shown)) or None
    return sanitize(value) if isinstance(value, str | int | float) else None


def _head(run: ComparedRun) -> dict[str, str]:
    header, report = run.recording.trace.header, run.report
    facts = header.device(run.recording.trace.device_index)
    idle = not run.recording.on_device and report.device.kind != "cpu"  # a device is there, and did nothing
    found = {
        "device": ("" if idle else report.device.name) or ("" if run.recording.on_device else "CPU"),
        "devices": str(report.device.count),
        "world_size": str(report.world_size) if report.HasField("world_size") else "",
        "backend": header.backend,
    }
    if run.recording.on_device:
        found["multiprocessors"] = str(run.recording.trace.multiprocessors or "")
        if facts is not None and facts.capability is not None:
            found["capability"] = ".".join(map(str, facts.capability))
    found |= {key: version_text(key, value) for key, value in header.versions.items()}
    return {key: sanitize(value) for key, value in found.items() if value}


def version_text(key: str, value: int) -> str:
    """A version as people write it: CUDA's 12040 is 12.4; HIP's and the others' numbers stay as they are."""
    return f"{value // 1000}.{value % 1000 // 10}" if key.startswith("cuda_") else str(value)


def _seen(run: ComparedRun) -> dict[str, str]:
    """What the run did, as far as the recording shows it."""
    recording, measures = run.recording, run.measures
    batch, types, loader = batch_size_of(recording), measures(types_multiplied), measures(loader_iterator)
    found = {}
    if not isinstance(batch, Missing):
        found["samples"] = str(batch.samples)
    if not isinstance(loader, Missing):
        found["loader"] = _LOADERS.get(loader.text, loader.text)
    if not recording.on_device:
        return found
    if not isinstance(types, Missing):
        found[PRECISION] = types.text
    trace, ops = recording.trace, recording.trace.device_ops
    inside = recording.in_window(ops.start)
    steps = len(recording.steps)
    kernels = np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)) & inside
    found["kernels"] = str(round(int(kernels.sum()) / steps))
    uploads = {_memory(trace.names[name]) for name in np.unique(ops.name[inside & (ops.work == Work.UPLOAD)]).tolist()}
    if uploads - {""}:
        found["uploads"] = " and ".join(sorted(uploads - {""}))
    launches = trace.calls.of(Role.LAUNCH)
    graphs = name_matches(trace.names, launches.name, lambda name: "GraphLaunch" in name)
    found["graphs"] = str(round(int(np.sum(graphs & recording.in_window(launches.start))) / steps))
    compiled = any(name.startswith(("Torch-Compiled Region", "triton_")) for name in trace.names)
    found["compiled"] = "yes" if compiled else "no"
    return found


def _memory(name: str) -> str:
    return next((f"{kind.lower()} memory" for kind in ("Pinned", "Pageable") if f"{kind} -> Device" in name), "")


def _kernels(a: Recording, b: Recording) -> list[pb.ContextRow]:
    """Operators for which the two sides run other kernels."""
    if not a.on_device or not b.on_device:
        return []
    return [
        pb.ContextRow(
            key=f"kernel of {name}",
            title=f"kernel of {name}",
            a=sanitize(one, MAX_KERNEL_NAME),
            b=sanitize(other, MAX_KERNEL_NAME),
        )
        for name, (one, other) in changed_kernels(a, b).items()
    ]
