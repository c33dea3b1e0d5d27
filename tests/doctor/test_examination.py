"""`tb-bottleneck doctor` as users run it, on the CPU; and with a training that crashes, hangs, or has no torch."""

import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.base import calibration_store as calibrations
from tb_bottleneck.base.persistence import CACHE_VARIABLE
from tb_bottleneck.doctor import examination
from tb_bottleneck.doctor.child_processes import TOO_LATE
from tb_bottleneck.doctor.examination import GPU_CHECKS, TORCH_CHECKS, examine
from tb_bottleneck.doctor.results import ABSENT, FAILS, LIMITED, UNKNOWN, WORKS, Examination, Row, as_json, as_text
from tb_bottleneck.doctor.tensorboard import ServerAnswer
from tb_bottleneck.text.terminal import Layout

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tb_bottleneck", "doctor", "--json"]


def environment(temporary: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> "tuple[subprocess.CompletedProcess[str], Path]":
    """The real command, which takes about half a minute."""
    temporary = tmp_path_factory.mktemp("temporary")
    return subprocess.run(
        COMMAND, capture_output=True, text=True, cwd=ROOT, env=environment(temporary), check=False
    ), temporary


@pytest.mark.nightly
def test_the_signals_agree_on_this_machine(done) -> None:
    """The overhead and the time for the peak rates depend on the load of the machine; TensorBoard, on whether the tab
    was built."""
    answer = json.loads(done[0].stdout)
    rows = {row["check"]: row for row in answer["checks"]}
    good = ("Training", "Step times", "Waits for data", "CPU time", "Device time (CPU)", "Capture", "Profiler defects")
    assert {check: rows[check]["measured"] for check in good if rows[check]["result"] not in (WORKS, LIMITED)} == {}
    assert {rows[check]["result"] for check in GPU_CHECKS if check != "Device time"} == {ABSENT}
    rates = rows["Peak rates"]
    assert rates["result"] in (WORKS, LIMITED) or TOO_LATE in rates["measured"]
    assert "2 of 2 recordings listed" in rows["TensorBoard server"]["measured"]
    assert "two blocks without the monitor differ by" in rows["Overhead"]["measured"]
    assert done[0].returncode == answer["status"] == int(any(row["result"] == FAILS for row in answer["checks"]))
    assert done[0].stderr == ""


def test_the_peak_rates_are_stored_for_later_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"device": "NVIDIA H200", "driver": "570.86.15", "figures": {"bf16_flops": 7.9e14, "launch_ns": 4100.0}}
    measured["left_out"] = {"tf32_flops": "this device has no TF32"}
    (tmp_path / "calibration.json").write_text(json.dumps(measured))
    monkeypatch.setattr(examination, "run_child", lambda *_: "")
    (row,) = examination.rate_rows(tmp_path, 5.0)
    assert row.measured == (
        "bf16 790 TFLOP/s, launch of an operator 4.10 µs; TF32 not measured: this device has no TF32; "
        "stored, later runs use them"
    )
    assert calibrations.load("NVIDIA H200", "570.86.15") == measured["figures"]
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    (row,) = examination.rate_rows(tmp_path, 5.0)
    assert (row.result, row.measured[-22:]) == (LIMITED, "switches the cache off")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "calibration.json"))
    (row,) = examination.rate_rows(tmp_path, 5.0)
    assert (row.result, "not stored" in row.measured) == (LIMITED, True)


@pytest.mark.nightly
def test_the_json_has_no_names_and_no_paths(done) -> None:
    text = done[0].stdout
    for secret in (
        socket.gethostname(),
        getpass.getuser(),
        tempfile.gettempdir(),
        str(done[1]),
        str(ROOT),
        os.getcwd(),
    ):
        assert secret not in text, secret
    assert not [word for word in text.split() if word.startswith(("/", '"/'))]


@pytest.mark.nightly
def test_nothing_is_left_behind(done) -> None:
    assert list(done[1].iterdir()) == []


@pytest.fixture
def without_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorBoard's server takes seconds to start."""
    monkeypatch.setattr(examination, "ask_server", lambda *_: ServerAnswer(200, 200, 200, 0, 1.0))


