"""The defects of a recording that its figures suffer from, as notes on what is computed from them."""

from tb_bottleneck.schema import bottleneck_pb2 as pb

# Without frames no line is named, but every figure is as good.
_NO_FIGURE = ("stacks_not_recorded",)


def health_notes(report: pb.Report) -> list[str]:
    """Returns the details of the defects that affect figures."""
    return [reason.detail for reason in report.health.reasons if reason.code not in _NO_FIGURE]
