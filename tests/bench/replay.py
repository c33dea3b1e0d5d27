"""Measures the replay: `python tests/bench/replay.py [TRACE ...]`, by default for TB_BOTTLENECK_TRACES.

Prints for each trace the error of its unmodified replay, its frozen share, and the time to build the graph, to predict
the scenarios of its report, and to predict all scenarios including the graph; the best of several repeats.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tb_bottleneck.attribution.trace_recording import Recording  # noqa: E402
from tb_bottleneck.base.errors import BottleneckError  # noqa: E402
from tb_bottleneck.bottlenecks.judge import judge_all  # noqa: E402
from tb_bottleneck.bottlenecks.plan import predict  # noqa: E402
from tb_bottleneck.bottlenecks.registry import scenarios  # noqa: E402
from tb_bottleneck.measures.measure_set import Measures  # noqa: E402
from tb_bottleneck.replay.graph.blocks import layout_of  # noqa: E402
from tb_bottleneck.replay.graph.graph import graph_of  # noqa: E402
from tb_bottleneck.replay.recorded_graph import RecordedGraph  # noqa: E402
from tb_bottleneck.replay.simulator import replay  # noqa: E402
from tb_bottleneck.trace.steps import find_steps  # noqa: E402
from tb_bottleneck.trace.trace import load  # noqa: E402

REPEATS = 3


@dataclass(frozen=True)
class Row:
    """One trace. Times are CPU seconds of this process, which other load affects less."""

    trace: str
    events: int
    items: int
    blocks: int
    error: float
    exact: float  # error with every latency and pause as recorded
    frozen: float
    load: float
    graph: float
    causes: float
    scenarios: float


def measure(path: Path) -> Row | None:
    """Measures one trace. Returns None if there is nothing to replay."""
    begun = time.process_time()
    try:
        trace = load(str(path))
    except BottleneckError:
        return None
    loaded = time.process_time() - begun
    steps = find_steps(trace)
    if steps is None or not len(trace.device_ops):
        return None
    recording = Recording(trace, steps)
    assert recording.account  # every report computes it anyway
    base = RecordedGraph(recording)
    recorded = steps.end - steps.begin
    found = [cause.name for verdict in judge_all(Measures(recording)) for cause in verdict.judgement.causes]
    return Row(
        trace=path.name.removesuffix(".json.gz"),
        events=len(trace.events),
        items=len(base.graph.items),
        blocks=len(base.layout.first),
        error=base.check.error,
        exact=abs(replay(base.graph, base.layout).window / recorded - 1),
        frozen=base.check.frozen_share,
        load=loaded,
        graph=best(lambda: layout_of(graph_of(recording))),
        causes=best(lambda: predict(recording, found)),
        scenarios=best(lambda: predict(recording, scenarios())),
    )


def best(work: Callable[[], Any]) -> float:
    """Returns the shortest of several times, in CPU seconds."""
    times = []
    for _ in range(REPEATS):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def table(rows: list[Row]) -> Iterator[str]:
    """Returns the rows in Markdown."""
    yield "| trace | events | items | blocks | error | exact | frozen | load s | graph s | a report s | all s |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        figures = f"{row.error:.3%} | {row.exact:.3%} | {row.frozen:.1%}"
        times = f"{row.load:.2f} | {row.graph:.3f} | {row.causes:.3f} | {row.scenarios:.3f}"
        yield f"| {row.trace} | {row.events} | {row.items} | {row.blocks} | {figures} | {times} |"


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path)
    options = parser.parse_args()
    folder = Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent"))
    rows = []
    for path in options.traces or sorted(folder.glob("*.json.gz")):
        print(f"replaying {path.name}", file=sys.stderr)
        row = measure(path)
        if row is not None:
            rows.append(row)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
