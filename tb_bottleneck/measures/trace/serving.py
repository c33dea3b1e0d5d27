"""The steps of an inference server by kind and shape, from the annotations of vLLM and SGLang.

The kinds are prefill (processes the tokens of prompts), decode (generates tokens), mixed, and other. The shape is the
number of requests and tokens.
"""

import re
from collections.abc import Iterable

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Floats, Ints, Rows, by_thread

PREFILL, DECODE, MIXED, OTHER = KINDS = ("prefill", "decode", "mixed", "other")
MAX_SHAPES = 12

# vLLM: vllm/v1/worker/gpu_worker.py, annotate_profile. The annotation has the number of requests, and in parentheses
# the number of tokens. The fork for ROCm also writes the number of all tokens after `execute_`, and sums in
# parentheses: the number after `sq` is the number of tokens of the step.
_VLLM = re.compile(
    r"^execute_(?:\d{1,9}_)?context_(\d{1,9})\((?:sq)?(\d{1,12})[^)]*\)_generation_(\d{1,9})\((?:sq)?(\d{1,12})[^)]*\)$"
)
# Older vLLM (vllm-project/vllm#22496): the number of new requests, and of requests that were scheduled before.
_OLDER_VLLM = re.compile(r"^execute_new_(\d{1,9})_cached_(\d{1,9})$")
# SGLang: sglang/srt/model_executor/model_runner.py, step spans (sgl-project/sglang#23419, #24911).
_SGLANG = re.compile(r"^step\[(\w{1,30})((?: \w{1,20}=\d{1,15}){0,20})\]$", re.IGNORECASE)


class Shape(Record, frozen=True):
    """The work of a step: its kind (one of KINDS), and the numbers of requests and tokens in prefill and decode. A
    number that is not known is None. `server` is "vLLM" or "SGLang"."""

    server: str
    kind: str
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    decode_requests: int | None = None
    decode_tokens: int | None = None


class ServingSteps(Record, frozen=True):
    """The steps of one kind or shape. Times are medians over these steps in ns.

    `count` is the number of steps. `share` is their share of the time of all steps, where each step includes the pause
    before it. `step_ns` is the time of a step on the host, and `device_ns` the time in which the device runs the
    operations of a step; None without device work. `pause_ns` is the pause before a step; None if the pause is not
    known.
    """

    shape: Shape
    count: int
    share: float
    step_ns: float
    device_ns: float | None
    pause_ns: float | None


class Serving(Record, frozen=True):
    """The steps of a server, grouped by kind (`kinds`) and grouped by shape (`shapes`). Both lists are sorted by time,
    longest first."""

    server: str
    kinds: tuple[ServingSteps, ...]
    shapes: tuple[ServingSteps, ...]


def shape_of(name: str) -> Shape | None:
    """Returns the work that the annotation `name` of a step describes, or None for another annotation."""
    if match := _VLLM.match(name):
        prefill, tokens, decode, generated = map(int, match.groups())
        return Shape("vLLM", _kind(prefill, decode), prefill, tokens, decode, generated)
    if match := _OLDER_VLLM.match(name):
        prefill, decode = map(int, match.groups())
        return Shape("vLLM", _kind(prefill, decode), prefill, None, decode, None)
    if match := _SGLANG.match(name):
        pairs = (word.partition("=") for word in match[2].split())
        return _of_sglang(match[1].upper(), {key: int(value) for key, _, value in pairs})
    return None


def _kind(prefill: int, decode: int) -> str:
    """Returns the kind of a step with `prefill` and `decode` requests."""
    return MIXED if prefill and decode else PREFILL if prefill else DECODE if decode else OTHER


