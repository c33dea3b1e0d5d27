"""Tests of `tb-bottleneck tables`: each table, the groups of one name, and wrong usage."""

import json
from pathlib import Path

import pytest
from drilldown.tree.recorded_model import GEMM, recorded_steps

from tb_bottleneck.__main__ import main


@pytest.fixture
def path(tmp_path: Path) -> str:
    recorder = recorded_steps(4)
    for begin in (2000, 4000, 6000):
        recorder.row("cuda_runtime", "cudaStreamSynchronize", begin + 900, begin + 1003)
    recorder.inspected(tmp_path)
    return str(tmp_path / "model.pt.trace.json")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["tables", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "heading", "name"),
    [
        ("operators", "Tensor cores", "aten::mm"),
        ("kernels", "Blocks/SM", GEMM),
        ("critical-path", "Parts", "host, while the time belongs to launch"),
        ("waits", "Host waited", "(explicit)"),
    ],
)
def test_each_table_has_its_columns(
    path: str, table: str, heading: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run(capsys, path, "--of", table).splitlines()
    assert lines[0].startswith("In total of 3 steps in 6.00 ms")
    assert heading in lines[1]
    assert any(name[-12:] in line for line in lines[2:])


def test_a_column_without_values_is_left_out(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    on_device = run(capsys, path, "--of", "operators").splitlines()[1]
    assert "Device" in on_device
    on_cpu = Path(path).parent / "cpu.pt.trace.json"
    trace = json.loads(Path(path).read_text())
    trace["traceEvents"] = [row for row in trace["traceEvents"] if row.get("cat") in ("cpu_op", "user_annotation")]
    on_cpu.write_text(json.dumps(trace | {"deviceProperties": []}))
    head = run(capsys, str(on_cpu), "--of", "operators").splitlines()[1].split("  ")
    assert not {"Device", "Kernels", "Tensor cores"} & {title.strip() for title in head}
    assert "Host" in {title.strip() for title in head}


def test_a_table_without_rows_says_so(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, path, "--of", "communications") == "no communications\n"


def test_all_tables_as_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    tables = json.loads(run(capsys, path, "--json"))
    assert {"operators", "kernels", "syncs", "copies", "communications", "critical_path"} <= set(tables)
    assert sum(row["share"] for row in tables["critical_path"]) == pytest.approx(1)


def test_the_groups_of_a_name(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, path, "--operator", "aten::addmm")
    assert [line for line in text.splitlines() if line.startswith("By ")] == [
        "By shapes", "By caller", "By kernel", "By module", "By function and line",
    ]  # fmt: skip
    assert json.loads(run(capsys, path, "--kernel", GEMM, "--json"))["callers"][0]["name"] == "aten::mm"


def test_an_unknown_name_is_explained(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", path, "--operator", "aten::none"]) == 2
    assert "nothing called 'aten::none' ran" in capsys.readouterr().err
