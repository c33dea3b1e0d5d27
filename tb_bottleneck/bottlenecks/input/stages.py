"""The stages of making a batch (reading, decoding, each transform, collating), from recorded or sampled stacks.

A stack has the frames inside of torch's function `fetch`, outermost first. A frame is a text of the form
`file.py(line): name`. In frames of the profiler, the name is `method`; in frames of the monitor's sampler
(monitor/workers/stack_sampler.py), the name is `Class.method`. The monitor records the classes for the profiler's
frames (monitor/facts/loader.py).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Any

from tb_bottleneck.base.measure import Missing, Record, replace
from tb_bottleneck.knowledge.catalogue import first_match, frame_patterns
from tb_bottleneck.trace.frames import frame_parts, is_user_frame
from tb_bottleneck.trace.kernel_names import cut
from tb_bottleneck.trace.kinds import MODULE

STAGES = ("read", "decode", "transform", "dataset", "collate", "pin", "copy", "other")
NOT_SAMPLED = Missing("the stages of the input pipeline were not recorded: the monitor samples them in the workers")

MAX_STAGES = 12
"""Largest number of stages that are listed. All other stages are summed in one more entry."""
MAX_STACKS, MAX_TEXT = 200, 10_000
"""At most this number of stacks, and of characters of a stack, are read, because the context of a file is untrusted."""

# Functions that only call others: torch's module call, wrappers of data sets, comprehensions.
_PASSES = re.compile(
    r"^torch/(?:nn/modules/(?:module|container)|utils/data/dataset|_ops|utils/_contextlib)\.py\("
    r"|[.:] ?<(?:listcomp|genexpr|lambda)>$|: (?:[\w.]*\.)?_(?:wrapped_call_impl|call_impl)$"
)
_OF_THE_DATASET = ("__getitem__", "__getitems__", "__next__", "__iter__")
_CALLS = ("__call__", "forward", "transform", "_transform", "apply")
# The loader's own frames around the work.
_LOADER = re.compile(r"torch/utils/data/(?:_utils/fetch|dataloader)\.py\(|torch/autograd/profiler\.py\(")
_ITERABLE, _NEXT = "_IterableDatasetFetcher", "<built-in function next>"
_TORCH = re.compile(r"^(?:torch|numpy)/")
_CONTAINERS = (f"{MODULE}Sequential_", f"{MODULE}Compose_")
_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Stage:
    """One stage of making batches. Texts are untrusted.

    `stage` is one of STAGES. `name` is the name of a transform, data set or collate function; it is empty for other
    stages. `ns` is the total time of the stage in all stacks. `place` is the frame of the program with most of this
    time; empty if there is none.
    """

    stage: str
    name: str
    ns: float
    place: str = ""


class LoaderWork(Record, frozen=True):
    """The stages of making batches, longest first, and what is known about the processes that make batches.

    `basis` is "frames" if the profiler recorded the stacks, "samples" if the monitor sampled them in the workers.
    `batches` is the number of batches that were made; 0 if the number is not known. Other numbers that are not known
    are None. `waiting_share` is the share (0 to 1) of the workers' time in which the workers have no batch to make.
    `core_ns` is the time for which the processes ran or waited for a core.
    `reads` is the number of read calls and `opens` that of calls of Python's open. `read_bytes` are the bytes of all
    read calls, `disk_bytes` those read from disks. The last four numbers are totals for `batches` batches. `beside` has
    the stages that run in parallel with these processes: copying batches to pinned memory on another thread, and copies
    to the device.
    """

    stages: tuple[Stage, ...]
    basis: str  # frames | samples
    batches: float = 0.0
    waiting_share: float | None = None
    read_bytes: float | None = None
    disk_bytes: float | None = None
    reads: float | None = None
    opens: float | None = None  # calls of Python's open
    core_ns: float | None = None  # time for which the processes ran or waited for a core
    beside: tuple[Stage, ...] = ()  # other threads pin batches, and copies to the device run

    @property
    def ns(self) -> float:
        """Total time (ns) of all stages in the processes that make batches."""
        return sum(stage.ns for stage in self.stages)

    @property
    def batch_ns(self) -> float | None:
        """Mean time (ns) that one process takes to make a batch; None if the number of batches is not known."""
        return self.ns / self.batches if self.batches > 0 else None

    def with_beside(self, beside: Iterable[Stage]) -> "LoaderWork":
        """Returns a copy with the field `beside` replaced."""
        return replace(self, beside=tuple(beside))


def stage_text(stage: Stage) -> str:
    """Returns the stage in words, for example "transform Resize" or "reading"."""
    words = {"dataset": "the data set's own code", "pin": "copying to pinned memory", "copy": "copying to the device"}
    words |= {"read": "reading", "decode": "decoding", "collate": "collating", "transform": "transform"}
    word = words.get(stage.stage, "other work")
    return f"{word} {stage.name}" if stage.name else word


def stages_of(stacks: Iterable[tuple[Sequence[str], float]]) -> tuple[Stage, ...]:
    """Returns the stages in `stacks`, longest first. `stacks` has pairs of (frames, outermost first; time in ns).

    The result has at most MAX_STAGES stages, and one entry for all others.
    """
    times: dict[tuple[str, str], float] = defaultdict(float)
    places: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for frames, ns in stacks:
        key = _stage_of(tuple(frames))
        times[key] += ns
        user = next((frame for frame in reversed(frames) if is_user_frame(frame)), "")
        places[key][user] += ns
    ordered = sorted(times.items(), key=lambda entry: -entry[1])
    stages = [Stage(*key, ns, max(places[key], key=places[key].__getitem__)) for key, ns in ordered[:MAX_STAGES]]
    rest = sum(ns for _, ns in ordered[MAX_STAGES:])
    return (*stages, *([Stage("other", "", rest)] if rest else []))


def sampled_work(facts: Mapping[str, Any]) -> LoaderWork | Missing:
    """Returns the work of making batches that the monitor sampled in the workers. `facts` are the facts of the run,
    which are untrusted. Missing if the monitor sampled nothing."""
    fact = facts.get("loader_stacks")
    if not isinstance(fact, dict) or not isinstance(fact.get("stacks"), list):
        return NOT_SAMPLED
    stacks = [
        (entry[0][:MAX_TEXT].split(";"), float(entry[1]))
        for entry in fact["stacks"][:MAX_STACKS]
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and _amount(entry[1]) is not None
    ]
    stages, other = stages_of(stacks), _amount(fact.get("other_ns")) or 0.0
    if not stages:
        return NOT_SAMPLED
    total, waiting = sum(stage.ns for stage in stages) + other, _amount(fact.get("waiting_ns"))
    return LoaderWork(
        (*stages, *([Stage("other", "", other)] if other else [])),
        "samples",
        _amount(fact.get("batches")) or 0.0,
        None if waiting is None else waiting / max(total + waiting, 1.0),
        _amount(fact.get("read_bytes")),
        _amount(fact.get("disk_bytes")),
        _amount(fact.get("reads")),
        _amount(fact.get("opens")),
        _amount(fact.get("core_ns")),
    )


def with_classes(facts: Mapping[str, Any]) -> Callable[[str], str]:
    """Returns a function that takes a frame and returns it with the class before the name of the method, if `facts`
    contains the class of this frame; otherwise unchanged."""
    known = facts.get("loader_classes")
    if not isinstance(known, dict) or len(known) > MAX_STACKS:
        return str

    def named(frame: str) -> str:
        function = known.get(frame)
        place, colon, name = frame.rpartition(": ")
        same = isinstance(function, str) and len(function) < MAX_TEXT and function.endswith(f".{name}")
        return f"{place}{colon}{function}" if same else frame

    return named


@lru_cache(maxsize=10_000)
def _stage_of(frames: tuple[str, ...]) -> tuple[str, str]:
    """Returns (stage, name) of a stack, as in Stage. If a frame reads or decodes, the innermost such frame determines
    the stage."""
    inside = [frame for frame in frames if not _LOADER.search(frame)]
    labels = [first_match(frame_patterns(), _without_class(frame)) for frame in inside]
    for label in reversed(labels):
        if label in ("read", "decode"):
            return label, ""
    if "pin" in labels:
        return "pin", ""
    if "collate" in labels[:2]:
        return "collate", ""
    iterable = any(_ITERABLE in frame for frame in frames) or (bool(inside) and inside[0].startswith(_NEXT))
    inside = [frame for frame in inside if not frame.startswith("<") and not _PASSES.search(frame)]
    first = inside[0] if inside else ""
    if first and not iterable and _function(first) not in _OF_THE_DATASET:
        return "collate", "" if _TORCH.search(first) else _name(first)  # `fetch` calls the data set, then collates
    modules = [frame for frame in inside if frame.startswith(MODULE) and not frame.startswith(_CONTAINERS)]
    if modules:
        return "transform", _name(modules[0])
    work = [frame for frame in inside if _function(frame) not in _OF_THE_DATASET]
    if work and not _TORCH.search(work[0]):
        # A container of transforms calls the transform: the innermost of the calls that directly follow each other.
        calls = list(takewhile(lambda frame: _function(frame) in _CALLS and not _TORCH.search(frame), work))
        return "transform", _name(calls[-1] if calls else work[0])
    own = [frame for frame in inside if _function(frame) in _OF_THE_DATASET]
    return ("dataset", _name(own[-1])) if own else ("other", "")


def _name(frame: str) -> str:
    """Returns the name of a transform, data set or collate function for its frame: the class if the frame has it, else
    the function. File and line are added if the name of the function is a generic one such as `__call__`."""
    if frame.startswith(MODULE):
        return cut(_NUMBER.sub("", frame.removeprefix(MODULE)))
    file, line, name = frame_parts(frame)
    owner, _, function = name.rpartition(".")
    generic = function in _CALLS or function in _OF_THE_DATASET
    if owner and generic:
        return cut(owner)
    return cut(f"{file}({line}): {name}" if file and generic else name)


def _function(frame: str) -> str:
    """Returns the name of the function in a frame, without its class."""
    return frame.rpartition(": ")[2].rpartition(".")[2]


def _without_class(frame: str) -> str:
    """Returns the frame in the profiler's form, without the class before the name of the method."""
    place, colon, name = frame.rpartition(": ")
    return f"{place}: {name.rpartition('.')[2]}" if colon and place.endswith(")") else frame


def _amount(value: object) -> float | None:
    """Returns `value` as a float if it is a number from 0 to 1e18, otherwise None."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e18
    return float(value) if known else None  # type: ignore[arg-type]
