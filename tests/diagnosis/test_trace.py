"""Every file gives a complete report, for any content."""

import gzip
import json
import os

import pytest
from helpers.draw import drawn

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.report.cache.cached_diagnosis import is_repeatable
from tb_bottleneck.report.json_form import as_dict
from tb_bottleneck.text.report import render

WAITING = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    loader  ####......####......####......####......
    gpu     ....aabbcc....aabbcc....aabbcc....aabbcc
"""


@pytest.fixture
def report(tmp_path):
    def of(raw, name="host_1.17.pt.trace.json.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(json.dumps(raw).encode()) if isinstance(raw, dict) else raw)
        os.utime(path, (0, 0))  # a young file that ends early may still be growing
        return as_dict(diagnose(str(path), run="resnet/slow"))

    return of


def test_a_run_that_waits_for_data_gets_evidence_and_a_fix(report):
    found = report(drawn(WAITING, unit_us=1000))
    assert (found["schema"], found["run"], found["source"]) == (2, "resnet/slow", "host_1.17.pt.trace.json.gz")
    assert found["health"]["status"] == "degraded"
    assert [reason["code"] for reason in found["health"]["reasons"]] == ["stacks_not_recorded"]
    assert found["device"] == {"name": "NVIDIA A100-SXM4-80GB", "kind": "cuda", "index": 0, "count": 1}
    assert (found["rank"], found["world_size"]) == (0, 1)
    assert found["window"]["basis"] == "profiler_step"
    assert found["window"]["steps"] == 3
    assert found["window"]["step_ns"]["median"] == pytest.approx(10e6, rel=0.01)
    assert [row["regime"] for row in found["account"]] == list(REGIMES)
    assert sum(row["share"] for row in found["account"]) == pytest.approx(1)
    verdict = found["verdict"]
    assert (verdict["regime"], verdict["severity"], verdict["confidence"]) == ("input", "critical", "high")
    assert verdict["headline"] == "The GPU waits for the next batch during 40 % of each step."
    assert [row["status"] for row in found["regimes"] if row["regime"] == "input"] == ["fires"]
    finding = found["findings"][0]
    assert finding["cause"] == "loader_in_main_process"
    assert finding["speedup"]["basis"] == "replay"
    assert finding["speedup"]["expected"] == pytest.approx(10 / 6.1 / 1.075, rel=0.01), (
        "0.1 ms of each fetch, and slower"
    )
    assert [step["cause"] for step in found["plan"]] == ["loader_in_main_process"]
    assert "num_workers=1," in finding["fix"]["code"], "4 ms of loading beside 6 ms of work need one worker"
    assert finding["evidence"][0]["value"] == pytest.approx(4e6, rel=0.01)
    assert finding["evidence"][0]["begin_ns"] < finding["evidence"][0]["end_ns"]


def test_a_device_that_small_kernels_do_not_fill_is_not_healthy(report):
    found = report(drawn("step aaaaaaaaaabbbbbbbbbb\nlaunch ||||......||||......\nsmall .aaabbccddaaabbccddd", 1000))
    assert [finding["cause"] for finding in found["findings"]] == ["small_batch"]
    assert (found["verdict"]["regime"], found["verdict"]["severity"]) == ("underfilled", "critical")


def test_a_busy_device_has_nothing_to_fix(report):
    found = report(drawn("step aaaaaaaaaabbbbbbbbbb\nlaunch ||||......||||......\ngpu .aaabbccddaabbbccddd", 1000))
    assert (found["verdict"]["regime"], found["verdict"]["severity"]) == ("compute", "none")
    assert found["findings"] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'[{"name": "a", "value": 1}, {}]', "unreadable"),
        (b"", "unreadable"),
        (b"{}", "unreadable"),
        (b"\x1f\x8b not gzip", "unreadable"),
        (b"hello", "unreadable"),
    ],
)
def test_a_file_that_is_no_trace_is_still_a_report(report, content, code):
    found = report(content)
    assert found["health"]["status"] == "unreadable"
    assert found["health"]["reasons"][0]["code"] == code
    assert found["health"]["reasons"][0]["fix"]
    assert "verdict" not in found


def test_a_recording_that_cannot_be_judged_gets_no_verdict(report):
    found = report({"traceEvents": []})
    assert found["health"]["status"] == "incomplete"
    assert found["health"]["reasons"][0]["code"] == "insufficient_data"
    assert "verdict" not in found
    assert found["account"] == []


def test_a_file_that_ends_early_is_reported_as_truncated_even_if_too_little_remains(report):
    found = report(b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 2}, {"ph')
    codes = [reason["code"] for reason in found["health"]["reasons"]]
    assert codes == ["insufficient_data", "truncated"]


def test_nothing_is_predicted_for_a_truncated_file(report):
    whole = json.dumps(drawn(WAITING, unit_us=1000))
    assert report(whole.encode())["plan"]
    found = report(whole[: whole.rindex("]")].encode())
    assert "truncated" in [reason["code"] for reason in found["health"]["reasons"]]
    assert (found["verdict"]["regime"], found["verdict"]["action"], found["plan"]) == ("input", "", [])
    assert {finding["speedup"]["basis"] for finding in found["findings"]} == {"none"}
    assert "truncated" in found["replay"]["because"]


def test_an_internal_failure_is_reported_as_ours(report, monkeypatch, caplog):
    def fails(*_):
        raise KeyError("planted")

    monkeypatch.setattr("tb_bottleneck.diagnosis.trace.find_steps", fails)
    found = report(drawn(WAITING))
    assert found["health"]["reasons"][0]["code"] == "broken"
    assert "planted" in caplog.text


@pytest.mark.parametrize(
    ("part", "function"),
    [
        ("input", "parts.loader_work"),
        ("compilation", "parts.compiled_steps"),
        ("places", "trace.cause_places"),
        ("efficiency", "trace.trace_figures"),
    ],
)
def test_a_part_that_fails_is_named_in_the_report_and_logged(tmp_path, monkeypatch, caplog, part, function):
    def fails(*_):
        raise KeyError("planted")

    monkeypatch.setattr(f"tb_bottleneck.diagnosis.{function}", fails)
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(drawn(WAITING, unit_us=1000)))
    found = diagnose(str(path))
    assert found.verdict.regime == "input"
    assert [broken.part for broken in found.broken_parts] == [part]
    assert found.broken_parts[0].because in " ".join(render(found).split())
    assert "planted" in caplog.text
    assert not is_repeatable(found)


def test_the_unknown_rank_of_a_distributed_run_is_absent_not_zero(report):
    assert "rank" not in report(drawn(WAITING, distributedInfo={"backend": "gloo", "world_size": 4}))
    found = report(drawn(WAITING, distributedInfo={"backend": "gloo", "rank": 2, "world_size": 4}))
    assert (found["rank"], found["world_size"]) == (2, 4)


def test_private_metadata_is_not_repeated(report):
    raw = drawn(WAITING, host_name="secret-host", trace_id="secret-id", USER="secret-user", env={"TOKEN": "secret"})
    assert "secret" not in json.dumps(report(raw))


def test_progress_is_given_in_bytes(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(drawn(WAITING)))
    result = []
    diagnose(str(path), progress=lambda done, total: result.append((done, total)))
    assert result[-1] == (path.stat().st_size, path.stat().st_size)


def cpu_run(context=None, loader_us=0):
    """Returns six steps on the CPU: a fetch, then ten operators of 1 ms."""
    events = []
    for step in range(6):
        begin = step * (10_000 + loader_us)
        span = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": begin}
        events.append({**span, "name": f"ProfilerStep#{step}", "dur": 10_000 + loader_us})
        if loader_us:
            name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
            events.append({**span, "name": name, "dur": loader_us})
        for number in range(10):
            at = begin + loader_us + 1000 * number
            row = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": at, "dur": 1000}
            events.append({**row, "name": "aten::mkldnn_convolution"})
    header = {"deviceProperties": [], "traceEvents": events}
    return header | ({"tb_bottleneck": {"schema": 1, "context": context}} if context else {})


def test_on_a_run_without_an_accelerator_the_cpu_is_the_device(report):
    found = report(cpu_run(loader_us=10_000))
    assert found["device"]["kind"] == "cpu"
    assert found["verdict"]["regime"] == "input"
    assert found["verdict"]["headline"].startswith("The CPU waits for the next batch during 50 %")
    status = {row["regime"]: row["status"] for row in found["regimes"]}
    assert status["input"] == "fires"
    assert status["interruption"] == "abstains", "no Python frames were recorded: a checkpoint would not have been seen"


def test_cores_without_a_thread_are_named_with_a_bound(report):
    found = report(cpu_run({"torch_threads": 2, "cores": 8, "physical_cores": 8}))
    first = found["findings"][0]
    assert (first["cause"], first["speedup"]["basis"]) == ("too_few_threads", "bound")
    assert first["speedup"]["high"] == pytest.approx(4, abs=0.1)
    assert found["verdict"]["severity"] == "info", "other programs may use the other cores"
    assert "No problem" not in found["verdict"]["headline"]


@pytest.mark.parametrize(
    "context",
    [
        {"torch_threads": 1, "cores": 2, "physical_cores": 1},  # hyper-threads
        {"torch_threads": 1, "cores": 4, "local_world_size": 4},
        {"torch_threads": 5, "cores": 8},
        {"torch_threads": 1, "cores": 4, "workers": 3},
        {"cores": 4},
        {"torch_threads": 1},
    ],
    ids=str,
)
def test_cores_that_something_else_uses_are_not_missing(report, context):
    assert report(cpu_run(context))["findings"] == []


def test_more_threads_than_cores_are_named_from_the_runs_context(report):
    slow = report(cpu_run({"torch_threads": 32, "cores": 2, "device_kind": "cpu", "device_name": "Some CPU"}))
    assert slow["findings"][0]["cause"] == "oversubscribed_threads"
    assert slow["findings"][0]["speedup"]["basis"] == "none"
    assert slow["verdict"]["headline"] == "Torch runs 32 threads on 2 cores, so every operator waits for its turn."
    assert slow["device"]["name"] == "Some CPU"
    well = report(cpu_run({"torch_threads": 2, "cores": 2}))
    assert (well["verdict"]["regime"], well["verdict"]["severity"]) == ("compute", "none")


@pytest.mark.parametrize(("longer", "regime"), [(1, "compute"), (4, "unexplained")])
def test_uneven_steps_that_a_rule_cannot_explain_are_no_all_clear(report, longer, regime):
    """A run with a validation every fourth step was told with high confidence that nothing would save time."""
    events, at = [], 0
    for step in range(9):
        operators = 10 * (longer if step % 4 == 3 else 1)
        span = {"ph": "X", "pid": 1, "tid": 1, "ts": at}
        events.append(span | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "dur": 1000 * operators})
        for number in range(operators):
            row = {"cat": "cpu_op", "name": "aten::mkldnn_convolution", "ts": at + 1000 * number, "dur": 1000}
            events.append(span | row)
        at += 1000 * operators
    found = report({"deviceProperties": [], "traceEvents": events})
    assert found["verdict"]["severity"] == "none"
    assert "abstains" in {row["status"] for row in found["regimes"]}
    assert (found["verdict"]["regime"], found["verdict"]["confidence"]) == (regime, "medium")


@pytest.mark.parametrize("name", ["Torch-Compiled Region: {}/0", "## Call CompiledFxGraph {} ##", "aten::linear"])
def test_a_compiled_model_with_graph_breaks_is_not_told_to_compile(report, name):
    """Six steps on the CPU of 100 operators of 2 us every 10 us, between two compiled regions."""
    row, events = {"ph": "X", "pid": 1, "tid": 1}, []
    for step in range(6):
        begin = 2000 * step
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 2000})
        for region in range(2):
            block = {"cat": "cpu_op", "name": name.format(region), "ts": begin + 1600 * region, "dur": 300}
            events.append(row | block)
        operator = {"cat": "cpu_op", "name": "aten::view", "dur": 2}
        events += [row | operator | {"ts": begin + 400 + 10 * number} for number in range(100)]
    finding = report({"deviceProperties": [], "traceEvents": events})["findings"][0]
    is_compiled = not name.startswith("aten")
    assert finding["cause"] == ("operators_outside_graphs" if is_compiled else "small_operators")
    assert ("fullgraph=True" in finding["fix"]["code"]) == is_compiled
    if is_compiled:
        assert (finding["evidence"][0]["label"], finding["evidence"][0]["value"]) == ("Compiled regions per step", 2)


def test_no_rule_breaks_on_a_run_that_is_mostly_python(report):
    raw = cpu_run()
    raw["traceEvents"] = [row for row in raw["traceEvents"] if row["ts"] % 10_000 < 2_000 or row["dur"] > 5000]
    found = report(raw)
    assert found["verdict"]["regime"] == "host"
    assert "broken" not in {row["status"] for row in found["regimes"]}
    assert found["findings"][0]["evidence"][0]["value"] == pytest.approx(8e6)


def test_a_file_name_that_is_no_unicode_is_shown_with_its_readable_part(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"host\xff.pt.trace.json")
    with open(path, "w") as file:
        json.dump(drawn(WAITING), file)
    assert diagnose(os.fsdecode(path)).source == "host\ufffd.pt.trace.json"


def test_what_was_not_recorded_is_not_called_clear(report):
    """A run without DataLoader rows was reported to have a fast loader, one without stacks to have no interruptions."""
    busy = "step aaaaaaaaaabbbbbbbbbb\nlaunch ||||......||||......\ngpu .aaabbccddaabbbccddd"
    blind = {row["regime"]: row for row in report(drawn(busy, 1000))["regimes"]}
    assert blind["input"]["status"] == "abstains"
    assert blind["input"]["because"].startswith("Cannot tell: no DataLoader iteration was recorded")
    assert "with_stack=True" in blind["interruption"]["because"]
    seen = busy + "\nloader ....#...............\npython ....#..............."
    status = {row["regime"]: row["status"] for row in report(drawn(seen, 1000))["regimes"]}
    assert (status["input"], status["interruption"]) == ("clear", "clear")


def test_json_of_another_kind_is_called_that(tmp_path):
    """A list of other objects was "not enough data", with the advice to upgrade torch."""
    path = tmp_path / "other.json"
    path.write_text(json.dumps([{"name": "a", "value": number} for number in range(3)]))
    (reason,) = diagnose(str(path)).health.reasons
    assert "none of its 3 objects is an event" in reason.detail
    assert "upgrade" not in reason.fix
