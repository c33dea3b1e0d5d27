"""Adds the log of torch.compile beside a trace to its facts, unless the monitor recorded them itself."""

from collections.abc import Sequence

from tb_bottleneck.base.text import NS_PER_US
from tb_bottleneck.sources.torch_trace.beside import log_beside
from tb_bottleneck.trace.columns.labels import Thread
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.header import Header

# Regions of compiled code, parts of compiling, and torch's wrapper of a compiled function.
_MARKS = ("Torch-Compiled Region", "(dynamo_timed)", "torch/_dynamo/eval_frame.py")


def add_compile_log(path: str, header: Header, events: Events, names: Sequence[str], threads: Sequence[Thread]) -> None:
    """Adds the fact `compile_log` to the context if the trace has compiled code and its log is beside it."""
    if header.context.get("compile_log") or not any(mark in name for name in names for mark in _MARKS):
        return
    processes = {int(thread.process) for thread in threads if thread.process.isdecimal() and len(thread.process) < 11}
    base, end = header.base_time_ns, int(events.end[:].max()) if len(events) else 0
    log = log_beside(path, processes, header.rank, (base + end) / NS_PER_US if base else None)
    if log:
        header.context["compile_log"] = log
