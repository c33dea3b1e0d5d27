"""The replays of captured graphs as the report shows them."""

from dataclasses import asdict

from tb_bottleneck.measures.trace.graph_replays import GraphReplays, ReplayedGraph
from tb_bottleneck.report.builders.details.compilation import MIN_NS
from tb_bottleneck.schema import bottleneck_pb2 as pb


def replayed_graphs(replays: GraphReplays | None, steps: int) -> pb.GraphReplays | None:
    """Returns the replays in a trace of `steps` steps, or None if there are none."""
    if replays is None:
        return None
    return pb.GraphReplays(
        graphs=[_graph(graph, steps) for graph in replays.graphs],
        launches=replays.launches / steps,
        outside=[
            pb.OutsideGraph(name=entry.name, calls=entry.count / steps, ns_per_step=entry.ns / steps)
            for entry in replays.outside
            if entry.ns / steps >= MIN_NS
        ],
        outside_operations=replays.outside_count / steps,
        outside_ns=replays.outside_ns / steps,
    )


def _graph(graph: ReplayedGraph, steps: int) -> pb.ReplayedGraph:
    return pb.ReplayedGraph(
        operations=graph.operations,
        launches=graph.launches / steps,
        device_ns=graph.span,
        idle_ns=graph.idle_inside,
        idle_before_ns=graph.idle_before,
        call_ns=graph.call,
        place=pb.Place(**asdict(graph.place)) if graph.place is not None else None,
    )
