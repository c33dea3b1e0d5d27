"""The notes about a recording: what its figures suffer from."""

from tb_bottleneck.report.digest import health_notes
from tb_bottleneck.schema import bottleneck_pb2 as pb


def test_missing_lines_are_no_note_on_figures():
    reasons = [pb.HealthReason(code=code, detail=code.upper()) for code in ("truncated", "stacks_not_recorded")]
    assert health_notes(pb.Report(health=pb.Health(reasons=reasons))) == ["TRUNCATED"]
