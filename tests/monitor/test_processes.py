"""A monitored training in a separate process: killed, interrupted, one of several ranks, started by the command
line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from monitor.written import Written, event_files, read

from tb_bottleneck.__main__ import main

TESTS = str(Path(__file__).parent.parent)

# A shell may have started us with SIGINT ignored, which children inherit.
LOOP = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from monitor.training import Training
training = Training()
def run(epochs):
    for _ in range(epochs):
        training.run()
        print("epoch", flush=True)
"""
MONITORED = f"""{LOOP}
from tb_bottleneck import Monitor
with Monitor(sys.argv[1], captures=0, every_s=0.1):
    run(int(sys.argv[2]))
"""
SCRIPT = f"""{LOOP}
if __name__ == "__main__":
    assert sys.argv[1:2] == ["--epochs"], sys.argv
    run(int(sys.argv[2]))
    sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
"""


def started(*command: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": TESTS, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(directory: Path, process: "subprocess.Popen[str]", rows: int) -> Written:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        written = read(directory)
        if len(written.numbers) >= rows:
            return written
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"nothing was written: {process.communicate()}")


def test_killed_it_leaves_all_but_the_last_moment(tmp_path: Path) -> None:
    with started("-c", MONITORED, str(tmp_path), "1000000") as process:
        before = until(tmp_path, process, rows=30)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    after = read(tmp_path)
    assert after.numbers[: len(before.numbers)] == before.numbers
    assert after.contexts


def test_interrupted_it_leaves_everything(tmp_path: Path) -> None:
    with started("-c", MONITORED, str(tmp_path), "1000000") as process:
        until(tmp_path, process, rows=30)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    numbers = read(tmp_path).numbers
    assert numbers == sorted(set(numbers))


@pytest.mark.nightly
def test_several_processes_on_one_logdir_do_not_meet(tmp_path: Path) -> None:
    processes = [started("-c", MONITORED, str(tmp_path), "3") for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    directories = {path.parent for path in event_files(tmp_path)}
    assert len(directories) == 2
    for directory in directories:
        assert read(directory).numbers == list(range(30))


def test_run_monitors_an_unchanged_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    with started(
        "-m", "tb_bottleneck", "run", "--logdir", str(tmp_path), "--captures", "0", str(script), "--epochs", "2"
    ) as one:
        out, errors = one.communicate(timeout=120)
    assert one.returncode == 0, errors
    assert out.split() == ["epoch", "epoch"]
    assert read(tmp_path).numbers == list(range(20))


@pytest.mark.nightly
def test_run_monitors_a_module_and_passes_its_exit_status_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = ["run", "--logdir", str(tmp_path), "--captures", "0", "-m", "train", "--epochs", "1", "7"]
    with started("-m", "tb_bottleneck", *command, PYTHONPATH=f"{TESTS}{os.pathsep}{tmp_path}") as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 7, errors
    assert read(tmp_path).numbers == list(range(10))


def test_run_shows_the_scripts_own_error(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\nraise ValueError('mine')\n")
    with started("-m", "tb_bottleneck", "run", "--logdir", str(tmp_path), str(script)) as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert errors.rstrip().endswith("ValueError: mine")


@pytest.mark.nightly
def test_run_under_torchrun_gives_each_rank_its_run_and_the_job_one_place_for_traces(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = ["-m", "tb_bottleneck", "run", "--logdir", str(tmp_path), "--captures", "1", str(script), "--epochs", "5"]
    with started(*torchrun, *command) as process:
        _, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    directories = sorted({path.parent for path in event_files(tmp_path)}, key=lambda path: path.name.split("_rank")[1])
    assert len(directories) == 2
    assert [read(one).facts["rank"] for one in directories] == [0, 1]
    traces = sorted(path.name.split("_")[0] for path in tmp_path.rglob("*.pt.trace.json.gz"))
    assert traces == ["rank0", "rank1"]
    assert len({path.parent for path in tmp_path.rglob("*.pt.trace.json.gz")}) == 1


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["run", "--logdir", "x", "nowhere.py"], "no such script: nowhere.py"),
        (["run", "--logdir", "x", "-m"], "-m needs the name of a module"),
        (["capture", "nowhere"], "no such directory: nowhere"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(
    words: list[str], result: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert result in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_capture_asks_a_training_that_runs_and_names_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with started("-c", MONITORED, str(tmp_path), "1000000") as process:
        until(tmp_path, process, rows=1)
        status = main(["capture", str(tmp_path), "--wait", "60"])
        process.kill()
        process.communicate()
    out = capsys.readouterr().out
    assert status == 0, out
    assert out.count("requested: ") == 1
    (trace,) = tmp_path.rglob("*.pt.trace.json.gz")
    assert str(trace) in out


def test_capture_without_a_running_training_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capture", str(tmp_path)]) == 2
    assert "tb-bottleneck run --logdir" in capsys.readouterr().err
