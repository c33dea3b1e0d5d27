"""The cost of recording by version of Python, from knowledge/profiler_costs.toml."""

from functools import cache

from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.record import Record


class PythonCosts(Record, frozen=True):
    """The cost of recorded stacks in one version of Python, such as 3.11.

    `slowdown` is the least, the usual and the most time of bytecode / without a profiler; costs of calls are in ns.
    `bootstrap_lines` are the first and the last line of the frame that shows the version.
    """

    version: str
    slowdown: tuple[float, float, float]
    python_call_ns: float
    c_call_ns: float
    bootstrap_lines: tuple[int, int]


@cache
def python_costs() -> tuple[PythonCosts, ...]:
    """Returns the costs of all known versions, the oldest first."""
    return tuple(
        PythonCosts(
            entry["version"],
            tuple(entry["slowdown"]),
            entry["python_call_ns"],
            entry["c_call_ns"],
            tuple(entry["bootstrap_lines"]),
        )
        for entry in load("profiler_costs.toml")["python"]
    )


@cache
def operator_cost_ns(stacks: bool) -> float:
    """Returns the time in ns that recording an operator takes, with or without stacks."""
    (entry,) = load("profiler_costs.toml")["operator"]
    return float(entry["with_stacks_ns" if stacks else "without_stacks_ns"])
