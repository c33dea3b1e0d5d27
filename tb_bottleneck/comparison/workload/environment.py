"""The environment of a run: device, libraries, loader and precision, as facts from trace header, context and events.

A fact is a key with a value as text. The context is the table of settings that the monitor or the user writes to a
trace.
"""

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import types_multiplied
from tb_bottleneck.bottlenecks.input.loader import SINGLE_PROCESS_ITERATOR, WORKER_ITERATOR, loader_iterator
from tb_bottleneck.comparison.runs.compared_run import ComparedRun
from tb_bottleneck.comparison.texts.value_text import sanitize
from tb_bottleneck.comparison.workload.operator_time import changed_kernels
from tb_bottleneck.knowledge.comparison_texts import fact_titles, ignored_facts
from tb_bottleneck.measures.batch_size import batch_size_of
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.runtime_calls import Role

MAX_FACTS = 64  # read from a context
_LOADERS = {SINGLE_PROCESS_ITERATOR: "in the training process", WORKER_ITERATOR: "by workers"}
PRECISION = "precision"
# Facts that only the events show. A context may use the same keys with another meaning. Entries of tables in the
# context have longer keys and do not collide.
MEASURED_FACTS = frozenset({PRECISION, "samples", "loader", "kernels", "uploads", "graphs", "compiled"})
MAX_KERNEL_NAME = 90  # characters
MIN_TYPE_PERCENT = 5.0  # of the products' time
_NOT_RECORDED = "not recorded"


def environment_differences(a: ComparedRun, b: ComparedRun) -> list[pb.ContextRow]:
    """Returns one row per fact that differs between `a` and `b`, then one row per costly operator that launches other
    kernels. Facts with a title of their own (fact_titles) come first.

    A fact that only one run recorded is left out, unless it is the device.
    """
    first, second = environment_of(a), environment_of(b)
    titles = fact_titles()
    titled = [key for key in titles if key in first or key in second]
    others = sorted((first.keys() & second.keys()) - titles.keys())
    candidates = [(key, titles.get(key, key.replace("_", " "))) for key in [*titled, *others]]
    compared = [(key, title) for key, title in candidates if key == "device" or (key in first and key in second)]
    differing = [
        pb.ContextRow(key=key, title=title, a=first.get(key, _NOT_RECORDED), b=second.get(key, _NOT_RECORDED))
        for key, title in compared
        if first.get(key) != second.get(key) and not (key == PRECISION and _same_types(first[key], second[key]))
    ]
    return differing + _kernels(a.recording, b.recording)


def _same_types(a: str, b: str) -> bool:
    """Returns True if two lists of types with shares (see _types) contain the same types. Shares below MIN_TYPE_PERCENT
    are ignored."""
    return _types(a) == _types(b)


def _types(shares: str) -> set[str]:
    """Returns the types with at least MIN_TYPE_PERCENT in a list such as "bf16 (tensor): 90 %, fp32 (vector): 10 %"."""
    pairs = (one.rpartition(": ") for one in shares.split(", "))
    return {kind for kind, _, share in pairs if float(share.partition(" ")[0]) >= MIN_TYPE_PERCENT}


def environment_of(run: ComparedRun) -> dict[str, str]:
    """Returns all known facts about the environment of `run`, from keys to values as text."""
    return _context_facts(run.recording) | _header_facts(run) | _observed_facts(run)


def _context_facts(recording: Recording) -> dict[str, str]:
    """Returns the facts in the context of the run: numbers, texts and lists, also those in tables inside the context,
    whose keys are "table_name". The context is untrusted, so texts are sanitised and at most MAX_FACTS are read."""
    facts: dict[str, str] = {}
    for key, value in list(recording.trace.header.context.items())[:MAX_FACTS]:
        if key in ignored_facts() or (key in MEASURED_FACTS and not isinstance(value, dict)):
            continue
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for name, item in list(inner)[:MAX_FACTS]:
            text = _text(item)
            if text is not None:
                facts[sanitize(f"{key}_{name}" if name else key)] = text
    return facts


