"""The parts of a step by the functions that the loop calls, as the report shows them."""

from collections.abc import Sequence
from dataclasses import asdict

from tb_bottleneck.measures.user_code.step_parts import StepPart
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_REGIMES, LEAST_SHARE = 3, 0.05


def parts_of_step(parts: Sequence[StepPart], steps: int) -> list[pb.StepPart]:
    """Returns the parts, each with the regimes that own most of its time."""
    return [_row(part, steps) for part in parts]


def _row(part: StepPart, steps: int) -> pb.StepPart:
    row = pb.StepPart(name=part.place.function, share=part.share, calls=part.calls / steps)
    if part.place.function:
        row.place.CopyFrom(pb.Place(**asdict(part.place)))
    for regime, share in part.regimes[:MAX_REGIMES]:
        if share >= LEAST_SHARE:
            row.account.add(regime=regime, share=share, title=regime.label)
    return row
