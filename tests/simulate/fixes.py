"""The fix of each planted problem, as an edit of the program. Every other duration stays as it was drawn.

The slow and the fixed run therefore differ in the fix only. An edit does what the advice text recommends, and is
independent of how the analyser predicts it. A variation (simulate/variation.py) applies it at some places only.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from simulate.pieces import PINNED_BYTES_PER_NS
from simulate.program import (
    INTERRUPT,
    PYTHON,
    Allocate,
    Close,
    Copy,
    Fetch,
    Instruction,
    Launch,
    Open,
    Program,
    Spend,
    Wait,
    Workers,
)
from simulate.variation import IDEAL, Variation

# Maps a program, the number (or multiple) of workers that the report recommends, and the variation to the fixed
# program.
Fix = Callable[[Program, int, Variation], Program]
Rewrite = Callable[[list[Instruction]], Iterable[Instruction]]

# Time of the training process to take a ready batch.
TAKING_NS = 60_000
# A fixed interruption occurs this many times less often, so 1/SELDOM of its time remains per step.
SELDOM = 100
GRAPH_LAUNCH_NS, GRAPH_LATENCY_NS, GRAPH_GAP_NS = 40_000, 10_000, 800
# A Spend that belongs to an operator takes one or two microseconds; a longer one is the creation of the batch.
LONGEST_OVERHEAD = 10_000


def with_workers(program: Program, workers: int, how: Variation = IDEAL) -> Program:
    """Moves batch creation to worker processes, each as fast as the training process was."""
    made: list[int] = []

    def taken(inside: list[Instruction]) -> Iterable[Instruction]:
        made.extend(step.ns for step in inside if isinstance(step, Spend) and step.ns > LONGEST_OVERHEAD)
        opened = inside[0]
        assert isinstance(opened, Open)
        name = opened.name.replace("_SingleProcess", "_MultiProcessing")
        return [replace(opened, name=name), Fetch(TAKING_NS), Close()]

    edited = _edited(program, "enumerate(DataLoader)", taken)
    return _steady(replace(edited, workers=Workers(workers, tuple(made))))


def with_more_workers(program: Program, factor: int, how: Variation = IDEAL) -> Program:
    """Multiplies the number of workers."""
    assert program.workers is not None
    return _steady(replace(program, workers=replace(program.workers, number=factor * program.workers.number)))


def with_pinned_copies(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Copies batches from pinned memory, without waiting."""

    def pinned(inside: list[Instruction]) -> Iterable[Instruction]:
        for step in inside:
            if isinstance(step, Copy) and step.direction == "HtoD":
                yield replace(step, pinned=True, in_call="", ns=max(int(step.bytes / PINNED_BYTES_PER_NS), 1_500))
            elif not (
                isinstance(step, Wait) and any(isinstance(one, Copy) and one.direction == "HtoD" for one in inside)
            ):
                yield step

    return _edited(program, "aten::to", pinned, how)


def with_prefetched_copies(program: Program, number: int, how: Variation = IDEAL) -> Program:
    """Copies batches on a separate stream during the previous step, so that kernels never wait for a copy."""
    freed = with_pinned_copies(program, number, how)

    def elsewhere(step: Instruction) -> Instruction:
        moved = isinstance(step, Copy) and step.direction == "HtoD" and step.pinned
        return replace(step, ns=0) if moved else step

    return replace(freed, instructions=tuple(elsewhere(step) for step in freed.instructions))