def program(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text(text)
    return path


@pytest.mark.usefixtures("without_server")
@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended with signal 11"),
        ("raise SystemExit(7)", "ended with status 7"),
        ("import time; time.sleep(60)", "did not end within 1 s"),
        ("open('failure.txt', 'w').write('ImportError'); raise SystemExit(1)", "ended with status 1 (ImportError)"),
    ],
)
def test_a_training_that_dies_costs_its_rows_only(tmp_path: Path, text: str, measured: str) -> None:
    found = examine(2.0, script=program(tmp_path, text))
    rows = {row.check: row for row in found.rows}
    assert (rows["Training"].result, rows["Training"].measured) == (FAILS, f"the training process {measured}")
    assert rows["Training"].fix
    assert rows["Overhead"].result == (UNKNOWN if "within" in measured else FAILS)
    assert rows["Step times"].result == UNKNOWN
    assert rows["TensorBoard server"].result == WORKS
    assert found.status == 1


@pytest.mark.usefixtures("without_server")
def test_without_torch_tensorboard_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = examination.find_spec
    monkeypatch.setattr(examination, "find_spec", lambda name: None if name == "torch" else find(name))
    assert main(["doctor", "--json"]) == 2
    out, err = capsys.readouterr()
    rows = {row["check"]: row for row in json.loads(out)["checks"]}
    assert {rows[check]["result"] for check in TORCH_CHECKS} == {UNKNOWN}
    assert "needs torch" in rows["Training"]["measured"]
    assert rows["TensorBoard server"]["result"] == WORKS
    assert "torch is not installed" in err


@pytest.mark.usefixtures("without_server")
def test_an_error_of_a_check_costs_its_group_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_folder: Path) -> None:
        raise RuntimeError(f"in {tmp_path}")

    monkeypatch.setattr(examination.checks, "overhead", broken)
    found = examine(2.0, script=program(tmp_path, ""))
    (row,) = [row for row in found.rows if row.check == "Overhead"]
    assert (row.result, row.measured) == (FAILS, "a check failed with RuntimeError")
    assert found.rows[-1].check == "TensorBoard server"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_ends_all_processes_and_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        COMMAND,
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell lets its background processes ignore interrupts, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/doctor_training.py")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    folder = next(tmp_path.iterdir()).resolve()
    assert in_folder(folder), "the training runs"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")
    assert list(tmp_path.iterdir()) == []
    assert not in_folder(folder)


def in_folder(folder: Path) -> list[str]:
    """Returns the processes whose working directory is in the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            found += [str(entry)] if os.readlink(entry).startswith(str(folder)) else []
        except OSError:
            continue  # it has ended, or is another user's
    return found


# --- The table ---

ROWS = (
    Row("Step times", WORKS, "monitor 31.2 ms, own clock 31.2 ms (49 steps)"),
    Row("GPU counters", LIMITED, "power 75 idle, 652 under load; without temperature: the driver does not have it"),
    Row("TensorBoard server", FAILS, "the server ended with status 1", "start it by hand: its output says why"),
)


@pytest.mark.parametrize("width", [40, 80, 120, 400])
def test_the_table_fits_and_has_everything(width: int) -> None:
    text = as_text(Examination(ROWS, {"torch": "2.13.0"}, True, 12.0), Layout(width))
    assert max(map(len, text.splitlines())) <= max(width, 68)
    words = text.split()
    for row in ROWS:
        assert all(word in words for word in f"{row.measured} {row.fix}".split())
    assert "1 works, 1 works with limits, 1 does not work (12 s)" in " ".join(words)


@pytest.mark.parametrize(
    ("results", "has_torch", "status"),
    [((WORKS, LIMITED, ABSENT, UNKNOWN), True, 0), ((WORKS, FAILS), True, 1), ((WORKS, FAILS), False, 2)],
)
def test_the_exit_status(results, has_torch: bool, status: int) -> None:
    found = Examination(tuple(Row("a", result, "b") for result in results), {}, has_torch, 1.0)
    assert found.status == as_json(found)["status"] == status
