"""A recording that cannot be opened gets advice about its access, not about its content."""

import pytest

from tb_bottleneck.diagnosis.snapshot import diagnose_snapshot
from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry
from tb_bottleneck.diagnosis.trace import diagnose

OPENED_BY = {
    diagnose: "tb_bottleneck.sources.file_system.open_regular",
    diagnose_snapshot: "tb_bottleneck.sources.file_system.open_regular",
    diagnose_telemetry: "tb_bottleneck.sources.telemetry.tfrecord.open_regular",
}


def _reason(report):
    (reason,) = report.health.reasons
    return reason.code, reason.detail, reason.fix


@pytest.mark.parametrize("judge", OPENED_BY)
def test_a_file_without_permission_is_advised_to_be_made_readable(judge, tmp_path, monkeypatch):
    path = tmp_path / "recording"
    path.write_bytes(b"{")

    def refuses(*_):
        raise PermissionError(13, "Permission denied")  # raised here, since root may read every file

    monkeypatch.setattr(OPENED_BY[judge], refuses)
    code, detail, fix = _reason(judge(str(path)))
    assert (code, detail) == ("inaccessible", "The file cannot be read: Permission denied.")
    assert fix.startswith("chmod a+r FILE")


@pytest.mark.parametrize("judge", OPENED_BY)
def test_a_file_that_is_gone_is_not_advised_to_be_recorded_differently(judge, tmp_path):
    assert _reason(judge(str(tmp_path / "gone")))[0] == "inaccessible"


def test_a_damaged_snapshot_is_advised_to_be_dumped_again(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(b"\x80\x04")
    code, _, fix = _reason(diagnose_snapshot(str(path)))
    assert (code, "_dump_snapshot" in fix) == ("unreadable", True)