def _text(value: object) -> str | None:
    """Returns a plain value or a list of plain values as text; None for anything else."""
    if isinstance(value, list):
        shown = (sanitize(item) for item in value[:MAX_FACTS] if isinstance(item, str | int | float))
        return sanitize(", ".join(shown)) or None
    return sanitize(value) if isinstance(value, str | int | float) else None


def _header_facts(run: ComparedRun) -> dict[str, str]:
    """Returns the facts from the trace header and the report."""
    header, report = run.recording.trace.header, run.report
    device = header.device(run.recording.trace.device_index)
    idle = not run.recording.on_device and report.device.kind != "cpu"  # there is a device, but it did nothing
    facts = {
        "device": ("" if idle else report.device.name) or ("" if run.recording.on_device else "CPU"),
        "devices": str(report.device.count),
        "world_size": str(report.world_size) if report.HasField("world_size") else "",
        "backend": header.backend,
    }
    if run.recording.on_device:
        facts["multiprocessors"] = str(run.recording.trace.multiprocessors or "")
        if device is not None and device.capability is not None:
            facts["capability"] = ".".join(map(str, device.capability))
    facts |= {key: version_text(key, value) for key, value in header.versions.items()}
    return {key: sanitize(value) for key, value in facts.items() if value}


def version_text(key: str, value: int) -> str:
    """Formats the version number `value` of the library `key`. CUDA's 12040 becomes "12.4"; version numbers of HIP and
    other libraries are not changed."""
    return f"{value // 1000}.{value % 1000 // 10}" if key.startswith("cuda_") else str(value)


def _observed_facts(run: ComparedRun) -> dict[str, str]:
    """Returns the facts that follow from the recorded events: batch size, loader, precision, kernels per step, memory
    of uploads, CUDA graphs per step, and whether code is compiled."""
    recording, measures = run.recording, run.measures
    batch, types, loader = batch_size_of(recording), measures(types_multiplied), measures(loader_iterator)
    facts = {}
    if not isinstance(batch, Missing):
        facts["samples"] = str(batch.samples)
    if not isinstance(loader, Missing):
        facts["loader"] = _LOADERS.get(loader.text, loader.text)
    if not recording.on_device:
        return facts
    if not isinstance(types, Missing):
        facts[PRECISION] = types.text
    trace, ops = recording.trace, recording.trace.device_ops
    inside = recording.in_window(ops.start)
    steps = len(recording.steps)
    kernels = np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)) & inside
    facts["kernels"] = str(round(int(kernels.sum()) / steps))
    uploads = {_memory(trace.names[name]) for name in np.unique(ops.name[inside & (ops.work == Work.UPLOAD)]).tolist()}
    if uploads - {""}:
        facts["uploads"] = " and ".join(sorted(uploads - {""}))
    launches = trace.calls.of(Role.LAUNCH)
    graphs = name_matches(trace.names, launches.name, lambda name: "GraphLaunch" in name)
    facts["graphs"] = str(round(int(np.sum(graphs & recording.in_window(launches.start))) / steps))
    compiled = any(name.startswith(("Torch-Compiled Region", "triton_")) for name in trace.names)
    facts["compiled"] = "yes" if compiled else "no"
    return facts


def _memory(name: str) -> str:
    """Returns the host memory from which the copy kernel `name` uploads, such as "pinned memory"; empty if unknown."""
    return next((f"{kind.lower()} memory" for kind in ("Pinned", "Pageable") if f"{kind} -> Device" in name), "")


def _kernels(a: Recording, b: Recording) -> list[pb.ContextRow]:
    """Returns one row per costly operator whose main kernels differ between the two runs."""
    if not a.on_device or not b.on_device:
        return []
    return [
        pb.ContextRow(
            key=f"kernel of {name}",
            title=f"kernel of {name}",
            a=sanitize(kernel_a, MAX_KERNEL_NAME),
            b=sanitize(kernel_b, MAX_KERNEL_NAME),
        )
        for name, (kernel_a, kernel_b) in changed_kernels(a, b).items()
    ]
