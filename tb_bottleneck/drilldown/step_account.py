"""The account of each step: the same owners as the report's, cut at the steps' edges."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.schema import evidence_pb2 as pb

MOST_COLUMNS = 240


def add_step_account(case: InspectedTrace, recording: Recording, answer: pb.Tables) -> None:
    """A column for each step; neighbours share one where there are more than MOST_COLUMNS steps."""
    edges = recording.steps.edges
    together = -(-(len(edges) - 1) // MOST_COLUMNS)
    cuts = np.append(np.arange(0, len(edges) - 1, together), len(edges) - 1)
    begins, ends, steps = edges[cuts[:-1]], edges[cuts[1:]], np.diff(cuts)
    columns = pb.StepColumns(begin_ns=begins.tolist(), end_ns=ends.tolist(), steps=steps.tolist())
    for regime, ns in case.owned_spans.covered(begins, ends).items():
        if ns.any():
            columns.regimes.add(regime=regime, title=regime.label, ns=(ns / steps).tolist())
    answer.step_account.CopyFrom(columns)
