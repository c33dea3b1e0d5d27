"""The state that optimizers keep per parameter."""

import re

from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.trace import Trace

_STEP = re.compile(r"^Optimizer\.step#(\w+)\.step")


def state_per_parameter(trace: Trace) -> float | None:
    """Returns bytes of state per byte of parameters of the recorded optimizer, or None if its class is unknown.

    Some classes keep more with certain options; an operator of the step then shows it.
    """
    name = optimizer_name(trace)
    entry = next((entry for entry in load("optimizers.toml")["optimizer"] if entry["name"] == name), None)
    if entry is None:
        return None
    extra = 0.0
    if "more_if_operator" in entry and _runs_in_step(trace, re.compile(entry["more_if_operator"])):
        extra = float(entry["more"])
    return float(entry["state"]) + extra


def state_of(name: str) -> float | None:
    """Returns bytes of state per byte of parameters of an optimizer class with its usual options."""
    for entry in load("optimizers.toml")["optimizer"]:
        if entry["name"].lower() == name.lower():
            return float(entry.get("usual", entry["state"]))
    return None


def optimizer_name(trace: Trace) -> str | None:
    """Returns the class of the recorded optimizer, or None if there is none or there are several."""
    found = {match[1] for name in trace.names if (match := _STEP.match(name))}
    return found.pop() if len(found) == 1 else None


def _runs_in_step(trace: Trace, pattern: re.Pattern[str]) -> bool:
    events = trace.events
    steps = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    steps = steps[name_matches(trace.names, events.name[steps], lambda name: bool(_STEP.match(name)))]
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[name_matches(trace.names, events.name[rows], lambda name: bool(pattern.search(name)))]
    return any(
        bool(((events.start[rows] >= events.start[step]) & (events.end[rows] <= events.end[step])).any())
        for step in steps[:8].tolist()
    )
