"""Facts about torch.compile: what it compiled, which guard failed before, where graphs end, and what stays uncompiled.

torch keeps both in memory for its own reports (torch/_dynamo/utils.py), so nothing is hooked or switched on.
"""

from tb_bottleneck.monitor.torch_internals import compilations, graph_breaks
from tb_bottleneck.monitor.workers.stack_sampler import below_import_path
from tb_bottleneck.schema.compile_log import CompileEntries


class CompileLog:
    """Accumulates torch's records: it keeps only the last 64 compilations."""

    def __init__(self) -> None:
        self._entries = CompileEntries(below_import_path)
        self._last: object = None

    def has_changed(self) -> bool:
        """Returns True if something was compiled since the last call of `facts`. Takes microseconds."""
        records = compilations()
        return bool(records) and records[-1] is not self._last

    def facts(self) -> dict[str, object]:
        """Returns `compile_log` (schema/compile_log.py); nothing if nothing was compiled."""
        records = compilations()
        self._last = records[-1] if records else None
        for record in records:
            self._entries.add(record)
        self._entries.forget_breaks()  # torch has all of them
        for reason in graph_breaks():
            stack = getattr(reason, "user_stack", None) or ()
            place = (str(stack[-1].filename), int(stack[-1].lineno or 0), str(stack[-1].name)) if stack else ("", 0, "")
            self._entries.add_break(*place, getattr(reason, "reason", None))
        fact = self._entries.fact()
        return {"compile_log": fact} if fact else {}
