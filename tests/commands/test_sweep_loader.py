"""Tests of `tb-bottleneck sweep-loader` with small real datasets: table, JSON, and one line for a mistake."""

import json

import pytest

pytest.importorskip("torch")

from tb_bottleneck.__main__ import main


def sweep(function: str, *options: str) -> int:
    return main(["sweep-loader", f"monitor.datasets:{function}", "--seconds-per-setting", "0.2", *options])


def test_for_a_dataset_that_waits_more_workers_are_advised(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("waits", "--workers", "0,4", "--prefetch", "2") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["workers", "pinned", "prefetch", "samples/s", "±", "first", "batch"]
    assert out[2].split()[:3] == ["4", "no", "2"]
    assert out[2].endswith("<- use this")
    assert "DataLoader(dataset, ..., num_workers=4, prefetch_factor=2, persistent_workers=True)" in out
    assert any(line.startswith("delivers ") for line in out)


def test_one_object_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("arguments", "--workers", "0,2", "--prefetch", "2", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == 1
    rows = [(row["num_workers"], row["prefetch_factor"], row["yours"]) for row in answer["settings"]]
    assert rows == [(0, None, False), (1, 2, True), (2, 2, False)], "the user's own setting is measured too"
    assert all(row["samples_per_s"] > 0 and row["noise"] >= 0 for row in answer["settings"])
    assert answer["use"]["num_workers"] in (1, 2)
    assert f"num_workers={answer['use']['num_workers']}" in answer["code"]


def test_a_dataset_that_breaks_fails_setting_by_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("breaks", "--workers", "0,1,2,4,8", "--prefetch", "2") == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3, "settings that could only repeat it are not tried"
    assert out.count("failed: ValueError: sample 0 is broken") == 1
    assert "is broken (in a worker)" in out
    assert err == "tb-bottleneck: no setting could be measured\n"


def test_a_dataset_that_cannot_be_pickled_still_gets_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("cannot_be_sent", "--workers", "0,1", "--prefetch", "2", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["use"]["num_workers"] == 0
    assert "pickle" in answer["settings"][1]["failed"]


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("monitor.datasets:nothing", "has no function 'nothing'"),
        ("nowhere.py:make", "no such file: nowhere.py"),
        ("no_such_module:make", "no module named 'no_such_module'"),
        ("monitor.datasets:raises", "raised KeyError: 'no such split'"),
        ("monitor.datasets:time", "has no function 'time'"),
    ],
)
def test_what_is_wrong_with_the_factory_is_one_line_and_2(
    factory: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep-loader", factory]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "option", [("--workers", "-1"), ("--workers", "many"), ("--prefetch", "0"), ("--seconds-per-setting", "0")]
)
def test_wrong_numbers_are_wrong_usage(option: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["sweep-loader", "monitor.datasets:waits", *option])
    assert exit_.value.code == 2
