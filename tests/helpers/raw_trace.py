"""Reads a trace without the package: what a person could count in the JSON, event by event."""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import Any

_OPERATORS = ("cpu_op", "operator")
_HOST = (*_OPERATORS, "user_annotation", "python_function", "python")
_CALLS = ("cuda_runtime", "cuda_driver", "runtime")
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
_OVERHANG = 10  # ns that a child may end after its parent
_BYTES = {
    **dict.fromkeys(("unsigned char", "signed char", "char", "byte", "bool"), 1),
    **dict.fromkeys(("half", "c10::half", "c10::bfloat16", "bfloat16"), 2),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("long int", "long", "double"), 8),
}
_PACKAGES = {
    "torch",
    "transformers",
    "accelerate",
    "diffusers",
    "vllm",
    "numpy",
    "tqdm",
    "triton",
    "ipykernel",
    "IPython",
}


@dataclass(frozen=True)
class Work:
    """An operation of a device: its name and time in ns, its arguments, and the host rows around its launch."""

    name: str
    category: str
    begin: int
    end: int
    args: dict[str, Any]
    around: tuple[tuple[str, str], ...]  # category and name of the host rows, outermost first
    inputs: dict[str, Any]  # the arguments of the innermost row around the launch that has shapes


class RawTrace:
    """The complete events of a file."""

    def __init__(self, path: Path) -> None:
        document = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
        events = document["traceEvents"] if isinstance(document, dict) else document
        self._events = [event for event in events if event.get("ph") == "X" and event.get("dur") is not None]

    def work(self, begin: int, end: int) -> list[Work]:
        """Returns the operations that run in [begin, end), in ns."""
        around, found = dict(self._launches()), []
        for event in self._of(_DEVICE):
            start, stop = _times(event)
            if stop > begin and start < end:
                args = event.get("args") or {}
                rows, inputs = around.get(args.get("correlation"), ((), {}))
                found.append(Work(str(event["name"]), event["cat"].lower(), start, stop, args, rows, inputs))
        return found

    def _of(self, categories: tuple[str, ...]) -> list[dict[str, Any]]:
        return [event for event in self._events if (event.get("cat") or "").lower() in categories]

    def _launches(self) -> Iterator[tuple[Any, tuple[tuple[tuple[str, str], ...], dict[str, Any]]]]:
        """Yields each correlation id with the host rows that enclose its call on its thread."""
        by_thread = defaultdict(list)
        for event in self._of((*_HOST, *_CALLS)):
            by_thread[str(event["pid"]), str(event["tid"])].append(event)
        for rows in by_thread.values():
            stack: list[tuple[int, dict[str, Any]]] = []
            for event in sorted(rows, key=lambda each: (_times(each)[0], -_times(each)[1])):
                start, end = _times(event)
                while stack and stack[-1][0] <= start + _OVERHANG and stack[-1][0] < end:
                    stack.pop()
                category = event["cat"].lower()
                correlation = (event.get("args") or {}).get("correlation")
                if category in _CALLS and correlation:
                    shaped = [row.get("args") or {} for _, row in stack if "Input Dims" in (row.get("args") or {})]
                    names = tuple((row["cat"].lower(), str(row["name"])) for _, row in stack)
                    yield correlation, (names, shaped[-1] if shaped else {})
                stack.append((end, event))


def by_operator(work: Work) -> str | None:
    """Returns the operator that launches the work itself."""
    names = [name for category, name in work.around if category in _OPERATORS]
    return names[-1] if names else None


def by_module(work: Work) -> str | None:
    """Returns the innermost module."""
    names = [name for _, name in work.around if name.startswith("nn.Module: ")]
    return names[-1].removeprefix("nn.Module: ") if names else None


def by_line(work: Work) -> str | None:
    """Returns the innermost function outside of packages and of Python itself; without its line."""
    for category, name in reversed(work.around):
        first = name.split(".py(")[0].split("/")[0]
        if not category.startswith("python") or ".py(" not in name or name.startswith("<"):
            continue
        if "-packages/" in name or "/lib/python3" in name or name.endswith(("<listcomp>", "<genexpr>", "<dictcomp>")):
            continue
        if first not in sys.stdlib_module_names and first not in _PACKAGES:
            return name
    return None


def by_kernel(work: Work) -> str | None:
    """Returns the kernel."""
    return work.name if work.category == "kernel" else None


def by_message(work: Work) -> str | None:
    """Returns the bytes of a collective's message, from its arguments or from the shapes of its annotation."""
    if "nccl" not in work.name.lower():
        return None
    if "In msg nelems" in work.args:
        elements = max(work.args["In msg nelems"], work.args["Out msg nelems"])
        return str(elements * _BYTES[work.args["dtype"].lower()])
    dims, types = work.inputs.get("Input Dims") or [[]], work.inputs.get("Input type") or ["float"]
    return str(prod(dims[0]) * _BYTES[types[0].lower()]) if dims[0] else None


def longest(works: list[Work], key: Any) -> tuple[str, int]:
    """Returns the key with the most device time, and this time in ns."""
    time: Counter[str] = Counter()
    for work in works:
        if (name := key(work)) is not None:
            time[name] += work.end - work.begin
    return time.most_common(1)[0] if time else ("", 0)


def _times(event: dict[str, Any]) -> tuple[int, int]:
    start = round(Decimal(event["ts"]) * 1000)
    return start, start + round(Decimal(event["dur"]) * 1000)
