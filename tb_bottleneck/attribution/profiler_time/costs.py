"""The time that the profiler itself takes in a recording, and a map that removes this time from recorded times.

The training process measures the costs. If it did not, they are estimated from the version of Python.
"""

import re
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.measured import PythonCosts, operator_cost_ns, python_costs
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.process_facts import positive
from tb_bottleneck.trace.trace import Trace

# Highest cost of recording a call in a training / measured cost. The measurement calls small functions in a loop, with
# warm caches. In a training, a call may cost more.
MOST_OF_CALL = 1.5
# The same for calls of C functions. The process measures calls of `len`. A method such as `list.append` costs up to 1.7
# times as much (CPython 3.10 to 3.13). In a recording with 25,000 calls per step, each cost 3.1 times as much (CPython
# 3.13).
MOST_OF_C_CALL = 3.0
# Lowest, usual and highest cost of an operator / measured cost. The process measures an operator that Python calls. In
# 121 recordings of trainings with a known step time without the profiler, an operator costs 0.4 of the measured cost
# (least squares), because most operators are called by other operators, and then there is less to record. The lowest
# and the highest value are a choice: half of 0.4, and the measured cost.
OF_OPERATOR = (0.2, 0.4, 1.0)
# Larger measured costs are not used: something interrupted the process while it measured.
MAX_SLOWDOWN, MAX_CALL_NS, MAX_OPERATOR_NS = 10.0, 10_000.0, 100_000.0
_VERSION = re.compile(r"\d+\.\d+")
_FOLDER = re.compile(r"python(3\.\d+)/")
_BOOTSTRAP = re.compile(r"^threading\.py\((\d{1,6})\): _bootstrap$")


class CostRange(Record, frozen=True):
    """A cost that is not known exactly: the lowest plausible, the usual, and the highest plausible value."""

    least: float
    usual: float
    most: float

    def at(self, position: float) -> float:
        """Returns the cost at `position`: `least` at -1, `usual` at 0, `most` at 1, and linear between these."""
        end = self.most if position > 0 else self.least
        return self.usual + abs(position) * (end - self.usual)


class ProfilerCosts(Record, frozen=True):
    """The costs of profiling with the options of one recording.

    `slowdown` is the factor by which Python bytecode is slower (1 is no slowdown). The other costs are in ns per
    recorded event. `measured` is True if the training process measured the costs. `version` is the version of Python
    such as "3.11", or empty if the version is not known.
    """

    slowdown: CostRange
    python_call: CostRange
    c_call: CostRange
    operator: CostRange
    measured: bool
    version: str


def costs_of(trace: Trace, stacks: bool | None = None) -> ProfilerCosts | None:
    """Returns the profiler's costs in `trace`. None if they were not measured and not known for the Python version.

    `stacks` says whether to return the costs of recording with stacks. By default, it depends on whether the trace has
    stacks.
    """
    stacks = len(trace.rows(Kind.PYTHON)) > 0 if stacks is None else stacks
    version = _python_version(trace)
    by_version = next((costs for costs in python_costs() if costs.version == version), None)
    measured = trace.header.context.get("profiler_costs")
    if isinstance(measured, dict):
        costs = _measured(measured, stacks, by_version, version)
        if costs is not None:
            return costs
    if by_version is None:
        return None
    return ProfilerCosts(
        CostRange(1.0, by_version.slowdown[1], by_version.slowdown[2]),
        _up_to(by_version.python_call_ns, MOST_OF_CALL),
        _up_to(by_version.c_call_ns, MOST_OF_C_CALL),
        _of_operator(operator_cost_ns(stacks)),
        measured=False,
        version=version,
    )


def _measured(
    facts: dict[Any, Any], stacks: bool, by_version: PythonCosts | None, version: str
) -> ProfilerCosts | None:
    """Returns the costs from `facts`, the measurements of the training process; None if one is missing or implausible.

    `by_version` are the usual costs of the Python `version`, or None if they are not known.
    """
    plain = positive(facts.get("operator_without_stacks_ns"))
    if not stacks:
        if plain is None or plain > MAX_OPERATOR_NS:
            return None
        nothing = CostRange(0.0, 0.0, 0.0)
        return ProfilerCosts(CostRange(1.0, 1.0, 1.0), nothing, nothing, _of_operator(plain), True, version)
    names = ("python_slowdown", "python_call_ns", "c_call_ns", "operator_ns")
    slowdown, python_call, c_call, operator = (positive(facts.get(name)) for name in names)
    if slowdown is None or python_call is None or c_call is None or operator is None:
        return None
    if slowdown > MAX_SLOWDOWN or max(python_call, c_call) > MAX_CALL_NS or operator > MAX_OPERATOR_NS:
        return None
    usual = max(slowdown, 1.0)
    # The process measures a mixture of bytecode. Other bytecode may slow down more, by a factor that depends on the
    # version of Python, not on the machine.
    most = usual * (by_version.slowdown[2] / by_version.slowdown[1] if by_version is not None else 1.5)
    return ProfilerCosts(
        CostRange(1.0, usual, most),
        _up_to(python_call, MOST_OF_CALL),
        _up_to(c_call, MOST_OF_C_CALL),
        _of_operator(operator),
        True,
        version,
    )


def _up_to(ns: float, most: float) -> CostRange:
    return CostRange(0.0, ns, most * ns)


def _of_operator(ns: float) -> CostRange:
    least, usual, most = OF_OPERATOR
    return CostRange(least * ns, usual * ns, most * ns)


def _python_version(trace: Trace) -> str:
    """Returns the version of Python, such as "3.11"; empty if it is not known.

    The version is taken from the facts in the header or from the file names and lines of the frames.
    """
    fact = trace.header.context.get("python")
    if isinstance(fact, str) and (found := _VERSION.match(fact)):
        return found[0]
    for name in trace.names:
        if ".py(" not in name:
            continue
        folder, line = _FOLDER.search(name), _BOOTSTRAP.match(name)
        if folder is not None:
            return folder[1]
        if line is not None:
            return _version_of_line(int(line[1]))
    return ""


def _version_of_line(line: int) -> str:
    for costs in python_costs():
        first, last = costs.bootstrap_lines
        if first <= line <= last:
            return costs.version
    return ""


class Correction(Record, frozen=True, eq=False):
    """Describes how the profiler's time was removed from a recording.

    `costs` are those of Python and of operators on the host; None if nothing was removed by them. `solved` is True if
    the removed time was computed from logged step times without the profiler. `removed` is the profiler's time in the
    steps. `waits` is the time in the steps by which waits for loader workers become longer without the profiler. Both
    are in ns. `dispatch` is True if launches came later because of the profiler.
    """

    costs: ProfilerCosts | None
    solved: bool
    removed: float
    waits: float
    dispatch: bool = False
