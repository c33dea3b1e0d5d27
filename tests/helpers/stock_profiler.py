"""Compares the tables with those of torch-tb-profiler, which runs in a Python of its own."""

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace, load_inspected
from tb_bottleneck.drilldown.operations.operation_tables import add_kernels, add_operators
from tb_bottleneck.drilldown.tree.selection import Selection, selected_tree
from tb_bottleneck.jobs.summary.communication_rows import communications_of
from tb_bottleneck.jobs.summary.own_time import GroupTable
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.steps import Steps

_STOCK = """
import json, sys
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.module_op import aggegate_module_view

def listed(modules):
    for module in modules or []:
        yield [module.name, module.host_duration]
        yield from listed(module.children)

def main():
    data = RunProfileData.parse("worker", None, sys.argv[1], sys.argv[2])
    data.process()
    operators = {row.name: [row.calls, row.device_duration, row.self_device_duration, row.host_duration,
                            row.self_host_duration, bool(row.tc_eligible)] for row in data.op_list_groupby_name}
    kernels = json.loads(data.kernel_stat.reset_index().to_json(orient="records"))
    modules = list(listed(aggegate_module_view(data.tid2tree, data.events)))
    nodes = data.comm_node_list or []
    messages = [[node.name, sum(end - begin for begin, end in node.kernel_ranges)] for node in nodes]
    kernels = {row["name"]: row for row in kernels}
    tables = {"messages": messages, "modules": modules, "operators": operators, "kernels": kernels}
    json.dump(tables, open(sys.argv[3], "w"))

if __name__ == "__main__":
    main()
"""
_DIFFERENCES = """\
- torch-tb-profiler takes the runtime calls (`cudaLaunchKernel`) out of an operator's own host time; here they are part
  of it.
- The six broadcast kernels of the JSON take 114.334 µs, as in the table here.
- The JSON has 204 rows `aten::div`, as the table here; torch-tb-profiler shows 198.

Modules are those of `h100_bert_small.json.gz`, communications those of `hta_ddp_a100_ws2_ncclmeta.json.gz`. In these
newer recordings torch-tb-profiler shows no device time of operators and modules, because it links them to kernels by
`External id`; here calls are nested by time. It has no sizes of these messages.\
"""
_OPERATOR_FIELDS = ("calls", "device_total_ns", "device_ns", "host_total_ns", "host_ns")
_OPERATOR_TITLES = ("calls", "device time, total", "device time, self", "host time, total", "host time, self")
_KERNEL_FIELDS = {"count": "calls", "sum": "total_ns", "mean": "mean_ns", "min": "min_ns", "max": "max_ns",
                  "blocks_per_sm": "blocks_per_sm", "occupancy": "occupancy"}  # fmt: skip


def stock_section(path: Path, python: str) -> Iterator[str]:
    """Yields the section of the page: how many figures are equal, and which are not."""
    stock, ours = _stock_tables(path, python), _our_tables(load_inspected(str(path)))
    yield ""
    yield "## Next to torch-tb-profiler"
    yield ""
    yield f"Operators and kernels of the whole recording `{path.name}`, which torch-tb-profiler 0.4.3 reads correctly."
    yield "Equal: within 1 µs or 0.1 %. Where they differ:"
    yield ""
    yield from _DIFFERENCES.splitlines()
    yield ""
    yield "| table | figure | rows of both | equal | largest difference | name |"
    yield "|---|---|---:|---:|---:|---|"
    operators = {row.name: [float(getattr(row, field)) for field in _OPERATOR_FIELDS] for row in ours.operators}
    theirs = {name: [row[0], *(1000 * ns for ns in row[1:5])] for name, row in stock["operators"].items()}
    for column, title in enumerate(_OPERATOR_TITLES):
        yield _row("operators", title, operators, theirs, column)
    kernels = {row.name: [float(getattr(row, field)) for field in _KERNEL_FIELDS.values()] for row in ours.kernels}
    scale = {"sum": 1000, "mean": 1000, "min": 1000, "max": 1000, "occupancy": 0.01}
    stock_kernels = {
        name: [(row[field] or 0) * scale.get(field, 1) for field in _KERNEL_FIELDS]
        for name, row in stock["kernels"].items()
    }
    for column, title in enumerate(_KERNEL_FIELDS):
        yield _row("kernels", title, kernels, stock_kernels, column)
    with_modules = path.with_name("h100_bert_small.json.gz")
    stock_modules = {name: [1000 * us] for name, us in _stock_tables(with_modules, python)["modules"]}
    with_messages = path.with_name("hta_ddp_a100_ws2_ncclmeta.json.gz")
    messages = _summed(
        (name.removeprefix("nccl:"), 1000 * us) for name, us in _stock_tables(with_messages, python)["messages"]
    )
    ours_messages = _our_messages(load_inspected(str(with_messages)))
    for column, title in enumerate(("calls", "time")):
        yield _row("communications", title, ours_messages, messages, column)
    yield _row("modules", "host time, total", _our_modules(load_inspected(str(with_modules))), stock_modules, 0)


