"""The command line: text for people, one JSON object for programs, 2 for a path that is not there."""

import json
import os
import subprocess
import sys

import pytest
from draw import drawn

from tb_bottleneck.__main__ import main

TRACE = drawn("step aaaabbbbcccc\nloader ##..##..##..\ngpu ..ab..ab..ab", 1000)


@pytest.fixture
def logdir(tmp_path):
    for run in ("a", "b/c"):
        folder = tmp_path / "runs" / run
        folder.mkdir(parents=True)
        (folder / "host_1.17.pt.trace.json").write_text(json.dumps(TRACE))
    broken = tmp_path / "runs" / "b" / "broken.pt.trace.json"
    broken.write_text("{")
    os.utime(broken, (0, 0))  # a young file that ends early may still be growing
    return tmp_path / "runs"


def test_a_logdir_gives_one_report_per_recording(logdir, capsys):
    assert main(["diagnose", str(logdir), "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert [(r["run"], r["health"]["status"]) for r in reports] == [
        ("a", "incomplete"),
        ("b", "unreadable"),
        ("b/c", "incomplete"),
    ]


def test_text_for_people_is_the_default(logdir, capsys):
    assert main(["diagnose", str(logdir / "a")]) == 0
    assert capsys.readouterr().out.startswith("host_1.17.pt.trace.json\n")


def test_a_path_that_does_not_exist_is_one_line_and_2(capsys):
    assert main(["diagnose", "/no/such/place", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "tb-bottleneck: no such file or directory: /no/such/place\n"


def test_wrong_usage_is_2(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["diagnose"])
    assert exit_.value.code == 2


def test_a_directory_without_traces_says_what_was_looked_for(tmp_path, capsys):
    assert main(["diagnose", str(tmp_path)]) == 0
    assert "*.pt.trace.json" in capsys.readouterr().out


def test_help_teaches_how_to_record(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "prof.step()" in capsys.readouterr().out


def test_importing_the_package_imports_neither_torch_nor_tensorboard():
    code = "import tb_bottleneck, sys; tb_bottleneck.diagnose; print({'torch', 'tensorboard'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
