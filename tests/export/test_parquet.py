"""The exported tables have the declared columns and the recording's rows, and the queries of the page work."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.export.tables import TABLES
from tb_bottleneck.trace.trace import load

pq = pytest.importorskip("pyarrow.parquet")
PAGE = (Path(__file__).parents[2] / "tb_bottleneck" / "docs" / "export.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"### \d+\. ([^\n]+)\n\n```sql\n(.+?);\n```", PAGE, re.DOTALL)
STEPS = 8


def events():
    """Yields a run of one rank of two: each step has Python, an upload, six products and an all-reduce."""
    host = {"ph": "X", "pid": 1, "tid": 1}
    device = {"ph": "X", "pid": 0, "tid": 7}
    link = 0
    for step in range(STEPS):
        at = step * 10_000
        yield {**host, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 10_000}
        yield {**host, "cat": "python_function", "name": "train.py(3): step", "ts": at + 1, "dur": 9_990}
        work = [("aten::copy_", "cudaMemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", {"bytes": 4096})]
        work += [("aten::mm", "cudaLaunchKernel", "kernel", "ampere_sgemm_128x64", {"grid": [64, 1, 1]})] * 6
        work += [("record_param_comms", "cudaLaunchKernel", "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", {})]
        for position, (operator, call, category, name, args) in enumerate(work):
            link += 1
            start = at + 100 + position * 1_100
            inputs = {"Input Dims": [[8, 16], [16, 8]], "Input type": ["float", "float"]}
            if operator == "record_param_comms":
                inputs = {
                    "Collective name": "allreduce",
                    "dtype": "Float",
                    "In msg nelems": 1024,
                    "Out msg nelems": 1024,
                }
                inputs |= {"Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": step}
                args = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1024, "Out msg nelems": 1024}
            yield {**host, "cat": "cpu_op", "name": operator, "ts": start, "dur": 60, "args": inputs}
            yield {
                **host,
                "cat": "cuda_runtime",
                "name": call,
                "ts": start + 10,
                "dur": 20,
                "args": {"correlation": link},
            }
            args = {"device": 0, "stream": 7, "correlation": link, **args}
            yield {**device, "cat": category, "name": name, "ts": start + 50, "dur": 1_000, "args": args}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Two ranks, one with a name that is no file name, and a file that is no trace."""
    folder = tmp_path_factory.mktemp("runs")
    for rank in (0, 1):
        content = {"distributedInfo": {"rank": rank, "world_size": 2, "backend": "nccl"}, "traceEvents": list(events())}
        path = folder / ("a b" if rank else "x") / f"rank {rank};.pt.trace.json"
        path.parent.mkdir()
        path.write_text(json.dumps(content))
        os.utime(path, (1e9, 1e9))
    (folder / "broken.pt.trace.json").write_text("{}")
    output = folder / "tables"
    status = main(["export", str(folder), "--parquet", "--output", str(output)])
    assert status == 1  # of the broken file
    return folder, output


def rows(output, table):
    name = "ranks.parquet" if table == "ranks" else table
    return pq.read_table(output / name)


@pytest.mark.parametrize("table", TABLES)
def test_the_columns_are_the_declared_ones(exported, table):
    kinds = {"text": ("string", "dictionary"), "int": ("int64",), "float": ("double",)}
    schema = rows(exported[1], table).schema
    assert schema.names == [column.name for column in TABLES[table]]
    for column in TABLES[table]:
        assert str(schema.field(column.name).type).startswith(kinds[column.type]), column


@pytest.mark.parametrize("table", TABLES)
def test_the_page_lists_the_columns(table):
    section = PAGE.partition(f"## {table.capitalize()}\n")[2].partition("\n## ")[0]
    listed = [
        tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in section.splitlines() if line.startswith("| `")
    ]
    assert listed == [(f"`{column.name}`", column.type, column.unit, column.meaning) for column in TABLES[table]]


def test_the_rows_are_those_of_the_recordings(exported):
    folder, output = exported
    trace = load(str(next(folder.glob("x/*.json"))))
    table = rows(output, "events").to_pydict()
    assert len(table["name"]) == 2 * len(trace.events) == 2 * STEPS * 26
    assert sorted(set(table["recording"])) == ["a b/rank 1;.pt.trace.json", "x/rank 0;.pt.trace.json"]
    first = table["recording"].index("x/rank 0;.pt.trace.json")
    assert table["start_ns"][first : first + 5] == trace.events.start[:5].tolist()
    products = [row for row, name in enumerate(table["name"]) if name == "aten::mm"]
    assert {table["shapes"][row] for row in products} == {"[[8,16],[16,8]]"}
    kernels = rows(output, "kernels").to_pydict()
    assert set(zip(kernels["operator"], kernels["call"], kernels["work"], strict=True)) == {
        ("aten::copy_", "cudaMemcpyAsync", "upload"),
        ("aten::mm", "cudaLaunchKernel", "contraction"),
        ("record_param_comms", "cudaLaunchKernel", "collective"),
    }
    assert all(start - call > 0 for start, call in zip(kernels["start_ns"], kernels["call_start_ns"], strict=True))
    collectives = rows(output, "collectives").to_pydict()
    assert set(collectives["operation"]) == {"all_reduce"}
    assert (set(collectives["group_size"]), set(collectives["bytes"])) == ({2}, {4096})
    ranks = rows(output, "ranks").to_pydict()
    assert (sorted(ranks["rank"]), ranks["world_size"]) == ([0, 1], [2, 2])
    parts = sum(
        ranks[f"{name}"][0] for name in ranks if name.endswith("_ns") and name not in ("window_ns", "step_mean_ns")
    )
    assert parts == pytest.approx(ranks["step_mean_ns"][0])


def test_there_are_ten_queries():
    assert len(QUERIES) == 10


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_a_query_of_the_page_works(exported, monkeypatch, title, query):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(exported[1])
    assert duckdb.sql(query).fetchall(), title


def test_a_directory_with_files_is_left_alone(exported, capsys):
    folder, output = exported
    assert main(["export", str(folder), "--parquet", "--output", str(output)]) == 2
    assert "is not an empty directory" in capsys.readouterr().err


def test_a_missing_package_is_named(exported, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "tb_bottleneck.export.parquet")
    assert main(["export", str(exported[0] / "x"), "--parquet", "--output", str(tmp_path / "new")]) == 2
    assert 'pip install "tb_bottleneck[parquet]"' in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_only_format_need_not_be_named(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("tb_bottleneck.export.parquet.export", lambda *given: calls.append(given) or (1, []))
    (tmp_path / "t.pt.trace.json").write_text("{}")
    for named in ([], ["--parquet"]):
        assert main(["export", str(tmp_path), *named, "--output", str(tmp_path / "new")]) == 0
    assert [output for _, output, _ in calls] == [tmp_path / "new"] * 2