def _of_sglang(mode: str, values: dict[str, int]) -> Shape:
    """Returns the work of a step of SGLang. `mode` is the first word of the step's annotation in upper case. `values`
    has the annotation's numbers by key."""
    requests = values.get("bs")
    if mode in ("EXTEND", "PREFILL"):
        return Shape("SGLang", PREFILL, requests, values.get("toks"), 0, 0)
    if mode == "DECODE":
        return Shape("SGLang", DECODE, 0, 0, requests, requests)  # one token for each request
    if mode == "MIXED":
        decode = values.get("g", values.get("dec"))
        prefill = values.get("c", requests - decode if requests is not None and decode is not None else None)
        return Shape(
            "SGLang", MIXED, prefill, values.get("c_sq", values.get("ext")), decode, values.get("g_sq", decode)
        )
    return Shape("SGLang", OTHER)


def serving_steps(recording: Recording) -> Serving | None:
    """Returns the steps in the whole recording, or None if no inference server has annotated steps."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    rows = rows[name_matches(trace.names, events.name[rows], lambda name: shape_of(name) is not None)]
    if not len(rows):
        return None
    # Take the thread with the most steps. A step inside another step is a part of the outer step.
    own = max(by_thread(rows, events.thread).values(), key=len)
    own = own[nest(events.start[own], events.end[own]).parent == np.arange(len(own))]
    shapes = [shape_of(trace.names[name]) for name in events.name[own].tolist()]
    times = _Times(recording, own)
    kinds = _grouped(times, [shape and Shape(shape.server, shape.kind) for shape in shapes])
    server = next(shape.server for shape in shapes if shape is not None)
    return Serving(server, tuple(kinds), tuple(_grouped(times, shapes))[:MAX_SHAPES])


class _Times:
    """The times of the steps in ns, one element per step in order of time: `host` is the duration on the host, `device`
    the time of the device's operations (`device` is None without device work), and `pause` the pause before the step
    (-1 for the first step)."""

    def __init__(self, recording: Recording, rows: Rows) -> None:
        events = recording.trace.events
        self.host: Ints = events.duration[rows]
        start, end = events.start[rows], events.end[rows]
        self.pause: Ints = np.append(-1, np.maximum(start[1:] - end[:-1], 0))  # -1: nothing is known before the first
        self.device = _device_times(recording, start, end)


def _device_times(recording: Recording, start: Ints, end: Ints) -> Floats | None:
    """Returns for each step the time (ns) in which the device runs the operations that the step launches. Returns None
    without device work. `start` and `end` have the times of the steps in ns."""
    ops = recording.trace.device_ops
    if not len(ops):
        return None
    issued = ops.issued(recording.trace.calls)
    step = np.searchsorted(start, issued, side="right") - 1
    inside = (step >= 0) & (issued < end[np.maximum(step, 0)])
    spent = np.zeros(len(start), np.float64)
    order = np.flatnonzero(inside)
    order = order[np.argsort(step[order], kind="stable")]
    edges = np.searchsorted(step[order], np.arange(len(start) + 1))
    for number in range(len(start)):
        own = order[edges[number] : edges[number + 1]]
        spent[number] = union(ops.start[own], ops.end[own]).total()
    return spent


def _grouped(times: _Times, shapes: Iterable[Shape | None]) -> list[ServingSteps]:
    """Returns one entry per distinct shape, the one with the longest time first. `shapes` has the shape of each step;
    steps with the shape None are left out."""
    places: dict[tuple[object, ...], list[int]] = {}
    by_key: dict[tuple[object, ...], Shape] = {}
    for number, shape in enumerate(shapes):
        if shape is not None:
            key = tuple(getattr(shape, name) for name in Shape.__struct_fields__)
            by_key[key] = shape
            places.setdefault(key, []).append(number)
    total = float((times.host + np.maximum(times.pause, 0)).sum())
    found = []
    for key, numbers in places.items():
        own = np.array(numbers)
        pauses = times.pause[own][times.pause[own] >= 0]
        found.append(
            ServingSteps(
                by_key[key],
                len(own),
                float((times.host[own].sum() + pauses.sum()) / max(total, 1.0)),
                float(np.median(times.host[own])),
                None if times.device is None else float(np.median(times.device[own])),
                float(np.median(pauses)) if len(pauses) else None,
            )
        )
    return sorted(found, key=lambda steps: -steps.share)