def without_scalar_reads(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Leaves values on the device."""
    return _edited(program, "aten::item", lambda _: (), how)


def without_metric_reads(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Leaves metrics on the device: removes the operators that copy to the host."""

    def without_reads(inside: list[Instruction]) -> Iterable[Instruction]:
        return () if any(isinstance(step, Copy) and step.direction == "DtoH" for step in inside) else inside

    return _edited(_edited(program, "aten::to", without_reads, how), "aten::item", lambda _: (), how)


def without_masks(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Applies masks on the device: the same operators, without waits."""

    def freed(inside: list[Instruction]) -> Iterable[Instruction]:
        for step in inside:
            if isinstance(step, Copy):
                yield replace(step, in_call="")
            elif not isinstance(step, Wait):
                yield step

    return _edited(program, "aten::nonzero", freed, how)


def without_synchronizes(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Removes every device synchronisation except the profiler's at the end."""
    last = program.instructions[-1]
    inside = _without(replace(program, instructions=program.instructions[:-1]), _synchronizes, how)
    return replace(inside, instructions=(*inside.instructions, last))


def _synchronizes(step: Instruction) -> bool:
    return isinstance(step, Wait) and step.call == "DeviceSynchronize"


def with_a_graph(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Launches forward and backward pass as one graph; loader, copies and optimizer are unchanged."""
    done: list[Instruction] = []
    captured: list[Instruction] | None = None
    for step in program.instructions:
        name = step.name if isinstance(step, Open) else ""
        if captured is None and name.startswith("nn.Module"):
            captured = []
        if captured is not None and name.startswith("Optimizer.step"):
            done, captured = [*done, *(_graph(captured) if how.takes_effect() else captured)], None
        (done if captured is None else captured).append(step)
    return replace(program, instructions=tuple(done))


def _graph(captured: list[Instruction]) -> list[Instruction]:
    launches = [step for step in captured if isinstance(step, Launch)]
    kernels = tuple(replace(kernel, gap=GRAPH_GAP_NS) for launch in launches for kernel in launch.kernels)
    return [Launch(kernels, GRAPH_LAUNCH_NS, GRAPH_LATENCY_NS, call="GraphLaunch")] if kernels else []


def with_seldom_interruptions(*frames: str) -> Fix:
    """Makes the work inside these frames SELDOM times less frequent: 1/SELDOM of its time remains, without waits."""

    def shrunk(inside: list[Instruction]) -> Iterable[Instruction]:
        for step in inside:
            if isinstance(step, Spend):
                yield replace(step, ns=step.ns // SELDOM)
            elif isinstance(step, Copy):
                yield replace(step, ns=step.ns // SELDOM, cost=step.cost // SELDOM, in_call="")
            elif not isinstance(step, Wait):
                yield step

    return lambda program, _, how=IDEAL: _edited(program, frames, shrunk, how)


def without_python(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Moves Python code outside torch out of the loop, except code that a recording shows as an interruption."""
    done: list[Instruction] = []
    phases: list[str] = []
    for step in program.instructions:
        if isinstance(step, Open):
            phases.append(step.phase)
        elif isinstance(step, Close):
            phases.pop()
        outside = isinstance(step, Spend) and step.activity == PYTHON and INTERRUPT not in phases
        if not (outside and how.takes_effect()):
            done.append(step)
    return replace(program, instructions=tuple(done))


def without_allocations(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Removes all driver calls that free or allocate memory."""
    return _without(program, lambda step: isinstance(step, Allocate), how)


def with_half_the_bytes(program: Program, _: int, how: Variation = IDEAL) -> Program:
    """Halves the duration of collectives."""

    def halved(step: Instruction) -> Instruction:
        if not isinstance(step, Launch) or step.kernels[0].work != "collective" or not how.takes_effect():
            return step
        return replace(step, kernels=tuple(replace(kernel, ns=kernel.ns // 2) for kernel in step.kernels))

    return replace(program, instructions=tuple(halved(step) for step in program.instructions))


FIXES: Mapping[str, Fix] = {
    "loader in the main process": with_workers,
    "too few workers": with_more_workers,
    "pageable copies": with_pinned_copies,
    "blocking copies": with_prefetched_copies,
    "scalar reads in the forward pass": without_scalar_reads,
    "a scalar read that drains the queue": without_scalar_reads,
    "metrics read one by one": without_metric_reads,
    "a synchronize in every step": without_synchronizes,
    "masks in the forward pass": without_masks,
    "small kernels": with_a_graph,
    "checkpoints": with_seldom_interruptions("torch/serialization.py"),
    "checkpoints without frames": without_python,
    "garbage collection": with_seldom_interruptions("Python GC"),
    "Python between the steps": without_python,
    "emptied cache": without_allocations,
    "full memory": without_allocations,
    "exposed collectives": with_half_the_bytes,
    "small messages": with_half_the_bytes,
    "a slow network": with_half_the_bytes,
}


FIX_OF: Mapping[str, Fix] = {
    "loader_in_main_process": with_workers,
    "too_few_workers": with_more_workers,
    "pageable_copies": with_pinned_copies,
    "blocking_copies": with_prefetched_copies,
    "blocking_uploads": with_pinned_copies,
    "scalar_reads": without_metric_reads,
    "metric_reads": without_metric_reads,
    "explicit_waits": without_synchronizes,
    "data_dependent_shapes": without_masks,
    "small_kernels": with_a_graph,
    "checkpointing": with_seldom_interruptions("torch/serialization.py"),
    "garbage_collection": with_seldom_interruptions("Python GC"),
    "host_python": without_python,
    "empty_cache": without_allocations,
    "growing_memory": without_allocations,
    "memory_pressure": without_allocations,
    "exposed_collectives": with_half_the_bytes,
    "small_messages": with_half_the_bytes,
    "slow_interconnect": with_half_the_bytes,
}


# --- Editing programs ---


def _edited(program: Program, prefix: str | tuple[str, ...], rewrite: Rewrite, how: Variation = IDEAL) -> Program:
    """Applies `rewrite` to each outermost row (from its Open to its Close) with a name that starts with `prefix`.

    Rows at which the fix takes no effect stay.
    """
    done: list[Instruction] = []
    inside: list[Instruction] = []
    depth = 0
    for step in program.instructions:
        if depth or (isinstance(step, Open) and step.name.startswith(prefix)):
            inside.append(step)
            depth += isinstance(step, Open) - isinstance(step, Close)
            if not depth:
                done += rewrite(inside) if how.takes_effect() else inside
                inside = []
        else:
            done.append(step)
    return replace(program, instructions=tuple(done))


def _without(program: Program, test: Callable[[Instruction], bool], how: Variation) -> Program:
    staying = (step for step in program.instructions if not (test(step) and how.takes_effect()))
    return replace(program, instructions=tuple(staying))


def _steady(program: Program) -> Program:
    """Returns the program with the prefetched batches used up, as after the first steps of a real training."""
    assert program.workers is not None
    stock = program.workers.number * program.workers.prefetch
    return replace(program, instructions=(*(Fetch(0) for _ in range(stock)), *program.instructions))
