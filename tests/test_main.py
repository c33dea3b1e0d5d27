"""Tests of the command line: text, JSON, and exit statuses."""

import json
import os
import subprocess
import sys

import pytest
from helpers.draw import drawn

import tb_bottleneck.diagnosis.trace
from tb_bottleneck.__main__ import REPLACED, main

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
    assert main(["diagnose", str(logdir), "--json"]) == 1, "one of them is unreadable"
    out, err = capsys.readouterr()
    assert err == "tb-bottleneck: b/broken.pt.trace.json is unreadable\n"
    reports = json.loads(out)["reports"]
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


def test_a_directory_without_traces_names_the_expected_files(tmp_path, capsys):
    assert main(["diagnose", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no recording was found" in err
    assert "*.json.gz" in err


def test_an_unreadable_file_is_a_report_a_message_and_1(logdir, capsys):
    """The report goes to stdout, so that a program reads the reason from it."""
    broken = logdir / "b" / "broken.pt.trace.json"
    assert main(["diagnose", str(broken), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["reports"][0]["health"]["status"] == "unreadable"
    assert err == "tb-bottleneck: broken.pt.trace.json is unreadable\n"
    assert main(["diagnose", str(broken)]) == 1
    assert "This file cannot be read as a trace." in capsys.readouterr().out


def test_help_teaches_how_to_record(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "prof.step()" in capsys.readouterr().out


def test_importing_the_package_imports_neither_torch_nor_tensorboard():
    code = "import tb_bottleneck, sys; tb_bottleneck.diagnose; print({'torch', 'tensorboard'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def judged(monkeypatch):
    """Returns the list of the paths that are analysed from now on."""
    paths = []
    real = tb_bottleneck.diagnosis.trace.diagnose

    def counting(path, **options):
        paths.append(path)
        return real(path, **options)

    monkeypatch.setattr(tb_bottleneck.diagnosis.trace, "diagnose", counting)
    return paths


def output(capsys, *arguments):
    assert main(["diagnose", *map(str, arguments), "--json"]) == 1, "one recording is unreadable"
    return capsys.readouterr().out


def test_a_second_run_reads_only_unreadable_files_and_prints_the_same(logdir, capsys, monkeypatch):
    first = output(capsys, logdir)
    paths = judged(monkeypatch)
    assert output(capsys, logdir) == first
    assert [os.path.basename(path) for path in paths] == ["broken.pt.trace.json"]


def test_no_cache_neither_reads_nor_writes_reports(logdir, capsys, monkeypatch, cache_directory):
    paths = judged(monkeypatch)
    assert output(capsys, logdir, "--no-cache") == output(capsys, logdir, "--no-cache")
    assert len(paths) == 6
    assert list(cache_directory.iterdir()) == []


def test_write_puts_readable_reports_beside_their_traces_and_lists_use_them(logdir, capsys, monkeypatch):
    output(capsys, logdir, "--write", "--no-cache")
    written = sorted(path.relative_to(logdir).as_posix() for path in logdir.rglob("*.bottlenecks.json"))
    assert written == [f"{run}/host_1.17.pt.trace.json.bottlenecks.json" for run in ("a", "b/c")]
    monkeypatch.setenv("TB_BOTTLENECK_CACHE", "off")
    paths = judged(monkeypatch)
    assert main(["list", str(logdir), "--json"]) == 1
    shown = capsys.readouterr().out
    assert [os.path.basename(path) for path in paths] == ["broken.pt.trace.json"]
    main(["list", str(logdir), "--json", "--no-cache"])
    assert capsys.readouterr().out == shown


def test_a_report_that_cannot_be_written_is_an_error_message_and_1(logdir, capsys):
    beside = logdir / "a" / "host_1.17.pt.trace.json.bottlenecks.json"
    beside.mkdir()
    assert main(["diagnose", str(logdir / "a"), "--write", "--json"]) == 1
    out, err = capsys.readouterr()
    assert len(json.loads(out)["reports"]) == 1
    assert err == f"tb-bottleneck: {beside} could not be written: Is a directory\n"


def ran(*words, **environment):
    command = [sys.executable, "-m", "tb_bottleneck", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_a_terminal_without_our_characters_shows_the_rest(logdir):
    """An account drawn with block characters raised a UnicodeEncodeError."""
    done = ran("diagnose", logdir / "a", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "host_1.17.pt.trace.json" in done.stdout


def test_a_closed_pipe_is_no_error(logdir):
    """Buffered output was written when Python ended, outside of all exception handlers."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tb_bottleneck", "diagnose", str(logdir / "a")]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, env=buffered)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_is_no_defect(monkeypatch, capsys):
    def interrupted(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tb_bottleneck.commands.diagnose._diagnose", interrupted)
    assert main(["diagnose", "x"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", REPLACED)
def test_a_command_of_1_0_0_that_went_names_what_replaces_it(command, capsys):
    assert main([command, "--json"]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"tb-bottleneck: there is no command {command} any more: ")
    assert err.count("\n") == 1
