"""The generated code matches the proto files, and the JSON form the contract."""

from schema.generate import PROTOS, ROOT, generate

from tb_bottleneck.report.json_form import as_dict, as_json
from tb_bottleneck.schema import bottleneck_pb2 as pb


def test_generated_code_is_current(tmp_path):
    generate(tmp_path)
    fix = "python tests/schema/generate.py"
    for name in (proto.replace(".proto", f"_pb2.{suffix}") for proto in PROTOS for suffix in ("py", "pyi")):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), f"stale: run `{fix}`"


def test_empty_fields_are_printed_and_absent_messages_are_not():
    report = as_dict(pb.Report(schema=1))
    assert report["findings"] == []
    assert report["run"] == ""
    assert "verdict" not in report
    assert "rank" not in report


def test_times_are_json_numbers():
    text = as_json(pb.AccountRow(regime="input", share=0.5, ns_per_step=53_000_000))
    assert '"ns_per_step":53000000.0' in text


def test_absent_evidence_is_not_zero():
    assert "value" not in as_dict(pb.Evidence(label="waits"))
    assert as_dict(pb.Evidence(label="waits", value=0.0))["value"] == 0.0