def _row(table: str, title: str, ours: dict[str, list[float]], theirs: dict[str, list[float]], column: int) -> str:
    both = sorted(set(ours) & set(theirs))
    differences = {name: abs(ours[name][column] - theirs[name][column]) for name in both}
    equal = [
        name
        for name in both
        if differences[name] <= max(1000 if "time" in title else 1e-6, 0.001 * theirs[name][column])
    ]
    worst = max(both, key=lambda name: differences[name] / max(theirs[name][column], 1), default="")
    if len(equal) == len(both):
        return f"| {table} | {title} | {len(both)} | {len(equal)} | | |"
    pair = f"{ours[worst][column]:.6g} against {theirs[worst][column]:.6g}"
    return f"| {table} | {title} | {len(both)} | {len(equal)} | {pair} | {worst[:60]} |"


def _our_messages(inspected: InspectedTrace) -> dict[str, list[float]]:
    """Returns the number and the time of each collective operation of the whole recording, in ns."""
    recording = _whole(inspected)
    rows = communications_of(recording, GroupTable(inspected.trace.header))
    names = [Operation(number).name.lower() for number in rows.operation.tolist()]
    return _summed(zip(names, (rows.end - rows.start).tolist(), strict=True))


def _summed(rows: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    sums: dict[str, list[float]] = {}
    for name, ns in rows:
        calls, total = sums.get(name, [0.0, 0.0])
        sums[name] = [calls + 1, total + ns]
    return sums


def _our_modules(inspected: InspectedTrace) -> dict[str, list[float]]:
    """Returns the host time of each module, in ns."""
    tree = selected_tree(inspected, Selection("module"))
    host = tree.columns["host"].tolist()
    return {tree.name[node]: [host[node]] for node, kind in enumerate(tree.kind) if kind == "module"}


def _our_tables(inspected: InspectedTrace) -> pb.Tables:
    """Returns the tables of the whole recording instead of the judged window."""
    recording = _whole(inspected)
    tables = pb.Tables(window_ns=float(recording.steps.end - recording.steps.begin))
    add_kernels(inspected, recording, tables)
    add_operators(recording, tables)
    return tables


def _whole(inspected: InspectedTrace) -> Recording:
    events = inspected.trace.events
    edges = np.array([int(events.start[0]), int(events.end[:].max()) + 1])
    return Recording(inspected.trace, Steps("whole", edges, edges))


def _stock_tables(path: Path, python: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        script, trace, out = (Path(folder) / name for name in ("stock.py", "t.pt.trace.json.gz", "out.json"))
        script.write_text(_STOCK)
        copy(path, trace)
        subprocess.run([python, str(script), str(trace), folder, str(out)], check=True, capture_output=True)
        return dict(json.loads(out.read_text()))
